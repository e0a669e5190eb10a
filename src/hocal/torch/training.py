"""A small training loop: AdamW, warm-up and cosine, early stopping, and whole checkpoints."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from hocal._base.errors import InputError
from hocal._base.validation import (
    check_flag,
    check_integer,
    check_kind,
    check_number,
    known_length,
)
from hocal.torch.checkpoint import TrainingProgress, read_checkpoint, write_checkpoint

__all__ = ["EpochReport", "TrainingHistory", "train"]

Loss = Callable[[Tensor, Tensor], Tensor]
Loader = Any  # a DataLoader, or any sized iterable of batches

# Steps of AdamW begin at ten times the rate, and must fit float32.
LARGEST_RATE = 1e30


class EpochReport(NamedTuple):
    """What is known after an epoch; a `progress` callable receives it."""

    epoch: int  #: epochs finished
    epochs: int  #: epochs asked for
    loss: float  #: mean training loss of the epoch
    validation_loss: float | None  #: mean validation loss after it
    seconds: float  #: time since training began or was resumed

    def __str__(self) -> str:
        validation = (
            "" if self.validation_loss is None else f", validation {self.validation_loss:.4f}"
        )
        done = f"epoch {self.epoch}/{self.epochs}"
        return f"{done}: loss {self.loss:.4f}{validation}, {self.seconds:.0f} s"


ReportEpoch = Callable[[EpochReport], object]


@dataclass(frozen=True)
class TrainingHistory:
    """What happened in a run.

    Attributes
    ----------
    losses : tuple of float
        Mean training loss of each epoch.
    validation_losses : tuple of float
        Mean validation loss after each epoch; empty without validation.
    best_epoch : int
        The epoch, counted from 1, whose weights the model has now.
    stopped_early : bool
        Whether the validation loss ended the run before its last epoch.
    """

    losses: tuple[float, ...]
    validation_losses: tuple[float, ...]
    best_epoch: int
    stopped_early: bool


def train(
    model: nn.Module,
    loader: Loader,
    *,
    loss: Loss,
    epochs: int,
    validation: Loader | None = None,
    learning_rate: float = 1e-3,
    weight_decay: float = 1e-2,
    warmup_epochs: float = 1.0,
    patience: int | None = 10,
    device: str | torch.device | None = None,
    mixed_precision: bool | None = None,
    random_state: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | ReportEpoch = False,
) -> TrainingHistory:
    """Train any network on batches of inputs and label counts.

    The rate rises linearly for `warmup_epochs`, then falls to 0 along a cosine. With `validation`,
    training ends when its loss has not improved for `patience` epochs, and the model gets the
    weights of the best one.

    Parameters
    ----------
    model : nn.Module
        Changed in place; moved to `device` and left there, in evaluation mode.
    loader : DataLoader
        Yields (inputs, counts), or several inputs and the counts last; its length must be known.
    loss : callable
        Maps (outputs, counts) to a mean over items, such as `head.loss` of every head here.
    epochs : int
        Passes over the loader.
    validation : DataLoader, optional
        Held-out batches of the same form, of known length, too.
    learning_rate, weight_decay : float
        Of AdamW, at the peak.
    warmup_epochs : float, default=1.0
        Length of the linear rise.
    patience : int or None, default=10
        Epochs without a lower validation loss before giving up; None never gives up.
    device : str or torch.device, optional
        Where to train; a GPU where there is one by default.
    mixed_precision : bool, optional
        Run the network in bfloat16; on a GPU by default. Losses are always computed in float32 or
        finer.
    random_state : int, optional
        Seeds torch for the run; the state from before is restored afterwards. By default torch's
        own generator is used as it stands.
    checkpoint : path, optional
        A file that is brought up to date after each epoch, whole or not at all. Where it exists
        already, training goes on from it, and on a CPU ends with the very weights of a run that was
        never interrupted, provided that all randomness comes from torch or from the loader's
        generator.
    progress : bool or callable, default=False
        True draws a bar on the standard error (plain lines without rich); a callable gets an
        `EpochReport`.

    Returns
    -------
    TrainingHistory
        Losses of each epoch.

    Raises
    ------
    FloatingPointError
        Where training diverges: the mean loss of an epoch is infinite or not a number. The model
        then gets the weights of the best epoch, if there is `validation`, and is of no use without.
        A `checkpoint` ends with the last epoch whose losses were numbers.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> from hocal.torch import MixtureHead, train
    >>> data = TensorDataset(torch.zeros(64, 1), torch.tensor([[2, 0], [0, 2]]).repeat(32, 1))
    >>> head = MixtureHead(2, 2, in_features=1)
    >>> options = {"epochs": 50, "learning_rate": 0.1, "random_state": 0}
    >>> history = train(head, DataLoader(data, 16), loss=head.loss, **options)
    >>> history.losses[-1] < 0.75  # log 2 = 0.69 is the best possible: two labels always agree
    True
    """
    run = _Run(
        model=model,
        loader=loader,
        loss=loss,
        epochs=check_integer(epochs, "epochs", minimum=1),
        validation=validation,
        rate=check_number(
            learning_rate, "learning_rate", minimum=0, maximum=LARGEST_RATE, strict=True
        ),
        decay=check_number(weight_decay, "weight_decay", minimum=0),
        warmup=check_number(warmup_epochs, "warmup_epochs", minimum=0),
        patience=None if patience is None else check_integer(patience, "patience", minimum=1),
        device=_find_device(device),
        mixed_precision=mixed_precision,
        checkpoint=None if checkpoint is None else Path(checkpoint),
    )
    with seeded(random_state), _reporting(progress) as report:
        return run.finish(report)


def _find_device(device: str | torch.device | None) -> torch.device:
    """Return the device that was named, or a GPU where there is one."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(device)
        torch.zeros(1, device=found).item()  # torch names devices that this machine lacks
    except Exception as error:  # each kind of device is missing in its own way
        named = device if isinstance(device, str | torch.device) else type(device).__name__
        reason = str(error).partition("\n")[0]
        rule = "must name a device that torch can use here"
        raise InputError("device", rule, value=f"{named}: {reason}") from error
    return found


@contextmanager
def seeded(random_state: int | None) -> Iterator[None]:
    """Seed torch inside the block and restore its state afterwards; None leaves it as it is."""
    if random_state is None:
        yield
        return
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(check_integer(random_state, "random_state", minimum=0))
        yield


@dataclass
class _Run:
    """Everything one call of `train` needs, checked."""

    model: nn.Module
    loader: Loader
    loss: Loss
    epochs: int
    validation: Loader | None
    rate: float
    decay: float
    warmup: float
    patience: int | None
    device: torch.device
    mixed_precision: bool | None
    checkpoint: Path | None

    def __post_init__(self) -> None:
        check_kind(self.model, "model", nn.Module)
        self.steps = _length(self.loader, "loader")
        if self.validation is not None:
            _length(self.validation, "validation")
        on_gpu = self.device.type == "cuda"
        mixed = self.mixed_precision
        self.precise = not (on_gpu if mixed is None else check_flag(mixed, "mixed_precision"))
        self.model.to(self.device)
        trainable = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        if not trainable:
            rule = "must have parameters that require gradients"
            raise InputError("model", rule, value="none")
        self.optimiser = torch.optim.AdamW(trainable, lr=self.rate, weight_decay=self.decay)

    def finish(self, report: ReportEpoch) -> TrainingHistory:
        """Run the epochs that are left, and leave the best weights however they end."""
        state = self._begin()
        try:
            self._run_epochs(state, report)
        finally:
            if state.best:
                self.model.load_state_dict(state.best)
            self.model.eval()
        stopped = state.epoch < self.epochs
        return TrainingHistory(
            tuple(state.losses), tuple(state.validation_losses), state.best_epoch, stopped
        )

    def _run_epochs(self, state: TrainingProgress, report: ReportEpoch) -> None:
        start = time.perf_counter()
        while state.epoch < self.epochs and not self._given_up(state):
            self._advance(state)
            self._save(state)
            latest = state.validation_losses[-1] if state.validation_losses else None
            seconds = time.perf_counter() - start
            report(EpochReport(state.epoch, self.epochs, state.losses[-1], latest, seconds))

    def _begin(self) -> TrainingProgress:
        if self.checkpoint is not None and self.checkpoint.exists():
            return read_checkpoint(
                self.checkpoint,
                self.model,
                self.optimiser,
                _generators(self.loader),
                self._settings(),
            )
        state = TrainingProgress()
        self._save(state)  # an interruption of the first epoch must find a valid file, too
        return state

    def _save(self, state: TrainingProgress) -> None:
        if self.checkpoint is not None:
            write_checkpoint(
                self.checkpoint,
                self.model,
                self.optimiser,
                _generators(self.loader),
                state,
                self._settings(),
            )

    def _settings(self) -> dict[str, Any]:
        """Return what must not change between the parts of an interrupted run."""
        names = ("epochs", "steps", "rate", "decay", "warmup", "patience")
        return {
            **{name: getattr(self, name) for name in names},
            "generators": len(_generators(self.loader)),
            "validation": self.validation is not None,
        }

    def _advance(self, state: TrainingProgress) -> None:
        """Run one epoch and note its losses; `state` changes only when the epoch is complete."""
        self.model.train()
        average = _Average(self.device)
        for step, batch in enumerate(self.loader):
            self._set_rate(state.epoch * self.steps + step)
            value, n_items = self._evaluate(batch, "loader")
            self.optimiser.zero_grad(set_to_none=True)
            value.backward()  # type: ignore[no-untyped-call]
            self.optimiser.step()
            average.add(value, n_items)
        mean = average.value("training", state.epoch)
        if self.validation is not None:
            self._validate(self.validation, state)
        state.losses.append(mean)
        state.epoch += 1

    def _set_rate(self, step: int) -> None:
        """Set the rate of a step: a linear rise over the warm-up, then half a cosine down to 0."""
        rise = self.warmup * self.steps
        total = self.epochs * self.steps
        way_down = min(1.0, max(0.0, step - rise) / max(1.0, total - rise))
        falling = 0.5 * (1 + math.cos(math.pi * way_down))
        rising = min((step + 1) / max(rise, 1.0), 1.0)
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate * rising * falling

    @torch.no_grad()
    def _validate(self, validation: Loader, state: TrainingProgress) -> None:
        self.model.eval()
        average = _Average(self.device)
        for batch in validation:
            average.add(*self._evaluate(batch, "validation"))
        value = average.value("validation", state.epoch)
        if value < min(state.validation_losses, default=math.inf):
            state.best = {
                name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()
            }
        state.validation_losses.append(value)

    def _evaluate(self, batch: Any, source: str) -> tuple[Tensor, int]:
        """Return the loss of a batch and its number of items."""
        parts = _parts_of(batch, source)
        *inputs, counts = (part.to(self.device, non_blocking=True) for part in parts)
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=not self.precise):
            outputs = self.model(*inputs)
        value = self.loss(outputs, counts)
        if not isinstance(value, Tensor) or value.ndim:
            found = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise InputError("loss", "must return a tensor of shape ()", value=found)
        return value, len(counts)

    def _given_up(self, state: TrainingProgress) -> bool:
        return self.patience is not None and state.epoch - state.best_epoch >= self.patience


class _Average:
    """A mean over items, kept on the device so that no step waits for it."""

    def __init__(self, device: torch.device) -> None:
        # Not every device has float64.
        self._sum = torch.zeros(
            (), dtype=torch.float32 if device.type == "mps" else torch.float64, device=device
        )
        self._n_items = 0

    def add(self, mean: Tensor, n_items: int) -> None:
        self._sum += mean.detach() * n_items
        self._n_items += n_items

    def value(self, name: str, epoch: int) -> float:
        mean = float(self._sum) / self._n_items if self._n_items else math.nan
        if not math.isfinite(mean):
            raise FloatingPointError(
                f"The {name} loss of epoch {epoch + 1} is {mean} over {self._n_items} items. "
                "Lower the learning rate, or check the inputs."
            )
        return mean


def _length(loader: Loader, name: str) -> int:
    """Return the number of batches, which the schedule and a mean need."""
    n_batches = known_length(loader)
    if n_batches is None:
        rule = "must know its number of batches"
        raise InputError(name, rule, value=type(loader).__name__)
    return check_integer(n_batches, name, minimum=1, why="It counts the batches.")


def _parts_of(batch: Any, source: str) -> list[Any]:
    """Return the tensors of a batch: inputs, and the counts last."""
    parts = list(batch)
    odd = [type(part).__name__ for part in parts if not hasattr(part, "to")]
    if odd or len(parts) < 2:
        rule = "must yield batches of tensors, of which the last holds counts"
        found = odd[0] if odd else f"{len(parts)} of them"
        raise InputError(source, rule, value=found)
    return parts


def _generators(loader: Loader) -> list[torch.Generator]:
    """Return the random generators a loader owns, each once."""
    owners = (loader, getattr(loader, "sampler", None), getattr(loader, "batch_sampler", None))
    found = [getattr(owner, "generator", None) for owner in owners]
    generators = [each for each in found if isinstance(each, torch.Generator)]
    return list({id(each): each for each in generators}.values())


@contextmanager
def _reporting(progress: bool | ReportEpoch) -> Iterator[ReportEpoch]:
    """Give what is called after each epoch, and close the bar however training ends."""
    if callable(progress):
        yield progress
    elif not check_flag(progress, "progress"):
        yield lambda _: None
    else:
        try:
            bar = _rich_bar()
        except ImportError:
            yield lambda report: print(report, file=sys.stderr, flush=True)
            return
        with bar:
            task = bar.add_task("training", total=None)
            yield lambda latest: bar.update(
                task,
                completed=latest.epoch,
                total=latest.epochs,
                description=str(latest),
                refresh=True,
            )


def _rich_bar() -> Any:
    """Return a bar of rich, if that is installed."""
    console = import_module("rich.console").Console(stderr=True)
    return import_module("rich.progress").Progress(console=console)
