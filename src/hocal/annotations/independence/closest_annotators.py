"""Closest annotators: two people who give the same label more often than others of the same items.

If labels are independent given the item, two of its annotators hold the same label with the share
of the item's pairs that agree, whoever they are. So their agreements are a sum of independent
coins, and its tail is exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hocal._base.typing import Array, IntArray
from hocal.annotations.independence.poisson_binomial import poisson_binomial_tails
from hocal.annotations.independence.vote_layout import Layout, add_up

__all__ = ["Closest", "closest_annotators"]

_MOST_PAIRS = 30_000_000  # of judgements of the same item; some 2 GB for a moment


class Closest(NamedTuple):
    """The other annotator with whom each one agrees most, compared with chance.

    Attributes
    ----------
    partner : ndarray of shape (n_annotators,)
        Number of the other one; -1 where no item tells.
    n_shared : ndarray of shape (n_annotators,)
        Items that both judged, on which labels differ and there are three labels or more.
    agreement, expected : ndarray of shape (n_annotators,)
        Share of these on which both gave the same label, and that of two random labels of them.
    p_value : ndarray of shape (n_annotators,)
        Of agreeing as often or more, adjusted for all pairs of annotators.
    """

    partner: IntArray
    n_shared: IntArray
    agreement: Array
    expected: Array
    p_value: Array


class _Pairs(NamedTuple):
    """Pairs of judgements of the same item, and which pair of annotators they belong to."""

    first: IntArray  #: annotator with the smaller number, of each pair of annotators
    second: IntArray
    pair: IntArray  #: number of the pair of annotators, of each pair of judgements
    agree: Array  #: whether both gave the same label
    chance: Array  #: share of the item's pairs that agree


def closest_annotators(layout: Layout) -> Closest:
    """Find the partner of each annotator; nobody has one where pairs are too many to list."""
    pairs = _list_pairs(layout)
    n = layout.n_annotators
    nothing = np.full(n, np.nan)
    partner = np.full(n, -1)
    result = Closest(partner, np.zeros(n, dtype=np.int64), nothing, nothing.copy(), nothing.copy())
    if pairs is None:
        return result
    n_pairs = len(pairs.first)
    shared = np.bincount(pairs.pair, minlength=n_pairs)
    agreed = add_up(pairs.pair, pairs.agree, n_pairs)
    expected = add_up(pairs.pair, pairs.chance, n_pairs)
    noise = add_up(pairs.pair, pairs.chance * (1 - pairs.chance), n_pairs)
    best = _best_pair(pairs, (agreed - expected) / np.sqrt(noise), n)
    found = np.flatnonzero(best >= 0)
    chosen = best[found]
    partner[found] = np.where(
        pairs.first[chosen] == found, pairs.second[chosen], pairs.first[chosen]
    )
    result.n_shared[found] = shared[chosen]
    result.agreement[found] = agreed[chosen] / shared[chosen]
    result.expected[found] = expected[chosen] / shared[chosen]
    result.p_value[found] = _p_values(pairs, agreed, chosen)
    return result


def _p_values(pairs: _Pairs, agreed: Array, chosen: IntArray) -> Array:
    """Return exact upper tails of the chosen pairs, times the number of all pairs."""
    needed, owner = np.unique(chosen, return_inverse=True)
    number = np.full(len(pairs.first), -1)
    number[needed] = np.arange(len(needed))
    kept = number[pairs.pair] >= 0
    tails = poisson_binomial_tails(
        pairs.chance[kept], number[pairs.pair[kept]], agreed[needed].astype(np.int64)
    )
    return np.minimum(tails.upper * len(pairs.first), 1.0)[owner]


def _best_pair(pairs: _Pairs, score: Array, n_annotators: int) -> IntArray:
    """Return each annotator's pair with the largest score, -1 without any."""
    who = np.concatenate([pairs.first, pairs.second])
    which = np.tile(np.arange(len(pairs.first)), 2)
    order = np.lexsort((score[which], who))
    last = np.flatnonzero(np.diff(who[order], append=-1))
    best = np.full(n_annotators, -1)
    best[who[order][last]] = which[order][last]
    return best


def _list_pairs(layout: Layout) -> _Pairs | None:
    """List the pairs of judgements of items where labels differ and may agree; None if too many."""
    same = layout.row_probability[layout.own_row] * layout.size - 1  # other labels like one's own
    n_items = int(layout.item.max(initial=-1)) + 1
    agreeing = add_up(layout.item, same / np.maximum(layout.size - 1, 1), n_items)
    chance = agreeing[layout.item] / layout.size
    usable = np.flatnonzero(chance > 0)
    sizes = layout.size[usable]
    if not len(usable) or (sizes - 1).sum() / 2 > _MOST_PAIRS:
        return None
    ordered = usable[np.lexsort((layout.item[usable], sizes))]
    ends = [_pairs_of_size(ordered, layout.size[ordered], size) for size in np.unique(sizes)]
    left, right = (np.concatenate([pair[k] for pair in ends]) for k in range(2))
    who = np.sort(np.stack([layout.annotator[left], layout.annotator[right]]), axis=0)
    keys, pair = np.unique(who[0] * layout.n_annotators + who[1], return_inverse=True)
    agree = (layout.label[left] == layout.label[right]).astype(np.float64)
    first, second = np.divmod(keys, layout.n_annotators)
    return _Pairs(first, second, pair, agree, chance[left])


def _pairs_of_size(ordered: IntArray, sizes: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Return both ends of the pairs of judgements of all items with so many labels."""
    items = ordered[sizes == size].reshape(-1, size)
    left, right = np.triu_indices(size, k=1)
    return items[:, left].ravel(), items[:, right].ravel()
