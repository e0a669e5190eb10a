"""What is checked at the door of `hocal.Mixtures`."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hocal._base.errors import InputError
from hocal._base.typing import Array, IntArray
from hocal._base.validation import SUM_TOLERANCE
from hocal.uncertainty.segments import segment_sum

__all__ = [
    "apply_to_points",
    "check_concentrations",
    "check_fit",
    "own_copy",
    "refuse_impossible",
]


def check_fit(points: Array, weights: Array, offsets: IntArray) -> None:
    """Refuse arrays that do not describe mixtures together."""
    n_atoms = len(points)
    if weights.shape != (n_atoms,):
        rule = f"must hold one weight for each of {n_atoms} points"
        raise InputError("weights", rule, value=f"shape {weights.shape}")
    is_list = offsets.ndim == 1 and offsets.size > 1
    ends_fit = is_list and offsets[0] == 0 and offsets[-1] == n_atoms
    if not ends_fit or (np.diff(offsets) < 0).any():
        rule = f"must rise from 0 to the number of points, {n_atoms}"
        raise InputError("offsets", rule, value=reprlib.repr(offsets.tolist()))
    sums = segment_sum(weights, offsets)
    strays = np.abs(sums - 1)
    if (strays > SUM_TOLERANCE).any():
        worst = int(np.nanargmax(strays))
        raise InputError(
            "weights",
            "must sum to 1 within each mixture",
            value=f"{sums[worst]:.6g}",
            where=f"in mixture {worst}",
        )


def check_concentrations(alpha: Array) -> None:
    """Refuse what is not the parameter of Dirichlet distributions."""
    wrong = ~((alpha > 0) & (alpha < np.inf))
    if alpha.shape[1] < 2 or wrong.any():
        row, column = np.argwhere(wrong)[0] if wrong.any() else (0, 0)
        raise InputError(
            "alpha",
            "must be finite and positive with at least two classes",
            value=f"{alpha[row, column]:.6g}",
            where=f"in row {row} of shape {alpha.shape}",
        )


def refuse_impossible(item: int, counts: IntArray) -> NoReturn:
    """Raise the error for an item whose labels its mixture excludes."""
    classes = np.flatnonzero(counts).tolist()
    noun = "classes" if len(classes) > 1 else "class"
    named = f"{noun} {reprlib.repr(classes)[1:-1]}"
    raise InputError(
        "counts",
        "must be possible under the mixture of each item",
        value=f"labels of {named}",
        where=f"in row {item}, which every atom of its mixture excludes",
        remedy="Give the atoms some probability of every class, or pass a row of zeros to leave "
        "the labels of this item out.",
    )


def apply_to_points(function: Callable[[Array], ArrayLike], points: Array) -> Array:
    """Evaluate a user's function of label distributions and check what it returns."""
    result = np.asarray(function(points), dtype=np.float64)
    if result.shape[:1] != points.shape[:1]:
        raise InputError(
            "function",
            f"must return one result for each of the {len(points)} rows it is given",
            value=f"shape {result.shape}",
            remedy="Work over the last axis only.",
        )
    return result


def own_copy(array: NDArray[Any], source: Any) -> NDArray[Any]:
    """Return a copy where the array is still the caller's own and could be changed by them."""
    # a base may be a tensor or a table that was passed
    shared = array is source or array.base is not None
    return array.copy() if shared and array.flags.writeable else array
