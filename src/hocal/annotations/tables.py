"""Read tables of any engine through narwhals: columns, values, and rows to quote in errors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hocal._base.errors import InputError
from hocal._base.frames import to_frame
from hocal._base.typing import Index

__all__ = [
    "Frame",
    "collect",
    "collect_rows",
    "column_values",
    "count_rows",
    "distinct",
    "enumerate_few",
    "examples",
    "is_in_memory",
    "is_matrix",
    "number_values",
    "open_table",
    "open_tables",
    "pick",
    "quote",
    "sort_values",
    "total",
    "with_one_key",
]

Frame: TypeAlias = "nw.LazyFrame[Any]"

# possible integers for each that is held, up to which a table of them all is worth its memory
_SPARSEST = 2


def is_matrix(table: Any) -> bool:
    """Tell counts, one row per item, from tables with named columns."""
    return sparse.issparse(table) or isinstance(table, (np.ndarray, list, tuple))


def open_table(table: Any, name: str = "table") -> Frame:
    """Return a table as a narwhals LazyFrame; the rows stay in the engine that holds them."""
    try:
        frame: Frame = nw.from_native(_native(table)).lazy()
    except TypeError as error:
        raise InputError(
            name,
            "must be a pandas, polars or Spark dataframe, a pyarrow table, a DuckDB relation or a "
            "dictionary of columns",
            value=type(table).__name__,
            remedy="Read files with one of these first, e.g. duckdb.read_parquet(path).",
        ) from error
    except nw.exceptions.DuplicateError as error:
        raise InputError(name, "must have distinct column names", remedy=str(error)) from error
    return frame


def open_tables(first: Any, second: Any, names: tuple[str, str]) -> tuple[Frame, Frame]:
    """Return two tables of one engine; those in memory are brought together."""
    frames = [open_table(table, name) for table, name in zip((first, second), names, strict=True)]
    engines = [frame.implementation for frame in frames]
    if engines[0] is engines[1]:
        _check_connection(frames, names)
        return frames[0], frames[1]
    if not (is_in_memory(first) and is_in_memory(second)):
        raise InputError(
            " and ".join(names),
            "must be held by the same engine",
            value=" and ".join(engine.name.lower() for engine in engines),
            remedy="Load both tables with one of them.",
        )
    in_arrow = [open_table(nw.from_native(_native(table)).to_arrow()) for table in (first, second)]
    return in_arrow[0], in_arrow[1]


def is_in_memory(table: Any) -> bool:
    """Tell whether the rows of a table are in the memory of this process, without an engine."""
    return isinstance(table, Mapping) or isinstance(nw.from_native(table), nw.DataFrame)


def with_one_key(first: Frame, second: Frame, name: str) -> tuple[Frame, Frame]:
    """Return two tables with `item` columns of one type, so that every engine joins them alike."""
    kinds = [frame.collect_schema()["item"] for frame in (first, second)]
    if kinds[0] == kinds[1]:
        return first, second
    if not all(kind.is_numeric() for kind in kinds):
        raise InputError(
            "item",
            "must name a column of the same type in both tables",
            value=f"{kinds[0]} and {kinds[1]}",
            where=f"for {name!r}",
        )
    common = nw.Int64() if all(kind.is_integer() for kind in kinds) else nw.Float64()
    key = nw.col("item").cast(common)
    return first.with_columns(key), second.with_columns(key)


def pick(frame: Frame, columns: Mapping[str, str], name: str = "table") -> Frame:
    """Select columns under new names, {new: old}; NaN becomes null, a category its value."""
    schema = frame.collect_schema()
    absent = [old for old in columns.values() if old not in schema]
    if absent:
        there = ", ".join(map(repr, schema))
        rule = f"must have the column {absent[0]!r}, which is not among its columns: {there}"
        raise InputError(name, rule)
    for old in columns.values():
        if _is_nested(frame, old, schema[old]):
            rule = "must hold plain values, such as text or numbers"
            kind = "lists or the like" if isinstance(schema[old], nw.Unknown) else schema[old]
            raise InputError(name, rule, value=str(kind), column=old)
    categories = [
        old for old in columns.values() if isinstance(schema[old], (nw.Categorical, nw.Enum))
    ]
    if categories:
        frame = _decode_categories(frame, categories)
        schema = frame.collect_schema()
    return frame.select(*(_with_nulls(old, schema[old]).alias(new) for new, old in columns.items()))


def collect(frame: Frame) -> nw.DataFrame[Any]:
    """Bring a result into memory."""
    try:
        return frame.collect()
    except ModuleNotFoundError as error:
        engine = frame.implementation.name.lower()
        raise ImportError(
            f"Results from {engine} need pyarrow. Install it with: pip install pyarrow"
        ) from error


def collect_rows(frame: Frame) -> list[dict[str, Any]]:
    """Bring a few rows into memory as Python values."""
    return [
        {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in row.items()
        }
        for row in collect(frame).rows(named=True)
    ]


def count_rows(frame: Frame) -> int:
    """Count the rows inside the engine."""
    return int(collect(frame.select(nw.len().alias("n_rows")))["n_rows"][0])


def column_values(column: nw.Series[Any]) -> NDArray[Any]:
    """Return a column without nulls as an array that is the same for every engine.

    Integers become int64, and so do floats that are all whole, since pandas keeps integers with
    gaps as floats; booleans stay, and everything else becomes an array of Python objects.
    """
    numeric = (
        isinstance(column.dtype, (nw.Boolean, nw.Float64, nw.Float32)) or column.dtype.is_integer()
    )
    values = column.to_numpy() if numeric else np.empty(0, dtype=object)
    if values.dtype.kind == "f":
        exact = (np.abs(values) < 2**53).all()
        whole = bool((values == np.floor(values)).all() and exact)
        return values.astype(np.int64 if whole else np.float64, copy=False)
    if values.dtype.kind in "iu" and values.max(initial=0) < 2**63:
        return values.astype(np.int64, copy=False)
    return values if values.dtype.kind == "b" else _plain(_objects(column.to_list()))


def distinct(values: NDArray[Any]) -> tuple[NDArray[Any], Index]:
    """Return the distinct values in sorted order and the place of each value among them."""
    if values.dtype == object:
        ordered = sort_values(list(dict.fromkeys(values)))
        place = {value: i for i, value in enumerate(ordered)}
        return _objects(ordered), np.fromiter(
            map(place.__getitem__, values), dtype=np.intp, count=len(values)
        )
    low, high = (
        (int(values.min()), int(values.max()))
        if values.dtype == np.int64 and len(values)
        else (0, 2**63)
    )
    if high - low < _SPARSEST * len(values):
        # A table of what occurs, several times faster than sorting.
        present = np.zeros(high - low + 1, dtype=bool)
        steps = values - low
        present[steps] = True
        return np.flatnonzero(present) + low, (np.cumsum(present) - 1)[steps]
    return np.unique(values, return_inverse=True)


def number_values(column: nw.Series[Any]) -> tuple[NDArray[Any], Index]:
    """Return the distinct values of a column without nulls, sorted, and the place of each row's."""
    if isinstance(column.dtype, nw.String) and len(column):
        with suppress(ModuleNotFoundError):  # a dictionary in Python does without pyarrow
            return _number_text(column)
    return distinct(column_values(column))


def sort_values(values: Sequence[Any]) -> list[Any]:
    """Sort Python values; those that cannot be compared sort by the name of their type first."""
    array = _objects(values)
    ordered: list[Any] = array[_sort_order(array)].tolist()
    return ordered


def total(
    terms: Iterable[nw.Expr], combine: Callable[[nw.Expr, nw.Expr], nw.Expr] = nw.Expr.__add__
) -> nw.Expr:
    """Combine expressions as a balanced tree, since engines limit how deep one may nest."""
    level = list(terms)
    while len(level) > 1:
        neighbours = zip(level[::2], level[1::2], strict=False)
        pairs = [combine(a, b) for a, b in neighbours]
        level = [*pairs, *level[len(pairs) * 2 :]]
    return level[0]


def examples(frame: Frame, *columns: str) -> tuple[int, list[tuple[Any, ...]]]:
    """Return how many distinct rows there are and the first three in sorted order."""
    groups = frame.group_by(*columns).agg(nw.len().alias("n_rows")).select(*columns)
    schema = groups.collect_schema()
    if any(isinstance(schema[column], nw.Object) for column in columns):
        # In memory, perhaps of mixed types.
        held = sort_values([tuple(row.values()) for row in collect_rows(groups)])
        return len(held), held[:3]
    rows = [tuple(row.values()) for row in collect_rows(groups.sort(*columns).head(4))]
    return (len(rows) if len(rows) < 4 else count_rows(groups)), rows[:3]


def quote(values: Sequence[Any], count: int | None = None) -> str:
    """Quote a few values for an error message, with dots when there are more."""
    return enumerate_few(
        [repr(value) for value in values[:4]], len(values) if count is None else count
    )


def enumerate_few(texts: Sequence[str], count: int) -> str:
    """Join three texts at most, with dots when there are more."""
    return ", ".join([*texts[:3], *["..."] * (count > 3)])


def _native(table: Any) -> Any:
    """Return a table that narwhals knows: columns in a dictionary go to the first library here."""
    if not isinstance(table, Mapping):
        return table
    for library in ("pyarrow", "pandas", "polars"):
        if find_spec(library):
            return to_frame(table, library)
    raise ImportError("Tables need pyarrow, pandas or polars. Install one: pip install pyarrow")


def _is_nested(frame: Frame, column: str, dtype: Any) -> bool:
    """Tell whether a column holds lists, structs or the like; most types say so themselves."""
    if not isinstance(dtype, (nw.Unknown, nw.Object)):
        return bool(dtype.is_nested())
    values = frame.select(column).drop_nulls()
    if isinstance(dtype, nw.Unknown):  # of one type, which narwhals has no name for
        values = values.head(1)
    return not all(isinstance(value, Hashable) for value in collect(values)[column].to_list())


def _check_connection(frames: Sequence[Frame], names: tuple[str, str]) -> None:
    """Refuse DuckDB relations that cannot be joined; nothing is computed."""
    if frames[0].implementation.is_duckdb():
        import duckdb

        try:
            frames[0].to_native().cross(frames[1].to_native())
        except duckdb.InvalidInputException as error:
            rule = "must come from one DuckDB connection"
            raise InputError(" and ".join(names), rule, remedy=str(error)) from error


def _with_nulls(column: str, dtype: Any) -> nw.Expr:
    value = nw.col(column)
    return nw.when(~value.is_nan()).then(value) if dtype.is_float() else value


def _decode_categories(frame: Frame, columns: Sequence[str]) -> Frame:
    """Turn categories into plain values; only pandas and Arrow know some that are not text."""
    native: Any = frame.to_native()
    if frame.implementation.is_pandas_like():
        plain = {name: native[name].astype(_plain_type(native[name])) for name in columns}
        return open_table(native.assign(**plain))
    if frame.implementation.is_pyarrow():
        for name in columns:
            place = native.column_names.index(name)
            column = native[name]
            native = native.set_column(place, name, column.cast(column.type.value_type))
        return open_table(native)
    return frame.with_columns(*(nw.col(name).cast(nw.String) for name in columns))


def _plain_type(column: Any) -> Any:
    """Return the type of a pandas column's categories; numbers become objects for the gaps."""
    kind = column.cat.categories.dtype
    return object if getattr(kind, "kind", "O") in "iub" else kind


def _sort_order(values: NDArray[Any]) -> Index:
    try:
        return np.argsort(values, kind="stable")
    except TypeError:
        parts = [value if isinstance(value, tuple) else (value,) for value in values]
        keys = [[(type(part).__name__, repr(part)) for part in value] for value in parts]
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _number_text(column: nw.Series[Any]) -> tuple[NDArray[Any], Index]:
    """Find the distinct texts with Arrow, several times faster than with a dictionary in Python."""
    import pyarrow as pa
    from pyarrow.compute import array_sort_indices

    held = column.to_native() if column.implementation.is_pyarrow() else column.to_arrow()
    # Chunks of over 2 GB in all can only be put together as large strings.
    text = held.cast(pa.large_string())
    whole = text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text
    encoded = whole.dictionary_encode()
    # By UTF-8, which is the order of Python's characters.
    order = array_sort_indices(encoded.dictionary).to_numpy()
    texts = encoded.dictionary.to_numpy(zero_copy_only=False)
    return texts[order], np.argsort(order)[encoded.indices.to_numpy()]


def _plain(objects: NDArray[Any]) -> NDArray[Any]:
    """Return objects that are all integers of 64 bits as such, as other engines keep them."""
    whole = all(type(value) is int and abs(value) < 2**63 for value in objects)
    return objects.astype(np.int64) if whole else objects
