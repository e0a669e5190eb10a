"""Intervals for the uncertainty of one cell that hold whatever its mixture is (spec 3.3, 3.4, 4).

Every limit is a betting limit for the mean of a bounded statistic of the cell's items. What a
statistic leaves open (its coefficients, the size of the stakes) is chosen from other cells, never
from the sample it is used on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import stats

from hocal._base.typing import Array, IntArray, Mask
from hocal.cells.statistics import Histogram
from hocal.guarantees.bernstein import BernsteinEstimator, bernstein_estimator, snapshot_marginal
from hocal.guarantees.betting import Draws, box_limits, lower_limit, pair_draws, upper_limit
from hocal.guarantees.bounds import epsilon_bound, projection_slack
from hocal.uncertainty.entropy import Brier, Separable, Shannon, get_entropy

__all__ = [
    "Advice",
    "Sample",
    "advise",
    "cell_intervals",
    "estimator_sizes",
    "statistic_values",
    "worst_slack",
]

Intervals = dict[tuple[str, str], tuple[float, float]]

SIZES = (
    2,
    3,
    5,
    10,
    20,
)  # snapshots with an estimator of their own when totals differ or are large
# items; all pairs of more are too many to list, and classwise limits are narrow by then
MAX_PAIRED = 5_000
_FEWEST = 30  # items whose advice is worth taking
_UNIFORM = 0.02  # of the guessed label distribution, so that no label has an unbounded loss
_FALLBACK_SHARE = 0.2  # of delta spent on statistics that no other cell advised
_PAPER_SHARE = 0.05  # of delta spent on the paper's bound where that says anything


@dataclass(frozen=True, eq=False)
class Sample:
    """Distinct count vectors of some items and how often each occurred."""

    counts: IntArray  #: (n_rows, n_classes)
    repeats: Array  #: (n_rows,)

    @classmethod
    def of(cls, histogram: Histogram, rows: Mask) -> Sample:
        """Return the items of some rows of a histogram."""
        counts = histogram.counts[np.flatnonzero(rows)]
        dense = counts if isinstance(counts, np.ndarray) else counts.toarray()
        return cls(dense, histogram.multiplicity[rows].astype(np.float64))

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
        """Return about n_items items, evenly spaced in the histogram, to save time where any sample will do."""
        if self.n_items <= n_items:
            return self
        places = (np.arange(n_items) + 0.5) * self.n_items / n_items
        rows, repeats = np.unique(
            np.searchsorted(np.cumsum(self.repeats), places), return_counts=True
        )
        return Sample(self.counts[rows], repeats.astype(np.float64))


@dataclass(frozen=True, eq=False)
class Advice:
    """What other cells suggest for a cell: which statistics to use, and how much they will vary."""

    estimators: dict[tuple[str, int], BernsteinEstimator]  #: by side and snapshot size
    losses: Array | None = None  #: (n_classes,) -log of a guess of the mean label distribution
    deviations: dict[str, Array] = field(
        default_factory=dict
    )  #: guesses for the draws of the same name


def estimator_sizes(totals: IntArray) -> tuple[int, ...]:
    """Return the snapshot sizes for which estimators are needed; an item uses the largest that it can fill.

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
    return tuple(size for size in SIZES if size in {_size(total, SIZES) for total in distinct})


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
    known = others is not None and others.n_items >= _FEWEST
    estimators = {}
    for size in sizes:
        able = others.at_least(size).every(20_000) if known and others is not None else None
        useful = able is not None and able.n_items >= _FEWEST
        reference = None
        if useful and able is not None:
            reference = _nearest_marginal(
                snapshot_marginal(able.counts, size, weights=able.repeats)
            )
        for side in ("upper", "lower"):
            estimators[side, size] = bernstein_estimator(
                "shannon", size, n_classes, side=side, reference=reference, n_items=max(n_items, 1)
            )
    if not known or others is None:
        return Advice(estimators)
    losses = -np.log((1 - _UNIFORM) * others.mean + _UNIFORM / n_classes) if same_order else None
    draws = _draws(others.every(1000), Advice(estimators, losses))
    return Advice(estimators, losses, {name: each.deviation() for name, each in draws.items()})


def _nearest_marginal(reference: Array) -> Array:
    """Return the marginal of some mixture that fits a sample's best, by 100 steps of expectation maximisation.

    Noise makes the marginal of a sample that of no mixture, and a linear program whose reference no
    mixture has can gain without limit: its coefficients become wild.
    """
    counts = np.arange(len(reference))
    x = np.sin(np.pi / 2 * np.linspace(0, 1, 101)) ** 2
    chances = stats.binom.pmf(counts, len(reference) - 1, x[:, None])  # (n_points, k + 1)
    weights = np.full(len(x), 1 / len(x))
    shares = reference / reference.sum()
    for _ in range(100):
        weights = weights * (chances @ (shares / (weights @ chances)))
    return np.asarray(reference.sum() * (weights @ chances))


def cell_intervals(
    sample: Sample, advice: Advice, delta: float, *, fallback: Advice | None = None
) -> Intervals:
    """Return the interval of each entropy and quantity, each with probability at least 1 - delta on its own.

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
        (lower, upper) by (entropy, quantity), inside the possible range.
    """
    if fallback is None or not advice.deviations:  # nobody advised
        return _intervals(sample, advice, delta)
    spent = _FALLBACK_SHARE * delta
    advised = _intervals(sample, advice, delta - spent)
    plain = _intervals(sample, fallback, spent)
    return {
        (entropy, quantity): _inside((max(low, lower), min(high, upper)), entropy, sample.n_classes)
        for (entropy, quantity), (low, high) in advised.items()
        for lower, upper in [plain[entropy, quantity]]
    }


def _intervals(sample: Sample, advice: Advice, delta: float) -> Intervals:
    limits = _Limits(sample, _draws(sample, advice), advice.deviations)
    result = {}
    for entropy, find in ((Shannon(), _shannon), (Brier(), _brier)):
        found = find(limits, delta)
        found["aleatoric"] = _with_paper(limits, entropy, found["aleatoric"], delta)
        for quantity, ends in found.items():
            result[entropy.name, quantity] = _inside(ends, entropy.name, sample.n_classes)
    return result


def _inside(ends: tuple[float, float], entropy: str, n_classes: int) -> tuple[float, float]:
    """Cut an interval to the possible range; ends that cross prove that a limit has failed, so nothing is claimed."""
    largest = get_entropy(entropy).maximum(n_classes)
    lower = max(ends[0], 0.0)
    upper = min(ends[1], largest)
    return (lower, upper) if lower <= upper else (0.0, largest)


@dataclass(frozen=True, eq=False)
class _Limits:
    """Confidence limits of the means of a cell's statistics, infinite for those it has no items for."""

    sample: Sample
    draws: dict[str, Draws]
    deviations: dict[str, Array]

    def low(self, name: str, delta: float) -> float:
        if name not in self.draws:
            return -np.inf
        return float(lower_limit(self.draws[name], delta, self.deviations.get(name))[0])

    def high(self, name: str, delta: float) -> float:
        if name not in self.draws:
            return np.inf
        return float(upper_limit(self.draws[name], delta, self.deviations.get(name))[0])

    def box(self, entropy: Separable, delta: float) -> tuple[float, float]:
        """Return limits of the entropy of the mean from limits of each class, which hold at once."""
        draws = self.draws["classes"]
        share = delta / (2 * self.sample.n_classes)
        # No guesses here: those of other cells made the limits of small cells vacuous and narrowed
        # none.
        return box_limits(entropy.component, lower_limit(draws, share), upper_limit(draws, share))


def _shannon(limits: _Limits, delta: float) -> dict[str, tuple[float, float]]:
    """Return intervals of Shannon uncertainty in nats."""
    half = delta / 2
    kind = Shannon()
    guessed = "loss" in limits.draws  # H(mean) <= E[-log q(Y)] for any q
    predictive = (
        (limits.box(kind, half)[0], limits.high("loss", half))
        if guessed
        else limits.box(kind, delta)
    )
    if (
        "upper" not in limits.draws
    ):  # one label an item says nothing about disagreement, but AU <= PU
        highest = limits.high("loss", delta) if guessed else predictive[1]
        return {"predictive": predictive, "aleatoric": (0.0, highest), "epistemic": (0.0, highest)}
    aleatoric = limits.low("lower", half), limits.high("upper", half)
    if "excess" in limits.draws:
        surplus = limits.high("excess", half)
    else:
        surplus = limits.box(kind, half / 2)[1] - limits.low("lower", half / 2)
    # KL(p||m) >= ||p - m||^2, so the Brier part is a lower bound too, and the better one for few
    # items.
    gap = limits.box(kind, half / 4)[0] - limits.high("upper", half / 4)
    return {
        "predictive": predictive,
        "aleatoric": aleatoric,
        "epistemic": (max(gap, limits.low("brier epistemic", half / 2)), surplus),
    }


def _brier(limits: _Limits, delta: float) -> dict[str, tuple[float, float]]:
    """Return intervals of Brier uncertainty; all three statistics are unbiased."""
    half = delta / 2
    kind = Brier()
    paired = "brier predictive" in limits.draws
    names = {part: f"brier {part}" for part in ("predictive", "aleatoric", "epistemic")}
    result = {
        part: (limits.low(name, half), limits.high(name, half)) for part, name in names.items()
    }
    if not paired:
        result["predictive"] = limits.box(kind, delta)
        low, high = limits.box(kind, half)
        result["epistemic"] = (
            low - limits.high(names["aleatoric"], half / 2),
            high - limits.low(names["aleatoric"], half / 2),
        )
    if "upper" not in limits.draws:
        highest = limits.high(names["predictive"], delta) if paired else result["predictive"][1]
        result |= dict.fromkeys(("aleatoric", "epistemic"), (0.0, highest))
    return result


def _draws(sample: Sample, advice: Advice) -> dict[str, Draws]:
    """Return the statistics of a sample by name."""
    shares = sample.shares
    repeats = sample.repeats
    n_classes = sample.n_classes
    draws = {"classes": Draws.of_columns(shares, repeats, 0, 1)}
    pairs = 2 <= sample.n_items <= MAX_PAIRED
    if pairs:
        draws["brier predictive"] = pair_draws(shares, repeats, np.full(len(repeats), 0.5), 0, 1)
    if advice.losses is not None:
        draws["loss"] = Draws.of(
            shares @ advice.losses, repeats, advice.losses.min(), advice.losses.max()
        )
    several = sample.at_least(2)
    if several.n_items == 0:
        return draws
    draws["upper"], draws["lower"] = (
        _one_sided(several, advice, side) for side in ("upper", "lower")
    )
    smallest = int(several.totals.min())
    disagreement = several.totals / (several.totals - 1) * (1 - (several.shares**2).sum(axis=1))
    most = 1.0 if smallest <= n_classes else smallest / (smallest - 1) * (1 - 1 / n_classes)
    draws["brier aleatoric"] = Draws.of(disagreement, several.repeats, 0, most)
    if pairs and several.n_items >= 2:
        # At least the mean over both items of -(1 - ||share||^2) / (total - 1), which is largest
        # for even shares.
        least = -(1 - 1 / min(smallest, n_classes)) / (smallest - 1)
        offset = 0.5 - disagreement / 2
        draws["brier epistemic"] = pair_draws(several.shares, several.repeats, offset, least, 1)
    if advice.losses is not None:
        draws["excess"] = _excess(several, advice, draws["lower"])
    return draws


def _one_sided(sample: Sample, advice: Advice, side: str) -> Draws:
    """Return the statistic sum_j beta(s_j), with a beta for each total, whose mean is on one side of AU."""
    values, used = statistic_values(sample, advice, side)
    low = min(each.minimum for each in used)
    high = max(each.maximum for each in used)
    return Draws.of(values, sample.repeats, low, high)


def _excess(sample: Sample, advice: Advice, lower: Draws) -> Draws:
    """Return loss minus the lower statistic of the same item, whose mean is at least the epistemic uncertainty."""
    assert advice.losses is not None
    values = sample.shares @ advice.losses - statistic_values(sample, advice, "lower")[0]
    return Draws.of(
        values, sample.repeats, advice.losses.min() - lower.high, advice.losses.max() - lower.low
    )


def statistic_values(
    sample: Sample, advice: Advice, side: str
) -> tuple[Array, list[BernsteinEstimator]]:
    """Return each item's one-sided statistic of its entropy, and the estimators that gave them."""
    sizes = tuple(size for name, size in advice.estimators if name == side)
    values = np.empty(len(sample.counts))
    used = []
    for total in np.unique(sample.totals):
        rows = sample.totals == total
        estimator = advice.estimators[side, _size(total, sizes)]
        beta = _elevate(estimator.values, int(total))
        values[rows] = _look_up(beta, sample.counts[rows])
        used.append(estimator)
    return values, used


def _look_up(beta: Array, counts: IntArray) -> Array:
    return np.asarray(beta[counts[:, 1]] if counts.shape[1] == 2 else beta[counts].sum(axis=1))


def _elevate(values: Array, total: int) -> Array:
    """Return the average of a statistic of k-snapshots over all k of an item's labels, as a statistic of its counts."""
    k = len(values) - 1
    hits = np.arange(total + 1)
    if k == total:
        return values
    return np.asarray(stats.hypergeom.pmf(np.arange(k + 1), total, hits[:, None], k) @ values)


def _size(total: Any, sizes: tuple[int, ...]) -> int:
    return max(size for size in sizes if size <= total)


def _with_paper(
    limits: _Limits, entropy: Separable, interval: tuple[float, float], delta: float
) -> tuple[float, float]:
    """Intersect with the paper's bound, plug-in -+ omega(epsilon + slack), where that can say anything.

    Whether it can depends on the numbers of items, labels and classes only. It was never the
    narrower one in our trials, so little is lost by the share of delta that it gets.
    """
    sample = limits.sample
    k = int(sample.totals.min())
    n_classes = sample.n_classes
    error = epsilon_bound(sample.n_items, delta * _PAPER_SHARE, k, n_classes, method="paper").value
    if error >= 2 * (
        1 - 1 / n_classes
    ):  # the modulus is at its largest value there, whatever the slack
        return interval
    width = float(entropy.modulus(min(error + worst_slack(k, n_classes), 2.0), n_classes))
    if width >= entropy.maximum(n_classes):
        return interval
    own = _shannon if isinstance(entropy, Shannon) else _brier
    lower, upper = own(limits, delta * (1 - _PAPER_SHARE))["aleatoric"]
    steps = np.arange(k + 1) / k
    g = entropy.component(steps) + (entropy.component(1 - steps) if n_classes == 2 else 0)
    plugin = 0.0
    for total in np.unique(sample.totals):
        rows = sample.totals == total
        plugin += (
            float(sample.repeats[rows] @ _look_up(_elevate(g, int(total)), sample.counts[rows]))
            / sample.n_items
        )
    return max(lower, plugin - width), min(upper, plugin + width)


@lru_cache(maxsize=256)
def worst_slack(k: int, n_classes: int) -> float:
    """Return the largest distance between a mixture and its k-snapshots."""
    return projection_slack(k, n_classes).value
