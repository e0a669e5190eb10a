"""Purchases: how many labels for which items, so that a budget brings most.

Each item has a curve of expected gains (`hocal.decisions.label_gains`). Where a curve is concave,
buying the label of the largest next gain again and again is optimal. Where it is not, as for a
majority that one label cannot overturn, labels are bought in the bundles of its least concave
majorant: two at once, if the second is what counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.errors import InputError
from hocal._base.frames import to_frame
from hocal._base.plurals import counted
from hocal._base.typing import Array, Counts, Index, IntArray
from hocal._base.validation import check_choice, check_counts, check_integer, check_whole
from hocal.decisions.label_gains import OBJECTIVES, LabelGains, exact_labels, expected_gains
from hocal.uncertainty.likelihood import pair_with_counts
from hocal.uncertainty.mixtures import Mixtures, check_mixtures

__all__ = ["NextLabels", "buy_labels", "check_purchase", "next_labels"]

DEFAULT_LIMIT = 10  # labels for one item at once: more are better bought when these have come
MAX_LIMIT = 1_000  # the table of gains has a column for each
_WORDS = {
    "distribution": "the squared error of the label distribution",
    "aleatoric": "the squared error of the aleatoric uncertainty",
    "majority": "the probability that a majority is wrong",
}


@dataclass(frozen=True, eq=False, repr=False)
class NextLabels:
    """How many labels to buy for each item, and what they are expected to bring.

    Attributes
    ----------
    labels : ndarray of shape (n_items,), int
        Labels to buy for each item. They add up to the budget, or to less where what
        is left of it is expected to bring nothing.
    gain : ndarray of shape (n_items,)
        By how much these labels are expected to lower the error of each item.
    uncertainty : ndarray of shape (n_items,)
        The expected error of each item now: the posterior variance of its label distribution
        (summed over classes) or of its aleatoric uncertainty (in nats squared), or the probability
        that its majority is wrong.
    order : ndarray of shape (n_chosen,), int
        Items to buy labels for, those with the largest gain per label first.
    objective : {"distribution", "aleatoric", "majority"}
        What the labels are bought for.
    budget : int
        Labels that could be bought.
    expected_gain : float
        By how much the mean error over all items is expected to fall.
    uniform_gain : float
        The same for the same number of labels spread evenly, over items chosen at random where it
        does not divide.

    Examples
    --------
    >>> import hocal
    >>> prior = hocal.Mixtures.from_dirichlet([[1.0, 1.0]] * 3)
    >>> hocal.next_labels(prior, [[3, 0], [1, 1], [6, 6]], budget=2).labels.tolist()
    [0, 2, 0]
    """

    labels: IntArray
    gain: Array
    uncertainty: Array
    order: Index
    objective: str
    budget: int
    expected_gain: float
    uniform_gain: float

    def __repr__(self) -> str:
        return f"NextLabels({counted(len(self.labels), 'item')}: {self})"

    def __str__(self) -> str:
        """Return what to buy and what it should bring, in words."""
        now = float(self.uncertainty.mean())
        bought = int(self.labels.sum())
        bill = f"{counted(bought, 'label')} for {counted(len(self.order), 'item')}"
        return (
            f"{bill} should take {_WORDS[self.objective]} "
            f"from {now:.4g} to {now - self.expected_gain:.4g}, "
            f"spread evenly to {now - self.uniform_gain:.4g}."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return a row for each item to buy labels for, the most worthwhile first, by column."""
        chosen = self.order
        return {
            "item": chosen,
            "labels": self.labels[chosen],
            "gain": self.gain[chosen],
            "uncertainty": self.uncertainty[chosen],
        }

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return these rows as a dataframe; `backend` is "pandas", "polars" or "pyarrow"."""
        return to_frame(self.as_dict(), backend)


class _Bundles(NamedTuple):
    """Labels that are bought together: steps of the least concave majorants of gains."""

    curve: Index  #: (n_bundles,) whose
    size: Index  #: (n_bundles,) labels in it
    slope: Array  #: (n_bundles,) gain per label

    def from_place(self, place: int) -> _Bundles:
        """Return the bundles from a place on."""
        return _Bundles(self.curve[place:], self.size[place:], self.slope[place:])


def next_labels(
    mixtures: Mixtures,
    counts: Any,
    *,
    budget: int,
    objective: str = "distribution",
    limit: ArrayLike | None = None,
) -> NextLabels:
    """Choose which items the next labels should go to.

    The next label y of an item has probability m_y = E[p_y] under its posterior, and is expected to
    lower the posterior variance of the label distribution by sum_y m_y ||E[p | y] - m||^2. Gains of
    several labels for an item are computed as exactly, some labels ahead, and the budget goes where
    the gain per label is largest.

    Buy in several rounds if you can: what the first labels say changes where the next should go.
    Labels bought in this way may be used for everything but certificates: these count only labels
    whose number was fixed beforehand, the first k of each item.

    Parameters
    ----------
    mixtures : Mixtures
        Prior of each item: `hocal.calibration.label_prior` from labels alone, or what a model says.
    counts : array or sparse matrix of shape (n_items, n_classes), or None
        The labels that the items have; rows of zeros are allowed. None if the mixtures know them
        already, as ``calibrator.predict_mixture(probabilities, counts=counts)`` does.
    budget : int
        Labels to buy.
    objective : {"distribution", "aleatoric", "majority"}
        What should be known better: the label distribution of the items, their Shannon aleatoric
        uncertainty, or their majority class.
    limit : int or array of shape (n_items,), optional
        Most labels for one item now, such as people who have not judged it yet; by default ten, or
        twice what each would get of a budget that is spread evenly.

    Returns
    -------
    NextLabels
        Labels for each item, and what they are expected to bring.

    Examples
    --------
    Clear items need no more labels; those that are torn do.

    >>> import hocal
    >>> from hocal.calibration import label_prior
    >>> counts = [[2, 0]] * 40 + [[1, 1]] * 10 + [[0, 2]] * 30
    >>> bought = hocal.next_labels(label_prior(counts), counts, budget=10)
    >>> [int(part.sum()) for part in (bought.labels[:40], bought.labels[40:50])]
    [0, 10]
    >>> bought.expected_gain > 2 * bought.uniform_gain
    True
    """
    priors = check_mixtures(mixtures)
    own = _check_own(priors, counts)
    most = check_purchase(len(priors), budget, objective, limit)
    states = pair_with_counts(priors.index, own)
    n_labels = int(most.max())
    n_exact = exact_labels(priors, len(states.mixture), objective, n_labels)
    found = expected_gains(priors, states, objective, n_labels, n_exact)
    return buy_labels(found, states.inverse, budget=budget, objective=objective, limit=most)


def buy_labels(
    found: LabelGains, curve: Index, *, budget: int, objective: str, limit: IntArray
) -> NextLabels:
    """Spend a budget on items whose gains are known.

    Parameters
    ----------
    found : LabelGains
        Curves of gains, each of one or more items.
    curve : array of shape (n_items,)
        The curve of each item.
    budget : int
        Labels to buy.
    objective : str
        What the gains are about.
    limit : array of shape (n_items,)
        Most labels for each item, as `check_purchase` returns it.
    """
    kinds, kind_of_item, n_items = np.unique(
        np.column_stack([curve, limit]), axis=0, return_inverse=True, return_counts=True
    )
    kind_of_item = kind_of_item.reshape(-1)
    labels_of_kind, extra = _spend(found.gains, kinds, n_items, budget)
    labels = labels_of_kind[kind_of_item]
    _hand_out(labels, kind_of_item, extra)
    gain = found.gains[curve, labels]
    chosen = np.flatnonzero(labels)
    order = chosen[np.argsort(-gain[chosen] / labels[chosen], kind="stable")]
    even = _spread(found.gains, kinds, n_items, int(labels.sum()))
    return NextLabels(
        labels,
        gain,
        found.uncertainty[curve],
        order,
        objective,
        int(budget),
        float(gain.mean()),
        even / len(curve),
    )


def check_purchase(
    n_items: int, budget: Any, objective: str, limit: ArrayLike | None = None
) -> IntArray:
    """Check what is asked for, and return the most labels for each item."""
    check_choice(objective, "objective", OBJECTIVES)
    if limit is None:
        whole = check_integer(budget, "budget", minimum=1, maximum=MAX_LIMIT * n_items)
        even = -(-whole // n_items)
        return np.full(n_items, min(max(DEFAULT_LIMIT, 2 * even), MAX_LIMIT))
    most = _check_limit(limit, n_items)
    why = "With more, buy in rounds, or allow more labels for an item with `limit`."
    check_integer(budget, "budget", minimum=1, maximum=int(most.sum()), why=why)
    return most


def _check_limit(limit: ArrayLike, n_items: int) -> IntArray:
    most = check_whole(limit, "limit")
    if most.ndim == 0:
        return np.full(n_items, check_integer(limit, "limit", minimum=1, maximum=MAX_LIMIT))
    if most.shape != (n_items,):
        rule = f"must be one number, or one for each of {n_items} items"
        raise InputError("limit", rule, value=f"shape {most.shape}")
    if most.max() > MAX_LIMIT or not most.any():
        raise InputError(
            "limit",
            f"must be at most {MAX_LIMIT}, and above 0 for some item",
            value=int(most.max()),
            row=int(most.argmax()),
        )
    return most


def _check_own(priors: Mixtures, counts: Any) -> Counts:
    """Return the labels of each item; refuse items without a mixture."""
    empty = priors.sizes[priors.index] == 0
    if not len(priors) or empty.any():
        raise InputError(
            "mixtures",
            "must have at least one item, and none without atoms",
            value=f"{int(empty.sum())} of {len(priors)} items",
            remedy="Leave out items of cells without labels.",
        )
    if counts is None:
        return np.zeros((len(priors), priors.n_classes), dtype=np.int64)
    checked = check_counts(counts, n_classes=priors.n_classes, minimum_total=0)
    if checked.shape[0] != len(priors):
        rule = f"must describe the {len(priors)} items of the mixtures"
        raise InputError("counts", rule, value=f"{checked.shape[0]} rows")
    return checked


class _Rest(NamedTuple):
    """Items of one kind that get more labels than the others of their kind."""

    kind: int
    start: int  #: the first of them among the items of this kind
    n_items: int
    labels: int  #: how many more


def _spend(
    gains: Array, kinds: IntArray, n_items: IntArray, budget: int
) -> tuple[IntArray, list[_Rest]]:
    """Return the labels of each item of every kind, and those that only some of a kind get."""
    bundles = _bundles(gains[kinds[:, 0]], kinds[:, 1])
    cost = n_items[bundles.curve] * bundles.size
    n_whole = int(np.searchsorted(np.cumsum(cost), budget, side="right"))
    whole = bundles.curve[:n_whole]
    labels = np.bincount(whole, bundles.size[:n_whole], len(kinds)).astype(np.int64)
    left = budget - int(cost[:n_whole].sum())
    rest: list[_Rest] = []
    given = np.zeros(len(kinds), dtype=np.int64)  # items of a kind that are served in `rest`
    waiting = bundles.from_place(n_whole)
    is_next = _first_of_each(waiting.curve)
    while left > 0:
        fitting = is_next & (waiting.size <= left) & (given[waiting.curve] == 0)
        if not fitting.any():
            break
        place = int(np.argmax(fitting))
        kind, size = int(waiting.curve[place]), int(waiting.size[place])
        n_served = min(left // size, int(n_items[kind]))
        rest.append(_Rest(kind, 0, n_served, size))
        given[kind] = n_served
        left -= n_served * size
    unserved = waiting.curve[is_next & (given[waiting.curve] < n_items[waiting.curve])]
    if left > 0 and len(unserved):  # too few for any bundle: the part of one that brings most
        curve = kinds[unserved, 0]
        start = labels[unserved]
        gain = gains[curve, start + left] - gains[curve, start]
        kind = int(unserved[np.argmax(gain)])
        if gain.max() > 0:
            rest.append(_Rest(kind, int(given[kind]), 1, left))
    return labels, rest


def _bundles(gains: Array, limit: IntArray) -> _Bundles:
    """Return the steps of the least concave majorants, the largest gain per label first."""
    place = np.zeros(len(gains), dtype=np.intp)
    found = []
    for start in range(gains.shape[1] - 1):
        rows = np.flatnonzero((place == start) & (limit > start))
        steps = np.arange(1, gains.shape[1] - start)
        slopes = (gains[rows, start + 1 :] - gains[rows, start, None]) / steps
        slopes[start + steps > limit[rows, None]] = -1.0
        best = np.argmax(slopes, axis=1)
        slope = slopes[np.arange(len(rows)), best]
        place[rows] = start + best + 1
        found.append(_Bundles(rows, best + 1, slope))
    curve, size, slope = map(np.concatenate, zip(*found, strict=True))
    order = np.argsort(-slope, kind="stable")
    order = order[: int((slope > 0).sum())]
    return _Bundles(curve[order], size[order], slope[order])


def _first_of_each(values: Index) -> Any:
    """Return which entries are the first of their value."""
    first = np.zeros(len(values), dtype=bool)
    first[np.unique(values, return_index=True)[1]] = True
    return first


def _hand_out(labels: IntArray, kind_of_item: Index, rest: list[_Rest]) -> None:
    """Add the labels that only some items of a kind get, the first ones, in place."""
    for kind, start, n_items, more in rest:
        items = np.flatnonzero(kind_of_item == kind)[start : start + n_items]
        labels[items] += more


def _spread(gains: Array, kinds: IntArray, n_items: IntArray, total: int) -> float:
    """Return the summed gain of labels that are spread as evenly as limits allow."""
    curve, limit = kinds.T
    cost = [int(n_items @ np.minimum(level, limit)) for level in range(gains.shape[1])]
    level = int(np.searchsorted(cost, total, side="right")) - 1
    even = np.minimum(level, limit)
    value = float(n_items @ gains[curve, even])
    open_ = limit > level
    if total > cost[level] and open_.any():
        shares = n_items[open_] / n_items[open_].sum()
        next_gain = gains[curve[open_], level + 1] - gains[curve[open_], level]
        value += (total - cost[level]) * float(shares @ next_gain)
    return value
