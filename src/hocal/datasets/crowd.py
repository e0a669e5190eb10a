"""Judgements of named crowd workers, one per row."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hocal._base.frames import to_frame
from hocal._base.typing import IntArray
from hocal._base.validation import check_choice
from hocal.datasets.fetching import Folder, obtain
from hocal.datasets.sources import SOURCES, Source

__all__ = ["CrowdLabels", "load_crowd"]

CLASSES = {
    "CF_amt": ("negative", "neutral", "positive", "not related to weather", "cannot tell"),
    "SP_amt": ("negative", "positive"),
}


@dataclass(frozen=True, eq=False, repr=False)
class CrowdLabels:
    """A table of judgements: one worker, one item and one label per row.

    Attributes
    ----------
    worker : ndarray of shape (n_judgements,), str
        Who judged.
    item : ndarray of shape (n_judgements,), int64
        What was judged.
    label : ndarray of shape (n_judgements,), int64
        The worker's choice, an index into `classes`.
    gold : ndarray of shape (n_judgements,), int64
        The label that the makers of the data hold for right, the same in all rows of an item.
    seconds : ndarray of shape (n_judgements,), int64
        How long the judgement took.
    classes : tuple of str
        Names of the classes.
    source : Source
        Home page, licence and citation.
    """

    worker: NDArray[np.str_]
    item: IntArray
    label: IntArray
    gold: IntArray
    seconds: IntArray
    classes: tuple[str, ...]
    source: Source

    def __len__(self) -> int:
        return len(self.label)

    def __repr__(self) -> str:
        n_workers = len(np.unique(self.worker))
        n_items = len(np.unique(self.item))
        judged = f"{len(self)} judgements, {n_items} items"
        return f"CrowdLabels({judged}, {n_workers} workers, {len(self.classes)} classes)"

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return the five columns as a dataframe of "pandas", "polars" or "pyarrow"."""
        names = ("worker", "item", "label", "gold", "seconds")
        return to_frame({name: getattr(self, name) for name in names}, backend)


def load_crowd(name: str = "CF_amt", *, data_home: Folder | None = None) -> CrowdLabels:
    """Load judgements of crowd workers whose identities are kept.

    Parameters
    ----------
    name : {"CF_amt", "SP_amt"}
        Sentiment of 300 tweets about the weather, 20 to 25 judgements each by 110 workers, five
        classes; or of 500 sentences from film reviews, 20 judgements each by 143 workers, two
        classes.
    data_home : path, optional
        The only folder to read from and to download to; see `fetch` for the default.

    Returns
    -------
    CrowdLabels
        In the order of the file, which is downloaded at first use (0.2 or 0.3 MB).

    Notes
    -----
    Five judgements of CF_amt are by a worker who had judged the same item before; they are kept.

    Examples
    --------
    >>> from hocal.datasets import load_crowd
    >>> load_crowd("SP_amt")  # doctest: +SKIP
    CrowdLabels(10000 judgements, 500 items, 143 workers, 2 classes)
    """
    check_choice(name, "name", tuple(CLASSES))
    source = SOURCES["crowd"]
    table = next(file for file in source.files if file.path == f"crowd/{name}.csv")
    with open(obtain(table, data_home=data_home), encoding="utf-8", newline="") as file:
        worker, *numbers = zip(*csv.reader(file), strict=True)
    item, label, gold, seconds = (np.array(column, dtype=np.int64) for column in numbers)
    return CrowdLabels(np.array(worker), item, label, gold, seconds, CLASSES[name], source)
