"""Votes: a table of judgements, from any engine, as numbers in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from hocal._base.errors import InputError, Setting
from hocal._base.typing import IntArray
from hocal._base.validation import check_choice, check_kind
from hocal.annotations.judgements import stack_columns
from hocal.annotations.spellings import likely_meant
from hocal.annotations.tables import (
    collect,
    column_values,
    open_table,
    pick,
    quote,
    sort_values,
)

__all__ = ["Repeats", "Votes", "leave_repeats_out", "read_votes", "set_repeats_aside"]


@dataclass(frozen=True, eq=False)
class Votes:
    """Judgements as numbers, one place per judgement, in an order that is not the table's.

    Attributes
    ----------
    item, annotator, label : ndarray of shape (n_judgements,)
        Numbers from 0, in sorted order of what they stand for; labels by the order of `classes`.
    time : ndarray of shape (n_judgements,) or None
        Rank of the time, the same number for equal times; None where the table has none.
    annotators : tuple
        Who the annotators are.
    classes : tuple
        What the labels are.
    n_missing : int
        Rows left out because a value was missing.
    gold : ndarray of shape (n_judgements,) or None
        The label held for right, -1 where none is known; None where the table has no such column.
    """

    item: IntArray
    annotator: IntArray
    label: IntArray
    time: IntArray | None
    annotators: tuple[Any, ...]
    classes: tuple[Any, ...]
    n_missing: int
    gold: IntArray | None = None

    def __len__(self) -> int:
        return len(self.item)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.item.max()) + 1

    def take(self, places: NDArray[Any]) -> Votes:
        """Return the votes at some places, in their order; numbers keep their meaning."""
        time = None if self.time is None else self.time[places]
        gold = None if self.gold is None else self.gold[places]
        return replace(
            self,
            item=self.item[places],
            annotator=self.annotator[places],
            label=self.label[places],
            time=time,
            gold=gold,
        )


def read_votes(
    table: Any,
    *,
    item: str,
    label: str | Sequence[str],
    annotator: str | None,
    time: str | None = None,
    in_order: bool = False,
    gold: str | None = None,
    classes: Sequence[Any] | None = None,
    missing: str = "error",
) -> Votes:
    """Read a table with one row per judgement; parameters as in `check_annotations`."""
    check_choice(missing, "missing", ("error", "drop"))
    check_kind(item, "item", str)
    check_kind(label, "label", str, Sequence)
    if in_order and (time is not None or not isinstance(label, str)):
        rule = "must be left out with `time`, and where rows hold more than one judgement"
        raise InputError("in_order", rule)
    frame, columns = _judgement_rows(table, item, label, annotator, time, gold)
    if in_order:
        rows = np.arange(len(frame))
        place = nw.new_series("time", rows, nw.Int64(), backend=frame.implementation)
        frame = frame.with_columns(place)
        time = "row"
    frame, n_missing = _complete(frame, columns, missing)
    items, _ = _number(column_values(frame["item"]), "item")
    who, annotators = _number(column_values(frame["annotator"]), "annotator")
    found, labels = _number(column_values(frame["label"]), "label")
    order = labels if classes is None else _check_classes(classes, labels)
    numbers = {value: number for number, value in enumerate(order)}
    named = np.array([numbers[value] for value in labels])[found]
    when = None if time is None else _rank(column_values(frame["time"]), time)
    known = None if gold is None else _right_labels(frame["gold"], order)
    keys = (named, *(() if when is None else (when,)), who, items)
    votes = Votes(items, who, named, when, annotators, order, n_missing, known)
    return votes.take(np.lexsort(keys))


def _judgement_rows(
    table: Any,
    item: str,
    label: str | Sequence[str],
    annotator: str | None,
    time: str | None,
    gold: str | None,
) -> tuple[nw.DataFrame[Any], dict[str, str]]:
    """Return one row per judgement, and what the columns that must be full are called."""
    frame = open_table(table)
    if not isinstance(label, str):
        if annotator is not None or time is not None or gold is not None:
            rule = "must be left out when `label` names a column for each annotator"
            raise InputError("annotator and time and gold", rule)
        stacked = stack_columns(frame, item, label)
        labelled = collect(stacked.filter(~nw.col("label").is_null()))
        return labelled, {"item": item, "label": "label", "annotator": "annotator"}
    if annotator is None:
        raise InputError("annotator", "must name the column that tells who judged")
    columns = {"item": item, "label": label, "annotator": annotator}
    columns |= {} if time is None else {"time": time}
    wanted = columns | ({} if gold is None else {"gold": gold})
    return collect(pick(frame, wanted)), columns


def _right_labels(column: nw.Series[Any], classes: tuple[Any, ...]) -> IntArray:
    """Return the class number of each gold label, -1 for gaps; anything else is refused."""
    there = ~column.is_null().to_numpy()
    values = column_values(column.filter(~column.is_null())).tolist()
    numbers = {value: number for number, value in enumerate(classes)}
    strangers = sort_values([value for value in dict.fromkeys(values) if value not in numbers])
    if strangers:
        raise InputError(
            "gold",
            f"must hold classes or gaps; the classes are {quote(classes)}",
            value=quote(strangers),
            remedy="Correct them, or declare all classes with {0}.",
            settings=[Setting("classes")],
        )
    result = np.full(len(column), -1)
    result[there] = [numbers[value] for value in values]
    return result


def _complete(
    frame: nw.DataFrame[Any], columns: dict[str, str], missing: str
) -> tuple[nw.DataFrame[Any], int]:
    """Return the rows without gaps and the number of others, which are refused unless asked for."""
    gaps = {new: int(frame[new].is_null().sum()) for new in columns}
    worst = max(gaps, key=gaps.__getitem__)
    if gaps[worst] and missing == "error":
        raise InputError(
            "table",
            "must have a value in each row",
            column=columns[worst],
            value=f"none in {gaps[worst]} of {len(frame)} rows",
            remedy="Fill them, or leave such rows out with {0}.",
            settings=[Setting("missing", "drop")],
        )
    kept = frame.drop_nulls(list(columns)) if gaps[worst] else frame
    if not len(kept):
        rule = "must have at least one complete row"
        raise InputError("table", rule, value=f"{len(frame)} rows")
    return kept, len(frame) - len(kept)


def _number(values: NDArray[Any], name: str) -> tuple[IntArray, tuple[Any, ...]]:
    """Return the number of each value and the distinct values in sorted order."""
    if values.dtype.kind != "O":
        distinct, numbers = np.unique(values, return_inverse=True)
        return numbers.astype(np.int64, copy=False), tuple(distinct.tolist())
    entries = values.tolist()
    try:
        # Hashing is quicker than sorting all rows.
        known = tuple(sort_values(list(dict.fromkeys(entries))))
    except TypeError as error:
        rule = "must name a column of text, numbers or dates"
        raise InputError(name, rule, value=quote(entries)) from error
    place = {value: number for number, value in enumerate(known)}
    return np.fromiter(map(place.__getitem__, entries), dtype=np.int64, count=len(entries)), known


def _check_classes(classes: Sequence[Any], labels: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return declared classes after checking that they are distinct and hold every label."""
    declared = tuple(classes)
    if isinstance(classes, str) or len(set(declared)) < len(declared):
        raise InputError("classes", "must be distinct labels", value=repr(classes))
    strangers = [value for value in labels if value not in set(declared)]
    if strangers:
        raise InputError(
            "label",
            f"must be one of the classes {quote(declared)}",
            value=quote(strangers),
            remedy=f"{likely_meant(strangers, declared)}Correct such labels or add them to {{0}}.",
            settings=[Setting("classes")],
        )
    return declared


def _rank(values: NDArray[Any], name: str) -> IntArray:
    """Return the rank of each time; text must be in ISO form, which sorts by time."""
    numbers, distinct = _number(values, "time")
    if values.dtype.kind != "O":
        return numbers
    try:
        times = [
            datetime.fromisoformat(value) if isinstance(value, str) else value for value in distinct
        ]
        ordered = sorted(set(times))
    except (TypeError, ValueError) as error:
        raise InputError(
            "time",
            "must name a column of numbers, dates, or text in ISO form such as "
            f"2024-05-31T12:30:00, all of one kind; {name!r} holds {quote(distinct)}",
            remedy="Convert it first.",
        ) from error
    place = {value: rank for rank, value in enumerate(ordered)}
    return np.array([place[value] for value in times], dtype=np.int64)[numbers]


class Repeats(NamedTuple):
    """Judgements of an item by an annotator who had judged it before.

    Attributes
    ----------
    n_judgements : int
        Judgements beyond the first of their annotator and item.
    n_pairs : int
        Pairs of an annotator and an item with more than one judgement.
    n_consistent_pairs : int
        Those among them whose judgements are all the same label.
    """

    n_judgements: int
    n_pairs: int
    n_consistent_pairs: int


def set_repeats_aside(votes: Votes, generator: np.random.Generator) -> tuple[Votes, Repeats]:
    """Keep one judgement of each annotator and item: the earliest, or any where time is unknown.

    The votes come back sorted by item, then time, equal times in random order.
    """
    tie = generator.random(len(votes))
    time = np.zeros(len(votes)) if votes.time is None else votes.time
    order = np.lexsort((tie, time, votes.annotator, votes.item))
    pairs = votes.item[order] * len(votes.annotators) + votes.annotator[order]
    starts = np.flatnonzero(np.diff(pairs, prepend=-1))
    repeated = np.diff(starts, append=len(pairs)) > 1
    label = votes.label[order]
    consistent = np.minimum.reduceat(label, starts) == np.maximum.reduceat(label, starts)
    kept = order[starts]
    repeats = Repeats(
        len(pairs) - len(starts),
        int(np.count_nonzero(repeated)),
        int(np.count_nonzero(repeated & consistent)),
    )
    in_time = np.lexsort((tie[kept], time[kept], votes.item[kept]))
    return votes.take(kept[in_time]), repeats


def leave_repeats_out(votes: Votes, duplicates: str) -> Votes:
    """Refuse annotators who judged an item more than once, or leave all those judgements out."""
    pairs = votes.item * len(votes.annotators) + votes.annotator
    _, owner, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    repeated = counts[owner] > 1
    if not repeated.any() or duplicates == "keep":
        return votes
    n_pairs = int(np.count_nonzero(counts > 1))
    if duplicates == "error":
        who = votes.annotators[votes.annotator[np.argmax(repeated)]]
        raise InputError(
            "table",
            "must have one label for each item and annotator",
            value=f"several for {n_pairs} pair{'s' * (n_pairs > 1)}, one of them by {who!r}",
            remedy="Clean the table, count every judgement with {0}, or none of them with {1}.",
            settings=[Setting("duplicates", "keep"), Setting("duplicates", "drop")],
        )
    if repeated.all():
        rule = "must have a label that is not repeated by its annotator"
        raise InputError("table", rule, value="none")
    return votes.take(np.flatnonzero(~repeated))
