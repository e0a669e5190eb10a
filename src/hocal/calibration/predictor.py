"""What a fitted calibrator says about items: by a model of items, or by their cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hocal._base.errors import InputError
from hocal._base.typing import Array, Counts, Index
from hocal.calibration.by_cell.prediction import CellMixtures
from hocal.calibration.by_item.decomposition import decompose_items
from hocal.calibration.by_item.mixtures import MANY_CLASSES_ATOMS, MAX_NUMBERS, ItemMixtures
from hocal.calibration.by_item.model import ItemModel, Items
from hocal.calibration.inputs import GivenItems
from hocal.calibration.reference import Expected
from hocal.calibration.seen_items import SeenItems, look_of
from hocal.uncertainty.decomposition import Decomposition, decompose
from hocal.uncertainty.entropy import Entropy
from hocal.uncertainty.mixtures import Mixtures

__all__ = ["Predictor"]

BLOCKS = 8  # of items that are predicted at once: enough for several threads
COMPARED_ATOMS = 60  # of an item in an average over many


class Predictor(NamedTuple):
    """Mixtures of cells, and a model of items where there is one.

    In all methods `where` are the cells of the items, and `own` their own labels, None for none.
    """

    cells: CellMixtures
    model: ItemModel | None
    seen: SeenItems
    cells_given: bool  #: whether cells came with the items

    def mixtures(self, given: GivenItems, where: Index, own: Counts | None) -> Mixtures:
        """Return the mixture of each item, in class order."""
        if self.model is not None:
            return _list_atoms(self.item_mixtures(given, where, own))
        mixtures = self.cells.of_items(given.mean, where)
        return mixtures if own is None else mixtures.condition(own)

    def means(self, given: GivenItems, where: Index, own: Counts | None) -> Array:
        """Return the mean of each item's mixture."""
        if self.model is not None:
            parts = [mixtures.mean() for mixtures in self._some_at_a_time(given, where, own)]
            return parts[0] if len(parts) == 1 else np.concatenate(parts)
        return self.cells.means_of_items(given.mean, where, own)

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
        options = {"kind": kind, "panel_size": panel_size}
        if self.model is not None:
            blocks = self._some_at_a_time(given, where, own)
            return _join([decompose_items(some, measure, **options) for some in blocks])
        if not measure.symmetric:
            in_order = self.cells.some_at_a_time(given.mean, where, own)
            return _join([decompose(some, measure, **options) for some in in_order])
        if own is None:
            return decompose(self.cells.mixtures[where], measure, **options)
        pair, posteriors = self.cells.posteriors(given.mean, where, own)
        return _join([decompose(some, measure, **options) for some in posteriors], pair)

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
            return self.cells.for_averages(given.mean, where, COMPARED_ATOMS)
        return _list_atoms(self.item_mixtures(given, where, None), COMPARED_ATOMS)

    def _some_at_a_time(
        self, given: GivenItems, where: Index, own: Counts | None
    ) -> Iterator[ItemMixtures]:
        """Yield mixtures of all items in their order: weights of a million take 400 MB.

        With their own labels all come at once, since items of the fit are grouped by their folds.
        """
        height = BLOCKS * Items(*given, where).block_height
        if own is not None or len(given) <= height:
            yield self.item_mixtures(given, where, own)
            return
        for start in range(0, len(given), height):
            rows = slice(start, start + height)
            yield self.item_mixtures(given.rows(rows), where[rows], None)

    def item_mixtures(self, given: GivenItems, where: Index, own: Counts | None) -> ItemMixtures:
        """Return mixtures of items; those of the fit, met with their labels, without their fold."""
        assert self.model is not None
        if own is None:
            return self.model.predict(given.members, given.features, where)
        own_cells = where if self.cells_given else None
        folds = self.seen.folds_of(look_of(given, own, own_cells))
        mixtures = self.model.predict_without(folds, given.members, given.features, where)
        return mixtures.condition(own)


def _list_atoms(items: ItemMixtures, n_atoms: int | None = None) -> Mixtures:
    """List atoms of items; where they are too many, speak of the items and not of the atoms."""
    try:
        return items.to_mixtures(n_atoms=n_atoms)
    except InputError as error:
        fitting = max(MAX_NUMBERS // ((n_atoms or MANY_CLASSES_ATOMS) * items.n_classes), 1)
        raise InputError(
            "probabilities",
            f"must be of items whose mixtures have at most {MAX_NUMBERS:,} numbers in all",
            value=error.value,
            remedy=f"Pass at most {fitting:,} items at a time.",
        ) from error


def _join(parts: Sequence[Decomposition], rows: Index | None = None) -> Decomposition:
    """Put the parts of items one after the other, and take some rows."""
    if len(parts) == 1 and rows is None:
        return parts[0]
    columns = [part.as_dict() for part in parts]
    joined = {name: np.concatenate([each[name] for each in columns]) for name in columns[0]}
    if rows is not None:
        joined = {name: values[rows] for name, values in joined.items()}
    return Decomposition(**joined, entropy=parts[0].entropy, kind=parts[0].kind)
