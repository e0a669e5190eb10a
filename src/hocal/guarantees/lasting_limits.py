"""Limits of the uncertainty of cells that hold at all numbers of items at once.

Who looks at a certificate after every new item and stops when it pleases needs limits that hold
however often one looks: bets whose stakes were fixed before the first item
(`hocal.guarantees.anytime`), on statistics that nothing of the data chose. How many labels items
may have is taken to be known beforehand.
"""

from __future__ import annotations

import numpy as np

from hocal._base.typing import Array
from hocal.cells.statistics import Histogram
from hocal.guarantees.anytime import anytime_lower_limit, anytime_upper_limit
from hocal.guarantees.cell_advice import advise, estimator_sizes
from hocal.guarantees.entropy_boxes import box_limits_of_rows
from hocal.guarantees.entropy_ranges import shannon_range
from hocal.guarantees.item_statistics import Advice, most_disagreement, statistic_values
from hocal.guarantees.samples import TARGETS, Limits, Sample, Target, rows_by_cell
from hocal.uncertainty.entropy import Brier, Shannon

__all__ = ["lasting_limits"]

N_ITEMS = 1000.0  # for which statistics are chosen where no number of items is fixed
ENTROPIES = {"shannon": Shannon(), "brier": Brier()}


def lasting_limits(histogram: Histogram, n_cells: int, delta: float) -> dict[Target, Array]:
    """Return limits of each cell that fail with chance delta at most, ever.

    Parameters
    ----------
    histogram : Histogram
        Labels of the items so far.
    n_cells : int
        Number of cells.
    delta : float
        Allowed chance that an interval ever fails, at any number of items.

    Returns
    -------
    dict
        Lower and upper limits by target, (n_cells, 2); NaN for a cell without items.
    """
    n_classes = histogram.counts.shape[1]
    sizes = estimator_sizes(histogram.totals)
    advice = advise(None, sizes, n_classes=n_classes, n_items=N_ITEMS)
    result = {target: np.full((n_cells, 2), np.nan) for target in TARGETS}
    for cell, rows in enumerate(rows_by_cell(histogram, n_cells)):
        if len(rows) == 0:
            continue
        sample = Sample.of_rows(histogram, rows)
        for target, limits in _cell_limits(sample, advice, delta).items():
            largest = float(ENTROPIES[target.entropy].maximum(n_classes))
            result[target][cell] = limits.inside(largest)
    return result


def _cell_limits(sample: Sample, advice: Advice, delta: float) -> dict[Target, Limits]:
    """Return the limits of one cell.

    Epistemic uncertainty is a difference: half of delta for the mean label distribution, a quarter
    for each end of the aleatoric part.
    """
    found = {}
    predictive = _predictive(sample, delta / 2)
    several = sample.at_least(2)
    for entropy, limits in predictive.items():
        found[Target("predictive", entropy)] = limits
        if several.n_items == 0:  # one label says nothing about disagreement, but AU <= PU
            aleatoric = epistemic = Limits(0.0, limits.upper)
        else:
            aleatoric = _aleatoric(several, advice, entropy, delta / 2)
            inside = _aleatoric(several, advice, entropy, delta / 4)
            epistemic = Limits(limits.lower - inside.upper, limits.upper - inside.lower)
        found[Target("aleatoric", entropy)] = aleatoric
        found[Target("epistemic", entropy)] = epistemic
    return found


def _predictive(sample: Sample, delta: float) -> dict[str, Limits]:
    """Return limits of the entropies of the mean label distribution, from all classes at once."""
    share = delta / (2 * sample.n_classes)
    seen = sample.counts.any(axis=0)
    none = np.zeros(len(sample.repeats))
    ends = []
    for limit in (anytime_lower_limit, anytime_upper_limit):
        # Classes without a label all have the same limits.
        end = np.full(sample.n_classes, limit(none, 0.0, 1.0, share, repeats=sample.repeats))
        columns = sample.shares[:, seen].T
        end[seen] = [limit(each, 0.0, 1.0, share, repeats=sample.repeats) for each in columns]
        ends.append(np.clip(end, 0.0, 1.0)[None])
    lower, upper = ends
    once = np.ones((1, sample.n_classes), dtype=np.int64)
    boxes = {
        name: box_limits_of_rows(each.component, lower, upper, once)
        for name, each in ENTROPIES.items()
    }
    return {name: Limits(float(low[0]), float(high[0])) for name, (low, high) in boxes.items()}


def _aleatoric(sample: Sample, advice: Advice, entropy: str, delta: float) -> Limits:
    """Return limits of aleatoric uncertainty, each of which ever fails with chance delta."""
    if entropy == "brier":
        return _disagreement(sample, delta)
    if sample.totals.max() == 2:  # all that is known is how often two labels agree
        low, high = _disagreement(sample, delta)
        return Limits(*shannon_range(max(low, 0.0), high, sample.n_classes))
    lower, used = statistic_values(sample, advice, "lower")
    ends = (min(each.minimum for each in used), max(each.maximum for each in used))
    least = anytime_lower_limit(lower, *ends, delta, repeats=sample.repeats)
    upper, used = statistic_values(sample, advice, "upper")
    ends = (min(each.minimum for each in used), max(each.maximum for each in used))
    return Limits(least, anytime_upper_limit(upper, *ends, delta, repeats=sample.repeats))


def _disagreement(sample: Sample, delta: float) -> Limits:
    """Return limits of how often two labels of an item differ."""
    values = sample.disagreements
    most = most_disagreement(int(sample.totals.min()), sample.n_classes)
    low = anytime_lower_limit(values, 0.0, most, delta, repeats=sample.repeats)
    return Limits(low, anytime_upper_limit(values, 0.0, most, delta, repeats=sample.repeats))
