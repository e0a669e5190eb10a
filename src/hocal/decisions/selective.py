"""Risk against coverage: what is lost if only the items of the lowest scores are answered."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from hocal._base.errors import InputError
from hocal._base.interval import Interval
from hocal._base.typing import Array, Index
from hocal._base.validation import check_array, check_fraction, check_number, check_same_length

__all__ = ["RiskCoverage", "risk_coverage"]

FEWEST = 2  # items, for a standard error


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """Mean loss for each share of the items that is answered.

    Attributes
    ----------
    coverage : ndarray of shape (n_items,)
        Share of the items that is answered: 1/n, 2/n, ..., 1.
    risk : ndarray of shape (n_items,)
        Mean loss of the items that are answered, those of the lowest scores; with `otherwise`, mean
        loss of all items, the others being handed on. Items of equal score come in any order: the
        mean over the orders is given.
    area : Interval
        Mean of the risk over all coverages, with its limits.
    """

    coverage: Array
    risk: Array
    area: Interval

    def at(self, coverage: float) -> float:
        """Return the risk where so large a share of the items is answered, or a little more."""
        share = check_number(coverage, "coverage", minimum=0, maximum=1, strict=True)
        return float(self.risk[np.searchsorted(self.coverage, share * (1 - 1e-12))])

    def __str__(self) -> str:
        area = self.area
        return f"area {area.estimate:.4f} ({area.lower:.4f} to {area.upper:.4f})"


def risk_coverage(
    scores: ArrayLike,
    losses: ArrayLike,
    *,
    otherwise: ArrayLike | None = None,
    confidence: float = 0.95,
) -> RiskCoverage:
    r"""Answer the items of the lowest scores first and follow the mean loss.

    .. math:: \text{area} = \frac1n \sum_k \frac1k \sum_{i \le k} \ell_{(i)}
              \to E[-\ell \ln F(s)]

    where F is the distribution of the scores. With `otherwise`, the items that are not answered
    cost something too, and the mean is over all of them: the area tends to
    :math:`E[o + (\ell - o)(1 - F(s))]`.

    Parameters
    ----------
    scores : array-like of shape (n_items,)
        Doubt about each item: predictive, epistemic, aleatoric, or any other.
    losses : array-like of shape (n_items,)
        What answering costs, such as the share of an item's labels that differ from the answer.
        The scores must have been made without these labels.
    otherwise : array-like of shape (n_items,), optional
        What an item costs that is not answered, such as how often two people differ about it
        (`hocal.uncertainty.pair_disagreement`) if a person is asked. By default it is left out.
    confidence : float, default=0.95
        Of the limits of the area.

    Returns
    -------
    RiskCoverage
        The curve and its area. The limits count what single items contribute, themselves and by
        moving the ranks of others; they are right for many items, of which some tens have losses
        (simulated, one error in six: of intervals of 95%, 93% hold the truth with 300 items,
        95% with 2,000).

    Examples
    --------
    >>> from hocal.decisions import risk_coverage
    >>> curve = risk_coverage([0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1])
    >>> curve.risk.round(2).tolist(), round(curve.area.estimate, 3)
    ([0.0, 0.0, 0.33, 0.5], 0.208)
    """
    level = check_fraction(confidence, "confidence")
    doubt = _check_numbers(scores, "scores")
    lost = _check_numbers(losses, "losses")
    check_same_length(doubt, lost, ("scores", "losses"))
    if len(doubt) < FEWEST:
        raise InputError("scores", f"must have at least {FEWEST} items", value=len(doubt))
    handed = None
    if otherwise is not None:
        handed = _check_numbers(otherwise, "otherwise")
        check_same_length(doubt, handed, ("scores", "otherwise"))
    return _follow(_Ordered.of(doubt, lost, handed), level)


def _check_numbers(values: ArrayLike, name: str) -> Array:
    """Return finite numbers, one for each item."""
    numbers = check_array(values, name, ndim=1)
    wrong = ~np.isfinite(numbers)
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(
            name, "must be finite", value=float(numbers[row]), where=f"in row {row}", row=row
        )
    return numbers


class _Ordered(NamedTuple):
    """Items by score; whatever belongs to items of equal score is averaged."""

    gains: Array  #: (n_items,) loss of answering less that of handing on, averaged over ties
    losses: Array  #: (n_items,) the same, item by item
    rest: Array  #: (n_items,) loss of handing on
    steps: Array  #: (n_items,) weight of the k-th sum of gains in the risk
    groups: Index  #: (n_items,) number of the score

    @classmethod
    def of(cls, scores: Array, losses: Array, otherwise: Array | None) -> _Ordered:
        """Sort items."""
        order = np.argsort(scores, kind="stable")
        n_items = len(scores)
        rest = np.zeros(n_items) if otherwise is None else otherwise[order]
        own = losses[order] - rest
        groups = np.unique(scores[order], return_inverse=True)[1]
        sizes = np.arange(1, n_items + 1) if otherwise is None else np.full(n_items, n_items)
        return cls(_averaged(own, groups), own, rest, 1 / sizes, groups)


def _follow(items: _Ordered, confidence: float) -> RiskCoverage:
    """Return curve, area and its limits."""
    n_items = len(items.gains)
    risk = items.rest.mean() + np.cumsum(items.gains) * items.steps
    area = float(risk.mean())
    # how much a loss counts: in every sum from its own rank on
    weights = _averaged(_from_the_end(items.steps), items.groups)
    # an item also moves those behind it one rank further
    moved = _averaged(_from_the_end(items.gains * items.steps), items.groups)
    influence = items.rest + items.losses * weights - moved
    error = float(influence.std(ddof=1)) / math.sqrt(n_items)
    width = float(special.ndtri((1 + confidence) / 2)) * error
    coverage = np.arange(1, n_items + 1) / n_items
    positive = min((items.losses + items.rest).min(), items.rest.min()) >= 0
    limits = Interval(area, area - width, area + width)
    return RiskCoverage(coverage, risk, limits.clip(0.0, math.inf) if positive else limits)


def _from_the_end(values: Array) -> Array:
    """Return the sum of each value and all behind it."""
    return np.asarray(values[::-1].cumsum()[::-1])


def _averaged(values: Array, groups: Index) -> Array:
    """Return for each value the mean of its group."""
    return np.asarray((np.bincount(groups, values) / np.bincount(groups))[groups])
