"""What other cells suggest for a cell: which statistics of its labels to use.

A statistic is chosen from other cells, never from the sample it is used on. Any choice is valid;
a good one narrows the intervals.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy import stats

from hocal._base.typing import Array, IntArray
from hocal.guarantees.bernstein import (
    BernsteinEstimator,
    Side,
    bernstein_estimator,
)
from hocal.guarantees.item_statistics import (
    PLAIN_SIDES,
    Advice,
    Statistic,
    item_draws,
    largest_size,
)
from hocal.guarantees.learnt_guesses import UNIFORM_SHARE
from hocal.guarantees.samples import Sample
from hocal.guarantees.snapshot_marginals import dirichlet_marginal, snapshot_marginal

__all__ = [
    "SIZES",
    "Advice",
    "advise",
    "estimator_sizes",
]

ONE_SIDED: tuple[Side, ...] = ("upper", "lower")

# Labels of the snapshots with an estimator of their own when totals differ or are large: an item
# wastes less than half of its labels, and more than 20 hardly narrow an interval.
SIZES = (2, 3, 5, 10, 20)
MIN_ADVISERS = 30  # items whose advice is worth taking
# Items of other cells that are looked at: more would not change what they advise.
MAX_ADVISERS = 20_000
MAX_VARYING = 1_000  # the same for how much statistics vary, which needs less care
# Statistics that items with one label have too.
OF_ALL_ITEMS = (Statistic.LOSS, Statistic.BRIER_LOSS, Statistic.PREDICTIVE_PAIRS)
# Of the reference, so that a statistic is not useless in a cell that is unlike its neighbours.
UNADVISED_SHARE = 0.05
# Labels of the snapshots whose statistics tell the leading class from the others. With two labels
# that gains nothing, and with more than these less than a hundredth.
LED_SIZES = range(3, 8)
N_GRID = 101  # probabilities on which the marginal of a mixture is fitted to that of a sample
N_FIT_STEPS = 100  # of expectation maximisation for it


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
    leader: int | None = None,
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
    leader : int, optional
        Class that statistics count apart, if there are more than two; with the same order, that of
        most labels.

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
        leader = int(np.argmax(guess)) if leader is None else leader
    leader = leader if n_classes > 2 else None  # one count of two says which class has it
    advice = Advice(
        _estimators(advisers, sizes, n_classes, n_items, leader),
        guess,
        _estimators(None, sizes, n_classes, typical),
    )
    return replace(advice, deviations=_deviations(advisers.every(MAX_VARYING), advice))


def _deviations(advisers: Sample, advice: Advice) -> dict[Statistic, float]:
    """Return how much advised statistics vary between items, or pairs of them."""
    found = item_draws(advisers, advice)
    several = found.get(Statistic.DISAGREEMENT)
    enough = several is not None and several.repeats.sum() >= MIN_ADVISERS
    return {
        statistic: float(draws.deviation()[0])
        for statistic, draws in found.items()
        if statistic not in PLAIN_SIDES and (enough or statistic in OF_ALL_ITEMS)
    }


def _estimators(
    advisers: Sample | None,
    sizes: tuple[int, ...],
    n_classes: int,
    n_items: float,
    leader: int | None = None,
) -> dict[tuple[Side, int], BernsteinEstimator]:
    """Return the statistics of all sizes, for a reference that advisers give or for none."""
    found: dict[tuple[Side, int], BernsteinEstimator] = {}
    for size in sizes:
        own = leader if size in LED_SIZES else None
        reference = None if advisers is None else _reference(advisers, size, own)
        for side in ONE_SIDED:
            found[side, size] = bernstein_estimator(
                "shannon",
                size,
                n_classes,
                side=side,
                reference=reference,
                n_items=max(n_items, 1),
                leader=None if reference is None else own,
            )
    return found


def _reference(advisers: Sample, size: int, leader: int | None) -> Array | None:
    """Return where estimators of a size should be tight, if enough advisers have so many labels."""
    able = advisers.at_least(size).every(MAX_ADVISERS)
    if able.n_items < MIN_ADVISERS:
        return None
    seen = snapshot_marginal(able.counts, size, weights=able.repeats, leader=leader)
    plain = dirichlet_marginal(size, advisers.n_classes, led=leader is not None)
    nearest = np.apply_along_axis(_nearest_marginal, -1, seen)
    return np.asarray((1 - UNADVISED_SHARE) * nearest + UNADVISED_SHARE * plain)


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
