"""The paper's post-hoc predictor: the histogram of the k-snapshots of each cell, or one nearby."""

from __future__ import annotations

from typing import Any

import numpy as np

from hocal._base.typing import Array, Index, IntArray, Mask
from hocal.cells.partitions import CellLayout
from hocal.cells.statistics import Histogram
from hocal.uncertainty.distinct_counts import as_dense, distinct_rows
from hocal.uncertainty.mixtures import Mixtures
from hocal.uncertainty.snapshots import draw_snapshots, thin_checked

__all__ = ["borrow", "empirical_mixtures"]


def borrow(filled: Mask, layout: CellLayout) -> Index:
    """Return whose items each cell uses: its own, else the nearest cell of its group, else -1.

    Parameters
    ----------
    filled : array of bool of shape (n_cells,)
        Whether a cell has items.
    layout : CellLayout
        How the cells lie to each other. Of two neighbours at one distance the higher level is
        taken.

    Returns
    -------
    ndarray of shape (n_cells,)
        Cell numbers; -1 stands for the pool of all cells.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.calibration.by_cell.empirical import borrow
    >>> from hocal.cells.partitions import CellLayout
    >>> layout = CellLayout(group=np.array([0, 0, 1]), level=np.array([0, 1, 0]))
    >>> borrow(np.array([False, True, False]), layout).tolist()
    [1, 1, -1]
    """
    source = np.where(filled, np.arange(len(filled)), -1)
    for cell in np.flatnonzero(~filled):
        near = np.flatnonzero(filled & (layout.group == layout.group[cell]))
        if len(near):
            away = layout.level[near] - layout.level[cell]
            source[cell] = near[np.lexsort((-away, np.abs(away)))[0]]
    return source


def empirical_mixtures(
    histogram: Histogram,
    source: Index,
    k: int,
    *,
    thinning: str = "exact",
    random_state: Any = None,
) -> Mixtures:
    """Return each cell's empirical mixture of k-snapshots, the paper's post-hoc predictor.

    Parameters
    ----------
    histogram : Histogram
        Count vectors of each cell, at least k labels in each.
    source : array of shape (n_cells,)
        The cell each cell takes its items from, -1 for all cells, as `borrow` gives it.
    k : int
        Labels in a snapshot.
    thinning : {"exact", "draw"}
        Use every k-snapshot an item's labels contain, or one at random, the paper's way.
    random_state : int, Generator or None
        For ``thinning="draw"``.

    Returns
    -------
    Mixtures
        One item for each cell.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.calibration.by_cell.empirical import empirical_mixtures
    >>> from hocal.cells.statistics import Histogram
    >>> histogram = Histogram.of(np.array([0, 0]), np.array([[2, 0], [1, 1]]))
    >>> empirical_mixtures(histogram, np.array([0, -1]), 1).mean().tolist()
    [[0.75, 0.25], [0.75, 0.25]]
    """
    cells, counts, weights = _thinned_rows(histogram, k, thinning, random_state)
    pool = len(source)  # a mixture of its own, after those of the cells
    cells = np.concatenate([cells, np.full(len(cells), pool)])
    weights = np.concatenate([weights, weights])
    packed = distinct_rows(np.column_stack([cells, np.concatenate([counts, counts])]))
    table = np.asarray(packed.unique)
    mass = np.bincount(packed.inverse, weights)
    offsets = np.searchsorted(table[:, 0], np.arange(pool + 2))
    per_cell = np.bincount(cells, weights, minlength=pool + 1)
    points = table[:, 1:] / k
    shares = mass / per_cell[table[:, 0]]
    index = np.where(source < 0, pool, source)
    return Mixtures.trusted(points, shares, offsets, index)


def _thinned_rows(
    histogram: Histogram, k: int, thinning: str, random_state: Any
) -> tuple[Index, IntArray, Array]:
    """Return cells, k-snapshots and weights of the items of a histogram."""
    cells, counts, multiplicity = histogram
    if thinning == "draw":
        item = np.repeat(np.arange(len(cells)), multiplicity)
        return (
            cells[item],
            draw_snapshots(counts[item], k, random_state=random_state),
            np.ones(len(item)),
        )
    if histogram.totals.max() > k:
        thinned = thin_checked(as_dense(counts), k)
        return (
            cells[thinned.items],
            thinned.snapshots,
            multiplicity[thinned.items] * thinned.probabilities,
        )
    dense = counts if isinstance(counts, np.ndarray) else counts.toarray()
    return cells, dense, multiplicity.astype(np.float64)
