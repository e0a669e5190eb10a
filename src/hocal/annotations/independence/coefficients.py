"""Fleiss' kappa and Krippendorff's alpha, from pair disagreement within and between items.

Two labels drawn from one item differ less often than two labels of different items, unless items
do not matter. Fleiss' kappa and Krippendorff's alpha are one less the ratio of the two; kappa
weighs all items alike, alpha all labels alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hocal._base.typing import Array
from hocal.uncertainty.moments import pair_disagreement

__all__ = ["alpha", "kappa", "middle_ranks", "pair_totals", "square_sums"]


def square_sums(matrix: Any) -> Array:
    """Return the sum of squares of each row, of a dense or a sparse matrix."""
    squares = matrix.multiply(matrix) if hasattr(matrix, "multiply") else np.square(matrix)
    return np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()


def middle_ranks(totals: Array) -> Array:
    """Return the middle rank of the labels of each class, on the last axis: below + half of own."""
    return np.asarray(np.cumsum(totals, axis=-1) - totals / 2)


def pair_totals(counts: Array, first: Array, second: Array) -> Array:
    """Return sum_jk c_j c_k (a_j - a_k) (b_j - b_k), over classes on the last axis.

    With a = b = middle ranks these are squared distances in rank, added up over ordered pairs.
    """
    both = (counts * (first * second)).sum(axis=-1)
    products = (counts * first).sum(axis=-1) * (counts * second).sum(axis=-1)
    return np.asarray(2 * (counts.sum(axis=-1) * both - products))


def kappa(counts: Any, totals: Array) -> float:
    """Return Fleiss' kappa, 1 - mean disagreement / (1 - sum_j q_j^2), q the mean shares.

    Where all items have as many labels this is the textbook's; else items still weigh alike. NaN
    where all labels are of one class.
    """
    shares = np.asarray((counts.T @ (1 / totals)) / len(totals), dtype=np.float64)
    between = 1 - float(shares @ shares)
    within = float(pair_disagreement(counts).mean())
    return 1 - within / between if between > 0 else np.nan


def alpha(counts: Any, totals: Array, *, ordinal: bool = False) -> float:
    """Return Krippendorff's alpha, nominal or ordinal, of items with two labels or more.

    Pairs are weighed by 1 / (m - 1), so that each label weighs alike, and expected disagreement is
    that of all pairs of labels, drawn without replacement. NaN where all labels are of one class.
    """
    every = np.asarray(counts.sum(axis=0), dtype=np.float64).ravel()
    n_labels = float(every.sum())
    if ordinal:
        ranks = middle_ranks(every)
        pairs = pair_totals(np.asarray(counts, dtype=np.float64), ranks, ranks)
        expected = float(pair_totals(every, ranks, ranks))
    else:
        pairs = totals**2 - square_sums(counts)
        expected = n_labels**2 - float(every @ every)
    within = float((pairs / (totals - 1)).sum()) / n_labels
    between = expected / (n_labels * (n_labels - 1))
    return 1 - within / between if between > 0 else np.nan
