"""Test whether it matters who gave which label of an item, or when.

Given an item's labels, independent labels are exchangeable: each annotator holds one of them at
random. All tests here condition on the items' labels, so they hold for any items, any number of
labels and any number of annotators. Items whose labels all agree say nothing and are left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hocal._base.typing import Array, IntArray
from hocal.annotations.independence.permutations import halves, p_values, permutations
from hocal.annotations.independence.vote_layout import Layout, add_up

__all__ = ["Spread", "WithinItems", "compare_within_items"]


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
        return _nothing(layout.n_classes)
    statistics = _Statistics(layout)
    side = halves(layout.item)
    observed = statistics(np.arange(len(layout)), side)
    null = np.array(
        [statistics(order, side) for order in permutations(layout.item, n_resamples, generator)]
    )
    use, dissent, agreement, shift, sharing = p_values(observed, null)
    fewer = p_values(-observed, -null)[2]
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


def _nothing(n_classes: int) -> WithinItems:
    """Return that nothing is known: the labels of no item differ."""
    unknown = Spread(np.nan, np.nan)
    return WithinItems(
        class_use=unknown,
        dissent=unknown,
        agreement=np.nan,
        expected_agreement=np.nan,
        agreement_p_value=np.nan,
        shift=np.full(n_classes, np.nan),
        shift_p_value=np.nan,
        sharing_p_value=np.nan,
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
