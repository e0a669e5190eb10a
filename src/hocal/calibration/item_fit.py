"""Fit mixtures of items, and judge each item by parameters that have not seen its labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from hocal._base.fingerprints import balanced_folds
from hocal._base.typing import Array, Counts, Index
from hocal.calibration.by_cell.fitting import cell_levels, deconvolved_levels
from hocal.calibration.by_item.fitting import fit_items
from hocal.calibration.by_item.model import ItemModel
from hocal.calibration.inputs import GivenItems
from hocal.calibration.levels import QUANTITIES, LevelSets, level_sets
from hocal.calibration.seen_items import SeenItems
from hocal.calibration.set_calibration import SetCalibration, calibrate_sets
from hocal.cells.statistics import CellStatistics, Histogram, align_counts, sum_predictions
from hocal.uncertainty.mixtures import Mixtures

__all__ = ["N_FOLDS", "ItemFit", "fit_with_folds"]

N_FOLDS = 5  # of cross-fitting: each item is predicted from four fifths of the others


class ItemFit(NamedTuple):
    """A model of items, and what the items of the fit say about it."""

    model: ItemModel
    folds: Index  #: (n_items,)
    seen: SeenItems  #: which items these were
    sets: SetCalibration  #: how large sets of labels and of distributions must be
    levels: dict[str, LevelSets]  #: by the uncertainty that others' labels predict


def fit_with_folds(
    given: GivenItems, labels: Counts, where: Index, whole: CellStatistics, anchors: Mixtures
) -> ItemFit:
    """Fit mixtures of items, with those of their cells, fitted to the statistics, as anchors."""
    folds = balanced_folds(given.fingerprints(labels), N_FOLDS)
    cells = _levels_by_fold(given, labels, where, folds, whole, anchors)
    model = fit_items(given.members, labels, given.features, where, cells, folds)
    levels = {
        quantity: level_sets(values, given.mean, labels)
        for quantity, values in zip(QUANTITIES, model.out_of_fold, strict=True)
    }
    return ItemFit(
        model,
        folds,
        SeenItems.of(given, labels, folds),
        calibrate_sets(model, given, labels, where, folds),
        levels,
    )


def _levels_by_fold(
    given: GivenItems,
    labels: Counts,
    where: Index,
    folds: Index,
    whole: CellStatistics,
    anchors: Mixtures,
) -> Array:
    """Return the level of each cell from all items, then without each fold of them."""
    few = sparse.csr_array(labels)  # dense ones of many classes would be as large as predictions
    aligned = align_counts(given.mean, few)
    levels = [cell_levels(anchors)]
    for fold in range(N_FOLDS):
        own = np.flatnonzero(folds == fold)
        others = np.flatnonzero(folds != fold)
        cells = where[others]
        mine = sum_predictions(given.rows(own).mean, where[own], whole.n_cells)
        without = CellStatistics(
            Histogram.of(cells, few[others]),
            Histogram.of(cells, aligned[others]),
            whole.predicted - mine,
            whole.layout,
        )
        levels.append(deconvolved_levels(without))
    return np.stack(levels)
