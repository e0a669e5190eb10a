"""Checkpoints of a training run: one safetensors file, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from hocal._base.errors import InputError
from hocal._base.files import write_atomically

__all__ = ["TrainingProgress", "read_checkpoint", "write_checkpoint"]

FORMAT = "hocal-training-1"


@dataclass
class TrainingProgress:
    """How far a run has come, whole epochs only."""

    epoch: int = 0  #: epochs finished
    losses: list[float] = field(default_factory=list)  #: mean training loss of each
    validation_losses: list[float] = field(default_factory=list)  #: validation loss after each
    #: weights with the lowest validation loss
    best: dict[str, Tensor] = field(default_factory=dict)

    @property
    def best_epoch(self) -> int:
        """The epoch, from 1, with the lowest validation loss; the last one without validation."""
        values = self.validation_losses
        return 1 + values.index(min(values)) if values else self.epoch


def write_checkpoint(
    path: Path,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    generators: Iterable[torch.Generator],
    progress: TrainingProgress,
    settings: dict[str, Any],
) -> None:
    """Write everything that the rest of the run depends on."""
    from safetensors.torch import save

    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    tensors |= {f"best.{name}": tensor for name, tensor in progress.best.items()}
    for number, entries in optimiser.state_dict()["state"].items():
        for name, entry in entries.items():
            tensors[f"optimiser.{number}.{name}"] = torch.as_tensor(entry)
    for number, state in enumerate(_random_states(generators)):
        tensors[f"random.{number}"] = state
    # Clones, because tied weights share memory and safetensors refuses that.
    copies = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    numbers = {name: value for name, value in vars(progress).items() if name != "best"}
    metadata = {"format": FORMAT, "progress": json.dumps(numbers), "settings": json.dumps(settings)}
    write_atomically(path, save(copies, metadata))


def read_checkpoint(
    path: Path,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    generators: Iterable[torch.Generator],
    settings: dict[str, Any],
) -> TrainingProgress:
    """Put model, optimiser and random numbers back; return how far the run had come."""
    metadata, tensors = _read(path)
    _check_settings(path, json.loads(metadata["settings"]), settings)
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "optimiser": {}, "random": {}}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        parts[part][rest] = tensor
    model.load_state_dict(parts["model"])
    _load_optimiser(optimiser, parts["optimiser"])
    states = [parts["random"][str(number)] for number in range(len(parts["random"]))]
    _set_random_states(generators, states)
    return TrainingProgress(**json.loads(metadata["progress"]), best=parts["best"])


def _read(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        found = f"{path}: {error}"
        raise InputError("checkpoint", "must name a safetensors file", value=found) from error
    if metadata.get("format") != FORMAT:
        rule = "must name a file written by hocal.torch.train"
        raise InputError("checkpoint", rule, value=str(path))
    return metadata, tensors


def _check_settings(path: Path, stored: dict[str, Any], settings: dict[str, Any]) -> None:
    for name, value in settings.items():
        if stored.get(name) != value:
            raise InputError(
                "checkpoint",
                "must belong to this run",
                value=f"{name}={stored.get(name)}",
                where=f"in {path} and {name}={value} now",
                remedy="Delete the file to start again.",
            )


def _load_optimiser(optimiser: torch.optim.Optimizer, entries: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in entries.items():
        number, _, key = name.partition(".")
        state.setdefault(int(number), {})[key] = tensor
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state})


def _random_states(generators: Iterable[torch.Generator]) -> list[Tensor]:
    """Return the states of torch's own generators and of the given ones."""
    device = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return [torch.get_rng_state(), *(generator.get_state() for generator in generators), *device]


def _set_random_states(generators: Iterable[torch.Generator], states: list[Tensor]) -> None:
    torch.set_rng_state(states[0])
    rest = states[1:]
    for generator in generators:
        generator.set_state(rest.pop(0))
    if rest and torch.cuda.is_available() and len(rest) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(rest)
