"""What is known about an item before any label: columns of its prediction, members and features."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hocal._base.typing import Array, Index

__all__ = [
    "Floats",
    "Scale",
    "at_least",
    "disagreement_columns",
    "entropy_of_rows",
    "leading_classes",
    "mixture_columns",
]

#: Numbers in single or double precision: single for prediction, double for fits.
Floats: TypeAlias = NDArray[Any]

SMALLEST = 1e-7  # probability of a class: a label is never impossible
LEADING = 3  # classes by rank whose logarithms enter: beyond them predictions are mostly noise
MANY_CLASSES = 64  # from which columns by class give way to more columns by rank
LEADING_OF_MANY = 10  # classes by rank that stand in for columns by class
MEMBER_FLOOR = 1e-6  # of members' probabilities: single precision rounds smaller ones to nothing
# Differences of members that are as good as none: single precision makes up to a tenth of that from
# members that are the same, and fits in double precision would take it for a signal.
LEAST_SCATTER = 1e-5
MEAN_FLOOR = 0.01  # of the average before recalibration: smaller is as good as never
CONSTANT = 1e-9  # spread that is added: a constant column stays zero ...
ROUNDING = 1e-5  # ... and so does, relative to its mean, what single precision makes of one


class Scale(NamedTuple):
    """Mean and spread of columns."""

    centre: Array  #: (n_columns,)
    spread: Array  #: (n_columns,)

    @classmethod
    def of(cls, columns: Floats) -> Scale:
        """Measure columns."""
        centre = columns.mean(axis=0, dtype=float)
        spread = columns.std(axis=0, dtype=float)
        return cls(centre, spread + CONSTANT + ROUNDING * np.abs(centre))

    def apply(self, columns: Floats, clip: float = np.inf) -> Floats:
        """Standardise columns, and hold those that stand out at `clip` spreads."""
        dtype = columns.dtype
        result = columns - self.centre.astype(dtype)
        result /= self.spread.astype(dtype)
        return np.asarray(np.clip(result, -clip, clip))


def at_least(probabilities: Floats, smallest: float = SMALLEST) -> Floats:
    """Return probabilities none of which is below about `smallest`."""
    raised: Floats = np.maximum(probabilities, probabilities.dtype.type(smallest))
    raised /= raised.sum(axis=1, keepdims=True)
    return raised


def entropy_of_rows(probabilities: Floats) -> Floats:
    """Return Shannon entropies of the last axis, in nats."""
    tiny = np.finfo(probabilities.dtype).tiny
    logs = np.log(np.maximum(probabilities, tiny))
    entropy = -np.einsum("...j,...j->...", probabilities, logs)
    return np.asarray(np.maximum(entropy, 0))


def leading_classes(probabilities: Floats, number: int = LEADING) -> Index:
    """Return the most likely classes, most likely first, the lower class first among equals."""
    number = min(number, probabilities.shape[1])
    left = probabilities.copy()
    rows = np.arange(len(left))
    found = np.empty((len(left), number), dtype=np.intp)
    for place in range(number):
        found[:, place] = left.argmax(axis=1)
        left[rows, found[:, place]] = -1
    return found


def mixture_columns(probabilities: Floats, disagreement: Floats) -> Floats:
    """Return what weights and temperature of an item depend on.

    Parameters
    ----------
    probabilities : array of shape (n_items, n_classes)
        The recalibrated prediction.
    disagreement : array of shape (n_items,)
        That which is expected of two labels, between 0 and 1.
    """
    odds = np.log(disagreement / (1 - disagreement))
    extra = np.stack([disagreement, np.sqrt(disagreement), odds], axis=1)
    return np.concatenate([_prediction_columns(probabilities), extra], axis=1)


def disagreement_columns(members: Floats, features: Floats | None, probabilities: Floats) -> Floats:
    """Return all that the expected disagreement of an item's labels may depend on.

    Parameters
    ----------
    members : array of shape (n_items, n_members, n_classes)
        Predictions as they came.
    features : array of shape (n_items, n_features), optional
        What else is known, standardised.
    probabilities : array of shape (n_items, n_classes)
        The recalibrated prediction.
    """
    columns = [
        _prediction_columns(probabilities),
        _member_columns(members, probabilities),
        _brier_columns(members, probabilities),
    ]
    if probabilities.shape[1] <= MANY_CLASSES:
        columns += _class_columns(members, probabilities)
    else:
        columns.append(_leading_logarithms(probabilities, LEADING_OF_MANY)[:, LEADING:])
    if features is not None:
        columns.append(features.astype(probabilities.dtype, copy=False))
    return np.concatenate(columns, axis=1)


def _brier_columns(members: Floats, probabilities: Floats) -> Floats:
    """Return how often labels would differ if predictions were right, and what this comes from."""
    first, second = _leading_probabilities(probabilities, 2).T
    columns = [_brier_of_rows(probabilities), first, second, first * second]
    if members.shape[1] > 1:
        mean = members.mean(axis=1, dtype=probabilities.dtype)
        each = _brier_of_rows(members.astype(probabilities.dtype, copy=False))
        scatter = _scatter(each.std(axis=1))
        columns += [_brier_of_rows(mean), each.mean(axis=1), scatter, mean.max(axis=1)]
    return np.stack(columns, axis=1)


def _brier_of_rows(probabilities: Floats) -> Floats:
    return np.asarray(1 - np.einsum("...j,...j->...", probabilities, probabilities))


def _prediction_columns(probabilities: Floats) -> Floats:
    """Return the entropy, its root, and the logarithms of the leading classes."""
    entropy = entropy_of_rows(probabilities)
    shape = np.stack([entropy, np.sqrt(entropy)], axis=1)
    return np.concatenate([shape, _leading_logarithms(probabilities, LEADING)], axis=1)


def _leading_logarithms(probabilities: Floats, number: int) -> Floats:
    return np.asarray(np.log(_leading_probabilities(probabilities, number)))


def _leading_probabilities(probabilities: Floats, number: int) -> Floats:
    leading = leading_classes(probabilities, number)
    return np.take_along_axis(probabilities, leading, axis=1)


def _class_columns(members: Floats, probabilities: Floats) -> list[Floats]:
    """Return which class is on top and the logarithm of each; those of the members' mean too."""
    dtype = probabilities.dtype
    classes = np.arange(probabilities.shape[1])
    top = probabilities.argmax(axis=1)[:, None] == classes
    columns: list[Floats] = [top.astype(dtype), np.log(probabilities)]
    if members.shape[1] > 1:
        mean = members.mean(axis=1, dtype=dtype)
        columns += [mean, np.log(mean + dtype.type(MEAN_FLOOR))]
    return columns


def _member_columns(members: Floats, probabilities: Floats) -> Floats:
    """Return how sure the members are, what they say by rank, and how far they agree."""
    members = members.astype(probabilities.dtype, copy=False)
    entropy = entropy_of_rows(members.mean(axis=1))
    if members.shape[1] == 1:
        return np.stack([entropy, np.sqrt(entropy)], axis=1)
    leading = leading_classes(probabilities)[:, None, :]
    ranked = np.take_along_axis(members, leading, axis=2)
    logs = np.log(np.maximum(ranked, ranked.dtype.type(MEMBER_FLOOR)))
    inner = entropy_of_rows(members).mean(axis=1)
    gap = _scatter(entropy - inner)
    agree = (members.argmax(axis=2) == leading[:, :, 0]).mean(axis=1, dtype=members.dtype)
    shape = [entropy, np.sqrt(entropy), inner, np.sqrt(inner), gap, np.sqrt(gap), agree]
    scatter = _scatter(logs.std(axis=1))
    return np.concatenate([logs.mean(axis=1), scatter, np.stack(shape, axis=1)], axis=1)


def _scatter(values: Floats) -> Floats:
    """Return how far members differ, nothing less than what could be rounding."""
    return np.asarray(np.maximum(values, values.dtype.type(LEAST_SCATTER)))
