"""Limits of all cells of a certificate, each with statistics that other cells suggested."""

from __future__ import annotations

import numpy as np

from hocal._base.typing import Array, Index, IntArray
from hocal.cells.statistics import CellStatistics, Histogram
from hocal.guarantees.cell_advice import advise, estimator_sizes
from hocal.guarantees.cell_uncertainty import all_intervals
from hocal.guarantees.item_statistics import Advice
from hocal.guarantees.samples import TARGETS, Sample, Target, rows_by_cell

__all__ = ["advise_folds", "all_limits", "assign_folds"]

BLOCK_ITEMS = 400  # fewest items whose cells advise each other: enough to choose a statistic
# Blocks of cells and folds of a block: each fold of each block costs some linear programs.
MAX_BLOCKS = 12
N_FOLDS = 4
MAX_NUMBERS = 1 << 23  # in the count vectors of cells that are certified at once: 64 MB


def all_limits(
    statistics: CellStatistics,
    histogram: Histogram,
    delta: float,
    *,
    aligned: bool,
) -> dict[Target, Array]:
    """Return the limits of every cell, (n_cells, 2), each advised by the other folds of its block.

    Parameters
    ----------
    statistics : CellStatistics
        The calibration items.
    histogram : Histogram
        Their labels, in class order or aligned.
    delta : float
        Allowed chance of failure of each interval.
    aligned : bool
        Whether a class means the same in all cells.

    Returns
    -------
    dict
        Limits by target; NaN for a cell without items.
    """
    fold = assign_folds(statistics)
    advice = advise_folds(statistics, histogram, fold, same_order=aligned)
    result = {target: np.full((statistics.n_cells, 2), np.nan) for target in TARGETS}
    rows = rows_by_cell(histogram, statistics.n_cells)
    for cells in _blocks(rows, statistics.n_classes):
        samples = [Sample.of_rows(histogram, rows[cell]) for cell in cells]
        chosen = [advice[own] for own in fold[cells]]
        found = all_intervals(samples, chosen, delta)
        for target, limits in found.items():
            result[target][cells] = limits
    return result


def _blocks(rows: list[Index], n_classes: int) -> list[Index]:
    """Cut the cells that have rows into blocks whose count vectors fit into memory together."""
    sizes = np.array([len(each) for each in rows])
    filled = np.flatnonzero(sizes)
    block = np.cumsum(sizes[filled]) * n_classes // MAX_NUMBERS
    return np.split(filled, np.flatnonzero(np.diff(block)) + 1) if len(filled) else []


def assign_folds(statistics: CellStatistics) -> IntArray:
    """Cut the cells into blocks of similar confidence, and each block into folds.

    The other folds of a block advise a fold. A level with enough items is a block, and so are
    smaller levels in a row together. No label is looked at. Block b has the folds N_FOLDS * b,
    N_FOLDS * b + 1, ...; -1 stands for a cell without items.
    """
    n_items = statistics.n_items
    fold = np.full(statistics.n_cells, -1)
    cells = np.flatnonzero(n_items)
    level = _levels(statistics)[cells]
    wanted = max(BLOCK_ITEMS, n_items.sum() / MAX_BLOCKS)
    ranked = cells[np.lexsort((-n_items[cells], level))]
    edges = [int(edge) for edge in np.flatnonzero(np.diff(np.sort(level), append=np.inf)) + 1]
    start = 0
    block = 0
    for end, following in zip(edges, [*edges[1:], None], strict=True):
        inside = n_items[ranked[start:end]]
        ahead = n_items[ranked[end:following]]
        if following is None or _enough(inside, wanted) or _enough(ahead, wanted):
            # The larger cells of a level first, in turn, so that all folds know about equally much.
            fold[ranked[start:end]] = N_FOLDS * block + np.arange(end - start) % N_FOLDS
            start = end
            block = block + 1
    return fold


def _enough(n_items: IntArray, wanted: float) -> bool:
    return len(n_items) > 1 and float(n_items.sum()) >= wanted


def _levels(statistics: CellStatistics) -> IntArray:
    """Return the level of each cell; without levels, its rank by mean top probability."""
    level = statistics.layout.level
    if len(np.unique(level)) > 1:
        return np.asarray(level, dtype=np.int64)
    order = np.argsort(statistics.mean_prediction[:, 0], kind="stable")
    return np.argsort(order, kind="stable")


def advise_folds(
    statistics: CellStatistics,
    histogram: Histogram,
    fold: IntArray,
    *,
    same_order: bool,
) -> dict[int, Advice]:
    """Return the advice for each fold from the others of its block, or from none."""
    sizes = estimator_sizes(histogram.totals)
    n_classes = statistics.n_classes
    place = fold[histogram.cells]
    advice = {}
    for own in np.unique(fold[fold >= 0]):
        others = (place // N_FOLDS == own // N_FOLDS) & (place != own)
        if not others.any():  # alone in its block: all other cells
            others = place != own
        members = statistics.n_items[fold == own]
        n_items = float(members @ members / members.sum())
        advice[int(own)] = advise(
            Sample.of(histogram, others) if others.any() else None,
            sizes,
            n_classes=n_classes,
            n_items=n_items,
            same_order=same_order,
        )
    return advice
