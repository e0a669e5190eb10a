"""Confidence intervals for the mean of a bounded variable."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.typing import Array, IntArray
from hocal._base.validation import (
    check_array,
    check_fraction,
    check_integer,
    check_number,
    check_weights,
)
from hocal.guarantees.betting import Draws, lower_limit, upper_limit

__all__ = ["Interval", "betting_interval", "empirical_bernstein_interval", "hoeffding_interval"]


class Interval(NamedTuple):
    """Lower and upper limits of a quantity.

    Attributes
    ----------
    lower, upper : float
        The limits, cut to the possible range.
    vacuous : bool
        Whether the interval is the whole possible range.
    method : str
        The inequality used.
    """

    lower: float
    upper: float
    vacuous: bool
    method: str


def hoeffding_interval(
    values: ArrayLike,
    *,
    limits: tuple[float, float] = (0.0, 1.0),
    delta: float = 0.05,
    multiplicities: ArrayLike | None = None,
) -> Interval:
    """Return mean -+ range * sqrt(ln(2/delta) / (2N)), a confidence interval for the mean of a bounded variable.

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
    width = (limits[1] - limits[0]) * math.sqrt(math.log(2 / delta) / (2 * int(repeats.sum())))
    mean = float(np.average(sample, weights=repeats))
    return _inside(mean - width, mean + width, limits, "Hoeffding")


def empirical_bernstein_interval(
    values: ArrayLike,
    *,
    limits: tuple[float, float] = (0.0, 1.0),
    delta: float = 0.05,
    multiplicities: ArrayLike | None = None,
) -> Interval:
    """Return mean -+ sqrt(2 V ln(4/delta) / N) + 7 range ln(4/delta) / (3(N-1)) (Maurer and Pontil 2009).

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
    width = math.sqrt(2 * variance * tail / n_items) + 7 * (limits[1] - limits[0]) * tail / (
        3 * (n_items - 1)
    )
    return _inside(mean - width, mean + width, limits, "empirical Bernstein")


def betting_interval(
    values: ArrayLike,
    *,
    limits: tuple[float, float] = (0.0, 1.0),
    delta: float = 0.05,
    multiplicities: ArrayLike | None = None,
    deviation: float | None = None,
) -> Interval:
    """Return the means that no gambler could refute, by betting (Waudby-Smith and Ramdas 2024, hedged capital).

    A gambler who stakes lambda against m multiplies a capital by 1 + lambda (x - m) at each draw x,
    fair if m is the mean; m is refuted if the average capital over several fixed stakes reaches
    2/delta. The best stake is near sqrt(2 ln(2/delta) / N) / deviation, and below 1/m, where a draw
    could ruin. All draws count alike, so the interval depends on the histogram only.

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
        Inside the limits, rounded outwards by less than 1e-7 of the range.

    Examples
    --------
    >>> from hocal.guarantees.means import betting_interval
    >>> round(betting_interval([0, 1], multiplicities=[495, 5]).upper, 4)
    0.0301
    """
    sample, repeats, delta = _check_sample(values, limits, multiplicities, delta)
    draws = Draws.of(sample, repeats.astype(np.float64), *limits)
    guess = (
        None
        if deviation is None
        else np.array([check_number(deviation, "deviation", minimum=0, strict=True)])
    )
    lower, upper = (
        float(limit(draws, delta / 2, guess)[0]) for limit in (lower_limit, upper_limit)
    )
    return _inside(lower, upper, limits, "betting")


def _inside(lower: float, upper: float, limits: tuple[float, float], method: str) -> Interval:
    lower = max(lower, limits[0])
    upper = min(upper, limits[1])
    return Interval(lower, upper, lower == limits[0] and upper == limits[1], method)


def _check_sample(
    values: ArrayLike, limits: tuple[float, float], multiplicities: ArrayLike | None, delta: float
) -> tuple[Array, IntArray, float]:
    """Return values inside their limits with whole multiplicities."""
    sample = check_array(values, "values", ndim=1)
    if not limits[0] < limits[1]:
        raise ValueError(f"`limits` must be (smallest, largest possible value), got {limits!r}.")
    slack = 1e-9 * (limits[1] - limits[0])
    wrong = ~((sample >= limits[0] - slack) & (sample <= limits[1] + slack))
    if wrong.any():
        raise ValueError(
            f"`values` must lie inside limits={limits!r}, got {sample[wrong][0]:.6g} in row {np.argmax(wrong)}."
        )
    repeats = (
        np.ones(len(sample))
        if multiplicities is None
        else check_weights(multiplicities, "multiplicities")
    )
    if len(repeats) != len(sample) or (repeats != np.floor(repeats)).any() or repeats.sum() == 0:
        raise ValueError(
            f"`multiplicities` must be {len(sample)} whole numbers, not all zero, got {repeats[:5].tolist()}..."
        )
    return np.clip(sample, *limits), repeats.astype(np.int64), check_fraction(delta, "delta")
