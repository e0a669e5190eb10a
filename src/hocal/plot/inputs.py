"""Check what displays are made from: mixtures, a fitted calibrator, and items in its cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from hocal._base.errors import InputError
from hocal._base.typing import Array, Index
from hocal._base.validation import check_array, check_cells, check_integer, check_names
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.uncertainty.mixtures import check_mixtures

__all__ = [
    "check_calibrator",
    "check_chosen",
    "check_method",
    "check_n_bins",
    "check_some",
    "check_some_mixtures",
    "is_empty",
    "locate_items",
    "name_classes",
]

MAX_BINS = 1_000  # more than a picture has pixels


def check_some_mixtures(mixtures: Any) -> None:
    """Refuse anything but mixtures of one item or more."""
    if not len(check_mixtures(mixtures)):
        raise InputError("mixtures", "must hold at least one item", value="none")


def check_calibrator(calibrator: Any) -> None:
    """Refuse anything but a fitted SnapshotCalibrator, whose cells a display is about."""
    if not isinstance(calibrator, SnapshotCalibrator):
        raise InputError(
            "calibrator",
            "must be a SnapshotCalibrator",
            value=type(calibrator).__name__,
            remedy="Pass the `calibrator_` of a classifier, or mixtures to from_predictions.",
        )
    check_is_fitted(calibrator, "cell_mixtures_")


def check_method(estimator: Any, method: str) -> None:
    """Refuse what cannot answer, such as an array in the place of a calibrator."""
    if not callable(getattr(estimator, method, None)):
        rule = f"must have a method {method}"
        raise InputError("estimator", rule, value=type(estimator).__name__)


def check_n_bins(n_bins: Any) -> int:
    """Return a number of bins of which a picture shows each."""
    return check_integer(n_bins, "n_bins", minimum=1, maximum=MAX_BINS)


def is_empty(values: ArrayLike) -> bool:
    """Tell a choice of nothing from others, which are checked when they are read."""
    if isinstance(values, np.ndarray):
        return not values.size
    return isinstance(values, (list, tuple)) and not values


def check_some(values: ArrayLike, name: str) -> None:
    """Refuse a choice of nothing, of which nothing could be drawn."""
    if is_empty(values):
        raise InputError(name, "must hold at least one value", value="none")


def check_chosen(numbers: ArrayLike, name: str, n_known: int) -> Index:
    """Return chosen numbers, at least one, all below `n_known`."""
    check_some(numbers, name)
    n_chosen = check_array(numbers, name).size
    return check_cells(numbers, n_chosen, n_cells=n_known, name=name)


def name_classes(classes: Sequence[Any] | None, n_classes: int) -> tuple[str, ...]:
    """Return the names of the classes, their numbers where none are given."""
    names = range(n_classes) if classes is None else check_names(classes, "classes", n_classes)
    return tuple(map(str, names))


def locate_items(
    calibrator: Any, probabilities: ArrayLike, cells: ArrayLike | None
) -> tuple[Array, Index]:
    """Return checked predictions and their cells in the partition of a fitted calibrator."""
    check_calibrator(calibrator)
    p, where = calibrator.locate(probabilities, cells=cells)
    return p, where
