"""Lower limits of the entropy of a mean label distribution, less the mean of a statistic Z.

If the mean label distribution is m, the loss -<shares, log m> of an item's label shares has the
mean H(m). A gambler who doubts that H(m) - E[Z] is as small as h multiplies a capital by 1 + stake
* (loss - Z - h) at each item, as in `hocal.guarantees.deadline`; for the true m it reaches 1/delta
with chance delta at most. Which m is true is not known, and need not be guessed: where stakes are
at most 1 / (1 + h + Z), the logarithm of the capital is convex in m. For along a line m + t v the
loss has the slope -sum_j share_j v_j / m_j and the curvature sum_j share_j (v_j / m_j)^2, which is
no less than the square of the slope, so that log(1 + stake * y), y = loss - Z - h, curves by at
least stake * slope^2 * (1 - stake / (1 + stake * y)) / (1 + stake * y) >= 0. A convex function is
known to lie above its tangents: from any m, the least capital over all m follows. If that is
1/delta, no m with such an entropy explains the labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hocal._base.typing import Array, Mask
from hocal.guarantees.deadline import Moments, stakes
from hocal.guarantees.dealt_cells import DealtCells, Offset, dealt_cells
from hocal.guarantees.samples import Sample

__all__ = ["lower_entropies"]

_GUESS_ITEMS = 10.0  # that the guess counts for at first, among what m is taken to be, ...
_LEAST_GUESS = 0.5  # ... and at the end: the least capital is that of the bets' own mean
_SPARE = 0.3  # of the logarithm of the capital, above what is needed: the last bets move its least
_SAFE = 0.99  # of the largest stake
_STEPS = 6  # towards the m of the least capital; the tangents there say how little is missing
_HOPELESS = 1e-12
# Candidates for the limit lie at these multiples of the error that is expected below the entropy of
# the mean, and on the way to 0; the interval between two of them is cut twice more.
_MULTIPLES = np.linspace(2.2, 0.4, 10)
_FAR = np.array([0.0, 0.5, 0.85])
_CUTS = (8, 6)
_QUANTILE = 2.0  # normal quantile of a two-sided 95% interval
_CORRECTION = 2.0  # range / n, for rare events


def lower_entropies(
    samples: Sequence[Sample], guesses: Array, offsets: Sequence[Offset], delta: float
) -> Array:
    """Return numbers above which H(m) - E[Z] is, each except with chance delta.

    Parameters
    ----------
    samples : sequence of Sample
        Independent items of each cell, for which `can_be_dealt` holds.
    guesses : ndarray of shape (n_cells, n_classes)
        Positive label distributions, from other data. Any are valid, good ones raise the limits.
    offsets : sequence of Offset
        Z of each cell's items; H(m) - E[Z] is known to be at least 0, or 0 is a valid limit of
        what is wanted.
    delta : float
        Allowed chance of failure of each.

    Returns
    -------
    ndarray of shape (n_cells,)
        Limits, at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.guarantees.dealt_cells import Offset
    >>> from hocal.guarantees.entropy_bets import lower_entropies
    >>> from hocal.guarantees.samples import Sample
    >>> sample = Sample(np.array([[1, 0], [0, 1]]), np.array([450.0, 50.0]))
    >>> guess = np.array([[0.85, 0.15]])
    >>> lower_entropies([sample], guess, [Offset.none(sample)], 0.025).round(2).tolist()
    [0.26]
    """
    result = np.zeros(len(samples))
    for places, cells in dealt_cells(samples, guesses, offsets):
        result[places] = _ends(cells, delta)
    return result


def _ends(table: DealtCells, delta: float) -> Array:
    """Return the largest of the rising candidates below which all that are looked at are refuted.

    0 is a limit without looking.
    """
    centre = table.centre
    n_items = table.left[0]
    error = _QUANTILE * table.deviation / np.sqrt(n_items)
    error = error + _CORRECTION * (table.high - table.low + 1) / n_items
    near = centre[:, None] - error[:, None] * _MULTIPLES
    near = np.maximum(near, centre[:, None] * (1 - _MULTIPLES / _MULTIPLES[0]))
    far = near[:, :1] * _FAR
    low, high = _bracket(table, np.concatenate([far, near, centre[:, None]], axis=1), delta)
    for n_cuts in _CUTS:
        cuts = low[:, None] + (high - low)[:, None] * np.linspace(0, 1, n_cuts + 2)
        low, high = _bracket(table, cuts, delta)
    return np.where(centre > 0, low, 0.0)


def _bracket(table: DealtCells, grid: Array, delta: float) -> tuple[Array, Array]:
    """Return the last candidate up to which all are refuted, and the next one.

    The first is taken to be refuted, as all others that are 0, and the last one not to be.
    """
    inner = grid[:, 1:-1]
    kept = (inner > 0) & ~_refuted(table, inner, delta)
    place = np.where(kept.any(axis=1), np.argmax(kept, axis=1), kept.shape[1])
    rows = np.arange(len(grid))
    return grid[rows, place], grid[rows, place + 1]


def _refuted(table: DealtCells, candidates: Array, delta: float) -> Mask:
    """Tell which candidates, (n_cells, n_candidates), are too small whatever m is, in all orders.

    The axes of arrays are cells, orders, candidates and classes or places.
    """
    h = candidates[:, None]
    above = np.maximum(h + table.high[:, None, None], _HOPELESS)  # what an item can lose
    below = np.maximum((table.largest - table.low)[:, None, None] - h, _HOPELESS)
    most = _SAFE / (1 + above)  # for a convex capital
    goal = -np.log(delta)
    bets = _Bets.before(table, h, below, above)
    chosen = []
    for block, left in enumerate(table.left):
        logs = -np.log(_likely_means(table, bets.weights / bets.largest[..., None], left))
        chance = np.exp(bets.log_capital(logs) - goal - _SPARE)
        stake = stakes(chance, left[:, None, None], bets.seen, below * above)
        chosen.append(np.minimum(stake, most))
        bets = bets.add(table, block, logs, chosen[-1])
    return np.asarray((_least_capital(table, h, np.stack(chosen)) >= goal).all(axis=1))


class _Bets(NamedTuple):
    """Bets so far: the logarithm of the capital, taken for linear in -log m."""

    h: Array
    constant: Array  #: of the capital
    weights: Array  #: its slopes in -log m, by class: items' shares, weighted by their stakes
    largest: Array  #: stake
    seen: Moments  #: of loss - Z - h

    @classmethod
    def before(cls, table: DealtCells, h: Array, below: Array, above: Array) -> _Bets:
        """Return a capital of 1."""
        shape = (len(h), table.rows.shape[2], h.shape[2])
        variance = table.variance[:, None, None]
        seen = Moments.before(variance, below * above, below - above, shape)
        weights = np.zeros((*shape, table.shares.shape[2]))
        return cls(h, np.zeros(shape), weights, np.full(shape, _HOPELESS), seen)

    def log_capital(self, logs: Array) -> Array:
        """Return the logarithm of the capital, from -log m."""
        return np.asarray(self.constant + (self.weights * logs).sum(axis=-1))

    def add(self, table: DealtCells, block: int, logs: Array, stake: Array) -> _Bets:
        """Bet on the items of a block."""
        cell = np.arange(len(self.h))[:, None, None]
        rows = table.rows[block]
        often = table.often[block][:, :, None]
        shares = table.shares[cell, rows]  # (n_cells, n_orders, n_places, n_classes)
        loss = logs @ shares.swapaxes(-1, -2)
        distance = loss - table.offsets[cell, rows][:, :, None] - self.h[..., None]
        capital = 1 + stake[..., None] * distance
        slopes = often * stake[..., None] / capital
        constant = self.constant + (often * np.log(capital) - slopes * loss).sum(axis=-1)
        weights = self.weights + slopes @ shares
        largest = np.maximum(self.largest, stake)
        return _Bets(self.h, constant, weights, largest, self.seen.add(distance, often))


def _likely_means(table: DealtCells, weights: Array, left: Array) -> Array:
    """Return what m is taken to be when stakes are chosen: the bets' own mean, and the guess."""
    guessed = np.maximum(_GUESS_ITEMS * left / table.left[0], _LEAST_GUESS)[:, None, None, None]
    total = guessed + weights.sum(axis=-1, keepdims=True)
    return np.asarray((guessed * table.guess[:, None, None] + weights) / total)


def _least_capital(table: DealtCells, h: Array, chosen: Array) -> Array:
    """Return what the logarithm of the capital is at least, whatever m is, for stakes in blocks."""
    _, n_cells, n_orders, n_places = table.rows.shape
    rows = np.moveaxis(table.rows, 0, 2).reshape(n_cells, n_orders, -1)
    often = np.moveaxis(table.often, 0, 2).reshape(n_cells, n_orders, 1, -1)
    stake = np.repeat(np.moveaxis(chosen, 0, -1), n_places, axis=-1)
    cell = np.arange(n_cells)[:, None, None]
    shares = table.shares[cell, rows]
    offset = table.offsets[cell, rows][:, :, None] + h[..., None]
    weights = (often * stake) @ shares
    best = np.full(chosen.shape[1:], -np.inf)
    for _ in range(_STEPS):
        total = weights.sum(axis=-1, keepdims=True)
        m = weights / np.maximum(total, _HOPELESS)
        logs = -np.log(m, where=m > 0, out=np.zeros_like(m))
        capital = 1 + stake * (logs @ shares.swapaxes(-1, -2) - offset)
        weights = (often * stake / capital) @ shares
        # The tangent is least at a corner of the simplex.
        steepest = np.divide(weights, m, where=m > 0, out=np.zeros_like(m)).max(axis=-1)
        tangent = (often * np.log(capital)).sum(axis=-1) + weights.sum(axis=-1) - steepest
        best = np.maximum(best, tangent)
    return best
