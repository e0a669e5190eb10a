"""Losses of a model against people's labels, item by item, and limits of their means.

A proper loss of item i is the mean over its labels of loss(f_i, label): its expectation given the
item is L(p_i || f_i), whatever the number of labels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hocal._base.errors import InputError, Setting
from hocal._base.fingerprints import Fingerprints, fingerprint
from hocal._base.interval import Interval
from hocal._base.plurals import counted
from hocal._base.typing import Array, IntArray, Mask
from hocal._base.validation import (
    check_dense_counts,
    check_fraction,
    check_same_length,
    check_simplex,
)
from hocal.guarantees.anytime import anytime_lower_limit, anytime_upper_limit
from hocal.guarantees.betting import Draws, lower_limit, upper_limit
from hocal.guarantees.cell_uncertainty import Limits
from hocal.guarantees.promises import (
    BLIND_NUMBERS,
    FIXED_NUMBER,
    INDEPENDENT_LABELS,
    KNOWN_NUMBERS,
)

__all__ = [
    "LOSSES",
    "LOSS_NAMES",
    "BoundedMean",
    "Judged",
    "assumptions_of",
    "check_floor",
    "decimal",
    "groups_of",
    "item_losses",
    "titles_of",
]

LOSS_NAMES = {"log": "log loss", "brier": "Brier score", "accuracy": "error rate"}
LOSSES = tuple(LOSS_NAMES)
WORST_BRIER = 2.0  # ||f - e_j||^2 of a model that is sure of another class

# Items that only advise: which statistics to use and how much they will vary. Intervals are made
# from the others. A tenth of the items; of few items as many as advice is taken from, and of fewer
# than 200 none, which would cost more than they save; of many no more than tell all there is.
ADVISER_SHARE = 0.1
FEWEST_ADVISERS = 30
MOST_ADVISERS = 500
FEWEST_ITEMS = 200
FEWEST_OWN_ADVISERS = 30  # of a group of items; one with fewer asks the advisers of all
FLOOR_ROUNDING = 1 - 1e-5  # of float32 predictions that were smoothed to a floor
BLOCK_NUMBERS = 1 << 20  # shares that are worked on at once, 8 MB
DIGITS = 12  # of predictions that are taken for equal
SHUFFLE_SEED = 0  # advisers are chosen without a look at labels, and the same in every run

ASSUMPTIONS = (
    "Items are independent draws from the population spoken about; no model was trained on them.",
    INDEPENDENT_LABELS,
    BLIND_NUMBERS,
)
ANY_TIME = (
    "Items come one after the other; limits hold however often they are looked at, and whenever "
    f"that is stopped. {KNOWN_NUMBERS}"
)
NO_FLOOR = (
    "No item gets a smaller predicted probability than the smallest given here: without such a "
    "floor the log loss has no bound."
)

LEFT_OUT = "Items with one label are left out: numbers are about items that have two or more."
SINGLES = "Items with one label are like the others: they say nothing about disagreement."

Number = TypeVar("Number", bound=np.generic)


class Judged(NamedTuple):
    """Items with labels, and those among them that only advise."""

    counts: IntArray  #: (n_items, n_classes)
    totals: IntArray  #: (n_items,) labels
    advises: Mask  #: (n_items,)
    anytime: bool = False  #: whether limits must hold at every time of a stream

    @classmethod
    def of(cls, counts: Any, *, anytime: bool = False) -> Judged:
        """Check label counts, one label per item at least; nobody advises yet."""
        checked = check_dense_counts(counts)
        totals = checked.sum(axis=1)
        return cls(checked, totals, np.zeros(len(checked), dtype=bool), anytime)

    def advised(self, *predictions: Array) -> Judged:
        """Choose advisers by checked predictions of models in any order, not by labels.

        A stream has none: nothing may be chosen by the number of items there happen to be.
        """
        if self.anytime:
            return self
        prints = [self._fingerprints(each) for each in predictions]
        return self._replace(advises=choose_advisers(np.sum(prints, axis=0, dtype=np.uint64)))

    def _fingerprints(self, predictions: Array) -> Fingerprints:
        """Return the fingerprint of each prediction, its classes in any order."""
        return self.by_item(
            lambda rows: fingerprint(np.round(np.sort(predictions[rows], axis=1), DIGITS))
        )

    @property
    def several(self) -> Mask:
        """Which items have two labels or more."""
        return np.asarray(self.totals > 1)

    @property
    def telling(self) -> Mask:
        """Items with two labels or more; all where none has two."""
        return self.several if self.several.any() else self.everything

    def take(self, rows: Mask) -> Judged:
        """Return some of the items."""
        parts = (self.counts[rows], self.totals[rows], self.advises[rows])
        return Judged(*parts, anytime=self.anytime)

    @property
    def everything(self) -> Mask:
        """Every item."""
        return np.ones(len(self.totals), dtype=bool)

    def shares(self, rows: slice) -> Array:
        """Return the shares of some items' labels, (n_rows, n_classes)."""
        return np.asarray(self.counts[rows] / self.totals[rows, None])

    def by_item(self, function: Callable[[slice], NDArray[Number]]) -> NDArray[Number]:
        """Return a number of each item, some rows at a time: shares are as large as predictions."""
        n_items, n_classes = self.counts.shape
        step = max(BLOCK_NUMBERS // n_classes, 1)
        blocks = [slice(start, start + step) for start in range(0, n_items, step)]
        return np.concatenate([function(rows) for rows in blocks])

    def check_predictions(
        self, probabilities: ArrayLike, name: str, loss: str, floor: float | None
    ) -> Array:
        """Return label distributions for these items that sum to 1 exactly."""
        n_classes = self.counts.shape[1]
        checked = check_simplex(probabilities, name, ndim=2, n_classes=n_classes)
        check_same_length(checked, self.counts, (name, "counts"))
        if loss == "log" and (checked == 0).any():
            rule = "must be above 0, or the log loss of a label can be infinite"
            remedy = "Recalibrate or smooth them, or choose {0}."
            _refuse_entry(name, rule, checked, checked == 0, remedy, Setting("loss", "brier"))
        too_low = checked < FLOOR_ROUNDING * (floor or 0.0)
        if too_low.any():
            rule = f"must not be below `floor`, {floor:g}"
            remedy = "Smooth or clip all predictions of the model, or leave out {0}."
            _refuse_entry(name, rule, checked, too_low, remedy, Setting("floor"))
        return np.asarray(checked / checked.sum(axis=1, keepdims=True))


def _refuse_entry(
    name: str, rule: str, values: Array, wrong: Mask, remedy: str, setting: Setting
) -> NoReturn:
    """Raise the InputError for the first offending prediction."""
    row, column = (int(i) for i in np.argwhere(wrong)[0])
    raise InputError(
        name,
        rule,
        value=f"{values[row, column]:.6g}",
        where=f"for class {column} in row {row}",
        row=row,
        remedy=remedy,
        settings=[setting],
    )


def choose_advisers(fingerprints: Fingerprints) -> Mask:
    """Return which items only advise: none of few, some hundred of many.

    They lie evenly among the fingerprints, whatever the order of the rows; those with the same one
    are shuffled, and only between them does that order matter. As no label is looked at, and each
    prediction has its share of the advisers, what they say is independent of the other items.
    """
    n_items = len(fingerprints)
    advises = np.zeros(n_items, dtype=bool)
    if n_items >= FEWEST_ITEMS:
        wanted = min(max(FEWEST_ADVISERS, round(ADVISER_SHARE * n_items)), MOST_ADVISERS)
        shuffled = np.random.default_rng(SHUFFLE_SEED).permutation(n_items)
        ranked = shuffled[np.argsort(fingerprints[shuffled], kind="stable")]
        advises[ranked[(2 * np.arange(wanted) + 1) * n_items // (2 * wanted)]] = True
    return advises


class BoundedMean(NamedTuple):
    """A statistic of each item, inside a range that is known without the labels."""

    values: Array  #: (n_items,)
    low: float
    high: float
    anytime: bool = False  #: whether limits must hold at every time of a stream

    def __sub__(self, other: BoundedMean) -> BoundedMean:
        """Return the difference, item by item."""
        low = self.low - other.high
        high = self.high - other.low
        return BoundedMean(self.values - other.values, low, high, self.anytime)

    def at_least(self, delta: float, rows: Mask, advises: Mask) -> float:
        """Return what the mean over the population of some items falls below with chance delta."""
        if self.anytime:
            return anytime_lower_limit(self.values[rows], self.low, self.high, delta)
        draws = self._draws(rows & ~advises)
        return float(lower_limit(draws, delta, self._guess(rows, advises))[0])

    def at_most(self, delta: float, rows: Mask, advises: Mask) -> float:
        """Return what the mean over the population of some items exceeds with chance delta."""
        if self.anytime:
            return anytime_upper_limit(self.values[rows], self.low, self.high, delta)
        draws = self._draws(rows & ~advises)
        return float(upper_limit(draws, delta, self._guess(rows, advises))[0])

    def limits(self, delta: float, rows: Mask, advises: Mask) -> Limits:
        """Return limits that hold together with chance 1 - delta."""
        lower = self.at_least(delta / 2, rows, advises)
        return Limits(lower, self.at_most(delta / 2, rows, advises))

    def interval(self, delta: float, rows: Mask, advises: Mask) -> Interval:
        """Return the mean of some items with its limits."""
        return Interval(float(self.values[rows].mean()), *self.limits(delta, rows, advises))

    def _draws(self, rows: Mask) -> Draws:
        values = self.values[rows]
        return Draws.of(values, np.ones(len(values)), self.low, self.high)

    def _guess(self, rows: Mask, advises: Mask) -> Array | None:
        """Return the deviation among the advisers of a group, or among all of them."""
        own = rows & advises
        asked = own if own.sum() >= FEWEST_OWN_ADVISERS else advises
        return self._draws(asked).deviation() if asked.any() else None


def item_losses(
    probabilities: Array, judged: Judged, loss: str, *, floor: float | None = None
) -> BoundedMean:
    """Return the loss of each item, the mean over its labels.

    Log loss: -log f_j for label j, at most -log(floor). Brier score: ||f - e_j||^2, at most 2.
    Error rate: 1 where the label is not the class with the largest f.

    Parameters
    ----------
    probabilities : ndarray of shape (n_items, n_classes)
        Predictions that sum to 1, positive ones for the log loss.
    judged : Judged
        The labels.
    loss : {"log", "brier", "accuracy"}
        The proper loss.
    floor : float, optional
        Smallest probability that the model predicts for any class of any item; the smallest one
        here by default.

    Returns
    -------
    BoundedMean
        Its mean is the expected loss.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.decisions.losses import Judged, item_losses
    >>> found = item_losses(np.array([[0.5, 0.5]]), Judged.of([[3, 1]]), "brier")
    >>> found.values.tolist(), found.high
    ([0.5], 2.0)
    """
    if loss == "brier":
        values = judged.by_item(lambda rows: _brier(probabilities[rows], judged.shares(rows)))
        return BoundedMean(values, 0.0, WORST_BRIER, judged.anytime)
    if loss == "accuracy":
        top = probabilities.argmax(axis=1)
        wrong = 1 - judged.counts[np.arange(len(top)), top] / judged.totals
        return BoundedMean(wrong, 0.0, 1.0, judged.anytime)
    smallest = float(probabilities.min())
    high = -math.log(smallest if floor is None else min(floor, smallest))
    values = judged.by_item(
        lambda rows: -(judged.shares(rows) * np.log(probabilities[rows])).sum(axis=1)
    )
    return BoundedMean(np.clip(values, 0.0, high), 0.0, high, judged.anytime)


def _brier(probabilities: Array, shares: Array) -> Array:
    squares = (probabilities**2).sum(axis=1)
    hits = (shares * probabilities).sum(axis=1)
    return np.asarray(1 - 2 * hits + squares)


def check_floor(floor: float | None) -> float | None:
    """Return a floor of predicted probabilities, if there is one."""
    return None if floor is None else check_fraction(floor, "floor")


def groups_of(numbers: Iterable[int]) -> Iterator[tuple[int, Mask]]:
    """Yield each number that occurs, in order, and which items have it."""
    array = np.asarray(numbers)
    for number in np.unique(array):
        yield int(number), array == number


def titles_of(numbers: Iterable[int], names: Iterable[str] | None) -> dict[int, str]:
    """Return what groups are called, by default their numbers; a group without a name is refused.

    Examples
    --------
    >>> from hocal.decisions.losses import titles_of
    >>> titles_of([0, 2], None), titles_of([0, 2], ["ant", "bee", "cat"])
    ({0: '0', 2: '2'}, {0: 'ant', 2: 'cat'})
    """
    shown = list(numbers)
    if names is None:
        return {number: str(number) for number in shown}
    known = list(names)
    largest = max(shown, default=-1)
    if len(known) <= largest:
        rule = f"must have a name for each number from 0 to {largest}"
        raise InputError("names", rule, value=counted(len(known), "name"))
    return {number: str(known[number]) for number in shown}


def assumptions_of(loss: str, floor: float | None, judged: Judged) -> tuple[str, ...]:
    """Return what must be true for the limits of a loss to hold."""
    guessed_floor = (NO_FLOOR,) * (loss == "log" and floor is None)
    singles = (SINGLES,) * (not judged.several.all())
    stopping = ANY_TIME if judged.anytime else FIXED_NUMBER
    return (*ASSUMPTIONS, stopping, *guessed_floor, *singles)


def decimal(number: float) -> str:
    """Return a number to three digits without its leading zero, as in ".452" and "-.031"."""
    shown = f"{number + 0.0:.3f}"
    shown = shown if float(shown) != 0 else "0"
    return shown.replace("0.", ".", 1) if abs(number) < 1 else shown
