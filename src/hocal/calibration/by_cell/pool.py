"""Nonparametric maximum likelihood of one mixture, on a dictionary of label distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import linalg, special

from hocal._base.typing import Array, IntArray

__all__ = [
    "N_LEADING",
    "Atoms",
    "PlacedAtoms",
    "PoolFit",
    "fit_pool",
    "make_atoms",
    "place_tails",
    "sample_snapshots",
    "snapshot_likelihood",
]

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
LOG_ZERO = -1e3  # the logarithm of an impossible event's likelihood

N_LEADING = 11  # ranks that are told apart; the following ones are alike
LEAST_SHARE = 1e-4  # of the labels, times 1 / n_ranks: no label is impossible
PSEUDO_LABELS = 0.5  # of each rank in the pooled mean, so that no rank is impossible
N_DRAWN = 50  # atoms for each concentration and each size of face
# Total concentrations around the pooled mean, from nearly one-hot to nearly the mean itself.
CONCENTRATIONS = (0.25, 0.5, 1, 2, 4, 8, 16, 32)
# People use few labels for an item, so there are atoms on faces of few ranks, from their corners to
# their middles.
FACE_SIZES = (2, 3, 4)
FACE_CONCENTRATIONS = (0.3, 1.0, 3.0)
FACE_FLATNESS = 0.5  # power of the mean by which faces are drawn: leading ranks more often
N_OBSERVED = 300  # most frequent snapshots that are atoms themselves, smoothed by one label
# Pairs of leading ranks between which atoms lie, and the shares of the second of the two.
N_FIRST_OF_PAIR = 4
N_SECOND_OF_PAIR = 6
EDGE_SHARES = np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.99])
# Shares of labels that are given blindly, evenly over all classes, by people who see the item
# clearly otherwise.
LAPSE_SHARES = np.array([0.02, 0.05, 0.1, 0.2])
N_WIDTHS = 12  # numbers of ranks that share the mass of a tail, from 1 to all, geometrically
N_WIDTHS_EACH = 2  # of them for each atom
N_PLACED = 2_000  # points, beyond one per atom, that show the places of tails
GOLDEN = 0.6180339887498949  # steps by this share of 1 fill an interval evenly
UNDERFLOWED = 1e-30  # sum of drawn gamma variates below which their ratios are lost


class PoolFit(NamedTuple):
    """Weights of one mixture for all items, and how well they were found."""

    weights: Array  #: (n_atoms,)
    gap: float  #: in nats per item
    n_iterations: int


class Atoms(NamedTuple):
    """The dictionary; beyond the leading ranks all ranks are alike, so many classes stay few."""

    lumped: Array  #: (n_atoms, n_leading + 1), the last column has the mass of the tail
    width: Array  #: (n_atoms,) number of tail ranks that share this mass
    n_tail: int  #: number of ranks in the tail; below 2 there is nothing to spread

    @property
    def entropy(self) -> Array:
        """Return the entropy of each atom: spreading mass over m ranks adds log m times it."""
        lumped = special.entr(self.lumped).sum(axis=1)
        return np.asarray(lumped + self.lumped[:, -1] * np.log(self.width))

    @property
    def squares(self) -> Array:
        """Return ||p||^2 of each atom."""
        tail = self.lumped[:, -1] ** 2
        return np.asarray((self.lumped**2).sum(axis=1) - tail + tail / self.width)


class PlacedAtoms(NamedTuple):
    """Atoms over all ranks; one with a tail stands at several places of it."""

    points: Array  #: (n_points, n_classes)
    atom: IntArray  #: (n_points,) atom of each point
    share: Array  #: (n_points,) of the atom's weight


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


def snapshot_likelihood(snapshots: IntArray, atoms: Atoms) -> Array:
    """Return the likelihood of each snapshot under each atom, divided by the largest of its row.

    With mass t spread evenly over m of T tail ranks chosen at random, K tail labels on d of the
    ranks have the probability (t / m)^K C(T - d, m - d) / C(T, m).
    """
    logs: Array = np.log(atoms.lumped) @ snapshots[:, :-1].T  # (n_atoms, n_snapshots)
    if atoms.n_tail > 1:
        logs -= np.log(atoms.width)[:, None] * snapshots[:, -2]
        logs += _log_placements(atoms, snapshots[:, -1])
    logs -= logs.max(axis=0)
    return np.asarray(np.exp(logs, out=logs).T)


def _log_placements(atoms: Atoms, n_distinct: IntArray) -> Array:
    """Return log C(T - d, m - d) / C(T, m) up to a constant, for d tail ranks with labels.

    The shape is (n_atoms, n_snapshots).
    """
    widths, place = np.unique(atoms.width, return_inverse=True)  # few, so a small table serves
    width = widths[:, None]
    distinct = np.arange(n_distinct.max() + 1)
    ways = special.gammaln(width + 1) - special.gammaln(np.maximum(width - distinct, 0) + 1)
    ways = ways + special.gammaln(atoms.n_tail - distinct + 1)
    possible: Array = np.where(width >= distinct, ways, LOG_ZERO)
    return np.asarray(possible[place][:, n_distinct])


def make_atoms(snapshots: IntArray, frequency: Array, n_classes: int) -> Atoms:
    """Return the dictionary: some thousand atoms, sharp to flat, around what labels show."""
    counts = snapshots[:, :-1]
    totals = counts.sum(axis=1)
    size = counts.shape[1]
    pseudo = PSEUDO_LABELS * size
    mean = (frequency @ counts + PSEUDO_LABELS) / (frequency @ totals + pseudo)
    generator = np.random.default_rng(0)
    corners = np.eye(size)
    broad = [_dirichlet(generator, concentration * mean) for concentration in CONCENTRATIONS]
    faces = [
        _face(generator, mean, n_ranks, concentration)
        for n_ranks in FACE_SIZES
        if n_ranks <= size
        for concentration in FACE_CONCENTRATIONS
    ]
    common = np.argsort(-frequency, kind="stable")[:N_OBSERVED]
    smoothed = (counts[common] + mean) / (totals[common, None] + 1)
    atoms = np.concatenate([corners, *broad, *faces, smoothed, *_edges(corners)])
    atoms = np.maximum(atoms, LEAST_SHARE / size)
    atoms /= atoms.sum(axis=1, keepdims=True)
    return _spread_tail(atoms, _lapses(size, n_classes), n_classes - N_LEADING, generator)


def _lapses(size: int, n_classes: int) -> Array:
    """Return atoms with one rank and lapses, (1 - e) e_j + e / n_classes, over lumped ranks."""
    n_clear = min(size, N_LEADING)
    uniform = np.full(size, 1 / n_classes)
    uniform[-1] = 1 - uniform[:-1].sum()
    share = LAPSE_SHARES[:, None, None]
    lapses = (1 - share) * np.eye(size)[:n_clear] + share * uniform
    return np.asarray(lapses.reshape(-1, size))


def _edges(corners: Array) -> list[Array]:
    """Return atoms between pairs of leading ranks."""
    size = len(corners)
    pairs = [
        (first, second)
        for first in range(min(size, N_FIRST_OF_PAIR))
        for second in range(first + 1, min(size, N_SECOND_OF_PAIR))
    ]
    share = EDGE_SHARES[:, None]
    return [(1 - share) * corners[first] + share * corners[second] for first, second in pairs]


def _spread_tail(
    lumped: Array, lapses: Array, n_tail: int, generator: np.random.Generator
) -> Atoms:
    """Spread the mass of the tail evenly over random numbers of ranks; of lapses, over all."""
    if n_tail <= 1:
        both = np.concatenate([lumped, lapses])
        return Atoms(both, np.ones(len(both)), n_tail)
    lumped = np.repeat(lumped, N_WIDTHS_EACH, axis=0)
    sizes = np.unique(np.geomspace(1, n_tail, N_WIDTHS).round())
    width = generator.choice(sizes, len(lumped))
    width = np.concatenate([width, np.full(len(lapses), float(n_tail))])
    lumped = np.concatenate([lumped, lapses])
    return Atoms(lumped, width, n_tail)


def place_tails(atoms: Atoms, weights: Array, tail_labels: Array) -> PlacedAtoms:
    """Give each atom's tail places among the ranks, so that the mean is that of the labels.

    An atom says on how many tail ranks its mass lies, not on which. It becomes several points with
    other ranks each, more of them where it matters more; ranks are chosen in proportion to their
    labels by systematic sampling, whose start moves on from point to point.
    """
    if atoms.n_tail <= 1:
        n_atoms = len(atoms.lumped)
        return PlacedAtoms(atoms.lumped, np.arange(n_atoms), np.ones(n_atoms))
    profile = tail_labels + PSEUDO_LABELS
    matter = weights * atoms.lumped[:, -1]
    n_places = 1 + np.floor(N_PLACED * matter / matter.sum()).astype(np.int64)
    atom = np.repeat(np.arange(len(weights)), n_places)
    copy = np.arange(len(atom)) - np.repeat(np.cumsum(n_places) - n_places, n_places)
    start = (copy + GOLDEN * atom % 1) / n_places[atom]
    ends = {width: _inclusion_ends(profile, width) for width in np.unique(atoms.width)}
    upper = np.stack([ends[width] for width in atoms.width[atom]]) - start[:, None]
    chosen = np.diff(np.floor(upper), axis=1, prepend=np.floor(-start)[:, None])
    mass = atoms.lumped[atom, -1] / chosen.sum(axis=1)
    points = np.column_stack([atoms.lumped[atom, :-1], chosen * mass[:, None]])
    return PlacedAtoms(points, atom, 1 / n_places[atom])


def _inclusion_ends(profile: Array, width: float) -> Array:
    """Return the summed chances of ranks to be among `width`, following the profile up to 1."""
    chances = np.zeros(len(profile))
    free = np.ones(len(profile), dtype=bool)
    while True:
        left = width - (len(profile) - free.sum())
        chances[free] = left * profile[free] / profile[free].sum() if free.any() else 0
        over = free & (chances > 1)
        if not over.any():
            break
        chances[over] = 1
        free &= ~over
    ends = np.cumsum(chances)
    ends[-1] = width
    return np.asarray(ends)


def _dirichlet(generator: np.random.Generator, concentration: Array) -> Array:
    shape = (N_DRAWN, len(concentration))
    draws = generator.standard_gamma(np.broadcast_to(concentration, shape))
    draws[draws.sum(axis=1) < UNDERFLOWED, 0] = 1.0
    return np.asarray(draws / draws.sum(axis=1, keepdims=True))


def _face(generator: np.random.Generator, mean: Array, n_ranks: int, concentration: float) -> Array:
    """Return atoms on faces of n_ranks ranks, drawn without replacement (Gumbel's trick)."""
    noise = generator.gumbel(size=(N_DRAWN, len(mean)))
    ranks = np.argsort(-FACE_FLATNESS * np.log(mean) - noise, axis=1)[:, :n_ranks]
    shares = _dirichlet(generator, np.full(n_ranks, concentration))
    atoms = np.zeros((N_DRAWN, len(mean)))
    np.put_along_axis(atoms, ranks, shares, axis=1)
    return atoms
