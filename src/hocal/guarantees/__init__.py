"""Every inequality: what labels prove, with which confidence."""

from hocal._base.interval import Interval
from hocal.guarantees.bernstein import BernsteinEstimator, bernstein_estimator
from hocal.guarantees.binary_moments import moment_interval, tail_bound
from hocal.guarantees.bounds import (
    Bound,
    aleatoric_bound,
    binomial_deviation,
    brier_sample_size,
    epsilon_bound,
    higher_order_interval,
    moment_error,
    plugin_interval,
    polynomial_degree,
    prediction_set_coverage,
    projection_slack,
    sample_size,
)
from hocal.guarantees.certificates import Certificate, certify
from hocal.guarantees.certified_sets import certified_set
from hocal.guarantees.means import (
    betting_interval,
    empirical_bernstein_interval,
    hoeffding_interval,
)
from hocal.guarantees.polynomials import PolynomialEstimator, polynomial_estimator

__all__ = [
    "BernsteinEstimator",
    "Bound",
    "Certificate",
    "Interval",
    "PolynomialEstimator",
    "aleatoric_bound",
    "bernstein_estimator",
    "betting_interval",
    "binomial_deviation",
    "brier_sample_size",
    "certified_set",
    "certify",
    "empirical_bernstein_interval",
    "epsilon_bound",
    "higher_order_interval",
    "hoeffding_interval",
    "moment_error",
    "moment_interval",
    "plugin_interval",
    "polynomial_degree",
    "polynomial_estimator",
    "prediction_set_coverage",
    "projection_slack",
    "sample_size",
    "tail_bound",
]
