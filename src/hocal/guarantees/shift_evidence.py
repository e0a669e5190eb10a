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

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hocal._base.typing import Array, Index, IntArray

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
# New values at once. A factor lies between 1 - .97 and 1 + .97 * 1.5, so that the logarithms of
# products of so many lie within 600 of each other, and their exponentials within the range of
# floats.
AT_ONCE = 128
WAIT = 50.0  # items after which half of the capital has begun to bet, roughly
SIGNS = np.array([1.0, -1.0])  # a rise, and a fall as the rise of the mirrored values


class Means(NamedTuple):
    """What calibration values say about means, one row for each mean that is watched."""

    n_values: IntArray  #: (n_rows,)
    centre: Array  #: (n_rows,) mean of the calibration values
    candidates: Array  #: (n_rows, 2, n_means) for a rise, and for a fall of the mirrored values
    log_doubt: Array  #: (n_rows, 2, n_means) log-capital against a mean as large as a candidate


class Wealth(NamedTuple):
    """Capital of the bets on new values of one mean."""

    log_invested: Array  #: (2, n_means, n_stakes)
    walk: Array  #: (2, n_stakes) log-capital of bets against the centre from the first value on
    lowest: Array  #: (2, n_stakes) smallest value of `walk` so far
    since: IntArray  #: (2, n_stakes) number of the item after which it was smallest
    n_values: int

    @classmethod
    def start(cls) -> Wealth:
        """Return the capital before any value."""
        shape = (2, len(STAKES))
        return cls(
            np.full((2, N_MEANS, len(STAKES)), -np.inf),
            np.zeros(shape),
            np.zeros(shape),
            np.zeros(shape, dtype=np.int64),
            0,
        )

    def advance(
        self, means: Means, row: int, values: Array, numbers: Index
    ) -> tuple[Wealth, Array]:
        """Bet on further values, one after the other.

        Parameters
        ----------
        means : Means
            What calibration values say.
        row : int
            Which mean the values are about.
        values : ndarray of shape (n_values,)
            New values in [-1, 1], in their order.
        numbers : ndarray of shape (n_values,)
            Number of the item that each value belongs to, counted from 1.

        Returns
        -------
        Wealth
            After the last value.
        ndarray of shape (n_values, 2)
            Logarithm of the evidence for a rise and for a fall, after each value.
        """
        wealth, logs = self, []
        for start in range(0, len(values), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            wealth, found = wealth._advance(means, row, values[part], numbers[part])
            logs.append(found)
        return wealth, np.concatenate(logs)

    def dated(self, direction: int) -> int:
        """Return the item after which bets have mostly won, by the stake that has won most since.

        Where nothing has changed yet, a walk falls; the last time that it was lowest is the most
        likely one of a change.
        """
        won = self.walk[direction] - self.lowest[direction]
        return int(self.since[direction, won.argmax()])

    def _advance(
        self, means: Means, row: int, values: Array, numbers: Index
    ) -> tuple[Wealth, Array]:
        """Bet on at most AT_ONCE values."""
        candidates = means.candidates[row]
        doubts = SIGNS[:, None] * values[:, None, None] - candidates
        stakes = STAKES / (1 + candidates[:, -1:, None])  # a value is -1 at the least
        gains = np.log1p(stakes * doubts[..., None])  # (n_values, 2, n_means, n_stakes)
        invested = self._invest(gains)
        times = self.n_values + np.arange(1, len(values) + 1)
        logs = _least_product(invested, uninvested(times), means.log_doubt[row])
        walk = np.concatenate([self.walk[None], self.walk + np.cumsum(gains[:, :, 0], axis=0)])
        lowest, since = self._lowest(walk, numbers)
        wealth = Wealth(invested[-1], walk[-1], lowest, since, int(times[-1]))
        return wealth, logs

    def _invest(self, gains: Array) -> Array:
        """Return log-capital after each value, given that a share of it begins to bet with each.

        The capital A_t = (A_(t-1) + new_t) f_t divided by the product of all factors f so far grows
        by new_t over the product before t.
        """
        times = self.n_values + np.arange(len(gains) + 1)
        starts = np.log(-np.diff(uninvested(times)))[:, None, None, None]
        product = np.cumsum(gains, axis=0)
        terms = np.concatenate([self.log_invested[None], starts - (product - gains)])
        largest = terms.max(axis=0)
        sums = np.cumsum(np.exp(terms - largest), axis=0)[1:]
        return np.asarray(product + largest + np.log(sums))

    def _lowest(self, walk: Array, numbers: Index) -> tuple[Array, IntArray]:
        """Return the smallest log-capital so far and the item after which it was smallest."""
        place = walk[1:].argmin(axis=0)
        found = np.take_along_axis(walk[1:], place[None], axis=0)[0]
        lower = found < self.lowest
        since = np.where(lower, np.asarray(numbers, dtype=np.int64)[place], self.since)
        return np.where(lower, found, self.lowest), since


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
    return learn_means_of(split_by_owner(values, owners, n_rows))


def split_by_owner(values: Array, owners: Index, n_rows: int) -> list[Array]:
    """Return the values of each row, in the order in which they come."""
    order = np.argsort(owners, kind="stable")
    return np.split(values[order], np.searchsorted(owners[order], np.arange(1, n_rows)))


def learn_means_of(parts: Sequence[Array]) -> Means:
    """Do as `learn_means` does, for the values of each row."""
    n_rows = len(parts)
    candidates = np.zeros((n_rows, 2, N_MEANS))
    log_doubt = np.zeros((n_rows, 2, N_MEANS))
    centre = np.zeros(n_rows)
    for row, part in enumerate(parts):
        if len(part):
            centre[row] = part.mean()
            candidates[row] = _candidates(part)
            log_doubt[row] = _doubt(part, candidates[row])
    counts = np.array([len(part) for part in parts], dtype=np.int64)
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


def _least_product(invested: Array, idle: Array, log_doubt: Array) -> Array:
    """Return the smallest product of both capitals over all means, (n_values, 2), in logs.

    Between two candidates the new values' capital is at least that of the upper one, and the
    calibration values' at least that of the lower one. Half of the latter is never at stake.
    """
    largest = np.maximum(invested.max(axis=-1), 0.0)
    betting = np.exp(invested - largest[..., None]) @ SHARES
    idling = idle[:, None, None] * np.exp(-largest)
    new = largest + np.log(betting + idling)  # (n_values, 2, n_means)
    beyond = np.broadcast_to(np.log(idle)[:, None, None], (*new.shape[:2], 1))
    new = np.concatenate([new, beyond], axis=2)
    old = np.logaddexp(0.0, log_doubt) - np.log(2)
    old = np.concatenate([np.full((2, 1), -np.log(2)), old], axis=1)  # below the first: no doubt
    return np.asarray((new + old).min(axis=2))
