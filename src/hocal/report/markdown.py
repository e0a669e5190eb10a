"""Render a summary as Markdown, for issues, chats and terminals."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hocal.report import headroom_words, item_words, words
from hocal.report.contrast_words import tell_contrast
from hocal.report.schema import (
    CellRow,
    ItemRow,
    Limited,
    Listing,
    Planning,
    PredictedClass,
    Standing,
    Summary,
    WidthRow,
)
from hocal.report.words import counted, fixed, percent, whole

__all__ = ["MARKS", "as_list", "as_plain", "as_table", "render_markdown"]

MAX_CLASSES = 20  # rows of a table in a short report
N_ITEMS = 5  # of each list: a short report
LISTS: dict[Listing, str] = {
    "epistemic": "What the model knows least",
    "aleatoric": "What people disagree about most",
    "gain": "Where one more label would tell most",
}
MARKS = {"good": "✓", "caution": "!", "unknown": "?"}


def render_markdown(summary: Summary) -> str:
    """Return a short report: what, how far to trust it, where to act."""
    blocks = [f"# {as_plain(summary['title'])}", as_plain(words.about_data(summary))]
    blocks += _headroom(summary)
    blocks += ["## What the uncertainty is made of", *map(as_plain, words.about_parts(summary))]
    blocks += _classes(summary)
    blocks += ["## Can this be trusted?", as_list(_findings(summary)), "This rests on assumptions:"]
    blocks.append(as_list(map(as_plain, summary["trust"]["certificate"]["assumptions"])))
    blocks += [*_checks(summary), "## Where to act", item_words.about_leaders(summary)]
    blocks += [*_cells(summary, "epistemic"), *_cells(summary, "aleatoric")]
    blocks += [
        "### Classes that people confuse",
        as_plain(words.about_confusions(summary["confusions"])),
        *_items(summary),
    ]
    blocks += _contrast(summary)
    if summary["planning"] is not None:
        blocks += ["## What more labels would bring", *_planning(summary["planning"])]
    return "\n\n".join(blocks) + "\n"


def _headroom(summary: Summary) -> list[str]:
    title = "## What is left to gain"
    return [title, *map(as_plain, headroom_words.about_headroom(summary))]


def _classes(summary: Summary) -> list[str]:
    """Return the predicted classes that hold most of the uncertainty."""
    heads = ["predicted class", "items", "aleatoric", "epistemic", "loss"]
    heads += ["nobody can avoid", "left to gain"]
    rows = summary["classes"][:MAX_CLASSES]
    blocks = ["## Class by class", as_plain(headroom_words.about_classes(summary))]
    if len(rows) < len(summary["classes"]):
        shown = f"{len(rows)} of {counted(len(summary['classes']), 'class', 'classes')}"
        blocks.append(f"The {shown} with the most uncertainty in total:")
    measured = summary["headroom"]["measured"]
    n_columns = len(heads) if measured else 4
    return [*blocks, as_table(heads[:n_columns], (_class(row)[:n_columns] for row in rows))]


def _class(row: PredictedClass) -> list[str]:
    gains = row["gains"]
    values: list[Limited | None] = [None] * 3
    if gains is not None:
        values = [gains["loss"], gains["irreducible"], gains["remaining"]]
    measured = map(headroom_words.with_limits, values)
    parts = [fixed(row["aleatoric"]), fixed(row["epistemic"])]
    return [row["name"], whole(row["n_items"]), *parts, *measured]


def _checks(summary: Summary) -> list[str]:
    """Return what a check of the labels found, in one place."""
    found = words.about_checks(summary["trust"])
    if not found:
        return []
    return ["### Independence of the labels, as checked", as_list(map(as_plain, found))]


def _findings(summary: Summary) -> list[str]:
    return [
        f"{MARKS[finding.tone]} **{as_plain(finding.title)}.** {as_plain(finding.text)}"
        for finding in words.about_trust(summary)
    ]


def _contrast(summary: Summary) -> list[str]:
    """Return what is said about the items that tell the two kinds of doubt apart."""
    blocks = []
    for contrast in summary["contrast"]:
        told = tell_contrast(contrast)
        name = as_plain(contrast["card"]["item"]["item"])
        text = as_plain(f"{told.text} {told.advice}")
        blocks += [f"### {told.title}", f"{name}. {text}"]
    return blocks


def _cells(summary: Summary, standing: Standing) -> list[str]:
    """Return the cells that stand out most in one kind of uncertainty."""
    title = words.ADVICE[standing]
    rows = summary["leaders"][standing]
    if not rows:
        return [f"### {title}", item_words.no_leader(summary, standing)]
    heads = ["cell", "items", "aleatoric", "epistemic", "proved aleatoric", "people confuse"]
    return [f"### {title}", as_table(heads, map(_cell, rows))]


def _cell(row: CellRow) -> list[str]:
    confusion = row["confusion"]
    confused = "-"
    if confusion:
        confused = f"{confusion['first']} / {confusion['second']} ({percent(confusion['share'])})"
    return [
        row["name"],
        whole(row["n_items"]),
        fixed(row["aleatoric"]),
        fixed(row["epistemic"]),
        words.mark(row) + words.interval(row["aleatoric_interval"], row["aleatoric_vacuous"]),
        confused,
    ]


def _items(summary: Summary) -> list[str]:
    """Return the first items of each list."""
    blocks = ["### Items", item_words.about_items(summary)] if summary["items"] else []
    for listing, title in LISTS.items():
        rows = [item for item in summary["items"] if listing in item["listed_as"]]
        rows.sort(key=lambda item: -_listed_by(item, listing))
        if rows:
            heads = ["item", "model's guess", "people said", "epistemic", "aleatoric", "gain"]
            blocks += [f"{title}:", as_table(heads, map(_item, rows[:N_ITEMS]))]
    return blocks


def _listed_by(item: ItemRow, listing: Listing) -> float:
    return item["alone"]["epistemic"] if listing == "epistemic" else item[listing]


def _item(item: ItemRow) -> list[str]:
    lower, upper = item["aleatoric_interval"]
    return [
        item["item"],
        f"{item['prediction']} ({percent(item['probability'])})",
        words.about_labels(item) or "-",
        fixed(item["alone"]["epistemic"]),
        f"{fixed(item['aleatoric'])} ({fixed(lower, 2)} to {fixed(upper, 2)})",
        fixed(item["gain"], 4),
    ]


def _planning(planning: Planning) -> list[str]:
    heads = [
        "cell",
        "items",
        "labels per item",
        "width now",
        "twice the items",
        "four times",
        "twice the labels",
    ]
    blocks = [words.about_planning(planning)]
    if planning["widths"]:
        blocks.append(as_table(heads, map(_widths, planning["widths"])))
    return blocks


def _widths(row: WidthRow) -> list[str]:
    return [
        row["name"],
        whole(row["n_items"]),
        whole(row["k"]),
        fixed(row["now"]),
        fixed(row["twice_items"]),
        fixed(row["four_times_items"]),
        fixed(row["twice_labels"]),
    ]


def as_table(heads: list[str], rows: Iterable[list[str]]) -> str:
    """Return a table."""
    entries = [[as_plain(entry) for entry in row] for row in rows]
    lines = [heads, ["---"] * len(heads), *entries]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def as_list(lines: Iterable[str]) -> str:
    """Return a list."""
    return "\n".join(f"- {line}" for line in lines)


def as_plain(text: str) -> str:
    """Return text that Markdown shows as it is: no markup, no HTML, no line breaks."""
    flat = " ".join(text.split())
    return re.sub(r"([\\`*_\[\]<>|~#])", r"\\\1", flat.replace("&", "&amp;")).replace("\\<", "&lt;")
