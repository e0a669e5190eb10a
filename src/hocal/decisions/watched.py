"""Which means a monitor watches, how much each counts, and what it is called."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hocal._base.typing import Array, IntArray, Mask

__all__ = ["KINDS", "Watched", "WatchedRow"]

KINDS = ("disagreement", "mean")
DIRECTIONS = ("higher", "lower")
# Of the weights: a change is seldom confined to a cell, and cells have few items to show it.
ALL_SHARE = 0.7
ALL_ITEMS = "all items"
TOP_CLASS = "top class"


class WatchedRow(NamedTuple):
    """One mean that is watched."""

    kind: str  #: "disagreement" or "mean"
    cell: int | None  #: None for all items
    label: int | str | None  #: number of a class, "top class", or None for disagreement


class Watched(NamedTuple):
    """All means that are watched, in the order of `Reference.means`."""

    n_classes: int
    n_cells: int

    @property
    def n_whole(self) -> int:
        """Rows about all items: disagreement, the top class, and each class."""
        return 2 + self.n_classes

    @property
    def n_rows(self) -> int:
        """Rows in all."""
        return self.n_whole + 2 * self.n_cells

    def row(self, number: int) -> WatchedRow:
        """Say what a row is about."""
        if number >= self.n_whole:
            cell, of_top = divmod(number - self.n_whole, 2)
            return WatchedRow(KINDS[of_top], cell, TOP_CLASS if of_top else None)
        label = None if number == 0 else TOP_CLASS if number == 1 else number - 2
        return WatchedRow(KINDS[number > 0], None, label)

    def of_kind(self, kind: str) -> Mask:
        """Tell which rows are about disagreement, or about the mean."""
        mean = np.ones(self.n_rows, dtype=np.bool_)
        mean[0] = False
        mean[self.n_whole :: 2] = False
        return mean if kind == "mean" else ~mean

    def log_weights(self, n_values: IntArray) -> Array:
        """Return the logarithms of the weights of rows in the evidence of their kind.

        Most is for all items, the rest for cells by their calibration items. Of what all items get
        in the evidence about the mean, half is for the top class and half for classes in equal
        parts.
        """
        weights = np.empty(self.n_rows)
        weights[0] = ALL_SHARE
        weights[1] = ALL_SHARE / 2
        weights[2 : self.n_whole] = ALL_SHARE / 2 / self.n_classes
        for start in (self.n_whole, self.n_whole + 1):
            own = n_values[start::2]
            weights[start::2] = (1 - ALL_SHARE) * own / max(own.sum(), 1)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(weights))
