"""Cells side by side, their items dealt out at random to blocks, for bets on the entropy of a mean.

A statistic Z of each item, an `Offset`, is taken away from what the bets are about.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from hocal._base.typing import Array, Index
from hocal.guarantees.bernstein import BernsteinEstimator
from hocal.guarantees.deadline import Sequences, n_blocks, shuffled
from hocal.guarantees.orders import batches
from hocal.guarantees.samples import Sample

__all__ = ["DealtCells", "Offset", "can_be_dealt", "dealt_cells"]

_FEWEST = 20  # items; with fewer there is no time to learn how much losses vary
_MOST_NUMBERS = 1 << 22  # in the shares of a cell's items: beyond, a calculation would take seconds
_AT_ONCE = 1 << 21  # numbers in the arrays of one calculation, 16 MB
_CANDIDATES = 13  # that are looked at together, roughly


class Offset(NamedTuple):
    """A statistic Z of each item."""

    values: Array  #: (n_rows,) of each row of a sample
    low: float  #: smallest possible value
    high: float
    deviation: float  #: standard deviation of a guess's loss less Z, guessed; infinite if unknown
    estimators: tuple[BernsteinEstimator, ...] = ()  #: that gave the values; none where they are 0

    @classmethod
    def none(cls, sample: Sample, deviation: float = np.inf) -> Offset:
        """Return 0 for all items."""
        return cls(np.zeros(len(sample.repeats)), 0.0, 0.0, deviation)


class DealtCells(NamedTuple):
    """Cells with similarly many items, in several orders each."""

    shares: Array  #: (n_cells, n_rows, n_classes), of classes that a cell has seen
    offsets: Array  #: (n_cells, n_rows)
    guess: Array  #: (n_cells, n_classes), 1 for padding
    rows: Index  #: (n_blocks, n_cells, n_orders, n_places), which row was drawn in a block
    often: Array  #: the same shape, how often
    left: Array  #: (n_blocks, n_cells) items that are left before a block
    low: Array  #: (n_cells,) smallest and largest Z
    high: Array
    largest: Array  #: (n_cells,) loss of a label under the guess
    centre: Array  #: (n_cells,) entropy of the mean less the mean of Z
    deviation: Array  #: (n_cells,) of the loss under the guess less Z
    variance: Array  #: (n_cells,) the same squared, guessed beforehand, infinite if unknown


def can_be_dealt(sample: Sample) -> bool:
    """Tell whether a sample has enough items, and few enough to look at them in an order."""
    whole = bool((sample.repeats == np.floor(sample.repeats)).all())
    small = sample.counts.size <= _MOST_NUMBERS and sample.n_items <= _MOST_NUMBERS
    return whole and small and sample.n_items >= _FEWEST


def dealt_cells(
    samples: Sequence[Sample], guesses: Array, offsets: Sequence[Offset]
) -> Iterator[tuple[list[int], DealtCells]]:
    """Yield the places of cells that are looked at together, and the cells."""
    orders = [sample.order for sample in samples]
    sizes = [sample.n_items for sample in samples]
    for places in batches(orders, sizes, [_n_numbers(each) for each in samples], _AT_ONCE):
        pairs = [_sorted(samples[place], offsets[place]) for place in places]
        parts = [sample for sample, _ in pairs]
        yield places, _table(parts, [offset for _, offset in pairs], guesses[places])


def _sorted(sample: Sample, offset: Offset) -> tuple[Sample, Offset]:
    """Sort the rows of a sample, whose order says nothing, by their counts."""
    order = np.lexsort(sample.counts.T)
    rows = Sample(sample.counts[order], sample.repeats[order])
    return rows, offset._replace(values=offset.values[order])


def _n_numbers(sample: Sample) -> int:
    """Return about how many numbers the bets on a cell are computed with."""
    n_seen = int((sample.counts > 0).any(axis=0).sum())
    draws = min(sample.n_items, n_blocks(sample.n_items) * len(sample.counts))
    return draws * max(n_seen, _CANDIDATES)


def _table(samples: Sequence[Sample], offsets: Sequence[Offset], guesses: Array) -> DealtCells:
    """Put cells side by side, padded with rows and classes that never occurred."""
    seen = [np.flatnonzero((sample.counts > 0).any(axis=0)) for sample in samples]
    n_rows = max(len(sample.repeats) for sample in samples)
    n_seen = max(len(each) for each in seen)
    shares = np.zeros((len(samples), n_rows, n_seen))
    zs = np.zeros((len(samples), n_rows))
    guess = np.ones((len(samples), n_seen))
    for cell, (sample, classes, offset) in enumerate(zip(samples, seen, offsets, strict=True)):
        shares[cell, : len(sample.repeats), : len(classes)] = sample.shares[:, classes]
        zs[cell, : len(sample.repeats)] = offset.values
        guess[cell, : len(classes)] = guesses[cell, classes]
    dealt = _deal(samples)
    known = [_moments(*each) for each in zip(samples, guesses, offsets, strict=True)]
    return DealtCells(
        shares,
        zs,
        guess,
        dealt.values.astype(np.intp),
        dealt.repeats,
        dealt.left,
        np.array([offset.low for offset in offsets]),
        np.array([offset.high for offset in offsets]),
        -np.log(guesses.min(axis=1)),
        np.array([centre for centre, _ in known]),
        np.array([deviation for _, deviation in known]),
        np.array([offset.deviation for offset in offsets]) ** 2,
    )


def _deal(samples: Sequence[Sample]) -> Sequences:
    """Return the numbers of rows in the order of the bets."""
    histograms = [
        (np.arange(len(sample.repeats), dtype=np.float64), sample.repeats.astype(np.int64))
        for sample in samples
    ]
    zeros = np.zeros(len(samples))
    return shuffled(histograms, zeros, zeros, zeros, [sample.order for sample in samples])


def _moments(sample: Sample, guess: Array, offset: Offset) -> tuple[float, float]:
    """Return the entropy of a mean less the mean of Z, and how much losses less Z vary."""
    chance = sample.repeats / sample.repeats.sum()
    mean = sample.mean
    centre = -special.xlogy(mean, mean).sum() - chance @ offset.values
    losses = sample.shares @ -np.log(guess) - offset.values
    deviation = np.sqrt(chance @ (losses - chance @ losses) ** 2)
    return float(centre), float(deviation)
