"""Confidence intervals for the mean of a bounded variable."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.errors import InputError
from hocal._base.interval import Interval
from hocal._base.typing import Array, IntArray
from hocal._base.validation import (
    check_array,
    check_fraction,
    check_integer,
    check_number,
    check_weights,
)
from hocal.guarantees.betting import Draws
from hocal.guarantees.fixed_number import lower_limits, upper_limits

__all__ = ["betting_interval", "empirical_bernstein_interval", "hoeffding_interval"]

ROUNDING = 1e-9  # of the range: how far a value may lie outside its limits
N_SHOWN = 5  # multiplicities in an error message


def hoeffding_interval(
    values: ArrayLike,
    *,
    limits: tuple[float, float] = (0.0, 1.0),
    delta: float = 0.05,
    multiplicities: ArrayLike | None = None,
) -> Interval:
    """Bound the mean of a bounded variable by mean -+ range * sqrt(ln(2/delta) / (2N)) (Hoeffding).

    Parameters
    ----------
    values : array-like of shape (n_values,)
        Independent draws, or the distinct values of a histogram.
    limits : tuple of float, default=(0, 1)
        Smallest and largest possible value, known beforehand.
    delta : float, default=0.05
        Allowed chance of missing the mean; each end alone misses with chance at most delta / 2.
    multiplicities : array-like of shape (n_values,), optional
        How often each value occurred.

    Returns
    -------
    Interval
        Inside the limits.

    Examples
    --------
    >>> from hocal.guarantees.means import hoeffding_interval
    >>> round(hoeffding_interval([0, 1], multiplicities=[250, 250]).upper, 4)
    0.5607
    """
    sample, repeats, delta = _check_sample(values, limits, multiplicities, delta)
    n_items = int(repeats.sum())
    width = (limits[1] - limits[0]) * math.sqrt(math.log(2 / delta) / (2 * n_items))
    mean = float(np.average(sample, weights=repeats))
    return Interval(mean, mean - width, mean + width).clip(*limits)


def empirical_bernstein_interval(
    values: ArrayLike,
    *,
    limits: tuple[float, float] = (0.0, 1.0),
    delta: float = 0.05,
    multiplicities: ArrayLike | None = None,
) -> Interval:
    """Bound a mean by mean -+ sqrt(2 V ln(4/delta) / N) + 7 range ln(4/delta) / (3(N-1)).

    The empirical Bernstein inequality of Maurer and Pontil (2009).

    Parameters
    ----------
    values : array-like of shape (n_values,)
        Independent draws, or the distinct values of a histogram; two draws at least.
    limits : tuple of float, default=(0, 1)
        Smallest and largest possible value, known beforehand.
    delta : float, default=0.05
        Allowed chance of missing the mean; each end alone misses with chance at most delta / 2.
    multiplicities : array-like of shape (n_values,), optional
        How often each value occurred.

    Returns
    -------
    Interval
        Inside the limits; V is the unbiased sample variance.

    Examples
    --------
    >>> from hocal.guarantees.means import empirical_bernstein_interval
    >>> round(empirical_bernstein_interval([0, 1], multiplicities=[495, 5]).upper, 4)
    0.0437
    """
    sample, repeats, delta = _check_sample(values, limits, multiplicities, delta)
    n_items = check_integer(int(repeats.sum()), "number of values", minimum=2)
    mean = float(np.average(sample, weights=repeats))
    variance = float(repeats @ (sample - mean) ** 2) / (n_items - 1)
    tail = math.log(4 / delta)
    of_range = 7 * (limits[1] - limits[0]) * tail / (3 * (n_items - 1))
    width = math.sqrt(2 * variance * tail / n_items) + of_range
    return Interval(mean, mean - width, mean + width).clip(*limits)


def betting_interval(
    values: ArrayLike,
    *,
    limits: tuple[float, float] = (0.0, 1.0),
    delta: float = 0.05,
    multiplicities: ArrayLike | None = None,
    deviation: float | None = None,
) -> Interval:
    """Return the means that no gambler with a deadline could refute (Waudby-Smith and Ramdas 2024).

    A gambler who stakes lambda against m multiplies a capital by 1 + lambda (x - m) at each draw x,
    fair if m is the mean; m is refuted if the capital reaches 2/delta by the last draw. Stakes
    follow the price of a bet on the sum of all draws, so that the interval is nearly as narrow as
    the exact one of a coin, and never seen wider than Hoeffding's. Draws are looked at in random
    orders that their histogram determines, so the interval depends on the histogram only. Fewer
    than 20 draws have the limits of stakes that never change.

    Parameters
    ----------
    values : array-like of shape (n_values,)
        Independent draws, or the distinct values of a histogram.
    limits : tuple of float, default=(0, 1)
        Smallest and largest possible value, known beforehand.
    delta : float, default=0.05
        Allowed chance of missing the mean; each end alone misses with chance at most delta / 2.
    multiplicities : array-like of shape (n_values,), optional
        How often each value occurred.
    deviation : float, optional
        A guess of the standard deviation from other data. Any is valid, a good one narrows the
        interval.

    Returns
    -------
    Interval
        Inside the limits, for a number of draws that was fixed in advance.

    Examples
    --------
    >>> from hocal.guarantees.means import betting_interval
    >>> round(betting_interval([0, 1], multiplicities=[495, 5]).upper, 4)
    0.0243
    """
    sample, repeats, delta = _check_sample(values, limits, multiplicities, delta)
    draws = Draws.of(sample, repeats.astype(np.float64), *limits)
    guess = None
    if deviation is not None:
        guess = np.array([check_number(deviation, "deviation", minimum=0, strict=True)])
    lower = float(lower_limits([draws], delta / 2, guess)[0])
    upper = float(upper_limits([draws], delta / 2, guess)[0])
    mean = float(np.average(sample, weights=repeats))
    return Interval(mean, lower, upper).clip(*limits)


def _check_sample(
    values: ArrayLike, limits: tuple[float, float], multiplicities: ArrayLike | None, delta: float
) -> tuple[Array, IntArray, float]:
    """Return values inside their limits with whole multiplicities."""
    sample = check_array(values, "values", ndim=1)
    ends = check_array(limits, "limits", ndim=1)
    if ends.shape != (2,) or not -np.inf < ends[0] < ends[1] < np.inf:
        raise InputError("limits", "must be (smallest, largest possible value)", value=limits)
    slack = ROUNDING * (limits[1] - limits[0])
    wrong = ~((sample >= limits[0] - slack) & (sample <= limits[1] + slack))
    if wrong.any():
        raise InputError(
            "values",
            f"must lie inside limits={limits!r}",
            value=f"{sample[wrong][0]:.6g}",
            where=f"in row {np.argmax(wrong)}",
        )
    repeats = _check_multiplicities(multiplicities, len(sample))
    return np.clip(sample, *limits), repeats, check_fraction(delta, "delta")


def _check_multiplicities(multiplicities: ArrayLike | None, n_values: int) -> IntArray:
    if multiplicities is None:
        return np.ones(n_values, dtype=np.int64)
    repeats = check_weights(multiplicities, "multiplicities")
    whole = (repeats == np.floor(repeats)).all()
    if len(repeats) != n_values or not whole or repeats.sum() == 0:
        rule = f"must be {n_values} whole numbers, not all zero"
        raise InputError("multiplicities", rule, value=f"{repeats[:N_SHOWN].tolist()}...")
    return repeats.astype(np.int64)
