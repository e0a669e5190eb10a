"""One-sided confidence limits for means of bounded statistics, by betting, and what they imply for entropies.

A gambler who doubts that a mean is as large as m multiplies a capital by 1 + stake * (m - x) at
each draw x. If the mean is m or more, the capital is worth at most 1 on average, so it reaches
1/delta with chance delta at most (Waudby-Smith and Ramdas 2024). Stakes are fixed beforehand and
all draws count alike, so that a limit depends on the histogram of the draws only, never on an
order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hocal._base.typing import Array, Mask

__all__ = ["Draws", "box_limits", "lower_limit", "pair_draws", "upper_limit"]


_SAFE = 0.99  # of the largest stake that no single draw can ruin
_POWERS = np.linspace(0, 1, 6)[
    :, None
]  # stakes between the smallest and the largest one, geometrically
_DEVIATIONS = (
    0.5,
    1 / 64,
)  # in units of the range, for which the end stakes are best when there is no guess
_STEPS = 24  # bisections: limits are rounded outwards by 6e-8 of the range
_BLOCK = 1 << 20  # pairs listed at once
_BINS = 1 << 13  # of the statistic of a pair, many times fewer than there are pairs


class Draws(NamedTuple):
    """Histograms of statistics, a column for each.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_statistics)
        Values of the statistics.
    repeats : ndarray of shape (n_rows, n_statistics) or (n_rows, 1)
        How often each occurred; fractions come from averages over pairings.
    low, high : float
        Smallest and largest possible values, known beforehand.
    rounding : float
        How far a value may be from what was drawn; limits are moved outwards by it.
    """

    values: Array
    repeats: Array
    low: float
    high: float
    rounding: float = 0.0

    @classmethod
    def of(cls, values: Array, repeats: Array, low: float, high: float) -> Draws:
        """Return the draws of one statistic, equal values merged."""
        distinct, owner = np.unique(np.round(values, 12), return_inverse=True)
        counts: Array = np.bincount(owner, repeats).astype(np.float64)
        return cls(np.clip(distinct, low, high)[:, None], counts[:, None], low, high)

    @classmethod
    def of_columns(cls, values: Array, repeats: Array, low: float, high: float) -> Draws:
        """Return the draws of several statistics, (n_items, n_statistics), with a common set of values."""
        distinct, owner = np.unique(np.round(values, 12), return_inverse=True)
        n_columns = values.shape[1]
        places = owner.reshape(values.shape) * n_columns + np.arange(n_columns)
        weights = np.broadcast_to(repeats[:, None], values.shape)
        flat = np.bincount(places.ravel(), weights.ravel(), minlength=len(distinct) * n_columns)
        counts: Array = flat.astype(np.float64).reshape(-1, n_columns)
        return cls(np.clip(distinct, low, high)[:, None], counts, low, high)

    def negative(self) -> Draws:
        """Return the draws of the negated statistics."""
        return Draws(-self.values, self.repeats, -self.high, -self.low, self.rounding)

    def deviation(self) -> Array:
        """Return the standard deviations, with one pseudo-draw of a fair coin so that none is zero."""
        total = self.repeats.sum(axis=0)
        mean = (self.repeats * self.values).sum(axis=0) / total
        squares = (self.repeats * (self.values - mean) ** 2).sum(axis=0)
        return np.asarray(np.sqrt((squares + (self.high - self.low) ** 2 / 4) / (total + 1)))


def upper_limit(draws: Draws, delta: float, deviation: Array | None = None) -> Array:
    """Return numbers that the means exceed with probability at most delta, each on its own.

    Parameters
    ----------
    draws : Draws
        Independent draws of each statistic.
    delta : float
        Allowed chance of failure.
    deviation : ndarray of shape (n_statistics,), optional
        Guesses of the standard deviations from other data. Any is valid, good ones narrow the
        interval.

    Returns
    -------
    ndarray of shape (n_statistics,)
        At most the largest possible value.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.guarantees.betting import Draws, upper_limit
    >>> upper_limit(Draws.of(np.array([0.0, 1.0]), np.array([495.0, 5.0]), 0, 1), 0.025).round(3).tolist()
    [0.03]
    """
    values, repeats, lowest, highest, rounding = draws
    if highest - lowest <= 1e-9:  # a constant
        return np.full(np.broadcast_shapes(values.shape, repeats.shape)[1:], float(highest))
    base = np.sqrt(2 * math.log(1 / delta) / np.maximum(repeats.sum(axis=0), 1))
    guesses = (
        [(highest - lowest) * d for d in _DEVIATIONS]
        if deviation is None
        else [2 * deviation, deviation / 2]
    )
    goal = math.log(len(_POWERS) / delta)
    shape = np.broadcast_shapes(values.shape, repeats.shape)[1:]

    def refuted(m: Array) -> Mask:
        least, most = (np.minimum(base / guess, _SAFE / (highest - m)) for guess in guesses)
        stakes = least * (most / least) ** _POWERS  # (n_stakes, n_statistics)
        capital = (repeats * np.log1p(stakes[:, None] * (m - values))).sum(
            axis=1
        )  # logarithms, (n_stakes, ...)
        return np.asarray(np.logaddexp.reduce(capital, axis=0) >= goal)

    # A stake grows at most like 1 / (highest - m), and with it every factor 1 + stake (m - x) grows
    # with m: all candidates above a refuted one are refuted.
    low = np.full(shape, float(lowest))
    high = np.full(shape, float(highest))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        gone = refuted(middle)
        low = np.where(gone, low, middle)
        high = np.where(gone, middle, high)
    return np.minimum(high + rounding, highest)


def lower_limit(draws: Draws, delta: float, deviation: Array | None = None) -> Array:
    """Return numbers that the means fall below with probability at most delta; see `upper_limit`."""
    return -upper_limit(draws.negative(), delta, deviation)


def pair_draws(shares: Array, repeats: Array, offset: Array, low: float, high: float) -> Draws:
    """Return the statistic offset_i + offset_j - <share_i, share_j> over all pairs of different items.

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


def box_limits(
    component: Callable[[Array], Array], lower: Array, upper: Array
) -> tuple[float, float]:
    """Return bounds on a separable entropy, sum_j g(p_j), over all label distributions between two vectors.

    The largest entropy is that of clip(level, lower, upper) with the level at which it sums to 1.
    From below, g is replaced by its chord in each class, and the cheapest classes are filled first.

    Parameters
    ----------
    component : callable
        The concave function g.
    lower, upper : ndarray of shape (n_classes,)
        Limits of each class's probability.

    Returns
    -------
    tuple of float
        Lower and upper bound; the lower one is a little too low where g is not linear.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.uncertainty.entropy import Shannon
    >>> from hocal.guarantees.betting import box_limits
    >>> [round(x, 4) for x in box_limits(Shannon().component, np.array([0.5, 0.0]), np.array([1.0, 0.5]))]
    [0.0, 0.6931]
    """
    if (
        lower.sum() > 1 or upper.sum() < 1
    ):  # the limits have failed, and there is nothing between them
        lower = np.zeros_like(lower)
        upper = np.ones_like(upper)
    low = 0.0
    high = 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(middle, lower, upper).sum() < 1 else (low, middle)
    largest = float(component(np.clip(high, lower, upper)).sum())
    room = upper - lower
    rise = component(upper) - component(lower)
    slope = np.divide(rise, room, out=np.zeros_like(room), where=room > 0)
    order = np.argsort(slope)
    filled = np.clip(1 - lower.sum() - (np.cumsum(room[order]) - room[order]), 0, room[order])
    return max(float(component(lower).sum() + slope[order] @ filled), 0.0), largest
