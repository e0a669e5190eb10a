"""The training loop: optima, schedule, early stopping, seeds, and runs that were interrupted."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from hocal.datasets import make_mixture_world
from hocal.torch import DeepEnsemble, EpochReport, MixtureHead, SnapshotHead, TrainingHistory, train

WORLD = make_mixture_world(96, 3, n_cells=3, random_state=0)
FEATURES, COUNTS = (
    torch.from_numpy(WORLD.features).float(),
    torch.from_numpy(WORLD.draw(3, random_state=1)),
)


class Interruption(KeyboardInterrupt):
    """Raised by a test in place of a person."""


def network(seed: int = 0) -> nn.Sequential:
    """Return a network with all that a resumed run must restore: normalisation, dropout, layers."""
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.3), MixtureHead(3, 3, 16)
    )


def loader(*, seed: int | None = None) -> DataLoader[tuple[Tensor, ...]]:
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    return DataLoader(TensorDataset(FEATURES, COUNTS), 16, shuffle=True, generator=generator)


def validation() -> DataLoader[tuple[Tensor, ...]]:
    return DataLoader(TensorDataset(FEATURES[:32], COUNTS[:32]), 16)


def run(
    model: nn.Sequential,
    *,
    checkpoint: Path | None = None,
    progress: Callable[[EpochReport], object] | bool = False,
    seed: int | None = None,
    validate: bool = True,
    random_state: int | None = 1,
) -> TrainingHistory:
    return train(
        model,
        loader(seed=seed),
        loss=model[-1].loss,
        epochs=6,
        validation=validation() if validate else None,
        learning_rate=0.01,
        device="cpu",
        random_state=random_state,
        checkpoint=checkpoint,
        progress=progress,
    )


def interrupt_after(epoch: int) -> Callable[[EpochReport], None]:
    def report(latest: EpochReport) -> None:
        if latest.epoch == epoch:
            raise Interruption

    return report


def assert_same_weights(first: nn.Module, second: nn.Module) -> None:
    for (name, a), b in zip(first.state_dict().items(), second.state_dict().values(), strict=True):
        assert torch.equal(a, b), name


@pytest.mark.parametrize("seed", [None, 5], ids=["torch's generator", "the loader's generator"])
@pytest.mark.parametrize("validate", [True, False], ids=["validated", "not validated"])
def test_resuming_gives_the_weights_of_an_uninterrupted_run(
    tmp_path: Path, seed: int | None, validate: bool
) -> None:
    whole, resumed, file = network(), network(seed=99), tmp_path / "run.safetensors"
    history = run(whole, seed=seed, validate=validate)
    with pytest.raises(Interruption):
        run(network(), seed=seed, validate=validate, checkpoint=file, progress=interrupt_after(3))

    assert run(resumed, seed=seed, validate=validate, checkpoint=file) == history
    assert_same_weights(resumed, whole)


@pytest.mark.parametrize("batch", [2, 15], ids=["in the first epoch", "in the third epoch"])
def test_interrupting_amid_an_epoch_leaves_a_checkpoint_to_resume_from(
    tmp_path: Path, batch: int
) -> None:
    whole, broken, resumed, file = (
        network(),
        network(),
        network(seed=99),
        tmp_path / "run.safetensors",
    )
    run(whole)
    calls = iter(range(1000))

    def interrupt(*_: object) -> None:
        if broken.training and next(calls) == batch:
            raise Interruption

    broken.register_forward_hook(interrupt)
    with pytest.raises(Interruption):
        run(broken, checkpoint=file)

    run(resumed, checkpoint=file)
    assert_same_weights(resumed, whole)


def test_a_finished_run_is_read_back_without_training(tmp_path: Path) -> None:
    file, again, reports = tmp_path / "run.safetensors", network(seed=99), list[EpochReport]()
    model = network()
    history = run(model, checkpoint=file)

    assert run(again, checkpoint=file, progress=reports.append) == history
    assert reports == []
    assert_same_weights(again, model)


def test_a_failed_write_keeps_the_checkpoint_from_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "run.safetensors"
    with pytest.raises(Interruption):
        run(network(), checkpoint=file, progress=interrupt_after(2))
    before = file.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        run(network(), checkpoint=file)

    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.safetensors"
    run(network(), checkpoint=file)
    model = network()

    with pytest.raises(ValueError, match=r"must belong to this run, got epochs=6 .* and epochs=7"):
        train(model, loader(), loss=model[-1].loss, epochs=7, checkpoint=file, device="cpu")


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.safetensors"
    file.write_bytes(b"not a checkpoint")

    with pytest.raises(ValueError, match="`checkpoint` must name a safetensors file"):
        run(network(), checkpoint=file)


def test_another_safetensors_file_is_refused(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    save_file({"weight": torch.zeros(1)}, tmp_path / "other.safetensors")

    with pytest.raises(ValueError, match=r"must name a file written by hocal\.torch\.train"):
        run(network(), checkpoint=tmp_path / "other.safetensors")


def test_a_seed_repeats_the_run() -> None:
    first, second = network(), network()

    assert run(first) == run(second)
    assert_same_weights(first, second)


def test_seeding_a_run_leaves_the_random_numbers_of_others_alone() -> None:
    model = network()
    before = torch.get_rng_state()

    run(model)

    assert torch.equal(torch.get_rng_state(), before)


def train_against_reversed_labels() -> tuple[SnapshotHead, TrainingHistory]:
    """Train with validation labels that every step makes less likely."""
    head = SnapshotHead(1, 2, in_features=1)
    nn.init.zeros_(head.linear.weight)
    nn.init.zeros_(head.linear.bias)
    batches, reverse = ([(torch.ones(8, 1), torch.tensor([row] * 8))] for row in ([1, 0], [0, 1]))
    return head, train(
        head,
        batches,
        loss=head.loss,
        epochs=50,
        validation=reverse,
        patience=3,
        learning_rate=0.1,
        device="cpu",
    )


def test_training_stops_when_validation_no_longer_improves() -> None:
    _, history = train_against_reversed_labels()

    assert history.stopped_early
    assert (len(history.losses), history.best_epoch) == (4, 1)


def test_the_model_ends_with_the_weights_of_the_best_epoch() -> None:
    head, history = train_against_reversed_labels()

    with torch.no_grad():
        final = float(head.loss(head(torch.ones(1, 1)), torch.tensor([[0, 1]])))
    assert final == pytest.approx(history.validation_losses[0])


def test_training_approaches_the_entropy_of_the_snapshots() -> None:
    """No prediction has a lower cross-entropy than the distribution of the snapshots themselves."""
    head = SnapshotHead(2, 2, in_features=1)
    counts = torch.tensor([[2, 0]] * 5 + [[1, 1]] * 3 + [[0, 2]] * 2)
    batches = [(torch.zeros(10, 1), counts)]
    frequencies = np.array([0.5, 0.3, 0.2])

    history = train(
        head,
        batches,
        loss=head.loss,
        epochs=300,
        learning_rate=0.1,
        weight_decay=0,
        device="cpu",
        random_state=0,
    )

    assert history.losses[-1] == pytest.approx(-(frequencies * np.log(frequencies)).sum(), abs=1e-5)


def test_the_rate_warms_up_and_then_falls_along_a_cosine(monkeypatch: pytest.MonkeyPatch) -> None:
    rates, step = list[float](), torch.optim.AdamW.step

    def recorded(self: torch.optim.AdamW) -> None:
        rates.append(self.param_groups[0]["lr"])
        step(self)

    monkeypatch.setattr(torch.optim.AdamW, "step", recorded)
    head = SnapshotHead(1, 2, in_features=1)
    batches = [(torch.zeros(2, 1), torch.tensor([[1, 0], [0, 1]]))] * 4
    train(head, batches, loss=head.loss, epochs=3, learning_rate=1.0, device="cpu")

    falling = [0.5 * (1 + np.cos(np.pi * step / 8)) for step in range(8)]
    np.testing.assert_allclose(rates, [0.25, 0.5, 0.75, 1.0, *falling])


def test_several_inputs_are_passed_on() -> None:
    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = SnapshotHead(1, 2, in_features=1)

        def forward(self, a: Tensor, b: Tensor) -> Tensor:
            return self.head(a + b)

    model, ones = Sum(), torch.ones(2, 1)
    history = train(
        model,
        [(ones, ones, torch.tensor([[1, 0], [0, 1]]))],
        loss=model.head.loss,
        epochs=1,
        device="cpu",
    )

    assert len(history.losses) == 1


def test_bfloat16_can_be_asked_for() -> None:
    head, kinds = SnapshotHead(1, 2, in_features=1), list[torch.dtype]()
    head.register_forward_hook(lambda _, __, outputs: kinds.append(outputs.dtype))
    batches = [(torch.zeros(2, 1), torch.tensor([[1, 0], [0, 1]]))]

    train(head, batches, loss=head.loss, epochs=1, device="cpu", mixed_precision=True)

    assert kinds == [torch.bfloat16]


def test_an_ensemble_trains_like_any_module() -> None:
    ensemble = DeepEnsemble(nn.Linear(8, 3) for _ in range(3))

    history = train(
        ensemble, loader(), loss=ensemble.loss, epochs=5, learning_rate=0.05, device="cpu"
    )

    assert history.losses[-1] < history.losses[0]


def test_a_loss_that_is_not_a_number_ends_training() -> None:
    head = SnapshotHead(1, 2, in_features=1)
    batches = [(torch.full((2, 1), torch.nan), torch.tensor([[1, 0], [0, 1]]))]

    with pytest.raises(FloatingPointError, match="training loss of epoch 1 is nan over 2 items"):
        train(head, batches, loss=head.loss, epochs=2, device="cpu")


class Failing(list[tuple[Tensor, Tensor]]):
    """Batches that hold no numbers from the second epoch on."""

    n_epochs = 0

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        self.n_epochs += 1
        features, counts = self[0]
        yield (features if self.n_epochs == 1 else features * torch.nan), counts


def test_a_model_that_diverges_keeps_the_weights_of_its_best_epoch() -> None:
    head = SnapshotHead(1, 2, in_features=1)
    batches = [(torch.ones(2, 1), torch.tensor([[1, 0], [1, 0]]))]
    seen = []

    with pytest.raises(FloatingPointError, match="training loss of epoch 2 is nan"):
        train(
            head, Failing(batches), loss=head.loss, epochs=3, validation=batches, device="cpu",
            progress=lambda _: seen.append(head.linear.weight.clone()),
        )  # fmt: skip

    assert len(seen) == 1
    assert torch.equal(head.linear.weight, seen[0])
    assert not head.training


def test_a_model_without_trainable_parameters_is_refused() -> None:
    with pytest.raises(ValueError, match="`model` must have parameters that require gradients"):
        train(SnapshotHead(1, 2), [1], loss=lambda a, b: a + b, epochs=1, device="cpu")


def test_a_loader_of_unknown_length_is_refused() -> None:
    class Stream(IterableDataset[Tensor]):
        def __iter__(self) -> Iterator[Tensor]:
            return iter([])

    with pytest.raises(
        ValueError, match="`loader` must know its number of batches, got DataLoader"
    ):
        train(
            nn.Linear(1, 1), DataLoader(Stream()), loss=lambda a, b: a + b, epochs=1, device="cpu"
        )


def test_progress_goes_to_the_standard_error_line_by_line_without_rich(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)

    run(network(), progress=True)

    captured = capsys.readouterr()
    assert captured.out == ""
    assert "epoch 6/6" in captured.err


def test_progress_is_a_bar_on_the_standard_error_with_rich(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("rich", reason="rich draws the bar; it comes with hocal[app]")

    run(network(), progress=True)

    captured = capsys.readouterr()
    assert captured.out == ""
    assert "epoch 6/6" in captured.err


def test_nothing_is_printed_unless_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    run(network())

    assert capsys.readouterr() == ("", "")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_training_agrees_on_cpu_and_gpu() -> None:
    weights = {}
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        head = MixtureHead(3, 3, 8)
        batches = [(FEATURES, COUNTS)]
        train(
            head,
            batches,
            loss=head.loss,
            epochs=5,
            device=device,
            mixed_precision=False,
            random_state=0,
        )
        weights[device] = head.linear.weight.detach().cpu()

    torch.testing.assert_close(weights["cpu"], weights["cuda"], rtol=1e-3, atol=1e-4)
