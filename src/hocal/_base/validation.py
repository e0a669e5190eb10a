"""Check what users pass in, and say with an InputError what does not fit."""

from __future__ import annotations

import math
import reprlib
import sys
from collections.abc import Collection, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from hocal._base.errors import InputError
from hocal._base.typing import Array, Counts, Index, IntArray, Mask

# rows of a float32 softmax over 1,000 classes stray from 1 by up to a few 1e-6
SUM_TOLERANCE = 1e-5
MAX_CLASSES = 1_000_000  # of a formula: what lists them takes 8 MB
MAX_SNAPSHOT = 1_000_000_000  # labels per item of a formula: floats still tell such from the next
MAX_LISTED = 1_000_000  # labels per item where numbers of votes are listed: 8 MB
MAX_NUMBERS = 500_000_000  # of an array that is made from sizes alone: 4 GB
MAX_RESAMPLES = 10_000  # simulations of a p-value: four digits
MAX_CELL_NUMBER = 10_000_000  # cells that are counted: 80 MB for a number each
CACHE_BYTES = 1 << 19  # of a block of work: they stay in the cache of one core
# rules that a program may want to tell apart, to give advice of its own
NON_NEGATIVE = "must be non-negative numbers"
SUM_TO_ONE = "must sum to 1 over the classes"
# counts below this can be added in pairs without leaving int64
_COUNT_LIMIT = 2**62
_SMALLEST_FRACTION = 1e-300  # its inverse must be finite
# kinds of numpy dtypes that are numbers here: booleans, unsigned and signed integers, floats
_NUMBER_KINDS = "buif"
_LONG_TEXT = 200  # characters: what is longer is shown by its ends


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
    counts: Any, name: str = "counts", *, n_classes: int | None = None, minimum_total: int = 1
) -> Counts:
    """Return label counts as int64, dense or CSR as given, after checking every rule for them."""
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
    _check_totals(label_totals(checked), name, minimum_total)
    return checked


def _canonical(counts: Any) -> sparse.csr_array:
    """Return a CSR matrix without duplicates or stored zeros; equal rows then look equal."""
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
        _at_most(limit, "n_cells", MAX_CELL_NUMBER)
        if whole.size and whole.max() >= limit:
            _refuse(name, f"must be below {limit}", whole, whole >= limit)
    return whole.astype(np.intp, copy=False)


def check_integer(
    value: Any, name: str, *, minimum: int, maximum: int | None = None, why: str = ""
) -> int:
    """Return `value` as an int inside [minimum, maximum]; `why` gives the reason for the range."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
    if not whole or value < minimum or (maximum is not None and value > maximum):
        bounds = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
        raise InputError(name, f"must be an integer {bounds}", value=_named(value), remedy=why)
    if value >= _COUNT_LIMIT:
        raise InputError(name, "must be below 2**62", value=_named(value), remedy=why)
    return int(value)


def check_n_classes(value: Any) -> int:
    """Return a number of classes of which an array can be made."""
    return _at_most(check_integer(value, "n_classes", minimum=2), "n_classes", MAX_CLASSES)


def check_snapshot_size(
    value: Any, name: str = "k", *, minimum: int = 1, listed: bool = False
) -> int:
    """Return a number of labels per item; `listed` where every number of votes is."""
    maximum = MAX_LISTED if listed else MAX_SNAPSHOT
    return _at_most(check_integer(value, name, minimum=minimum), name, maximum)


def check_n_resamples(value: Any) -> int:
    """Return a number of simulations that a p-value can rest on."""
    return _at_most(check_integer(value, "n_resamples", minimum=1), "n_resamples", MAX_RESAMPLES)


def _at_most(value: int, name: str, maximum: int) -> int:
    """Return a size that memory has room for."""
    if value > maximum:
        raise InputError(name, f"must be at most {maximum:,}", value=f"{value:,}")
    return value


def refuse_large(name: str, n_numbers: float, what: str, remedy: str) -> None:
    """Refuse what would need more memory than there is, before any of it is taken."""
    if n_numbers > MAX_NUMBERS:
        raise InputError(
            name,
            f"must need at most {MAX_NUMBERS * 8 / 1e9:g} GB",
            value=f"{n_numbers * 8 / 1e9:.3g} GB for {what}",
            remedy=remedy,
        )


def check_flag(value: Any, name: str) -> bool:
    """Return `value` after checking that it is true or false."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(name, "must be True or False", value=_named(value))
    return bool(value)


def check_kind(value: Any, name: str, *kinds: type, remedy: str = "") -> Any:
    """Return `value` after checking that it is an object of one of the kinds."""
    if isinstance(value, kinds):
        return value
    wanted = " or ".join(kind.__name__ for kind in kinds)
    raise InputError(name, f"must be {wanted}", value=type(value).__name__, remedy=remedy)


def check_fraction(value: Any, name: str) -> float:
    """Return `value` as a float strictly between 0 and 1."""
    if not (isinstance(value, (int, float, np.integer, np.floating)) and 0 < value < 1):
        raise InputError(name, "must lie strictly between 0 and 1", value=_named(value))
    if value < _SMALLEST_FRACTION:
        raise InputError(name, f"must be at least {_SMALLEST_FRACTION}", value=_named(value))
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
    real = (int, float, np.integer, np.floating)
    number = isinstance(value, real) and not isinstance(value, (bool, np.bool_))
    if number and isinstance(value, int) and abs(value) > sys.float_info.max:
        raise InputError(name, "must fit a float", value=_named(value))
    if not number or not minimum <= value <= maximum or (strict and value == minimum):
        lower = f"greater than {minimum:g}" if strict else f"at least {minimum:g}"
        upper = "" if maximum == math.inf else f" and at most {maximum:g}"
        raise InputError(name, f"must be a number {lower}{upper}", value=_named(value))
    if finite and math.isinf(value):
        raise InputError(name, "must be finite", value=value)
    return float(value)


def check_choice(value: Any, name: str, options: Collection[str]) -> str:
    """Return `value` after checking that it is one of `options`."""
    if not isinstance(value, str) or value not in options:
        listed = ", ".join(map(repr, options))
        raise InputError(name, f"must be one of {listed}", value=_named(value))
    return value


def check_names(names: Any, name: str, n_names: int) -> list[Any]:
    """Return names after checking that there is one for each thing."""
    sized = isinstance(names, (Sequence, np.ndarray)) and not isinstance(names, (str, bytes))
    flat = sized and (not isinstance(names, np.ndarray) or names.ndim == 1)
    if not flat or len(names) != n_names:
        found = f"{len(names)}" if flat else type(names).__name__
        raise InputError(name, f"must be a list of {n_names} names", value=found)
    return list(names)


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
    if array.size and array.max() >= _COUNT_LIMIT:
        _refuse(name, "must be below 2**62", array, array >= _COUNT_LIMIT, rows=rows)
    return array.astype(np.int64, copy=False)


def check_random_state(random_state: Any) -> np.random.Generator:
    """Return a numpy Generator from None, an integer seed or a Generator."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        rule = "must be None, a non-negative integer or a numpy Generator"
        raise InputError("random_state", rule, value=_named(random_state)) from error


def _as_numbers(values: Any, name: str) -> NDArray[Any]:
    """Return an array of numbers, refusing ragged lists, objects, strings and dates."""
    if np.ma.is_masked(values):
        remedy = "Fill in or drop what is masked."
        raise InputError(name, "must have no masked entries", remedy=remedy)
    try:
        array = np.asarray(values)
    except ValueError as error:
        found = "rows of different lengths or shapes"
        raise InputError(
            name, "must be an array", value=found, remedy="Pad or fix them."
        ) from error
    except Exception as error:  # an object of somebody else may raise anything
        found = f"{type(values).__name__}: {error}"
        raise InputError(name, "must be an array", value=found) from error
    if array.dtype.kind not in _NUMBER_KINDS:
        raise InputError(
            name,
            "must be an array of numbers",
            value=f"dtype {array.dtype}",
            remedy="Convert it first, or check that all rows have the same length.",
        )
    return array


def _check_totals(totals: IntArray, name: str, minimum: int) -> None:
    """Refuse items with too few labels."""
    if totals.min() < minimum:
        row = int(np.argmax(totals < minimum))
        raise InputError(
            name,
            f"must have at least {minimum} label{'s' * (minimum > 1)} in each row",
            value=int(totals[row]),
            row=row,
            remedy="Drop such items, or ask for fewer labels.",
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


def _named(value: Any) -> Any:
    """Return a value for an InputError, which shows text without quotes and leaves out None."""
    if isinstance(value, int) and not -_COUNT_LIMIT < value < 10 * _COUNT_LIMIT:
        return f"an integer of {value.bit_length()} bits"
    if value is None or isinstance(value, str):
        return reprlib.repr(value) if len(str(value)) > _LONG_TEXT else repr(value)
    return value
