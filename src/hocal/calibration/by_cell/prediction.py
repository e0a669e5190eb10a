"""Mixtures of items from those of their cells, which may order classes by rank."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hocal._base.typing import Array, Counts, Index
from hocal.calibration.by_cell.class_order import MAX_NUMBERS, in_class_order
from hocal.calibration.by_cell.fitting import rank_items
from hocal.cells.statistics import item_blocks, order_counts
from hocal.uncertainty.likelihood import pair_with_counts
from hocal.uncertainty.mixtures import Mixtures

__all__ = ["CellMixtures", "Posteriors"]

BLOCK_NUMBERS = 20_000_000  # in the atoms of items that are listed at once, 160 MB
GOLDEN = (np.sqrt(5) - 1) / 2  # of a turn: such steps are spread evenly, however many there are


class Posteriors(NamedTuple):
    """Mixtures given labels, one for each distinct pair of a cell and labels in its order."""

    pair: Index  #: (n_items,) the pair of each item
    mixtures: Iterator[Mixtures]  #: of the pairs, some after the other; made as they are taken


class CellMixtures(NamedTuple):
    """One mixture per cell, and the order its classes are in."""

    mixtures: Mixtures  #: one per cell
    class_orders: Index | None  #: (n_cells, n_classes) for `rank_items`; None for theirs

    def of_items(self, p: Array, where: Index) -> Mixtures:
        """Return the mixture of each item's cell, in class order."""
        mixtures = self.mixtures[where]
        if self.class_orders is None:
            return mixtures
        return in_class_order(mixtures, rank_items(p, where, self.class_orders))

    def some_at_a_time(self, p: Array, where: Index, own: Counts | None) -> Iterator[Mixtures]:
        """Yield the mixtures of all items in class order, given their own labels if there are any.

        Mixtures by rank are listed anew for each ranking of the classes: those of many items would
        not fit into memory.
        """
        height = len(where)
        if self.class_orders is not None:
            height = max(BLOCK_NUMBERS // self._largest, 1)
        for start in range(0, len(where), height):
            rows = slice(start, start + height)
            mixtures = self.of_items(p[rows], where[rows])
            yield mixtures if own is None else mixtures.condition(own[rows])

    def for_averages(self, p: Array, where: Index, n_atoms: int) -> Mixtures:
        """Return mixtures in class order, of few atoms where all would not fit into memory.

        The few stand at even steps of an item's mixture, other ones for each item: over a cell they
        are spread like its atoms.
        """
        if self.class_orders is None or len(where) * self._largest <= MAX_NUMBERS:
            return self.of_items(p, where)
        turns = np.arange(len(where))[:, None] * GOLDEN % 1
        shares = (np.arange(n_atoms) + turns) / n_atoms
        stored = np.repeat(self.mixtures.index[where], n_atoms)
        atoms = self.mixtures.atoms_at_shares(stored, shares.reshape(-1))
        ranking = rank_items(p, where, self.class_orders)
        points = np.empty((len(atoms), p.shape[1]))
        by_rank = self.mixtures.points_at(atoms)
        np.put_along_axis(points, np.repeat(ranking, n_atoms, axis=0), by_rank, axis=1)
        return Mixtures.from_ensemble(points.reshape(len(where), n_atoms, -1))

    @property
    def _largest(self) -> int:
        """Numbers in the atoms of the largest mixture."""
        return int(self.mixtures.sizes.max()) * self.mixtures.n_classes

    def posteriors(self, p: Array, where: Index, own: Counts) -> Posteriors:
        """Return mixtures given labels, with classes in the order of the cells' mixtures."""
        if self.class_orders is None:
            every = np.arange(len(where))
            return Posteriors(every, iter([self.mixtures[where].condition(own)]))
        orders = self.class_orders
        ordered = order_counts(own, lambda rows: rank_items(p[rows], where[rows], orders))
        pairs = pair_with_counts(where, ordered)
        blocks = self.mixtures.blocks(pairs.mixture)
        conditioned = (
            self.mixtures[pairs.mixture[rows]].condition(pairs.counts[rows]) for rows in blocks
        )
        return Posteriors(pairs.inverse, conditioned)

    def means_of_items(self, p: Array, where: Index, own: Counts | None = None) -> Array:
        """Return the mean of each item's mixture, without a mixture per item."""
        means, row = self.mixtures.mean(), where
        if own is not None:
            row, posteriors = self.posteriors(p, where, own)
            means = np.concatenate([some.mean() for some in posteriors])
        if self.class_orders is None:
            return means[row]
        result = np.empty_like(p)
        for block in item_blocks(p.shape):
            ranking = rank_items(p[block], where[block], self.class_orders)
            np.put_along_axis(result[block], ranking, means[row[block]], axis=1)
        return result
