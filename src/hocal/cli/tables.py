"""Tables in: CSV and Parquet files as tables of an engine, their columns checked and given types by their role."""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from glob import escape
from typing import Any, NamedTuple, TypeAlias

from hocal.cli.files import SEPARATORS, expand, read_header, table_kind

__all__ = [
    "Probabilities",
    "Read",
    "count_rows",
    "open_engine",
    "open_labels",
    "open_probabilities",
    "same_items",
]

Read: TypeAlias = "Callable[[str, Sequence[str] | None, Sequence[str]], Any]"
"""Reads files as a table: their path, names of the columns for CSV without a header, and which hold numbers.

All other columns of CSV files are text, so that an item 007 stays 007.
"""


_REMEDIES = {
    "must sum to 1": "Write more digits, or divide each row by its sum before writing the file.",
    "must be non-negative": "Apply softmax if they are logits.",
}


class Probabilities(NamedTuple):
    """A table of predictions with a column a class."""

    #: native table with the item, one column of numbers a class, and the cell where asked for
    table: Any
    columns: list[str]  #: the columns of the classes
    given: list[str]  #: the columns as they are called in the file; one for a column of lists

    @property
    def classes(self) -> list[str]:
        """Names of the classes where none are declared."""
        return self.columns if len(self.given) > 1 else [str(j) for j in range(len(self.columns))]

    @contextmanager
    def explained(self, items: Sequence[Any] | None = None) -> Iterator[None]:
        """Say in an error about probabilities which columns were taken for them, and what to do.

        `items` names the rows of arrays that are not in the order of the file.
        """
        try:
            yield
        except ValueError as error:
            text = str(error)
            remedy = next(
                (said for rule, said in _REMEDIES.items() if f"`probabilities` {rule}" in text),
                None,
            )
            if remedy is None:
                raise
            if items is not None:
                text = re.sub(
                    r"in row (\d+)", lambda row: f"for item {str(items[int(row[1])])!r}", text
                )
            text = text.removesuffix(" Normalise it first.")
            raise ValueError(f"{text} {remedy} {_taken(self.given)}") from error


@contextmanager
def open_engine(
    engine: str, *, memory_limit: str = "2GB", spark_master: str | None = None
) -> Iterator[Read]:
    """Open DuckDB or Spark and hand out a function that reads files with it."""
    if engine not in ("duckdb", "spark"):
        raise ValueError(f"`engine` must be 'duckdb' or 'spark', got {engine!r}.")
    with _open_spark(spark_master) if engine == "spark" else _open_duckdb(memory_limit) as read:
        yield read


def open_labels(
    read: Read,
    path: str,
    *,
    item: str,
    label: Sequence[str] = (),
    annotator: str | None = None,
    count_columns: Sequence[str] = (),
    time: str | None = None,
    names: Sequence[str] | None = None,
) -> Any:
    """Return a table of labels with the named columns only: labels as text, counts as numbers."""
    import narwhals as nw

    frame = nw.from_native(read(path, names, count_columns)).lazy()
    others = [column for column in (annotator, time) if column is not None]
    _check_columns(frame, [item, *label, *count_columns, *others], path, item)
    if time is not None and _begins_with_number(
        frame, time
    ):  # text, else, in which dates are recognised
        frame = nw.from_native(read(path, names, [*count_columns, time])).lazy()
    texts = [
        nw.col(column).cast(nw.String) for column in label
    ]  # classes are written as text on a command line
    numbers = [nw.col(column).cast(nw.Float64) for column in count_columns]
    return frame.select(item, *texts, *numbers, *others).to_native()


def open_probabilities(
    read: Read,
    path: str,
    *,
    item: str,
    columns: Sequence[str] | None = None,
    n_classes: int | None = None,
    cell: str | None = None,
    names: Sequence[str] | None = None,
) -> Probabilities:
    """Return a table of predictions; one column is taken for a column of lists, which becomes one a class."""
    import narwhals as nw

    frame = nw.from_native(read(path, names, [])).lazy()
    kept = [item] if cell is None else [item, cell]
    given = (
        [x for x in frame.collect_schema() if x not in kept] if columns is None else list(columns)
    )
    _check_columns(frame, [*kept, *given], path, item)
    if not given:
        raise ValueError(
            f"{path} must have columns of probabilities besides {', '.join(map(repr, kept))}."
        )
    cells = [] if cell is None else [nw.col(cell).cast(nw.Float64)]
    if len(given) > 1:
        _check_numbers(frame, given, path)
        frame = nw.from_native(read(path, names, given)).lazy()  # now that their names are known
        numbers = [nw.col(column).cast(nw.Float64) for column in given]
        return Probabilities(frame.select(item, *numbers, *cells).to_native(), given, given)
    if not isinstance(frame.collect_schema()[given[0]], (nw.List, nw.Array, nw.String)):
        raise ValueError(
            f"Column {given[0]!r} of {path} must hold lists. Name the columns of all classes otherwise."
        )
    lists = frame.select(item, nw.col(given[0]).cast(nw.List(nw.Float64)), *cells)
    size = _first_length(lists, given[0], n_classes)
    values = nw.col(given[0])
    fits = values.list.len() == size  # a list of another length becomes gaps, which are refused
    expanded = [f"{given[0]}_{j}" for j in range(size)]
    numbers = [
        nw.when(fits).then(values.list.get(j)).alias(name) for j, name in enumerate(expanded)
    ]
    return Probabilities(lists.select(item, *numbers, *kept[1:]).to_native(), expanded, given)


def same_items(table: Any, predictions: Probabilities, item: str) -> tuple[Any, Probabilities]:
    """Return a table and predictions with items as text where one of them, read from CSV, has no other type."""
    import narwhals as nw

    frames = [nw.from_native(native).lazy() for native in (table, predictions.table)]
    if len({frame.collect_schema()[item] == nw.String for frame in frames}) == 1:
        return table, predictions
    first, second = (
        frame.with_columns(nw.col(item).cast(nw.String)).to_native() for frame in frames
    )
    return first, predictions._replace(table=second)


def count_rows(table: Any) -> int:
    """Return the number of rows of a native table."""
    import narwhals as nw

    return int(nw.from_native(table).lazy().select(nw.len().alias("n")).collect()["n"][0])


def _check_columns(frame: Any, wanted: Sequence[str], path: str, item: str) -> None:
    there = list(frame.collect_schema())
    for column in wanted:
        if column not in there:
            found = ", ".join(map(repr, there))
            raise ValueError(
                f"{path} must have a column {column!r}, got {found}.{_remedy(there, column, item)}"
            )
    repeated = [column for column in wanted if wanted.count(column) > 1]
    if repeated:
        raise ValueError(f"Column {repeated[0]!r} of {path} must have one role only.")


def _remedy(there: Sequence[str], column: str, item: str) -> str:
    """Return what to do about a table without a column."""
    if len(there) == 1 and ";" in there[0]:
        return " It is separated by semicolons: write it with commas, or with tabs as .tsv."
    if column == item:
        return " The column of the items must have the same name in both tables: rename it in one of them."
    return ""


def _check_numbers(frame: Any, columns: Sequence[str], path: str) -> None:
    """Refuse columns of text among the probabilities, as far as the first row tells; CSV is all text until cast."""
    for column, values in frame.select(*columns).head(1).collect().to_dict(as_series=False).items():
        try:
            [float(value) for value in values if value is not None]
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"Column {column!r} of {path} must hold probabilities, got {values[0]!r}. {_taken(columns)}"
            ) from error


def _taken(columns: Sequence[str]) -> str:
    """Say which columns are taken for probabilities, and how to name others."""
    return (
        f"Columns taken as probabilities: {', '.join(columns)}. If one of them is something else, name those that "
        "are with --probability-columns."
    )


def _begins_with_number(frame: Any, column: str) -> bool:
    first = frame.select(column).head(1).collect()[column].to_list()
    try:
        return isinstance(float(first[0]), float)
    except (IndexError, TypeError, ValueError):
        return False


def _first_length(frame: Any, column: str, n_classes: int | None) -> int:
    """Return the length of the first list, which must have a probability for each class; without rows, any will do."""
    import narwhals as nw

    first = frame.select(nw.col(column).list.len().alias("n")).head(1).collect()["n"].to_list()
    found = first[0] if first else n_classes
    if found is None or found < 2 or n_classes not in (None, found):
        wanted = "at least two" if n_classes is None else n_classes
        raise ValueError(
            f"Column {column!r} must hold lists of {wanted} probabilities, one for each class, got {found or 'none'}."
        )
    return int(found)


@contextmanager
def _open_duckdb(memory_limit: str) -> Iterator[Read]:
    import duckdb

    with tempfile.TemporaryDirectory(prefix="hocal-") as folder, duckdb.connect() as connection:
        connection.execute(f"SET memory_limit = {_quote(memory_limit)}")
        connection.execute(
            f"SET temp_directory = {_quote(folder)}"
        )  # by default the working directory
        connection.execute("SET enable_progress_bar = false")

        def read(path: str, names: Sequence[str] | None, numbers: Sequence[str]) -> Any:
            kind = table_kind(path)
            files = expand(path)
            # patterns were resolved
            listed = f"[{', '.join(_quote(escape(file)) for file in files)}]"
            if kind == ".parquet":
                return connection.sql(f"SELECT * FROM read_parquet({listed})")
            columns = names or read_header(files, SEPARATORS[kind])
            types = ["DOUBLE" if name in numbers else "VARCHAR" for name in columns]
            typed = ", ".join(
                f"{_quote(name)}: '{type_}'" for name, type_ in zip(columns, types, strict=True)
            )
            return connection.sql(
                f"SELECT * FROM read_csv({listed}, auto_detect = false, columns = {{{typed}}}, "
                f"header = {str(names is None).lower()}, delim = {_quote(SEPARATORS[kind])}, "
                """quote = '"', escape = '"')"""
            )

        yield read


@contextmanager
def _open_spark(master: str | None) -> Iterator[Read]:
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise ImportError(
            '`--engine spark` needs pyspark. Install it with: pip install "hocal[spark]"'
        ) from error
    running = SparkSession.getActiveSession()
    session = running or _start_spark(SparkSession.builder.appName("hocal"), master)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # PySpark's, about the version of pandas
            yield partial(_read_with_spark, session)
    finally:
        if running is None:
            session.stop()


def _start_spark(builder: Any, master: str | None) -> Any:
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    if master is not None:
        builder = builder.remote(master) if master.startswith("sc://") else builder.master(master)
    session = builder.getOrCreate()
    if master is None or not master.startswith("sc://"):
        session.sparkContext.setLogLevel("ERROR")
    return session


def _read_with_spark(session: Any, path: str, names: Sequence[str] | None, _: Sequence[str]) -> Any:
    kind = table_kind(path)
    if kind == ".parquet":
        return session.read.parquet(path)
    table = session.read.csv(
        path,
        sep=SEPARATORS[kind],
        header=names is None,
        quote='"',
        escape='"',
        mode="FAILFAST",
        encoding="utf-8",
    )
    if names is not None and len(names) != len(table.columns):
        raise ValueError(f"{path} has {len(table.columns)} columns, got {len(names)} names.")
    return table if names is None else table.toDF(*names)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
