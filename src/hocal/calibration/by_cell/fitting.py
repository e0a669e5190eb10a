"""One mixture per cell from statistics alone: deconvolved, or the paper's histogram."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special
from threadpoolctl import threadpool_limits

from hocal._base.typing import Array, Counts, Index
from hocal._base.validation import check_integer
from hocal.calibration.by_cell.deconvolution import Deconvolution, deconvolve
from hocal.calibration.by_cell.empirical import borrow, empirical_mixtures
from hocal.cells.statistics import CellStatistics, Histogram, order_counts, rank_classes
from hocal.uncertainty.entropy import get_entropy
from hocal.uncertainty.mixtures import Mixtures

__all__ = [
    "CellFit",
    "class_orders",
    "code_length",
    "fit_deconvolved",
    "fit_empirical",
    "label_sums",
    "put_in_order",
    "rank_items",
]


class CellFit(NamedTuple):
    """The mixtures of all cells and how they came about."""

    found: Deconvolution | Mixtures
    source: NDArray[np.str_]  #: (n_cells,) whose items: "cell", "neighbours" or "pool"
    diagnostics: dict[str, Any]  #: how the fit went

    def mixtures(self) -> Mixtures:
        """Return one mixture per cell: of many cells the largest array of a fit."""
        if isinstance(self.found, Mixtures):
            return self.found
        return Mixtures.on_common_points(self.found.atoms, self.found.weights)

    def levels(self) -> Array:
        """Return the aleatoric uncertainty of cells, Brier and Shannon in nats, (n_cells, 2)."""
        measures = [get_entropy(name) for name in ("brier", "shannon")]
        values = [partial(measure.value, check_input=False) for measure in measures]
        if isinstance(self.found, Mixtures):
            return np.column_stack([self.found.expect(value) for value in values])
        return np.column_stack([self.found.expect(value(self.found.atoms)) for value in values])


def fit_deconvolved(statistics: CellStatistics) -> CellFit:
    """Estimate the mixtures behind the labels, over classes in their aligned order."""
    cells, counts, multiplicity = statistics.aligned
    # Threads on matrices this small cost more than they bring.
    with threadpool_limits(1, user_api="blas"):
        fit = deconvolve(
            counts,
            cells,
            multiplicity,
            group=statistics.layout.group,
            level=statistics.layout.level,
            mean_prediction=statistics.mean_prediction,
        )
    diagnostics = {"scales": fit.scales, "gap": fit.gap, "n_iterations": fit.n_iterations}
    return CellFit(fit, fit.source, diagnostics)


def fit_empirical(
    statistics: CellStatistics, k: int | None, thinning: Any, random_state: Any
) -> CellFit:
    """Take the histogram of the k-snapshots of each cell, or of a cell nearby."""
    smallest = statistics.smallest_total
    if k is None:
        size = smallest
    else:
        why = "It is the smallest number of labels of an item."
        size = check_integer(k, "k", minimum=1, maximum=smallest, why=why)
    source = borrow(statistics.n_items > 0, statistics.layout)
    mixtures = empirical_mixtures(
        statistics.observed, source, size, thinning=thinning, random_state=random_state
    )
    return CellFit(mixtures, _source_names(source), {"k": size})


def class_orders(statistics: CellStatistics) -> Index:
    """Return for each cell its classes from the most to the least frequent label, or -1.

    Mixtures over ranks forget which class is which. Where a model mistakes one class for another,
    the label frequencies of a cell order its classes better than the items' predictions do. A cell
    uses its own order (a row of classes) if its labels are more certain by class than by rank, by
    more than a nat for each class that occurs; otherwise each item keeps the order of its
    prediction, and the row is -1.
    """
    by_class = label_sums(statistics.observed, statistics.n_cells)
    by_rank = label_sums(statistics.aligned, statistics.n_cells)
    saved = code_length(by_rank) - code_length(by_class)
    n_used = (by_class > 0).sum(axis=1)
    orders = np.argsort(-by_class, axis=1, kind="stable")
    return np.where((saved > n_used)[:, None], orders, -1)


def put_in_order(statistics: CellStatistics, orders: Index) -> CellStatistics:
    """Return the statistics with the aligned labels of some cells in the cells' own class order."""
    own = orders[:, 0] >= 0
    if not own.any():
        return statistics
    observed = statistics.observed
    aligned = statistics.aligned
    chosen = np.flatnonzero(own[observed.cells])
    others = np.flatnonzero(~own[aligned.cells])
    cells = observed.cells[chosen]
    counts = order_counts(observed.counts[chosen], lambda rows: orders[cells[rows]])
    histogram = Histogram.of(
        np.concatenate([cells, aligned.cells[others]]),
        _stack(counts, aligned.counts[others]),
        np.concatenate([observed.multiplicity[chosen], aligned.multiplicity[others]]),
    )
    return replace(statistics, aligned=histogram)


def _stack(first: Counts, second: Counts) -> Counts:
    """Put rows below each other; both are dense or both are sparse."""
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second])
    return sparse.vstack([first, second], format="csr")


def rank_items(probabilities: Array, cells: Index, orders: Index) -> Index:
    """Return the class of each rank for each item: its prediction's order, or its cell's own."""
    ranking = rank_classes(probabilities)
    own = orders[cells, 0] >= 0
    ranking[own] = orders[cells[own]]
    return ranking


def code_length(sums: Array) -> Array:
    """Return n times the entropy of the frequencies of each row of label sums, in nats."""
    total = sums.sum(axis=1)
    return np.asarray(special.xlogy(total, total) - special.xlogy(sums, sums).sum(axis=1))


def label_sums(histogram: Histogram, n_cells: int) -> Array:
    """Return the labels of each cell by column of the histogram, (n_cells, n_classes)."""
    n_rows = len(histogram.cells)
    membership = sparse.csr_array(
        (histogram.multiplicity.astype(np.float64), histogram.cells, np.arange(n_rows + 1)),
        shape=(n_rows, n_cells),
    )
    sums = membership.T @ histogram.counts
    return np.asarray(sums if isinstance(sums, np.ndarray) else sums.toarray())


def _source_names(source: Index) -> NDArray[np.str_]:
    own = source == np.arange(len(source))
    return np.where(own, "cell", np.where(source < 0, "pool", "neighbours"))
