"""Count dependent items as the fewer independent ones that they are worth."""

from __future__ import annotations

import numpy as np

from hocal._base.typing import IntArray
from hocal.cells.statistics import Histogram

__all__ = ["effective_items", "fewer_items"]


def effective_items(n_items: IntArray, design_effect: float) -> IntArray:
    """Return how many independent items the items of each cell are worth, one at least.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.guarantees.effective_items import effective_items
    >>> effective_items(np.array([0, 1, 100]), 1.5).tolist()
    [0, 1, 66]
    """
    worth = np.floor(n_items / design_effect).astype(np.int64)
    return np.where(n_items > 0, np.maximum(worth, 1), 0)


def fewer_items(histogram: Histogram, design_effect: float) -> Histogram:
    """Return a histogram of as many items as those of each cell are worth.

    Items are taken at equal distances from the sorted histogram, so that shares and means stay
    those of all items as nearly as whole numbers allow.

    Parameters
    ----------
    histogram : Histogram
        Labels of all items.
    design_effect : float
        How many items are worth one independent item.

    Returns
    -------
    Histogram
        Without the count vectors of which none is left.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.cells.statistics import Histogram
    >>> from hocal.guarantees.effective_items import fewer_items
    >>> both = Histogram(np.zeros(2, dtype=int), np.eye(2, dtype=int), np.array([60, 40]))
    >>> fewer_items(both, 2.0).multiplicity.tolist()
    [30, 20]
    """
    if design_effect == 1:
        return histogram
    n_items = np.bincount(histogram.cells, histogram.multiplicity)[histogram.cells]
    share = effective_items(n_items.astype(np.int64), design_effect) / n_items
    reached = np.cumsum(histogram.multiplicity)
    first = np.flatnonzero(np.diff(histogram.cells, prepend=-1))  # rows of a cell are together
    sizes = np.diff(np.append(first, len(reached)))
    before = np.repeat((reached - histogram.multiplicity)[first], sizes)
    end = reached - before
    start = end - histogram.multiplicity
    kept = np.floor(end * share + 0.5) - np.floor(start * share + 0.5)
    rows = np.flatnonzero(kept)
    return Histogram(histogram.cells[rows], histogram.counts[rows], kept[rows].astype(np.int64))
