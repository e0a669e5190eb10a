"""What no model can remove from a loss: statistics of labels on either side of it.

The least expected loss on an item is the entropy G(p) of its label distribution: Shannon's for the
log loss, 1 - ||p||^2 for the Brier score, 1 - max p for the error rate. Labels give a statistic
whose mean is never above E G(p) and one whose mean is never below it, whatever p is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import sparse

from hocal._base.typing import Array, Index, IntArray, Mask
from hocal.calibration.by_cell.deconvolution import deconvolve
from hocal.cells.statistics import align_counts
from hocal.decisions.losses import BoundedMean, Judged
from hocal.guarantees.bernstein import BernsteinEstimator, Side
from hocal.guarantees.cell_uncertainty import (
    Advice,
    Limits,
    Sample,
    advise,
    estimator_sizes,
    statistic_values,
)
from hocal.guarantees.item_statistics import most_disagreement
from hocal.uncertainty.entropy import Brier, Shannon

__all__ = [
    "EntropyBounds",
    "disagreement",
    "entropy_bounds",
    "entropy_estimates",
    "irreducible_limits",
    "largest_agreement",
    "largest_entropy",
    "least_error",
]

MANY_CLASSES = 100  # beyond which most of an item's classes have no label
TIE = 0.5  # of a label, that the prediction counts for: it decides between equal numbers only
STREAM_ITEMS = 1000  # for which statistics are chosen where the number of items is not known yet


class EntropyBounds(NamedTuple):
    """Two statistics of each item with several labels, NaN elsewhere."""

    below: BoundedMean  #: mean at most the irreducible part
    above: BoundedMean  #: mean at least the irreducible part


def largest_entropy(loss: str, n_classes: int) -> float:
    """Return the irreducible part where labels fall evenly on all classes."""
    if loss == "log":
        return Shannon().maximum(n_classes)
    return Brier().maximum(n_classes)  # 1 - 1/l, as of the error rate


def entropy_bounds(predictions: Array, judged: Judged, loss: str, n_items: int) -> EntropyBounds:
    """Return statistics on either side of the entropy, for groups of about n_items items."""
    several = judged.several
    if not several.any():
        nothing = BoundedMean(np.full(len(several), np.nan), -math.inf, math.inf, judged.anytime)
        return EntropyBounds(nothing, nothing)
    if loss == "brier":
        unbiased = disagreement(judged)
        return EntropyBounds(unbiased, unbiased)
    if loss == "accuracy":
        return EntropyBounds(_minority(judged), _missed_by_others(predictions, judged))
    tops = predictions.argmax(axis=1)
    advice = _advice(judged, tops, STREAM_ITEMS if judged.anytime else n_items)
    below, above = (_one_sided(judged, tops, advice, side) for side in ("lower", "upper"))
    return EntropyBounds(below, above)


def irreducible_limits(
    losses: BoundedMean, judged: Judged, loss: str, rows: Mask, bounds: EntropyBounds, delta: float
) -> Limits:
    """Return limits of the entropy of some items' label distributions."""
    several = judged.several
    chosen = (rows & several, judged.advises & several)
    if loss != "accuracy":
        lower = bounds.below.at_least(delta / 2, *chosen)
        return Limits(lower, bounds.above.at_most(delta / 2, *chosen))
    by_pairs = least_error(judged, delta / 4, *chosen)
    lower = max(bounds.below.at_least(delta / 4, *chosen), by_pairs)
    # Nor can the best model be worse than this one.
    upper = min(each.at_most(delta / 4, *chosen) for each in (bounds.above, losses))
    return Limits(lower, upper)


def least_error(judged: Judged, delta: float, rows: Mask, advises: Mask) -> float:
    """Return what the error rate of every model exceeds but for a chance of delta, by pairs."""
    agree = 1 - disagreement(judged).at_least(delta, rows, advises)
    return 1 - largest_agreement(agree, judged.counts.shape[1])


def largest_agreement(agree: float, n_classes: int) -> float:
    """Return the largest E max p if two people agree about an item with this probability, E||p||^2.

    Among label distributions with one ||p||^2, max p is largest for p = (a, b, ..., b), a concave
    function of ||p||^2.

    Examples
    --------
    >>> from hocal.decisions.irreducible import largest_agreement
    >>> largest_agreement(0.5, 2), largest_agreement(1.0, 2)
    (0.5, 1.0)
    """
    spread = max(n_classes * agree - 1, 0.0)  # 0 when labels fall evenly on all classes
    return min((1 + math.sqrt((n_classes - 1) * spread)) / n_classes, 1.0)


def entropy_estimates(predictions: Array, judged: Judged, loss: str, group: Index) -> Array:
    """Return the mean entropy of each group's label distributions, NaN without two labels."""
    several = judged.several
    n_groups = int(group.max()) + 1
    n_several = np.bincount(group[several], minlength=n_groups)
    means = np.full(n_groups, np.nan)
    if not several.any():
        return means
    if loss == "brier":
        values = disagreement(judged).values[several]
        sums = np.bincount(group[several], values, minlength=n_groups)
        np.divide(sums, n_several, out=means, where=n_several > 0)
        return means
    many = judged.counts.shape[1] > MANY_CLASSES
    aligned = align_counts(predictions, sparse.csr_array(judged.counts) if many else judged.counts)
    each = np.arange(n_groups)
    fit = deconvolve(aligned, group, np.ones(len(group)), group=each, level=0 * each)
    entropy = 1 - fit.atoms.max(axis=1)
    if loss == "log":
        entropy = Shannon().value(fit.atoms, check_input=False)
    return np.where(n_several > 0, fit.weights @ entropy, means)


def disagreement(judged: Judged) -> BoundedMean:
    """Return the share of pairs of an item's labels that disagree, unbiased for 1 - ||p||^2."""
    several = judged.several
    totals = judged.totals[several]
    squares = judged.by_item(lambda rows: (judged.shares(rows) ** 2).sum(axis=1))[several]
    values = np.full(len(several), np.nan)
    values[several] = totals / (totals - 1) * (1 - squares)
    if judged.anytime:
        return BoundedMean(values, 0.0, 1.0, anytime=True)
    most = most_disagreement(int(totals.min()), judged.counts.shape[1])
    return BoundedMean(values, 0.0, most)


def _missed_by_others(predictions: Array, judged: Judged) -> BoundedMean:
    """Return how often a label is not what the item's other labels say, at least 1 - max p.

    The commonest class of the others, ties going to what the model finds likelier, is a guess that
    does not know the label, so the label is that class with probability max p at most. A label can
    only be guessed if it is of the commonest class and the others alone make it so.
    """

    def guessed(rows: slice) -> Array:
        keyed = judged.counts[rows] + TIE * predictions[rows]
        top = keyed.argmax(axis=1)
        places = np.arange(len(top))
        first = keyed[places, top]
        second = np.partition(keyed, -2, axis=1)[:, -2]
        return np.where(first - 1 > second, judged.shares(rows)[places, top], 0.0)

    missed = 1 - judged.by_item(guessed)
    return BoundedMean(np.where(judged.several, missed, np.nan), 0.0, 1.0, judged.anytime)


def _minority(judged: Judged) -> BoundedMean:
    """Return the share of an item's labels outside its commonest class, at most 1 - max p.

    The largest share is on average at least the largest probability (Jensen).
    """
    largest = judged.counts.max(axis=1) / judged.totals
    values = np.where(judged.several, 1 - largest, np.nan)
    return BoundedMean(values, 0.0, 1 - 1 / judged.counts.shape[1], judged.anytime)


def _advice(judged: Judged, tops: Index, n_items: int) -> Advice:
    """Choose statistics of the labels from the items that only advise."""
    asking = judged.advises & judged.several
    asked = _likeliest_first(judged.counts[asking], tops[asking])
    return advise(
        Sample(asked, np.ones(len(asked))) if len(asked) else None,
        estimator_sizes(judged.totals),
        n_classes=judged.counts.shape[1],
        n_items=n_items,
        leader=0,
    )


def _likeliest_first(counts: IntArray, tops: Index) -> IntArray:
    """Swap the first class of each item for the one that the model finds likeliest.

    An entropy does not mind, and statistics count the class apart that most labels are of.
    """
    rows = np.arange(len(counts))
    swapped = counts.copy()
    swapped[rows, tops] = counts[:, 0]
    swapped[:, 0] = counts[rows, tops]
    return swapped


def _one_sided(judged: Judged, tops: Index, advice: Advice, side: Side) -> BoundedMean:
    used: list[BernsteinEstimator] = []

    def values(rows: slice) -> Array:
        several = judged.several[rows]
        counts = _likeliest_first(judged.counts[rows][several], tops[rows][several])
        result = np.full(len(several), np.nan)
        sample = Sample(counts, np.ones(len(counts)))
        result[several], estimators = statistic_values(sample, advice, side)
        used.extend(estimators)
        return result

    found = judged.by_item(values)
    low = min(estimator.minimum for estimator in used)
    high = max(estimator.maximum for estimator in used)
    return BoundedMean(found, low, high, judged.anytime)
