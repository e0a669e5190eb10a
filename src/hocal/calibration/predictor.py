"""What a fitted calibrator says about items: by a model of items, or by their cells."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hocal._base.typing import Array, Counts, Index
from hocal.calibration.by_cell.prediction import CellMixtures
from hocal.calibration.by_item.decomposition import decompose_items
from hocal.calibration.by_item.mixtures import ItemMixtures
from hocal.calibration.by_item.model import ItemModel
from hocal.calibration.inputs import GivenItems
from hocal.calibration.reference import Expected
from hocal.calibration.seen_items import SeenItems
from hocal.uncertainty.decomposition import Decomposition, decompose
from hocal.uncertainty.entropy import Custom, Entropy
from hocal.uncertainty.mixtures import Mixtures

__all__ = ["Predictor"]

COMPARED_ATOMS = 60  # of an item in an average over many


class Predictor(NamedTuple):
    """Mixtures of cells, and a model of items where there is one.

    In all methods `where` are the cells of the items, and `own` their own labels, None for none.
    """

    cells: CellMixtures
    model: ItemModel | None
    seen: SeenItems

    def mixtures(self, given: GivenItems, where: Index, own: Counts | None) -> Mixtures:
        """Return the mixture of each item, in class order."""
        if self.model is not None:
            return self.item_mixtures(given, where, own).to_mixtures()
        mixtures = self.cells.of_items(given.mean, where)
        return mixtures if own is None else mixtures.condition(own)

    def means(self, given: GivenItems, where: Index, own: Counts | None) -> Array:
        """Return the mean of each item's mixture."""
        if self.model is not None:
            return self.item_mixtures(given, where, own).mean()
        if own is not None:
            return self.cells.of_items(given.mean, where).condition(own).mean()
        return self.cells.means_of_items(given.mean, where)

    def decompose(
        self,
        given: GivenItems,
        where: Index,
        own: Counts | None,
        measure: Entropy,
        *,
        kind: Any,
        panel_size: int | None,
    ) -> Decomposition:
        """Split the uncertainty of each item."""
        if self.model is not None:
            mixtures = self.item_mixtures(given, where, own)
            return decompose_items(mixtures, measure, kind=kind, panel_size=panel_size)
        if isinstance(measure, Custom) or own is not None:
            # It may treat classes differently, so it needs them in their order.
            cell_mixtures = self.mixtures(given, where, own)
        else:
            cell_mixtures = self.cells.mixtures[where]
        return decompose(cell_mixtures, measure, kind=kind, panel_size=panel_size)

    def expect(self, given: GivenItems, where: Index, folds: Index | None) -> Expected:
        """Return what labels should be like, from parameters that have not seen a fold."""
        if self.model is None:
            disagreement = decompose(self.cells.mixtures, "brier").aleatoric[where]
            return Expected(where, self.cells.means_of_items(given.mean, where), disagreement)
        nowhere = np.full(len(given), -1, dtype=np.intp)
        without = nowhere if folds is None else folds
        mixtures = self.model.predict_without(without, given.members, given.features, where)
        return Expected(where, mixtures.mean(), mixtures.aleatoric("brier"))

    def compared(self, given: GivenItems, where: Index) -> Mixtures:
        """Return mixtures for averages over cells, where an item needs few atoms."""
        if self.model is None:
            return self.cells.of_items(given.mean, where)
        return self.item_mixtures(given, where, None).to_mixtures(n_atoms=COMPARED_ATOMS)

    def item_mixtures(self, given: GivenItems, where: Index, own: Counts | None) -> ItemMixtures:
        """Return mixtures of items; those of the fit, met with their labels, without their fold."""
        assert self.model is not None
        if own is None:
            return self.model.predict(given.members, given.features, where)
        folds = self.seen.folds_of(given.fingerprints(own))
        mixtures = self.model.predict_without(folds, given.members, given.features, where)
        return mixtures.condition(own)
