"""Break tables in files in many ways: other types, missing and wild values, damaged bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

Generator = np.random.Generator
WILD: tuple[Any, ...] = (
    "", " ", "nan", "inf", "-1", "1e400", "0x10", "a,b", 'q"q', "\n", "\ud7ff", "=1+1", "<b>",
    "NULL", "9" * 40, "'; DROP TABLE labels; --", "../../etc/passwd", "cat\0dog",
)  # fmt: skip


def write(table: pa.Table, path: Path, generator: Generator) -> Path:
    """Write as Parquet or CSV, and damage some of the bytes now and then."""
    kinds = table.schema.types  # of which text has no lists and no bytes
    nested = any(pa.types.is_nested(kind) or pa.types.is_binary(kind) for kind in kinds)
    if nested or generator.random() < 0.5:
        target = path.with_suffix(".parquet")
        parquet.write_table(table, target)
    else:
        target = path.with_suffix(".csv")
        csv.write_csv(table, target)
    if generator.random() < 0.25:
        target.write_bytes(damage(target.read_bytes(), generator))
    return target


def damage(content: bytes, generator: Generator) -> bytes:
    """Change, cut or add bytes."""
    array = bytearray(content)
    for place in generator.integers(0, max(len(array), 1), generator.integers(1, 30)):
        if array:
            array[place] = generator.integers(256)
    if generator.random() < 0.3:
        return bytes(array[: generator.integers(0, len(array) + 1)])
    return bytes(array)


def break_table(table: pa.Table, generator: Generator) -> pa.Table:
    """Change one column or the rows."""
    change = CHANGES[generator.integers(len(CHANGES))]
    return change(table, generator)


def _replace(table: pa.Table, generator: Generator, make: Callable[[list[Any]], Any]) -> pa.Table:
    place = int(generator.integers(table.num_columns))
    values = table.column(place).to_pylist()
    return table.set_column(place, table.column_names[place], make(values))


def _wild_text(table: pa.Table, generator: Generator) -> pa.Table:
    def make(values: list[Any]) -> Any:
        texts = [str(value) for value in values]
        for place in generator.integers(0, max(len(texts), 1), 3):
            if texts:
                texts[place] = WILD[generator.integers(len(WILD))]
        return pa.array(texts)

    return _replace(table, generator, make)


def _wild_numbers(table: pa.Table, generator: Generator) -> pa.Table:
    wild = [np.nan, np.inf, -np.inf, -1.0, 1e300, 1e-300, 0.0, None]

    def make(values: list[Any]) -> Any:
        return pa.array([wild[generator.integers(len(wild))] for _ in values], pa.float64())

    return _replace(table, generator, make)


def _nulls(table: pa.Table, generator: Generator) -> pa.Table:
    return _replace(table, generator, lambda values: pa.nulls(len(values)))


def _nested(table: pa.Table, generator: Generator) -> pa.Table:
    forms: tuple[Callable[[list[Any]], Any], ...] = (
        lambda values: pa.array([[value] for value in values]),
        lambda values: pa.array([{"x": value} for value in values]),
        lambda values: pa.array(
            [[(str(value), 1)] for value in values], pa.map_(pa.string(), pa.int64())
        ),
        lambda values: pa.array([[[value]] for value in values]),
        lambda values: pa.array([b"\x00\xff"] * len(values)),
        lambda values: pa.array([True] * len(values)),
        lambda values: pa.array([0] * len(values), pa.timestamp("us")),
        lambda values: pa.array(["a"] * len(values)).dictionary_encode(),
        lambda values: pa.array([2**63] * len(values), pa.uint64()),
        lambda values: pa.array([1] * len(values), pa.decimal128(38, 2)),
    )
    return _replace(table, generator, forms[generator.integers(len(forms))])


def _rows(table: pa.Table, generator: Generator) -> pa.Table:
    kind = generator.integers(4)
    if kind == 0:
        return table.slice(0, 0)
    if kind == 1:
        return table.slice(0, 1)
    if kind == 2:
        return pa.concat_tables([table, table])
    return table.take(pa.array(generator.integers(0, table.num_rows, table.num_rows)))


def _names(table: pa.Table, generator: Generator) -> pa.Table:
    names = list(table.column_names)
    names[generator.integers(len(names))] = str(generator.choice(["", "cell", "item", "é", "a b"]))
    return table.rename_columns(names)


def _columns(table: pa.Table, generator: Generator) -> pa.Table:
    if generator.random() < 0.5 and table.num_columns > 1:
        return table.drop_columns([table.column_names[generator.integers(table.num_columns)]])
    return table.append_column("extra", pa.array(generator.normal(size=table.num_rows)))


CHANGES = (_wild_text, _wild_numbers, _nulls, _nested, _nested, _rows, _names, _columns)
