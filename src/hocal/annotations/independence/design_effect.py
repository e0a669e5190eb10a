"""Measure what annotators shared between items do to the sampling error of disagreement."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hocal._base.typing import IntArray
from hocal.annotations.independence.vote_layout import Layout, add_up

__all__ = ["DesignEffect", "design_effect"]


class DesignEffect(NamedTuple):
    """How much wider intervals must be because the same annotators judge many items.

    Attributes
    ----------
    disagreement : float
        Mean over items of the share of pairs of labels that differ: the unbiased Brier aleatoric
        uncertainty.
    standard_error : float
        Its standard error with annotators as a second source of chance.
    independent_standard_error : float
        Its standard error if items were independent.
    design_effect : float
        Ratio of the two variances. Estimated, so it may fall below 1 by chance; NaN without items
        that can tell.
    widening : float
        Factor for the width of an interval that takes items as independent, sqrt(design_effect); at
        least 1.
    p_value : float
        Permutation p-value of annotators raising or lowering disagreement alike on all their items:
        above alpha, the design effect may be chance.
    n_items : int
        Items it was measured on, those with three labels or more: of two labels that differ,
        neither is the odd one.
    n_effective_items : float
        Independent items that would tell as much; at most `n_items`.
    """

    disagreement: float
    standard_error: float
    independent_standard_error: float
    design_effect: float
    widening: float
    p_value: float
    n_items: int
    n_effective_items: float


def design_effect(
    item: IntArray, annotator: IntArray, layout: Layout, p_value: float
) -> DesignEffect:
    """Compare the variance of mean pairwise disagreement with that of independent items.

    An annotator's influence on an item is what leaving them out does to its disagreement. Products
    of their influences on two different items estimate the covariance of these items: without bias
    when the items share one annotator, and when the same panel judges all items.

    Parameters
    ----------
    item, annotator : ndarray of shape (n_judgements,)
        All judgements, one of each item and annotator.
    layout : Layout
        Those of items on which labels differ.
    p_value : float
        Of the test whether influences are chance, passed on.
    """
    totals = np.bincount(item)
    n_items = int(np.count_nonzero(totals >= 3))
    differs = layout.size * (1 - layout.row_probability[layout.own_row]) / (layout.size - 1)
    disagreement = add_up(layout.item, differs / layout.size, len(totals))[totals >= 3]
    mean = float(disagreement.mean()) if n_items else np.nan
    scatter = float(disagreement.var(ddof=1)) if n_items > 1 else 0.0
    if scatter == 0:
        return DesignEffect(mean, np.nan, np.nan, np.nan, np.nan, p_value, n_items, np.nan)
    sums = add_up(layout.annotator, layout.influence, layout.n_annotators)
    influence = layout.influence
    n_annotators = len(np.unique(annotator[totals[item] >= 3]))
    # The factor is that of a jackknife over annotators; it makes the estimate unbiased for a fixed
    # panel.
    shared = (n_annotators - 1) / n_annotators * float(sums @ sums - influence @ influence)
    effect = 1 + shared / (scatter * n_items)
    error = math.sqrt(scatter / n_items)
    return DesignEffect(
        disagreement=mean,
        standard_error=error * math.sqrt(max(effect, 0.0)),
        independent_standard_error=error,
        design_effect=effect,
        widening=math.sqrt(max(effect, 1.0)),
        p_value=p_value,
        n_items=n_items,
        n_effective_items=n_items / max(effect, 1.0),
    )
