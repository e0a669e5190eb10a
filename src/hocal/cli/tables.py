"""Tables in: columns of labels checked and typed, and what holds of every table of an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hocal.cli.engines import ReadTable
from hocal.cli.messages import FileError

__all__ = ["check_columns", "count_distinct", "count_rows", "open_labels"]


def open_labels(
    read: ReadTable,
    path: str,
    *,
    item: str,
    label: Sequence[str] = (),
    annotator: str | None = None,
    count_columns: Sequence[str] = (),
    time: str | None = None,
    gold: str | None = None,
    names: Sequence[str] | None = None,
) -> Any:
    """Return a table of labels with the named columns only: labels as text, counts as numbers."""
    import narwhals as nw

    frame = nw.from_native(read(path, names, count_columns)).lazy()
    others = [column for column in (annotator, time) if column is not None]
    known = [] if gold is None else [gold]
    wanted = [item, *label, *count_columns, *others, *known]
    check_columns(list(frame.collect_schema()), wanted, path, item)
    if time is not None and _begins_with_number(frame, time):
        # else it stays text, in which dates are recognised
        frame = nw.from_native(read(path, names, [*count_columns, time])).lazy()
    # classes are written as text on a command line
    texts = [nw.col(column).cast(nw.String) for column in (*label, *known)]
    numbers = [nw.col(column).cast(nw.Float64) for column in count_columns]
    return frame.select(item, *texts, *numbers, *others).to_native()


def count_rows(table: Any) -> int:
    """Return the number of rows of a native table."""
    import narwhals as nw

    return int(nw.from_native(table).lazy().select(nw.len().alias("n")).collect()["n"][0])


def count_distinct(table: Any, column: str) -> int:
    """Return the number of different values in a column of a native table."""
    import narwhals as nw

    return count_rows(nw.from_native(table).lazy().select(column).unique().to_native())


def check_columns(present: Sequence[str], wanted: Sequence[str], path: str, item: str) -> None:
    """Refuse a table without the wanted columns, and a column with two roles."""
    for column in wanted:
        if column not in present:
            raise FileError(
                path,
                f"must have a column {column!r}",
                value=", ".join(map(repr, present)),
                remedy=_column_remedy(present, column, item),
            )
    repeated = [column for column in wanted if wanted.count(column) > 1]
    if repeated:
        raise FileError(path, "must have one role only", column=repeated[0])


def _column_remedy(present: Sequence[str], column: str, item: str) -> str:
    """Return what to do about a table without a column."""
    if len(present) == 1 and ";" in present[0]:
        return "It is separated by semicolons: write it with commas, or with tabs as .tsv."
    if column == item:
        return (
            "The column of the items must have the same name in both tables: "
            "rename it in one of them."
        )
    return ""


def _begins_with_number(frame: Any, column: str) -> bool:
    first = frame.select(column).head(1).collect()[column].to_list()
    try:
        return isinstance(float(first[0]), float)
    except (IndexError, TypeError, ValueError):
        return False
