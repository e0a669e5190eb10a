"""Distance between mixtures: the Wasserstein distance W1 with the l1 metric on label distributions.

Two facts keep it cheap (spec 1.5). With two classes it is an integral over the line. With more, the cost is
a metric, so mass that both mixtures put on the same atom stays where it is: atoms are merged, common mass is
cancelled, and only the rest is transported. Snapshots live on a lattice, where little is left.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist

from hocal._validation import check_choice, check_integer
from hocal.mixtures import Mixtures

__all__ = ["WassersteinInterval", "wasserstein", "wasserstein_interval"]

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

_SCALES = {"l1": 1.0, "tv": 0.5}
_MAX_COSTS = 25_000_000  # 5000 x 5000: 700 MB of work space and a few seconds
_MAX_PIVOTS = 2**31 - 1  # the network simplex ends by itself; POT's default of 100,000 stops real problems early
_NEGLIGIBLE = 1e-14  # mass: the round-off of cancellation, and below what the network simplex resolves
_SCREEN_ABOVE = 100_000  # costs; below, the network simplex takes milliseconds on all arcs
_SMOOTHING, _SWEEPS, _ARCS_PER_ATOM = 0.12, 30, 10  # found by trial on real snapshots and Dirichlet samples
_TIGHT, _NEARLY_TIGHT = 1e-10, 0.02  # reduced cost; the first bounds the error of the distance
_MAX_ROUNDS = 8  # of adding arcs; two or three are usual
_BLOCK_ATOMS, _BLOCK_PAIRS = 2_000_000, 1000  # sorted at once: about 100 MB of work space


class WassersteinInterval(NamedTuple):
    """Bounds that hold the exact distance of each pair.

    Attributes
    ----------
    lower, upper : ndarray of shape (n_items,)
        The exact value lies between them; NaN where a mixture is empty.
    """

    lower: Array
    upper: Array


def wasserstein(a: Mixtures, b: Mixtures, *, metric: str = "l1") -> Array:
    """Compute the Wasserstein distance between mixtures, item by item.

    W1(a, b) is the least mean distance E ||p - q||_1 over all joint distributions of p ~ a and q ~ b. It
    lies in [0, 2]; for two classes it equals twice the integral of |F - G| over the probability of a class.
    The result is exact up to round-off. A distance between *samples* of two mixtures overstates the distance
    between the mixtures: compare it with its noise floor (spec 1.6).

    Parameters
    ----------
    a, b : Mixtures
        Of equal length, or one of length 1, which is then compared with every item of the other.
    metric : {"l1", "tv"}, default="l1"
        Distance between label distributions; ``"tv"`` is half of ``"l1"``.

    Returns
    -------
    ndarray of shape (n_items,)
        NaN where a mixture is empty.

    Raises
    ------
    ValueError
        When more than 25 million distances between atoms are left after cancellation.

    Examples
    --------
    >>> from hocal.mixtures import Mixtures
    >>> from hocal.transport import wasserstein
    >>> sure = Mixtures.from_ensemble([[[1, 0, 0], [0, 1, 0]]])  # yes or no, and certain which
    >>> torn = Mixtures.from_ensemble([[[0.5, 0.5, 0], [0.5, 0.5, 0]]])
    >>> wasserstein(sure, torn)
    array([1.])
    """
    scale = _SCALES[check_choice(metric, "metric", _SCALES)]
    pairs, place, filled = _distinct_pairs(a, b)
    values = np.full(len(pairs), np.nan)
    if a.n_classes == 2 and len(filled):
        values[filled] = _binary(a, b, pairs[filled])
    else:
        values[filled] = [_transport(*residual) for residual in _residuals(a, b, pairs[filled])]
    return np.asarray(scale * values[place])


def wasserstein_interval(a: Mixtures, b: Mixtures, *, resolution: int, metric: str = "l1") -> WassersteinInterval:
    """Bound the Wasserstein distance between mixtures too large for exact transport.

    What is left after cancellation is rounded to label distributions of the form s / resolution, where atoms
    meet and merge. By the triangle inequality |W1(a, b) - W1(a', b')| <= D, where D is the mean distance the
    rounded mass was moved, at most n_classes / resolution for both sides together. The lower bound is also at
    least the sum over classes of the distances between the two distributions of that class's probability.
    Two classes need no bound: both ends are the exact value.

    Parameters
    ----------
    a, b : Mixtures
        Of equal length, or one of length 1.
    resolution : int
        Denominator of the lattice; larger is tighter and slower. Snapshots of k labels are exact at k.
    metric : {"l1", "tv"}, default="l1"
        Distance between label distributions.

    Returns
    -------
    WassersteinInterval
        Fields `lower` and `upper`, arrays of n_items.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.mixtures import Mixtures
    >>> from hocal.transport import wasserstein, wasserstein_interval
    >>> generator = np.random.default_rng(0)
    >>> a, b = (Mixtures.from_ensemble(generator.dirichlet([1, 2, 3], size=(1, 500))) for _ in range(2))
    >>> lower, upper = wasserstein_interval(a, b, resolution=10)
    >>> bool(lower[0] <= wasserstein(a, b)[0] <= upper[0])
    True
    """
    scale = _SCALES[check_choice(metric, "metric", _SCALES)]
    resolution = check_integer(resolution, "resolution", minimum=1)
    pairs, place, filled = _distinct_pairs(a, b)
    if a.n_classes == 2:
        exact = wasserstein(a, b, metric=metric)
        return WassersteinInterval(exact, exact)
    bounds = np.full((len(pairs), 2), np.nan)
    for i, residual in zip(filled, _residuals(a, b, pairs[filled]), strict=True):
        bounds[i] = _bounds(*residual, resolution)
    return WassersteinInterval(*(scale * bounds[place]).T)


def _distinct_pairs(a: Mixtures, b: Mixtures) -> tuple[Integers, Integers, Integers]:
    """Return the distinct (mixture of a, mixture of b), the row of each item's pair, and the rows without NaN."""
    if a.n_classes != b.n_classes:
        raise ValueError(f"`a` and `b` must have the same classes, got {a.n_classes} and {b.n_classes} classes.")
    if len(a) != len(b) and 1 not in (len(a), len(b)):
        raise ValueError(
            f"`a` and `b` must have equal length, or one of them length 1, got {len(a)} and {len(b)} items."
        )
    codes, place = np.unique(a.index * b.n_mixtures + b.index, return_inverse=True)
    first, second = np.divmod(codes, b.n_mixtures)
    filled = np.flatnonzero((_sizes(a)[first] > 0) & (_sizes(b)[second] > 0))
    return np.stack([first, second], axis=1), place, filled


def _sizes(mixtures: Mixtures) -> Integers:
    return np.diff(mixtures.offsets)


def _binary(a: Mixtures, b: Mixtures, pairs: Integers) -> Array:
    """Return the distance of each pair of two-class mixtures; the loop runs over blocks that fit in memory."""
    ends = np.cumsum(_sizes(a)[pairs[:, 0]] + _sizes(b)[pairs[:, 1]])
    block = ends // _BLOCK_ATOMS + np.arange(len(pairs)) // _BLOCK_PAIRS
    cuts = [0, *(np.flatnonzero(np.diff(block)) + 1), len(pairs)]
    return np.concatenate([_binary_block(a, b, pairs[i:j]) for i, j in pairwise(cuts)])


def _binary_block(a: Mixtures, b: Mixtures, pairs: Integers) -> Array:
    line_a, mass_a, starts_a = _side(a, pairs[:, 0])
    line_b, mass_b, starts_b = _side(b, pairs[:, 1])
    mass = np.concatenate([mass_a, np.negative(mass_b, out=mass_b)])
    return 2 * _line_distances(np.concatenate([line_a, line_b]), mass, starts_a + starts_b)


def _side(mixtures: Mixtures, chosen: Integers) -> tuple[Array, Array, Integers]:
    """Return the atoms of the chosen mixtures for `_line_distances`."""
    sizes = _sizes(mixtures)[chosen]
    starts = np.cumsum(sizes) - sizes
    if (np.diff(chosen) == 1).all():
        rows: Any = slice(mixtures.offsets[chosen[0]], mixtures.offsets[chosen[-1] + 1])
    else:
        rows = np.arange(sizes.sum()) + np.repeat(mixtures.offsets[chosen] - starts, sizes)
    weights = mixtures.weights[rows]
    line = mixtures.points[rows, 0] + np.repeat(2.0 * np.arange(len(chosen)), sizes)
    # Weights may sum to 1 within a tolerance only; a difference in mass has no place in a transport.
    return line, weights / np.repeat(np.add.reduceat(weights, starts), sizes), starts


def _line_distances(line: Array, mass: Array, starts: Integers) -> Array:
    """Return the integral of |F - G| for each group of signed masses, F - G being their running sum.

    Group g lies on [2g, 2g + 1], so that one sort and one running sum serve all groups: the mass of a group
    sums to zero. A position loses digits by this, 5e-13 for a thousand groups. `starts` tells where each
    group begins in the sorted line.
    """
    order = np.argsort(line)
    areas = np.cumsum(mass[order])[:-1]
    np.abs(areas, out=areas)
    areas *= np.diff(line[order])
    return np.add.reduceat(areas, starts)


def _residuals(a: Mixtures, b: Mixtures, pairs: Integers) -> Iterator[tuple[Array, Array]]:
    """Yield for each pair the atoms on which the two mixtures differ, and the mass of a minus that of b."""
    for first, second in pairs:
        rows_a = slice(a.offsets[first], a.offsets[first + 1])
        rows_b = slice(b.offsets[second], b.offsets[second + 1])
        weights_a, weights_b = a.weights[rows_a], b.weights[rows_b]
        # Weights may sum to 1 within a tolerance only, so both sides are scaled to the same mass.
        mass = np.concatenate([weights_a / weights_a.sum(), -weights_b / weights_b.sum()])
        yield _merge(np.concatenate([a.points[rows_a], b.points[rows_b]]), mass)


def _merge(points: Array, mass: Array) -> tuple[Array, Array]:
    """Return the distinct points with their net mass, without those where it cancels.

    Points are sorted by one number, and neighbours are compared in full: a coincidence of numbers can keep
    equal points apart, which costs time, but never joins different ones. The number is summed row by row,
    since a matrix product may round equal rows differently. It is close to ||p||^2, so that the network
    simplex gets its atoms in order from torn to certain, which suits it.
    """
    unlike = 1 + 1e-3 * np.sqrt(np.arange(1, points.shape[1] + 1))  # tells classes apart
    order = np.argsort((np.square(points) * unlike).sum(axis=1))
    points = points[order]
    new = np.append(True, (points[1:] != points[:-1]).any(axis=1))
    net = np.add.reduceat(mass[order], np.flatnonzero(new))
    kept = np.abs(net) > _NEGLIGIBLE
    return points[new][kept], net[kept]


def _transport(points: Array, net: Array) -> float:
    """Return the least cost of moving the positive mass onto the negative."""
    supply, demand = net[net > 0], -net[net < 0]
    if not (len(supply) and len(demand)):
        return 0.0
    _check_size(len(supply), len(demand))
    costs = cdist(points[net > 0], points[net < 0], "cityblock")
    if 1 in costs.shape:  # everything goes to, or comes from, one atom
        return float(supply / supply.sum() @ costs @ demand)
    # Rounding leaves the two sides unequal in the last digits, which the network simplex calls infeasible.
    return float(demand.sum()) * _exact_cost(supply / supply.sum(), demand / demand.sum(), costs)


def _check_size(n_sources: int, n_sinks: int) -> None:
    if n_sources * n_sinks > _MAX_COSTS:
        raise ValueError(
            f"`a` and `b` must leave at most {_MAX_COSTS} distances between atoms for exact transport, got "
            f"{n_sources} x {n_sinks} after common mass was cancelled. Use wasserstein_interval with a "
            "(smaller) resolution, or mixtures with fewer atoms."
        )


def _exact_cost(supply: Array, demand: Array, costs: Array) -> float:
    """Return the least cost of moving one unit of mass from `supply` to `demand`."""
    solution = _screened(supply, demand, costs) if costs.size > _SCREEN_ABOVE else None
    if solution is None:
        solution = _network_simplex(supply, demand, costs)
    if solution["warning"] is not None:
        raise RuntimeError(f"optimal transport of {len(supply)} x {len(demand)} atoms failed: {solution['warning']}")
    return float(solution["cost"])


def _screened(supply: Array, demand: Array, costs: Array) -> dict[str, Any] | None:
    """Solve on few of the arcs from sources to sinks, and prove that the others are not needed.

    A solution is optimal among all arcs when none costs less than the potentials of its ends allow. While
    some do, they and the nearly tight ones are added. None if this does not end soon.
    """
    arcs = _likely_arcs(supply, demand, costs)
    for _ in range(_MAX_ROUNDS):
        rows, columns = np.nonzero(arcs)
        kept = sparse.coo_array((costs[rows, columns], (rows, columns)), shape=costs.shape)
        solution = _network_simplex(supply, demand, kept)
        reduced = costs - solution["u"][:, None]
        reduced -= solution["v"]
        if solution["warning"] is None and reduced.min() >= -_TIGHT:
            return solution
        arcs |= reduced < _NEARLY_TIGHT
    return None


def _likely_arcs(supply: Array, demand: Array, costs: Array) -> NDArray[np.bool_]:
    """Mark the arcs that an entropy-regularised plan (Sinkhorn) uses most, and those of one feasible plan."""
    plan = np.exp(costs.astype(np.float32) * np.float32(-1 / _SMOOTHING))
    row_mass, column_mass = supply.astype(np.float32), demand.astype(np.float32)
    columns = np.ones_like(column_mass)
    for _ in range(_SWEEPS):  # einsum keeps to one thread; BLAS stalls here when other work shares the cores
        rows = row_mass / np.einsum("ij,j->i", plan, columns)
        columns = column_mass / np.einsum("ij,i->j", plan, rows)
    plan *= rows[:, None]
    plan *= columns
    left_out = max(1 - _ARCS_PER_ATOM * sum(plan.shape) / plan.size, 0)
    arcs: NDArray[np.bool_] = plan >= np.quantile(plan.ravel()[::7], left_out)
    # Serving the sinks in order, from the sources in order, makes the screened problem feasible.
    sources, sinks = np.cumsum(supply)[:-1], np.cumsum(demand)[:-1]
    served = np.concatenate([[0.0], sources, sinks])
    arcs[np.searchsorted(sources, served, "right"), np.searchsorted(sinks, served, "right")] = True
    return arcs


def _network_simplex(supply: Array, demand: Array, costs: Any) -> dict[str, Any]:
    """Call POT on a dense or sparse cost matrix; masses are balanced already, and no plan is wanted."""
    import ot  # takes seconds, and imports PyTorch where it is installed

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the returned status says the same, and cannot be missed
        _, log = ot.emd(
            supply, demand, costs, numItermax=_MAX_PIVOTS, log=True, center_dual=False, check_marginals=False
        )
    return dict(log)


def _bounds(points: Array, net: Array, resolution: int) -> tuple[float, float]:
    """Return a lower and an upper bound on the transport cost from atoms rounded to a lattice."""
    if len(net) == 0:
        return 0.0, 0.0
    rounded = _round(points, resolution)
    moved = float(np.abs(net) @ np.abs(rounded - points).sum(axis=1))
    near = _transport(*_merge(rounded, net))
    return max(near - moved, _classwise(points, net)), min(near + moved, float(np.abs(net).sum()))


def _round(points: Array, resolution: int) -> Array:
    """Return the nearest points of the form s / resolution: round down, then up where most is missing."""
    scaled = points * resolution
    lower = np.floor(scaled + 1e-9)  # a multiple of 1 / resolution stays one
    missing = resolution - lower.sum(axis=1, keepdims=True)
    rank = np.argsort(np.argsort(lower - scaled, axis=1, kind="stable"), axis=1, kind="stable")
    return np.asarray((lower + (rank < missing)) / resolution)


def _classwise(points: Array, net: Array) -> float:
    """Return the sum over classes of the distances between the class's probabilities, a lower bound."""
    n_classes = points.shape[1]
    line = (points + 2.0 * np.arange(n_classes)).T.ravel()
    return float(_line_distances(line, np.tile(net, n_classes), len(net) * np.arange(n_classes)).sum())
