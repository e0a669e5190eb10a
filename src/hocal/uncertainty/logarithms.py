"""Logarithms of probabilities that may be 0."""

from __future__ import annotations

import numpy as np

from hocal._base.typing import Array

__all__ = ["LOG_ZERO", "finite_log"]

#: Stands for log 0: times a count of 0 it is 0, its exponential is 0, and a thousand classes with a
#: million labels each add up to a finite number, in float32 as well. Sums below half of it are
#: logarithms of 0.
LOG_ZERO = -1e30


def finite_log(values: Array) -> Array:
    """Return natural logarithms, with `LOG_ZERO` in place of log 0.

    Examples
    --------
    >>> from hocal.uncertainty.logarithms import finite_log
    >>> import numpy as np
    >>> (0 * finite_log(np.array([0.0, 1.0]))).tolist()
    [-0.0, 0.0]
    """
    logs = np.full(values.shape, LOG_ZERO)
    return np.log(values, out=logs, where=values > 0, dtype=np.float64)
