"""Linear programs for the coefficients of Bernstein sums: cheapest majorant, nearest sum.

For more than two classes a sum over classes must lie above an entropy on the simplex only, not
class by class on [0, 1]. The simplex has too many points to list, so those are added at which the
last solution fails most, until none does by more than a rounding.

Coefficients and their weights have one row for all classes, or one for all but the leader and one
for the leader.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize

from hocal._base.typing import Array, Index
from hocal.guarantees.bernstein_proofs import (
    N_SIMPLEX,
    SimplexExcess,
    bernstein_basis,
    chebyshev_grid,
    proven_excess,
    simplex_excess,
)

__all__ = [
    "least_majorant",
    "least_simplex_majorant",
    "nearest_sum",
    "one_sided_penalties",
    "sum_excess",
]

# Times the largest g: keeps the program bounded when no mixture has the reference counts.
_WILDEST = 100.0
# Of a one-sided 97.5% tail, to weigh the spread of a statistic against its mean.
_EXPONENT = math.log(40)
_LEAST_SPREAD = 1e-9  # least penalty of the spread: it chooses among equally good statistics
_N_SHARES = 20  # shares of one class at which a program over the simplex starts
_MAX_STARTS = 12  # numbers of equal other classes at which it starts
_N_COARSE = 300  # points at which failures are looked for
_N_CUTS = 50  # most points added at a time
_MAX_ROUNDS = 20
_NARROW = 2e-4  # nats of failure, bounded from few points, that a constant makes good
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
    weight = weights.ravel()
    unit = np.eye(len(weight))
    zero = np.zeros(len(weight))
    height = _WILDEST * float(np.abs(floor).max())
    line, total = _lines(weights.shape, n_classes)
    steps, step_cost = _step_rows(weights.shape, n_classes)
    costs = {
        "beta": weight,
        "distance": deviation * weight,
        "centre": 0 * total,
        "steps": slope * step_cost,
    }
    costs |= {"above": spread * total, "below": -spread * total}
    rows = [({"beta": -basis}, -floor)]
    rows += [({"beta": s * unit, "distance": -unit, "centre": -s * line}, zero) for s in (1, -1)]
    rows += [
        ({"beta": unit, "above": -line}, zero),
        ({"beta": -unit, "below": line}, zero),
    ]
    box = {"beta": (-height, height), "distance": (0, None)}
    return _minimise(costs, rows + steps, box)["beta"].reshape(weights.shape)


def _lines(shape: tuple[int, ...], n_classes: int) -> tuple[Array, Array]:
    """Return what adds constants to Z when it is added to the coefficients, and the constants."""
    n_rows, n_counts = shape
    constants = np.repeat(np.eye(n_rows), n_counts, axis=0)
    if n_classes == 2:  # Z = beta(s_1): only a constant is free
        return constants, np.ones(1)
    counts = np.tile(np.arange(float(n_counts)), n_rows)
    total = np.append(_members(n_rows, n_classes), n_counts - 1)
    return np.column_stack([constants, counts]), total


def _members(n_rows: int, n_classes: int) -> Array:
    """Return how many classes each row of coefficients is for."""
    return np.array([float(n_classes)] if n_rows == 1 else [n_classes - 1.0, 1.0])


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
    n_rows, n_counts = weights.shape
    k = n_counts - 1
    basis, target = _starts(g, k, n_classes, n_rows)
    before = np.full(weights.shape, np.inf)
    for _ in range(_MAX_ROUNDS + 1):
        beta = sign * least_majorant(basis, sign * target, weights, n_classes, **penalties)
        beta = _without_constants(beta, n_classes)
        worst = _failures(beta, g, -sign, n_classes)
        if worst.bound.max() <= _NARROW or np.abs(beta - before).max() <= _SAME:
            break
        before = beta
        chosen = _peaks(worst.bound)
        _, one, first, second, share = (column[chosen] for column in worst)
        more = [
            (f(one), (n_classes - 1) * (_rows(share, f(first)) + _rows(1 - share, f(second))))
            for f in (lambda x: bernstein_basis(x, k), g)
        ]
        basis = np.concatenate([basis, _joined(*more[0], n_rows)])
        target = np.concatenate([target, sum(more[1])])
    worst = sum_excess(beta, g, -sign, n_classes, N_SIMPLEX)
    return np.asarray(beta + sign * max(float(worst.bound.max()), 0.0) / n_classes)


def _failures(beta: Array, g: Callable[[Array], Array], sign: int, n_classes: int) -> SimplexExcess:
    """Return about what `sum_excess` does, from few points and without a proof between them."""
    x = chebyshev_grid(_N_COARSE)
    excess = sign * (beta @ bernstein_basis(x, beta.shape[1] - 1).T - g(x))
    return simplex_excess(x, excess[0], n_classes, excess[1] if len(beta) > 1 else None)


def _peaks(bound: Array) -> Index:
    """Return where a failure is worst among its neighbours, the worst ones first."""
    padded = np.concatenate([[-np.inf], bound, [-np.inf]])
    peak = (bound >= padded[:-2]) & (bound >= padded[2:]) & (bound > 0)
    places = np.flatnonzero(peak)
    return np.asarray(places[np.argsort(-bound[places], kind="stable")][:_N_CUTS])


def sum_excess(
    beta: Array, g: Callable[[Array], Array], sign: int, n_classes: int, n_points: int
) -> SimplexExcess:
    """Bound sign * sum_j (Q(p_j) - g(p_j)) on the simplex, from so many points."""
    x, excess = proven_excess(beta[0], g, sign, n_points)
    leading = proven_excess(beta[1], g, sign, n_points)[1] if len(beta) > 1 else None
    return simplex_excess(x, excess, n_classes, leading)


def _without_constants(beta: Array, n_classes: int) -> Array:
    """Return coefficients of the same sum that are 0 for classes without a label; g(0) = 0."""
    n_rows, n_counts = beta.shape
    first = beta[:, :1]
    slope = float(_members(n_rows, n_classes) @ first[:, 0]) / (n_counts - 1)
    return np.asarray(beta - first + slope * np.arange(n_counts))


def _rows(factor: Array, values: Array) -> Array:
    return (values.T * factor).T


def _joined(one: Array, others: Array, n_rows: int) -> Array:
    """Return rows of a program: what one class and all others add, together or side by side."""
    return one + others if n_rows == 1 else np.concatenate([others, one], axis=1)


def _starts(
    g: Callable[[Array], Array], k: int, n_classes: int, n_rows: int
) -> tuple[Array, Array]:
    """Return sums over classes at (x, y, ..., y, 0, ..., 0), with 1 to n_classes - 1 times y."""
    x = chebyshev_grid(_N_SHARES)
    numbers = np.unique(np.geomspace(1, n_classes - 1, _MAX_STARTS).astype(np.int64))
    none = bernstein_basis(np.zeros(1), k)
    basis = []
    target = []
    for number in numbers:
        y = (1 - x) / number
        others = number * bernstein_basis(y, k) + (n_classes - 1 - number) * none
        basis.append(_joined(bernstein_basis(x, k), others, n_rows))
        target.append(g(x) + number * g(y))
    return np.concatenate(basis), np.concatenate(target)


def nearest_sum(x: Array, target: Array, k: int, n_classes: int, *, slope: float) -> Array:
    """Return the beta of least bias n_classes * c0 + c1, with |Q(x) - g(x)| <= c0 + c1 x."""
    line = np.ones((len(x), 1)) if n_classes == 2 else np.stack([np.ones_like(x), x], axis=-1)
    steps, step_cost = _step_rows((1, k + 1), n_classes)
    costs = {"beta": np.zeros(k + 1), "steps": slope * step_cost}
    costs["band"] = np.ones(1) if n_classes == 2 else np.array([float(n_classes), 1])
    rows = [({"beta": s * bernstein_basis(x, k), "band": -line}, s * target) for s in (1, -1)]
    return _minimise(costs, rows + steps, {})["beta"]


Rows = list[tuple[dict[str, Array], Array]]


def _step_rows(shape: tuple[int, ...], n_classes: int) -> tuple[Rows, Array]:
    """Return rows that hold the rises of beta between two numbers, and their Lipschitz cost."""
    n_rows, n_counts = shape
    k = n_counts - 1
    rise = np.kron(np.eye(n_rows), np.diff(np.eye(n_counts), axis=0))
    zero = np.zeros(len(rise))
    sides = np.array([[1.0], [1.0]] if n_classes == 2 else [[1.0, 0.0], [0.0, -1.0]])
    rows = [
        ({"beta": s * rise, "steps": -np.tile(side, (len(rise), 1))}, zero)
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
