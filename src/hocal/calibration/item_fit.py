"""Fit mixtures of items, and judge each item by parameters that have not seen its labels."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

from hocal._base.fingerprints import balanced_folds
from hocal._base.typing import Array, Counts, Index
from hocal.calibration.by_cell.fitting import code_length, fit_deconvolved
from hocal.calibration.by_item.fitting import fit_items
from hocal.calibration.by_item.model import ItemModel, Items
from hocal.calibration.first_order.recalibration import CrossFitted, fit_recalibration
from hocal.calibration.inputs import GivenItems
from hocal.calibration.levels import QUANTITIES, LevelSets, level_sets
from hocal.calibration.seen_items import SeenItems, look_of
from hocal.calibration.set_calibration import SetCalibration, calibrate_sets
from hocal.cells.statistics import CellStatistics, Histogram, align_counts, sum_predictions

__all__ = ["N_FOLDS", "ItemFit", "fit_with_folds"]

N_FOLDS = 5  # of cross-fitting: each item is predicted from four fifths of the others
# Share of what labels cost by the ranks of predictions that recalibration must save before its
# ranks are used: models that take classes for one another waste more, others less than 3%.
MISTAKEN = 0.05
RANKED_ENTRIES = 10_000_000  # items x classes from which a fifth of the items decides this, 80 MB


class ItemFit(NamedTuple):
    """A model of items, and what the items of the fit say about it."""

    model: ItemModel
    folds: Index  #: (n_items,)
    seen: SeenItems  #: which items these were
    sets: SetCalibration  #: how large sets of labels and of distributions must be
    levels: dict[str, LevelSets]  #: by the uncertainty that others' labels predict


def fit_with_folds(
    given: GivenItems,
    labels: Counts,
    where: Index,
    whole: CellStatistics,
    levels: Array,
    *,
    cells_given: bool,
) -> ItemFit:
    """Fit mixtures of items, anchored to the levels of their cells, which have the statistics.

    Cells that came with the items are among what tells items apart.
    """
    own_cells = where if cells_given else None
    folds = balanced_folds(look_of(given, labels, own_cells), N_FOLDS)
    few = sparse.csr_array(labels)  # dense ones of many classes would be as large as predictions
    first = fit_recalibration(given.members, few, given.features, folds)
    items = Items(*given, where)
    if _mistakes_classes(given, few, folds, first):
        cells = _Ranked.of(first.out_of_fold(*given, folds), few, where).new_levels(folds, whole)
    else:
        cells = _Ranked.of(given.mean, few, where).levels(folds, whole, levels)
    model = fit_items(items, labels, first, cells, folds)
    by_uncertainty = {
        quantity: level_sets(values, given.mean, labels)
        for quantity, values in zip(QUANTITIES, model.out_of_fold, strict=True)
    }
    return ItemFit(
        model,
        folds,
        SeenItems.of(given, labels, folds, own_cells),
        calibrate_sets(model, given, labels, where, folds),
        by_uncertainty,
    )


def _mistakes_classes(
    given: GivenItems, labels: sparse.csr_array, folds: Index, first: CrossFitted
) -> bool:
    """Say whether labels cost clearly less by the ranks of recalibrated predictions.

    Where a model takes classes for one another, the ranks of its own predictions mean something
    else in each cell.
    """
    many = labels.shape[0] * labels.shape[1] > RANKED_ENTRIES
    rows = np.flatnonzero(folds == 0) if many else np.arange(len(folds))
    some = given.rows(rows)
    recalibrated = first.out_of_fold(*some, folds[rows])
    before, after = (_rank_cost(p, labels[rows]) for p in (some.mean, recalibrated))
    return after < (1 - MISTAKEN) * before


def _rank_cost(predictions: Array, labels: sparse.csr_array) -> float:
    """Return the code length of labels by the rank of their class, in nats."""
    sums = np.asarray(align_counts(predictions, labels).sum(axis=0), dtype=np.float64)
    return float(code_length(sums[None])[0])


class _Ranked(NamedTuple):
    """The labels of items, known by class and by the rank of the class."""

    predictions: Array  #: (n_items, n_classes) that give the ranks
    labels: sparse.csr_array  #: (n_items, n_classes) by class
    aligned: Counts  #: (n_items, n_classes) by rank
    cells: Index  #: (n_items,)

    @classmethod
    def of(cls, predictions: Array, labels: sparse.csr_array, cells: Index) -> _Ranked:
        """Put labels in the order of predictions."""
        return cls(predictions, labels, align_counts(predictions, labels), cells)

    def new_levels(self, folds: Index, whole: CellStatistics) -> Array:
        """Return what `levels` does, where statistics have other ranks than these."""
        aligned = Histogram.of(self.cells, self.aligned)
        predicted = sum_predictions(self.predictions, self.cells, whole.n_cells)
        ranked = replace(whole, aligned=aligned, predicted=predicted)
        return self.levels(folds, ranked, fit_deconvolved(ranked).levels())

    def levels(self, folds: Index, whole: CellStatistics, known: Array) -> Array:
        """Return the level of each cell, known from all items, then without each fold of them."""
        levels = [known]
        for fold in range(N_FOLDS):
            own = np.flatnonzero(folds == fold)
            others = np.flatnonzero(folds != fold)
            cells = self.cells[others]
            mine = sum_predictions(self.predictions[own], self.cells[own], whole.n_cells)
            without = CellStatistics(
                Histogram.of(cells, self.labels[others]),
                Histogram.of(cells, self.aligned[others]),
                whole.predicted - mine,
                whole.layout,
            )
            levels.append(fit_deconvolved(without).levels())
        return np.stack(levels)
