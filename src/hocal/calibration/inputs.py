"""What is given about items, checked at the door: predictions, members of ensembles, features."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from hocal._base.errors import InputError
from hocal._base.fingerprints import Fingerprints, fingerprint
from hocal._base.typing import Array, Counts
from hocal._base.validation import (
    check_array,
    check_counts,
    check_same_length,
    check_simplex,
)
from hocal.calibration.first_order.feature_scale import check_features
from hocal.cells.crossed import cross
from hocal.cells.partitions import as_partition
from hocal.cells.protocol import Partition
from hocal.cells.statistics import CellStatistics
from hocal.uncertainty.mixtures import Mixtures

__all__ = [
    "GivenItems",
    "InputShape",
    "cells_or_groups",
    "check_items",
    "check_labels",
    "check_own_labels",
    "choose_partition",
    "partition_of",
]


class InputShape(NamedTuple):
    """What a fitted calibrator expects of the items it is given."""

    n_members: int  #: 1 for a plain prediction
    n_classes: int
    n_features: int  #: 0 for none


class GivenItems(NamedTuple):
    """Checked predictions of some items, and what else is known about them."""

    members: Array  #: (n_items, n_members, n_classes)
    features: Array | None  #: (n_items, n_features)

    def __len__(self) -> int:
        return len(self.members)

    @property
    def mean(self) -> Array:
        """The prediction of each item: the mean of its members, (n_items, n_classes)."""
        if self.members.shape[1] == 1:
            return self.members[:, 0]
        return np.asarray(self.members.mean(axis=1))

    @property
    def shape(self) -> InputShape:
        """What a calibrator fitted on these items will expect."""
        n_features = 0 if self.features is None else self.features.shape[1]
        return InputShape(self.members.shape[1], self.members.shape[2], n_features)

    def beside(self, columns: Array | None) -> GivenItems:
        """Return the items with more columns of features, if there are any."""
        if columns is None:
            return self
        features = columns if self.features is None else np.hstack([self.features, columns])
        return GivenItems(self.members, features)

    def rows(self, chosen: Any) -> GivenItems:
        """Return some of the items."""
        features = None if self.features is None else self.features[chosen]
        return GivenItems(self.members[chosen], features)

    def fingerprints(self, *more: Any) -> Fingerprints:
        """Return what each item is known by: its prediction, its features, and more if given."""
        features = () if self.features is None else (self.features,)
        return fingerprint(self.members, *features, *more)


def check_items(
    probabilities: Any, features: ArrayLike | None = None, expected: InputShape | None = None
) -> GivenItems:
    """Return predictions (n_items, n_classes), or of members, and features after checking them."""
    members = _check_members(probabilities, expected)
    given = GivenItems(members, _check_features(features, len(members)))
    if expected is not None:
        _check_expected(given.shape, expected)
    return given


def choose_partition(partition: Any, by: Any) -> Partition:
    """Return a partition to fit, crossed with groups where there are any."""
    chosen: Partition = clone(as_partition(partition))
    return chosen if by is None or chosen.takes_groups else cross(chosen, by)


def cells_or_groups(cells: Any, by: Any, partition: Partition) -> Any:
    """Return what came with the data for a partition: groups, cell numbers, or nothing."""
    if by is None:
        return cells
    if cells is not None:
        rule = "must be left out with `by`, whose groups are crossed with cells of predictions"
        raise InputError("cells", rule)
    if not partition.takes_groups:
        rule = "must be left out, because the calibrator was fitted without groups"
        raise InputError("by", rule, remedy="Fit it with by=, too.")
    return by


def check_labels(counts: Any, given: GivenItems) -> Counts:
    """Return the labels of the items, one or more each."""
    n_classes = given.members.shape[2]
    checked = check_counts(counts, n_classes=n_classes)
    _check_axes(given, checked.shape[0])
    check_same_length(given.members, checked, ("probabilities", "counts"))
    return checked


def check_own_labels(counts: Any, given: GivenItems) -> Counts | None:
    """Return the items' own labels, rows of zeros for items without any; None for none given."""
    if counts is None:
        return None
    n_classes = given.members.shape[2]
    checked = check_counts(counts, n_classes=n_classes, minimum_total=0)
    check_same_length(given.members, checked, ("probabilities", "counts"))
    return checked


def partition_of(statistics: CellStatistics, partition: Partition) -> Partition:
    """Return a fitted partition for statistics gathered elsewhere and check that it is theirs."""
    if not partition.is_fitted and partition.learns_from_predictions:
        raise InputError(
            "partition",
            "must be fitted before fit_statistics when it learns from predictions",
            value=f"a {type(partition).__name__} that is not",
            remedy="Fit it on predictions and use the same one for the statistics.",
        )
    n_classes = statistics.n_classes
    fitted = partition if partition.is_fitted else clone(partition).fit_classes(n_classes)
    same_layout = all(map(np.array_equal, fitted.layout_, statistics.layout))
    if fitted.n_classes_ != n_classes or not same_layout:
        raise InputError(
            "statistics",
            "must come from the calibrator's partition",
            value=f"{statistics.n_cells} cells of {n_classes} classes for {partition}",
        )
    return fitted


def _check_members(probabilities: Any, expected: InputShape | None) -> Array:
    if isinstance(probabilities, Mixtures):
        rule = "must be label distributions"
        raise InputError("probabilities", rule, value="Mixtures", remedy="Pass their mean().")
    n_classes = None if expected is None else expected.n_classes
    probabilities = check_array(probabilities, "probabilities")
    if probabilities.ndim != 3:
        return check_simplex(probabilities, ndim=2, n_classes=n_classes)[:, None]
    members = check_simplex(probabilities, ndim=3, n_classes=n_classes)
    n_items, n_members = members.shape[:2]
    known = expected is not None and expected.n_members == n_members  # then axes are right
    if n_members > n_items > 1 and not known:
        warnings.warn(
            f"`probabilities` has {n_members} members for {n_items} items. The first axis must be "
            "the items; if it is the members, pass probabilities.swapaxes(0, 1).",
            UserWarning,
            stacklevel=4,
        )
    return members


def _check_axes(given: GivenItems, n_labelled: int) -> None:
    """Refuse an ensemble whose second axis has as many entries as there are labelled items."""
    n_items, n_members = given.members.shape[:2]
    if n_items != n_labelled and n_members == n_labelled:
        raise InputError(
            "probabilities",
            "must have shape (n_items, n_members, n_classes)",
            value=f"{given.members.shape} for {n_labelled} rows of counts",
            remedy="Pass probabilities.swapaxes(0, 1).",
        )


def _check_features(features: ArrayLike | None, n_items: int) -> Array | None:
    if features is None:
        return None
    matrix = check_features(features, "features")
    check_same_length(np.empty(n_items), matrix, ("probabilities", "features"))
    return matrix


def _check_expected(found: InputShape, expected: InputShape) -> None:
    """Refuse items that are described otherwise than those of the fit."""
    if found.n_members != expected.n_members:
        rule = f"must have {expected.n_members} members per item, as in the fit"
        raise InputError("probabilities", rule, value=found.n_members)
    if found.n_features == expected.n_features:
        return
    if expected.n_features == 0:
        rule = "must be left out, because the calibrator was fitted without any"
        raise InputError("features", rule, value=f"{found.n_features} columns")
    rule = f"must have {expected.n_features} columns, as in the fit"
    raise InputError("features", rule, value=found.n_features or "none")
