"""The uncertainty of each item of a report, computed once: from its prediction, and its labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hocal._base.typing import Array, Counts, Index, Mask
from hocal._base.validation import label_totals
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.report.schema import Standing
from hocal.uncertainty.decomposition import Decomposition

__all__ = ["ENOUGH_TO_AGREE", "ItemValues", "ranks_higher"]

ENOUGH_TO_AGREE = 3  # labels: two people agree by chance too often to call an item clear
ROWS = 100_000  # items that are decomposed at once: some tens of MB for ten classes

Describe = Callable[[Index], dict[str, Any]]


@dataclass(frozen=True, eq=False)
class ItemValues:
    """One entry per item of the report in every field; nats."""

    alone: Decomposition  #: from the prediction alone
    with_labels: Decomposition  #: given the item's own labels, where it has any
    agreed: Mask  #: whether three people or more labelled it and all gave the same label
    stands_out: Mask  #: whether the item ranks higher as epistemic than as aleatoric

    @classmethod
    def of(
        cls, calibrator: SnapshotCalibrator, n_items: int, given: Describe, counts: Any
    ) -> ItemValues:
        """Decompose all items; `given(rows)` is what the calibrator takes about some of them."""
        alone = _decompose(calibrator, given, np.arange(n_items))
        with_labels = alone
        if counts is not None and calibrator.item_model_ is not None:
            with_labels = _with_labels(calibrator, given, counts, alone)
        agreed = np.zeros(n_items, dtype=bool) if counts is None else _agreed(counts)
        # What people disagree about is known better with their labels. What the model did not know
        # is not: labels of people do not tell the model anything.
        ahead = ranks_higher(alone.epistemic, with_labels.aleatoric)
        return cls(
            alone=alone,
            with_labels=with_labels,
            agreed=agreed,
            stands_out=ahead,
        )

    def standing(self, row: int) -> Standing:
        """Return the kind of uncertainty in which an item stands out more."""
        return "epistemic" if self.stands_out[row] else "aleatoric"

    def listed(self, standing: Standing) -> Mask:
        """Tell which items may be listed as standing out in one kind of uncertainty.

        An item that all people agree on is never called aleatoric, whatever its value.
        """
        return self.stands_out if standing == "epistemic" else ~self.stands_out & ~self.agreed

    def score(self, standing: Standing) -> Array:
        """Return what items that stand out in one kind of uncertainty are sorted by."""
        return self.alone.epistemic if standing == "epistemic" else self.with_labels.aleatoric


def ranks_higher(first: Array, second: Array, weights: Any = None) -> Mask:
    """Tell which entries rank higher by the first number than by the second.

    A rank is the share of all, by their weights, that lie below.
    """
    each = np.ones(len(first)) if weights is None else weights
    ahead = _share_below(first, each) - _share_below(second, each)
    return np.where(ahead == 0, first > second, ahead > 0)


def _share_below(values: Array, weights: Any) -> Array:
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order]) - weights[order]
    first = np.searchsorted(values[order], values)  # equal values share a place
    return np.asarray(below[first] / weights.sum())


def _agreed(counts: Counts) -> Mask:
    most = counts.max(axis=1)
    largest = most if isinstance(most, np.ndarray) else most.toarray()
    totals = label_totals(counts)
    return np.asarray((totals >= ENOUGH_TO_AGREE) & (np.reshape(largest, -1) == totals))


def _with_labels(
    calibrator: SnapshotCalibrator, given: Describe, counts: Counts, alone: Decomposition
) -> Decomposition:
    """Return the parts of all items, of those with labels given these."""
    labelled = np.flatnonzero(label_totals(counts))
    if not len(labelled):
        return alone

    def given_labels(rows: Index) -> dict[str, Any]:
        return given(rows) | {"counts": counts[rows]}

    found = _decompose(calibrator, given_labels, labelled).as_dict()
    columns = {name: values.copy() for name, values in alone.as_dict().items()}
    for name, values in columns.items():
        values[labelled] = found[name]
    return Decomposition(**columns, entropy=alone.entropy, kind=alone.kind)


def _decompose(calibrator: SnapshotCalibrator, given: Describe, rows: Index) -> Decomposition:
    """Return the parts of some items, which are decomposed block by block."""
    blocks = [rows[start : start + ROWS] for start in range(0, len(rows), ROWS)]
    parts = [calibrator.decompose(**given(block)) for block in blocks]
    if len(parts) == 1:
        return parts[0]
    columns = {
        name: np.concatenate([part.as_dict()[name] for part in parts])
        for name in parts[0].as_dict()
    }
    return Decomposition(**columns, entropy=parts[0].entropy, kind=parts[0].kind)
