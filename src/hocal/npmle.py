"""Nonparametric maximum likelihood of one mixture of label distributions, on a dictionary of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special

__all__ = ["N_LEADING", "Atoms", "PoolFit", "fit_pool", "make_atoms", "sample_snapshots", "snapshot_likelihood"]

Array = NDArray[np.float64]
Snapshots = NDArray[np.int64]

MAX_POOL_ROWS = 1_000  # distinct snapshots the pool is fitted to; more are thinned systematically
TOLERANCE = 1e-10  # of the squared Newton decrement, in nats an item
N_LEADING = 11  # ranks that are told apart; the following ones are alike
_MIXED = np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.99])[:, None]


class PoolFit(NamedTuple):
    """Weights of one mixture for all items, and how well they were found."""

    weights: Array  #: (n_atoms,)
    gap: float  #: in nats an item
    n_iterations: int


class Atoms(NamedTuple):
    """The dictionary; beyond the leading ranks all ranks are alike, so that many classes stay few."""

    points: Array  #: (n_atoms, n_classes)
    lumped: Array  #: (n_atoms, n_leading + 1), the last column has the mass of the tail
    width: Array  #: (n_atoms,) number of tail ranks that share this mass
    n_tail: int  #: number of ranks in the tail; below 2 there is nothing to spread


def fit_pool(likelihood: Array, frequency: Array, *, prior: float) -> PoolFit:
    """Maximise sum_s n_s log (L w)_s + sum_a m log w_a over mixture weights w, with m = prior / n_atoms.

    Solved in the dual, max_v sum_s n_s log v_s + sum_a m log(N - (L'v)_a) with N = sum n + prior, by Newton
    steps along a falling prior; then w_a is proportional to 1 / (N - (L'v)_a). The gap reported is
    max_a (L'(n / Lw) + m / w)_a / N - 1, which bounds the distance to the maximum in nats an item.

    Parameters
    ----------
    likelihood : array of shape (n_snapshots, n_atoms)
        Likelihood of each snapshot under each atom, each row up to a factor.
    frequency : array of shape (n_snapshots,)
        Number of items with each snapshot, positive.
    prior : float
        Weight of the uniform prior, in items.

    Returns
    -------
    PoolFit
        Weights, gap and number of Newton steps.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.npmle import fit_pool
    >>> fit_pool(np.eye(2), np.array([30.0, 10.0]), prior=20.0).weights.round(3).tolist()
    [0.667, 0.333]
    """
    n_items, n_atoms = float(frequency.sum()), likelihood.shape[1]
    falling = [n_items * 0.1**i for i in range(20) if n_items * 0.1**i > prior]
    dual, steps = frequency / likelihood.mean(axis=1), 0
    for weight in [*falling, prior]:
        enough = TOLERANCE * (n_items + weight) if weight == prior else 0.5 * weight
        for _ in range(100):
            dual, decrement = _newton_step(likelihood, frequency, dual, weight)
            steps += 1
            if decrement < enough:
                break
    weights = 1 / (n_items + prior - likelihood.T @ dual)
    weights /= weights.sum()
    gradient = likelihood.T @ (frequency / (likelihood @ weights)) + prior / n_atoms / weights
    return PoolFit(weights, float(gradient.max() / (n_items + prior) - 1), steps)


def _newton_step(likelihood: Array, frequency: Array, dual: Array, prior: float) -> tuple[Array, float]:
    """Take one damped Newton step on the dual of `fit_pool`; also return the squared Newton decrement."""
    total, mass = frequency.sum() + prior, prior / likelihood.shape[1]
    slack = total - likelihood.T @ dual
    if slack.min() <= 0:  # the prior has fallen since the last step: scale back into the domain
        dual = dual * (0.99 * total / (total - slack.min()))
        slack = total - likelihood.T @ dual
    gradient = frequency / dual - likelihood @ (mass / slack)
    scale = dual / np.sqrt(frequency)  # turns the part of the curvature that is diagonal into the identity
    root = likelihood * (scale[:, None] * (np.sqrt(mass) / slack))
    curvature = root @ root.T  # of a matrix and its own transpose, half the work of any other product
    curvature.flat[:: len(curvature) + 1] += 1
    direction = scale * linalg.solve(curvature, scale * gradient, assume_a="pos")
    change, decrement = likelihood.T @ direction, float(gradient @ direction)
    ratios = np.concatenate([-direction / dual, change / slack])  # a step of 1 / ratio ends at the border
    step = min(1.0, 0.99 / max(float(ratios.max()), 1e-300))
    for _ in range(40):
        gain = frequency @ np.log1p(step * direction / dual) + mass * np.log1p(-step * change / slack).sum()
        if gain >= 0.05 * step * decrement:
            break
        step /= 2
    return dual + step * direction, decrement


def sample_snapshots(snapshots: Snapshots, frequency: Array) -> tuple[Snapshots, Array]:
    """Return the snapshots and their frequencies, or a systematic sample of items where they are too many."""
    if len(snapshots) <= MAX_POOL_ROWS:
        return snapshots, frequency
    each = frequency.sum() / MAX_POOL_ROWS
    rows = np.searchsorted(np.cumsum(frequency), (np.arange(MAX_POOL_ROWS) + 0.5) * each)
    kept, hits = np.unique(rows, return_counts=True)
    return snapshots[kept], hits * each


def snapshot_likelihood(snapshots: Snapshots, atoms: Atoms) -> Array:
    """Return the likelihood of each snapshot under each atom, divided by the largest of its row.

    With mass t spread evenly over m of T tail ranks chosen at random, K tail labels on d of the ranks have
    the probability (t / m)^K C(T - d, m - d) / C(T, m).
    """
    logs = snapshots[:, :-1] @ np.log(atoms.lumped).T
    if atoms.n_tail > 1:
        distinct, width = snapshots[:, -1:], atoms.width
        logs -= snapshots[:, -2:-1] * np.log(width)
        ways = special.gammaln(width + 1) - special.gammaln(np.maximum(width - distinct, 0) + 1)
        logs += np.where(width >= distinct, ways + special.gammaln(atoms.n_tail - distinct + 1), -1e3)
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


def make_atoms(snapshots: Snapshots, frequency: Array, n_classes: int) -> Atoms:
    """Return the dictionary: about a thousand label distributions, sharp to flat, around what the labels show."""
    counts = snapshots[:, :-1]
    totals, size = counts.sum(axis=1), counts.shape[1]
    mean = (frequency @ counts + 0.5) / (frequency @ totals + 0.5 * size)
    generator, corners = np.random.default_rng(0), np.eye(size)
    leading = [(i, j) for i in range(min(size, 4)) for j in range(i + 1, min(size, 6))]
    edges = [(1 - _MIXED) * corners[i] + _MIXED * corners[j] for i, j in leading]
    broad = [_dirichlet(generator, c * mean) for c in (0.25, 0.5, 1, 2, 4, 8, 16, 32)]
    # People use few labels for an item: points on faces of two to four ranks, leading ranks more often.
    faces = [_face(generator, mean, ranks, c) for ranks in (2, 3, 4) if ranks <= size for c in (0.3, 1.0, 3.0)]
    common = np.argsort(-frequency, kind="stable")[:300]
    smoothed = (counts[common] + mean) / (totals[common, None] + 1)
    atoms = np.concatenate([corners, *broad, *faces, smoothed, *edges])
    atoms = np.maximum(atoms, 1e-4 / size)  # no label is impossible
    return _spread_tail(atoms / atoms.sum(axis=1, keepdims=True), n_classes - N_LEADING, generator)


def _spread_tail(lumped: Array, n_tail: int, generator: np.random.Generator) -> Atoms:
    """Spread the mass of the tail evenly over random numbers of ranks, and over random ranks."""
    if n_tail <= 1:
        return Atoms(lumped, lumped, np.ones(len(lumped)), n_tail)
    lumped = np.repeat(lumped, 2, axis=0)
    sizes = np.unique(np.geomspace(1, n_tail, 12).round())
    width = generator.choice(sizes, len(lumped))
    place = np.argsort(np.argsort(generator.random((len(lumped), n_tail)), axis=1), axis=1)
    tail = np.where(place < width[:, None], (lumped[:, -1] / width)[:, None], 0)
    return Atoms(np.column_stack([lumped[:, :-1], tail]), lumped, width, n_tail)


def _dirichlet(generator: np.random.Generator, concentration: Array) -> Array:
    draws = generator.standard_gamma(np.broadcast_to(concentration, (50, len(concentration))))
    draws[draws.sum(axis=1) < 1e-30, 0] = 1.0  # all underflowed
    return np.asarray(draws / draws.sum(axis=1, keepdims=True))


def _face(generator: np.random.Generator, mean: Array, size: int, concentration: float) -> Array:
    ranks = np.argsort(-0.5 * np.log(mean) - generator.gumbel(size=(50, len(mean))), axis=1)[:, :size]
    atoms = np.zeros((50, len(mean)))
    np.put_along_axis(atoms, ranks, _dirichlet(generator, np.full(size, concentration)), axis=1)
    return atoms
