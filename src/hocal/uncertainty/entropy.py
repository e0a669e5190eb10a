"""Generalised entropies: concave functions of a label distribution, and their proper losses.

A concave G on the simplex measures how undecided a label distribution is. It induces the proper
loss L(q||p) = G(p) + <grad G(p), q - p>, the expected penalty of predicting p when labels follow q,
and the Bregman divergence D(q||p) = L(q||p) - G(q) >= 0. The paper calls L "the
gradient of G", which holds only up to an additive constant (docs/errata.md, E9), so every loss here
is computed from the formula above.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from hocal._base.errors import InputError
from hocal._base.typing import Array
from hocal._base.validation import (
    check_array,
    check_choice,
    check_n_classes,
    check_number,
    check_simplex,
    refuse_large,
)
from hocal.uncertainty.array_operations import operations_on

__all__ = [
    "Brier",
    "Custom",
    "Entropy",
    "Ordinal",
    "Shannon",
    "Spherical",
    "Tsallis",
    "ZeroOne",
    "get_entropy",
]

# of the one-sided three-point difference: truncation and round-off are both near 1e-10
_STEP = 1e-5
_CHORD_ROUNDING = 1e-9  # relative; a function that is linear there may fall short by rounding


class Entropy(ABC):
    """Base of the generalised entropies; arrays are batched over leading axes, classes on the last.

    Every method checks that its arguments are label distributions; `check_input=False` skips that
    for arrays that were checked before, and is the way for tensors, which stay tensors.
    """

    name: ClassVar[str]

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
        """Return the largest value of G on `n_classes` classes, reached where all are as likely."""
        n_classes = check_n_classes(n_classes)
        return float(self._value(np.full(n_classes, 1 / n_classes)))

    def modulus(self, distance: ArrayLike, n_classes: int) -> Array:
        """Return the largest |G(p) - G(q)| over ||p - q||_1 <= distance, concave in the distance.

        For the entropies of this module the extreme pair is a vertex and the point reached from it
        by moving t = distance / 2 of its mass evenly to the other classes. The paper's
        formula holds for distances up to 1/2 of its own units only (docs/errata.md, E3 and E4).
        """
        n_classes = check_n_classes(n_classes)
        checked = _check_distance(distance)
        what = f"{checked.size:,} distances of {n_classes:,} classes"
        refuse_large("distance", 3 * checked.size * n_classes, what, "Pass fewer at a time.")
        moved = np.minimum(checked / 2, 1 - 1 / n_classes)[..., None]
        others = np.broadcast_to(moved / (n_classes - 1), (*moved.shape[:-1], n_classes - 1))
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

    @abstractmethod
    def component(self, x: Array) -> Array:
        """Return g(x) for x in [0, 1], elementwise."""

    def _value(self, p: Array) -> Array:
        return operations_on(p).sum(self.component(p))


@dataclass(frozen=True)
class Shannon(Separable):
    """Shannon entropy -sum_j p_j log p_j; its loss is cross-entropy.

    Its divergence is that of Kullback and Leibler.

    Parameters
    ----------
    base : float, optional
        Base of the logarithm; nats by default, bits with ``base=2``.

    Examples
    --------
    >>> from hocal.uncertainty.entropy import Shannon
    >>> float(Shannon(base=2).value([0.5, 0.5]))
    1.0
    """

    base: float | None = None
    name: ClassVar[str] = "shannon"

    def __post_init__(self) -> None:
        if self.base is not None:
            check_number(self.base, "base", minimum=1, strict=True)

    @property
    def units_per_nat(self) -> float:
        """1 / log(base), what a nat is in units of the base."""
        return 1.0 if self.base is None else 1 / math.log(self.base)

    def component(self, x: Array) -> Array:
        """Return -x log x, 0 at x = 0."""
        terms = operations_on(x).x_log_x(x)
        terms *= -self.units_per_nat
        terms += 0.0  # turns the -0.0 of a certain label into 0.0
        return terms

    def _value(self, p: Array) -> Array:
        operations = operations_on(p)
        return -self.units_per_nat * operations.sum(operations.x_log_x(p)) + 0.0

    def _gradient(self, p: Array) -> Array:
        return -self.units_per_nat * (operations_on(p).log(p) + 1)

    def _loss(self, truth: Array, prediction: Array) -> Array:
        operations = operations_on(prediction)
        terms = operations.x_log_y(truth, prediction)
        return -self.units_per_nat * operations.careful_sum(terms) + 0.0

    def _divergence(self, truth: Array, prediction: Array) -> Array:
        terms = special.rel_entr(truth, prediction)
        return np.asarray(self.units_per_nat * terms.sum(axis=-1))


@dataclass(frozen=True)
class Brier(Separable):
    """Brier (Gini) entropy scale * (1 - ||p||^2); its divergence is the squared distance.

    Parameters
    ----------
    scale : float, default=1.0
        Factor; ``scale=2`` gives 4p(1-p) in the binary case, which peaks at 1.

    Examples
    --------
    >>> from hocal.uncertainty.entropy import Brier
    >>> float(Brier().divergence([1, 0], [0.5, 0.5]))
    0.5
    """

    scale: float = 1.0
    name: ClassVar[str] = "brier"

    def __post_init__(self) -> None:
        check_number(self.scale, "scale", minimum=0, strict=True)

    def component(self, x: Array) -> Array:
        """Return scale * x (1 - x)."""
        return self.scale * (x * (1 - x))

    def _gradient(self, p: Array) -> Array:
        return -2 * self.scale * p

    def _divergence(self, truth: Array, prediction: Array) -> Array:
        return np.asarray(self.scale * np.square(truth - prediction).sum(axis=-1))


@dataclass(frozen=True)
class Tsallis(Separable):
    """Tsallis entropy (1 - sum_j p_j^order) / (order - 1).

    It is Brier's at order 2, and Shannon's in the limit 1.

    Parameters
    ----------
    order : float, default=1.5
        Positive and not 1.

    Examples
    --------
    >>> from hocal.uncertainty.entropy import Tsallis
    >>> float(Tsallis(order=2).value([0.5, 0.5]))
    0.5
    """

    order: float = 1.5
    name: ClassVar[str] = "tsallis"

    def __post_init__(self) -> None:
        check_number(self.order, "order", minimum=0, strict=True)
        if self.order == 1:
            rule = "must not be 1, where Tsallis entropy is Shannon's"
            raise InputError("order", rule, remedy="Use Shannon().")

    def component(self, x: Array) -> Array:
        """Return (x - x^order) / (order - 1)."""
        return (x - x**self.order) / (self.order - 1)

    def _gradient(self, p: Array) -> Array:
        rest = self.order - 1
        return (1 - self.order * operations_on(p).power(p, rest)) / rest


@dataclass(frozen=True)
class ZeroOne(Entropy):
    """Zero-one entropy 1 - max_j p_j, the error rate of the best single guess.

    Ties share the gradient evenly, so that relabelling classes never changes a loss.

    Examples
    --------
    >>> from hocal.uncertainty.entropy import ZeroOne
    >>> float(ZeroOne().loss([0.25, 0.75], [1, 0]))
    0.75
    """

    name: ClassVar[str] = "zero-one"

    def _value(self, p: Array) -> Array:
        return 1 - operations_on(p).largest(p)

    def _gradient(self, p: Array) -> Array:
        operations = operations_on(p)
        tied = p == operations.largest(p, keep_axis=True)
        best = operations.as_numbers(tied, like=p)
        return -best / operations.sum(best)[..., None]


@dataclass(frozen=True)
class Spherical(Entropy):
    """Spherical entropy 1 - ||p||_2, which the spherical score induces.

    Examples
    --------
    >>> from hocal.uncertainty.entropy import Spherical
    >>> float(Spherical().value([0.6, 0.4]).round(4))
    0.2789
    """

    name: ClassVar[str] = "spherical"

    def _value(self, p: Array) -> Array:
        return 1 - operations_on(p).norm(p)

    def _gradient(self, p: Array) -> Array:
        return -p / operations_on(p).norm(p, keep_axis=True)


@dataclass(frozen=True)
class Ordinal(Entropy):
    """Ordinal entropy sum_j F_j (1 - F_j), with F the cumulative probabilities of ordered classes.

    The ranked probability score induces it, and its divergence is sum_j (F_j - F'_j)^2. It is half
    the mean distance of two labels, in steps of the scale: people who are torn between neighbours
    are less uncertain than people who are torn between the ends. `pair_disagreement` estimates it
    from two labels.

    Examples
    --------
    >>> from hocal.uncertainty.entropy import Ordinal
    >>> Ordinal().value([[0.5, 0.5, 0], [0.5, 0, 0.5]]).tolist()
    [0.25, 0.5]
    """

    name: ClassVar[str] = "ordinal"

    def maximum(self, n_classes: int) -> float:
        """Return the largest value, (n_classes - 1) / 4: half of the people at either end."""
        return (check_n_classes(n_classes) - 1) / 4

    def modulus(self, distance: ArrayLike, n_classes: int) -> Array:
        """Return the largest |G(p) - G(q)| over ||p - q||_1 <= distance.

        Every F_j moves by t = distance / 2 at most, and x (1 - x) by t (1 - t), up to 1/4. Moving t
        from one end to the other does that to all of them.
        """
        n_classes = check_n_classes(n_classes)
        moved = np.minimum(_check_distance(distance) / 2, 0.5)
        return np.asarray((n_classes - 1) * moved * (1 - moved))

    def _value(self, p: Array) -> Array:
        below = p.cumsum(-1)[..., :-1]
        return operations_on(p).sum(below * (1 - below))

    def _gradient(self, p: Array) -> Array:
        slopes = 1 - 2 * p.cumsum(-1)  # that of the last class only adds a constant
        from_here: Array = operations_on(p).sum(slopes)[..., None] - slopes.cumsum(-1) + slopes
        return from_here

    def _divergence(self, truth: Array, prediction: Array) -> Array:
        gaps = (truth - prediction).cumsum(-1)[..., :-1]
        return operations_on(gaps).sum(gaps * gaps)


class Custom(Entropy):
    """A concave function of your own, with or without its gradient.

    Parameters
    ----------
    value : callable
        Maps an array (..., n_classes) of label distributions to an array (...). Refused where it is
        found not to be concave: random chords are tried once for each number of classes.
    gradient : callable, optional
        Maps (..., n_classes) to a gradient of the same shape. Without it, one-sided differences
        towards each vertex are used; they stay inside the simplex and are accurate to about 1e-8
        where G is smooth, but finite where the true slope is infinite.
    modulus : callable, optional
        The modulus of continuity as a function of (l1 distance, n_classes). Without it, it is
        computed on a grid for two classes; there is no safe general way for more.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.uncertainty.entropy import Custom
    >>> margin = Custom(lambda p: 1 - np.abs(p[..., 0] - p[..., 1]))
    >>> float(margin.value([0.75, 0.25]))
    0.5
    """

    name: ClassVar[str] = "custom"

    def __init__(
        self,
        value: Callable[[Array], Array],
        gradient: Callable[[Array], Array] | None = None,
        modulus: Callable[[Array, int], Array] | None = None,
    ) -> None:
        self._function = value
        self._derivative = gradient
        self._continuity = modulus
        self._concave: set[int] = set()  # numbers of classes for which chords were tried

    def __repr__(self) -> str:
        return f"Custom({getattr(self._function, '__name__', type(self._function).__name__)})"

    def _value(self, p: Array) -> Array:
        self._check(p.shape[-1])
        return _call(self._function, p, "value", p.shape[:-1])

    def _gradient(self, p: Array) -> Array:
        self._check(p.shape[-1])
        if self._derivative is not None:
            return _call(self._derivative, p, "gradient", p.shape)
        vertices = np.eye(p.shape[-1])
        steps = [p[..., None, :] + s * (vertices - p[..., None, :]) for s in (_STEP, 2 * _STEP)]
        start, near, far = (
            _call(self._function, x, "value", x.shape[:-1]) for x in (p[..., None, :], *steps)
        )
        return np.asarray((4 * near - 3 * start - far) / (2 * _STEP))

    def modulus(self, distance: ArrayLike, n_classes: int) -> Array:
        """Return the modulus given by the user, or a grid upper bound for two classes."""
        checked = _check_distance(distance)
        self._check(check_n_classes(n_classes))
        if self._continuity is not None:
            return np.asarray(self._continuity(checked, n_classes), dtype=np.float64)
        if n_classes != 2:
            raise InputError(
                "modulus",
                "must be given for a Custom entropy on more than two classes",
                value=f"n_classes={n_classes}",
                remedy="Pass Custom(value, modulus=function of (l1 distance, n_classes)).",
            )
        return _binary_modulus(self._function, checked)

    def _check(self, n_classes: int) -> None:
        if n_classes not in self._concave:
            _check_concave(self._function, n_classes)
            self._concave.add(n_classes)


def get_entropy(entropy: str | Entropy, *, base: float | None = None) -> Entropy:
    """Return an entropy given by name or as an object.

    Parameters
    ----------
    entropy : str or Entropy
        ``"shannon"``, ``"brier"``, ``"tsallis"``, ``"zero-one"``, ``"spherical"``, ``"ordinal"``
        (classes in order) or an object.
    base : float, optional
        Base of Shannon's logarithm; only with ``"shannon"``.

    Returns
    -------
    Entropy
        The object to compute with.

    Examples
    --------
    >>> from hocal.uncertainty.entropy import get_entropy
    >>> get_entropy("shannon", base=2)
    Shannon(base=2)
    """
    by_name = isinstance(entropy, str)
    if base is not None and not (by_name and entropy == "shannon"):
        rule = "must be left out unless entropy='shannon'"
        raise InputError("base", rule, value=f"base={base!r} with {entropy!r}")
    if isinstance(entropy, Entropy):
        return entropy
    kinds = {kind.name: kind for kind in (Shannon, Brier, Tsallis, ZeroOne, Spherical, Ordinal)}
    check_choice(entropy, "entropy", kinds)
    return Shannon(base) if entropy == "shannon" else kinds[str(entropy)]()


def _unchecked(p: Any) -> Array:
    """Return tensors as they are, and all else as an array."""
    return p if operations_on(p) is not operations_on(None) else np.asarray(p)


def _check_distance(distance: ArrayLike) -> Array:
    array = check_array(distance, "distance")
    if not array.min() >= 0:
        raise InputError("distance", "must be non-negative", value=str(array.min()))
    return array


def _call(function: Callable[[Array], Array], p: Array, name: str, shape: tuple[int, ...]) -> Array:
    """Evaluate a user's function and check what it returns."""
    result = np.asarray(function(p), dtype=np.float64)
    if result.shape != shape:
        raise InputError(
            name,
            f"must map an array of shape {p.shape} to shape {shape}",
            value=str(result.shape),
            remedy="Work over the last axis only.",
        )
    return result


def _check_concave(function: Callable[[Array], Array], n_classes: int) -> None:
    """Refuse a function that lies below one of many chords of the simplex."""
    generator = np.random.default_rng(0)
    ends = [generator.dirichlet(np.full(n_classes, a), size=(2, 500)) for a in (0.1, 1.0, 10.0)]
    vertices = np.eye(n_classes)
    edges = np.stack([vertices, np.roll(vertices, 1, 0)])
    first, second = np.concatenate([*ends, edges], axis=1)
    shape = first.shape[:-1]
    ends_values = [_call(function, end, "value", shape) for end in (first, second)]
    if not np.isfinite(ends_values).all():
        rule = "must be finite on the simplex, its boundary included"
        raise InputError("value", rule, value="NaN or infinity")
    for share in (0.5, 0.1):
        chord = share * ends_values[0] + (1 - share) * ends_values[1]
        gap = _call(function, share * first + (1 - share) * second, "value", shape) - chord
        worst = int(np.argmin(gap))
        if not gap[worst] >= -_CHORD_ROUNDING * max(1.0, float(np.abs(chord).max())):
            chord_ends = [end[worst].round(4).tolist() for end in (first, second)]
            raise InputError(
                "value",
                "must be concave",
                value=f"{gap[worst]:.3g} below the chord",
                where=f"between {chord_ends[0]} and {chord_ends[1]}",
                remedy="Negate or correct it.",
            )


def _binary_modulus(
    function: Callable[[Array], Array], distance: Array, n_points: int = 2001
) -> Array:
    """Return a concave upper bound on the modulus for two classes from values on a grid.

    Two points lie within half a step of grid points, at most one step farther apart, and between
    grid points a concave function stays within its largest one-step rise: both are added.
    """
    x = np.linspace(0, 1, n_points)
    values = _call(function, np.stack([x, 1 - x], axis=-1), "value", x.shape)
    rises = [np.abs(values[lag:] - values[: n_points - lag]).max() for lag in range(n_points)]
    largest = np.maximum.accumulate(rises)
    majorant = least_concave_majorant(x, largest + largest[1])
    return np.where(distance > 0, np.interp(np.minimum(distance / 2 + x[1], 1), x, majorant), 0.0)


def least_concave_majorant(x: Array, y: Array) -> Array:
    """Return the smallest concave function above the points (x, y), at each x."""
    # Its slopes are the decreasing ones nearest to those between neighbours; where it keeps one
    # slope, it is a chord, and the points inside are left out.
    slopes = np.diff(y) / np.diff(x)
    corners = optimize.isotonic_regression(slopes, weights=np.diff(x), increasing=False).blocks
    return np.asarray(np.interp(x, x[corners], y[corners]))
