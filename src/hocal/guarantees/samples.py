"""Samples of a cell's items, and the limits that are computed from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hocal._base.typing import Array, Index, IntArray, Mask
from hocal.cells.statistics import Histogram
from hocal.guarantees.orders import Order
from hocal.uncertainty.distinct_counts import as_dense

__all__ = [
    "ENTROPIES",
    "QUANTITIES",
    "TARGETS",
    "Limits",
    "Sample",
    "Target",
    "rows_by_cell",
]

QUANTITIES = ("predictive", "aleatoric", "epistemic")
ENTROPIES = ("shannon", "brier")


class Target(NamedTuple):
    """What an interval is about."""

    quantity: str  #: one of QUANTITIES
    entropy: str  #: one of ENTROPIES


TARGETS = tuple(Target(quantity, entropy) for entropy in ENTROPIES for quantity in QUANTITIES)


class Limits(NamedTuple):
    """Ends of an interval, infinite where nothing is known."""

    lower: float
    upper: float

    def intersect(self, other: Limits) -> Limits:
        """Return what lies inside both."""
        return Limits(max(self.lower, other.lower), min(self.upper, other.upper))

    def inside(self, largest: float) -> Limits:
        """Cut to [0, largest]; ends that cross prove that a limit failed, so nothing is claimed."""
        lower = max(self.lower, 0.0)
        upper = min(self.upper, largest)
        return Limits(lower, upper) if lower <= upper else Limits(0.0, largest)


@dataclass(frozen=True, eq=False)
class Sample:
    """Distinct count vectors of some items and how often each occurred."""

    counts: IntArray  #: (n_rows, n_classes)
    repeats: Array  #: (n_rows,)

    @classmethod
    def of(cls, histogram: Histogram, rows: Mask) -> Sample:
        """Return the items of some rows of a histogram."""
        return cls.of_rows(histogram, np.flatnonzero(rows))

    @classmethod
    def of_rows(cls, histogram: Histogram, rows: Index) -> Sample:
        """Do as `of` does, for the numbers of rows."""
        repeats = histogram.multiplicity[rows].astype(np.float64)
        return cls(as_dense(histogram.counts[rows]), repeats)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.repeats.sum())

    @property
    def n_classes(self) -> int:
        """Number of label classes."""
        return int(self.counts.shape[1])

    @cached_property
    def totals(self) -> IntArray:
        """Number of labels of each row."""
        return np.asarray(self.counts.sum(axis=1))

    @cached_property
    def shares(self) -> Array:
        """Label shares of each row."""
        return np.asarray(self.counts / self.totals[:, None])

    @property
    def disagreements(self) -> Array:
        """How often two labels of an item differ, for each row; all need two labels or more."""
        inside = 1 - (self.shares**2).sum(axis=1)
        return np.asarray(self.totals / (self.totals - 1) * inside)

    @cached_property
    def order(self) -> Order:
        """In which orders the items are looked at, where that matters."""
        return Order.of(self.counts, self.repeats)

    @property
    def mean(self) -> Array:
        """Mean label distribution."""
        return np.asarray(self.repeats @ self.shares / self.repeats.sum())

    def at_least(self, k: int) -> Sample:
        """Return the items with k labels or more."""
        kept = self.totals >= k
        if kept.all():
            return self
        return Sample(self.counts[kept], self.repeats[kept])

    def every(self, n_items: int) -> Sample:
        """Return about n_items items, evenly spaced in the histogram, where any sample will do."""
        if self.n_items <= n_items:
            return self
        places = (np.arange(n_items) + 0.5) * self.n_items / n_items
        hits = np.searchsorted(np.cumsum(self.repeats), places)
        rows, repeats = np.unique(hits, return_counts=True)
        return Sample(self.counts[rows], repeats.astype(np.float64))


def rows_by_cell(histogram: Histogram, n_cells: int) -> list[Index]:
    """Return the rows of a histogram that belong to each cell, found in one pass."""
    order = np.argsort(histogram.cells, kind="stable")
    ends = np.cumsum(np.bincount(histogram.cells, minlength=n_cells))
    return np.split(order, ends[:-1])
