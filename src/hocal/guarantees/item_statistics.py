"""Bounded statistics of a cell's items whose means are uncertainties, or lie on one side of them.

The labels of an item show its own label distribution p: aleatoric uncertainty. The loss that a
guess q of the cell's mean label distribution m makes on an item's labels shows how uncertain m is:
its mean is G(m) + D(m || q), at least the predictive uncertainty. What is left of the loss after
the aleatoric part shows epistemic uncertainty.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from hocal._base.typing import Array, IntArray
from hocal.guarantees.bernstein import BernsteinEstimator, Side
from hocal.guarantees.betting import Draws
from hocal.guarantees.dealt_cells import Offset
from hocal.guarantees.item_pairs import MAX_PAIRED, epistemic_pairs, predictive_pairs
from hocal.guarantees.mean_region import LOSS_MULTIPLIERS
from hocal.guarantees.samples import Sample

__all__ = [
    "PLAIN_SIDES",
    "Advice",
    "Statistic",
    "guess_losses",
    "item_draws",
    "largest_size",
    "most_disagreement",
    "rest_offset",
    "statistic_values",
]


class Statistic(Enum):
    """The statistics of a cell's items whose means are bounded."""

    UPPER_ALEATORIC = "mean at least the aleatoric uncertainty"
    LOWER_ALEATORIC = "mean at most the aleatoric uncertainty"
    PLAIN_UPPER = "mean at least the aleatoric uncertainty, without advice"
    PLAIN_LOWER = "mean at most the aleatoric uncertainty, without advice"
    LOSS = "loss of a guess"
    UPPER_REST = "loss of a guess less the lower aleatoric statistic"
    LOWER_REST = "a part of the loss of a guess less the upper aleatoric statistic"
    DISAGREEMENT = "disagreement between labels of an item"
    BRIER_LOSS = "Brier score of a guess"
    BRIER_REST = "Brier score of a guess less the disagreement"
    PREDICTIVE_PAIRS = "disagreement between labels of two items"
    EPISTEMIC_PAIRS = "disagreement between items less that inside them"


@dataclass(frozen=True, eq=False)
class Advice:
    """Which statistics to use, as other cells suggest: never the sample they are used on."""

    #: Of an item's labels, by side and snapshot size.
    estimators: dict[tuple[Side, int], BernsteinEstimator]
    guess: Array | None = None  #: (n_classes,) of the mean label distribution
    #: As `estimators`, but of no cell's advice.
    plain: dict[tuple[Side, int], BernsteinEstimator] = field(default_factory=dict)
    #: Standard deviations of statistics, for stakes.
    deviations: dict[Statistic, float] = field(default_factory=dict)


def largest_size(total: int, sizes: tuple[int, ...]) -> int:
    """Return the largest snapshot that an item with so many labels can fill."""
    return max(size for size in sizes if size <= total)


def item_draws(sample: Sample, advice: Advice) -> dict[Statistic, Draws]:
    """Return the statistics that a sample has items for, and that some limit needs."""
    draws: dict[Statistic, Draws] = {}
    several = sample.at_least(2)
    if several.n_items > 0:
        draws |= _aleatoric_draws(several, advice)
    if 2 <= several.n_items <= MAX_PAIRED:
        draws[Statistic.EPISTEMIC_PAIRS] = epistemic_pairs(several)
    if advice.guess is not None:
        for entropy, loss in (("shannon", Statistic.LOSS), ("brier", Statistic.BRIER_LOSS)):
            losses = guess_losses(advice.guess, entropy)
            draws[loss] = _loss_draws(sample, losses)
            if several.n_items > 0:
                draws |= _rests(several, advice, losses, entropy)
    elif 2 <= sample.n_items <= MAX_PAIRED:
        draws[Statistic.PREDICTIVE_PAIRS] = predictive_pairs(sample)
    return draws


def _rests(sample: Sample, advice: Advice, losses: Array, entropy: str) -> dict[Statistic, Draws]:
    """Return what is left of the loss of a guess; of Brier, where items are too many to pair."""
    if entropy == "brier" and sample.n_items <= MAX_PAIRED:
        return {}
    parts = SHANNON_RESTS if entropy == "shannon" else BRIER_RESTS
    return {
        rest: _rest_draws(sample, advice, FACTORS.get(rest, 1.0) * losses, part)
        for rest, part in parts.items()
    }


# What is left of a loss, and the part of it that is taken away.
SHANNON_RESTS = {
    Statistic.UPPER_REST: Statistic.LOWER_ALEATORIC,
    Statistic.LOWER_REST: Statistic.UPPER_ALEATORIC,
}
# Of the loss, in a rest. From below, how far the guess may be off is taken away too, and that is
# much less for a part of the loss: G(m) - E G(p) is at least a mean of c * loss - statistic, plus
# the least G(m) - c * loss.
FACTORS = {Statistic.LOWER_REST: float(LOSS_MULTIPLIERS[0])}
BRIER_RESTS = {Statistic.BRIER_REST: Statistic.DISAGREEMENT}
SIDES: dict[Statistic, Side] = {
    Statistic.UPPER_ALEATORIC: "upper",
    Statistic.LOWER_ALEATORIC: "lower",
}
PLAIN_SIDES: dict[Statistic, Side] = {
    Statistic.PLAIN_UPPER: "upper",
    Statistic.PLAIN_LOWER: "lower",
}


def guess_losses(guess: Array, entropy: str) -> Array:
    """Return the loss of each label under guessed label distributions, along the last axis."""
    if entropy == "brier":
        return np.asarray(1 - 2 * guess + (guess**2).sum(axis=-1, keepdims=True))
    return np.asarray(-np.log(guess))


def _aleatoric_draws(sample: Sample, advice: Advice) -> dict[Statistic, Draws]:
    order = sample.order
    smallest = int(sample.totals.min())
    pairs = int(sample.totals.max()) == 2  # they agree, or they do not
    most = most_disagreement(smallest, sample.n_classes)
    values = sample.disagreements
    disagreement = Draws.of(values, sample.repeats, 0, most, binary=pairs, order=order)
    draws = {Statistic.DISAGREEMENT: disagreement}
    if pairs:  # which says all
        return draws
    chosen = dict.fromkeys(SIDES, advice.estimators) | dict.fromkeys(PLAIN_SIDES, advice.plain)
    for statistic, side in (SIDES | PLAIN_SIDES).items():
        if chosen[statistic]:
            values, used = _values(sample, chosen[statistic], side)
            low = min(each.minimum for each in used)
            high = max(each.maximum for each in used)
            draws[statistic] = Draws.of(values, sample.repeats, low, high, order=order)
    return draws


def most_disagreement(total: int, n_classes: int) -> float:
    """Return the largest disagreement of so many labels: all differ, or shares are even."""
    return 1.0 if total <= n_classes else total / (total - 1) * (1 - 1 / n_classes)


def _loss_draws(sample: Sample, losses: Array) -> Draws:
    ends = (float(losses.min()), float(losses.max()))
    return Draws.of(sample.shares @ losses, sample.repeats, *ends, order=sample.order)


def _rest_draws(sample: Sample, advice: Advice, losses: Array, part: Statistic) -> Draws:
    """Return the loss less a part of it, between the ends that labels can have."""
    if part is Statistic.DISAGREEMENT:
        values = sample.disagreements
        most = most_disagreement(int(sample.totals.min()), sample.n_classes)
        ends = [(float(losses.min()) - most, float(losses.max()))]
    else:
        values, used = statistic_values(sample, advice, SIDES[part])
        ends = [estimator.rest_ends(losses) for estimator in used]
    low = min(least for least, _ in ends)
    high = max(most for _, most in ends)
    rest = sample.shares @ losses - values
    return Draws.of(rest, sample.repeats, low, high, order=sample.order)


def statistic_values(
    sample: Sample, advice: Advice, side: Side
) -> tuple[Array, list[BernsteinEstimator]]:
    """Return each item's one-sided statistic of its entropy, and the estimators that gave them."""
    return _values(sample, advice.estimators, side)


def rest_offset(sample: Sample, advice: Advice, rest: Statistic) -> Offset:
    """Return each item's statistic that is taken away in a rest, as an offset of bets."""
    side = SIDES[SHANNON_RESTS[rest]]
    values, used = statistic_values(sample, advice, side)
    low = min(each.minimum for each in used)
    high = max(each.maximum for each in used)
    return Offset(values, low, high, advice.deviations.get(rest, np.inf), tuple(used))


def _values(
    sample: Sample, estimators: dict[tuple[Side, int], BernsteinEstimator], side: Side
) -> tuple[Array, list[BernsteinEstimator]]:
    sizes = tuple(size for name, size in estimators if name == side)
    values = np.empty(len(sample.counts))
    used = []
    for total in np.unique(sample.totals):
        rows = sample.totals == total
        estimator = estimators[side, largest_size(total, sizes)]
        hits, places = _distinct_hits(sample.counts[rows])
        kinds = [_elevate(kind, int(total), hits) for kind in estimator.kinds]
        values[rows] = estimator.sums(places, *kinds)
        used.append(estimator)
    return values, used


def _distinct_hits(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Return the numbers that occur, few of a million labels, and the place of each among them."""
    some = counts > 0
    positive = counts[some]
    hits = np.unique(np.append(positive, 0))
    places = np.zeros_like(counts)  # most are 0, the first of all
    places[some] = np.searchsorted(hits, positive)
    return hits, places


def _elevate(values: Array, total: int, hits: IntArray) -> Array:
    """Return a statistic's average over all k of an item's labels, for some counts of a class."""
    k = len(values) - 1
    if k == total:
        return values[hits]
    return np.asarray(_hit_chances(k, total, hits) @ values)


def _hit_chances(k: int, total: int, hits: IntArray) -> Array:
    """Return the chances of 0, ..., k hits among k labels of so many, (len(hits), k + 1).

    The labels are drawn one by one, which is exact for any total, unlike differences of logarithms.
    """
    seen = np.arange(k + 1)
    chances = np.zeros((len(hits), k + 1))
    chances[:, 0] = 1
    for n_drawn in range(k):
        hit = (hits[:, None] - seen) / (total - n_drawn)
        miss = (total - hits[:, None] - n_drawn + seen) / (total - n_drawn)
        grown = chances[:, :-1] * hit[:, :-1]
        chances *= miss
        chances[:, 1:] += grown
    return chances
