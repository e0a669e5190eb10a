"""Nonparametric maximum likelihood of one mixture, on a dictionary of label distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import linalg

from hocal._base.typing import Array, IntArray

__all__ = ["PoolFit", "fit_pool", "sample_snapshots"]

Inverse = Callable[[Array], Array]

# Distinct snapshots that the pool is fitted to: a second. Of more, the frequent ones are kept
# and the others are sampled systematically.
MAX_POOL_ROWS = 3_000
# Of the gap before the last step, in nats per item; that step about squares it.
TOLERANCE = 1e-10
MAX_STEPS = 200  # of the interior-point method; it takes three to twenty
N_START_STEPS = 10  # of expectation maximisation, which is fast at first and slow later
# Share of the way to the border of the domain that a step may go: everything stays positive.
SHORT_OF_BORDER = 0.99
# Factor by which the products of weights and slacks are meant to fall in each step, and the largest
# relative residual of a step's system: smaller ones cost more than the steps that they save.
FALL = 0.1
MAX_RESIDUAL = 0.1
MAX_GRADIENT_STEPS = 30  # of conjugate gradients; it takes one to ten with the approximate inverse
FEW_ROWS = 128  # distinct snapshots up to which systems are solved directly
# Squared norm from which the approximate inverse keeps a column: one that is dropped changes the
# condition by a factor of three at most.
LEAST_NORM = 2
MAX_KEPT_SHARE = 0.8  # of the rows; with more columns the approximation costs as much as the matrix
RIDGE = 1e-14  # of the trace, added to a diagonal: more than rounding takes away from it
TINY = 1e-300  # stands for 0 where it is divided by


class PoolFit(NamedTuple):
    """Weights of one mixture for all items, and how well they were found."""

    weights: Array  #: (n_atoms,)
    gap: float  #: in nats per item
    n_iterations: int


class _Point(NamedTuple):
    """Where the interior-point method stands, everything positive."""

    weights: Array  #: (n_atoms,) w
    density: Array  #: (n_snapshots,) u = Lw
    dual: Array  #: (n_snapshots,) v
    slack: Array  #: (n_atoms,) z = N - L'v


class _System(NamedTuple):
    """The matrix I + B B' of a Newton step in v / scale, with B = diag(scale) L diag(root)."""

    likelihood: Array  #: (n_snapshots, n_atoms)
    scale: Array  #: (n_snapshots,) sqrt(v / u)
    root: Array  #: (n_atoms,) sqrt(w / z)

    def multiply(self, x: Array) -> Array:
        """Return the product with a vector."""
        inner = self.root**2 * ((self.scale * x) @ self.likelihood)
        return np.asarray(x + self.scale * (self.likelihood @ inner))


def fit_pool(likelihood: Array, frequency: Array, *, prior: float) -> PoolFit:
    """Maximise sum_s n_s log (L w)_s + sum_a m log w_a over weights w, with m = prior / n_atoms.

    The dual is to maximise sum_s n_s log v_s + sum_a m log z_a with z = N - L'v and N = sum n +
    prior; at the optimum v Lw = n and w z = m. A primal-dual interior-point method solves these
    equations, at first with a larger number than m that falls. The gap reported is the difference
    between the two objectives, which bounds the distance to the maximum.

    Parameters
    ----------
    likelihood : array of shape (n_snapshots, n_atoms)
        Likelihood of each snapshot under each atom, each row up to a factor. Fastest in column
        order.
    frequency : array of shape (n_snapshots,)
        Number of items with each snapshot, positive.
    prior : float
        Weight of the uniform prior, in items, positive.

    Returns
    -------
    PoolFit
        Weights, gap and number of Newton steps.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.calibration.by_cell.pool import fit_pool
    >>> fit_pool(np.eye(2), np.array([30.0, 10.0]), prior=20.0).weights.round(3).tolist()
    [0.667, 0.333]
    """
    mass = prior / likelihood.shape[1]
    gap = np.inf
    steps = 0
    point = _start(likelihood, frequency, mass)
    squares = likelihood**2
    while gap > TOLERANCE and steps < MAX_STEPS:
        gap = _gap(point, frequency, mass)
        steps = steps + 1
        residual = min(MAX_RESIDUAL, gap**0.5)
        point = _step(point, likelihood, squares, frequency, mass, residual)
    total = point.weights.sum()
    point = point._replace(weights=point.weights / total, density=point.density / total)
    return PoolFit(point.weights, _gap(point, frequency, mass), steps)


def _start(likelihood: Array, frequency: Array, mass: float) -> _Point:
    """Return where steps of expectation maximisation lead, with a dual scaled into its domain."""
    n_atoms = likelihood.shape[1]
    total = frequency.sum() + mass * n_atoms
    weights = np.full(n_atoms, 1 / n_atoms)
    for _ in range(N_START_STEPS):
        gain = (frequency / (likelihood @ weights)) @ likelihood
        weights = (weights * gain + mass) / total
    density = likelihood @ weights
    used = (frequency / density) @ likelihood
    inside = min(1.0, SHORT_OF_BORDER * total / used.max())
    return _Point(weights, density, inside * frequency / density, total - inside * used)


def _gap(point: _Point, frequency: Array, mass: float) -> float:
    """Return dual minus primal objective in nats per item, for weights that sum to 1."""
    snapshots = point.dual * point.density / frequency - 1
    atoms = point.weights * point.slack / mass - 1
    of_atoms = mass * (atoms - np.log1p(atoms)).sum()
    gap = frequency @ (snapshots - np.log1p(snapshots)) + of_atoms
    return float(gap / (frequency.sum() + mass * len(atoms)))


def _step(
    point: _Point,
    likelihood: Array,
    squares: Array,
    frequency: Array,
    mass: float,
    tolerance: float,
) -> _Point:
    """Take a Newton step towards v Lw = n and w z = target, m or a tenth of the mean w z.

    With the steps of w and z eliminated, (diag(u / v) + L diag(w / z) L') dv = n / v - L (target /
    z).
    """
    weights, density, dual, slack = point
    system = _System(likelihood, np.sqrt(dual / density), np.sqrt(weights / slack))
    target = max(mass, FALL * float(weights @ slack) / len(weights))
    goal = target / slack
    right = system.scale * (frequency / dual - likelihood @ goal)
    inverse = _approximate_inverse(system, squares)
    dual_step = system.scale * _conjugate_gradients(system, right, inverse, tolerance)
    used = dual_step @ likelihood
    weights_step = goal - weights + system.root**2 * used
    density_step = likelihood @ weights_step
    primal_length = _step_length(weights_step / weights, density_step / density)
    dual_length = _step_length(dual_step / dual, -used / slack)
    return _Point(
        weights + primal_length * weights_step,
        density + primal_length * density_step,
        dual + dual_length * dual_step,
        slack - dual_length * used,
    )


def _step_length(*changes: Array) -> float:
    """Return 1, or what leads nearly to the border where that is nearer."""
    steepest = max(-float(change.min()) for change in changes)
    return min(1.0, SHORT_OF_BORDER / max(TINY, steepest))


def _conjugate_gradients(
    system: _System, right: Array, inverse: Inverse, tolerance: float
) -> Array:
    """Solve the system until the residual, measured by the approximate inverse, is small enough."""
    solution = np.zeros_like(right)
    residual = right
    direction = inverse(right)
    first = size = float(right @ direction)
    for _ in range(MAX_GRADIENT_STEPS):
        if size <= tolerance**2 * first:
            break
        image = system.multiply(direction)
        length = size / float(direction @ image)
        solution = solution + length * direction
        residual = residual - length * image
        guess = inverse(residual)
        last = size
        size = float(residual @ guess)
        direction = guess + size / last * direction
    return solution


def _approximate_inverse(system: _System, squares: Array) -> Inverse:
    """Return the product with the inverse: exact for few snapshots, else from the main atoms.

    By Woodbury's formula (I + BB')^-1 = I - B (I + B'B)^-1 B', and most atoms have small columns in
    B.
    """
    likelihood, scale, root = system
    if len(scale) <= FEW_ROWS:
        return _factor(likelihood * root * scale[:, None])
    norms = root**2 * (scale**2 @ squares)
    n_kept = np.clip((norms > LEAST_NORM).sum(), 1, int(MAX_KEPT_SHARE * len(scale)))
    kept = np.argsort(-norms)[:n_kept]
    columns = likelihood.T[kept]  # of B, as rows
    columns *= scale
    columns *= root[kept, None]
    inner = _factor(columns)
    return lambda x: np.asarray(x - inner(columns @ x) @ columns)


def _factor(rows: Array) -> Inverse:
    """Return the product with the inverse of I + R R', R the rows."""
    # Of a matrix and its own transpose, half the work of any other product.
    products = rows @ rows.T
    products.flat[:: len(products) + 1] += 1 + RIDGE * np.trace(products)
    factor = linalg.cho_factor(products.T, overwrite_a=True, check_finite=False)
    return lambda x: np.asarray(linalg.cho_solve(factor, x, check_finite=False))


def sample_snapshots(snapshots: IntArray, frequency: Array) -> tuple[IntArray, Array]:
    """Return snapshots and frequencies, thinned where there are too many.

    Frequent snapshots are kept as they are; of the others, items are sampled systematically, so
    that every snapshot keeps its frequency on average.
    """
    if len(snapshots) <= MAX_POOL_ROWS:
        return snapshots, frequency
    ranked = np.sort(frequency)
    # The frequency above which rows are kept: so many rows below it as their sum, in its units.
    below = np.cumsum(ranked)
    n_above = len(ranked) - 1 - np.arange(len(ranked))
    threshold = np.min((below / np.maximum(MAX_POOL_ROWS - n_above, 1))[n_above < MAX_POOL_ROWS])
    kept = np.flatnonzero(frequency > threshold)
    rare = np.flatnonzero(frequency <= threshold)
    n_drawn = MAX_POOL_ROWS - len(kept)
    each = frequency[rare].sum() / n_drawn
    places = (np.arange(n_drawn) + 0.5) * each
    drawn, hits = np.unique(np.searchsorted(np.cumsum(frequency[rare]), places), return_counts=True)
    rows = np.concatenate([kept, rare[drawn]])
    order = np.argsort(rows)
    return snapshots[rows][order], np.concatenate([frequency[kept], hits * each])[order]
