"""Proofs that a Bernstein sum lies above or below an entropy: on [0, 1] and on the simplex."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special

from hocal._base.typing import Array

__all__ = [
    "N_PROOF",
    "N_SIMPLEX",
    "SimplexExcess",
    "bernstein_basis",
    "bernstein_excess",
    "chebyshev_grid",
    "proven_excess",
    "simplex_excess",
]

_ROUNDING = 1e-12  # of a Bernstein sum, relative to its largest term
N_PROOF = 8_000  # points at which a bound between them is proven
N_SIMPLEX = 4_000  # the same on the simplex, which takes longer; half as many cost 1e-4 nats


def chebyshev_grid(n_points: int) -> Array:
    """Return points of [0, 1], spaced like x^(3/4) at both ends, where entropies are steep."""
    inner = np.sin(np.pi / 2 * np.linspace(0, 1, n_points)) ** 2
    return np.asarray(np.sin(np.pi / 2 * inner) ** 2)


def bernstein_basis(x: Array, k: int) -> Array:
    """Return Bin(i; k, x), one row for each x."""
    i = np.arange(k + 1)
    return np.asarray(special.comb(k, i) * x[:, None] ** i * (1 - x[:, None]) ** (k - i))


def bernstein_excess(
    values: Array, x: Array, target: Array, *, sign: int = -1, sagitta: Array | float = 0.0
) -> Array:
    """Return numbers on the grid x that, interpolated, are at least sign * (Q - target) on [0, 1].

    Between neighbours at distance h, Q leaves its chord by at most h^2/8 max|Q''|, and
    |Q''| <= k(k-1) max|second difference of beta|. `sagitta` bounds, for each interval, how far
    -sign * target leaves its chord downwards; 0 where its chords lie above it.
    """
    k = len(values) - 1
    bend = k * (k - 1) * np.abs(np.diff(values, 2)).max(initial=0)
    between = bend * np.diff(x) ** 2 / 8 + sagitta
    margin = np.maximum(np.append(between, 0), np.append(0, between)) + _ROUNDING * (
        1 + np.abs(values).max()
    )
    return np.asarray(sign * (bernstein_basis(x, k) @ values - target) + margin)


def proven_excess(
    values: Array, g: Callable[[Array], Array], sign: int, n_points: int = N_PROOF
) -> tuple[Array, Array]:
    """Return a grid and a bound on sign * (Q - g) for a concave g, as in `bernstein_excess`.

    g lies above its chord, but below the continued chords of the two neighbouring intervals. These
    rise above the chord with slopes a and b and meet at height h / (1/a + 1/b).
    """
    x = chebyshev_grid(n_points)
    target = g(x)
    step = np.diff(x)
    if sign > 0:
        return x, bernstein_excess(values, x, target, sign=sign)
    slope = np.diff(target) / step
    before = np.concatenate([[np.inf], slope[:-1]]) - slope
    after = slope - np.concatenate([slope[1:], [-np.inf]])
    with np.errstate(divide="ignore"):
        sagitta = step / (1 / np.maximum(before, 0) + 1 / np.maximum(after, 0))
    return x, bernstein_excess(values, x, target, sign=sign, sagitta=sagitta)


class SimplexExcess(NamedTuple):
    """Bounds on sum_j e(p_j) over label distributions, by the size of the largest share.

    Each belongs to a largest share x, and to n_classes - 1 others that are y_1 or y_2, a part
    `share` of them y_1.
    """

    bound: Array
    largest: Array
    first: Array
    second: Array
    share: Array


def simplex_excess(x: Array, excess: Array, n_classes: int) -> SimplexExcess:
    """Bound sum_j e(p_j) over the simplex, for e between the points (x, excess) on their chords.

    If z is the largest share, the others are at most r = min(z, 1 - z) and sum to 1 - z, so that
    their sum is at most (n_classes - 1) times the concave majorant of e on [0, r] at their mean.
    """
    starts = np.flatnonzero(x[1:] >= 1 / n_classes)
    reach = np.minimum(x[starts + 1], 1 - x[starts])
    order = np.argsort(reach, kind="stable")
    starts = starts[order]
    others = n_classes - 1
    most_mean = (1 - x[starts]) / others
    least_mean = (1 - x[starts + 1]) / others
    hull = _Majorant(x, excess)
    rows = []
    for far, low, high in zip(
        reach[order].tolist(), least_mean.tolist(), most_mean.tolist(), strict=True
    ):
        hull.extend(far)
        rows.append(hull.most(low, high))
    value, first, second, share = np.array(rows).T
    top = np.maximum(excess[starts], excess[starts + 1])
    return SimplexExcess(top + others * value, x[starts], first, second, share)


class _Majorant:
    """The smallest concave function above the first of some points, which are added in order."""

    def __init__(self, x: Array, y: Array) -> None:
        self._x = x.tolist()
        self._y = y.tolist()
        self._n_added = 0
        self._hull_x: list[float] = []
        self._hull_y: list[float] = []

    def extend(self, reach: float) -> None:
        """Add the points up to the first one beyond `reach`."""
        hx = self._hull_x
        hy = self._hull_y
        while self._n_added < len(self._x) and (self._n_added < 2 or hx[-1] < reach):
            x = self._x[self._n_added]
            y = self._y[self._n_added]
            while len(hx) > 1 and (hy[-1] - hy[-2]) * (x - hx[-1]) <= (y - hy[-1]) * (
                hx[-1] - hx[-2]
            ):
                hx.pop()
                hy.pop()
            hx.append(x)
            hy.append(y)
            self._n_added += 1

    def most(self, low: float, high: float) -> tuple[float, float, float, float]:
        """Return the largest value between two arguments, and how the upper one is composed.

        That is: the points of the hull around it, and the part of the first of them.
        """
        hx = self._hull_x
        hy = self._hull_y
        last = len(hx) - 1
        end = min(max(bisect_left(hx, high), 1), last)
        share = (hx[end] - high) / (hx[end] - hx[end - 1])
        value = share * hy[end - 1] + (1 - share) * hy[end]
        start = min(max(bisect_left(hx, low), 1), last)
        part = (hx[start] - low) / (hx[start] - hx[start - 1])
        value = max(value, part * hy[start - 1] + (1 - part) * hy[start])
        if start < end:
            value = max(value, *hy[start:end])
        return value, hx[end - 1], hx[end], share
