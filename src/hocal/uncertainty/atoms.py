"""Atoms of mixtures: those that stand for Dirichlet distributions, and snapshots of cells."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from hocal._base.typing import Array, Counts, Index
from hocal._base.validation import label_totals
from hocal.uncertainty.distinct_counts import as_dense, distinct_rows

__all__ = ["SnapshotAtoms", "dirichlet_atoms", "snapshot_atoms"]


class SnapshotAtoms(NamedTuple):
    """The distinct snapshots of each cell, one cell after the other."""

    points: Array  #: (n_atoms, n_classes) labels of a snapshot as shares
    weights: Array  #: (n_atoms,) share of the cell's items with these labels
    sizes: Index  #: (n_cells,) number of atoms of each cell


def dirichlet_atoms(alpha: Array, n_atoms: int) -> Array:
    """Break a stick at Beta quantiles of Sobol points: p_j = v_j prod_{i<j} (1 - v_i).

    Parameters
    ----------
    alpha : array of shape (n_items, n_classes)
        Positive concentrations.
    n_atoms : int
        Atoms per item.

    Returns
    -------
    ndarray of shape (n_items, n_atoms, n_classes)
        Equally likely label distributions.
    """
    from scipy.stats import qmc  # costs a fifth of a second to import

    n_items, n_classes = alpha.shape
    sobol = qmc.Sobol(n_classes - 1, scramble=False)
    grid = sobol.random_base2(math.ceil(math.log2(n_atoms)))[:n_atoms]
    from_here = np.cumsum(alpha[:, ::-1], axis=1)[:, ::-1]
    later = from_here[:, 1:]  # what is left after each class
    levels = grid + 0.5 / n_atoms  # inside the cells of the grid, never 0
    shares = special.betaincinv(alpha[:, None, :-1], later[:, None], levels)
    left = np.cumprod(1 - shares, axis=-1)
    points = np.concatenate([shares, np.ones((n_items, n_atoms, 1))], axis=-1)
    points[..., 1:] *= left
    return points


def snapshot_atoms(counts: Counts, cells: Index, n_cells: int) -> SnapshotAtoms:
    """Return the empirical mixture of each cell's items; there are `n_cells` cells at least."""
    packed = distinct_rows(counts)
    n_distinct = packed.unique.shape[0]
    cell, snapshot, multiplicity = _count_pairs(cells, packed.inverse, n_distinct)
    sizes = np.bincount(cell, minlength=n_cells)
    items_per_cell = np.bincount(cells, minlength=len(sizes))
    shares = as_dense(packed.unique) / label_totals(packed.unique)[:, None]
    return SnapshotAtoms(shares[snapshot], multiplicity / items_per_cell[cell], sizes)


def _count_pairs(first: Index, second: Index, n_second: int) -> tuple[Index, Index, Index]:
    """Return the distinct pairs of numbers in order, and how often each occurs."""
    codes = first * n_second + second
    if (int(first.max(initial=0)) + 1) * n_second > 4 * len(codes):
        pairs, counts = np.unique(codes, return_counts=True)
    else:  # few possible pairs: counting is faster than sorting
        tally = np.bincount(codes)
        pairs = np.flatnonzero(tally)
        counts = tally[pairs]
    return *np.divmod(pairs, n_second), counts
