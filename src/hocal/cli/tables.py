"""Tables in: columns of labels checked and typed, and what holds of every table of an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hocal._base.errors import InputError
from hocal.cli.engines import ReadTable
from hocal.cli.files import table_kind
from hocal.cli.messages import FileError

__all__ = [
    "check_columns",
    "count_distinct",
    "count_rows",
    "open_labels",
    "refuse_names",
    "spell_as",
]


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

    refuse_names(path, names, "--names")
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


def spell_as(table: Any, columns: Sequence[str], classes: Sequence[str] | None) -> Any:
    """Return labels with numbers spelled as the classes are: 1.0 is the class 1, and 1 is 1.0.

    Other labels stay as they are. Programs write whole numbers with a point where some are missing.
    """
    import narwhals as nw

    known = set(classes or ())
    others = {_other_spelling(name): name for name in known if _other_spelling(name)}
    meant = {spelled: name for spelled, name in others.items() if spelled not in known}
    if not meant:
        return table
    frame = nw.from_native(table).lazy()
    for column in columns:
        label = nw.col(column)
        rows = frame.select(column).filter(label.is_in(list(meant))).unique().collect()
        spelled = label
        for found in rows[column].to_list():
            spelled = nw.when(label == found).then(nw.lit(meant[found])).otherwise(spelled)
        frame = frame.with_columns(spelled.alias(column))
    return frame.to_native()


def _other_spelling(name: str) -> str:
    """Return a whole number with a point where it has none, and without where it has; else ""."""
    plain = name.removesuffix(".0")
    if not plain.lstrip("-").isdecimal():
        return ""
    return f"{name}.0" if plain == name else plain


def refuse_names(path: str, names: Sequence[str] | None, option: str) -> None:
    """Refuse names for the columns of a file that has some."""
    if names is not None and table_kind(path) == ".parquet":
        raise InputError(option, "must be left out for Parquet, which has names", value=path)


def count_rows(table: Any) -> int:
    """Return the number of rows of a native table."""
    import narwhals as nw

    n_rows = nw.from_native(table).lazy().select(nw.len().alias("n"))
    return int(n_rows.collect()["n"][0])


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
