"""Ways to write down what k labels reveal: snapshots, ordered tuples, moment tensors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.optimize import linprog

from hocal._base.errors import InputError
from hocal._base.typing import Array, IntArray
from hocal._base.validation import check_array, check_integer, check_number, check_simplex
from hocal.uncertainty.mixtures import Mixtures
from hocal.uncertainty.snapshots import (
    enumerate_snapshots,
    log_multiplicity,
    n_snapshots,
    rank_snapshots,
    shown_size,
    sub_snapshots,
)

__all__ = ["Realisation", "from_tuples", "nearest_realisable", "thin_distribution", "to_tuples"]

MAX_TUPLES = 1_000_000  # of labels in order: their ranks take 8 MB
# of adding atoms, and of steps towards a better one
_ROUNDS = 20
_CLIMBS = 50
# the first atoms of the program, whose cost grows with them; the search adds others
_MAX_LATTICE = 2000
_MAX_RESOLUTION = 400
_NEGLIGIBLE = 1e-13  # probability; entries of 1e-100 upset the solver and change nothing


class Realisation(NamedTuple):
    """The distribution over snapshots nearest to a given one that some mixture generates."""

    distance: float  #: total variation to the given distribution; 0 when it is realisable
    mixture: Mixtures  #: a mixture that generates the nearest distribution, one item


def thin_distribution(distribution: ArrayLike, k: int, j: int, *, n_classes: int) -> Array:
    """Turn distributions over Y^(k) into those over Y^(j) of j labels chosen among the k.

    Parameters
    ----------
    distribution : array of shape (..., n_snapshots(k, n_classes))
        Probabilities in the order of `enumerate_snapshots`.
    k : int
        Number of labels of a snapshot.
    j : int
        Number of labels to keep, at most k.
    n_classes : int
        Number of label classes.

    Returns
    -------
    ndarray of shape (..., n_snapshots(j, n_classes))
        Thinned probabilities; thinning proj_k of a mixture gives its proj_j.

    Examples
    --------
    >>> from hocal.uncertainty.moment_tensors import thin_distribution
    >>> thin_distribution([0.25, 0.5, 0.25], 2, 1, n_classes=2).tolist()
    [0.5, 0.5]
    """
    probabilities = _check_distribution(distribution, k, n_classes)
    j = check_integer(j, "j", minimum=1, maximum=k, why="Labels can be removed, not added.")
    thinned = sub_snapshots(enumerate_snapshots(k, n_classes), j)
    shape = (probabilities.shape[-1], n_snapshots(j, n_classes))
    entries = (thinned.items, rank_snapshots(thinned.snapshots))
    matrix = sparse.csr_array((thinned.probabilities, entries), shape=shape)
    rows = probabilities.reshape(-1, probabilities.shape[-1])
    return np.asarray(rows @ matrix).reshape(*probabilities.shape[:-1], -1)


def to_tuples(distribution: ArrayLike, k: int, *, n_classes: int) -> Array:
    """Return the distribution of ordered label tuples, the moment tensor E[p x ... x p].

    Parameters
    ----------
    distribution : array of shape (n_snapshots(k, n_classes),)
        Probabilities of the snapshots in the order of `enumerate_snapshots`.
    k : int
        Number of labels.
    n_classes : int
        Number of label classes.

    Returns
    -------
    ndarray with k axes of length n_classes
        Symmetric tensor; its sum is 1.

    Examples
    --------
    >>> from hocal.uncertainty.moment_tensors import to_tuples
    >>> to_tuples([0.25, 0.5, 0.25], 2, n_classes=2).tolist()
    [[0.25, 0.25], [0.25, 0.25]]
    """
    probabilities = _check_single(distribution, k, n_classes)
    orders = np.exp(log_multiplicity(enumerate_snapshots(k, n_classes)))
    return np.asarray((probabilities / orders)[_tuple_ranks(k, n_classes)])


def from_tuples(tensor: ArrayLike) -> Array:
    """Return the snapshot distribution of a distribution of ordered label tuples, symmetric or not.

    Parameters
    ----------
    tensor : array with k axes of length n_classes
        Probabilities of the ordered tuples.

    Returns
    -------
    ndarray of shape (n_snapshots(k, n_classes),)
        Probabilities in the order of `enumerate_snapshots`.

    Examples
    --------
    >>> from hocal.uncertainty.moment_tensors import from_tuples
    >>> from_tuples([[0.25, 0.25], [0.25, 0.25]]).tolist()
    [0.25, 0.5, 0.25]
    """
    array = check_array(tensor, "tensor")
    if array.ndim == 0 or len(set(array.shape)) != 1 or array.shape[0] < 2:
        rule = "must have axes of one length, the number of classes"
        raise InputError("tensor", rule, value=f"shape {array.shape}")
    check_simplex(array.reshape(-1), "tensor")
    ranks = _tuple_ranks(array.ndim, array.shape[0])
    return np.asarray(np.bincount(ranks.ravel(), weights=array.ravel()), dtype=np.float64)


def nearest_realisable(
    distribution: ArrayLike, k: int, *, n_classes: int, tolerance: float = 1e-7
) -> Realisation:
    """Find the mixture whose k-snapshots come nearest to a distribution over Y^(k).

    Not every distribution over snapshots comes from a mixture: two labels that never agree do not.
    The program min TV(distribution, sum_a w_a proj_k(a)) runs over atoms on a lattice; atoms that
    the dual asks for are added until none improves the distance by more than `tolerance`.

    Parameters
    ----------
    distribution : array of shape (n_snapshots(k, n_classes),)
        Probabilities in the order of `enumerate_snapshots`.
    k : int
        Number of labels.
    n_classes : int
        Number of label classes.
    tolerance : float, default=1e-7
        Distance below which an atom is not worth adding.

    Returns
    -------
    Realisation
        The distance is an upper bound that is exact up to the search for atoms: a value of 0 (to
        rounding) proves that the distribution is realisable.

    Examples
    --------
    Two labels that always differ: no mixture does better than fair coins, at distance one half.

    >>> from hocal.uncertainty.moment_tensors import nearest_realisable
    >>> round(nearest_realisable([0, 1, 0], 2, n_classes=2).distance, 6)
    0.5
    """
    target = _check_single(distribution, k, n_classes)
    check_number(tolerance, "tolerance", minimum=0, strict=True)
    snapshots = enumerate_snapshots(k, n_classes)
    lattice = atoms = _lattice_atoms(n_classes)
    distance, weights, dual = _nearest_mixture(target, atoms, snapshots)
    for _ in range(_ROUNDS):
        useful = _useful_atoms(atoms[weights > 0], snapshots, dual, tolerance)
        if distance <= tolerance or len(useful) == 0:
            break
        atoms = np.concatenate([atoms[weights > 0], useful, lattice])
        distance, weights, dual = _nearest_mixture(target, atoms, snapshots)
    used = weights > 0
    mass = weights[used] / weights[used].sum()
    return Realisation(distance, Mixtures(atoms[used], mass, [0, int(used.sum())], [0]))


def _lattice_atoms(n_classes: int) -> Array:
    """Return the finest lattice of label distributions within limits, the vertices at least."""
    finer = range(2, _MAX_RESOLUTION + 1)
    resolution = max((r for r in finer if n_snapshots(r, n_classes) <= _MAX_LATTICE), default=1)
    return enumerate_snapshots(resolution, n_classes) / resolution


def _snapshot_likelihood(atoms: Array, snapshots: IntArray) -> Array:
    """Return the probability of each snapshot under each atom, (n_atoms, n_snapshots)."""
    k = int(snapshots[0].sum())
    single = Mixtures.of_members(atoms[:, None], np.ones((len(atoms), 1)))
    return single.snapshot_distribution(k)


def _nearest_mixture(
    target: Array, atoms: Array, snapshots: IntArray
) -> tuple[float, Array, Array]:
    """Solve min sum(excess), which is TV, with likelihood.T @ weights + excess >= target."""
    likelihood = _snapshot_likelihood(atoms, snapshots)
    likelihood[likelihood < _NEGLIGIBLE] = 0
    n_atoms, size = likelihood.shape
    matrix = sparse.csr_array(np.hstack([-likelihood.T, -np.eye(size)]))
    total = sparse.csr_array(np.concatenate([np.ones(n_atoms), np.zeros(size)])[None])
    cost = np.concatenate([np.zeros(n_atoms), np.ones(size)])
    # where nearly equal atoms stall the simplex method, interior points go on
    for method in ("highs", "highs-ipm"):
        result = linprog(
            cost, A_ub=matrix, b_ub=-target, A_eq=total, b_eq=[1.0], bounds=(0, None), method=method
        )
        if result.status == 0:
            break
    else:
        raise RuntimeError(
            f"The linear program for the nearest mixture was not solved: {result.message}"
        )
    weights = np.asarray(result.x[:n_atoms])
    dual = -np.asarray(result.ineqlin.marginals)
    return max(float(result.fun), 0.0), np.maximum(weights, 0), dual


def _useful_atoms(atoms: Array, snapshots: IntArray, dual: Array, tolerance: float) -> Array:
    """Climb from the atoms in use to larger dual value, sum_s dual(s) P(s | p).

    P(s | p) has positive coefficients in p, and adding a constant to the dual changes the value by
    that constant, so a shifted dual makes the Baum-Eagon growth transform p_j <- p_j dV/dp_j an
    ascent.
    """
    k = int(snapshots[0].sum())
    shifted = dual - dual.min() + 1e-9
    p: Array = 0.999 * atoms + 0.001 / atoms.shape[1]
    for _ in range(_CLIMBS):
        # p_j dV/dp_j / k
        growth: Array = (_snapshot_likelihood(p, snapshots) * shifted) @ snapshots / k
        p = growth / growth.sum(axis=1, keepdims=True)
    gains = _snapshot_likelihood(p, snapshots) @ dual
    best = (_snapshot_likelihood(atoms, snapshots) @ dual).max()
    return np.unique(p[gains > best + tolerance].round(9), axis=0)


def _tuple_ranks(k: int, n_classes: int) -> IntArray:
    """Return the snapshot rank of every ordered k-tuple, as a tensor with k axes."""
    if n_classes**k > MAX_TUPLES:
        raise InputError(
            "k",
            f"must give at most {MAX_TUPLES} ordered tuples",
            value=f"{n_classes}**{k}",
            remedy="Work with snapshots instead.",
        )
    labels = np.indices((n_classes,) * k).reshape(k, -1)
    counts = np.stack([(labels == j).sum(axis=0) for j in range(n_classes)], axis=-1)
    return rank_snapshots(counts).reshape((n_classes,) * k)


def _check_distribution(distribution: ArrayLike, k: int, n_classes: int) -> Array:
    """Check probabilities over Y^(k) against its size."""
    size = n_snapshots(check_integer(k, "k", minimum=1), n_classes)
    array = check_array(distribution, "distribution")
    if array.ndim == 0 or array.shape[-1] != size:
        each = f"one for each {k}-snapshot of {n_classes} classes"
        rule = f"must have {shown_size(size)} entries on its last axis, {each}"
        raise InputError("distribution", rule, value=f"shape {array.shape}")
    return check_simplex(array, "distribution")


def _check_single(distribution: ArrayLike, k: int, n_classes: int) -> Array:
    array = _check_distribution(distribution, k, n_classes)
    if array.ndim != 1:
        raise InputError(
            "distribution",
            "must be a single distribution",
            value=f"shape {array.shape}",
            remedy="Pass one at a time.",
        )
    return array
