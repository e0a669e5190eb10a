"""What leaving annotators out does to disagreement."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from hocal._base.interval import Interval
from hocal._base.typing import Array, Counts
from hocal.annotations.independence.agreement_limits import Blocks, ratio_limits
from hocal.annotations.independence.votes import Votes
from hocal.uncertainty.moments import pair_disagreement

__all__ = ["Remainder", "count_votes", "leave_out"]

MANY_CLASSES = 100  # beyond which most of an item's classes have no label


class Remainder(NamedTuple):
    """Disagreement with and without some annotators.

    Attributes
    ----------
    annotators : tuple
        Those left out.
    judgements : float
        Their share of the judgements.
    disagreement, remaining : float
        Mean share of pairs of labels that differ, with and without them, on the items that keep two
        labels or more; NaN without such items.
    gone : Interval
        The share of all disagreement that is gone without them, with limits that hold for these
        annotators on items like these; below zero where they agree more than the others. They were
        found on the same labels, which makes it look a little larger than it is.
    """

    annotators: tuple[Any, ...]
    judgements: float
    disagreement: float
    remaining: float
    gone: Interval


def count_votes(votes: Votes, n_items: int | None = None) -> Counts:
    """Return how often each item got each label, (n_items, n_classes); two classes at least.

    A sparse matrix of many classes.
    """
    shape = (n_items or votes.n_items, max(len(votes.classes), 2))
    if shape[1] > MANY_CLASSES:
        ones = np.ones(len(votes), dtype=np.int64)
        return sparse.coo_array((ones, (votes.item, votes.label)), shape=shape).tocsr()
    place = votes.item * shape[1] + votes.label
    flat = np.bincount(place, minlength=shape[0] * shape[1])
    return flat.reshape(shape)


def leave_out(votes: Votes, annotators: Collection[Any], confidence: float) -> Remainder:
    """Compare disagreement with all annotators and without some."""
    gone = np.array([who in annotators for who in votes.annotators])[votes.annotator]
    every = count_votes(votes)
    rest = every - count_votes(votes.take(np.flatnonzero(gone)), every.shape[0])
    kept = rest.sum(axis=1) > 1
    share = float(gone.mean())
    if not kept.any():
        return Remainder(tuple(annotators), share, np.nan, np.nan, Interval(np.nan, -1.0, 1.0))
    before, after = (pair_disagreement(counts[kept]) for counts in (every, rest))
    return Remainder(
        tuple(annotators),
        share,
        float(before.mean()),
        float(after.mean()),
        _share_gone(before, after, confidence),
    )


def _share_gone(before: Array, after: Array, confidence: float) -> Interval:
    """Return 1 - E[after] / E[before]; each item is a block, and no label distribution matters."""
    if np.array_equal(before, after):  # nobody was left out, or nobody who mattered
        return Interval(0.0, 0.0, 0.0)
    if not before.any():
        return Interval(np.nan, -1.0, 1.0)
    lower, upper = ratio_limits(Blocks(after, before, 1.0), 1 - confidence)
    estimate = 1 - float(after.mean() / before.mean())
    return Interval(estimate, min(1 - upper, estimate), max(1 - lower, estimate))
