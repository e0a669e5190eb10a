"""Bound the kth-order calibration error of the mixture of each cell from its own calibration labels."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from hocal._base.typing import Array, Index, IntArray
from hocal._base.validation import check_integer
from hocal.cells.statistics import Histogram
from hocal.guarantees.bounds import binomial_deviation, epsilon_bound
from hocal.guarantees.cell_uncertainty import Sample, worst_slack
from hocal.uncertainty.distance import wasserstein
from hocal.uncertainty.mixtures import Mixtures
from hocal.uncertainty.snapshots import compress, n_snapshots, sub_snapshots

__all__ = ["CellEpsilon", "cell_epsilon", "set_coverage", "smallest_totals"]


MAX_SNAPSHOTS = 800  # listed by default: k = 4 for ten classes; transport takes milliseconds
_ADAPTIVE = 100  # snapshots from which the bound looks at how many really occur


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
    """Bound W1(predicted, true) between k-snapshots by W1(predicted, observed) + W1(observed, true).

    The second term holds whatever the truth is, so the mixtures may have been fitted to the same
    labels.

    Parameters
    ----------
    histogram : Histogram
        Calibration labels.
    mixtures : Mixtures
        One mixture a cell, with the classes in the histogram's order.
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
        raise ValueError(
            f"`k` must be the size of the predicted snapshots, {snapshot_size}, got {k}. Leave it out."
        )
    order = np.minimum(
        smallest, _listable(smallest, mixtures.n_classes) if wanted is None else wanted
    )
    values = np.full(len(order), np.nan)
    names = np.full(len(order), "none", dtype=object)
    for each in np.unique(order[order > 0]):
        cells = np.flatnonzero(order == each)
        observed, deviations = _observed(histogram, cells, int(each), delta)
        predicted = mixtures[cells] if snapshot_size else mixtures[cells].project(int(each))
        distance = wasserstein(predicted, observed)
        values[cells] = np.minimum(distance + [value for value, _ in deviations], 2)
        names[cells] = [name for _, name in deviations]
    return CellEpsilon(values, order, tuple(names))


def set_coverage(mixtures: Mixtures, error: CellEpsilon, *, projected: bool) -> Array:
    """Return 1 - 2 sqrt(e), e = epsilon + largest slack of the truth (spec 1.7, 1.17).

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
    return max((k for k in sizes if n_snapshots(k, n_classes) <= MAX_SNAPSHOTS), default=1)


def _observed(
    histogram: Histogram, cells: Index, k: int, delta: float
) -> tuple[Mixtures, list[tuple[float, str]]]:
    """Return the observed k-snapshots of some cells, and how far each may be from the truth."""
    points = []
    weights = []
    sizes = [0]
    deviations = []
    for cell in cells:
        sample = Sample.of(histogram, histogram.cells == cell)
        thinned = sub_snapshots(sample.counts, k)
        packed = compress(thinned.snapshots)
        repeats = sample.repeats[thinned.items]
        points.append(np.asarray(packed.unique) / k)
        weights.append(
            np.bincount(packed.inverse, repeats * thinned.probabilities) / sample.n_items
        )
        sizes.append(len(packed.multiplicity))
        squares = np.bincount(packed.inverse, repeats * thinned.probabilities**2)
        ragged = bool((sample.totals > k).any())
        deviations.append(
            _deviation(sample.n_items, k, sample.n_classes, delta, np.sqrt(squares).sum(), ragged)
        )
    merged = Mixtures(
        np.concatenate(points), np.concatenate(weights), np.cumsum(sizes), np.arange(len(cells))
    )
    return merged, deviations


def _deviation(
    n: int, k: int, n_classes: int, delta: float, roughness: float, ragged: bool
) -> tuple[float, str]:
    """Bound W1(observed, true) between k-snapshots, and name the inequality.

    Two classes: E W1 <= 1 / sqrt(n) and McDiarmid's inequality hold for thinned items too, where
    the Dvoretzky-Kiefer-Wolfowitz inequality is not known to. Many snapshots, few of which occur:
    by symmetrisation E W1 <= (2/n) E sum_s sqrt(sum_i P_i(s)^2), P_i the snapshots of item i, and
    both W1 and that sum change by at most 2/n with an item, so that their difference stays below 4
    sqrt(ln(1/delta) / (2n)).
    """
    if n_classes == 2:
        if not ragged:
            fixed = epsilon_bound(n, delta, k, 2)
            return fixed.value, fixed.method
        return (1 + math.sqrt(2 * math.log(1 / delta))) / math.sqrt(n), "McDiarmid"
    if n_snapshots(k, n_classes) <= _ADAPTIVE:
        fixed = epsilon_bound(n, delta, k, n_classes)
        return fixed.value, fixed.method
    fixed = epsilon_bound(n, delta / 2, k, n_classes)
    adaptive = 2 * roughness / n + 4 * math.sqrt(math.log(2 / delta) / (2 * n))
    return min((fixed.value, fixed.method), (adaptive, "symmetrisation"))
