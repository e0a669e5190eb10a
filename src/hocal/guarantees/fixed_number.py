"""Narrow limits of means for a number of draws that was fixed in advance.

A statistic of two values has the exact limits of the binomial distribution (Clopper and Pearson
1934). Others have those of bets with a deadline (`hocal.guarantees.deadline`). Very few draws, and
very many different ones, have those of fixed stakes (`hocal.guarantees.betting`), which need no
order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special, stats

from hocal._base.typing import Array
from hocal.guarantees.betting import Draws
from hocal.guarantees.deadline import n_blocks, shuffled, upper_ends
from hocal.guarantees.joint_limits import JointDraws
from hocal.guarantees.orders import Order, batches

__all__ = ["binomial_limits", "expected_error", "lower_limits", "upper_limits"]

_FEWEST_ORDERED = 20  # draws; with fewer there is no time to learn how much they vary
_MOST_VALUES = 1 << 15  # different ones; more would take seconds
_MOST_DRAWS = 1 << 22  # that are put in order, some 100 MB
_AT_ONCE = 1 << 20  # numbers in the arrays of one calculation, 8 MB
_CANDIDATES = 12  # that are looked at together, roughly
_CONSTANT = 1e-9  # range below which a statistic is one
# Steps of the range to which values are rounded in a seed: far above the noise of a linear program,
# and far below a difference that matters. The offset keeps round numbers away from the edges.
_STEPS = 1 << 20
_OFFSET = 0.381966


def upper_limits(
    many: Sequence[Draws], delta: float | Array, deviation: Array | None = None
) -> Array:
    """Return numbers that the means exceed with probability at most delta, each on its own.

    Parameters
    ----------
    many : sequence of Draws
        One statistic each, with independent draws.
    delta : float or ndarray of shape (n_statistics,)
        Allowed chance of failure of each.
    deviation : ndarray of shape (n_statistics,), optional
        Guesses of the standard deviations from other data, infinite where there is none. Any is
        valid, good ones narrow the interval.

    Returns
    -------
    ndarray of shape (n_statistics,)
        At most the largest possible value of each.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.guarantees.betting import Draws
    >>> from hocal.guarantees.fixed_number import upper_limits
    >>> draws = Draws.of(np.array([0.0, 1.0]), np.array([500.0, 500.0]), 0, 1)
    >>> binary = draws._replace(binary=True)
    >>> upper_limits([draws, binary], 0.025).round(3).tolist()
    [0.536, 0.531]
    """
    result = np.array([each.high for each in many], dtype=np.float64)
    chances = np.broadcast_to(np.asarray(delta, dtype=np.float64), result.shape)
    guesses = np.full(len(many), np.inf) if deviation is None else deviation
    orders: dict[int, Order] = {}
    others: list[int] = []
    for place, draws in enumerate(many):
        if draws.high - draws.low <= _CONSTANT:
            continue
        if draws.binary:
            result[place] = _binomial_limit(draws, float(chances[place]))
        elif _can_be_ordered(draws):
            orders[place] = _order(draws)
        else:
            others.append(place)
    for chance in np.unique(chances[others]):
        places = [place for place in others if chances[place] == chance]
        result[places] = _fixed_limits([many[place] for place in places], chance, guesses[places])
    ordered = list(orders)
    sizes = [int(many[place].repeats.sum()) for place in ordered]
    numbers = [_most_values(many[place]) for place in ordered]
    for batch in batches(list(orders.values()), sizes, numbers, _AT_ONCE):
        places = [ordered[at] for at in batch]
        parts = [many[place] for place in places]
        chosen = [orders[place] for place in places]
        result[places] = _deadline_limits(parts, chosen, chances[places], guesses[places])
    return result


def lower_limits(
    many: Sequence[Draws], delta: float | Array, deviation: Array | None = None
) -> Array:
    """Return numbers that the means fall below with chance at most delta, as `upper_limits`."""
    return -upper_limits([each.negative() for each in many], delta, deviation)


def binomial_limits(hits: float, n_draws: float, delta: float) -> tuple[float, float]:
    """Return limits of a probability, each of which fails with chance delta (Clopper-Pearson).

    Examples
    --------
    >>> from hocal.guarantees.fixed_number import binomial_limits
    >>> [round(end, 3) for end in binomial_limits(50, 100, 0.025)]
    [0.398, 0.602]
    """
    misses = n_draws - hits
    lower = stats.beta.ppf(delta, hits, misses + 1) if hits > 0 else 0.0
    upper = stats.beta.ppf(1 - delta, hits + 1, misses) if misses > 0 else 1.0
    return float(lower), float(upper)


def expected_error(deviation: float, span: float, n_draws: float, delta: float) -> float:
    """Forecast how far a limit will lie from the mean of the draws, from 100 of them on.

    A normal quantile, and as much for a skewed law as Bernstein's inequality has.

    Examples
    --------
    >>> from hocal.guarantees.fixed_number import expected_error
    >>> round(expected_error(0.5, 1, 1000, 0.025), 4)
    0.0322
    """
    normal = -float(special.ndtri(delta)) * deviation / math.sqrt(n_draws)
    return normal + span * math.log(1 / delta) / (3 * n_draws)


def _can_be_ordered(draws: Draws) -> bool:
    n_draws = draws.repeats.sum()
    whole = bool((draws.repeats == np.floor(draws.repeats)).all())
    few = len(draws.values) <= _MOST_VALUES and n_draws <= _MOST_DRAWS
    return whole and few and n_draws >= _FEWEST_ORDERED


def _binomial_limit(draws: Draws, delta: float) -> float:
    """Return the largest mean of a statistic of two values that explains the draws."""
    hits = draws.repeats[draws.values > (draws.low + draws.high) / 2].sum()
    share = binomial_limits(float(hits), float(draws.repeats.sum()), delta)[1]
    return draws.low + share * (draws.high - draws.low)


def _fixed_limits(many: Sequence[Draws], delta: float, deviation: Array) -> Array:
    """Return limits by stakes that never change; those of few draws do better without a guess."""
    enough = np.array([each.repeats.sum() >= _FEWEST_ORDERED for each in many])
    known = np.isfinite(deviation) & enough
    guesses = [
        np.array([guess]) if use else None for guess, use in zip(deviation, known, strict=True)
    ]
    return JointDraws(many, guesses).upper(delta)


def _most_values(draws: Draws) -> int:
    """Return how many different values a block may hold, times what is computed with them."""
    n_draws = int(draws.repeats.sum())
    blocks = n_blocks(n_draws)
    return min(len(draws.values), 2 * n_draws // blocks + 2) * max(blocks, _CANDIDATES)


def _deadline_limits(
    many: Sequence[Draws], orders: list[Order], delta: Array, deviation: Array
) -> Array:
    low = np.array([each.low for each in many], dtype=np.float64)
    high = np.array([each.high for each in many], dtype=np.float64)
    histograms = [(each.values[:, 0], each.repeats[:, 0].astype(np.int64)) for each in many]
    mean = np.array([float(each.mean()[0]) for each in many])
    spread = np.array([float(each.deviation()[0]) for each in many])
    return upper_ends(shuffled(histograms, low, high, deviation, orders), mean, spread, delta)


def _order(draws: Draws) -> Order:
    """Return the orders of some draws; their own histogram determines them if nothing else does."""
    if draws.order is not None:
        return draws.order
    unit = (draws.values - draws.low) / (draws.high - draws.low)
    rounded = np.floor(unit * _STEPS + _OFFSET).astype(np.int64)
    return Order.of(rounded, draws.repeats[:, 0])
