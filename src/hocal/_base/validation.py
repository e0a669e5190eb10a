"""Check what users pass in, and say with an InputError what does not fit.

Arrays are checked here, single values in `scalar_checks`; both are imported from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from hocal._base.errors import InputError
from hocal._base.scalar_checks import (
    COUNT_LIMIT,
    MAX_CLASSES,
    MAX_LISTED,
    MAX_NUMBERS,
    MAX_RESAMPLES,
    MAX_SNAPSHOT,
    at_most,
    check_choice,
    check_flag,
    check_fraction,
    check_integer,
    check_kind,
    check_n_classes,
    check_n_resamples,
    check_number,
    check_random_state,
    check_repeats,
    check_snapshot_size,
    refuse_large,
)
from hocal._base.typing import Array, Counts, Index, IntArray, Mask

__all__ = [
    "CACHE_BYTES",
    "MAX_CELL_NUMBER",
    "MAX_CLASSES",
    "MAX_LISTED",
    "MAX_NUMBERS",
    "MAX_RESAMPLES",
    "MAX_SNAPSHOT",
    "NON_NEGATIVE",
    "SUM_TOLERANCE",
    "SUM_TO_ONE",
    "as_array",
    "at_most",
    "check_array",
    "check_cells",
    "check_choice",
    "check_counts",
    "check_dense_counts",
    "check_finite_matrix",
    "check_flag",
    "check_fraction",
    "check_integer",
    "check_integers",
    "check_kind",
    "check_mass",
    "check_n_classes",
    "check_n_resamples",
    "check_names",
    "check_number",
    "check_random_state",
    "check_repeats",
    "check_same_length",
    "check_simplex",
    "check_snapshot_size",
    "check_weights",
    "check_whole",
    "known_length",
    "label_totals",
    "refuse_large",
]

# rows of a float32 softmax over 1,000 classes stray from 1 by up to a few 1e-6
SUM_TOLERANCE = 1e-5
MAX_CELL_NUMBER = 10_000_000  # cells that are counted: 80 MB for a number each
CACHE_BYTES = 1 << 19  # of a block of work: they stay in the cache of one core
# rules that a program may want to tell apart, to give advice of its own
PAIR = 2  # labels of an item: with fewer nothing tells disagreement from ignorance

NON_NEGATIVE = "must be non-negative numbers"
SUM_TO_ONE = "must sum to 1 over the classes"
# kinds of numpy dtypes that are numbers here: booleans, unsigned and signed integers, floats
_NUMBER_KINDS = "buif"


def check_array(
    values: ArrayLike, name: str, *, ndim: int | None = None, keep_single: bool = False
) -> Array:
    """Return `values` as a non-empty float64 array; `keep_single` leaves float32 as it is."""
    array = _as_numbers(values, name)
    if ndim is not None and array.ndim != ndim:
        rule = f"must have {ndim} dimension{'s' * (ndim > 1)}"
        raise InputError(name, rule, value=f"shape {array.shape}")
    if array.size == 0:
        raise InputError(name, "must not be empty", value=f"shape {array.shape}")
    if keep_single and array.dtype == np.float32:
        return array
    return array.astype(np.float64, copy=False)


def check_finite_matrix(values: ArrayLike, name: str = "features") -> Array:
    """Return `values` as a float64 matrix of finite numbers, one row per item."""
    array = check_array(values, name, ndim=2)
    finite = np.isfinite(array)
    if not finite.all():
        row, column = (int(i) for i in np.argwhere(~finite)[0])
        raise InputError(
            name,
            "must be finite numbers",
            value=float(array[row, column]),
            where=f"in row {row}, column {column}",
            row=row,
            remedy="Fill in or drop missing values first.",
        )
    return array


def check_simplex(
    probabilities: ArrayLike,
    name: str = "probabilities",
    *,
    ndim: int | None = None,
    n_classes: int | None = None,
    keep_single: bool = False,
) -> Array:
    """Return `probabilities` as float64 after checking that its last axis holds distributions."""
    array = check_array(probabilities, name, ndim=ndim, keep_single=keep_single)
    if array.ndim == 0 or array.shape[-1] < 2:
        raise InputError(
            name,
            "must have at least two classes on its last axis",
            value=f"shape {array.shape}",
            remedy="For a binary problem pass both columns, (1 - p, p).",
        )
    if n_classes is not None and array.shape[-1] != n_classes:
        rule = f"must have {n_classes} classes on its last axis"
        raise InputError(name, rule, value=array.shape[-1])
    rows = array.reshape(1, -1) if array.ndim == 1 else array
    height = max(CACHE_BYTES // rows[0].nbytes, 1)
    for start in range(0, len(rows), height):
        _check_distributions(rows[start : start + height], array, name)
    return array


def _check_distributions(block: NDArray[Any], array: NDArray[Any], name: str) -> None:
    """Refuse an array of label distributions for what is wrong in a block of it."""
    if not block.min() >= 0:  # also true when a NaN is present
        _refuse(name, NON_NEGATIVE, array, ~(array >= 0))
    n_classes = block.shape[-1]
    # a product with ones is faster than a sum over a short axis
    sums = block.reshape(-1, n_classes) @ np.ones(n_classes, block.dtype)
    near = np.abs(sums - 1).max() <= SUM_TOLERANCE
    if not near and _stray(block).any():  # a sum in float32 may stray by rounding
        exact = array.sum(axis=-1, dtype=np.float64)
        _refuse(name, SUM_TO_ONE, exact, _stray(array), remedy="Normalise it first.")


def _stray(array: NDArray[Any]) -> Mask:
    """Return which distributions do not sum to 1."""
    strays: Array = np.abs(array.sum(axis=-1, dtype=np.float64) - 1)
    return ~(strays <= SUM_TOLERANCE)


def check_weights(weights: ArrayLike, name: str = "weights") -> Array:
    """Return `weights` as a float64 vector of non-negative numbers."""
    array = check_array(weights, name, ndim=1)
    if not (array.min() >= 0 and array.max() < np.inf):
        wrong = ~((array >= 0) & (array < np.inf))
        _refuse(name, "must be finite and non-negative", array, wrong)
    return array


def check_mass(weights: ArrayLike, name: str, n_weights: int) -> Array:
    """Return one non-negative weight for each thing, not all of them zero."""
    array = check_weights(weights, name)
    if len(array) != n_weights:
        raise InputError(name, f"must have {n_weights} entries", value=len(array))
    if not array.sum() > 0:
        raise InputError(name, "must not all be zero")
    return array


def check_counts(
    counts: Any,
    name: str = "counts",
    *,
    n_classes: int | None = None,
    minimum_total: int = 1,
    asked: bool = True,
) -> Counts:
    """Return label counts as int64, dense or CSR as given, after checking every rule for them.

    `asked` tells whether fewer labels can be asked for than the minimum where it is above a pair.
    """
    if sparse.issparse(counts):
        matrix = _canonical(counts)
        _check_count_shape(matrix.shape, name, n_classes)
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        data = check_whole(matrix.data, name, rows=rows)
        layout = (data, matrix.indices, matrix.indptr)
        checked: Counts = sparse.csr_array(layout, shape=matrix.shape)
    else:
        array = _as_numbers(counts, name)
        _check_count_shape(array.shape, name, n_classes)
        checked = check_whole(array, name)
    _check_totals(label_totals(checked), name, minimum_total, asked and minimum_total > PAIR)
    return checked


def _canonical(counts: Any) -> sparse.csr_array:
    """Return a CSR matrix without duplicates or stored zeros; equal rows then look equal."""
    if counts.dtype.kind in "bui" and counts.dtype.itemsize < 8:
        counts = counts.astype(np.int64)  # sums of duplicates would leave 8 bits, or be True
    matrix = sparse.csr_array(counts)  # shares the buffers of a CSR input
    if not matrix.has_canonical_format or (matrix.data == 0).any():
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    return matrix


def _check_count_shape(shape: tuple[int, ...], name: str, n_classes: int | None) -> None:
    """Refuse what is no matrix of items by classes."""
    if len(shape) != 2 or shape[1] < 2:
        raise InputError(
            name,
            "must have shape (n_items, n_classes) with at least two classes",
            value=f"{shape}",
            remedy="Count a table of judgements with hocal.count_labels.",
        )
    if shape[0] == 0:
        raise InputError(name, "must hold at least one item", value=f"shape {shape}")
    if n_classes is not None and shape[1] != n_classes:
        raise InputError(name, f"must have {n_classes} classes (columns)", value=shape[1])


def check_dense_counts(
    counts: Any, name: str = "counts", *, n_classes: int | None = None, minimum_total: int = 1
) -> IntArray:
    """Return label counts as dense int64, for work that needs every class of an item at once."""
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
        rule = f"must hold one number for each of {n_items} items"
        raise InputError(name, rule, value=f"shape {array.shape}")
    whole = check_whole(array, name)
    if n_cells is None and whole.size and whole.max() >= MAX_CELL_NUMBER:
        rule = f"must be below {MAX_CELL_NUMBER:,}"
        _refuse(name, rule, whole, whole >= MAX_CELL_NUMBER)
    if n_cells is not None:
        limit = check_integer(n_cells, "n_cells", minimum=1)
        at_most(limit, "n_cells", MAX_CELL_NUMBER)
        if whole.size and whole.max() >= limit:
            _refuse(name, f"must be below {limit}", whole, whole >= limit)
    return whole.astype(np.intp, copy=False)


def check_names(names: Any, name: str, n_names: int) -> list[Any]:
    """Return names after checking that there is one for each thing, before any of them is read."""
    listed = isinstance(names, Sequence) and not isinstance(names, (str, bytes))
    flat = listed or len(getattr(names, "shape", ())) == 1  # an array, or a column of a table
    if not flat or len(names) != n_names:
        found = f"{len(names)}" if flat else type(names).__name__
        raise InputError(name, f"must be a list of {n_names} names", value=found)
    return list(names)


def known_length(values: Any) -> int | None:
    """Return how many values there are, None of what does not know."""
    try:
        return len(values)
    except Exception:  # an object of somebody else may raise anything
        return None


def check_integers(
    values: ArrayLike, name: str, *, minimum: int, maximum: int | None = None, why: str = ""
) -> list[int]:
    """Return one integer, or several, as a list; see `check_integer`."""
    found = _as_numbers(values, name).reshape(-1).tolist()
    return [check_integer(x, name, minimum=minimum, maximum=maximum, why=why) for x in found]


def check_same_length(first: Any, second: Any, names: tuple[str, str]) -> None:
    """Refuse two arguments that speak about different numbers of items."""
    lengths = [len(x) if not sparse.issparse(x) else x.shape[0] for x in (first, second)]
    if lengths[0] != lengths[1]:
        found = f"{lengths[0]} and {lengths[1]} rows"
        raise InputError(" and ".join(names), "must describe the same items", value=found)


def check_whole(values: ArrayLike, name: str, *, rows: Index | None = None) -> IntArray:
    """Return non-negative integers as int64; `rows` are those of the entries of a sparse matrix."""
    array = _as_numbers(values, name)
    if array.dtype.kind == "f":
        fractional = ~(array == np.floor(array)) | np.isinf(array)
        if fractional.any():
            _refuse(name, "must be whole numbers", array, fractional, rows=rows)
    if array.size and array.min() < 0:
        _refuse(name, "must be non-negative", array, array < 0, rows=rows)
    if array.size and array.max() >= COUNT_LIMIT:
        _refuse(name, "must be below 2**62", array, array >= COUNT_LIMIT, rows=rows)
    return array.astype(np.int64, copy=False)


def as_array(values: Any, name: str) -> NDArray[Any]:
    """Return values of any kind as an array, refusing ragged lists and what is no array."""
    try:
        return np.asarray(values)
    except ValueError as error:
        found = "rows of different lengths or shapes"
        raise InputError(
            name, "must be an array", value=found, remedy="Pad or fix them."
        ) from error
    except Exception as error:  # an object of somebody else may raise anything
        found = f"{type(values).__name__}: {error}"
        raise InputError(name, "must be an array", value=found) from error


def _as_numbers(values: Any, name: str) -> NDArray[Any]:
    """Return an array of numbers, refusing ragged lists, objects, strings and dates."""
    if np.ma.is_masked(values):
        remedy = "Fill in or drop what is masked."
        raise InputError(name, "must have no masked entries", remedy=remedy)
    array = as_array(values, name)
    if array.dtype.kind not in _NUMBER_KINDS:
        raise InputError(
            name,
            "must be an array of numbers",
            value=f"dtype {array.dtype}",
            remedy="Convert it first, or check that all rows have the same length.",
        )
    return array


def _check_totals(totals: IntArray, name: str, minimum: int, fewer_will_do: bool) -> None:
    """Refuse items with too few labels."""
    if totals.min() < minimum:
        row = int(np.argmax(totals < minimum))
        raise InputError(
            name,
            f"must have at least {minimum} label{'s' * (minimum > 1)} in each row",
            value=int(totals[row]),
            row=row,
            remedy=f"Drop such items{', or ask for fewer labels' * fewer_will_do}.",
        )


def _refuse(
    name: str,
    rule: str,
    values: NDArray[Any],
    wrong: Mask,
    *,
    remedy: str = "",
    rows: Index | None = None,
) -> NoReturn:
    """Raise the InputError for the first offending entry of `values`."""
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    value = _rounded(values[place])
    if not place:
        raise InputError(name, rule, value=value, remedy=remedy)
    row = place[0] if rows is None else int(rows[place[0]])
    where = f"in row {row}" if len(place) <= 2 else f"at index {place}"
    raise InputError(name, rule, value=value, where=where, row=row, remedy=remedy)


def _rounded(value: Any) -> float | int:
    """Return a number as people write it: six digits, and no point behind a whole number."""
    rounded = float(f"{value:.6g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e6 else rounded
