"""Intervals for the uncertainty of one cell that hold whatever its mixture is.

Every limit is a betting limit for the mean of a bounded statistic of the cell's items. What a
statistic leaves open (its coefficients, the size of the stakes) is chosen from other cells, never
from the sample it is used on. docs/guarantees.md and docs/mathematics.md say why they hold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from hocal._base.typing import Array, Index, IntArray, Mask
from hocal.cells.statistics import Histogram
from hocal.guarantees.bernstein import (
    BernsteinEstimator,
    Side,
    bernstein_estimator,
    snapshot_marginal,
)
from hocal.guarantees.betting import Draws, pair_draws
from hocal.guarantees.bounds import projection_slack
from hocal.guarantees.entropy_ranges import binomial_limits, shannon_range
from hocal.guarantees.joint_limits import ClassShares, JointDraws, JointShares, class_shares
from hocal.uncertainty.distinct_counts import as_dense
from hocal.uncertainty.entropy import Brier, Separable, Shannon, get_entropy

__all__ = [
    "ENTROPIES",
    "QUANTITIES",
    "TARGETS",
    "Advice",
    "Limits",
    "Sample",
    "Target",
    "advise",
    "all_intervals",
    "cell_intervals",
    "estimator_sizes",
    "rows_by_cell",
    "statistic_values",
    "worst_slack",
]

QUANTITIES = ("predictive", "aleatoric", "epistemic")
ENTROPIES = ("shannon", "brier")

ONE_SIDED: tuple[Side, ...] = ("upper", "lower")

# Labels of the snapshots with an estimator of their own when totals differ or are large: an item
# wastes less than half of its labels, and more than 20 hardly narrow an interval.
SIZES = (2, 3, 5, 10, 20)
# Items; all pairs of more are too many to list, and classwise limits are narrow by then.
MAX_PAIRED = 5_000
MIN_ADVISERS = 30  # items whose advice is worth taking
# Items of other cells that are looked at: more would not change what they advise.
MAX_ADVISERS = 20_000
MAX_DEVIATION_ADVISERS = 1_000  # the same for guesses of deviations, which need less care
UNIFORM_SHARE = 0.02  # of the guessed label distribution, so that no label has an unbounded loss
FALLBACK_SHARE = 0.2  # of delta spent on statistics that no other cell advised
N_GRID = 101  # probabilities on which the marginal of a mixture is fitted to that of a sample
N_FIT_STEPS = 100  # of expectation maximisation for it


class Statistic(Enum):
    """The statistics of a cell's items whose means are bounded."""

    LOSS = "loss of a guessed label distribution"
    UPPER_ENTROPY = "statistic whose mean is at least the aleatoric uncertainty"
    LOWER_ENTROPY = "statistic whose mean is at most the aleatoric uncertainty"
    EXCESS = "loss less the lower statistic"
    BRIER_PREDICTIVE = "disagreement between labels of two items"
    BRIER_ALEATORIC = "disagreement between labels of an item"
    BRIER_EPISTEMIC = "disagreement between items less that inside them"


class Target(NamedTuple):
    """What an interval is about."""

    quantity: str  #: one of QUANTITIES
    entropy: str  #: one of ENTROPIES


TARGETS = tuple(Target(quantity, entropy) for entropy in ENTROPIES for quantity in QUANTITIES)


class _Ends(NamedTuple):
    """Ends of the intervals of several cells, infinite where nothing is known."""

    lower: Array  #: (n_cells,)
    upper: Array  #: (n_cells,)

    def intersect(self, other: _Ends) -> _Ends:
        """Return what lies inside both."""
        return _Ends(np.maximum(self.lower, other.lower), np.minimum(self.upper, other.upper))

    def inside(self, largest: float) -> _Ends:
        """Do as `Limits.inside` does."""
        lower = np.maximum(self.lower, 0.0)
        upper = np.minimum(self.upper, largest)
        crossed = lower > upper
        return _Ends(np.where(crossed, 0.0, lower), np.where(crossed, largest, upper))


class Limits(NamedTuple):
    """Ends of an interval, infinite where nothing is known."""

    lower: float
    upper: float

    def intersect(self, other: Limits) -> Limits:
        """Return what lies inside both."""
        return Limits(max(self.lower, other.lower), min(self.upper, other.upper))

    def inside(self, largest: float) -> Limits:
        """Cut to [0, largest]; ends that cross prove that a limit failed, so nothing is claimed."""
        lower = max(self.lower, 0.0)
        upper = min(self.upper, largest)
        return Limits(lower, upper) if lower <= upper else Limits(0.0, largest)


@dataclass(frozen=True, eq=False)
class Sample:
    """Distinct count vectors of some items and how often each occurred."""

    counts: IntArray  #: (n_rows, n_classes)
    repeats: Array  #: (n_rows,)

    @classmethod
    def of(cls, histogram: Histogram, rows: Mask) -> Sample:
        """Return the items of some rows of a histogram."""
        return cls.of_rows(histogram, np.flatnonzero(rows))

    @classmethod
    def of_rows(cls, histogram: Histogram, rows: Index) -> Sample:
        """Do as `of` does, for the numbers of rows."""
        repeats = histogram.multiplicity[rows].astype(np.float64)
        return cls(as_dense(histogram.counts[rows]), repeats)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.repeats.sum())

    @property
    def n_classes(self) -> int:
        """Number of label classes."""
        return int(self.counts.shape[1])

    @property
    def totals(self) -> IntArray:
        """Number of labels of each row."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def shares(self) -> Array:
        """Label shares of each row."""
        return np.asarray(self.counts / self.totals[:, None])

    @property
    def mean(self) -> Array:
        """Mean label distribution."""
        return np.asarray(self.repeats @ self.shares / self.repeats.sum())

    def at_least(self, k: int) -> Sample:
        """Return the items with k labels or more."""
        kept = self.totals >= k
        return Sample(self.counts[kept], self.repeats[kept])

    def every(self, n_items: int) -> Sample:
        """Return about n_items items, evenly spaced in the histogram, where any sample will do."""
        if self.n_items <= n_items:
            return self
        places = (np.arange(n_items) + 0.5) * self.n_items / n_items
        hits = np.searchsorted(np.cumsum(self.repeats), places)
        rows, repeats = np.unique(hits, return_counts=True)
        return Sample(self.counts[rows], repeats.astype(np.float64))


def rows_by_cell(histogram: Histogram, n_cells: int) -> list[Index]:
    """Return the rows of a histogram that belong to each cell, found in one pass."""
    order = np.argsort(histogram.cells, kind="stable")
    ends = np.cumsum(np.bincount(histogram.cells, minlength=n_cells))
    return np.split(order, ends[:-1])


@dataclass(frozen=True, eq=False)
class Advice:
    """What other cells suggest for a cell: which statistics to use, and how much they will vary."""

    estimators: dict[tuple[Side, int], BernsteinEstimator]  #: by side and snapshot size
    losses: Array | None = None  #: (n_classes,) -log of a guess of the mean label distribution
    deviations: dict[Statistic, Array] = field(default_factory=dict)  #: guesses for the statistics


def estimator_sizes(totals: IntArray) -> tuple[int, ...]:
    """Return the snapshot sizes that need estimators: an item uses the largest it can fill.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.guarantees.cell_uncertainty import estimator_sizes
    >>> estimator_sizes(np.array([7, 7])), estimator_sizes(np.array([1, 4, 12]))
    ((7,), (3, 10))
    """
    distinct = np.unique(totals[totals > 1])
    if len(distinct) == 1 and distinct[0] <= SIZES[-1]:
        return (int(distinct[0]),)
    used = {_largest_size(total, SIZES) for total in distinct}
    return tuple(size for size in SIZES if size in used)


def advise(
    others: Sample | None,
    sizes: tuple[int, ...],
    *,
    n_classes: int,
    n_items: float,
    same_order: bool,
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
    same_order : bool
        Whether a class means the same in the other cells, so that their mean is a guess of this
        cell's.

    Returns
    -------
    Advice
        Any advice is valid; good advice narrows the intervals.
    """
    advisers = others if others is not None and others.n_items >= MIN_ADVISERS else None
    estimators: dict[tuple[Side, int], BernsteinEstimator] = {}
    for size in sizes:
        reference = None if advisers is None else _reference(advisers, size)
        for side in ONE_SIDED:
            estimators[side, size] = bernstein_estimator(
                "shannon", size, n_classes, side=side, reference=reference, n_items=max(n_items, 1)
            )
    if advisers is None:
        return Advice(estimators)
    losses = _losses(advisers.mean) if same_order else None
    some = advisers.every(MAX_DEVIATION_ADVISERS)
    draws = _plain_draws(some) | _advised_draws(some, Advice(estimators, losses))
    deviations = {statistic: each.deviation() for statistic, each in draws.items()}
    return Advice(estimators, losses, deviations)


def _reference(advisers: Sample, size: int) -> Array | None:
    """Return where estimators of a size should be tight, if enough advisers have so many labels."""
    able = advisers.at_least(size).every(MAX_ADVISERS)
    if able.n_items < MIN_ADVISERS:
        return None
    return _nearest_marginal(snapshot_marginal(able.counts, size, weights=able.repeats))


def _losses(mean: Array) -> Array:
    """Return the loss of each label under a guessed mean label distribution."""
    guess = (1 - UNIFORM_SHARE) * mean + UNIFORM_SHARE / len(mean)
    return np.asarray(-np.log(guess))


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


def cell_intervals(
    sample: Sample, advice: Advice, delta: float, *, fallback: Advice | None = None
) -> dict[Target, Limits]:
    """Return the limits of each quantity, each with probability at least 1 - delta on its own.

    Parameters
    ----------
    sample : Sample
        Independent items of the cell.
    advice : Advice
        From other cells.
    delta : float
        Allowed chance of failure of an interval.
    fallback : Advice, optional
        Advice that no other cell gave. A fifth of `delta` is spent on it, which widens well advised
        intervals by some 3% and saves those of a cell that is unlike its neighbours.

    Returns
    -------
    dict
        Limits by target, (quantity, entropy), inside the possible range.
    """
    advice_of_none = None if fallback is None else [fallback]
    found = all_intervals([sample], [advice], delta, fallback=advice_of_none)
    return {target: Limits(*map(float, ends[0])) for target, ends in found.items()}


def all_intervals(
    samples: Sequence[Sample],
    advice: Sequence[Advice],
    delta: float,
    *,
    fallback: Sequence[Advice] | None = None,
) -> dict[Target, Array]:
    """Return what `cell_intervals` does for each of several cells, (n_cells, 2) by target."""
    shares = [class_shares(each.counts, each.totals, each.repeats) for each in samples]
    plain = [_plain_draws(each) for each in samples]
    cells = [_Cell(*each) for each in zip(samples, shares, plain, strict=True)]
    advised = [fallback is not None and bool(each.deviations) for each in advice]
    result = {target: np.empty((len(cells), 2)) for target in TARGETS}
    for has_advice in (False, True):
        rows = [row for row, each in enumerate(advised) if each == has_advice]
        if not rows:
            continue
        chosen = [cells[row] for row in rows]
        spent = FALLBACK_SHARE * delta if has_advice else 0.0
        found = _intervals(chosen, [advice[row] for row in rows], delta - spent)
        if has_advice and fallback is not None:
            others = _intervals(chosen, [fallback[row] for row in rows], spent)
            found = {target: ends.intersect(others[target]) for target, ends in found.items()}
        for target, ends in found.items():
            largest = _largest(target.entropy, samples[0].n_classes)
            result[target][rows] = np.stack(ends.inside(largest), axis=1)
    for row, sample in enumerate(samples):
        for target, limits in _pair_intervals(sample, delta).items():
            result[target][row] = limits
    return result


def _pair_intervals(sample: Sample, delta: float) -> dict[Target, Limits]:
    """Return aleatoric limits of items that have two labels at most; nothing for others.

    All that two labels say is whether they agree, a coin whose limits are exact. They need no
    advice, and no share of delta for it.
    """
    pairs = sample.at_least(2)
    if pairs.n_items == 0 or pairs.totals.max() > 2:
        return {}
    differ = pairs.counts.max(axis=1) == 1
    hits = float(pairs.repeats[differ].sum())
    brier = Limits(*binomial_limits(hits, pairs.n_items, delta / 2))
    brier = brier.inside(_largest("brier", sample.n_classes))
    shannon = Limits(*shannon_range(*brier, sample.n_classes))
    return {
        Target("aleatoric", "brier"): brier,
        Target("aleatoric", "shannon"): shannon.inside(_largest("shannon", sample.n_classes)),
    }


class _Cell(NamedTuple):
    """A cell, and its draws that no advice changes."""

    sample: Sample
    shares: ClassShares
    draws: dict[Statistic, Draws]


def _intervals(
    cells: Sequence[_Cell], advice: Sequence[Advice], delta: float
) -> dict[Target, _Ends]:
    """Return the ends of each target, computed together for cells that have the same statistics."""
    draws = [
        cell.draws | _advised_draws(cell.sample, each)
        for cell, each in zip(cells, advice, strict=True)
    ]
    alike: dict[frozenset[Statistic], list[int]] = defaultdict(list)
    for row, each in enumerate(draws):
        alike[frozenset(each)].append(row)
    result = {target: _Ends(np.empty(len(cells)), np.empty(len(cells))) for target in TARGETS}
    for statistics, rows in alike.items():
        joint = {
            statistic: JointDraws(
                [draws[row][statistic] for row in rows],
                [advice[row].deviations.get(statistic) for row in rows],
            )
            for statistic in statistics
        }
        n_classes = cells[0].sample.n_classes
        means = _BoundedMeans(JointShares([cells[row].shares for row in rows], n_classes), joint)
        for entropy, parts in (
            ("shannon", _shannon(means, delta)),
            ("brier", _brier(means, delta)),
        ):
            for quantity, ends in parts.items():
                limits = ends.inside(_largest(entropy, n_classes))
                result[Target(quantity, entropy)].lower[rows] = limits.lower
                result[Target(quantity, entropy)].upper[rows] = limits.upper
    return result


def _largest(entropy: str, n_classes: int) -> float:
    return float(get_entropy(entropy).maximum(n_classes))


@dataclass(frozen=True, eq=False)
class _BoundedMeans:
    """Confidence limits of the means of statistics of cells, infinite for those without items."""

    shares: JointShares
    draws: dict[Statistic, JointDraws]

    def __contains__(self, statistic: Statistic) -> bool:
        return statistic in self.draws

    def low(self, statistic: Statistic, delta: float) -> Array:
        if statistic not in self.draws:
            return np.full(len(self.shares), -np.inf)
        return self.draws[statistic].lower(delta)

    def high(self, statistic: Statistic, delta: float) -> Array:
        if statistic not in self.draws:
            return np.full(len(self.shares), np.inf)
        return self.draws[statistic].upper(delta)

    def both(self, statistic: Statistic, delta: float) -> _Ends:
        """Return limits that hold together."""
        return _Ends(self.low(statistic, delta / 2), self.high(statistic, delta / 2))

    def box(self, entropy: Separable, delta: float) -> _Ends:
        """Return limits of the entropy of the mean, from limits of all classes at once."""
        return _Ends(*self.shares.box(entropy.component, delta))


def _shannon(means: _BoundedMeans, delta: float) -> dict[str, _Ends]:
    """Return limits of Shannon uncertainty in nats."""
    half = delta / 2
    kind = Shannon()
    guessed = Statistic.LOSS in means  # H(mean) <= E[-log q(Y)] for any q
    predictive = means.box(kind, half if guessed else delta)
    if guessed:
        predictive = _Ends(predictive.lower, means.high(Statistic.LOSS, half))
    if Statistic.UPPER_ENTROPY not in means:
        # One label per item says nothing about disagreement, but AU <= PU.
        highest = means.high(Statistic.LOSS, delta) if guessed else predictive.upper
        open_split = _Ends(np.zeros_like(highest), highest)
        return {"predictive": predictive, "aleatoric": open_split, "epistemic": open_split}
    lowest = means.low(Statistic.LOWER_ENTROPY, half)
    aleatoric = _Ends(lowest, means.high(Statistic.UPPER_ENTROPY, half))
    epistemic = _shannon_epistemic(means, half)
    return {"predictive": predictive, "aleatoric": aleatoric, "epistemic": epistemic}


def _shannon_epistemic(means: _BoundedMeans, half: float) -> _Ends:
    """Return limits of Shannon epistemic uncertainty; each end may fail with chance `half`."""
    kind = Shannon()
    if Statistic.EXCESS in means:
        surplus = means.high(Statistic.EXCESS, half)
    else:
        surplus = means.box(kind, half / 2).upper - means.low(Statistic.LOWER_ENTROPY, half / 2)
    # KL(p||m) >= ||p - m||^2, so the Brier part is a lower bound too, and the better one for few
    # items.
    difference = means.box(kind, half / 4).lower - means.high(Statistic.UPPER_ENTROPY, half / 4)
    brier = means.low(Statistic.BRIER_EPISTEMIC, half / 2)
    return _Ends(np.maximum(difference, brier), surplus)


def _brier(means: _BoundedMeans, delta: float) -> dict[str, _Ends]:
    """Return limits of Brier uncertainty; all three statistics are unbiased."""
    half = delta / 2
    paired = Statistic.BRIER_PREDICTIVE in means
    pairs = means.both(Statistic.BRIER_PREDICTIVE, delta)
    predictive = pairs if paired else means.box(Brier(), delta)
    if Statistic.BRIER_ALEATORIC not in means:
        # One label per item says nothing about disagreement, but AU <= PU.
        highest = means.high(Statistic.BRIER_PREDICTIVE, delta) if paired else predictive.upper
        open_split = _Ends(np.zeros_like(highest), highest)
        return {"predictive": predictive, "aleatoric": open_split, "epistemic": open_split}
    aleatoric = means.both(Statistic.BRIER_ALEATORIC, delta)
    if paired:
        epistemic = means.both(Statistic.BRIER_EPISTEMIC, delta)
    else:
        box = means.box(Brier(), half)
        inside = means.both(Statistic.BRIER_ALEATORIC, half)
        epistemic = _Ends(box.lower - inside.upper, box.upper - inside.lower)
    return {"predictive": predictive, "aleatoric": aleatoric, "epistemic": epistemic}


def _plain_draws(sample: Sample) -> dict[Statistic, Draws]:
    """Return the statistics that a sample has items for, of those that need no advice."""
    draws = {}
    paired = sample.n_items <= MAX_PAIRED
    if paired and sample.n_items >= 2:
        even = np.full(len(sample.repeats), 0.5)
        draws[Statistic.BRIER_PREDICTIVE] = pair_draws(sample.shares, sample.repeats, even, 0, 1)
    several = sample.at_least(2)
    if several.n_items == 0:
        return draws
    n_classes = several.n_classes
    totals = several.totals
    shares = several.shares
    smallest = int(totals.min())
    disagreement = totals / (totals - 1) * (1 - (shares**2).sum(axis=1))
    most = 1.0 if smallest <= n_classes else smallest / (smallest - 1) * (1 - 1 / n_classes)
    draws[Statistic.BRIER_ALEATORIC] = Draws.of(disagreement, several.repeats, 0, most)
    if paired and several.n_items >= 2:
        # At least the mean over both items of -(1 - ||share||^2) / (total - 1), which is largest
        # for even shares.
        least = -(1 - 1 / min(smallest, n_classes)) / (smallest - 1)
        offset = 0.5 - disagreement / 2
        draws[Statistic.BRIER_EPISTEMIC] = pair_draws(shares, several.repeats, offset, least, 1)
    return draws


def _advised_draws(sample: Sample, advice: Advice) -> dict[Statistic, Draws]:
    """Return the statistics that a sample has items for, of those that depend on advice."""
    draws = {}
    losses = advice.losses
    if losses is not None:
        ends = (losses.min(), losses.max())
        draws[Statistic.LOSS] = Draws.of(sample.shares @ losses, sample.repeats, *ends)
    several = sample.at_least(2)
    if several.n_items > 0:
        lower = _one_sided(several, advice, "lower")
        draws[Statistic.UPPER_ENTROPY] = _one_sided(several, advice, "upper")
        draws[Statistic.LOWER_ENTROPY] = lower
        if losses is not None:
            draws[Statistic.EXCESS] = _excess(several, advice, losses, lower)
    return draws


def _one_sided(sample: Sample, advice: Advice, side: Side) -> Draws:
    """Return the statistic sum_j beta(s_j), one beta per total, whose mean is on one side of AU."""
    values, used = statistic_values(sample, advice, side)
    low = min(each.minimum for each in used)
    high = max(each.maximum for each in used)
    return Draws.of(values, sample.repeats, low, high)


def _excess(sample: Sample, advice: Advice, losses: Array, lower: Draws) -> Draws:
    """Return loss minus the lower statistic of the same item, whose mean is at least EU."""
    statistic, _ = statistic_values(sample, advice, "lower")
    smallest = losses.min() - lower.high
    largest = losses.max() - lower.low
    return Draws.of(sample.shares @ losses - statistic, sample.repeats, smallest, largest)


def statistic_values(
    sample: Sample, advice: Advice, side: Side
) -> tuple[Array, list[BernsteinEstimator]]:
    """Return each item's one-sided statistic of its entropy, and the estimators that gave them."""
    sizes = tuple(size for name, size in advice.estimators if name == side)
    values = np.empty(len(sample.counts))
    used = []
    for total in np.unique(sample.totals):
        rows = sample.totals == total
        estimator = advice.estimators[side, _largest_size(total, sizes)]
        beta = _elevate(estimator.values, int(total))
        counts = sample.counts[rows]
        values[rows] = beta[counts[:, 1]] if sample.n_classes == 2 else beta[counts].sum(axis=1)
        used.append(estimator)
    return values, used


def _elevate(values: Array, total: int) -> Array:
    """Return a statistic's average over all k of an item's labels, as a statistic of its counts."""
    k = len(values) - 1
    hits = np.arange(total + 1)
    if k == total:
        return values
    chances = stats.hypergeom.pmf(np.arange(k + 1), total, hits[:, None], k)
    return np.asarray(chances @ values)


def _largest_size(total: Any, sizes: tuple[int, ...]) -> int:
    """Return the largest snapshot that an item with so many labels can fill."""
    return max(size for size in sizes if size <= total)


@lru_cache(maxsize=256)
def worst_slack(k: int, n_classes: int) -> float:
    """Return the largest distance between a mixture and its k-snapshots."""
    return projection_slack(k, n_classes).value
