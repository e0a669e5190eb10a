"""The uncertainty of each item of a report, computed once: from its prediction, and its labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hocal._base.typing import Array, Counts, Index, Mask
from hocal._base.validation import label_totals
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.decisions.label_gains import expected_gains
from hocal.report.schema import Listing
from hocal.uncertainty.credible_limits import credible_limits
from hocal.uncertainty.decomposition import Decomposition
from hocal.uncertainty.likelihood import pair_with_counts
from hocal.uncertainty.mixtures import Mixtures

__all__ = ["ENOUGH_TO_AGREE", "CloserLook", "ItemValues", "look_closer"]

# Labels that are all the same: three are agreement; two are, unless the item's posterior is sure
# that people disagree about it.
ENOUGH_TO_AGREE = 3
FEWEST_TO_AGREE = 2
NUMBERS = 300_000  # predicted probabilities that are decomposed at once: some ten MB
MAX_NUMBERS = 2_500_000  # in the atoms of items that are looked at closely at once: 20 MB
ATOMS = 400  # at most, of an item
# Classes whose labels are told apart for the gain of one more label; the others of an item, which
# its mixture makes least likely, count as one. Its cost grows with the square.
MANY_CLASSES = 50

Describe = Callable[[Index], dict[str, Any]]


class CloserLook(NamedTuple):
    """What is known of single items by their mixtures, given their labels."""

    lower: Array  #: (n_rows,) credible limits of aleatoric uncertainty
    upper: Array
    gain: Array  #: (n_rows,) expected fall by one more label of the distribution's squared error


@dataclass(frozen=True, eq=False)
class ItemValues:
    """One entry per item of the report in every field; nats."""

    alone: Decomposition  #: from the prediction alone
    with_labels: Decomposition  #: given the item's own labels, where it has any
    agreed: Mask  #: whether three people or more labelled it and all gave the same label
    paired: Mask  #: whether two people labelled it and gave the same label

    @classmethod
    def of(
        cls, calibrator: SnapshotCalibrator, n_items: int, given: Describe, counts: Any
    ) -> ItemValues:
        """Decompose all items; `given(rows)` is what the calibrator takes about some of them."""
        alone = _decompose(calibrator, given, np.arange(n_items))
        with_labels = alone
        if counts is not None and calibrator.item_model_ is not None:
            with_labels = _with_labels(calibrator, given, counts, alone)
        n_same = np.zeros(n_items, dtype=np.int64) if counts is None else _unanimous(counts)
        return cls(
            alone=alone,
            with_labels=with_labels,
            agreed=n_same >= ENOUGH_TO_AGREE,
            paired=n_same == FEWEST_TO_AGREE,
        )

    def score(self, listing: Listing) -> Array:
        """Return what items are listed by.

        What people disagree about is known better with their labels. What the model did not know is
        not: labels of people do not tell the model anything. The gain of one more label is about
        that of a Dirichlet distribution with the same uncertainty, of which one label removes
        the share that is epistemic; those listed get their exact gain.
        """
        if listing == "epistemic":
            return self.alone.epistemic
        if listing == "aleatoric":
            return self.with_labels.aleatoric
        left = self.with_labels
        return left.epistemic**2 / np.maximum(left.predictive, np.finfo(float).tiny)

    def eligible(self, listing: Listing, least: float) -> Mask:
        """Tell which items may be listed: what is next to nothing is not, nor is agreement.

        An item that all people agree on is never called aleatoric, whatever its value.
        """
        if listing == "gain":
            return self.score("gain") > 0
        enough = self.score(listing) >= least
        return enough if listing == "epistemic" else enough & ~self.agreed


def look_closer(
    calibrator: SnapshotCalibrator, given: Describe, counts: Any, rows: Index, confidence: float
) -> CloserLook:
    """Look at the mixtures of some items, given their own labels, some at a time."""
    own = None if calibrator.item_model_ is None else counts
    n_classes = calibrator.input_shape_.n_classes
    height = max(MAX_NUMBERS // (ATOMS * n_classes), 1)
    blocks = [rows[start : start + height] for start in range(0, len(rows), height)]
    parts = [np.empty((3, 0))]
    for block in blocks:
        labels = {} if own is None else {"counts": own[block]}
        mixtures = calibrator.predict_mixture(**given(block), **labels)
        lower, upper = credible_limits(mixtures, confidence)
        parts.append(np.stack([lower, upper, _gain_of_a_label(mixtures)]))
    return CloserLook(*np.concatenate(parts, axis=1))


def _gain_of_a_label(mixtures: Mixtures) -> Array:
    """Return the expected gain of one label of each item, as `hocal.next_labels` counts it."""
    if mixtures.n_classes > MANY_CLASSES and mixtures.n_mixtures == len(mixtures):
        mixtures = _with_likely_classes(mixtures)
    none = np.zeros((len(mixtures), mixtures.n_classes), dtype=np.int64)
    states = pair_with_counts(mixtures.index, none)
    gains = expected_gains(mixtures, states, "distribution", 1, 1).gains[:, 1]
    return np.asarray(gains[states.inverse])


def _with_likely_classes(mixtures: Mixtures) -> Mixtures:
    """Return mixtures over the likely classes of each item, and one for all others."""
    sizes = mixtures.sizes
    if (sizes != sizes[0]).any():
        return mixtures
    shape = (len(mixtures), int(sizes[0]), mixtures.n_classes)
    points = mixtures.points_at(slice(None)).reshape(shape)[mixtures.index]
    likely = np.argpartition(-mixtures.mean(), MANY_CLASSES, axis=1)[:, None, :MANY_CLASSES]
    kept = np.take_along_axis(points, likely, axis=2)
    others = np.maximum(1 - kept.sum(axis=2, keepdims=True), 0.0)
    weights = mixtures.weights.reshape(shape[:2])[mixtures.index]
    return Mixtures.of_members(np.concatenate([kept, others], axis=2), weights)


def _unanimous(counts: Counts) -> Index:
    """Return the number of labels of each item whose labels are all the same, else 0."""
    most = counts.max(axis=1)
    largest = np.reshape(most if isinstance(most, np.ndarray) else most.toarray(), -1)
    totals = label_totals(counts)
    return np.where(largest == totals, totals, 0)


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
    step = max(NUMBERS // calibrator.statistics_.n_classes, 1)
    blocks = [rows[start : start + step] for start in range(0, len(rows), step)]
    parts = [calibrator.decompose(**given(block)) for block in blocks]
    if len(parts) == 1:
        return parts[0]
    columns = {
        name: np.concatenate([part.as_dict()[name] for part in parts])
        for name in parts[0].as_dict()
    }
    return Decomposition(**columns, entropy=parts[0].entropy, kind=parts[0].kind)
