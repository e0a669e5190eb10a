"""Check what displays are made from: mixtures, a fitted calibrator, and items in its cells."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from hocal._base.errors import InputError
from hocal._base.typing import Array, Index
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.uncertainty.mixtures import check_mixtures

__all__ = ["check_calibrator", "check_some", "check_some_mixtures", "locate_items", "name_classes"]


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


def check_some(values: ArrayLike, name: str) -> None:
    """Refuse a choice of nothing, of which nothing could be drawn."""
    if not np.size(values):
        raise InputError(name, "must hold at least one value", value="none")


def name_classes(classes: Iterable[Any] | None, n_classes: int) -> tuple[str, ...]:
    """Return the names of the classes, their numbers where none are given."""
    names = tuple(map(str, range(n_classes) if classes is None else classes))
    if len(names) != n_classes:
        rule = f"must name all {n_classes} classes"
        raise InputError("classes", rule, value=f"{len(names)} names")
    return names


def locate_items(
    calibrator: Any, probabilities: ArrayLike, cells: ArrayLike | None
) -> tuple[Array, Index]:
    """Return checked predictions and their cells in the partition of a fitted calibrator."""
    check_calibrator(calibrator)
    p, where = calibrator.locate(probabilities, cells=cells)
    return p, where
