"""Anchor the items of a cell: on average they must be as uncertain as the cell is known to be.

The labels of a whole cell tell its mean aleatoric uncertainty better than any item's own few.  The
weights of a cell's items are shifted along the Brier and the Shannon uncertainty of the components,
by two numbers, so that the means of the items' uncertainties meet the cell's: of all weights with
these means they are the nearest.  How far is a matter of the cell's number of items.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hocal._base.typing import Array, Index, Mask
from hocal.calibration.by_item.columns import Floats
from hocal.calibration.by_item.weights import (
    N_SHIFTS,
    Shapes,
    change_along,
    shift_logits,
    solve_tilts,
)

__all__ = ["Anchored", "anchor"]

STEPS = 10  # of Levenberg and Marquardt: the last moves uncertainties by less than a thousandth
# Variance of an item's Brier and Shannon uncertainty around its cell's: what one item tells.
NOISE = np.array([0.1, 0.3])
# Error of levels that does not fall with the number of items: few labels leave Shannon open.
DOUBT = np.array([0.003, 0.005])
# Of the shift that all cells share: tens of units, since components that are alike in Brier differ
# little in Shannon uncertainty. With less, levels are met more closely, and items of CIFAR-10H with
# two labels can no longer be told apart.
SHARED_PRECISION = 7e-4
CELL_PRECISION = 0.1  # of a cell's own shift: some 50 items move its level half way
FIRST_DAMPING = 0.1  # of a step, relative to the curvature


class Anchored(NamedTuple):
    """Items whose weights are to be shifted."""

    logits: Floats  #: (n_components, n_items) of the weights before any shift
    shapes: Shapes
    cells: Index  #: (n_items,)
    disagreement: Floats  #: (n_items,) expected of two labels

    def take(self, rows: Index) -> Anchored:
        """Return some of the items."""
        logits = self.logits[:, rows]
        return Anchored(logits, self.shapes.take(rows), self.cells[rows], self.disagreement[rows])


class _State(NamedTuple):
    """Shifts of cells, and where they lead."""

    shifts: Array  #: (n_cells, 2)
    gaps: Array  #: (n_cells, 2) what the cells' means lack
    slopes: Array  #: (n_cells, 2, 2) of the means by the shifts
    loss: Array  #: (n_cells,)

    def keep(self, better: Mask, other: _State) -> _State:
        """Take over the cells that are better in another state."""
        parts = zip(self, other, strict=True)
        shape = (-1, 1, 1)
        return _State(*(np.where(better.reshape(shape[: a.ndim]), b, a) for a, b in parts))


def anchor(items: Anchored, levels: Array) -> Array:
    """Return the shifts of all cells, (n_cells, 2).

    Parameters
    ----------
    items : Anchored
        Of the fit.
    levels : array of shape (n_cells, 2)
        Brier and Shannon uncertainty of each cell, NaN where nothing is known.
    """
    known = np.flatnonzero(np.isfinite(levels[items.cells]).all(axis=1))
    if not len(known):
        return np.zeros((len(levels), N_SHIFTS))
    items = items.take(known)
    together = items._replace(cells=np.zeros_like(items.cells))
    overall = levels[items.cells].mean(axis=0, keepdims=True)
    shared = _solve(together, overall, np.zeros((1, N_SHIFTS)), SHARED_PRECISION)
    return _solve(items, levels, np.repeat(shared, len(levels), axis=0), CELL_PRECISION)


def _solve(items: Anchored, levels: Array, centre: Array, precision: float) -> Array:
    """Find the least squares of all cells at once, held back towards `centre`."""
    sizes = np.bincount(items.cells, minlength=len(levels))
    trust = 1 / (NOISE / np.maximum(sizes, 1)[:, None] + DOUBT**2)
    problem = _Problem(items, levels, centre, precision, trust)
    state = problem.at(centre)
    damping = np.full(len(levels), FIRST_DAMPING)
    for _ in range(STEPS):
        trial = problem.at(state.shifts + problem.step(state, damping))
        better = trial.loss < state.loss
        state = state.keep(better, trial)
        damping = np.where(better, damping / 4, damping * 8)
    return state.shifts


class _Problem:
    """Least squares of the gaps of cells and of their shifts."""

    def __init__(
        self, items: Anchored, levels: Array, centre: Array, precision: float, trust: Array
    ) -> None:
        self.items = items
        self.levels = levels
        self.centre = centre
        self.precision = precision
        self.trust = trust
        self.sizes = np.bincount(items.cells, minlength=len(levels))
        self.tilts: Floats = np.zeros(len(items.cells))  # of the last call, a good start

    def step(self, state: _State, damping: Array) -> Array:
        """Return damped steps of Gauss and Newton, (n_cells, 2)."""
        weighted = state.slopes * self.trust[:, :, None]
        matrix = np.einsum("kts,ktr->ksr", weighted, state.slopes)
        matrix += self.precision * np.eye(N_SHIFTS)
        matrix *= 1 + damping[:, None, None] * np.eye(N_SHIFTS)
        right = np.einsum("kts,kt->ks", weighted, state.gaps)
        right -= self.precision * (state.shifts - self.centre)
        return np.asarray(np.linalg.solve(matrix, right[:, :, None])[:, :, 0])

    def at(self, shifts: Array) -> _State:
        """Measure the cells under shifts."""
        weights = self._weigh(shifts)
        shapes = self.items.shapes
        measures = (shapes.brier, shapes.shannon)
        means = self._averages([_mean(weights, measure) for measure in measures])
        changes = [change_along(weights, measure, shapes) for measure in measures]
        slopes = [
            self._averages([_mean(change, measure) for change in changes]) for measure in measures
        ]
        gaps = np.where(self.sizes[:, None] > 0, self.levels - means, 0.0)
        away = shifts - self.centre
        loss = (self.trust * gaps**2).sum(axis=1) + self.precision * (away**2).sum(axis=1)
        return _State(shifts, gaps, np.stack(slopes, axis=1), loss)

    def _weigh(self, shifts: Array) -> Floats:
        shapes = self.items.shapes
        logits = shift_logits(self.items.logits, shapes, shifts[self.items.cells].T)
        self.tilts, weights = solve_tilts(logits, shapes.outside, shapes.share, self.tilts)
        return weights

    def _averages(self, columns: list[Floats]) -> Array:
        """Return the means of items' values over cells, (n_cells, n_columns)."""
        cells = self.items.cells
        sums = [np.bincount(cells, column, minlength=len(self.sizes)) for column in columns]
        return np.stack(sums, axis=1) / np.maximum(self.sizes, 1)[:, None]


def _mean(weights: Floats, values: Floats) -> Floats:
    """Return the sum over components, (n_items,)."""
    return np.asarray(np.einsum("ci,ci->i", weights, values))
