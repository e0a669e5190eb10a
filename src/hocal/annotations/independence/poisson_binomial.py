"""Tails of sums of independent coins with different biases: how surprising a count is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from hocal._base.typing import Array, IntArray

__all__ = ["Tails", "poisson_binomial_tails"]


EXACT_SIZE = 200  # coins up to which a sum is convolved exactly: the cost grows with the square
_NEARLY_ONE = float(np.nextafter(1.0, 0.0))  # of a zero whose one is below the last digit
_BLOCK = 4096  # sums convolved at a time, so that memory stays below 20 MB
_STEEPEST = 40.0  # of a tilt: beyond, every coin shows the same side in float64
_STEPS = 16  # bracketed Newton steps; twice what sums of 200 coins and more were seen to need


class Tails(NamedTuple):
    """How far out observed sums lie.

    Attributes
    ----------
    lower : ndarray of shape (n_sums,)
        Probability of a sum as small as observed or smaller.
    upper : ndarray of shape (n_sums,)
        Probability of a sum as large as observed or larger.
    """

    lower: Array
    upper: Array

    @property
    def two_sided(self) -> Array:
        """Twice the smaller tail, at most 1: a valid p-value for a change in either direction."""
        return np.asarray(np.minimum(1.0, 2 * np.minimum(self.lower, self.upper)))


def poisson_binomial_tails(probabilities: Array, sums: IntArray, observed: IntArray) -> Tails:
    """Return both tails of many sums of independent coins at once.

    Sums of up to 200 coins are convolved exactly; longer ones use the Lugannani-Rice saddlepoint
    formula for lattices, whose relative error falls with the number of coins.

    Parameters
    ----------
    probabilities : ndarray of shape (n_coins,)
        Probability of a one, strictly between 0 and 1.
    sums : ndarray of shape (n_coins,)
        Number of the sum each coin belongs to.
    observed : ndarray of shape (n_sums,)
        Observed sums; each has at least one coin.

    Returns
    -------
    Tails
        One value per sum.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.annotations.independence.poisson_binomial import poisson_binomial_tails
    >>> coins, sums = np.array([0.5, 0.5, 0.2]), np.array([0, 0, 1])
    >>> tails = poisson_binomial_tails(coins, sums, np.array([2, 0]))
    >>> tails.upper.tolist(), tails.lower.tolist()
    ([0.25, 1.0], [1.0, 0.8])
    """
    order = np.argsort(sums, kind="stable")
    coins = probabilities[order]
    sizes = np.bincount(sums, minlength=len(observed))
    starts = np.cumsum(sizes) - sizes
    lower = np.empty(len(observed))
    upper = np.empty(len(observed))
    ranked = np.argsort(sizes, kind="stable")  # neighbours have similar sizes, so padding is cheap
    n_exact = int(np.searchsorted(sizes[ranked], EXACT_SIZE, side="right"))
    for first in range(0, n_exact, _BLOCK):
        chosen = ranked[first : min(first + _BLOCK, n_exact)]
        lower[chosen], upper[chosen] = _convolve(
            coins, starts[chosen], sizes[chosen], observed[chosen]
        )
    chosen = np.sort(ranked[n_exact:])
    if len(chosen):
        large = np.repeat(sizes > EXACT_SIZE, sizes)
        ones = coins[large]
        zeros = np.minimum(1 - ones, _NEARLY_ONE)
        upper[chosen] = _saddlepoint(ones, sizes[chosen], observed[chosen])
        # Few ones are many zeros: a small tail keeps its digits, as one less the other would not.
        lower[chosen] = _saddlepoint(zeros, sizes[chosen], sizes[chosen] - observed[chosen])
    return Tails(lower, upper)


def _convolve(
    coins: Array, starts: IntArray, sizes: IntArray, observed: IntArray
) -> tuple[Array, Array]:
    """Add one coin to every sum in turn; a sum without coins left gets some that show no one."""
    longest = int(sizes.max())
    columns = np.arange(len(sizes))
    masses = np.zeros((longest + 1, len(sizes)))  # P(sum = row), one column per sum
    masses[0] = 1
    for step in range(longest):
        place = np.minimum(starts + step, len(coins) - 1)
        chance = np.where(step < sizes, coins[place], 0.0)
        flow = masses[: step + 1] - masses[1 : step + 2]
        masses[1 : step + 2] += chance * flow
        masses[0] *= 1 - chance
    below = np.cumsum(masses, axis=0)
    # Summed from its own end, so that small tails keep their digits.
    above = np.cumsum(masses[::-1], axis=0)[::-1]
    return np.minimum(below[observed, columns], 1.0), np.minimum(above[observed, columns], 1.0)


def _saddlepoint(coins: Array, sizes: IntArray, observed: IntArray) -> Array:
    """Return P(sum >= observed) by the formula with Daniels' second continuity correction."""
    starts = np.cumsum(sizes) - sizes
    target = observed.astype(np.float64) - 0.5
    tilt = _solve_tilt(coins, sizes, starts, target)
    spread = np.repeat(tilt, sizes)
    cumulant = np.add.reduceat(np.logaddexp(np.log1p(-coins), np.log(coins) + spread), starts)
    tilted = _tilted(coins, spread)
    deviation = np.sqrt(np.add.reduceat(tilted * (1 - tilted), starts))
    root = np.sign(tilt) * np.sqrt(np.maximum(2 * (tilt * target - cumulant), 0))
    # the formula is 0 / 0 at the mean, where the tail is near one half
    central = np.abs(root) < 1e-4
    with np.errstate(divide="ignore", invalid="ignore"):
        correction = (
            np.exp(-(root**2) / 2)
            / np.sqrt(2 * np.pi)
            * (1 / (2 * np.sinh(tilt / 2) * deviation) - 1 / root)
        )
    tail = np.where(central, 0.5, ndtr(-root) + correction)
    tail = np.where(observed > sizes, 0.0, np.clip(tail, 0, 1))
    # Known exactly, and the formula's weakest points.
    any_one = -np.expm1(np.add.reduceat(np.log1p(-coins), starts))
    all_ones = np.exp(np.add.reduceat(np.log(coins), starts))
    tail = np.where(observed == 1, any_one, np.where(observed == sizes, all_ones, tail))
    return np.where(observed <= 0, 1.0, tail)


def _solve_tilt(coins: Array, sizes: IntArray, starts: IntArray, target: Array) -> Array:
    """Find the tilt under which each sum has its target as mean, by Newton steps in a bracket."""
    low = np.full(len(sizes), -_STEEPEST)
    high = np.full(len(sizes), _STEEPEST)
    tilt = np.zeros(len(sizes))
    for _ in range(_STEPS):
        tilted = _tilted(coins, np.repeat(tilt, sizes))
        gap = np.add.reduceat(tilted, starts) - target
        low = np.where(gap < 0, tilt, low)
        high = np.where(gap < 0, high, tilt)
        with np.errstate(divide="ignore", invalid="ignore"):  # a target beyond all sums has no root
            newton = tilt - gap / np.add.reduceat(tilted * (1 - tilted), starts)
        # A root found to the last digit must not be left.
        inside = (newton > low - 1e-9) & (newton < high + 1e-9)
        tilt = np.where(inside, newton, (low + high) / 2)
    return tilt


def _tilted(coins: Array, tilt: Array) -> Array:
    """Return the probability of a one after tilting by exp(tilt)."""
    return coins / (coins + (1 - coins) * np.exp(-tilt))
