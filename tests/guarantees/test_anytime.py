"""Limits of a stream hold at all times at once, and cost little."""

import math

import numpy as np
import pytest

from hocal.guarantees.anytime import _STAKES, anytime_lower_limit, anytime_upper_limit

SEED = 20240612


def test_of_zeros_alone_the_limit_is_where_the_capital_of_all_stakes_reaches_the_goal() -> None:
    """The capital of n zeros against a mean m is the average over stakes s of (1 + s m/(1-m))^n."""
    n, delta = 200, 0.05

    limit = anytime_upper_limit(np.zeros(n), 0, 1, delta)

    capital = np.mean((1 + _STAKES * limit / (1 - limit)) ** n)
    assert capital == pytest.approx(1 / delta, rel=1e-4)


def test_limits_turn_and_scale_with_the_draws() -> None:
    draws = np.random.default_rng(SEED).random(50)

    upper = anytime_upper_limit(draws, 0, 1, 0.1)

    assert anytime_lower_limit(-draws, -1, 0, 0.1) == pytest.approx(-upper)
    assert anytime_upper_limit(3 + 2 * draws, 3, 5, 0.1) == pytest.approx(3 + 2 * upper)


def test_no_draw_says_nothing() -> None:
    assert anytime_upper_limit(np.empty(0), 0, 1, 0.05) == pytest.approx(1)


@pytest.mark.parametrize("n", [100, 10_000])
def test_a_limit_is_not_much_wider_than_that_of_a_fixed_number(n: int) -> None:
    """Hoeffding's half-width for a fixed number of fair coins is sqrt(log(1/delta) / (2 n))."""
    coins = np.arange(n) % 2

    half_width = anytime_upper_limit(coins, 0, 1, 0.05) - 0.5

    assert half_width < 1.5 * math.sqrt(math.log(1 / 0.05) / (2 * n))


@pytest.mark.parametrize("mean", [0.02, 0.5])
def test_a_stream_that_is_looked_at_after_every_draw_fails_as_rarely_as_promised(
    mean: float,
) -> None:
    """4,000 streams of 500 draws: the capital against the true mean, at its highest."""
    delta = 0.1
    draws = np.random.default_rng(SEED).random((4000, 500)) < mean
    stakes = _STAKES[:, None, None] / (1 - mean)
    logs = np.cumsum(np.log1p(stakes * (mean - draws)), axis=2)
    highest = np.logaddexp.reduce(logs, axis=0).max(axis=1)

    failed = (highest >= math.log(len(_STAKES) / delta)).mean()

    assert failed <= delta + 3 * math.sqrt(delta / 4000)


def test_repeats_stand_for_draws() -> None:
    values = np.array([0.0, 0.4, 1.0])
    repeats = np.array([30.0, 9.0, 3.0])

    listed = anytime_upper_limit(np.repeat(values, repeats.astype(int)), 0, 1, 0.05)

    assert anytime_upper_limit(values, 0, 1, 0.05, repeats=repeats) == pytest.approx(listed)
