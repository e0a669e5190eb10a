"""One-sided limits by fixed stakes."""

from __future__ import annotations

import numpy as np
import pytest

from hocal.guarantees.betting import Draws, lower_limit, upper_limit


def coin(zeros: float, ones: float) -> Draws:
    return Draws.of(np.array([0.0, 1.0]), np.array([zeros, ones]), 0, 1)


def test_limits_lie_on_both_sides_of_the_mean() -> None:
    draws = coin(300, 100)

    assert lower_limit(draws, 0.025)[0] < 0.25 < upper_limit(draws, 0.025)[0]


def test_a_lower_limit_is_an_upper_limit_of_the_mirror_image() -> None:
    assert lower_limit(coin(30, 10), 0.05)[0] == pytest.approx(
        1 - upper_limit(coin(10, 30), 0.05)[0]
    )


def test_one_draw_refutes_only_means_that_make_it_improbable() -> None:
    """A draw of 0 has a chance of at most 5% only if the mean is above .95."""
    assert 0.95 <= upper_limit(coin(1, 0), 0.05)[0] < 1


def test_the_limit_is_where_the_average_capital_reaches_its_goal() -> None:
    """Six stakes from half to twice sqrt(2 ln(1/delta) / n) / deviation, all of them safe here."""
    limit = upper_limit(coin(50, 50), 0.1, np.array([0.5]))[0]
    stakes = np.sqrt(2 * np.log(10) / 100) / 0.5 * np.geomspace(0.5, 2, 6)

    capital = np.mean((1 + stakes * limit) ** 50 * (1 + stakes * (limit - 1)) ** 50)

    assert capital == pytest.approx(10, rel=1e-4)


def test_a_constant_statistic_is_known() -> None:
    assert upper_limit(Draws.of(np.array([2.0]), np.array([5.0]), 2, 2), 0.05).tolist() == [2]


def test_limits_move_outwards_by_the_rounding_of_the_values() -> None:
    exact = coin(300, 100)

    assert upper_limit(exact._replace(rounding=0.01), 0.05) == pytest.approx(
        upper_limit(exact, 0.05) + 0.01
    )


def test_columns_are_treated_one_by_one() -> None:
    values, repeats = np.array([[0.0, 1.0], [0.5, 0.0]]), np.array([30.0, 60.0])
    together = upper_limit(Draws.of_columns(values, repeats, 0, 1), 0.05)

    apart = [upper_limit(Draws.of(column, repeats, 0, 1), 0.05)[0] for column in values.T]

    assert together == pytest.approx(apart)
