"""Cell statistics: per-cell histograms of count vectors, all that a fit needs of the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from hocal._base.errors import InputError
from hocal._base.typing import Array, Counts, Index, IntArray
from hocal._base.validation import (
    check_cells,
    check_counts,
    check_kind,
    check_same_length,
    check_simplex,
    label_totals,
)
from hocal.cells.protocol import CellLayout
from hocal.uncertainty.distinct_counts import distinct_rows

__all__ = [
    "CellStatistics",
    "Histogram",
    "align_counts",
    "item_blocks",
    "order_counts",
    "rank_classes",
    "sum_predictions",
]

_UNIT = 2.0**32  # a prediction is summed in units of 2**-32
# numbers sorted at a time, 8 MB; also the most items, whose units add up to less than 2**53
_BLOCK = 1 << 20
_CODE_LIMIT = 1 << 62  # codes of rows must fit int64, with a bit to spare for sums


class Histogram(NamedTuple):
    """How often each count vector occurs in each cell; rows are distinct and sorted."""

    cells: Index  #: (n_rows,)
    counts: Counts  #: (n_rows, n_classes), dense or CSR
    multiplicity: IntArray  #: (n_rows,)

    @classmethod
    def of(
        cls, cells: NDArray[Any], counts: Counts, multiplicity: IntArray | None = None
    ) -> Histogram:
        """Count equal rows; the order and the grouping of the input do not matter."""
        if multiplicity is None and isinstance(counts, np.ndarray):
            spans = (counts.max(axis=0) + 1).tolist()
            if math.prod(spans) * (int(cells.max()) + 1) < _CODE_LIMIT:
                return cls(*_count_codes(cells, counts, spans))
        packed = distinct_rows(_sortable_rows(cells, counts))
        first = np.unique(packed.inverse, return_index=True)[1]
        # exact up to 2**53 items
        weight = None if multiplicity is None else multiplicity.astype(np.float64)
        total = np.bincount(packed.inverse, weight).astype(np.int64)
        return cls(cells[first].astype(np.intp), counts[first], total)

    def __add__(self, other: Histogram) -> Histogram:  # type: ignore[override]
        """Merge two histograms."""
        parts = [self.counts, other.counts]
        either_sparse = any(sparse.issparse(part) for part in parts)
        counts = sparse.vstack(parts, format="csr") if either_sparse else np.concatenate(parts)
        return Histogram.of(
            np.concatenate([self.cells, other.cells]),
            counts,
            np.concatenate([self.multiplicity, other.multiplicity]),
        )

    @property
    def totals(self) -> IntArray:
        """Number of labels of each row."""
        return label_totals(self.counts)


@dataclass(frozen=True, eq=False, repr=False)
class CellStatistics:
    """Histograms of the labels in each cell; ``+`` merges, however the data were divided.

    Attributes
    ----------
    observed : Histogram
        Count vectors in class order.
    aligned : Histogram
        Count vectors with each item's classes in order of falling predicted probability, so that
        "second choice" means the same in every cell.
    predicted : ndarray of shape (n_cells, n_classes)
        Sum over the items of their predictions in falling order, in units of 2**-32: integers, so
        that a sum does not depend on the order of its terms.
    layout : CellLayout
        How the cells lie to each other; its length is the number of cells.

    Examples
    --------
    >>> import hocal
    >>> partition = hocal.TopLabelPartition(n_slices=2).fit([[0.5, 0.5]])
    >>> p, counts = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], [[2, 0], [2, 0], [1, 1]]
    >>> hocal.CellStatistics.from_items(p, counts, partition.assign(p), partition.layout_)
    CellStatistics(3 items, 6 labels, 2 of 4 cells filled, 2 classes)
    """

    observed: Histogram
    aligned: Histogram
    predicted: IntArray
    layout: CellLayout

    @classmethod
    def from_items(
        cls, probabilities: ArrayLike, counts: Any, cells: ArrayLike, layout: CellLayout
    ) -> CellStatistics:
        """Build the statistics of items held in memory.

        Parameters
        ----------
        probabilities : array of shape (n_items, n_classes)
            Predictions, for the order of the classes.
        counts : array or sparse matrix of shape (n_items, n_classes)
            Labels, at least one per item.
        cells : array of shape (n_items,)
            Cell of each item.
        layout : CellLayout
            Layout of the partition.

        Returns
        -------
        CellStatistics
            Both histograms.
        """
        check_kind(layout, "layout", CellLayout, remedy="Pass the layout_ of a partition.")
        p = check_simplex(probabilities, ndim=2)
        checked = check_counts(counts, n_classes=p.shape[1])
        check_same_length(p, checked, ("probabilities", "counts"))
        where = check_cells(cells, len(p), n_cells=len(layout.group))
        return cls.from_checked(p, checked, where, layout)

    @classmethod
    def from_checked(
        cls, p: Array, counts: Counts, cells: Index, layout: CellLayout
    ) -> CellStatistics:
        """Do as `from_items` does, for arrays that have been checked."""
        observed = Histogram.of(cells, counts)
        aligned = Histogram.of(cells, align_counts(p, counts))
        predicted = sum_predictions(p, cells, len(layout.group))
        return cls(observed, aligned, predicted, layout)

    def __add__(self, other: CellStatistics) -> CellStatistics:
        same_layout = all(map(np.array_equal, self.layout, other.layout))
        if self.n_classes != other.n_classes or not same_layout:
            rule = "must come from the same partition with the same classes"
            raise InputError("other", rule, remedy="Fit it once, use it twice.")
        return CellStatistics(
            self.observed + other.observed,
            self.aligned + other.aligned,
            self.predicted + other.predicted,
            self.layout,
        )

    def __repr__(self) -> str:
        n_labels = self.observed.totals @ self.observed.multiplicity
        n_filled = int((self.n_items > 0).sum())
        return (
            f"CellStatistics({self.n_items.sum()} items, {n_labels} labels, "
            f"{n_filled} of {self.n_cells} cells filled, {self.n_classes} classes)"
        )

    @property
    def n_cells(self) -> int:
        """Number of cells, empty ones included."""
        return len(self.layout.group)

    @property
    def n_classes(self) -> int:
        """Number of label classes."""
        return int(self.observed.counts.shape[1])

    @property
    def n_items(self) -> IntArray:
        """Number of items in each cell."""
        return self._per_cell(self.observed.multiplicity)

    @property
    def n_labels(self) -> IntArray:
        """Number of labels in each cell."""
        return self._per_cell(self.observed.multiplicity * self.observed.totals)

    @property
    def smallest_total(self) -> int:
        """Fewest labels of any item."""
        return int(self.observed.totals.min())

    @property
    def mean_prediction(self) -> Array:
        """Mean prediction of each cell, in falling order, (n_cells, n_classes); NaN if empty."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.predicted / _UNIT / self.n_items[:, None])

    def _per_cell(self, values: IntArray) -> IntArray:
        weights = values.astype(np.float64)
        sums = np.bincount(self.observed.cells, weights, minlength=self.n_cells)
        return sums.astype(np.int64)


def rank_classes(probabilities: Array) -> Index:
    """Return each item's classes in order of falling probability; ties keep the class order.

    Parameters
    ----------
    probabilities : array of shape (n_items, n_classes)
        Predictions.

    Returns
    -------
    ndarray of shape (n_items, n_classes)
        Column r holds the class of rank r.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.cells.statistics import rank_classes
    >>> rank_classes(np.array([[0.2, 0.5, 0.3]])).tolist()
    [[1, 2, 0]]
    """
    return np.argsort(-probabilities, axis=1, kind="stable")


def align_counts(probabilities: Array, counts: Counts) -> Counts:
    """Return counts with each item's classes in order of falling predicted probability.

    Parameters
    ----------
    probabilities : array of shape (n_items, n_classes)
        Predictions.
    counts : array or CSR matrix of shape (n_items, n_classes)
        Labels.

    Returns
    -------
    array or CSR matrix of shape (n_items, n_classes)
        Column r counts the labels for the class of rank r.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.cells.statistics import align_counts
    >>> align_counts(np.array([[0.2, 0.5, 0.3]]), np.array([[1, 2, 0]])).tolist()
    [[2, 0, 1]]
    """
    return order_counts(counts, lambda rows: rank_classes(probabilities[rows]))


def order_counts(counts: Counts, ranking: Callable[[slice], Index]) -> Counts:
    """Return counts with the classes of each item in an order of its own.

    Parameters
    ----------
    counts : array or CSR matrix of shape (n_items, n_classes)
        Labels.
    ranking : callable
        Returns for a slice of the items which class comes first, second and so on,
        (n_rows, n_classes).
    """
    if isinstance(counts, np.ndarray):
        ordered = np.empty_like(counts)
        for block in item_blocks(counts.shape):
            ordered[block] = np.take_along_axis(counts[block], ranking(block), axis=1)
        return ordered
    # Only labelled classes need a place.
    places = np.empty(counts.nnz, dtype=np.int64)
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    for block in item_blocks(counts.shape):
        order = ranking(block)
        place = np.empty_like(order)
        np.put_along_axis(place, order, np.arange(order.shape[1])[None], axis=1)
        entries = slice(counts.indptr[block.start], counts.indptr[block.stop])
        places[entries] = place[rows[entries] - block.start, counts.indices[entries]]
    return sparse.csr_array((counts.data, (rows, places)), shape=counts.shape)


def item_blocks(shape: tuple[int, ...], fewest: int = 1) -> Iterator[slice]:
    """Yield slices of items to sort at a time, so that no temporary is as large as the input."""
    n_items, n_classes = shape
    step = min(max(_BLOCK // n_classes, fewest), _BLOCK)
    return (slice(start, min(start + step, n_items)) for start in range(0, n_items, step))


def sum_predictions(probabilities: Array, cells: Index, n_cells: int) -> IntArray:
    """Sum predictions in falling order over each cell, in fixed-point arithmetic."""
    total = np.zeros((n_cells, probabilities.shape[1]), dtype=np.int64)
    # Each block costs a pass over the cells, so it has at least as many items.
    for block in item_blocks(probabilities.shape, fewest=n_cells):
        falling = -np.sort(-probabilities[block], axis=1)
        units = np.floor(falling * _UNIT)
        n_items = len(units)
        membership = sparse.csr_array(
            (np.ones(n_items), cells[block], np.arange(n_items + 1)), shape=(n_items, n_cells)
        )
        # A float sum of integers, exact below 2**53.
        total += (membership.T @ units).astype(np.int64)
    return total


def _count_codes(
    cells: NDArray[Any], counts: IntArray, spans: Sequence[int]
) -> tuple[Index, IntArray, IntArray]:
    """Count equal rows by integers that order like (cell, *row), with the row as digits."""
    values_of_digits = [math.prod(spans[j + 1 :]) for j in range(len(spans))]
    places = np.array(values_of_digits, dtype=np.int64)
    n_rows = math.prod(spans)  # possible in one cell
    codes, multiplicity = np.unique(counts @ places + cells * n_rows, return_counts=True)
    rows = codes[:, None] // places % np.array(spans)
    return (codes // n_rows).astype(np.intp), rows, multiplicity.astype(np.int64)


def _sortable_rows(cells: NDArray[Any], counts: Counts) -> IntArray:
    """Return integers that order like (cell, *row), as many as the longest row needs."""
    if isinstance(counts, np.ndarray):
        return np.column_stack([cells, counts])
    labels = counts.sorted_indices()
    n_rows, n_classes = labels.shape
    lengths = np.diff(labels.indptr)
    row = np.repeat(np.arange(n_rows), lengths)
    place = np.arange(labels.nnz) - np.repeat(labels.indptr[:-1], lengths)
    entries = np.zeros((n_rows, int(lengths.max(initial=0)), 2), dtype=np.int64)
    # Of two rows the one whose first label is of a later class comes first.
    entries[row, place, 0] = n_classes - labels.indices
    entries[row, place, 1] = labels.data
    return np.column_stack([cells, entries.reshape(n_rows, -1)])
