"""Say in plain words what a model loses, what nobody can avoid and what is left to gain."""

from __future__ import annotations

from hocal.report.schema import Gains, Headroom, Limited, Summary
from hocal.report.words import counted, fixed, looks_dependent, percent, whole

__all__ = [
    "about_classes",
    "about_headroom",
    "limits_of",
    "main_sentence",
    "name_loss",
    "with_limits",
]


def about_headroom(summary: Summary) -> list[str]:
    """Return the sentences of the first figure: the three numbers, then how they are known."""
    headroom = summary["headroom"]
    if not headroom["measured"]:
        return [main_sentence(headroom), *_about_an_estimate(summary)]
    sentences = [main_sentence(headroom), _how_measured(headroom)]
    if headroom["unit"] == "":
        sentences.append(
            "Some predicted probabilities are 0, which makes the log loss infinite for a label of "
            "such a class. This is the Brier score instead, from 0 to 2."
        )
    sentences += _about_calibration(headroom)
    if looks_dependent(summary["trust"]):
        sentences.append("The labels do not look independent: the limits may be too narrow.")
    return sentences


def main_sentence(headroom: Headroom) -> str:
    """Return "Your model's log loss is 0.450. No model can go below 0.150. At most ..."."""
    gains = headroom["gains"]
    name = headroom["loss_name"]
    loss = fixed(gains["loss"]["estimate"])
    floor = fixed(gains["irreducible"]["estimate"])
    if not headroom["measured"]:
        left = fixed(gains["remaining"]["estimate"])
        return (
            f"Calibrated, your model should have a {name} of {loss}. No model should go below "
            f"{floor}, so that {left} should be left to gain."
        )
    if gains["irreducible"]["estimate"] is None:
        unknown = "No item has two labels, so nothing tells what no model can avoid."
        return f"Your model's {name} is {loss}. {unknown}"
    return f"Your model's {name} is {loss}. No model can go below {floor}. {_left(gains)}"


def _left(gains: Gains) -> str:
    remaining = gains["remaining"]
    most = fixed(remaining["upper"])
    least = fixed(remaining["lower"])
    if float(least) > 0:
        return f"At most {most} is left to gain, at least {least}."
    return f"At most {most} is left to gain, perhaps nothing."


def _about_an_estimate(summary: Summary) -> list[str]:
    items = counted(summary["headroom"]["n_items"], "item")
    sentences = [
        f"This is an estimate for the {items} of this page, from the labels of the calibration "
        "items; nothing was measured here. Labels of some of these items would show what your "
        "model loses, with limits."
    ]
    if summary["data"]["most_labels"] == 1:
        sentences.append(
            "With one label per item it is little more than a guess: people who disagree look the "
            "same as a model that does not know."
        )
    if summary["data"]["panel_size"]:
        people = summary["data"]["panel_size"]
        sentences.append(f"What nobody can avoid is meant as a panel of {people} people shows it.")
    return sentences


def _how_measured(headroom: Headroom) -> str:
    items = counted(headroom["n_items"], "item")
    if headroom["n_available"] > headroom["n_items"]:
        items += f" drawn from {whole(headroom['n_available'])}"
    agreement = headroom["agreement"]
    best = headroom["best_agreement"]
    text = (
        f"Measured on {items} with labels; each pair of limits holds with a confidence of "
        f"{percent(headroom['confidence'])}."
    )
    if agreement is None:
        return text
    agree = percent(agreement["estimate"])
    text += f" A new person says what the model finds most likely about {agree} of the items"
    if best is None or best["estimate"] is None:
        return f"{text}."
    return f"{text}; no model could be right about more than {percent(best['upper'])}."


def _about_calibration(headroom: Headroom) -> list[str]:
    calibrated = headroom["calibrated"]
    if headroom["n_fitted"]:
        fitted = f"{whole(headroom['n_fitted'])} of {counted(headroom['n_items'], 'item')}"
        return [
            f"The calibration was fitted on labels of {fitted}. They tell what your model loses, "
            "unless it was trained on them, and not what the calibrated prediction does."
        ]
    if calibrated is None:
        return []
    return [
        "The calibrated prediction, which the rest of this page is about, has a "
        f"{headroom['loss_name']} of {fixed(calibrated['estimate'])} on the same items."
    ]


def name_loss(headroom: Headroom) -> str:
    """Return what the first number of the figure is called."""
    if headroom["measured"]:
        return f"your model's {headroom['loss_name']}"
    return f"expected {headroom['loss_name']}"


def limits_of(value: Limited) -> str:
    """Return "0.12 to 0.34", or nothing where there are no limits."""
    if value["lower"] is None or value["upper"] is None:
        return ""
    return f"{fixed(value['lower'])} to {fixed(value['upper'])}"


def with_limits(value: Limited | None) -> str:
    """Return "0.20 (0.12 to 0.34)", or a dash."""
    if value is None:
        return "-"
    limits = limits_of(value)
    return f"{fixed(value['estimate'])} ({limits})" if limits else fixed(value["estimate"])


def about_classes(summary: Summary) -> str:
    """Say which predicted class holds the most of each kind of uncertainty."""
    rows = summary["classes"]
    unsure = max(rows, key=lambda row: row["epistemic_share"])
    disputed = max(rows, key=lambda row: row["aleatoric_share"])
    if not unsure["epistemic_share"] and not disputed["aleatoric_share"]:
        return "No class that the model predicts holds any uncertainty."
    if unsure is disputed:
        return (
            f"Items predicted as {unsure['name']}, {percent(unsure['share'])} of all, hold "
            f"{percent(unsure['epistemic_share'])} of all epistemic uncertainty and "
            f"{percent(unsure['aleatoric_share'])} of all aleatoric."
        )
    return (
        f"Items predicted as {unsure['name']}, {percent(unsure['share'])} of all, hold "
        f"{percent(unsure['epistemic_share'])} of all epistemic uncertainty; those predicted as "
        f"{disputed['name']}, {percent(disputed['share'])} of all, hold "
        f"{percent(disputed['aleatoric_share'])} of all aleatoric."
    )
