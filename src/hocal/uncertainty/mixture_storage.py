"""How mixtures are kept: atoms of all mixtures in a row, points that all share kept once.

This is the one interface to the arrays behind `hocal.Mixtures`, for code that works on atoms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hocal._base.typing import Array, Index
from hocal._base.validation import CACHE_BYTES
from hocal.uncertainty.segments import segment_offsets, segment_sum

__all__ = ["AtomPairs", "MemberBlock", "MixtureStorage", "set_read_only"]

# Numbers gathered at once: a few megabytes, which bound the work space and stay near the core.
_BLOCK_NUMBERS = 1 << 19


class AtomPairs(NamedTuple):
    """The atoms of a list of mixtures, one after the other."""

    row: Index  #: (n_pairs,) the place in the list
    atom: Index  #: (n_pairs,) the atom
    starts: Index  #: (n_rows + 1,) where the atoms of each row begin and end


class MemberBlock(NamedTuple):
    """Some of the stored mixtures of an ensemble."""

    mixtures: slice  #: which ones
    weights: Array  #: (n, n_members)
    points: Array  #: (n, n_members, n_classes)


def set_read_only(owner: object, **arrays: NDArray[Any]) -> None:
    """Set fields of a frozen dataclass to read-only views."""
    for name, array in arrays.items():
        view = array.view()
        view.flags.writeable = False
        object.__setattr__(owner, name, view)


@dataclass(frozen=True, eq=False, repr=False)
class MixtureStorage:
    """Stored mixtures as arrays that are known to fit together; nothing is checked here.

    Parameters
    ----------
    support : array of shape (n_points, n_classes)
        Atom a lies at ``support[a % n_points]``. Mixtures on common points keep each point once:
        every mixture then goes through the support once or several times. Otherwise n_points is
        the number of atoms. Points in float32 are kept so.
    weights : array of shape (n_atoms,)
        Weights of the atoms, which sum to 1 within each mixture.
    offsets : array of shape (n_mixtures + 1,)
        Where the atoms of each mixture begin and end.
    """

    support: Array
    weights: Array
    offsets: Index

    @property
    def points(self) -> Array:
        """Label distributions of the atoms, (n_atoms, n_classes), in float64.

        They are made at each call where the support is shared or in float32.
        """
        points = self.support.astype(np.float64, copy=False)
        if self.shares_points:
            points = np.tile(points, (len(self.weights) // len(points), 1))
        points.flags.writeable = False
        return points

    @property
    def n_classes(self) -> int:
        """Number of label classes."""
        return int(self.support.shape[1])

    @property
    def n_mixtures(self) -> int:
        """Number of stored mixtures."""
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Index:
        """Number of atoms of each stored mixture."""
        return np.diff(self.offsets)

    @property
    def shares_points(self) -> bool:
        """Whether several atoms lie at each point of the support."""
        return len(self.support) < len(self.weights)

    @property
    def n_members(self) -> int:
        """Number of atoms of a mixture at points of its own, if it is the same for all; else 0."""
        sizes = self.sizes
        alike = len(sizes) > 0 and sizes.min() == sizes.max()
        return int(sizes[0]) if alike and not self.shares_points else 0

    def points_at(self, atoms: Index | slice) -> Array:
        """Return ``points[atoms]`` without putting all of them together."""
        if not self.shares_points:
            return self.support[atoms].astype(np.float64, copy=False)
        if isinstance(atoms, slice):
            atoms = np.arange(*atoms.indices(len(self.weights)))
        return np.asarray(self.support[atoms % len(self.support)])

    def pairs(self, mixtures: NDArray[Any]) -> AtomPairs:
        """List the atoms of several stored mixtures."""
        sizes = self.sizes[mixtures]
        starts = segment_offsets(sizes)
        row = np.repeat(np.arange(len(mixtures)), sizes)
        shift = self.offsets[mixtures] - starts[:-1]
        return AtomPairs(row, np.arange(len(row)) + shift[row], starts)

    def support_of(self, mixtures: NDArray[Any]) -> Array:
        """Return a support for several stored mixtures in the order of the list."""
        all_in_order = np.array_equal(mixtures, np.arange(self.n_mixtures))
        if self.shares_points or all_in_order:
            return self.support
        return self.support[self.pairs(mixtures).atom]

    def blocks(
        self, mixtures: NDArray[Any], *, numbers_per_atom: int | None = None
    ) -> Iterator[slice]:
        """Cut a list of stored mixtures into blocks of a few megabytes of work.

        An atom counts with its classes, or with `numbers_per_atom`.
        """
        largest = int(self.sizes.max(initial=1))
        per_atom = self.n_classes if numbers_per_atom is None else numbers_per_atom
        rows = max(_BLOCK_NUMBERS // (per_atom * max(largest, 1)), 1)
        return (slice(start, start + rows) for start in range(0, len(mixtures), rows))

    def member_blocks(self) -> Iterator[MemberBlock]:
        """Cut the stored mixtures of an ensemble, with `n_members` each, into blocks."""
        shape = (self.n_mixtures, self.n_members)
        points = self.support.reshape(*shape, self.n_classes)
        weights = self.weights.reshape(shape)
        rows = max(CACHE_BYTES // points[0].nbytes, 1)
        for start in range(0, len(points), rows):
            block = slice(start, start + rows)
            yield MemberBlock(block, weights[block], points[block])

    def atoms_at_shares(self, mixtures: NDArray[Any], shares: Array) -> Index:
        """Return the atom of each mixture in a list at which its weights sum to more than a share.

        Cumulated weights of all mixtures would be as large as these, and a list may name few.
        """
        found = np.empty(len(mixtures), dtype=np.intp)
        used, own = np.unique(mixtures, return_inverse=True)
        order = np.argsort(own, kind="stable")
        bounds = np.searchsorted(own[order], np.arange(len(used) + 1))
        for block in self.blocks(used, numbers_per_atom=1):
            some = used[block]
            atom, starts = self.pairs(some)[1:]
            mass = np.append(0.0, np.cumsum(self.weights[atom]))
            wanted = order[bounds[block.start] : bounds[block.start + len(some)]]
            row = own[wanted] - block.start
            low, high = starts[row], starts[row + 1]
            places = mass[low] + shares[wanted] * (mass[high] - mass[low])
            reached = np.searchsorted(mass, places, side="right") - 1
            found[wanted] = atom[np.clip(reached, low, high - 1)]
        return found

    def average(self, values: Array) -> Array:
        """Return the weighted mean over each stored mixture of values at atoms, (n_atoms, ...)."""
        n_members = self.n_members
        if n_members:  # a matrix product instead of a scan over segments
            stacked = values.reshape(-1, n_members, *values.shape[1:])
            weights = self.weights.reshape(-1, n_members)
            return np.asarray(np.einsum("ma,ma...->m...", weights, stacked))
        weights = self.weights.reshape(-1, *(1,) * (values.ndim - 1))
        return segment_sum(weights * values, self.offsets)

    def average_over_support(self, values: Array) -> Array:
        """Return the same for values at the points of the support, (n_points, ...)."""
        if not self.shares_points:
            return self.average(values)
        rounds = self.weights.reshape(-1, len(values))  # one row per passage through the support
        if (self.sizes == len(values)).all():  # the rows are the mixtures: nothing to sum
            return np.tensordot(rounds, values, axes=1)
        weights = segment_sum(rounds, self.offsets // len(values))  # (n_mixtures, n_points)
        return np.tensordot(weights, values, axes=1)
