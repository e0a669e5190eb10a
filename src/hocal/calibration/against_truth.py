"""Measure uncertainties and sets where the truth, or many labels per item, are known."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.errors import InputError
from hocal._base.typing import Array, IntArray
from hocal._base.validation import (
    check_cells,
    check_choice,
    check_dense_counts,
    check_kind,
    check_same_length,
    check_simplex,
)
from hocal.uncertainty.credal_sets import CredalSets
from hocal.uncertainty.decomposition import Decomposition
from hocal.uncertainty.label_sets import LabelSets
from hocal.uncertainty.sets import PredictionSets

__all__ = ["aleatoric_error", "aleatoric_gaps", "average_gaps", "coverage"]

Average = Literal["items", "cells"] | None
AVERAGES = ("items", "cells")


@overload
def aleatoric_error(
    parts: Decomposition,
    counts: Any = ...,
    *,
    cells: ArrayLike,
    average: Literal["items", "cells"] = ...,
    label_distributions: ArrayLike | None = ...,
) -> float: ...


@overload
def aleatoric_error(
    parts: Decomposition,
    counts: Any = ...,
    *,
    cells: ArrayLike,
    average: None,
    label_distributions: ArrayLike | None = ...,
) -> Array: ...


def aleatoric_error(
    parts: Decomposition,
    counts: Any = None,
    *,
    cells: ArrayLike,
    average: Average = "items",
    label_distributions: ArrayLike | None = None,
) -> float | Array:
    """Return the error of predicted aleatoric uncertainty, |AU(cell) - mean AU* of its items|.

    Parameters
    ----------
    parts : Decomposition
        Predicted uncertainty of the test items.
    counts : array or sparse matrix of shape (n_items, n_classes)
        Labels of the test items, as many as there are: the truth is the entropy of their
        histograms, which falls short of the true entropy by about (n_classes - 1) / (2 n) nats for
        n labels.
    cells : array of shape (n_items,)
        Cell of each item.
    average : {"items", "cells"} or None
        Weigh every item the same, or every cell, or return the error of each cell (NaN when empty).
    label_distributions : array of shape (n_items, n_classes), optional
        The true label distributions, instead of `counts`.

    Returns
    -------
    float or ndarray of shape (n_cells,)
        Error in the units of the decomposition.

    Examples
    --------
    >>> import hocal
    >>> parts = hocal.decompose(hocal.Mixtures.from_points([[0.5, 0.5]] * 2), base=2)
    >>> hocal.aleatoric_error(parts, [[5, 5], [10, 0]], cells=[0, 0])
    0.5
    """
    gaps = aleatoric_gaps(parts, counts, label_distributions)
    where = check_cells(cells, len(parts))
    if average is not None:
        check_choice(average, "average", AVERAGES)
    sums: Array = np.bincount(where, weights=gaps).astype(np.float64)
    return average_gaps(sums, np.bincount(where), average)


def aleatoric_gaps(
    parts: Decomposition, counts: Any, label_distributions: ArrayLike | None = None
) -> Array:
    """Return how far each item's aleatoric uncertainty is above that of its labels, (n_items,)."""
    check_kind(parts, "parts", Decomposition, remedy="Make them with hocal.decompose.")
    truth = _label_distributions(counts, label_distributions)
    given = "counts" if label_distributions is None else "label_distributions"
    check_same_length(parts, truth, ("parts", given))
    return np.asarray(parts.aleatoric - parts.entropy.value(truth, check_input=False))


def average_gaps(sums: Array, n_items: IntArray, average: Average) -> float | Array:
    """Return the aleatoric error from sums of the items' gaps, cell by cell."""
    with np.errstate(invalid="ignore"):  # an empty cell is 0 / 0
        errors = np.abs(sums / n_items)
    if average is None:
        return np.asarray(errors)
    has_items = n_items > 0
    weights = n_items[has_items] if average == "items" else None
    return float(np.average(errors[has_items], weights=weights))


def coverage(
    sets: PredictionSets | CredalSets | LabelSets,
    counts: Any = None,
    *,
    label_distributions: ArrayLike | None = None,
) -> float:
    """Return the share of items whose label distribution, or of labels, lies in predicted sets.

    Parameters
    ----------
    sets : PredictionSets, CredalSets or LabelSets
        Sets of the test items, expanded or not. Of sets of labels it is the share of an item's
        labels that its set holds, averaged over items.
    counts : array or sparse matrix of shape (n_items, n_classes)
        Labels; histograms of few labels stray from the label distribution and are covered less
        often.
    label_distributions : array of shape (n_items, n_classes), optional
        The true label distributions, instead of `counts`.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> import hocal
    >>> sets = hocal.predict_set(hocal.Mixtures.from_points([[0.5, 0.5]] * 2))
    >>> hocal.coverage(sets, [[5, 5], [9, 1]])
    0.5
    """
    made = "Make them with hocal.predict_set or hocal.uncertainty.credal_set."
    check_kind(sets, "sets", PredictionSets, CredalSets, LabelSets, remedy=made)
    points = _label_distributions(counts, label_distributions)
    if isinstance(sets, LabelSets):
        check_same_length(sets, points, ("sets", "counts"))
        return float(np.where(sets.members, points, 0).sum(axis=1).mean())
    return float(sets.contains(points).mean())


def _label_distributions(counts: Any, label_distributions: ArrayLike | None) -> Array:
    if (counts is None) == (label_distributions is None):
        rule = "must be given, or `label_distributions` instead of it, and not both"
        raise InputError("counts", rule)
    if label_distributions is not None:
        return check_simplex(label_distributions, "label_distributions", ndim=2)
    checked = check_dense_counts(counts)
    return np.asarray(checked / checked.sum(axis=1, keepdims=True))
