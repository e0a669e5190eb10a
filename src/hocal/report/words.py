"""Say a summary in plain words, for the page and for Markdown alike."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from hocal.report.schema import Calibration, CellRow, Confusion, Planning, Summary, Trust

__all__ = [
    "ADVICE",
    "Finding",
    "about_confusions",
    "about_data",
    "about_parts",
    "about_planning",
    "about_trust",
    "fixed",
    "interval",
    "percent",
    "remarks",
    "said",
    "some",
    "whole",
]

Tone = Literal["good", "caution", "unknown"]

ADVICE = {
    "epistemic": "The model does not know: improve it, or add data",
    "aleatoric": "People disagree: accept it, or ask a clearer question",
}
SIGNIFICANT = 0.05
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
    return (
        "-" if value is None else f"{round(value, digits) + 0.0:.{digits}f}"
    )  # + 0.0, so that nothing reads -0.000


def percent(share: float | None) -> str:
    """Return a share as a percentage, with a digit more where it is small."""
    if share is None:
        return "-"
    return f"{100 * share:.{0 if share >= 0.0995 or share == 0 else 1}f}%"


def whole(value: int) -> str:
    """Return an integer with separators."""
    return f"{value:,}"


def some(value: int, noun: str) -> str:
    """Return a number with its noun, "1 item" or "1,200 items"."""
    return f"{whole(value)} {noun}{'s' * (value != 1)}"


def said(pairs: list[Any] | None) -> str:
    """Return classes with their labels, such as "cat (31), dog (19)"."""
    return ", ".join(f"{name} ({n})" for name, n in pairs or [])


def about_data(summary: Summary) -> str:
    """Say what was looked at."""
    data = summary["data"]
    each = whole(data["fewest_labels"])
    if data["most_labels"] > data["fewest_labels"]:
        each += f" to {whole(data['most_labels'])}"
    return (
        f"{some(data['n_items'], 'item')} in {whole(data['n_classes'])} classes. The uncertainty was learned from "
        f"{some(data['calibration_labels'], 'label')} of {some(data['calibration_items'], 'calibration item')}, "
        f"{each} each."
    )


def about_parts(summary: Summary) -> list[str]:
    """Say what the uncertainty is made of."""
    parts = summary["parts"]
    share = parts["epistemic_share"]
    predictive = parts["predictive"]["mean"]
    if share is None:
        return [
            "The model is certain of every item, and so are the people who labelled items like them."
        ]
    aleatoric = parts["aleatoric"]
    epistemic = parts["epistemic"]
    verdict = (
        "Which is which is a guess: with one label an item, people who disagree cannot be told from a model that does "
        "not know. A second label for some of the items would tell."
        if summary["data"]["most_labels"] == 1
        else "Most of it is the model not knowing: better data or a better model can remove it."
        if share >= 0.6
        else "Most of it is people disagreeing: no model can remove it."
        if share <= 0.4
        else "People disagreeing and the model not knowing weigh about the same."
    )
    return [
        f"The mean uncertainty is {fixed(predictive)} nats, of at most {fixed(parts['maximum'], 2)}. "
        f"{fixed(aleatoric['mean'])} of it is aleatoric and {fixed(epistemic['mean'])} epistemic, "
        f"{percent(share)} of the whole.",
        verdict,
        f"A tenth of the items has more than {fixed(epistemic['high'])} nats of epistemic uncertainty, and a tenth "
        f"more than {fixed(aleatoric['high'])} of aleatoric.",
    ]


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
        f"When two people disagree about an item, the two labels are {first['first']} and {first['second']} in "
        f"{percent(first['share'])} of cases."
    )


def about_planning(planning: Planning) -> str:
    """Say how to spend a new budget of labels."""
    best = next(row for row in planning["splits"] if row["k"] == planning["best_k"])
    near = [
        str(row["k"])
        for row in planning["splits"]
        if row is not best
        and row["error"] - best["error"] <= 2 * (row["standard_error"] + best["standard_error"])
    ]
    rest = (
        f" {' or '.join(near)} labels each do as well within the noise of the simulation."
        if near
        else ""
    )
    return (
        f"Of a new study with {whole(planning['budget'])} labels, simulated in a world like this one, "
        f"{some(best['n_items'], 'item')} with {some(best['k'], 'label')} each give the smallest error of aleatoric "
        f"uncertainty: {fixed(best['error'])} ± {fixed(best['standard_error'])} nats.{rest}"
    )


def interval(ends: list[float] | None, vacuous: bool) -> str:
    """Return an interval, or say why there is none."""
    if ends is None:
        return "no labels of its own"
    return "says nothing" if vacuous else f"{fixed(ends[0])} to {fixed(ends[1])}"


def remarks(row: CellRow) -> list[str]:
    """Return what a reader should know about a cell before trusting its numbers."""
    notes = [] if row["source"] == "cell" else [BORROWED[row["source"]]]
    if row["aleatoric_interval"] and row["aleatoric_vacuous"]:
        notes.append("too few labels to prove anything")
    elif row["aleatoric_interval"] and not row["aleatoric_inside"]:
        notes.append("estimate outside its interval: leans on other cells")
    if row["p_value"] is not None and row["p_value"] < SIGNIFICANT:
        notes.append(f"held-out labels unlike the prediction (p = {row['p_value']:.2g})")
    return notes


def _measured(calibration: Calibration | None) -> Finding:
    if calibration is None:
        text = "No held-out labels were given, or no item has enough. Pass counts of labels that were not used to fit."
        return Finding("unknown", "Calibration was not measured", text)
    few = (
        ""
        if calibration["n_items"] == calibration["n_available"]
        else f" of {whole(calibration['n_available'])}"
    )
    what = (
        "labels"
        if calibration["k"] == 1
        else "pairs"
        if calibration["k"] == 2
        else f"{calibration['k']}-snapshots"
    )
    text = (
        f"On {whole(calibration['n_items'])}{few} held-out items, predicted and observed {what} of labels are "
        f"{fixed(calibration['mean'])} apart, where 0 is perfect and 2 the worst. Perfect predictions would be "
        f"{fixed(calibration['noise_floor'])} apart by chance, and as far as this in {percent(calibration['p_value'])} "
        "of cases."
    )
    if calibration["p_value"] >= SIGNIFICANT:
        return Finding("good", "No sign of miscalibration", text)
    return Finding(
        "caution", f"Off by {fixed(calibration['excess'])} more than chance explains", text
    )


def _disagreement(calibration: Calibration) -> list[Finding]:
    predicted = calibration["predicted_disagreement"]
    observed = calibration["observed_disagreement"]
    if predicted is None or observed is None:
        return []
    text = (
        f"Two people were predicted to disagree about an item with probability {percent(predicted)}; among the "
        f"held-out labels they did in {percent(observed)} of pairs."
    )
    if calibration["aleatoric_error"] is not None:
        text += (
            f" Cell by cell, aleatoric uncertainty is {fixed(calibration['aleatoric_error'])} nats from the mean "
            f"entropy of histograms of about {calibration['median_labels']:g} labels, which understate it a little."
        )
    close = abs(predicted - observed) <= max(0.02, 0.1 * observed)
    return [Finding("good" if close else "caution", "Disagreement, predicted and seen", text)]


def _certified(trust: Trust) -> Finding:
    part = trust["certificate"]
    scope = "for all cells at once" if part["simultaneous"] else "for each cell on its own"
    text = (
        f"With confidence {percent(part['confidence'])} {scope}, the labels prove limits for the aleatoric uncertainty "
        f"of {whole(part['n_cells'] - part['n_vacuous'])} of {some(part['n_cells'], 'cell')} with labels, which hold "
        f"{percent(part['informed_share'])} of the items. The mean width is {fixed(part['mean_width'])} nats."
    )
    if part["n_vacuous"]:
        text += f" In {some(part['n_vacuous'], 'cell')} there are too few labels to prove anything."
    if part["n_outside"]:
        text += f" In {some(part['n_outside'], 'cell')} the estimate lies outside its limits."
    good = part["informed_share"] >= 0.5 and not part["n_outside"]
    return Finding(
        "good" if good else "caution",
        f"Proved for {percent(part['informed_share'])} of the items",
        text,
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
    text = (
        f"{some(trust['borrowed_cells'], 'cell')} with {some(trust['borrowed_items'], 'item')} had no labels and took "
        "those of neighbouring cells. Nothing is proved there."
    )
    share = trust["borrowed_items"] / n_items
    return Finding(
        "good" if share < 0.05 else "caution",
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
    warnings = [finding for finding in check["findings"] if finding["severity"] == "warning"]
    scope = f"{some(check['n_judgements'], 'judgement')} by {some(check['n_annotators'], 'annotator')} were checked."
    if not warnings:
        return Finding(
            "good", "No sign of dependent labels", f"{scope} This is no proof that there is none."
        )
    text = " ".join(f"{finding['message']} {finding['action']}".strip() for finding in warnings)
    if all(finding["topic"] == "repeats" for finding in warnings):
        return Finding(
            "caution",
            "Some people judged an item twice",
            f"{scope} {text} With the repeats left out there is no sign of dependent labels.",
        )
    return Finding("caution", "Labels do not look independent", f"{scope} {text}")
