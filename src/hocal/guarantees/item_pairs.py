"""Statistics of pairs of a cell's items, which no guess of other cells is needed for."""

from __future__ import annotations

import numpy as np

from hocal._base.typing import Array
from hocal.guarantees.betting import Draws
from hocal.guarantees.samples import Sample

__all__ = ["MAX_PAIRED", "epistemic_pairs", "pair_draws", "predictive_pairs"]

# Items; all pairs of more are too many to list, and limits of other statistics are narrow by then.
MAX_PAIRED = 5_000
_BLOCK = 1 << 20  # pairs listed at once, some 30 MB
_BINS = 1 << 13  # of the statistic of a pair, many times fewer than there are pairs


def predictive_pairs(sample: Sample) -> Draws:
    """Return how often labels of two items differ, unbiased for predictive Brier uncertainty."""
    even = np.full(len(sample.repeats), 0.5)
    return pair_draws(sample.shares, sample.repeats, even, 0, 1)


def epistemic_pairs(sample: Sample) -> Draws:
    """Return how much oftener labels of two items differ than those of one.

    Unbiased for epistemic Brier uncertainty; all items need two labels or more.
    """
    smallest = int(sample.totals.min())
    # At least the mean over both items of -(1 - ||share||^2) / (total - 1), which is largest for
    # even shares.
    least = -(1 - 1 / min(smallest, sample.n_classes)) / (smallest - 1)
    offset = 0.5 - sample.disagreements / 2
    return pair_draws(sample.shares, sample.repeats, offset, least, 1)


def pair_draws(shares: Array, repeats: Array, offset: Array, low: float, high: float) -> Draws:
    """Return the statistic offset_i + offset_j - <share_i, share_j> over all pairs of items.

    Cut n items into floor(n / 2) disjoint pairs: these are independent draws, and capital won on
    them is fair. So is its average over all ways to cut, and by Jensen's inequality that average is
    at least exp(floor(n / 2) * mean over all pairs of log(1 + stake * (m - x))). Hence all pairs
    may be used at once, as if they were floor(n / 2) draws, and no pairing needs to be chosen.

    Parameters
    ----------
    shares : ndarray of shape (n_rows, n_classes)
        Label shares of the distinct items.
    repeats : ndarray of shape (n_rows,)
        How often each occurred, two items at least in all.
    offset : ndarray of shape (n_rows,)
        The item's own part of the statistic.
    low, high : float
        Smallest and largest possible value.

    Returns
    -------
    Draws
        Repeats sum to floor(n / 2).
    """
    n_items = repeats.sum()
    rows = max(_BLOCK // len(repeats), 1)
    step = (high - low) / _BINS
    counts = np.zeros(_BINS + 1)
    grid = np.linspace(low, high, _BINS + 1)
    for start in range(0, len(repeats), rows):
        block = slice(start, start + rows)
        values = offset[block, None] + offset - shares[block] @ shares.T
        weights = np.outer(repeats[block], repeats)
        own = np.arange(start, min(start + rows, len(repeats)))
        weights[own - start, own] -= repeats[own]  # an item makes no pair with itself
        bins = np.clip(np.rint((values - low) / step), 0, _BINS).astype(np.intp)
        counts += np.bincount(bins.ravel(), weights.ravel(), minlength=_BINS + 1)
    used = np.flatnonzero(counts)
    scale = (n_items // 2) / (n_items * (n_items - 1))
    return Draws(grid[used][:, None], scale * counts[used][:, None], low, high, step / 2)
