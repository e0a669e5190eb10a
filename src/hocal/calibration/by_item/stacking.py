"""Bring two answers together: mixtures learnt from labels, and the regression of disagreement.

The likelihood of labels and the regression of how often they differ err apart, so that a mean of
both explains more of the differences between items than either.  How far to go from the one to the
other is chosen by the squared error on items that had no part in either.
"""

from __future__ import annotations

import numpy as np

from hocal._base.typing import Array, Index
from hocal.calibration.by_item.columns import Floats

__all__ = ["choose_ways"]

EVEN = 0.5  # of the way, before anything is known
# Pull towards it: how often labels of an item differ has a variance of about .1, and the way is
# believed to be within a quarter of the middle, .1 / .25^2.
PULL = 1.6


def choose_ways(
    mixture: Floats, regression: Floats, observed: Array, weights: Array, folds: Index
) -> Array:
    """Choose how far to go from the mixture's uncertainty to the regression's, from 0 to 1.

    Parameters
    ----------
    mixture, regression : array of shape (n_items,)
        Disagreement that is expected of an item, each by parameters without its fold.
    observed, weights : array of shape (n_items,)
        How often the labels of an item differ, and the weight of this number.
    folds : array of shape (n_items,)
        Fold of each item.

    Returns
    -------
    array of shape (1 + n_folds,)
        The least squares of all items, then without each fold.
    """
    n_folds = int(folds.max()) + 1
    gap = regression - mixture
    gains = np.bincount(folds, weights * (observed - mixture) * gap, n_folds)
    squares = np.bincount(folds, weights * gap**2, n_folds)
    gain = np.append(gains.sum(), gains.sum() - gains)
    square = np.append(squares.sum(), squares.sum() - squares)
    return np.asarray(np.clip((gain + PULL * EVEN) / (square + PULL), 0, 1))
