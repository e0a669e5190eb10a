"""Weights of a mixture's components for every item, tilted so that its mean stays what it is.

The logarithm of the weight of component c for item i is, up to a constant,

    base_c + b_c + phi_ic . Theta z_i + eta_i m_ic,

with a few functions phi of the component for this item, a few inputs z of the item, and the share
m_ic outside the most likely class, whose mean must be that of the prediction: eta_i is solved for.
Whatever the weights learn, the mean of the mixture is the prediction.  Components run along the
first axis of arrays, so that sums over them add whole rows.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from hocal._base.typing import Array, Index
from hocal.calibration.by_item.columns import Floats
from hocal.calibration.by_item.penalised_fits import FoldedParameters, fit_penalised

__all__ = [
    "LEVEL",
    "N_OWN",
    "Pool",
    "Shapes",
    "change_along",
    "fit_weights",
    "log_odds",
    "logits_of",
    "narrow",
    "softmax",
    "solve_tilts",
]

N_OWN = 2  # functions that depend on the item: Brier uncertainty and its root
LEVEL = 3  # place of the level among the functions, behind whether it is a star
STRETCH = 2.0  # of these: then they are as large as the others
BASE_PENALTY = 4.0  # of b: a component's weight is within a factor of e of where it starts
# Penalties of the intercepts of Theta by function: Brier uncertainty, its root, star, level, break,
# likeness.  The first sets the average and is practically free.  Two labels per item cannot tell
# families with the same mean uncertainty apart: then they share.
INTERCEPTS = np.array([0.05, 4.0, 4.0, 0.1, 0.3, 0.3])
PENALTIES = (1000.0, 200.0, 40.0, 8.0)  # of the rest of Theta, in units of items
TILT_STEPS = 40  # Newton needs 3 to 8; more only where it falls back on halving
FEW_LEFT = 0.6  # share of items from which on it pays to take them out
STEEPEST = 3000.0  # tilt: shares that differ by a thousandth can still be told apart
EXACT = {4: 2e-6, 8: 1e-8}  # gap of the mean that is left, by bytes of the numbers


NOTHING: Floats = np.zeros((0, 0))


class Pool(NamedTuple):
    """Components that are weighed against each other, before anything is known of an item."""

    base: Array  #: (n_components,) logarithms of weights
    kinds: Array  #: (n_components, n_kinds) functions that are the same for all items

    @property
    def n_functions(self) -> int:
        """Brier uncertainty, its root, and the kinds."""
        return N_OWN + int(self.kinds.shape[1])


class Shapes(NamedTuple):
    """Components of n items, and the items' inputs."""

    brier: Floats  #: (n_components, n_items) expected Brier uncertainty
    root: Floats  #: (n_components, n_items) its root
    inputs: Floats  #: (n_inputs, n_items), the first is one
    share: Floats  #: (n_items,) share outside the top class, on average over components
    lean: Floats  #: (n_items,) slope along the level from which weights start
    outside: Floats = NOTHING  #: (n_components, n_items) share of each; none where all are alike
    shannon: Floats = NOTHING  #: (n_components, n_items) expected Shannon uncertainty, if needed

    def take(self, rows: Index) -> Shapes:
        """Return some of the items."""
        return Shapes(*(part[..., rows] if part.size else part for part in self))


def logits_of(pool: Pool, shapes: Shapes, parameters: Array) -> Floats:
    """Return the logarithms of weights before they are shifted and tilted, up to a constant."""
    dtype = shapes.inputs.dtype
    size = len(pool.base)
    theta = parameters[size:].reshape(pool.n_functions, -1)
    slopes = theta.astype(dtype) @ shapes.inputs
    slopes[:N_OWN] *= dtype.type(STRETCH)
    slopes[LEVEL] += shapes.lean
    logits = pool.kinds.astype(dtype) @ slopes[N_OWN:]
    logits += (pool.base + parameters[:size]).astype(dtype)[:, None]
    logits += shapes.brier * slopes[0]
    logits += shapes.root * slopes[1]
    return np.asarray(logits)


def change_along(weights: Floats, function: Floats, shapes: Shapes) -> Floats:
    """Return how weights change with the slope along a function, while their mean stays."""
    moved: Floats = weights * (function - np.einsum("ci,ci->i", weights, function))
    away = shapes.outside - shapes.share
    pull = weights * away
    spread = np.maximum(np.einsum("ci,ci->i", pull, away), 1e-12)
    moved -= pull * (np.einsum("ci,ci->i", moved, away) / spread)
    return moved


def fit_weights(
    pool: Pool, shapes: Shapes, likelihoods: Array, folds: Index, n_folds: int
) -> FoldedParameters:
    """Fit b and Theta to the likelihood (n_components, n_items) of each item's labels."""
    start = np.zeros(len(pool.base) + pool.n_functions * len(shapes.inputs))
    if not len(folds):  # no label tells anything: the weights stay where they start
        return FoldedParameters(start, np.zeros((n_folds, len(start))))
    problem = _Weights(pool, shapes, likelihoods)
    penalties = [_penalty(pool, len(shapes.inputs), penalty) for penalty in PENALTIES]
    return fit_penalised(problem, start, penalties, folds, n_folds)


def solve_tilts(
    logits: Floats, outside: Floats, share: Floats, tilts: Floats
) -> tuple[Floats, Floats]:
    """Solve sum_c w_c m_c = share for w ~ exp(logits + tilt m), by Newton between bounds.

    Newton's step is taken on the log-odds of the mean, which are closer to linear than the mean.

    Returns
    -------
    tilts, weights
    """
    problem = _Tilts(logits, outside, share)
    return narrow(problem, tilts, STEEPEST, EXACT[logits.dtype.itemsize], TILT_STEPS)


class Rising(Protocol):
    """Weights of items that depend on a number for each, and a mean that rises with it."""

    def weigh(self, numbers: Floats) -> tuple[Floats, Floats]:
        """Return the weights (n_components, n_items), and what the means lack."""

    def ahead(self, numbers: Floats, weights: Floats) -> Floats:
        """Return where a step of Newton leads."""

    def take(self, rows: Index) -> Rising:
        """Return some of the items."""


def narrow(
    problem: Rising, numbers: Floats, farthest: float, close: float, n_steps: int
) -> tuple[Floats, Floats]:
    """Solve for the numbers of all items, by Newton's steps between bounds.

    Parameters
    ----------
    problem : Rising
        What depends on the numbers.
    numbers : array of shape (n_items,)
        Where to begin.
    farthest : float
        Bound of the numbers, to either side.
    close : float
        Gap of a mean that is left.
    n_steps : int
        Steps, at most.

    Returns
    -------
    numbers, weights
    """
    bounds = np.full_like(numbers, -farthest), np.full_like(numbers, farthest)
    return _narrow(problem, numbers, bounds, close, n_steps)


def _narrow(
    problem: Rising, numbers: Floats, bounds: tuple[Floats, Floats], close: float, n_steps: int
) -> tuple[Floats, Floats]:
    """When few items are left, go on with these alone: none depends on others."""
    low, high = bounds
    for step in range(n_steps):
        weights, gap = problem.weigh(numbers)
        left = np.abs(gap) >= close
        rows = np.flatnonzero(left)
        if not len(rows) or step + 1 == n_steps:
            break
        low = np.where(gap > 0, numbers, low)
        high = np.where(gap < 0, numbers, high)
        ahead = problem.ahead(numbers, weights)
        ahead = np.where((ahead > low) & (ahead < high), ahead, (low + high) / 2)
        numbers = np.where(left, ahead, numbers)
        if len(rows) < FEW_LEFT * len(left):
            some = problem.take(rows), numbers[rows], (low[rows], high[rows])
            numbers[rows], weights[:, rows] = _narrow(*some, close, n_steps - step - 1)
            break
    return numbers, weights


class _Tilts(NamedTuple):
    """Weights that are tilted along shares outside the top class, until their mean is right."""

    logits: Floats  #: (n_components, n_items)
    outside: Floats  #: (n_components, n_items)
    share: Floats  #: (n_items,)

    def weigh(self, numbers: Floats) -> tuple[Floats, Floats]:
        weights = softmax(self.logits + numbers * self.outside)
        return weights, self.share - np.einsum("ci,ci->i", weights, self.outside)

    def ahead(self, numbers: Floats, weights: Floats) -> Floats:
        mean = np.einsum("ci,ci->i", weights, self.outside)
        spread = np.einsum("ci,ci,ci->i", weights, self.outside, self.outside) - mean**2
        slope = np.maximum(spread, 1e-12) / np.maximum(mean * (1 - mean), 1e-12)
        return np.asarray(numbers - (log_odds(mean) - log_odds(self.share)) / slope)

    def take(self, rows: Index) -> _Tilts:
        # Rows of components stay contiguous, so that sums over them are rounded alike.
        logits = np.take(self.logits, rows, axis=1)
        return _Tilts(logits, np.take(self.outside, rows, axis=1), self.share[rows])


def log_odds(share: Floats) -> Floats:
    """Return the log-odds of shares, within what single precision can tell."""
    kept = np.clip(share, 1e-12, 1 - 1e-7)
    return np.asarray(np.log(kept / (1 - kept)))


def softmax(logits: Floats) -> Floats:
    """Turn logits into weights, in place."""
    logits -= logits.max(axis=0)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=0)
    return logits


def _penalty(pool: Pool, n_inputs: int, penalty: float) -> Array:
    theta = np.full((pool.n_functions, n_inputs), penalty)
    theta[:, 0] = INTERCEPTS[: pool.n_functions]
    return np.concatenate([np.full(len(pool.base), BASE_PENALTY), theta.ravel()])


class _Weights:
    """The likelihood of the items' labels, given the parameters of the weights."""

    def __init__(self, pool: Pool, shapes: Shapes, likelihoods: Array) -> None:
        self.pool = pool
        self.shapes = shapes
        self.likelihoods = likelihoods
        self.tilts: Floats = np.zeros(likelihoods.shape[1])  # of the last call, a good start

    def total(self, parameters: Array) -> tuple[float, Array]:
        values, slopes = self._slopes(parameters)
        theta = self._by_function(slopes) @ self.shapes.inputs.T
        return float(values.sum()), np.concatenate([slopes.sum(axis=1), theta.ravel()])

    def scores(self, parameters: Array) -> tuple[Array, Array]:
        values, slopes = self._slopes(parameters)
        theta = self._by_function(slopes)[:, None] * self.shapes.inputs
        return values, np.concatenate([slopes, theta.reshape(-1, len(values))])

    def _by_function(self, slopes: Array) -> Array:
        """Return derivatives by Theta z, (n_functions, n_items)."""
        brier = np.einsum("ci,ci->i", self.shapes.brier, slopes)
        root = np.einsum("ci,ci->i", self.shapes.root, slopes)
        own = STRETCH * np.stack([brier, root])
        return np.concatenate([own, self.pool.kinds.T @ slopes])

    def _slopes(self, parameters: Array) -> tuple[Array, Array]:
        """Return log-likelihoods, and derivatives by the logits (n_components, n_items)."""
        weights = self._weigh(parameters)
        posterior = weights * self.likelihoods
        likelihood = posterior.sum(axis=0)
        posterior /= likelihood
        posterior -= weights
        if not self.shapes.outside.size:
            return np.log(likelihood), posterior
        # The tilt answers every change of the logits: take out the direction of the mean.
        away = self.shapes.outside - self.shapes.share
        pull = weights * away
        spread = np.maximum(np.einsum("ci,ci->i", pull, away), 1e-12)
        posterior -= pull * (np.einsum("ci,ci->i", posterior, away) / spread)
        return np.log(likelihood), posterior

    def _weigh(self, parameters: Array) -> Floats:
        shapes = self.shapes
        logits = logits_of(self.pool, shapes, parameters)
        if not shapes.outside.size:
            return softmax(logits)
        self.tilts, weights = solve_tilts(logits, shapes.outside, shapes.share, self.tilts)
        return weights
