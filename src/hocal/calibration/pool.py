"""Nonparametric maximum likelihood of one mixture of label distributions, on a dictionary of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import linalg, special

from hocal._base.typing import Array, IntArray

__all__ = [
    "N_LEADING",
    "Atoms",
    "PoolFit",
    "fit_pool",
    "make_atoms",
    "sample_snapshots",
    "snapshot_likelihood",
]

Inverse = Callable[[Array], Array]

MAX_POOL_ROWS = 1_000  # distinct snapshots the pool is fitted to; more are thinned systematically
TOLERANCE = 1e-10  # of the gap before the last step, in nats an item; that step about squares it
MAX_STEPS = 200  # it takes three to twenty
FEW_ROWS = 128  # distinct snapshots up to which systems are solved directly
N_LEADING = 11  # ranks that are told apart; the following ones are alike
_MIXED = np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.99])[
    :, None
]


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


class _Point(NamedTuple):
    """Where the interior-point method stands, everything positive."""

    weights: Array  #: (n_atoms,) w
    density: Array  #: (n_snapshots,) u = Lw
    dual: Array  #: (n_snapshots,) v
    slack: Array  #: (n_atoms,) z = N - L'v


class _System(NamedTuple):
    """The matrix I + B B' of a Newton step, B = diag(scale) L diag(root), that of v in units of 1 / scale."""

    likelihood: Array  #: (n_snapshots, n_atoms)
    scale: Array  #: (n_snapshots,) sqrt(v / u)
    root: Array  #: (n_atoms,) sqrt(w / z)

    def multiply(self, x: Array) -> Array:
        """Return the product with a vector."""
        return np.asarray(
            x
            + self.scale * (self.likelihood @ (self.root**2 * ((self.scale * x) @ self.likelihood)))
        )


def fit_pool(likelihood: Array, frequency: Array, *, prior: float) -> PoolFit:
    """Maximise sum_s n_s log (L w)_s + sum_a m log w_a over mixture weights w, with m = prior / n_atoms.

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
    >>> from hocal.calibration.pool import fit_pool
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
        point = _step(point, likelihood, squares, frequency, mass, min(0.1, gap**0.5))
    total = point.weights.sum()
    point = point._replace(weights=point.weights / total, density=point.density / total)
    return PoolFit(point.weights, _gap(point, frequency, mass), steps)


def _start(likelihood: Array, frequency: Array, mass: float) -> _Point:
    """Return where ten steps of expectation maximisation lead, with a dual that is scaled into its domain."""
    n_atoms = likelihood.shape[1]
    total = frequency.sum() + mass * n_atoms
    weights = np.full(n_atoms, 1 / n_atoms)
    for _ in range(10):
        weights = (weights * ((frequency / (likelihood @ weights)) @ likelihood) + mass) / total
    density = likelihood @ weights
    used = (frequency / density) @ likelihood
    inside = min(1.0, 0.99 * total / used.max())
    return _Point(weights, density, inside * frequency / density, total - inside * used)


def _gap(point: _Point, frequency: Array, mass: float) -> float:
    """Return dual minus primal objective in nats an item, for weights that sum to 1."""
    snapshots = point.dual * point.density / frequency - 1
    atoms = point.weights * point.slack / mass - 1
    gap = frequency @ (snapshots - np.log1p(snapshots)) + mass * (atoms - np.log1p(atoms)).sum()
    return float(gap / (frequency.sum() + mass * len(atoms)))


def _step(
    point: _Point,
    likelihood: Array,
    squares: Array,
    frequency: Array,
    mass: float,
    tolerance: float,
) -> _Point:
    """Take a Newton step towards v Lw = n and w z = target, where the target is m or a tenth of the mean w z.

    With the steps of w and z eliminated, (diag(u / v) + L diag(w / z) L') dv = n / v - L (target /
    z).
    """
    weights, density, dual, slack = point
    system = _System(likelihood, np.sqrt(dual / density), np.sqrt(weights / slack))
    goal = max(mass, 0.1 * float(weights @ slack) / len(weights)) / slack
    right = system.scale * (frequency / dual - likelihood @ goal)
    dual_step = system.scale * _conjugate_gradients(
        system, right, _approximate_inverse(system, squares), tolerance
    )
    used = dual_step @ likelihood
    weights_step = goal - weights + system.root**2 * used
    density_step = likelihood @ weights_step
    primal = _step_length(weights_step / weights, density_step / density)
    other = _step_length(dual_step / dual, -used / slack)
    ahead = weights + primal * weights_step, density + primal * density_step
    return _Point(*ahead, dual + other * dual_step, slack - other * used)


def _step_length(*changes: Array) -> float:
    """Return 1, or what leads to 99% of the way to the border where that is nearer."""
    return min(1.0, 0.99 / max(1e-300, *(-float(change.min()) for change in changes)))


def _conjugate_gradients(
    system: _System, right: Array, inverse: Inverse, tolerance: float
) -> Array:
    """Solve the system until the residual, as the approximate inverse measures it, is small relative to the start."""
    solution = np.zeros_like(right)
    residual = right
    direction = inverse(right)
    first = size = float(right @ direction)
    for _ in range(30):
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
    """Return the product with the inverse: exact where snapshots are few, else from the atoms that matter most.

    By Woodbury's formula (I + BB')^-1 = I - B (I + B'B)^-1 B', and most atoms have small columns in
    B.
    """
    likelihood, scale, root = system
    if len(scale) <= FEW_ROWS:
        return _factor(likelihood * root * scale[:, None])
    norms = root**2 * (scale**2 @ squares)
    n_kept = np.clip((norms > 2).sum(), 1, int(0.8 * len(scale)))
    kept = np.argsort(-norms)[:n_kept]
    columns = likelihood.T[kept]  # of B, as rows
    columns *= scale
    columns *= root[kept, None]
    inner = _factor(columns)
    return lambda x: np.asarray(x - inner(columns @ x) @ columns)


def _factor(rows: Array) -> Inverse:
    """Return the product with the inverse of the identity plus the products of the rows with one another."""
    # of a matrix and its own transpose, half the work of any other product
    products = rows @ rows.T
    products.flat[:: len(products) + 1] += 1 + 1e-14 * np.trace(
        products
    )  # more than rounding takes away
    factor = linalg.cho_factor(products.T, overwrite_a=True, check_finite=False)
    return lambda x: np.asarray(linalg.cho_solve(factor, x, check_finite=False))


def sample_snapshots(snapshots: IntArray, frequency: Array) -> tuple[IntArray, Array]:
    """Return the snapshots and their frequencies, or a systematic sample of items where they are too many."""
    if len(snapshots) <= MAX_POOL_ROWS:
        return snapshots, frequency
    each = frequency.sum() / MAX_POOL_ROWS
    rows = np.searchsorted(np.cumsum(frequency), (np.arange(MAX_POOL_ROWS) + 0.5) * each)
    kept, hits = np.unique(rows, return_counts=True)
    return snapshots[kept], hits * each


def snapshot_likelihood(snapshots: IntArray, atoms: Atoms) -> Array:
    """Return the likelihood of each snapshot under each atom, divided by the largest of its row.

    With mass t spread evenly over m of T tail ranks chosen at random, K tail labels on d of the
    ranks have the probability (t / m)^K C(T - d, m - d) / C(T, m).
    """
    logs = np.log(atoms.lumped) @ snapshots[:, :-1].T  # (n_atoms, n_snapshots)
    if atoms.n_tail > 1:
        logs -= np.log(atoms.width)[:, None] * snapshots[:, -2]
        sizes, place = np.unique(
            atoms.width, return_inverse=True
        )  # few, so a table of the binomials is small
        width = sizes[:, None]
        distinct = np.arange(snapshots[:, -1].max() + 1)
        ways = special.gammaln(width + 1) - special.gammaln(np.maximum(width - distinct, 0) + 1)
        ways = np.where(
            width >= distinct, ways + special.gammaln(atoms.n_tail - distinct + 1), -1e3
        )
        logs += ways[place][:, snapshots[:, -1]]
    logs -= logs.max(axis=0)
    return np.asarray(np.exp(logs, out=logs).T)


def make_atoms(snapshots: IntArray, frequency: Array, n_classes: int) -> Atoms:
    """Return the dictionary: about a thousand label distributions, sharp to flat, around what the labels show."""
    counts = snapshots[:, :-1]
    totals = counts.sum(axis=1)
    size = counts.shape[1]
    mean = (frequency @ counts + 0.5) / (frequency @ totals + 0.5 * size)
    generator = np.random.default_rng(0)
    corners = np.eye(size)
    leading = [(i, j) for i in range(min(size, 4)) for j in range(i + 1, min(size, 6))]
    edges = [(1 - _MIXED) * corners[i] + _MIXED * corners[j] for i, j in leading]
    broad = [_dirichlet(generator, c * mean) for c in (0.25, 0.5, 1, 2, 4, 8, 16, 32)]
    # People use few labels for an item: points on faces of two to four ranks, leading ranks more
    # often.
    faces = [
        _face(generator, mean, ranks, c)
        for ranks in (2, 3, 4)
        if ranks <= size
        for c in (0.3, 1.0, 3.0)
    ]
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
    ranks = np.argsort(-0.5 * np.log(mean) - generator.gumbel(size=(50, len(mean))), axis=1)[
        :, :size
    ]
    atoms = np.zeros((50, len(mean)))
    np.put_along_axis(atoms, ranks, _dirichlet(generator, np.full(size, concentration)), axis=1)
    return atoms
