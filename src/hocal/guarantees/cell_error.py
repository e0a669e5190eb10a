"""Bound the kth-order calibration error of each cell's mixture from its own calibration labels."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from hocal._base.errors import InputError
from hocal._base.typing import Array, Index, IntArray
from hocal._base.validation import check_integer
from hocal.cells.statistics import Histogram
from hocal.guarantees.bounds import Bound, binomial_deviation, epsilon_bound
from hocal.guarantees.cell_uncertainty import worst_slack
from hocal.guarantees.samples import Sample, rows_by_cell
from hocal.uncertainty.distance import wasserstein
from hocal.uncertainty.distinct_counts import distinct_rows
from hocal.uncertainty.mixtures import Mixtures
from hocal.uncertainty.snapshots import n_snapshots, thin_checked

__all__ = ["CellEpsilon", "cell_epsilon", "set_coverage", "smallest_totals"]


# Snapshots compared by default, k = 4 for ten classes: transport takes milliseconds.
MAX_COMPARED_SNAPSHOTS = 800
# Snapshots from which a bound that looks at how many really occur may be the smaller one.
MANY_SNAPSHOTS = 100
LARGEST_DISTANCE = 2  # l1 distance between two label distributions without a common label


class CellEpsilon(NamedTuple):
    """Upper bounds on kth-order calibration errors.

    Attributes
    ----------
    values : ndarray of shape (n_cells,)
        W1 in l1 units, at most 2; NaN for a cell without items.
    k : ndarray of shape (n_cells,)
        Labels in the snapshots that were compared; 0 for a cell without items.
    bounds : tuple of str
        The inequality used for each cell.
    """

    values: Array
    k: IntArray
    bounds: tuple[str, ...]


def cell_epsilon(
    histogram: Histogram,
    mixtures: Mixtures,
    *,
    delta: float,
    k: int | None = None,
    snapshot_size: int | None = None,
) -> CellEpsilon:
    """Bound W1(predicted, true) of k-snapshots by W1(predicted, observed) + W1(observed, true).

    The second term holds whatever the truth is, so the mixtures may have been fitted to the same
    labels.

    Parameters
    ----------
    histogram : Histogram
        Calibration labels.
    mixtures : Mixtures
        One mixture per cell, with the classes in the histogram's order.
    delta : float
        Allowed chance of failure in each cell.
    k : int, optional
        Labels in a snapshot, cut to the fewest labels of a cell's items; by default as many as can
        be listed.
    snapshot_size : int, optional
        The mixtures are snapshots of this many labels already and are compared as they are.

    Returns
    -------
    CellEpsilon
        Bounds, the k of each, and their names.
    """
    smallest = smallest_totals(histogram, len(mixtures))
    wanted = snapshot_size if k is None else check_integer(k, "k", minimum=1)
    if snapshot_size is not None and wanted != snapshot_size:
        rule = f"must be the size of the predicted snapshots, {snapshot_size}"
        raise InputError("k", rule, value=k, remedy="Leave it out.")
    if wanted is None:
        wanted = _listable(smallest, mixtures.n_classes)
    order = np.minimum(smallest, wanted)
    values = np.full(len(order), np.nan)
    names = np.full(len(order), "none", dtype=object)
    for each in np.unique(order[order > 0]):
        cells = np.flatnonzero(order == each)
        if each == 1:  # between mixtures of single labels, W1 is the l1 distance of their means
            means, deviations = _observed_means(histogram, cells, delta)
            distance = np.abs(mixtures[cells].mean() - means).sum(axis=1)
        else:
            observed, deviations = _observed(histogram, cells, int(each), delta)
            predicted = mixtures[cells] if snapshot_size else mixtures[cells].project(int(each))
            distance = wasserstein(predicted, observed)
        bounds = [deviation.value for deviation in deviations]
        values[cells] = np.minimum(distance + bounds, LARGEST_DISTANCE)
        names[cells] = [deviation.method for deviation in deviations]
    return CellEpsilon(values, order, tuple(names))


def set_coverage(mixtures: Mixtures, error: CellEpsilon, *, projected: bool) -> Array:
    """Return 1 - 2 sqrt(e), e = epsilon + largest slack of the truth (the paper on sets).

    Where the prediction was projected to be compared, its own slack is added.
    """
    coverage = np.full(len(error.k), np.nan)
    for k in map(int, np.unique(error.k[error.k > 0])):
        cells = np.flatnonzero(error.k == k)
        own = mixtures[cells].expect(partial(_slack, k=k)) if projected else 0.0
        distance = error.values[cells] + own + worst_slack(k, mixtures.n_classes)
        coverage[cells] = np.maximum(1 - 2 * np.sqrt(distance), 0)
    return coverage


def _slack(points: Array, k: int) -> Array:
    """Return how far the k-snapshots of each label distribution lie from it on average."""
    return np.asarray(binomial_deviation(points, k).sum(axis=1))


def smallest_totals(histogram: Histogram, n_cells: int) -> IntArray:
    """Return the fewest labels of an item in each cell, 0 for a cell without items."""
    smallest = np.full(n_cells, np.iinfo(np.int64).max)
    np.minimum.at(smallest, histogram.cells, histogram.totals)
    return np.where(np.bincount(histogram.cells, minlength=n_cells) > 0, smallest, 0)


def _listable(smallest: IntArray, n_classes: int) -> int:
    """Return the largest k for which all snapshots can be listed, 1 if there is none."""
    sizes = range(1, int(smallest.max(initial=1)) + 1)
    listable = [k for k in sizes if n_snapshots(k, n_classes) <= MAX_COMPARED_SNAPSHOTS]
    return max(listable, default=1)


def _observed_means(histogram: Histogram, cells: Index, delta: float) -> tuple[Array, list[Bound]]:
    """Return the mean label distributions of some cells, and how far each may be from the truth.

    With a thousand classes and as many cells, all single labels of all cells would not fit into
    memory.
    """
    means = []
    deviations = []
    rows = rows_by_cell(histogram, int(cells.max()) + 1)
    for cell in cells:
        sample = Sample.of_rows(histogram, rows[cell])
        roughness = np.sqrt(sample.repeats @ sample.shares**2).sum()
        means.append(sample.mean)
        deviations.append(_deviation(sample, 1, delta, roughness=roughness))
    return np.stack(means), deviations


def _observed(
    histogram: Histogram, cells: Index, k: int, delta: float
) -> tuple[Mixtures, list[Bound]]:
    """Return the observed k-snapshots of some cells, and how far each may be from the truth."""
    points = []
    weights = []
    sizes = [0]
    deviations = []
    rows = rows_by_cell(histogram, int(cells.max()) + 1)
    for cell in cells:
        sample = Sample.of_rows(histogram, rows[cell])
        thinned = thin_checked(sample.counts, k)
        packed = distinct_rows(thinned.snapshots)
        repeats = sample.repeats[thinned.items]
        mass = np.bincount(packed.inverse, repeats * thinned.probabilities)
        points.append(np.asarray(packed.unique) / k)
        weights.append(mass / sample.n_items)
        sizes.append(len(packed.multiplicity))
        squares = np.bincount(packed.inverse, repeats * thinned.probabilities**2)
        deviations.append(_deviation(sample, k, delta, roughness=np.sqrt(squares).sum()))
    offsets = np.cumsum(sizes)
    index = np.arange(len(cells))
    return Mixtures(np.concatenate(points), np.concatenate(weights), offsets, index), deviations


def _deviation(sample: Sample, k: int, delta: float, *, roughness: float) -> Bound:
    """Bound W1(observed, true) between k-snapshots.

    Two classes: E W1 <= 1 / sqrt(n) and McDiarmid's inequality hold for thinned items too, where
    the Dvoretzky-Kiefer-Wolfowitz inequality is not known to. Many snapshots, few of which occur:
    by symmetrisation E W1 <= (2/n) E sum_s sqrt(sum_i P_i(s)^2), P_i the snapshots of item i, and
    both W1 and that sum change by at most 2/n with an item, so that their difference stays below 4
    sqrt(ln(1/delta) / (2n)). `roughness` is the sum over snapshots.
    """
    n_items = sample.n_items
    n_classes = sample.n_classes
    thinned = bool((sample.totals > k).any())
    if n_classes == 2 and thinned:
        value = (1 + math.sqrt(2 * math.log(1 / delta))) / math.sqrt(n_items)
        return Bound(value, value >= LARGEST_DISTANCE, "McDiarmid")
    if n_classes == 2 or n_snapshots(k, n_classes) <= MANY_SNAPSHOTS:
        return epsilon_bound(n_items, delta, k, n_classes)
    fixed = epsilon_bound(n_items, delta / 2, k, n_classes)
    value = 2 * roughness / n_items + 4 * math.sqrt(math.log(2 / delta) / (2 * n_items))
    adaptive = Bound(value, value >= LARGEST_DISTANCE, "symmetrisation")
    return min(fixed, adaptive)
