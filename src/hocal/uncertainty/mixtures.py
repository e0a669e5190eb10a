"""Mixtures: distributions over label distributions, one for each item, stored once for each distinct one."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from hocal._base.typing import Array, Index, IntArray
from hocal._base.validation import (
    BLOCK,
    SUM_TOLERANCE,
    check_array,
    check_cells,
    check_counts,
    check_dense_counts,
    check_integer,
    check_random_state,
    check_simplex,
    check_weights,
    check_whole,
    label_totals,
)
from hocal.uncertainty.snapshots import compress, enumerate_snapshots, log_multiplicity

__all__ = ["Mixtures", "check_mixtures"]

_LOG_ZERO = -1e30  # stands for log 0, so that 0 * log 0 is 0; sums below half of it are -inf
MAX_ATOMS = 20_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Mixtures:
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
    >>> mixtures = Mixtures([[0.5, 0.5], [1, 0], [0, 1]], [1, 0.5, 0.5], offsets=[0, 1, 3], index=[0, 1])
    >>> mixtures.mean().tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """

    # (n_points, n_classes): atom a lies at _support[a % n_points], often with n_points = n_atoms
    _support: Array
    weights: Array
    offsets: Index
    index: Index

    def __init__(
        self, points: ArrayLike, weights: ArrayLike, offsets: ArrayLike, index: ArrayLike
    ) -> None:
        atoms = check_simplex(points, "points", ndim=2)
        mass = check_weights(weights)
        bounds = check_whole(offsets, "offsets").copy()
        if mass.shape != atoms.shape[:1]:
            raise ValueError(
                f"`weights` must hold one weight for each of {len(atoms)} points, got shape {mass.shape}."
            )
        ends_fit = (
            bounds.ndim == 1 and bounds.size > 1 and bounds[0] == 0 and bounds[-1] == len(atoms)
        )
        if not ends_fit or (np.diff(bounds) < 0).any():
            got = reprlib.repr(bounds.tolist())
            raise ValueError(
                f"`offsets` must rise from 0 to the number of points, {len(atoms)}, got {got}."
            )
        sums = _segment_sum(mass, bounds)
        if (np.abs(sums - 1) > SUM_TOLERANCE).any():
            worst = int(np.nanargmax(np.abs(sums - 1)))
            raise ValueError(
                f"`weights` must sum to 1 within each mixture, got {sums[worst]:.6g} in mixture {worst}."
            )
        items = check_cells(
            index, np.size(np.asarray(index)), n_cells=len(bounds) - 1, name="index"
        )
        self._set(_own(atoms, points), _own(mass, weights), bounds, _own(items, index))

    def _set(
        self, support: Array, weights: Array, offsets: NDArray[Any], index: NDArray[Any]
    ) -> None:
        bounds = offsets.astype(np.intp, copy=False)
        for name, array in {
            "_support": support,
            "weights": weights,
            "offsets": bounds,
            "index": index,
        }.items():
            view = array.view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)

    @classmethod
    def _trusted(
        cls, support: Array, weights: Array, offsets: NDArray[Any], index: NDArray[Any]
    ) -> Mixtures:
        """Build from arrays that are known to fit together; atoms repeat the points of `support` in turn."""
        mixtures = object.__new__(cls)
        mixtures._set(support, weights, offsets, index)
        return mixtures

    @classmethod
    def from_ensemble(cls, probabilities: ArrayLike) -> Mixtures:
        """Make each item's members equally likely, for ensembles, dropout or posterior samples.

        Parameters
        ----------
        probabilities : array of shape (n_items, n_members, n_classes)
            Predictions of the members. Those in float32 are kept so, and `decompose` computes with
            them as they are, with an error near 1e-6; all else is computed in float64.

        Returns
        -------
        Mixtures
            One mixture an item.
        """
        p = check_simplex(probabilities, ndim=3, keep_single=True)
        n_items, n_members, n_classes = p.shape
        weights = np.broadcast_to(np.float64(1 / n_members), n_items * n_members)  # takes no memory
        return cls._regular(_own(p, probabilities).reshape(-1, n_classes), weights, n_items)

    @classmethod
    def from_points(cls, probabilities: ArrayLike) -> Mixtures:
        """Put all mass on the prediction itself: all uncertainty is aleatoric (the naive decomposition).

        Parameters
        ----------
        probabilities : array of shape (n_items, n_classes)
            Predictions.

        Returns
        -------
        Mixtures
            One point mass an item.
        """
        p = check_simplex(probabilities, ndim=2)
        return cls._regular(_own(p, probabilities), np.ones(len(p)), len(p))

    @classmethod
    def from_vertices(cls, probabilities: ArrayLike) -> Mixtures:
        """Put the predicted mass on the vertices: all uncertainty is epistemic (the 1-snapshot predictor).

        Parameters
        ----------
        probabilities : array of shape (n_items, n_classes)
            Predictions.

        Returns
        -------
        Mixtures
            One mixture of certain labels an item.
        """
        p = check_simplex(probabilities, ndim=2)
        return cls._regular(np.eye(p.shape[1]), _own(p, probabilities).reshape(-1), len(p))

    @classmethod
    def from_dirichlet(cls, alpha: ArrayLike, *, n_atoms: int = 256) -> Mixtures:
        """Approximate Dirichlet distributions by equally likely, evenly spread (quasi-random) atoms.

        Parameters
        ----------
        alpha : array of shape (n_items, n_classes)
            Positive concentrations, as an evidential network predicts them.
        n_atoms : int, default=256
            Atoms an item; the error of an expectation falls nearly as 1 / n_atoms.

        Returns
        -------
        Mixtures
            One mixture an item.
        """
        concentrations = check_array(alpha, "alpha", ndim=2)
        wrong = ~((concentrations > 0) & (concentrations < np.inf))
        if concentrations.shape[1] < 2 or wrong.any():
            row, column = np.argwhere(wrong)[0] if wrong.any() else (0, 0)
            raise ValueError(
                "`alpha` must be finite and positive with at least two classes, got "
                f"{concentrations[row, column]:.6g} in row {row} of shape {concentrations.shape}."
            )
        n_atoms = check_integer(n_atoms, "n_atoms", minimum=1)
        return cls._regular(*_dirichlet_atoms(concentrations, n_atoms), len(concentrations))

    @classmethod
    def from_snapshots(
        cls, counts: Any, cells: ArrayLike | None = None, *, n_cells: int | None = None
    ) -> Mixtures:
        """Take the empirical mixture of the snapshots in each cell (the paper's post-hoc predictor).

        Parameters
        ----------
        counts : array or sparse matrix of shape (n_items, n_classes)
            Label counts; each item contributes the point counts / total.
        cells : array of shape (n_items,), optional
            Cell of each item; one cell for all by default.
        n_cells : int, optional
            Number of cells, when the last ones may be empty.

        Returns
        -------
        Mixtures
            One mixture a cell; item i has the mixture of its cell.
        """
        checked = check_counts(counts)
        n_items = checked.shape[0]
        where = check_cells(
            np.zeros(n_items, np.intp) if cells is None else cells, n_items, n_cells=n_cells
        )
        packed = compress(checked)
        n_distinct = packed.unique.shape[0]
        cell, snapshot, multiplicity = _count_pairs(where, packed.inverse, n_distinct)
        sizes = np.bincount(cell, minlength=n_cells or 1)
        per_cell = np.bincount(where, minlength=len(sizes))
        rows = check_dense_counts(packed.unique)
        points = (rows / label_totals(packed.unique)[:, None])[snapshot]
        return cls._trusted(
            points, multiplicity / per_cell[cell], np.concatenate([[0], np.cumsum(sizes)]), where
        )

    @classmethod
    def _regular(cls, support: Array, weights: Array, n_items: int) -> Mixtures:
        """Build one mixture an item, all with the same number of atoms: at points of their own, or all at the same."""
        return cls._trusted(
            support, weights, np.arange(n_items + 1) * (len(weights) // n_items), np.arange(n_items)
        )

    @property
    def points(self) -> Array:
        """Label distributions of the atoms, (n_atoms, n_classes), made at each call where shared or float32."""
        points = self._support.astype(np.float64, copy=False)
        if self._shared:
            points = np.tile(points, (len(self.weights) // len(points), 1))
        points.flags.writeable = False
        return points

    @property
    def _shared(self) -> bool:
        return len(self._support) < len(self.weights)

    @property
    def n_classes(self) -> int:
        """Number of label classes."""
        return int(self._support.shape[1])

    @property
    def n_mixtures(self) -> int:
        """Number of stored mixtures."""
        return len(self.offsets) - 1

    @property
    def _n_members(self) -> int:
        """Number of atoms of a mixture at points of its own, where it is the same for all; else 0."""
        sizes = np.diff(self.offsets)
        return (
            int(sizes[0]) if len(sizes) and sizes.min() == sizes.max() and not self._shared else 0
        )

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, items: Any) -> Mixtures:
        """Return the mixtures of some items: an integer, a slice, integers or a mask."""
        chosen = np.asarray(self.index[items])
        if chosen.ndim > 1:
            raise IndexError(
                f"Mixtures have one axis, the items; the index {reprlib.repr(items)} asks for {chosen.ndim}."
            )
        return Mixtures._trusted(self._support, self.weights, self.offsets, chosen.reshape(-1))

    def __repr__(self) -> str:
        return (
            f"Mixtures({len(self)} items, {self.n_mixtures} mixtures, {len(self.weights)} atoms, "
            f"{self.n_classes} classes)"
        )

    def stored(self) -> Mixtures:
        """Return the same mixtures with one item for each that is stored."""
        return Mixtures._trusted(
            self._support, self.weights, self.offsets, np.arange(self.n_mixtures)
        )

    def mean(self) -> Array:
        """Return each item's mean label distribution, the first-order prediction, as (n_items, n_classes)."""
        return self._average_support(self._support)[self.index]

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
        rows = max(BLOCK // (8 * self.n_classes), 1)
        blocks = [self._support[i : i + rows] for i in range(0, len(self._support), rows)]
        results = [
            np.asarray(function(block.astype(np.float64, copy=False)), dtype=np.float64)
            for block in blocks
        ]
        if any(
            result.shape[:1] != block.shape[:1]
            for result, block in zip(results, blocks, strict=True)
        ):
            raise ValueError(
                f"`function` must return one result for each of the {len(blocks[0])} rows it is given, "
                f"got shape {results[0].shape}. Work over the last axis only."
            )
        return self._average_support(np.concatenate(results))[self.index]

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
        exponents = enumerate_snapshots(check_integer(order, "order", minimum=1), self.n_classes)
        return self._lattice_expectation(exponents, np.zeros(len(exponents)))[self.index]

    def snapshot_distribution(self, k: int) -> Array:
        """Return the probability of each k-snapshot, P(s) = sum_a w_a k!/prod s_j! prod_j p_aj^s_j (spec 1.2).

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
        """Return proj_k: the mixture of the normalised k-snapshots s / k that each mixture generates.

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
        probabilities[np.diff(self.offsets) == 0] = 0  # an empty mixture stays empty
        mixture, atom = np.nonzero(probabilities)
        sizes = np.bincount(mixture, minlength=self.n_mixtures)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        return Mixtures._trusted(
            (snapshots / k)[atom], probabilities[mixture, atom], offsets, self.index
        )

    def sample(self, *, random_state: Any = None) -> Array:
        """Draw a label distribution from each item's mixture, (n_items, n_classes)."""
        if (np.diff(self.offsets)[self.index] == 0).any():
            raise ValueError(
                "`mixtures` must not be empty to draw from, got an item whose mixture has no atoms."
            )
        mass = np.append(0.0, np.cumsum(self.weights))
        first = self.offsets[self.index]
        end = self.offsets[self.index + 1]
        places = mass[first] + check_random_state(random_state).random(len(self)) * (
            mass[end] - mass[first]
        )
        return self.points_at(
            np.clip(np.searchsorted(mass, places, side="right") - 1, first, end - 1)
        )

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
        totals = check_whole(np.broadcast_to(k, len(self)), "k")
        generator = check_random_state(random_state)
        p = self.sample(random_state=generator)
        return np.asarray(generator.multinomial(totals, p / p.sum(axis=1, keepdims=True)))

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
        checked = check_dense_counts(counts, n_classes=self.n_classes)
        if len(checked) != len(self):
            raise ValueError(
                f"`counts` must describe the {len(self)} items of the mixtures, got {len(checked)} rows."
            )
        packed = compress(np.column_stack([self.index, checked]))
        pairs = check_dense_counts(packed.unique)
        mixture = pairs[:, 0]
        rows = pairs[:, 1:]
        return (self._pair_log_likelihood(mixture, rows) + log_multiplicity(rows))[packed.inverse]

    def _pair_log_likelihood(self, mixture: NDArray[Any], rows: IntArray) -> Array:
        """Return log sum_a w_a prod_j p_aj^s_j for pairs of a mixture and a count vector, in blocks."""
        logs = _safe_log(self._support)
        mass = _safe_log(self.weights)
        result = np.full(len(rows), np.nan)
        for block in self.blocks(mixture):
            pair, atom, starts = self.pairs(mixture[block])
            terms = np.einsum("ij,ij->i", rows[block][pair], logs[atom % len(logs)]) + mass[atom]
            result[block] = _segment_logsumexp(terms, starts)
        return result

    def _stored_snapshot_distribution(self, k: int) -> tuple[IntArray, Array]:
        """Return Y^(k) and its probabilities under each stored mixture."""
        snapshots = enumerate_snapshots(
            check_integer(k, "k", minimum=1), self.n_classes, max_size=MAX_ATOMS
        )
        if len(snapshots) * self.n_mixtures > MAX_ATOMS:
            raise ValueError(
                f"`k` must give at most {MAX_ATOMS} atoms in all, got {len(snapshots)} snapshots for each of "
                f"{self.n_mixtures} mixtures. Use a smaller k or project fewer mixtures at a time."
            )
        return snapshots, self._lattice_expectation(snapshots, log_multiplicity(snapshots))

    def _lattice_expectation(self, exponents: IntArray, log_factor: Array) -> Array:
        """Return E[factor * prod_j p_j^exponent_j] for each stored mixture and row of exponents."""
        result = np.full((self.n_mixtures, len(exponents)), np.nan)
        logs = _safe_log(self._support)
        columns = max(BLOCK * 2 // max(len(logs), 1), 1)
        for start in range(0, len(exponents), columns):
            block = slice(start, start + columns)
            values = np.exp(logs @ exponents[block].T.astype(np.float64) + log_factor[block])
            result[:, block] = self._average_support(values)
        return result

    def blocks(self, mixture: NDArray[Any], *, size: int = 1 << 19) -> Iterator[slice]:
        """Cut a list of stored mixtures into blocks whose atoms hold at most about `size` numbers."""
        largest = int(np.diff(self.offsets).max(initial=1))
        rows = max(size // (self.n_classes * max(largest, 1)), 1)
        return (slice(start, start + rows) for start in range(0, len(mixture), rows))

    def pairs(self, mixture: NDArray[Any]) -> tuple[Index, Index, Index]:
        """List the atoms of several stored mixtures: row in the list, atom, and where each row starts."""
        sizes = np.diff(self.offsets)[mixture]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        row = np.repeat(np.arange(len(mixture)), sizes)
        return row, np.arange(len(row)) + (self.offsets[mixture] - starts[:-1])[row], starts

    def points_at(self, atoms: Index | slice) -> Array:
        """Return the label distributions of some atoms, ``points[atoms]`` without putting all of them together."""
        if self._shared:
            chosen = (
                np.arange(*atoms.indices(len(self.weights))) if isinstance(atoms, slice) else atoms
            )
            return np.asarray(self._support[chosen % len(self._support)])
        return self._support[atoms].astype(np.float64, copy=False)

    def _stacks(self) -> Iterator[tuple[slice, Array, Array]]:
        """Cut the stored mixtures of an ensemble into blocks with weights (n, m) and points (n, m, n_classes)."""
        shape = (self.n_mixtures, self._n_members)
        points = self._support.reshape(*shape, self.n_classes)
        weights = self.weights.reshape(shape)
        rows = max(BLOCK // points[0].nbytes, 1)
        blocks = (slice(start, start + rows) for start in range(0, len(points), rows))
        return ((block, weights[block], points[block]) for block in blocks)

    def average(self, values: Array) -> Array:
        """Return the weighted mean of values given at the atoms, (n_atoms, ...), for each stored mixture."""
        if n_members := self._n_members:  # a matrix product instead of a scan over segments
            stacked = values.reshape(-1, n_members, *values.shape[1:])
            return np.asarray(
                np.einsum("ma,ma...->m...", self.weights.reshape(-1, n_members), stacked)
            )
        weights = self.weights.reshape(-1, *(1,) * (values.ndim - 1))
        return _segment_sum(weights * values, self.offsets)

    def _average_support(self, values: Array) -> Array:
        """Return the same for values given at the points of the support, (n_points, ...)."""
        if not self._shared:
            return self.average(values)
        rounds = self.weights.reshape(
            -1, len(values)
        )  # a mixture goes through the support once or several times
        return np.tensordot(_segment_sum(rounds, self.offsets // len(values)), values, axes=1)


def _own(array: NDArray[Any], given: Any) -> NDArray[Any]:
    """Return a copy where the array is still the caller's own and could be changed by them."""
    # a base may be a tensor or a table that was given
    shared = array is given or array.base is not None
    return array.copy() if shared and array.flags.writeable else array


def check_mixtures(mixtures: Any) -> Mixtures:
    """Return mixtures; refuse anything else."""
    if isinstance(mixtures, Mixtures):
        return mixtures
    raise ValueError(
        f"`mixtures` must be Mixtures, got {type(mixtures).__name__}. Build them with Mixtures.from_ensemble, "
        "from_points or another constructor."
    )


def _count_pairs(first: Index, second: Index, n_second: int) -> tuple[Index, Index, Index]:
    """Return the distinct pairs of numbers in order, and how often each occurs."""
    codes = first * n_second + second
    if (int(first.max(initial=0)) + 1) * n_second > 4 * len(codes):
        pairs, counts = np.unique(codes, return_counts=True)
    else:  # few possible pairs: counting is faster than sorting
        tally = np.bincount(codes)
        pairs = np.flatnonzero(tally)
        counts = tally[pairs]
    return *np.divmod(pairs, n_second), counts


def _segment_sum(values: Array, offsets: NDArray[Any]) -> Array:
    """Sum the slices offsets[m]:offsets[m + 1]; NaN for an empty slice."""
    filled = np.diff(offsets) > 0
    sums = np.full((len(offsets) - 1, *values.shape[1:]), np.nan)
    if filled.any():
        sums[filled] = np.add.reduceat(values, offsets[:-1][filled], axis=0)
    return sums


def _segment_logsumexp(terms: Array, offsets: NDArray[Any]) -> Array:
    """Return log sum exp over the slices; -inf where all terms stand for log 0, NaN for an empty slice."""
    filled = np.diff(offsets) > 0
    result = np.full(len(offsets) - 1, np.nan)
    if filled.any():
        largest = np.maximum.reduceat(terms, offsets[:-1][filled])
        shifted = np.exp(terms - np.repeat(largest, np.diff(offsets)[filled]))
        sums = np.log(np.add.reduceat(shifted, offsets[:-1][filled])) + largest
        result[filled] = np.where(largest < _LOG_ZERO / 2, -np.inf, sums)
    return result


def _safe_log(values: Array) -> Array:
    """Return logarithms with a huge negative number in place of log 0."""
    with np.errstate(divide="ignore"):
        return np.where(values > 0, np.log(values, dtype=np.float64), _LOG_ZERO)


def _dirichlet_atoms(alpha: Array, n_atoms: int) -> tuple[Array, Array]:
    """Break a stick at Beta quantiles of Sobol points: p_j = v_j prod_{i<j} (1 - v_i)."""
    from scipy.stats import qmc  # costs a fifth of a second to import

    n_items, n_classes = alpha.shape
    grid = qmc.Sobol(n_classes - 1, scramble=False).random_base2(int(np.ceil(np.log2(n_atoms))))[
        :n_atoms
    ]
    later = np.cumsum(alpha[:, ::-1], axis=1)[:, ::-1][:, 1:]  # what is left after each class
    shares = special.betaincinv(alpha[:, None, :-1], later[:, None], grid + 0.5 / n_atoms)
    left = np.cumprod(1 - shares, axis=-1)
    points = np.concatenate([shares, np.ones((n_items, n_atoms, 1))], axis=-1)
    points[..., 1:] *= left
    return points.reshape(-1, n_classes), np.full(n_items * n_atoms, 1 / n_atoms)
