"""Annotations: count the labels of each item in a table of any engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse as scipy_sparse

from hocal._base.errors import InputError, Setting
from hocal._base.plurals import counted
from hocal._base.typing import Array, Counts, Index, IntArray
from hocal._base.validation import check_choice
from hocal.annotations.judgements import (
    Judgements,
    check_classes,
    read_judgements,
)
from hocal.annotations.tables import (
    Frame,
    collect,
    column_values,
    distinct,
    is_in_memory,
    number_values,
    open_table,
    pick,
    quote,
)

__all__ = ["LabelCounts", "count_labels"]

_LARGEST_DENSE = 10**8  # numbers; 800 MB


class LabelCounts(NamedTuple):
    """How often each item got each label."""

    items: NDArray[Any]  #: (n_items,) sorted; int64, float64, bool, or objects such as str
    classes: tuple[Any, ...]  #: the label that each column of `counts` counts
    counts: Counts  #: (n_items, n_classes) int64, dense or CSR

    def __repr__(self) -> str:
        items = counted(len(self.items), "item")
        classes = counted(len(self.classes), "class", "classes")
        labels = counted(self.counts.sum(), "label")
        return f"LabelCounts({items}, {classes}, {labels})"


class _Entries(NamedTuple):
    """Entries of a count matrix, in any order; those at one place add up."""

    items: NDArray[Any]  #: item of each row of the matrix
    rows: Index
    codes: IntArray
    counts: IntArray


def count_labels(
    table: Any,
    *,
    item: str,
    label: str | Sequence[str] | None = None,
    annotator: str | None = None,
    count_columns: Sequence[str] | Mapping[Any, str] | None = None,
    classes: Sequence[Any] | None = None,
    missing: str = "error",
    unknown: str = "error",
    duplicates: str = "error",
    empty: str = "error",
    sparse: bool | None = None,
) -> LabelCounts:
    """Count how often each item got each label, inside the engine that holds the table.

    Three shapes of table are understood: one row per judgement (`label` names one column), one row
    per item with one column per annotator (`label` names several), and one row per item with one
    column per class (`count_columns`). Only counted rows leave the engine, and every engine gives
    the same result.

    Parameters
    ----------
    table : dataframe
        A pandas, polars (eager or lazy) or Spark dataframe, a pyarrow table, a DuckDB relation, or
        a dictionary of columns such as the `table` of `read_annotations`.
    item : str
        Column that tells the items apart.
    label : str or sequence of str, optional
        Column with the labels, or one column for each annotator, where a missing label means that
        this annotator did not judge the item.
    annotator : str, optional
        Column that tells who judged, to find repeated judgements; for one label column.
    count_columns : sequence of str or mapping from class to column, optional
        Columns with the number of labels of each class, in place of `label`. The columns' names are
        the classes unless a mapping says otherwise.
    classes : sequence, optional
        The classes in the order of the result's columns. By default all labels found, sorted.
    missing : {"error", "drop"}, default="error"
        What to do with rows without an item, a label or an annotator (null or NaN). In columns of
        counts "drop" reads a missing count as zero.
    unknown : {"error", "drop"}, default="error"
        What to do with labels that are not in `classes`.
    duplicates : {"error", "keep", "drop"}, default="error"
        What to do when an annotator judged an item more than once, or when a table with one row per
        item repeats one: "keep" counts every judgement, "drop" leaves out all of them. There is no
        way to keep the first, since rows of an engine's table have no order.
    empty : {"error", "keep", "drop"}, default="error"
        What to do with items that have no label, or none left: "keep" gives them a row of zeros.
    sparse : bool, optional
        Whether `counts` is a CSR matrix; by default when dense it would hold over 10**8 numbers.

    Returns
    -------
    LabelCounts
        Items in sorted order, classes, and counts.

    Examples
    --------
    >>> import pandas as pd
    >>> from hocal.annotations.counting import count_labels
    >>> table = pd.DataFrame({"image": [7, 7, 2], "choice": ["cat", "dog", "cat"]})
    >>> table["worker"] = ["a", "b", "a"]
    >>> labels = count_labels(table, item="image", label="choice", annotator="worker")
    >>> labels.items.tolist(), labels.classes, labels.counts.tolist()
    ([2, 7], ('cat', 'dog'), [[1, 0], [1, 1]])
    """
    check_choice(missing, "missing", ["error", "drop"])
    check_choice(unknown, "unknown", ["error", "drop"])
    check_choice(duplicates, "duplicates", ["error", "keep", "drop"])
    check_choice(empty, "empty", ["error", "keep", "drop"])
    _check_shape(label, count_columns, annotator, classes)
    if isinstance(label, np.ndarray):
        label = label.tolist()
    frame = open_table(table)
    if count_columns is not None:
        columns = _class_columns(count_columns)
        names = tuple(columns)
        entries = _read_counts(frame, item, list(columns.values()), missing, duplicates)
    else:
        names, entries = _count_clean(
            frame, item, label, annotator, classes, is_in_memory(table)
        ) or _count(
            read_judgements(
                frame,
                item=item,
                label=() if label is None else label,
                annotator=annotator,
                classes=classes,
                missing=missing,
                unknown=unknown,
                duplicates=duplicates,
            )
        )
    return _matrix(_check_empty(entries, empty), names, sparse)


def _check_shape(label: Any, count_columns: Any, annotator: Any, classes: Any) -> None:
    """Refuse columns of two shapes of table at once."""
    if (label is None) == (count_columns is None):
        raise InputError("label and count_columns", "must not be given together, nor left out both")
    if label is None and not (annotator is None and classes is None):
        raise InputError(
            "annotator and classes",
            "must be left out with `count_columns`; a mapping names the classes",
        )


def _count_clean(
    frame: Frame,
    item: str,
    label: Any,
    annotator: str | None,
    classes: Sequence[Any] | None,
    in_memory: bool,
) -> tuple[tuple[Any, ...], _Entries] | None:
    """Count a table of judgements in one pass; None where anything in it needs a closer look."""
    if annotator is not None or not isinstance(label, str):
        return None
    picked = pick(frame, {"item": item, "label": label})
    kind = picked.collect_schema()["label"]
    if not (kind.is_integer() or isinstance(kind, nw.String)):
        return None
    # Rows that are in memory are added up faster than a group-by finds the groups.
    counted = collect(
        picked if in_memory else picked.group_by("item", "label").agg(nw.len().alias("n_rows"))
    )
    if len(counted) == 0 or counted["item"].null_count() or counted["label"].null_count():
        return None
    labels, places = number_values(counted["label"])
    names = tuple(labels.tolist()) if classes is None else check_classes(classes)
    numbers = {name: j for j, name in enumerate(names)}
    if len(names) < 2 or not numbers.keys() >= set(labels.tolist()):
        return None
    n_rows = (
        np.ones(len(counted), dtype=np.int64) if in_memory else column_values(counted["n_rows"])
    )
    codes = np.array([numbers[value] for value in labels.tolist()], dtype=np.int64)
    return names, _Entries(*number_values(counted["item"]), codes[places], n_rows)


def _count(judgements: Judgements) -> tuple[tuple[Any, ...], _Entries]:
    """Count equal judgements in the engine."""
    counted = collect(judgements.frame.group_by("item", "label").agg(nw.len().alias("n_rows")))
    labels, places = number_values(counted["label"])
    judged = counted.select("item")
    if judgements.every_item is not None:
        every = judgements.every_item.group_by("item").agg(nw.len().alias("n_rows"))
        judged = nw.concat([judged, collect(every).select("item")])
    items, rows = number_values(judged["item"])
    codes = np.array([judgements.numbers[label] for label in labels.tolist()], dtype=np.int64)
    return judgements.classes, _Entries(
        items, rows[: len(counted)], codes[places], column_values(counted["n_rows"])
    )


def _class_columns(columns: Sequence[str] | Mapping[Any, str]) -> dict[Any, str]:
    """Return the column of each class."""
    if isinstance(columns, np.ndarray):
        columns = columns.tolist()
    named = (
        dict(columns) if isinstance(columns, Mapping) else {column: column for column in columns}
    )
    if isinstance(columns, str) or len(columns) < 2 or len(set(named.values())) < len(columns):
        rule = "must name at least two different columns"
        raise InputError("count_columns", rule, value=repr(columns))
    return named


def _read_counts(
    frame: Frame, item: str, columns: Sequence[str], missing: str, duplicates: str
) -> _Entries:
    """Read a table that holds counts already: one row per item, one column per class."""
    places = {f"count_{j}": column for j, column in enumerate(columns)}
    picked = pick(frame, {"item": item, **places})
    schema = picked.collect_schema()
    texts = [column for place, column in places.items() if not schema[place].is_numeric()]
    if texts:
        raise InputError(
            "count_columns",
            "must hold numbers",
            value=str(schema[f"count_{columns.index(texts[0])}"]),
            where=f"in {texts[0]!r}",
        )
    table = collect(picked.with_columns(nw.col(*places).cast(nw.Float64)))
    n_gaps = int(table["item"].is_null().sum())
    if n_gaps and missing == "error":
        raise InputError(
            "table",
            "must have a value in each row",
            column=item,
            value=f"none in {n_gaps} of {len(table)} rows",
            remedy="Fill them, or leave such rows out with {0}.",
            settings=[Setting("missing", "drop")],
        )
    table = table.filter(~nw.col("item").is_null())
    if len(table) == 0:
        raise InputError("table", "must have at least one row")
    values = column_values(table["item"])
    counts = np.column_stack([table[place].to_numpy() for place in places])  # (n_rows, n_classes)
    return _count_entries(values, _check_numbers(counts, values, columns, missing), duplicates)


def _check_numbers(
    counts: Array, items: NDArray[Any], columns: Sequence[str], missing: str
) -> IntArray:
    """Return counts as integers; a missing one is an error, or zero where that was asked for."""
    gaps = np.isnan(counts)
    known = np.where(gaps, 0, counts)
    rules = [
        (
            gaps & (missing == "error"),
            "present",
            "Fill them, or read them as zero with {0}.",
        ),
        (known < 0, "non-negative", "Correct them."),
        ((known != np.floor(known)) | (known >= 2**53), "whole numbers", "Correct them."),
    ]
    for wrong, rule, remedy in rules:
        if wrong.any():
            places = distinct(items[wrong.any(axis=1)])[0].tolist()
            row, j = np.argwhere(wrong)[0]
            raise InputError(
                "count_columns",
                f"must be {rule}",
                value=f"{counts[row, j]:.6g}",
                where=f"in column {columns[j]!r} and {wrong.sum()} such counts in all "
                f"(item {quote(places)})",
                remedy=remedy,
                settings=[Setting("missing", "drop")],
            )
    return known.astype(np.int64)


def _count_entries(values: NDArray[Any], counts: IntArray, duplicates: str) -> _Entries:
    items, rows = distinct(values)
    times = np.bincount(rows)
    if (times > 1).any() and duplicates == "error":
        repeated = items[times > 1]
        raise InputError(
            "table",
            "must have one row for each item",
            value=f"several for {len(repeated)}: {quote(repeated.tolist())}",
            remedy="Clean the table, add such rows up with {0}, or leave them out with {1}.",
            settings=[Setting("duplicates", "keep"), Setting("duplicates", "drop")],
        )
    kept = np.zeros((len(items), counts.shape[1]), dtype=np.int64)
    counted_once = (times[rows] == 1) | (duplicates == "keep")
    np.add.at(kept, rows, counts * counted_once[:, None])
    row, code = np.nonzero(kept)
    return _Entries(items, row, code.astype(np.int64), kept[row, code])


def _check_empty(entries: _Entries, empty: str) -> _Entries:
    """Refuse items without labels, or leave them out if asked to."""
    labelled = np.bincount(entries.rows, minlength=len(entries.items)) > 0
    if labelled.all() or empty == "keep":
        return entries
    if empty == "error":
        bare = entries.items[~labelled].tolist()
        raise InputError(
            "table",
            "must have a label for each item",
            value=f"none for {len(bare)} of {len(labelled)} items: {quote(bare)}",
            remedy="Leave them out with {0}, or keep them as rows of zeros with {1}.",
            settings=[Setting("empty", "drop"), Setting("empty", "keep")],
        )
    place = np.cumsum(labelled) - 1
    return entries._replace(items=entries.items[labelled], rows=place[entries.rows])


def _matrix(entries: _Entries, classes: tuple[Any, ...], sparse: bool | None) -> LabelCounts:
    shape = (len(entries.items), len(classes))
    if sparse or (sparse is None and shape[0] * shape[1] > _LARGEST_DENSE):
        counts: Counts = scipy_sparse.csr_array(
            (entries.counts, (entries.rows, entries.codes)), shape=shape
        )
    else:
        counts = np.zeros(shape, dtype=np.int64)
        np.add.at(counts.reshape(-1), entries.rows * shape[1] + entries.codes, entries.counts)
    return LabelCounts(entries.items, classes, counts)
