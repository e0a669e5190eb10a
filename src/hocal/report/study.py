"""What a summary is computed from: predictions in their cells, and what the calibrator says about each cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hocal._base.typing import Array, Counts, Index, IntArray, Mask
from hocal._base.validation import check_counts, check_same_length
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.calibration.classifier import HigherOrderCalibratedClassifier
from hocal.cells.protocol import Partition
from hocal.guarantees.certificates import Certificate
from hocal.report.schema import Standing
from hocal.uncertainty.decomposition import decompose

__all__ = ["Study", "describe_cell", "number"]


@dataclass(frozen=True, eq=False)
class Study:
    """Predictions in their cells, with the uncertainty of each cell; items of a cell share it."""

    calibrator: SnapshotCalibrator
    certificate: Certificate
    classes: tuple[str, ...]
    probabilities: Array  #: (n_items, n_classes)
    cells: Index  #: (n_items,)
    given_cells: Index | None  #: the same where the user gave them
    counts: Counts | None  #: held-out labels, rows may be empty
    n_items: IntArray  #: (n_cells,)
    predictive: Array  #: (n_cells,) nats
    aleatoric: Array
    epistemic: Array
    disagreement: Array  #: (n_cells,) chance that two people give an item different labels
    stands_out: NDArray[
        np.bool_
    ]  #: (n_cells,) whether a cell stands out as epistemic more than as aleatoric

    @classmethod
    def of(
        cls,
        calibrator: Any,
        data: Any,
        counts: Any,
        cells: ArrayLike | None,
        classes: Any,
        confidence: float,
    ) -> Study:
        """Validate what the user gave and look at every cell once."""
        inner, p, names = _predictions(calibrator, data)
        p, where = inner.locate(p, cells)
        labels = (
            None if counts is None else check_counts(counts, n_classes=p.shape[1], minimum_total=0)
        )
        if labels is not None:
            check_same_length(p, labels, ("probabilities", "counts"))
        mixtures = inner.cell_mixtures_
        n_items = np.bincount(where, minlength=inner.statistics_.n_cells)
        parts = decompose(mixtures, panel_size=inner.panel_size)
        return cls(
            inner,
            calibrator.certify(confidence),
            _class_names(names if classes is None else classes, p.shape[1]),
            p,
            where,
            None if cells is None else where,
            labels,
            n_items,
            parts.predictive,
            parts.aleatoric,
            parts.epistemic,
            decompose(mixtures, "brier").aleatoric,
            _ranks_higher(parts.epistemic, parts.aleatoric, n_items),
        )

    @property
    def used(self) -> Index:
        """The cells that hold an item of the report."""
        return np.flatnonzero(self.n_items)

    def labels(self, rows: Index) -> IntArray:
        """Return the held-out labels of some items, dense; zeros where none were given."""
        if self.counts is None:
            return np.zeros((len(rows), len(self.classes)), dtype=np.int64)
        part = self.counts[rows]
        return part if isinstance(part, np.ndarray) else np.asarray(part.toarray())

    def standing(self, cell: Any) -> Standing:
        """Return the kind of uncertainty in which a cell stands out more."""
        return "epistemic" if self.stands_out[cell] else "aleatoric"

    def name(self, cell: Any) -> str:
        """Say in words which predictions a cell holds."""
        return describe_cell(self.calibrator.partition_, self.classes, int(cell))


def number(value: Any) -> float:
    """Return a float of six digits, which is all that a page needs."""
    return float(f"{float(value):.6g}") + 0.0  # a negative zero becomes 0


def _predictions(
    calibrator: Any, data: Any
) -> tuple[SnapshotCalibrator, Any, Sequence[Any] | None]:
    """Return the calibrator, the predictions and the class names behind a calibrator or a classifier."""
    if isinstance(calibrator, HigherOrderCalibratedClassifier):
        p = calibrator.base_proba(data)
        return calibrator.calibrator_, p, list(calibrator.classes_)
    if not isinstance(calibrator, SnapshotCalibrator):
        raise ValueError(
            f"`calibrator` must be a SnapshotCalibrator or a HigherOrderCalibratedClassifier, got {calibrator!r}."
        )
    return calibrator, data, None


def _class_names(classes: Any, n_classes: int) -> tuple[str, ...]:
    if classes is not None and not isinstance(classes, Iterable):
        raise ValueError(f"`classes` must hold {n_classes} different names, got {classes!r}.")
    names = tuple(map(str, range(n_classes) if classes is None else classes))
    if len(names) != n_classes or len(set(names)) != n_classes:
        raise ValueError(
            f"`classes` must hold {n_classes} different names, got {len(set(names))} in {len(names)}."
        )
    return names


def _ranks_higher(first: Array, second: Array, n_items: IntArray) -> Mask:
    """Tell which cells lie higher by the first number than by the second, compared with all items."""
    ahead = _share_below(first, n_items) - _share_below(second, n_items)
    return np.where(ahead == 0, first > second, ahead > 0)


def _share_below(values: Array, n_items: IntArray) -> Array:
    order = np.argsort(values, kind="stable")
    below = np.cumsum(n_items[order]) - n_items[order]
    first = np.searchsorted(values[order], values)  # equal values share a place
    return np.asarray(below[first] / n_items.sum())


def describe_cell(partition: Partition, classes: Sequence[str], cell: int) -> str:
    """Say in words which predictions a cell holds; `Partition.cell_names` does it for all cells at once."""
    return partition.describe(cell, classes)
