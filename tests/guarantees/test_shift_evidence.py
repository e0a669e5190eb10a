"""Evidence that a mean has changed: fair when it has not, the same in parts, by definition."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from hocal.guarantees.shift_evidence import (
    SHARES,
    STAKES,
    Means,
    Wealth,
    learn_means,
    uninvested,
)

Array = NDArray[np.float64]


def learn(values: Array) -> Means:
    """Return what values of a single mean say."""
    return learn_means(values, np.zeros(len(values), dtype=np.intp), 1)


def bet(means: Means, values: Array) -> Array:
    """Return log-evidence after each value, for a rise and for a fall."""
    return advance(means, values)[1]


def advance(means: Means, values: Array) -> tuple[Wealth, Array]:
    """Bet on values of a single mean, the first of which belongs to item 1."""
    numbers = np.arange(1, len(values) + 1)
    wealth, logs = Wealth.start(1).advance(means, values[:, None], numbers[:, None])
    return wealth, logs[:, 0]


def slow_evidence(means: Means, values: Array, sign: int) -> float:
    """Follow the definition in plain loops: every start time and every stake apart."""
    side = 0 if sign > 0 else 1
    t = len(values)
    shares = [float(uninvested(np.array(s - 1)) - uninvested(np.array(s))) for s in range(1, t + 1)]
    idle = float(uninvested(np.array(t)))
    largest = 1 + means.candidates[0, side, -1]
    bets = [(stake / largest, weight) for stake, weight in zip(STAKES, SHARES, strict=True)]
    capitals = []
    for m in means.candidates[0, side]:
        total = idle
        for (stake, weight), start in itertools.product(bets, range(t)):
            product = math.prod(1 + stake * (sign * x - m) for x in values[start:])
            total += shares[start] * product * weight
        capitals.append(total)
    doubts = [0.0, *np.exp(means.log_doubt[0, side])]
    products = [(1 + d) / 2 * c for d, c in zip(doubts, [*capitals, idle], strict=True)]
    return min(products)


def test_evidence_is_its_definition() -> None:
    generator = np.random.default_rng(0)
    means = learn(generator.uniform(-0.5, 0.6, 40))
    values = generator.uniform(-0.4, 0.9, 7)

    found = np.exp(bet(means, values)[-1])

    assert found == pytest.approx([slow_evidence(means, values, sign) for sign in (1, -1)])


@pytest.mark.parametrize("chance", [0.3, 0.5, 0.7])
def test_evidence_is_at_most_one_on_average_if_nothing_changes(chance: float) -> None:
    """All outcomes of four calibration and four new values, listed with their probabilities."""
    low, high = -0.2, 0.3
    averages = np.zeros(2)
    for outcome in itertools.product([0, 1], repeat=8):
        values = np.where(np.array(outcome) == 1, high, low)
        weight = math.prod(chance if up else 1 - chance for up in outcome)
        averages += weight * np.exp(bet(learn(values[:4]), values[4:])[-1])

    assert (averages <= 1).all()


def test_one_by_one_and_all_at_once_are_the_same() -> None:
    generator = np.random.default_rng(1)
    means = learn(generator.uniform(-0.5, 0.5, 300))
    values = generator.uniform(-0.4, 0.8, 300)
    wealth, logs = advance(means, values)

    single, parts = Wealth.start(1), []
    for place in range(300):
        number = np.array([[place + 1]])
        single, found = single.advance(means, values[place : place + 1, None], number)
        parts.append(found[:, 0])

    np.testing.assert_allclose(np.concatenate(parts), logs, atol=1e-9)
    np.testing.assert_array_equal(single.since, wealth.since)


def test_evidence_beyond_the_range_of_floats_is_kept_in_logarithms() -> None:
    generator = np.random.default_rng(4)
    means = learn(generator.uniform(-0.5, 0.5, 40_000))
    values = np.concatenate([np.full(8_000, 0.9), np.full(8_000, -0.9)])

    wealth, _ = advance(means, values)

    assert wealth.log_invested[0, 1].max() > 1_000
    assert np.isfinite(wealth.log_invested).all()
    # Capital that bets on a fall with all that is safe: each value multiplies it by 1 + .9 stake.
    stake = STAKES[-1] / (1 + means.candidates[0, 1, -1])
    gain = math.log1p(stake * (0.9 - means.candidates[0, 1, 0]))
    late = wealth.log_invested[0, 1, 0, -1] - 7_990 * gain
    assert -15 < late < 10 * gain  # what began to bet within the first ten values of the fall


def test_rows_are_bet_on_apart_whatever_the_others_have() -> None:
    generator = np.random.default_rng(5)
    old = generator.uniform(-0.5, 0.5, 400)
    means = learn_means(old, np.arange(400) % 2, 2)
    values = generator.uniform(-0.4, 0.8, (300, 2))
    values[generator.random(300) < 0.6, 0] = np.nan
    numbers = np.arange(1, 301)[:, None]

    together, logs = Wealth.start(2).advance(means, values, np.repeat(numbers, 2, axis=1))

    for row in range(2):
        own = ~np.isnan(values[:, row])
        means_of_row = means.take(np.array([row]))
        alone, expected = Wealth.start(1).advance(
            means_of_row, values[own, row, None], numbers[own]
        )
        np.testing.assert_allclose(logs[own, row], expected[:, 0], atol=1e-12)
        np.testing.assert_array_equal(together.since[row], alone.since[0])
        assert together.n_values[row] == own.sum()


def test_a_mean_without_calibration_values_never_gives_evidence() -> None:
    means = learn_means(np.array([0.1]), np.array([1]), 2)

    assert means.n_values.tolist() == [0, 1]
    assert bet(means.take(np.array([0])), np.ones(500)).max() <= 0


def test_few_calibration_values_limit_the_evidence() -> None:
    values = np.full(400, 0.6)
    most = [bet(learn(np.resize([-0.3, 0.3], n)), values).max() for n in (4, 40, 400)]

    assert most[0] < math.log(20) < most[1] < most[2]


def test_a_rise_and_a_fall_are_mirrored() -> None:
    generator = np.random.default_rng(2)
    old, new = generator.uniform(-0.5, 0.3, 50), generator.uniform(-0.2, 0.6, 60)

    up, down = bet(learn(old), new), bet(learn(-old), -new)

    np.testing.assert_allclose(up, down[:, ::-1])


def test_the_change_is_dated_by_the_value_after_which_bets_only_win() -> None:
    generator = np.random.default_rng(3)
    means = learn(generator.uniform(-0.5, 0.5, 1000))
    values = np.concatenate([generator.uniform(-0.5, 0.5, 500), generator.uniform(-0.1, 0.9, 100)])

    wealth, logs = advance(means, values)

    assert logs[499].max() < math.log(20) < logs[-1, 0]
    assert abs(wealth.dated(0, 0) - 500) <= 40


def test_all_capital_begins_to_bet_in_the_end() -> None:
    times = np.arange(10_001)

    assert uninvested(times)[0] == 1
    assert (np.diff(uninvested(times)) < 0).all()
    assert float(uninvested(np.array(1e300))) < 0.002
