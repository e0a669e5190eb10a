"""The words about the two items that tell the two kinds of doubt apart."""

from __future__ import annotations

from typing import NamedTuple

from hocal.report.schema import Contrast, ItemRow
from hocal.report.words import percent, whole

__all__ = ["Told", "tell_contrast"]


class Told(NamedTuple):
    """What is said about an item."""

    title: str  #: who agrees and who does not
    text: str  #: what both say
    advice: str  #: what to do about such items


def tell_contrast(contrast: Contrast) -> Told:
    """Say what the model and people say about an item, and what follows."""
    item = contrast["card"]["item"]
    answer, probability = item["calibrated"][0]
    if contrast["agree"] == "people":
        return Told(
            "People agree, the model does not",
            f"{_everybody(item)}. The model guesses {answer} ({percent(probability)} when "
            "calibrated).",
            "To people it is clear: show such items to a person, and train on more like them.",
        )
    return Told(
        "The model is sure, people are not",
        f"The model says {answer} ({percent(probability)} when calibrated). "
        f"Of {whole(item['n_labels'])} people {_each(item)}.",
        "No model is right for all of them: ask a clearer question, or accept it.",
    )


def _everybody(item: ItemRow) -> str:
    labels = item["labels"] or [("", 0)]
    return f"All {whole(item['n_labels'])} people say {labels[0][0]}"


def _each(item: ItemRow) -> str:
    """Return how many people say what, such as "5 say cat, 4 say dog, 1 something else"."""
    labels = item["labels"] or []
    others = item["n_labels"] - sum(n for _, n in labels)
    said = [f"{whole(n)} {'says' if n == 1 else 'say'} {name}" for name, n in labels]
    return ", ".join(said + [f"{whole(others)} something else"] * bool(others))
