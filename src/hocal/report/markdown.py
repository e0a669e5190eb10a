"""Render a summary as Markdown, for issues, chats and terminals."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hocal.report import words
from hocal.report.schema import CellRow, Planning, Standing, Summary, WidthRow
from hocal.report.words import fixed, percent, whole

__all__ = ["MARKS", "as_list", "as_plain", "as_table", "render_markdown"]

MARKS = {"good": "✓", "caution": "!", "unknown": "?"}


def render_markdown(summary: Summary) -> str:
    """Return a short report: what, how far to trust it, where to act."""
    blocks = [f"# {as_plain(summary['title'])}", as_plain(words.about_data(summary))]
    blocks += ["## What the uncertainty is made of", *map(as_plain, words.about_parts(summary))]
    blocks += ["## Can this be trusted?", as_list(_findings(summary)), "This rests on assumptions:"]
    blocks += [
        as_list(map(as_plain, summary["trust"]["certificate"]["assumptions"])),
        "## Where to act",
    ]
    blocks += [*_cells(summary, "epistemic"), *_cells(summary, "aleatoric")]
    blocks += [
        "### Classes that people confuse",
        as_plain(words.about_confusions(summary["confusions"])),
    ]
    if summary["planning"] is not None:
        blocks += ["## What more labels would bring", *_planning(summary["planning"])]
    return "\n\n".join(blocks) + "\n"


def _findings(summary: Summary) -> list[str]:
    return [
        f"{MARKS[finding.tone]} **{as_plain(finding.title)}.** {as_plain(finding.text)}"
        for finding in words.about_trust(summary)
    ]


def _cells(summary: Summary, standing: Standing) -> list[str]:
    """Return the cells that stand out most in one kind of uncertainty."""
    title = words.ADVICE[standing]
    rows = summary["leaders"][standing]
    if not rows:
        return [f"### {title}", "No cell stands out."]
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
        words.interval(row["aleatoric_interval"], row["aleatoric_vacuous"]),
        confused,
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
