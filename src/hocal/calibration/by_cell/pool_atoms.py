"""The dictionary of a pooled mixture: label distributions that people may have about an item."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from hocal._base.typing import Array, IntArray

__all__ = ["N_LEADING", "Atoms", "PlacedAtoms", "make_atoms", "place_tails", "snapshot_likelihood"]

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
