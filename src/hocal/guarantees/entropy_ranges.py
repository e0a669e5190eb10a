"""What a Brier uncertainty says about a Shannon uncertainty, whatever the mixture."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from hocal._base.typing import Array
from hocal.guarantees.bernstein_proofs import chebyshev_grid
from hocal.uncertainty.entropy import Shannon
from hocal.uncertainty.own_entropy import least_concave_majorant

__all__ = ["shannon_range"]

_N_POINTS = 20_000  # of the upper end, which is rounded upwards to the next of them


def shannon_range(lower: float, upper: float, n_classes: int) -> tuple[float, float]:
    """Return the least and the largest E[H(p)] with E[1 - ||p||^2] between two numbers.

    Of all label distributions with one 1 - ||p||^2, the entropy is least for equal shares of as few
    classes as possible and largest for p = (a, b, ..., b) with a >= b. Mixtures fill what lies
    between: the least mean entropy is linear through the points (1 - 1/m, log m), and the largest
    is the concave envelope of the entropies of p = (a, b, ..., b). Both grow with 1 - ||p||^2.

    Parameters
    ----------
    lower, upper : float
        Limits of the Brier uncertainty.
    n_classes : int
        Number of label classes.

    Returns
    -------
    tuple of float
        Sharp limits of the Shannon uncertainty in nats; the upper one is rounded upwards by less
        than a thousandth.

    Examples
    --------
    >>> from hocal.guarantees.entropy_ranges import shannon_range
    >>> [round(end, 3) for end in shannon_range(0.5, 0.5, 2)], shannon_range(0.0, 0.0, 10)
    ([0.693, 0.693], (0.0, 0.0))
    """
    numbers = np.arange(1, n_classes + 1)
    least = np.interp(lower, 1 - 1 / numbers, np.log(numbers))
    brier, largest = _largest_entropies(n_classes)
    place = min(int(np.searchsorted(brier, upper)), len(brier) - 1)
    return float(least), float(largest[place])


@lru_cache(maxsize=64)
def _largest_entropies(n_classes: int) -> tuple[Array, Array]:
    """Return rising Brier uncertainties and the largest Shannon uncertainty with each."""
    first = 1 - (1 - 1 / n_classes) * chebyshev_grid(_N_POINTS)
    other = (1 - first) / (n_classes - 1)
    brier = 1 - first**2 - (n_classes - 1) * other**2
    g = Shannon().component
    entropy = g(first) + (n_classes - 1) * g(other)
    # Neighbours next to an end may have equal Brier uncertainties after rounding.
    brier, places = np.unique(np.maximum.accumulate(brier), return_index=True)
    last = np.append(places[1:], len(entropy)) - 1  # the largest entropy of those
    majorant = least_concave_majorant(brier, np.maximum.accumulate(entropy)[last])
    return brier, np.maximum.accumulate(majorant)
