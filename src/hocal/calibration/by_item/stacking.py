"""Bring two answers together: mixtures learnt from labels, and the regression of disagreement.

The likelihood of labels and the regression of how often they differ err apart, so that a mean of
both explains more of the differences between items than either.  How far to go from the one to the
other is chosen by the squared error on items that had no part in either.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hocal._base.typing import Array, Index
from hocal.calibration.by_item.anchors import Anchored
from hocal.calibration.by_item.columns import Floats
from hocal.calibration.by_item.weights import shift_logits, solve_tilts

__all__ = ["Stacking", "stack"]

HALF_WAY = 50.0  # items of a cell that move its expected disagreement half way to its level
EVEN = 0.5  # of the way, before anything is known
# Pull towards it: how often labels of an item differ has a variance of about .1, and the way is
# believed to be within a quarter of the middle, .1 / .25^2.
PULL = 1.6


class Stacking(NamedTuple):
    """How answers are brought together, from all items and then without each fold."""

    offsets: Array  #: (1 + n_folds, n_cells) added to the disagreement that is expected in cells
    ways: Array  #: (1 + n_folds,) from the mixture's uncertainty to it, between 0 and 1


def stack(
    items: Anchored, shifts: Array, observed: Array, weights: Array, folds: Index
) -> Stacking:
    """Choose offsets and ways.

    Parameters
    ----------
    items : Anchored
        Of the fit.
    shifts : array of shape (1 + n_folds, n_cells, 2)
        Of their cells, from all items and without each fold.
    observed, weights : array of shape (n_items,)
        How often the labels of an item differ, and the weight of this number.
    folds : array of shape (n_items,)
        Fold of each item.
    """
    offsets = np.empty(shifts.shape[:2])
    gains = np.zeros(len(shifts) - 1)
    squares = np.zeros(len(shifts) - 1)
    for place, shift in enumerate(shifts):
        brier = _brier(items, shift)
        away = items.disagreement - brier
        seen = folds != place - 1
        offsets[place] = _offsets(items.cells[seen], away[seen], len(shift))
        fresh = np.flatnonzero(~seen)
        if place:
            gap = away[fresh] + offsets[place][items.cells[fresh]]
            gains[place - 1] = weights[fresh] @ ((observed[fresh] - brier[fresh]) * gap)
            squares[place - 1] = weights[fresh] @ gap**2
    return Stacking(offsets, _ways(gains, squares))


def _brier(items: Anchored, shift: Array) -> Floats:
    """Return the uncertainty of anchored mixtures."""
    shapes = items.shapes
    logits = shift_logits(items.logits, shapes, shift[items.cells].T)
    start = np.zeros(len(items.cells))
    _, weights = solve_tilts(logits, shapes.outside, shapes.share, start)
    return np.asarray(np.einsum("ci,ci->i", weights, shapes.brier))


def _offsets(cells: Index, away: Floats, n_cells: int) -> Array:
    """Return what brings the expected disagreement of cells to their level, held back."""
    sizes = np.bincount(cells, minlength=n_cells)
    return np.asarray(-np.bincount(cells, away, minlength=n_cells) / (sizes + HALF_WAY))


def _ways(gains: Array, squares: Array) -> Array:
    """Return the least squares of all folds, then without each."""
    gain = np.append(gains.sum(), gains.sum() - gains)
    square = np.append(squares.sum(), squares.sum() - squares)
    return np.asarray(np.clip((gain + PULL * EVEN) / (square + PULL), 0, 1))
