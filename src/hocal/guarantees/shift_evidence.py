"""Evidence that the mean of a bounded statistic has changed, valid whenever one looks.

A gambler who doubts that the mean of new values is at most m multiplies a capital by
1 + stake * (x - m) at each new value x; one who doubts that the mean of the calibration values is
at least m multiplies another by 1 + stake * (m - x) at each of those. If both have the same mean,
then at that m both games are fair, and so is the product of the two capitals. Nobody knows that m,
so what counts is the smallest product over all m: it never exceeds the fair one, and therefore
reaches 1 / delta with chance delta at most, however often one looks (Ville). No tolerance has to be
chosen: where calibration values are few, the smallest product stays small by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from hocal._base.typing import Array, Index, IntArray, Mask

__all__ = [
    "N_MEANS",
    "SHARES",
    "STAKES",
    "Means",
    "Wealth",
    "learn_means",
    "learn_means_of",
    "split_by_owner",
    "uninvested",
]

# Of the new values' bets, in units of the largest that cannot lose everything; neighbours differ by
# a factor of three, which costs little. Most changes that matter ask for the larger two.
STAKES = np.array([0.1, 0.3, 0.97])
SHARES = np.array([0.2, 0.4, 0.4])  # of the capital with each stake
LARGEST = 0.5  # candidate mean; beyond it values in [-1, 1] leave little room for bets
# Candidate means, in standard errors above that of the calibration values: from 0, below which
# nothing is smaller, to where the calibration values themselves refute a candidate.
OFFSETS = np.array([0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 8])
N_MEANS = len(OFFSETS)
# Standard deviations for which the stakes of the calibration bets are best.
DEVIATIONS = np.array([0.1, 0.2, 0.4])
FACTOR = np.sqrt(2 * np.log(20))  # of the best stake against a chance of 1 in 20
BLOCK = 4_096  # calibration values at once, some 2 MB
# New values at once. A factor lies between 1 - .97 and 1 + .97 * 1.5, so that products of so many
# lie between exp(-450) and exp(120), within the range of floats.
AT_ONCE = 128
AT_ONCE_NUMBERS = 1 << 18  # capitals at once, 2 MB: they stay in the cache
FARTHEST = 650.0  # logarithm by which a product is above the least, beyond which it never is that
WAIT = 50.0  # items after which half of the capital has begun to bet, roughly
SIGNS = np.array([1.0, -1.0])  # a rise, and a fall as the rise of the mirrored values


class Means(NamedTuple):
    """What calibration values say about means, one row for each mean that is watched."""

    n_values: IntArray  #: (n_rows,)
    centre: Array  #: (n_rows,) mean of the calibration values
    candidates: Array  #: (n_rows, 2, n_means) for a rise, and for a fall of the mirrored values
    log_doubt: Array  #: (n_rows, 2, n_means) log-capital against a mean as large as a candidate

    def take(self, rows: Index | slice) -> Means:
        """Return some of the rows."""
        parts: list[Any] = [part[rows] for part in self]
        return Means(*parts)


class Wealth(NamedTuple):
    """Capital of the bets on new values, of one mean in each row."""

    log_invested: Array  #: (n_rows, 2, n_means, n_stakes)
    walk: Array  #: (n_rows, 2, n_stakes) log-capital of bets against the centre from the start on
    lowest: Array  #: (n_rows, 2, n_stakes) smallest value of `walk` so far
    since: IntArray  #: (n_rows, 2, n_stakes) number of the item after which it was smallest
    n_values: IntArray  #: (n_rows,)

    @classmethod
    def start(cls, n_rows: int) -> Wealth:
        """Return the capital before any value."""
        shape = (n_rows, 2, len(STAKES))
        return cls(
            np.full((n_rows, 2, N_MEANS, len(STAKES)), -np.inf),
            np.zeros(shape),
            np.zeros(shape),
            np.zeros(shape, dtype=np.int64),
            np.zeros(n_rows, dtype=np.int64),
        )

    def take(self, rows: Index | slice) -> Wealth:
        """Return some of the rows."""
        parts: list[Any] = [part[rows] for part in self]
        return Wealth(*parts)

    def put(self, rows: Index | slice, other: Wealth) -> None:
        """Replace some of the rows."""
        for part, new in zip(self, other, strict=True):
            part[rows] = new

    def advance(self, means: Means, values: Array, numbers: Index) -> tuple[Wealth, Array]:
        """Bet on further values, one after the other.

        Parameters
        ----------
        means : Means
            What calibration values say, in the same rows.
        values : ndarray of shape (n_times, n_rows)
            New values in [-1, 1], in their order; NaN where a row has none.
        numbers : ndarray of shape (n_times, n_rows)
            Number of the item that each value belongs to, counted from 1.

        Returns
        -------
        Wealth
            After the last value.
        ndarray of shape (n_times, n_rows, 2)
            Logarithm of the evidence for a rise and for a fall, after each value.
        """
        wealth = self
        logs = np.empty((*values.shape, 2))
        step = min(max(AT_ONCE_NUMBERS // wealth.log_invested.size, 1), AT_ONCE)
        for start in range(0, len(values), step):
            part = slice(start, start + step)
            wealth, logs[part] = wealth._advance(means, values[part], numbers[part])
        return wealth, logs

    def dated(self, row: int, direction: int) -> int:
        """Return the item after which bets have mostly won, by the stake that has won most since.

        Where nothing has changed yet, a walk falls; the last time that it was lowest is the most
        likely one of a change.
        """
        won = self.walk[row, direction] - self.lowest[row, direction]
        return int(self.since[row, direction, won.argmax()])

    def _advance(self, means: Means, values: Array, numbers: Index) -> tuple[Wealth, Array]:
        """Bet on at most AT_ONCE values of each row."""
        present = ~np.isnan(values)
        times = self.n_values + np.cumsum(np.vstack([np.zeros_like(present[:1]), present]), axis=0)
        idle = uninvested(times)  # (1 + n_times, n_rows)
        factors = _factors(means.candidates.T, values, present)
        walk = np.multiply.accumulate(factors[:, :, 0])  # (n_times, n_stakes, 2, n_rows)
        lowest, since = self._lowest(walk, numbers)
        before = self.log_invested.T
        scale = np.maximum(before, 0.0)
        capitals = _invest(np.exp(before - scale), scale, factors, -np.diff(idle, axis=0))
        logs = _least_product(capitals, scale, idle[1:], means.log_doubt.T)
        with np.errstate(divide="ignore"):  # a row that has had no value yet has nothing at stake
            invested = scale + np.log(capitals[-1])
        walked = self.walk + np.log(walk[-1]).T
        return Wealth(invested.T, walked, lowest, since, times[-1]), logs

    def _lowest(self, walk: Array, numbers: Index) -> tuple[Array, IntArray]:
        """Return the smallest log-capital so far and the item after which it was smallest."""
        place = walk.argmin(axis=0).T  # (n_rows, 2, n_stakes)
        found = self.walk + np.log(walk.min(axis=0)).T
        lower = found < self.lowest
        rows = np.arange(numbers.shape[1])[:, None, None]
        since = np.where(lower, numbers[place, rows], self.since)
        return np.where(lower, found, self.lowest), since


def _factors(candidates: Array, values: Array, present: Mask) -> Array:
    """Return by what bets multiply a capital: (n_times, n_stakes, n_means, 2, n_rows)."""
    stakes = STAKES[:, None, None, None] / (1 + candidates[-1])  # a value is -1 at the least
    moving = stakes * SIGNS[:, None] * values[:, None, None, None]
    factors = (1 - stakes * candidates) + moving
    if not present.all():
        np.moveaxis(factors, -1, 1)[~present] = 1.0
    return np.asarray(factors)


def _invest(capital: Array, scale: Array, factors: Array, starting: Array) -> Array:
    """Return the capital after each value, over exp(scale); it takes the place of the factors.

    With each value a share of what was idle begins to bet.
    """
    unit = np.exp(-scale)
    for factor, new in zip(factors, starting, strict=True):
        np.multiply(capital + new * unit, factor, out=factor)
        capital = factor
    return factors


def uninvested(times: Array | IntArray) -> Array:
    """Return the share of the capital that has not begun to bet after so many values.

    1 / (1 + log(1 + t / 50)): every value may be the first after a change, and late changes cost
    little more than early ones.
    """
    return np.asarray(1 / (1 + np.log1p(np.asarray(times) / WAIT)))


def learn_means(values: Array, owners: Index, n_rows: int) -> Means:
    """Return what calibration values in [-1, 1] say about the mean of each owner.

    Parameters
    ----------
    values : ndarray of shape (n_values,)
        Calibration values.
    owners : ndarray of shape (n_values,)
        The row that each belongs to.
    n_rows : int
        How many rows there are; one without values can never give evidence.
    """
    return learn_means_of(split_by_owner(values, owners, n_rows), n_rows)


def split_by_owner(values: Array, owners: Index, n_rows: int) -> list[Array]:
    """Return the values of each row, in the order in which they come."""
    order = np.argsort(owners, kind="stable")
    return np.split(values[order], np.searchsorted(owners[order], np.arange(1, n_rows)))


def learn_means_of(parts: Iterable[Array], n_rows: int) -> Means:
    """Do as `learn_means` does, for the values of each row."""
    candidates = np.zeros((n_rows, 2, N_MEANS))
    log_doubt = np.zeros((n_rows, 2, N_MEANS))
    centre = np.zeros(n_rows)
    counts = np.zeros(n_rows, dtype=np.int64)
    for row, part in enumerate(parts):
        counts[row] = len(part)
        if len(part):
            centre[row] = part.mean()
            candidates[row] = _candidates(part)
            log_doubt[row] = _doubt(part, candidates[row])
    return Means(counts, centre, candidates, log_doubt)


def _candidates(values: Array) -> Array:
    """Return candidate means from the mean of the values upwards, and of the mirrored ones."""
    error = np.sqrt((values.var() + 1 / len(values)) / len(values))  # a pseudo-value: none is zero
    above = SIGNS[:, None] * values.mean() + error * OFFSETS
    return np.asarray(np.clip(above, -LARGEST, LARGEST))


def _doubt(values: Array, candidates: Array) -> Array:
    """Return the log-capital of bets that the mean of the values is below each candidate."""
    safe = STAKES[-1] / (1 - candidates[:, :1, None])  # a mirrored value is 1 at the most
    stakes = np.minimum(FACTOR / (DEVIATIONS * np.sqrt(len(values))), safe)
    logs = np.zeros((*candidates.shape, len(DEVIATIONS)))
    for start in range(0, len(values), BLOCK):
        block = values[start : start + BLOCK, None, None]
        below = candidates - SIGNS[:, None] * block
        logs += np.log1p(stakes * below[..., None]).sum(axis=0)
    return np.asarray(np.logaddexp.reduce(logs, axis=-1) - np.log(len(DEVIATIONS)))


def _least_product(capitals: Array, scale: Array, idle: Array, log_doubt: Array) -> Array:
    """Return the smallest product of both capitals over all means, (n_times, n_rows, 2), in logs.

    Between two candidates the new values' capital is at least that of the upper one, and the
    calibration values' at least that of the lower one. Half of the latter is never at stake.
    """
    old = np.logaddexp(0.0, log_doubt) - np.log(2)  # (n_means, 2, n_rows)
    below = np.concatenate([np.full_like(old[:1], -np.log(2)), old[:-1]])
    largest = scale.max(axis=0)
    sizes = largest + below
    least = sizes.min(axis=0)
    factor = np.exp(np.minimum(sizes - least, FARTHEST))
    shares = SHARES[:, None, None, None] * np.exp(scale - largest) * factor
    new = np.einsum("tsmdr,smdr->tmdr", capitals, shares)
    new += idle[:, None, None] * (np.exp(-largest) * factor)
    logs = least + np.log(new.min(axis=1))
    beyond = np.log(idle)[:, None] + old[-1]
    return np.asarray(np.minimum(logs, beyond).swapaxes(1, 2))
