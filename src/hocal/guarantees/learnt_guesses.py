"""Upper limits of the entropy of a mean label distribution, less the mean of a statistic Z.

The loss -<shares, log q> of a guess q of the mean label distribution m has the mean H(m) + KL(m ||
q), so a limit above its mean is one above H(m), too high by how wrong the guess is. The guess need
not be the same for all items: one that learns from the items before is fair to bet on, and as they
come it is wrong by less and less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hocal._base.typing import Array
from hocal.guarantees.deadline import Sequences, upper_ends
from hocal.guarantees.dealt_cells import DealtCells, Offset, dealt_cells
from hocal.guarantees.samples import Sample

__all__ = ["UNIFORM_SHARE", "upper_entropies"]

UNIFORM_SHARE = 0.02  # of a guessed label distribution, so that no label has an unbounded loss
_GUESS_ITEMS = 100.0  # that a guess from other data counts for; half or twice as many do as well


def upper_entropies(
    samples: Sequence[Sample], guesses: Array, offsets: Sequence[Offset], delta: float
) -> Array:
    """Return numbers below which H(m) - E[Z] is, each except with chance delta.

    Parameters
    ----------
    samples : sequence of Sample
        Independent items of each cell, for which `can_be_dealt` holds.
    guesses : ndarray of shape (n_cells, n_classes)
        Label distributions from other data to begin with, of which UNIFORM_SHARE is uniform. Any
        are valid, good ones lower the limits.
    offsets : sequence of Offset
        Z of each cell's items.
    delta : float
        Allowed chance of failure of each.

    Returns
    -------
    ndarray of shape (n_cells,)
        Limits.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.guarantees.dealt_cells import Offset
    >>> from hocal.guarantees.learnt_guesses import upper_entropies
    >>> from hocal.guarantees.samples import Sample
    >>> sample = Sample(np.array([[1, 0], [0, 1]]), np.array([450.0, 50.0]))
    >>> guess = np.array([[0.85, 0.15]])
    >>> upper_entropies([sample], guess, [Offset.none(sample)], 0.025).round(2).tolist()
    [0.39]
    """
    result = np.zeros(len(samples))
    for places, cells in dealt_cells(samples, guesses, offsets):
        ends = [
            _possible(guesses[place], offsets[place], samples[place].n_items) for place in places
        ]
        low, high = np.array(ends).T
        values = _losses(cells, guesses.shape[1]) - _of_rows(cells.offsets, cells)
        weights = cells.often / cells.often.sum(axis=(0, 3), keepdims=True)
        means = (weights * values).sum(axis=(0, 3))  # (n_cells, n_orders)
        draws = Sequences(values, cells.often, cells.left, low, high, cells.variance)
        chance = np.full(len(places), delta)
        result[places] = upper_ends(draws, means.max(axis=1), cells.deviation, chance)
    return result


def _losses(cells: DealtCells, n_classes: int) -> Array:
    """Return the losses of guesses that learn from block to block."""
    shares = _of_rows(cells.shares, cells)  # (n_blocks, n_cells, n_orders, n_places, n_classes)
    seen = (cells.often[..., None] * shares).sum(axis=3)
    before = np.cumsum(seen, axis=0) - seen
    n_before = (cells.left[0] - cells.left)[:, :, None, None]
    learnt = (1 - UNIFORM_SHARE) * before + UNIFORM_SHARE * n_before / n_classes
    guess = (_GUESS_ITEMS * cells.guess[:, None] + learnt) / (_GUESS_ITEMS + n_before)
    return np.asarray((shares @ -np.log(guess)[..., None])[..., 0])


def _of_rows(values: Array, cells: DealtCells) -> Array:
    """Return values of cells' rows, (n_cells, n_rows, ...), in the order of the bets."""
    cell = np.arange(len(values))[:, None, None]
    return np.asarray(values[cell, cells.rows])


def _possible(guess: Array, offset: Offset, n_items: int) -> tuple[float, float]:
    """Return the smallest and largest possible loss less Z, whatever is learnt from so many items.

    Their number is rounded up to half an octave, so that cells have few different ends.
    """
    most = 2 ** (math.ceil(2 * math.log2(n_items)) / 2)
    total = _GUESS_ITEMS + most
    rest = UNIFORM_SHARE * most / len(guess)
    dearest = -np.log((_GUESS_ITEMS * guess + rest) / total)
    cheapest = -np.log((_GUESS_ITEMS * guess + rest + (1 - UNIFORM_SHARE) * most) / total)
    if not offset.estimators:
        return float(cheapest.min()), float(dearest.max())
    low = min(each.rest_ends(cheapest)[0] for each in offset.estimators)
    return low, max(each.rest_ends(dearest)[1] for each in offset.estimators)
