"""Checkpoints of a training run: one safetensors file, written whole or not at all.

What is read is held to the rules that a run keeps before anything of the run is changed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from hocal._base.errors import InputError
from hocal._base.files import write_atomically

__all__ = ["TrainingProgress", "read_checkpoint", "write_checkpoint"]

FORMAT = "hocal-training-2"
PARTS = ("model", "best", "optimiser", "random")
# What AdamW keeps for each parameter: the steps made, and averages of gradients and squares.
STATE = ("step", "exp_avg", "exp_avg_sq")
REMEDY = "Delete the file to start again, or name another."

Tensors = dict[str, Tensor]


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
    generators: Sequence[torch.Generator],
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
    metadata["checksum"] = _checksum(metadata, copies)
    write_atomically(path, save(copies, metadata))


def read_checkpoint(
    path: Path,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    generators: Sequence[torch.Generator],
    settings: dict[str, Any],
) -> TrainingProgress:
    """Put model, optimiser and random numbers back; return how far the run had come."""
    metadata, tensors = _read(path)
    _check_settings(path, _decode(path, metadata, "settings"), settings)
    numbers = _decode(path, metadata, "progress")
    _check_progress(path, numbers, settings)
    parts = _split(path, tensors)
    weights = dict(model.state_dict())
    _check_alike(path, parts["model"], weights)
    _check_alike(path, parts["best"], weights if numbers["validation_losses"] else {})
    n_steps = numbers["epoch"] * settings["steps"]
    _check_optimiser(path, parts["optimiser"], optimiser, n_steps)
    states = _list_states(path, parts["random"], generators)

    model.load_state_dict(parts["model"])
    _load_optimiser(optimiser, parts["optimiser"])
    _set_random_states(generators, states)
    return TrainingProgress(**numbers, best=parts["best"])


def _split(path: Path, tensors: Tensors) -> dict[str, Tensors]:
    """Return the tensors by the part of the run that they belong to."""
    parts: dict[str, Tensors] = {part: {} for part in PARTS}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        if part not in parts:
            _refuse(path, "must hold known tensors only", name)
        parts[part][rest] = tensor
    return parts


def _refuse(path: Path, rule: str, found: object, cause: Exception | None = None) -> NoReturn:
    shown = str(found)[:80]  # enough to see what is meant
    raise InputError("checkpoint", rule, value=shown, where=f"in {path}", remedy=REMEDY) from cause


def _read(path: Path) -> tuple[dict[str, str], Tensors]:
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise InputError("checkpoint", "must name a file", value=str(path))
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        _refuse(path, "must name a safetensors file", error, error)
    if metadata.get("format") != FORMAT:
        rule = "must name a file written by hocal.torch.train of this version"
        _refuse(path, rule, metadata.get("format", "no format"))
    found = metadata.pop("checksum", "none")
    if found != (expected := _checksum(metadata, tensors)):
        _refuse(path, f"must have the checksum {expected}, or it is damaged,", found)
    return metadata, tensors


def _checksum(metadata: Mapping[str, str], tensors: Tensors) -> str:
    """Return the sha256 of everything in a file."""
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _decode(path: Path, metadata: Mapping[str, str], key: str) -> dict[str, Any]:
    """Return a dictionary that the file holds as JSON."""
    try:
        found = json.loads(metadata.get(key, ""))
    except (ValueError, RecursionError) as error:
        _refuse(path, f"must hold its {key} as JSON", error, error)
    if not isinstance(found, dict):
        _refuse(path, f"must hold its {key} by name", found)
    return found


def _check_settings(path: Path, stored: dict[str, Any], settings: dict[str, Any]) -> None:
    for name, value in settings.items():
        if stored.get(name) != value:
            raise InputError(
                "checkpoint",
                "must belong to this run",
                value=f"{name}={str(stored.get(name))[:80]}",
                where=f"in {path} and {name}={value} now",
                remedy=REMEDY,
            )


def _check_progress(path: Path, numbers: dict[str, Any], settings: dict[str, Any]) -> None:
    """Hold the losses to one for each epoch that is finished."""
    if sorted(numbers) != ["epoch", "losses", "validation_losses"]:
        _refuse(path, "must hold the epoch and the losses", sorted(numbers))
    epoch = numbers["epoch"]
    if type(epoch) is not int or not 0 <= epoch <= settings["epochs"]:
        _refuse(path, f"must have finished 0 to {settings['epochs']} epochs", epoch)
    lengths = {"losses": epoch, "validation_losses": epoch * settings["validation"]}
    for name, length in lengths.items():
        values = numbers[name]
        finite = isinstance(values, list) and all(
            type(value) is float and math.isfinite(value) for value in values
        )
        if not finite or len(values) != length:
            _refuse(path, f"must have {length} finite {name}", values)


def _check_alike(path: Path, found: Tensors, expected: Tensors) -> None:
    """Hold tensors to the names, shapes and types of others."""
    if differing := sorted(found.keys() ^ expected.keys()):
        _refuse(path, "must hold the tensors of this model", differing[0])
    for name, tensor in found.items():
        other = expected[name]
        if tensor.shape != other.shape or tensor.dtype != other.dtype:
            rule = f"must hold `{name}` as {other.dtype} of shape {tuple(other.shape)}"
            _refuse(path, rule, f"{tensor.dtype} {tuple(tensor.shape)}")


def _check_optimiser(
    path: Path, found: Tensors, optimiser: torch.optim.Optimizer, n_steps: int
) -> None:
    """Hold what the optimiser remembers of each parameter to the steps of the finished epochs."""
    parameters = [each for group in optimiser.param_groups for each in group["params"]]
    numbers = {name.partition(".")[0] for name in found}  # a parameter out of use has no state
    expected: Tensors = {}
    for number in numbers & {str(place) for place in range(len(parameters))}:
        step = found.get(f"{number}.step", torch.tensor(math.nan))
        if step.numel() != 1 or not 1 <= float(step.real) <= n_steps:
            _refuse(path, f"must have made 1 to {n_steps} steps", step)
        values = (torch.tensor(0.0), parameters[int(number)], parameters[int(number)])
        expected |= {f"{number}.{key}": like for key, like in zip(STATE, values, strict=True)}
    _check_alike(path, found, expected)


def _list_states(path: Path, found: Tensors, generators: Sequence[torch.Generator]) -> list[Tensor]:
    """Return random states in order, once new generators have taken those that will be used."""
    devices = [torch.device("cpu"), *(each.device for each in generators)]
    places = [str(place) for place in range(max(len(found), len(devices)))]
    if found.keys() != set(places):  # more than these are states of GPUs, which may be others now
        _refuse(path, f"must hold {len(devices)} random states or more", sorted(found))
    states = [found[place] for place in places]
    for device, state in zip(devices, states, strict=False):
        try:
            torch.Generator(device).set_state(state)
        except (RuntimeError, TypeError) as error:
            _refuse(path, "must hold valid random states", error, error)
    return states


def _load_optimiser(optimiser: torch.optim.Optimizer, entries: Tensors) -> None:
    state: dict[int, Tensors] = {}
    for name, tensor in entries.items():
        number, _, key = name.partition(".")
        state.setdefault(int(number), {})[key] = tensor
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state})


def _random_states(generators: Sequence[torch.Generator]) -> list[Tensor]:
    """Return the states of torch's own generators and of the given ones."""
    device = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return [torch.get_rng_state(), *(generator.get_state() for generator in generators), *device]


def _set_random_states(generators: Sequence[torch.Generator], states: list[Tensor]) -> None:
    torch.set_rng_state(states[0])
    rest = states[1:]
    for generator in generators:
        generator.set_state(rest.pop(0))
    if rest and torch.cuda.is_available() and len(rest) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(rest)
