"""The few operations that formulas of label distributions need, on arrays and on tensors alike.

A formula asks `operations_on(p)` for them, so that it is written once. NumPy's are here;
`hocal.torch` registers those of tensors.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any, Protocol

import numpy as np
from scipy import special

from hocal._base.typing import Array, Mask

__all__ = ["SMALLEST", "Operations", "operations_on"]

#: Added to probabilities to keep their logarithms finite: it vanishes next to a probability that
#: matters, in float32 and in float64.
SMALLEST = float(np.finfo(np.float32).tiny)


class Operations(Protocol):
    """What a formula may use besides arithmetic; classes are on the last axis."""

    def log(self, x: Array) -> Array:
        """Return the logarithm, -inf at 0."""

    def power(self, x: Array, exponent: float) -> Array:
        """Return x^exponent, infinite at 0 where the exponent is negative."""

    def x_log_x(self, x: Array) -> Array:
        """Return x log x, 0 at 0."""

    def x_log_y(self, x: Array, y: Array) -> Array:
        """Return x log y, 0 where x is 0."""

    def sum(self, x: Array) -> Array:
        """Return the sum over classes, by the fastest way."""

    def careful_sum(self, x: Array) -> Array:
        """Return the sum over classes, also where some are infinite."""

    def largest(self, x: Array, *, keep_axis: bool = False) -> Array:
        """Return the largest entry over classes."""

    def norm(self, x: Array, *, keep_axis: bool = False) -> Array:
        """Return the Euclidean norm over classes."""

    def zero_where(self, mask: Mask, x: Array) -> Array:
        """Return x with 0 where the mask holds, whatever x is there."""

    def as_numbers(self, mask: Mask, like: Array) -> Array:
        """Return 1 where the mask holds and 0 elsewhere, at least as precise as `like`."""


class _NumpyOperations:
    """The operations on arrays."""

    def log(self, x: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(x))

    def power(self, x: Array, exponent: float) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(x**exponent)

    def x_log_x(self, x: Array) -> Array:
        terms = np.asarray(x + SMALLEST)  # several times faster than a maximum
        np.log(terms, out=terms)
        terms *= x
        return terms

    def x_log_y(self, x: Array, y: Array) -> Array:
        return np.asarray(special.xlogy(x, y))

    def sum(self, x: Array) -> Array:
        """Multiply with ones: several times faster than a sum over a short last axis."""
        n_classes = x.shape[-1]
        sums = x.reshape(-1, n_classes) @ np.ones(n_classes, x.dtype)
        return np.asarray(sums.reshape(x.shape[:-1]))

    def careful_sum(self, x: Array) -> Array:
        return np.asarray(x.sum(axis=-1))

    def largest(self, x: Array, *, keep_axis: bool = False) -> Array:
        return np.asarray(x.max(axis=-1, keepdims=keep_axis))

    def norm(self, x: Array, *, keep_axis: bool = False) -> Array:
        return np.asarray(np.linalg.norm(x, axis=-1, keepdims=keep_axis))

    def zero_where(self, mask: Mask, x: Array) -> Array:
        return np.where(mask, 0.0, x)

    def as_numbers(self, mask: Mask, like: Array) -> Array:
        return mask.astype(np.result_type(like, np.float64))


_NUMPY = _NumpyOperations()


@singledispatch
def operations_on(p: Any) -> Operations:  # noqa: ARG001  # its type decides
    """Return the operations for something of this type; those of arrays unless others are known.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.uncertainty.array_operations import operations_on
    >>> p = np.array([0.25, 0.75])
    >>> float(operations_on(p).largest(p))
    0.75
    """
    return _NUMPY
