"""Limits of means fail no more often than they may."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from hocal._base.typing import Array
from hocal.guarantees.betting import Draws
from hocal.guarantees.deadline import Sequences, refuted, shuffled
from hocal.guarantees.fixed_number import lower_limits, upper_limits
from hocal.guarantees.orders import Order

pytestmark = pytest.mark.slow


def draws_of(histogram: Array, values: Array) -> Draws:
    return Draws.of(values, histogram, float(values[0]), float(values[-1])).columns()[0]


def sequences_of(draws: Draws) -> Sequences:
    """Return the orders in which draws between 0 and 1 are looked at."""
    rows = np.floor(draws.values * (1 << 20) + 0.381966).astype(np.int64)
    order = Order.of(rows, draws.repeats[:, 0])
    histogram = (draws.values[:, 0], draws.repeats[:, 0].astype(np.int64))
    return shuffled([histogram], np.zeros(1), np.ones(1), np.full(1, np.inf), [order])


@pytest.mark.parametrize("delta", [0.025, 0.05])
@pytest.mark.parametrize(
    ("n_draws", "mean"),
    [
        (20, 0.05),
        (20, 0.5),
        (50, 0.05),
        (50, 0.2),
        (80, 0.29),
        (200, 0.01),
        (200, 0.05),
        (200, 0.9),
        (1000, 0.002),
        (1000, 0.01),
        (1000, 0.1),
        (5000, 0.001),
    ],
)
def test_limits_of_a_coin_fail_no_more_often_than_promised(
    n_draws: int, mean: float, delta: float
) -> None:
    """Not simulated: the binomial chance of every number of hits whose limits fail."""
    first, last = stats.binom.ppf([1e-4, 1 - 1e-4], n_draws, mean)
    hits = np.arange(first, last + 1)
    chance = stats.binom.pmf(hits, n_draws, mean)
    many = [draws_of(np.array([n_draws - x, x]), np.array([0.0, 1.0])) for x in hits]

    assert chance @ (upper_limits(many, delta) < mean) <= delta
    assert chance @ (lower_limits(many, delta) > mean) <= delta


FIVE_LABELS = [0, 0.4, 0.6, 0.7, 0.8, 0.9, 1]  # how often two of them differ
WORLDS = {
    "three values": ([0, 2 / 3, 1], [0.9, 0.08, 0.02]),
    "k = 5, mostly agreed": (FIVE_LABELS, [0.8, 0.1, 0.05, 0.02, 0.02, 0.01, 0]),
    "k = 5, mostly not": (FIVE_LABELS, [0.1, 0.1, 0.2, 0.1, 0.2, 0.2, 0.1]),
    "point mass": ([0, 0.3, 1], [0, 1, 0]),
    "two near the middle": ([0, 0.45, 0.55, 1], [0, 0.5, 0.5, 0]),
    "rare and large": ([0, 0.01, 1], [0.495, 0.495, 0.01]),
}


@pytest.mark.parametrize(("n_draws", "delta"), [(20, 0.05), (100, 0.025), (1000, 0.05)])
@pytest.mark.parametrize("name", list(WORLDS))
def test_limits_of_few_values_fail_no_more_often_than_promised(
    name: str, n_draws: int, delta: float
) -> None:
    """Each end on its own; three standard errors."""
    values, chances = map(np.array, WORLDS[name])
    generator = np.random.default_rng([n_draws, len(name)])
    n_worlds = 1000 if n_draws < 1000 else 400
    samples, repeats = np.unique(
        generator.multinomial(n_draws, chances, n_worlds), axis=0, return_counts=True
    )
    many = [draws_of(sample, values) for sample in samples]
    allowed = delta + 3 * math.sqrt(delta / n_worlds)
    mean = float(values @ chances)

    assert repeats @ (upper_limits(many, delta) < mean - 1e-12) / n_worlds <= allowed
    assert repeats @ (lower_limits(many, delta) > mean + 1e-12) / n_worlds <= allowed


@pytest.mark.parametrize("n_draws", [50, 200, 1000])
@pytest.mark.parametrize("name", list(WORLDS))
def test_values_above_a_limit_are_refuted_but_for_a_few(name: str, n_draws: int) -> None:
    """A limit looks at some values; at most one in two hundred of those between is kept."""
    values, chances = map(np.array, WORLDS[name])
    generator = np.random.default_rng([n_draws, len(name)])
    many = [draws_of(sample, values) for sample in generator.multinomial(n_draws, chances, 25)]
    limits = upper_limits(many, 0.025)
    kept = 0
    for draws, limit in zip(many, limits, strict=True):
        error = limit - float(draws.mean()[0])
        above = np.linspace(limit, min(limit + 2 * error, 1 - 1e-9), 100)
        kept += int((~refuted(sequences_of(draws), above[None], np.array([0.025]))).sum())

    assert kept <= 0.005 * 100 * len(many)


@pytest.mark.parametrize("mean", [0.5, 0.1, 0.02])
@pytest.mark.parametrize("n_draws", [60, 400])
def test_limits_are_nearly_as_narrow_as_those_of_the_binomial(mean: float, n_draws: int) -> None:
    hits = np.random.default_rng(1).binomial(n_draws, mean, 40)
    many = [draws_of(np.array([n_draws - x, x]), np.array([0.0, 1.0])) for x in hits]
    exact = stats.beta.ppf(0.975, hits + 1, n_draws - hits)
    exact = exact - np.nan_to_num(stats.beta.ppf(0.025, hits, n_draws - hits + 1))

    widths = upper_limits(many, 0.025) - lower_limits(many, 0.025)

    assert widths.mean() <= 1.25 * exact.mean()
