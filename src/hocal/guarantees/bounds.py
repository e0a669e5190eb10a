"""Inequalities of higher-order calibration: slack, sample sizes, moduli, coverage.

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
from hocal.guarantees.bernstein import bernstein_estimator
from hocal.guarantees.dyadic import dyadic_expectation
from hocal.uncertainty.entropy import Brier, Entropy, get_entropy
from hocal.uncertainty.own_entropy import least_concave_majorant
from hocal.uncertainty.snapshots import n_snapshots

__all__ = [
    "Bound",
    "aleatoric_bound",
    "binomial_deviation",
    "brier_sample_size",
    "epsilon_bound",
    "higher_order_interval",
    "moment_error",
    "plugin_interval",
    "polynomial_degree",
    "prediction_set_coverage",
    "projection_slack",
    "sample_size",
]

Method = Literal["tightest", "paper"]
METHODS: tuple[Method, ...] = ("tightest", "paper")

LARGEST_DISTANCE = 2.0  # l1 distance between two label distributions without a common label
GRID_STEPS = 20_000  # of [0, 1], for the largest mean deviation
LEAST_EPSILON = 1e-100  # error that is asked for: its square must not vanish
LARGEST_RATIO = 1e100  # of a constant to its error: degrees beyond are of no use to anybody
ROUNDING = 1e-12  # relative, of an entropy next to its largest value


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
        Wanted kth-order calibration error.
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
    epsilon = _check_goal(epsilon)
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


def _check_goal(epsilon: float) -> float:
    """Return an error that is asked for."""
    goal = check_number(epsilon, "epsilon", minimum=0, strict=True)
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


def aleatoric_bound(
    epsilon: float,
    k: int,
    n_classes: int,
    *,
    entropy: str | Entropy = "shannon",
    method: Method = "tightest",
) -> Bound:
    """Bound |AU - AU*| of a snapshot predictor by omega_G(epsilon + slack).

    The paper's theorem on approximating aleatoric uncertainty by kth-order calibration.

    Parameters
    ----------
    epsilon : float
        kth-order calibration error, a W1 in l1 units.
    k : int
        Number of labels.
    n_classes : int
        Number of label classes.
    entropy : str or Entropy
        The entropy G; its modulus is exact in both methods (the paper's is wrong, errata 3 and
        4).
    method : {"tightest", "paper"}
        Which slack.

    Returns
    -------
    Bound
        Vacuous when it reaches the largest value of G.

    Examples
    --------
    >>> from hocal.guarantees.bounds import aleatoric_bound
    >>> aleatoric_bound(0.0, 10, 10).vacuous, aleatoric_bound(0.0, 1000, 2, entropy="brier").vacuous
    (False, False)
    """
    kind = get_entropy(entropy)
    distance = higher_order_interval(epsilon, k, n_classes, method=method).upper
    value = float(kind.modulus(distance, n_classes))
    return Bound(value, value >= kind.maximum(n_classes) * (1 - ROUNDING), method)


def polynomial_degree(epsilon: float, *, constant: float = 1.0) -> int:
    """Return a degree d with constant * omega(1/d) <= epsilon / 2 for binary entropy in bits.

    d >= 4 (2 C / epsilon)^(ln 4), from omega(x) <= (4x)^(1/ln 4); the paper's factor 1/4 is wrong
    (erratum 5).

    Parameters
    ----------
    epsilon : float
        Wanted error of the estimate, in bits.
    constant : float, default=1.0
        The constant C of Jackson's theorem.

    Returns
    -------
    int
        The degree, and the number of labels needed.
        `hocal.guarantees.bernstein.bernstein_estimator` needs far fewer.

    Examples
    --------
    >>> from hocal.guarantees.bounds import polynomial_degree
    >>> polynomial_degree(0.1)
    255
    """
    epsilon = check_number(epsilon, "epsilon", minimum=0, strict=True)
    ratio = 2 * check_number(constant, "constant", minimum=0, strict=True) / epsilon
    if ratio > LARGEST_RATIO:
        remedy = f"Ask for a constant of at most {LARGEST_RATIO:g} times epsilon."
        rule = "must be in proportion"
        raise InputError("epsilon and constant", rule, value=f"{epsilon:g}", remedy=remedy)
    return math.ceil(4 * math.pow(ratio, math.log(4)))


def moment_error(order: int, epsilon: float) -> Bound:
    """Bound the error of a moment, E prod_j p_j^a_j with |a| = order, by order * epsilon / 2.

    Parameters
    ----------
    order : int
        Order of the moment, at most k.
    epsilon : float
        kth-order calibration error, a W1 in l1 units.

    Returns
    -------
    Bound
        Vacuous from 1 on.

    Examples
    --------
    >>> from hocal.guarantees.bounds import moment_error
    >>> moment_error(2, 0.1).value
    0.1
    """
    order = check_snapshot_size(order, "order")
    epsilon = check_number(epsilon, "epsilon", minimum=0)
    # A moved label changes a pattern of `order` labels out of k with chance order / k, and W1 by
    # 2 / k.
    value = order * epsilon / 2
    return Bound(value, value >= 1, "Lipschitz")


def prediction_set_coverage(
    mass: float, epsilon: float, *, delta: float | None = None, mass_twice: float = 1.0
) -> Interval:
    """Bracket the chance that S_delta holds the true label distribution (the paper on sets).

    P(S) - epsilon/delta <= P*(S_delta) <= P(S_2delta) + epsilon/delta, distances in l1.

    Parameters
    ----------
    mass : float
        P(S) under the predicted mixture.
    epsilon : float
        Higher-order calibration error of the prediction.
    delta : float, optional
        How far S is expanded; sqrt(epsilon) by default, as in the paper.
    mass_twice : float, default=1.0
        P(S_2delta) under the predicted mixture.

    Returns
    -------
    Interval
        The predicted mass with limits; it says nothing when the lower one, the guaranteed coverage,
        is 0.

    Examples
    --------
    >>> from hocal.guarantees.bounds import prediction_set_coverage
    >>> round(prediction_set_coverage(0.9, 0.01).lower, 3)
    0.8
    """
    mass = check_number(mass, "mass", minimum=0, maximum=1)
    mass_twice = check_number(mass_twice, "mass_twice", minimum=mass, maximum=1)
    epsilon = check_number(epsilon, "epsilon", minimum=0, maximum=2)
    radius = math.sqrt(epsilon)
    if delta is not None:
        radius = check_number(delta, "delta", minimum=0, strict=True)
    missed = epsilon / radius if radius else 0.0
    return Interval(mass, mass - missed, mass_twice + missed).clip(0.0, 1.0)


def brier_sample_size(
    epsilon: float,
    delta: float,
    *,
    k: int = 2,
    n_classes: int = 2,
    scale: float = 1.0,
    method: Method = "tightest",
) -> int:
    """Return the items needed for Brier aleatoric uncertainty to epsilon, surely to 1 - delta.

    tightest: Hoeffding for the unbiased Z = scale k/(k-1) (1 - ||s/k||^2), N = max(Z)^2 ln(2/delta)
    / (2 epsilon^2). paper: through kth-order calibration at k = 2 to epsilon / (4 scale), with
    |Y^(2)| = 3 and not 4 snapshots for two classes (erratum 12).

    Parameters
    ----------
    epsilon : float
        Wanted error.
    delta : float
        Allowed chance of failure.
    k : int, default=2
        Number of labels per item; the paper's form uses two of them.
    n_classes : int, default=2
        Number of label classes.
    scale : float, default=1.0
        Factor of the entropy; 2 gives 4p(1-p) for two classes.
    method : {"tightest", "paper"}
        The inequality.

    Returns
    -------
    int
        Number of items.

    Examples
    --------
    >>> from hocal.guarantees.bounds import brier_sample_size
    >>> brier_sample_size(0.1, 0.05, scale=2), brier_sample_size(0.1, 0.05, scale=2, method="paper")
    (738, 64963)
    """
    epsilon = _check_goal(epsilon)
    scale = check_number(scale, "scale", minimum=LEAST_EPSILON, maximum=1 / LEAST_EPSILON)
    k = check_snapshot_size(k, minimum=2)
    if check_choice(method, "method", METHODS) == "paper":
        return sample_size(epsilon / (4 * scale), delta, 2, n_classes, method="paper")
    largest = bernstein_estimator(Brier(scale), k, n_classes).maximum
    tail = math.log(2 / check_fraction(delta, "delta"))
    return math.ceil(largest**2 * tail / (2 * epsilon**2))


def plugin_interval(
    plugin: float, k: int, n_classes: int, *, base: float | None = None
) -> Interval:
    """Bracket E[H(p)] by the mean entropy of k-snapshots: [plugin, plugin + log(1 + (l - 1) / k)].

    Parameters
    ----------
    plugin : float
        Mean Shannon entropy of the k-snapshots, in expectation: sampling error comes on top.
    k : int
        Number of labels.
    n_classes : int
        Number of label classes.
    base : float, optional
        Base of the logarithm, nats by default.

    Returns
    -------
    Interval
        The plug-in, which is its lower limit too, inside [0, log l].

    Examples
    --------
    >>> from hocal.guarantees.bounds import plugin_interval
    >>> round(plugin_interval(0.09, 5, 10).upper, 2)
    1.12
    """
    largest = get_entropy("shannon", base=base).maximum(n_classes)
    lower = check_number(plugin, "plugin", minimum=0, maximum=largest)
    k = check_snapshot_size(k)
    unit = math.log(base) if base else 1.0
    bias = math.log1p((n_classes - 1) / k) / unit
    return Interval(lower, lower, min(lower + bias, largest))
