"""An entropy of your own: gradient by differences, modulus on a grid, concavity tried."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from hocal._base.errors import InputError
from hocal._base.typing import Array
from hocal._base.validation import check_n_classes
from hocal.uncertainty.generalised_entropy import Entropy, check_distance

__all__ = ["Custom", "least_concave_majorant"]

# of the one-sided three-point difference: truncation and round-off are both near 1e-10
_STEP = 1e-5
_CHORD_ROUNDING = 1e-9  # relative; a function that is linear there may fall short by rounding


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
        origin = p[..., None, :]
        way = np.eye(p.shape[-1]) - origin  # to each vertex
        points = origin, origin + _STEP * way, origin + 2 * _STEP * way
        start, near, far = (_call(self._function, x, "value", x.shape[:-1]) for x in points)
        return np.asarray((4 * near - 3 * start - far) / (2 * _STEP))

    def modulus(self, distance: ArrayLike, n_classes: int) -> Array:
        """Return the modulus given by the user, or a grid upper bound for two classes."""
        checked = check_distance(distance)
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
    steps = (values[lag:] - values[: n_points - lag] for lag in range(n_points))
    rises = [np.abs(step).max() for step in steps]
    largest = np.maximum.accumulate(rises)
    majorant = least_concave_majorant(x, largest + largest[1])
    farther = np.minimum(distance / 2 + x[1], 1)
    return np.where(distance > 0, np.interp(farther, x, majorant), 0.0)


def least_concave_majorant(x: Array, y: Array) -> Array:
    """Return the smallest concave function above the points (x, y), at each x."""
    # Its slopes are the decreasing ones nearest to those between neighbours; where it keeps one
    # slope, it is a chord, and the points inside are left out.
    slopes = np.diff(y) / np.diff(x)
    corners = optimize.isotonic_regression(slopes, weights=np.diff(x), increasing=False).blocks
    return np.asarray(np.interp(x, x[corners], y[corners]))
