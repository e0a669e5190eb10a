"""Deconvolution: estimate the mixture of label distributions behind few labels an item (spec 3.5).

Everything happens over ranks: each item's classes are in order of falling predicted probability.

1. The pool: nonparametric maximum likelihood of one mixture for all items on a fixed dictionary of label
   distributions ("atoms") with a weak uniform prior, solved to a duality gap. The prior decides
   what few labels leave open; what two labels do tell, a tilt in the first rank and in ||p||^2
   takes from them alone.
2. The cells: each cell's mixture is the pool tilted by exp(theta . phi), phi = (probability of the first
   rank, square root of the entropy). theta is a regression on what the model predicts in the cell,
   plus effects of its group, its level and itself. The scale of each of these is chosen by the
   marginal likelihood of the labels, so a cell with few items leans on its relatives, an empty one
   on them alone.
3. A cell leaves this family as far as its own labels ask for it: expectation maximisation with the tilted
   pool as a prior of PRIOR_ITEMS items. Large cells thus are free to take any shape.
4. One common tilt makes the cells agree with the pool on average over the items: fitted alone, small cells
   look too extreme.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, sparse, special

from hocal._base.typing import Array, Counts, Index, IntArray
from hocal._base.validation import check_cells, check_counts, check_whole
from hocal.calibration.pool import (
    N_LEADING,
    Atoms,
    fit_pool,
    make_atoms,
    sample_snapshots,
    snapshot_likelihood,
)
from hocal.calibration.tilts import Design, TiltedCells, fit_effects, make_design, penalised_fit
from hocal.uncertainty.snapshots import compress

__all__ = ["Deconvolution", "deconvolve"]

PRIOR_LABELS = 100.0  # the prior on the pool weighs as much as this many labels
PRIOR_ITEMS = 200.0  # a cell's tilted pool weighs as much as this many of its items
N_BINS = 24  # atoms whose two features lie in the same of 24 x 24 bins are tilted together


@dataclass(frozen=True, eq=False)
class Deconvolution:
    """Estimated mixtures, one a cell, of label distributions in order of falling prediction."""

    atoms: Array  #: (n_atoms, n_classes), label distributions over ranks, shared by all cells
    weights: Array  #: (n_cells, n_atoms), the mixture of each cell; rows sum to 1
    pool: Array  #: (n_atoms,), the mixture of all items together
    scales: dict[
        str, float
    ]  #: spread of each kind of effect, chosen from the data; small is much shrinkage
    #: bound on what the pool's penalised log-likelihood is short of its maximum, in nats an item
    gap: float
    n_iterations: int  #: Newton steps for the pool plus rounds of choosing the scales
    source: NDArray[
        np.str_
    ]  #: (n_cells,), "cell", for empty cells "neighbours" (group or level) or "pool"


def deconvolve(
    counts: Any,
    cells: ArrayLike,
    multiplicity: ArrayLike,
    *,
    group: ArrayLike,
    level: ArrayLike,
    mean_prediction: ArrayLike | None = None,
) -> Deconvolution:
    """Estimate each cell's mixture from a histogram of rank-aligned count vectors.

    The weight of atom a in cell c is proportional to pool(a) exp(theta_c . phi(a)).

    Parameters
    ----------
    counts : array or sparse matrix of shape (n_rows, n_classes)
        Count vectors over ranks, with any numbers of labels. Some rows need two labels or more:
        from one label an item, disagreement is a guess of the prior.
    cells : array of shape (n_rows,)
        Cell of each row.
    multiplicity : array of shape (n_rows,)
        Number of items with this row, at least 1.
    group, level : array of shape (n_cells,)
        Two ways in which cells are related, such as their top label and their slice.
    mean_prediction : array of shape (n_cells, n_classes), optional
        Mean prediction over ranks of each cell's items, NaN for empty cells. It sharpens the
        estimate.

    Returns
    -------
    Deconvolution
        The mixtures; the same whatever the order of the rows.

    Examples
    --------
    Half of all pairs of labels disagree: every item is a coin toss, none is clear.

    >>> from hocal.calibration.deconvolution import deconvolve
    >>> fit = deconvolve([[2, 0], [1, 1], [0, 2]], [0, 0, 0], [250, 500, 250], group=[0], level=[0])
    >>> disagreement = 1 - (fit.atoms**2).sum(axis=1)
    >>> bool(fit.gap < 1e-6), (fit.weights @ disagreement).round(1).tolist()
    (True, [0.5])
    """
    kin = [np.unique(np.asarray(labels), return_inverse=True)[1] for labels in (group, level)]
    checked = check_counts(counts)
    where = check_cells(cells, checked.shape[0], n_cells=len(kin[0]))
    items = check_whole(multiplicity, "multiplicity").astype(np.float64)
    table, snapshots = _tabulate(checked, where, items, len(kin[0]))
    n_items = np.asarray(table.sum(axis=1))
    frequency = np.asarray(table.sum(axis=0))
    atoms = make_atoms(snapshots, frequency, checked.shape[1])
    sample, times = sample_snapshots(snapshots, frequency)
    likelihood = snapshot_likelihood(sample, atoms)
    found = fit_pool(
        likelihood,
        times,
        prior=PRIOR_LABELS * frequency.sum() / (snapshots[:, :-1].sum(axis=1) @ frequency),
    )
    pool = _sharpen(found.weights, likelihood, times, atoms.points)
    names, kind, design = make_design(kin, mean_prediction, n_items)
    filled, member, moments = _group_atoms(
        atoms, pool, snapshots, table[n_items > 0], design.select(n_items > 0)
    )
    effects, scales, n_rounds = fit_effects(filled, kind)
    theta = design.sum_effects(effects[: len(kind)])
    theta[n_items > 0] += effects[len(kind) :]
    weights = filled.tilt(theta)
    weights[n_items > 0] = _loosen(filled, weights[n_items > 0])
    weights = _match_pool(weights, filled.pool, moments, n_items)
    weights = weights[:, member] * (pool / filled.pool[member])
    spread = dict(zip([*names, "cell"], scales.tolist(), strict=True))
    related = np.bincount(kin[0], n_items)[kin[0]] + np.bincount(kin[1], n_items)[kin[1]] > 0
    source = np.where(n_items > 0, "cell", np.where(related, "neighbours", "pool"))
    return Deconvolution(
        atoms.points, weights, pool, spread, found.gap, found.n_iterations + n_rounds, source
    )


def _sharpen(pool: Array, likelihood: Array, frequency: Array, atoms: Array) -> Array:
    """Tilt the pool by maximum likelihood in what two labels identify, the first rank and ||p||^2."""
    features = _whiten(np.column_stack([atoms[:, 0], (atoms**2).sum(axis=1)]), pool)
    alone = Design(np.empty((1, 0)), sparse.csr_array((1, 0)), sparse.csr_array((0, 1)))
    one_cell = TiltedCells(features, pool, likelihood, sparse.csr_array(frequency[None]), alone)
    # The slight penalty only matters where the likelihood has no maximum.
    sharpened: Array = one_cell.tilt(penalised_fit(one_cell, np.zeros((1, 2)), np.array([0.04])))[0]
    return sharpened


def _tabulate(counts: Counts, cells: Index, items: Array, n_cells: int) -> tuple[Any, IntArray]:
    """Return the number of items of each snapshot in each cell, and the snapshots in lexicographic order.

    A snapshot is a row of counts of the leading ranks, of the tail, and of the tail's ranks with
    labels.
    """
    leading = counts[:, :N_LEADING]
    tail = counts[:, N_LEADING:]
    dense = leading if isinstance(leading, np.ndarray) else leading.toarray()
    sums = (
        [tail.sum(axis=1), (tail > 0).sum(axis=1)]
        if tail.shape[1]
        else [np.zeros(len(dense), dtype=np.int64)]
    )
    packed = compress(np.column_stack([dense, *sums]))
    table = sparse.coo_array(
        (items, (cells, packed.inverse)), shape=(n_cells, len(packed.multiplicity))
    ).tocsr()
    table.sort_indices()
    return table, np.asarray(packed.unique)


def _group_atoms(
    atoms: Atoms, pool: Array, snapshots: IntArray, table: Any, design: Design
) -> tuple[TiltedCells, Index, Array]:
    """Group atoms of like features; also return each atom's group and the groups' mean first rank and entropy."""
    entropy = special.entr(atoms.points).sum(axis=1)
    raw = np.column_stack(
        [atoms.points[:, 0], np.sqrt(entropy)]
    )  # the root steadies the variance of the entropy
    bins = np.floor(raw / raw.max(axis=0) * (N_BINS - 1e-9)).astype(np.int64)
    member = np.unique(bins @ [N_BINS, 1], return_inverse=True)[1]
    belongs = sparse.csr_array((pool, member, np.arange(len(pool) + 1)))  # (n_atoms, n_groups)
    mass = np.asarray(belongs.sum(axis=0), dtype=np.float64)
    means = (belongs.T @ np.column_stack([raw, entropy])) / mass[:, None]
    parts = np.array_split(snapshots, len(snapshots) // 1024 + 1)
    likelihood = (
        np.concatenate([snapshot_likelihood(part, atoms) @ belongs for part in parts]) / mass
    )
    items = sparse.csr_array(
        (table.data, np.arange(table.nnz), table.indptr), shape=(table.shape[0], table.nnz)
    )
    filled = TiltedCells(
        _whiten(means[:, :2], mass), mass, likelihood[table.indices], items, design
    )
    return filled, member, means[:, [0, 2]]


def _whiten(features: Array, weights: Array) -> Array:
    """Return features turned and scaled to be uncorrelated with unit variance; flat directions become 0."""
    centred = features - weights @ features
    variance, axes = np.linalg.eigh((centred * weights[:, None]).T @ centred)
    flat = variance <= 1e-4 * variance.max()
    return np.asarray(
        centred @ axes / np.where(flat, np.inf, np.sqrt(np.where(flat, 1.0, variance)))
    )


def _loosen(filled: TiltedCells, prior: Array) -> Array:
    """Take 30 steps of expectation maximisation from the prior, which counts as PRIOR_ITEMS items."""
    weights = np.empty_like(prior)
    for block in filled.blocks():
        here = prior[block.cells]
        ratios = sparse.csr_array((block.items, np.arange(block.first[-1]), block.first))
        total = PRIOR_ITEMS + ratios.sum(axis=1)[:, None]
        for _ in range(30):
            ratios.data = block.items / block.weigh(here).sum(axis=1)
            here = (PRIOR_ITEMS * prior[block.cells] + here * (ratios @ block.likelihood)) / total
        weights[block.cells] = here
    return weights


def _match_pool(weights: Array, pool: Array, moments: Array, n_items: Array) -> Array:
    """Tilt all cells alike until their item-weighted mean moments equal the pool's (a convex problem)."""
    centred = moments - pool @ moments
    scaled = centred / np.maximum(np.sqrt(pool @ centred**2), 1e-9)
    logs = np.log(np.maximum(weights, 1e-300))
    share = n_items / n_items.sum()

    def objective(tilt: Array) -> tuple[float, Array]:
        tilted = logs + scaled @ tilt
        return float(share @ special.logsumexp(tilted, axis=1)), share @ special.softmax(
            tilted, axis=1
        ) @ scaled

    found = optimize.minimize(
        objective, np.zeros(scaled.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-8}
    )
    return np.asarray(special.softmax(logs + scaled @ found.x, axis=1))
