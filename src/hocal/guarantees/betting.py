"""One-sided confidence limits for means of bounded statistics, by betting, and for entropies.

A gambler who doubts that a mean is as large as m multiplies a capital by 1 + stake * (m - x) at
each draw x. If the mean is m or more, the capital is worth at most 1 on average, so it reaches
1/delta with chance delta at most (Waudby-Smith and Ramdas 2024). Stakes are fixed beforehand and
all draws count alike, so that a limit depends on the histogram of the draws only, never on an
order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hocal._base.typing import Array, Mask

__all__ = ["Draws", "box_limits", "lower_limit", "pair_draws", "upper_limit"]


_SAFE = 0.99  # of the largest stake that no single draw can ruin
# Places of the stakes between the smallest and the largest one, geometrically: neighbours differ by
# a factor of two where there is no guess, and a stake may be off by that at little cost.
_POWERS = np.linspace(0, 1, 6)[:, None]
# In units of the range, for which the end stakes are best when there is no guess: a fair coin's,
# and that of an event that happens once in some 4,000 draws.
_DEVIATIONS = (0.5, 1 / 64)
_AROUND_GUESS = (2.0, 0.5)  # factors of a guessed deviation, for which the end stakes are best
_STEPS = 24  # bisections: limits are rounded outwards by 6e-8 of the range
_CONSTANT = 1e-9  # range below which a statistic is one
_DIGITS = 12  # to which values are rounded before equal ones are merged
_BLOCK = 1 << 20  # pairs listed at once, some 30 MB
_BINS = 1 << 13  # of the statistic of a pair, many times fewer than there are pairs
_LEVEL_STEPS = 50  # bisections of a level in [0, 1], down to rounding


class Draws(NamedTuple):
    """Histograms of statistics, one column for each.

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
        distinct, owner = np.unique(np.round(values, _DIGITS), return_inverse=True)
        counts: Array = np.bincount(owner, repeats).astype(np.float64)
        return cls(np.clip(distinct, low, high)[:, None], counts[:, None], low, high)

    @classmethod
    def of_columns(cls, values: Array, repeats: Array, low: float, high: float) -> Draws:
        """Return the draws of several statistics, (n_items, n_statistics), on common values."""
        distinct, owner = np.unique(np.round(values, _DIGITS), return_inverse=True)
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
        """Return the standard deviations, with one pseudo-draw of a fair coin: none is zero."""
        total = self.repeats.sum(axis=0)
        mean = (self.repeats * self.values).sum(axis=0) / total
        squares = (self.repeats * (self.values - mean) ** 2).sum(axis=0)
        coin = (self.high - self.low) ** 2 / 4
        return np.asarray(np.sqrt((squares + coin) / (total + 1)))


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
    >>> draws = Draws.of(np.array([0.0, 1.0]), np.array([495.0, 5.0]), 0, 1)
    >>> upper_limit(draws, 0.025).round(3).tolist()
    [0.03]
    """
    values, repeats, lowest, highest, rounding = draws
    shape = np.broadcast_shapes(values.shape, repeats.shape)[1:]
    if highest - lowest <= _CONSTANT:
        return np.full(shape, float(highest))
    base = np.sqrt(2 * math.log(1 / delta) / np.maximum(repeats.sum(axis=0), 1))
    guesses: list[Any] = [(highest - lowest) * unit for unit in _DEVIATIONS]
    if deviation is not None:
        guesses = [factor * deviation for factor in _AROUND_GUESS]
    goal = math.log(len(_POWERS) / delta)

    def refuted(m: Array) -> Mask:
        least, most = (np.minimum(base / guess, _SAFE / (highest - m)) for guess in guesses)
        stakes = least * (most / least) ** _POWERS  # (n_stakes, n_statistics)
        gains = np.log1p(stakes[:, None] * (m - values))
        log_capital = (repeats * gains).sum(axis=1)  # (n_stakes, n_statistics)
        return np.asarray(np.logaddexp.reduce(log_capital, axis=0) >= goal)

    # A stake grows at most like 1 / (highest - m), and with it every factor 1 + stake (m - x) grows
    # with m: all candidates above a refuted one are refuted.
    low = np.full(shape, float(lowest))
    high = np.full(shape, float(highest))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        too_high = refuted(middle)
        low = np.where(too_high, low, middle)
        high = np.where(too_high, middle, high)
    return np.minimum(high + rounding, highest)


def lower_limit(draws: Draws, delta: float, deviation: Array | None = None) -> Array:
    """Return numbers that the means fall below with probability at most delta, as `upper_limit`."""
    return -upper_limit(draws.negative(), delta, deviation)


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


def box_limits(
    component: Callable[[Array], Array], lower: Array, upper: Array
) -> tuple[float, float]:
    """Bound a separable entropy, sum_j g(p_j), over all label distributions between two vectors.

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
    >>> lower, upper = np.array([0.5, 0.0]), np.array([1.0, 0.5])
    >>> [round(x, 4) for x in box_limits(Shannon().component, lower, upper)]
    [0.0, 0.6931]
    """
    if lower.sum() > 1 or upper.sum() < 1:  # the limits have failed: nothing lies between them
        lower = np.zeros_like(lower)
        upper = np.ones_like(upper)
    level = _even_level(lower, upper)
    largest = float(component(np.clip(level, lower, upper)).sum())
    return _least_of_chords(component, lower, upper), largest


def _even_level(lower: Array, upper: Array) -> float:
    """Return the level at which clip(level, lower, upper) sums to 1."""
    low = 0.0
    high = 1.0
    for _ in range(_LEVEL_STEPS):
        middle = (low + high) / 2
        if np.clip(middle, lower, upper).sum() < 1:
            low = middle
        else:
            high = middle
    return high


def _least_of_chords(component: Callable[[Array], Array], lower: Array, upper: Array) -> float:
    """Return the smallest sum of the chords of g over label distributions between two vectors."""
    room = upper - lower
    rise = component(upper) - component(lower)
    slope = np.divide(rise, room, out=np.zeros_like(room), where=room > 0)
    order = np.argsort(slope)
    space = room[order]
    left = 1 - lower.sum() - (np.cumsum(space) - space)  # mass before each class, cheapest first
    added = np.clip(left, 0, space)
    return max(float(component(lower).sum() + slope[order] @ added), 0.0)
