"""Check what users pass in; every ValueError a user can meet is worded here."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from hocal._base.typing import Array, Counts, Index, IntArray, Mask

# rows of a float32 softmax over 1,000 classes stray from 1 by up to a few 1e-6
SUM_TOLERANCE = 1e-5
CACHE_BYTES = 1 << 19  # of a block of work: they stay in the cache of one core


def check_array(
    values: ArrayLike, name: str, *, ndim: int | None = None, keep_single: bool = False
) -> Array:
    """Return `values` as a non-empty float64 array of numbers; `keep_single` leaves float32 as it is."""
    array = _as_numbers(values, name)
    if ndim is not None and array.ndim != ndim:
        raise ValueError(
            f"`{name}` must have {ndim} dimension{'s' * (ndim > 1)}, got shape {array.shape}."
        )
    if array.size == 0:
        raise ValueError(f"`{name}` must not be empty, got shape {array.shape}.")
    return (
        array if keep_single and array.dtype == np.float32 else array.astype(np.float64, copy=False)
    )


def check_simplex(
    probabilities: ArrayLike,
    name: str = "probabilities",
    *,
    ndim: int | None = None,
    n_classes: int | None = None,
    keep_single: bool = False,
) -> Array:
    """Return `probabilities` as float64 after checking that its last axis holds label distributions."""
    array = check_array(probabilities, name, ndim=ndim, keep_single=keep_single)
    if array.ndim == 0 or array.shape[-1] < 2:
        raise ValueError(
            f"`{name}` must have at least two classes on its last axis, got shape {array.shape}. "
            "For a binary problem pass both columns, (1 - p, p)."
        )
    if n_classes is not None and array.shape[-1] != n_classes:
        raise ValueError(
            f"`{name}` must have {n_classes} classes on its last axis, got {array.shape[-1]}."
        )
    rows = array.reshape(1, -1) if array.ndim == 1 else array
    height = max(CACHE_BYTES // rows[0].nbytes, 1)
    for start in range(0, len(rows), height):
        _check_distributions(rows[start : start + height], array, name)
    return array


def _check_distributions(block: NDArray[Any], array: NDArray[Any], name: str) -> None:
    """Refuse an array of label distributions for what is wrong in a block of it."""
    if not block.min() >= 0:  # also true when a NaN is present
        _refuse(array, ~(array >= 0), f"`{name}` must be non-negative numbers")
    n_classes = block.shape[-1]
    sums = block.reshape(-1, n_classes) @ np.ones(
        n_classes, block.dtype
    )  # faster than a sum over a short axis
    if (
        not np.abs(sums - 1).max() <= SUM_TOLERANCE and _stray(block).any()
    ):  # a sum in float32 may stray by rounding
        exact = array.sum(axis=-1, dtype=np.float64)
        _refuse(
            exact, _stray(array), f"`{name}` must sum to 1 over the classes", "Normalise it first."
        )


def _stray(array: NDArray[Any]) -> Mask:
    strays: Array = np.abs(array.sum(axis=-1, dtype=np.float64) - 1)
    return ~(strays <= SUM_TOLERANCE)


def check_weights(weights: ArrayLike, name: str = "weights") -> Array:
    """Return `weights` as a float64 vector of non-negative numbers."""
    array = check_array(weights, name, ndim=1)
    if not (array.min() >= 0 and array.max() < np.inf):
        _refuse(
            array, ~((array >= 0) & (array < np.inf)), f"`{name}` must be finite and non-negative"
        )
    return array


def check_counts(
    counts: Any, name: str = "counts", *, n_classes: int | None = None, minimum_total: int = 1
) -> Counts:
    """Return label counts as int64, dense or CSR as given, after checking every rule of a count matrix."""
    if sparse.issparse(counts):
        matrix = sparse.csr_array(counts)  # shares the buffers of a CSR input
        if not matrix.has_canonical_format or (matrix.data == 0).any():
            matrix = matrix.copy()
            matrix.sum_duplicates()
            matrix.eliminate_zeros()  # stored zeros would make equal rows look different
        values: NDArray[Any] = matrix.data
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        shape: tuple[int, ...] = matrix.shape
    else:
        values = _as_numbers(counts, name)
        rows = None
        shape = values.shape
    if len(shape) != 2 or shape[1] < 2:
        raise ValueError(
            f"`{name}` must have shape (n_items, n_classes) with at least two classes, got {shape}. "
            "Count a table of judgements with hocal.count_labels."
        )
    if shape[0] == 0:
        raise ValueError(f"`{name}` must hold at least one item, got shape {shape}.")
    if n_classes is not None and shape[1] != n_classes:
        raise ValueError(f"`{name}` must have {n_classes} classes (columns), got {shape[1]}.")
    whole = check_whole(values, name, rows=rows)
    result = (
        sparse.csr_array((whole, matrix.indices, matrix.indptr), shape=shape)
        if sparse.issparse(counts)
        else whole
    )
    _check_totals(label_totals(result), name, minimum_total)
    return result


def check_dense_counts(
    counts: Any, name: str = "counts", *, n_classes: int | None = None, minimum_total: int = 1
) -> IntArray:
    """Return label counts as a dense int64 array, for work that needs every class of an item at once."""
    checked = check_counts(counts, name, n_classes=n_classes, minimum_total=minimum_total)
    dense: IntArray = checked if isinstance(checked, np.ndarray) else checked.toarray()
    return dense


def label_totals(counts: Counts) -> IntArray:
    """Return the number of labels of each item."""
    return np.asarray(counts.sum(axis=1), dtype=np.int64).reshape(-1)


def check_cells(
    cells: ArrayLike, n_items: int, *, n_cells: int | None = None, name: str = "cells"
) -> Index:
    """Return cell numbers as integers in [0, n_cells), one for each item."""
    array = _as_numbers(cells, name)
    if array.shape != (n_items,):
        raise ValueError(
            f"`{name}` must hold one number for each of {n_items} items, got shape {array.shape}."
        )
    whole = check_whole(array, name)
    if n_cells is not None:
        limit = check_integer(n_cells, "n_cells", minimum=1)
        if whole.size and whole.max() >= limit:
            _refuse(whole, whole >= limit, f"`{name}` must be below {limit}")
    return whole.astype(np.intp, copy=False)


def check_integer(
    value: Any, name: str, *, minimum: int, maximum: int | None = None, why: str = ""
) -> int:
    """Return `value` as an int inside [minimum, maximum]."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
    if not whole or value < minimum or (maximum is not None and value > maximum):
        rule = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
        raise ValueError(
            f"`{name}` must be an integer {rule}, got {value!r}.{' ' * bool(why)}{why}"
        )
    return int(value)


def check_fraction(value: Any, name: str) -> float:
    """Return `value` as a float strictly between 0 and 1."""
    if not (isinstance(value, (int, float, np.number)) and 0 < value < 1):
        raise ValueError(f"`{name}` must lie strictly between 0 and 1, got {value!r}.")
    return float(value)


def check_number(
    value: Any,
    name: str,
    *,
    minimum: float = -math.inf,
    maximum: float = math.inf,
    strict: bool = False,
    finite: bool = True,
) -> float:
    """Return `value` as a float in [minimum, maximum]; `strict` excludes the minimum."""
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_))
    if not number or not minimum <= value <= maximum or (strict and value == minimum):
        lower = f"greater than {minimum:g}" if strict else f"at least {minimum:g}"
        upper = "" if maximum == math.inf else f" and at most {maximum:g}"
        raise ValueError(f"`{name}` must be a number {lower}{upper}, got {value!r}.")
    if finite and math.isinf(value):
        raise ValueError(f"`{name}` must be finite, got {value!r}.")
    return float(value)


def check_choice(value: Any, name: str, options: Collection[str]) -> str:
    """Return `value` after checking that it is one of `options`."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, options))}, got {value!r}.")
    return value


def check_same_length(first: Any, second: Any, names: tuple[str, str]) -> None:
    """Refuse two arguments that speak about different numbers of items."""
    lengths = [len(x) if not sparse.issparse(x) else x.shape[0] for x in (first, second)]
    if lengths[0] != lengths[1]:
        raise ValueError(
            f"`{names[0]}` and `{names[1]}` must describe the same items, got {lengths[0]} and {lengths[1]} rows."
        )


def check_whole(values: ArrayLike, name: str, *, rows: Index | None = None) -> IntArray:
    """Return non-negative integers as int64; `rows` tells the rows of the entries of a sparse matrix."""
    array = _as_numbers(values, name)
    if array.dtype.kind == "f":
        fractional = ~(array == np.floor(array)) | np.isinf(array)
        if fractional.any():
            _refuse(array, fractional, f"`{name}` must be whole numbers", rows=rows)
    if array.size and array.min() < 0:
        _refuse(array, array < 0, f"`{name}` must be non-negative", rows=rows)
    if array.size and array.max() >= 2**62:
        _refuse(array, array >= 2**62, f"`{name}` must be below 2**62", rows=rows)
    return array.astype(np.int64, copy=False)


def _as_numbers(values: Any, name: str) -> NDArray[Any]:
    """Return an array of numbers, refusing ragged lists, objects, strings and dates."""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(
            f"`{name}` must be an array, got rows of different lengths or shapes. Pad or fix them."
        ) from error
    if array.dtype.kind not in "buif":
        raise ValueError(
            f"`{name}` must be an array of numbers, got dtype {array.dtype}. "
            "Convert it first, or check that all rows have the same length."
        )
    return array


def _check_totals(totals: IntArray, name: str, minimum: int) -> None:
    """Refuse items with too few labels."""
    if totals.min() < minimum:
        row = int(np.argmax(totals < minimum))
        raise ValueError(
            f"`{name}` must have at least {minimum} label{'s' * (minimum > 1)} in each row, "
            f"got {totals[row]} in row {row}. Drop such items, or ask for fewer labels."
        )


def _refuse(
    values: NDArray[Any],
    wrong: Mask,
    rule: str,
    remedy: str = "",
    *,
    rows: Index | None = None,
) -> None:
    """Raise the ValueError for the first offending entry of `values`."""
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    row = place if rows is None else (int(rows[place[0]]),)
    where = f" in row {row[0]}" if len(row) <= 2 and row else f" at index {row}" if row else ""
    raise ValueError(f"{rule}, got {values[place]:.6g}{where}.{' ' * bool(remedy)}{remedy}")


def check_random_state(random_state: Any) -> np.random.Generator:
    """Return a numpy Generator from None, an integer seed or a Generator."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`random_state` must be None, a non-negative integer or a numpy Generator, got {random_state!r}."
        ) from error
