"""Parts of a calibrator from a file, each checked by every rule that a fit keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hocal._base.errors import InputError
from hocal._base.fingerprints import Fingerprints
from hocal._base.saved_arrays import SavedArrays
from hocal._base.typing import Array, Counts, Index, IntArray
from hocal._base.validation import label_totals
from hocal.calibration.by_cell.fitting import label_sums
from hocal.calibration.by_item.model import ItemModel
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.calibration.inputs import InputShape
from hocal.calibration.item_fit import N_FOLDS
from hocal.calibration.levels import LevelSets, level_edges
from hocal.calibration.seen_items import SeenItems
from hocal.calibration.set_calibration import SetCalibration
from hocal.cells.protocol import CellLayout
from hocal.cells.statistics import CellStatistics, Histogram
from hocal.guarantees.certified_sets import (
    BEST_ERROR,
    WORST_ERROR,
    SquaredErrors,
    error_unit,
)
from hocal.uncertainty.label_sets import N_STEPS, LabelScores
from hocal.uncertainty.mixtures import Mixtures
from hocal.uncertainty.segments import segment_sum

__all__ = [
    "SOURCES",
    "check_index",
    "check_item_model",
    "statistics_arrays",
    "take_class_orders",
    "take_levels",
    "take_mixtures",
    "take_seen",
    "take_sets",
    "take_source",
    "take_statistics",
]

SOURCES = ("cell", "neighbours", "pool")
EXACT = 1e-9  # by which sums of a fit in double precision may stray from 1
UNIT = 2**32  # predictions are summed in units of 2**-32
LOOSE = 1e-5  # by which sums of what users predict may stray from 1
MOST_ITEMS = 2**53  # beyond, sums are not exact
ROUNDED_UP = 1.01  # factor by which squared errors may be rounded up
N_TRIED = 4  # items with which a model is tried


def statistics_arrays(statistics: CellStatistics, prefix: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of cell statistics, their names after a prefix."""
    tensors: dict[str, NDArray[Any]] = {
        f"{prefix}predicted": statistics.predicted,
        f"{prefix}layout.group": statistics.layout.group,
        f"{prefix}layout.level": statistics.layout.level,
    }
    for name in ("observed", "aligned"):
        histogram: Histogram = getattr(statistics, name)
        tensors[f"{prefix}{name}.cells"] = histogram.cells
        tensors[f"{prefix}{name}.multiplicity"] = histogram.multiplicity
        for part, array in _count_arrays(histogram.counts).items():
            tensors[f"{prefix}{name}.counts{part}"] = array
    return tensors


def take_statistics(saved: SavedArrays, n_classes: int) -> CellStatistics:
    """Return cell statistics; both histograms must be about the same labels."""
    group = saved.take("layout.group", -1, dtypes="i8", least=0)
    n_cells = len(group)
    saved.take("layout.group", n_cells, dtypes="i8", least=0, most=n_cells - 1)
    level = saved.take("layout.level", n_cells, dtypes="i8", least=0, most=n_cells - 1)
    observed = _take_histogram(saved.within("observed."), n_cells, n_classes)
    aligned = _take_histogram(saved.within("aligned."), n_cells, n_classes)
    predicted = saved.take("predicted", n_cells, n_classes, dtypes="i8", least=0)
    statistics = CellStatistics(observed, aligned, predicted, CellLayout(group, level))
    _check_same_labels(statistics)
    _check_predicted(predicted, statistics.n_items)
    return statistics


def take_mixtures(saved: SavedArrays, n_classes: int) -> Mixtures:
    """Return stored mixtures; points that all share are written once."""
    points = saved.take("points", -1, n_classes, least=0.0, most=1 + EXACT)
    weights = saved.take("weights", -1, least=0.0, most=1 + EXACT)
    offsets = saved.take("offsets", -1, dtypes="i8", least=0, most=len(weights))
    index = saved.take("index", -1, dtypes="i8", least=0, most=len(offsets) - 2)
    if len(points) > len(weights):
        rule = f"must be at most as many as the {len(weights)} weights"
        raise InputError("mixtures.points", rule, value=len(points))
    if not len(points) or np.abs(points.sum(axis=1) - 1).max() > EXACT:
        raise InputError("mixtures.points", "must sum to 1 over the classes")
    _check_offsets(offsets, len(weights), len(points))
    if np.abs(segment_sum(weights, offsets)[np.diff(offsets) > 0] - 1).max() > EXACT:
        raise InputError("mixtures.weights", "must sum to 1 within each mixture")
    return Mixtures.trusted(points, weights, offsets, index)


def check_index(calibrator: SnapshotCalibrator) -> None:
    """Refuse cells whose mixture is not their own, that of a neighbour, or the pool's."""
    index = calibrator.cell_mixtures_.index
    n_cells = calibrator.statistics_.n_cells
    own = np.arange(n_cells)
    if index.shape != (n_cells,):
        raise InputError("mixtures.index", f"must have shape ({n_cells},)", value=index.shape)
    expected = own
    if calibrator.method == "empirical":
        group = calibrator.statistics_.layout.group
        inside = np.minimum(index, n_cells - 1)
        filled = calibrator.statistics_.n_items[inside] > 0
        near = (index < n_cells) & (group[inside] == group) & filled
        lent = np.where(near, index, -1)
        expected = np.select(
            [calibrator.source_ == "cell", calibrator.source_ == "neighbours"], [own, lent], n_cells
        )
    if not np.array_equal(index, expected):
        raise InputError("mixtures.index", "must lead each cell to a mixture of its own items")
    if (calibrator.cell_mixtures_.sizes[index] == 0).any():
        raise InputError("mixtures.offsets", "must give each cell an atom")


def take_source(saved: SavedArrays, statistics: CellStatistics) -> NDArray[np.str_]:
    """Return whose items each cell's mixture comes from; a cell with items uses its own."""
    numbers = saved.take("source", statistics.n_cells, dtypes="u1", most=len(SOURCES) - 1)
    if not np.array_equal(numbers == 0, statistics.n_items > 0):
        raise InputError("source", 'must be "cell" exactly where a cell has items')
    return np.asarray(np.array(SOURCES)[numbers])


def take_class_orders(saved: SavedArrays, statistics: CellStatistics) -> Index:
    """Return the orders of classes that cells have of their own: by falling frequency, or none."""
    shape = (statistics.n_cells, statistics.n_classes)
    orders = saved.take("class_orders", *shape, dtypes="i8", least=-1, most=shape[1] - 1)
    own = orders[:, 0] >= 0
    by_class = label_sums(statistics.observed, statistics.n_cells)
    expected = np.where(own[:, None], np.argsort(-by_class, axis=1, kind="stable"), -1)
    if not np.array_equal(orders, expected):
        raise InputError("class_orders", "must be by falling frequency of the labels, or -1")
    return orders


def take_seen(saved: SavedArrays, n_items: int, *, has_model: bool) -> SeenItems:
    """Return what the items of the fit are known by; folds are dealt out in their order.

    A model of items knows all of them; without one a fit may have known none.
    """
    n_with_labels = n_items if has_model else 0
    prints: Fingerprints = saved.take("fingerprints", n_with_labels, dtypes="u8")
    folds = saved.take("folds", n_with_labels, dtypes="i8")
    inputs: Fingerprints = saved.take("inputs", -1, dtypes="u8")
    for name, rising in (("fingerprints", prints), ("inputs", inputs)):
        if (rising[1:] < rising[:-1]).any():
            raise InputError(f"seen.{name}", "must rise")
    if len(inputs) != n_items and (has_model or len(inputs)):
        raise InputError("seen.inputs", f"must hold {n_items} numbers", value=len(inputs))
    if not np.array_equal(folds, np.arange(n_with_labels) % N_FOLDS):
        raise InputError("seen.folds", f"must be 0 to {N_FOLDS - 1} in turn")
    return SeenItems(prints, folds, inputs)


def take_levels(saved: SavedArrays, values: Array, statistics: CellStatistics) -> LevelSets:
    """Return level sets; they hold the items of the fit, cut by what was predicted for them."""
    edges = saved.take("edges", -1, least=-1.0, most=50.0)
    found = take_statistics(saved, statistics.n_classes)
    grid = CellLayout.grid(1, len(edges) + 1)
    if not all(map(np.array_equal, grid, found.layout)) or (np.diff(edges) <= 0).any():
        raise InputError("edges", "must rise, one fewer than the cells")
    gaps = np.abs(edges[:, None] - level_edges(values))
    if (gaps.min(axis=1, initial=1.0) > EXACT).any():
        raise InputError("edges", "must be quantiles of what was predicted")
    counted = np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1)
    if not np.array_equal(counted, found.n_items):
        raise InputError("edges", "must cut the items of the fit into the levels that were counted")
    if not np.array_equal(_total_labels(found.observed), _total_labels(statistics.observed)):
        raise InputError("levels", "must hold the labels of the fit")
    return LevelSets(edges, found)


def take_sets(saved: SavedArrays, said: Any, statistics: CellStatistics) -> SetCalibration:
    """Return what labels say about sets; they are those of the items of the fit."""
    n_items = int(statistics.n_items.sum())
    scores = saved.take("scores", N_STEPS + 1, least=0.0, most=n_items)
    repeats = saved.take("repeats", -1, least=1.0, most=n_items)
    unit = error_unit(int(repeats.sum()))
    limits = BEST_ERROR / unit, WORST_ERROR / unit * ROUNDED_UP
    values = saved.take("errors", len(repeats), least=limits[0], most=limits[1])
    whole = np.array_equal(repeats, np.floor(repeats)) and repeats.sum() <= n_items
    if not whole or (np.diff(values) <= 0).any():
        raise InputError("sets.repeats", f"must count {n_items} items at most, by rising errors")
    if abs(scores.sum() - n_items) > EXACT * n_items:
        raise InputError("sets.scores", f"must sum to {n_items}, the number of items")
    if said != [n_items, unit]:
        raise InputError("sets", "must be about the items of the fit", value=said)
    return SetCalibration(LabelScores(scores, n_items), SquaredErrors(values, repeats, unit))


def check_item_model(model: ItemModel, shape: InputShape, statistics: CellStatistics) -> None:
    """Refuse a model of items that does not fit the rest, or fails on some simple items."""
    n_items = int(statistics.n_items.sum())
    sizes = (model.n_folds, model.n_cells, model.out_of_fold.shape[1])
    if sizes != (N_FOLDS, statistics.n_cells, n_items):
        raise InputError("items", f"must be about {n_items} items", value=f"sizes {sizes}")
    if model.likeness.shape[1:] not in ((0, 0), (shape.n_classes, shape.n_classes)):
        raise InputError("items.likeness", f"must be of {shape.n_classes} classes, or of none")
    for recalibration in model.recalibrations:
        if len(recalibration.bias) != shape.n_classes:
            raise InputError("items.recalibration", f"must have {shape.n_classes} classes")
        if len(recalibration.features) != shape.n_features:
            raise InputError("items.recalibration", f"must have {shape.n_features} features")
        if len(recalibration.members) not in (0, shape.n_members * shape.n_classes):
            raise InputError("items.recalibration", f"must have {shape.n_members} members")
    _try_model(model, shape)


def _try_model(model: ItemModel, shape: InputShape) -> None:
    """Predict some items and check what comes out; sizes that do not fit show here."""
    folds = np.repeat(np.arange(-1, N_FOLDS), N_TRIED)
    tried = np.full((N_TRIED, shape.n_members, shape.n_classes), 1 / shape.n_classes)
    tried[1:] /= 2
    tried[[1, 2, 3], :, [0, 1, -1]] += 0.5
    members = np.tile(tried, (N_FOLDS + 1, 1, 1))
    features = np.zeros((len(folds), shape.n_features)) if shape.n_features else None
    cells = np.arange(len(folds)) % model.n_cells
    try:
        made = model.predict_without(folds, members, features, cells)
    except (ValueError, LookupError) as error:
        raise InputError("items", "must be arrays that fit together", value=str(error)) from error
    for name, values in (("prediction", made.prediction), ("weights", made.weights)):
        strays = np.abs(values.sum(axis=1) - 1)
        if not ((values >= 0).all() and strays.max() < LOOSE):
            raise InputError("items", f"must lead to distributions as {name}")


def _take_histogram(saved: SavedArrays, n_cells: int, n_classes: int) -> Histogram:
    """Return a histogram whose rows are distinct and in order."""
    cells = saved.take("cells", -1, dtypes="i8", least=0, most=n_cells - 1)
    n_rows = len(cells)
    multiplicity = saved.take("multiplicity", n_rows, dtypes="i8", least=1, most=MOST_ITEMS)
    counts = _take_counts(saved, n_rows, n_classes)
    if not n_rows or label_totals(counts).min() < 1:
        raise InputError("counts", "must have a label in every row")
    histogram = Histogram(cells, counts, multiplicity)
    if not _same_histogram(histogram, Histogram.of(cells, counts, multiplicity)):
        raise InputError("counts", "must have distinct rows in order")
    return histogram


def _take_counts(saved: SavedArrays, n_rows: int, n_classes: int) -> Counts:
    if "counts" in saved:
        return saved.take("counts", n_rows, n_classes, dtypes="i8", least=0, most=MOST_ITEMS)
    shape = saved.take("counts.shape", 2, dtypes="i8")
    if shape.tolist() != [n_rows, n_classes]:
        raise InputError("counts.shape", f"must be {[n_rows, n_classes]}", value=shape.tolist())
    data = saved.take("counts.data", -1, dtypes="i8", least=1, most=MOST_ITEMS)
    indices = saved.take("counts.indices", len(data), most=n_classes - 1, dtypes="i4 i8", least=0)
    indptr = saved.take("counts.indptr", n_rows + 1, most=len(data), dtypes="i4 i8", least=0)
    _check_offsets(indptr, len(data), 1)
    counts = sparse.csr_array((data, indices, indptr), shape=(n_rows, n_classes))
    if not counts.has_canonical_format:
        raise InputError("counts.indices", "must rise within each row")
    return counts


def _count_arrays(counts: Counts) -> dict[str, NDArray[Any]]:
    if isinstance(counts, np.ndarray):
        return {"": counts}
    shape = np.array(counts.shape, dtype=np.int64)
    return {
        ".data": counts.data,
        ".indices": counts.indices,
        ".indptr": counts.indptr,
        ".shape": shape,
    }


def _same_histogram(first: Histogram, second: Histogram) -> bool:
    if len(first.cells) != len(second.cells):
        return False
    parts = [first.cells, first.multiplicity], [second.cells, second.multiplicity]
    different = first.counts != second.counts
    n_different = different.sum() if isinstance(different, np.ndarray) else different.nnz
    return all(map(np.array_equal, *parts)) and not n_different


def _check_offsets(offsets: Index, end: int, step: int) -> None:
    """Refuse what does not rise from 0 to the end, in whole steps where points are shared."""
    step = step if end > step else 1
    whole = not (offsets % step).any() and end % step == 0
    outside = offsets.size < 2 or offsets[0] or offsets[-1] != end
    if outside or (np.diff(offsets) < 0).any():
        raise InputError("offsets", f"must rise from 0 to {end}")
    if not whole:
        raise InputError("offsets", f"must be multiples of {step}")


def _check_same_labels(statistics: CellStatistics) -> None:
    """Refuse histograms by class and by rank that are not about the same items of each cell."""
    parts = [
        np.column_stack([histogram.cells, histogram.totals]).astype(np.int64)
        for histogram in (statistics.observed, statistics.aligned)
    ]
    weights = statistics.observed.multiplicity, statistics.aligned.multiplicity
    sizes = [_sorted_totals(part, weight) for part, weight in zip(parts, weights, strict=True)]
    if not np.array_equal(sizes[0], sizes[1]):
        raise InputError("aligned", "must hold the labels of the observed histogram")


def _sorted_totals(rows: IntArray, multiplicity: IntArray) -> IntArray:
    """Return how many items of each cell have how many labels."""
    distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
    n_items = np.bincount(inverse.reshape(-1), multiplicity.astype(np.float64))
    return np.column_stack([distinct, n_items.astype(np.int64)])


def _check_predicted(predicted: IntArray, n_items: IntArray) -> None:
    """Refuse sums of predictions that are not those of so many items, in falling order."""
    falling = (np.diff(predicted, axis=1) <= 0).all()
    sums = predicted.sum(axis=1, dtype=np.float64) / UNIT
    rounding = predicted.shape[1] / UNIT + LOOSE  # each prediction is rounded down
    if not falling or (np.abs(sums - n_items) > rounding * n_items).any():
        raise InputError("predicted", "must be sums of predictions in falling order")


def _total_labels(histogram: Histogram) -> IntArray:
    """Return the labels of each class."""
    return np.asarray(histogram.multiplicity @ histogram.counts)
