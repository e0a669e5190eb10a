"""How mixtures are made: from arrays, ensembles, points, Dirichlet distributions or snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hocal._base.typing import Array, Index
from hocal._base.validation import (
    check_array,
    check_cells,
    check_counts,
    check_integer,
    check_simplex,
    refuse_large,
)
from hocal.uncertainty.atoms import dirichlet_atoms, snapshot_atoms
from hocal.uncertainty.mixture_checks import check_concentrations, own_copy
from hocal.uncertainty.mixture_storage import MixtureStorage, set_read_only
from hocal.uncertainty.segments import segment_offsets

__all__ = ["MixtureConstructors"]


@dataclass(frozen=True, eq=False, repr=False)
class MixtureConstructors(MixtureStorage):
    """Constructors of `hocal.Mixtures`, which explains the arrays."""

    index: Index

    @classmethod
    def trusted(
        cls, support: Array, weights: Array, offsets: NDArray[Any], index: NDArray[Any]
    ) -> Self:
        """Build from arrays that are known to fit together; nothing is checked or copied.

        For code that computed the arrays itself; all others call `Mixtures` or a constructor.

        Parameters
        ----------
        support, weights, offsets
            As `hocal.uncertainty.mixture_storage.MixtureStorage` describes them.
        index : array of shape (n_items,)
            The mixture of each item.
        """
        mixtures = object.__new__(cls)
        bounds = offsets.astype(np.intp, copy=False)
        set_read_only(mixtures, support=support, weights=weights, offsets=bounds, index=index)
        return mixtures

    @classmethod
    def on_common_points(cls, points: Array, weights: Array) -> Self:
        """Build one mixture per row of weights, all on the same points; nothing is checked.

        Parameters
        ----------
        points : array of shape (n_points, n_classes)
            Label distributions, kept once.
        weights : array of shape (n_mixtures, n_points)
            They sum to 1 in each row.
        """
        return cls._one_each(points, weights)

    @classmethod
    def of_members(cls, points: Array, weights: Array) -> Self:
        """Build one mixture per item, each on as many points of its own; nothing is checked.

        Parameters
        ----------
        points : array of shape (n_items, n_members, n_classes)
            Label distributions.
        weights : array of shape (n_items, n_members)
            They sum to 1 in each row.
        """
        return cls._one_each(points.reshape(-1, points.shape[-1]), weights)

    @classmethod
    def _one_each(cls, support: Array, weights: Array) -> Self:
        """Build one item for each row of weights."""
        n_items, n_atoms = weights.shape
        offsets = np.arange(n_items + 1) * n_atoms
        return cls.trusted(support, weights.reshape(-1), offsets, np.arange(n_items))

    @classmethod
    def from_ensemble(cls, probabilities: ArrayLike) -> Self:
        """Make each item's members equally likely, for ensembles, dropout or posterior samples.

        Parameters
        ----------
        probabilities : array of shape (n_items, n_members, n_classes)
            Predictions of the members. Those in float32 are kept so, and `decompose` computes with
            them as they are, with an error near 1e-6; all else is computed in float64.

        Returns
        -------
        Mixtures
            One mixture per item.
        """
        p = check_simplex(probabilities, ndim=3, keep_single=True)
        n_items, n_members, _ = p.shape
        weights = np.broadcast_to(np.float64(1 / n_members), (n_items, n_members))  # no memory
        return cls.of_members(own_copy(p, probabilities), weights)

    @classmethod
    def from_points(cls, probabilities: ArrayLike) -> Self:
        """Put all mass on the prediction itself: all uncertainty is aleatoric.

        This is the naive decomposition.

        Parameters
        ----------
        probabilities : array of shape (n_items, n_classes)
            Predictions.

        Returns
        -------
        Mixtures
            One point mass per item.
        """
        p = check_simplex(probabilities, ndim=2)
        return cls.of_members(own_copy(p, probabilities)[:, None], np.ones((len(p), 1)))

    @classmethod
    def from_vertices(cls, probabilities: ArrayLike) -> Self:
        """Put the predicted mass on the vertices: all uncertainty is epistemic.

        This is the 1-snapshot predictor.

        Parameters
        ----------
        probabilities : array of shape (n_items, n_classes)
            Predictions.

        Returns
        -------
        Mixtures
            One mixture of certain labels per item.
        """
        p = check_simplex(probabilities, ndim=2)
        return cls.on_common_points(np.eye(p.shape[1]), own_copy(p, probabilities))

    @classmethod
    def from_dirichlet(cls, alpha: ArrayLike, *, n_atoms: int = 256) -> Self:
        """Approximate Dirichlet distributions by equally likely, evenly spread atoms.

        Parameters
        ----------
        alpha : array of shape (n_items, n_classes)
            Positive concentrations, as an evidential network predicts them.
        n_atoms : int, default=256
            Atoms per item; the error of an expectation falls nearly as 1 / n_atoms.

        Returns
        -------
        Mixtures
            One mixture per item.
        """
        concentrations = check_array(alpha, "alpha", ndim=2)
        check_concentrations(concentrations)
        n_atoms = check_integer(n_atoms, "n_atoms", minimum=1)
        numbers = 3 * n_atoms * concentrations.size
        what = f"{n_atoms:,} atoms for each of {len(concentrations):,} items"
        refuse_large("n_atoms", numbers, what, "Ask for fewer atoms, or take the items in parts.")
        points = dirichlet_atoms(concentrations, n_atoms)
        return cls.of_members(points, np.full(points.shape[:2], 1 / n_atoms))

    @classmethod
    def from_snapshots(
        cls, counts: Any, cells: ArrayLike | None = None, *, n_cells: int | None = None
    ) -> Self:
        """Take the empirical mixture of the snapshots in each cell, the paper's post-hoc predictor.

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
            One mixture per cell; item i has the mixture of its cell.
        """
        checked = check_counts(counts)
        n_items = checked.shape[0]
        one_cell = np.zeros(n_items, np.intp)
        cell_of_item = check_cells(one_cell if cells is None else cells, n_items, n_cells=n_cells)
        points, weights, sizes = snapshot_atoms(checked, cell_of_item, n_cells or 1)
        return cls.trusted(points, weights, segment_offsets(sizes), cell_of_item)
