"""Correct the weights of atoms, so that their mean and mean uncertainties are given numbers.

The weights are tilted, w_a exp(t . phi_a), with phi the probabilities of classes, ||p||^2 and the
Shannon entropy: of all weights with these expectations they are closest to the first.
"""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from hocal._base.typing import Array

__all__ = ["tilt_to_targets"]

MAX_STEPS = 100  # of Newton's method; ten suffice for most items, rare ones need many
MAX_CHANGE = 2.0  # of a logarithm of a weight in one step: farther away the curvature misleads
ENOUGH = 1e-9  # gap of an expectation
RIDGE = 1e-10  # of the curvature of standardised functions, some of which nearly coincide
ROUNDS = 3  # of scaling the classes beyond the first, and tilting


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
    for _ in range(ROUNDS):
        points = _scale_rest(points, weights, mean, n_means)
        weights = _tilt(points, weights, mean[:, : n_means - 1], square, entropy)
    return points, weights


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
    logs = np.log(np.maximum(weights, 1e-300))
    for _ in range(MAX_STEPS):
        tilted = _normalise(logs)
        gap = np.einsum("ia,iak->ik", tilted, functions)
        if np.abs(gap).max() < ENOUGH:
            break
        logs = logs + _newton_change(functions, tilted, gap)
    return _normalise(logs)


def _newton_change(functions: Array, weights: Array, gap: Array) -> Array:
    """Return the change of the logarithms of weights in one damped step."""
    weighted = functions * weights[..., None]
    curvature = functions.transpose(0, 2, 1) @ weighted - gap[:, :, None] * gap[:, None, :]
    curvature += RIDGE * np.eye(gap.shape[1])
    step = np.linalg.solve(curvature, -gap[..., None])
    change = (functions @ step)[..., 0]
    change -= np.einsum("ia,ia->i", weights, change)[:, None]
    largest = np.abs(change).max(axis=1, keepdims=True)
    return np.asarray(change * np.minimum(1, MAX_CHANGE / np.maximum(largest, 1e-300)))


def _normalise(logs: Array) -> Array:
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
