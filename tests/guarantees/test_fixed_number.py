"""Limits of means for a number of draws that was fixed in advance, and the orders they rest on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from hocal._base.typing import Array
from hocal.guarantees.betting import Draws, upper_limit
from hocal.guarantees.fixed_number import (
    binomial_limits,
    expected_error,
    lower_limits,
    upper_limits,
)
from hocal.guarantees.orders import ORDERS, Order


def coin(zeros: int, ones: int, *, binary: bool = False) -> Draws:
    draws = Draws.of(np.array([0.0, 1.0]), np.array([zeros, ones]), 0, 1, binary=binary)
    return draws.columns()[0]


def widths(many: list[Draws]) -> Array:
    return upper_limits(many, 0.025) - lower_limits(many, 0.025)


def test_a_statistic_of_two_values_has_binomial_limits() -> None:
    exact = stats.binomtest(100, 400).proportion_ci(0.95, "exact")

    assert lower_limits([coin(300, 100, binary=True)], 0.025)[0] == pytest.approx(exact.low)
    assert upper_limits([coin(300, 100, binary=True)], 0.025)[0] == pytest.approx(exact.high)


def test_limits_of_a_fair_coin_are_within_a_fifth_of_the_binomial_ones() -> None:
    """Of 1,000 draws, half ones: .102 wide with fixed stakes, .086 by Hoeffding, .063 exactly."""
    low, high = binomial_limits(500, 1000, 0.025)

    assert widths([coin(500, 500)])[0] < 1.2 * (high - low)


@pytest.mark.parametrize("n_draws", [20, 60, 200, 1000, 5000])
def test_no_limit_of_a_coin_is_farther_than_that_of_hoeffding(n_draws: int) -> None:
    ones = np.unique(np.rint(np.array([0, 0.01, 0.05, 0.1, 0.3, 0.5]) * n_draws).astype(int))
    error = math.sqrt(math.log(40) / (2 * n_draws))
    many = [coin(n_draws - x, x) for x in ones.tolist()]

    assert (upper_limits(many, 0.025) <= ones / n_draws + error).all()
    assert (lower_limits(many, 0.025) >= ones / n_draws - error).all()


@pytest.mark.parametrize("n_draws", [20, 200, 2000])
def test_no_limit_of_a_constant_is_farther_than_that_of_hoeffding(n_draws: int) -> None:
    values = np.array([0.05, 0.3, 0.5, 0.9])
    error = math.sqrt(math.log(40) / (2 * n_draws))
    many = [Draws.of(np.array([x]), np.array([n_draws]), 0, 1) for x in values]

    assert (upper_limits(many, 0.025) <= values + error).all()
    assert (lower_limits(many, 0.025) >= values - error).all()


def test_few_draws_have_the_limits_of_fixed_stakes() -> None:
    draws = coin(15, 4)

    assert upper_limits([draws], 0.05)[0] == pytest.approx(upper_limit(draws, 0.05)[0], abs=1e-6)


def test_a_limit_does_not_depend_on_the_rows_or_on_its_neighbours() -> None:
    generator = np.random.default_rng(0)
    values = generator.random(200)
    first = Draws.of(values, np.ones(200), 0, 1)
    second = Draws.of(generator.permutation(values), np.ones(200), 0, 1)

    alone = upper_limits([first], 0.05)[0]
    together = upper_limits([coin(30, 10), second, coin(100, 90)], 0.05)[1]

    assert alone == pytest.approx(together, rel=1e-12)


def test_limits_of_a_mirrored_statistic_lie_on_the_other_side() -> None:
    draws = coin(300, 100)

    assert lower_limits([draws], 0.025)[0] == -upper_limits([draws.negative()], 0.025)[0]


def test_a_constant_statistic_is_known() -> None:
    assert upper_limits([Draws.of(np.array([2.0]), np.array([50.0]), 2, 2)], 0.05).tolist() == [2]


def test_many_draws_of_few_values_are_narrow() -> None:
    """A normal law gives 1.96 * .5 / 200 = .0049."""
    limit = upper_limits([coin(20_000, 20_000)], 0.025)[0]

    assert 0.5045 < limit < 0.5065


def test_a_forecast_of_the_error_is_near_that_of_real_limits() -> None:
    generator = np.random.default_rng(1)
    many = [Draws.of(generator.beta(0.5, 4, 400), np.ones(400), 0, 1) for _ in range(20)]
    found = upper_limits(many, 0.025) - [each.mean()[0] for each in many]

    deviation = float(stats.beta(0.5, 4).std())
    assert np.mean(found) == pytest.approx(expected_error(deviation, 1, 400, 0.025), rel=0.25)


def test_a_likely_histogram_is_looked_at_in_several_orders() -> None:
    assert Order.of(np.array([[0], [1]]), np.array([990.0, 10.0])).n_orders == ORDERS


def test_an_unlikely_histogram_needs_one_order() -> None:
    assert Order.of(np.arange(50)[:, None], np.full(50, 3.0)).n_orders == 1


def test_the_order_is_that_of_the_histogram_and_not_of_its_rows() -> None:
    rows = np.array([[3, 0], [2, 1], [1, 2]])
    repeats = np.array([50.0, 7.0, 3.0])

    first = Order.of(rows, repeats)

    assert Order.of(rows[::-1], repeats[::-1]) == first
    assert Order.of(rows, repeats[::-1]).seed != first.seed


def test_seeds_are_the_same_on_every_machine() -> None:
    assert Order.of(np.array([[0], [1]]), np.array([90.0, 10.0])).seed == 6848415035588590551
