"""What is predicted for test items: means and uncertainty of all, mixtures of those drawn from."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from hocal._base.typing import Array, Index, IntArray
from hocal.calibration.by_cell.fitting import rank_items
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.uncertainty.decomposition import decompose
from hocal.uncertainty.mixtures import Mixtures

__all__ = ["DrawnItems", "PredictedItems", "n_listed"]

MAX_NUMBERS = 20_000_000  # in the atoms of items that a display lists, 160 MB
ATOMS = 400  # at most, of an item


class DrawnItems(NamedTuple):
    """Some items, to draw labels for."""

    mixtures: Mixtures  #: one per item
    ranking: Index | None  #: (n_items, n_classes) class of each column; None for class order

    def draw(self, places: Index, totals: IntArray, generator: np.random.Generator) -> IntArray:
        """Draw so many labels for the items in some places, in class order."""
        drawn = self.mixtures[places].draw(totals, random_state=generator)
        if self.ranking is None:
            return drawn
        counts = np.empty_like(drawn)
        np.put_along_axis(counts, self.ranking[places], drawn, axis=1)
        return counts


class PredictedItems(NamedTuple):
    """What is predicted for test items, in class order."""

    means: Array  #: (n_items, n_classes)
    aleatoric: Array  #: (n_items,)
    choose: Callable[[Index], DrawnItems]  #: gives the mixtures of some items
    n_drawable: int  #: items whose mixtures fit in memory together

    @classmethod
    def of_mixtures(cls, mixtures: Mixtures, entropy: str) -> PredictedItems:
        """Take mixtures of any origin, one per item."""
        aleatoric = decompose(mixtures, entropy).aleatoric
        return cls(
            mixtures.mean(), aleatoric, lambda rows: DrawnItems(mixtures[rows], None), len(mixtures)
        )

    @classmethod
    def of_calibrator(
        cls, calibrator: SnapshotCalibrator, given: Any, cells: Index, entropy: str
    ) -> PredictedItems:
        """Take each item's own mixture where there is one, else that of its cell."""
        own_cells = cells if calibrator.partition_.takes_cells else None
        means = calibrator.predict_proba(given, cells=own_cells)
        if calibrator.item_model_ is not None:
            return cls._of_items(calibrator, given, own_cells, means, entropy)
        mixtures = calibrator.cell_mixtures_
        aleatoric = decompose(mixtures, entropy).aleatoric[cells]
        p, _ = calibrator.locate(given, cells=own_cells)

        def choose(rows: Index) -> DrawnItems:
            where = cells[rows]
            by_class = calibrator.method == "empirical"
            ranking = rank_items(p[rows], where, calibrator.class_orders_)
            return DrawnItems(mixtures[where], None if by_class else ranking)

        return cls(means, aleatoric, choose, len(cells))

    @classmethod
    def _of_items(
        cls, calibrator: Any, given: Any, own_cells: Index | None, means: Array, entropy: str
    ) -> PredictedItems:
        plain = copy(calibrator).set_params(panel_size=None)  # labels of all people are compared
        array = np.asarray(given)

        def choose(rows: Index) -> DrawnItems:
            where = None if own_cells is None else own_cells[rows]
            return DrawnItems(plain.predict_mixture(array[rows], cells=where), None)

        aleatoric = plain.decompose(array, entropy, cells=own_cells).aleatoric
        return cls(means, aleatoric, choose, n_listed(means.shape[1]))


def n_listed(n_classes: int) -> int:
    """Return how many items' mixtures are listed at once."""
    return max(MAX_NUMBERS // (ATOMS * n_classes), 1)
