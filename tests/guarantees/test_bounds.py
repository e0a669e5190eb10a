"""Inequalities of higher-order calibration, against closed forms or simulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

from hocal._base.interval import Interval
from hocal.guarantees.betting import Draws
from hocal.guarantees.binary_moments import moment_interval, tail_bound
from hocal.guarantees.bounds import (
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
from hocal.guarantees.fixed_number import lower_limits, upper_limits
from hocal.guarantees.means import (
    betting_interval,
    empirical_bernstein_interval,
    hoeffding_interval,
)
from hocal.uncertainty.entropy import Brier, Shannon
from hocal.uncertainty.moments import factorial_moments
from hocal.uncertainty.snapshots import enumerate_snapshots

Array = NDArray[np.float64]
UNKNOWN: Any = "x"  # a word that no argument knows


def beta_moments(a: float, b: float, order: int) -> Array:
    i = np.arange(order)
    return np.asarray(np.cumprod((a + i) / (a + b + i)))


def w1(first: Array, second: Array, first_weights: Array, second_weights: Array) -> float:
    """Return W1 of two binary mixtures in l1 units, twice that of the probabilities."""
    return float(2 * stats.wasserstein_distance(first, second, first_weights, second_weights))


def project(p: Array, weights: Array, k: int) -> Array:
    return np.asarray(weights @ stats.binom.pmf(np.arange(k + 1), k, p[:, None]))


# --- slack and sandwich
# ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 7, 30])
def test_de_moivre_is_the_mean_absolute_deviation(k: int) -> None:
    p = np.concatenate([np.linspace(0, 1, 201), np.arange(k + 1) / k])
    hits = np.arange(k + 1)

    expected = (stats.binom.pmf(hits, k, p[:, None]) * np.abs(hits / k - p[:, None])).sum(axis=1)

    np.testing.assert_allclose(binomial_deviation(p, k), expected, atol=1e-13)


def test_slack_of_ten_labels_in_ten_classes() -> None:
    """Spec 3.1; the exact coupling bound over all mixtures is .778."""
    values = {
        m: projection_slack(10, 10, method=m).value for m in ("tightest", "variance", "paper")
    }  # type: ignore[arg-type]

    assert values == pytest.approx({"tightest": 0.778, "variance": 0.949, "paper": 1.581}, abs=1e-3)


@pytest.mark.parametrize("k", [1, 3, 10])
def test_slack_of_an_unknown_mixture_covers_every_label_distribution(k: int) -> None:
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.dirichlet(np.full(5, a), 2000) for a in (0.1, 0.5, 1, 5, 50)])

    assert binomial_deviation(p, k).sum(axis=1).max() <= projection_slack(k, 5).value


def test_each_slack_is_at_least_the_exact_distance() -> None:
    rng = np.random.default_rng(1)
    for k in (1, 2, 5, 20):
        p, weights = rng.beta(0.5, 0.5, 4), rng.dirichlet(np.ones(4))
        exact = w1(p, np.arange(k + 1) / k, weights, project(p, weights, k))
        mixture = {"probabilities": np.stack([1 - p, p], -1), "weights": weights}
        known = [
            projection_slack(k, 2, method=m, **mixture).value for m in ("tightest", "variance")
        ]  # type: ignore[arg-type]
        unknown = [
            projection_slack(k, 2, method=m).value for m in ("tightest", "variance", "paper")
        ]  # type: ignore[arg-type]

        assert exact <= known[0] + 1e-12
        assert known[0] <= known[1] <= unknown[1] <= unknown[2] + 1e-12
        assert known[0] <= unknown[0] <= unknown[1]


def test_the_papers_slack_is_vacuous_where_the_tightest_is_not() -> None:
    assert projection_slack(5, 10, method="paper").vacuous
    assert not projection_slack(5, 10).vacuous


@pytest.mark.parametrize("method", ["tightest", "paper"])
def test_sandwich_bounds_hold_for_random_binary_mixtures(method: Any) -> None:
    rng = np.random.default_rng(2)
    for k in (1, 2, 5, 20):
        p, q = rng.beta(0.4, 0.4, (2, 5))
        weights, hits = np.full(5, 0.2), np.arange(k + 1) / k
        first, second = project(p, weights, k), project(q, weights, k)
        of_mixtures, kth = w1(p, q, weights, weights), w1(hits, hits, first, second)
        of_snapshots = w1(hits, q, first, weights)

        mixture = higher_order_interval(kth, k, 2, predictor="mixture", method=method)
        snapshot = higher_order_interval(kth, k, 2, method=method)
        assert mixture.lower - 1e-9 <= of_mixtures <= mixture.upper
        assert snapshot.lower <= of_snapshots <= snapshot.upper


def test_a_guarantee_of_two_is_vacuous() -> None:
    assert higher_order_interval(0.5, 4, 10, method="paper") == (0.5, 0.0, 2.0)


# --- sample size
# ------------------------------------------------------------------------------------------------


def test_sample_sizes_of_the_specification() -> None:
    assert sample_size(0.1, 0.05, 10, 2) == 738
    assert sample_size(0.1, 0.05, 10, 2, method="paper") == math.ceil(
        200 * (11 * math.log(2) + math.log(20))
    )


def test_binary_sample_size_does_not_depend_on_k() -> None:
    assert sample_size(0.1, 0.05, 5, 2) == sample_size(0.1, 0.05, 100, 2)


@pytest.mark.parametrize(("k", "n_classes"), [(2, 2), (2, 3), (5, 10), (1, 10)])
def test_sample_size_is_the_smallest_that_reaches_epsilon(k: int, n_classes: int) -> None:
    n_items = sample_size(0.2, 0.1, k, n_classes)

    assert epsilon_bound(n_items, 0.1, k, n_classes).value <= 0.2
    assert epsilon_bound(n_items - 1, 0.1, k, n_classes).value > 0.2
    assert n_items <= sample_size(0.2, 0.1, k, n_classes, method="paper")


def test_epsilon_bound_names_its_inequality_and_says_when_it_is_vacuous() -> None:
    assert epsilon_bound(1000, 0.05, 5, 2).method == "Dvoretzky-Kiefer-Wolfowitz"
    assert epsilon_bound(1000, 0.05, 5, 10).method == "McDiarmid"
    assert epsilon_bound(1000, 0.05, 1, 3).method == "paper"
    assert epsilon_bound(100, 0.05, 5, 10).vacuous


@pytest.mark.parametrize("n_classes", [2, 3])
def test_empirical_snapshots_are_within_epsilon_as_often_as_promised(n_classes: int) -> None:
    """The l1 distance of histograms bounds W1 from above: used for three classes only."""
    rng, k, n_items, delta = np.random.default_rng(3), 3, 60, 0.1
    truth = rng.dirichlet(np.ones(len(enumerate_snapshots(k, n_classes))))
    error = rng.multinomial(n_items, truth, size=4000) / n_items - truth
    distance = (
        2 * np.abs(np.cumsum(error, axis=1)).sum(axis=1) / k
        if n_classes == 2
        else np.abs(error).sum(axis=1)
    )

    assert (distance > epsilon_bound(n_items, delta, k, n_classes).value).mean() <= delta


# --- aleatoric uncertainty
# -------------------------------------------------------------------------------------------


def test_erratum_3_one_label_leaves_a_whole_bit_open() -> None:
    """A fair coin's 1-snapshots have entropy 0: the gap is 1 bit, the paper's bound 0."""
    bound = aleatoric_bound(0.0, 1, 2, entropy=Shannon(2), method="paper")

    assert bound.value == pytest.approx(1.0)
    assert bound.vacuous


def test_erratum_4_the_modulus_takes_half_the_l1_distance() -> None:
    """A shift from p = 0 to p = .1 is .2 in l1 and changes entropy by H_b(.1), not H_b(.2)."""
    value = aleatoric_bound(0.2, 10**8, 2).value

    assert value == pytest.approx(float(Shannon().value([0.9, 0.1])), abs=1e-3)
    assert value < float(Shannon().value([0.8, 0.2])) - 0.1


@pytest.mark.parametrize("entropy", [Shannon(), Brier()], ids=str)
def test_aleatoric_bound_covers_the_plugin_gap(entropy: Shannon | Brier) -> None:
    p = np.linspace(0, 1, 501)
    for k in (1, 2, 5, 20):
        snapshots = np.stack([k - np.arange(k + 1), np.arange(k + 1)], -1) / k
        gap = entropy.value(np.stack([1 - p, p], -1)) - project_each(p, k) @ entropy.value(
            snapshots
        )
        assert gap.max() <= aleatoric_bound(0.0, k, 2, entropy=entropy).value + 1e-12


def project_each(p: Array, k: int) -> Array:
    return np.asarray(stats.binom.pmf(np.arange(k + 1), k, p[:, None]))


def test_erratum_5_the_degree_needs_a_factor_four() -> None:
    """The paper's quarter leaves omega(1/d) <= (4/d)^(1/ln 4) = .369 where .05 is wanted."""
    degree = polynomial_degree(0.1)
    of_paper = 0.25 * 20 ** math.log(4)

    assert (4 / degree) ** (1 / math.log(4)) <= 0.05
    assert (4 / (degree - 1)) ** (1 / math.log(4)) > 0.05
    assert (4 / of_paper) ** (1 / math.log(4)) == pytest.approx(0.369, abs=1e-3)


def test_erratum_12_two_labels_of_two_classes_make_three_snapshots() -> None:
    """The paper counts four and needs 73,835 items; Hoeffding needs 738."""
    assert brier_sample_size(0.1, 0.05, scale=2) == 738
    assert brier_sample_size(0.1, 0.05, scale=2, method="paper") == 64_963
    assert math.ceil(12_800 * (4 * math.log(2) + math.log(20))) == 73_835


def test_more_labels_need_fewer_items_for_brier() -> None:
    sizes = [brier_sample_size(0.1, 0.05, k=k, n_classes=2) for k in (2, 4, 10)]

    assert sizes == sorted(sizes, reverse=True)


def test_plugin_interval_holds_the_true_entropy_of_every_coin() -> None:
    p = np.linspace(0, 1, 201)
    for k in (1, 2, 5, 20):
        snapshots = np.stack([k - np.arange(k + 1), np.arange(k + 1)], -1) / k
        plugins = project_each(p, k) @ Shannon(2).value(snapshots)
        for plugin, truth in zip(plugins, Shannon(2).value(np.stack([1 - p, p], -1)), strict=True):
            interval = plugin_interval(plugin, k, 2, base=2)
            assert interval.lower - 1e-12 <= truth <= interval.upper + 1e-12


def test_one_label_gives_a_vacuous_plugin_interval() -> None:
    assert plugin_interval(0.0, 1, 10).covers(0, math.log(10))
    assert not plugin_interval(0.1, 5, 10).covers(0, math.log(10))


# --- moments and sets
# ------------------------------------------------------------------------------------------------


def test_moment_error_covers_wrong_snapshot_distributions_and_is_reached() -> None:
    """Moving mass from (k-1)/k to 1 changes the moment by exactly m/2 times the distance."""
    rng, k, hits = np.random.default_rng(4), 6, np.arange(7)
    ratio = 0.0
    for order in (1, 2, 6):
        values = factorial_moments(np.stack([k - hits, hits], -1), [0, order])
        moved = [
            np.eye(7)[-1] - np.eye(7)[-2],
            *(rng.dirichlet(np.ones(7), 100) - rng.dirichlet(np.ones(7), 100)),
        ]
        for change in moved:
            distance = 2 * np.abs(np.cumsum(change)).sum() / k
            ratio = max(ratio, abs(change @ values) / moment_error(order, distance).value)

    assert ratio == pytest.approx(1.0)


def test_moment_error_is_vacuous_from_one_on() -> None:
    assert moment_error(4, 0.5).vacuous
    assert not moment_error(4, 0.4).vacuous


def test_coverage_of_expanded_sets_lies_between_the_bounds() -> None:
    """S = [0, .5] under U(0, 1), truth shifted by at most .05 (epsilon = .1 in l1)."""
    rng = np.random.default_rng(5)
    predicted = (np.arange(10_000) + 0.5) / 10_000
    truth = np.clip(predicted + rng.choice([-0.05, 0.05], 10_000), 0, 1)
    epsilon = w1(predicted, truth, np.ones(10_000), np.ones(10_000))
    for delta in (0.1, 0.3, 0.6):
        held = (truth <= 0.5 + delta / 2).mean()
        mass, twice = ((predicted <= 0.5 + d / 2).mean() for d in (0.0, 2 * delta))
        bounds = prediction_set_coverage(float(mass), epsilon, delta=delta, mass_twice=float(twice))
        assert bounds.lower <= held <= bounds.upper


def test_default_expansion_is_the_root_of_epsilon() -> None:
    assert prediction_set_coverage(1 - 0.1, 0.01).lower == pytest.approx(1 - 2 * 0.1)
    assert prediction_set_coverage(0.9, 0.0).lower == 0.9
    assert prediction_set_coverage(0.5, 0.5).lower == 0


def test_erratum_6_an_odd_number_of_moments_uses_one_less() -> None:
    """The third central moment of Beta(8, 3) is negative: its root is no half-width."""
    moments = beta_moments(8, 3, 3)

    assert moment_interval(moments, 0.2, method="paper") == moment_interval(
        moments[:2], 0.2, method="paper"
    )


def test_erratum_16_a_linear_program_beats_markov() -> None:
    moments = beta_moments(8, 3, 8)

    markov, program = (
        moments[0] - moment_interval(moments, 0.05, method=m).lower for m in ("paper", "tightest")
    )  # type: ignore[arg-type]

    assert markov == pytest.approx(0.344, abs=1e-3)
    assert program == pytest.approx(0.3193, abs=5e-4)


def test_markov_half_width_follows_the_formula() -> None:
    """Spec 1.18 with k = 2: sqrt((variance + eps (1 + m_1)^2) / alpha)."""
    interval = moment_interval([0.5, 0.26], 0.5, epsilon=0.004, method="paper")

    assert 0.5 - interval.lower == pytest.approx(math.sqrt((0.01 + 0.004 * 2.25) / 0.5))


def test_infeasible_moments_give_markov_a_point_and_the_program_an_error() -> None:
    """Two labels, one of each class, suggest a variance of -1/4."""
    assert moment_interval([0.5, 0.0], 0.1, method="paper") == (0.5, 0.5, 0.5)
    with pytest.raises(ValueError, match="`moments` must belong to a mixture within epsilon=0"):
        tail_bound([0.5, 0.0], 0.5, 0.1)


@pytest.mark.parametrize(("a", "b"), [(8, 3), (0.5, 0.5), (1, 1), (0.3, 2)])
def test_tail_bound_covers_the_true_tail(a: float, b: float) -> None:
    world = stats.beta(a, b)
    for order in (2, 5, 8):
        for radius in (0.1, 0.3, 0.5):
            true = world.cdf(world.mean() - radius) + world.sf(world.mean() + radius)
            assert tail_bound(beta_moments(a, b, order), world.mean(), radius).value >= true


def test_tail_bound_is_reached_by_a_mixture_with_the_same_moments() -> None:
    moments, x = beta_moments(8, 3, 6), np.append(np.linspace(0, 1, 4001), [8 / 11 - 0.3])
    tail = (np.abs(x - 8 / 11) >= 0.3 - 1e-12).astype(float)
    powers = np.concatenate([np.ones((1, len(x))), x ** np.arange(1, 7)[:, None]])

    worst = -optimize.linprog(-tail, A_eq=powers, b_eq=np.append(1, moments), bounds=(0, None)).fun

    assert worst <= tail_bound(moments, 8 / 11, 0.3).value <= worst + 1e-3


def test_tail_bound_allows_for_wrong_snapshots() -> None:
    """The moments of a mixture at kth-order distance epsilon still bound the tail of the truth."""
    truth, claimed, hits = stats.beta(3, 3), beta_moments(4, 3, 4), np.arange(5) / 4
    epsilon = w1(hits, hits, *(stats.betabinom.pmf(np.arange(5), 4, a, 3) for a in (3, 4)))
    tail = truth.cdf(4 / 7 - 0.35) + truth.sf(4 / 7 + 0.35)

    assert tail_bound(claimed, 4 / 7, 0.35, epsilon=epsilon).value >= tail
    assert (
        tail_bound(claimed, 4 / 7, 0.35, epsilon=epsilon).value
        > tail_bound(claimed, 4 / 7, 0.35).value
    )


def test_the_tightest_interval_is_never_wider_than_markovs() -> None:
    for order in (2, 3):
        for epsilon in (0.0, 0.01):
            moments = beta_moments(2, 2, order)
            tight, markov = (
                moment_interval(moments, 0.2, epsilon=epsilon, method=m)
                for m in ("tightest", "paper")
            )  # type: ignore[arg-type]
            assert tight.lower >= markov.lower - 1e-9


# --- intervals of a mean
# ---------------------------------------------------------------------------------------------

INTERVALS: list[Callable[..., Interval]] = [
    hoeffding_interval,
    empirical_bernstein_interval,
    betting_interval,
]
WORLDS: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "rare": lambda rng, n: (rng.random(n) < 0.03).astype(float),
    "even": lambda rng, n: (rng.random(n) < 0.5).astype(float),
    "smooth": lambda rng, n: rng.beta(2, 8, n),
    "three values": lambda rng, n: rng.choice([0.0, 0.2, 1.0], n, p=[0.7, 0.25, 0.05]),
}
MEANS = {"rare": 0.03, "even": 0.5, "smooth": 0.2, "three values": 0.1}


@pytest.mark.slow
@pytest.mark.parametrize("world", list(WORLDS))
@pytest.mark.parametrize(("n_items", "deviation"), [(20, None), (200, None), (200, 0.2)])
def test_betting_intervals_hold_the_mean_as_often_as_promised(
    world: str, n_items: int, deviation: float | None
) -> None:
    """Each end is checked at delta / 2, with three standard errors."""
    rng, delta, n_samples = np.random.default_rng(6), 0.1, 800
    samples = [WORLDS[world](rng, n_items) for _ in range(n_samples)]
    draws = [Draws.of(sample, np.ones(n_items), 0, 1) for sample in samples]
    guess = None if deviation is None else np.full(n_samples, deviation)
    lower = lower_limits(draws, delta / 2, guess)
    upper = upper_limits(draws, delta / 2, guess)
    noise = 3 * math.sqrt(delta / 2 / n_samples)

    assert np.mean(lower > MEANS[world]) <= delta / 2 + noise
    assert np.mean(upper < MEANS[world]) <= delta / 2 + noise


@pytest.mark.parametrize("interval", INTERVALS)
def test_a_histogram_gives_the_interval_of_its_sample(interval: Callable[..., Interval]) -> None:
    sample = np.random.default_rng(7).choice([0.0, 0.5, 2.0], 300, p=[0.6, 0.3, 0.1])
    values, multiplicities = np.unique(sample, return_counts=True)

    of_histogram = interval(values[::-1], limits=(-1, 2), multiplicities=multiplicities[::-1])

    assert of_histogram == pytest.approx(interval(sample, limits=(-1, 2)), abs=1e-12)


@pytest.mark.parametrize("interval", INTERVALS)
def test_intervals_follow_a_change_of_units(interval: Callable[..., Interval]) -> None:
    sample = np.random.default_rng(8).beta(2, 5, 400)
    unit, scaled = interval(sample), interval(5 * sample - 3, limits=(-3, 2))

    assert scaled == pytest.approx([5 * number - 3 for number in unit], abs=1e-7)


@pytest.mark.parametrize("interval", INTERVALS[:2])
def test_two_values_are_no_evidence(interval: Callable[..., Interval]) -> None:
    assert interval([0.0, 1.0]) == (0.5, 0.0, 1.0)


def test_hoeffding_half_width_of_five_hundred_items() -> None:
    """Spec 3.7: .061 for any moment statistic in [0, 1]."""
    interval = hoeffding_interval(np.full(500, 0.5))

    assert interval.upper - 0.5 == pytest.approx(0.0607, abs=1e-4)


def test_empirical_bernstein_follows_maurer_and_pontil() -> None:
    sample = np.random.default_rng(9).random(100)
    tail = math.log(4 / 0.05)
    width = math.sqrt(2 * sample.var(ddof=1) * tail / 100) + 7 * tail / (3 * 99)

    assert empirical_bernstein_interval(sample).upper == pytest.approx(sample.mean() + width)


def test_empirical_bernstein_halves_hoeffding_for_a_second_moment() -> None:
    """Spec 3.7: k = 10, m = 2, N = 500: .061 against .028, here for p ~ Beta(1, 9)."""
    rng = np.random.default_rng(10)
    hits = rng.binomial(10, rng.beta(1, 9, 500))
    sample = factorial_moments(np.stack([10 - hits, hits], -1), [0, 2])

    widths = [interval(sample).width for interval in INTERVALS]

    assert widths[1] < 0.7 * widths[0]
    assert widths[2] < 0.5 * widths[1]


def test_betting_is_narrower_than_empirical_bernstein_on_rare_events() -> None:
    betting, bernstein = (
        interval([0.0, 1.0], multiplicities=[485, 15])
        for interval in (betting_interval, empirical_bernstein_interval)
    )

    assert betting.upper - betting.lower < 0.7 * (bernstein.upper - bernstein.lower)
    assert betting.lower > 0.01
    assert bernstein.lower == 0


def test_few_betting_draws_end_where_the_capital_reaches_its_mark() -> None:
    """Followed draw by draw: the average of six capitals passes 2 / delta at the lower end."""
    sample, delta = np.random.default_rng(11).beta(2, 5, 19), 0.05
    end = betting_interval(sample, delta=delta).lower

    def capital(m: float) -> float:
        capitals = np.ones(6)
        for x in sample:
            base = math.sqrt(2 * math.log(2 / delta) / 19)
            safe = 0.99 / m
            capitals *= 1 + np.geomspace(min(2 * base, safe), min(64 * base, safe), 6) * (x - m)
        return float(capitals.mean())

    assert capital(end - 1e-6) > 2 / delta > capital(end + 1e-6)


def test_a_good_guess_of_the_deviation_narrows_the_betting_interval() -> None:
    sample = np.random.default_rng(13).beta(2, 5, 200)
    blind, guessed = (betting_interval(sample, deviation=d) for d in (None, 0.16))

    assert guessed.upper - guessed.lower < blind.upper - blind.lower


def test_a_smaller_delta_widens_the_betting_interval() -> None:
    sample = np.random.default_rng(12).beta(2, 5, 200)
    wide, narrow = (betting_interval(sample, delta=d) for d in (0.01, 0.2))

    assert wide.lower < narrow.lower < narrow.upper < wide.upper


# --- bad input
# ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: binomial_deviation([1.5], 3), r"`p` must lie in \[0, 1\]"),
        (lambda: projection_slack(0, 3), "`k` must be an integer of at least 1, got 0"),
        (lambda: projection_slack(2, 3, method=UNKNOWN), "`method` must be one of"),
        (
            lambda: projection_slack(2, 3, probabilities=[[0.5, 0.5]]),
            "`probabilities` must have 3 classes",
        ),
        (
            lambda: higher_order_interval(2.5, 2, 3),
            "`epsilon` must be a number at least 0 and at most 2, got 2.5",
        ),
        (lambda: higher_order_interval(0.5, 2, 3, predictor=UNKNOWN), "`predictor` must be one of"),
        (lambda: sample_size(0.0, 0.05, 2, 2), "`epsilon` must be a number greater than 0"),
        (lambda: sample_size(0.1, 1.0, 2, 2), "`delta` must lie strictly between 0 and 1, got 1.0"),
        (lambda: epsilon_bound(0, 0.05, 2, 2), "`n_items` must be an integer of at least 1"),
        (
            lambda: prediction_set_coverage(1.2, 0.1),
            "`mass` must be a number at least 0 and at most 1, got 1.2",
        ),
        (
            lambda: prediction_set_coverage(0.5, 0.1, mass_twice=0.4),
            "`mass_twice` must be a number at least 0.5",
        ),
        (
            lambda: moment_interval([0.5], 0.1),
            "`number of moments` must be an integer of at least 2, got 1",
        ),
        (
            lambda: brier_sample_size(1e300, 0.05),
            r"`epsilon` must be a number greater than 0 and at most 1e\+100, got 1e\+300",
        ),
        (
            lambda: brier_sample_size(1e-100, 0.05, scale=1e100),
            "`epsilon` must be at least 1e-100, got 1e-200",
        ),
        (lambda: brier_sample_size(0.1, 0.05, k=1), "`k` must be an integer of at least 2, got 1"),
        (
            lambda: plugin_interval(3.0, 2, 2),
            "`plugin` must be a number at least 0 and at most 0.69",
        ),
        (
            lambda: betting_interval([0.5, 1.5]),
            r"`values` must lie inside limits=\(0.0, 1.0\), got 1.5 in row 1",
        ),
        (lambda: betting_interval([np.nan]), r"`values` must lie inside limits"),
        (lambda: betting_interval([0.5], limits=(1, 1)), "`limits` must be"),
        (
            lambda: hoeffding_interval([0.5], multiplicities=[1.5]),
            "`multiplicities` must be 1 whole numbers",
        ),
        (
            lambda: hoeffding_interval([0.5], multiplicities=[1, 2]),
            "`multiplicities` must be 1 whole numbers",
        ),
        (
            lambda: empirical_bernstein_interval([0.5]),
            "`number of values` must be an integer of at least 2, got 1",
        ),
    ],
)
def test_bad_input_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
