"""The table of annotators: effects, limits and findings, the worst dissent first."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta

from hocal._base.plurals import counted
from hocal._base.typing import Array, IntArray
from hocal.annotations.independence.annotator_effects import (
    AnnotatorTests,
    Preference,
    adjust_fdr,
    adjust_holm,
    annotator_tests,
    preferences,
)
from hocal.annotations.independence.annotator_excess import Excess, annotator_excess, judge_pairs
from hocal.annotations.independence.closest_annotators import closest_annotators
from hocal.annotations.independence.drift import Drift
from hocal.annotations.independence.vote_layout import Layout
from hocal.annotations.independence.votes import Votes

__all__ = ["AGREES", "CLASS_USE", "DISSENTS", "AnnotatorEffects", "tabulate_annotators"]

DISSENTS = "dissents"
CLASS_USE = "class use"
AGREES = "agrees"
_TINY = float(np.finfo(np.float64).tiny)  # no p-value is zero, only too small for a number


class AnnotatorEffects(NamedTuple):
    """One value per annotator, from the one who dissents most beyond what their items explain.

    Attributes
    ----------
    annotator : tuple
        Who they are; in the order of `shrunk`, largest first.
    n_items : ndarray
        Items they judged.
    n_compared : ndarray
        Those among them that others judged too.
    n_informative : ndarray
        Those among them on which labels differ; only these tell annotators apart.
    finding : tuple of str
        "dissents", "class use" and "agrees", joined by commas, where the adjusted p-value is at
        most alpha: the chance of any such word where it does not matter who labels. Else empty.
    disagreement, expected : ndarray
        Share of the others' labels on the same items that differ from theirs, and the share of
        pairs among the others' labels that differ.
    excess, excess_lower, excess_upper : ndarray
        Disagreement less what is expected, with limits for each annotator on items like these.
    shrunk : ndarray
        The excess pulled towards that of all annotators, the more the fewer judgements there are.
    dissent, expected_dissent : ndarray
        On informative items, how often their label is not a most frequent one of the item, and how
        often a random label of these items is not.
    distance : ndarray
        Total variation between their labels and the other labels of the same items; chance makes it
        positive.
    overused, underused : tuple
        The class they use most, and least, compared with the others; None without informative
        items.
    overuse, underuse : ndarray
        By how much: share of that class in their labels less its share in the other labels of the
        same items.
    closest : tuple
        The annotator with whom they agree most beyond chance; None where no item tells.
    closest_agreement, closest_expected : ndarray
        Share of their common informative items on which both gave the same label, and that of two
        random labels of these items.
    p_dissents, p_class_use, p_agrees : ndarray
        Exact p-values of the three findings, adjusted for all annotators (Holm) and for there being
        three. To agree is to dissent less than expected, or to give the labels of one other person.
    p_value : ndarray
        Exact test of dissent and class use in one; NaN where nothing can be tested. Valid with any
        number of labels.
    p_value_holm : ndarray
        Adjusted for all annotators: below alpha, a difference is real with family-wise error alpha.
    p_value_fdr : ndarray
        Adjusted by Benjamini and Hochberg: a list to look at, of which a share of about alpha is
        innocent.
    drift : ndarray
        Total variation between the first and second half of their judgements, compared with the
        other labels of the items; NaN without time or with fewer than four informative items.
    drift_p_value : ndarray
        Permutation p-value of the drift, adjusted for all annotators.
    n_gold : ndarray
        Judgements of gold questions; zero where there are none.
    gold, gold_lower, gold_upper : ndarray
        Share of these that are right, with limits for each annotator (Clopper and Pearson).
    """

    annotator: tuple[Any, ...]
    n_items: IntArray
    n_compared: IntArray
    n_informative: IntArray
    finding: tuple[str, ...]
    disagreement: Array
    expected: Array
    excess: Array
    excess_lower: Array
    excess_upper: Array
    shrunk: Array
    dissent: Array
    expected_dissent: Array
    distance: Array
    overused: tuple[Any, ...]
    overuse: Array
    underused: tuple[Any, ...]
    underuse: Array
    closest: tuple[Any, ...]
    closest_agreement: Array
    closest_expected: Array
    p_dissents: Array
    p_class_use: Array
    p_agrees: Array
    p_value: Array
    p_value_holm: Array
    p_value_fdr: Array
    drift: Array
    drift_p_value: Array
    n_gold: IntArray
    gold: Array
    gold_lower: Array
    gold_upper: Array

    def __repr__(self) -> str:
        people = counted(len(self.annotator), "annotator")
        n_found = sum(map(bool, self.finding))
        return f"AnnotatorEffects({people}, {counted(n_found, 'finding')})"

    def with_finding(self, finding: str) -> tuple[Any, ...]:
        """Return the annotators of whom something was found, such as "dissents"."""
        pairs = zip(self.annotator, self.finding, strict=True)
        return tuple(who for who, found in pairs if finding in found.split(", "))

    def take(self, places: IntArray) -> AnnotatorEffects:
        """Return some annotators, in the order of `places`."""
        columns: list[Any] = [
            column[places] if isinstance(column, np.ndarray) else tuple(column[i] for i in places)
            for column in self
        ]
        return AnnotatorEffects(*columns)


class _Found(NamedTuple):
    """Adjusted p-values of the three findings."""

    dissents: Array
    class_use: Array
    agrees: Array


def tabulate_annotators(
    votes: Votes, layout: Layout, *, alpha: float, drift: Drift | None = None
) -> AnnotatorEffects:
    """Measure and test every annotator; `votes` has one judgement of each annotator and item."""
    n_annotators = len(votes.annotators)
    excess = annotator_excess(votes, judge_pairs(votes), 1 - alpha)
    preference = preferences(layout, excess.n_compared)
    tests = annotator_tests(layout)
    closest = closest_annotators(layout)
    found = _adjust(tests, closest.p_value)
    effects = AnnotatorEffects(
        annotator=votes.annotators,
        n_items=np.bincount(votes.annotator, minlength=n_annotators),
        n_informative=np.bincount(layout.annotator, minlength=n_annotators),
        finding=_findings(found, alpha),
        closest=_names(closest.partner, votes.annotators),
        closest_agreement=closest.agreement,
        closest_expected=closest.expected,
        **_excess_columns(excess),
        **_preference_columns(preference, votes.classes),
        **_test_columns(tests, found),
        **_drift_columns(drift, n_annotators),
        **_gold_columns(votes, alpha),
    )
    return effects.take(np.argsort(-effects.shrunk, kind="stable"))  # NaN comes last


def _excess_columns(excess: Excess) -> dict[str, Any]:
    return {
        "n_compared": excess.n_compared,
        "disagreement": excess.disagreement,
        "expected": excess.expected,
        "excess": excess.excess,
        "excess_lower": excess.lower,
        "excess_upper": excess.upper,
        "shrunk": excess.shrunk,
    }


def _preference_columns(preference: Preference, classes: tuple[Any, ...]) -> dict[str, Any]:
    return {
        "dissent": preference.dissent,
        "expected_dissent": preference.expected_dissent,
        "distance": preference.distance,
        "overused": _names(preference.overused, classes),
        "overuse": preference.overuse,
        "underused": _names(preference.underused, classes),
        "underuse": preference.underuse,
    }


def _test_columns(tests: AnnotatorTests, found: _Found) -> dict[str, Any]:
    return {
        "p_dissents": found.dissents,
        "p_class_use": found.class_use,
        "p_agrees": found.agrees,
        "p_value": np.maximum(tests.overall, _TINY),
        "p_value_holm": np.maximum(adjust_holm(tests.overall), _TINY),
        "p_value_fdr": np.maximum(adjust_fdr(tests.overall), _TINY),
    }


def _drift_columns(drift: Drift | None, n_annotators: int) -> dict[str, Any]:
    nothing = np.full(n_annotators, np.nan)
    return {
        "drift": nothing if drift is None else drift.change,
        "drift_p_value": nothing if drift is None else drift.adjusted_p_value,
    }


def _gold_columns(votes: Votes, alpha: float) -> dict[str, Any]:
    n_gold, share, lower, upper = _gold(votes, alpha)
    return {"n_gold": n_gold, "gold": share, "gold_lower": lower, "gold_upper": upper}


def _adjust(tests: AnnotatorTests, p_closest: Array) -> _Found:
    """Adjust for all annotators and findings; agreeing has two tests, of all others and of one."""
    either = np.fmin(2 * adjust_holm(tests.agrees), 2 * p_closest)
    families = (adjust_holm(tests.dissents), adjust_holm(tests.class_use), either)
    return _Found(*(np.clip(len(families) * p, _TINY, 1.0) for p in families))


def _findings(found: _Found, alpha: float) -> tuple[str, ...]:
    """Name what stands out about each annotator."""
    names = (DISSENTS, CLASS_USE, AGREES)
    rows = zip(*(p <= alpha for p in found), strict=True)
    return tuple(", ".join(n for n, yes in zip(names, row, strict=True) if yes) for row in rows)


def _gold(votes: Votes, alpha: float) -> tuple[IntArray, Array, Array, Array]:
    """Return how many gold questions each annotator answered, the share of right ones and limits.

    The limits are exact for a binomial share: quantiles of beta distributions.
    """
    n_annotators = len(votes.annotators)
    known = np.zeros(len(votes), dtype=bool) if votes.gold is None else votes.gold >= 0
    who = votes.annotator[known]
    number = np.bincount(who, minlength=n_annotators)
    correct = np.zeros(len(who)) if votes.gold is None else votes.label[known] == votes.gold[known]
    right = np.bincount(who, correct, minlength=n_annotators)
    with np.errstate(invalid="ignore"):  # 0 / 0 without gold questions
        share = right / number
    wrong = number - right
    lower = np.where(right > 0, beta.ppf(alpha / 2, right, wrong + 1), 0.0)
    upper = np.where(wrong > 0, beta.ppf(1 - alpha / 2, right + 1, wrong), 1.0)
    asked = number > 0
    return number, share, np.where(asked, lower, np.nan), np.where(asked, upper, np.nan)


def _names(numbers: IntArray, names: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(None if number < 0 else names[number] for number in numbers.tolist())
