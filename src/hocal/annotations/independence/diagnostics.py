"""Run every test of the diagnostics and put what they found together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hocal._base.typing import IntArray
from hocal._base.validation import (
    check_flag,
    check_fraction,
    check_n_resamples,
    check_random_state,
)
from hocal.annotations.independence.agreement_of_people import check_order, with_effects
from hocal.annotations.independence.agreement_result import Agreement, measure_agreement
from hocal.annotations.independence.annotation_check import (
    AnnotationCheck,
    OrderEffects,
    Summary,
)
from hocal.annotations.independence.annotator_table import AnnotatorEffects, tabulate_annotators
from hocal.annotations.independence.design_effect import DesignEffect, design_effect
from hocal.annotations.independence.drift import Drift, compare_halves
from hocal.annotations.independence.exchangeability import WithinItems, compare_within_items
from hocal.annotations.independence.findings import (
    Finding,
    about_annotators,
    about_classes,
    about_dissenters,
    about_drift,
    about_first_labels,
    about_gold,
    about_labels,
    about_order,
    about_repeats,
    about_sharing,
    about_single_annotators,
)
from hocal.annotations.independence.label_numbers import FirstLabels, compare_first_labels
from hocal.annotations.independence.left_out_annotators import count_votes
from hocal.annotations.independence.vote_layout import lay_out
from hocal.annotations.independence.votes import Repeats, Votes, read_votes, set_repeats_aside

__all__ = ["check_annotations"]


def check_annotations(
    table: Any,
    *,
    item: str,
    label: str | Sequence[str],
    annotator: str | None = None,
    time: str | None = None,
    in_order: bool = False,
    gold: str | None = None,
    classes: Sequence[Any] | None = None,
    ordinal: bool = False,
    missing: str = "error",
    alpha: float = 0.05,
    n_resamples: int = 199,
    random_state: Any = None,
) -> AnnotationCheck:
    """Check the assumptions of the guarantees: independent labels, independent items.

    If labels of an item are independent given the item, then, given all its labels, each annotator
    holds one of them at random. So an annotator's count of a class is a sum of independent coins
    whose biases are the shares of the class in the items' labels, and its tail is exact with any
    number of labels and items. Overall tests permute the labels of each item among its annotators
    at random, again and again.

    Parameters
    ----------
    table : dataframe
        One row per judgement: a pandas, polars (eager or lazy) or Spark dataframe, a pyarrow table
        or a DuckDB relation. The named columns are brought into memory.
    item : str
        Column that tells what was judged.
    label : str or sequence of str
        Column with the labels, or one column for each annotator, in which gaps are no judgement.
    annotator : str, optional
        Column that tells who judged; to be left out with one column for each annotator.
    time : str, optional
        Column that tells when, or in which order: numbers, dates, or text in ISO form.
    in_order : bool, default=False
        Whether the rows are in the order in which labels were given, in place of `time`; for tables
        in memory and files, whose rows have an order.
    gold : str, optional
        Column with the right label of gold questions, empty for all others.
    classes : sequence, optional
        The classes in order. By default all labels found, sorted.
    ordinal : bool, default=False
        Whether this order is a scale, for Krippendorff's alpha.
    missing : {"error", "drop"}, default="error"
        What to do with rows in which one of the columns has no value.
    alpha : float, default=0.05
        Error rate of each finding: the probability of a warning where nothing is wrong.
    n_resamples : int, default=199
        Random permutations of the overall tests; the smallest possible p-value of these is 1 /
        (n_resamples + 1).
    random_state : int, Generator or None
        Seed or source of randomness.

    Returns
    -------
    AnnotationCheck
        Numbers, one row per annotator, and findings in words.

    Examples
    --------
    Five people toss a coin for each of 40 items; a sixth does not look and always says yes.

    >>> import numpy as np
    >>> import pandas as pd
    >>> from hocal.annotations.independence import check_annotations
    >>> coins = np.random.default_rng(0).integers(0, 2, (40, 5))
    >>> labels = np.where(np.column_stack([coins, np.ones(40)]), "yes", "no")
    >>> table = pd.DataFrame({"item": np.repeat(np.arange(40), 6), "label": labels.ravel()})
    >>> table["person"] = list("ABCDEF") * 40
    >>> columns = {"item": "item", "label": "label", "annotator": "person"}
    >>> check = check_annotations(table, **columns, random_state=0)
    >>> [finding.topic for finding in check.findings if finding.severity == "warning"]
    ['annotators', 'single annotators']
    >>> check.annotators.with_finding("class use"), check.annotators.with_finding("dissents")
    (('F',), ())
    >>> check.panel_size
    6
    """
    alpha = check_fraction(alpha, "alpha")
    check_flag(in_order, "in_order")
    check_flag(ordinal, "ordinal")
    n_permutations = check_n_resamples(n_resamples)
    generator = check_random_state(random_state)
    everything = read_votes(
        table,
        item=item,
        label=label,
        annotator=annotator,
        time=time,
        in_order=in_order,
        gold=gold,
        classes=classes,
        missing=missing,
    )
    check_order(everything.classes, ordinal, given=classes is not None)
    votes, repeats = set_repeats_aside(everything, generator)
    tests = _run_tests(votes, n_permutations, generator, alpha)
    agreement = _measure(votes, tests.effects, ordinal, 1 - alpha)
    panel_size = _panel_size(votes)
    return AnnotationCheck(
        **_work(everything, votes),
        **tests.fields(),
        repeats=repeats,
        agreement=agreement,
        panel_size=panel_size,
        alpha=alpha,
        findings=_tell(tests, agreement, votes, repeats, panel_size, alpha),
    )


def _measure(
    votes: Votes, effects: AnnotatorEffects, ordinal: bool, confidence: float
) -> Agreement:
    """Return how much people agree, and what each of them does to it."""
    counted = measure_agreement(count_votes(votes), ordinal=ordinal, confidence=confidence)
    return with_effects(counted, votes, effects)


class _Tests(NamedTuple):
    """What the tests found."""

    within: WithinItems
    drift: Drift | None  #: None where the table has no time
    order: OrderEffects | None  #: None where the table has no time
    effects: AnnotatorEffects
    sharing: DesignEffect
    first_labels: FirstLabels | None  #: None where the table has no time, or all have as many

    def fields(self) -> dict[str, Any]:
        """Return what an AnnotationCheck keeps."""
        return {
            "class_use": self.within.class_use,
            "dissent": self.within.dissent,
            "annotators": self.effects,
            "order": self.order,
            "first_labels": self.first_labels,
            "sharing": self.sharing,
        }


def _run_tests(
    votes: Votes, n_permutations: int, generator: np.random.Generator, alpha: float
) -> _Tests:
    n_annotators = len(votes.annotators)
    n_classes = len(votes.classes)
    layout = lay_out(
        votes.item, votes.annotator, votes.label, n_annotators=n_annotators, n_classes=n_classes
    )
    within = compare_within_items(layout, n_resamples=n_permutations, generator=generator)
    drift = None
    order = None
    first = None
    if votes.time is not None:
        drift = compare_halves(
            layout, votes.time[layout.place], n_resamples=n_permutations, generator=generator
        )
        order = _order(within, drift, votes)
        first = compare_first_labels(votes)
    sharing = design_effect(votes.item, votes.annotator, layout, within.sharing_p_value)
    effects = tabulate_annotators(votes, layout, alpha=alpha, drift=drift)
    return _Tests(within, drift, order, effects, sharing, first)


def _tell(
    tests: _Tests,
    agreement: Agreement,
    votes: Votes,
    repeats: Repeats,
    panel_size: int | None,
    alpha: float,
) -> tuple[Finding, ...]:
    """Say in words what the tests found."""
    n_single = int(np.count_nonzero(np.bincount(votes.item) < 2))
    return (
        about_labels(votes.n_items, n_single, len(votes.annotators)),
        about_classes(votes.classes),
        about_first_labels(tests.first_labels, votes.time is not None, alpha),
        about_repeats(repeats),
        about_annotators(tests.within.class_use, tests.within.dissent, alpha),
        about_single_annotators(*_count_found(tests.effects, alpha), alpha),
        *([] if (gone := agreement.without_dissenters) is None else [about_dissenters(gone)]),
        *about_gold(tests.effects),
        *([] if tests.order is None else [about_order(tests.within, tests.order.n_ties, alpha)]),
        *([] if tests.drift is None else [about_drift(tests.drift, alpha)]),
        about_sharing(tests.sharing, panel_size, alpha),
    )


def _panel_size(votes: Votes) -> int | None:
    """Return the number of annotators where all of them judged all items."""
    n_annotators = len(votes.annotators)
    return n_annotators if np.bincount(votes.item).min() == n_annotators > 1 else None


def _work(everything: Votes, votes: Votes) -> dict[str, Any]:
    """Tell who did how much."""
    activity = np.sort(np.bincount(everything.annotator))
    shares = activity / activity.sum()
    return {
        "n_judgements": len(everything),
        "n_items": votes.n_items,
        "n_annotators": len(votes.annotators),
        "n_missing": votes.n_missing,
        "classes": votes.classes,
        "labels_per_item": _summarise(np.bincount(everything.item)),
        "annotators_per_item": _summarise(np.bincount(votes.item)),
        "items_per_annotator": _summarise(np.bincount(votes.annotator)),
        "busiest_share": float(shares[-math.ceil(len(shares) / 10) :].sum()),
        "n_effective_annotators": float(1 / (shares @ shares)),
    }


def _order(within: WithinItems, drift: Drift, votes: Votes) -> OrderEffects:
    time = np.asarray(votes.time)
    _, counts = np.unique(votes.item * (time.max() + 1) + time, return_counts=True)
    return OrderEffects(
        agreement=within.agreement,
        expected_agreement=within.expected_agreement,
        agreement_p_value=within.agreement_p_value,
        shift=tuple(within.shift.tolist()),
        shift_p_value=within.shift_p_value,
        drift_ratio=drift.ratio,
        drift_p_value=drift.p_value,
        n_ties=int(counts[counts > 1].sum()),
    )


def _count_found(effects: AnnotatorEffects, alpha: float) -> tuple[int, int, int]:
    """Return how many annotators stand out by Holm, by the other rule, and were tested."""
    return (
        int(np.count_nonzero(effects.p_value_holm <= alpha)),
        int(np.count_nonzero(effects.p_value_fdr <= alpha)),
        int(np.count_nonzero(~np.isnan(effects.p_value))),
    )


def _summarise(numbers: IntArray) -> Summary:
    return Summary(*(float(f(numbers)) for f in (np.min, np.median, np.mean, np.max)))
