"""Deconvolution: estimate the mixture of label distributions behind few labels an item (spec 3.5).

Everything happens over ranks: each item's classes are in order of falling predicted probability.

1. The pool: nonparametric maximum likelihood of one mixture for all items on a fixed dictionary of label
   distributions ("atoms") with a weak uniform prior, solved to a duality gap. The prior decides what few
   labels leave open; what two labels do tell, a tilt in the first rank and in ||p||^2 takes from them alone.
2. The cells: each cell's mixture is the pool tilted by exp(theta . phi), phi = (probability of the first
   rank, square root of the entropy). theta is a regression on what the model predicts in the cell, plus
   effects of its group, its level and itself. The scale of each of these is chosen by the marginal
   likelihood of the labels, so a cell with few items leans on its relatives, an empty one on them alone.
3. A cell leaves this family as far as its own labels ask for it: expectation maximisation with the tilted
   pool as a prior of PRIOR_ITEMS items. Large cells thus are free to take any shape.
4. One common tilt makes the cells agree with the pool on average over the items: fitted alone, small cells
   look too extreme.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, sparse, special

from hocal._validation import Counts, check_cells, check_counts, check_whole
from hocal.npmle import N_LEADING, Atoms, fit_pool, make_atoms, sample_snapshots, snapshot_likelihood
from hocal.snapshots import compress

__all__ = ["Deconvolution", "deconvolve"]

PRIOR_LABELS = 100.0  # the prior on the pool weighs as much as this many labels
PRIOR_ITEMS = 200.0  # a cell's tilted pool weighs as much as this many of its items
N_BINS = 24  # atoms whose two features lie in the same of 24 x 24 bins are tilted together
SCALE_RANGE = (0.01, 3.0)  # of the effects; at the lower end an effect changes nothing
MAX_STEPS = 100  # of Newton's method for the effects; it takes about five
MAX_STEP = 2.0  # change of an effect in one step: far away the curvature tells little, and weights underflow
BLOCK = 500  # pairs of a cell and a snapshot that are looked at together: their weights then stay in the cache
ENOUGH = 1e-8  # expected gain of the last step, in nats of all labels together

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Snapshots = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Deconvolution:
    """Estimated mixtures, one a cell, of label distributions in order of falling prediction."""

    atoms: Array  #: (n_atoms, n_classes), label distributions over ranks, shared by all cells
    weights: Array  #: (n_cells, n_atoms), the mixture of each cell; rows sum to 1
    pool: Array  #: (n_atoms,), the mixture of all items together
    scales: dict[str, float]  #: spread of each kind of effect, chosen from the data; small is much shrinkage
    gap: float  #: bound on what the pool's penalised log-likelihood is short of its maximum, in nats an item
    n_iterations: int  #: Newton steps for the pool plus rounds of choosing the scales
    source: NDArray[np.str_]  #: (n_cells,), "cell", for empty cells "neighbours" (group or level) or "pool"


class _Block(NamedTuple):
    """Some of the filled cells."""

    cells: slice
    first: Index  #: (n_cells + 1,), the first pair of each cell, counted in the block, and the number of pairs
    items: Array  #: (n_pairs,)
    likelihood: Array  #: (n_pairs, n_groups)

    def weigh(self, weights: Array) -> Array:
        """Return the joint density of each pair's snapshot and the groups, given the weights in the cells."""
        joint = np.repeat(weights, np.diff(self.first), axis=0)
        joint *= self.likelihood
        return joint


class _Cells(NamedTuple):
    """What the tilts of the filled cells are fitted to; a pair is a cell with one of its snapshots."""

    features: Array  #: (n_groups, 2) of groups of like atoms, uncorrelated with unit variance under the pool
    pool: Array  #: (n_groups,)
    likelihood: Array  #: (n_pairs, n_groups)
    items: sparse.csr_array  #: (n_filled, n_pairs), how many items a pair has, in the row of its cell
    design: Array  #: (n_filled, n_shared): theta = design @ shared effects + the cell's own effect

    def tilt(self, theta: Array) -> Array:
        """Return the weights of the groups in each cell."""
        logs = theta @ self.features.T
        logs += np.log(self.pool)
        logs -= logs.max(axis=1, keepdims=True)
        weights = np.exp(logs, out=logs)
        weights /= weights.sum(axis=1, keepdims=True)
        return weights

    def expect(self, effects: Array) -> tuple[Array, Array, Array]:
        """Return the mean moments of the features in each cell and given each pair, and the pairs' densities."""
        n_shared = self.design.shape[1]
        weights = self.tilt(self.design @ effects[:n_shared] + effects[n_shared:])
        first, second = self.features.T
        moments = np.column_stack([first, second, first**2, first * second, second**2])
        wanted = np.column_stack([moments, np.ones(len(moments))])
        sums = np.concatenate([block.weigh(weights[block.cells]) @ wanted for block in self.blocks()])
        return weights @ moments, sums[:, :5] / sums[:, 5:], sums[:, 5]

    def blocks(self) -> list[_Block]:
        """Return runs of whole cells with about BLOCK pairs each, or one cell with more."""
        first, items = self.items.indptr, self.items.data
        cuts = np.unique([0, *np.searchsorted(first, np.arange(BLOCK, first[-1], BLOCK)), len(first) - 1])
        runs = [(slice(a, b), first[a : b + 1], slice(first[a], first[b])) for a, b in pairwise(cuts.tolist())]
        return [_Block(cells, at - at[0], items[pairs], self.likelihood[pairs]) for cells, at, pairs in runs]


class _Objective(NamedTuple):
    """The penalised log-likelihood at some effects, its gradient, and the cells' curvature in theta."""

    value: float
    gradient: Array  #: (n_effects, 2)
    curvature: Array  #: (n_filled, 2, 2), negative directions set to 0


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
        Count vectors over ranks, with any numbers of labels. Some rows need two labels or more: from one
        label an item, disagreement is a guess of the prior.
    cells : array of shape (n_rows,)
        Cell of each row.
    multiplicity : array of shape (n_rows,)
        Number of items with this row, at least 1.
    group, level : array of shape (n_cells,)
        Two ways in which cells are related, such as their top label and their slice.
    mean_prediction : array of shape (n_cells, n_classes), optional
        Mean prediction over ranks of each cell's items, NaN for empty cells. It sharpens the estimate.

    Returns
    -------
    Deconvolution
        The mixtures; the same whatever the order of the rows.

    Examples
    --------
    Half of all pairs of labels disagree: every item is a coin toss, none is clear.

    >>> from hocal.deconvolution import deconvolve
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
    n_items, frequency = np.asarray(table.sum(axis=1)), np.asarray(table.sum(axis=0))
    atoms = make_atoms(snapshots, frequency, checked.shape[1])
    sample, times = sample_snapshots(snapshots, frequency)
    likelihood = snapshot_likelihood(sample, atoms)
    found = fit_pool(
        likelihood, times, prior=PRIOR_LABELS * frequency.sum() / (snapshots[:, :-1].sum(axis=1) @ frequency)
    )
    pool = _sharpen(found.weights, likelihood, times, atoms.points)
    names, kind, design = _design(kin, mean_prediction, n_items)
    filled, member, moments = _group_atoms(atoms, pool, snapshots, table[n_items > 0], design[n_items > 0])
    effects, scales, n_rounds = _fit_effects(filled, kind)
    theta = design @ effects[: len(kind)]
    theta[n_items > 0] += effects[len(kind) :]
    weights = filled.tilt(theta)
    weights[n_items > 0] = _loosen(filled, weights[n_items > 0])
    weights = _match_pool(weights, filled.pool, moments, n_items)
    weights = weights[:, member] * (pool / filled.pool[member])
    spread = dict(zip([*names, "cell"], scales.tolist(), strict=True))
    related = np.bincount(kin[0], n_items)[kin[0]] + np.bincount(kin[1], n_items)[kin[1]] > 0
    source = np.where(n_items > 0, "cell", np.where(related, "neighbours", "pool"))
    return Deconvolution(atoms.points, weights, pool, spread, found.gap, found.n_iterations + n_rounds, source)


def _sharpen(pool: Array, likelihood: Array, frequency: Array, atoms: Array) -> Array:
    """Tilt the pool by maximum likelihood in what two labels identify, the first rank and ||p||^2."""
    features = _whiten(np.column_stack([atoms[:, 0], (atoms**2).sum(axis=1)]), pool)
    one_cell = _Cells(features, pool, likelihood, sparse.csr_array(frequency[None]), np.empty((1, 0)))
    # The slight penalty only matters where the likelihood has no maximum.
    sharpened: Array = one_cell.tilt(_penalised_fit(one_cell, np.zeros((1, 2)), np.array([0.04])))[0]
    return sharpened


def _tabulate(counts: Counts, cells: Index, items: Array, n_cells: int) -> tuple[Any, Snapshots]:
    """Return the number of items of each snapshot in each cell, and the snapshots in lexicographic order.

    A snapshot is a row of counts of the leading ranks, of the tail, and of the tail's ranks with labels.
    """
    leading, tail = counts[:, :N_LEADING], counts[:, N_LEADING:]
    dense = leading if isinstance(leading, np.ndarray) else leading.toarray()
    sums = [tail.sum(axis=1), (tail > 0).sum(axis=1)] if tail.shape[1] else [np.zeros(len(dense), dtype=np.int64)]
    packed = compress(np.column_stack([dense, *sums]))
    table = sparse.coo_array((items, (cells, packed.inverse)), shape=(n_cells, len(packed.multiplicity))).tocsr()
    table.sort_indices()
    return table, np.asarray(packed.unique)


def _group_atoms(
    atoms: Atoms, pool: Array, snapshots: Snapshots, table: Any, design: Array
) -> tuple[_Cells, Index, Array]:
    """Group atoms of like features; also return each atom's group and the groups' mean first rank and entropy."""
    entropy = special.entr(atoms.points).sum(axis=1)
    raw = np.column_stack([atoms.points[:, 0], np.sqrt(entropy)])  # the root steadies the variance of the entropy
    bins = np.floor(raw / raw.max(axis=0) * (N_BINS - 1e-9)).astype(np.int64)
    member = np.unique(bins @ [N_BINS, 1], return_inverse=True)[1]
    belongs = sparse.csr_array((pool, member, np.arange(len(pool) + 1)))  # (n_atoms, n_groups)
    mass = np.asarray(belongs.sum(axis=0), dtype=np.float64)
    means = (belongs.T @ np.column_stack([raw, entropy])) / mass[:, None]
    parts = np.array_split(snapshots, len(snapshots) // 1024 + 1)
    likelihood = np.concatenate([snapshot_likelihood(part, atoms) @ belongs for part in parts]) / mass
    items = sparse.csr_array((table.data, np.arange(table.nnz), table.indptr), shape=(table.shape[0], table.nnz))
    filled = _Cells(_whiten(means[:, :2], mass), mass, likelihood[table.indices], items, design)
    return filled, member, means[:, [0, 2]]


def _whiten(features: Array, weights: Array) -> Array:
    """Return features turned and scaled to be uncorrelated with unit variance; flat directions become 0."""
    centred = features - weights @ features
    variance, axes = np.linalg.eigh((centred * weights[:, None]).T @ centred)
    flat = variance <= 1e-4 * variance.max()
    return np.asarray(centred @ axes / np.where(flat, np.inf, np.sqrt(np.where(flat, 1.0, variance))))


def _design(kin: list[Index], mean_prediction: ArrayLike | None, n_items: Array) -> tuple[list[str], Index, Array]:
    """Return the names of the kinds of shared effects, each column's kind, and the design (n_cells, n_shared)."""
    names, columns, kind = [], [np.empty((len(n_items), 0))], []
    if mean_prediction is not None:
        names, kind = ["confidence", "predicted entropy"], [0, 1]
        columns.append(_covariates(np.asarray(mean_prediction, dtype=np.float64), kin[1], n_items))
    for name, member in zip(("group", "level"), kin, strict=True):
        size = int(member.max()) + 1
        if 1 < size < len(member):  # else it says nothing, or the same as the cells themselves
            kind += [len(names)] * size
            names.append(name)
            columns.append(np.eye(size)[member])
    return names, np.array(kind, dtype=np.intp), np.concatenate(columns, axis=1)


def _covariates(mean_prediction: Array, level: Index, n_items: Array) -> Array:
    """Return log-odds of the mean top prediction and entropy of the mean prediction, standardised over items."""
    top = np.clip(mean_prediction[:, 0], 1e-4, 1 - 1e-4)
    raw = np.column_stack([special.logit(top), special.entr(mean_prediction).sum(axis=1)])
    empty = n_items == 0
    raw[empty] = 0
    raw[~empty] -= n_items @ raw / n_items.sum()
    level_items = np.bincount(level, n_items)[level]
    for column in raw.T:  # an empty cell predicts like the others of its level
        column[empty] = (np.bincount(level, n_items * column)[level] / np.maximum(level_items, 1))[empty]
    spread = np.sqrt(n_items @ raw**2 / n_items.sum())
    return np.asarray(raw / np.where(spread > 1e-9, spread, np.inf))


def _fit_effects(filled: _Cells, shared_kind: Index) -> tuple[Array, Array, int]:
    """Return the effects, shared ones first, the scales, and the rounds it took to choose these.

    MacKay's update for the Laplace approximation of the marginal likelihood: scale**2 is the sum of squares
    of the effects of a kind over the number the data determine, sum(1 - posterior variance / scale**2).
    """
    own = int(shared_kind.max(initial=-1)) + 1
    kind = np.concatenate([shared_kind, np.full(len(filled.design), own, dtype=np.intp)])
    squares, effects, n_rounds, settled = np.full(own + 1, 0.1), np.zeros((len(kind), 2)), 0, False
    while not settled and n_rounds < 40:
        effects = _penalised_fit(filled, effects, 1 / squares[kind])
        variance = _posterior_variance(_information(filled, effects), filled.design, 1 / squares[kind])
        determined = np.bincount(kind, 2 - variance / squares[kind])
        update = np.bincount(kind, (effects**2).sum(axis=1)) / np.maximum(determined, 1e-9)
        update = np.clip(update, *np.square(SCALE_RANGE))
        settled = bool(np.abs(np.log(update / squares)).max() < 0.02)
        squares, n_rounds = update, n_rounds + 1
    return effects, np.sqrt(squares), n_rounds


def _penalised_fit(filled: _Cells, start: Array, precision: Array) -> Array:
    """Return the effects that maximise the likelihood of the cells' snapshots minus precision * effect**2 / 2."""
    effects, here = start, _evaluate(filled, start, precision)
    for _ in range(MAX_STEPS):
        direction = _newton_direction(here, filled.design, precision)
        direction /= max(np.abs(direction).max() / MAX_STEP, 1.0)
        decrement, step = float((here.gradient * direction).sum()), 1.0
        ahead = _evaluate(filled, effects + direction, precision)
        while ahead.value < here.value + 1e-4 * step * decrement and decrement > ENOUGH and step > 1e-9:
            step /= 2
            ahead = _evaluate(filled, effects + step * direction, precision)
        effects, here = effects + step * direction, ahead
        if decrement <= ENOUGH:
            break
    return effects


def _evaluate(filled: _Cells, effects: Array, precision: Array) -> _Objective:
    """Evaluate the objective of `_penalised_fit`."""
    cell, pair, density = filled.expect(effects)
    n_items = np.asarray(filled.items.sum(axis=1))[:, None]
    excess = filled.items @ pair[:, :2] - n_items * cell[:, :2]
    gradient = np.concatenate([filled.design.T @ excess, excess]) - precision[:, None] * effects
    value = filled.items.data @ np.log(density) - 0.5 * (precision @ (effects**2).sum(axis=1))
    unexplained = (filled.items @ _covariance(pair).reshape(-1, 4)).reshape(-1, 2, 2)
    size, axes = np.linalg.eigh(n_items[..., None] * _covariance(cell) - unexplained)
    return _Objective(float(value), gradient, (axes * np.maximum(size, 0)[:, None]) @ axes.transpose(0, 2, 1))


def _covariance(moments: Array) -> Array:
    """Return covariances (n, 2, 2) from the moments that `_Cells.expect` gives."""
    mean, products = moments[:, :2], moments[:, [2, 3, 3, 4]].reshape(-1, 2, 2)
    return np.asarray(products - mean[:, :, None] * mean[:, None, :])


def _newton_direction(at: _Objective, design: Array, precision: Array) -> Array:
    """Return the Newton step for all effects; the cells' own are eliminated, each is coupled to shared ones only."""
    n_shared = design.shape[1]
    own, system = _eliminate(at.curvature, design, precision)
    pulled = at.curvature @ own @ at.gradient[n_shared:, :, None]  # what the cells' own effects will take
    shared = np.linalg.solve(system, (at.gradient[:n_shared] - design.T @ pulled[..., 0]).reshape(-1)).reshape(-1, 2)
    left = at.gradient[n_shared:, :, None] - at.curvature @ (design @ shared)[..., None]
    return np.concatenate([shared, (own @ left)[..., 0]])


def _eliminate(information: Array, design: Array, precision: Array) -> tuple[Array, Array]:
    """Return the cells' own covariances given the shared effects, and the matrix of the system of the latter."""
    n_shared = design.shape[1]
    own = np.linalg.inv(information + np.eye(2) * precision[n_shared:, None, None]).astype(np.float64)
    passed = information - information @ own @ information
    products = np.tensordot(design, passed[..., None] * design[:, None, None], axes=(0, 0))  # (m, i, j, n)
    system = products.transpose(0, 1, 3, 2).reshape((2 * n_shared,) * 2)
    return own, system + np.diag(np.repeat(precision[:n_shared], 2))


def _information(filled: _Cells, effects: Array) -> Array:
    """Return each cell's information on its theta: the sum of outer products of its items' scores."""
    cell, pair, _ = filled.expect(effects)
    score = pair[:, :2] - np.repeat(cell[:, :2], np.diff(filled.items.indptr), axis=0)
    outer = (score[:, :, None] * score[:, None, :]).reshape(-1, 4)
    return np.asarray(filled.items @ outer).reshape(-1, 2, 2)


def _posterior_variance(information: Array, design: Array, precision: Array) -> Array:
    """Return the trace of each effect's posterior covariance, shared effects first, then the cells' own."""
    n_shared = design.shape[1]
    own, system = _eliminate(information, design, precision)
    shared = np.linalg.inv(system).reshape(n_shared, 2, n_shared, 2)
    spread = (np.tensordot(design, shared, axes=(1, 0)) * design[:, None, :, None]).sum(axis=2)
    gain = own @ information
    total = own + gain @ spread @ gain.transpose(0, 2, 1)
    return np.concatenate([np.einsum("mimi->m", shared), np.einsum("cii->c", total)])


def _loosen(filled: _Cells, prior: Array) -> Array:
    """Take 30 steps of expectation maximisation from the prior, which counts as PRIOR_ITEMS items."""
    weights = np.empty_like(prior)
    for block in filled.blocks():
        here, ratios = prior[block.cells], sparse.csr_array((block.items, np.arange(block.first[-1]), block.first))
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
    logs, share = np.log(np.maximum(weights, 1e-300)), n_items / n_items.sum()

    def objective(tilt: Array) -> tuple[float, Array]:
        tilted = logs + scaled @ tilt
        return float(share @ special.logsumexp(tilted, axis=1)), share @ special.softmax(tilted, axis=1) @ scaled

    found = optimize.minimize(objective, np.zeros(scaled.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-8})
    return np.asarray(special.softmax(logs + scaled @ found.x, axis=1))
