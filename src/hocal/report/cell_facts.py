"""What a report says about cells, computed once: names, items, estimates and proved intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hocal._base.typing import Array, Index, IntArray, Mask
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.guarantees.certificates import Certificate
from hocal.report.item_values import ItemValues, ranks_higher
from hocal.report.schema import Standing
from hocal.uncertainty.decomposition import Decomposition

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
    """One entry per cell of the partition in every field, empty cells included; nats.

    Estimates are averages over the items of the report, from their predictions alone: intervals are
    about what a cell is like before its items get labels. They are 0 in a cell without such items.
    """

    names: tuple[str, ...]  #: which predictions the cell holds, in words
    n_items: IntArray  #: items of the report
    calibration_items: IntArray
    calibration_labels: IntArray
    source: NDArray[np.str_]  #: whose calibration items were used
    parts: Decomposition  #: averages over the items
    disagreement: Array  #: chance that two people give an item different labels, by the mixture
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
        values: ItemValues,
        cells: Index,
    ) -> CellFacts:
        """Look at every cell of a fitted calibrator once; `certificate` is its own."""
        n_items = np.bincount(cells, minlength=len(certificate))
        parts = _average_parts(values.alone, cells, n_items)
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
            stands_out=ranks_higher(parts.epistemic, parts.aleatoric, n_items),
        )

    def standing(self, cell: int) -> Standing:
        """Return the kind of uncertainty in which a cell stands out more."""
        return "epistemic" if self.stands_out[cell] else "aleatoric"


def _average_parts(parts: Decomposition, cells: Index, n_items: IntArray) -> Decomposition:
    """Return the means over the items of each cell."""
    means = {name: _average(values, cells, n_items) for name, values in parts.as_dict().items()}
    return Decomposition(**means, entropy=parts.entropy, kind=parts.kind)


def _average(values: Array, cells: Index, n_items: IntArray) -> Array:
    sums = np.bincount(cells, values, minlength=len(n_items))
    return np.asarray(sums / np.maximum(n_items, 1))


def _shares(values: Array, n_items: IntArray) -> Array:
    """Return what each cell holds of the sum over all items; 0 where there is nothing to share."""
    total = float(values @ n_items)
    return np.asarray(values * n_items / total) if total > 0 else np.zeros(len(values))
