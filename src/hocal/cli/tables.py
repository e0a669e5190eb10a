"""Tables in: CSV and Parquet files as tables of an engine, their columns checked and typed."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from glob import escape
from typing import Any, NamedTuple, Protocol

from hocal._base.errors import InputError
from hocal.cli.files import SEPARATORS, expand, read_header, table_kind
from hocal.cli.messages import FileError

__all__ = [
    "Probabilities",
    "ReadTable",
    "count_distinct",
    "count_rows",
    "extra_column",
    "open_engine",
    "open_labels",
    "open_probabilities",
    "same_items",
]


class ReadTable(Protocol):
    """Reads files as a table: path, names of columns for CSV without a header, and numeric ones.

    All other columns of CSV files are text, so that an item 007 stays 007.
    """

    def __call__(self, path: str, names: Sequence[str] | None, numbers: Sequence[str], /) -> Any:
        """Return the table of an engine."""

    def hold(self, columns: Mapping[str, Sequence[str]]) -> Any:
        """Return a table of the same engine with columns of text."""


# of a column of CSV in DuckDB, by whether it holds numbers
_TYPES = {True: "DOUBLE", False: "VARCHAR"}


class Probabilities(NamedTuple):
    """A table of predictions with one column per class."""

    #: native table with the item, one column of numbers per class, and what else was asked for
    table: Any
    columns: list[str]  #: the columns of the classes
    file_columns: list[str]  #: the same as the file calls them; one for a column of lists
    scores: Sequence[str] = ()  #: columns of scores, which are features

    @property
    def classes(self) -> list[str]:
        """Names of the classes where none are declared."""
        if len(self.file_columns) > 1:
            return self.columns
        return [str(j) for j in range(len(self.columns))]

    @contextmanager
    def explained(self, place: Callable[[int], str] | None = None) -> Iterator[None]:
        """Say in an error about probabilities which columns were taken for them, and what to do.

        `place` says in words where a row is, for arrays that are not in the order of the file.
        """
        try:
            yield
        except InputError as error:
            where = error.where
            if place is not None and error.row is not None:
                where = place(error.row)
            advice = _advice(error)
            if advice is None:
                raise error.replace(where=where) from error
            remedy = f"{advice} {_taken(self.file_columns)}"
            raise error.replace(where=where, remedy=remedy, settings=()) from error


def _advice(error: InputError) -> str | None:
    """Return what to do about probabilities in a file that are none."""
    from hocal._base.validation import NON_NEGATIVE, SUM_TO_ONE

    advice = {
        SUM_TO_ONE: "Write more digits, or divide each row by its sum before writing the file.",
        NON_NEGATIVE: "Apply softmax if they are logits.",
    }
    return advice.get(error.rule) if error.argument == "probabilities" else None


@contextmanager
def open_engine(
    engine: str, *, memory_limit: str = "2GB", spark_master: str | None = None
) -> Iterator[ReadTable]:
    """Open DuckDB or Spark and hand out a function that reads files with it."""
    from hocal._base.validation import check_choice

    check_choice(engine, "engine", ("duckdb", "spark"))
    with _open_spark(spark_master) if engine == "spark" else _open_duckdb(memory_limit) as read:
        yield read


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
    _check_columns(list(frame.collect_schema()), wanted, path, item)
    if time is not None and _begins_with_number(frame, time):
        # else it stays text, in which dates are recognised
        frame = nw.from_native(read(path, names, [*count_columns, time])).lazy()
    # classes are written as text on a command line
    texts = [nw.col(column).cast(nw.String) for column in (*label, *known)]
    numbers = [nw.col(column).cast(nw.Float64) for column in count_columns]
    return frame.select(item, *texts, *numbers, *others).to_native()


def open_probabilities(
    read: ReadTable,
    path: str,
    *,
    item: str,
    columns: Sequence[str] | None = None,
    n_classes: int | None = None,
    cell: str | None = None,
    extra: Mapping[str, str] | None = None,
    names: Sequence[str] | None = None,
    scores: Sequence[str] = (),
) -> Probabilities:
    """Return a table of predictions; a lone column is taken for lists, which become one per class.

    `extra` names columns by the options that asked for them; they come along as `extra_column`.
    `scores` names columns of features; where there is nothing else, all classes are predicted
    alike.
    """
    import narwhals as nw

    wanted = extra or {}
    frame = nw.from_native(read(path, names, [])).lazy()
    present = list(frame.collect_schema())
    _check_extra(present, wanted)
    keys = [item] if cell is None else [item, cell]
    others = {*keys, *wanted.values(), *scores}
    chosen = [x for x in present if x not in others] if columns is None else list(columns)
    _check_columns(present, [*keys, *scores, *chosen], path, item)
    _check_numbers(frame, scores, path, "scores")
    if not chosen and not scores:
        listed = ", ".join(map(repr, keys))
        raise FileError(path, f"must have columns of probabilities besides {listed}")
    kept = [nw.col(column).alias(extra_column(option)) for option, column in wanted.items()]
    kept += [nw.col(column).cast(nw.Float64) for column in scores]
    if cell is not None:
        kept.append(nw.col(cell).cast(nw.Float64))
    if len(chosen) == 1:
        opened = _open_lists(frame, path, item, chosen[0], n_classes, kept)
        return opened._replace(scores=scores)
    if not chosen:
        return _open_scores(frame, item, n_classes, kept)._replace(scores=scores)
    _check_numbers(frame, chosen, path)
    frame = nw.from_native(read(path, names, [*chosen, *scores])).lazy()  # now that they are known
    numbers = [nw.col(column).cast(nw.Float64) for column in chosen]
    return Probabilities(frame.select(item, *numbers, *kept).to_native(), chosen, chosen, scores)


def extra_column(option: str) -> str:
    """Return the name of a column that an option asked for, which no column of a file has."""
    return f"hocal {option}"


def _open_scores(frame: Any, item: str, n_classes: int | None, kept: list[Any]) -> Probabilities:
    """Return predictions that know nothing but scores: all classes are alike."""
    import narwhals as nw

    if n_classes is None:
        rule = "must be given with `--score` where there are no columns of probabilities"
        raise InputError("--classes", rule)
    names = [extra_column(f"class {j}") for j in range(n_classes)]
    alike = [nw.lit(1 / n_classes).alias(name) for name in names]
    return Probabilities(frame.select(item, *kept, *alike).to_native(), names, [])


def _open_lists(
    frame: Any, path: str, item: str, column: str, n_classes: int | None, kept: list[Any]
) -> Probabilities:
    """Return predictions of a column of lists, with one column per class."""
    import narwhals as nw

    if not isinstance(frame.collect_schema()[column], (nw.List, nw.Array, nw.String)):
        remedy = "Name the columns of all classes otherwise."
        raise FileError(path, "must hold lists", column=column, remedy=remedy)
    lists = frame.select(item, nw.col(column).cast(nw.List(nw.Float64)), *kept)
    size = _first_length(lists, path, column, n_classes)
    values = nw.col(column)
    fits = values.list.len() == size  # a list of another length becomes gaps, which are refused
    names = [f"{column}_{j}" for j in range(size)]
    numbers = [nw.when(fits).then(values.list.get(j)).alias(name) for j, name in enumerate(names)]
    others = [name for name in lists.collect_schema().names() if name not in (item, column)]
    return Probabilities(lists.select(item, *numbers, *others).to_native(), names, [column])


def same_items(table: Any, predictions: Probabilities, item: str) -> tuple[Any, Probabilities]:
    """Return a table and predictions whose items are text in both where they are in one of them."""
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


def count_distinct(table: Any, column: str) -> int:
    """Return the number of different values in a column of a native table."""
    import narwhals as nw

    return count_rows(nw.from_native(table).lazy().select(column).unique().to_native())


def _check_columns(present: Sequence[str], wanted: Sequence[str], path: str, item: str) -> None:
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


def _check_extra(present: Sequence[str], wanted: Mapping[str, str]) -> None:
    """Refuse options that name a column which is not there."""
    for option, column in wanted.items():
        if column not in present:
            raise InputError(
                f"--{option}",
                "must name a column of PROBABILITIES",
                value=repr(column),
                remedy=f"It has {', '.join(present)}.",
            )


def _check_numbers(
    frame: Any, columns: Sequence[str], path: str, what: str = "probabilities"
) -> None:
    """Refuse text among numbers, as far as the first row tells; CSV is text until cast."""
    if not columns:
        return
    first = frame.select(*columns).head(1).collect().to_dict(as_series=False)
    for column, values in first.items():
        try:
            [float(value) for value in values if value is not None]
        except (TypeError, ValueError) as error:
            raise FileError(
                path,
                f"must hold {what}",
                column=column,
                value=repr(values[0]),
                remedy=_taken(columns) if what == "probabilities" else "",
            ) from error


def _taken(columns: Sequence[str]) -> str:
    """Say which columns are taken for probabilities, and how to name others."""
    return (
        f"Columns taken as probabilities: {', '.join(columns)}. "
        "If one of them is something else, name those that are with --probability-columns."
    )


def _begins_with_number(frame: Any, column: str) -> bool:
    first = frame.select(column).head(1).collect()[column].to_list()
    try:
        return isinstance(float(first[0]), float)
    except (IndexError, TypeError, ValueError):
        return False


def _first_length(frame: Any, path: str, column: str, n_classes: int | None) -> int:
    """Return the length of the first list, one entry per class; without rows, any will do."""
    import narwhals as nw

    first = frame.select(nw.col(column).list.len().alias("n")).head(1).collect()["n"].to_list()
    found = first[0] if first else n_classes
    if found is None or found < 2 or n_classes not in (None, found):
        wanted = "at least two" if n_classes is None else n_classes
        rule = f"must hold lists of {wanted} probabilities, one for each class"
        raise FileError(path, rule, column=column, value=found or "none")
    return int(found)


class _DuckDB(NamedTuple):
    connection: Any

    def __call__(self, path: str, names: Sequence[str] | None, numbers: Sequence[str], /) -> Any:
        return _read_with_duckdb(self.connection, path, names, numbers)

    def hold(self, columns: Mapping[str, Sequence[str]]) -> Any:
        import pyarrow as pa

        return self.connection.from_arrow(pa.table(dict(columns)))


@contextmanager
def _open_duckdb(memory_limit: str) -> Iterator[ReadTable]:
    import duckdb

    with tempfile.TemporaryDirectory(prefix="hocal-") as folder, duckdb.connect() as connection:
        connection.execute(f"SET memory_limit = {_quote(memory_limit)}")
        # else it spills into the working directory
        connection.execute(f"SET temp_directory = {_quote(folder)}")
        connection.execute("SET enable_progress_bar = false")
        yield _DuckDB(connection)


def _read_with_duckdb(
    connection: Any, path: str, names: Sequence[str] | None, numbers: Sequence[str]
) -> Any:
    kind = table_kind(path)
    files = expand(path)
    # patterns were resolved, and what looks like one in a name is none
    listed = f"[{', '.join(_quote(escape(file)) for file in files)}]"
    if kind == ".parquet":
        return connection.sql(f"SELECT * FROM read_parquet({listed})")
    columns = names or read_header(files, SEPARATORS[kind])
    types = [f"{_quote(name)}: '{_TYPES[name in numbers]}'" for name in columns]
    typed = ", ".join(types)
    return connection.sql(
        f"SELECT * FROM read_csv({listed}, auto_detect = false, columns = {{{typed}}}, "
        f"header = {str(names is None).lower()}, delim = {_quote(SEPARATORS[kind])}, "
        """quote = '"', escape = '"')"""
    )


class _Spark(NamedTuple):
    session: Any

    def __call__(self, path: str, names: Sequence[str] | None, numbers: Sequence[str], /) -> Any:
        return _read_with_spark(self.session, path, names, numbers)

    def hold(self, columns: Mapping[str, Sequence[str]]) -> Any:
        rows = list(zip(*columns.values(), strict=True))
        return self.session.createDataFrame(rows, list(columns))


@contextmanager
def _open_spark(master: str | None) -> Iterator[ReadTable]:
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
            yield _Spark(session)
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
        rule = f"must have a name for each of its {len(table.columns)} columns"
        raise FileError(path, rule, value=f"{len(names)} names")
    return table if names is None else table.toDF(*names)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
