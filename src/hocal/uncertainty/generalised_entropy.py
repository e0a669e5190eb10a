"""Generalised entropies: concave functions of a label distribution, and their proper losses.

A concave G on the simplex measures how undecided a label distribution is. It induces the proper
loss L(q||p) = G(p) + <grad G(p), q - p>, the expected penalty of predicting p when labels follow q,
and the Bregman divergence D(q||p) = L(q||p) - G(q) >= 0. The paper calls L "the
gradient of G", which holds only up to an additive constant (docs/errata.md, E9), so every loss here
is computed from the formula above.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.errors import InputError
from hocal._base.typing import Array
from hocal._base.validation import check_array, check_n_classes, check_simplex, refuse_large
from hocal.uncertainty.array_operations import operations_on
from hocal.uncertainty.concave_maximum import concave_maximum

__all__ = ["Entropy", "Separable", "check_distance"]


class Entropy(ABC):
    """Base of the generalised entropies; arrays are batched over leading axes, classes on the last.

    Every method checks that its arguments are label distributions; `check_input=False` skips that
    for arrays that were checked before, and is the way for tensors, which stay tensors.
    """

    name: ClassVar[str]
    #: Whether other names of the classes change nothing. Unless a measure says so, it may treat
    #: classes differently, and gets them in their order.
    symmetric: ClassVar[bool] = False

    def value(self, p: ArrayLike, *, check_input: bool = True) -> Array:
        """Return G(p), one number for each label distribution."""
        return self._value(check_simplex(p, "p") if check_input else _unchecked(p))

    def gradient(self, p: ArrayLike, *, check_input: bool = True) -> Array:
        """Return a (super)gradient of G at p, infinite where the slope is."""
        return self._gradient(check_simplex(p, "p") if check_input else _unchecked(p))

    def loss(self, truth: ArrayLike, prediction: ArrayLike, *, check_input: bool = True) -> Array:
        """Return L(truth||prediction), the expected loss when labels follow `truth`."""
        return self._loss(*self._pair(truth, prediction, check_input))

    def divergence(
        self, truth: ArrayLike, prediction: ArrayLike, *, check_input: bool = True
    ) -> Array:
        """Return D(truth||prediction) = L(truth||prediction) - G(truth), the avoidable loss."""
        return self._divergence(*self._pair(truth, prediction, check_input))

    def maximum(self, n_classes: int) -> float:
        """Return the largest value of G on `n_classes` classes.

        A symmetric entropy reaches it where all classes are as likely; of others it is searched
        for, and may be a bound slightly above.
        """
        n_classes = check_n_classes(n_classes)
        if not self.symmetric:
            return concave_maximum(self._value, self._gradient, n_classes)
        return float(self._value(np.full(n_classes, 1 / n_classes)))

    def modulus(self, distance: ArrayLike, n_classes: int) -> Array:
        """Return the largest |G(p) - G(q)| over ||p - q||_1 <= distance, concave in the distance.

        An entropy that is not symmetric must have its own. For the others of this library the
        extreme pair is a vertex and the point reached from it by moving t = distance / 2 of its
        mass evenly to the other classes. The paper's formula holds for distances up to 1/2
        of its own units only (docs/errata.md, E3 and E4).
        """
        if not self.symmetric:
            raise InputError(
                "entropy",
                "must be symmetric, or have a modulus of its own",
                value=type(self).__name__,
                remedy="Override modulus(distance, n_classes); or set `symmetric` if it is.",
            )
        n_classes = check_n_classes(n_classes)
        checked = check_distance(distance)
        what = f"{checked.size:,} distances of {n_classes:,} classes"
        refuse_large("distance", 3 * checked.size * n_classes, what, "Pass fewer at a time.")
        moved = np.minimum(checked / 2, 1 - 1 / n_classes)[..., None]
        shape = (*moved.shape[:-1], n_classes - 1)
        others = np.broadcast_to(moved / (n_classes - 1), shape)
        return self._value(np.concatenate([1 - moved, others], axis=-1))

    @abstractmethod
    def _value(self, p: Array) -> Array: ...

    @abstractmethod
    def _gradient(self, p: Array) -> Array: ...

    def _loss(self, truth: Array, prediction: Array) -> Array:
        operations = operations_on(prediction)
        difference = truth - prediction
        with np.errstate(invalid="ignore"):  # an infinite slope times no movement is no loss
            terms = self._gradient(prediction) * difference
        rise = operations.careful_sum(operations.zero_where(difference == 0, terms))
        return self._value(prediction) + rise

    def _divergence(self, truth: Array, prediction: Array) -> Array:
        return self._loss(truth, prediction) - self._value(truth)

    @staticmethod
    def _pair(truth: ArrayLike, prediction: ArrayLike, check_input: bool) -> tuple[Array, Array]:
        if not check_input:
            return _unchecked(truth), _unchecked(prediction)
        first = check_simplex(truth, "truth")
        second = check_simplex(prediction, "prediction", n_classes=first.shape[-1])
        try:
            np.broadcast_shapes(first.shape, second.shape)
        except ValueError as error:
            raise InputError(
                "truth and prediction",
                "must have shapes that fit together",
                value=f"{first.shape} and {second.shape}",
            ) from error
        return first, second


class Separable(Entropy):
    """An entropy that is a sum over classes, G(p) = sum_j g(p_j); g is `component`."""

    symmetric: ClassVar[bool] = True

    @abstractmethod
    def component(self, x: Array) -> Array:
        """Return g(x) for x in [0, 1], elementwise."""

    def _value(self, p: Array) -> Array:
        return operations_on(p).sum(self.component(p))


def _unchecked(p: Any) -> Array:
    """Return tensors as they are, and all else as an array."""
    return p if operations_on(p) is not operations_on(None) else np.asarray(p)


def check_distance(distance: ArrayLike) -> Array:
    """Return distances as an array; refuse negative ones."""
    array = check_array(distance, "distance")
    if not array.min() >= 0:
        raise InputError("distance", "must be non-negative", value=str(array.min()))
    return array
