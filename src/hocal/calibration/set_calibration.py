"""What the labels of a fit say about sets, by parameters that have not seen them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hocal._base.errors import InputError
from hocal._base.typing import Array, Counts, Index
from hocal.calibration.by_item.fitting import FEWEST_ITEMS
from hocal.calibration.by_item.mixtures import ItemMixtures
from hocal.calibration.by_item.model import ItemModel
from hocal.calibration.inputs import GivenItems
from hocal.cells.statistics import item_blocks
from hocal.guarantees.certified_sets import SquaredErrors, squared_errors
from hocal.uncertainty.label_sets import LabelScores

__all__ = ["SetCalibration", "calibrate_sets", "check_set_calibration", "expected_error"]


class SetCalibration(NamedTuple):
    """Scores of labels and squared errors of means, of the items of a fit."""

    scores: LabelScores
    errors: SquaredErrors


def calibrate_sets(
    model: ItemModel, given: GivenItems, labels: Counts, where: Index, folds: Index
) -> SetCalibration:
    """Judge the items of each fold by the parameters that were learned without it."""
    scores = []
    errors = np.empty(len(given))
    expected = np.empty(len(given))
    for block in item_blocks(given.mean.shape):
        items = given.rows(block)
        mixtures = model.predict_without(folds[block], *items, where[block])
        means = mixtures.mean()
        scores.append(LabelScores.of(means, labels[block]))
        errors[block] = squared_errors(means, labels[block])
        expected[block] = expected_error(mixtures)
    weights = np.sum([each.weights for each in scores], axis=0)
    return SetCalibration(LabelScores(weights, len(given)), SquaredErrors.of(errors, expected))


def check_set_calibration(
    sets: SetCalibration | None, own: Counts | None, method: str
) -> SetCalibration:
    """Return what sets rest on, if items were fitted and come without labels of their own."""
    if own is not None:
        rule = 'must be left out for kind="labels" and shape="certified"'
        raise InputError("counts", rule, remedy="Sets were judged on items without labels.")
    if sets is None:
        raise InputError(
            "method",
            f'must be "items", fitted on {FEWEST_ITEMS} items or more, for such sets',
            value=repr(method),
            remedy="Or keep labelled items aside and pass their mixtures and counts as "
            "`calibration` to hocal.predict_set or hocal.guarantees.certified_set.",
        )
    return sets


def expected_error(mixtures: ItemMixtures) -> Array:
    """Return E||p - mean||^2 of each mixture, its epistemic Brier uncertainty."""
    predictive = 1 - (mixtures.mean() ** 2).sum(axis=1)
    return np.asarray(np.maximum(predictive - mixtures.aleatoric("brier"), 0))
