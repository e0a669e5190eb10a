"""Level sets: items in order of what was predicted for them, cut into equally filled cells."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hocal._base.typing import Array, Counts, Index
from hocal.cells.protocol import CellLayout
from hocal.cells.statistics import CellStatistics

__all__ = ["QUANTITIES", "LevelSets", "level_edges", "level_sets"]

QUANTITIES = ("aleatoric", "epistemic")  # by which levels are cut
N_LEVELS = 10  # tenths of the items: "the most ambiguous tenth"
FEWEST_ITEMS = 50  # of a level: with fewer, intervals say next to nothing


class LevelSets(NamedTuple):
    """Cells by predicted uncertainty, and the labels of the calibration items in them."""

    edges: Array  #: (n_levels - 1,) in nats, rising
    statistics: CellStatistics

    def assign(self, values: Array) -> Index:
        """Return the level of each item from its predicted uncertainty."""
        return np.asarray(np.searchsorted(self.edges, values, side="right"), dtype=np.intp)

    def names(self, quantity: str) -> tuple[str, ...]:
        """Say in words which items each level holds."""
        ends = [f"{edge:.3g}" for edge in self.edges]
        if not ends:
            return (f"any {quantity} uncertainty",)
        between = [f"{low} to {high}" for low, high in pairwise(ends)]
        return tuple(
            f"predicted {quantity} {extent}"
            for extent in (f"below {ends[0]}", *between, f"from {ends[-1]}")
        )


def level_edges(values: Array) -> Array:
    """Return quantiles that cut values into levels of equal size, each once."""
    n_levels = int(np.clip(len(values) // FEWEST_ITEMS, 1, N_LEVELS))
    shares = np.arange(1, n_levels) / n_levels
    return np.unique(np.quantile(values, shares))


def level_sets(values: Array, probabilities: Array, counts: Counts) -> LevelSets:
    """Cut items into levels of equal size by values that their own labels had no part in.

    `probabilities` order the classes of each item, and must not know its labels either.
    """
    edges = level_edges(values)
    levels = np.searchsorted(edges, values, side="right")
    layout = CellLayout.grid(1, len(edges) + 1)
    statistics = CellStatistics.from_checked(probabilities, counts, levels, layout)
    return LevelSets(edges, statistics)
