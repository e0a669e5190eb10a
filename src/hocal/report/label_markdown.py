"""Render a summary of labels as Markdown."""

from __future__ import annotations

from hocal.report import label_words
from hocal.report.label_schema import AnnotatorRow, LabelItem, LabelSummary
from hocal.report.markdown import MARKS, as_list, as_plain, as_table
from hocal.report.words import fixed, percent, whole

__all__ = ["render_labels_markdown"]

N_ITEMS = 20  # rows of a short report
N_PEOPLE = 10


def render_labels_markdown(summary: LabelSummary) -> str:
    """Return a short report: how much people agree, about what, who stands out, which items."""
    blocks = [f"# {as_plain(summary['title'])}", as_plain(label_words.about_labels_data(summary))]
    blocks += ["## How much people agree", *map(as_plain, label_words.about_agreement(summary))]
    blocks += [as_list(_findings(summary)), "## About what"]
    blocks += [as_plain(label_words.about_confusions(summary)), *_confusions(summary)]
    blocks += ["## Who stands out", *map(as_plain, label_words.about_annotators(summary))]
    blocks += [*_people(summary), "## Which items are ambiguous"]
    blocks += [*map(as_plain, label_words.about_items(summary)), *_items(summary)]
    if summary["forecast"] is not None:
        sentences = label_words.about_forecast(summary["forecast"])
        blocks += ["## What more labels would bring", *map(as_plain, sentences)]
        blocks += [_forecast(summary)]
    return "\n\n".join(blocks) + "\n"


def _findings(summary: LabelSummary) -> list[str]:
    return [
        f"{MARKS[finding.tone]} **{as_plain(finding.title)}** {as_plain(finding.text)}"
        for finding in label_words.about_trust_in_labels(summary)
    ]


def _confusions(summary: LabelSummary) -> list[str]:
    heads = ["classes", "of all disagreement", "of all pairs"]
    rows = [
        [f"{pair['first']} / {pair['second']}", percent(pair["share"]), percent(pair["rate"])]
        for pair in summary["confusions"]
    ]
    return [as_table(heads, rows)] if rows else []


def _people(summary: LabelSummary) -> list[str]:
    people = summary["people"]
    if people is None:
        return []
    found = [row for row in people["annotators"] if row["finding"]][:N_PEOPLE]
    heads = ["annotator", "items", "excess disagreement", "limits", "overuses", "finding"]
    return [as_table(heads, map(_person, found))] if found else []


def _person(row: AnnotatorRow) -> list[str]:
    return [
        row["annotator"],
        whole(row["n_items"]),
        fixed(row["excess"], 2),
        f"{fixed(row['excess_lower'], 2)} to {fixed(row['excess_upper'], 2)}",
        row["overused"] or "-",
        row["finding"],
    ]


def _items(summary: LabelSummary) -> list[str]:
    disputed = [item for item in summary["items"] if item["verdict"] == "disputed"][:N_ITEMS]
    heads = ["item", "people said", "aleatoric", "limits", "majority", "probability"]
    return [as_table(heads, map(_item, disputed))] if disputed else []


def _item(item: LabelItem) -> list[str]:
    return [
        item["item"],
        label_words.about_item(item),
        fixed(item["aleatoric"]),
        f"{fixed(item['lower'], 2)} to {fixed(item['upper'], 2)}",
        item["majority"],
        percent(item["majority_probability"]),
    ]


def _forecast(summary: LabelSummary) -> str:
    forecast = summary["forecast"]
    heads = ["labels to buy", "per item", "error, where they help most", "error, spread evenly"]
    rows = [
        [
            whole(row["budget"]),
            f"{row['per_item']:g}",
            fixed(row["chosen"], 4),
            fixed(row["evenly"], 4),
        ]
        for row in (forecast["rows"] if forecast else [])
    ]
    return as_table(heads, rows)
