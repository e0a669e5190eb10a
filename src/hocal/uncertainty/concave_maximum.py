"""The largest value of a concave function of label distributions, by cutting planes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import optimize

from hocal._base.scalar_checks import refuse_large
from hocal._base.typing import Array

__all__ = ["concave_maximum"]

N_STARTS = 5  # random points beside the uniform one: a function may have a kink there
MAX_PLANES = 200  # beyond, their bound is taken
GAP = 1e-7  # between value and bound that is as good as none, relative to the value
INSIDE = 1e-6  # share of a random point: at the boundary slopes may be infinite
SEED = 0  # of these points; the same value is found in every run

Function = Callable[[Array], Array]


class _Planes(NamedTuple):
    """Planes that a concave function does not exceed."""

    slopes: Array  #: (n_planes, n_classes)
    heights: Array  #: (n_planes,) at the origin

    @classmethod
    def at(cls, points: Array, value: Function, gradient: Function) -> _Planes:
        """Return the planes that touch the function at some points."""
        slopes = gradient(points)
        return cls(slopes, value(points) - (slopes * points).sum(axis=-1))

    def beside(self, more: _Planes) -> _Planes:
        """Return these and more planes."""
        slopes = np.concatenate([self.slopes, more.slopes])
        return _Planes(slopes, np.concatenate([self.heights, more.heights]))

    def highest(self) -> tuple[Array, float]:
        """Return where on the simplex the lowest plane is highest, and how high."""
        n_planes, n_classes = self.slopes.shape
        cost = np.append(np.zeros(n_classes), -1.0)
        below = np.column_stack([-self.slopes, np.ones(n_planes)])
        total = np.append(np.ones(n_classes), 0.0)[None]
        limits = [(0, 1)] * n_classes + [(None, None)]
        found = optimize.linprog(cost, below, self.heights, total, [1.0], bounds=limits)
        point = np.maximum(found.x[:-1], 0)
        return point / point.sum(), float(-found.fun)


def concave_maximum(value: Function, gradient: Function, n_classes: int) -> float:
    """Return the largest value of a concave function, or a bound above it where that stays open.

    Parameters
    ----------
    value, gradient : callable
        Of label distributions (..., n_classes).
    n_classes : int
        Number of classes.
    """
    what = f"differences between {n_classes:,} classes"
    refuse_large("n_classes", 3 * n_classes**2, what, "Give the entropy a `maximum` of its own.")
    generator = np.random.default_rng(SEED)
    starts = generator.dirichlet(np.ones(n_classes), N_STARTS)
    points = np.concatenate([np.full((1, n_classes), 1 / n_classes), starts])
    best = float(value(points).max())
    planes = _Planes.at(points, value, gradient)
    for _ in range(MAX_PLANES):
        point, bound = planes.highest()
        best = max(best, float(value(point)))
        if bound - best <= GAP * max(1.0, abs(best)):
            return best
        other = generator.dirichlet(np.ones(n_classes))
        inside = (1 - INSIDE) * point + INSIDE * other
        planes = planes.beside(_Planes.at(inside[None], value, gradient))
    return bound
