"""SnapshotHead and MixtureHead: losses, conversions, optima."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hocal
from hocal.torch import MixtureHead, SnapshotHead, predict_mixture
from hocal.uncertainty.moment_tensors import thin_distribution
from hocal.uncertainty.snapshots import (
    draw_labels,
    enumerate_snapshots,
    n_snapshots,
    rank_snapshots,
    sub_snapshots,
)

RAGGED = np.array([[3, 0, 1], [1, 1, 0], [0, 5, 2], [1, 0, 0]])
FOUR_LABELS = np.array([[4, 0, 0], [2, 1, 1], [0, 3, 1], [1, 1, 2]])


def random_logits(n_items: int, n_outputs: int) -> Tensor:
    return torch.randn(n_items, n_outputs, dtype=torch.float64)


def fit(head: SnapshotHead | MixtureHead, counts: Tensor, *, steps: int = 300) -> Tensor:
    """Return the outputs, one row for all items, that minimise a head's loss."""
    outputs = torch.randn(1, head.n_outputs, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [outputs], max_iter=steps, line_search_fn="strong_wolfe", tolerance_grad=1e-10
    )

    def closure() -> Tensor:
        optimiser.zero_grad()
        loss = head.loss(outputs.expand(len(counts), -1), counts)
        loss.backward()
        return loss

    optimiser.step(closure)
    return outputs.detach()


def test_snapshot_targets_are_the_exact_thinning_of_the_labels() -> None:
    head, thinned = SnapshotHead(2, 3), sub_snapshots(FOUR_LABELS, 2)
    expected = np.zeros((4, 6))
    np.add.at(expected, (thinned.items, rank_snapshots(thinned.snapshots)), thinned.probabilities)

    targets = head.targets(torch.from_numpy(FOUR_LABELS), dtype=torch.float64)

    np.testing.assert_allclose(targets.numpy(), expected, atol=1e-12)


def test_snapshot_targets_of_fifty_labels_are_accurate_in_single_precision() -> None:
    counts = np.array([[30, 15, 5]])
    exact = SnapshotHead(5, 3).targets(torch.from_numpy(counts), dtype=torch.float64)

    single = SnapshotHead(5, 3).targets(torch.from_numpy(counts))

    assert float((single - exact).abs().max()) < 2e-6


def test_snapshot_loss_is_the_cross_entropy_of_the_thinned_labels() -> None:
    head, logits = SnapshotHead(2, 3), random_logits(4, 6)
    counts = torch.from_numpy(FOUR_LABELS)

    expected = nn.functional.cross_entropy(logits, head.targets(counts, dtype=torch.float64))

    torch.testing.assert_close(head.loss(logits, counts), expected)


def test_drawn_snapshot_loss_has_the_exact_loss_as_its_mean() -> None:
    logits, counts = random_logits(4, 6), torch.from_numpy(FOUR_LABELS)
    drawn = SnapshotHead(2, 3, thinning="draw")

    losses = torch.stack([drawn.loss(logits, counts) for _ in range(2000)])

    deviation = float(losses.std()) / 2000**0.5
    assert float(losses.mean()) == pytest.approx(
        float(SnapshotHead(2, 3).loss(logits, counts)), abs=4 * deviation
    )


def test_snapshot_loss_passes_the_gradient_check() -> None:
    head, counts = SnapshotHead(2, 3), torch.from_numpy(FOUR_LABELS)

    assert torch.autograd.gradcheck(
        lambda z: head.loss(z, counts), random_logits(4, 6).requires_grad_()
    )


def test_mixture_loss_passes_the_gradient_check() -> None:
    head, counts = MixtureHead(2, 3), torch.from_numpy(RAGGED)

    assert torch.autograd.gradcheck(
        lambda z: head.loss(z, counts), random_logits(4, 8).requires_grad_()
    )


def test_snapshot_head_overfits_to_the_observed_snapshot_frequencies() -> None:
    """The minimum of cross-entropy is the entropy of the frequencies, reached there."""
    head, counts = SnapshotHead(2, 2), torch.tensor([[2, 0]] * 5 + [[1, 1]] * 3 + [[0, 2]] * 2)

    probabilities = fit(head, counts).softmax(-1)[0]

    np.testing.assert_allclose(probabilities.numpy(), [0.2, 0.3, 0.5], atol=1e-5)


def test_mixture_head_overfits_to_the_maximum_of_the_likelihood() -> None:
    """Two labels that agree at least as often as by chance: some mixture has their frequencies."""
    head, counts = MixtureHead(2, 2), torch.tensor([[2, 0]] * 5 + [[1, 1]] * 3 + [[0, 2]] * 2)
    frequencies = np.array([0.5, 0.3, 0.2])

    reached = float(head.loss(fit(head, counts).expand(10, -1), counts))

    assert reached == pytest.approx(-(frequencies * np.log(frequencies)).sum(), abs=1e-5)


def test_one_component_overfits_to_the_pooled_label_frequencies() -> None:
    head, counts = MixtureHead(1, 3), torch.from_numpy(RAGGED)

    np.testing.assert_allclose(
        head.mean(fit(head, counts))[0].numpy(), RAGGED.sum(0) / RAGGED.sum(), atol=1e-5
    )


@pytest.mark.parametrize("in_features", [None, 7])
def test_ragged_likelihood_equals_that_of_the_converted_mixtures(in_features: int | None) -> None:
    head = MixtureHead(5, 3, in_features).double()
    outputs = head(random_logits(4, in_features or head.n_outputs)).detach()

    expected = head.to_mixtures(outputs).log_likelihood(RAGGED)

    np.testing.assert_allclose(
        head.log_likelihood(outputs, torch.from_numpy(RAGGED)).numpy(), expected, rtol=1e-10
    )


def test_likelihood_without_coefficient_takes_labels_in_one_order() -> None:
    head, counts = MixtureHead(1, 2), torch.tensor([[1, 1]])

    ordered = head.log_likelihood(torch.zeros(1, 3), counts, coefficient=False)

    assert float(ordered.exp()) == pytest.approx(0.25)


def test_mixture_loss_stays_finite_for_extreme_outputs() -> None:
    head = MixtureHead(2, 3)
    outputs = torch.tensor([[1e4, -1e4, 1e4, 0, 0, 0, 0, 1e4]], requires_grad=True)

    loss = head.loss(outputs, torch.tensor([[0, 900, 100]]))
    loss.backward()

    assert torch.isfinite(loss)
    assert outputs.grad is not None
    assert bool(torch.isfinite(outputs.grad).all())


def test_snapshot_head_converts_its_softmax_to_atoms_of_the_lattice() -> None:
    head, logits = SnapshotHead(3, 3), random_logits(4, 10)

    mixtures = head.to_mixtures(logits)

    np.testing.assert_allclose(mixtures.points, np.tile(enumerate_snapshots(3, 3) / 3, (4, 1)))
    np.testing.assert_allclose(mixtures.weights.reshape(4, 10), logits.softmax(-1).numpy())


def test_mixture_head_converts_its_softmaxes_to_weights_and_atoms() -> None:
    head, outputs = MixtureHead(2, 3), random_logits(4, 8)

    mixtures = head.to_mixtures(outputs)

    np.testing.assert_allclose(mixtures.weights.reshape(4, 2), outputs[:, :2].softmax(-1).numpy())
    np.testing.assert_allclose(
        mixtures.points.reshape(4, 2, 3),
        outputs[:, 2:].reshape(4, 2, 3).softmax(-1).numpy(),
        atol=1e-12,
    )


@pytest.mark.parametrize(
    "head", [SnapshotHead(3, 4), MixtureHead(3, 4)], ids=["snapshot", "mixture"]
)
def test_mean_of_a_head_is_the_mean_of_its_mixtures(head: SnapshotHead | MixtureHead) -> None:
    outputs = random_logits(5, head.n_outputs)

    np.testing.assert_allclose(
        head.mean(outputs).numpy(), head.to_mixtures(outputs).mean(), atol=1e-12
    )


@pytest.mark.parametrize("j", [1, 2, 3])
def test_marginalising_a_snapshot_head_is_thinning(j: int) -> None:
    head, logits = SnapshotHead(3, 4), random_logits(5, n_snapshots(3, 4))

    expected = thin_distribution(logits.softmax(-1).numpy(), 3, j, n_classes=4)

    np.testing.assert_allclose(head.marginalise(logits, j).numpy(), expected, atol=1e-12)


def test_marginalising_passes_gradients_back() -> None:
    head, logits = SnapshotHead(2, 2), random_logits(1, 3).requires_grad_()

    assert torch.autograd.gradcheck(lambda z: head.marginalise(z, 1), logits)


def test_index_names_the_output_of_a_snapshot() -> None:
    head = SnapshotHead(4, 3)

    assert torch.equal(head.snapshots[head.index(FOUR_LABELS)], torch.from_numpy(FOUR_LABELS))


def test_index_refuses_other_numbers_of_labels() -> None:
    with pytest.raises(ValueError, match="must have k = 2 labels in each row, got 4"):
        SnapshotHead(2, 3).index(FOUR_LABELS)


def test_too_many_snapshots_are_refused_and_the_mixture_head_named() -> None:
    with pytest.raises(ValueError, match=r"got 92378 for k=10 and 10 classes\. Use MixtureHead"):
        SnapshotHead(10, 10)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([[1, 0, 0]], "at least 2 labels in each row, got 1 in row 0"),
        ([[3, -1, 0]], "must be non-negative"),
        ([[0.5, 1.5, 0]], "must be whole numbers"),
        ([[1, 1]], r"must have shape \(1, 3\), got \(1, 2\)"),
    ],
)
def test_bad_counts_are_refused(counts: list[list[float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SnapshotHead(2, 3).loss(torch.zeros(1, 6), torch.tensor(counts))


def test_loss_is_computed_in_single_precision_under_autocast() -> None:
    head, logits, counts = SnapshotHead(2, 3), torch.randn(4, 6), torch.from_numpy(FOUR_LABELS)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = head.loss(logits, counts)

    torch.testing.assert_close(loss, head.loss(logits, counts), rtol=0, atol=1e-6)


def test_components_start_apart() -> None:
    """Equal components would get equal gradients and never part."""
    mixtures = predict_mixture(MixtureHead(8, 2, in_features=4), torch.zeros(1, 4))

    assert mixtures.points[:, 0].std() > 0.2


@pytest.mark.parametrize(
    "head", [SnapshotHead(5, 2), MixtureHead(4, 2)], ids=["snapshot", "mixture"]
)
def test_more_data_brings_a_head_nearer_to_the_bayes_mixture(
    head: SnapshotHead | MixtureHead,
) -> None:
    """Distances of 5-label projections, which five labels per item determine."""
    truth = hocal.Mixtures([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]], [0.5, 0.2, 0.3], [0, 3], [0])
    random, distances = np.random.default_rng(0), []
    for n_items in (40, 40_000):
        p = truth.points[random.choice(3, n_items, p=truth.weights)]
        mixtures = head.to_mixtures(
            fit(head, torch.from_numpy(draw_labels(p, 5, random_state=random)))
        )
        learned = mixtures if isinstance(head, SnapshotHead) else mixtures.project(5)
        distances.append(hocal.wasserstein(learned, truth.project(5))[0])

    assert distances[1] < 0.02 < distances[0]


@pytest.mark.parametrize(
    "head", [SnapshotHead(2, 3), MixtureHead(2, 3)], ids=["snapshot", "mixture"]
)
def test_a_wrong_number_of_outputs_is_refused(head: SnapshotHead | MixtureHead) -> None:
    with pytest.raises(
        ValueError, match=rf"`outputs` must have shape \(n_items, {head.n_outputs}\), got \(1, 1\)"
    ):
        head.loss(torch.zeros(1, 1), torch.tensor([[1, 1, 0]]))


def test_both_heads_tell_the_two_xray_worlds_apart() -> None:
    clear = torch.from_numpy(draw_labels(np.repeat(np.eye(2), 500, axis=0), 2, random_state=0))
    for head in (SnapshotHead(2, 2), MixtureHead(2, 2)):
        mixtures = head.to_mixtures(fit(head, clear))

        assert hocal.decompose(mixtures, base=2).aleatoric[0] == pytest.approx(0, abs=1e-3)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
@pytest.mark.parametrize(
    "head", [SnapshotHead(3, 3), MixtureHead(4, 3)], ids=["snapshot", "mixture"]
)
def test_loss_and_gradient_agree_on_cpu_and_gpu(head: SnapshotHead | MixtureHead) -> None:
    outputs, results = torch.randn(4, head.n_outputs), {}
    for device in ("cpu", "cuda"):
        leaf = outputs.clone().to(device).requires_grad_()
        head.to(device).loss(leaf, torch.from_numpy(FOUR_LABELS).to(device)).backward()
        assert leaf.grad is not None
        results[device] = leaf.grad.cpu()

    torch.testing.assert_close(results["cpu"], results["cuda"], rtol=1e-4, atol=1e-6)
