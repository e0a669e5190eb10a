"""What a report says about cells, computed once: names, items, estimates and proved intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hocal._base.typing import Array, IntArray, Mask
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.guarantees.certificates import Certificate
from hocal.report.schema import Standing
from hocal.uncertainty.decomposition import Decomposition, decompose
from hocal.uncertainty.entropy import get_entropy

__all__ = ["CellFacts", "Limits"]


class Limits(NamedTuple):
    """What the labels prove about one kind of uncertainty, cell by cell."""

    lower: Array  #: NaN without calibration items
    upper: Array
    vacuous: Mask  #: where the interval is the whole possible range, or there is none
    inside: Mask  #: where the estimate lies in it

    @classmethod
    def of(cls, certificate: Certificate, quantity: str) -> Limits:
        """Take the columns of a certificate."""
        lower, upper = certificate.interval(quantity)
        return cls(lower, upper, certificate.vacuous(quantity), certificate.inside(quantity))


@dataclass(frozen=True, eq=False)
class CellFacts:
    """One entry per cell of the partition in every field, empty cells included; nats."""

    names: tuple[str, ...]  #: which predictions the cell holds, in words
    n_items: IntArray  #: items of the report
    calibration_items: IntArray
    calibration_labels: IntArray
    source: NDArray[np.str_]  #: whose calibration items were used
    parts: Decomposition  #: estimates
    disagreement: Array  #: chance that two people give an item different labels
    aleatoric_share: Array  #: of the aleatoric uncertainty of all items
    epistemic_share: Array
    aleatoric_limits: Limits
    epistemic_limits: Limits
    stands_out: Mask  #: whether the cell stands out as epistemic more than as aleatoric

    @classmethod
    def of(
        cls,
        calibrator: SnapshotCalibrator,
        certificate: Certificate,
        classes: Sequence[str],
        n_items: IntArray,
    ) -> CellFacts:
        """Look at every cell of a fitted calibrator once; `certificate` is its own."""
        parts = _estimates(calibrator, certificate)
        return cls(
            names=tuple(calibrator.partition_.cell_names(classes)),
            n_items=n_items,
            calibration_items=certificate.n_items,
            calibration_labels=calibrator.statistics_.n_labels,
            source=calibrator.source_,
            parts=parts,
            disagreement=certificate.estimate("aleatoric", "brier"),
            aleatoric_share=_shares(parts.aleatoric, n_items),
            epistemic_share=_shares(parts.epistemic, n_items),
            aleatoric_limits=Limits.of(certificate, "aleatoric"),
            epistemic_limits=Limits.of(certificate, "epistemic"),
            stands_out=_ranks_higher(parts.epistemic, parts.aleatoric, n_items),
        )

    def standing(self, cell: int) -> Standing:
        """Return the kind of uncertainty in which a cell stands out more."""
        return "epistemic" if self.stands_out[cell] else "aleatoric"


def _estimates(calibrator: SnapshotCalibrator, certificate: Certificate) -> Decomposition:
    """Return the parts of each cell: those of the certificate, unless they are those of a panel."""
    if calibrator.panel_size is not None:
        return decompose(calibrator.cell_mixtures_, panel_size=calibrator.panel_size)
    return Decomposition(
        predictive=certificate.estimate("predictive"),
        aleatoric=certificate.estimate("aleatoric"),
        epistemic=certificate.estimate("epistemic"),
        entropy=get_entropy("shannon"),
        kind="mutual-information",
    )


def _shares(values: Array, n_items: IntArray) -> Array:
    """Return what each cell holds of the sum over all items; 0 where there is nothing to share."""
    total = float(values @ n_items)
    return np.asarray(values * n_items / total) if total > 0 else np.zeros(len(values))


def _ranks_higher(first: Array, second: Array, n_items: IntArray) -> Mask:
    """Tell which cells rank higher by the first number than by the second, among all items."""
    ahead = _share_below(first, n_items) - _share_below(second, n_items)
    return np.where(ahead == 0, first > second, ahead > 0)


def _share_below(values: Array, n_items: IntArray) -> Array:
    order = np.argsort(values, kind="stable")
    below = np.cumsum(n_items[order]) - n_items[order]
    first = np.searchsorted(values[order], values)  # equal values share a place
    return np.asarray(below[first] / n_items.sum())
