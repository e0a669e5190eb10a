"""Anchor the items of a cell: on average they must be as uncertain as the cell is known to be.

The labels of a whole cell tell its mean aleatoric uncertainty better than any item's own few.  To
the Brier uncertainty that is expected of a cell's items one number is added, so that on average
they come nearer to the cell's and keep their differences.  Another shifts their weights, the Brier
uncertainty of each held, until the mean Shannon uncertainty meets the cell's.  How far to go is a
matter of the cell's number of items and of how far cells are off beyond chance, and for Shannon of
the numbers of labels and of classes, which leave it open, and of whether cells and items say much
the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from hocal._base.typing import Array, Index, Mask
from hocal.calibration.by_item.columns import Floats
from hocal.calibration.by_item.settling import Unsettled, mean_of, settle, shannon_slopes

__all__ = [
    "FARTHEST",
    "N_ANCHORS",
    "anchor_brier",
    "anchor_shannon",
    "choose_half_way",
    "left_open",
    "weigh_up",
]

N_ANCHORS = 2  # of a cell: what is added to its items' Brier uncertainty, and their shift
# Items of a cell that move their Brier uncertainty half way to its level, before labels say how far
# cells are off: within a factor of two, on a grid of its powers.
HALF_WAY = 50.0
FACTOR = np.log(2.0)
HALF_WAYS = HALF_WAY * np.exp(FACTOR * np.arange(-2.0, 10.25, 0.5))
STEPS = 8  # of Levenberg and Marquardt, at most
SMALL = 0.1  # step that ends them: it moves uncertainties by less than a thousandth
NOISE = 0.3  # variance of an item's Shannon uncertainty around its cell's: what one item tells
# Labels leave much open (experiments/left_open.py), so levels err: with k labels of l classes by
# about .005 ln(l)^3 / k^2 of the Shannon uncertainty, in worlds of up to 100 classes (worlds.py).
LEFT_OPEN = 0.005
# Relative error of the weights' Shannon uncertainty, a judgement: real panels of people ask for
# less (experiments/panels.py), the averages of cells for more (label_efficiency.py).
OWN_DOUBT = 0.07
# Now and then levels are off altogether: of all that fits the labels, they are what fits best, and
# that may be an end of what is possible. Weights stay nearer to what is usual.
OFF = 0.05  # how often, a judgement
OFF_BY = 0.3  # by which part
SHARED_PRECISION = 0.001  # of the shift that all cells share: tens of units where splits are free
# Shifts end: down, because beyond Shannon uncertainty hardly moves and new items go astray; up,
# where the split beyond the top class is as even as it gets.
FARTHEST = (-20.0, 60.0)
CELL_PRECISION = 0.1  # of a cell's own shift: some 50 items move its level half way
FIRST_DAMPING = 0.1  # of a step, relative to the curvature
# Change of Shannon uncertainty, relative to it, with a shift of one, below which components have no
# more to give at the same Brier uncertainty.
EXHAUSTED = 2e-4
TINY = 1e-12  # uncertainty that is as good as none


class _State(NamedTuple):
    """Shifts of cells, and where they lead."""

    shifts: Array  #: (n_cells,)
    gaps: Array  #: (n_cells,) what the cells' means lack
    slopes: Array  #: (n_cells,) of the means by the shifts
    loss: Array  #: (n_cells,)

    def keep(self, better: Mask, other: _State) -> _State:
        """Take over the cells that are better in another state."""
        parts = zip(self, other, strict=True)
        return _State(*(np.where(better, b, a) for a, b in parts))


def left_open(n_labels: float, n_classes: int) -> float:
    """Return the relative error of levels of Shannon uncertainty that labels leave open."""
    return float(LEFT_OPEN * np.log(n_classes) ** 3 / max(n_labels, 1.0) ** 2)


def choose_half_way(expected: Array, observed: Array, weights: Array, cells: Index) -> float:
    """Return how many items of a cell should move their Brier uncertainty half way to its level.

    On average over n of its items a cell is off by its own effect, of variance t^2, and by chance,
    s^2 / n. The best guess of the effect is n / (n + s^2 / t^2) of what is seen, and s^2 / t^2 is
    found by marginal likelihood. Where cells are off by chance alone it is large: then items keep
    what they say themselves, in which the labels of all cells have a part.

    Parameters
    ----------
    expected : array of shape (n_items,)
        Brier uncertainty of items, from the labels of others.
    observed, weights : array of shape (n_items,)
        How often the labels of an item differ, and the weight of this number.
    cells : array of shape (n_items,)
        Their cells.
    """
    total = float(weights.sum())
    if total <= 0:
        return HALF_WAY
    gaps = observed - expected
    sums, sum_squares = (np.bincount(cells, power) for power in (weights, weights**2))
    seen = np.flatnonzero(sums)
    sizes = sums[seen] ** 2 / sum_squares[seen]
    off = np.bincount(cells, weights * gaps)[seen] / sums[seen]
    chance = max(float(weights @ gaps**2) / total, TINY)
    variances = chance * (1 / sizes + 1 / HALF_WAYS[:, None])  # (n_tried, n_cells)
    logs = -0.5 * (off**2 / variances + np.log(variances)).sum(axis=1)
    logs -= 0.5 * (np.log(HALF_WAYS / HALF_WAY) / FACTOR) ** 2
    return float(np.exp(softmax(logs) @ np.log(HALF_WAYS)))


def anchor_brier(
    expected: Array, cells: Index, levels: Array, half_way: float
) -> tuple[Array, Array]:
    """Return what is added to the Brier uncertainty of each cell's items, and Shannon levels.

    Where items stay away from their cell's Brier uncertainty, its level of Shannon's goes along.

    Parameters
    ----------
    expected : array of shape (n_items,)
        Brier uncertainty of items.
    cells : array of shape (n_items,)
        Their cells.
    levels : array of shape (n_cells, 2)
        Brier and Shannon uncertainty of each cell, NaN where nothing is known.
    half_way : float
        Items of a cell that move half way to its level.

    Returns
    -------
    offsets, shannon : array of shape (n_cells,)
        Where no level is known, 0 and NaN.
    """
    sizes = np.bincount(cells, minlength=len(levels))
    known = (sizes > 0) & np.isfinite(levels).all(axis=1)
    brier, shannon = np.where(known[:, None], levels, 0.0).T
    means = np.bincount(cells, expected, len(levels)) / np.maximum(sizes, 1)
    away = np.where(known, brier - means, 0.0)
    offsets = away * (sizes / (sizes + half_way))
    ratio = (sizes @ shannon) / max(float(sizes @ brier), TINY)
    return offsets, np.where(known, shannon - ratio * (away - offsets), np.nan)


def anchor_shannon(
    items: Unsettled,
    target: Array,
    cells: Index,
    levels: Array,
    doubt: float,
    near: float = 0.0,
) -> tuple[Array, float]:
    """Return the shifts that bring cells towards their Shannon uncertainty, (n_cells,).

    The levels and the weights that were learnt have a say in proportion to what they know. Where no
    shift leads there, because components end, Brier uncertainty must give way: by how much is the
    second number.

    Parameters
    ----------
    items : Unsettled
        Of the fit.
    target : array of shape (n_items,)
        Their Brier uncertainty.
    cells : array of shape (n_items,)
        Their cells.
    levels : array of shape (n_cells,)
        Shannon uncertainty of each cell, NaN where nothing is known.
    doubt : float
        Relative error of levels that no number of items mends.
    near : float, default=0.0
        Where to begin to look.
    """
    rows = np.flatnonzero(np.isfinite(levels[cells]))
    if not len(rows):
        return np.zeros(len(levels)), 0.0
    items, target, cells = items.take(rows), target[rows], cells[rows]
    level = float(levels[cells].mean())
    settled = settle(items, target, np.zeros(len(rows)))
    own = float(mean_of(settled.weights, settled.shapes.shannon).mean())
    wanted = weigh_up(own, level, doubt**2 + NOISE / len(rows) / max(level, TINY) ** 2)
    together = _Problem(items, target, np.zeros_like(cells), np.array([wanted]))
    shared = together.solve(np.zeros(1), SHARED_PRECISION, np.array([near]))
    alone = _Problem(items, target, cells, levels * (wanted / max(level, TINY)))
    centre = np.repeat(shared, len(levels))
    shifts = alone.solve(centre, CELL_PRECISION, centre)
    return shifts, together.given_way(shared) * float(target.mean())


def weigh_up(own: float, level: float, doubt: float) -> float:
    """Return the expected truth, given what the weights say and what the levels do.

    Levels err by a part whose square is `doubt` in most cases, and by far more in some.
    """
    variances = OWN_DOUBT**2 + doubt + np.array([0.0, OFF_BY**2])
    gap = (level - own) ** 2 / max(level * own, TINY)
    chances = softmax(np.log([1 - OFF, OFF]) - (gap / variances + np.log(variances)) / 2)
    return own + OWN_DOUBT**2 * float(chances @ (1 / variances)) * (level - own)


class _Problem:
    """Least squares of what cells lack, and of their shifts."""

    def __init__(self, items: Unsettled, target: Array, cells: Index, wanted: Array) -> None:
        self.items = items
        self.target = target
        self.cells = cells
        self.sizes = np.bincount(cells, minlength=len(wanted))
        self.wanted = np.where(self.sizes > 0, wanted, 0.0)
        self.trust = np.maximum(self.sizes, 1) / NOISE

    def solve(self, centre: Array, precision: float, start: Array) -> Array:
        """Find the shifts of all cells at once, held back towards `centre`."""
        state = self._at(start, centre, precision)
        damping = np.full(len(centre), FIRST_DAMPING)
        for _ in range(STEPS):
            right = self.trust * state.slopes * state.gaps - precision * (state.shifts - centre)
            curvature = (self.trust * state.slopes**2 + precision) * (1 + damping)
            step = right / curvature
            if np.abs(step).max() < SMALL:
                break
            trial = self._at(np.clip(state.shifts + step, *FARTHEST), centre, precision)
            better = trial.loss < state.loss
            state = state.keep(better, trial)
            damping = np.where(better, damping / 4, damping * 8)
        return state.shifts

    def given_way(self, shifts: Array) -> float:
        """Return what of its uncertainty the first cell lacks though components are exhausted."""
        state = self._at(shifts, shifts, 0.0)
        wanted = max(float(self.wanted[0]), TINY)
        exhausted = state.slopes[0] < EXHAUSTED * wanted
        return float(state.gaps[0]) / wanted if exhausted else 0.0

    def _at(self, shifts: Array, centre: Array, precision: float) -> _State:
        """Measure the cells under shifts."""
        settled = settle(self.items, self.target, shifts[self.cells])
        shannon = mean_of(settled.weights, settled.shapes.shannon)
        gaps = self.wanted - self._averages(shannon)
        slopes = self._averages(shannon_slopes(self.items, settled))
        loss = self.trust * gaps**2 + precision * (shifts - centre) ** 2
        return _State(shifts, gaps, slopes, loss)

    def _averages(self, values: Floats) -> Array:
        sums = np.bincount(self.cells, values, len(self.sizes))
        return np.asarray(sums / np.maximum(self.sizes, 1))
