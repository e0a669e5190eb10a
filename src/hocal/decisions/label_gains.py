"""What one more label of an item is worth, and several: exact expectations over what they may be.

An item with posterior weights q over label distributions p_a gets the labels s, t of them, with
probability P(s) = sum_a q_a Mult(s; t, p_a), whereupon the posterior is proportional to
q_a Mult(s; t, p_a). For a function f of p the expected squared error of the posterior mean falls by

    gain(t) = sum_s P(s) |E[f | s]|^2 - |E f|^2,

with f = p for the label distribution and f = H(p) for the aleatoric uncertainty; for one label and
f = p it is sum_y m_y |E[p | y] - m|^2. For the majority, f has a 1 at the most likely class of p,
and what rises is the probability that the class we would report is right,
sum_s P(s) max_j E[f_j | s] - max_j E f_j.

Snapshots s are listed as long as there are few. Beyond, the error falls like that of a Dirichlet
distribution, V c / (c + t), which continues the last two exact values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import special

from hocal._base.errors import InputError
from hocal._base.typing import Array, Index
from hocal.uncertainty.likelihood import CountPairs, posterior_weights
from hocal.uncertainty.logarithms import finite_log
from hocal.uncertainty.mixtures import Mixtures
from hocal.uncertainty.snapshots import enumerate_snapshots, log_multiplicity, n_snapshots

__all__ = ["OBJECTIVES", "LabelGains", "exact_labels", "expected_gains"]

OBJECTIVES = ("distribution", "aleatoric", "majority")
# Products of states, atoms, snapshots and values that are computed exactly: some seconds.
MAX_PRODUCTS = 2_000_000_000
# An exponential costs as much as so many products, and each own atom of a state needs one for
# every snapshot.
EXPONENTIAL = 10
MAX_EXACT = 12  # labels beyond which the smooth continuation is as good
# One label never changes a majority of two, so at least two are looked ahead, unless that takes
# more than this many products of atoms and snapshots for a single state: a gigabyte.
MAJORITY_AHEAD = 2
MAX_SINGLE = 100_000_000
BLOCK_PRODUCTS = 4_000_000  # of a block of states: 32 MB
# Share of what could be reached below which a further gain is rounding: both are sums of products.
ROUNDING = 1e-12


class LabelGains(NamedTuple):
    """What is unknown about items, and what labels are expected to change."""

    uncertainty: Array  #: (n_states,) expected error of what would be reported now
    gains: Array  #: (n_states, n_labels + 1), its expected fall by 0, 1, 2, ... more labels


class _Block(NamedTuple):
    """Some states with their atoms, in rows of equal length."""

    rows: slice
    weights: Array  #: (n_states, n_atoms), 0 where a state has fewer atoms
    points: Array  #: (n_states, n_atoms, n_classes), or (1, n_atoms, n_classes) for all alike


def exact_labels(mixtures: Mixtures, n_states: int, objective: str, n_labels: int) -> int:
    """Return how many labels ahead gains are computed exactly, at least one.

    Parameters
    ----------
    mixtures : Mixtures
        Priors.
    n_states : int
        Distinct pairs of a prior and labels.
    objective : str
        One of `OBJECTIVES`.
    n_labels : int
        Labels ahead that are of interest.
    """
    n_atoms = int(mixtures.sizes.max())
    most = min(n_labels, MAX_EXACT)
    sizes = [n_snapshots(t, mixtures.n_classes) * n_atoms for t in range(1, most + 1)]
    n_values = 1 if objective == "aleatoric" else mixtures.n_classes
    work = (n_values + EXPONENTIAL) * n_states
    fitting = sum(size * work <= MAX_PRODUCTS for size in sizes)
    least = 1
    if objective == "majority":
        least = max(sum(size <= MAX_SINGLE for size in sizes[:MAJORITY_AHEAD]), 1)
    return max(fitting, least)


def expected_gains(
    mixtures: Mixtures, states: CountPairs, objective: str, n_labels: int, n_exact: int
) -> LabelGains:
    """Return what labels are expected to bring for each state, a prior and the labels so far.

    Parameters
    ----------
    mixtures : Mixtures
        Priors.
    states : CountPairs
        Which prior and which labels.
    objective : str
        One of `OBJECTIVES`.
    n_labels : int
        Most labels ahead.
    n_exact : int
        How many of them to compute exactly, as `exact_labels` says.
    """
    n_states = len(states.mixture)
    uncertainty = np.empty(n_states)
    reachable = np.empty(n_states)
    exact = np.zeros((n_states, n_exact + 1))
    tables = [_list_snapshots(t, mixtures.n_classes) for t in range(1, n_exact + 1)]
    size = _numbers(mixtures, objective, len(tables[-1][0]))
    known = list(_chances(mixtures.support[None], tables)) if _all_on(mixtures) else None
    for block in _blocks(mixtures, states, max(BLOCK_PRODUCTS // size, 1)):
        f = _what_counts(block.points, objective)
        certain = np.ones((1, block.points.shape[1], 1))  # of no labels
        now = _after(block.weights, f, certain, objective)
        reachable[block.rows] = _perfect(block.weights, f, objective)
        uncertainty[block.rows] = reachable[block.rows] - now
        for t, chances in enumerate(known or _chances(block.points, tables), start=1):
            exact[block.rows, t] = _after(block.weights, f, chances, objective) - now
    uncertainty = np.maximum(uncertainty, 0.0)
    exact = np.minimum(_rising(exact, ROUNDING * reachable), uncertainty[:, None])
    return LabelGains(uncertainty, _continue(exact, uncertainty, n_labels))


def _rising(gains: Array, least: Array) -> Array:
    """Return gains that never fall, and rise by what is more than rounding only."""
    steps = np.diff(np.maximum.accumulate(gains, axis=1), axis=1, prepend=0.0)
    steps[steps < least[:, None]] = 0.0
    return np.asarray(np.cumsum(steps, axis=1))


def _numbers(mixtures: Mixtures, objective: str, n_listed: int) -> int:
    """Return how many numbers the largest array has for one state."""
    n_atoms = int(mixtures.sizes.max())
    n_values = 1 if objective == "aleatoric" else mixtures.n_classes
    if objective != "majority" and _few_atoms(n_atoms, n_values, n_listed):
        return n_atoms * max(n_values, n_listed)
    return n_listed * max(n_atoms, n_values)


def _few_atoms(n_atoms: int, n_values: int, n_listed: int) -> bool:
    """Tell whether products of atoms are fewer than those of values and snapshots."""
    return n_atoms * (n_values + n_listed) < n_values * n_listed


def _list_snapshots(t: int, n_classes: int) -> tuple[Array, Array]:
    """Return all t-snapshots, and the logarithms of their numbers of orders."""
    snapshots = enumerate_snapshots(t, n_classes)
    return snapshots.astype(np.float64), log_multiplicity(snapshots)


def _chances(points: Array, tables: list[tuple[Array, Array]]) -> Iterator[Array]:
    """Return the probability of each snapshot given each atom, (..., n_atoms, n_snapshots)."""
    logs = finite_log(points)
    for snapshots, factor in tables:
        yield np.exp(logs @ snapshots.T + factor)


def _all_on(mixtures: Mixtures) -> bool:
    """Tell whether every mixture has all points of the support once."""
    return bool((mixtures.sizes == len(mixtures.support)).all())


def _blocks(mixtures: Mixtures, states: CountPairs, n_rows: int) -> Iterator[_Block]:
    """Go through the states, some of them at a time."""
    common = _all_on(mixtures)
    for start in range(0, len(states.mixture), n_rows):
        rows = slice(start, start + n_rows)
        own = CountPairs(states.mixture[rows], states.counts[rows], states.inverse[:0])
        found = posterior_weights(mixtures, own)
        if np.isneginf(found.log_likelihood).any():
            raise InputError(
                "counts",
                "must be possible under the mixtures",
                value="labels that all atoms of an item exclude",
                remedy="Give every class some probability.",
            )
        if common:
            points = mixtures.support.astype(np.float64)[None]
            yield _Block(rows, found.weights.reshape(-1, points.shape[1]), points)
        else:
            yield _padded(mixtures, rows, own.mixture, found.weights)


def _padded(mixtures: Mixtures, rows: slice, chosen: Index, weights: Array) -> _Block:
    """Return rows of equal length: a state with fewer atoms gets some of weight 0."""
    pairs = mixtures.pairs(chosen)
    sizes = np.diff(pairs.starts)
    place = np.arange(len(pairs.row)) - pairs.starts[pairs.row]
    shape = (len(sizes), int(sizes.max()))
    full = np.zeros(shape)
    full[pairs.row, place] = weights
    points = np.full((*shape, mixtures.n_classes), 1 / mixtures.n_classes)
    points[pairs.row, place] = mixtures.points_at(pairs.atom)
    return _Block(rows, full, points)


def _what_counts(points: Array, objective: str) -> Array:
    """Return f at all points, (n_states or 1, n_atoms, n_values)."""
    if objective == "distribution":
        return points
    if objective == "aleatoric":
        return np.asarray(special.entr(points).sum(axis=2, keepdims=True))
    leading = points == points.max(axis=2, keepdims=True)
    return np.asarray(leading / leading.sum(axis=2, keepdims=True))  # those that tie share it


def _perfect(weights: Array, f: Array, objective: str) -> Array:
    """Return what would be reached if p were known."""
    if objective == "majority":
        return np.ones(len(weights))
    squares = np.square(f).sum(axis=2)
    return np.asarray((weights * squares).sum(axis=1))


def _after(weights: Array, f: Array, chances: Array, objective: str) -> Array:
    """Return what is reached on average over labels with these chances given each atom."""
    weighted = (weights[:, :, None] * f).swapaxes(1, 2)  # (n_states, n_values, n_atoms)
    if objective == "majority":
        joint = weighted @ chances  # E[f; s], (n_states, n_values, n_snapshots)
        return np.asarray(joint.max(axis=1).sum(axis=1))
    squares = _squares(weighted, chances)
    probability = (weights[:, None] @ chances)[:, 0]
    reached = np.divide(squares, probability, out=np.zeros_like(squares), where=probability > 0)
    return np.asarray(reached.sum(axis=1))


def _squares(weighted: Array, chances: Array) -> Array:
    """Return ||E[f; s]||^2 of each snapshot, by the products of atoms where these are few."""
    n_values, n_atoms = weighted.shape[1:]
    if not _few_atoms(n_atoms, n_values, chances.shape[2]):
        return np.asarray(np.square(weighted @ chances).sum(axis=1))
    products = weighted.swapaxes(1, 2) @ weighted  # (n_states, n_atoms, n_atoms)
    return np.asarray(((products @ chances) * chances).sum(axis=1))


def _continue(exact: Array, uncertainty: Array, n_labels: int) -> Array:
    """Continue gains beyond the exact ones, by V c / (c + t) through the last two of their hull."""
    n_exact = exact.shape[1] - 1
    if n_labels <= n_exact:
        return exact[:, : n_labels + 1]
    rises = exact[:, -1:] - exact[:, :-1]
    slopes = rises / np.arange(n_exact, 0, -1)
    # The last segment of the least concave majorant has the smallest slope that ends here.
    start = n_exact - 1 - np.argmin(slopes[:, ::-1], axis=1)
    before = uncertainty - np.take_along_axis(exact, start[:, None], axis=1)[:, 0]
    after = uncertainty - exact[:, -1]
    fall = before - after
    length = n_exact - start
    scale = np.divide(length * after, fall, out=np.zeros_like(fall), where=fall > 0)
    beyond = np.arange(n_exact + 1, n_labels + 1) - start[:, None]
    total = scale[:, None] + beyond
    falling = (fall > 0)[:, None]
    continued = before[:, None] * scale[:, None] / total
    left = np.where(falling, continued, after[:, None])
    return np.concatenate([exact, uncertainty[:, None] - left], axis=1)
