"""Damaged and forged checkpoints: refused in words before anything of the run is changed."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import hocal
from hardening.model_mutations import HOSTILE_VALUES, mutate_bytes
from hocal.torch import MixtureHead, train
from hocal.torch.checkpoint import _checksum

Tensors = dict[str, Tensor]
Generator = np.random.Generator
DATA = TensorDataset(
    torch.linspace(-1, 1, 16)[:, None], torch.tensor([[2, 0], [1, 1]]).repeat(8, 1)
)


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(1, 2), nn.BatchNorm1d(2), MixtureHead(2, 2, in_features=2))


def run(path: Path, model: nn.Sequential, *, epochs_now: int = 4) -> Any:
    """Train for four epochs, or less."""

    def stop(report: Any) -> None:
        if report.epoch == epochs_now < 4:
            raise InterruptedError

    loader = DataLoader(DATA, 8, shuffle=True, generator=torch.Generator().manual_seed(1))
    return train(
        model, loader, loss=model[-1].loss, epochs=4, validation=loader, device="cpu",
        random_state=0, checkpoint=path, progress=stop,
    )  # fmt: skip


@cache
def honest() -> tuple[bytes, dict[str, str], Tensors]:
    """Return the checkpoint of a run that was interrupted after two epochs, and its parts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.safetensors"
        with pytest.raises(InterruptedError):
            run(path, network(), epochs_now=2)
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
            return path.read_bytes(), file.metadata(), tensors


def forge(metadata: dict[str, str], tensors: Tensors) -> bytes:
    """Return a file with the right checksum, whatever it holds."""
    rest = {name: value for name, value in metadata.items() if name != "checksum"}
    whole = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
    return save(whole, {**rest, "checksum": _checksum(rest, whole)})


def change_tensor(tensors: Tensors, generator: Generator) -> Tensors:
    forged = dict(tensors)
    name, other = generator.choice(sorted(tensors), 2, replace=False)
    tensor = tensors[name]
    kind = generator.integers(8)
    if kind == 0:
        del forged[name]
    elif kind == 1:
        forged[f"{name}{generator.choice(['.', 'x', '.0', '.__class__'])}"] = tensors[other]
    elif kind == 2:
        forged[name], forged[other] = forged[other], forged[name]
    elif kind == 3:
        forged[name] = torch.cat([tensor.reshape(-1), tensor.reshape(-1)])
    elif kind == 4:
        forged[name] = tensor.to(
            [torch.float64, torch.uint8, torch.bfloat16, torch.bool][generator.integers(4)]
        )
    elif kind == 5:
        forged[name] = torch.zeros_like(tensor)
    elif kind == 6:
        forged[name] = -1 * tensor if tensor.dtype != torch.uint8 else 255 - tensor
    else:
        forged[str(generator.choice(["", "x", "model", "random.9", "random.x"]))] = tensor
    return forged


def change_metadata(metadata: dict[str, str], generator: Generator) -> dict[str, str]:
    forged = dict(metadata)
    part = str(generator.choice(["progress", "settings", "format"]))
    kind = generator.integers(4)
    if kind == 0:
        del forged[part]
    elif kind == 1 or part == "format":
        forms = ("", "[" * 100_000, "null", "3", "9" * 5_000, "{}", forged[part][:-1])
        forged[part] = forms[generator.integers(len(forms))]
    else:
        content = json.loads(forged[part])
        key = str(generator.choice([*content, "extra", "best", "__class__"]))
        content[key] = HOSTILE_VALUES[generator.integers(len(HOSTILE_VALUES))]
        forged[part] = json.dumps(content)
    return forged


def attack(path: Path, content: bytes) -> bool:
    """Train on from a forged file; return whether it was refused, with nothing changed."""
    path.write_bytes(content)
    model = network()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    random_numbers = torch.get_rng_state()
    message = ""
    try:
        run(path, model)
    except hocal.InputError as error:
        message = str(error)
    except FloatingPointError:  # weights and averages are free, and may make no sense
        pass
    if message:
        assert path.name in message
        assert "Delete the file to start again" in message
        assert path.read_bytes() == content
        assert all(torch.equal(before[name], each) for name, each in model.state_dict().items())
        assert torch.equal(random_numbers, torch.get_rng_state())
    return bool(message)


def test_a_checkpoint_that_is_written_anew_is_taken(tmp_path: Path) -> None:
    _, metadata, tensors = honest()

    assert not attack(tmp_path / "run.safetensors", forge(metadata, tensors))


def test_every_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    content = honest()[0]
    generator = np.random.default_rng(0)
    damaged = [mutate_bytes(content, generator) for _ in range(150)]

    assert all(attack(tmp_path / "run.safetensors", each) for each in damaged if each != content)


def test_forged_checkpoints_are_refused_or_train_on(tmp_path: Path) -> None:
    """With the right checksum; what is no more than another weight cannot be told from a run."""
    _, metadata, tensors = honest()
    generator = np.random.default_rng(1)
    refused = 0
    for number in range(150):
        if number % 2:
            content = forge(metadata, change_tensor(tensors, generator))
        else:
            content = forge(change_metadata(metadata, generator), tensors)
        refused += attack(tmp_path / "run.safetensors", content)

    assert refused > 90


def test_steps_that_were_never_made_are_refused(tmp_path: Path) -> None:
    """A step of -1 would divide by zero."""
    _, metadata, tensors = honest()
    path = tmp_path / "run.safetensors"
    path.write_bytes(forge(metadata, {**tensors, "optimiser.0.step": torch.tensor(-1.0)}))

    with pytest.raises(hocal.InputError, match=r"must have made 1 to 4 steps, got tensor\(-1"):
        run(path, network())


def test_a_folder_as_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(hocal.InputError, match=f"`checkpoint` must name a file, got {tmp_path}"):
        run(tmp_path, network())
