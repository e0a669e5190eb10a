"""Inequalities of higher-order calibration: slack, sample sizes, moduli, coverage.

Those about distances between mixtures come from `hocal.guarantees.distance_bounds`; those about
uncertainty, moments and prediction sets are here. ``method="paper"`` gives the paper's form (with
its errata corrected) and the default the tightest valid one.
"""

from __future__ import annotations

import math

from hocal._base.errors import InputError
from hocal._base.interval import Interval
from hocal._base.validation import (
    check_choice,
    check_fraction,
    check_number,
    check_snapshot_size,
)
from hocal.guarantees.bernstein import bernstein_estimator
from hocal.guarantees.distance_bounds import (
    LEAST_EPSILON,
    METHODS,
    Bound,
    Method,
    binomial_deviation,
    check_goal,
    epsilon_bound,
    higher_order_interval,
    projection_slack,
    sample_size,
)
from hocal.uncertainty.entropy import Brier, Entropy, get_entropy

__all__ = [
    "METHODS",
    "Bound",
    "Method",
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

LARGEST_RATIO = 1e100  # of a constant to its error: degrees beyond are of no use to anybody
ROUNDING = 1e-12  # relative, of an entropy next to its largest value


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
    epsilon = check_goal(epsilon)
    scale = check_number(scale, "scale", minimum=LEAST_EPSILON, maximum=1 / LEAST_EPSILON)
    k = check_snapshot_size(k, minimum=2)
    if check_choice(method, "method", METHODS) == "paper":
        return sample_size(epsilon / (4 * scale), delta, 2, n_classes, method="paper")
    largest = bernstein_estimator(Brier(), k, n_classes).maximum
    tail = math.log(2 / check_fraction(delta, "delta"))
    return math.ceil(largest**2 * tail / (2 * check_goal(epsilon / scale) ** 2))


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
