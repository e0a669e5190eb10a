"""Balls of label distributions that hold an item's true one, proved from labels.

For a prediction c of an item with label distribution p, the squared error ||p - c||^2 can be
estimated without bias from two labels: ||c||^2 - 2 <c, shares> + how often two labels agree. Its
mean over items, in units of what each mixture expects, has an upper limit by betting, and by
Markov's inequality few items are far from their prediction.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hocal._base.errors import InputError
from hocal._base.typing import Array, Counts
from hocal._base.validation import (
    check_counts,
    check_fraction,
    check_same_length,
    label_totals,
)
from hocal.guarantees.betting import Draws, upper_limit
from hocal.uncertainty.decomposition import decompose
from hocal.uncertainty.distinct_counts import as_dense
from hocal.uncertainty.label_sets import check_calibration
from hocal.uncertainty.mixtures import Mixtures, check_mixtures
from hocal.uncertainty.sets import PredictionSets

__all__ = ["SquaredErrors", "ball_around", "certified_set", "error_unit", "squared_errors"]

FARTHEST = math.sqrt(2)  # l2 distance of two vertices
WORST_ERROR = 2.0  # estimated squared error of two labels of a class that was ruled out
BEST_ERROR = -0.5  # of two different labels that were predicted at one half each
# Added to the squared error that a mixture expects, so that one mistake of a mixture that is sure
# of itself does not count without bound. A limit of n draws from a range r is at least 3 r / n
# above their mean, which 20 / n holds at a third of a unit; on labels of images and sentences balls
# were smallest, on average, with .03 for many items.
LEAST_UNIT = 0.03
UNIT_PER_ITEM = 20.0
STEPS = 512  # to which values are rounded up between powers of two: two to three digits


def error_unit(n_items: int) -> float:
    """Return what is added to the squared error that a mixture expects, from the items judged."""
    return LEAST_UNIT + UNIT_PER_ITEM / max(n_items, 1)


class SquaredErrors(NamedTuple):
    """Estimated squared errors of predictions, in units of what their mixtures expect."""

    values: Array  #: (n_values,) distinct ones, rounded up
    repeats: Array  #: (n_values,) items with each
    unit: float  #: what was added to the squared error that a mixture expects

    @classmethod
    def of(cls, errors: Array, expected: Array) -> SquaredErrors:
        """Judge predictions by labels that they have not seen.

        Parameters
        ----------
        errors : ndarray of shape (n_items,)
            As from `squared_errors`; items with NaN in either say nothing.
        expected : ndarray of shape (n_items,)
            Squared error that each mixture expects: its epistemic Brier uncertainty.
        """
        used = np.isfinite(errors) & np.isfinite(expected)
        unit = error_unit(int(used.sum()))
        rounded = _round_up(errors[used] / (expected[used] + unit))
        values, repeats = np.unique(rounded, return_counts=True)
        return cls(values, repeats.astype(np.float64), unit)

    @property
    def n_items(self) -> int:
        """Number of items with two labels or more."""
        return int(self.repeats.sum())

    def limit(self, delta: float) -> float:
        """Return what the mean squared error exceeds with chance delta at most, in these units."""
        if not self.n_items:
            return math.inf
        # Rounding up may leave the range by one step.
        high = _round_up(np.array([WORST_ERROR / self.unit]))[0]
        draws = Draws.of(self.values, self.repeats, BEST_ERROR / self.unit, high)
        return float(upper_limit(draws, delta)[0])


def certified_set(
    mixtures: Mixtures,
    calibration: tuple[Mixtures, Any],
    *,
    coverage: float = 0.9,
    confidence: float = 0.95,
) -> PredictionSets:
    """Return balls around the predicted means, proved to hold the true label distributions.

    With probability `confidence` over the calibration items, the chance that the ball of a new item
    holds its label distribution is `coverage` or more, whatever the mixtures are. The radius of an
    item is sqrt(limit (expected + unit) / (1 - coverage)): `expected` is the squared error that its
    mixture expects, E||p - mean||^2, and `limit` bounds how much larger it is in truth.

    Parameters
    ----------
    mixtures : Mixtures
        Predicted mixtures of new items.
    calibration : tuple of Mixtures and counts
        Predictions for other items, made in the same way and without their labels, and how many
        people chose each class. Items with one label are not used.
    coverage : float, default=0.9
        Probability with which a ball holds the label distribution of its item.
    confidence : float, default=0.95
        Probability, over the calibration items, with which the coverage holds.

    Returns
    -------
    PredictionSets
        Balls in l2 distance; a radius of sqrt(2) holds everything.

    Examples
    --------
    Half of the coins are heads on both sides, half are fair, and nobody knows which is which.

    >>> import hocal
    >>> from hocal.guarantees import certified_set
    >>> coins = hocal.Mixtures.from_ensemble([[[1, 0], [0.5, 0.5]]] * 4000)
    >>> counts = [[2, 0]] * 2500 + [[1, 1]] * 1000 + [[0, 2]] * 500
    >>> sets = certified_set(coins[:1], (coins, counts), coverage=0.8)
    >>> sets.contains([[1, 0]]).tolist(), bool(sets.radius[0] < 1)
    ([True], True)
    """
    known, counts = check_calibration(calibration)
    check_mixtures(mixtures)
    labels = check_counts(counts, n_classes=mixtures.n_classes)
    check_same_length(check_mixtures(known), labels, ("calibration", "counts"))
    errors = SquaredErrors.of(squared_errors(known.mean(), labels), _expected(known))
    return ball_around(
        mixtures.mean(), _expected(mixtures), errors, coverage=coverage, confidence=confidence
    )


def ball_around(
    means: Array,
    expected: Array,
    errors: SquaredErrors,
    *,
    coverage: float,
    confidence: float,
) -> PredictionSets:
    """Return certified balls; `mass` is what is certified, 1 where a ball holds everything."""
    missed = 1 - check_fraction(coverage, "coverage")
    delta = 1 - check_fraction(confidence, "confidence")
    if not errors.n_items:
        rule = "must have items with two labels or more"
        raise InputError("counts", rule, value="none", remedy="Collect a second label for some.")
    squared = errors.limit(delta) * (expected + errors.unit) / missed
    radius = np.minimum(np.sqrt(np.maximum(squared, 0)), FARTHEST)
    mass = np.where(radius < FARTHEST, coverage, 1.0)
    each = np.arange(len(means) + 1)
    centres = Mixtures.trusted(means, np.ones(len(means)), each, each[:-1])
    return PredictionSets(centres, radius, mass, metric="l2")


def squared_errors(means: Array, counts: Counts) -> Array:
    """Return an unbiased estimate of ||p - mean||^2 of each item, NaN without two labels.

    Parameters
    ----------
    means : ndarray of shape (n_items, n_classes)
        Predictions.
    counts : array or sparse matrix of shape (n_items, n_classes)
        Labels.

    Returns
    -------
    ndarray of shape (n_items,)
        From -1/2 to 2.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.guarantees.certified_sets import squared_errors
    >>> squared_errors(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[1, 1], [0, 2]])).tolist()
    [-0.5, 2.0]
    """
    labels = as_dense(counts)
    totals = label_totals(counts)
    hits = (means * labels).sum(axis=1) / totals
    pairs = np.where(totals > 1, totals * (totals - 1.0), np.nan)
    agree = (labels * (labels - 1)).sum(axis=1) / pairs
    return np.asarray((means**2).sum(axis=1) - 2 * hits + agree)


def _expected(mixtures: Mixtures) -> Array:
    return np.maximum(decompose(mixtures, "brier").epistemic, 0)


def _round_up(values: Array) -> Array:
    """Return values rounded up to a few digits, so that few distinct ones must be kept."""
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.ceil(mantissa * STEPS) / STEPS, exponent))
