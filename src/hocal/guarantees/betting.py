"""One-sided confidence limits for means of bounded statistics, by bets with fixed stakes.

A gambler who doubts that a mean is as large as m multiplies a capital by 1 + stake * (m - x) at
each draw x. If the mean is m or more, the capital is worth at most 1 on average, so it reaches
1/delta with chance delta at most (Waudby-Smith and Ramdas 2024). Stakes are fixed beforehand and
all draws count alike, so that a limit depends on the histogram of the draws only, never on an
order. For a number of draws that is known beforehand `fixed_number` has narrower limits.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hocal._base.typing import Array, Mask
from hocal.guarantees.orders import Order

__all__ = ["Draws", "lower_limit", "upper_limit"]


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
    binary : bool
        Whether `low` and `high` are known beforehand to be the only possible values.
    order : Order, optional
        In which orders draws are looked at, where that matters; by default the draws determine it.
    """

    values: Array
    repeats: Array
    low: float
    high: float
    rounding: float = 0.0
    binary: bool = False
    order: Order | None = None

    @classmethod
    def of(
        cls,
        values: Array,
        repeats: Array,
        low: float,
        high: float,
        *,
        binary: bool = False,
        order: Order | None = None,
    ) -> Draws:
        """Return the draws of one statistic, equal values merged."""
        distinct, owner = np.unique(np.round(values, _DIGITS), return_inverse=True)
        counts: Array = np.bincount(owner, repeats).astype(np.float64)
        inside = np.clip(distinct, low, high)[:, None]
        return cls(inside, counts[:, None], low, high, binary=binary, order=order)

    @classmethod
    def of_columns(
        cls, values: Array, repeats: Array, low: float, high: float, *, order: Order | None = None
    ) -> Draws:
        """Return the draws of several statistics, (n_items, n_statistics), on common values."""
        distinct, owner = np.unique(np.round(values, _DIGITS), return_inverse=True)
        n_columns = values.shape[1]
        places = owner.reshape(values.shape) * n_columns + np.arange(n_columns)
        weights = np.broadcast_to(repeats[:, None], values.shape)
        flat = np.bincount(places.ravel(), weights.ravel(), minlength=len(distinct) * n_columns)
        counts: Array = flat.astype(np.float64).reshape(-1, n_columns)
        return cls(np.clip(distinct, low, high)[:, None], counts, low, high, order=order)

    def negative(self) -> Draws:
        """Return the draws of the negated statistics."""
        return self._replace(values=-self.values, low=-self.high, high=-self.low)

    def columns(self) -> list[Draws]:
        """Return the draws of each statistic on its own, without values that did not occur."""
        shape = np.broadcast_shapes(self.values.shape, self.repeats.shape)
        pairs = zip(
            np.broadcast_to(self.values, shape).T,
            np.broadcast_to(self.repeats, shape).T,
            strict=True,
        )
        return [
            self._replace(values=value[repeat > 0, None], repeats=repeat[repeat > 0, None])
            for value, repeat in pairs
        ]

    def mean(self) -> Array:
        """Return the means of the draws."""
        return np.asarray((self.repeats * self.values).sum(axis=0) / self.repeats.sum(axis=0))

    def deviation(self) -> Array:
        """Return the standard deviations, with one pseudo-draw of a fair coin: none is zero."""
        total = self.repeats.sum(axis=0)
        squares = (self.repeats * (self.values - self.mean()) ** 2).sum(axis=0)
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
    values, repeats, lowest, highest, rounding = draws[:5]
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
