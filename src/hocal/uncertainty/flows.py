"""Least cost of moving mass from sources to sinks, exactly, for many pairs of mixtures at once.

A pair with a single source or sink leaves no choice. Samples of equal size move units of the same
mass: an assignment. All else goes to the network simplex of POT: small problems side by side in one
call, since a call costs more than they do; large ones on few arcs, with a proof that the others are
not needed.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from hocal._base.typing import Array, Index, Mask

__all__ = ["SignedAtoms", "begins", "cut", "least_costs", "ranges", "sum_by_pair"]


_MAX_UNITS = 128  # of mass, to be assigned one by one
_ROUND_OFF = 1e-12  # by which a multiple of the unit may miss a whole number
# larger problems are solved on their own, with and without units
_JOIN_UNITS = 64
_JOIN_ARCS = 250
_JOINED_ARCS = 10_000  # in one call
# the network simplex ends by itself; POT's default of 100,000 stops real problems early
_MAX_PIVOTS = 2**31 - 1
_SCREEN_ABOVE = 100_000  # costs; below, the network simplex takes milliseconds on all arcs
# found by trial on real snapshots and Dirichlet samples
_SMOOTHING = 0.12
_SWEEPS = 30
_ARCS_PER_ATOM = 10
# reduced cost; the first bounds the error of the distance
_TIGHT = 1e-10
_NEARLY_TIGHT = 0.02
# differences; one looked up by class costs as much as ten in a row
_DENSE_BELOW = 1_000_000
_SHARED_COST = 10
_MAX_ROUNDS = 8  # of adding arcs; two or three are usual


class SignedAtoms(NamedTuple):
    """Atoms on which pairs of mixtures differ.

    Attributes
    ----------
    points : ndarray of shape (n_atoms, n_classes)
        Label distributions.
    mass : ndarray of shape (n_atoms,)
        Mass under the first mixture less that under the second; it sums to zero within a pair.
    pair : ndarray of shape (n_atoms,)
        The pair of each atom.
    """

    points: Array
    mass: Array
    pair: Index


class _Side(NamedTuple):
    """The sources, or the sinks, of all pairs, one pair after the other.

    Attributes
    ----------
    points : ndarray of shape (n_atoms, n_classes)
        Label distributions.
    mass : ndarray of shape (n_atoms,)
        Share of each atom in the mass of its pair.
    pair : ndarray of shape (n_atoms,)
        The pair of each atom.
    sizes, begins : ndarray of shape (n_pairs,)
        How many atoms each pair has, and where they begin.
    total : ndarray of shape (n_pairs,)
        The mass of each pair.
    """

    points: Array
    mass: Array
    pair: Index
    sizes: Index
    begins: Index
    total: Array


def least_costs(atoms: SignedAtoms, n_pairs: int) -> Array:
    """Return for each pair the least cost of moving its positive mass onto its negative mass.

    Parameters
    ----------
    atoms : SignedAtoms
        In the order of their pairs.
    n_pairs : int
        Number of pairs; those without atoms cost nothing.

    Returns
    -------
    ndarray of shape (n_pairs,)
        Sums of mass times l1 distance.
    """
    sources = _side(atoms, atoms.mass, n_pairs)
    sinks = _side(atoms, -atoms.mass, n_pairs)
    fewest = np.minimum(sources.sizes, sinks.sizes)
    n_arcs = sources.sizes * sinks.sizes
    several = fewest > 1
    units = _units(sources, sinks)
    alone = (n_arcs > np.where(units > 0, _JOIN_UNITS, _JOIN_ARCS)) | (several.sum() == 1)
    costs = np.zeros(n_pairs)
    if 1 in fewest:
        costs += np.where(sources.sizes == 1, _from_one(sources, sinks), _from_one(sinks, sources))
    for pair in np.flatnonzero(several & alone):
        costs[pair] = _least_cost(*_problem(sources, sinks, pair), units[pair])
    for pairs in cut(np.flatnonzero(several & ~alone), n_arcs, _JOINED_ARCS):
        costs[pairs] = _joint_costs(sources, sinks, pairs)
    return costs * sinks.total


def cut(chosen: Index, sizes: Index, limit: int) -> list[Index]:
    """Cut a list of pairs into blocks whose sizes sum to about the limit at most."""
    if len(chosen) < 2:
        return [chosen] if len(chosen) else []
    batch = np.cumsum(sizes[chosen]) // limit
    return np.split(chosen, np.flatnonzero(np.diff(batch)) + 1)


def ranges(starts: Index, sizes: Index) -> Index:
    """Return the numbers from each start on, as many as its size, in one array."""
    return np.arange(sizes.sum()) + np.repeat(starts - begins(sizes), sizes)


def begins(sizes: Index) -> Index:
    """Return where groups of these sizes begin when they follow one another."""
    return sizes.cumsum() - sizes


def sum_by_pair(values: Array, pair: Index, n_pairs: int) -> Array:
    """Return the sum of the values of each pair."""
    sums = np.bincount(pair, values, minlength=n_pairs)
    return sums.astype(np.float64, copy=False)  # they are whole numbers if there are none


def _side(atoms: SignedAtoms, mass: Array, n_pairs: int) -> _Side:
    """Return the atoms of positive mass; the two sides of a pair differ in the last digits."""
    rows = np.flatnonzero(mass > 0)
    pair = atoms.pair[rows]
    mass = mass[rows]
    sizes = np.bincount(pair, minlength=n_pairs)
    total = sum_by_pair(mass, pair, n_pairs)
    return _Side(atoms.points[rows], mass / total[pair], pair, sizes, begins(sizes), total)


def _from_one(one: _Side, many: _Side) -> Array:
    """Return the mean distance of many atoms from one; 0 for pairs where it is not one."""
    rows = np.flatnonzero((one.sizes == 1)[many.pair])
    pair = many.pair[rows]
    there = one.points[one.begins[pair]]
    distances = np.abs(many.points[rows] - there).sum(axis=1)
    return sum_by_pair(distances * many.mass[rows], pair, len(one.sizes))


def _units(sources: _Side, sinks: _Side) -> Index:
    """Return how many equal units make up the mass of each pair; 0 for none or too many."""
    least = np.ones(len(sources.sizes))
    for side in (sources, sinks):
        np.minimum.at(least, side.pair, side.mass)
    units = np.rint(1 / least).astype(np.intp)
    units[units > np.minimum(sources.sizes + sinks.sizes, _MAX_UNITS)] = 0
    for side in (sources, sinks):
        multiples = side.mass * units[side.pair]
        units[side.pair[np.abs(multiples - np.rint(multiples)) > _ROUND_OFF]] = 0
    return units


def _problem(sources: _Side, sinks: _Side, pair: Any) -> tuple[Array, Array, Array]:
    """Return the supply, the demand and the costs of one pair."""
    rows, columns = (
        slice(side.begins[pair], side.begins[pair] + side.sizes[pair]) for side in (sources, sinks)
    )
    costs = _distances(sources.points[rows], sinks.points[columns])
    return sources.mass[rows], sinks.mass[columns], costs


def _distances(points: Array, others: Array) -> Array:
    """Return all l1 distances."""
    n_differences = len(points) * len(others) * points.shape[1]
    few = n_differences < _DENSE_BELOW
    if few or n_differences < _SHARED_COST * _n_shared(points, others).sum():
        return np.asarray(cdist(points, others, "cityblock"))
    return _distances_by_class(points, others)


def _distances_by_class(points: Array, others: Array) -> Array:
    """Return the same from shared classes, which few labels per item among many classes leave few.

    ||p - q||_1 = ||p||_1 + ||q||_1 - 2 sum_j min(p_j, q_j).
    """
    distances: Array = np.add.outer(points.sum(axis=1), others.sum(axis=1))
    for j in np.flatnonzero(_n_shared(points, others)):
        rows = np.flatnonzero(points[:, j])
        columns = np.flatnonzero(others[:, j])
        distances[np.ix_(rows, columns)] -= 2 * np.minimum.outer(
            points[rows, j], others[columns, j]
        )
    return distances


def _n_shared(points: Array, others: Array) -> Index:
    """Return for each class how many pairs of points have it in common."""
    return np.asarray(np.count_nonzero(points, axis=0) * np.count_nonzero(others, axis=0))


def _least_cost(supply: Array, demand: Array, costs: Array, units: int) -> float:
    """Return the least cost of moving one unit of mass from `supply` to `demand`."""
    if units:
        return _assigned(supply, demand, costs, units)
    solution = _screened(supply, demand, costs) if costs.size > _SCREEN_ABOVE else None
    return float((solution or _solved(supply, demand, costs))["cost"])


def _assigned(supply: Array, demand: Array, costs: Array, units: int) -> float:
    """Return the same for mass in equal units: some best plan moves each of them as a whole."""
    rows, columns = (np.rint(mass * units).astype(np.intp) for mass in (supply, demand))
    each = np.repeat(np.repeat(costs, rows, axis=0), columns, axis=1)
    return float(each[linear_sum_assignment(each)].mean())


def _joint_costs(sources: _Side, sinks: _Side, pairs: Index) -> Array:
    """Return the same for several small pairs, whose arcs make one problem side by side."""
    supplies, demands, blocks = zip(
        *(_problem(sources, sinks, pair) for pair in pairs), strict=True
    )
    n_sources = sources.sizes[pairs]
    n_sinks = sinks.sizes[pairs]
    first_sink = np.repeat(begins(n_sinks), n_sources)  # of each source
    n_arcs = np.repeat(n_sinks, n_sources)
    source = np.repeat(np.arange(len(n_arcs)), n_arcs)
    sink = ranges(first_sink, n_arcs)
    costs = np.concatenate([block.ravel() for block in blocks])
    arcs = sparse.coo_array((costs, (source, sink)))
    plan = _solved(np.concatenate(supplies), np.concatenate(demands), arcs)["plan"]
    used = (begins(n_arcs) - first_sink)[plan.row] + plan.col
    pair = np.repeat(np.arange(len(pairs)), n_sources)[plan.row]
    return sum_by_pair(plan.data * costs[used], pair, len(pairs))


def _screened(supply: Array, demand: Array, costs: Array) -> dict[str, Any] | None:
    """Solve on few of the arcs from sources to sinks, and prove that the others are not needed.

    A solution is optimal among all arcs when none costs less than the potentials of its ends allow.
    While some do, they and the nearly tight ones are added. None if this does not end soon.
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


def _likely_arcs(supply: Array, demand: Array, costs: Array) -> Mask:
    """Mark the arcs that a smoothed plan (Sinkhorn) uses most, and those of a feasible plan."""
    plan = np.exp(costs.astype(np.float32) * np.float32(-1 / _SMOOTHING))
    row_mass = supply.astype(np.float32)
    column_mass = demand.astype(np.float32)
    columns = np.ones_like(column_mass)
    # einsum keeps to one thread; BLAS stalls here when other work shares the cores
    for _ in range(_SWEEPS):
        rows = row_mass / np.einsum("ij,j->i", plan, columns)
        columns = column_mass / np.einsum("ij,i->j", plan, rows)
    plan *= rows[:, None]
    plan *= columns
    left_out = max(1 - _ARCS_PER_ATOM * sum(plan.shape) / plan.size, 0)
    arcs: Mask = plan >= np.quantile(plan.ravel()[::7], left_out)
    # Serving the sinks in order, from the sources in order, makes the screened problem feasible.
    sources = np.cumsum(supply)[:-1]
    sinks = np.cumsum(demand)[:-1]
    served = np.concatenate([[0.0], sources, sinks])
    arcs[np.searchsorted(sources, served, "right"), np.searchsorted(sinks, served, "right")] = True
    return arcs


def _solved(supply: Array, demand: Array, costs: Any) -> dict[str, Any]:
    """Call the network simplex, and accept nothing but the optimum."""
    solution = _network_simplex(supply, demand, costs)
    if solution["warning"] is not None:
        size = f"{len(supply)} x {len(demand)} atoms"
        raise RuntimeError(f"optimal transport of {size} failed: {solution['warning']}")
    return solution


def _network_simplex(supply: Array, demand: Array, costs: Any) -> dict[str, Any]:
    """Call POT on a dense or sparse cost matrix; masses are balanced already."""
    import ot  # takes seconds, and imports PyTorch where it is installed

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the returned status says the same, and cannot be missed
        plan, log = ot.emd(
            supply,
            demand,
            costs,
            numItermax=_MAX_PIVOTS,
            log=True,
            center_dual=False,
            check_marginals=False,
        )
    return {"plan": plan, **log}
