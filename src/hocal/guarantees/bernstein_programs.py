"""Linear programs for the coefficients of Bernstein sums: cheapest majorant, nearest sum.

For more than two classes a sum over classes must lie above an entropy on the simplex only, not
class by class on [0, 1]. The simplex has too many points to list, so those are added at which the
last solution fails most, until none does by more than a rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize

from hocal._base.typing import Array
from hocal.guarantees.bernstein_proofs import (
    N_SIMPLEX,
    bernstein_basis,
    chebyshev_grid,
    proven_excess,
    simplex_excess,
)

__all__ = ["least_majorant", "least_simplex_majorant", "nearest_sum", "one_sided_penalties"]

# Times the largest g: keeps the program bounded when no mixture has the reference counts.
_WILDEST = 100.0
# Of a one-sided 97.5% tail, to weigh the spread of a statistic against its mean.
_EXPONENT = math.log(40)
_LEAST_SPREAD = 1e-9  # least penalty of the spread: it chooses among equally good statistics
_N_SHARES = 40  # largest shares at which a program over the simplex starts
_MAX_STARTS = 12  # numbers of equal other classes at which it starts
_N_COARSE = 600  # points at which failures are looked for
_N_CUTS = 50  # points added at a time, those of the worst failures
_MAX_ROUNDS = 6
_NARROW = 2e-4  # nats of failure that are made good by a constant
_SAME = 1e-9  # nats by which coefficients differ that more points have not changed


def one_sided_penalties(n_items: float) -> dict[str, float]:
    """Return what a statistic's spread costs when it is averaged over so many items.

    The two terms of a Bernstein interval, the first doubled: a mean deviation understates a
    skewed spread.
    """
    deviation = 2 * math.sqrt(2 * _EXPONENT / n_items)
    return {"deviation": deviation, "spread": max(_EXPONENT / (3 * n_items), _LEAST_SPREAD)}


def least_majorant(
    basis: Array,
    floor: Array,
    weights: Array,
    n_classes: int,
    *,
    deviation: float = 0,
    spread: float = 0,
    slope: float = 0,
) -> Array:
    """Return the beta of the cheapest Bernstein sum with basis @ beta >= floor.

    Minimises weights @ beta + deviation * (bound on E|Z - constant|) + spread * (bound on the range
    of Z) + slope * (Lipschitz constant of Z). Adding c0 + c1 s_j to beta(s_j) adds the constant
    n_classes * c0 + k * c1 to Z, so spread is measured from the best such line.
    """
    k = len(weights) - 1
    unit = np.eye(k + 1)
    height = _WILDEST * float(np.abs(floor).max())
    line = np.stack([np.ones(k + 1), np.arange(k + 1.0)], axis=-1)
    total = np.array([float(n_classes), k])
    if n_classes == 2:  # Z = beta(s_1): only a constant is free
        line = line[:, :1]
        total = np.ones(1)
    steps, step_cost = _step_rows(k, n_classes)
    costs = {
        "beta": weights,
        "distance": deviation * weights,
        "centre": 0 * total,
        "steps": slope * step_cost,
    }
    costs |= {"above": spread * total, "below": -spread * total}
    rows = [({"beta": -basis}, -floor)]
    rows += [
        ({"beta": s * unit, "distance": -unit, "centre": -s * line}, np.zeros(k + 1))
        for s in (1, -1)
    ]
    rows += [
        ({"beta": unit, "above": -line}, np.zeros(k + 1)),
        ({"beta": -unit, "below": line}, np.zeros(k + 1)),
    ]
    box = {"beta": (-height, height), "distance": (0, None)}
    return _minimise(costs, rows + steps, box)["beta"]


def least_simplex_majorant(
    g: Callable[[Array], Array],
    weights: Array,
    n_classes: int,
    sign: int,
    penalties: dict[str, float],
) -> Array:
    """Return the beta of the cheapest sum_j Q(p_j) that is at least sum_j g(p_j) on the simplex.

    With sign -1, the dearest one that is at most it. The result is proven.
    """
    k = len(weights) - 1
    basis, target = _starts(g, k, n_classes)
    others = n_classes - 1
    before = np.full(k + 1, np.inf)
    for _ in range(_MAX_ROUNDS + 1):
        beta = sign * least_majorant(basis, sign * target, weights, n_classes, **penalties)
        # Adding c (1 - s n_classes / k) to beta(s) adds nothing to the sum; g(0) = 0.
        beta = beta - beta[0] * (1 - n_classes * np.arange(k + 1) / k)
        worst = simplex_excess(*proven_excess(beta, g, -sign, _N_COARSE), n_classes)
        # The bound between so few points has a margin of its own, which no round takes away.
        if worst.bound.max() <= _NARROW or np.abs(beta - before).max() <= _SAME:
            break
        before = beta
        chosen = np.argsort(-worst.bound)[:_N_CUTS]
        _, largest, first, second, share = (column[chosen] for column in worst)
        more = [
            f(largest) + others * (_rows(share, f(first)) + _rows(1 - share, f(second)))
            for f in (lambda x: bernstein_basis(x, k), g)
        ]
        basis = np.concatenate([basis, more[0]])
        target = np.concatenate([target, more[1]])
    worst = simplex_excess(*proven_excess(beta, g, -sign, N_SIMPLEX), n_classes)
    return np.asarray(beta + sign * max(float(worst.bound.max()), 0.0) / n_classes)


def _rows(factor: Array, values: Array) -> Array:
    return (values.T * factor).T


def _starts(g: Callable[[Array], Array], k: int, n_classes: int) -> tuple[Array, Array]:
    """Return sums over classes at (x, y, ..., y, 0, ..., 0), with 1 to n_classes - 1 times y."""
    x = chebyshev_grid(_N_SHARES)
    numbers = np.unique(np.geomspace(1, n_classes - 1, _MAX_STARTS).astype(np.int64))
    none = bernstein_basis(np.zeros(1), k)
    basis = []
    target = []
    for number in numbers:
        y = (1 - x) / number
        basis.append(
            bernstein_basis(x, k) + number * bernstein_basis(y, k) + (n_classes - 1 - number) * none
        )
        target.append(g(x) + number * g(y))
    return np.concatenate(basis), np.concatenate(target)


def nearest_sum(x: Array, target: Array, k: int, n_classes: int, *, slope: float) -> Array:
    """Return the beta of least bias n_classes * c0 + c1, with |Q(x) - g(x)| <= c0 + c1 x."""
    line = np.ones((len(x), 1)) if n_classes == 2 else np.stack([np.ones_like(x), x], axis=-1)
    steps, step_cost = _step_rows(k, n_classes)
    costs = {"beta": np.zeros(k + 1), "steps": slope * step_cost}
    costs["band"] = np.ones(1) if n_classes == 2 else np.array([float(n_classes), 1])
    rows = [({"beta": s * bernstein_basis(x, k), "band": -line}, s * target) for s in (1, -1)]
    return _minimise(costs, rows + steps, {})["beta"]


Rows = list[tuple[dict[str, Array], Array]]


def _step_rows(k: int, n_classes: int) -> tuple[Rows, Array]:
    """Return rows that hold the rises of beta between two numbers, and their Lipschitz cost."""
    rise = np.diff(np.eye(k + 1), axis=0)
    zero = np.zeros(k)
    sides = np.array([[1.0], [1.0]] if n_classes == 2 else [[1.0, 0.0], [0.0, -1.0]])
    rows = [
        ({"beta": s * rise, "steps": -np.tile(side, (k, 1))}, zero)
        for s, side in zip((1, -1), sides, strict=True)
    ]
    return rows, k / 2 * (np.ones(1) if n_classes == 2 else np.array([1.0, -1.0]))


def _minimise(costs: dict[str, Array], rows: Rows, bounds: dict[str, Any]) -> dict[str, Array]:
    """Solve a linear program over named blocks; rows are sum block @ variables <= limit."""
    matrix = [
        np.hstack(
            [row.get(name, np.zeros((len(limit), len(cost)))) for name, cost in costs.items()]
        )
        for row, limit in rows
    ]
    limits = np.concatenate([limit for _, limit in rows])
    box = [bounds.get(name, (None, None)) for name, cost in costs.items() for _ in cost]
    cost = np.concatenate(list(costs.values()))
    solution = optimize.linprog(
        cost, A_ub=np.vstack(matrix), b_ub=limits, bounds=box, method="highs"
    )
    if solution.x is None:
        raise RuntimeError(
            f"The linear program of a Bernstein estimator failed: {solution.message}"
        )
    return dict(
        zip(
            costs,
            np.split(solution.x, np.cumsum([len(c) for c in costs.values()])[:-1]),
            strict=True,
        )
    )
