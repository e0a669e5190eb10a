"""Distance between mixtures: the Wasserstein distance W1 with the l1 metric on label distributions.

Two facts keep it cheap. With two classes it is an integral over the line. With more, the
cost is a metric, so mass that both mixtures put on the same atom stays where it is: atoms are
merged, common mass is cancelled, and only the rest is transported. Snapshots live on a lattice,
where little is left.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hocal._base.errors import InputError
from hocal._base.typing import Array, Index
from hocal._base.validation import check_choice, check_integer
from hocal.uncertainty.flows import SignedAtoms, begins, cut, least_costs, ranges, sum_by_pair
from hocal.uncertainty.mixtures import Mixtures, check_mixtures

__all__ = ["WassersteinInterval", "wasserstein", "wasserstein_interval"]


_SCALES = {"l1": 1.0, "tv": 0.5}
_MAX_COSTS = 25_000_000  # 5000 x 5000: 700 MB of work space and a few seconds
# mass: the round-off of cancellation, and below what the network simplex resolves
_NEGLIGIBLE = 1e-14
# merged at once: they stay in the cache, and positions keep digits
_BLOCK_NUMBERS = 300_000
_BLOCK_PAIRS = 1000


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

    W1(a, b) is the least mean distance E ||p - q||_1 over all joint distributions of p ~ a and q ~
    b. It lies in [0, 2]; for two classes it equals twice the integral of |F - G| over the
    probability of a class. The result is exact up to round-off. A distance between *samples* of two
    mixtures overstates the distance between the mixtures: compare it with its noise floor, as
    `hocal.calibration_error` does.

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
    >>> from hocal.uncertainty.mixtures import Mixtures, check_mixtures
    >>> from hocal.uncertainty.distance import wasserstein
    >>> sure = Mixtures.from_ensemble([[[1, 0, 0], [0, 1, 0]]])  # yes or no, and certain which
    >>> torn = Mixtures.from_ensemble([[[0.5, 0.5, 0], [0.5, 0.5, 0]]])
    >>> wasserstein(sure, torn)
    array([1.])
    """
    check_mixtures(a, "a")
    check_mixtures(b, "b")
    scale = _SCALES[check_choice(metric, "metric", _SCALES)]
    return np.asarray(scale * _over_pairs(a, b, _binary if a.n_classes == 2 else _exact)[0])


def wasserstein_interval(
    a: Mixtures, b: Mixtures, *, resolution: int, metric: str = "l1"
) -> WassersteinInterval:
    """Bound the Wasserstein distance between mixtures too large for exact transport.

    What is left after cancellation is rounded to label distributions of the form s / resolution,
    where atoms meet and merge. By the triangle inequality |W1(a, b) - W1(a', b')| <= D, where D is
    the mean distance the rounded mass was moved, at most n_classes / resolution for both sides
    together. The lower bound is also at least the sum over classes of the distances between the two
    distributions of that class's probability. Two classes need no bound: both ends are the exact
    value.

    Parameters
    ----------
    a, b : Mixtures
        Of equal length, or one of length 1.
    resolution : int
        Denominator of the lattice; larger is tighter and slower. Snapshots of k labels are exact at
        k.
    metric : {"l1", "tv"}, default="l1"
        Distance between label distributions.

    Returns
    -------
    WassersteinInterval
        Fields `lower` and `upper`, arrays of n_items.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.uncertainty.mixtures import Mixtures, check_mixtures
    >>> from hocal.uncertainty.distance import wasserstein, wasserstein_interval
    >>> generator = np.random.default_rng(0)
    >>> a = Mixtures.from_ensemble(generator.dirichlet([1, 2, 3], size=(1, 500)))
    >>> b = Mixtures.from_ensemble(generator.dirichlet([1, 2, 3], size=(1, 500)))
    >>> lower, upper = wasserstein_interval(a, b, resolution=10)
    >>> bool(lower[0] <= wasserstein(a, b)[0] <= upper[0])
    True
    """
    check_mixtures(a, "a")
    check_mixtures(b, "b")
    scale = _SCALES[check_choice(metric, "metric", _SCALES)]
    bounds = partial(_bounds, resolution=check_integer(resolution, "resolution", minimum=1))
    lower, upper = scale * _over_pairs(a, b, _binary if a.n_classes == 2 else bounds)
    return WassersteinInterval(lower, upper)


def _over_pairs(
    a: Mixtures, b: Mixtures, measure: Callable[[Mixtures, Mixtures, Index, Index], Array]
) -> Array:
    """Return lower and upper values of the items, (2, n_items), from a function of pairs.

    The function gets distinct pairs of stored mixtures, in blocks, in which none is empty. Where
    its values are exact it returns one row of them.
    """
    first, second, place = _distinct_pairs(a, b)
    sizes_a = a.offsets[first + 1] - a.offsets[first]
    sizes_b = b.offsets[second + 1] - b.offsets[second]
    nonempty = (sizes_a * sizes_b).nonzero()[0]
    # a pair counts with its numbers, and with enough to end a block at _BLOCK_PAIRS of them
    work = (sizes_a + sizes_b) * a.n_classes + _BLOCK_NUMBERS // _BLOCK_PAIRS
    values = np.full((2, len(first)), np.nan)
    for block in cut(nonempty, work, _BLOCK_NUMBERS):
        values[:, block] = measure(a, b, first[block], second[block])
    return values[:, place]


def _distinct_pairs(a: Mixtures, b: Mixtures) -> tuple[Index, Index, Any]:
    """Return the mixtures of a and of b in each distinct pair, and where items find theirs."""
    if a.n_classes != b.n_classes:
        found = f"{a.n_classes} and {b.n_classes} classes"
        raise InputError("a and b", "must have the same classes", value=found)
    if len(a) != len(b) and 1 not in (len(a), len(b)):
        rule = "must have equal length, or one of them length 1"
        raise InputError("a and b", rule, value=f"{len(a)} and {len(b)} items")
    codes = a.index * b.n_mixtures + b.index
    place = slice(None)
    if len(codes) > 1 and (codes[1:] <= codes[:-1]).any():
        codes, place = np.unique(codes, return_inverse=True)
    return *np.divmod(codes, b.n_mixtures), place


def _atoms(mixtures: Mixtures, chosen: Index) -> tuple[Array, Array, Index]:
    """Return the atoms of the chosen mixtures, their mass, and how many each mixture has."""
    starts = mixtures.offsets[chosen]
    ends = mixtures.offsets[chosen + 1]
    sizes = ends - starts
    adjacent = len(chosen) == 1 or (starts[1:] == ends[:-1]).all()
    rows: Any = slice(starts[0], ends[-1]) if adjacent else ranges(starts, sizes)
    weights = mixtures.weights[rows]
    # Weights may sum to 1 within a tolerance only; a difference in mass has no place in a
    # transport.
    total = np.add.reduceat(weights, begins(sizes))
    mass = weights / (total if len(chosen) == 1 else np.repeat(total, sizes))
    return mixtures.points_at(rows), mass, sizes


def _binary(a: Mixtures, b: Mixtures, first: Index, second: Index) -> Array:
    """Return the distance of each pair of two-class mixtures."""
    points_a, mass_a, sizes_a = _atoms(a, first)
    points_b, mass_b, sizes_b = _atoms(b, second)
    line = np.concatenate([points_a[:, 0], points_b[:, 0]])
    if len(first) > 1:
        shifts = 2.0 * np.arange(len(first))
        line += np.repeat(np.concatenate([shifts, shifts]), np.concatenate([sizes_a, sizes_b]))
    return 2 * _line_distances(line, np.concatenate([mass_a, -mass_b]), begins(sizes_a + sizes_b))


def _line_distances(line: Array, mass: Array, starts: Index) -> Array:
    """Return the integral of |F - G|, their running sum, for each group of signed masses.

    Group g lies on [2g, 2g + 1], so that one sort and one running sum serve all groups: the mass of
    a group sums to zero. A position loses digits by this, 5e-13 for a thousand groups. `starts`
    tells where each group begins in the sorted line.
    """
    order = line.argsort()
    line = line[order]
    areas = mass[order].cumsum()
    np.abs(areas, out=areas)
    areas[:-1] *= line[1:] - line[:-1]
    areas[-1:] = 0
    return np.add.reduceat(areas, starts)


def _exact(a: Mixtures, b: Mixtures, first: Index, second: Index) -> Array:
    """Return the distance of each pair of mixtures with any number of classes."""
    return _transport(_merge(_all_atoms(a, b, first, second)), len(first))


def _all_atoms(a: Mixtures, b: Mixtures, first: Index, second: Index) -> SignedAtoms:
    """Return the atoms of both mixtures of each pair, those of the second with negative mass."""
    points_a, mass_a, sizes_a = _atoms(a, first)
    points_b, mass_b, sizes_b = _atoms(b, second)
    pairs = np.arange(len(first))
    pair = np.repeat(np.concatenate([pairs, pairs]), np.concatenate([sizes_a, sizes_b]))
    return SignedAtoms(
        np.concatenate([points_a, points_b]), np.concatenate([mass_a, -mass_b]), pair
    )


def _merge(atoms: SignedAtoms) -> SignedAtoms:
    """Return the distinct points of each pair with their net mass, where it does not cancel.

    Points are sorted by one number, and neighbours are compared in full: a coincidence of numbers
    can keep equal points apart, which costs time, but never joins different ones. The number is
    summed row by row, since a matrix product may round equal rows differently. It is close to
    ||p||^2, so that the network simplex gets its atoms in order from torn to certain, which suits
    it.
    """
    unlike = 1 + 1e-3 * np.sqrt(np.arange(1, atoms.points.shape[1] + 1))  # tells classes apart
    squares = np.square(atoms.points)
    squares *= unlike
    order = np.argsort(squares.sum(axis=1) + 2 * unlike[-1] * atoms.pair)
    points = atoms.points[order]
    pair = atoms.pair[order]
    new = np.ones(len(pair), dtype=np.bool_)
    other_point = (points[1:] != points[:-1]).any(axis=1)
    other_pair = pair[1:] != pair[:-1]
    new[1:] = other_point | other_pair
    first = np.flatnonzero(new)
    net = np.add.reduceat(atoms.mass[order], first)
    kept = np.abs(net) > _NEGLIGIBLE
    return SignedAtoms(points[first[kept]], net[kept], pair[first[kept]])


def _transport(atoms: SignedAtoms, n_pairs: int) -> Array:
    """Return the least cost of each pair, if the largest can be computed."""
    n_sources, n_sinks = (
        np.bincount(atoms.pair[side], minlength=n_pairs)
        for side in (atoms.mass > 0, atoms.mass < 0)
    )
    worst = int(np.argmax(n_sources * n_sinks))
    if n_sources[worst] * n_sinks[worst] > _MAX_COSTS:
        raise InputError(
            "a and b",
            f"must leave at most {_MAX_COSTS} distances between atoms for exact transport",
            value=f"{n_sources[worst]} x {n_sinks[worst]} after common mass was cancelled",
            remedy="Use wasserstein_interval with a (smaller) resolution, or mixtures with fewer "
            "atoms.",
        )
    return least_costs(atoms, n_pairs)


def _bounds(a: Mixtures, b: Mixtures, first: Index, second: Index, *, resolution: int) -> Array:
    """Return a lower and an upper bound for each pair from atoms rounded to a lattice."""
    left = _merge(_all_atoms(a, b, first, second))
    n_pairs = len(first)
    rounded = _round(left.points, resolution)
    mass = np.abs(left.mass)
    shifts = np.abs(rounded - left.points).sum(axis=1)
    moved = sum_by_pair(mass * shifts, left.pair, n_pairs)
    most = sum_by_pair(mass, left.pair, n_pairs)
    near = _transport(_merge(left._replace(points=rounded)), n_pairs)
    lower = np.maximum(near - moved, _classwise(left, n_pairs))
    upper = np.minimum(near + moved, most)
    return np.stack([lower, upper])


def _round(points: Array, resolution: int) -> Array:
    """Return the nearest points s / resolution: round down, then up where most is missing."""
    scaled = points * resolution
    lower = np.floor(scaled + 1e-9)  # a multiple of 1 / resolution stays one
    missing = resolution - lower.sum(axis=1, keepdims=True)
    order = np.argsort(lower - scaled, axis=1, kind="stable")
    rank = np.argsort(order, axis=1, kind="stable")
    return np.asarray((lower + (rank < missing)) / resolution)


def _classwise(atoms: SignedAtoms, n_pairs: int) -> Array:
    """Return the sum over classes of the distances along the class alone, a lower bound."""
    values = np.zeros(n_pairs)
    pairs, starts = np.unique(atoms.pair, return_index=True)
    for probability in atoms.points.T:
        values[pairs] += _line_distances(probability + 2.0 * atoms.pair, atoms.mass, starts)
    return values
