"""Headroom: how much of a model's loss any other model could still take away.

The expected loss of a model against people's labels is E L(p || f) = E G(p) + E D(p || f): the
entropy of the label distributions, which no model can go below, and what is left to gain. One
statistic per item, its loss less a statistic of its labels whose mean is never below (or never
above) its entropy, bounds what is left from below (or above).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.interval import Interval
from hocal._base.plurals import counted
from hocal._base.shares import percent
from hocal._base.typing import Array, Index, Mask
from hocal._base.validation import check_cells, check_choice, check_fraction
from hocal.decisions.irreducible import (
    EntropyBounds,
    entropy_bounds,
    entropy_estimates,
    irreducible_limits,
    largest_entropy,
    least_error,
)
from hocal.decisions.losses import (
    LEFT_OUT,
    LOSS_NAMES,
    LOSSES,
    BoundedMean,
    Judged,
    assumptions_of,
    check_floor,
    decimal,
    groups_of,
    item_losses,
    titles_of,
)
from hocal.guarantees.cell_uncertainty import Limits

__all__ = ["Headroom", "HeadroomPart", "ModelLosses", "headroom"]


class HeadroomPart(NamedTuple):
    """The loss of a model on some items, and how much of it could be gained."""

    n_items: int  #: items that the three are about, those with two labels if there are any
    loss: Interval  #: expected loss against the label of a new person
    irreducible: Interval  #: the part that no model can remove; estimate NaN without two labels
    remaining: Interval  #: the rest, what the best possible model would gain


@dataclass(frozen=True, eq=False, repr=False)
class Headroom:
    """A model's loss against people's labels: what no model can remove, and what is left to gain.

    Each interval holds with probability `confidence` on its own, whatever the model and the label
    distributions are.

    Attributes
    ----------
    metric : {"log", "brier", "accuracy"}
        Which loss: log loss in nats, Brier score ||f - e_label||^2 from 0 to 2, or error rate, the
        share of new labels that are not the model's most likely class.
    confidence : float
        Probability with which each interval holds.
    n_items : int
        Items that all numbers are about: those with two labels or more, or all if none has two.
    loss : Interval
        Expected loss against the label of a new person, each item counting alike.
    irreducible : Interval
        The part that no model can remove, E G(p). The estimate is NaN and the limits say next to
        nothing where no item has two labels.
    remaining : Interval
        What the best possible model would gain, never below 0. The estimate is that of the loss
        less that of the irreducible part.
    accuracy : Interval
        How often a new person agrees with the model's most likely class.
    best_accuracy : Interval
        How often a new person would agree with the best possible model, E max p. The estimate is
        NaN where no item has two labels.
    per_class : mapping of int to HeadroomPart
        The same three by the class that the model predicts; classes never predicted for these
        items are left out.
    per_cell : mapping of int to HeadroomPart
        The same three by the numbers given as `cells`.
    assumptions : tuple of str
        What must be true of the data.
    """

    metric: str
    confidence: float
    n_items: int
    loss: Interval
    irreducible: Interval
    remaining: Interval
    accuracy: Interval
    best_accuracy: Interval
    per_class: Mapping[int, HeadroomPart]
    per_cell: Mapping[int, HeadroomPart]
    assumptions: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Headroom({counted(self.n_items, 'item')}, {self.confidence:g}: {self})"

    def __str__(self) -> str:
        """Return the three numbers, and how often people agree with the model, in sentences."""
        name = LOSS_NAMES[self.metric]
        sentences = [f"Your model's {name} is {_with_limits(self.loss)}."]
        if math.isnan(self.irreducible.estimate):
            sentences.append("No item has two labels, so nothing tells what no model can remove.")
        else:
            sentences.append(f"No model can go below {_with_limits(self.irreducible)}.")
        least, most = (decimal(end) for end in self.remaining[1:])
        if self.remaining.lower > 0:
            sentences.append(f"Between {least} and {most} is left to gain.")
        else:
            sentences.append(f"At most {most} is left to gain, perhaps nothing.")
        agree = f"A new person agrees with it about {percent(self.accuracy.estimate, 1)} of items"
        best = f"with no model about more than {percent(self.best_accuracy.upper, 1)}"
        known = not math.isnan(self.best_accuracy.estimate)
        sentences.append(f"{agree}, {best}." if known else f"{agree}.")
        return " ".join(sentences)

    def table(self, names: Iterable[str] | None = None) -> str:
        """Return a line for all items and one per predicted class, or per cell if there are any.

        Parameters
        ----------
        names : iterable of str, optional
            A name for each class, or for each cell.

        Returns
        -------
        str
            Estimates with their limits in brackets.
        """
        heads = "".join(f"{head:>21}" for head in ("loss", "irreducible", "remaining"))
        lines = [f"{'items':>8}{heads}"]
        whole = HeadroomPart(self.n_items, self.loss, self.irreducible, self.remaining)
        parts = self.per_cell or self.per_class
        titles = titles_of(parts, names)
        shown = [("all", whole), *((titles[number], part) for number, part in parts.items())]
        for name, part in shown:
            numbers = "".join(f"{_with_limits(interval):>21}" for interval in part[1:])
            lines.append(f"{part.n_items:>8}{numbers}  {name}")
        return "\n".join(lines)


def headroom(
    probabilities: ArrayLike,
    counts: Any,
    *,
    loss: Literal["log", "brier", "accuracy"] = "log",
    confidence: float = 0.95,
    cells: ArrayLike | None = None,
    floor: float | None = None,
) -> Headroom:
    """Say how much of a model's loss is irreducible and how much is left to gain.

    Parameters
    ----------
    probabilities : array-like of shape (n_items, n_classes)
        A model's predictions for items that it was not trained on. A zero makes the log loss
        infinite and is refused; recalibrate or smooth such a model, or ask for the Brier score.
    counts : array-like or sparse array of shape (n_items, n_classes)
        How many people chose each class, one label per item at least. Only items with two labels
        or more say what is irreducible. Those with one are left out, so that the loss is about the
        same items as its parts and they add up; where all have one, the loss alone is measured.
    loss : {"log", "brier", "accuracy"}
        Log loss in nats, Brier score ||f - e_label||^2, from 0 to 2, or error rate, how often a
        new person's label is not the model's most likely class.
    confidence : float, default=0.95
        Probability with which each interval holds, for a number of items fixed in advance.
    cells : array-like of shape (n_items,), optional
        Numbers of groups of items, chosen without looking at labels, to be told apart.
    floor : float, optional
        Smallest probability that the model gives to any class of any item, known beforehand,
        as of a smoothed model. It bounds the log loss. By default the smallest probability given
        here does, and the limits hold for new items only if none gets a smaller one.

    Returns
    -------
    Headroom
        `loss`, `irreducible` and `remaining`, overall, by predicted class and by cell.

    Notes
    -----
    A tenth of the items, 500 at most, only advise which statistics to use: limits come from the
    others, estimates from all. Advisers are chosen by predictions, so that the order of the rows
    matters for nothing but which of the items with equal predictions advise. The irreducible part
    is estimated by the share of pairs of labels that disagree (Brier, unbiased) or by deconvolution
    (the others), kept inside its limits. That of the error rate, 1 - E max p, is between the share
    of labels outside an item's commonest class, or what the agreement of pairs allows, and how
    often a label is not what the item's other labels say, or the model.

    Examples
    --------
    A model that says 50% for coins that are all fair has nothing left to gain.

    >>> import hocal
    >>> counts = [[2, 0]] * 500 + [[1, 1]] * 1000 + [[0, 2]] * 500
    >>> found = hocal.headroom([[0.5, 0.5]] * 2000, counts, loss="brier")
    >>> round(found.loss.estimate, 3), round(found.irreducible.estimate, 3)
    (0.5, 0.5)
    >>> found.remaining.lower, found.remaining.upper < 0.05
    (0.0, True)
    """
    check_choice(loss, "loss", LOSSES)
    delta = 1 - check_fraction(confidence, "confidence")
    judged = Judged.of(counts)
    least = check_floor(floor)
    every = ModelLosses.of(probabilities, "probabilities", judged, loss, least)
    numbers = None if cells is None else check_cells(cells, len(every.predictions))
    telling = judged.telling
    losses = every if telling.all() else every.of_items(telling)
    top = losses.predictions.argmax(axis=1)
    whole = losses.whole(delta)
    hits = losses.with_loss("accuracy").whole(delta)
    return Headroom(
        metric=loss,
        confidence=float(confidence),
        n_items=whole.n_items,
        loss=whole.loss,
        irreducible=whole.irreducible,
        remaining=whole.remaining,
        accuracy=hits.loss.complement(),
        best_accuracy=hits.irreducible.complement(),
        per_class=losses.parts(top, delta),
        per_cell={} if numbers is None else losses.parts(numbers[telling], delta),
        assumptions=assumptions_of(loss, least, losses.judged) + (LEFT_OUT,) * (not telling.all()),
    )


@dataclass(frozen=True, eq=False)
class ModelLosses:
    """The losses of one model on items with labels."""

    predictions: Array  #: (n_items, n_classes), checked
    judged: Judged
    loss: str  #: one of LOSSES
    losses: BoundedMean  #: of each item

    @classmethod
    def of(
        cls, probabilities: ArrayLike, name: str, judged: Judged, loss: str, floor: float | None
    ) -> ModelLosses:
        """Check the predictions called `name`, choose advisers, and compute the losses."""
        predictions = judged.check_predictions(probabilities, name, loss, floor)
        judged = judged.advised(predictions)
        losses = item_losses(predictions, judged, loss, floor=floor)
        return cls(predictions, judged, loss, losses)

    def of_items(self, rows: Mask) -> ModelLosses:
        """Return the losses on some items, with advisers among these."""
        predictions = self.predictions[rows]
        judged = self.judged.take(rows).advised(predictions)
        losses = self.losses._replace(values=self.losses.values[rows])
        return ModelLosses(predictions, judged, self.loss, losses)

    def interval(self, delta: float) -> Interval:
        """Return the loss of all items with its limits."""
        return self.losses.interval(delta, self.judged.everything, self.judged.advises)

    def whole(self, delta: float) -> HeadroomPart:
        """Return the loss of all items and its two parts."""
        return self.parts(np.zeros(len(self.predictions), dtype=np.intp), delta)[0]

    def parts(self, numbers: Index, delta: float) -> dict[int, HeadroomPart]:
        """Return the losses of groups of items, by their numbers."""
        distinct, group = np.unique(numbers, return_inverse=True)
        estimates = entropy_estimates(self.predictions, self.judged, self.loss, group)
        bounds = self.entropy_bounds(len(numbers) // len(distinct))
        return {
            number: self._part(rows, float(estimate), bounds, delta)
            for (number, rows), estimate in zip(groups_of(numbers), estimates, strict=True)
        }

    def _part(
        self, rows: Mask, estimate: float, bounds: EntropyBounds, delta: float
    ) -> HeadroomPart:
        """Return the loss of some items and its two parts."""
        interval = self.losses.interval(delta, rows, self.judged.advises)
        most = largest_entropy(self.loss, self.predictions.shape[1])
        paired = rows & self.judged.several  # one label tells nothing of what is left
        if not paired.any():
            highest = self.losses.at_most(delta, rows, self.judged.advises)
            unknown = Interval(math.nan, 0.0, min(highest, most))
            return HeadroomPart(int(rows.sum()), interval, unknown, unknown._replace(upper=highest))
        floor = self.irreducible_limits(rows, bounds, delta).inside(most)
        left = self.remaining_limits(rows, bounds, delta)
        mean_loss = float(self.losses.values[paired].mean())
        # The two add up to the loss, each inside its limits where that can be.
        lowest = max(floor.lower, mean_loss - left.upper)
        highest = max(lowest, min(floor.upper, mean_loss - left.lower))
        irreducible = _inside(float(np.clip(estimate, lowest, highest)), floor)
        remaining = _inside(mean_loss - irreducible.estimate, left)
        return HeadroomPart(int(rows.sum()), interval, irreducible, remaining)

    def irreducible_limits(self, rows: Mask, bounds: EntropyBounds, delta: float) -> Limits:
        """Return limits of the entropy of some items' label distributions."""
        return irreducible_limits(self.losses, self.judged, self.loss, rows, bounds, delta)

    def remaining_limits(self, rows: Mask, bounds: EntropyBounds, delta: float) -> Limits:
        """Return limits of the loss of some items less the entropy of their label distributions."""
        several = self.judged.several
        chosen = (rows & several, self.judged.advises & several)
        lower = (self.losses - bounds.above).at_least(delta / 2, *chosen)
        if self.loss == "accuracy":
            upper = self._most_accuracy_left(bounds, delta / 2, *chosen)
        else:
            upper = (self.losses - bounds.below).at_most(delta / 2, *chosen)
        return Limits(lower, upper).inside(self.losses.high)

    def _most_accuracy_left(
        self, bounds: EntropyBounds, delta: float, rows: Mask, advises: Mask
    ) -> float:
        """Return the smaller of two upper limits: item by item, or by how often pairs agree."""
        by_item = (self.losses - bounds.below).at_most(delta / 2, rows, advises)
        least = least_error(self.judged, delta / 4, rows, advises)
        return min(by_item, self.losses.at_most(delta / 4, rows, advises) - least)

    def entropy_bounds(self, n_items: int) -> EntropyBounds:
        """Return statistics on either side of the entropy, for groups of about n_items items."""
        return entropy_bounds(self.predictions, self.judged, self.loss, n_items)

    def with_loss(self, loss: str) -> ModelLosses:
        """Return the same model's losses of another kind."""
        losses = item_losses(self.predictions, self.judged, loss)
        return ModelLosses(self.predictions, self.judged, loss, losses)


def _inside(estimate: float, limits: Limits) -> Interval:
    """Return an estimate moved inside its limits."""
    return Interval(float(np.clip(estimate, *limits)), *limits)


def _with_limits(interval: Interval) -> str:
    return f"{decimal(interval.estimate)} [{decimal(interval.lower)}, {decimal(interval.upper)}]"
