"""What test labels say about each cell, and what they would say if predictions were right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from hocal._base.errors import InputError
from hocal._base.typing import Array, Counts, Index, IntArray
from hocal._base.validation import check_choice, label_totals
from hocal.cells.partitions import CellLayout
from hocal.cells.statistics import CellStatistics, Histogram, align_counts, rank_classes
from hocal.guarantees.cell_uncertainty import (
    Advice,
    Sample,
    advise,
    estimator_sizes,
    statistic_values,
)
from hocal.guarantees.certificates import ENTROPIES, certify
from hocal.guarantees.means import betting_interval
from hocal.plot.predicted import PredictedItems
from hocal.uncertainty.entropy import get_entropy
from hocal.uncertainty.mixtures import Mixtures

__all__ = ["Comparison", "Quantity", "chance_band", "check_compared", "scale_noise"]

Quantity = Literal["aleatoric", "epistemic", "mean"]
QUANTITIES: tuple[Quantity, ...] = ("aleatoric", "epistemic", "mean")
# items of a cell whose labels are drawn anew; the spread of larger cells is scaled from these
MAX_DRAWN = 200
FEWEST_DRAWN = 20  # items of a cell whose spread can still be told
MAX_ROWS = 1 << 19  # drawn items held at once: 40 MB for ten classes

Observe = Callable[[Sample, Index, int], Array]


@dataclass(frozen=True, eq=False)
class Comparison:
    """A quantity of each cell of the test items, as their mixtures and as their labels have it."""

    items: PredictedItems  #: predictions
    probabilities: Array  #: (n_items, n_classes), by which the classes of an item are ranked
    totals: IntArray  #: (n_items,) labels of each item
    cells: Index  #: (n_items,)
    statistics: CellStatistics  #: the labels, cell by cell
    observe: Observe  #: estimates the quantity from labels
    ranked: bool  #: whether labels are observed in order of falling prediction
    quantity: Quantity  #: "mean" is the share of labels for the class ranked first
    entropy: str  #: "shannon" or "brier"

    @classmethod
    def of(
        cls,
        items: PredictedItems,
        probabilities: Array,
        counts: Counts,
        cells: Index,
        layout: CellLayout,
        *,
        aligned: bool,
        quantity: Quantity,
        entropy: str,
    ) -> Self:
        """Gather the labels of the cells; what is given was checked before.

        `aligned` says that the classes of an item are ordered by its prediction.
        """
        totals = label_totals(counts)
        ranked = aligned or quantity == "mean"
        if quantity != "mean" and totals.max() < 2:
            raise InputError(
                "counts",
                "must have two labels for some items",
                value="one for each",
                remedy="One label cannot show disagreement: "
                f"{quantity} uncertainty needs more labels, quantity='mean' does not.",
            )
        statistics = CellStatistics.from_items(probabilities, counts, cells, layout)
        observe = _observed_estimator(statistics, quantity, entropy, aligned=ranked)
        return cls(
            items=items,
            probabilities=probabilities,
            totals=totals,
            cells=cells,
            statistics=statistics,
            observe=observe,
            ranked=ranked,
            quantity=quantity,
            entropy=entropy,
        )

    def predicted(self) -> Array:
        """Return what is predicted for each cell on average; NaN for a cell without items."""
        means = self.items.means
        if self.ranked:
            means = np.take_along_axis(means, rank_classes(self.probabilities), axis=1)
        if self.quantity == "mean":
            return self._average(means[:, 0])
        aleatoric = self._average(self.items.aleatoric)
        if self.quantity == "aleatoric":
            return aleatoric
        centres = np.column_stack([self._average(column) for column in means.T])
        predictive = get_entropy(self.entropy).value(centres, check_input=False)
        return np.asarray(predictive - aleatoric)

    def _average(self, values: Array) -> Array:
        """Return the mean over the items of each cell."""
        once = np.ones(len(self.cells))
        return _average(values, once, self.cells, self.statistics.n_cells)

    def observed(self) -> Array:
        """Return the estimate of each cell from all its labels."""
        histogram = self.statistics.aligned if self.ranked else self.statistics.observed
        sample = Sample.of(histogram, np.ones(len(histogram.cells), dtype=bool))
        return self.observe(sample, histogram.cells, self.statistics.n_cells)

    def certified(self, confidence: float) -> tuple[Array, Array]:
        """Return limits that hold for each cell with this confidence, from test labels alone."""
        statistics = self.statistics
        if self.quantity == "mean":
            return _mean_limits(statistics, confidence)
        # Intervals depend neither on the mixtures nor on k, which matter for epsilon alone; these
        # cost least.
        uniform = np.full((statistics.n_cells, statistics.n_classes), 1 / statistics.n_classes)
        even = Mixtures.from_points(uniform)
        certificate = certify(statistics, even, confidence=confidence, aligned=self.ranked, k=1)
        return certificate.interval(self.quantity, self.entropy)

    def noise(self, n_resamples: int, generator: np.random.Generator) -> Array:
        """Estimate each cell again from labels drawn from the predictions, (n_resamples, n_cells).

        Of a cell with more than 200 items as many are drawn from, or fewer where mixtures of items
        take much memory, and the spread around the mean is scaled to all of them.
        """
        n_cells = self.statistics.n_cells
        n_items = np.bincount(self.cells, minlength=n_cells)
        per_cell = self.items.n_drawable // int((n_items > 0).sum())
        most = min(max(per_cell, FEWEST_DRAWN), MAX_DRAWN)
        chosen = _draw_items(self.cells, n_items, most, generator)
        drawable = self.items.choose(chosen)
        step = max(MAX_ROWS // len(chosen), 1)
        results = []
        for start in range(0, n_resamples, step):
            repeats = min(step, n_resamples - start)
            places = np.tile(np.arange(len(chosen)), repeats)
            rows = chosen[places]
            place = self.cells[rows] + n_cells * np.repeat(np.arange(repeats), len(chosen))
            drawn = drawable.draw(places, self.totals[rows], generator)
            sample = Sample(self._in_order(rows, drawn), np.ones(len(rows)))
            results.append(self.observe(sample, place, repeats * n_cells).reshape(repeats, n_cells))
        return scale_noise(np.concatenate(results), np.minimum(n_items, most), n_items)

    def _in_order(self, items: Index, counts: IntArray) -> IntArray:
        """Return labels of some items in the order observed."""
        if not self.ranked:
            return counts
        return np.asarray(align_counts(self.probabilities[items], counts))


def check_compared(quantity: str, entropy: str) -> None:
    """Refuse what cannot be compared."""
    check_choice(quantity, "quantity", QUANTITIES)
    check_choice(entropy, "entropy", ENTROPIES)


def _draw_items(
    cells: Index, n_items: IntArray, most: int, generator: np.random.Generator
) -> Index:
    """Return so many random items of each cell at most, cell by cell."""
    order = generator.permutation(len(cells))
    order = order[np.argsort(cells[order], kind="stable")]
    rank = np.arange(len(cells)) - np.repeat(np.cumsum(n_items) - n_items, n_items)
    return order[rank < most]


def scale_noise(noise: Array, n_drawn: Any, n_items: Any) -> Array:
    """Give averages over n_drawn items, (n_resamples, ...), the spread of those over n_items."""
    centre = noise.mean(axis=0)
    return np.asarray(centre + (noise - centre) * np.sqrt(n_drawn / np.maximum(n_items, 1)))


def chance_band(noise: Array, delta: float) -> Array:
    """Return the limits that hold 1 - delta of resampled values, (2, ...)."""
    return np.asarray(np.quantile(noise, [delta / 2, 1 - delta / 2], axis=0))


def _observed_estimator(
    statistics: CellStatistics, quantity: str, entropy: str, *, aligned: bool
) -> Observe:
    """Return the function that estimates a quantity of each cell from the labels of its items.

    Aleatoric: Brier has an unbiased statistic from two labels per item. Shannon entropy has none,
    so the estimate is halfway between a statistic whose mean is below the truth and one whose mean
    is above it, whatever the mixture (docs/mathematics.md), tuned to all test items at once.
    Predictive: the entropy of the cell's mean label shares, with what sampling takes from it given
    back to first order. Epistemic: the difference, negative by luck. Mean: the share of labels for
    the class that is predicted first.

    The function takes a Sample, the cell of each of its rows and the number of cells; NaN for a
    cell without items.
    """
    histogram = statistics.aligned if aligned else statistics.observed
    if quantity == "mean":
        return lambda sample, cells, n_cells: _average(
            sample.shares[:, 0], sample.repeats, cells, n_cells
        )
    statistic = (
        _brier_statistic if entropy == "brier" else _shannon_statistic(histogram, statistics)
    )

    def aleatoric(sample: Sample, cells: Index, n_cells: int) -> Array:
        several = sample.totals >= 2
        return _average(
            statistic(sample.at_least(2)), sample.repeats[several], cells[several], n_cells
        )

    if quantity == "aleatoric":
        return aleatoric
    return lambda sample, cells, n_cells: (
        _predictive(sample, cells, n_cells, entropy) - aleatoric(sample, cells, n_cells)
    )


def _average(values: Array, repeats: Array, cells: Index, n_cells: int) -> Array:
    sums = np.bincount(cells, values * repeats, n_cells)
    n_items = np.bincount(cells, repeats, n_cells)
    with np.errstate(invalid="ignore"):  # a cell without items is 0 / 0
        return np.asarray(sums / n_items)


def _brier_statistic(sample: Sample) -> Array:
    of_shares = 1 - (sample.shares**2).sum(axis=1)
    return np.asarray(sample.totals / (sample.totals - 1) * of_shares)


def _shannon_statistic(
    histogram: Histogram, statistics: CellStatistics
) -> Callable[[Sample], Array]:
    """Return the mean of the best statistics below and above Shannon entropy for these items."""
    n_items = statistics.n_items
    advice: Advice = advise(
        Sample.of(histogram, histogram.totals >= 2),
        estimator_sizes(histogram.totals),
        n_classes=statistics.n_classes,
        n_items=float(n_items @ n_items / n_items.sum()),  # of the cell of a typical item
    )

    def halfway(sample: Sample) -> Array:
        below = statistic_values(sample, advice, "lower")[0]
        above = statistic_values(sample, advice, "upper")[0]
        return np.asarray((below + above) / 2)

    return halfway


def _predictive(sample: Sample, cells: Index, n_cells: int, entropy: str) -> Array:
    """Return G(mean of the label shares), corrected for the variance of that mean to first order.

    E G(m) falls short of G(E m) by about sum_j |G''_jj| Var(m_j) / 2: exactly for Brier, |G''| = 2,
    and to first order for Shannon, |G''| = 1 / m_j.
    """
    shares = sample.shares
    means = np.column_stack(
        [_average(column, sample.repeats, cells, n_cells) for column in shares.T]
    )
    squares = np.column_stack(
        [_average(column**2, sample.repeats, cells, n_cells) for column in shares.T]
    )
    n_items = np.bincount(cells, sample.repeats, n_cells)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        # of the mean; NaN for a single item
        variances = np.maximum(squares - means**2, 0) / (n_items - 1)
        half_curvature = 1.0 if entropy == "brier" else np.where(means > 0, 0.5 / means, 0)
        plain = get_entropy(entropy).value(means, check_input=False)
        return np.asarray(plain + (variances * half_curvature).sum(axis=1))


def _mean_limits(statistics: CellStatistics, confidence: float) -> tuple[Array, Array]:
    cells, _, multiplicity = statistics.aligned
    first = Sample.of(statistics.aligned, np.ones(len(cells), dtype=bool)).shares[:, 0]
    limits = np.full((statistics.n_cells, 2), np.nan)
    for cell in np.flatnonzero(statistics.n_items):
        rows = cells == cell
        interval = betting_interval(
            first[rows], delta=1 - confidence, multiplicities=multiplicity[rows]
        )
        limits[cell] = interval.lower, interval.upper
    return limits[:, 0], limits[:, 1]
