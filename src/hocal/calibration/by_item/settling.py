"""Settle the uncertainty of items: Brier's at a target, Shannon's higher or lower beside it.

Weights are moved along the Brier uncertainty until its mean is a target.  Components that are alike
in their Brier uncertainty differ in Shannon's: a shift moves weights along the Shannon uncertainty
less what goes with the Brier uncertainty anyway, and makes the split beyond the top class more or
less even.  The mean of the mixture stays what it is throughout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hocal._base.typing import Index
from hocal.calibration.by_item.columns import Floats
from hocal.calibration.by_item.shapes import (
    DIFFERS,
    SPLIT_POOL,
    Beyond,
    second_moment,
    with_split,
)
from hocal.calibration.by_item.weights import (
    LEVEL,
    N_OWN,
    Shapes,
    change_along,
    log_odds,
    narrow,
    softmax,
    solve_tilts,
)

__all__ = ["Settled", "Unsettled", "mean_of", "settle", "shannon_slopes", "unsettled"]

STEPS = 12  # of Newton: two or three are enough for most items
CLOSE = 1e-3  # gap of the Brier uncertainty that is left
STIFFNESS = 2e-4  # of the slope: components cannot be as uncertain as any regression may say
LONGEST = 20.0  # step of the slope: far away the curvature misleads
FARTHEST = 1e4  # slope, beyond what stiffness allows
EDGE = 1e-3  # of the range of components, within which odds are as good as none
TINY = 1e-12  # spread of an uncertainty that is as good as none
NARROW = 1e-4  # squared relative spread of an uncertainty that rounding would drown
# Of the split's level, for a shift of one along Shannon.  Labels say least about the split, so that
# it gives way with the rest, but pairs of labels beyond the top class do say how even it is
# (experiments/label_pairs.py): three times as much brought averages of cells no nearer to the
# truth, and made what own labels say worse.
SPLIT_RATE = 0.08
SPLIT_LEVELS = SPLIT_POOL.kinds[:, LEVEL - N_OWN]


class Unsettled(NamedTuple):
    """Items whose weights are as they were learnt."""

    split_logits: Floats  #: (n_split_components, n_items) of the split beyond the top class
    beyond: Beyond  #: uncertainty of that split
    logits: Floats  #: (n_components, n_items) of all components, before the tilt
    shapes: Shapes  #: of all components
    tilts: Floats  #: (n_items,) that keep the mean
    weights: Floats  #: (n_components, n_items)
    brier: Floats  #: (n_items,) Brier uncertainty
    ratio: Floats  #: (n_items,) Shannon uncertainty that goes with one of Brier's

    def take(self, rows: Index) -> Unsettled:
        """Return some of the items."""
        own = (self.tilts, self.weights, self.brier, self.ratio)
        return Unsettled(
            self.split_logits[:, rows],
            self.beyond.take(rows),
            self.logits[:, rows],
            self.shapes.take(rows),
            *(part[..., rows] for part in own),
        )


class Settled(NamedTuple):
    """Items whose uncertainty is settled."""

    split: Floats  #: (n_split_components, n_items) weights of the split
    weights: Floats  #: (n_components, n_items) of all components
    shapes: Shapes  #: of these, given the split


def unsettled(split_logits: Floats, beyond: Beyond, logits: Floats, shapes: Shapes) -> Unsettled:
    """Return items with the weights that were learnt."""
    start = np.zeros_like(shapes.share)
    tilts, weights = solve_tilts(logits, shapes.outside, shapes.share, start)
    brier = mean_of(weights, shapes.brier)
    ratio = _ratio(weights, shapes, brier)
    return Unsettled(split_logits, beyond, logits, shapes, tilts, weights, brier, ratio)


def _ratio(weights: Floats, shapes: Shapes, brier: Floats) -> Floats:
    """Return how Shannon uncertainty changes with Brier's, or their ratio where nothing varies."""
    along = change_along(weights, shapes.brier, shapes)
    spread = mean_of(along, shapes.brier)
    spread_out = spread > NARROW * brier**2
    whole = np.maximum(brier, brier.dtype.type(TINY))
    slope = mean_of(along, shapes.shannon) / np.where(spread_out, spread, 1)
    return np.where(spread_out, slope, mean_of(weights, shapes.shannon) / whole)


def settle(items: Unsettled, target: Floats, shift: Floats) -> Settled:
    """Move the weights of items by their shifts, and until their Brier uncertainty is a target.

    Parameters
    ----------
    items : Unsettled
        The items.
    target : array of shape (n_items,)
        Brier uncertainty; where no weights have it, they end on the way.
    shift : array of shape (n_items,)
        Towards more (or, below 0, less) Shannon uncertainty at the same Brier uncertainty.
    """
    dtype = items.logits.dtype.type
    levels = SPLIT_LEVELS.astype(dtype)[:, None]
    split = softmax(items.split_logits + (dtype(SPLIT_RATE) * shift) * levels)
    shapes = with_split(items.shapes, items.beyond, split)
    logits = items.logits + shift * (shapes.shannon - items.ratio * shapes.brier)
    problem = _Slopes(logits, shapes, target, items.tilts)
    start = problem.ahead(np.zeros_like(target), items.weights)
    _, weights = narrow(problem, start, FARTHEST, CLOSE, STEPS)
    return Settled(split, weights, shapes)


class _Slopes:
    """Weights that are moved along Brier uncertainty, and tilted, until it is a target."""

    def __init__(self, logits: Floats, shapes: Shapes, target: Floats, tilts: Floats) -> None:
        self.logits = logits
        self.shapes = shapes
        self.target = target
        self.tilts = tilts  # of the last call, a good start

    def weigh(self, numbers: Floats) -> tuple[Floats, Floats]:
        shapes = self.shapes
        moved = self.logits + numbers * shapes.brier
        self.tilts, weights = solve_tilts(moved, shapes.outside, shapes.share, self.tilts)
        return weights, self.target - mean_of(weights, shapes.brier) - STIFFNESS * numbers

    def ahead(self, numbers: Floats, weights: Floats) -> Floats:
        """Step on the log-odds of the mean between the components', which are closer to linear."""
        shapes = self.shapes
        least = shapes.brier.min(axis=0)
        width = np.maximum(shapes.brier.max(axis=0) - least, TINY)
        along = mean_of(change_along(weights, shapes.brier, shapes), shapes.brier) + STIFFNESS
        now = np.clip((mean_of(weights, shapes.brier) - least) / width, EDGE, 1 - EDGE)
        then = np.clip((self.target - STIFFNESS * numbers - least) / width, EDGE, 1 - EDGE)
        steps = (log_odds(then) - log_odds(now)) * (now * (1 - now) * width / along)
        return np.asarray(numbers + np.clip(steps, -LONGEST, LONGEST))

    def take(self, rows: Index) -> _Slopes:
        logits = np.take(self.logits, rows, axis=1)
        return _Slopes(logits, self.shapes.take(rows), self.target[rows], self.tilts[rows])


def shannon_slopes(items: Unsettled, settled: Settled) -> Floats:
    """Return how the Shannon uncertainty of items changes with their shifts, near none."""
    weights, shapes = settled.weights, settled.shapes
    along = change_along(weights, shapes.shannon - items.ratio * shapes.brier, shapes)
    back = change_along(weights, shapes.brier, shapes)
    brier, shannon = _split_slopes(items, settled)
    brier = brier + mean_of(along, shapes.brier)
    shannon = shannon + mean_of(along, shapes.shannon)
    taken_back = brier / np.maximum(mean_of(back, shapes.brier), TINY)
    return np.asarray(shannon - taken_back * mean_of(back, shapes.shannon))


def _split_slopes(items: Unsettled, settled: Settled) -> tuple[Floats, Floats]:
    """Return how Brier and Shannon uncertainty change with the split, while other weights stay."""
    split = settled.split
    away = split * (SPLIT_LEVELS[:, None] - SPLIT_LEVELS @ split)
    shares = settled.shapes.outside[DIFFERS]
    weights = SPLIT_RATE * settled.weights[DIFFERS]
    brier = mean_of(weights, second_moment(shares)) * mean_of(away, items.beyond.brier)
    shannon = mean_of(weights, shares) * mean_of(away, items.beyond.shannon)
    return brier, shannon


def mean_of(weights: Floats, values: Floats) -> Floats:
    """Return the sum over components, (n_items,)."""
    return np.asarray(np.einsum("ci,ci->i", weights, values))
