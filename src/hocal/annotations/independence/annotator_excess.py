"""Excess disagreement: how much more an annotator differs from the others than they do themselves.

On an item, the share of the others' labels that differ from an annotator's is compared with the
share of pairs among the others that differ. If it does not matter who labels, the difference is
zero on average, however ambiguous the item is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hocal._base.typing import Array, Index, IntArray
from hocal.annotations.independence.vote_layout import add_up
from hocal.annotations.independence.votes import Votes
from hocal.guarantees.betting import Draws, lower_limit, upper_limit

__all__ = ["Excess", "Judged", "annotator_excess", "judge_pairs"]

_PRIOR_JUDGEMENTS = 5  # of the pooled variance, added to the annotator's own few judgements


class Judged(NamedTuple):
    """How each judgement compares with the other labels of its item.

    Attributes
    ----------
    place : ndarray of shape (n_judgements,)
        Where it stands among the votes; judgements without another label of the item are left out.
    size : ndarray of shape (n_judgements,)
        Labels of the item.
    differs : ndarray of shape (n_judgements,)
        Share of the item's other labels that differ from it.
    expected : ndarray of shape (n_judgements,)
        Share of pairs among the item's other labels that differ. Where there is one other label
        only, the share of all items with two labels on which they differ.
    """

    place: IntArray
    size: IntArray
    differs: Array
    expected: Array


class Excess(NamedTuple):
    """Disagreement of each annotator with the others, beyond that of the others.

    Attributes
    ----------
    n_compared : ndarray of shape (n_annotators,)
        Judgements of items that others judged too.
    disagreement, expected : ndarray of shape (n_annotators,)
        Share of the others' labels that differ from the annotator's, and the same among the others.
    excess, lower, upper : ndarray of shape (n_annotators,)
        Their difference, with limits that hold for each annotator: on average over items like those
        that they judged.
    shrunk : ndarray of shape (n_annotators,)
        The difference pulled towards that of all annotators, the more the fewer their judgements.
    """

    n_compared: IntArray
    disagreement: Array
    expected: Array
    excess: Array
    lower: Array
    upper: Array
    shrunk: Array


def judge_pairs(votes: Votes) -> Judged:
    """Compare each judgement with the other labels of its item; one of each annotator and item."""
    kinds = votes.item * len(votes.classes) + votes.label
    _, kind, counts = np.unique(kinds, return_inverse=True, return_counts=True)
    sizes = np.bincount(votes.item)
    place = np.flatnonzero(sizes[votes.item] > 1)
    item = votes.item[place]
    size = sizes[item]
    differs = 1 - (counts[kind[place]] - 1) / (size - 1)
    total = add_up(item, differs, len(sizes))[item]
    expected = (total - 2 * differs) / np.maximum(size - 2, 1)
    pair = size == 2
    if pair.any():
        expected[pair] = differs[pair].mean()
    return Judged(place, size, differs, expected)


def annotator_excess(votes: Votes, judged: Judged, confidence: float) -> Excess:
    """Measure each annotator's excess disagreement, with limits by betting."""
    n_annotators = len(votes.annotators)
    who = votes.annotator[judged.place]
    number = np.bincount(who, minlength=n_annotators)
    difference = judged.differs - judged.expected
    with np.errstate(invalid="ignore"):  # 0 / 0 without judgements that can be compared
        disagreement = add_up(who, judged.differs, n_annotators) / number
        expected = add_up(who, judged.expected, n_annotators) / number
    lower, upper = _limits(who, difference, number, 1 - confidence)
    return Excess(
        number,
        disagreement,
        expected,
        disagreement - expected,
        lower,
        upper,
        _shrink(who, difference, number),
    )


def _limits(who: IntArray, values: Array, number: IntArray, delta: float) -> tuple[Array, Array]:
    """Bet on each annotator's mean; those with similar numbers of judgements at once."""
    lower = np.full(len(number), np.nan)
    upper = np.full(len(number), np.nan)
    order = np.argsort(who, kind="stable")
    starts = np.cumsum(number) - number
    doublings = np.ceil(np.log2(np.maximum(number, 1))).astype(int)
    for doubling in np.unique(doublings[number > 0]):
        chosen = np.flatnonzero((doublings == doubling) & (number > 0))
        draws = _columns(values[order], starts[chosen], number[chosen])
        lower[chosen] = lower_limit(draws, delta / 2)
        upper[chosen] = upper_limit(draws, delta / 2)
    return lower, upper


def _columns(values: Array, starts: Index, sizes: IntArray) -> Draws:
    """Put runs of values into columns; rows beyond the end of a run occur zero times."""
    rows = np.arange(sizes.max())[:, None]
    there = rows < sizes
    places = np.where(there, starts + rows, 0)
    return Draws(values[places], there.astype(np.float64), -1.0, 1.0)


def _shrink(who: IntArray, values: Array, number: IntArray) -> Array:
    """Pull means towards their mean by what is noise in them (DerSimonian and Laird 1986)."""
    known = number > 0
    n = np.maximum(number, 1)
    means = add_up(who, values, len(number)) / n
    squares = add_up(who, (values - means[who]) ** 2, len(number))
    pooled = squares.sum() / max(len(values) - int(np.count_nonzero(known)), 1)
    variance = (squares + _PRIOR_JUDGEMENTS * pooled) / (n - 1 + _PRIOR_JUDGEMENTS) / n
    result = np.full(len(number), np.nan)
    if not known.any() or pooled == 0:
        result[known] = means[known]
        return result
    between, centre = _spread_of_means(means[known], variance[known])
    share = between / (between + variance[known])
    result[known] = centre + share * (means[known] - centre)
    return result


def _spread_of_means(means: Array, variance: Array) -> tuple[float, float]:
    """Return the variance of the true means, by the method of moments, and their centre."""
    weight = 1 / variance
    centre = float(weight @ means / weight.sum())
    scatter = float(weight @ (means - centre) ** 2) - (len(means) - 1)
    scale = float(weight.sum() - weight @ weight / weight.sum())
    between = max(scatter / scale, 0.0) if scale > 0 else 0.0
    full = 1 / (between + variance)
    return between, float(full @ means / full.sum())
