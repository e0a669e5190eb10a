"""Standing in: may a judge, such as a language model, take the place of a person.

The alternative-annotator question (Calderon, Reichart and Dror 2025), with limits that hold: leave
one person out, and see with whom the others agree more often, that person or the judge.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.errors import InputError
from hocal._base.interval import Interval
from hocal._base.plurals import counted
from hocal._base.typing import Array, Index, IntArray
from hocal._base.validation import check_flag, check_fraction, check_number, check_simplex
from hocal.annotations.independence.votes import Votes, read_votes
from hocal.decisions.losses import BLOCK_NUMBERS, BoundedMean, choose_advisers, decimal
from hocal.guarantees.promises import FIXED_NUMBER

__all__ = ["PersonAdvantage", "StandIn", "stand_in"]

ASSUMPTIONS = (
    "Items are independent draws from the population spoken about; the judge was not trained on "
    "them.",
    "Who judged an item, and how many did, was not decided by looking at its labels.",
    "Limits speak of these people and of new items. Of other people they speak only if these were "
    "drawn from them, item by item.",
    FIXED_NUMBER,
)


class PersonAdvantage(NamedTuple):
    """One person, and the judge in their place, each against the other people."""

    n_items: int  #: items that this person and somebody else judged
    judge: float  #: how often the others agree with the judge there
    person: float  #: how often they agree with this person
    advantage: Interval  #: the first less the second; holds together with those of all people


@dataclass(frozen=True, eq=False, repr=False)
class StandIn:
    """A judge beside people, on items that two of them or more judged.

    Agreement is 1 for the same class and 0 for another; for classes in order it falls evenly with
    their distance, to 0 between the first and the last.

    Attributes
    ----------
    confidence : float
        Probability with which `judge`, `people` and `advantage` hold, each on its own, and the
        advantages over all people together.
    tolerance : float
        By how much less than a person the judge may agree with others and still be accepted.
    n_items : int
        Items with two labels or more.
    judge : Interval
        How often a new person agrees with the judge.
    people : Interval
        How often two people agree.
    advantage : Interval
        The first less the second: above 0 if the judge agrees with people more often than they
        agree with each other.
    per_person : mapping to PersonAdvantage
        The judge against each person.
    assumptions : tuple of str
        What must be true of the data.
    """

    confidence: float
    tolerance: float
    n_items: int
    judge: Interval
    people: Interval
    advantage: Interval
    per_person: Mapping[Any, PersonAdvantage]
    assumptions: tuple[str, ...]

    @property
    def acceptable(self) -> bool | None:
        """Whether the judge stands in for an average person; None if that is not decided."""
        if self.advantage.lower > -self.tolerance:
            return True
        return False if self.advantage.upper < -self.tolerance else None

    @property
    def replaceable(self) -> tuple[Any, ...]:
        """The people whom the judge may replace, all of them at once with the confidence given."""
        duels = self.per_person.items()
        return tuple(name for name, duel in duels if duel.advantage.lower > -self.tolerance)

    @property
    def irreplaceable(self) -> tuple[Any, ...]:
        """The people whom the judge may not replace, in the same sense; the others are open."""
        duels = self.per_person.items()
        return tuple(name for name, duel in duels if duel.advantage.upper < -self.tolerance)

    def __repr__(self) -> str:
        return f"StandIn({counted(self.n_items, 'item')}, {self.confidence:g}: {self})"

    def __str__(self) -> str:
        """Return how often people agree with the judge and with each other, and what follows."""
        answers = {
            True: "The judge stands in for an average person",
            False: "The judge does not stand in for an average person",
            None: "These labels do not tell whether the judge stands in for an average person",
        }
        asked = f", given a tolerance of {decimal(self.tolerance)}" if self.tolerance else ""
        return (
            f"A person agrees with the judge in {_limits(self.judge)} of cases and with another "
            f"person in {_limits(self.people)}: a difference of {_limits(self.advantage)}. "
            f"{answers[self.acceptable]}{asked}. Of "
            f"{counted(len(self.per_person), 'person', 'people')} it may replace "
            f"{len(self.replaceable)} and may not replace {len(self.irreplaceable)}."
        )

    def table(self) -> str:
        """Return a line for all people and one for each.

        Returns
        -------
        str
            How often others agree with the judge, with the person, and the difference.
        """
        everyone = PersonAdvantage(
            self.n_items, self.judge.estimate, self.people.estimate, self.advantage
        )
        lines = [f"{'items':>8}{'judge':>8}{'person':>8}{'advantage':>24}"]
        for name, duel in {"all": everyone, **self.per_person}.items():
            rates = f"{decimal(duel.judge):>8}{decimal(duel.person):>8}"
            lines.append(f"{duel.n_items:>8}{rates}{_limits(duel.advantage):>24}  {name}")
        return "\n".join(lines)


def stand_in(
    probabilities: ArrayLike,
    table: Any,
    *,
    item: str,
    label: str | Sequence[str],
    annotator: str | None = None,
    classes: Sequence[Any] | None = None,
    tolerance: float = 0.0,
    ordinal: bool = False,
    confidence: float = 0.95,
) -> StandIn:
    """Say whether a judge agrees with people as often as people agree with each other.

    For each person: on the items that they and others judged, how often the others agree with the
    judge, less how often they agree with this person. The difference lies between -1 and 1 on each
    item, and its mean has a betting interval. Over all people the difference of an item with label
    shares p is unbiased for f p - ||p||^2, from two labels on.

    Parameters
    ----------
    probabilities : array-like of shape (n_items, n_classes)
        What the judge says, in the order of ``hocal.count_labels(table, ...).items``: 1 for the
        class that it names, or probabilities, whose agreement is that of a class drawn from them.
        A judge that will name its most likely class should be given as that class.
    table : dataframe
        People's judgements, as `hocal.check_annotations` takes them.
    item : str
        Column that tells the items apart.
    label : str or sequence of str
        Column with the labels, or one column for each person.
    annotator : str, optional
        Column that tells who judged; left out with one column for each person.
    classes : sequence, optional
        The classes in the order of the columns of `probabilities`, from low to high if `ordinal`.
        By default all labels found, sorted.
    tolerance : float, default=0
        By how much less than a person the judge may agree with others: what a person costs more, in
        units of agreement.
    ordinal : bool, default=False
        Whether classes are in order, so that neighbours agree in part.
    confidence : float, default=0.95
        Of the limits. The number of items must be fixed in advance.

    Returns
    -------
    StandIn
        `advantage` over an average person, and over each person.

    Examples
    --------
    >>> from hocal.decisions import stand_in
    >>> table = {
    ...     "text": [number // 3 for number in range(600)],
    ...     "who": ["ann", "bob", "eve"] * 200,
    ...     "choice": ["a", "a", "b"] * 100 + ["b", "b", "a"] * 100,
    ... }
    >>> judge = [[1, 0]] * 100 + [[0, 1]] * 100
    >>> found = stand_in(judge, table, item="text", label="choice", annotator="who")
    >>> found.replaceable, found.acceptable
    (('eve',), True)
    """
    votes = read_votes(table, item=item, label=label, annotator=annotator, classes=classes)
    _check_repeats(votes)
    judge = _check_judge(probabilities, votes)
    allowed = check_number(tolerance, "tolerance", minimum=0)
    check_flag(ordinal, "ordinal")
    delta = 1 - check_fraction(confidence, "confidence")
    duels = _Duels.of(judge, votes, similarity(len(votes.classes), ordinal=ordinal))
    by_item = (duels.by_item(each) for each in (duels.judge, duels.person))
    of_judge, of_people = by_item
    return StandIn(
        confidence=float(confidence),
        tolerance=float(allowed),
        n_items=len(of_judge),
        judge=_interval(of_judge, 0.0, delta),
        people=_interval(of_people, 0.0, delta),
        advantage=_interval(of_judge - of_people, -1.0, delta),
        per_person=duels.per_person(votes.annotators, delta),
        assumptions=ASSUMPTIONS,
    )


def similarity(n_classes: int, *, ordinal: bool) -> Array:
    """Return how far each class agrees with each other one, (n_classes, n_classes).

    Examples
    --------
    >>> from hocal.decisions.standing_in import similarity
    >>> similarity(3, ordinal=True)[0].tolist()
    [1.0, 0.5, 0.0]
    """
    if not ordinal:
        return np.eye(n_classes)
    places = np.arange(n_classes)
    return np.asarray(1 - np.abs(places[:, None] - places) / (n_classes - 1))


class _Duels(NamedTuple):
    """For each judgement of an item with several: the others against the judge and the person."""

    item: IntArray  #: (n_judgements,) from 0 without gaps
    annotator: IntArray  #: (n_judgements,)
    judge: Array  #: (n_judgements,) share of the others who agree with the judge
    person: Array  #: (n_judgements,) share of them who agree with this person

    @classmethod
    def of(cls, judge: Array, votes: Votes, alike: Array) -> _Duels:
        """Leave each judgement out and ask the other people about the same item."""
        step = max(BLOCK_NUMBERS // len(votes.classes), 1)
        parts = [
            _compare_with_others(judge[start : start + step], votes, start, alike)
            for start in range(0, votes.n_items, step)
        ]
        places, of_judge, of_person = (np.concatenate(part) for part in zip(*parts, strict=True))
        if not len(places):
            rule = "must have items that two people or more judged"
            raise InputError("table", rule, value="one judgement of each item")
        numbers = np.unique(votes.item[places], return_inverse=True)[1]
        return cls(numbers.astype(np.int64), votes.annotator[places], of_judge, of_person)

    def by_item(self, values: Array) -> Array:
        """Return the mean over the people of each item."""
        sums = np.bincount(self.item, values)
        return np.asarray(sums / np.bincount(self.item))

    def per_person(self, names: Sequence[Any], delta: float) -> dict[Any, PersonAdvantage]:
        """Return the advantage over each person; limits hold together with chance 1 - delta."""
        share = delta / len(np.unique(self.annotator))
        return {name: self._one(number, share) for number, name in enumerate(names)}

    def _one(self, annotator: int, delta: float) -> PersonAdvantage:
        own = self.annotator == annotator
        if not own.any():
            return PersonAdvantage(0, math.nan, math.nan, Interval(math.nan, -1.0, 1.0))
        judge = self.judge[own]
        person = self.person[own]
        advantage = _interval(judge - person, -1.0, delta)
        return PersonAdvantage(int(own.sum()), float(judge.mean()), float(person.mean()), advantage)


def _compare_with_others(
    judge: Array, votes: Votes, start: int, alike: Array
) -> tuple[Index, Array, Array]:
    """Ask the other people about each judgement of some items, those from `start` on.

    Returns places among the votes, which are sorted by item, of items with several, and the shares
    of the others who agree with the judge and with the person.
    """
    first, last = np.searchsorted(votes.item, [start, start + len(judge)])
    item = votes.item[first:last] - start
    label = votes.label[first:last]
    flat = np.bincount(item * len(alike) + label, minlength=judge.size)
    counts = flat.reshape(judge.shape)
    several = np.flatnonzero(counts.sum(axis=1)[item] > 1)
    others = counts[item[several]].astype(np.float64)  # (n_judgements, n_classes)
    others[np.arange(len(several)), label[several]] -= 1
    others /= others.sum(axis=1, keepdims=True)
    of_judge = ((judge @ alike)[item[several]] * others).sum(axis=1)
    of_person = (alike[label[several]] * others).sum(axis=1)
    return first + several, of_judge, of_person


def _interval(values: Array, low: float, delta: float) -> Interval:
    """Return the mean of one value per item, from `low` to 1, with its limits."""
    advises = choose_advisers(np.zeros(len(values), dtype=np.uint64))  # items are in order of name
    return BoundedMean(values, low, 1.0).interval(delta, np.ones_like(advises), advises)


def _check_repeats(votes: Votes) -> None:
    """Refuse people who judged an item twice: they would be compared with themselves."""
    pairs = np.sort(votes.item * len(votes.annotators) + votes.annotator)
    repeated = pairs[1:][np.diff(pairs) == 0]
    if len(repeated):
        who = votes.annotators[int(repeated[0]) % len(votes.annotators)]
        raise InputError(
            "table",
            "must have one judgement of each person and item",
            value=f"{len(repeated)} more, such as of {who!r}",
            remedy="Keep one of them.",
        )


def _check_judge(probabilities: ArrayLike, votes: Votes) -> Array:
    """Return what the judge says about the items of the table, one row each."""
    judge = check_simplex(probabilities, "probabilities", ndim=2, n_classes=len(votes.classes))
    if len(judge) != votes.n_items:
        raise InputError(
            "probabilities",
            f"must have a row for each of the {votes.n_items} items of `table`",
            value=f"{len(judge)} rows",
            remedy="Bring them into the order of hocal.count_labels(table, ...).items.",
        )
    return np.asarray(judge / judge.sum(axis=1, keepdims=True))


def _limits(interval: Interval) -> str:
    estimate, lower, upper = (decimal(end) for end in interval)
    return f"{estimate} [{lower}, {upper}]"
