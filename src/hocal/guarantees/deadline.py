"""Bets that must succeed by a deadline: narrow limits for a mean at a fixed number of draws.

A gambler who doubts that a mean is as large as m multiplies a capital by 1 + stake * (m - x) at
each draw x. If the mean is m or more, the capital is worth at most 1 on average, so it reaches
1/delta with chance delta at most (Ville 1939; Waudby-Smith and Ramdas 2024). Stakes may depend on
what was drawn before. A gambler who knows how many draws are left need not end rich, only reach
1/delta: the best stakes are those that pay out like a bet on the sum of all draws (Browne 1999).
With a normal law for the sum of the draws to come, of which p = delta * capital is the chance that
is left, the stake is phi(d) / (p * deviation), d the p-quantile. Whatever the law really is, the
bets are fair; where it is about normal, the limits are about those of a normal law.

Such bets need an order of the draws, and a histogram has none: `hocal.guarantees.orders` has random
ones. Where there are several, only what all of them refute is refuted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from hocal._base.typing import Array, IntArray, Mask
from hocal.guarantees.orders import Order

__all__ = ["Moments", "Sequences", "n_blocks", "refuted", "shuffled", "stakes", "upper_ends"]

_MOST_BLOCKS = 64  # stakes change so often; twice as often narrows an interval by a hundredth
_FEWEST_BLOCKS = 16
_SAFE = 0.99  # of the largest stake that no single draw can ruin
# Draws that a prior belief about the variance counts for: that of a coin, which is the largest
# possible one, or that of a guess from other data, and a little doubt about it, a coin again.
_BELIEF_DRAWS = 8.0
_DOUBT_DRAWS = 1.0
_TILT = 0.25  # of the way from the draws' own variance to that of a law with the candidate's mean
_LEAST_VARIANCE = 0.25  # of the variance so far, that tilting may leave
_COUNTED = 5  # rare draws that are counted one by one
_TINY = 1e-300
_SURE = 1 - 1e-9  # chance of success above which it is certain up to rounding
_HOPELESS = 1e-12
# Candidates for the limit lie at these multiples of the error that is expected, then on the way to
# the largest possible value; the interval between two of them is cut twice more.
_MULTIPLES = np.linspace(0.4, 2.2, 10)
_FAR = np.array([0.1, 0.4, 1.0])
_CUTS = (8, 6)
_QUANTILE = 2.0  # normal quantile of a two-sided 95% interval, to guess the size of the error
_CORRECTION = 4.0  # range / n, to guess it for rare events


class Sequences(NamedTuple):
    """Draws of several statistics, each in several orders, cut into blocks with one stake each.

    Attributes
    ----------
    values, repeats : ndarray of shape (n_blocks, n_statistics, n_orders, n_values)
        What was drawn in each block, and how often; padded with values that did not occur.
    left : ndarray of shape (n_blocks, n_statistics)
        Draws that are left before each block.
    low, high : ndarray of shape (n_statistics,)
        Smallest and largest possible values.
    variance : ndarray of shape (n_statistics,)
        Guesses of the variances, infinite where there is none.
    """

    values: Array
    repeats: Array
    left: Array
    low: Array
    high: Array
    variance: Array


def n_blocks(n_draws: int) -> int:
    """Return how often the stakes of so many draws change."""
    return min(max(n_draws // 2, _FEWEST_BLOCKS), _MOST_BLOCKS)


def shuffled(
    histograms: list[tuple[Array, IntArray]],
    low: Array,
    high: Array,
    deviation: Array,
    orders: list[Order],
) -> Sequences:
    """Return histograms (values, repeats) of several statistics as sequences of draws.

    All have as many orders, each from its own seed.
    """
    most = max(int(repeats.sum()) for _, repeats in histograms)
    places = np.linspace(0, 1, n_blocks(most) + 1)
    dealt = []
    left = []
    for (values, repeats), order in zip(histograms, orders, strict=True):
        n_draws = int(repeats.sum())
        # Blocks become smaller: stakes change faster near the deadline.
        edges = np.floor(n_draws * (1 - (1 - places) ** 2) + 1e-9)  # n_draws at the end
        left.append(n_draws - edges[:-1])
        generator = np.random.default_rng(order.seed)
        sizes = np.diff(edges).astype(np.int64)
        dealt.append([_deal(values, repeats, sizes, generator) for _ in range(order.n_orders)])
    width = max(parts[0].shape[1] for each in dealt for parts in each)
    stacked = np.zeros((2, len(sizes), len(dealt), len(dealt[0]), width))
    for row, each in enumerate(dealt):
        for column, parts in enumerate(each):
            for which, part in enumerate(parts):
                stacked[which, :, row, column, : part.shape[1]] = part
    return Sequences(stacked[0], stacked[1], np.stack(left, axis=1), low, high, deviation**2)


def _deal(
    values: Array, repeats: IntArray, sizes: IntArray, generator: np.random.Generator
) -> tuple[Array, Array]:
    """Deal the draws of a histogram out to blocks at random; return values and repeats of each."""
    drawn = generator.permutation(np.repeat(np.arange(len(values)), repeats))
    block = np.repeat(np.arange(len(sizes)), sizes)
    keys, counts = np.unique(block * len(values) + drawn, return_counts=True)
    block = keys // len(values)
    starts = np.searchsorted(block, np.arange(len(sizes)))
    place = np.arange(len(keys)) - starts[block]
    shape = (len(sizes), int(place.max()) + 1)
    of_block = np.zeros(shape)
    how_often = np.zeros(shape)
    of_block[block, place] = values[keys % len(values)]
    how_often[block, place] = counts
    return of_block, how_often


def refuted(draws: Sequences, candidates: Array, delta: Array) -> Mask:
    """Tell which candidates, (n_statistics, n_candidates), all orders find too large for the mean.

    If the mean is m or more, an order refutes m with chance delta at most, (n_statistics,). A
    candidate is below the largest possible value.
    """
    least = _HOPELESS * (draws.high - draws.low)[:, None]
    below = np.maximum(candidates - draws.low[:, None], least)[:, None]
    above = np.maximum(draws.high[:, None] - candidates, least)[:, None]
    coin = below * above  # the largest variance that a mean leaves possible
    shape = (len(candidates), draws.values.shape[2], candidates.shape[1])
    seen = Moments.before(draws.variance[:, None, None], coin, below - above, shape)
    largest = _SAFE / above
    goal = -np.log(delta)[:, None, None]
    log_capital = np.zeros(shape)
    done = np.zeros(shape, dtype=bool)
    for values, repeats, left in zip(draws.values, draws.repeats, draws.left, strict=True):
        stake = stakes(np.exp(log_capital - goal), left[:, None, None], seen, coin)
        distance = candidates[:, None, :, None] - values[:, :, None]  # last axis: values
        gains = np.minimum(stake, largest)[..., None] * distance
        often = repeats[:, :, None]
        log_capital = log_capital + (often * np.log1p(gains, where=often > 0, out=gains)).sum(-1)
        seen = seen.add(distance, often)
        done |= log_capital >= goal
    return np.asarray(done.all(axis=1))


class Moments(NamedTuple):
    """Sums of the powers of m - x so far, with what was believed beforehand."""

    number: Array
    sums: Array
    squares: Array
    cubes: Array

    @classmethod
    def before(
        cls, variance: Array, coin: Array, skew: Array, shape: tuple[int, int, int]
    ) -> Moments:
        """Return the belief: a guess of the variance, or that of a coin, and a coin's skewness."""
        guessed = np.isfinite(variance)
        doubt = np.where(guessed, _DOUBT_DRAWS, 0.0)
        believed = np.minimum(variance, coin)  # infinite without a guess
        squares = np.broadcast_to(_BELIEF_DRAWS * believed + doubt * coin, shape)
        number = _BELIEF_DRAWS + doubt
        return cls(number, np.zeros(shape), squares, squares * skew)

    def add(self, distance: Array, often: Array) -> Moments:
        """Return the sums with more draws."""
        first = often * distance
        second = first * distance
        return Moments(
            self.number + often.sum(axis=-1),
            self.sums + first.sum(axis=-1),
            self.squares + second.sum(axis=-1),
            self.cubes + (second * distance).sum(axis=-1),
        )

    def laws(self, coin: Array) -> tuple[_Law, _Law]:
        """Return laws like that of m - x so far, for sums and for counts."""
        return _laws(
            self.sums / self.number, self.squares / self.number, self.cubes / self.number, coin
        )


class _Law(NamedTuple):
    """A law of two values with mean zero, like that of m - x."""

    gain: Array
    loss: Array

    @classmethod
    def of(cls, variance: Array, skew: Array) -> _Law:
        """Return that of a variance, and of the loss less the gain."""
        root = np.sqrt(skew**2 / 4 + variance)
        other = variance / np.maximum(root + np.abs(skew) / 2, _TINY)
        larger = root + np.abs(skew) / 2
        return cls(np.where(skew > 0, other, larger), np.where(skew > 0, larger, other))


def _laws(mean: Array, square: Array, cube: Array, coin: Array) -> tuple[_Law, _Law]:
    """Return laws like that of m - x so far, for sums and for counts.

    Draws with another mean have another variance: tilted to the mean m, it changes by their third
    moment over their second. Counts of rare draws have to go all the way, sums do better with less.
    """
    variance = np.maximum(square - mean**2, _HOPELESS * coin)
    third = cube - 3 * mean * square + 2 * mean**3
    skew = -third / variance
    least = _LEAST_VARIANCE * variance
    added = np.clip(variance + _TILT * skew * mean, least, coin)
    counted = np.clip(variance + skew * mean, least, coin)
    return _Law.of(added, skew), _Law.of(counted, skew)


def stakes(chance: Array, left: Array, seen: Moments, coin: Array) -> Array:
    """Return the stakes of gamblers with a chance of success, by what was drawn and what is left.

    Parameters
    ----------
    chance : ndarray of shape (n_statistics, n_orders, n_candidates)
        What the capital is of what it must become.
    left : ndarray of shape (n_statistics, 1, 1)
        Draws that are left.
    seen : Moments
        Of the draws so far.
    coin : ndarray of shape (n_statistics, 1, n_candidates)
        Largest possible variances.
    """
    possible = np.clip(chance, _HOPELESS, _SURE)
    return _stake(possible, np.maximum(left, 1), *seen.laws(coin))


def _stake(chance: Array, left: Array, added: _Law, counted: _Law) -> Array:
    """Return the stake that follows the price of a bet on the sum of all draws.

    The rise of a normal price between a loss and a gain; or, where few of the rarer of the two
    decide, what one of them does to the price of a bet on their number.
    """
    deviation = np.sqrt(added.gain * added.loss * left)
    quantile = special.ndtri(chance)
    best = special.ndtr(quantile + added.gain / deviation)
    worst = special.ndtr(quantile - added.loss / deviation)
    slope = (best - worst) / (added.gain + added.loss)
    rarer = np.minimum(*counted) / (counted.gain + counted.loss)
    few = np.where(counted.gain < counted.loss, chance, 1 - chance)
    after = _after_rare(few, -left * np.log1p(-rarer))
    jump = np.abs(few - after) / np.maximum(*counted)
    return np.asarray(np.where(after >= 0, jump, slope) / chance)


def _after_rare(chance: Array, expected: Array) -> Array:
    """Return what is left, after a rare draw, of a chance that no more than some come.

    With a Poisson law, and between two whole numbers of draws in proportion; -1 for large numbers.
    """
    term = np.exp(-expected)
    before = np.zeros_like(term)  # chance of fewer draws than the one looked at, and of one less
    earlier = np.zeros_like(term)
    after = np.full(np.broadcast_shapes(chance.shape, term.shape), -1.0)
    for number in range(1, _COUNTED + 1):
        part = (chance - before) / np.maximum(term, _TINY)
        inside = (part < 1) & (after < 0)
        after = np.where(inside, earlier + part * (before - earlier), after)
        earlier, before, term = before, before + term, term * expected / number
    return after


def upper_ends(draws: Sequences, mean: Array, deviation: Array, delta: Array) -> Array:
    """Return numbers that the means exceed with chance at most delta, each on its own.

    All candidates above them that are looked at are refuted. `mean` and `deviation` of the draws
    say where to look.
    """
    n_draws = np.maximum(draws.left[0], 1)
    room = draws.high - mean
    error = _QUANTILE * deviation / np.sqrt(n_draws)
    error = error + _CORRECTION * (draws.high - draws.low) / n_draws
    near = mean[:, None] + np.minimum(error, room / 3)[:, None] * _MULTIPLES
    last = near[:, -1:]
    far = last + (draws.high[:, None] - last) * _FAR
    grid = np.concatenate([mean[:, None], near, far], axis=1)
    low, high = _bracket(draws, grid, delta)
    for n_cuts in _CUTS:
        cuts = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, n_cuts + 2)
        low, high = _bracket(draws, cuts, delta)
    return high


def _bracket(draws: Sequences, grid: Array, delta: Array) -> tuple[Array, Array]:
    """Return the last of the rising candidates that is not refuted, and the next one.

    The first is taken not to be refuted, and the last one to be.
    """
    inner = grid[:, 1:-1]
    kept = ~refuted(draws, inner, delta)
    place = kept.shape[1] - np.argmax(kept[:, ::-1], axis=1)  # of the last one kept, counted from 1
    place = np.where(kept.any(axis=1), place, 0)
    rows = np.arange(len(grid))
    return grid[rows, place], grid[rows, place + 1]
