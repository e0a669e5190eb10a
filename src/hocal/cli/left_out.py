"""What the rules of `hocal fit` left out of its tables, counted and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hocal._base.plurals import counted
from hocal.cli.items import LabelOptions
from hocal.cli.predictions import Probabilities
from hocal.cli.tables import count_rows

if TYPE_CHECKING:
    from hocal import CellStatistics

__all__ = ["count_left_out", "say_left_out"]

WORDS = {
    "missing": "{} with a missing value",
    "unknown": "{} outside the classes",
    "duplicates": "{} by people who judged the item twice",
    "unpredicted": "{} of items without a prediction",
    "unlabelled": "{} without a label",
}


def count_left_out(
    labels: Any,
    predictions: Probabilities,
    label_choices: LabelOptions,
    remained: CellStatistics,
    *,
    item: str,
    classes: Sequence[str],
) -> dict[str, int]:
    """Return how many labels, or items for "unlabelled", each rule that says drop left out.

    Of a table of counts only the items are compared.
    """
    rules = {name for name, rule in label_choices.rules.items() if rule == "drop"}
    found = {}
    if label_choices.label and rules - {"unlabelled"}:
        found = _count_labels(labels, label_choices, item, classes, int(remained.n_labels.sum()))
    if "unlabelled" in rules:
        found["unlabelled"] = count_rows(predictions.table) - int(remained.n_items.sum())
    return {name: found[name] for name in WORDS if name in rules and name in found}


def say_left_out(found: Mapping[str, int]) -> str:
    """Say in one line what was left out, and why."""
    nouns = {name: "item" if name == "unlabelled" else "label" for name in found}
    amounts = {name: counted(n, nouns[name]) for name, n in found.items() if n}
    parts = [WORDS[name].format(amount) for name, amount in amounts.items()]
    return ", ".join(parts) or "nothing"


def _count_labels(
    labels: Any, label_choices: LabelOptions, item: str, classes: Sequence[str], n_labels: int
) -> dict[str, int]:
    import narwhals as nw

    frame = _judgements(labels, label_choices, item)
    columns = frame.collect_schema().names()
    complete = frame.filter(*(~nw.col(name).is_null() for name in columns))
    known = complete.filter(nw.col("label").is_in(list(classes)))
    n_rows = count_rows(frame.to_native())
    n_complete = count_rows(complete.to_native())
    n_known = count_rows(known.to_native())
    n_repeated = 0
    if "annotator" in columns and label_choices.rules["duplicates"] == "drop":
        n_repeated = _count_repeated(known)
    return {
        "missing": n_rows - n_complete,
        "unknown": n_complete - n_known,
        "duplicates": n_repeated,
        "unpredicted": n_known - n_repeated - n_labels,
    }


def _count_repeated(judgements: Any) -> int:
    """Count the labels by people who judged an item more than once."""
    import narwhals as nw

    pairs = judgements.group_by("item", "annotator").agg(nw.len().alias("times"))
    repeated = pairs.filter(nw.col("times") > 1)
    total = repeated.select(nw.col("times").sum()).collect()["times"].to_list()[0]
    return int(total or 0)


def _judgements(labels: Any, label_choices: LabelOptions, item: str) -> Any:
    """Return one row per judgement; a gap in a column of an annotator is none."""
    import narwhals as nw

    from hocal.annotations.tables import open_table, pick

    table = open_table(labels)
    if len(label_choices.label) == 1:
        who = {} if label_choices.annotator is None else {"annotator": label_choices.annotator}
        return pick(table, {"item": item, "label": label_choices.label[0], **who})
    parts = [
        pick(table, {"item": item, "label": column}).with_columns(nw.lit(column).alias("annotator"))
        for column in label_choices.label
    ]
    return nw.concat(parts).filter(~nw.col("label").is_null())
