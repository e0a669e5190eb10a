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
    FEW_LEFT,
    LEVEL,
    N_OWN,
    Shapes,
    change_along,
    log_odds,
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
# it gives way first: then an item's own labels tell as much as they did about the top class.
SPLIT_RATE = 0.25
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
    slopes = _ahead(items.weights, shapes, target, np.zeros_like(target))
    bounds = np.full_like(slopes, -FARTHEST), np.full_like(slopes, FARTHEST)
    weights = _approach(logits, shapes, target, (slopes, items.tilts), bounds, STEPS)
    return Settled(split, weights, shapes)


def _approach(
    logits: Floats,
    shapes: Shapes,
    target: Floats,
    start: tuple[Floats, Floats],
    bounds: tuple[Floats, Floats],
    n_steps: int,
) -> Floats:
    """Return the weights to which slopes along Brier uncertainty lead, by Newton between bounds.

    When few items are left, it goes on with these alone: none depends on others.
    """
    slopes, tilts = start
    low, high = bounds
    for step in range(n_steps):
        moved = logits + slopes * shapes.brier
        tilts, weights = solve_tilts(moved, shapes.outside, shapes.share, tilts)
        gap = target - mean_of(weights, shapes.brier) - STIFFNESS * slopes
        left = np.abs(gap) > CLOSE
        rows = np.flatnonzero(left)
        if not len(rows) or step + 1 == n_steps:
            break
        low = np.where(gap > 0, slopes, low)
        high = np.where(gap < 0, slopes, high)
        ahead = _ahead(weights, shapes, target, slopes)
        ahead = np.where((ahead > low) & (ahead < high), ahead, (low + high) / 2)
        slopes = np.where(left, ahead, slopes)
        if len(rows) < FEW_LEFT * len(left):
            some = np.take(logits, rows, axis=1), shapes.take(rows), target[rows]
            ends = low[rows], high[rows]
            found = _approach(*some, (slopes[rows], tilts[rows]), ends, n_steps - step - 1)
            weights[:, rows] = found
            break
    return weights


def _ahead(weights: Floats, shapes: Shapes, target: Floats, slopes: Floats) -> Floats:
    """Return slopes after a step of Newton.

    It is taken on the log-odds of the Brier uncertainty between those of the components, which are
    closer to linear.
    """
    least = shapes.brier.min(axis=0)
    width = np.maximum(shapes.brier.max(axis=0) - least, TINY)
    along = mean_of(change_along(weights, shapes.brier, shapes), shapes.brier) + STIFFNESS
    now = np.clip((mean_of(weights, shapes.brier) - least) / width, EDGE, 1 - EDGE)
    then = np.clip((target - STIFFNESS * slopes - least) / width, EDGE, 1 - EDGE)
    steps = (log_odds(then) - log_odds(now)) * (now * (1 - now) * width / along)
    return np.asarray(slopes + np.clip(steps, -LONGEST, LONGEST))


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
