"""How often a class receives some of an item's labels: what estimators of entropies are made for.

All classes are counted together, or one of them, the leader, apart from all others.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from hocal._base.errors import InputError
from hocal._base.typing import Array, IntArray
from hocal._base.validation import (
    check_array,
    check_dense_counts,
    check_integer,
    check_same_length,
    check_snapshot_size,
    check_weights,
)

__all__ = ["check_leader", "check_reference", "dirichlet_marginal", "snapshot_marginal"]

_REFERENCE_ROUNDING = 1e-5  # relative, of the sum of a reference


def snapshot_marginal(
    counts: Any, k: int, *, weights: ArrayLike | None = None, leader: int | None = None
) -> Array:
    """Return how often a class receives i of k labels, i = 0..k, by exact thinning.

    With more than two classes, sum_j P(s_j = i), which sums to n_classes; with two, P(s_1 = i).

    Parameters
    ----------
    counts : array-like or sparse array of shape (n_items, n_classes)
        Label counts, at least k per item.
    k : int
        Number of labels of a snapshot.
    weights : array-like of shape (n_items,), optional
        Weight, or multiplicity, of each row.
    leader : int, optional
        Class to look at separately, of three or more.

    Returns
    -------
    ndarray of shape (k + 1,)
        The reference of `bernstein_estimator`. With a leader (2, k + 1): of the sum over all other
        classes, and of the leader.

    Examples
    --------
    >>> from hocal.guarantees.snapshot_marginals import snapshot_marginal
    >>> snapshot_marginal([[2, 2, 0]], 2).round(4).tolist()
    [1.3333, 1.3333, 0.3333]
    >>> snapshot_marginal([[2, 2, 0]], 2, leader=0).round(4).tolist()
    [[1.1667, 0.6667, 0.1667], [0.1667, 0.6667, 0.1667]]
    """
    k = check_snapshot_size(k, listed=True)
    checked = check_dense_counts(counts, minimum_total=k)
    mass = np.ones(len(checked)) if weights is None else check_weights(weights)
    check_same_length(mass, checked, ("weights", "counts"))
    leader = check_leader(leader, checked.shape[1])
    if leader is None:
        shown = checked[:, 1:] if checked.shape[1] == 2 else checked
        return _thinned(shown, checked.sum(axis=1), mass, k)
    parts = (np.delete(checked, leader, axis=1), checked[:, [leader]])
    return np.stack([_thinned(part, checked.sum(axis=1), mass, k) for part in parts])


def _thinned(shown: IntArray, totals: IntArray, mass: Array, k: int) -> Array:
    """Return the marginal of some classes.

    Only counts above zero are listed, of many classes a few; each row has the rest of zeros.
    """
    row, label = np.nonzero(shown)
    n_zeros = shown.shape[1] - np.bincount(row, minlength=len(shown))
    total = np.concatenate([totals, totals[row]])
    hits = np.concatenate([np.zeros_like(totals), shown[row, label]])
    weight = np.concatenate([mass * n_zeros, mass[row]])
    radix = totals.max() + 1  # a total and a count in one number
    distinct, inverse = np.unique(radix * total + hits, return_inverse=True)
    total, hits = np.divmod(distinct, radix)
    share = np.bincount(inverse, weight) / mass.sum()
    chances = stats.hypergeom.pmf(np.arange(k + 1), total[:, None], hits[:, None], k)
    return np.asarray(share @ chances)


def dirichlet_marginal(k: int, n_classes: int, *, led: bool = False) -> Array:
    """Return the `snapshot_marginal` of a Dirichlet mixture of total concentration 1."""
    share = 1 / n_classes
    one: Array = stats.betabinom.pmf(np.arange(k + 1), k, share, 1 - share)
    if led:
        return np.stack([(n_classes - 1) * one, one])
    return one * (n_classes if n_classes > 2 else 1)


def check_leader(leader: int | None, n_classes: int) -> int | None:
    """Return a class that is counted apart, where there are others to tell it from."""
    if leader is None:
        return None
    if n_classes == 2:
        raise InputError(
            "leader",
            "must be None for two classes",
            value=str(leader),
            remedy="Leave it out: one count of two says which class has it.",
        )
    return check_integer(leader, "leader", minimum=0, maximum=n_classes - 1)


def check_reference(reference: ArrayLike, k: int, n_classes: int, *, led: bool = False) -> Array:
    """Return count weights scaled to sum to the number of summed classes, in one or two rows."""
    rows = check_array(reference, "reference")
    members = [n_classes - 1, 1] if led else [n_classes if n_classes > 2 else 1]
    shape = (2, k + 1)
    if led and rows.shape != shape:
        raise InputError(
            "reference",
            f"must have the shape {shape} where a class leads",
            value=str(rows.shape),
            remedy="Use snapshot_marginal with the leader.",
        )
    parts = rows if led else [rows]
    checked = [_check_part(*pair, k) for pair in zip(parts, members, strict=True)]
    return np.stack(checked)


def _check_part(reference: ArrayLike, total: int, k: int) -> Array:
    weights = check_weights(reference, "reference")
    complete = math.isclose(weights.sum(), total, rel_tol=_REFERENCE_ROUNDING)
    if len(weights) != k + 1 or not complete:
        raise InputError(
            "reference",
            f"must hold k + 1 = {k + 1} weights that sum to {total}",
            value=f"{len(weights)} that sum to {weights.sum():.6g}",
            remedy="Use snapshot_marginal.",
        )
    return np.asarray(weights * (total / weights.sum()))
