"""The scale of features: whatever units and origin they have, mean 0 and spread 1 in the fit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.errors import InputError
from hocal._base.saved_arrays import SavedArrays
from hocal._base.typing import Array
from hocal._base.validation import check_finite_matrix

__all__ = ["FeatureScale", "check_features"]

LARGEST_FEATURE = 1e100  # that is taken: sums of squares stay finite, even in units of a spread
# Spreads from the mean of the fit at which features are held: far outside the fit nothing is known,
# and a number a thousand spreads away says no more about people than one 30 away.
MOST_SPREADS = 30.0
ROUNDING = 1e-12  # of the mean: a column that varies less than double precision tells is constant


def check_features(features: ArrayLike, name: str) -> Array:
    """Return a matrix of finite numbers, none of them too large for sums of squares."""
    matrix = check_finite_matrix(features, name)
    huge = np.abs(matrix) > LARGEST_FEATURE
    if huge.any():
        row, column = (int(i) for i in np.argwhere(huge)[0])
        raise InputError(
            name,
            f"must lie between {-LARGEST_FEATURE:g} and {LARGEST_FEATURE:g}",
            value=float(matrix[row, column]),
            where=f"in row {row}, column {column}",
            row=row,
            remedy="Take logarithms of such a column, or mend what stands for a missing value.",
        )
    return matrix


class FeatureScale(NamedTuple):
    """Mean and spread of each feature in the fit."""

    centre: Array  #: (n_features,)
    spread: Array  #: (n_features,) 0 for a column that is constant

    @classmethod
    def of(cls, features: Array) -> FeatureScale:
        """Measure features (n_items, n_features), whatever the order of the items."""
        ordered = np.sort(features, axis=0)
        low = ordered[0]
        reach = ordered[-1] - low
        unit = (ordered - low) / np.where(reach > 0, reach, 1.0)  # squares of it stay finite
        centre = low + reach * unit.mean(axis=0)
        spread = reach * unit.std(axis=0)
        return cls(centre, np.where(spread > ROUNDING * np.abs(centre), spread, 0.0))

    @classmethod
    def from_arrays(cls, saved: SavedArrays, n_features: int) -> FeatureScale:
        """Return the scale that was saved."""
        centre = saved.take("feature_centre", n_features, size=LARGEST_FEATURE)
        most = 2 * LARGEST_FEATURE
        return cls(centre, saved.take("feature_spread", n_features, least=0.0, most=most))

    def apply(self, features: Array) -> Array:
        """Standardise features in double precision, held at 30 spreads; a constant one is 0."""
        varies = self.spread > 0
        with np.errstate(over="ignore"):  # what is infinite is held, too
            standard = (features - self.centre) / np.where(varies, self.spread, 1.0)
        held = np.clip(standard, -MOST_SPREADS, MOST_SPREADS)
        return np.where(varies, held, 0.0)
