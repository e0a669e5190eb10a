"""Deconvolution: estimate the mixture of label distributions behind few labels per item.

Everything happens over ranks: each item's classes are in order of falling predicted probability.
docs/mathematics.md has the model.

1. The pool: nonparametric maximum likelihood of one mixture for all items on a fixed dictionary of
   label distributions ("atoms") with a weak uniform prior, solved to a duality gap. The prior
   decides what few labels leave open; what two labels do tell, a tilt in the first rank and in
   ||p||^2 takes from them alone.
2. The cells: each cell's mixture is the pool tilted by exp(theta . phi), phi = (probability of the
   first rank, square root of the entropy). theta is a regression on what the model predicts in the
   cell, plus effects of its group, its level and itself. The scale of each of these is chosen by
   the marginal likelihood of the labels, so a cell with few items leans on its relatives, an empty
   one on them alone.
3. A cell leaves this family as far as its own labels ask for it: expectation maximisation with the
   tilted pool as a prior of PRIOR_ITEMS items. Large cells thus are free to take any shape.
4. One common tilt makes the cells agree with the pool on average over the items: fitted alone,
   small cells look too extreme.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, sparse, special

from hocal._base.typing import Array, Counts, Index, IntArray, Mask
from hocal._base.validation import check_cells, check_counts, check_whole
from hocal.calibration.by_cell.pool import fit_pool, sample_snapshots
from hocal.calibration.by_cell.pool_atoms import (
    N_LEADING,
    Atoms,
    make_atoms,
    place_tails,
    snapshot_likelihood,
)
from hocal.calibration.by_cell.tilts import (
    Design,
    SharedEffects,
    TiltedCells,
    fit_effects,
    make_design,
    penalised_fit,
)
from hocal.uncertainty.distinct_counts import distinct_rows

__all__ = ["Deconvolution", "deconvolve"]

# The prior on the pool weighs as much as this many labels: enough to decide what few labels leave
# open, too few to move what hundreds of items say.
PRIOR_LABELS = 100.0
# A cell's tilted pool weighs as much as this many of its items; cells with more take their shape.
PRIOR_ITEMS = 200.0
# Steps of expectation maximisation from the tilted pool, which is a good start.
N_LOOSENING_STEPS = 30
# Atoms whose two features lie in the same of 24 x 24 bins are tilted together: a tilt differs
# little inside a bin, and some hundred groups cost a fraction of what a thousand atoms do.
N_BINS = 24
BELOW_ONE = 1e-9  # keeps the largest feature in the last bin
N_LIKELIHOOD_ROWS = 1024  # snapshots whose likelihood under all atoms is held at once, some 10 MB
# Precision of the tilt of the pool; it only matters where the likelihood has no maximum.
SLIGHT_PRECISION = 0.04
# Share of the largest variance below which a feature direction is taken as constant.
FLAT_SHARE = 1e-4
LEAST_SPREAD = 1e-9  # of a moment over the pool, so that a constant one is not divided by 0
LEAST_WEIGHT = 1e-300  # of a group of atoms in a cell: a weight that underflowed keeps a logarithm
GRADIENT_TOLERANCE = 1e-8  # of the common tilt: moments of cells and pool then agree to 8 digits


@dataclass(frozen=True, eq=False)
class Deconvolution:
    """Estimated mixtures, one per cell, of label distributions in order of falling prediction."""

    atoms: Array  #: (n_atoms, n_classes), label distributions over ranks, shared by all cells
    group: Index  #: (n_atoms,), atoms of a group have the same part of it in every cell
    part: Array  #: (n_atoms,), of the group
    group_weights: Array  #: (n_cells, n_groups), the mixture of each cell; rows sum to 1
    pool: Array  #: (n_atoms,), the mixture of all items together
    #: spread of each kind of effect, chosen from the data; small is much shrinkage
    scales: dict[str, float]
    #: bound on what the pool's penalised log-likelihood is short of its maximum, in nats per item
    gap: float
    n_iterations: int  #: Newton steps for the pool plus rounds of choosing the scales
    #: (n_cells,), "cell", for empty cells "neighbours" (group or level) or "pool"
    source: NDArray[np.str_]

    @cached_property
    def weights(self) -> Array:
        """The weight of each atom in the mixture of each cell, (n_cells, n_atoms); rows sum to 1.

        This may be the largest array of a fit: it is made once, and changed in place.
        """
        weights = np.take(self.group_weights, self.group, axis=1)
        weights *= self.part
        return weights

    def expect(self, values: Array) -> Array:
        """Return the mean of values at the atoms over the mixture of each cell, (n_cells,)."""
        n_groups = self.group_weights.shape[1]
        sums = np.bincount(self.group, self.part * values, minlength=n_groups)
        return np.asarray(self.group_weights @ sums)


class _Pool(NamedTuple):
    """The mixture of all items together."""

    weights: Array  #: (n_atoms,)
    gap: float
    n_iterations: int


class _AtomGroups(NamedTuple):
    """Groups of atoms with like features, which are tilted together."""

    member: Index  #: (n_atoms,) group of each atom
    weights: Array  #: (n_groups,) in the pool
    features: Array  #: (n_groups, 2) what tilts them
    moments: Array  #: (n_groups, 2) mean first rank and mean entropy
    belongs: sparse.csr_array  #: (n_atoms, n_groups) weight of each atom in the column of its group


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
        from one label per item, disagreement is a guess of the prior.
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

    >>> from hocal.calibration.by_cell.deconvolution import deconvolve
    >>> fit = deconvolve([[2, 0], [1, 1], [0, 2]], [0, 0, 0], [250, 500, 250], group=[0], level=[0])
    >>> disagreement = 1 - (fit.atoms**2).sum(axis=1)
    >>> bool(fit.gap < 1e-6), (fit.weights @ disagreement).round(1).tolist()
    (True, [0.5])
    """
    group = np.unique(np.asarray(group), return_inverse=True)[1]
    level = np.unique(np.asarray(level), return_inverse=True)[1]
    checked = check_counts(counts)
    where = check_cells(cells, checked.shape[0], n_cells=len(group))
    items = check_whole(multiplicity, "multiplicity").astype(np.float64)
    table, snapshots = _tabulate(checked, where, items, len(group))
    n_items = np.asarray(table.sum(axis=1))
    frequency = np.asarray(table.sum(axis=0))
    atoms = make_atoms(snapshots, frequency, checked.shape[1])
    pool = _estimate_pool(snapshots, frequency, atoms)
    groups = _group_atoms(atoms, pool.weights)
    shared = make_design(group, level, mean_prediction, n_items)
    has_items = n_items > 0
    tilted = _tilted_cells(
        atoms, groups, snapshots, table[has_items], shared.design.select(has_items)
    )
    fit = fit_effects(tilted, shared.kind)
    tilts = _tilt_all(tilted, shared, fit.effects, has_items)
    placed = place_tails(atoms, pool.weights, np.asarray(items @ checked[:, N_LEADING:]))
    return Deconvolution(
        placed.points,
        groups.member[placed.atom],
        _part_of_group(groups, pool.weights)[placed.atom] * placed.share,
        _match_pool(tilts, groups, n_items),
        pool.weights[placed.atom] * placed.share,
        dict(zip([*shared.names, "cell"], fit.scales.tolist(), strict=True)),
        pool.gap,
        pool.n_iterations + fit.n_rounds,
        _sources(n_items, group, level),
    )


def _tilt_all(tilted: TiltedCells, shared: SharedEffects, effects: Array, has_items: Mask) -> Array:
    """Return the weights of the groups in every cell; one without items has shared effects only."""
    n_shared = len(shared.kind)
    theta = shared.design.sum_effects(effects[:n_shared])
    theta[has_items] += effects[n_shared:]
    weights = tilted.tilt(theta)
    weights[has_items] = _follow_labels(tilted, weights[has_items])
    return weights


def _part_of_group(groups: _AtomGroups, pool: Array) -> Array:
    """Return what part of its group each atom is, in every cell."""
    return np.asarray(pool / groups.weights[groups.member])


def _sources(n_items: Array, group: Index, level: Index) -> NDArray[np.str_]:
    """Return whose items each cell's mixture comes from."""
    related_items = np.bincount(group, n_items)[group] + np.bincount(level, n_items)[level]
    elsewhere = np.where(related_items > 0, "neighbours", "pool")
    return np.where(n_items > 0, "cell", elsewhere)


def _estimate_pool(snapshots: IntArray, frequency: Array, atoms: Atoms) -> _Pool:
    """Fit one mixture to all items, and tilt it in what two labels identify."""
    sample, times = sample_snapshots(snapshots, frequency)
    likelihood = snapshot_likelihood(sample, atoms)
    n_labels = snapshots[:, :-1].sum(axis=1) @ frequency
    prior_items = PRIOR_LABELS * frequency.sum() / n_labels
    found = fit_pool(likelihood, times, prior=prior_items)
    weights = _sharpen(found.weights, likelihood, times, atoms)
    return _Pool(weights, found.gap, found.n_iterations)


def _sharpen(pool: Array, likelihood: Array, frequency: Array, atoms: Atoms) -> Array:
    """Tilt the pool in what two labels identify, the first rank and ||p||^2, by its likelihood."""
    features = _whiten(np.column_stack([atoms.lumped[:, 0], atoms.squares]), pool)
    no_effects = Design(np.empty((1, 0)), sparse.csr_array((1, 0)), sparse.csr_array((0, 1)))
    items = sparse.csr_array(frequency[None])
    one_cell = TiltedCells(features, pool, likelihood, items, no_effects)
    tilt = penalised_fit(one_cell, np.zeros((1, 2)), np.array([SLIGHT_PRECISION]))
    return np.asarray(one_cell.tilt(tilt)[0])


def _tabulate(counts: Counts, cells: Index, items: Array, n_cells: int) -> tuple[Any, IntArray]:
    """Return the number of items of each snapshot in each cell, and the snapshots in order.

    A snapshot is a row of counts of the leading ranks, of the tail, and of the tail's ranks with
    labels.
    """
    leading = counts[:, :N_LEADING]
    tail = counts[:, N_LEADING:]
    dense = leading if isinstance(leading, np.ndarray) else leading.toarray()
    sums = [np.zeros(len(dense), dtype=np.int64)]
    if tail.shape[1]:
        sums = [tail.sum(axis=1), (tail > 0).sum(axis=1)]
    packed = distinct_rows(np.column_stack([dense, *sums]))
    shape = (n_cells, len(packed.multiplicity))
    table = sparse.coo_array((items, (cells, packed.inverse)), shape=shape).tocsr()
    table.sort_indices()
    return table, np.asarray(packed.unique)


def _group_atoms(atoms: Atoms, pool: Array) -> _AtomGroups:
    """Group atoms of like features: probability of the first rank and root of the entropy."""
    entropy = np.maximum(atoms.entropy, 0.0)
    # The root steadies the variance of the entropy.
    features = np.column_stack([atoms.lumped[:, 0], np.sqrt(entropy)])
    scaled = features / features.max(axis=0)
    bins = np.floor(scaled * (N_BINS - BELOW_ONE)).astype(np.int64)
    member = np.unique(bins @ [N_BINS, 1], return_inverse=True)[1]
    belongs = sparse.csr_array((pool, member, np.arange(len(pool) + 1)))
    weights = np.asarray(belongs.sum(axis=0), dtype=np.float64)
    means = (belongs.T @ np.column_stack([features, entropy])) / weights[:, None]
    white = _whiten(means[:, :2], weights)
    return _AtomGroups(member, weights, white, means[:, [0, 2]], belongs)


def _tilted_cells(
    atoms: Atoms, groups: _AtomGroups, snapshots: IntArray, table: Any, design: Design
) -> TiltedCells:
    """Return what the tilts are fitted to: the likelihood of each snapshot under each group."""
    parts = np.array_split(snapshots, len(snapshots) // N_LIKELIHOOD_ROWS + 1)
    sums = np.concatenate([snapshot_likelihood(part, atoms) @ groups.belongs for part in parts])
    likelihood = sums / groups.weights
    shape = (table.shape[0], table.nnz)
    items = sparse.csr_array((table.data, np.arange(table.nnz), table.indptr), shape=shape)
    return TiltedCells(groups.features, groups.weights, likelihood[table.indices], items, design)


def _whiten(features: Array, weights: Array) -> Array:
    """Return features made uncorrelated with unit variance; flat directions become 0."""
    centred = features - weights @ features
    variance, axes = np.linalg.eigh((centred * weights[:, None]).T @ centred)
    flat = variance <= FLAT_SHARE * variance.max()
    deviation = np.where(flat, np.inf, np.sqrt(np.where(flat, 1.0, variance)))
    return np.asarray(centred @ axes / deviation)


def _follow_labels(tilted: TiltedCells, prior: Array) -> Array:
    """Take steps of expectation maximisation from the prior, which counts as PRIOR_ITEMS items."""
    weights = np.empty_like(prior)
    for block in tilted.blocks:
        start = prior[block.cells]
        here = start
        ratios = sparse.csr_array((block.items, np.arange(block.first[-1]), block.first))
        total = PRIOR_ITEMS + ratios.sum(axis=1)[:, None]
        for _ in range(N_LOOSENING_STEPS):
            ratios.data = block.items / block.weigh(here).sum(axis=1)
            here = (PRIOR_ITEMS * start + here * (ratios @ block.likelihood)) / total
        weights[block.cells] = here
    return weights


def _match_pool(weights: Array, groups: _AtomGroups, n_items: Array) -> Array:
    """Tilt all cells alike until their item-weighted mean moments equal the pool's: convex."""
    centred = groups.moments - groups.weights @ groups.moments
    spread = np.sqrt(groups.weights @ centred**2)
    scaled = centred / np.maximum(spread, LEAST_SPREAD)
    logs = np.log(np.maximum(weights, LEAST_WEIGHT))
    share = n_items / n_items.sum()

    def objective(tilt: Array) -> tuple[float, Array]:
        tilted = logs + scaled @ tilt
        value = float(share @ special.logsumexp(tilted, axis=1))
        gradient = share @ special.softmax(tilted, axis=1) @ scaled
        return value, gradient

    start = np.zeros(scaled.shape[1])
    options = {"gtol": GRADIENT_TOLERANCE}
    found = optimize.minimize(objective, start, jac=True, method="BFGS", options=options)
    return np.asarray(special.softmax(logs + scaled @ found.x, axis=1))
