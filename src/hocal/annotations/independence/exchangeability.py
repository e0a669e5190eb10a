"""Test whether it matters who gave which label of an item, or when.

Given an item's labels, independent labels are exchangeable: each annotator holds one of them at
random. All tests here condition on the items' labels, so they hold for any items, any number of
labels and any number of annotators. Items whose labels all agree say nothing and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hocal._base.typing import Array, IntArray, Mask

__all__ = [
    "Drift",
    "Layout",
    "Spread",
    "WithinItems",
    "add_up",
    "compare_halves",
    "compare_within_items",
    "lay_out",
]


_FEWEST_FOR_DRIFT = 4  # informative judgements: two in each half


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
        mean = add_up(self.item, differs / self.size, int(self.item.max(initial=-1)) + 1)[self.item]
        return np.where(self.size > 2, 2 * (differs - mean) / np.maximum(self.size - 2, 1), 0.0)


def add_up(groups: IntArray, values: NDArray[Any], n_groups: int) -> Array:
    """Return the sum of the values of each group."""
    return np.asarray(np.bincount(groups, weights=values, minlength=n_groups), dtype=np.float64)


def lay_out(
    item: IntArray, annotator: IntArray, label: IntArray, *, n_annotators: int, n_classes: int
) -> Layout:
    """Lay out the judgements of items on which labels differ; the order of judgements is kept."""
    kinds, kind, counts = np.unique(
        item * n_classes + label, return_inverse=True, return_counts=True
    )
    kind_item = kinds // n_classes
    totals = np.bincount(item)
    distinct = np.bincount(kind_item)
    first_kind = np.cumsum(distinct) - distinct
    most, frequent = _most_frequent(kind_item, counts)
    kept = np.flatnonzero(distinct[item] > 1)
    dissent = counts[kind[kept]] < most[item[kept]]
    slot = kind[kept] - first_kind[item[kept]]
    item = item[kept]
    annotator = annotator[kept]
    label = label[kept]
    first_row, row_judgement, row_kind = _ranges(first_kind[item], distinct[item])
    keys, row_group = np.unique(
        annotator[row_judgement] * n_classes + kinds[row_kind] % n_classes, return_inverse=True
    )
    return Layout(
        place=kept,
        item=item,
        annotator=annotator,
        label=label,
        size=totals[item],
        dissent=dissent,
        dissent_probability=1 - frequent[item] / totals[item],
        slot=slot,
        first_row=first_row,
        row_judgement=row_judgement,
        row_group=row_group,
        row_probability=counts[row_kind] / totals[item][row_judgement],
        group_annotator=keys // n_classes,
        group_label=keys % n_classes,
        n_annotators=n_annotators,
        n_classes=n_classes,
    )


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


class Spread(NamedTuple):
    """How much annotators differ from each other.

    Attributes
    ----------
    ratio : float
        Squared deviations of annotators' counts from what their items imply, over their expectation
        under exchangeability: 1 on average when it does not matter who labels; NaN where labels
        never differ.
    p_value : float
        Permutation p-value of a ratio as large; exact for any sample size.
    """

    ratio: float
    p_value: float


class WithinItems(NamedTuple):
    """Results of permuting each item's labels at random.

    Attributes
    ----------
    class_use : Spread
        Whether annotators differ in the classes they use.
    dissent : Spread
        Whether they differ in how often they leave the most frequent label.
    agreement : float
        Share of labels equal to the previous label of the same item, where labels differ.
    expected_agreement : float
        The same under exchangeability, exactly.
    agreement_p_value : float
        Two-sided permutation p-value of the agreement.
    shift : ndarray of shape (n_classes,)
        Share of each class in the later half of the items' labels less that in the earlier half.
    shift_p_value : float
        Permutation p-value of the sum of squared shifts.
    sharing_p_value : float
        Permutation p-value of annotators raising or lowering disagreement alike on all their items;
        NaN where no annotator has an influence on it, as with two labels per item.
    """

    class_use: Spread
    dissent: Spread
    agreement: float
    expected_agreement: float
    agreement_p_value: float
    shift: Array
    shift_p_value: float
    sharing_p_value: float


def compare_within_items(
    layout: Layout, *, n_resamples: int, generator: np.random.Generator
) -> WithinItems:
    """Compare annotators, and the order of labels, with random permutations within each item.

    The judgements of an item must be in the order of their time for the results about order to have
    a meaning.
    """
    if not len(layout):
        nothing = Spread(np.nan, np.nan)
        return WithinItems(
            nothing,
            nothing,
            np.nan,
            np.nan,
            np.nan,
            np.full(layout.n_classes, np.nan),
            np.nan,
            np.nan,
        )
    statistics = _Statistics(layout)
    side = _halves(layout.item)
    observed = statistics(np.arange(len(layout)), side)
    null = np.array(
        [statistics(order, side) for order in _permutations(layout.item, n_resamples, generator)]
    )
    use, dissent, agreement, shift, sharing = _p_values(observed, null)
    fewer = _p_values(-observed, -null)[2]
    label_shift = add_up(layout.label, side, layout.n_classes) / np.count_nonzero(side > 0)
    return WithinItems(
        class_use=Spread(float(observed[0]), float(use)),
        dissent=Spread(float(observed[1]), float(dissent)),
        agreement=float(observed[2]),
        expected_agreement=statistics.expected_agreement,
        agreement_p_value=float(min(1.0, 2 * min(agreement, fewer))),
        shift=label_shift,
        shift_p_value=float(shift),
        sharing_p_value=float(sharing) if statistics.influence.any() else np.nan,
    )


class _Statistics:
    """What one permutation of the labels gives; what none of them changes is computed once."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.expected_use = add_up(
            layout.row_group, layout.row_probability, len(layout.group_annotator)
        )
        self.use_variance = float(layout.row_probability @ (1 - layout.row_probability))
        self.expected_dissent = add_up(
            layout.annotator, layout.dissent_probability, layout.n_annotators
        )
        self.dissent_variance = float(layout.dissent_probability @ (1 - layout.dissent_probability))
        self.influence = layout.influence
        self.follows = layout.item[1:] == layout.item[:-1]
        # other labels equal to one's own
        same = layout.row_probability[layout.own_row] * layout.size - 1
        # An item's n - 1 neighbouring pairs each agree with probability sum over its labels of same
        # / (n (n - 1)).
        self.expected_agreement = float((same / layout.size).sum() / np.count_nonzero(self.follows))

    def __call__(self, order: IntArray, side: Array) -> Array:
        layout = self.layout
        group = layout.row_group[layout.first_row + layout.slot[order]]
        use = np.bincount(group, minlength=len(self.expected_use)) - self.expected_use
        dissent = (
            add_up(layout.annotator, layout.dissent[order], layout.n_annotators)
            - self.expected_dissent
        )
        label = layout.label[order]
        agreement = np.count_nonzero((label[1:] == label[:-1]) & self.follows) / np.count_nonzero(
            self.follows
        )
        shift = add_up(label, side, layout.n_classes)
        sharing = add_up(layout.annotator, self.influence[order], layout.n_annotators)
        with np.errstate(
            invalid="ignore"
        ):  # dissent is impossible where all classes are equally frequent
            ratio = np.float64(dissent @ dissent) / self.dissent_variance
        return np.array(
            [use @ use / self.use_variance, ratio, agreement, shift @ shift, sharing @ sharing]
        )


class Drift(NamedTuple):
    """Whether annotators change with time: first half of their judgements against the second.

    Attributes
    ----------
    ratio : float
        Squared changes over their expectation, 1 on average without drift.
    p_value : float
        Permutation p-value of the ratio.
    change : ndarray of shape (n_annotators,)
        Total variation between the halves, each less the other labels of its items; NaN below four
        judgements of items on which labels differ. Chance alone makes it positive.
    adjusted_p_value : ndarray of shape (n_annotators,)
        Permutation p-value of each annotator's change, adjusted for all annotators by the largest
        statistic.
    """

    ratio: float
    p_value: float
    change: Array
    adjusted_p_value: Array


def compare_halves(
    layout: Layout, time: IntArray, *, n_resamples: int, generator: np.random.Generator
) -> Drift:
    """Compare the halves of each annotator's judgements with random cuts of them.

    What is compared is the judgement less the other labels of its item, so that a constant
    preference is no drift; `time` ranks the judgements of the layout, equal times are ordered at
    random. The test takes for granted that annotators met their items in an order that has nothing
    to do with how they judge them.
    """
    changes = _Changes(layout, time, generator)
    change = np.full(layout.n_annotators, np.nan)
    adjusted = np.full(layout.n_annotators, np.nan)
    tested = changes.tested
    if not tested.any():
        return Drift(np.nan, np.nan, change, adjusted)
    observed = changes.squares(np.arange(len(layout)))
    null = np.array(
        [
            changes.summarise(changes.squares(order))
            for order in _permutations(layout.annotator, n_resamples, generator)
        ]
    )
    ratio = changes.summarise(observed)[0]
    change[tested] = changes.distances()
    adjusted[tested] = _p_values(observed / changes.noise, null[:, 1:])
    return Drift(float(ratio), float(_p_values(ratio, null[:, 0])), change, adjusted)


class _Changes:
    """What one cut of the annotators' judgements into halves gives."""

    def __init__(self, layout: Layout, time: IntArray, generator: np.random.Generator) -> None:
        self.layout = layout
        self.residual = layout.row_residual
        self.side = np.zeros(len(layout))
        ranked = np.lexsort((generator.random(len(layout)), time, layout.annotator))
        self.side[ranked] = _halves(layout.annotator[ranked])
        self.n_judgements = np.bincount(layout.annotator, minlength=layout.n_annotators)
        noise = self._expected_squares()
        self.tested = (self.n_judgements >= _FEWEST_FOR_DRIFT) & (noise > 0)
        self.noise = noise[self.tested]

    def _expected_squares(self) -> Array:
        """Return annotators' mean sum of squares over all cuts, sum s^2 / (n - 1) x scatter."""
        layout = self.layout
        n_groups = len(self.layout.group_annotator)
        n = np.maximum(self.n_judgements, 2)
        squares = add_up(layout.row_group, self.residual**2, n_groups)
        squares -= (
            add_up(layout.row_group, self.residual, n_groups) ** 2 / n[layout.group_annotator]
        )
        scatter = add_up(layout.group_annotator, squares, layout.n_annotators)
        scatter[scatter < 1e-9] = (
            0  # rounding, when all judgements differ from the others in the same way
        )
        return np.asarray(
            add_up(layout.annotator, self.side**2, layout.n_annotators) / (n - 1) * scatter
        )

    def _sums(self, order: IntArray) -> Array:
        signed = self.side[order][self.layout.row_judgement] * self.residual
        return add_up(self.layout.row_group, signed, len(self.layout.group_annotator))

    def squares(self, order: IntArray) -> Array:
        return self._by_annotator(self._sums(order) ** 2)

    def distances(self) -> Array:
        """Return the observed total variation between the halves."""
        absolute = self._by_annotator(np.abs(self._sums(np.arange(len(self.layout)))))
        n_late = self.n_judgements[self.tested] // 2
        return np.asarray(absolute / (2 * n_late))

    def summarise(self, squares: Array) -> Array:
        """Return the overall ratio and the largest ratio of an annotator."""
        return np.array([squares.sum() / self.noise.sum(), (squares / self.noise).max()])

    def _by_annotator(self, values: Array) -> Array:
        return add_up(self.layout.group_annotator, values, self.layout.n_annotators)[self.tested]


def _halves(groups: IntArray) -> Array:
    """Return -1 in the first half of each run of equal numbers, 1 in the second, 0 between."""
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    sizes = np.diff(starts, append=len(groups))
    place = np.arange(len(groups)) - np.repeat(starts, sizes)
    return np.asarray(np.sign(2.0 * place - np.repeat(sizes, sizes) + 1))


def _permutations(
    groups: IntArray, n_permutations: int, generator: np.random.Generator
) -> Iterator[IntArray]:
    """Yield random permutations of 0, 1, ... that move nothing out of its group."""
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    starts = np.cumsum(sizes) - sizes
    blocks = [order[starts[sizes == n, None] + np.arange(n)] for n in np.unique(sizes[sizes > 1])]
    result = np.arange(len(groups))
    for _ in range(n_permutations):
        for block in blocks:  # (n_groups of one size, size)
            result[block] = generator.permuted(block, axis=1)
        yield result


def _p_values(observed: Array, null: Array) -> Array:
    """Return the share of null values, the observed one included, as large as the observed one."""
    exceed = null >= observed - 1e-9 * np.abs(observed)  # equal sums may differ in their last digit
    return np.where(np.isnan(observed), np.nan, (1 + exceed.sum(axis=0)) / (1 + len(null)))
