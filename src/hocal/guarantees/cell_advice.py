"""What other cells suggest for a cell: which statistics of its labels to use.

A statistic is chosen from other cells, never from the sample it is used on. Any choice is valid;
a good one narrows the intervals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

from hocal._base.typing import Array, IntArray
from hocal.guarantees.bernstein import (
    BernsteinEstimator,
    Side,
    bernstein_estimator,
    snapshot_marginal,
)
from hocal.guarantees.item_pairs import epistemic_pairs, predictive_pairs
from hocal.guarantees.samples import Sample

__all__ = [
    "SIZES",
    "Advice",
    "advise",
    "estimator_sizes",
    "largest_size",
]

ONE_SIDED: tuple[Side, ...] = ("upper", "lower")

# Labels of the snapshots with an estimator of their own when totals differ or are large: an item
# wastes less than half of its labels, and more than 20 hardly narrow an interval.
SIZES = (2, 3, 5, 10, 20)
MIN_ADVISERS = 30  # items whose advice is worth taking
# Items of other cells that are looked at: more would not change what they advise.
MAX_ADVISERS = 20_000
MAX_PAIRED_ADVISERS = 1_000  # the same for how much pairs of them vary, which needs less care
# Of the reference, so that a statistic is not useless in a cell that is unlike its neighbours.
UNADVISED_SHARE = 0.05
UNIFORM_SHARE = 0.02  # of the guessed label distribution, so that no label has an unbounded loss
N_GRID = 101  # probabilities on which the marginal of a mixture is fitted to that of a sample
N_FIT_STEPS = 100  # of expectation maximisation for it


@dataclass(frozen=True, eq=False)
class Advice:
    """Which statistics to use."""

    #: Of an item's labels, by side and snapshot size.
    estimators: dict[tuple[Side, int], BernsteinEstimator]
    guess: Array | None = None  #: (n_classes,) of the mean label distribution
    #: As `estimators`, but of no cell's advice.
    plain: dict[tuple[Side, int], BernsteinEstimator] = field(default_factory=dict)
    #: Standard deviations of statistics of pairs of items: predictive, epistemic.
    pair_deviations: tuple[float, float] | None = None


def estimator_sizes(totals: IntArray) -> tuple[int, ...]:
    """Return the snapshot sizes that need estimators: an item uses the largest it can fill.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.guarantees.cell_advice import estimator_sizes
    >>> estimator_sizes(np.array([7, 7])), estimator_sizes(np.array([1, 4, 12]))
    ((7,), (3, 10))
    """
    distinct = np.unique(totals[totals > 1])
    if len(distinct) == 1 and distinct[0] <= SIZES[-1]:
        return (int(distinct[0]),)
    used = {largest_size(total, SIZES) for total in distinct}
    return tuple(size for size in SIZES if size in used)


def advise(
    others: Sample | None,
    sizes: tuple[int, ...],
    *,
    n_classes: int,
    n_items: float,
    same_order: bool = False,
) -> Advice:
    """Choose statistics for cells of about n_items items from the items of other cells.

    Parameters
    ----------
    others : Sample or None
        Items of other cells that are likely to be similar. Fixed choices are made without them.
    sizes : tuple of int
        Snapshot sizes, as `estimator_sizes` gives them.
    n_classes : int
        Number of label classes.
    n_items : float
        Typical size of the cells advised.
    same_order : bool, default=False
        Whether a class means the same in the other cells, so that their mean is a guess of this
        cell's.

    Returns
    -------
    Advice
        Any advice is valid; good advice narrows the intervals.
    """
    advisers = others if others is not None and others.n_items >= MIN_ADVISERS else None
    if advisers is None:
        return Advice(_estimators(None, sizes, n_classes, n_items))
    # So that cells of many sizes have few programs to solve.
    typical = 2.0 ** round(math.log2(max(n_items, 1)))
    guess = None
    if same_order:
        guess = (1 - UNIFORM_SHARE) * advisers.mean + UNIFORM_SHARE / n_classes
    return Advice(
        _estimators(advisers, sizes, n_classes, n_items),
        guess,
        _estimators(None, sizes, n_classes, typical),
        _pair_deviations(advisers.every(MAX_PAIRED_ADVISERS)),
    )


def _estimators(
    advisers: Sample | None, sizes: tuple[int, ...], n_classes: int, n_items: float
) -> dict[tuple[Side, int], BernsteinEstimator]:
    """Return the statistics of all sizes, for a reference that advisers give or for none."""
    found: dict[tuple[Side, int], BernsteinEstimator] = {}
    for size in sizes:
        reference = None if advisers is None else _reference(advisers, size)
        found |= _both_sides(size, n_classes, reference, n_items)
    return found


def _pair_deviations(advisers: Sample) -> tuple[float, float]:
    """Return how much statistics of pairs of items vary, infinite where there are too few."""
    several = advisers.at_least(2)
    inside = epistemic_pairs(several).deviation()[0] if several.n_items >= MIN_ADVISERS else np.inf
    return float(predictive_pairs(advisers).deviation()[0]), float(inside)


def _both_sides(
    size: int, n_classes: int, reference: Array | None, n_draws: float
) -> dict[tuple[Side, int], BernsteinEstimator]:
    if reference is not None:
        plain = _default_reference(size, n_classes)
        reference = (1 - UNADVISED_SHARE) * reference + UNADVISED_SHARE * plain
    return {
        (side, size): bernstein_estimator(
            "shannon", size, n_classes, side=side, reference=reference, n_items=max(n_draws, 1)
        )
        for side in ONE_SIDED
    }


def _default_reference(size: int, n_classes: int) -> Array:
    """Return the marginal of a Dirichlet mixture of total concentration 1."""
    share = 1 / n_classes
    chances = stats.betabinom.pmf(np.arange(size + 1), size, share, 1 - share)
    return np.asarray(chances * (n_classes if n_classes > 2 else 1))


def _reference(advisers: Sample, size: int) -> Array | None:
    """Return where estimators of a size should be tight, if enough advisers have so many labels."""
    able = advisers.at_least(size).every(MAX_ADVISERS)
    if able.n_items < MIN_ADVISERS:
        return None
    return _nearest_marginal(snapshot_marginal(able.counts, size, weights=able.repeats))


def largest_size(total: Any, sizes: tuple[int, ...]) -> int:
    """Return the largest snapshot that an item with so many labels can fill."""
    return max(size for size in sizes if size <= total)


def _nearest_marginal(reference: Array) -> Array:
    """Return the marginal of the mixture that fits a sample's best, by expectation maximisation.

    Noise makes the marginal of a sample that of no mixture, and a linear program whose reference no
    mixture has can gain without limit: its coefficients become wild.
    """
    counts = np.arange(len(reference))
    x = np.sin(np.pi / 2 * np.linspace(0, 1, N_GRID)) ** 2
    chances = stats.binom.pmf(counts, len(reference) - 1, x[:, None])  # (n_points, k + 1)
    weights = np.full(len(x), 1 / len(x))
    shares = reference / reference.sum()
    for _ in range(N_FIT_STEPS):
        weights = weights * (chances @ (shares / (weights @ chances)))
    return np.asarray(reference.sum() * (weights @ chances))
