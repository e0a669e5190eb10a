"""Engines that hold tables, DuckDB or Spark, and the files that they read."""

from __future__ import annotations

import signal
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from glob import escape
from typing import Any, NamedTuple, Protocol

from hocal.cli.files import SEPARATORS, expand, read_header, table_kind
from hocal.cli.messages import FileError

__all__ = ["ReadTable", "open_engine"]


class ReadTable(Protocol):
    """Reads files as a table: path, names of columns for CSV without a header, and numeric ones.

    All other columns of CSV files are text, so that an item 007 stays 007.
    """

    def __call__(self, path: str, names: Sequence[str] | None, numbers: Sequence[str], /) -> Any:
        """Return the table of an engine."""

    def hold(self, columns: Mapping[str, Sequence[str]]) -> Any:
        """Return a table of the same engine with columns of text."""

    @property
    def keeps_order(self) -> bool:
        """Whether rows come in the order of their file."""


# of a column of CSV in DuckDB, by whether it holds numbers
_TYPES = {True: "DOUBLE", False: "VARCHAR"}


@contextmanager
def open_engine(
    engine: str, *, memory_limit: str = "2GB", spark_master: str | None = None
) -> Iterator[ReadTable]:
    """Open DuckDB or Spark and hand out a function that reads files with it."""
    from hocal._base.validation import check_choice

    check_choice(engine, "engine", ("duckdb", "spark"))
    with _open_spark(spark_master) if engine == "spark" else _open_duckdb(memory_limit) as read:
        yield read


class _DuckDB(NamedTuple):
    connection: Any
    keeps_order: bool = True

    def __call__(self, path: str, names: Sequence[str] | None, numbers: Sequence[str], /) -> Any:
        return _read_with_duckdb(self.connection, path, names, numbers)

    def hold(self, columns: Mapping[str, Sequence[str]]) -> Any:
        import pyarrow as pa

        return self.connection.from_arrow(pa.table(dict(columns)))


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Keep signals that end a command for later: DuckDB aborts when one comes during its import."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    ending = (signal.SIGINT, signal.SIGTERM)
    before = {each: signal.signal(each, lambda number, _: came.append(number)) for each in ending}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    for number in came:
        signal.raise_signal(number)


@contextmanager
def _open_duckdb(memory_limit: str) -> Iterator[ReadTable]:
    with _interrupts_wait():
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
    keeps_order: bool = False

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
