"""What items' own labels add to their predictions: votes, what is left open, a label's worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hocal.cli.engines import ReadTable
from hocal.cli.items import LabelOptions, count_items, find_items, find_rows
from hocal.cli.predictions import GivenRows, Probabilities
from hocal.cli.side_tables import as_text

if TYPE_CHECKING:
    from hocal import Mixtures, SnapshotCalibrator
    from hocal._base.typing import Array, IntArray

__all__ = ["OWN_COLUMNS", "OwnLabels", "check_objective", "describe_own"]

# items whose mixtures are made at once: some hundred atoms each, tens of MB for ten classes
ROWS = 1_000
QUANTITIES = ("aleatoric", "epistemic", "predictive")
NUMBERS = (
    *(f"{name}_with_labels" for name in QUANTITIES),
    "aleatoric_lower",
    "aleatoric_upper",
    "gain_of_a_label",
)
OWN_COLUMNS = ("n_labels", "votes", *NUMBERS)


class OwnLabels(NamedTuple):
    """Labels by item, in memory."""

    items: Any  #: Arrow array of text
    counts: Any  #: (n_items, n_classes), dense or sparse
    classes: Sequence[str]

    @classmethod
    def read(
        cls,
        read: ReadTable,
        path: str,
        choices: LabelOptions,
        predictions: Probabilities,
        classes: Sequence[str],
    ) -> OwnLabels:
        """Count the labels of predicted items; a rule says whether others may be left out."""
        import pyarrow as pa

        table, _ = choices.open(read, path, predictions)
        counted = count_items(table, choices, item=predictions.item, classes=classes)
        items = as_text(pa.array(counted.items.tolist()))
        row_of = find_rows(as_text(predictions.all_items()).to_pylist())
        find_items(items.to_pylist(), row_of, choices.rules["unpredicted"])
        return cls(items, counted.counts, classes)

    def take(self, items: Any) -> IntArray:
        """Return the labels of some items, (n_rows, n_classes), zeros for those without any."""
        import numpy as np
        import pyarrow.compute as pc

        place = pc.index_in(as_text(items), value_set=self.items)
        known = place.is_valid().to_numpy(zero_copy_only=False)
        rows = place.drop_null().to_numpy()
        found = np.zeros((len(items), len(self.classes)), dtype=np.int64)
        chosen = self.counts[rows]
        found[known] = chosen if isinstance(chosen, np.ndarray) else chosen.toarray()
        return found


def check_objective(objective: str) -> None:
    """Refuse what one more label cannot be for."""
    from hocal._base.validation import check_choice
    from hocal.decisions.label_gains import OBJECTIVES

    check_choice(objective, "objective", OBJECTIVES)


def describe_own(
    calibrator: SnapshotCalibrator,
    own: OwnLabels,
    items: Any,
    given: GivenRows,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Return columns with what is known about items with their own labels, as Arrow arrays."""
    import numpy as np
    import pyarrow as pa

    counts = own.take(items)
    blocks = [
        _numbers(calibrator, given.rows(rows), counts[rows], settings)
        for rows in (slice(start, start + ROWS) for start in range(0, len(counts), ROWS))
    ]
    numbers = np.hstack(blocks) if blocks else np.empty((len(NUMBERS), 0))
    columns = [
        pa.array(counts.sum(axis=1)),
        pa.array(_votes(counts, own.classes), pa.string()),
        *(pa.array(values + 0.0) for values in numbers),
    ]
    return dict(zip(OWN_COLUMNS, columns, strict=True))


def _numbers(
    calibrator: SnapshotCalibrator, given: GivenRows, counts: IntArray, settings: Mapping[str, Any]
) -> Array:
    """Return what is left with labels, the limits and the gain of one more, (6, n_items)."""
    import numpy as np

    from hocal.uncertainty.credible_limits import credible_limits

    entropy = settings["entropy"]
    p, beside = given.probabilities, given.beside
    parts = calibrator.decompose(p, entropy, counts=counts, **beside).as_dict()
    mixtures = calibrator.predict_mixture(p, counts=counts, **beside)
    limits = credible_limits(mixtures, settings["confidence"], entropy)
    gain = _gain(mixtures, settings["objective"])
    return np.stack([*(parts[name] for name in QUANTITIES), *limits, gain])


def _gain(mixtures: Mixtures, objective: str) -> Array:
    """Return by how much one more label is expected to lower the error of each item."""
    import numpy as np

    from hocal.decisions.label_gains import exact_labels, expected_gains
    from hocal.uncertainty.likelihood import pair_with_counts

    nothing_more = np.zeros((len(mixtures), mixtures.n_classes), dtype=np.int64)
    states = pair_with_counts(mixtures.index, nothing_more)
    n_exact = exact_labels(mixtures, len(states.mixture), objective, 1)
    found = expected_gains(mixtures, states, objective, 1, n_exact)
    gain: Array = found.gains[states.inverse, 1]
    return gain


def _votes(counts: IntArray, classes: Sequence[str]) -> list[str]:
    """Say in words what people voted for, the most frequent first; "" for an item without labels.

    Equal rows are put into words once.
    """
    import numpy as np

    distinct, inverse = np.unique(counts, axis=0, return_inverse=True)
    order = np.argsort(-distinct, axis=1, kind="stable")
    words = [
        ", ".join(f"{row[j]} x {classes[j]}" for j in ranked if row[j])
        for row, ranked in zip(distinct.tolist(), order.tolist(), strict=True)
    ]
    return np.array(words, dtype=object)[inverse.reshape(-1)].tolist() if len(counts) else []
