"""Correct the weights of atoms, so that their mean and mean uncertainties are given numbers.

The weights are tilted, w_a exp(t . phi_a), with phi the probabilities of classes, ||p||^2 and the
Shannon entropy: of all weights with these expectations they are closest to the first.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, xlogy

from hocal._base.typing import Array

__all__ = ["tilt_to_targets"]

MAX_STEPS = 60  # of Newton's method; five to ten suffice for most items
STEP_PARTS = (1.0, 0.4, 0.1, 0.02)  # of a step: far away the curvature misleads
ENOUGH = 1e-9  # gap of an expectation
RIDGE = 1e-10  # of the curvature of standardised functions, some of which nearly coincide
MOVED = 8  # probabilities of an atom that may go to other classes: they are nearly all of its mass
# Of scaling the classes beyond the first, and tilting. Where atoms are too few for the classes,
# they lead astray in the end: what came nearest is kept.
ROUNDS = 4


def tilt_to_targets(
    points: Array,
    weights: Array,
    mean: Array,
    square: Array,
    entropy: Array,
    *,
    n_means: int,
) -> tuple[Array, Array]:
    """Change weights, and with many classes points, until expectations are right.

    Parameters
    ----------
    points : array of shape (n_items, n_atoms, n_classes)
        Label distributions.
    weights : array of shape (n_items, n_atoms)
        Their weights.
    mean : array of shape (n_items, n_classes)
        Wanted means, largest first.
    square, entropy : array of shape (n_items,)
        Wanted expectations of ||p||^2 and of the Shannon entropy in nats.
    n_means : int
        Number of classes whose means the weights set; the means of further classes are nearly set
        by scaling their probabilities within each atom.

    Returns
    -------
    tuple of ndarray
        Points and weights.
    """
    if mean.shape[1] <= n_means:
        return points, _tilt(points, weights, mean[:, :-1], square, entropy)
    points = _even_out_rest(points, weights, mean, n_means)
    found, least = (points, weights), np.full(len(points), np.inf)
    for _ in range(ROUNDS):
        points = _scale_rest(points, weights, mean, n_means)
        weights = _tilt(points, weights, mean[:, : n_means - 1], square, entropy)
        gap = np.abs(np.einsum("ia,iaj->ij", weights, points) - mean).sum(axis=1)
        nearer = gap < least
        for kept, now in zip(found, (points, weights), strict=True):
            kept[nearer] = now[nearer]
        least = np.minimum(least, gap)
    return found


def _even_out_rest(points: Array, weights: Array, mean: Array, n_means: int) -> Array:
    """Exchange the likely ones of the last classes in each atom for those that others lack.

    Where a prediction is flat, many classes share few atoms, and chance gives some of them several
    times their mean and others nothing. Atom by atom, heaviest first, the largest probabilities go
    to the classes that lack most; they stay what they are, and with them the atom's uncertainty.
    """
    points = points.copy()
    rest = points[..., n_means - 1 :]
    lacking = mean[:, n_means - 1 :].copy()
    items = np.arange(len(points))
    n_moved = min(MOVED, lacking.shape[1])
    for atom in np.argsort(-weights * rest.sum(axis=2), axis=1).T:
        own = rest[items, atom]
        places = np.argsort(-own, axis=1)[:, :n_moved]
        wanted = np.argsort(-lacking, axis=1)[:, :n_moved]
        for number in range(n_moved):
            here, there = places[:, number], wanted[:, number]
            own[items, here], own[items, there] = own[items, there], own[items, here]
            places = np.where(places == there[:, None], here[:, None], places)
        rest[items, atom] = own
        lacking -= weights[items, atom][:, None] * own
    return points


def _scale_rest(points: Array, weights: Array, mean: Array, n_means: int) -> Array:
    """Scale the last classes to their means; what they have together in an atom stays."""
    first = points[..., : n_means - 1]
    rest = points[..., n_means - 1 :]
    together = rest.sum(axis=2, keepdims=True)
    now = np.einsum("ia,iaj->ij", weights, rest)
    rest = rest * (mean[:, n_means - 1 :] / np.maximum(now, 1e-300))[:, None]
    rest *= together / np.maximum(rest.sum(axis=2, keepdims=True), 1e-300)
    return np.concatenate([first, rest], axis=2)


def _tilt(points: Array, weights: Array, mean: Array, square: Array, entropy: Array) -> Array:
    """Tilt weights to wanted means of the first classes, ||p||^2 and entropy."""
    functions = np.concatenate(
        [
            points[..., : mean.shape[1]],
            np.einsum("iaj,iaj->ia", points, points)[..., None],
            -xlogy(points, points).sum(axis=2)[..., None],
        ],
        axis=2,
    )
    functions -= np.column_stack([mean, square, entropy])[:, None]
    spread = np.sqrt(np.einsum("ia,iak->ik", weights, functions**2))
    functions /= np.maximum(spread, 1e-12)[:, None]
    return _minimise(np.log(np.maximum(weights, 1e-300)), functions)


def _minimise(logs: Array, functions: Array) -> Array:
    """Find weights under which all functions have mean 0: the least sum of tilted weights.

    Where no weights do, because atoms do not reach so far, steps lead nowhere in the end: the
    weights that came nearest are kept.
    """
    open_items = np.arange(len(logs))
    nearest = np.full(len(logs), np.inf)
    found = _normalise(logs)
    for _ in range(1 + MAX_STEPS):
        some = functions[open_items]
        tilted = _normalise(logs[open_items])
        gap = np.einsum("ia,iak->ik", tilted, some)
        size = np.abs(gap).max(axis=1)
        nearer = size < nearest[open_items]
        found[open_items[nearer]] = tilted[nearer]
        nearest[open_items[nearer]] = size[nearer]
        unfinished = size > ENOUGH
        if not unfinished.any():
            break
        open_items = open_items[unfinished]
        change = _newton_change(some[unfinished], tilted[unfinished], gap[unfinished])
        logs[open_items] = _descend(logs[open_items], change)
    return found


def _newton_change(functions: Array, weights: Array, gap: Array) -> Array:
    """Return the change of the logarithms of weights in a whole step."""
    weighted = functions * weights[..., None]
    products = gap[:, :, None] * gap[:, None, :]
    curvature = functions.transpose(0, 2, 1) @ weighted - products
    curvature += RIDGE * np.eye(gap.shape[1])
    step = np.linalg.solve(curvature, -gap[..., None])
    return np.asarray((functions @ step)[..., 0])


def _descend(logs: Array, change: Array) -> Array:
    """Take the part of the step after which the sum of tilted weights is least."""
    sums = np.stack([logsumexp(logs + part * change, axis=1) for part in STEP_PARTS], axis=1)
    parts = np.asarray(STEP_PARTS)[sums.argmin(axis=1)]
    return np.asarray(logs + parts[:, None] * change)


def _normalise(logs: Array) -> Array:
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
