"""Limits of agreement that hold: bets on blocks of items, each with both parts of the ratio.

A coefficient is 1 - r with r = E[within] / E[between]. In a block of independent items, the mean
over its pairs of items of within - r * between has mean zero, though the mean label distribution is
unknown, and it is bounded. So a gambler who doubts r bets on blocks, and limits hold for any number
of items, whatever the labels look like. Items are put into blocks several times at random, and the
mean of the gambler's log-capital is taken: by Jensen's inequality that is no more than the log of
the mean capital, which is fair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import brentq

from hocal._base.typing import Array, Index
from hocal.annotations.independence.coefficients import (
    middle_ranks,
    pair_totals,
    square_sums,
)
from hocal.guarantees.betting import Draws, lower_limit, upper_limit

__all__ = ["Blocks", "largest_ratio", "nominal_blocks", "ordinal_blocks", "ratio_limits"]

# Of two labels of one item against two of different ones: the disagreement of an item with m
# labels is m / (m - 1) <= 2 times that of its shares, which is concave in them.
largest_ratio = 2.0
_SMALLEST = 2  # items of a block: one pair
_SMALLEST_ORDINAL = 4  # one for each rank, and a pair
_VALUES = 4000  # blocks in all shuffles, beyond which another shuffle hardly narrows the limits
_MOST_SHUFFLES = 16
_ROUNDING = 1e-5  # of the ratio, outwards


class Blocks(NamedTuple):
    """Pair disagreement of blocks of items, in units of the largest possible one.

    Attributes
    ----------
    within, between : ndarray of shape (n_blocks,)
        Disagreement of labels of one item, and of labels of two items; both from 0 to 1.
    weight : float
        What each block counts: one over the number of shuffles.
    """

    within: Array
    between: Array
    weight: float


def nominal_blocks(vectors: Any, weights: Array, within: Array) -> Blocks:
    """Return blocks for the disagreement of classes.

    Parameters
    ----------
    vectors : matrix of shape (n_items, n_classes)
        Labels of each item: shares, or counts if each label weighs alike.
    weights : ndarray of shape (n_items,)
        Their sums: one, or the number of labels.
    within : ndarray of shape (n_items,)
        Share of pairs of the item's labels that differ.
    """
    n_items = len(weights)
    size = _block_size(n_items, _SMALLEST)
    own = square_sums(vectors)
    parts = []
    for order in _shuffles(n_items, size):
        total = _block_sums(vectors, order)
        pairs = weights[order].sum(axis=1) ** 2 - (weights[order] ** 2).sum(axis=1)
        same = square_sums(total) - own[order].sum(axis=1)
        inner = (weights * within)[order].sum(axis=1) * weights[order].sum(axis=1)
        inner -= (weights**2 * within)[order].sum(axis=1)
        parts.append((inner, pairs - same, pairs))
    return _scaled(parts)


def ordinal_blocks(counts: Array, totals: Array) -> Blocks:
    """Return blocks for squared distances in rank, each label weighing alike.

    Ranks come from the unknown mean label distribution. So two quarters of a block give ranks,
    independent of each other, and its other half the labels; the product of two distances in rank
    is then right on average, where numbers of labels do not depend on labels. Quarters take turns.
    """
    n_items = len(totals)
    size = _block_size(n_items, _SMALLEST_ORDINAL)
    parts = []
    for order in _shuffles(n_items, size):
        quarter = size // 4
        turns = [_turn(counts, totals, np.roll(order, k * quarter, axis=1)) for k in range(4)]
        parts.append(tuple(np.mean([turn[k] for turn in turns], axis=0) for k in range(3)))
    return _scaled(parts)


def ratio_limits(blocks: Blocks, delta: float) -> tuple[float, float]:
    """Return limits of E[within] / E[between], missed with chance delta / 2 at most at each end."""
    if not len(blocks.within):
        return 0.0, largest_ratio
    repeats = np.full(len(blocks.within), blocks.weight)

    def draws(ratio: float) -> Draws:
        # In this range stakes fall with the ratio, and stake times ratio rises: limits
        # of the mean fall with it, and the ratio at which one is zero is the end of those kept.
        values = blocks.within - ratio * blocks.between
        return Draws.of(values, repeats, -ratio, 1.0)

    def most(ratio: float) -> float:
        return float(upper_limit(draws(ratio), delta / 2)[0])

    def least(ratio: float) -> float:
        return float(lower_limit(draws(ratio), delta / 2)[0])

    lower = _crossing(least) - _ROUNDING if least(0.0) > 0 else 0.0
    upper = _crossing(most) + _ROUNDING if most(largest_ratio) < 0 else largest_ratio
    return max(lower, 0.0), min(upper, largest_ratio)


def _crossing(limit: Callable[[float], float]) -> float:
    """Return the ratio at which a limit of the mean is zero: it falls with the ratio."""
    if limit(largest_ratio) > 0:
        return largest_ratio
    return float(brentq(limit, 0.0, largest_ratio, xtol=_ROUNDING / 2))


def _block_size(n_items: int, smallest: int) -> int:
    """Return the items of a block: few leave noise of pairs, many leave few bets.

    The first falls with the square root of the items, the second with the number of blocks: their
    sum is least near the cube root, and its factor is from trials with 100 to 20,000 items.
    """
    return max(smallest, round(0.4 * float(np.cbrt(n_items))))


def _shuffles(n_items: int, size: int) -> Iterator[Index]:
    """Give random orders of the items, cut into blocks: (n_blocks, size); some items are left.

    The orders are the same for all data of a size: items are independent in any order. They come
    from places, not from labels: those would tell classes apart, whose order must not matter.
    """
    n_blocks = n_items // size
    if n_blocks:
        generator = np.random.default_rng(0)
        for _ in range(int(np.clip(_VALUES // n_blocks, 1, _MOST_SHUFFLES))):
            yield generator.permutation(n_items)[: n_blocks * size].reshape(n_blocks, size)


def _block_sums(vectors: Any, order: Index) -> Any:
    """Add up the rows of each block, with a sparse matrix that picks them."""
    n_blocks, size = order.shape
    starts = np.arange(0, n_blocks * size + 1, size)
    shape = (n_blocks, vectors.shape[0])
    picks = sparse.csr_array((np.ones(order.size), order.ravel(), starts), shape=shape)
    return picks @ vectors


def _turn(counts: Array, totals: Array, order: Index) -> tuple[Array, Array, Array]:
    """Return within, between, and their largest possible value; a quarter gives each rank."""
    quarter = order.shape[1] // 4
    first = counts[order[:, :quarter]].sum(axis=1)  # (n_blocks, n_classes)
    second = counts[order[:, quarter : 2 * quarter]].sum(axis=1)
    a = middle_ranks(first / first.sum(axis=1)[:, None])[:, None]
    b = middle_ranks(second / second.sum(axis=1)[:, None])[:, None]
    judged = counts[order[:, 2 * quarter :]]  # (n_blocks, n_judged, n_classes)
    m = totals[order[:, 2 * quarter :]]
    own = pair_totals(judged, a, b)
    weighted = own / (m - 1)  # m_i times the mean over pairs of the item's labels
    inner = weighted.sum(axis=1) * m.sum(axis=1) - (weighted * m).sum(axis=1)
    everything = pair_totals(judged.sum(axis=1), a[:, 0], b[:, 0])
    between = everything - own.sum(axis=1)
    pairs = m.sum(axis=1) ** 2 - (m**2).sum(axis=1)
    return inner, between, pairs


def _scaled(parts: list[tuple[Array, Array, Array]]) -> Blocks:
    """Put the shuffles together, in units of the largest value that any block could have."""
    if not parts:
        return Blocks(np.empty(0), np.empty(0), 0.0)
    within, between, most = (np.concatenate([part[k] for part in parts]) for k in range(3))
    return Blocks(within / most.max(), between / most.max(), 1 / len(parts))
