"""What a report says about cells, computed once: names, items, estimates and proved intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hocal._base.typing import Array, Index, IntArray, Mask
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.guarantees.certificates import Certificate
from hocal.report.item_values import ItemValues
from hocal.report.schema import Standing
from hocal.uncertainty.decomposition import Decomposition

__all__ = ["CellFacts", "Limits"]

ROUNDING = 1e-9  # nats: limits that exceed an average by less do not
KINDS: tuple[Standing, ...] = ("epistemic", "aleatoric")


class Limits(NamedTuple):
    """What the labels prove about one kind of uncertainty, cell by cell."""

    lower: Array  #: NaN without calibration items
    upper: Array
    vacuous: Mask  #: where the interval is the whole possible range, or there is none
    inside: Mask  #: where the estimate of the cell lies in it
    estimate: Array  #: of the cell as a whole, which the interval is about

    @classmethod
    def of(cls, certificate: Certificate, quantity: str) -> Limits:
        """Take the columns of a certificate."""
        lower, upper = certificate.interval(quantity)
        vacuous, inside = certificate.vacuous(quantity), certificate.inside(quantity)
        return cls(lower, upper, vacuous, inside, certificate.estimate(quantity))

    def holding(self, shown: Array, n_items: IntArray) -> Limits:
        """Return the same limits, inside which an average over items must lie as well."""
        with np.errstate(invalid="ignore"):  # no interval holds nothing
            held = (self.lower - ROUNDING <= shown) & (shown <= self.upper + ROUNDING)
        return self._replace(inside=self.inside & (held | (n_items == 0)))

    def above(self, average: float, n_items: IntArray) -> Mask:
        """Tell which cells have a lower limit above the average of items, and of their cells.

        The two differ for epistemic uncertainty: what a cell leaves open about its items is more
        than what their whole predictions do.
        """
        of_cells = float(self.estimate @ n_items / n_items.sum())
        with np.errstate(invalid="ignore"):  # no interval is above nothing
            return np.asarray(self.lower > max(average, of_cells) + ROUNDING)


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
    #: by how much the average over the cell exceeds that over all items, by kind of uncertainty
    excess: Mapping[Standing, Array]
    #: whether the labels prove that the cell has more than the average
    above: Mapping[Standing, Mask]

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
        means = parts.as_dict()
        averages = {kind: float(means[kind] @ n_items / n_items.sum()) for kind in KINDS}
        excess = {kind: means[kind] - averages[kind] for kind in KINDS}
        limits = {kind: Limits.of(certificate, kind) for kind in KINDS}
        if calibrator.panel_size is None:  # a panel disagrees less than all people
            limits["aleatoric"] = limits["aleatoric"].holding(parts.aleatoric, n_items)
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
            aleatoric_limits=limits["aleatoric"],
            epistemic_limits=limits["epistemic"],
            excess=excess,
            above={
                kind: limits[kind].above(averages[kind], n_items) & (excess[kind] > 0)
                for kind in KINDS
            },
        )

    def stands_out(self, cell: int) -> list[Standing]:
        """Return the kinds of uncertainty of which a cell has more than the average, proved."""
        return [kind for kind in KINDS if self.above[kind][cell]]

    def standing(self, cell: int) -> Standing | None:
        """Return the kind in which a cell stands out, by more where there are two."""
        kinds = self.stands_out(cell)
        return max(kinds, key=lambda kind: float(self.excess[kind][cell]), default=None)


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
