"""Limits of the means of cells' statistics, of many cells and statistics at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hocal._base.typing import Array, Index, Mask
from hocal.guarantees.betting import Draws
from hocal.guarantees.dealt_cells import Offset, can_be_dealt
from hocal.guarantees.entropy_bets import lower_entropies
from hocal.guarantees.fixed_number import upper_limits
from hocal.guarantees.item_statistics import (
    Advice,
    Statistic,
    guess_losses,
    item_draws,
    rest_offset,
)
from hocal.guarantees.joint_limits import JointShares, class_shares
from hocal.guarantees.learnt_guesses import upper_entropies
from hocal.guarantees.mean_region import (
    LOSS_MULTIPLIERS,
    MeanRegions,
    least_rests,
    mean_regions,
)
from hocal.guarantees.samples import Sample
from hocal.uncertainty.entropy import Brier, Separable, Shannon

__all__ = ["KINDS", "CellMeans", "Ends", "Limit"]

FEWEST_GUESSED = 20  # items; a region of fewer is nearly everything, and costs as much
KINDS: dict[str, Separable] = {"shannon": Shannon(), "brier": Brier()}


class Ends(NamedTuple):
    """Ends of the intervals of several cells, infinite where nothing is known."""

    lower: Array  #: (n_cells,)
    upper: Array  #: (n_cells,)

    def intersect(self, other: Ends) -> Ends:
        """Return what lies inside both."""
        return Ends(np.maximum(self.lower, other.lower), np.minimum(self.upper, other.upper))

    def inside(self, largest: float) -> Ends:
        """Do as `Limits.inside` does."""
        lower = np.maximum(self.lower, 0.0)
        upper = np.minimum(self.upper, largest)
        crossed = lower > upper
        return Ends(np.where(crossed, 0.0, lower), np.where(crossed, largest, upper))

    def where(self, rows: Mask, other: Ends) -> Ends:
        """Return these in some rows, and others elsewhere."""
        lower = np.where(rows, self.lower, other.lower)
        return Ends(lower, np.where(rows, self.upper, other.upper))


class Limit(NamedTuple):
    """Which limit is meant."""

    statistic: Statistic
    delta: float  #: chance of failure
    side: int  #: 1 for an upper limit, -1 for a lower one


class CellMeans:
    """Several cells, and limits of the means of their statistics."""

    def __init__(self, samples: Sequence[Sample], advice: Sequence[Advice]) -> None:
        self.samples = samples
        self.advice = advice
        self.draws = [item_draws(*pair) for pair in zip(samples, advice, strict=True)]
        self.guessed: Mask = np.array([each.guess is not None for each in advice])
        self.several = self.having(Statistic.DISAGREEMENT)
        self.pairs: Mask = np.array([_of_pairs(each) for each in self.draws])
        #: cells in which bets on the entropy of the mean are worth while
        self.betting: Mask = self.guessed & np.array([can_be_dealt(each) for each in samples])
        inside = [each.at_least(2) for each in samples]
        self.betting_inside: Mask = self.guessed & np.array([can_be_dealt(each) for each in inside])
        self._known: dict[Limit, Array] = {}
        self._regions: dict[float, MeanRegions] = {}
        self._rests: dict[tuple[str, float], Array] = {}

    def __len__(self) -> int:
        return len(self.samples)

    def having(self, statistic: Statistic) -> Mask:
        """Tell which cells have items for a statistic."""
        return np.array([statistic in each for each in self.draws])

    def low(self, statistic: Statistic, delta: float) -> Array:
        """Return what the means fall below with chance delta at most."""
        return self._limits(Limit(statistic, delta, -1))

    def high(self, statistic: Statistic, delta: float) -> Array:
        """Return what the means exceed with chance delta at most."""
        return self._limits(Limit(statistic, delta, 1))

    def _limits(self, wanted: Limit) -> Array:
        if wanted not in self._known:
            self.look_up([wanted])
        return self._known[wanted]

    def look_up(self, wanted: Sequence[Limit]) -> None:
        """Find several limits at once, which cost little more than one; infinite without items."""
        facing = []
        deviations = []
        for limit in wanted:
            for each, advice in zip(self.draws, self.advice, strict=True):
                draws = each.get(limit.statistic)
                if draws is not None:
                    facing.append(draws if limit.side > 0 else draws.negative())
                    deviations.append(advice.deviations.get(limit.statistic, np.inf))
        rows = [self.having(limit.statistic) for limit in wanted]
        deltas = np.repeat([limit.delta for limit in wanted], [each.sum() for each in rows])
        found = upper_limits(facing, deltas, np.array(deviations))
        start = 0
        for limit, own in zip(wanted, rows, strict=True):
            ends = np.full(len(self), np.inf)
            ends[own] = found[start : start + own.sum()]
            start += int(own.sum())
            self._known[limit] = limit.side * ends

    @cached_property
    def _shares(self) -> JointShares:
        shares = [class_shares(each.counts, each.totals, each.repeats) for each in self.samples]
        return JointShares(shares, self.samples[0].n_classes)

    def box(self, entropy: str, delta: float) -> Ends:
        """Return limits of the entropy of the means, from limits of all classes at once."""
        return Ends(*self._shares.box(KINDS[entropy].component, delta))

    @cached_property
    def _guessed_rows(self) -> Index:
        """Cells with a guess and enough items for a region."""
        enough = np.array([sample.n_items >= FEWEST_GUESSED for sample in self.samples])
        return np.flatnonzero(self.guessed & enough)

    @cached_property
    def _guesses(self) -> Array:
        return np.stack([np.asarray(self.advice[row].guess) for row in self._guessed_rows.tolist()])

    def entropies(self, delta: float, side: int) -> Array:
        """Return limits of H(m) by bets on it, each failing with chance delta.

        From below for side -1, from above for 1; infinite without bets.
        """
        rows = np.flatnonzero(self.betting).tolist()
        samples = [self.samples[row] for row in rows]
        # From below, the loss is that of a mean which is learnt, and varies more than a guess's.
        known = [self.advice[row].deviations.get(Statistic.LOSS, np.inf) for row in rows]
        deviations = known if side > 0 else [np.inf] * len(rows)
        offsets = [Offset.none(*pair) for pair in zip(samples, deviations, strict=True)]
        return self._bet(rows, samples, offsets, delta, side)

    def rest_entropies(self, delta: float, side: int) -> Array:
        """Return the same for H(m) less the mean of the aleatoric statistic of the other side."""
        rest = Statistic.LOWER_REST if side < 0 else Statistic.UPPER_REST
        rows = np.flatnonzero(self.betting_inside).tolist()
        samples = [self.samples[row].at_least(2) for row in rows]
        known = zip(samples, rows, strict=True)
        offsets = [rest_offset(sample, self.advice[row], rest) for sample, row in known]
        return self._bet(rows, samples, offsets, delta, side)

    def _bet(
        self,
        rows: list[int],
        samples: list[Sample],
        offsets: list[Offset],
        delta: float,
        side: int,
    ) -> Array:
        result = np.full(len(self), side * np.inf)
        if rows:
            guesses = np.stack([np.asarray(self.advice[row].guess) for row in rows])
            limits = lower_entropies if side < 0 else upper_entropies
            result[rows] = limits(samples, guesses, offsets, delta)
        return result

    def _region(self, delta: float) -> MeanRegions:
        if delta not in self._regions:
            samples = [self.samples[row] for row in self._guessed_rows.tolist()]
            self._regions[delta] = mean_regions(samples, self._guesses, delta)
        return self._regions[delta]

    def rests(self, entropy: str, delta: float) -> Array:
        """Return what G(m) - c * (loss of the guess) is at least, (n_cells, n_multipliers c).

        It fails with chance delta at most; infinite without a guess or with very few items.
        """
        if (entropy, delta) not in self._rests:
            result = np.full((len(self), len(LOSS_MULTIPLIERS)), -np.inf)
            if len(self._guessed_rows):
                losses = guess_losses(self._guesses, entropy)
                component = KINDS[entropy].component
                result[self._guessed_rows] = least_rests(component, self._region(delta), losses)
            self._rests[entropy, delta] = result
        return self._rests[entropy, delta]


def _of_pairs(draws: dict[Statistic, Draws]) -> bool:
    """Tell whether all items that have several labels have two."""
    return Statistic.DISAGREEMENT in draws and draws[Statistic.DISAGREEMENT].binary
