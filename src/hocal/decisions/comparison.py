"""Comparison: which of two models has the lower loss against people's labels, and by how much.

Both models meet the same labels, so their noise is common to both: the difference of losses, item
by item, has a much narrower interval than the two losses.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from numpy.typing import ArrayLike

from hocal._base.errors import InputError
from hocal._base.interval import Interval
from hocal._base.plurals import counted
from hocal._base.shares import percent
from hocal._base.validation import check_choice, check_flag, check_fraction
from hocal.decisions.gains import ModelLosses
from hocal.decisions.losses import (
    LOSS_NAMES,
    LOSSES,
    Judged,
    assumptions_of,
    check_floor,
    decimal,
    groups_of,
    titles_of,
)
from hocal.guarantees.cell_uncertainty import Limits

__all__ = ["ClassDifference", "Comparison", "compare"]


class ClassDifference(NamedTuple):
    """Two models on the items for which the first predicts one class."""

    n_items: int  #: items
    difference: Interval  #: loss of the second less that of the first


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Two models' losses against the same labels.

    Each interval holds with probability `confidence` on its own.

    Attributes
    ----------
    metric : {"log", "brier", "accuracy"}
        Which loss: log loss in nats, Brier score from 0 to 2, or error rate.
    confidence : float
        Probability with which each interval holds, for a number of items fixed in advance or, if
        that was asked for, at any time of a stream.
    n_items : int
        Items.
    first, second : Interval
        Expected loss of each model against the label of a new person.
    difference : Interval
        Loss of the second less that of the first: below 0 if the second is better.
    share_closed : Interval
        What the second gains as a share of all that can be gained on the first: 1 if it is the best
        possible model, below 0 if it is worse than the first. NaN where nothing is known.
    per_class : mapping of int to ClassDifference
        The difference by the class that the first model predicts.
    assumptions : tuple of str
        What must be true of the data.
    """

    metric: str
    confidence: float
    n_items: int
    first: Interval
    second: Interval
    difference: Interval
    share_closed: Interval
    per_class: Mapping[int, ClassDifference]
    assumptions: tuple[str, ...]

    @property
    def better(self) -> Literal["first", "second"] | None:
        """The model with the lower loss, if the interval of the difference decides it."""
        if self.difference.upper < 0:
            return "second"
        return "first" if self.difference.lower > 0 else None

    def __repr__(self) -> str:
        return f"Comparison({counted(self.n_items, 'item')}, {self.confidence:g}: {self})"

    def __str__(self) -> str:
        """Return which model is better, by how much, and how much of the gap that closes."""
        name = LOSS_NAMES[self.metric]
        losses = f"{decimal(self.first.estimate)} and {decimal(self.second.estimate)}"
        estimate, lower, upper = (decimal(end) for end in self.difference)
        sentences = [
            f"The {name} of the two models is {losses}, a difference of "
            f"{estimate} [{lower}, {upper}]."
        ]
        if self.better is None:
            sentences.append("These labels do not tell which is better.")
        else:
            sentences.append(f"The {self.better} is better.")
        if self.better == "second" and self.share_closed.lower > 0:
            least, most = (percent(end) for end in self.share_closed[1:])
            sentences.append(f"It gains between {least} and {most} of what any model could.")
        return " ".join(sentences)

    def table(self, names: Iterable[str] | None = None) -> str:
        """Return a line for all items and one per class that the first model predicts.

        Parameters
        ----------
        names : iterable of str, optional
            A name for each class.

        Returns
        -------
        str
            Differences with their limits in brackets; below 0 the second is better.
        """
        titles = titles_of(self.per_class, names)
        shown = [("all", ClassDifference(self.n_items, self.difference))]
        shown += [(titles[number], part) for number, part in self.per_class.items()]
        lines = [f"{'items':>8}{'second less first':>24}"]
        for name, (n_items, difference) in shown:
            estimate, lower, upper = (decimal(end) for end in difference)
            lines.append(f"{n_items:>8}{f'{estimate} [{lower}, {upper}]':>24}  {name}")
        return "\n".join(lines)


def compare(
    first: ArrayLike,
    second: ArrayLike,
    counts: Any,
    *,
    loss: Literal["log", "brier", "accuracy"] = "log",
    confidence: float = 0.95,
    floor: float | None = None,
    anytime: bool = False,
) -> Comparison:
    """Say which of two models has the lower loss against people's labels, and by how much.

    Also for two calibrators, two judges, or one model before and after a change. Judges that name
    one class each are compared by ``loss="accuracy"``: how often people agree with them. As in
    `headroom`, some items only advise; among those whose predictions are equal, as most of such
    judges are, the order of the rows decides which.

    Parameters
    ----------
    first, second : array-like of shape (n_items, n_classes)
        Predictions of two models for the same items, on which neither was trained. A zero makes the
        log loss infinite and is refused.
    counts : array-like or sparse array of shape (n_items, n_classes)
        How many people chose each class, one label per item at least. The share that is closed
        needs items with two labels or more.
    loss : {"log", "brier", "accuracy"}
        Log loss in nats, Brier score ||f - e_label||^2, from 0 to 2, or error rate.
    confidence : float, default=0.95
        Probability with which each interval holds. Unless `anytime`, the number of items must be
        fixed in advance: the interval is not made for looking again after each new item.
    floor : float, optional
        Smallest probability that either model gives to any class of any item, known beforehand,
        as of a smoothed model. It bounds the log loss. By default the smallest probability given
        here does, and the limits hold for new items only if none gets a smaller one.
    anytime : bool, default=False
        Make intervals that hold at all times of a stream of items at once, a little wider: compare
        after every new item, with all items up to then, and stop as soon as it is decided. The log
        loss then needs a `floor`.

    Returns
    -------
    Comparison
        `difference`, overall and by predicted class, and `share_closed`.

    Examples
    --------
    >>> import hocal
    >>> counts = [[3, 0]] * 400 + [[2, 1]] * 100
    >>> found = hocal.compare([[0.6, 0.4]] * 500, [[0.9, 0.1]] * 500, counts)
    >>> found.better, found.difference.upper < -0.1
    ('second', True)
    """
    check_choice(loss, "loss", LOSSES)
    delta = 1 - check_fraction(confidence, "confidence")
    least = check_floor(floor)
    check_flag(anytime, "anytime")
    if anytime and loss == "log" and least is None:
        rule = "must be given for the log loss of a stream: its smallest prediction may yet come"
        raise InputError("floor", rule, remedy="Smooth the predictions, and pass to what.")
    judged = Judged.of(counts, anytime=anytime)
    one = ModelLosses.of(first, "first", judged, loss, least)
    other = ModelLosses.of(second, "second", judged, loss, least)
    difference = other.losses - one.losses
    advises = judged.advised(one.predictions, other.predictions).advises
    chosen = (judged.everything, advises)
    per_class = {
        number: ClassDifference(int(rows.sum()), difference.interval(delta, rows, advises))
        for number, rows in groups_of(one.predictions.argmax(axis=1))
    }
    left = one.whole(delta / 2).remaining
    gap = difference.interval(delta / 2, *chosen)
    return Comparison(
        metric=loss,
        confidence=float(confidence),
        n_items=len(judged.totals),
        first=one.interval(delta),
        second=other.interval(delta),
        difference=difference.interval(delta, *chosen),
        share_closed=share_closed(gap, Limits(*left[1:]), left.estimate),
        per_class=per_class,
        assumptions=assumptions_of(loss, least, judged),
    )


def share_closed(difference: Interval, remaining: Limits, estimate: float) -> Interval:
    """Return the share of what is left to gain on one model that another gains.

    Parameters
    ----------
    difference : Interval
        Loss of the other less that of the one.
    remaining : Limits
        Of what is left to gain on the one. Either may fail with half of the chance allowed.
    estimate : float
        Of the same.

    Returns
    -------
    Interval
        At most 1. The lower limit is -inf where nothing may be left and the other may be worse.

    Examples
    --------
    >>> from hocal.decisions.comparison import share_closed
    >>> from hocal.guarantees import Interval
    >>> from hocal.guarantees.cell_uncertainty import Limits
    >>> share_closed(Interval(-0.1, -0.2, -0.05), Limits(0.25, 0.5), 0.4)
    Interval(estimate=0.25, lower=0.1, upper=0.8)
    """
    least = -difference.upper
    most = -difference.lower
    lower = _ratio(least, remaining.upper if least >= 0 else remaining.lower, -math.inf)
    upper = _ratio(most, remaining.lower if most >= 0 else remaining.upper, 1.0)
    share = _ratio(-difference.estimate, estimate, math.nan)
    return Interval(min(share, 1.0), min(lower, 1.0), min(upper, 1.0))


def _ratio(gain: float, remaining: float, unknown: float) -> float:
    return gain / remaining if remaining > 0 else unknown
