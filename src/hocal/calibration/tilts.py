"""Tilt one mixture for each cell, by effects that related cells share.

The tilt of a cell is exp(theta . phi) with two features phi; theta is a regression on covariates
plus effects of the cell's group, of its level and of itself, each kind with a scale that the data
choose.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse, special

from hocal._base.typing import Array, Index, Mask

__all__ = ["Design", "TiltedCells", "fit_effects", "make_design", "penalised_fit"]

SCALE_RANGE = (0.01, 3.0)  # of the effects; at the lower end an effect changes nothing
# of Newton's method for the effects; it takes about five, dozens where curvatures are set to 0
MAX_STEPS = 100
# change of an effect in one step: far away the curvature tells little, and weights underflow
MAX_STEP = 2.0
# pairs of a cell and a snapshot that are looked at together: their weights then stay in the cache
BLOCK = 500
ENOUGH = 1e-8  # expected gain of the last step, in nats of all labels together


class _Block(NamedTuple):
    """Some of the filled cells."""

    cells: slice
    #: (n_cells + 1,), the first pair of each cell, counted in the block, and the number of pairs
    first: Index
    items: Array  #: (n_pairs,)
    likelihood: Array  #: (n_pairs, n_groups)

    def weigh(self, weights: Array) -> Array:
        """Return the joint density of each pair's snapshot and the groups, given the weights in the cells."""
        joint = np.repeat(weights, np.diff(self.first), axis=0)
        joint *= self.likelihood
        return joint


class Design(NamedTuple):
    """Which shared effects the cells have: the common ones, weighted, and then that of their family."""

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
        """Return for each cell the sum over its shared effects of an array of any shape that each has."""
        rows = effects.reshape(len(effects), math.prod(effects.shape[1:]))
        sums = self.common @ rows[: self.n_common] + self.family @ rows[self.n_common :]
        return np.asarray(sums).reshape(len(sums), *effects.shape[1:])

    def sum_cells(self, values: Array) -> Array:
        """Return for each shared effect the sum over its cells: the transpose of `sum_effects`."""
        rows = values.reshape(len(values), math.prod(values.shape[1:]))
        sums = np.concatenate([self.common.T @ rows, self.members @ rows])
        return sums.reshape(len(sums), *values.shape[1:])


class TiltedCells(NamedTuple):
    """What the tilts of the filled cells are fitted to; a pair is a cell with one of its snapshots."""

    #: (n_groups, 2) of groups of like atoms, uncorrelated with unit variance under the pool
    features: Array
    pool: Array  #: (n_groups,)
    likelihood: Array  #: (n_pairs, n_groups)
    #: (n_filled, n_pairs), how many items a pair has, in the row of its cell
    items: sparse.csr_array
    #: of the filled cells: theta is the sum of the shared effects and the cell's own
    design: Design

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
        n_shared = len(effects) - self.items.shape[0]
        weights = self.tilt(self.design.sum_effects(effects[:n_shared]) + effects[n_shared:])
        first, second = self.features.T
        moments = np.column_stack([first, second, first**2, first * second, second**2])
        wanted = np.column_stack([moments, np.ones(len(moments))])
        sums = np.concatenate(
            [block.weigh(weights[block.cells]) @ wanted for block in self.blocks()]
        )
        return weights @ moments, sums[:, :5] / sums[:, 5:], sums[:, 5]

    def blocks(self) -> list[_Block]:
        """Return runs of whole cells with about BLOCK pairs each, or one cell with more."""
        first = self.items.indptr
        items = self.items.data
        cuts = np.unique(
            [0, *np.searchsorted(first, np.arange(BLOCK, first[-1], BLOCK)), len(first) - 1]
        )
        runs = [
            (slice(a, b), first[a : b + 1], slice(first[a], first[b]))
            for a, b in pairwise(cuts.tolist())
        ]
        return [
            _Block(cells, at - at[0], items[pairs], self.likelihood[pairs])
            for cells, at, pairs in runs
        ]


class _Objective(NamedTuple):
    """The penalised log-likelihood at some effects, its gradient, and the cells' curvature in theta."""

    value: float
    gradient: Array  #: (n_effects, 2)
    curvature: Array  #: (n_filled, 2, 2), negative directions set to 0


class _Elimination(NamedTuple):
    """The system of all effects, reduced to the common ones.

    A cell's own effect is coupled to the shared ones alone, a family's then to the common ones
    alone. So both are eliminated in blocks of 2 x 2, and the cost grows in proportion to the number
    of families.
    """

    own: Array  #: (n_filled, 2, 2), covariance of each cell's own effect given the shared ones
    #: (n_shared, 2, 2), covariance of each shared effect given the common ones, 0 for these
    given: Array
    follow: Array  #: (n_shared, 2, 2 n_common), derivative of each shared effect in the common ones
    system: Array  #: (2 n_common, 2 n_common), precision of the common effects


def make_design(
    kin: list[Index], mean_prediction: ArrayLike | None, n_items: Array
) -> tuple[list[str], Index, Design]:
    """Return the names of the kinds of shared effects, the kind of each effect, and the design."""
    names = []
    kind = []
    columns = [np.empty((len(n_items), 0))]
    family = sparse.csr_array((len(n_items), 0))
    if mean_prediction is not None:
        names = ["confidence", "predicted entropy"]
        kind = [0, 1]
        columns.append(_covariates(np.asarray(mean_prediction, dtype=np.float64), kin[1], n_items))
    # One member for all cells says nothing, one for each cell the same as the cells themselves.
    related = {
        name: of
        for name, of in zip(("group", "level"), kin, strict=True)
        if 0 < of.max() < len(of) - 1
    }
    names += related
    for name in sorted(
        related, key=lambda name: int(related[name].max())
    ):  # the more numerous last
        columns.append(family.toarray())
        family = sparse.csr_array(
            (np.ones(len(n_items)), related[name], np.arange(len(n_items) + 1))
        )
        kind += [names.index(name)] * family.shape[1]
    return (
        names,
        np.array(kind, dtype=np.intp),
        Design(np.concatenate(columns, axis=1), family, family.T.tocsr()),
    )


def _covariates(mean_prediction: Array, level: Index, n_items: Array) -> Array:
    """Return log-odds of the mean top prediction and entropy of the mean prediction, standardised over items."""
    top = np.clip(mean_prediction[:, 0], 1e-4, 1 - 1e-4)
    raw = np.column_stack([special.logit(top), special.entr(mean_prediction).sum(axis=1)])
    empty = n_items == 0
    raw[empty] = 0
    raw[~empty] -= n_items @ raw / n_items.sum()
    level_items = np.bincount(level, n_items)[level]
    for column in raw.T:  # an empty cell predicts like the others of its level
        column[empty] = (np.bincount(level, n_items * column)[level] / np.maximum(level_items, 1))[
            empty
        ]
    spread = np.sqrt(n_items @ raw**2 / n_items.sum())
    return np.asarray(raw / np.where(spread > 1e-9, spread, np.inf))


def fit_effects(filled: TiltedCells, shared_kind: Index) -> tuple[Array, Array, int]:
    """Return the effects, shared ones first, the scales, and the rounds it took to choose these.

    MacKay's update for the Laplace approximation of the marginal likelihood: scale**2 is the sum of
    squares of the effects of a kind over the number the data determine, sum(1 - posterior variance
    / scale**2).
    """
    own = int(shared_kind.max(initial=-1)) + 1
    kind = np.concatenate([shared_kind, np.full(filled.items.shape[0], own, dtype=np.intp)])
    squares = np.full(own + 1, 0.1)
    effects = np.zeros((len(kind), 2))
    n_rounds = 0
    settled = False
    while not settled and n_rounds < 40:
        effects = penalised_fit(filled, effects, 1 / squares[kind])
        variance = _posterior_variance(
            _information(filled, effects), filled.design, 1 / squares[kind]
        )
        determined = np.bincount(kind, 2 - variance / squares[kind])
        update = np.bincount(kind, (effects**2).sum(axis=1)) / np.maximum(determined, 1e-9)
        update = np.clip(update, *np.square(SCALE_RANGE))
        settled = bool(np.abs(np.log(update / squares)).max() < 0.02)
        squares = update
        n_rounds = n_rounds + 1
    return effects, np.sqrt(squares), n_rounds


def penalised_fit(filled: TiltedCells, start: Array, precision: Array) -> Array:
    """Return the effects that maximise the likelihood of the cells' snapshots minus precision * effect**2 / 2."""
    effects = start
    here = _evaluate(filled, start, precision)
    for _ in range(MAX_STEPS):
        direction = _newton_direction(here, filled.design, precision)
        direction /= max(np.abs(direction).max() / MAX_STEP, 1.0)
        decrement = float((here.gradient * direction).sum())
        step = 1.0
        ahead = _evaluate(filled, effects + direction, precision)
        while (
            ahead.value < here.value + 1e-4 * step * decrement
            and decrement > ENOUGH
            and step > 1e-9
        ):
            step /= 2
            ahead = _evaluate(filled, effects + step * direction, precision)
        effects = effects + step * direction
        here = ahead
        if decrement <= ENOUGH:
            break
    return effects


def _evaluate(filled: TiltedCells, effects: Array, precision: Array) -> _Objective:
    """Evaluate the objective of `penalised_fit`."""
    cell, pair, density = filled.expect(effects)
    n_items = np.asarray(filled.items.sum(axis=1))[:, None]
    excess = filled.items @ pair[:, :2] - n_items * cell[:, :2]
    gradient = (
        np.concatenate([filled.design.sum_cells(excess), excess]) - precision[:, None] * effects
    )
    value = filled.items.data @ np.log(density) - 0.5 * (precision @ (effects**2).sum(axis=1))
    unexplained = (filled.items @ _covariance(pair).reshape(-1, 4)).reshape(-1, 2, 2)
    size, axes = np.linalg.eigh(n_items[..., None] * _covariance(cell) - unexplained)
    return _Objective(
        float(value), gradient, (axes * np.maximum(size, 0)[:, None]) @ axes.transpose(0, 2, 1)
    )


def _covariance(moments: Array) -> Array:
    """Return covariances (n, 2, 2) from the moments that `TiltedCells.expect` gives."""
    mean = moments[:, :2]
    products = moments[:, [2, 3, 3, 4]].reshape(-1, 2, 2)
    return np.asarray(products - mean[:, :, None] * mean[:, None, :])


def _newton_direction(at: _Objective, design: Design, precision: Array) -> Array:
    """Return the Newton step for all effects: that of the common ones, then of the families, then of the cells."""
    own, given, follow, system = _eliminate(at.curvature, design, precision)
    slope, own_slope = np.split(at.gradient[..., None], [len(given)])
    slope = slope - design.sum_cells(
        at.curvature @ own @ own_slope
    )  # less what the cells' own effects will take
    common = np.linalg.solve(system, np.tensordot(follow, slope, axes=((0, 1), (0, 1))))
    shared = given @ slope + follow @ common
    left = own_slope - at.curvature @ design.sum_effects(shared)
    return np.concatenate([shared, own @ left])[..., 0]


def _eliminate(information: Array, design: Design, precision: Array) -> _Elimination:
    """Eliminate the cells' own effects, then the families'."""
    n_common = design.n_common
    n_shared = len(precision) - len(information)
    penalty = precision[:, None, None] * np.eye(2)
    own = np.linalg.inv(information + penalty[n_shared:]).astype(np.float64)
    passed = information - information @ own @ information  # on the sum of a cell's shared effects
    # The system of the shared effects, in the columns of the common ones: sum of passed x (kron)
    # weight.
    columns = design.sum_cells(
        passed[:, :, None] * design.common[:, None, :, None]
    )  # (n_shared, 2, n_common, 2)
    columns = columns.reshape(n_shared, 2, 2 * n_common)
    given = np.zeros((n_shared, 2, 2))
    follow = np.empty_like(columns)
    given[n_common:] = np.linalg.inv((design.sum_cells(passed) + penalty[:n_shared])[n_common:])
    follow[:n_common] = np.eye(2 * n_common).reshape(n_common, 2, 2 * n_common)
    follow[n_common:] = -given[n_common:] @ columns[n_common:]
    # Schur's complement: the rows of the common effects, and those of the families as far as they
    # follow.
    system = np.tensordot(follow, columns, axes=((0, 1), (0, 1))) + np.diag(
        np.repeat(precision[:n_common], 2)
    )
    return _Elimination(own, given, follow, system)


def _information(filled: TiltedCells, effects: Array) -> Array:
    """Return each cell's information on its theta: the sum of outer products of its items' scores."""
    cell, pair, _ = filled.expect(effects)
    score = pair[:, :2] - np.repeat(cell[:, :2], np.diff(filled.items.indptr), axis=0)
    outer = (score[:, :, None] * score[:, None, :]).reshape(-1, 4)
    return np.asarray(filled.items @ outer).reshape(-1, 2, 2)


def _posterior_variance(information: Array, design: Design, precision: Array) -> Array:
    """Return the trace of each effect's posterior covariance, shared effects first, then the cells' own."""
    own, given, follow, system = _eliminate(information, design, precision)
    common = np.linalg.inv(system).astype(np.float64)
    shared = _widen(given, follow, common)
    # Of the sum of a cell's shared effects; given the common ones only that of its family varies.
    summed = _widen(design.sum_effects(given), design.sum_effects(follow), common)
    return np.asarray(
        np.einsum("nii->n", np.concatenate([shared, _widen(own, own @ information, summed)]))
    )


def _widen(given: Array, slopes: Array, followed: Array) -> Array:
    """Return covariances from those given what is followed, the slopes in this and its own covariance."""
    return np.asarray(given + slopes @ followed @ slopes.transpose(0, 2, 1))
