"""Compare predictions and features of new items with those of the calibration, without labels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.errors import InputError
from hocal._base.interval import Interval
from hocal._base.shares import percent
from hocal._base.typing import Array, Mask
from hocal._base.validation import check_fraction, check_kind
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.calibration.reference import summary_names

__all__ = ["Familiarity", "familiarity"]

ITEM_LEVEL = 0.05  # at which an item is called unlike the others
ORDERED = 1  # the first summary that has an order: a class is not unlikely for its number
FEWEST = 2  # items of either side, to compare distributions
EXACT = 100  # items up to which the exact p-value is quick


@dataclass(frozen=True, eq=False)
class Familiarity:
    """How much items look like the calibration items, by predictions and features alone.

    A warning, never a guarantee: labels may change where predictions do not, and the other way
    round.

    Attributes
    ----------
    p_values : ndarray of shape (n_items,)
        For each item, the chance that an item like those of the calibration looks as unusual; the
        least favourable of its summaries counts, corrected for their number.
    share : Interval
        Share of the items that look unlike: the largest difference between the distributions of a
        summary among these and among the calibration items. So many items at least would have to
        be others for the rest to look alike; the lower end is certain with 1 - level, and the upper
        end is 1, because predictions that look alike may still belong to other items.
    p_value : float
        Chance of distributions so different if items are drawn as the calibration items were:
        two-sample Kolmogorov-Smirnov tests of all summaries, corrected for their number.
    by_summary : dict of str to float
        p-value of each summary on its own: the top class, its probability, the entropy of the
        prediction, expected disagreement (aleatoric) and the rest (epistemic); the spread of the
        members of an ensemble; the distance of the features from their centre.
    level : float
        At which `warning` is given.
    """

    p_values: Array
    share: Interval
    p_value: float
    by_summary: dict[str, float]
    level: float

    @property
    def warning(self) -> bool:
        """Whether the items look unlike those of the calibration, at the given level."""
        return self.p_value <= self.level

    @property
    def unlike(self) -> Mask:
        """Tell which items look unlike those of the calibration."""
        return self.p_values <= ITEM_LEVEL

    def __str__(self) -> str:
        if not self.warning:
            return "predictions look like those of the calibration items"
        worst = min(self.by_summary, key=lambda name: self.by_summary[name])
        about, least = percent(self.share.estimate), percent(self.share.lower)
        return (
            f"about {about} of the items (at least {least}) look "
            f"unlike the calibration items, most of all by {worst} (p = {self.p_value:.2g}): what "
            "was learned there may not hold here. This is a warning, not a guarantee; labels of "
            "some items would tell."
        )


def familiarity(
    calibrator: SnapshotCalibrator,
    probabilities: ArrayLike,
    *,
    features: ArrayLike | None = None,
    cells: ArrayLike | None = None,
    by: ArrayLike | None = None,
    level: float = 0.01,
) -> Familiarity:
    """Compare items without labels with the calibration items.

    Parameters
    ----------
    calibrator : SnapshotCalibrator
        Fitted with `fit`.
    probabilities, features, cells, by
        As in the fit.
    level : float, default=0.01
        Chance of a warning if items are drawn as the calibration items were.

    Returns
    -------
    Familiarity
        p-values of items and of all together.

    Examples
    --------
    >>> import numpy as np
    >>> import hocal
    >>> from hocal.datasets import make_mixture_world
    >>> from hocal.decisions import familiarity
    >>> world = make_mixture_world(800, 3, random_state=0)
    >>> p = world.predictions
    >>> calibrator = hocal.SnapshotCalibrator(method="cells")
    >>> calibrator = calibrator.fit(p[:500], world.draw(3, random_state=1)[:500])
    >>> familiarity(calibrator, p[500:]).warning
    False
    >>> familiarity(calibrator, np.full((300, 3), 1 / 3)).warning
    True
    """
    check_kind(calibrator, "calibrator", SnapshotCalibrator)
    summaries = calibrator.summarise(probabilities, features=features, cells=cells, by=by)
    return compare_summaries(calibrator, summaries, level=level)


def compare_summaries(
    calibrator: SnapshotCalibrator, summaries: Array, *, level: float = 0.01
) -> Familiarity:
    """Compare summaries of items, as `SnapshotCalibrator.summarise` makes them."""
    check_fraction(level, "level")
    known = calibrator.known_reference().summaries
    for items, name in ((known, "calibrator"), (summaries, "probabilities")):
        if len(items) < FEWEST:
            rule = f"must have at least {FEWEST} items to compare"
            raise InputError(name, rule, value=len(items))
    shape = calibrator.input_shape_
    names = summary_names(shape.n_members, shape.n_features)
    tests = {
        name: _same_distribution(known[:, column], summaries[:, column])
        for column, name in enumerate(names)
    }
    p_values = _unusual(known[:, ORDERED:], summaries[:, ORDERED:])
    smallest = min(test.pvalue for test in tests.values())
    largest = max(float(test.statistic) for test in tests.values())
    lower = largest - _chance(len(known), len(summaries), level / len(tests))
    return Familiarity(
        p_values,
        Interval(largest, max(lower, 0.0), 1.0),
        min(1.0, len(tests) * float(smallest)),
        {name: float(test.pvalue) for name, test in tests.items()},
        level,
    )


def _same_distribution(known: Array, new: Array) -> Any:
    """Return the two-sample Kolmogorov-Smirnov test."""
    from scipy.stats import ks_2samp

    # the asymptotic formula is close from some tens of items on, and as fast with many as with few
    method: Any = "exact" if max(len(known), len(new)) <= EXACT else "asymp"
    return ks_2samp(known, new, method=method)


def _chance(n_known: int, n_new: int, level: float) -> float:
    """Return how far two distribution functions may be off (Dvoretzky, Kiefer and Wolfowitz)."""
    unit = math.sqrt(math.log(4 / level) / 2)
    return unit * (1 / math.sqrt(n_known) + 1 / math.sqrt(n_new))


def _unusual(known: Array, new: Array) -> Array:
    """Return conformal p-values: how few calibration items lie as far out, on either side."""
    n_known, n_columns = known.shape
    below = np.column_stack(
        [np.searchsorted(known[:, j], new[:, j], side="right") for j in range(n_columns)]
    )
    above = n_known - np.column_stack(
        [np.searchsorted(known[:, j], new[:, j], side="left") for j in range(n_columns)]
    )
    two_sided = 2 * (1 + np.minimum(below, above)) / (n_known + 1)
    return np.asarray(np.minimum(n_columns * two_sided.min(axis=1), 1.0))
