"""Mixtures: distributions over label distributions, one per item, each distinct one stored once."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.errors import InputError
from hocal._base.typing import Array, Counts, Index, IntArray
from hocal._base.validation import (
    CACHE_BYTES,
    check_cells,
    check_counts,
    check_random_state,
    check_simplex,
    check_snapshot_size,
    check_weights,
    check_whole,
)
from hocal.uncertainty.distinct_counts import as_dense
from hocal.uncertainty.likelihood import (
    expect_monomials,
    log_likelihoods,
    pair_with_counts,
    posterior_weights,
)
from hocal.uncertainty.mixture_checks import (
    apply_to_points,
    check_fit,
    own_copy,
    refuse_impossible,
)
from hocal.uncertainty.mixture_constructors import MixtureConstructors
from hocal.uncertainty.mixture_storage import set_read_only
from hocal.uncertainty.segments import segment_offsets
from hocal.uncertainty.snapshots import enumerate_snapshots, log_multiplicity

__all__ = ["Mixtures", "check_mixtures"]

MAX_ATOMS = 20_000_000  # of a projection: with ten classes they take 1.6 GB


@dataclass(frozen=True, eq=False, repr=False)
class Mixtures(MixtureConstructors):
    """A batch of mixtures over label distributions.

    Item i has mixture ``index[i]``, whose atoms are the slice ``offsets[m]:offsets[m + 1]`` of
    `points` and `weights`. Items of one cell share a mixture, so ten million items in a hundred
    cells cost a hundred mixtures. A mixture without atoms belongs to an empty cell: everything
    computed from it is NaN. The arrays are read-only copies; an input array that is read-only
    already is used without copying. Mixtures that hocal makes on one common set of points store
    each point once, and compute with it once.

    Parameters
    ----------
    points : array of shape (n_atoms, n_classes)
        Label distributions.
    weights : array of shape (n_atoms,)
        Their weights, which sum to 1 within each mixture.
    offsets : array of shape (n_mixtures + 1,)
        Where each mixture begins and ends.
    index : array of shape (n_items,)
        The mixture of each item.

    Examples
    --------
    Two worlds with the same mean: every scan is ambiguous, or half are clear and half are clearly
    not.

    >>> from hocal import Mixtures
    >>> points = [[0.5, 0.5], [1, 0], [0, 1]]
    >>> mixtures = Mixtures(points, [1, 0.5, 0.5], offsets=[0, 1, 3], index=[0, 1])
    >>> mixtures.mean().tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """

    def __init__(
        self, points: ArrayLike, weights: ArrayLike, offsets: ArrayLike, index: ArrayLike
    ) -> None:
        atoms = check_simplex(points, "points", ndim=2)
        mass = check_weights(weights)
        bounds = check_whole(offsets, "offsets").copy()
        check_fit(atoms, mass, bounds)
        n_items = np.size(np.asarray(index))
        items = check_cells(index, n_items, n_cells=len(bounds) - 1, name="index")
        set_read_only(
            self,
            support=own_copy(atoms, points),
            weights=own_copy(mass, weights),
            offsets=bounds.astype(np.intp, copy=False),
            index=own_copy(items, index),
        )

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, items: Any) -> Mixtures:
        """Return the mixtures of some items: an integer, a slice, integers or a mask."""
        chosen = np.asarray(self.index[items])
        if chosen.ndim > 1:
            raise IndexError(
                "Mixtures have one axis, the items; "
                f"the index {reprlib.repr(items)} asks for {chosen.ndim}."
            )
        return Mixtures.trusted(self.support, self.weights, self.offsets, chosen.reshape(-1))

    def __repr__(self) -> str:
        return (
            f"Mixtures({len(self)} items, {self.n_mixtures} mixtures, {len(self.weights)} atoms, "
            f"{self.n_classes} classes)"
        )

    def stored(self) -> Mixtures:
        """Return the same mixtures with one item for each that is stored."""
        every = np.arange(self.n_mixtures)
        return Mixtures.trusted(self.support, self.weights, self.offsets, every)

    def mean(self) -> Array:
        """Return each item's mean, the first-order prediction, (n_items, n_classes)."""
        return self.average_over_support(self.support)[self.index]

    def expect(self, function: Callable[[Array], ArrayLike]) -> Array:
        """Return the expectation of a function of the label distribution, E[f(p)], for each item.

        Parameters
        ----------
        function : callable
            Maps (n, n_classes) label distributions to (n, ...) numbers.

        Returns
        -------
        ndarray of shape (n_items, ...)
            Expectations; NaN for an empty mixture.
        """
        rows = max(CACHE_BYTES // (8 * self.n_classes), 1)  # of float64
        results = []
        for start in range(0, len(self.support), rows):
            block = self.support[start : start + rows].astype(np.float64, copy=False)
            results.append(apply_to_points(function, block))
        return self.average_over_support(np.concatenate(results))[self.index]

    def moments(self, order: int) -> Array:
        """Return the moments E[prod_j p_j^a_j] with exponents a in Y^(order), in enumeration order.

        Parameters
        ----------
        order : int
            Sum of the exponents.

        Returns
        -------
        ndarray of shape (n_items, n_snapshots(order, n_classes))
            Moments; column i has the exponents ``enumerate_snapshots(order, n_classes)[i]``.
        """
        exponents = enumerate_snapshots(
            check_snapshot_size(order, "order", listed=True), self.n_classes
        )
        return expect_monomials(self, exponents, np.zeros(len(exponents)))[self.index]

    def snapshot_distribution(self, k: int) -> Array:
        """Return the probability of each k-snapshot, k!/prod s_j! sum_a w_a prod_j p_aj^s_j.

        Parameters
        ----------
        k : int
            Number of labels.

        Returns
        -------
        ndarray of shape (n_items, n_snapshots(k, n_classes))
            Probabilities in the order of `enumerate_snapshots`.
        """
        return self._stored_snapshot_distribution(k)[1][self.index]

    def project(self, k: int) -> Mixtures:
        """Return proj_k, the mixture of the k-snapshots s / k that each mixture generates.

        Parameters
        ----------
        k : int
            Number of labels; |Y^(k)| must be small enough to list.

        Returns
        -------
        Mixtures
            As many mixtures as stored here, on the lattice of k-snapshots.
        """
        snapshots, probabilities = self._stored_snapshot_distribution(k)
        probabilities[self.sizes == 0] = 0  # an empty mixture stays empty
        mixture, atom = np.nonzero(probabilities)
        sizes = np.bincount(mixture, minlength=self.n_mixtures)
        points = (snapshots / k)[atom]
        weights = probabilities[mixture, atom]
        return Mixtures.trusted(points, weights, segment_offsets(sizes), self.index)

    def sample(self, *, random_state: Any = None) -> Array:
        """Draw a label distribution from each item's mixture, (n_items, n_classes)."""
        return self.points_at(self._draw_atoms(check_random_state(random_state)))

    def _draw_atoms(self, generator: np.random.Generator) -> Index:
        """Draw an atom of each item's mixture."""
        empty = self.sizes[self.index] == 0
        if empty.any():
            raise InputError(
                "mixtures",
                "must not be empty to draw from",
                value="an item whose mixture has no atoms",
                where=f"in row {int(np.argmax(empty))}",
            )
        return self.atoms_at_shares(self.index, generator.random(len(self)))

    def draw(self, k: Any, *, random_state: Any = None) -> IntArray:
        """Draw a label distribution from each item's mixture, and k labels from it.

        Parameters
        ----------
        k : int or array of shape (n_items,)
            Number of labels, the same for all or one for each item.
        random_state : int, Generator or None
            Seed or source of randomness.

        Returns
        -------
        ndarray of shape (n_items, n_classes)
            Label counts.
        """
        totals = check_whole(k, "k")
        if totals.shape not in ((), (len(self),)):
            rule = f"must be one number, or one for each of {len(self)} items"
            raise InputError("k", rule, value=f"shape {totals.shape}")
        each = np.broadcast_to(totals, len(self))
        counts = np.empty((len(self), self.n_classes), dtype=np.int64)
        for block, drawn in self.draw_in_blocks(each, check_random_state(random_state)):
            counts[block] = drawn
        return counts

    def draw_in_blocks(
        self, each: IntArray, generator: np.random.Generator
    ) -> Iterator[tuple[slice, IntArray]]:
        """Draw as `draw` does, some items after the other: all counts may be large."""
        atoms = self._draw_atoms(generator)
        rows = max(CACHE_BYTES // (8 * self.n_classes), 1)  # of float64
        for start in range(0, len(self), rows):
            block = slice(start, start + rows)
            p = self.points_at(atoms[block])
            yield block, generator.multinomial(each[block], p / p.sum(axis=1, keepdims=True))

    def log_likelihood(self, counts: Any) -> Array:
        """Return the log-probability of each item's own count vector under its own mixture.

        Parameters
        ----------
        counts : array or sparse matrix of shape (n_items, n_classes)
            Label counts; totals may differ.

        Returns
        -------
        ndarray of shape (n_items,)
            Natural logarithms, multinomial coefficient included; -inf for what cannot happen.
        """
        checked = self._check_own_counts(counts, minimum_total=1)
        pairs = pair_with_counts(self.index, checked)
        logs = log_likelihoods(self, pairs) + log_multiplicity(pairs.counts)
        return logs[pairs.inverse]

    def condition(self, counts: Any) -> Mixtures:
        """Return the posterior mixture of each item, given the item's own labels.

        The atoms stay; their weights become w_a prod_j p_aj^s_j, divided by their sum. It is right
        when the mixture was made without these labels: otherwise they count twice.

        Parameters
        ----------
        counts : array or sparse matrix of shape (n_items, n_classes)
            The item's own labels. A row of zeros means none and leaves the mixture as it is.

        Returns
        -------
        Mixtures
            One mixture for each distinct pair of a mixture and counts. It stores the weights of all
            their atoms: condition very many items in batches.

        Raises
        ------
        InputError
            When no atom allows the labels of an item.

        Examples
        --------
        An item is clear or torn, equally likely; two labels that agree make it likely to be clear.

        >>> from hocal import Mixtures
        >>> mixtures = Mixtures.from_ensemble([[[1.0, 0.0], [0.5, 0.5]]])
        >>> mixtures.condition([[2, 0]]).weights.round(3).tolist()
        [0.8, 0.2]
        """
        checked = self._check_own_counts(counts, minimum_total=0)
        pairs = pair_with_counts(self.index, checked)
        posterior = posterior_weights(self, pairs)
        impossible = np.isneginf(posterior.log_likelihood)
        if impossible.any():
            item = int(np.argmax(impossible[pairs.inverse]))
            refuse_impossible(item, as_dense(checked[[item]])[0])
        support = self.support_of(pairs.mixture)
        offsets = segment_offsets(self.sizes[pairs.mixture])
        return Mixtures.trusted(support, posterior.weights, offsets, pairs.inverse)

    def _check_own_counts(self, counts: Any, *, minimum_total: int) -> Counts:
        """Return one row of counts per item."""
        checked = check_counts(counts, n_classes=self.n_classes, minimum_total=minimum_total)
        n_rows = checked.shape[0]
        if n_rows != len(self):
            rule = f"must describe the {len(self)} items of the mixtures"
            raise InputError("counts", rule, value=f"{n_rows} rows")
        return checked

    def _stored_snapshot_distribution(self, k: int) -> tuple[IntArray, Array]:
        """Return Y^(k) and its probabilities under each stored mixture."""
        snapshots = enumerate_snapshots(check_snapshot_size(k), self.n_classes, max_size=MAX_ATOMS)
        if len(snapshots) * self.n_mixtures > MAX_ATOMS:
            raise InputError(
                "k",
                f"must give at most {MAX_ATOMS} atoms in all",
                value=f"{len(snapshots)} snapshots for each of {self.n_mixtures} mixtures",
                remedy="Use a smaller k or project fewer mixtures at a time.",
            )
        return snapshots, expect_monomials(self, snapshots, log_multiplicity(snapshots))


def check_mixtures(mixtures: Any, name: str = "mixtures") -> Mixtures:
    """Return mixtures; refuse anything else."""
    if isinstance(mixtures, Mixtures):
        return mixtures
    raise InputError(
        name,
        "must be Mixtures",
        value=type(mixtures).__name__,
        remedy="Build them with Mixtures.from_ensemble, from_points or another constructor.",
    )
