"""Mixtures of items from those of their cells, which may order classes by rank."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hocal._base.typing import Array, Index
from hocal.calibration.by_cell.class_order import in_class_order
from hocal.calibration.by_cell.fitting import rank_items
from hocal.cells.statistics import item_blocks
from hocal.uncertainty.mixtures import Mixtures

__all__ = ["CellMixtures"]


class CellMixtures(NamedTuple):
    """One mixture per cell, and the order its classes are in."""

    mixtures: Mixtures  #: one per cell
    class_orders: Index | None  #: (n_cells, n_classes) for `rank_items`; None for theirs

    def of_items(self, p: Array, where: Index) -> Mixtures:
        """Return the mixture of each item's cell, in class order."""
        mixtures = self.mixtures[where]
        if self.class_orders is None:
            return mixtures
        return in_class_order(mixtures, rank_items(p, where, self.class_orders))

    def means_of_items(self, p: Array, where: Index) -> Array:
        """Return the mean of each item's mixture, without a mixture per item."""
        means = self.mixtures.mean()
        if self.class_orders is None:
            return means[where]
        result = np.empty_like(p)
        for block in item_blocks(p):
            ranking = rank_items(p[block], where[block], self.class_orders)
            np.put_along_axis(result[block], ranking, means[where[block]], axis=1)
        return result
