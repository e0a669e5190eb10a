"""Tilt one mixture for each cell, by effects that related cells share.

The tilt of a cell is exp(theta . phi) with two features phi; theta is a regression on covariates
plus effects of the cell's group, of its level and of itself, each kind with a scale that the data
choose.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse, special

from hocal._base.typing import Array, Index, Mask

__all__ = [
    "Design",
    "EffectsFit",
    "SharedEffects",
    "TiltedCells",
    "fit_effects",
    "make_design",
    "penalised_fit",
]

# Of the effects. At the lower end an effect changes nothing; at the upper end a cell can be any
# tilt of the pool.
SCALE_RANGE = (0.01, 3.0)
# Square of every scale at the start: effects of moderate size, from which both ends are near.
FIRST_SQUARE = 0.1
# Relative change of all squared scales below which they are settled: 1% of a scale.
SETTLED = 0.02
MAX_ROUNDS = 40  # of choosing the scales; it takes 15 to 35
# Of Newton's method for the effects; it takes about five, dozens where curvatures are set to 0.
MAX_STEPS = 100
# Change of an effect in one step: far away the curvature tells little, and weights underflow.
MAX_STEP = 2.0
# Share of the gain that the slope promises which a step must bring, as usual for a line search.
SUFFICIENT_GAIN = 1e-4
SHORTEST_STEP = 1e-9  # of the Newton step: beyond, rounding decides whether there is a gain
ENOUGH = 1e-8  # expected gain of the last step, in nats of all labels together
# Pairs of a cell and a snapshot that are looked at together: their weights then stay in the cache.
BLOCK = 500
SUREST = 1e-4  # distance to 0 and 1 that is kept by a mean top prediction, so that log-odds exist
FLAT = 1e-9  # spread of a covariate over the items below which it is constant
NONE_DETERMINED = 1e-9  # effects that the data determine, at least, so that nothing is divided by 0


class _Block(NamedTuple):
    """Some of the cells with items."""

    cells: slice
    #: (n_cells + 1,), the first pair of each cell, counted in the block, and the number of pairs
    first: Index
    items: Array  #: (n_pairs,)
    likelihood: Array  #: (n_pairs, n_groups)

    def weigh(self, weights: Array) -> Array:
        """Return the joint density of each pair's snapshot and the groups in its cell."""
        joint = np.repeat(weights, np.diff(self.first), axis=0)
        joint *= self.likelihood
        return joint


class Design(NamedTuple):
    """Which shared effects the cells have: the common ones, weighted, and that of their family."""

    #: (n_cells, n_common), covariates and membership in the fewer of groups and levels
    common: Array
    #: (n_cells, n_families), membership in the more numerous of groups and levels
    family: sparse.csr_array
    #: (n_families, n_cells), its transpose, which takes as long to make as to use
    members: sparse.csr_array

    @property
    def n_common(self) -> int:
        """Return the number of common effects."""
        return int(self.common.shape[1])

    def select(self, cells: Mask) -> Design:
        """Return the design of some of the cells."""
        return Design(self.common[cells], self.family[cells], self.members[:, cells])

    def sum_effects(self, effects: Array) -> Array:
        """Return for each cell the sum over its shared effects of an array that each has."""
        rows = effects.reshape(len(effects), math.prod(effects.shape[1:]))
        sums = self.common @ rows[: self.n_common] + self.family @ rows[self.n_common :]
        return np.asarray(sums).reshape(len(sums), *effects.shape[1:])

    def sum_cells(self, values: Array) -> Array:
        """Return for each shared effect the sum over its cells: the transpose of `sum_effects`."""
        rows = values.reshape(len(values), math.prod(values.shape[1:]))
        sums = np.concatenate([self.common.T @ rows, self.members @ rows])
        return sums.reshape(len(sums), *values.shape[1:])


@dataclass(frozen=True, eq=False)
class TiltedCells:
    """What tilts of cells with items are fitted to; a pair is a cell and one of its snapshots."""

    #: (n_groups, 2) of groups of like atoms, uncorrelated with unit variance under the pool
    features: Array
    pool: Array  #: (n_groups,)
    likelihood: Array  #: (n_pairs, n_groups)
    #: (n_cells, n_pairs), how many items a pair has, in the row of its cell
    items: sparse.csr_array
    #: theta is the sum of a cell's shared effects and its own
    design: Design

    @property
    def n_cells(self) -> int:
        """Return the number of cells."""
        return int(self.items.shape[0])

    @cached_property
    def n_items(self) -> Array:
        """Return the number of items of each cell."""
        return np.asarray(self.items.sum(axis=1))

    @cached_property
    def moments(self) -> Array:
        """Return the features, their squares and their product, (n_groups, 5)."""
        first, second = self.features.T
        return np.column_stack([first, second, first**2, first * second, second**2])

    @cached_property
    def blocks(self) -> list[_Block]:
        """Return runs of whole cells with about BLOCK pairs each, or one cell with more."""
        first = self.items.indptr
        inner = np.searchsorted(first, np.arange(BLOCK, first[-1], BLOCK))
        cuts = np.unique([0, *inner, len(first) - 1])
        return [self._block(start, stop) for start, stop in pairwise(cuts.tolist())]

    def _block(self, start: int, stop: int) -> _Block:
        first = self.items.indptr[start : stop + 1]
        pairs = slice(first[0], first[-1])
        return _Block(
            slice(start, stop), first - first[0], self.items.data[pairs], self.likelihood[pairs]
        )

    def tilt(self, theta: Array) -> Array:
        """Return the weights of the groups in each cell."""
        logs = theta @ self.features.T
        logs += np.log(self.pool)
        logs -= logs.max(axis=1, keepdims=True)
        weights = np.exp(logs, out=logs)
        weights /= weights.sum(axis=1, keepdims=True)
        return weights

    def expect(self, effects: Array) -> _Expectations:
        """Return what the features are on average at some effects, shared ones first."""
        n_shared = len(effects) - self.n_cells
        theta = self.design.sum_effects(effects[:n_shared]) + effects[n_shared:]
        weights = self.tilt(theta)
        summed = np.column_stack([self.moments, np.ones(len(self.moments))])
        sums = np.concatenate([block.weigh(weights[block.cells]) @ summed for block in self.blocks])
        density = sums[:, 5]
        return _Expectations(weights @ self.moments, sums[:, :5] / density[:, None], density)


class _Expectations(NamedTuple):
    """Mean moments of the features, as `TiltedCells.moments` lists them."""

    cell: Array  #: (n_cells, 5)
    pair: Array  #: (n_pairs, 5), given the snapshot of the pair
    density: Array  #: (n_pairs,) of the snapshot in its cell


class _Objective(NamedTuple):
    """The penalised log-likelihood at some effects, its gradient, the cells' curvature in theta."""

    value: float
    gradient: Array  #: (n_effects, 2)
    curvature: Array  #: (n_cells, 2, 2), negative directions set to 0


class _Elimination(NamedTuple):
    """The system of all effects, reduced to the common ones.

    A cell's own effect is coupled to the shared ones alone, a family's then to the common ones
    alone. So both are eliminated in blocks of 2 x 2, and the cost grows in proportion to the number
    of families.
    """

    own: Array  #: (n_cells, 2, 2), covariance of each cell's own effect given the shared ones
    #: (n_shared, 2, 2), covariance of each shared effect given the common ones, 0 for these
    conditional: Array
    slopes: Array  #: (n_shared, 2, 2 n_common), derivative of each shared effect in the common ones
    system: Array  #: (2 n_common, 2 n_common), precision of the common effects


class SharedEffects(NamedTuple):
    """The effects that cells share."""

    names: list[str]  #: of the kinds of effects
    kind: Index  #: (n_shared,) kind of each effect, a position in the names
    design: Design  #: which cells have which effects


def make_design(
    group: Index, level: Index, mean_prediction: ArrayLike | None, n_items: Array
) -> SharedEffects:
    """Return the shared effects: of covariates, if there are predictions, groups and levels."""
    names = []
    kind = []
    columns = [np.empty((len(n_items), 0))]
    family = sparse.csr_array((len(n_items), 0))
    if mean_prediction is not None:
        names = ["confidence", "predicted entropy"]
        kind = [0, 1]
        columns.append(_covariates(np.asarray(mean_prediction, dtype=np.float64), level, n_items))
    memberships = {"group": group, "level": level}
    related = {name: member for name, member in memberships.items() if _relates_some(member)}
    names += related
    # The more numerous come last and become the family, the only ones kept sparse.
    for name in sorted(related, key=lambda name: int(related[name].max())):
        columns.append(family.toarray())
        family = _membership(related[name])
        kind += [names.index(name)] * family.shape[1]
    design = Design(np.concatenate(columns, axis=1), family, family.T.tocsr())
    return SharedEffects(names, np.array(kind, dtype=np.intp), design)


def _relates_some(member: Index) -> bool:
    """One member for all cells says nothing, one for each cell the same as the cells themselves."""
    return bool(0 < member.max() < len(member) - 1)


def _membership(member: Index) -> sparse.csr_array:
    """Return a matrix with a 1 for each cell in the column of what it is a member of."""
    return sparse.csr_array((np.ones(len(member)), member, np.arange(len(member) + 1)))


def _covariates(mean_prediction: Array, level: Index, n_items: Array) -> Array:
    """Return log-odds of the top and entropy of the mean prediction, standardised over items."""
    top = np.clip(mean_prediction[:, 0], SUREST, 1 - SUREST)
    raw = np.column_stack([special.logit(top), special.entr(mean_prediction).sum(axis=1)])
    empty = n_items == 0
    raw[empty] = 0
    raw[~empty] -= n_items @ raw / n_items.sum()
    level_items = np.maximum(np.bincount(level, n_items)[level], 1)
    for column in raw.T:  # an empty cell predicts like the others of its level
        level_means = np.bincount(level, n_items * column)[level] / level_items
        column[empty] = level_means[empty]
    spread = np.sqrt(n_items @ raw**2 / n_items.sum())
    return np.asarray(raw / np.where(spread > FLAT, spread, np.inf))


class EffectsFit(NamedTuple):
    """Effects with the scales that the data chose for them."""

    effects: Array  #: (n_shared + n_cells, 2), shared ones first
    scales: Array  #: (n_kinds + 1,), the last is that of the cells' own effects
    n_rounds: int  #: that choosing the scales took


def fit_effects(cells: TiltedCells, shared_kind: Index) -> EffectsFit:
    """Return the effects, with scales chosen by the marginal likelihood of the labels.

    MacKay's update for its Laplace approximation: scale**2 is the sum of squares of the effects of
    a kind over the number the data determine, sum(1 - posterior variance / scale**2).
    """
    own_kind = int(shared_kind.max(initial=-1)) + 1
    kind = np.concatenate([shared_kind, np.full(cells.n_cells, own_kind, dtype=np.intp)])
    squares = np.full(own_kind + 1, FIRST_SQUARE)
    effects = np.zeros((len(kind), 2))
    n_rounds = 0
    settled = False
    while not settled and n_rounds < MAX_ROUNDS:
        effects = penalised_fit(cells, effects, 1 / squares[kind])
        update = _update_squares(cells, effects, kind, squares)
        settled = bool(np.abs(np.log(update / squares)).max() < SETTLED)
        squares = update
        n_rounds = n_rounds + 1
    return EffectsFit(effects, np.sqrt(squares), n_rounds)


def _update_squares(cells: TiltedCells, effects: Array, kind: Index, squares: Array) -> Array:
    """Return the squared scales of the next round."""
    prior = squares[kind]
    variance = _posterior_variance(_information(cells, effects), cells.design, 1 / prior)
    determined = np.bincount(kind, 2 - variance / prior)
    sizes = np.bincount(kind, (effects**2).sum(axis=1))
    update = sizes / np.maximum(determined, NONE_DETERMINED)
    return np.asarray(np.clip(update, *np.square(SCALE_RANGE)))


def penalised_fit(cells: TiltedCells, start: Array, precision: Array) -> Array:
    """Return the effects of the largest log-likelihood minus precision * effect**2 / 2."""
    effects = start
    here = _evaluate(cells, start, precision)
    for _ in range(MAX_STEPS):
        direction = _newton_direction(here, cells.design, precision)
        direction /= max(np.abs(direction).max() / MAX_STEP, 1.0)
        promised = float((here.gradient * direction).sum())
        step = 1.0
        ahead = _evaluate(cells, effects + direction, precision)
        while (
            ahead.value < here.value + SUFFICIENT_GAIN * step * promised
            and promised > ENOUGH
            and step > SHORTEST_STEP
        ):
            step /= 2
            ahead = _evaluate(cells, effects + step * direction, precision)
        effects = effects + step * direction
        here = ahead
        if promised <= ENOUGH:
            break
    return effects


def _evaluate(cells: TiltedCells, effects: Array, precision: Array) -> _Objective:
    """Evaluate the objective of `penalised_fit`."""
    found = cells.expect(effects)
    n_items = cells.n_items[:, None]
    excess = cells.items @ found.pair[:, :2] - n_items * found.cell[:, :2]
    penalty = precision[:, None] * effects
    gradient = np.concatenate([cells.design.sum_cells(excess), excess]) - penalty
    log_likelihood = cells.items.data @ np.log(found.density)
    value = log_likelihood - 0.5 * (precision @ (effects**2).sum(axis=1))
    unexplained = (cells.items @ _covariance(found.pair).reshape(-1, 4)).reshape(-1, 2, 2)
    size, axes = np.linalg.eigh(n_items[..., None] * _covariance(found.cell) - unexplained)
    curvature = (axes * np.maximum(size, 0)[:, None]) @ axes.transpose(0, 2, 1)
    return _Objective(float(value), gradient, curvature)


def _covariance(moments: Array) -> Array:
    """Return covariances (n, 2, 2) from mean moments, as `TiltedCells.moments` lists them."""
    mean = moments[:, :2]
    products = moments[:, [2, 3, 3, 4]].reshape(-1, 2, 2)
    return np.asarray(products - mean[:, :, None] * mean[:, None, :])


def _newton_direction(at: _Objective, design: Design, precision: Array) -> Array:
    """Return the Newton step of the common effects, then of the families, then of the cells."""
    own, conditional, slopes, system = _eliminate(at.curvature, design, precision)
    gradient, own_gradient = np.split(at.gradient[..., None], [len(conditional)])
    taken = at.curvature @ own @ own_gradient  # by the cells' own effects
    gradient = gradient - design.sum_cells(taken)
    common = np.linalg.solve(system, np.tensordot(slopes, gradient, axes=((0, 1), (0, 1))))
    shared = conditional @ gradient + slopes @ common
    left = own_gradient - at.curvature @ design.sum_effects(shared)
    return np.concatenate([shared, own @ left])[..., 0]


def _eliminate(information: Array, design: Design, precision: Array) -> _Elimination:
    """Eliminate the cells' own effects, then the families'."""
    n_common = design.n_common
    n_shared = len(precision) - len(information)
    penalty = precision[:, None, None] * np.eye(2)
    own = np.linalg.inv(information + penalty[n_shared:]).astype(np.float64)
    passed = information - information @ own @ information  # on the sum of a cell's shared effects
    # The system of the shared effects, in the columns of the common ones: sum of passed x (kron)
    # weight, of shape (n_shared, 2, n_common, 2) at first.
    columns = design.sum_cells(passed[:, :, None] * design.common[:, None, :, None])
    columns = columns.reshape(n_shared, 2, 2 * n_common)
    conditional = np.zeros((n_shared, 2, 2))
    families = (design.sum_cells(passed) + penalty[:n_shared])[n_common:]
    conditional[n_common:] = np.linalg.inv(families)
    slopes = np.empty_like(columns)
    slopes[:n_common] = np.eye(2 * n_common).reshape(n_common, 2, 2 * n_common)
    slopes[n_common:] = -conditional[n_common:] @ columns[n_common:]
    # Schur's complement: the rows of the common effects, and those of the families as far as they
    # follow.
    complement = np.tensordot(slopes, columns, axes=((0, 1), (0, 1)))
    system = complement + np.diag(np.repeat(precision[:n_common], 2))
    return _Elimination(own, conditional, slopes, system)


def _information(cells: TiltedCells, effects: Array) -> Array:
    """Return each cell's information on its theta: summed outer products of its items' scores."""
    found = cells.expect(effects)
    n_pairs = np.diff(cells.items.indptr)
    score = found.pair[:, :2] - np.repeat(found.cell[:, :2], n_pairs, axis=0)
    outer = (score[:, :, None] * score[:, None, :]).reshape(-1, 4)
    return np.asarray(cells.items @ outer).reshape(-1, 2, 2)


def _posterior_variance(information: Array, design: Design, precision: Array) -> Array:
    """Return the trace of each effect's posterior covariance, shared effects first."""
    own, conditional, slopes, system = _eliminate(information, design, precision)
    common = np.linalg.inv(system).astype(np.float64)
    shared = _marginal_covariance(conditional, slopes, common)
    # Of the sum of a cell's shared effects; given the common ones only that of its family varies.
    summed = _marginal_covariance(
        design.sum_effects(conditional), design.sum_effects(slopes), common
    )
    cells = _marginal_covariance(own, own @ information, summed)
    return np.asarray(np.einsum("nii->n", np.concatenate([shared, cells])))


def _marginal_covariance(conditional: Array, slopes: Array, condition: Array) -> Array:
    """Return covariances from those given a condition, the slopes in it, and its own covariance."""
    return np.asarray(conditional + slopes @ condition @ slopes.transpose(0, 2, 1))
