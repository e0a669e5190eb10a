"""Check a table of judgements and number its labels, inside the engine that holds it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

import narwhals as nw

from hocal._base.errors import InputError, Setting
from hocal.annotations.spellings import likely_meant
from hocal.annotations.tables import (
    Frame,
    collect,
    collect_rows,
    count_rows,
    enumerate_few,
    examples,
    pick,
    quote,
    sort_values,
    total,
)

__all__ = [
    "Judgements",
    "check_classes",
    "found_classes",
    "read_judgements",
    "stack_columns",
    "value_of_label",
]


class Judgements(NamedTuple):
    """Checked judgements, still inside their engine."""

    frame: Frame  #: columns `item` and `label`; one row per judgement
    n_rows: int
    numbers: dict[Any, int]  #: class number of each label that occurs
    classes: tuple[Any, ...]  #: the label of each class number
    every_item: Frame | None  #: column `item` of all rows where some were left out, else None


class _Rows(NamedTuple):
    """Judgements as they come."""

    frame: Frame  #: columns `item`, `label` and perhaps `annotator`
    names: dict[str, str]  #: what each column is called in the user's table
    #: how often each row of the user's table occurs, once for each annotator's column
    repeats: int = 1


def read_judgements(
    frame: Frame,
    *,
    item: str,
    label: str | Sequence[str],
    annotator: str | None,
    classes: Sequence[Any] | None,
    missing: str,
    unknown: str,
    duplicates: str,
    name: str = "table",
) -> Judgements:
    """Check judgements and number their labels, without moving them; see `count_labels`."""
    wide = not isinstance(label, str)
    if wide and annotator is not None:
        rule = "must be left out when `label` names a column for each annotator"
        raise InputError("annotator", rule)
    declared = None if classes is None else check_classes(classes)
    rows = (
        _stack(frame, item, label, name)
        if wide
        else _long(frame, item, str(label), annotator, name)
    )
    labels, n_gaps = _tally(rows, missing, wide, name)
    numbers, order = _number_labels(rows, labels, declared, unknown)
    if not numbers:
        rule = "must have at least one label that can be counted"
        raise InputError(name, rule, value="none")
    kept = rows.frame
    if n_gaps or len(numbers) < len(labels):
        kept = kept.filter(~_gap(rows), nw.col("label").is_in(list(numbers)))
    kept, n_repeats = _check_repeats(rows, kept, duplicates, name)
    dropped = n_gaps or len(numbers) < len(labels) or n_repeats
    every_item = rows.frame.filter(~nw.col("item").is_null()).select("item") if dropped else None
    n_rows = count_rows(kept) if n_repeats else sum(labels[value] for value in numbers)
    return Judgements(kept.select("item", "label"), n_rows, numbers, order, every_item)


def value_of_label(values: Mapping[Any, float]) -> nw.Expr:
    """Return the value that belongs to each row's label, zero for labels without one."""
    terms = []
    for label, value in values.items():
        is_label = nw.col("label") == nw.lit(label)
        none = nw.lit(0 * value)
        terms.append(nw.when(is_label).then(nw.lit(value)).otherwise(none))
    return total(terms)


def check_classes(classes: Sequence[Any]) -> tuple[Any, ...]:
    """Return declared classes as a tuple after checking that they are distinct and at least two."""
    declared = tuple(classes)
    if (
        isinstance(classes, str)
        or len(declared) < 2
        or len(set(declared)) < len(declared)
        or None in declared
    ):
        rule = "must be at least two distinct labels"
        raise InputError("classes", rule, value=repr(classes))
    return declared


def found_classes(labels: Iterable[Any]) -> list[Any]:
    """Return the different labels of a table, sorted, after checking that they are at least two."""
    found = sort_values(list(labels))
    if len(found) < 2:
        rule = "must be declared when a table has fewer than two different labels"
        raise InputError("classes", rule, value=quote(found))
    return found


def _long(frame: Frame, item: str, label: str, annotator: str | None, name: str) -> _Rows:
    names = {"item": item, "label": label} | ({} if annotator is None else {"annotator": annotator})
    return _Rows(pick(frame, names, name), names)


def stack_columns(frame: Frame, item: str, columns: Sequence[str], name: str = "table") -> Frame:
    """Return one row per judgement, `item`, `label` and `annotator`, of a column per annotator."""
    return _stack(frame, item, columns, name).frame


def _stack(frame: Frame, item: str, columns: Sequence[str], name: str) -> _Rows:
    """Put the columns of the annotators below each other."""
    columns = list(columns)
    if not columns:
        raise InputError("label", "must name at least one column")
    places = {f"label_{i}": column for i, column in enumerate(columns)}
    picked = pick(frame, {"item": item, **places}, name)
    labels = _of_one_type(picked, places)
    parts = [
        picked.select("item", value.alias("label"), nw.lit(places[place]).alias("annotator"))
        for place, value in labels.items()
    ]
    return _Rows(
        nw.concat(parts), {"item": item, "label": ", ".join(columns), "annotator": ""}, len(parts)
    )


def _of_one_type(frame: Frame, places: Mapping[str, str]) -> dict[str, nw.Expr]:
    """Return the label columns as one type; one without any label has no type and is left out."""
    schema = frame.collect_schema()
    types = {place: schema[place] for place in places}
    if len(set(types.values())) > 1:
        n_labels = collect(frame.select(*(nw.col(place).count() for place in places))).row(0)
        labelled = [place for place, n in zip(places, n_labels, strict=True) if n]
        types = {place: types[place] for place in labelled} or types
    numeric = all(kind.is_numeric() for kind in types.values())
    if len(set(types.values())) > 1 and not numeric:
        shown = ", ".join(f"{places[place]!r} ({kind})" for place, kind in types.items())
        raise InputError(
            "label", "must name columns of one type", value=shown, remedy="Convert them first."
        )
    mixed = len(set(types.values())) > 1
    return {place: nw.col(place).cast(nw.Float64) if mixed else nw.col(place) for place in types}


def _gap(rows: _Rows) -> nw.Expr:
    return nw.any_horizontal(
        *(nw.col(column).is_null() for column in rows.names), ignore_nulls=False
    )


def _tally(
    rows: _Rows, missing: str, label_may_miss: bool, name: str
) -> tuple[dict[Any, int], int]:
    """Count the complete rows of each label, and those with a gap, which are refused by default."""
    flags = {f"no_{column}": nw.col(column).is_null() for column in rows.names}
    groups = (
        rows.frame.with_columns(**flags).group_by("label", *flags).agg(nw.len().alias("n_rows"))
    )
    found = collect_rows(groups)
    n_rows = sum(group["n_rows"] for group in found)
    if n_rows == 0:
        raise InputError(name, "must have at least one row")
    for column, title in rows.names.items():
        n_gaps = sum(group["n_rows"] for group in found if group[f"no_{column}"])
        if n_gaps and missing == "error" and not (column == "label" and label_may_miss):
            extent = f"{n_gaps // rows.repeats} of {n_rows // rows.repeats} rows"
            _refuse_gaps(rows.frame, column, title, name, extent)
    complete = [group for group in found if not any(group[flag] for flag in flags)]
    n_complete = sum(group["n_rows"] for group in complete)
    return {group["label"]: group["n_rows"] for group in complete}, n_rows - n_complete


def _refuse_gaps(frame: Frame, column: str, title: str, name: str, extent: str) -> None:
    other = "label" if column == "item" else "item"
    count, rows = examples(frame.filter(nw.col(column).is_null()), other)
    raise InputError(
        name,
        "must have a value in each row",
        column=title,
        value=f"none in {extent}",
        where=f"({other} {quote([row[0] for row in rows], count)})",
        remedy="Fill them, or leave such rows out with {0}.",
        settings=[Setting("missing", "drop")],
    )


def _number_labels(
    rows: _Rows, labels: Mapping[Any, int], declared: tuple[Any, ...] | None, unknown: str
) -> tuple[dict[Any, int], tuple[Any, ...]]:
    """Return the class number of each known label and the classes."""
    strange = [value for value in labels if not isinstance(value, (str, int, float, date))]
    if strange:
        rule = "must hold text, integers, floats, booleans or dates"
        raise InputError("label", rule, value=quote(strange))
    if declared is None:
        found = found_classes(labels)
        whole = all(isinstance(value, float) and value.is_integer() for value in found)
        names = tuple(map(int, found) if whole else found)
        return {value: i for i, value in enumerate(found)}, names
    numbers = {label: i for i, label in enumerate(declared)}
    strangers = sort_values([value for value in labels if value not in numbers])
    if strangers and unknown == "error":
        _refuse_unknown(rows, strangers, sum(labels[value] for value in strangers), declared)
    return {value: numbers[value] for value in labels if value in numbers}, declared


def _refuse_unknown(rows: _Rows, values: list[Any], n_rows: int, classes: tuple[Any, ...]) -> None:
    count, items = examples(rows.frame.filter(nw.col("label").is_in(values)), "item")
    raise InputError(
        "label",
        f"must be one of the classes {quote(classes)}",
        value=f"{quote(values)} in {n_rows} row{'s' * (n_rows > 1)}",
        where=f"(item {quote([row[0] for row in items], count)})",
        remedy=likely_meant(values, classes)
        + "Correct them, add them to {0}, or leave such rows out with {1}.",
        settings=[Setting("classes"), Setting("unknown", "drop")],
    )


def _check_repeats(rows: _Rows, kept: Frame, duplicates: str, name: str) -> tuple[Frame, int]:
    """Find annotators who judged an item more than once; refuse or leave out those judgements."""
    if "annotator" not in rows.names or duplicates == "keep":
        return kept, 0
    pair = ["item", "annotator"]
    times = kept.group_by(*pair).agg(nw.len().alias("n_rows"))
    repeated = times.filter(nw.col("n_rows") > 1)
    count, shown = examples(repeated, *pair)
    if count and duplicates == "error":
        told = enumerate_few([f"{item!r} by {annotator!r}" for item, annotator in shown], count)
        raise InputError(
            name,
            "must have one label for each item and annotator",
            value=f"several for {count} pair{'s' * (count > 1)}: item {told}",
            remedy="Clean the table, count every judgement with {0}, or none of them with {1}.",
            settings=[Setting("duplicates", "keep"), Setting("duplicates", "drop")],
        )
    single = kept.join(repeated.select(*pair), on=pair, how="anti") if count else kept
    return single, count
