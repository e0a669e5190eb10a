"""What test labels say about the uncertainty of each cell, and what they would say if predictions were right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from hocal._validation import check_simplex
from hocal.calibration import SnapshotCalibrator
from hocal.cell_intervals import Advice, Sample, advise, estimator_sizes, statistic_values
from hocal.certificates import certify
from hocal.decomposition import decompose
from hocal.entropy import get_entropy
from hocal.intervals import betting_interval
from hocal.mixtures import Mixtures
from hocal.statistics import CellStatistics, Histogram, align_counts

__all__ = [
    "certified_cells",
    "check_calibrator",
    "locate_items",
    "noise_of_cells",
    "observed_cells",
    "observed_estimator",
    "predicted_cells",
    "scale_noise",
]

MAX_DRAWN = 200  # items of a cell whose labels are drawn anew; the spread of larger cells is scaled from these
_BLOCK = 1 << 19  # drawn rows held at once

Array = NDArray[np.float64]
Cells = NDArray[np.intp]
Observe = Callable[[Sample, Cells, int], Array]


def locate_items(calibrator: Any, probabilities: ArrayLike, cells: ArrayLike | None) -> tuple[Array, Cells]:
    """Return checked predictions and their cells in the partition of a fitted calibrator."""
    check_calibrator(calibrator)
    p = check_simplex(probabilities, ndim=2, n_classes=calibrator.partition_.n_classes_)
    return p, calibrator.partition_.assign(p, cells)


def check_calibrator(calibrator: Any) -> None:
    """Refuse anything but a fitted SnapshotCalibrator, whose cells a display is about."""
    if not isinstance(calibrator, SnapshotCalibrator):
        raise ValueError(
            f"`calibrator` must be a SnapshotCalibrator, got {type(calibrator).__name__}. "
            "Pass the `calibrator_` of a classifier, or mixtures to from_predictions."
        )
    check_is_fitted(calibrator, "cell_mixtures_")


def observed_estimator(statistics: CellStatistics, quantity: str, entropy: str, *, aligned: bool) -> Observe:
    """Return the function that estimates a quantity of each cell from the labels of its items.

    Aleatoric: Brier has an unbiased statistic from two labels an item (spec 3.3). Shannon entropy has none, so the
    estimate is halfway between a statistic whose mean is below the truth and one whose mean is above it, whatever
    the mixture (spec 3.4), tuned to all test items at once. Predictive: the entropy of the cell's mean label shares,
    with what sampling takes from it given back to first order. Epistemic: the difference, negative by luck. Mean:
    the share of labels for the class that is predicted first.

    Parameters
    ----------
    statistics : CellStatistics
        The test items.
    quantity : {"aleatoric", "epistemic", "mean"}
        What to estimate.
    entropy : {"shannon", "brier"}
        Measure of uncertainty.
    aligned : bool
        Whether a cell's label distributions are compared in order of falling prediction.

    Returns
    -------
    callable
        Takes a Sample, the cell of each of its rows and the number of cells; NaN for a cell without items.
    """
    histogram = statistics.aligned if aligned else statistics.observed
    if quantity == "mean":
        return lambda sample, cells, n_cells: _average(sample.shares[:, 0], sample.repeats, cells, n_cells)
    statistic = _brier_statistic if entropy == "brier" else _shannon_statistic(histogram, statistics)

    def aleatoric(sample: Sample, cells: Cells, n_cells: int) -> Array:
        several = sample.totals >= 2
        return _average(statistic(sample.at_least(2)), sample.repeats[several], cells[several], n_cells)

    if quantity == "aleatoric":
        return aleatoric
    return lambda sample, cells, n_cells: (
        _predictive(sample, cells, n_cells, entropy) - aleatoric(sample, cells, n_cells)
    )


def predicted_cells(mixtures: Mixtures, first: Array, cells: Cells, n_cells: int, quantity: str, entropy: str) -> Array:
    """Return what mixtures, one an item, predict for each cell; `first` is the mean of the class predicted first."""
    once = np.ones(len(cells))
    if quantity == "mean":
        return _average(first, once, cells, n_cells)
    aleatoric = _average(decompose(mixtures, entropy).aleatoric, once, cells, n_cells)
    if quantity == "aleatoric":
        return aleatoric
    means = np.column_stack([_average(column, once, cells, n_cells) for column in mixtures.mean().T])
    return np.asarray(get_entropy(entropy).value(means, check_input=False) - aleatoric)


def observed_cells(statistics: CellStatistics, observe: Observe, *, aligned: bool) -> Array:
    """Return the estimate of each cell from all its labels."""
    histogram = statistics.aligned if aligned else statistics.observed
    sample = Sample.of(histogram, np.ones(len(histogram.cells), dtype=bool))
    return observe(sample, histogram.cells, statistics.n_cells)


def certified_cells(
    statistics: CellStatistics, quantity: str, entropy: str, confidence: float, *, aligned: bool
) -> tuple[Array, Array]:
    """Return limits that hold for each cell with the given confidence, from the test labels alone."""
    if quantity == "mean":
        return _mean_limits(statistics, confidence)
    # Intervals depend neither on the mixtures nor on k, which matter for epsilon alone; these cost least.
    even = Mixtures.from_points(np.full((statistics.n_cells, statistics.n_classes), 1 / statistics.n_classes))
    return certify(statistics, even, confidence=confidence, aligned=aligned, k=1).interval(quantity, entropy)


def noise_of_cells(
    mixtures: Mixtures,
    probabilities: Array | None,
    totals: NDArray[np.int64],
    cells: Cells,
    n_cells: int,
    observe: Observe,
    *,
    n_resamples: int,
    generator: np.random.Generator,
) -> Array:
    """Estimate each cell again and again from labels drawn from the predictions, (n_resamples, n_cells).

    Of a cell with more than 200 items as many are drawn from, and the spread around the mean is scaled to all of
    them. With `probabilities` the drawn labels are put in order of falling prediction.
    """
    n_items = np.bincount(cells, minlength=n_cells)
    order = generator.permutation(len(cells))
    order = order[np.argsort(cells[order], kind="stable")]
    rank = np.arange(len(cells)) - np.repeat(np.cumsum(n_items) - n_items, n_items)
    chosen = order[rank < MAX_DRAWN]
    step = max(_BLOCK // len(chosen), 1)
    results = []
    for start in range(0, n_resamples, step):
        repeats = min(step, n_resamples - start)
        rows = np.tile(chosen, repeats)
        drawn = mixtures[rows].draw(totals[rows], random_state=generator)
        if probabilities is not None:
            drawn = np.asarray(align_counts(probabilities[rows], drawn))
        place = cells[rows] + n_cells * np.repeat(np.arange(repeats), len(chosen))
        sample = Sample(drawn, np.ones(len(rows)))
        results.append(observe(sample, place, repeats * n_cells).reshape(repeats, n_cells))
    return scale_noise(np.concatenate(results), np.minimum(n_items, MAX_DRAWN), n_items)


def scale_noise(noise: Array, n_drawn: Any, n_items: Any) -> Array:
    """Return resampled averages over n_drawn items, (n_resamples, ...), with the spread that n_items would have."""
    centre = noise.mean(axis=0)
    return np.asarray(centre + (noise - centre) * np.sqrt(n_drawn / np.maximum(n_items, 1)))


def _average(values: Array, repeats: Array, cells: Cells, n_cells: int) -> Array:
    with np.errstate(invalid="ignore"):  # a cell without items is 0 / 0
        return np.asarray(np.bincount(cells, values * repeats, n_cells) / np.bincount(cells, repeats, n_cells))


def _brier_statistic(sample: Sample) -> Array:
    return np.asarray(sample.totals / (sample.totals - 1) * (1 - (sample.shares**2).sum(axis=1)))


def _shannon_statistic(histogram: Histogram, statistics: CellStatistics) -> Callable[[Sample], Array]:
    """Return the mean of the best statistics below and above Shannon entropy for these items."""
    sample = Sample.of(histogram, histogram.totals >= 2)
    filled = statistics.n_items[statistics.n_items > 0]
    advice: Advice = advise(
        sample,
        estimator_sizes(histogram.totals),
        n_classes=statistics.n_classes,
        n_items=float(filled @ filled / filled.sum()),  # of the cell of a typical item
        same_order=False,
    )
    return lambda sample: (
        (statistic_values(sample, advice, "lower")[0] + statistic_values(sample, advice, "upper")[0]) / 2
    )


def _predictive(sample: Sample, cells: Cells, n_cells: int, entropy: str) -> Array:
    """Return G(mean of the label shares), corrected for the variance of that mean to first order.

    E G(m) falls short of G(E m) by about sum_j |G''_jj| Var(m_j) / 2: exactly for Brier, |G''| = 2, and to first
    order for Shannon, |G''| = 1 / m_j.
    """
    shares = sample.shares
    means = np.column_stack([_average(column, sample.repeats, cells, n_cells) for column in shares.T])
    squares = np.column_stack([_average(column**2, sample.repeats, cells, n_cells) for column in shares.T])
    n_items = np.bincount(cells, sample.repeats, n_cells)[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        variances = np.maximum(squares - means**2, 0) / (n_items - 1)  # of the mean; NaN for a single item
        curvature = 1.0 if entropy == "brier" else np.where(means > 0, 0.5 / means, 0)
        return np.asarray(get_entropy(entropy).value(means, check_input=False) + (variances * curvature).sum(axis=1))


def _mean_limits(statistics: CellStatistics, confidence: float) -> tuple[Array, Array]:
    cells, _, multiplicity = statistics.aligned
    first = Sample.of(statistics.aligned, np.ones(len(cells), dtype=bool)).shares[:, 0]
    limits = np.full((statistics.n_cells, 2), np.nan)
    for cell in np.flatnonzero(statistics.n_items):
        rows = cells == cell
        limits[cell] = betting_interval(first[rows], delta=1 - confidence, multiplicities=multiplicity[rows])[:2]
    return limits[:, 0], limits[:, 1]
