"""Proofs that a Bernstein sum lies above or below an entropy: on [0, 1] and on the simplex."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
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
    """Bounds on sum_j e(p_j) over label distributions, by the share of one class.

    Each belongs to a share x of the class with the largest share, or of the leader, and to
    n_classes - 1 others that are y_1 or y_2, a part `share` of them y_1.
    """

    bound: Array
    one: Array
    first: Array
    second: Array
    share: Array


def simplex_excess(
    x: Array, excess: Array, n_classes: int, leading: Array | None = None
) -> SimplexExcess:
    """Bound sum_j e(p_j) over the simplex, for e between the points (x, excess) on their chords.

    If z is the largest share, the others are at most r = min(z, 1 - z) and sum to 1 - z, so that
    their sum is at most (n_classes - 1) times the concave majorant of e on [0, r] at their mean.
    If one class, the leader, has an e of its own, z is its share, any, and r = 1 - z.
    """
    n_others = n_classes - 1
    if leading is None:
        starts = np.flatnonzero(x[1:] >= 1 / n_classes)
        reach = np.minimum(x[starts + 1], 1 - x[starts])
        leading = excess
    else:
        starts = np.arange(len(x) - 1)
        reach = 1 - x[starts]
    order = np.argsort(reach, kind="stable")
    starts = starts[order]
    low = (1 - x[starts + 1]) / n_others
    high = (1 - x[starts]) / n_others
    rows = zip(reach[order].tolist(), low.tolist(), high.tolist(), strict=True)
    value, first, second, share = np.array(_majorants(x.tolist(), excess.tolist(), rows)).T
    top = np.maximum(leading[starts], leading[starts + 1])
    return SimplexExcess(top + n_others * value, x[starts], first, second, share)


def _majorants(
    x: list[float], y: list[float], rows: Iterable[tuple[float, float, float]]
) -> list[tuple[float, float, float, float]]:
    """Return the largest values of the smallest concave functions above the first of some points.

    A row has the reach of the points, which grows from row to row and is met by the first point
    beyond it, and the arguments between which to look. With the value come the corners around the
    larger argument, and the part of the first of them.
    """
    hull_x = x[:2]
    hull_y = y[:2]
    coming = zip(x[2:], y[2:], strict=True)
    found = []
    for reach, low, high in rows:
        while hull_x[-1] < reach:
            new_x, new_y = next(coming)
            _add_corner(hull_x, hull_y, new_x, new_y)
        last = len(hull_x) - 1
        end = bisect_left(hull_x, high, 1, last)
        before = hull_x[end - 1]
        after = hull_x[end]
        share = (after - high) / (after - before)
        value = share * hull_y[end - 1] + (1 - share) * hull_y[end]
        start = bisect_left(hull_x, low, 1, last)
        part = (hull_x[start] - low) / (hull_x[start] - hull_x[start - 1])
        other = part * hull_y[start - 1] + (1 - part) * hull_y[start]
        value = max(value, other, *hull_y[start:end])
        found.append((value, before, after, share))
    return found


def _add_corner(hull_x: list[float], hull_y: list[float], x: float, y: float) -> None:
    """Add a point on the right to the corners of a concave function, and drop those below."""
    while len(hull_x) > 1 and (hull_y[-1] - hull_y[-2]) * (x - hull_x[-1]) <= (y - hull_y[-1]) * (
        hull_x[-1] - hull_x[-2]
    ):
        hull_x.pop()
        hull_y.pop()
    hull_x.append(x)
    hull_y.append(y)
