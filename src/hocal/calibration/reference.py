"""What calibration items were like: to see later whether new ones still are.

Residuals of labels, each item predicted without its own labels, tell what a calibrated prediction
may be off by; summaries of predictions and features need no labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hocal._base.errors import InputError
from hocal._base.saved_arrays import SavedArrays
from hocal._base.typing import Array, Counts, Index
from hocal._base.validation import label_totals
from hocal.calibration.inputs import GivenItems, InputShape
from hocal.guarantees.shift_evidence import (
    LARGEST,
    N_MEANS,
    Means,
    learn_means_of,
    split_by_owner,
)
from hocal.uncertainty.entropy import get_entropy
from hocal.uncertainty.moments import pair_shares

__all__ = [
    "Expected",
    "Reference",
    "Residuals",
    "learn_reference",
    "reference_means",
    "residuals",
    "summarise",
    "summary_names",
    "thinned",
]

MAX_ITEMS = 20_000  # whose residuals are compared: limits on a mean get no better that matters
MAX_SUMMARIES = 2_000  # items that stand for all: shares are known to a hundredth
# Features of one half of the items are measured on the scale of the other, as new ones will be.
# Items come in the order of their fingerprints.
EVEN, ODD = slice(0, None, 2), slice(1, None, 2)
SUMMARIES = ("top class", "top probability", "entropy", "aleatoric", "epistemic")
SPREAD, DISTANCE = "spread of members", "distance of features"


class Expected(NamedTuple):
    """What a calibrator expects of the labels of items."""

    cells: Index  #: (n_items,)
    mean: Array  #: (n_items, n_classes) how labels should be distributed
    disagreement: Array  #: (n_items,) how often two people should disagree

    def rows(self, chosen: Index | slice) -> Expected:
        """Return what is expected of some of the items."""
        return Expected(self.cells[chosen], self.mean[chosen], self.disagreement[chosen])


class Residuals(NamedTuple):
    """By how much labels differ from what was expected of them, each in [-1, 1]."""

    disagreement: Array  #: (n_items,) of pairs of labels; NaN for an item with one label
    top: Array  #: (n_items,) share of labels for the class that was expected most
    classes: Array  #: (n_items, n_classes) share of labels for each class

    def rows(self, chosen: Index | slice) -> Residuals:
        """Return those of some of the items."""
        return Residuals(self.disagreement[chosen], self.top[chosen], self.classes[chosen])


class Reference(NamedTuple):
    """Calibration items, in few numbers.

    Rows of `means` are, in this order: disagreement, the top class and each class, over all items;
    then disagreement and the top class of each cell.
    """

    means: Means
    summaries: Array  #: (n_summarised, n_summaries), each column sorted
    feature_centre: Array  #: (n_features,)
    feature_spread: Array  #: (n_features,)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays by name, for saving; rows without values are left out."""
        filled = np.flatnonzero(self.means.n_values)
        means = {name: array[filled] for name, array in self.means._asdict().items()}
        others = {name: getattr(self, name) for name in self._fields[1:]}
        return {"n_rows": np.array(len(self.means.n_values)), "rows": filled} | means | others

    @classmethod
    def from_arrays(cls, saved: SavedArrays, shape: InputShape, n_cells: int) -> Reference:
        """Return what was saved, about items of this shape in so many cells."""
        n_rows = shape.n_classes + 2 + 2 * n_cells
        saved.take("n_rows", dtypes="i8", least=n_rows, most=n_rows)
        rows = saved.take("rows", -1, dtypes="i8", least=0, most=n_rows - 1)
        if (np.diff(rows) <= 0).any():
            raise InputError("reference.rows", "must rise")
        empty = np.zeros((n_rows, 2, N_MEANS))
        means = Means(np.zeros(n_rows, dtype=np.int64), np.zeros(n_rows), empty, empty.copy())
        means.n_values[rows] = saved.take("n_values", len(rows), dtypes="i8", least=1)
        means.centre[rows] = saved.take("centre", len(rows), size=1.0)
        means.candidates[rows] = saved.take("candidates", len(rows), 2, N_MEANS, size=LARGEST)
        means.log_doubt[rows] = saved.take("log_doubt", len(rows), 2, N_MEANS)
        summaries = saved.take("summaries", -1, len(summary_names(*shape[::2])))
        if (np.diff(summaries, axis=0) < 0).any():
            raise InputError("reference.summaries", "must rise in each column")
        centre = saved.take("feature_centre", shape.n_features)
        spread = saved.take("feature_spread", shape.n_features, least=np.finfo(float).tiny)
        return cls(means, summaries, centre, spread)


def residuals(expected: Expected, labels: Counts) -> Residuals:
    """Return by how much labels differ from what was expected."""
    totals = label_totals(labels)
    dense = labels if isinstance(labels, np.ndarray) else labels.toarray()
    classes = dense / totals[:, None]
    del dense
    classes -= expected.mean
    top = expected.mean.argmax(axis=1)
    disagreement = pair_shares(labels) - expected.disagreement
    return Residuals(disagreement, classes[np.arange(len(top)), top], classes)


def reference_means(labels: Counts, without_own: Expected, n_cells: int) -> Means:
    """Return by how much labels of calibration items differ from what is expected.

    Parameters
    ----------
    labels
        Of the items.
    without_own : Expected
        What is expected of each item when its own labels are not known.
    n_cells : int
        Number of cells of the partition.
    """
    cells = without_own.cells
    disagreement = pair_shares(labels) - without_own.disagreement
    several = ~np.isnan(disagreement)
    top = _top_residuals(without_own, labels)
    values = np.concatenate([disagreement[several], top])
    owners = np.concatenate([2 * cells[several], 2 * cells + 1])
    of_cells = split_by_owner(values, owners, 2 * n_cells)
    classes = _class_residuals(without_own, labels)
    columns = chain([disagreement[several], top], classes, of_cells)
    return learn_means_of(columns, 2 + without_own.mean.shape[1] + len(of_cells))


def _top_residuals(expected: Expected, labels: Counts) -> Array:
    """Return by how much the class that was expected most has another share of the labels."""
    top = expected.mean.argmax(axis=1)
    rows = np.arange(len(top))
    named = np.asarray(labels[rows, top]).reshape(-1)
    return np.asarray(named / label_totals(labels) - expected.mean[rows, top])


def _class_residuals(expected: Expected, labels: Counts) -> Iterator[Array]:
    """Yield by how much labels differ from what was expected, class by class."""
    totals = label_totals(labels)
    by_class = labels if isinstance(labels, np.ndarray) else sparse.csc_array(labels)
    for place in range(labels.shape[1]):
        column = by_class[:, [place]]
        dense = column if isinstance(column, np.ndarray) else column.toarray()
        yield dense[:, 0] / totals - expected.mean[:, place]


def learn_reference(given: GivenItems, means: Means, final: Expected) -> Reference:
    """Return what calibration items are like.

    Parameters
    ----------
    given
        The items.
    means : Means
        By how much their labels differ from what is expected.
    final : Expected
        What the fitted calibrator expects.
    """
    centre, spread = _scale(None if given.features is None else given.features[EVEN])
    odd = np.arange(len(given))[ODD]
    some = odd[:: max(-(-len(odd) // MAX_SUMMARIES), 1)]
    summaries = summarise(given.rows(some), final.rows(some), centre, spread)
    return Reference(means, np.sort(summaries, axis=0), centre, spread)


def summarise(given: GivenItems, expected: Expected, centre: Array, spread: Array) -> Array:
    """Return one row per item with what predictions and features look like, no label needed."""
    shannon = get_entropy("shannon")
    predictive = get_entropy("brier").value(expected.mean, check_input=False)
    mean = given.mean
    columns = [
        mean.argmax(axis=1),
        mean.max(axis=1),
        shannon.value(mean, check_input=False),
        expected.disagreement,
        predictive - expected.disagreement,
    ]
    if given.members.shape[1] > 1:
        within = shannon.value(given.members, check_input=False).mean(axis=1)
        columns.append(columns[2] - within)
    if given.features is not None:
        columns.append((((given.features - centre) / spread) ** 2).mean(axis=1))
    return np.column_stack(columns)


def summary_names(n_members: int, n_features: int) -> tuple[str, ...]:
    """Return what the columns of `summarise` are."""
    return SUMMARIES + (SPREAD,) * (n_members > 1) + (DISTANCE,) * (n_features > 0)


def thinned(given: GivenItems) -> Index:
    """Return rows few enough for residuals, in an order that depends on what they hold alone.

    Tables often have a pattern, such as each text once for each question: every second row is then
    another kind of item.
    """
    order = np.argsort(given.fingerprints(), kind="stable")
    return np.asarray(order[:MAX_ITEMS])


def _scale(features: Array | None) -> tuple[Array, Array]:
    """Return the centre and the spread of each feature; a constant one has spread 1."""
    if features is None:
        return np.empty(0), np.empty(0)
    spread = features.std(axis=0)
    return features.mean(axis=0), np.where(spread > 0, spread, 1.0)
