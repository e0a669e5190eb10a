"""Answer, ask a person or refuse: the cheapest for each item, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hocal._base.errors import InputError
from hocal._base.interval import Interval
from hocal._base.shares import percent
from hocal._base.typing import Array, Counts, IntArray
from hocal._base.validation import (
    check_array,
    check_dense_counts,
    check_finite_matrix,
    check_fraction,
    check_number,
    check_same_length,
)
from hocal.guarantees.means import betting_interval
from hocal.uncertainty.mixtures import Mixtures, check_mixtures

__all__ = ["ACTIONS", "Refusal", "RefusalCost", "refusal_rule"]

ACTIONS = ("answer", "ask", "refuse")
THRESHOLD = "confidence"  # the rule that knows only how sure the prediction is
PAIR = 2  # labels of an item: what one person says, and what the next thinks of it


class Prices(NamedTuple):
    """What errors and actions cost."""

    error: Array  #: (n_classes, n_classes) of an answer (row) where a new person says another
    person: float  #: of asking a person
    refusal: float  #: of refusing

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the most that an item can cost, whatever is done."""
        low = min(float(self.error.min()), self.refusal)
        return low, max(self.person + float(self.error.max()), self.refusal)


@dataclass(frozen=True, eq=False)
class RefusalCost:
    """Mean cost of rules per item, on labelled items that had no part in the calibration.

    Attributes
    ----------
    rule : Interval
        The rule's.
    others : dict of str to Interval
        To "answer", "ask" or "refuse" always, and of a threshold on the "confidence": that rule
        knows how sure the prediction is, and what asking costs on average, but not about which
        items people disagree.
    saved : dict of str to Interval
        What the rule saves against each of these, from the same items. Negative where it loses.
    shares : dict of str to float
        Share of the items for which the rule takes each action.
    expected : float
        What the rule expected to cost. Far outside `rule`, the calibration does not hold here.
    """

    rule: Interval
    others: dict[str, Interval]
    saved: dict[str, Interval]
    shares: dict[str, float]
    expected: float

    def __str__(self) -> str:
        cost = self.rule
        taken = ", ".join(f"{action} {percent(share)}" for action, share in self.shares.items())
        others = ", ".join(f"{name} {cell.estimate:.4f}" for name, cell in self.others.items())
        return (
            f"cost per item {cost.estimate:.4f} ({cost.lower:.4f} to {cost.upper:.4f}; "
            f"expected {self.expected:.4f}): {taken}. Other rules: {others}."
        )


@dataclass(frozen=True, eq=False)
class Refusal:
    """What to do with each item.

    Attributes
    ----------
    actions : ndarray of shape (n_items,), str
        "answer", "ask" or "refuse": what is expected to cost least.
    answers : ndarray of shape (n_items,), int64
        The class to answer with, whether the item is answered or not.
    expected : ndarray of shape (n_items, 3)
        Expected cost of each action, in the order of `actions` above.
    prices : Prices
        What errors and actions cost.
    """

    actions: NDArray[np.str_]
    answers: IntArray
    expected: Array
    prices: Prices

    def cost(self, counts: Counts | ArrayLike, *, confidence: float = 0.95) -> RefusalCost:
        """Measure what the rule costs on labelled items, beside simpler rules.

        Parameters
        ----------
        counts : array-like or sparse array of shape (n_items, n_classes)
            Labels of the items, two or more each, of which the rule has seen none.
        confidence : float, default=0.95
            Of each interval on its own.

        Returns
        -------
        RefusalCost
            Means with betting intervals, which hold for any number of independent items.
        """
        delta = 1 - check_fraction(confidence, "confidence")
        labels = check_dense_counts(counts, n_classes=len(self.prices.error), minimum_total=PAIR)
        check_same_length(labels, self.answers, ("counts", "the rule"))
        paid = self._paid(labels)
        taken = {"rule": self._places, **self._simpler_rules()}
        rows = np.arange(len(labels))
        costs = {name: paid[rows, places] for name, places in taken.items()}
        rule = costs.pop("rule")
        low, high = self.prices.limits
        most = high - low
        return RefusalCost(
            _mean(rule, (low, high), delta),
            {name: _mean(each, (low, high), delta) for name, each in costs.items()},
            {name: _mean(each - rule, (-most, most), delta) for name, each in costs.items()},
            {action: float((self.actions == action).mean()) for action in ACTIONS},
            float(self.expected.min(axis=1).mean()),
        )

    @property
    def _places(self) -> IntArray:
        """Number of each item's action."""
        return np.asarray(self.expected.argmin(axis=1), dtype=np.int64)

    def _paid(self, labels: IntArray) -> Array:
        """Return an unbiased estimate of what each action costs for each item."""
        error = self.prices.error
        totals = labels.sum(axis=1)
        answered = (error[self.answers] * labels).sum(axis=1) / totals
        # ordered pairs of two different people, one asked and one who is served
        pairs = ((labels @ error) * labels).sum(axis=1) - labels @ np.diag(error)
        asked = self.prices.person + pairs / (totals * (totals - 1))
        return np.column_stack([answered, asked, np.full(len(labels), self.prices.refusal)])

    def _simpler_rules(self) -> dict[str, IntArray]:
        """Return the actions of rules that know less."""
        average = self.expected.copy()
        average[:, 1] = average[:, 1].mean()  # one cost of asking for all items
        n_items = len(average)
        always = {action: np.full(n_items, place) for place, action in enumerate(ACTIONS)}
        return {THRESHOLD: np.asarray(average.argmin(axis=1), dtype=np.int64), **always}


def refusal_rule(
    mixtures: Mixtures, *, person: float, refusal: float, error: float | ArrayLike = 1.0
) -> Refusal:
    r"""Decide for each item whether to answer, to ask a person or to refuse.

    With :math:`p` the distribution of people's labels of an item, known as far as its mixture says:

    .. math:: \text{answer: } c\,(1 - \max_j E p_j), \quad
              \text{ask: } a + c\,E(1 - \lVert p \rVert^2), \quad \text{refuse: } r

    Asking ends what the model does not know (epistemic), because a person sees the item. It does
    not end disagreement (aleatoric): the next person may differ from the one who was asked. Where
    people disagree, neither helps, and refusing is left.

    Parameters
    ----------
    mixtures : Mixtures
        Of each item, as `SnapshotCalibrator.predict_mixture` gives them.
    person : float
        a, the cost of asking a person, whose label is the answer then.
    refusal : float
        r, the cost of refusing.
    error : float or array-like of shape (n_classes, n_classes), default=1.0
        c, the cost of an answer that a new person does not share; or the cost of each answer (row)
        for each label (column).

    Returns
    -------
    Refusal
        Actions, answers and expected costs, the best possible if the mixtures are calibrated.

    Examples
    --------
    Two items whose prediction is even: people agree about one, and differ about the other.

    >>> import hocal
    >>> from hocal.decisions import refusal_rule
    >>> unknown = hocal.Mixtures.from_vertices([[0.5, 0.5]])
    >>> refusal_rule(unknown, person=0.1, refusal=0.3).actions.tolist()
    ['ask']
    >>> disputed = hocal.Mixtures.from_points([[0.5, 0.5]])
    >>> refusal_rule(disputed, person=0.1, refusal=0.3).actions.tolist()
    ['refuse']
    """
    checked = check_mixtures(mixtures)
    mean = checked.mean()
    if np.isnan(mean).any():
        row = int(np.isnan(mean).any(axis=1).argmax())
        raise InputError("mixtures", "must not be empty", where=f"in row {row}", row=row)
    prices = Prices(
        _check_error(error, mean.shape[1]),
        check_number(person, "person", minimum=0),
        check_number(refusal, "refusal", minimum=0),
    )
    by_answer = mean @ prices.error.T  # (n_items, n_classes)
    left = checked.expect(lambda p: ((p @ prices.error) * p).sum(axis=-1))
    refused = np.full(len(mean), prices.refusal)
    expected = np.column_stack([by_answer.min(axis=1), prices.person + left, refused])
    actions = np.array(ACTIONS)[expected.argmin(axis=1)]
    return Refusal(actions, by_answer.argmin(axis=1).astype(np.int64), expected, prices)


def _check_error(error: float | ArrayLike, n_classes: int) -> Array:
    """Return the cost of each answer for each label."""
    if check_array(error, "error").ndim == 0:
        cost = check_number(error, "error", minimum=0, strict=True)
        return cost * (1 - np.eye(n_classes))
    costs = check_finite_matrix(error, "error")
    if costs.shape != (n_classes, n_classes):
        rule = f"must be a number, or have {n_classes} rows and {n_classes} columns"
        raise InputError("error", rule, value=f"shape {costs.shape}")
    if costs.min() < 0 or costs.max() == 0:
        raise InputError("error", "must be non-negative and not all zero", value=float(costs.min()))
    return costs


def _mean(values: Array, limits: tuple[float, float], delta: float) -> Interval:
    """Return a mean with its limits."""
    if limits[0] == limits[1]:  # everything costs the same
        return Interval(limits[0], *limits)
    return betting_interval(values, limits=limits, delta=delta)
