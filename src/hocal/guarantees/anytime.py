"""Limits of means that hold at every time of a stream: look after each draw, stop when you like.

As in `betting`, a gambler who doubts that a mean is as large as m multiplies a capital by 1 + stake
(m - x) at each draw x. If the stakes were fixed before the first draw, whatever the number of draws
will be, the capital is a supermartingale, and the chance that it ever reaches 1/delta is delta at
most (Ville). It is shared among stakes of many sizes, so one of them suits whatever number of
draws there will be.
"""

from __future__ import annotations

import math

import numpy as np

from hocal._base.typing import Array

__all__ = ["anytime_lower_limit", "anytime_upper_limit"]

_SAFE = 0.99  # of the largest stake that no single draw can ruin
# Each half of the one before. The largest suits a rare event, the smallest a million draws of half
# a fair coin's spread; neighbours differ by a factor that costs little.
_STAKES = _SAFE / 2.0 ** np.arange(11)
_STEPS = 26  # bisections: limits are rounded outwards by 1.5e-8 of the range


def anytime_upper_limit(
    values: Array, low: float, high: float, delta: float, *, repeats: Array | None = None
) -> float:
    """Return what the mean exceeds with chance delta at most, at whatever time it is asked.

    Parameters
    ----------
    values : ndarray of shape (n_draws,)
        All draws up to now, each with the same mean given those before it.
    low, high : float
        Smallest and largest possible values, known beforehand.
    delta : float
        Allowed chance that the limit ever fails, at any number of draws.
    repeats : ndarray of shape (n_draws,), optional
        How often each value was drawn; once by default.

    Returns
    -------
    float
        At most `high`.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.guarantees.anytime import anytime_upper_limit
    >>> round(anytime_upper_limit(np.zeros(1000), 0, 1, 0.025), 4)
    0.006
    """
    distinct, owner = np.unique((values - low) / (high - low), return_inverse=True)
    counts = np.bincount(owner, repeats)
    goal = math.log(len(_STAKES) / delta)
    lower, upper = 0.0, 1.0
    # A stake of a share of 1 / (1 - m) lets every factor grow with m: all candidates above a
    # refuted one are refuted.
    for _ in range(_STEPS):
        middle = (lower + upper) / 2
        stakes = _STAKES[:, None] / (1 - middle)
        log_capital = np.log1p(stakes * (middle - distinct)) @ counts
        if np.logaddexp.reduce(log_capital) >= goal:
            upper = middle
        else:
            lower = middle
    return low + upper * (high - low)


def anytime_lower_limit(
    values: Array, low: float, high: float, delta: float, *, repeats: Array | None = None
) -> float:
    """Return what the mean falls below with chance delta at most, as `anytime_upper_limit`."""
    return -anytime_upper_limit(-values, -high, -low, delta, repeats=repeats)
