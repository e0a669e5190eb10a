"""What a summary is computed from: the items, their uncertainty, and the facts about each cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hocal._base.errors import InputError
from hocal._base.typing import Array, Counts, Index, IntArray, Mask
from hocal._base.validation import (
    check_counts,
    check_finite_matrix,
    check_names,
    check_same_length,
)
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.calibration.calibrator_state import recognise_fitted
from hocal.calibration.classifier import HigherOrderCalibratedClassifier
from hocal.guarantees.certificates import Certificate
from hocal.report.cell_facts import CellFacts
from hocal.report.item_values import ItemValues

__all__ = ["Given", "Study", "class_names", "number"]


class Given(NamedTuple):
    """What a calibrator takes about the items."""

    probabilities: Array  #: (n_items, n_classes) or (n_items, n_members, n_classes)
    features: Array | None  #: (n_items, n_features)
    cells: NDArray[Any] | None  #: (n_items,) cell numbers or groups, where they came with the data

    def of(self, rows: Any) -> dict[str, Any]:
        """Return what it takes about some of them, by the names of its arguments."""
        present = {name: array for name, array in self._asdict().items() if array is not None}
        return {name: array[rows] for name, array in present.items()}


@dataclass(frozen=True, eq=False)
class Study:
    """Items with their predictions, labels, cells and uncertainty, and facts about the cells."""

    calibrator: SnapshotCalibrator
    certificate: Certificate
    classes: tuple[str, ...]
    given: Given  #: what the calibrator takes
    probabilities: Array  #: (n_items, n_classes), the mean of the members
    cells: Index  #: (n_items,) the cell of each item
    counts: Counts | None  #: held-out labels, rows may be empty
    fitted: Mask  #: (n_items,) whether the calibrator was fitted on the item; False without labels
    values: ItemValues
    facts: CellFacts

    @classmethod
    def of(
        cls,
        calibrator: Any,
        data: Any,
        counts: Any,
        features: ArrayLike | None,
        cells: ArrayLike | None,
        classes: Any,
        confidence: float,
        design_effect: float = 1.0,
    ) -> Study:
        """Validate what the user gave and look at every item and every cell once."""
        inner, probabilities, known_classes = _predictions(calibrator, data)
        p, where = inner.locate(probabilities, cells=cells)
        labels = _check_labels(counts, p)
        names = class_names(known_classes if classes is None else classes, p.shape[1])
        certificate = calibrator.certify(confidence, design_effect=design_effect)
        given = Given(
            np.asarray(probabilities, dtype=np.float64),
            _check_features(features, p),
            None if cells is None else np.asarray(cells),
        )
        values = ItemValues.of(inner, len(p), given.of, labels)
        return cls(
            calibrator=inner,
            certificate=certificate,
            classes=names,
            given=given,
            probabilities=p,
            cells=where,
            counts=labels,
            fitted=_find_fitted(inner, given, where, labels),
            values=values,
            facts=CellFacts.of(inner, certificate, names, values, where),
        )

    @property
    def used(self) -> Index:
        """The cells that hold an item of the report."""
        return np.flatnonzero(self.facts.n_items)

    def labels(self, rows: Index) -> IntArray:
        """Return the held-out labels of some items, dense; zeros where none were given."""
        if self.counts is None:
            return np.zeros((len(rows), len(self.classes)), dtype=np.int64)
        part = self.counts[rows]
        return part if isinstance(part, np.ndarray) else np.asarray(part.toarray())


def number(value: Any) -> float:
    """Return a float of six digits, which is all that a page needs."""
    return float(f"{float(value):.6g}") + 0.0  # a negative zero becomes 0


def _predictions(
    calibrator: Any, data: Any
) -> tuple[SnapshotCalibrator, Any, Sequence[Any] | None]:
    """Return the calibrator, the predictions and the class names of a calibrator or classifier."""
    if isinstance(calibrator, HigherOrderCalibratedClassifier):
        probabilities = calibrator.base_proba(data)
        return calibrator.calibrator_, probabilities, list(calibrator.classes_)
    if not isinstance(calibrator, SnapshotCalibrator):
        rule = "must be a SnapshotCalibrator or a HigherOrderCalibratedClassifier"
        raise InputError("calibrator", rule, value=repr(calibrator))
    return calibrator, data, None


def _find_fitted(
    calibrator: SnapshotCalibrator, given: Given, cells: Index, labels: Counts | None
) -> Mask:
    """Tell which items the calibrator was fitted on: their labels are not held out."""
    if labels is None:
        return np.zeros(len(given.probabilities), dtype=bool)
    return recognise_fitted(calibrator, given.probabilities, given.features, cells, labels)


def _check_labels(counts: Any, probabilities: Array) -> Counts | None:
    """Return checked labels, none for some items or for all of them."""
    if counts is None:
        return None
    labels = check_counts(counts, n_classes=probabilities.shape[1], minimum_total=0)
    check_same_length(probabilities, labels, ("probabilities", "counts"))
    return labels


def _check_features(features: ArrayLike | None, probabilities: Array) -> Array | None:
    """Return checked features of the same items, or none."""
    if features is None:
        return None
    checked = check_finite_matrix(features)
    check_same_length(probabilities, checked, ("probabilities", "features"))
    return checked


def class_names(classes: Any, n_classes: int) -> tuple[str, ...]:
    """Return the names of classes, numbers where none are given; refuse other numbers of names."""
    if classes is None:
        return tuple(map(str, range(n_classes)))
    names = tuple(map(str, check_names(classes, "classes", n_classes)))
    n_different = len(set(names))
    if n_different != n_classes:
        rule = f"must hold {n_classes} different names"
        raise InputError("classes", rule, value=f"{n_different} in {len(names)}")
    return names
