"""Class shares: which classes a model names more often than people do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.interval import Interval
from hocal._base.validation import check_fraction
from hocal.decisions.losses import BoundedMean, Judged

__all__ = ["class_bias"]


def class_bias(
    probabilities: ArrayLike, counts: Any, *, confidence: float = 0.95
) -> tuple[Interval, ...]:
    """Return the share that a model gives to each class less the share that people give it.

    The mean over items of f_j - c_j / m, between -1 and 1, by betting. Above 0 the model says the
    class too often. A model may have no such bias and still be wrong about every item.

    Parameters
    ----------
    probabilities : array-like of shape (n_items, n_classes)
        Predictions for items on which the model was not trained; 1 for the class that a judge
        names.
    counts : array-like or sparse array of shape (n_items, n_classes)
        How many people chose each class, one label per item at least.
    confidence : float, default=0.95
        Probability with which the limits of all classes hold together, for a number of items fixed
        in advance.

    Returns
    -------
    tuple of Interval
        One for each class; the estimates add up to 0.

    Examples
    --------
    >>> from hocal.decisions import class_bias
    >>> found = class_bias([[0.9, 0.1]] * 300, [[1, 1]] * 300)
    >>> round(found[0].estimate, 2), found[0].lower > 0.3, found[1].upper < -0.3
    (0.4, True, True)
    """
    delta = 1 - check_fraction(confidence, "confidence")
    judged = Judged.of(counts)
    checked = judged.check_predictions(probabilities, "probabilities", "brier", None)
    judged = judged.advised(checked)
    share = delta / checked.shape[1]
    found = []
    for given, named in zip(checked.T, judged.counts.T, strict=True):
        excess = np.clip(given - named / judged.totals, -1.0, 1.0)  # inside but for rounding
        bounded = BoundedMean(excess, -1.0, 1.0)
        found.append(bounded.interval(share, judged.everything, judged.advises))
    return tuple(found)
