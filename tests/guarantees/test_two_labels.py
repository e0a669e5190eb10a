"""Two labels per item: exact limits of disagreement, and the sharp range of Shannon entropy."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

from hocal.guarantees.cell_uncertainty import Sample, Target, advise, cell_intervals
from hocal.guarantees.entropy_ranges import shannon_range
from hocal.guarantees.fixed_number import binomial_limits
from hocal.uncertainty.entropy import Brier, Shannon


@pytest.mark.parametrize("n_classes", [2, 3, 5, 10])
def test_no_mixture_leaves_the_range(n_classes: int) -> None:
    generator = np.random.default_rng(n_classes)
    for concentration in (0.05, 0.3, 1.0, 10.0):
        p = generator.dirichlet(np.full(n_classes, concentration), size=300)
        brier = float(Brier().value(p).mean())
        low, high = shannon_range(brier, brier, n_classes)

        assert low <= Shannon().value(p).mean() <= high


@pytest.mark.parametrize("brier", [0.1, 0.4, 0.6])
def test_some_mixture_reaches_each_end(brier: float) -> None:
    """A linear program over mixtures of points of a grid of the simplex, slow and obvious."""
    steps = np.arange(61) / 60
    grid = np.array([(a, b, 1 - a - b) for a in steps for b in steps if a + b <= 1 + 1e-12])
    grid = np.clip(grid, 0, 1)
    entropy = Shannon().value(grid)
    equal = np.stack([Brier().value(grid), np.ones(len(grid))])
    ends = [sign * linprog(sign * entropy, A_eq=equal, b_eq=[brier, 1]).fun for sign in (1.0, -1.0)]

    assert shannon_range(brier, brier, 3) == pytest.approx(ends, abs=4e-3)  # the grid is coarse


def test_the_range_of_two_classes_is_a_point_or_what_lies_above_a_chord() -> None:
    low, high = shannon_range(0.25, 0.25, 2)
    share = (1 + math.sqrt(0.5)) / 2  # 2 x (1 - x) = 1/4

    assert low == pytest.approx(math.log(2) / 2)
    assert high == pytest.approx(stats.entropy([share, 1 - share]), abs=1e-3)


def test_binomial_limits_are_those_of_clopper_and_pearson() -> None:
    exact = stats.binomtest(7, 50).proportion_ci(0.95, method="exact")

    assert binomial_limits(7, 50, 0.025) == pytest.approx((exact.low, exact.high))
    assert binomial_limits(0, 50, 0.025)[0] == 0
    assert binomial_limits(50, 50, 0.025)[1] == 1


def test_a_cell_of_pairs_has_exact_limits_and_needs_no_advice() -> None:
    sample = Sample(np.array([[2, 0, 0], [1, 1, 0], [0, 1, 0]]), np.array([90.0, 10.0, 5.0]))
    advice = advise(None, (2,), n_classes=3, n_items=100, same_order=True)
    found = cell_intervals(sample, advice, 0.05)

    brier = found[Target("aleatoric", "brier")]
    assert tuple(brier) == pytest.approx(binomial_limits(10, 100, 0.025))
    assert tuple(found[Target("aleatoric", "shannon")]) == shannon_range(*brier, 3)
