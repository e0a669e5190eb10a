"""Snapshots: the labels of an item as a vector of counts over the classes.

A k-snapshot is a count vector that sums to k; Y^(k) is the set of all of them. Items may have
different numbers of labels. Everything here is vectorised over items: the loops run over classes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse, special

from hocal._base.errors import InputError
from hocal._base.typing import Array, Index, IntArray
from hocal._base.validation import (
    check_dense_counts,
    check_flag,
    check_integer,
    check_n_classes,
    check_random_state,
    check_simplex,
    check_snapshot_size,
    check_whole,
    refuse_large,
)
from hocal.uncertainty.distinct_counts import CODE_LIMIT

__all__ = [
    "SubSnapshots",
    "draw_labels",
    "draw_snapshots",
    "enumerate_snapshots",
    "log_multiplicity",
    "n_snapshots",
    "rank_snapshots",
    "shown_size",
    "sub_snapshots",
]

MAX_SNAPSHOTS = 1_000_000  # a table of this many 10-class snapshots takes 80 MB
MAX_HYPERGEOMETRIC = 1_000_000_000  # labels of an item: numpy draws from no more
MAX_CHOSEN = 10_000  # of a binomial coefficient: it has as many digits, and takes a second
MAX_THINNED = 20_000_000  # rows of (item, snapshot) that are listed at once


class SubSnapshots(NamedTuple):
    """All k-snapshots contained in each item's labels, with their hypergeometric probabilities."""

    items: Index  #: (n_rows,) the item a row belongs to, ascending
    snapshots: IntArray  #: (n_rows, n_classes)
    probabilities: Array  #: (n_rows,) they sum to 1 for each item


def n_snapshots(k: int, n_classes: int) -> int:
    """Return |Y^(k)| = C(k + n_classes - 1, n_classes - 1), the number of k-snapshots.

    Parameters
    ----------
    k : int
        Number of labels.
    n_classes : int
        Number of label classes.

    Returns
    -------
    int
        The exact count, however large.

    Examples
    --------
    >>> from hocal.uncertainty.snapshots import n_snapshots
    >>> [n_snapshots(k, 10) for k in (1, 2, 3, 4, 5, 10)]
    [10, 55, 220, 715, 2002, 92378]
    """
    k = check_snapshot_size(k, minimum=0)
    n_classes = check_n_classes(n_classes)
    fewer = min(k, n_classes - 1)
    if fewer > MAX_CHOSEN:
        rule = f"must be such that one of them is at most {MAX_CHOSEN:,}"
        raise InputError("k and n_classes", rule, value=f"{k:,} and {n_classes:,}")
    return math.comb(k + n_classes - 1, fewer)


def shown_size(size: int) -> str:
    """Return a number of snapshots as an error shows it: in full, unless that takes lines."""
    return str(size) if size < CODE_LIMIT else f"about 10**{math.floor(math.log10(size))}"


def enumerate_snapshots(k: int, n_classes: int, *, max_size: int = MAX_SNAPSHOTS) -> IntArray:
    """List Y^(k), one snapshot per row, in lexicographic order.

    Parameters
    ----------
    k : int
        Number of labels.
    n_classes : int
        Number of label classes.
    max_size : int, default=1_000_000
        Refuse to list more snapshots than this.

    Returns
    -------
    ndarray of shape (n_snapshots(k, n_classes), n_classes)
        The snapshots.

    Examples
    --------
    >>> from hocal.uncertainty.snapshots import enumerate_snapshots
    >>> enumerate_snapshots(2, 2).tolist()
    [[0, 2], [1, 1], [2, 0]]
    """
    k = check_snapshot_size(k, minimum=0)
    n_classes = check_n_classes(n_classes)
    size = n_snapshots(k, n_classes)
    if size > check_integer(max_size, "max_size", minimum=1):
        raise InputError(
            "k",
            f"must give at most {max_size} snapshots",
            value=f"{shown_size(size)} for k={k} and {n_classes} classes",
            remedy="Use a smaller k, merge classes, or raise max_size.",
        )
    what = f"{size:,} snapshots of {n_classes:,} classes"
    n_numbers = (3 * n_classes + 7) * size  # measured while the last class is added
    refuse_large("k", n_numbers, what, "Use a smaller k, or merge classes.")
    return _bounded_compositions(np.full((1, n_classes), k, dtype=np.int64), k, max_size)[1]


def rank_snapshots(counts: Any) -> IntArray:
    """Return the row of `enumerate_snapshots` that each count vector has, without listing Y^(k).

    Parameters
    ----------
    counts : array of shape (n_items, n_classes)
        Count vectors; each is ranked among those with its own total.

    Returns
    -------
    ndarray of shape (n_items,)
        Ranks from 0 to n_snapshots - 1.

    Examples
    --------
    >>> from hocal.uncertainty.snapshots import enumerate_snapshots, rank_snapshots
    >>> rank_snapshots(enumerate_snapshots(2, 3)).tolist()
    [0, 1, 2, 3, 4, 5]
    """
    checked = check_dense_counts(counts, minimum_total=0)
    remaining = checked.sum(axis=1)
    rank = np.zeros(len(checked), dtype=np.int64)
    for j, later in enumerate(range(checked.shape[1] - 1, 0, -1)):
        left = remaining - checked[:, j]
        orders, places = np.unique(np.concatenate([remaining, left]), return_inverse=True)
        largest = math.comb(int(orders[-1]) + later, later)
        if largest >= CODE_LIMIT:
            raise InputError(
                "counts",
                "must have a rank below 2**62",
                value=f"{shown_size(largest)} snapshots",
                remedy="Use fewer labels.",
            )
        sizes = np.array([math.comb(r + later, later) for r in orders.tolist()], dtype=np.int64)
        before, after = sizes[places.reshape(2, -1)]
        # Snapshots with a smaller count here: a hockey-stick sum over that count.
        rank += before - after
        remaining = left
    return rank


def draw_labels(probabilities: ArrayLike, k: int, *, random_state: Any = None) -> IntArray:
    """Draw k independent labels for each item from its label distribution.

    Parameters
    ----------
    probabilities : array of shape (n_items, n_classes)
        Label distributions; a sum that strays from 1 by rounding is divided out.
    k : int
        Number of labels per item.
    random_state : int, Generator or None
        Seed or source of randomness.

    Returns
    -------
    ndarray of shape (n_items, n_classes)
        Count vectors with sum k.

    Examples
    --------
    >>> from hocal.uncertainty.snapshots import draw_labels
    >>> draw_labels([[0.5, 0.5], [1.0, 0.0]], 4, random_state=0).sum(axis=1).tolist()
    [4, 4]
    """
    p = check_simplex(probabilities, ndim=2)
    k = check_snapshot_size(k)
    return check_random_state(random_state).multinomial(k, p / p.sum(axis=1, keepdims=True))


def draw_snapshots(
    counts: Any, k: int, *, replace: bool = False, random_state: Any = None
) -> IntArray:
    """Draw k of each item's labels at random.

    Parameters
    ----------
    counts : array or sparse matrix of shape (n_items, n_classes)
        Label counts; without replacement each item needs at least k labels.
    k : int
        Number of labels to draw.
    replace : bool, default=False
        Whether a label may be drawn twice; without, this is thinning by sampling.
    random_state : int, Generator or None
        Seed or source of randomness.

    Returns
    -------
    ndarray of shape (n_items, n_classes)
        Count vectors with sum k.

    Examples
    --------
    >>> from hocal.uncertainty.snapshots import draw_snapshots
    >>> draw_snapshots([[3, 0], [0, 7]], 2, random_state=0).tolist()
    [[2, 0], [0, 2]]
    """
    k = check_snapshot_size(k)
    check_flag(replace, "replace")
    checked = check_dense_counts(counts, minimum_total=1 if replace else k)
    generator = check_random_state(random_state)
    most = int(checked.sum(axis=1).max())
    if not replace and most >= MAX_HYPERGEOMETRIC:
        rule = f"must sum to less than {MAX_HYPERGEOMETRIC:,} to draw without replacement"
        raise InputError("counts", rule, value=most)
    if replace:
        return generator.multinomial(k, checked / checked.sum(axis=1, keepdims=True))
    others = checked.sum(axis=1)
    wanted = np.full(len(checked), k)
    drawn = np.empty_like(checked)
    for j in range(checked.shape[1]):
        others = others - checked[:, j]
        drawn[:, j] = generator.hypergeometric(checked[:, j], others, wanted)
        wanted = wanted - drawn[:, j]
    return drawn


def sub_snapshots(counts: Any, k: int, *, max_size: int = MAX_THINNED) -> SubSnapshots:
    """Thin each item to k labels exactly: every k-snapshot in its labels, with its probability.

    The probability of s' given s with n labels is prod_j C(s_j, s'_j) / C(n, k), so an
    item counts with its whole distribution instead of one random draw: same mean, less variance.

    Parameters
    ----------
    counts : array or sparse matrix of shape (n_items, n_classes)
        Label counts, at least k in each row.
    k : int
        Number of labels to keep.
    max_size : int, default=20_000_000
        Refuse to list more rows than this.

    Returns
    -------
    SubSnapshots
        Items, snapshots and probabilities, one row for each (item, snapshot).

    Examples
    --------
    >>> from hocal.uncertainty.snapshots import sub_snapshots
    >>> thinned = sub_snapshots([[2, 1]], 2)
    >>> thinned.snapshots.tolist(), thinned.probabilities.round(3).tolist()
    ([[1, 1], [2, 0]], [0.667, 0.333])
    """
    k = check_snapshot_size(k)
    max_size = check_integer(max_size, "max_size", minimum=1)
    return thin_checked(check_dense_counts(counts, minimum_total=k), k, max_size)


def thin_checked(checked: IntArray, k: int, max_size: int = MAX_THINNED) -> SubSnapshots:
    """Do as `sub_snapshots` does, for dense counts that have been checked."""
    # Only classes with labels matter: move them to the front, in order, and forget the others.
    n_present = int((checked > 0).sum(axis=1).max())
    order = np.argsort(checked == 0, axis=1, kind="stable")[:, :n_present]
    present = np.take_along_axis(checked, order, axis=1)
    items, kept = _bounded_compositions(present, k, max_size)
    chosen = log_choose(present[items], kept).sum(axis=1)
    ways = chosen - log_choose(checked.sum(axis=1), k)[items]
    snapshots = np.zeros((len(items), checked.shape[1]), dtype=np.int64)
    np.put_along_axis(snapshots, order[items], kept, axis=1)
    return SubSnapshots(items, snapshots, np.exp(ways))


def log_multiplicity(counts: Any) -> Array:
    """Return log k! / prod_j s_j!, of the number of orders in which a snapshot's labels can arrive.

    Parameters
    ----------
    counts : array of shape (..., n_classes), or sparse matrix
        Count vectors.

    Returns
    -------
    ndarray of shape (...)
        Natural logarithms of the multinomial coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.uncertainty.snapshots import log_multiplicity
    >>> float(np.exp(log_multiplicity([2, 1])).round())
    3.0
    """
    if sparse.issparse(counts):
        logs = sparse.csr_array(counts).astype(np.float64)
        orders = special.gammaln(logs.sum(axis=1) + 1)
        logs.data = special.gammaln(logs.data + 1)
        return np.asarray(orders - logs.sum(axis=1))
    array = check_whole(counts, "counts")
    orders = special.gammaln(array.sum(axis=-1) + 1)
    return np.asarray(orders - special.gammaln(array + 1).sum(axis=-1))


def _bounded_compositions(bounds: IntArray, k: int, max_size: int) -> tuple[Index, IntArray]:
    """List all count vectors with sum k below each row of `bounds`, extended class by class."""
    rows = np.arange(len(bounds))
    chosen = np.empty((len(bounds), 0), dtype=np.int64)
    left = np.full(len(bounds), k)
    later = bounds.sum(axis=1)
    for j in range(bounds.shape[1]):
        later = later - bounds[:, j]  # labels available in the classes that follow
        low = np.maximum(left - later[rows], 0)
        choices = np.minimum(bounds[rows, j], left) - low + 1
        if choices.sum() > max_size:
            raise InputError(
                "k",
                f"must give at most {max_size} sub-snapshots",
                value=f"{choices.sum()} or more for k={k}",
                remedy="Use a smaller k, draw at random with draw_snapshots, or raise max_size.",
            )
        parent = np.repeat(np.arange(len(rows)), choices)
        offset = np.arange(len(parent)) - np.repeat(np.cumsum(choices) - choices, choices)
        column = low[parent] + offset
        rows = rows[parent]
        chosen = np.concatenate([chosen[parent], column[:, None]], axis=1)
        left = left[parent] - column
    return rows, chosen


def log_choose(n: NDArray[Any], r: Any) -> Array:
    """Return log C(n, r), elementwise."""
    chosen = special.gammaln(np.asarray(r) + 1)
    others = special.gammaln(n - r + 1)
    return np.asarray(special.gammaln(n + 1) - chosen - others)
