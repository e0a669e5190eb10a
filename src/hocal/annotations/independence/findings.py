"""Findings: what a check of annotations means for the guarantees, in words."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from hocal._base.plurals import counted
from hocal._base.shares import percent
from hocal.annotations.independence.annotator_table import AnnotatorEffects
from hocal.annotations.independence.design_effect import DesignEffect
from hocal.annotations.independence.drift import Drift
from hocal.annotations.independence.exchangeability import Spread, WithinItems
from hocal.annotations.independence.label_numbers import FirstLabels
from hocal.annotations.independence.left_out_annotators import Remainder
from hocal.annotations.independence.plain_values import p_text
from hocal.annotations.independence.votes import Repeats
from hocal.annotations.spellings import similar_classes
from hocal.annotations.tables import enumerate_few

__all__ = [
    "Finding",
    "about_annotators",
    "about_classes",
    "about_dissenters",
    "about_drift",
    "about_first_labels",
    "about_gold",
    "about_labels",
    "about_order",
    "about_repeats",
    "about_sharing",
    "about_single_annotators",
]

# factors of an interval's width that deserve a note and a warning
_LITTLE_WIDER = 1.02
_MUCH_WIDER = 1.1


class Finding(NamedTuple):
    """One thing found, or looked for and not found.

    Attributes
    ----------
    topic : str
        What was looked at.
    severity : {"ok", "note", "warning"}
        "warning": an assumption of the guarantees fails; "note": something to know, or that could
        not be tested; "ok": no sign of trouble, which is no proof that there is none.
    message : str
        What was found.
    action : str
        What to do about it; empty where there is nothing to do.
    """

    topic: str
    severity: Literal["ok", "note", "warning"]
    message: str
    action: str = ""


def about_labels(n_items: int, n_single: int, n_annotators: int) -> Finding:
    """Say whether there are enough labels to test anything."""
    if n_annotators == 1:
        return Finding(
            "labels",
            "warning",
            "One annotator gave all labels: nothing here tells how people differ, and nothing "
            "can be tested.",
            "Have several annotators judge each item.",
        )
    if n_single == n_items:
        return Finding(
            "labels",
            "warning",
            "No item has labels of two annotators: nothing can be tested.",
            "Have each item, or a random part of them, judged at least twice.",
        )
    if n_single:
        return Finding(
            "labels",
            "note",
            f"{n_single:,} of {counted(n_items, 'item')} "
            f"{'has' if n_single == 1 else 'have'} a label of one annotator only; the tests leave "
            "such items out.",
        )
    if n_items == 1:
        return Finding("labels", "ok", "The only item has labels of two annotators or more.")
    items = counted(n_items, "item")
    return Finding("labels", "ok", f"All {items} have labels of two annotators or more.")


def about_classes(classes: tuple[Any, ...]) -> Finding:
    """Say whether a class seems to be written in two ways."""
    groups = similar_classes(classes)
    if not groups:
        number = counted(len(classes), "class", "classes")
        return Finding("classes", "ok", f"{number}, no two of them spelled alike.")
    shown = [" and ".join(map(repr, group)) for group in groups]
    return Finding(
        "classes",
        "warning",
        f"Classes that differ only in case, spaces or the way a number is written: "
        f"{enumerate_few(shown, len(shown))}. Counted apart, they look like disagreement.",
        "Give them one spelling in the table, or declare the classes (classes=, --classes), so "
        "that others are refused.",
    )


def about_first_labels(first: FirstLabels | None, ordered: bool, alpha: float) -> Finding:
    """Say whether the number of an item's labels depends on them; None if all have as many."""
    topic = "numbers of labels"
    if not ordered:
        return Finding(
            topic,
            "note",
            "Whether an item's number of labels depends on its labels can be told only from their "
            "order.",
            "Name the column that tells when, or say that rows are in order (time=, in_order=; "
            "--time, --in-order).",
        )
    if first is None:
        return Finding(topic, "ok", "All items that were judged twice have as many labels.")
    numbers = (
        f"the first two labels differ on {percent(first.many, 1)} of "
        f"{counted(first.n_many, 'item')} with {first.threshold} labels or more, and on "
        f"{percent(first.few, 1)} of {counted(first.n_few, 'other')}"
    )
    if first.p_value > alpha:
        told = f"No sign that it depends on an item's labels how many it got ({{}}): {numbers}."
        return Finding(topic, "ok", told.format(p_text(first.p_value)))
    return Finding(
        topic,
        "warning",
        f"The number of labels of an item depends on them ({p_text(first.p_value)}): {numbers}. "
        "Asking on until people agree makes disagreement look other than it is, and nothing "
        "computed from all labels holds.",
        "Fix the number of labels beforehand. Of the labels at hand, use as many first ones of "
        "each item as all items have.",
    )


def about_dissenters(remainder: Remainder) -> Finding:
    """Say how much of the disagreement is that of careless people, and what cannot be told."""
    topic = "items or people"
    unknown = (
        "What remains is ambiguity of the items together with whatever carelessness all people "
        "share: labels alone cannot tell these two apart, gold questions can."
    )
    if math.isnan(remainder.remaining):
        return Finding(topic, "note", f"Too few labels to leave anybody out. {unknown}")
    differ = f"{percent(remainder.disagreement, 1)} of pairs of labels differ"
    if not remainder.annotators:
        nobody = "no annotator was found to dissent more than expected"
        return Finding(topic, "ok", f"{differ}, and {nobody}. {unknown}")
    estimate, *ends = (percent(share, 1) for share in remainder.gone)
    return Finding(
        topic,
        "note",
        f"{differ}, {percent(remainder.remaining, 1)} without the {len(remainder.annotators)} who "
        f"dissent more than expected and gave {percent(remainder.judgements, 1)} of the "
        f"judgements: {estimate} of the disagreement ({' to '.join(ends)}) would be gone. "
        f"{unknown}",
        "Look at their judgements before leaving anybody out: whoever honestly disagrees is part "
        "of the aleatoric uncertainty.",
    )


def about_repeats(repeats: Repeats) -> Finding:
    """Say whether annotators judged items twice."""
    if not repeats.n_judgements:
        return Finding("repeats", "ok", "No annotator judged an item twice.")
    return Finding(
        "repeats",
        "warning",
        f"{counted(repeats.n_judgements, 'judgement')} "
        f"{'repeats' if repeats.n_judgements == 1 else 'repeat'} an annotator and item, over "
        f"{counted(repeats.n_pairs, 'pair')}, of which {repeats.n_consistent_pairs:,} "
        f"{'agrees with itself' if repeats.n_consistent_pairs == 1 else 'agree with themselves'}. "
        "Labels of one "
        "annotator are not independent draws: counted twice, they make people look more alike. "
        "The tests kept one judgement of each pair.",
        "Remove all but one of each pair from the table, or leave such pairs out with "
        'duplicates="drop" '
        "(--duplicates drop) when counting labels.",
    )


def about_annotators(class_use: Spread, dissent: Spread, alpha: float) -> Finding:
    """Say whether it matters who labels."""
    if math.isnan(class_use.p_value):
        return Finding(
            "annotators", "note", "No item got two different labels: annotators cannot be compared."
        )
    p_value = min(1.0, 2 * float(np.nanmin([class_use.p_value, dissent.p_value])))
    numbers = f"they differ {class_use.ratio:.2f} times as much as chance in the classes they use"
    if not math.isnan(dissent.ratio):
        numbers += f" and {dissent.ratio:.2f} times in how often they dissent"
    if p_value > alpha:
        return Finding(
            "annotators",
            "ok",
            f"No sign that it matters who labels ({p_text(p_value)}); {numbers}. That is no proof.",
        )
    return Finding(
        "annotators",
        "warning",
        f"It matters who labels ({p_text(p_value)}): given the items, {numbers}. Where annotators "
        "are assigned to items at random, labels of one item are still independent, but items "
        "that share annotators are not.",
        "Spread items over many annotators, assign them at random, and widen intervals as said "
        "under sharing.",
    )


def about_single_annotators(
    n_flagged: int, n_to_look_at: int, n_tested: int, alpha: float
) -> Finding:
    """Say how many annotators stand out."""
    if not n_tested:
        return Finding("single annotators", "note", "No annotator could be compared with others.")
    tested = counted(n_tested, "annotator")
    rule = f"under a rule that names anybody by mere chance in {100 * alpha:g}% of studies at most"
    milder = (
        f"A milder rule, which may be wrong about {100 * alpha:g}% of those it names, names "
        f"{n_to_look_at:,}."
    )
    if not n_flagged:
        return Finding(
            "single annotators",
            "note" if n_to_look_at else "ok",
            f"None of {tested} stands out, {rule}. {milder} "
            "Those with few judgements could hardly be found.",
        )
    return Finding(
        "single annotators",
        "warning",
        f"{n_flagged:,} of {tested} {'labels' if n_flagged == 1 else 'label'} differently from "
        f"the others on the same items, {rule}. {milder}",
        "Look at their judgements. Leave out only those who did not do the task: whoever "
        "honestly disagrees is part of the aleatoric uncertainty.",
    )


def about_gold(effects: AnnotatorEffects) -> list[Finding]:
    """Say how gold questions were answered, and who answered worst; nothing without any."""
    asked = np.flatnonzero(effects.n_gold > 0)
    if not len(asked):
        return []
    right = float(np.average(effects.gold[asked], weights=effects.n_gold[asked]))
    worst = asked[np.argmin(effects.gold_upper[asked])]
    limits = f"{percent(effects.gold_lower[worst])} to {percent(effects.gold_upper[worst])}"
    answers = counted(effects.n_gold.sum(), "answer")
    return [
        Finding(
            "gold questions",
            "note",
            f"{percent(right, 1)} of {answers} to gold questions are right, of "
            f"{counted(len(asked), 'annotator')}. "
            f"Surely worst is {effects.annotator[worst]}: "
            f"{percent(effects.gold[worst])} of {effects.n_gold[worst]} ({limits}).",
        )
    ]


def about_order(within: WithinItems, n_ties: int, alpha: float) -> Finding:
    """Say whether the labels of an item depend on their order."""
    if math.isnan(within.agreement_p_value):
        return Finding(
            "order", "note", "No item got two different labels: their order cannot be tested."
        )
    p_value = min(1.0, 2 * min(within.agreement_p_value, within.shift_p_value))
    numbers = (
        f"{percent(within.agreement, 1)} of labels repeat the item's previous label, "
        f"{percent(within.expected_agreement, 1)} if order does not matter; the share of a class "
        f"moves by up to {percent(np.abs(within.shift).max(), 1)} from early to late"
    )
    if n_ties:
        were = "was" if n_ties == 1 else "were"
        numbers += f"; {counted(n_ties, 'label')} of equal time {were} put in random order"
    if p_value > alpha:
        return Finding(
            "order",
            "ok",
            f"No sign that an item's labels depend on their order ({p_text(p_value)}): {numbers}. "
            "Copying a random earlier label leaves no trace in the order and cannot be seen by "
            "any such test.",
        )
    return Finding(
        "order",
        "warning",
        f"An item's labels depend on their order ({p_text(p_value)}): {numbers}. They are not "
        "independent, and certificates and intervals do not hold.",
        "Hide earlier labels from annotators; check that the task did not change on the way.",
    )


def about_drift(drift: Drift, alpha: float) -> Finding:
    """Say whether annotators change with time."""
    if math.isnan(drift.p_value):
        return Finding(
            "drift", "note", "No annotator has enough judgements to compare first and second half."
        )
    n_found = int(np.count_nonzero(2 * drift.adjusted_p_value <= alpha))
    p_value = min(1.0, 2 * min(drift.p_value, float(np.nanmin(drift.adjusted_p_value))))
    numbers = f"{p_text(p_value)}; halves differ {drift.ratio:.2f} times as much as chance"
    if p_value > alpha:
        return Finding(
            "drift",
            "ok",
            f"No sign that annotators change with time ({numbers}). That is no proof.",
        )
    return Finding(
        "drift",
        "warning",
        f"Annotators change with time ({numbers}, {n_found:,} "
        f"{'stands' if n_found == 1 else 'stand'} out), unless they met different "
        "kinds of items early and late.",
        "Compare early and late judgements; calibrate on labels given under the conditions of use.",
    )


def _about_panel(panel_size: int | None) -> tuple[str, str]:
    """Say that everybody judged everything, and what to do about it; nothing where they did not."""
    if panel_size is None:
        return "", ""
    return (
        f" The same {panel_size} annotators judged every item.",
        f"If these annotators, not people like them, are the truth, pass panel_size={panel_size}.",
    )


def about_sharing(sharing: DesignEffect, panel_size: int | None, alpha: float) -> Finding:
    """Say what annotators shared by items do to intervals, and whether they are a fixed panel."""
    panel, action = _about_panel(panel_size)
    if math.isnan(sharing.design_effect):
        message = (
            "What shared annotators do to intervals cannot be told: that takes several items "
            "with three labels or more that differ in their disagreement."
        )
        return Finding("sharing", "note", message + panel, action)
    p_value = "" if math.isnan(sharing.p_value) else f" ({p_text(sharing.p_value)})"
    message = (
        f"Because items share annotators, {counted(sharing.n_items, 'item')} tell as much about "
        f"the mean disagreement as {sharing.n_effective_items:,.0f} that share none"
        f"{p_value}: a design effect of {sharing.design_effect:.2f}, by which the number of items "
        f"is divided. Intervals become {sharing.widening:.2f} times as wide."
    )
    if sharing.p_value > alpha or sharing.widening <= _LITTLE_WIDER:
        chance = " It may be chance." if sharing.widening > _LITTLE_WIDER else ""
        return Finding(
            "sharing", "note" if chance or panel else "ok", message + chance + panel, action
        )
    return Finding(
        "sharing",
        "warning" if sharing.widening > _MUCH_WIDER else "note",
        f"{message} In a cell with a share s of the items the design effect is about 1 + s "
        f"({sharing.design_effect:.2f} - 1).{panel}",
        "Certificates take items as independent: widen their intervals by the square root, which "
        "makes them "
        f"reasonable but no longer guaranteed. {action}".strip(),
    )
