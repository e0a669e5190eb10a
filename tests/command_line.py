"""A small study in files, and what a run of `hocal` leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

CLASSES = ["ant", "bee", "cat"]
N_ITEMS, N_LABELS = 120, 3


class Outcome(NamedTuple):
    """What a run of `hocal` left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be JSON and nothing else."""
        return json.loads(self.out)


class Study(NamedTuple):
    """Files of one study and the arrays that they hold."""

    folder: Path
    probabilities: NDArray[np.float64]
    counts: NDArray[np.int64]

    def __truediv__(self, name: str) -> str:
        return str(self.folder / name)

    @property
    def fit(self) -> list[str]:
        """Arguments that fit the Parquet files."""
        labels, predictions = self / "labels.parquet", self / "predictions.parquet"
        return ["fit", labels, predictions, "--item", "item", "--label", "label", "--n-slices", "2"]


Run = Callable[..., Outcome]


def study_tables(p: NDArray[np.float64], counts: NDArray[np.int64]) -> dict[str, pa.Table]:
    """Return long and wide labels, and predictions in columns and in lists."""
    items = np.arange(len(p))
    row, number = (
        np.repeat(items, N_LABELS),
        np.repeat(np.tile(np.arange(3), len(p)), counts.ravel()),
    )
    chosen = np.array(CLASSES)[number]
    annotator = np.tile(np.arange(N_LABELS), len(p))
    return {
        "labels": pa.table({"item": row, "label": chosen, "annotator": annotator}),
        "wide": pa.table(
            {"item": items} | {f"person {j}": chosen[j::N_LABELS] for j in range(N_LABELS)}
        ),
        "counts": pa.table({"item": items} | dict(zip(CLASSES, counts.T, strict=True))),
        "predictions": pa.table({"item": items} | dict(zip(CLASSES, p.T, strict=True))),
        "lists": pa.table({"item": items, "p": list(p)}),
        "cells": pa.table(
            {"item": items, "cell": p.argmax(axis=1)} | dict(zip(CLASSES, p.T, strict=True))
        ),
    }
