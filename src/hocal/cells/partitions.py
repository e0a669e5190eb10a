"""The partitions of hocal: by top label, level set, centre or function, or given with the data.

Guarantees hold for partitions that were fixed without the calibration labels; a partition only ever
sees predictions. `hocal.cells.protocol` says how to write one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hocal._base.errors import InputError
from hocal._base.fingerprints import fingerprint
from hocal._base.typing import Array, Index
from hocal._base.validation import SUM_TOLERANCE, check_integer
from hocal.cells.given_cells import CallablePartition
from hocal.cells.protocol import CellLayout, Frame, Partition, check_n_cells

if TYPE_CHECKING:
    import narwhals as nw

__all__ = [
    "CellLayout",
    "KMeansPartition",
    "LevelSetPartition",
    "Partition",
    "QuantilePartition",
    "TopLabelPartition",
    "UniformPartition",
    "as_partition",
]


class TopLabelPartition(Partition, name="TopLabelPartition"):
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

    def _lay_out(self, n_classes: int) -> tuple[int, CellLayout]:
        n_slices = check_n_cells(self.n_slices, "n_slices", per=n_classes)
        return n_classes * n_slices, CellLayout.grid(n_classes, n_slices)

    def _locate(self, p: Array) -> Index:
        top, confidence = _top(p)
        return np.asarray(top * self.n_slices + _slice(confidence, self.n_slices))

    def _locate_in_engine(self, frame: Frame, columns: Sequence[str]) -> Frame:
        import narwhals as nw

        highest = frame.with_columns(nw.max_horizontal(*columns).alias("highest"))
        no_place = nw.lit(float(len(columns)))
        places = (
            nw.when(nw.col(column) == nw.col("highest")).then(nw.lit(float(j))).otherwise(no_place)
            for j, column in enumerate(columns)
        )
        top = nw.min_horizontal(*places)  # a tie goes to the first class
        piece = _slice_in_engine(nw.col("highest"), self.n_slices)
        return highest.with_columns((top * self.n_slices + piece).alias("cell"))

    def describe(self, cell: int, class_names: Sequence[str]) -> str:
        """Name the top label and the range of its probability."""
        top, piece = divmod(cell, self.n_slices)
        return f"{class_names[top]}, {_range(piece / self.n_slices, (piece + 1) / self.n_slices)}"


class UniformPartition(Partition, name="UniformPartition"):
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

    def _lay_out(self, n_classes: int) -> tuple[int, CellLayout]:
        if n_classes != 2:
            raise InputError(
                "probabilities",
                "must have two classes for a UniformPartition",
                value=n_classes,
                remedy="Use TopLabelPartition for more.",
            )
        n_bins = check_n_cells(self.n_bins, "n_bins")
        return n_bins, CellLayout.grid(1, n_bins)

    def _locate(self, p: Array) -> Index:
        return _slice(p[:, 1], self.n_bins)

    def _locate_in_engine(self, frame: Frame, columns: Sequence[str]) -> Frame:
        import narwhals as nw

        cell = _slice_in_engine(nw.col(columns[1]), self.n_bins)
        return frame.with_columns(cell.alias("cell"))

    def describe(self, cell: int, class_names: Sequence[str]) -> str:
        """Name the second class and the range of its probability."""
        return f"{class_names[1]}, {_range(cell / self.n_bins, (cell + 1) / self.n_bins)}"


class QuantilePartition(Partition, name="QuantilePartition"):
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
        n_slices = check_n_cells(self.n_slices, "n_slices", per=p.shape[1])
        ranks = np.arange(1, n_slices) / n_slices
        top, confidence = _top(p)
        # A class that is never on top gets the edges of all items.
        chosen = [
            confidence[top == j] if (top == j).any() else confidence for j in range(p.shape[1])
        ]
        # (n_classes, n_slices - 1)
        self.edges_ = np.stack([np.quantile(values, ranks) for values in chosen])
        return p.shape[1] * n_slices, CellLayout.grid(p.shape[1], n_slices)

    def check_restored(self) -> None:
        """Refuse edges from a file that cannot be quantiles of probabilities."""
        n_slices = check_n_cells(self.n_slices, "n_slices", per=self.n_classes_)
        _check_learned(self, "edges_", (self.n_classes_, n_slices - 1))
        if (np.diff(self.edges_, axis=1) < 0).any():
            raise InputError("edges_", "must rise within each class")
        _check_layout(self, CellLayout.grid(self.n_classes_, n_slices))

    def _locate(self, p: Array) -> Index:
        top, confidence = _top(p)
        piece = (self.edges_[top] < confidence[:, None]).sum(axis=1)
        return np.asarray(top * self.n_slices + piece)

    def describe(self, cell: int, class_names: Sequence[str]) -> str:
        """Name the top label and the range of its probability."""
        top, piece = divmod(cell, self.n_slices)
        edges = [0.0, *self.edges_[top], 1.0]
        return f"{class_names[top]}, {_range(edges[piece], edges[piece + 1])}"


class LevelSetPartition(Partition, name="LevelSetPartition"):
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
        check_n_cells(len(self.levels_), "decimals")
        return len(self.levels_), CellLayout.unordered(len(self.levels_))

    def check_restored(self) -> None:
        """Refuse level sets from a file that are not distinct rounded predictions, in order."""
        decimals = check_integer(self.decimals, "decimals", minimum=0, maximum=8)
        _check_learned(self, "levels_", (self.n_cells_, self.n_classes_))
        if not np.array_equal(np.unique(np.round(self.levels_, decimals), axis=0), self.levels_):
            raise InputError("levels_", "must be distinct, rounded and in order")
        _check_layout(self, CellLayout.unordered(self.n_cells_))

    def _locate(self, p: Array) -> Index:
        return _nearest(np.round(p, self.decimals), self.levels_, norm=1)

    def describe(self, cell: int, class_names: Sequence[str]) -> str:
        """Name the top label of the level set."""
        return _describe_centre(cell, self.levels_[cell], class_names)


class KMeansPartition(Partition, name="KMeansPartition"):
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

        distinct = len(np.unique(fingerprint(p)))
        n_cells = min(check_n_cells(self.n_cells, "n_cells"), distinct)
        search = KMeans(n_cells, n_init=1, random_state=self.random_state)
        self.centres_ = search.fit(p).cluster_centers_
        return n_cells, CellLayout.unordered(n_cells)

    def check_restored(self) -> None:
        """Refuse centres from a file that are no label distributions."""
        check_integer(self.n_cells, "n_cells", minimum=self.n_cells_)
        _check_learned(self, "centres_", (self.n_cells_, self.n_classes_))
        if not np.allclose(self.centres_.sum(axis=1), 1, atol=SUM_TOLERANCE):
            raise InputError("centres_", "must sum to 1 over the classes")
        _check_layout(self, CellLayout.unordered(self.n_cells_))

    def _locate(self, p: Array) -> Index:
        return _nearest(p, self.centres_, norm=2)

    def describe(self, cell: int, class_names: Sequence[str]) -> str:
        """Name the top label of the centre."""
        return _describe_centre(cell, self.centres_[cell], class_names)


def as_partition(partition: Any) -> Partition:
    """Return a partition given as an object, a callable or None (ten slices for each top label)."""
    if partition is None:
        return TopLabelPartition()
    if isinstance(partition, Partition):
        return partition
    is_class = isinstance(partition, type) and issubclass(partition, Partition)
    if callable(partition) and not is_class:
        return CallablePartition(partition)
    raise InputError(
        "partition",
        "must be a Partition or a callable",
        value=repr(partition),
        remedy=f"Make one first: {partition.__name__}(...)." if is_class else "",
    )


def _check_learned(partition: Partition, name: str, shape: tuple[int, int]) -> None:
    """Refuse what a file says was learned, unless it is one array of probabilities."""
    state = partition.state()
    array = state.get(name)
    if list(state) != [name] or not isinstance(array, np.ndarray) or array.shape != shape:
        raise InputError("partition", f"must have learned {name} of shape {shape} alone")
    # one that does not round or a mean may be off by the last digit
    inside = ((array >= -1e-12) & (array <= 1 + 1e-9)).all()
    if array.dtype != np.float64 or not inside:
        raise InputError(name, "must hold probabilities in double precision")


def _check_layout(partition: Partition, layout: CellLayout) -> None:
    """Refuse cells from a file that lie to each other otherwise than they must."""
    if not all(map(np.array_equal, layout, partition.layout_)):
        found = f"{partition.n_cells_} cells for {partition}"
        raise InputError("partition", "must have the cells of its parameters", value=found)


def _top(p: Array) -> tuple[Index, Array]:
    """Return each item's most likely class, the first of equals, and its probability."""
    top = p.argmax(axis=1)
    # Taking the entry is several times faster than a maximum over so few numbers per row.
    return top, np.take_along_axis(p, top[:, None], axis=1)[:, 0]


def _slice(values: Array, n_slices: int) -> Index:
    return np.minimum((values * n_slices).astype(np.intp), n_slices - 1)


def _slice_in_engine(values: nw.Expr, n_slices: int) -> nw.Expr:
    import narwhals as nw

    number = (values * n_slices).floor()
    return nw.when(number >= n_slices).then(nw.lit(n_slices - 1.0)).otherwise(number)


def _nearest(points: Array, centres: Array, *, norm: int) -> Index:
    from scipy.spatial import KDTree  # slow to import

    return np.asarray(KDTree(centres).query(points, p=norm)[1], dtype=np.intp)


def _describe_centre(cell: int, centre: Array, class_names: Sequence[str]) -> str:
    top = int(centre.argmax())
    return f"cell {cell}, {class_names[top]} near {_percent(centre[top])}%"


def _range(lower: float, upper: float) -> str:
    return f"{_percent(lower)} to {_percent(upper)}%"


def _percent(share: float) -> str:
    return f"{math.floor(share * 1000 + 0.5) / 10:g}"
