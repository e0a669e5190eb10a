"""Judgements of items that several people labelled, sorted so that they can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hocal._base.typing import Array, IntArray, Mask

__all__ = ["Layout", "add_up", "lay_out"]


@dataclass(frozen=True, eq=False)
class Layout:
    """Judgements of the items on which labels differ, in the order given.

    A judgement has a row for each class that occurs in its item; a group is the rows of one
    annotator and class.

    Attributes
    ----------
    place : ndarray of shape (n_judgements,)
        Where each judgement stands among all those given.
    item, annotator, label : ndarray of shape (n_judgements,)
        Numbers of the item, the annotator and the class.
    size : ndarray of shape (n_judgements,)
        Labels of the item.
    dissent, dissent_probability : ndarray of shape (n_judgements,)
        Whether the label is not a most frequent one of its item, and the share of such labels in
        the item.
    slot, first_row : ndarray of shape (n_judgements,)
        Place of the label among the item's classes, and where the judgement's rows begin.
    row_judgement, row_group, row_probability : ndarray of shape (n_rows,)
        Judgement, group, and the share of the class in the item.
    group_annotator, group_label : ndarray of shape (n_groups,)
        Annotator and class.
    n_annotators, n_classes : int
        How many there are in the whole table.
    """

    place: IntArray
    item: IntArray
    annotator: IntArray
    label: IntArray
    size: IntArray
    dissent: Mask
    dissent_probability: Array
    slot: IntArray
    first_row: IntArray
    row_judgement: IntArray
    row_group: IntArray
    row_probability: Array
    group_annotator: IntArray
    group_label: IntArray
    n_annotators: int
    n_classes: int

    def __len__(self) -> int:
        return len(self.item)

    @property
    def own_row(self) -> IntArray:
        """The row of each judgement's own label."""
        return self.first_row + self.slot

    @property
    def row_residual(self) -> Array:
        """One for the judgement's own label less the class's share in the item's other labels."""
        residual = -self.row_probability
        residual[self.own_row] += 1
        size = self.size[self.row_judgement]
        return residual * size / (size - 1)

    @property
    def influence(self) -> Array:
        """How much a judgement adds to its item's mean pairwise disagreement; 0 with two labels.

        With d the share of the item's other labels that differ from the judgement's, u the mean of
        d over the item and n its labels, this is 2 (d - u) / (n - 2).
        """
        differs = self.size * (1 - self.row_probability[self.own_row]) / (self.size - 1)
        n_items = int(self.item.max(initial=-1)) + 1
        mean = add_up(self.item, differs / self.size, n_items)[self.item]
        change = 2 * (differs - mean) / np.maximum(self.size - 2, 1)
        return np.where(self.size > 2, change, 0.0)


def add_up(groups: IntArray, values: NDArray[Any], n_groups: int) -> Array:
    """Return the sum of the values of each group."""
    return np.asarray(np.bincount(groups, weights=values, minlength=n_groups), dtype=np.float64)


def lay_out(
    item: IntArray, annotator: IntArray, label: IntArray, *, n_annotators: int, n_classes: int
) -> Layout:
    """Lay out the judgements of items on which labels differ; the order of judgements is kept."""
    kinds = _Kinds.of(item, label, n_classes)
    totals = np.bincount(item)
    most, frequent = _most_frequent(kinds.item, kinds.n_labels)
    kept = np.flatnonzero(kinds.n_distinct[item] > 1)
    kind = kinds.own[kept]
    item = item[kept]
    annotator = annotator[kept]
    first_kind = kinds.first[item]
    first_row, row_judgement, row_kind = _ranges(first_kind, kinds.n_distinct[item])
    keys, row_group = np.unique(
        annotator[row_judgement] * n_classes + kinds.label[row_kind], return_inverse=True
    )
    return Layout(
        place=kept,
        item=item,
        annotator=annotator,
        label=label[kept],
        size=totals[item],
        dissent=kinds.n_labels[kind] < most[item],
        dissent_probability=1 - frequent[item] / totals[item],
        slot=kind - first_kind,
        first_row=first_row,
        row_judgement=row_judgement,
        row_group=row_group,
        row_probability=kinds.n_labels[row_kind] / totals[item][row_judgement],
        group_annotator=keys // n_classes,
        group_label=keys % n_classes,
        n_annotators=n_annotators,
        n_classes=n_classes,
    )


class _Kinds(NamedTuple):
    """The distinct labels of each item, one row for each."""

    own: IntArray  #: (n_judgements,) row of each judgement
    item: IntArray  #: (n_kinds,)
    label: IntArray  #: (n_kinds,)
    n_labels: IntArray  #: (n_kinds,) how often the item got the label
    n_distinct: IntArray  #: (n_items,)
    first: IntArray  #: (n_items,) first row of each item

    @classmethod
    def of(cls, item: IntArray, label: IntArray, n_classes: int) -> _Kinds:
        """Return the kinds of some judgements, sorted by item and label."""
        codes = item * n_classes + label
        kinds, own, count = np.unique(codes, return_inverse=True, return_counts=True)
        owner = kinds // n_classes
        n_distinct = np.bincount(owner)
        first = np.cumsum(n_distinct) - n_distinct
        return cls(own, owner, kinds % n_classes, count, n_distinct, first)


def _most_frequent(kind_item: IntArray, counts: IntArray) -> tuple[IntArray, Array]:
    """Return how often each item's most frequent classes occur, and their labels in all."""
    most = np.zeros(int(kind_item.max()) + 1, dtype=np.int64)
    np.maximum.at(most, kind_item, counts)
    return most, add_up(kind_item, counts * (counts == most[kind_item]), len(most))


def _ranges(starts: IntArray, sizes: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Join ranges of whole numbers; return where each begins, whose each number is, the numbers."""
    first = np.cumsum(sizes) - sizes
    owner = np.repeat(np.arange(len(sizes)), sizes)
    return first, owner, np.arange(len(owner)) - first[owner] + starts[owner]
