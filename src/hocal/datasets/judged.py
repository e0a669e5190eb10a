"""Items with the judgements of named people and the predictions of models, from packed tables."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hocal._base.errors import InputError
from hocal._base.frames import to_frame
from hocal._base.typing import Array, IntArray
from hocal.datasets.real import LabelledItems

__all__ = ["JudgedItems", "match", "read_table", "tally"]


@dataclass(frozen=True, eq=False, repr=False)
class JudgedItems(LabelledItems):
    """Items with the judgements of named people, and what models say about them.

    Attributes
    ----------
    counts, classes, source
        As in `LabelledItems`; the counts are those of the people.
    items : ndarray of shape (n_items,), str
        Names of the items, in the order of the rows.
    annotator : ndarray of shape (n_judgements,), str
        Who judged.
    item : ndarray of shape (n_judgements,), int64
        What was judged, an index into `items`.
    label : ndarray of shape (n_judgements,), int64
        What was said, an index into `classes`.
    probabilities : ndarray of shape (n_items, n_models, n_classes), float64, or None
        What each model says, as `SnapshotCalibrator.fit` takes an ensemble: its softmax, or 1 for
        the class that it chose. None where the source has no predictions.
    models : tuple of str
        Names of the models.

    Examples
    --------
    >>> from hocal.datasets import load_judges
    >>> load_judges("lesion")  # doctest: +SKIP
    JudgedItems(500 items, 7 classes, 2980 labels, 6 people, 4 models)
    """

    items: NDArray[np.str_]
    annotator: NDArray[np.str_]
    item: IntArray
    label: IntArray
    probabilities: Array | None
    models: tuple[str, ...]

    def __repr__(self) -> str:
        models = f"{len(self.models)} model" + "s" * (len(self.models) != 1)
        size = f"{len(self)} items, {len(self.classes)} classes, {len(self.label)} labels"
        people = f"{len(np.unique(self.annotator))} people"
        return f"{type(self).__name__}({size}, {people}, {models})"

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return one row per judgement, as a dataframe of "pandas", "polars" or "pyarrow".

        The columns are `annotator`, `item` and `label`, all by name, as `hocal.count_labels` and
        `hocal.check_annotations` take them.
        """
        classes = np.array(self.classes)
        columns = {"item": self.items[self.item], "label": classes[self.label]}
        return to_frame({"annotator": self.annotator} | columns, backend)


def read_table(path: Path, columns: Sequence[str]) -> dict[str, NDArray[np.str_]]:
    """Return every column of a packed CSV file by its name, after checking that some are there."""
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        table = dict(zip(header, map(np.array, zip(*rows, strict=True)), strict=True))
    except (EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError, ValueError) as error:
        rule = "must be a whole CSV file packed with gzip, with a header and rows of equal length"
        raise InputError(str(path), rule, value=f"an unreadable one: {error}") from error
    if missing := [name for name in columns if name not in table]:
        found = ", ".join(map(repr, table)) or "none"
        raise InputError(str(path), f"must have a column {missing[0]!r}", value=found)
    return table


def match(values: NDArray[np.str_], names: Sequence[str], column: str, path: Path) -> IntArray:
    """Return the place of each value among the names; a value that is not one is refused."""
    known = np.array(names)
    order = np.argsort(known)
    places = np.searchsorted(known[order], values).clip(max=len(known) - 1)
    found = order[places]
    if (unknown := known[found] != values).any():
        row = int(unknown.argmax())
        rule = f"must hold known names in the column {column!r}"
        raise InputError(str(path), rule, value=repr(str(values[row])), row=row)
    return np.asarray(found, dtype=np.int64)


def tally(item: IntArray, label: IntArray, n_items: int, n_classes: int) -> IntArray:
    """Return how often each item got each label, (n_items, n_classes)."""
    flat = np.bincount(item * n_classes + label, minlength=n_items * n_classes)
    return flat.reshape(n_items, n_classes).astype(np.int64)
