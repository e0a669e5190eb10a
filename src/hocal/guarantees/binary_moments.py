"""What moments say about a binary mixture: tail probabilities and intervals that always hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.errors import InputError
from hocal._base.interval import Interval
from hocal._base.typing import Array
from hocal._base.validation import (
    check_array,
    check_choice,
    check_fraction,
    check_integer,
    check_number,
)
from hocal.guarantees.bernstein import LARGEST_EPSILON
from hocal.guarantees.bernstein_programs import least_majorant
from hocal.guarantees.bernstein_proofs import (
    bernstein_basis,
    bernstein_excess,
    chebyshev_grid,
)
from hocal.guarantees.bounds import METHODS, Bound, Method
from hocal.uncertainty.moments import central_moments, snapshot_weights

__all__ = ["moment_interval", "tail_bound"]

# Points at which a polynomial must be at least the indicator of the tail, and at which this is then
# proven.
N_CONSTRAINTS = 2_000
N_PROOF = 20_000
SLIGHT_SPREAD = 1e-9  # penalty that chooses among equally good polynomials
IMPOSSIBLE = -1e-6  # below this a bound on a probability is more than rounding of the program
ROUNDING = 1e-12  # relative, of a radius: the tail is closed
NARROW_ENOUGH = 1e-4  # of the half-width of an interval


def tail_bound(moments: ArrayLike, centre: float, radius: float, *, epsilon: float = 0.0) -> Bound:
    """Bound P(|p - centre| >= radius) over all binary mixtures with the given moments.

    A linear program (erratum 16), min w @ beta + epsilon * lipschitz(beta) over polynomials
    sum_i beta_i Bin(i; k, x) that are at least the indicator of the tail on [0, 1]; w is the
    snapshot distribution that the moments determine.

    Parameters
    ----------
    moments : array-like of shape (k,)
        Moments m_1, ..., m_k of the second class's probability.
    centre : float
        Middle of the interval.
    radius : float
        Its half-width.
    epsilon : float, default=0.0
        kth-order calibration error of the snapshot distribution.

    Returns
    -------
    Bound
        Vacuous from 1 on.

    Examples
    --------
    >>> from hocal.guarantees.binary_moments import tail_bound
    >>> round(tail_bound([0.5, 0.3], 0.5, 0.4).value, 3)  # Chebyshev: .05 / .16
    0.313
    """
    weights = snapshot_weights(moments)
    epsilon = check_number(epsilon, "epsilon", minimum=0, maximum=LARGEST_EPSILON)
    radius = check_number(radius, "radius", minimum=0)
    centre = check_number(centre, "centre")
    ends = [end for end in (centre - radius, centre + radius) if 0 < end < 1]
    coarse = np.union1d(chebyshev_grid(N_CONSTRAINTS), ends)
    floor = _tail(coarse, centre, radius)
    basis = bernstein_basis(coarse, len(weights) - 1)
    beta = least_majorant(basis, floor, weights[None], 2, spread=SLIGHT_SPREAD, slope=epsilon)[0]
    # The tail is closed and its ends are grid points, so the chords of its indicator lie above it.
    fine = np.union1d(chebyshev_grid(N_PROOF), ends)
    excess = bernstein_excess(beta, fine, _tail(fine, centre, radius))
    beta = beta + max(float(excess.max()), 0.0)
    lipschitz = (len(weights) - 1) / 2 * float(np.abs(np.diff(beta)).max())
    value = float(weights @ beta) + epsilon * lipschitz
    if value < IMPOSSIBLE:
        rule = f"must belong to a mixture within epsilon={epsilon:g}"
        raise InputError("moments", rule, value=moments)
    return Bound(max(value, 0.0), value >= 1, "linear program")


def _tail(x: Array, centre: float, radius: float) -> Array:
    return (np.abs(x - centre) >= radius * (1 - ROUNDING)).astype(np.float64)


def moment_interval(
    moments: ArrayLike, alpha: float, *, epsilon: float = 0.0, method: Method = "tightest"
) -> Interval:
    """Return m_1 -+ half-width, which holds the true p with probability at least 1 - alpha.

    paper: half-width (max(0, c_k + k epsilon (1 + m_1)^k / 2) / alpha)^(1/k) by Markov, with k
    lowered to even (erratum 6). tightest: the smallest half-width that a linear program over all
    mixtures proves (erratum 16).

    Parameters
    ----------
    moments : array-like of shape (k,)
        Moments m_1, ..., m_k of the second class's probability, k >= 2.
    alpha : float
        Allowed chance of missing p.
    epsilon : float, default=0.0
        kth-order calibration error behind the moments.
    method : {"tightest", "paper"}
        The inequality.

    Returns
    -------
    Interval
        The mean with limits inside [0, 1].

    Examples
    --------
    >>> from hocal.guarantees.binary_moments import moment_interval
    >>> round(moment_interval([0.5, 0.26], 0.25).lower, 3)
    0.3
    """
    known = check_array(moments, "moments", ndim=1)
    epsilon = check_number(epsilon, "epsilon", minimum=0)
    order = check_integer(len(known), "number of moments", minimum=2) // 2 * 2
    alpha = check_fraction(alpha, "alpha")
    mean = float(known[0])
    error = order * epsilon * (1 + mean) ** order / 2
    central = float(central_moments(known).values[order - 1])
    width = (max(0.0, central + error) / alpha) ** (1 / order)
    if check_choice(method, "method", METHODS) == "tightest":
        width = _narrow(known, alpha, epsilon, width)
    return Interval(mean, mean - width, mean + width).clip(0.0, 1.0)


def _narrow(moments: Array, alpha: float, epsilon: float, width: float) -> float:
    """Return the smallest half-width whose tail is proven to be at most alpha, at most Markov's."""
    low = 0.0
    high = min(width, 1.0)
    while high - low > NARROW_ENOUGH:
        middle = (low + high) / 2
        if tail_bound(moments, float(moments[0]), middle, epsilon=epsilon).value <= alpha:
            high = middle
        else:
            low = middle
    return high
