"""What the rules of `hocal fit` left out of its tables, counted and in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hocal.cli.items import LabelOptions
from hocal.cli.tables import Probabilities, count_rows

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
    given: LabelOptions,
    remained: CellStatistics,
    *,
    item: str,
    classes: Sequence[str],
) -> dict[str, int]:
    """Return how many labels, or predicted items for "unlabelled", each rule that says drop left out.

    Of a table of counts only the items are compared.
    """
    rules = {name for name, rule in given.rules.items() if rule == "drop"}
    of_labels = bool(given.label and rules - {"unlabelled"})
    found = (
        _count_labels(labels, given, item, classes, int(remained.n_labels.sum()))
        if of_labels
        else {}
    )
    if "unlabelled" in rules:
        found["unlabelled"] = count_rows(predictions.table) - int(remained.n_items.sum())
    return {name: found[name] for name in WORDS if name in rules and name in found}


def say_left_out(found: Mapping[str, int]) -> str:
    """Say in one line what was left out, and why."""
    nouns = {name: "item" if name == "unlabelled" else "label" for name in found}
    told = [
        WORDS[name].format(f"{n} {nouns[name]}{'s' * (n != 1)}") for name, n in found.items() if n
    ]
    return ", ".join(told) or "nothing"


def _count_labels(
    labels: Any, given: LabelOptions, item: str, classes: Sequence[str], n_labels: int
) -> dict[str, int]:
    import narwhals as nw

    frame = _judgements(labels, given, item)
    columns = frame.collect_schema().names()
    complete = frame.filter(*(~nw.col(name).is_null() for name in columns))
    known = complete.filter(nw.col("label").is_in(list(classes)))
    n_rows, n_complete, n_known = (
        count_rows(part.to_native()) for part in (frame, complete, known)
    )
    n_repeated = 0
    if "annotator" in columns and given.rules["duplicates"] == "drop":
        times = (
            known.group_by("item", "annotator")
            .agg(nw.len().alias("times"))
            .filter(nw.col("times") > 1)
        )
        n_repeated = int(times.select(nw.col("times").sum()).collect()["times"].to_list()[0] or 0)
    return {
        "missing": n_rows - n_complete,
        "unknown": n_complete - n_known,
        "duplicates": n_repeated,
        "unpredicted": n_known - n_repeated - n_labels,
    }


def _judgements(labels: Any, given: LabelOptions, item: str) -> Any:
    """Return a row a judgement; a gap in a column of an annotator is none."""
    import narwhals as nw

    from hocal.annotations.tables import open_table, pick

    table = open_table(labels)
    if len(given.label) == 1:
        who = {} if given.annotator is None else {"annotator": given.annotator}
        return pick(table, {"item": item, "label": given.label[0], **who})
    parts = [
        pick(table, {"item": item, "label": column}).with_columns(nw.lit(column).alias("annotator"))
        for column in given.label
    ]
    return nw.concat(parts).filter(~nw.col("label").is_null())
