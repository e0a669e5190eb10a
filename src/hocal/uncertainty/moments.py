"""Moments of the true mixture from label counts.

A k-snapshot reveals the moments of a mixture up to order k, and nothing else (the paper's lemma on
moments of k-th order projections).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from hocal._base.errors import InputError
from hocal._base.typing import Array, Counts, IntArray, Mask
from hocal._base.validation import (
    at_most,
    check_array,
    check_counts,
    check_dense_counts,
    check_flag,
    check_same_length,
    check_snapshot_size,
    check_weights,
    check_whole,
    label_totals,
)

__all__ = [
    "CentralMoments",
    "average_moments",
    "binary_moments",
    "central_moments",
    "factorial_moments",
    "pair_disagreement",
    "pair_shares",
    "snapshot_weights",
]


MAX_EXPONENT = 10_000  # of a moment: a step for each, and more than an item has labels
_ROUNDING = 1e-12  # of a Bernstein sum and of a moment, relative to its largest term


class CentralMoments(NamedTuple):
    """Moments of a binary mixture about its mean.

    Attributes
    ----------
    values : ndarray of shape (..., order)
        Central moments of order 1, 2, ...; the first is 0.
    feasible : ndarray of bool of shape (...)
        False where an even moment is negative, so that no mixture has these moments.
    """

    values: Array
    feasible: Mask


def factorial_moments(counts: Any, exponents: ArrayLike) -> Array:
    """Estimate prod_j p_j^a_j for each item from all its labels, without bias.

    The estimate is prod_j (s_j)_{a_j} / (n)_{|a|} with falling factorials and the item's own total
    n: the chance that |a| of its labels, drawn in order, show the pattern a.

    Parameters
    ----------
    counts : array-like or sparse array of shape (n_items, n_classes)
        Label counts; totals may differ.
    exponents : array-like of shape (n_classes,) or (n_moments, n_classes)
        The exponents a; every item needs at least sum(a) labels.

    Returns
    -------
    ndarray of shape (n_items,) or (n_items, n_moments)
        One estimate per item and moment. Trust their average, not a single one.

    Examples
    --------
    >>> from hocal.uncertainty.moments import factorial_moments
    >>> factorial_moments([[1, 2], [0, 4]], [0, 2]).round(4).tolist()
    [0.3333, 1.0]
    """
    powers = np.atleast_2d(_check_exponents(exponents))  # (n_moments, n_classes)
    orders = powers.sum(axis=1)
    checked = check_dense_counts(counts, n_classes=powers.shape[1])
    totals = checked.sum(axis=1)
    if orders.max() > totals.min():
        row = int(np.argmin(totals))
        raise InputError(
            "exponents",
            "must sum to at most the labels of every item",
            value=f"order {orders.max()} with {totals[row]} labels",
            where=f"in row {row}",
            remedy="Lower the order, or drop items with fewer labels.",
        )
    result = np.empty((len(checked), len(powers)))
    for column, power in enumerate(powers):
        result[:, column] = _chance_of_pattern(checked, totals, power)
    return result[:, 0] if np.ndim(exponents) == 1 else result


def pair_disagreement(counts: Any, *, ordinal: bool = False) -> Array:
    """Return the share of pairs of an item's labels that differ, or half their distance in order.

    It is 1 - sum_j s_j (s_j - 1) / (n (n - 1)), unbiased for the item's Brier uncertainty
    1 - ||p||^2, the chance that two people disagree. For ordered classes it is
    sum_j S_j (n - S_j) / (n (n - 1)) with the cumulative counts S, unbiased for the `Ordinal`
    entropy.

    Parameters
    ----------
    counts : array-like or sparse array of shape (n_items, n_classes)
        Label counts; totals may differ, and rows may be without labels.
    ordinal : bool, default=False
        Whether classes are in order.

    Returns
    -------
    ndarray of shape (n_items,)
        Trust the average over many items, not a single one; NaN where an item has fewer than two
        labels.

    Examples
    --------
    >>> from hocal.uncertainty.moments import pair_disagreement
    >>> pair_disagreement([[1, 1], [3, 1], [1, 0]]).tolist()
    [1.0, 0.5, nan]
    >>> pair_disagreement([[1, 0, 1], [1, 1, 0]], ordinal=True).tolist()
    [1.0, 0.5]
    """
    check_flag(ordinal, "ordinal")
    return pair_shares(check_counts(counts, minimum_total=0), ordinal=ordinal)


def pair_shares(counts: Counts, *, ordinal: bool = False) -> Array:
    """Return `pair_disagreement` of counts that were checked before."""
    totals = label_totals(counts)
    pairs = totals * (totals - 1)  # in order
    if ordinal:
        dense = counts if isinstance(counts, np.ndarray) else counts.toarray()
        below = np.cumsum(dense, axis=1)
        apart = (below * (totals[:, None] - below)).sum(axis=1)
    else:
        # the product is one by entries, sparse or not
        apart = pairs - (label_totals(counts * counts) - totals)
    result = np.full(len(totals), np.nan)
    np.divide(apart, pairs, out=result, where=pairs > 0)
    return result


def average_moments(counts: Any, exponents: ArrayLike, *, weights: ArrayLike | None = None) -> Any:
    """Estimate E[prod_j p_j^a_j] over items, the average of `factorial_moments`.

    Parameters
    ----------
    counts : array-like or sparse array of shape (n_items, n_classes)
        Label counts; totals may differ.
    exponents : array-like of shape (n_classes,) or (n_moments, n_classes)
        The exponents a.
    weights : array-like of shape (n_items,), optional
        Weight, or multiplicity, of each row.

    Returns
    -------
    float or ndarray of shape (n_moments,)
        Unbiased for the mixture the items come from.

    Examples
    --------
    >>> from hocal.uncertainty.moments import average_moments
    >>> average_moments([[1, 2], [0, 4]], [[0, 1], [0, 2]]).round(4).tolist()
    [0.8333, 0.6667]
    """
    each = factorial_moments(counts, exponents)
    if weights is not None:
        weights = check_weights(weights)
        check_same_length(weights, each, ("weights", "counts"))
    return np.average(each, axis=0, weights=weights)


def binary_moments(counts: Any, order: int, *, weights: ArrayLike | None = None) -> Array:
    """Estimate the moments of the second class's probability, m_i = E[C(s, i) / C(n, i)].

    Parameters
    ----------
    counts : array-like or sparse array of shape (n_items, 2)
        Label counts of two classes.
    order : int
        Highest moment.
    weights : array-like of shape (n_items,), optional
        Weight, or multiplicity, of each row.

    Returns
    -------
    ndarray of shape (order,)
        Unbiased; they may be infeasible, see `central_moments`.

    Examples
    --------
    >>> from hocal.uncertainty.moments import binary_moments
    >>> binary_moments([[1, 1]], 2).tolist()
    [0.5, 0.0]
    """
    orders = np.arange(1, check_snapshot_size(order, "order", listed=True) + 1)
    exponents = np.stack([0 * orders, orders], axis=-1)
    return np.asarray(average_moments(counts, exponents, weights=weights))


def central_moments(moments: ArrayLike, *, clip: bool = False) -> CentralMoments:
    """Return the moments about the mean, c_j = sum_i C(j, i) m_i (-m_1)^(j-i).

    The paper drops the sign (docs/errata.md, E1).

    Parameters
    ----------
    moments : array-like of shape (..., order)
        Raw moments m_1, m_2, ... on the last axis.
    clip : bool, default=False
        Replace negative even moments by 0; the flag still tells.

    Returns
    -------
    CentralMoments
        Values and whether they are feasible.

    Examples
    --------
    >>> from hocal.uncertainty.moments import central_moments
    >>> central_moments([0.5, 0.0])  # what two labels, one of each class, suggest
    CentralMoments(values=array([ 0.  , -0.25]), feasible=np.False_)
    """
    check_flag(clip, "clip")
    raw = np.atleast_1d(check_array(moments, "moments"))
    raw = np.concatenate([np.ones((*raw.shape[:-1], 1)), raw], axis=-1)  # m_0 = 1
    values = np.empty_like(raw[..., 1:])
    for j in range(1, raw.shape[-1]):
        i = np.arange(j + 1)
        powers = (-raw[..., 1:2]) ** (j - i)
        terms = special.comb(j, i) * raw[..., : j + 1] * powers
        values[..., j - 1] = terms.sum(axis=-1)
    even = values[..., 1::2]
    feasible: Any = (even >= -_ROUNDING).all(axis=-1)  # NumPy's stubs call a 0-d result a scalar
    if clip:
        values[..., 1::2] = np.maximum(even, 0)
    return CentralMoments(values, feasible)


def snapshot_weights(moments: ArrayLike) -> Array:
    """Return the snapshot distribution P(s_1 = i), i = 0..k, with the moments m_1, ..., m_k."""
    raw = np.append(1.0, check_array(moments, "moments", ndim=1))
    k = len(raw) - 1
    terms = []
    for i in range(k + 1):
        rest = np.arange(k - i + 1)
        signs = (-1.0) ** rest
        terms.append(special.comb(k - i, rest) * signs @ raw[i:])
    return np.asarray(special.comb(k, np.arange(k + 1)) * terms)


def _chance_of_pattern(counts: IntArray, totals: IntArray, power: IntArray) -> Array:
    """Return prod_j (s_j)_{a_j} / (n)_{|a|}, label by label: each factor is at most 1."""
    chance = np.ones(len(counts))
    n_drawn = 0
    for j in np.flatnonzero(power):
        for n_seen in range(power[j]):
            chance *= (counts[:, j] - n_seen) / (totals - n_drawn)
            n_drawn += 1
    return chance


def _check_exponents(exponents: ArrayLike) -> IntArray:
    array = check_whole(exponents, "exponents")
    if array.ndim not in (1, 2) or not array.size:
        rule = "must have the shape (n_classes,) or (n_moments, n_classes)"
        raise InputError("exponents", rule, value=f"{array.shape}")
    at_most(int(array.max()), "exponents", MAX_EXPONENT)
    return array
