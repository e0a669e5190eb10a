"""Annotator effects: does one annotator label differently from the others, on the same items."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import false_discovery_control

from hocal._base.typing import Array, IntArray
from hocal.annotations.independence.poisson_binomial import poisson_binomial_tails
from hocal.annotations.independence.vote_layout import Layout, add_up

__all__ = [
    "AnnotatorTests",
    "Preference",
    "adjust_fdr",
    "adjust_holm",
    "annotator_tests",
    "preferences",
]


class AnnotatorTests(NamedTuple):
    """Exact p-values of each annotator given the items; NaN where that cannot be tested.

    Attributes
    ----------
    overall : ndarray of shape (n_annotators,)
        Of any difference in class use or dissent.
    class_use : ndarray of shape (n_annotators,)
        Of using classes differently from the others, in either direction.
    dissents, agrees : ndarray of shape (n_annotators,)
        Of dissenting from the most frequent labels as often or more, and as rarely or less.
    """

    overall: Array
    class_use: Array
    dissents: Array
    agrees: Array


def annotator_tests(layout: Layout) -> AnnotatorTests:
    """Test how often each annotator uses each class, and dissents.

    Given the items, each such count is a sum of independent coins, whose two-sided tail is exact.
    The smallest p-value of an annotator is multiplied by the number of their counts. It stays
    valid, if conservative, for an annotator with a single judgement.
    """
    groups = np.bincount(layout.row_group[layout.own_row], minlength=len(layout.group_annotator))
    use = poisson_binomial_tails(layout.row_probability, layout.row_group, groups).two_sided
    smallest = np.full(layout.n_annotators, np.inf)
    np.minimum.at(smallest, layout.group_annotator, use)
    tests = np.bincount(layout.group_annotator, minlength=layout.n_annotators)
    tests[tests == 2] = 1  # of two classes, one is the mirror of the other
    class_use = _bonferroni(smallest, tests)
    dissents = np.full(layout.n_annotators, np.nan)
    agrees = np.full(layout.n_annotators, np.nan)
    split = layout.dissent_probability > 0  # else all the item's classes are equally frequent
    annotators, number = np.unique(layout.annotator[split], return_inverse=True)
    if len(annotators):
        observed = np.bincount(number, layout.dissent[split]).astype(np.int64)
        tails = poisson_binomial_tails(layout.dissent_probability[split], number, observed)
        smallest[annotators] = np.minimum(smallest[annotators], tails.two_sided)
        tests[annotators] += 1
        dissents[annotators] = tails.upper
        agrees[annotators] = tails.lower
    return AnnotatorTests(_bonferroni(smallest, tests), class_use, dissents, agrees)


def _bonferroni(smallest: Array, tests: IntArray) -> Array:
    """Multiply the smallest p-value of each annotator by the number of tests."""
    return np.where(tests > 0, np.minimum(1.0, smallest * np.maximum(tests, 1)), np.nan)


class Preference(NamedTuple):
    """How annotators' labels differ from the other labels of the items they saw.

    Attributes
    ----------
    overused, underused : ndarray of shape (n_annotators,)
        The class with the largest and the smallest difference, -1 without items on which labels
        differ.
    overuse, underuse : ndarray of shape (n_annotators,)
        That difference: share of the class in the annotator's labels less its share in the other
        labels.
    distance : ndarray of shape (n_annotators,)
        Total variation between the two, half the sum of absolute differences; chance alone makes it
        positive.
    dissent, expected_dissent : ndarray of shape (n_annotators,)
        Share of their judgements, where labels differ, that are not a most frequent label of the
        item, and the share of such labels among all labels of these items. NaN without such items.
    """

    overused: IntArray
    underused: IntArray
    overuse: Array
    underuse: Array
    distance: Array
    dissent: Array
    expected_dissent: Array


def preferences(layout: Layout, n_compared: IntArray) -> Preference:
    """Measure how annotators differ; `n_compared` counts judgements of items others judged too."""
    difference = add_up(layout.row_group, layout.row_residual, len(layout.group_annotator))
    difference /= n_compared[layout.group_annotator]
    n_informative = np.bincount(layout.annotator, minlength=layout.n_annotators)
    with np.errstate(invalid="ignore"):  # 0 / 0 without informative items
        dissent = add_up(layout.annotator, layout.dissent, layout.n_annotators) / n_informative
        expected = (
            add_up(layout.annotator, layout.dissent_probability, layout.n_annotators)
            / n_informative
        )
    over = _extreme(layout, difference)
    under = _extreme(layout, -difference)
    return Preference(
        overused=over[0],
        underused=under[0],
        overuse=over[1],
        underuse=-under[1],
        distance=add_up(layout.group_annotator, np.abs(difference), layout.n_annotators) / 2,
        dissent=dissent,
        expected_dissent=expected,
    )


def _extreme(layout: Layout, difference: Array) -> tuple[IntArray, Array]:
    """Return the class and value of each annotator's largest difference."""
    ranked = np.lexsort((difference, layout.group_annotator))
    last = np.flatnonzero(np.diff(layout.group_annotator[ranked], append=-1))
    chosen = ranked[last]
    classes = np.full(layout.n_annotators, -1)
    values = np.zeros(layout.n_annotators)
    classes[layout.group_annotator[chosen]] = layout.group_label[chosen]
    values[layout.group_annotator[chosen]] = difference[chosen]
    return classes, values


def adjust_holm(p_values: Array) -> Array:
    """Adjust p-values for a family-wise error of alpha below alpha (Holm); NaN is no test."""
    result = p_values.copy()
    tested = np.flatnonzero(~np.isnan(p_values))
    order = tested[np.argsort(p_values[tested], kind="stable")]
    steps = p_values[order] * np.arange(len(order), 0, -1)
    result[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return result


def adjust_fdr(p_values: Array) -> Array:
    """Adjust p-values for a false discovery rate of alpha below alpha (Benjamini and Hochberg)."""
    result = p_values.copy()
    tested = ~np.isnan(p_values)
    if tested.any():
        result[tested] = false_discovery_control(p_values[tested])
    return result
