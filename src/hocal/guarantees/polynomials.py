"""Estimate E[G] of a binary mixture by a polynomial in its moments, the paper's way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from hocal._base.errors import InputError
from hocal._base.typing import Array
from hocal._base.validation import check_array, check_choice, check_integer, check_number
from hocal.guarantees.bernstein import bernstein_estimator
from hocal.uncertainty.entropy import Entropy

__all__ = ["PolynomialEstimator", "polynomial_estimator"]

MAX_DEGREE = 20  # coefficients grow like exp(degree), and rounding with them
ROUNDING = (
    1e-14  # of the change of basis, times the largest coefficient; below 1e-5 up to MAX_DEGREE
)


@dataclass(frozen=True, eq=False)
class PolynomialEstimator:
    """A polynomial near a binary entropy, to be averaged over moments.

    Attributes
    ----------
    coefficients : ndarray of shape (degree + 1,)
        Coefficients beta_0, beta_1, ... of the powers of p.
    alpha : float
        Largest distance to G on [0, 1], proven between grid points too.
    coefficient_bound : float
        B, the largest |beta_i| with i >= 1 (the moment of order 0 is known).
    lipschitz : float
        Lipschitz constant, in l1 distance, of the same estimate seen as a function of the snapshot.
    """

    coefficients: Array
    alpha: float
    coefficient_bound: float
    lipschitz: float

    def estimate(self, moments: ArrayLike) -> float:
        """Return sum_i beta_i m_i for moments m_1, ..., m_degree or more."""
        degree = len(self.coefficients) - 1
        known = check_array(moments, "moments", ndim=1)
        if len(known) < degree:
            rule = f"must reach order {degree}, the degree of the polynomial"
            raise InputError("moments", rule, value=len(known))
        return float(self.coefficients[0] + self.coefficients[1:] @ known[:degree])

    def error(self, epsilon: float, *, method: Literal["tightest", "paper"] = "tightest") -> float:
        """Return the largest error under kth-order calibration error `epsilon`.

        The paper's is alpha + d^2 epsilon B / 2.
        """
        epsilon = check_number(epsilon, "epsilon", minimum=0)
        if check_choice(method, "method", ("tightest", "paper")) == "paper":
            degree = len(self.coefficients) - 1
            return self.alpha + degree**2 * epsilon * self.coefficient_bound / 2
        return self.alpha + self.lipschitz * epsilon


def polynomial_estimator(entropy: str | Entropy, degree: int) -> PolynomialEstimator:
    """Return the polynomial nearest to a binary entropy, min max_p |sum_i beta_i p^i - G(p)|.

    Parameters
    ----------
    entropy : str or Entropy
        The entropy G of two classes.
    degree : int
        At most the number of labels, and at most 20: its coefficients grow like exp(degree).

    Returns
    -------
    PolynomialEstimator
        Coefficients with their approximation error.

    Examples
    --------
    >>> from hocal.guarantees.polynomials import polynomial_estimator
    >>> polynomial_estimator("brier", 2).coefficients.tolist()
    [0.0, 2.0, -2.0]
    """
    remedy = "Use bernstein_estimator, which is stable."
    degree = check_integer(degree, "degree", minimum=1, maximum=MAX_DEGREE, why=remedy)
    nearest = bernstein_estimator(entropy, degree, 2)
    powers = np.arange(degree + 1)[:, None]
    alternating = (-1.0) ** (powers - powers.T) * special.comb(powers, powers.T)
    signs = np.tril(alternating)  # from Bernstein polynomials to powers
    coefficients = special.comb(degree, powers[:, 0]) * (signs @ nearest.values)
    bound = float(np.abs(coefficients[1:]).max())
    alpha = nearest.bias + ROUNDING * bound
    return PolynomialEstimator(coefficients, alpha, bound, nearest.lipschitz)
