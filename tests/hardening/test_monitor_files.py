"""Forged states of a monitor: refused in words, or taken and still watched with valid numbers."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save as to_bytes

import hocal
from hardening.model_mutations import (
    Tensors,
    mutate_array,
    mutate_bytes,
    mutate_header,
    mutate_names,
)
from hocal.datasets import make_mixture_world
from hocal.decisions.monitor_state import _checksum

WORLD = make_mixture_world(160, 3, random_state=5)
P, COUNTS = WORLD.predictions, WORLD.draw(4, random_state=6)


@pytest.fixture(scope="module")
def calibrator() -> hocal.SnapshotCalibrator:
    partition = hocal.TopLabelPartition(1)
    return hocal.SnapshotCalibrator(partition, method="empirical").fit(P[:100], COUNTS[:100])


def forge(tensors: Tensors, metadata: dict[str, str], header: Any) -> bytes:
    """Return a file whose checksum is right, whatever it holds."""
    text = header if isinstance(header, str) else json.dumps(header)
    arrays = {name: np.asarray(array, order="C") for name, array in tensors.items()}
    checksum = _checksum(text, arrays)
    return to_bytes(arrays, {**metadata, "header": text, "checksum": checksum})


def attack(path: Path, calibrator: hocal.SnapshotCalibrator) -> bool:
    """Watch on from a file; return whether it was refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numbers overflow on the way
            monitor = hocal.Monitor.load(path, calibrator).update(P[130:], COUNTS[130:])
            evidence = monitor.evidence
            monitor.findings(classes=["ant", "bee", "cat"])
            monitor.save(path)
    except hocal.InputError as error:
        if path.name not in str(error):
            raise
        return True
    assert evidence >= 0
    return False


def test_forged_states_are_refused_or_watched_on(
    tmp_path: Path, calibrator: hocal.SnapshotCalibrator
) -> None:
    path = tmp_path / "state.hocal"
    hocal.Monitor(calibrator).update(P[100:130], COUNTS[100:130]).save(path)
    content = path.read_bytes()
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    header = json.loads(metadata["header"])
    generator = np.random.default_rng(0)
    refused = 0
    for number in range(120):
        kind = number % 4
        if kind == 0:
            path.write_bytes(mutate_bytes(content, generator))
        elif kind == 1:
            path.write_bytes(forge(tensors, metadata, mutate_header(header, generator)[0]))
        else:
            change = mutate_array if kind == 2 else mutate_names
            path.write_bytes(forge(change(tensors, generator)[0], metadata, header))
        refused += attack(path, calibrator)

    assert refused > 80


def test_a_state_with_a_deep_header_is_refused(
    tmp_path: Path, calibrator: hocal.SnapshotCalibrator
) -> None:
    path = tmp_path / "state.hocal"
    hocal.Monitor(calibrator).save(path)
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    path.write_bytes(forge({}, metadata, "[" * 100_000))

    with pytest.raises(hocal.InputError, match="must have a sound header"):
        hocal.Monitor.load(path, calibrator)
