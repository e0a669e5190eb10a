"""Mixtures of single items in closed form: a prediction, weights of components, labels seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logsumexp

from hocal._base.errors import InputError
from hocal._base.typing import Array, Counts, Index
from hocal._base.validation import check_counts, check_integer, label_totals
from hocal.calibration.by_item.atoms import are_flat, least_atoms, list_atoms, make_plan
from hocal.calibration.by_item.components import BEYOND_TOP, labels_of
from hocal.calibration.by_item.likeness import N_ALIKE, Alike, Likeness, make_alike
from hocal.calibration.by_item.top_shares import (
    N_COMPONENTS,
    ItemBlock,
    component_log_likelihood,
    safe_log,
    top_shares,
    weigh,
)
from hocal.uncertainty.distinct_counts import as_dense
from hocal.uncertainty.entropy import Brier, Entropy, Shannon, get_entropy
from hocal.uncertainty.mixtures import Mixtures
from hocal.uncertainty.snapshots import log_multiplicity

__all__ = ["ItemMixtures"]

BLOCK_NUMBERS = 1 << 17  # probabilities, or weights, that are worked on at once: they stay in cache
FEW_CLASSES = 10
FEW_CLASSES_ATOMS = 300  # each item; the error of posteriors falls as the root of their number
MANY_CLASSES_ATOMS = 400  # each item: with fewer, some have no weights with the wanted means
ATOM_BLOCK_NUMBERS = 1 << 20  # of points, or of components, of the atoms listed at once
MAX_NUMBERS = 250_000_000  # of all points: 2 GB


@dataclass(frozen=True, eq=False, repr=False)
class ItemMixtures:
    """A batch of mixtures over label distributions, one for each item, in closed form.

    The mixture of an item is a weighted sum of components around its prediction: Dirichlets and
    stars (`components`), components with other shares of the top class (`top_shares`), and, where
    some classes are more alike than others, components in which people choose by likeness. Labels
    that were seen change the weights and the components exactly.

    Parameters
    ----------
    prediction : array of shape (n_items, n_classes)
        Positive mean label distributions before any label.
    split_weights : array of shape (n_items, n_split_components)
        Weights of the components of the split beyond the top class, before any label.
    weights : array of shape (n_items, n_components)
        Weights of the components, before any label. Their mean share outside the top class must be
        that of the prediction.
    counts : array or CSR matrix of shape (n_items, n_classes), optional
        Labels seen so far.
    likeness : Likeness, optional
        How alike classes are, if some are more alike than others.
    """

    prediction: Array
    split_weights: Array
    weights: Array
    counts: Counts | None = None
    likeness: Likeness | None = None

    def __post_init__(self) -> None:
        n_items = len(self.prediction)
        _check_shape("split_weights", self.split_weights, (n_items, len(BEYOND_TOP)))
        n_components = N_COMPONENTS + (0 if self.likeness is None else N_ALIKE)
        _check_shape("weights", self.weights, (n_items, n_components))

    def __len__(self) -> int:
        return len(self.prediction)

    def __getitem__(self, items: Any) -> ItemMixtures:
        """Return the mixtures of some items: an integer, a slice, integers or a mask."""
        rows = np.arange(len(self))[items].reshape(-1)
        return ItemMixtures(
            self.prediction[rows],
            self.split_weights[rows],
            self.weights[rows],
            None if self.counts is None else self.counts[rows],
            None if self.likeness is None else self.likeness.take(rows),
        )

    def __repr__(self) -> str:
        seen = 0 if self.counts is None else int(self.counts.sum())
        return f"ItemMixtures({len(self)} items, {self.n_classes} classes, {seen} labels seen)"

    @property
    def n_classes(self) -> int:
        """Number of label classes."""
        return int(self.prediction.shape[1])

    def mean(self) -> Array:
        """Return each item's mean; before any label exactly the prediction."""
        if self.counts is None:
            return self.prediction
        return np.concatenate([block.mean() for block in self.blocks()])

    def aleatoric(self, entropy: str | Entropy = "shannon", *, base: float | None = None) -> Array:
        """Return the expected entropy of each item's label distribution.

        Parameters
        ----------
        entropy : str or Entropy, default="shannon"
            Shannon or Brier; for others list atoms with `to_mixtures`.
        base : float, optional
            Base of the logarithm of Shannon entropy.

        Returns
        -------
        ndarray of shape (n_items,)
            Aleatoric uncertainty.
        """
        measure = get_entropy(entropy, base=base)
        if isinstance(measure, Shannon):
            values = [block.shannon() for block in self.blocks()]
            return measure.units_per_nat * np.concatenate(values)
        if isinstance(measure, Brier):
            return measure.scale * np.concatenate([block.brier() for block in self.blocks()])
        raise InputError(
            "entropy",
            "must be Shannon or Brier",
            value=measure,
            remedy="List atoms with to_mixtures() and pass them to hocal.decompose.",
        )

    def condition(self, counts: Any) -> ItemMixtures:
        """Return the mixtures given further labels of each item; zero rows change nothing.

        Parameters
        ----------
        counts : array or sparse matrix of shape (n_items, n_classes)
            The item's own labels, which had no part in making its mixture.
        """
        return replace(self, counts=self._with_seen(self._check_counts(counts)))

    def log_likelihood(self, counts: Any) -> Array:
        """Return the log-probability of each item's further label counts.

        Parameters
        ----------
        counts : array or sparse matrix of shape (n_items, n_classes)
            Label counts; totals may differ.

        Returns
        -------
        ndarray of shape (n_items,)
            Natural logarithms, multinomial coefficient included.
        """
        checked = self._check_counts(counts)
        logs = log_multiplicity(checked) + self._log_evidence(self._with_seen(checked))
        return logs if self.counts is None else logs - self._log_evidence(self.counts)

    def to_mixtures(self, *, n_atoms: int | None = None) -> Mixtures:
        """List atoms for each item, with the mean and the uncertainties of the closed form.

        For what has no closed form here: other entropies, sets, distances, draws. Condition first
        and list then: conditioning the atoms is only near to what labels say. With more than 20
        classes the means of the unlikely ones are near to the closed form's, not equal: a few
        percent of the mass are elsewhere, more where hundreds of classes are about as likely.

        Parameters
        ----------
        n_atoms : int, optional
            Atoms of each item, at least 3 for each class up to 20; by default 300, or 400 with
            more than 10 classes.

        Returns
        -------
        Mixtures
            One mixture per item; classes keep their order.

        Raises
        ------
        InputError
            When points of all items together have more than 250 million numbers.
        """
        default = FEW_CLASSES_ATOMS if self.n_classes <= FEW_CLASSES else MANY_CLASSES_ATOMS
        wanted = default if n_atoms is None else n_atoms
        size = check_integer(wanted, "n_atoms", minimum=least_atoms(self.n_classes))
        self._refuse_too_many(size)
        points = np.empty((len(self), size, self.n_classes))
        weights = np.empty((len(self), size))
        height = max(ATOM_BLOCK_NUMBERS // (size * max(self.n_classes, N_COMPONENTS)), 1)
        flat = are_flat(self.mean())
        for kind in np.unique(flat).tolist():
            plan = make_plan(size, self.n_classes, flat=kind)
            rows = np.flatnonzero(flat == kind)
            for start in range(0, len(rows), height):
                part = rows[start : start + height]
                points[part], weights[part] = list_atoms(self._block(part), plan)
        return Mixtures.of_members(points, weights)

    @cached_property
    def posterior_weights(self) -> tuple[Array, Array]:
        """Weights of the split and of all components, given the labels seen."""
        if self.counts is None:
            return self.split_weights, self.weights
        split_weights = np.empty_like(self.split_weights)
        weights = np.empty_like(self.weights)
        for rows in self._row_blocks():
            split, every = self._component_logs(rows, self.counts)
            split_weights[rows] = weigh(self.split_weights[rows], split)
            weights[rows] = weigh(self.weights[rows], every)
        return split_weights, weights

    def blocks(self) -> Iterator[ItemBlock]:
        """Go through the items in blocks that stay in the cache."""
        return (self._block(rows) for rows in self._row_blocks())

    def _block(self, rows: slice | Index) -> ItemBlock:
        split_weights, weights = self.posterior_weights
        labels = None if self.counts is None else labels_of(self.counts[rows])
        top = top_shares(self.prediction[rows])
        return ItemBlock(top, split_weights[rows], weights[rows], labels, self._alike(rows))

    def _alike(self, rows: slice | Index) -> Alike | None:
        if self.likeness is None:
            return None
        return make_alike(self.likeness.take(rows), self.prediction[rows])

    def _refuse_too_many(self, n_atoms: int) -> None:
        """Refuse to list more numbers than fit into memory with room to work."""
        numbers = len(self) * n_atoms * self.n_classes
        if numbers > MAX_NUMBERS:
            fitting = MAX_NUMBERS // (n_atoms * self.n_classes)
            raise InputError(
                "n_atoms",
                f"must give at most {MAX_NUMBERS:,} numbers in all",
                value=f"{numbers:,} for {len(self):,} items of {self.n_classes} classes",
                remedy=f"List at most {fitting:,} items at a time: mixtures[:{fitting}].",
            )

    def _row_blocks(self) -> Iterator[slice]:
        widest = N_COMPONENTS if self.likeness is None else self.n_classes**2
        rows = max(BLOCK_NUMBERS // max(self.n_classes, widest), 1)
        return (slice(start, start + rows) for start in range(0, len(self), rows))

    def _component_logs(self, rows: slice, counts: Counts) -> tuple[Array, Array]:
        top = top_shares(self.prediction[rows])
        labels = labels_of(counts[rows])
        return component_log_likelihood(top, self.split_weights[rows], labels, self._alike(rows))

    def _log_evidence(self, counts: Counts) -> Array:
        """Return log-probabilities of all labels in one given order."""
        logs = [
            logsumexp(self._component_logs(rows, counts)[1] + safe_log(self.weights[rows]), axis=1)
            for rows in self._row_blocks()
        ]
        return np.where(label_totals(counts) == 0, 0.0, np.concatenate(logs))

    def _with_seen(self, counts: Counts) -> Counts:
        """Return the labels seen so far and further ones together."""
        if self.counts is None:
            return counts
        if isinstance(self.counts, np.ndarray) == isinstance(counts, np.ndarray):
            return self.counts + counts
        return as_dense(self.counts) + as_dense(counts)

    def _check_counts(self, counts: Any) -> Counts:
        """Return one row of counts per item."""
        checked = check_counts(counts, n_classes=self.n_classes, minimum_total=0)
        n_rows = checked.shape[0]
        if n_rows != len(self):
            rule = f"must describe the {len(self)} items of the mixtures"
            raise InputError("counts", rule, value=f"{n_rows} rows")
        return checked


def _check_shape(name: str, values: Array, shape: tuple[int, int]) -> None:
    if values.shape != shape:
        raise InputError(name, f"must have shape {shape}", value=f"shape {values.shape}")
