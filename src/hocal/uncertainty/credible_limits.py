"""Between which values the entropy of an item's label distribution lies, by its mixture."""

from __future__ import annotations

import numpy as np

from hocal._base.typing import Array, Index
from hocal._base.validation import check_fraction
from hocal.uncertainty.entropy import Entropy, get_entropy
from hocal.uncertainty.mixtures import Mixtures

__all__ = ["credible_limits"]

# Limits are rounded outwards to so many, in units of the entropy: finer differences are not known
# from a few hundred atoms, and a clear item has 0 in its interval.
STEP = 0.01
ROUNDING = 1e-9  # of steps, and of cumulated weights


def credible_limits(
    mixtures: Mixtures, confidence: float = 0.95, entropy: str | Entropy = "shannon"
) -> tuple[Array, Array]:
    """Return limits between which each item's aleatoric uncertainty lies, given its mixture.

    The item's label distribution p is an atom with the probability of its weight; limits are
    quantiles of G(p), with the same probability outside on either side, rounded outwards to
    hundredths. They always hold the expectation E G(p), which is the item's aleatoric uncertainty.
    Those of an empty mixture are NaN.

    Parameters
    ----------
    mixtures : Mixtures
        Of each item, given its own labels where it has any.
    confidence : float, default=0.95
        Probability between the limits.
    entropy : str or Entropy, default="shannon"
        What uncertainty is measured with.

    Returns
    -------
    tuple of ndarray of shape (n_items,)
        Lower and upper limits.

    Examples
    --------
    >>> from hocal import Mixtures
    >>> from hocal.uncertainty.credible_limits import credible_limits
    >>> mixtures = Mixtures.from_ensemble([[[1.0, 0.0], [0.5, 0.5]], [[0.9, 0.1], [0.9, 0.1]]])
    >>> [ends.round(2).tolist() for ends in credible_limits(mixtures)]
    [[0.0, 0.32], [0.69, 0.33]]
    """
    outside = (1 - check_fraction(confidence, "confidence")) / 2
    measure = get_entropy(entropy)
    stored = np.arange(mixtures.n_mixtures)
    row, atom, starts = mixtures.pairs(stored)
    values = measure.value(mixtures.points_at(atom), check_input=False)
    weights = mixtures.weights[atom]
    expected = np.bincount(row, weights * values, minlength=len(stored))
    order = np.lexsort((values, row))
    ordered = np.append(values[order], np.nan)  # one more, for empty mixtures at the end
    reached = _cumulate(weights[order], row, starts)
    ends = []
    for share in (outside, 1 - outside):
        place = np.searchsorted(reached, stored + share - ROUNDING)
        inside = np.clip(place, starts[:-1], np.maximum(starts[1:] - 1, starts[:-1]))
        ends.append(np.where(starts[1:] > starts[:-1], ordered[inside], np.nan))
    lower = np.floor(np.minimum(ends[0], expected) / STEP + ROUNDING) * STEP
    upper = np.ceil(np.maximum(ends[1], expected) / STEP - ROUNDING) * STEP
    largest = measure.maximum(mixtures.n_classes)
    index = mixtures.index
    return lower[index], np.minimum(upper, largest)[index]


def _cumulate(weights: Array, row: Index, starts: Index) -> Array:
    """Return the number of each weight's mixture, plus what it and those before it there sum to."""
    sums = np.cumsum(weights)
    before = np.append(0.0, sums)[starts[:-1]]  # of the mixtures before; an empty one adds nothing
    return np.asarray(row + (sums - before[row]))
