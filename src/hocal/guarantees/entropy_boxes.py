"""Entropies of label distributions of which only limits of each class are known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hocal._base.typing import Array, IntArray

__all__ = ["box_limits_of_rows"]

_LEVEL_STEPS = 50  # bisections of a level in [0, 1], down to rounding


def box_limits_of_rows(
    component: Callable[[Array], Array], lower: Array, upper: Array, times: IntArray
) -> tuple[Array, Array]:
    """Bound a separable entropy, sum_j g(p_j), between two vectors, for each row of them.

    The largest entropy is that of clip(level, lower, upper) with the level at which it sums to 1.
    From below, g is replaced by its chord in each class, and the cheapest classes are filled first.

    Parameters
    ----------
    component : callable
        The concave function g.
    lower, upper : ndarray of shape (n_rows, n_columns)
        Limits of the probability of a class.
    times : ndarray of shape (n_rows, n_columns)
        How many classes have these limits.

    Returns
    -------
    tuple of ndarray of shape (n_rows,)
        Lower and upper bounds; the lower one is a little too low where g is not linear.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.uncertainty.entropy import Shannon
    >>> from hocal.guarantees.entropy_boxes import box_limits_of_rows
    >>> lower, upper = np.array([[0.5, 0.0]]), np.array([[1.0, 0.5]])
    >>> found = box_limits_of_rows(Shannon().component, lower, upper, np.array([[1, 1]]))
    >>> [round(float(end[0]), 4) for end in found]
    [0.0, 0.6931]
    """
    # Where limits have failed, nothing lies between them.
    failed = ((times * lower).sum(axis=1) > 1) | ((times * upper).sum(axis=1) < 1)
    low = np.where(failed[:, None], 0.0, lower)
    high = np.where(failed[:, None], 1.0, upper)
    level = _even_levels(low, high, times)
    largest = (times * component(np.clip(level[:, None], low, high))).sum(axis=1)
    return _least_of_chords(component, low, high, times), largest


def _even_levels(lower: Array, upper: Array, times: IntArray) -> Array:
    """Return the levels at which clip(level, lower, upper) sums to 1."""
    low = np.zeros(len(lower))
    high = np.ones(len(lower))
    for _ in range(_LEVEL_STEPS):
        middle = (low + high) / 2
        short = (times * np.clip(middle[:, None], lower, upper)).sum(axis=1) < 1
        low = np.where(short, middle, low)
        high = np.where(short, high, middle)
    return high


def _least_of_chords(
    component: Callable[[Array], Array], lower: Array, upper: Array, times: IntArray
) -> Array:
    """Return the smallest sums of the chords of g over label distributions between two vectors."""
    room = upper - lower
    rise = component(upper) - component(lower)
    slope = np.divide(rise, room, out=np.zeros_like(room), where=room > 0)
    order = np.argsort(slope, axis=1)
    space = np.take_along_axis(times * room, order, axis=1)
    before = np.cumsum(space, axis=1) - space  # mass of the cheaper classes
    left = (1 - (times * lower).sum(axis=1))[:, None] - before
    added = np.clip(left, 0, space)
    cost = (np.take_along_axis(slope, order, axis=1) * added).sum(axis=1)
    return np.asarray(np.maximum((times * component(lower)).sum(axis=1) + cost, 0.0))
