"""Inequalities about distances between mixtures: slack of snapshots, error, sample sizes.

Where the paper has a form and a tighter one is known, ``method="paper"`` gives the paper's (with
its errata corrected) and the default the tightest valid one. Distances are W1 in l1 units, at most
2.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from hocal._base.errors import InputError
from hocal._base.interval import Interval
from hocal._base.typing import Array
from hocal._base.validation import (
    check_array,
    check_choice,
    check_fraction,
    check_integer,
    check_n_classes,
    check_number,
    check_simplex,
    check_snapshot_size,
    check_weights,
)
from hocal.guarantees.dyadic import dyadic_expectation
from hocal.uncertainty.own_entropy import least_concave_majorant
from hocal.uncertainty.snapshots import n_snapshots

__all__ = [
    "LEAST_EPSILON",
    "METHODS",
    "Bound",
    "Method",
    "binomial_deviation",
    "check_goal",
    "epsilon_bound",
    "higher_order_interval",
    "projection_slack",
    "sample_size",
]

Method = Literal["tightest", "paper"]
METHODS: tuple[Method, ...] = ("tightest", "paper")

LARGEST_DISTANCE = 2.0  # l1 distance between two label distributions without a common label
GRID_STEPS = 20_000  # of [0, 1], for the largest mean deviation
LEAST_EPSILON = 1e-100  # error that is asked for: squares of it and its inverse are numbers


class Bound(NamedTuple):
    """An upper bound on an error.

    Attributes
    ----------
    value : float
        The bound; not cut at the trivial value, so that it shows how far from useful it is.
    vacuous : bool
        Whether it says no more than what is known without data.
    method : str
        The inequality used.
    """

    value: float
    vacuous: bool
    method: str


def binomial_deviation(p: ArrayLike, k: int) -> Array:
    """Return E|X/k - p| for X ~ Bin(k, p).

    De Moivre: 2 v C(k, v) p^v (1-p)^(k-v+1) / k with v = floor(kp) + 1.

    Parameters
    ----------
    p : array-like
        Probabilities.
    k : int
        Number of labels.

    Returns
    -------
    ndarray
        Exact mean absolute deviations, of the shape of p.

    Examples
    --------
    >>> from hocal.guarantees.bounds import binomial_deviation
    >>> float(binomial_deviation(0.5, 2))
    0.25
    """
    k = check_snapshot_size(k)
    chance = check_array(p, "p")
    if not (chance.min() >= 0 and chance.max() <= 1):
        found = f"values from {chance.min()} to {chance.max()}"
        raise InputError("p", "must lie in [0, 1]", value=found)
    above = np.floor(k * chance) + 1
    return np.asarray(2 * above * stats.binom.pmf(above, k, chance) * (1 - chance) / k)


def projection_slack(
    k: int,
    n_classes: int,
    *,
    probabilities: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    method: Literal["tightest", "variance", "paper"] = "tightest",
) -> Bound:
    """Bound W1(pi, proj_k pi), the distance between a mixture and its k-snapshots.

    paper: l / (2 sqrt k). variance: E sum_j sqrt(p_j (1 - p_j) / k), or sqrt((l - 1) / k) for an
    unknown mixture. tightest: the exact E sum_j |s_j / k - p_j| of the coupling, or its largest
    value over all p.

    Parameters
    ----------
    k : int
        Number of labels.
    n_classes : int
        Number of label classes.
    probabilities : array-like of shape (n_atoms, n_classes), optional
        Atoms of the mixture, if known; the paper's form ignores them.
    weights : array-like of shape (n_atoms,), optional
        Their weights.
    method : {"tightest", "variance", "paper"}
        The inequality.

    Returns
    -------
    Bound
        Vacuous from 2 on.

    Examples
    --------
    >>> from hocal.guarantees.bounds import projection_slack
    >>> methods = ("tightest", "variance", "paper")
    >>> [round(projection_slack(10, 10, method=method).value, 2) for method in methods]
    [0.78, 0.95, 1.58]
    """
    k = check_snapshot_size(k)
    n_classes = check_n_classes(n_classes)
    check_choice(method, "method", ("tightest", "variance", "paper"))
    if method == "paper":
        value = n_classes / (2 * math.sqrt(k))
    elif probabilities is not None:
        atoms = check_simplex(probabilities, ndim=2, n_classes=n_classes)
        deviations = np.sqrt(atoms * (1 - atoms) / k)
        if method == "tightest":
            deviations = binomial_deviation(atoms, k)
        mass = None if weights is None else check_weights(weights)
        value = float(np.average(deviations.sum(axis=1), weights=mass))
    else:
        value = math.sqrt((n_classes - 1) / k)
        if method == "tightest":
            value = min(value, _largest_deviation(k, n_classes))
    return Bound(value, value >= LARGEST_DISTANCE, method)


def _largest_deviation(k: int, n_classes: int) -> float:
    """Bound sum_j E|s_j / k - p_j| over the simplex: concave majorant at 1 / n_classes."""
    p = np.linspace(0, 1, GRID_STEPS + 1)
    majorant = least_concave_majorant(p, binomial_deviation(p, k))
    # E|X/k - p| changes by at most 2 |dp| (couple the labels): half a grid step hides at most that.
    hidden = 1 / GRID_STEPS
    return n_classes * (float(np.interp(1 / n_classes, p, majorant)) + hidden)


def higher_order_interval(
    epsilon: float,
    k: int,
    n_classes: int,
    *,
    predictor: Literal["snapshot", "mixture"] = "snapshot",
    method: Method = "tightest",
) -> Interval:
    """Bracket the higher-order error W1(prediction, truth) by the kth-order error epsilon.

    A snapshot predictor is compared with the projected truth: epsilon -+ slack, a corollary of the
    paper. For a mixture both sides were projected: [epsilon, epsilon + 2 slack].

    Parameters
    ----------
    epsilon : float
        kth-order calibration error, a W1 in l1 units.
    k : int
        Number of labels.
    n_classes : int
        Number of label classes.
    predictor : {"snapshot", "mixture"}
        What the prediction is.
    method : {"tightest", "paper"}
        Which slack.

    Returns
    -------
    Interval
        epsilon with limits inside [0, 2]; it says nothing when its upper end, the guarantee, is 2.

    Examples
    --------
    >>> from hocal.guarantees.bounds import higher_order_interval
    >>> higher_order_interval(0.1, 100, 2, method="paper")
    Interval(estimate=0.1, lower=0.0, upper=0.2)
    """
    epsilon = check_number(epsilon, "epsilon", minimum=0, maximum=2)
    check_choice(method, "method", METHODS)
    slack = projection_slack(k, n_classes, method=method).value
    if check_choice(predictor, "predictor", ("snapshot", "mixture")) == "mixture":
        found = Interval(epsilon, epsilon, epsilon + 2 * slack)
    else:
        found = Interval(epsilon, epsilon - slack, epsilon + slack)
    return found.clip(0.0, LARGEST_DISTANCE)


def epsilon_bound(
    n_items: int, delta: float, k: int, n_classes: int, *, method: Method = "tightest"
) -> Bound:
    """Bound W1(true snapshots, empirical snapshots) with probability at least 1 - delta.

    paper: sqrt(2 (m ln 2 + ln 1/delta) / N), m = |Y^(k)|. Two classes: sqrt(2 ln(2/delta) / N)
    (Dvoretzky-Kiefer-Wolfowitz). Any: (sqrt(m - 1) + sqrt(2 ln 1/delta)) / sqrt N (McDiarmid), or
    its first part scale by scale (`hocal.guarantees.dyadic`), which does not grow with k.

    Parameters
    ----------
    n_items : int
        Number N of calibration items in the cell.
    delta : float
        Allowed chance of failure.
    k : int
        Number of labels per item.
    n_classes : int
        Number of label classes.
    method : {"tightest", "paper"}
        The smallest of all, or the paper's.

    Returns
    -------
    Bound
        Vacuous from 2 on.

    Examples
    --------
    >>> from hocal.guarantees.bounds import epsilon_bound
    >>> round(epsilon_bound(738, 0.05, 10, 2).value, 3)
    0.1

    Three classes and 200 labels of each item: the paper's bound says nothing.

    >>> epsilon_bound(1000, 0.05, 200, 3, method="paper").vacuous
    True
    >>> bound = epsilon_bound(1000, 0.05, 200, 3)
    >>> bound.method, round(bound.value, 2)
    ('dyadic', 0.63)
    """
    n_items = check_integer(n_items, "n_items", minimum=1)
    name, scale = _deviation_scale(delta, k, n_classes, method)
    value = scale / math.sqrt(n_items)
    if method == "tightest" and n_classes > 2:
        by_scale = _dyadic_bound(n_items, delta, k, n_classes)
        if by_scale < value:
            name, value = "dyadic", by_scale
    return Bound(value, value >= LARGEST_DISTANCE, name)


def _dyadic_bound(n_items: int, delta: float, k: int, n_classes: int) -> float:
    """Bound W1 scale by scale; one item changes it by 2/n at most (McDiarmid)."""
    expected = dyadic_expectation(n_items, k, n_classes)
    return expected + math.sqrt(2 * math.log(1 / delta) / n_items)


def sample_size(
    epsilon: float, delta: float, k: int, n_classes: int, *, method: Method = "tightest"
) -> int:
    """Return the items a cell needs for W1 <= epsilon with probability 1 - delta.

    The inverse of `epsilon_bound`.

    Parameters
    ----------
    epsilon : float
        Wanted kth-order calibration error, below 2, which it never exceeds.
    delta : float
        Allowed chance of failure.
    k : int
        Number of labels per item.
    n_classes : int
        Number of label classes.
    method : {"tightest", "paper"}
        The smallest of all, or the paper's N = 2 (|Y^(k)| ln 2 + ln 1/delta) / epsilon^2.

    Returns
    -------
    int
        Number of items.

    Examples
    --------
    >>> from hocal.guarantees.bounds import sample_size
    >>> sample_size(0.1, 0.05, 10, 2), sample_size(0.1, 0.05, 10, 2, method="paper")
    (738, 2125)
    """
    epsilon = check_goal(epsilon)
    if epsilon >= LARGEST_DISTANCE:
        rule = f"must be below {LARGEST_DISTANCE:g}, the largest distance there is"
        raise InputError("epsilon", rule, value=epsilon, remedy="It holds without any label.")
    _, scale = _deviation_scale(delta, k, n_classes, method)
    enough = math.ceil((scale / epsilon) ** 2)
    if method == "paper" or n_classes == 2:
        return enough
    too_few = 0  # the bound falls with the number of items, so halving finds the least
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if epsilon_bound(middle, delta, k, n_classes).value <= epsilon:
            enough = middle
        else:
            too_few = middle
    return enough


def check_goal(epsilon: float) -> float:
    """Return an error that is asked for."""
    goal = check_number(epsilon, "epsilon", minimum=0, maximum=1 / LEAST_EPSILON, strict=True)
    if goal < LEAST_EPSILON:
        raise InputError("epsilon", f"must be at least {LEAST_EPSILON:g}", value=goal)
    return goal


def _deviation_scale(delta: float, k: int, n_classes: int, method: Method) -> tuple[str, float]:
    """Return the name and sqrt(N) * epsilon of the chosen bound."""
    delta = check_fraction(delta, "delta")
    m = n_snapshots(check_snapshot_size(k), n_classes)
    options = {"paper": math.sqrt(2 * (m * math.log(2) + math.log(1 / delta)))}
    if check_choice(method, "method", METHODS) == "tightest":
        options["McDiarmid"] = math.sqrt(m - 1) + math.sqrt(2 * math.log(1 / delta))
        if n_classes == 2:
            options["Dvoretzky-Kiefer-Wolfowitz"] = math.sqrt(2 * math.log(2 / delta))
    return min(options.items(), key=lambda option: option[1])
