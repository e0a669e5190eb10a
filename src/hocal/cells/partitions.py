"""Partitions: sort items into cells by what a model predicts for them, never by their labels.

A partition has ``fit(probabilities)``, ``assign(probabilities)`` and, after fitting, ``n_cells_``
and ``layout_``. Guarantees hold for partitions that were fixed without the calibration labels; a
partition here only ever sees predictions.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from hocal._base.typing import Array, Index
from hocal._base.validation import check_cells, check_integer, check_simplex

__all__ = [
    "CallablePartition",
    "CellLayout",
    "KMeansPartition",
    "LevelSetPartition",
    "Partition",
    "PrecomputedPartition",
    "QuantilePartition",
    "TopLabelPartition",
    "UniformPartition",
    "as_partition",
]


class CellLayout(NamedTuple):
    """How the cells of a partition lie to each other, for borrowing strength between them."""

    #: (n_cells,) cells of one group form a line; for top-label partitions, the top label
    group: Index
    level: Index  #: (n_cells,) place on that line; cells of one level in all groups are alike


class Partition(BaseEstimator):
    """Base of the partitions: validates, remembers the number of classes, and delegates."""

    n_classes_: int
    n_cells_: int
    layout_: CellLayout

    def fit(self, probabilities: ArrayLike) -> Self:
        """Learn the cells from predictions of shape (n_items, n_classes); labels are never seen."""
        p = check_simplex(probabilities, ndim=2)
        self.n_classes_ = p.shape[1]
        self.n_cells_, self.layout_ = self._learn(p)
        return self

    def assign(self, probabilities: ArrayLike, cells: ArrayLike | None = None) -> Index:
        """Return the cell number of each item, from 0 to n_cells_ - 1; `cells` is for PrecomputedPartition."""
        check_is_fitted(self, "n_cells_")
        if cells is not None:
            raise ValueError(
                f"`cells` must be left out with a {type(self).__name__}, which computes them."
            )
        return self._locate(check_simplex(probabilities, ndim=2, n_classes=self.n_classes_)).astype(
            np.intp, copy=False
        )

    @abstractmethod
    def _learn(self, p: Array) -> tuple[int, CellLayout]: ...

    @abstractmethod
    def _locate(self, p: Array) -> Index: ...


class TopLabelPartition(Partition):
    """Cells by the most likely class and the slice of [0, 1] its probability falls in.

    Cell ``top * n_slices + slice``; a probability of exactly 1 belongs to the last slice, a tie for
    the top goes to the first class. Slices below 1 / n_classes stay empty.

    Parameters
    ----------
    n_slices : int, default=10
        Equal slices of the top probability.

    Examples
    --------
    >>> import hocal
    >>> partition = hocal.TopLabelPartition(n_slices=10).fit([[0.5, 0.5]])
    >>> partition.assign([[0.3, 0.7], [1.0, 0.0]]).tolist()
    [17, 9]
    """

    def __init__(self, n_slices: int = 10) -> None:
        self.n_slices = n_slices

    def _learn(self, p: Array) -> tuple[int, CellLayout]:
        n_slices = check_integer(self.n_slices, "n_slices", minimum=1)
        return p.shape[1] * n_slices, _grid_layout(p.shape[1], n_slices)

    def _locate(self, p: Array) -> Index:
        top, confidence = _top(p)
        return np.asarray(top * self.n_slices + _slice(confidence, self.n_slices))


class UniformPartition(Partition):
    """Cells by equal bins of the probability of the second class; for two classes.

    Parameters
    ----------
    n_bins : int, default=10
        Equal bins of [0, 1]; 1 belongs to the last.

    Examples
    --------
    >>> import hocal
    >>> hocal.UniformPartition(n_bins=4).fit([[0.5, 0.5]]).assign([[0.9, 0.1], [0.0, 1.0]]).tolist()
    [0, 3]
    """

    def __init__(self, n_bins: int = 10) -> None:
        self.n_bins = n_bins

    def _learn(self, p: Array) -> tuple[int, CellLayout]:
        if p.shape[1] != 2:
            raise ValueError(
                f"`probabilities` must have two classes for a UniformPartition, got {p.shape[1]}. "
                "Use TopLabelPartition for more."
            )
        n_bins = check_integer(self.n_bins, "n_bins", minimum=1)
        return n_bins, _grid_layout(1, n_bins)

    def _locate(self, p: Array) -> Index:
        return _slice(p[:, 1], self.n_bins)


class QuantilePartition(Partition):
    """Cells by the most likely class and equally filled slices of its probability.

    Parameters
    ----------
    n_slices : int, default=10
        Slices for each top label; their edges are quantiles of the predictions given to `fit`.

    Examples
    --------
    >>> import hocal
    >>> p = [[0.6, 0.4], [0.7, 0.3], [0.8, 0.2], [0.9, 0.1]]
    >>> hocal.QuantilePartition(n_slices=2).fit(p).assign(p).tolist()
    [0, 0, 1, 1]
    """

    def __init__(self, n_slices: int = 10) -> None:
        self.n_slices = n_slices

    def _learn(self, p: Array) -> tuple[int, CellLayout]:
        n_slices = check_integer(self.n_slices, "n_slices", minimum=1)
        ranks = np.arange(1, n_slices) / n_slices
        top, confidence = _top(p)
        # A class that is never on top gets the edges of all items.
        chosen = [
            confidence[top == j] if (top == j).any() else confidence for j in range(p.shape[1])
        ]
        self.edges_ = np.stack(
            [np.quantile(values, ranks) for values in chosen]
        )  # (n_classes, n_slices - 1)
        return p.shape[1] * n_slices, _grid_layout(p.shape[1], n_slices)

    def _locate(self, p: Array) -> Index:
        top, confidence = _top(p)
        return np.asarray(
            top * self.n_slices + (self.edges_[top] < confidence[:, None]).sum(axis=1)
        )


class LevelSetPartition(Partition):
    """Cells of equal predictions after rounding, the level sets of the model.

    Parameters
    ----------
    decimals : int, default=1
        Decimals to round to. Predictions unlike any seen in `fit` go to the nearest level set (l1).

    Examples
    --------
    >>> import hocal
    >>> partition = hocal.LevelSetPartition().fit([[0.52, 0.48], [0.91, 0.09], [0.49, 0.51]])
    >>> partition.n_cells_, partition.assign([[0.54, 0.46], [0.1, 0.9]]).tolist()
    (2, [0, 0])
    """

    def __init__(self, decimals: int = 1) -> None:
        self.decimals = decimals

    def _learn(self, p: Array) -> tuple[int, CellLayout]:
        decimals = check_integer(self.decimals, "decimals", minimum=0, maximum=8)
        self.levels_ = np.unique(np.round(p, decimals) + 0.0, axis=0)
        return len(self.levels_), _unordered_layout(len(self.levels_))

    def _locate(self, p: Array) -> Index:
        return _nearest(np.round(p, self.decimals), self.levels_, norm=1)


class KMeansPartition(Partition):
    """Cells around centres found by k-means on the simplex.

    Parameters
    ----------
    n_cells : int, default=50
        Number of centres, fewer if there are fewer distinct predictions.
    random_state : int, default=0
        Seed of the search.

    Examples
    --------
    >>> import hocal
    >>> p = [[0.9, 0.1], [0.88, 0.12], [0.1, 0.9]]
    >>> cells = hocal.KMeansPartition(n_cells=2).fit(p).assign(p)
    >>> bool(cells[0] == cells[1] != cells[2])
    True
    """

    def __init__(self, n_cells: int = 50, random_state: int | None = 0) -> None:
        self.n_cells = n_cells
        self.random_state = random_state

    def _learn(self, p: Array) -> tuple[int, CellLayout]:
        from sklearn.cluster import KMeans  # slow to import

        distinct = len(np.unique(p[:100_000], axis=0))
        n_cells = min(check_integer(self.n_cells, "n_cells", minimum=1), distinct)
        self.centres_ = (
            KMeans(n_cells, n_init=1, random_state=self.random_state).fit(p).cluster_centers_
        )
        return n_cells, _unordered_layout(n_cells)

    def _locate(self, p: Array) -> Index:
        return _nearest(p, self.centres_, norm=2)


class CallablePartition(Partition):
    """Cells computed by a function of the predictions.

    Parameters
    ----------
    function : callable
        Maps (n_items, n_classes) predictions to (n_items,) cell numbers from 0.
    n_cells : int, optional
        Number of cells; by default one more than the largest number seen in `fit`.

    Examples
    --------
    >>> from hocal.cells.partitions import CallablePartition
    >>> CallablePartition(lambda p: p[:, 0] > 0.5).fit([[0.2, 0.8], [0.9, 0.1]]).n_cells_
    2
    """

    def __init__(self, function: Callable[[Array], ArrayLike], n_cells: int | None = None) -> None:
        self.function = function
        self.n_cells = n_cells

    def _learn(self, p: Array) -> tuple[int, CellLayout]:
        cells = check_cells(
            self.function(p), len(p), n_cells=self.n_cells, name="partition(probabilities)"
        )
        n_cells = int(cells.max()) + 1 if self.n_cells is None else self.n_cells
        return n_cells, _unordered_layout(n_cells)

    def _locate(self, p: Array) -> Index:
        return check_cells(
            self.function(p), len(p), n_cells=self.n_cells_, name="partition(probabilities)"
        )


class PrecomputedPartition(Partition):
    """Cells that come with the data: pass them as ``cells=`` wherever predictions are passed.

    Parameters
    ----------
    n_cells : int
        Number of cells.

    Examples
    --------
    >>> import hocal
    >>> partition = hocal.PrecomputedPartition(n_cells=3).fit([[0.5, 0.5]])
    >>> partition.assign([[0.5, 0.5], [0.2, 0.8]], cells=[2, 0]).tolist()
    [2, 0]
    """

    def __init__(self, n_cells: int) -> None:
        self.n_cells = n_cells

    def assign(self, probabilities: ArrayLike, cells: ArrayLike | None = None) -> Index:
        """Return the given cell numbers after checking them."""
        check_is_fitted(self, "n_cells_")
        p = check_simplex(probabilities, ndim=2, n_classes=self.n_classes_)
        if cells is None:
            raise ValueError(
                "`cells` must be given with a PrecomputedPartition: one cell number for each item."
            )
        return check_cells(cells, len(p), n_cells=self.n_cells_)

    def _learn(self, p: Array) -> tuple[int, CellLayout]:  # noqa: ARG002 - the cells do not depend on it
        n_cells = check_integer(self.n_cells, "n_cells", minimum=1)
        return n_cells, _unordered_layout(n_cells)

    def _locate(self, p: Array) -> Index:
        raise NotImplementedError  # assign never asks


def as_partition(partition: Any) -> Partition:
    """Return a partition given as an object, a callable or None (ten slices for each top label)."""
    if partition is None:
        return TopLabelPartition()
    if isinstance(partition, Partition):
        return partition
    if callable(partition):
        return CallablePartition(partition)
    raise ValueError(f"`partition` must be a Partition or a callable, got {partition!r}.")


def _top(p: Array) -> tuple[Index, Array]:
    """Return each item's most likely class, the first of equals, and its probability."""
    top = p.argmax(axis=1)
    # Taking the entry is several times faster than a maximum over so few numbers a row.
    return top, np.take_along_axis(p, top[:, None], axis=1)[:, 0]


def _slice(values: Array, n_slices: int) -> Index:
    return np.minimum((values * n_slices).astype(np.intp), n_slices - 1)


def _grid_layout(n_groups: int, n_levels: int) -> CellLayout:
    return CellLayout(
        np.repeat(np.arange(n_groups), n_levels), np.tile(np.arange(n_levels), n_groups)
    )


def _unordered_layout(n_cells: int) -> CellLayout:
    """Lay out cells without neighbours: each is a line of its own, all on one level."""
    return CellLayout(np.arange(n_cells), np.zeros(n_cells, dtype=np.intp))


def _nearest(points: Array, centres: Array, *, norm: int) -> Index:
    from scipy.spatial import KDTree  # slow to import

    return np.asarray(KDTree(centres).query(points, p=norm)[1], dtype=np.intp)
