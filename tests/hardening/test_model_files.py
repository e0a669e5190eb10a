"""Forged model files: refused, or loaded into a model that answers as it must.

Anybody can write a file with the right checksum, so every rule that a fit keeps is checked on load.
A change of a number that is free within all rules (a weight of a regression, say) cannot be told
from another fit: such a file must still answer with valid numbers. Any other change is refused, or
changes nothing.
"""

from __future__ import annotations

import json
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from safetensors import safe_open
from scipy import sparse

import hocal
from hardening.model_mutations import (
    FREE_ARRAYS,
    FREE_VALUES,
    Tensors,
    mutate_array,
    mutate_bytes,
    mutate_header,
    mutate_names,
    write_forged,
)
from hocal.calibration.persistence import read_notes, serialise

GENERATOR = np.random.default_rng(11)
PREDICTIONS = GENERATOR.dirichlet(np.full(3, 0.6), size=120)
COUNTS = GENERATOR.multinomial(4, PREDICTIONS)
TOTALS = GENERATOR.integers(1, 6, 120)
RAGGED = GENERATOR.multinomial(TOTALS, PREDICTIONS)
FEATURES = GENERATOR.normal(size=(120, 2))


class Stored(NamedTuple):
    """A model, its file, and the parts of it."""

    content: bytes
    header: dict[str, Any]
    tensors: Tensors
    answers: list[Any]


def fit(name: str) -> hocal.SnapshotCalibrator:
    make = hocal.SnapshotCalibrator
    if name == "items":
        return make(hocal.TopLabelPartition(4)).fit(PREDICTIONS, COUNTS)
    if name == "features":
        ensemble = np.stack([PREDICTIONS, PREDICTIONS[:, ::-1]], axis=1)
        partition = hocal.QuantilePartition(3)
        return make(partition).fit(ensemble, RAGGED, features=FEATURES)
    if name == "cells":
        return make(hocal.KMeansPartition(5), method="cells", panel_size=3).fit(
            PREDICTIONS, sparse.csr_array(COUNTS)
        )
    return make(hocal.LevelSetPartition(1), method="empirical").fit(PREDICTIONS, RAGGED)


NAMES = ("items", "features", "cells", "empirical")


@cache
def stored(name: str) -> Stored:
    calibrator = fit(name)
    content = serialise(calibrator, notes={"item": "image"})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.hocal"
        path.write_bytes(content)
        with safe_open(path, framework="numpy") as file:
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            header = json.loads(file.metadata()["header"])
    return Stored(content, header, tensors, answers(calibrator))


def answers(calibrator: hocal.SnapshotCalibrator) -> list[Any]:
    """Return what people ask a model."""
    inputs: Any = PREDICTIONS[:8]
    if calibrator.input_shape_.n_members > 1:
        inputs = np.repeat(inputs[:, None], calibrator.input_shape_.n_members, axis=1)
    features = None
    if calibrator.input_shape_.n_features:
        features = np.zeros((8, calibrator.input_shape_.n_features))
    parts = calibrator.decompose(inputs, features=features)
    labels = COUNTS[:8] * (calibrator.item_model_ is not None)  # others may find them impossible
    own = calibrator.predict_proba(inputs, features=features, counts=labels)
    return [
        calibrator.predict_proba(inputs, features=features),
        own,
        parts.aleatoric,
        parts.epistemic,
        calibrator.statistics_.n_items,
        calibrator.partition_.cell_names(["ant", "bee", "cat"]),
        calibrator.source_,
        calibrator.class_orders_,
        sorted(calibrator.levels_),
    ]


def check_valid(found: list[Any]) -> None:
    """Answers are distributions and uncertainties, whatever numbers were free."""
    for probabilities in found[:2]:
        assert (probabilities >= 0).all()
        assert np.abs(probabilities.sum(axis=1) - 1).max() < 1e-6
    assert min(found[2].min(), found[3].min()) >= -1e-6


def attack(path: Path, content: bytes, honest: Stored, name: str, *, free: bool) -> bool:
    """Load a forged file; return whether it was refused."""
    path.write_bytes(content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numbers overflow on the way to a refusal
            loaded = hocal.load(path)
    except hocal.InputError as error:
        if path.name not in str(error) and error.argument != "partition":
            raise
        return True
    found = answers(loaded)
    check_valid(found)
    hocal.save(loaded, path)
    read_notes(path)
    if not free:
        for ours, theirs in zip(found, honest.answers, strict=True):
            assert np.array_equal(ours, theirs), name
    return False


def is_free(name: str, starts: tuple[str, ...]) -> bool:
    return any(name.startswith(start) or f".{start}" in name for start in starts)


def run(path: Path, n_mutations: int, seed: int) -> int:
    """Attack with mutations of every kind; return how many were refused."""
    generator = np.random.default_rng(seed)
    refused = 0
    for _ in range(n_mutations):
        honest = stored(str(generator.choice(NAMES)))
        kind = generator.choice(["bytes", "array", "array", "array", "names", "header", "header"])
        free = False
        if kind == "bytes":
            content, name = mutate_bytes(honest.content, generator), "bytes"
        elif kind == "header":
            header, name = mutate_header(honest.header, generator)
            content = write_forged(honest.tensors, header)
            free = is_free(name, FREE_VALUES)
        else:
            change = mutate_array if kind == "array" else mutate_names
            tensors, name = change(honest.tensors, generator)
            content = write_forged(tensors, honest.header)
            free = is_free(name, FREE_ARRAYS)
        refused += attack(path, content, honest, name, free=free)
    return refused


@pytest.mark.parametrize("name", NAMES)
def test_a_file_as_it_was_saved_answers_the_same(tmp_path: Path, name: str) -> None:
    honest = stored(name)

    content = write_forged(honest.tensors, honest.header)

    assert not attack(tmp_path / "model.hocal", content, honest, name, free=False)


def test_forged_files_are_refused_or_answer_as_they_must(tmp_path: Path) -> None:
    assert run(tmp_path / "model.hocal", 300, seed=20) > 200


@pytest.mark.slow
def test_thousands_of_forged_files_are_refused_or_answer_as_they_must(tmp_path: Path) -> None:
    assert run(tmp_path / "model.hocal", 5_000, seed=21) > 3_500
