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
from hocal._base.typing import Array, Index, Mask
from hocal._base.validation import check_cells, check_choice, check_fraction
from hocal.calibration.by_cell.deconvolution import deconvolve
from hocal.cells.statistics import align_counts
from hocal.decisions.losses import (
    ENTROPY_OF_LOSS,
    LOSSES,
    BoundedMean,
    Judged,
    assumptions_of,
    check_floor,
    decimal,
    groups_of,
    item_losses,
)
from hocal.guarantees.bernstein import Side
from hocal.guarantees.cell_uncertainty import (
    Advice,
    Limits,
    Sample,
    advise,
    estimator_sizes,
    statistic_values,
)
from hocal.uncertainty.entropy import Shannon, get_entropy

__all__ = ["Headroom", "HeadroomPart", "ModelLosses", "headroom"]


class HeadroomPart(NamedTuple):
    """The loss of a model on some items, and how much of it could be gained."""

    n_items: int  #: items
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
    metric : {"log", "brier"}
        Which loss: log loss in nats, or Brier score ||f - e_label||^2 from 0 to 2.
    confidence : float
        Probability with which each interval holds.
    n_items : int
        Items.
    loss : Interval
        Expected loss against the label of a new person, each item counting alike.
    irreducible : Interval
        The part that no model can remove, E G(p). The estimate is NaN and the limits say next to
        nothing where no item has two labels.
    remaining : Interval
        What the best possible model would gain, never below 0.
    accuracy : Interval
        How often a new person agrees with the model's most likely class.
    best_accuracy : float
        Upper limit of how often a new person could agree with any model.
    per_class : mapping of int to HeadroomPart
        The same three by the class that the model predicts; classes never predicted are left out.
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
    best_accuracy: float
    per_class: Mapping[int, HeadroomPart]
    per_cell: Mapping[int, HeadroomPart]
    assumptions: tuple[str, ...]

    def __repr__(self) -> str:
        return f"Headroom({self.n_items} items, {self.confidence:g}: {self})"

    def __str__(self) -> str:
        """Return the three numbers as a sentence each."""
        name = {"log": "log loss", "brier": "Brier score"}[self.metric]
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
        known = None if names is None else list(names)
        parts = self.per_cell or self.per_class
        shown = {"all": whole} | {
            str(number) if known is None else known[number]: part for number, part in parts.items()
        }
        for name, part in shown.items():
            numbers = "".join(f"{_with_limits(interval):>21}" for interval in part[1:])
            lines.append(f"{part.n_items:>8}{numbers}  {name}")
        return "\n".join(lines)


def headroom(
    probabilities: ArrayLike,
    counts: Any,
    *,
    loss: Literal["log", "brier"] = "log",
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
        or more say what is irreducible.
    loss : {"log", "brier"}
        Log loss in nats, or Brier score ||f - e_label||^2, from 0 to 2.
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
    others, estimates from all. The irreducible part is estimated by the share of pairs of labels
    that disagree (Brier, unbiased) or by deconvolution (log), kept inside its limits.

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
    losses = ModelLosses.of(probabilities, "probabilities", judged, loss, least)
    top = losses.predictions.argmax(axis=1)
    numbers = None if cells is None else check_cells(cells, len(top))
    whole = losses.whole(delta)
    return Headroom(
        metric=loss,
        confidence=float(confidence),
        n_items=whole.n_items,
        loss=whole.loss,
        irreducible=whole.irreducible,
        remaining=whole.remaining,
        accuracy=losses.agreement(top, delta),
        best_accuracy=losses.best_agreement(delta),
        per_class=losses.parts(top, delta),
        per_cell={} if numbers is None else losses.parts(numbers, delta),
        assumptions=assumptions_of(loss, least, judged),
    )


class EntropyBounds(NamedTuple):
    """Two statistics of each item with several labels, NaN elsewhere."""

    below: BoundedMean  #: mean at most the irreducible part
    above: BoundedMean  #: mean at least the irreducible part


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
        """Check the predictions called `name`, and compute the loss of each item."""
        predictions = judged.check_predictions(probabilities, name, loss, floor)
        losses = item_losses(predictions, judged, loss, floor=floor)
        return cls(predictions, judged, loss, losses)

    def whole(self, delta: float) -> HeadroomPart:
        """Return the loss of all items and its two parts."""
        return self.parts(np.zeros(len(self.predictions), dtype=np.intp), delta)[0]

    def parts(self, numbers: Index, delta: float) -> dict[int, HeadroomPart]:
        """Return the losses of groups of items, by their numbers."""
        distinct, group = np.unique(numbers, return_inverse=True)
        estimates = self.entropy_estimates(group)
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
        most = get_entropy(ENTROPY_OF_LOSS[self.loss]).maximum(self.predictions.shape[1])
        paired = rows & self.judged.several  # one label tells nothing of what is left
        if not paired.any():
            highest = self.losses.at_most(delta, rows, self.judged.advises)
            unknown = Interval(math.nan, 0.0, min(highest, most))
            return HeadroomPart(int(rows.sum()), interval, unknown, unknown._replace(upper=highest))
        floor = self.irreducible_limits(rows, bounds, delta).inside(most)
        left = self.remaining_limits(rows, bounds, delta)
        irreducible = _inside(estimate, floor)
        mean_loss = float(self.losses.values[paired].mean())
        remaining = _inside(mean_loss - irreducible.estimate, left)
        return HeadroomPart(int(rows.sum()), interval, irreducible, remaining)

    def irreducible_limits(self, rows: Mask, bounds: EntropyBounds, delta: float) -> Limits:
        """Return limits of the entropy of some items' label distributions."""
        several = self.judged.several
        chosen = (rows & several, self.judged.advises & several)
        lower = bounds.below.at_least(delta / 2, *chosen)
        return Limits(lower, bounds.above.at_most(delta / 2, *chosen))

    def remaining_limits(self, rows: Mask, bounds: EntropyBounds, delta: float) -> Limits:
        """Return limits of the loss of some items less the entropy of their label distributions."""
        several = self.judged.several
        chosen = (rows & several, self.judged.advises & several)
        lower = (self.losses - bounds.above).at_least(delta / 2, *chosen)
        upper = (self.losses - bounds.below).at_most(delta / 2, *chosen)
        return Limits(lower, upper).inside(self.losses.high)

    def entropy_bounds(self, n_items: int) -> EntropyBounds:
        """Return statistics on either side of the entropy, for groups of about n_items items."""
        several = self.judged.several
        if not several.any():
            nothing = BoundedMean(np.full(len(several), np.nan), -math.inf, math.inf)
            return EntropyBounds(nothing, nothing)
        if self.loss == "brier":
            unbiased = disagreement(self.judged)
            return EntropyBounds(unbiased, unbiased)
        advice = self._advice(n_items)
        return EntropyBounds(self._one_sided(advice, "lower"), self._one_sided(advice, "upper"))

    def _advice(self, n_items: int) -> Advice:
        """Choose statistics of the labels from the items that only advise."""
        judged = self.judged
        asked = judged.counts[judged.advises & judged.several]
        return advise(
            Sample(asked, np.ones(len(asked))) if len(asked) else None,
            estimator_sizes(judged.totals),
            n_classes=judged.counts.shape[1],
            n_items=n_items,
            same_order=False,
        )

    def _one_sided(self, advice: Advice, side: Side) -> BoundedMean:
        several = self.judged.several
        counts = self.judged.counts[several]
        found, used = statistic_values(Sample(counts, np.ones(len(counts))), advice, side)
        values = np.full(len(several), np.nan)
        values[several] = found
        low = min(estimator.minimum for estimator in used)
        return BoundedMean(values, low, max(estimator.maximum for estimator in used))

    def entropy_estimates(self, group: Index) -> Array:
        """Return the mean entropy of each group's label distributions, NaN without two labels."""
        several = self.judged.several
        n_groups = int(group.max()) + 1
        n_several = np.bincount(group[several], minlength=n_groups)
        means = np.full(n_groups, np.nan)
        if not several.any():
            return means
        if self.loss == "brier":
            values = disagreement(self.judged).values[several]
            sums = np.bincount(group[several], values, minlength=n_groups)
            np.divide(sums, n_several, out=means, where=n_several > 0)
        else:
            aligned = align_counts(self.predictions, self.judged.counts)
            each = np.arange(n_groups)
            fit = deconvolve(aligned, group, np.ones(len(group)), group=each, level=0 * each)
            entropy = fit.weights @ Shannon().value(fit.atoms, check_input=False)
            means = np.where(n_several > 0, entropy, means)
        return means

    def agreement(self, top: Index, delta: float) -> Interval:
        """Return how often a new person's label is the model's most likely class."""
        hits = self.judged.shares[np.arange(len(top)), top]
        bounded = BoundedMean(hits, 0.0, 1.0)
        return bounded.interval(delta, self.judged.everything, self.judged.advises)

    def best_agreement(self, delta: float) -> float:
        """Return an upper limit of E max_j p_j, which no model's agreement exceeds.

        Among label distributions with one ||p||^2, max_j p_j is largest for p = (a, b, ..., b), a
        concave function of ||p||^2; so E ||p||^2, how often two people agree, bounds its mean.
        """
        several = self.judged.several
        if not several.any():
            return 1.0
        chosen = (several, self.judged.advises & several)
        agree = 1 - disagreement(self.judged).at_least(delta, *chosen)
        n_classes = int(self.predictions.shape[1])
        spread = max(n_classes * agree - 1, 0.0)  # 0 when labels fall evenly on all classes
        return min((1 + math.sqrt((n_classes - 1) * spread)) / n_classes, 1.0)


def disagreement(judged: Judged) -> BoundedMean:
    """Return the share of pairs of an item's labels that disagree, unbiased for 1 - ||p||^2."""
    several = judged.several
    totals = judged.totals[several]
    squares = (judged.shares[several] ** 2).sum(axis=1)
    values = np.full(len(several), np.nan)
    values[several] = totals / (totals - 1) * (1 - squares)
    smallest = int(totals.min())
    n_classes = judged.counts.shape[1]
    # All labels may differ unless there are more of them than classes; then even shares are worst.
    most = 1.0 if smallest <= n_classes else smallest / (smallest - 1) * (1 - 1 / n_classes)
    return BoundedMean(values, 0.0, most)


def _inside(estimate: float, limits: Limits) -> Interval:
    """Return an estimate moved inside its limits."""
    return Interval(float(np.clip(estimate, *limits)), *limits)


def _with_limits(interval: Interval) -> str:
    return f"{decimal(interval.estimate)} [{decimal(interval.lower)}, {decimal(interval.upper)}]"
