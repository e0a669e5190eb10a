"""Say a summary in plain words, for the page and for Markdown alike."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from hocal._base.plurals import counted
from hocal._base.shares import percent
from hocal.guarantees.promises import OUTSIDE
from hocal.report.independence import is_dependent
from hocal.report.schema import (
    Calibration,
    CellRow,
    CertificatePart,
    CheckFinding,
    Confusion,
    ItemRow,
    Planning,
    Summary,
    Trust,
)

__all__ = [
    "ADVICE",
    "Finding",
    "about_checks",
    "about_confusions",
    "about_data",
    "about_labels",
    "about_parts",
    "about_planning",
    "about_trust",
    "counted",
    "fixed",
    "interval",
    "list_labels",
    "looks_dependent",
    "mark",
    "percent",
    "remarks",
    "whole",
]

Tone = Literal["good", "caution", "unknown"]

ADVICE = {
    "epistemic": "The model does not know: improve it, or add data",
    "aleatoric": "People disagree: accept it, or ask a clearer question",
}
ENOUGH_INFORMED = 0.5  # share of the items in cells with limits that say something
SIGNIFICANT = 0.05  # p-values below count as a sign of miscalibration
MOST = 0.6  # a part with at least this share of the uncertainty is "most of it"
CLOSE_DISAGREEMENT = 0.02  # predicted and observed disagreement that differ by less agree
CLOSE_SHARE = 0.1  # ... or by less than this share of what was observed
FEW_BORROWED = 0.05  # of the items: fewer in cells without labels are no reason for caution
BORROWED = {
    "cell": "own labels",
    "neighbours": "borrowed from its neighbours",
    "pool": "borrowed from all cells",
}


class Finding(NamedTuple):
    """One thing that speaks for or against the numbers."""

    tone: Tone
    title: str
    text: str


def fixed(value: float | None, digits: int = 3) -> str:
    """Return a number with fixed digits, or a dash."""
    if value is None:
        return "-"
    return f"{round(value, digits) + 0.0:.{digits}f}"  # + 0.0, so that nothing reads -0.000


def whole(value: int) -> str:
    """Return an integer with separators."""
    return f"{value:,}"


def list_labels(pairs: list[Any] | None) -> str:
    """Return classes with their labels, such as "cat (31), dog (19)"."""
    return ", ".join(f"{name} ({n})" for name, n in pairs or [])


def about_labels(item: ItemRow) -> str:
    """Say what people said of an item: "10 of 10 people agree: dog", or each class's labels."""
    if item["agreed"] and item["labels"]:
        n_labels = whole(item["n_labels"])
        return f"{n_labels} of {n_labels} people agree: {item['labels'][0][0]}"
    return list_labels(item["labels"])


def about_data(summary: Summary) -> str:
    """Say what was looked at."""
    data = summary["data"]
    each = whole(data["fewest_labels"])
    if data["most_labels"] > data["fewest_labels"]:
        each += f" to {whole(data['most_labels'])}"
    items = counted(data["n_items"], "item")
    labels = counted(data["calibration_labels"], "label")
    calibration_items = counted(data["calibration_items"], "calibration item")
    classes = counted(data["n_classes"], "class", "classes")
    return (
        f"{items} in {classes}. The uncertainty was learned from "
        f"{labels} of {calibration_items}, {each} each."
    )


def about_parts(summary: Summary) -> list[str]:
    """Say what the uncertainty is made of."""
    parts = summary["parts"]
    share = parts["epistemic_share"]
    if share is None:
        return [
            "The model is certain of every item, and so are the people who labelled such items."
        ]
    predictive = parts["predictive"]
    aleatoric = parts["aleatoric"]
    epistemic = parts["epistemic"]
    means = (
        f"The mean uncertainty is {fixed(predictive['mean'])} nats; the largest possible is "
        f"{fixed(parts['maximum'], 2)}. {fixed(aleatoric['mean'])} of it is aleatoric and "
        f"{fixed(epistemic['mean'])} epistemic, {percent(share)} of the whole."
    )
    tails = (
        f"A tenth of the items have more than {fixed(epistemic['high'])} nats of epistemic "
        f"uncertainty, and a tenth more than {fixed(aleatoric['high'])} of aleatoric."
    )
    return [means, _verdict(share, summary["data"]["most_labels"]), tails]


def _verdict(epistemic_share: float, most_labels: int) -> str:
    if most_labels == 1:
        return (
            "Which is which is a guess: with one label per item, people who disagree look the same "
            "as a model that does not know. A second label for some of the items would tell."
        )
    if epistemic_share >= MOST:
        return "Most of it is the model not knowing: better data or a better model can remove it."
    if epistemic_share <= 1 - MOST:
        return "Most of it is people disagreeing: no model can remove it."
    return "People disagreeing and the model not knowing weigh about the same."


def about_trust(summary: Summary) -> list[Finding]:
    """Say what speaks for and against the numbers."""
    trust = summary["trust"]
    findings = [_measured(trust["calibration"])]
    if trust["calibration"]:
        findings += _disagreement(trust["calibration"])
    return [*findings, _certified(trust), _borrowed(summary), _independent(trust)]


def about_confusions(confusions: list[Confusion]) -> str:
    """Say which classes people confuse."""
    if not confusions:
        return "No two labels of a calibration item differ, or no item has two."
    first = confusions[0]
    return (
        "When two people disagree about an item, the two labels are "
        f"{first['first']} and {first['second']} in {percent(first['share'])} of cases."
    )


def about_planning(planning: Planning) -> str:
    """Say how to spend a new budget of labels."""
    best = next(row for row in planning["splits"] if row["k"] == planning["best_k"])
    near = [*map(str, planning["near_k"])]
    items = counted(best["n_items"], "item")
    labels = counted(best["k"], "label")
    text = (
        f"In a new study with {counted(planning['budget'], 'label')}, simulated in a world like "
        f"this one, {items} with {labels} each give the smallest error of aleatoric uncertainty: "
        f"{fixed(best['error'])} ± {fixed(best['standard_error'])} nats."
    )
    if near:
        each = "label each does" if near == ["1"] else "labels each do"
        text += f" {' or '.join(near)} {each} as well within the noise of the simulation."
    return text


def interval(ends: list[float] | None, vacuous: bool) -> str:
    """Return an interval, or say why there is none."""
    if ends is None:
        return "no labels of its own"
    return "says nothing" if vacuous else f"{fixed(ends[0])} to {fixed(ends[1])}"


def mark(row: CellRow) -> str:
    """Return a mark for an estimate outside its limits, else nothing."""
    proved = row["aleatoric_interval"] and not row["aleatoric_vacuous"]
    return "! " if proved and not row["aleatoric_inside"] else ""


def remarks(row: CellRow) -> list[str]:
    """Return what a reader should know about a cell before trusting its numbers."""
    notes = [] if row["source"] == "cell" else [BORROWED[row["source"]]]
    if row["aleatoric_interval"] and row["aleatoric_vacuous"]:
        notes.append("too few labels to prove anything")
    elif row["aleatoric_interval"] and not row["aleatoric_inside"]:
        notes.append(f"! estimate outside its limits. {OUTSIDE}")
    if row["p_value"] is not None and row["p_value"] < SIGNIFICANT:
        notes.append(f"held-out labels unlike the prediction (p = {row['p_value']:.2g})")
    return notes


def _measured(calibration: Calibration | None) -> Finding:
    if calibration is None:
        text = (
            "No held-out labels were given, or no item has enough. "
            "Pass counts of labels that were not used to fit."
        )
        return Finding("unknown", "Calibration was not measured", text)
    text = (
        f"On {_held_out_items(calibration)}, predicted and observed {_snapshots(calibration['k'])} "
        f"are {fixed(calibration['mean'])} apart, where 0 is perfect and 2 the worst. "
        f"Perfect predictions would be {fixed(calibration['noise_floor'])} apart by chance, "
        f"and as far as this in {percent(calibration['p_value'])} of cases."
    )
    if calibration["training"]:
        return Finding("caution", "A training figure, no test", f"{_fitted(calibration)} {text}")
    if calibration["n_fitted"]:
        text += f" {_fitted(calibration)}"
    if calibration["p_value"] >= SIGNIFICANT:
        return Finding("good", "No sign of miscalibration", text)
    return Finding(
        "caution", f"Off by {fixed(calibration['excess'])} more than chance explains", text
    )


def _fitted(calibration: Calibration) -> str:
    """Say how many of the items were fitted on, and what that means."""
    were = "was" if calibration["n_fitted"] == 1 else "were"
    fitted = f"{counted(calibration['n_fitted'], 'item')} with labels {were} fitted on"
    if not calibration["training"]:
        return f"{fitted} and left out."
    return (
        f"{fitted}: on these any model looks good, and too few others are left to measure. "
        "Pass labels of items that were not used to fit."
    )


def _held_out_items(calibration: Calibration) -> str:
    noun = "item" if calibration["training"] else "held-out item"
    if calibration["n_items"] == calibration["n_available"]:
        return counted(calibration["n_items"], noun)
    available = counted(calibration["n_available"], noun)
    return f"{whole(calibration['n_items'])} of {available}"


def _snapshots(k: int) -> str:
    return {1: "labels", 2: "pairs of labels"}.get(k, f"snapshots of {k} labels")


def _disagreement(calibration: Calibration) -> list[Finding]:
    predicted = calibration["predicted_disagreement"]
    observed = calibration["observed_disagreement"]
    if predicted is None or observed is None:
        return []
    text = (
        f"Two people were predicted to disagree about an item with probability "
        f"{percent(predicted)}; among the held-out labels they did in {percent(observed)} of pairs."
    )
    if calibration["aleatoric_error"] is not None:
        error = fixed(calibration["aleatoric_error"])
        text += (
            f" Cell by cell, aleatoric uncertainty is {error} nats from the mean entropy of "
            f"histograms of about {calibration['median_labels']:g} labels, "
            "which understate it a little."
        )
    tolerance = max(CLOSE_DISAGREEMENT, CLOSE_SHARE * observed)
    close = abs(predicted - observed) <= tolerance
    if calibration["training"]:
        text += " Most of these labels were fitted on: this is no test."
    good = close and not calibration["training"]
    return [Finding("good" if good else "caution", "Disagreement, predicted and seen", text)]


def _certified(trust: Trust) -> Finding:
    part = trust["certificate"]
    scope = "for all cells at once" if part["simultaneous"] else "for each cell on its own"
    n_informed = part["n_cells"] - part["n_vacuous"]
    text = (
        f"With confidence {percent(part['confidence'])} {scope}, the labels give limits for the "
        f"aleatoric uncertainty of {whole(n_informed)} of {counted(part['n_cells'], 'cell')} with "
        f"labels, which hold {counted(part['informed_items'], 'item')}. "
        f"The mean width is {fixed(part['mean_width'])} nats."
    )
    if part["n_vacuous"]:
        text += (
            f" In {counted(part['n_vacuous'], 'cell')} there are too few labels to prove anything."
        )
    if part["n_outside"]:
        cells = counted(part["n_outside"], "cell")
        text += f" In {cells}, marked with !, the estimate lies outside its limits. {OUTSIDE}"
    share = percent(part["informed_share"])
    if looks_dependent(trust):
        title = f"Limits for {share} of the items are not proved: labels look dependent"
        return Finding("caution", title, f"{text} {_widened(part)}")
    good = part["informed_share"] >= ENOUGH_INFORMED and not part["n_outside"]
    return Finding("good" if good else "caution", f"Proved for {share} of the items", text)


def _widened(part: CertificatePart) -> str:
    """Say what dependent labels did to the limits."""
    if part["design_effect"] <= 1:
        return "Limits hold for independent labels only; how much too narrow they are is not known."
    n_items = part["calibration_items"]
    return (
        f"Limits are widened for that: {counted(n_items, 'calibration item')} count as "
        f"{whole(part['effective_items'])}, which is reasonable but no guarantee."
    )


def _borrowed(summary: Summary) -> Finding:
    trust = summary["trust"]
    n_items = summary["data"]["n_items"]
    if not trust["borrowed_items"]:
        return Finding(
            "good",
            "Every item has labels of its own cell",
            "No cell had to borrow labels from another.",
        )
    cells = counted(trust["borrowed_cells"], "cell")
    items = counted(trust["borrowed_items"], "item")
    text = (
        f"{cells} with {items} had no labels and took those of neighbouring cells. "
        "Nothing is proved there."
    )
    share = trust["borrowed_items"] / n_items
    return Finding(
        "good" if share < FEW_BORROWED else "caution",
        f"{percent(share)} of the items use borrowed labels",
        text,
    )


def _independent(trust: Trust) -> Finding:
    check = trust["check"]
    if check is None:
        text = (
            "All of this rests on labels that are independent given the item. "
            "Check them with the command hocal check, or with hocal.check_annotations."
        )
        return Finding("unknown", "Independence of the labels was not checked", text)
    warnings = _warnings(trust)
    judgements = counted(check["n_judgements"], "judgement")
    annotators = counted(check["n_annotators"], "annotator")
    scope = (
        f"{judgements} by {annotators} {'was' if check['n_judgements'] == 1 else 'were'} checked."
    )
    if not warnings:
        return Finding(
            "good", "No sign of dependent labels", f"{scope} This is no proof that there is none."
        )
    topics = ", ".join(dict.fromkeys(finding["topic"] for finding in warnings))
    text = f"{scope} {counted(len(warnings), 'warning')}: {topics}. What was found is said below."
    if not looks_dependent(trust):
        clean = "With the repeats left out there is no sign of dependent labels."
        return Finding("caution", "Some people judged an item twice", f"{text} {clean}")
    return Finding("caution", "Labels do not look independent", text)


def looks_dependent(trust: Trust) -> bool:
    """Tell whether a check warned of more than people who judged an item twice."""
    return is_dependent(trust["check"])


def _warnings(trust: Trust) -> list[CheckFinding]:
    found = [] if trust["check"] is None else trust["check"]["findings"]
    return [finding for finding in found if finding["severity"] == "warning"]


def about_checks(trust: Trust) -> list[str]:
    """Say what a check of the labels found, warnings first; nothing where there was none."""
    found = [] if trust["check"] is None else trust["check"]["findings"]
    warnings_first = sorted(found, key=lambda finding: finding["severity"] != "warning")
    return [_about_check(finding) for finding in warnings_first]


def _about_check(finding: CheckFinding) -> str:
    heading = f"{finding['severity']}, {finding['topic']}"
    return f"{heading}: {finding['message']} {finding['action']}".strip()
