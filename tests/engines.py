"""The same small table in every engine that hocal reads from."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

Columns = Mapping[str, Sequence[Any]]

IN_PROCESS: dict[str, Callable[[pa.Table], Any]] = {
    "pandas": lambda table: table.to_pandas(),
    "pandas of objects": lambda table: pd.DataFrame(table.to_pydict(), dtype=object),
    "polars": pl.DataFrame,
    "polars, lazy": lambda table: pl.DataFrame(table).lazy(),
    "arrow": lambda table: table,
    "duckdb": lambda table: duckdb.connect().from_arrow(table),
}


def arrow_table(columns: Columns, types: Mapping[str, pa.DataType] | None = None) -> pa.Table:
    """Return an Arrow table; `types` for columns whose values do not tell."""
    kinds = types or {}
    return pa.table(
        {name: pa.array(values, type=kinds.get(name)) for name, values in columns.items()}
    )


def tables(columns: Columns, types: Mapping[str, pa.DataType] | None = None) -> dict[str, Any]:
    """Return the table in every engine that needs no server."""
    table = arrow_table(columns, types)
    return {name: convert(table) for name, convert in IN_PROCESS.items()}


@cache
def why_no_spark() -> str:
    """Return what is missing for a local Spark, or nothing."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "pyspark is not installed"
    return "" if shutil.which("java") else "Spark needs Java, which is not installed"


def local_spark() -> Any:
    """Start Spark with two threads, no web page, and nothing listening beyond this machine."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # its workers use this environment
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        # A few rows per query: compiling code for them takes longer than interpreting it.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    return (
        SparkSession.builder.master("local[2]").appName("hocal").config(map=settings).getOrCreate()
    )


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Share a real Spark on this machine between all tests of a worker."""
    if why_no_spark():
        pytest.skip(why_no_spark())
    session = local_spark()
    yield session
    session.stop()
