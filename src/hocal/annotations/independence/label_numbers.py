"""Whether the number of labels of an item depends on its labels.

Where people are asked until they agree, items with many labels are those whose first labels
differed. Then every measure of disagreement is wrong, and no later label mends it. The first two
labels of an item were given before anybody could tell: their disagreement must not depend on how
many labels followed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import fisher_exact

from hocal.annotations.independence.votes import Votes

__all__ = ["FirstLabels", "compare_first_labels"]


class FirstLabels(NamedTuple):
    """Disagreement of the first two labels of items with few and with many labels.

    Attributes
    ----------
    few, many : float
        Share of items whose first two labels differ, among items with few and with many labels.
    n_few, n_many : int
        How many items these are.
    threshold : int
        Labels from which on an item has many.
    p_value : float
        Of a difference as large in either direction (Fisher's exact test).
    """

    few: float
    many: float
    n_few: int
    n_many: int
    threshold: int
    p_value: float


def compare_first_labels(votes: Votes) -> FirstLabels | None:
    """Compare the first two labels; `votes` are sorted by item and time. None if all have as many.

    Items are cut at their median number of labels, those with one label left out.
    """
    sizes = np.bincount(votes.item)
    starts = (np.cumsum(sizes) - sizes)[sizes > 1]
    sizes = sizes[sizes > 1]
    if not len(sizes) or sizes.min() == sizes.max():
        return None
    threshold = int(np.median(sizes)) + 1
    if threshold > sizes.max():  # more than half of the items have the largest number
        threshold = int(sizes.max())
    many = sizes >= threshold
    differ = votes.label[starts] != votes.label[starts + 1]
    n_differ = [int(differ[group].sum()) for group in (~many, many)]
    n_agree = [int((~differ[group]).sum()) for group in (~many, many)]
    table = list(zip(n_differ, n_agree, strict=True))
    return FirstLabels(
        few=float(differ[~many].mean()),
        many=float(differ[many].mean()),
        n_few=int(np.sum(~many)),
        n_many=int(np.sum(many)),
        threshold=threshold,
        p_value=float(fisher_exact(table).pvalue),
    )
