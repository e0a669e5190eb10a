"""Moments from label counts, and estimators of E[G] with proven bias."""

from __future__ import annotations

import itertools
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, sparse, stats

import hocal
from hocal._base.typing import Array
from hocal.guarantees.bernstein import Side, bernstein_estimator
from hocal.guarantees.bernstein_proofs import chebyshev_grid, simplex_excess
from hocal.guarantees.polynomials import polynomial_estimator
from hocal.guarantees.snapshot_marginals import snapshot_marginal
from hocal.uncertainty.entropy import Brier, Custom, Entropy, Shannon, Tsallis, ZeroOne
from hocal.uncertainty.moments import (
    average_moments,
    binary_moments,
    central_moments,
    factorial_moments,
    pair_disagreement,
    snapshot_weights,
)
from hocal.uncertainty.snapshots import enumerate_snapshots, sub_snapshots

needs_data = pytest.mark.skipif(
    "HOCAL_DATA" not in os.environ, reason="HOCAL_DATA does not name the data directory"
)


def probability_of(snapshots: NDArray[np.int64], p: Array) -> Array:
    return np.asarray(stats.multinomial.pmf(snapshots, snapshots[0].sum(), p))


# --- moments
# ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "exponents", [(1, 0, 0), (1, 1, 0), (0, 2, 1), (1, 1, 2), (0, 0, 4), (0, 0, 0)]
)
def test_factorial_moments_are_unbiased(exponents: tuple[int, ...]) -> None:
    p, snapshots = np.array([0.2, 0.5, 0.3]), enumerate_snapshots(4, 3)

    mean = probability_of(snapshots, p) @ factorial_moments(snapshots, exponents)

    assert mean == pytest.approx(np.prod(p ** np.array(exponents)), rel=1e-12)


def test_factorial_moment_is_the_share_of_ordered_label_draws_with_the_pattern() -> None:
    labels = [0] * 3 + [1] * 2 + [2] * 1
    draws = list(itertools.permutations(range(6), 3))
    share = np.mean([[labels[i] for i in draw] == [0, 0, 1] for draw in draws])

    assert factorial_moments([[3, 2, 1]], [2, 1, 0])[0] == pytest.approx(share, rel=1e-12)


def test_each_item_uses_its_own_total() -> None:
    estimates = factorial_moments([[1, 1], [5, 15]], [[0, 1], [0, 2]])

    np.testing.assert_allclose(estimates, [[1 / 2, 0], [15 / 20, 15 * 14 / (20 * 19)]])


def test_weights_count_as_repeated_items() -> None:
    counts = np.array([[1, 2, 0], [0, 1, 4]])

    weighted = average_moments(counts, [1, 1, 0], weights=[3, 1])

    assert weighted == pytest.approx(average_moments(counts[[0, 0, 0, 1]], [1, 1, 0]))


def test_binary_moments_of_a_snapshot_are_ratios_of_binomial_coefficients() -> None:
    expected = [math.comb(3, m) / math.comb(5, m) for m in (1, 2, 3, 4)]

    np.testing.assert_allclose(binary_moments([[2, 3]], 4), expected, atol=1e-15)


def test_beta_binomial_counts_have_the_moments_of_the_beta() -> None:
    hits = np.arange(7)
    weights = stats.betabinom.pmf(hits, 6, 2, 5)

    moments = binary_moments(np.stack([6 - hits, hits], axis=-1), 6, weights=weights)

    expected = np.cumprod((2 + np.arange(6)) / (7 + np.arange(6)))
    np.testing.assert_allclose(moments, expected, rtol=1e-12)


def test_snapshot_weights_invert_binary_moments() -> None:
    weights = stats.betabinom.pmf(np.arange(9), 8, 2, 5)
    counts = np.stack([8 - np.arange(9), np.arange(9)], axis=-1)

    np.testing.assert_allclose(
        snapshot_weights(binary_moments(counts, 8, weights=weights)), weights, atol=1e-11
    )


def test_erratum_1_central_moments_alternate_signs() -> None:
    """Beta(2, 5) has variance 10 / (49 * 8); the paper's sum without signs gives .352."""
    raw = np.array([stats.beta(2, 5).moment(1), stats.beta(2, 5).moment(2)])
    unsigned = raw[0] ** 2 + 2 * raw[0] ** 2 + raw[1]

    assert central_moments(raw).values[1] == pytest.approx(10 / 392, abs=1e-12)
    assert unsigned == pytest.approx(0.352, abs=1e-4)


def test_central_moments_match_scipy_for_a_batch_of_betas() -> None:
    worlds = [stats.beta(2, 5), stats.beta(0.5, 0.5)]
    raw = [[world.moment(m) for m in range(1, 7)] for world in worlds]

    values = central_moments(raw).values

    p = (np.arange(200_000) + 0.5) / 200_000
    quantiles = [world.ppf(p) for world in worlds]
    expected = [
        [np.mean((q - world.mean()) ** m) for m in range(1, 7)]
        for q, world in zip(quantiles, worlds, strict=True)
    ]
    np.testing.assert_allclose(values, expected, atol=1e-6)


def test_a_negative_variance_is_reported_and_flagged() -> None:
    result = central_moments(binary_moments([[1, 1]], 2))

    assert result.values[1] == -0.25
    assert not result.feasible


def test_clip_moves_even_moments_only_and_keeps_the_flag() -> None:
    result = central_moments([0.5, 0.0, 0.0], clip=True)

    assert result.values[1] == 0
    assert result.values[2] == 0.25
    assert not result.feasible


def test_a_point_mass_is_feasible_in_spite_of_rounding() -> None:
    assert central_moments([0.3**m for m in range(1, 9)]).feasible


# --- polynomial estimators
# ------------------------------------------------------------------------------------------


def test_brier_polynomial_is_exact_and_has_the_papers_error() -> None:
    """4p(1-p) has B = 4 and d = 2, so the paper's error is d^2 eps B / 2 = 8 eps."""
    estimator = polynomial_estimator(Brier(scale=2), 2)

    np.testing.assert_allclose(estimator.coefficients, [0, 4, -4], atol=1e-12)
    assert estimator.error(0.01, method="paper") == pytest.approx(0.08)
    assert estimator.error(0.01) == pytest.approx(0.02)


@pytest.mark.parametrize("degree", [1, 2, 3, 6, 12])
def test_alpha_bounds_the_distance_to_the_entropy_everywhere(degree: int) -> None:
    estimator, p = polynomial_estimator("shannon", degree), np.linspace(0, 1, 100_001)
    distance = np.abs(
        np.polynomial.Polynomial(estimator.coefficients)(p)
        - Shannon().value(np.stack([p, 1 - p], -1))
    )

    assert 0.99 * estimator.alpha - 1e-4 <= distance.max() <= estimator.alpha


def test_polynomial_estimate_of_the_uniform_mixture_is_within_alpha_of_half_a_nat() -> None:
    estimator = polynomial_estimator("shannon", 8)

    assert abs(estimator.estimate([1 / (m + 1) for m in range(1, 9)]) - 0.5) <= estimator.alpha


def test_error_never_exceeds_the_papers() -> None:
    for degree in range(1, 13):
        estimator = polynomial_estimator("shannon", degree)
        assert estimator.error(0.1) <= estimator.error(0.1, method="paper") + 1e-12


# --- Bernstein estimators
# ------------------------------------------------------------------------------------------

ENTROPIES: list[Entropy] = [Shannon(), Shannon(base=2), Tsallis(0.5), Tsallis(1.5), Tsallis(3)]


def polynomial(values: Array, x: Array) -> Array:
    k = len(values) - 1
    return np.asarray(stats.binom.pmf(np.arange(k + 1), k, x[:, None]) @ values)


def every_scale() -> Array:
    """Return points of [0, 1] at every scale near both ends, none of them on the solver's grid."""
    small = np.geomspace(1e-16, 0.5, 20_011)
    return np.concatenate([[0.0], small, 1 - small, [1.0]])


def simplex_points(n_classes: int) -> Array:
    """Return label distributions whose shares have at most two sizes, at every scale, and others.

    Where a sum over classes touches an entropy, the shares that are not zero have few sizes.
    """
    small = np.geomspace(1e-12, 0.5, 150)
    share = np.concatenate([[0.0], small, 1 - small])[:, None]
    two_sizes = []
    for first in range(1, n_classes):
        for second in range(1, n_classes - first + 1):
            p = np.zeros((len(share), n_classes))
            p[:, :first] = share / first
            p[:, first : first + second] = (1 - share) / second
            two_sizes.append(p)
    generator = np.random.default_rng(1)
    others = [generator.dirichlet(np.full(n_classes, a), 1000) for a in (0.05, 0.3, 1, 10)]
    return np.concatenate([*two_sizes, *others, np.full((1, n_classes), 1 / n_classes)])


def simplex_means(values: Array, p: Array) -> Array:
    return polynomial(values, p.ravel()).reshape(p.shape).sum(axis=1)


@pytest.mark.parametrize("entropy", ENTROPIES, ids=str)
@pytest.mark.parametrize("k", [1, 2, 5, 10])
@pytest.mark.parametrize("side", ["upper", "lower"])
def test_binary_one_sided_polynomials_keep_to_their_side_between_grid_points(
    entropy: Entropy, k: int, side: Side
) -> None:
    x, sign = every_scale(), 1 if side == "upper" else -1
    target = entropy.value(np.stack([x, 1 - x], -1))

    gap = sign * (polynomial(bernstein_estimator(entropy, k, 2, side=side).values, x) - target)

    assert 0 <= gap.min() <= 2e-3  # and touches


@pytest.mark.parametrize("entropy", ENTROPIES, ids=str)
@pytest.mark.parametrize("k", [1, 2, 5, 10])
@pytest.mark.parametrize("side", ["upper", "lower"])
def test_one_sided_sums_keep_to_their_side_on_the_simplex(
    entropy: Entropy, k: int, side: Side
) -> None:
    p, sign = simplex_points(4), 1 if side == "upper" else -1

    values = bernstein_estimator(entropy, k, 4, side=side).values

    gap = sign * (simplex_means(values, p) - entropy.value(p))
    assert -1e-12 <= gap.min() <= 2e-3  # rounding of a sum, and touches


@pytest.mark.parametrize(("k", "n_classes"), [(3, 3), (3, 10), (10, 10), (20, 10), (5, 30)])
@pytest.mark.parametrize("n_items", [30, math.inf])
def test_shannon_sums_of_any_reference_keep_to_their_side(
    k: int, n_classes: int, n_items: float
) -> None:
    """Where all items have even shares, coefficients are at their wildest elsewhere."""
    p = simplex_points(n_classes)[:: n_classes // 3]
    even = n_classes * stats.binom.pmf(np.arange(k + 1), k, 1 / n_classes)
    for reference in (None, even):
        for side, sign in (("upper", 1), ("lower", -1)):
            estimator = bernstein_estimator(
                "shannon", k, n_classes, side=side, reference=reference, n_items=n_items
            )
            gap = sign * (simplex_means(estimator.values, p) - Shannon().value(p))
            assert gap.min() >= -1e-10


@pytest.mark.parametrize("n_classes", [3, 4, 7])
def test_the_bound_of_a_sum_over_classes_is_above_it_on_the_whole_simplex(n_classes: int) -> None:
    """For any function between its chords, at points of the grid and between them."""
    generator = np.random.default_rng(n_classes)
    points = generator.dirichlet(np.full(n_classes, 0.5), 20_000)
    points = np.concatenate([points, simplex_points(n_classes)])
    for _ in range(10):
        x = np.concatenate([[0.0], np.sort(generator.random(9)), [1.0]])
        heights = generator.normal(size=11)
        largest = np.interp(points, x, heights).sum(axis=1).max()

        bound = simplex_excess(x, heights, n_classes).bound.max()

        assert bound >= largest


def test_the_bound_of_a_sum_over_classes_is_sharp_for_a_concave_function() -> None:
    """sum_j g(p_j) is largest for even shares; between two of 4,000 points hardly more."""
    x = chebyshev_grid(4_000)

    bound = simplex_excess(x, Shannon().component(x), 5).bound.max()

    assert bound == pytest.approx(math.log(5), abs=2e-3)


def test_a_binary_entropy_that_is_no_sum_has_one_sided_estimators() -> None:
    x = every_scale()
    target = np.minimum(x, 1 - x)

    for entropy in (ZeroOne(), Custom(lambda p: p.min(axis=-1))):
        assert (
            polynomial(bernstein_estimator(entropy, 6, 2, side="upper").values, x) >= target
        ).all()
        assert (
            polynomial(bernstein_estimator(entropy, 6, 2, side="lower").values, x) <= target
        ).all()


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("side", ["minimax", "upper", "lower"])
def test_bias_bounds_the_distance_to_the_entropy_on_the_simplex(n_classes: int, side: Side) -> None:
    p = simplex_points(n_classes)
    estimator = bernstein_estimator("shannon", 5, n_classes, side=side)

    means = simplex_means(estimator.values, p[:, 1:] if n_classes == 2 else p)

    worst = np.abs(means - Shannon().value(p)).max()
    assert 0.98 * estimator.bias <= worst <= estimator.bias


def test_minimax_bias_in_bits_is_a_tenth_of_the_plugin_bias() -> None:
    """At k = 5 it is .018 bits, where the entropy of the snapshot itself misses by up to .174."""
    x = np.linspace(0, 1, 2001)
    snapshots = np.stack([np.arange(6), 5 - np.arange(6)], axis=-1) / 5
    plugin = Shannon(2).value(np.stack([x, 1 - x], -1)) - polynomial(Shannon(2).value(snapshots), x)

    assert bernstein_estimator(Shannon(2), 5, 2).bias == pytest.approx(0.018, abs=5e-4)
    assert plugin.max() == pytest.approx(0.174, abs=1e-3)


@pytest.mark.parametrize("side", ["minimax", "upper", "lower"])
def test_brier_uses_the_unbiased_statistic(side: Side) -> None:
    snapshots = enumerate_snapshots(5, 4)
    estimator = bernstein_estimator(Brier(scale=3), 5, 4, side=side)

    np.testing.assert_allclose(
        estimator(snapshots), 3 * 5 / 4 * (1 - ((snapshots / 5) ** 2).sum(axis=1)), atol=1e-12
    )
    assert estimator.bias == 0


def test_one_label_says_nothing() -> None:
    upper, lower = (bernstein_estimator("shannon", 1, 10, side=side) for side in ("upper", "lower"))

    assert upper.minimum == pytest.approx(math.log(10), abs=1e-4)
    assert upper.maximum == pytest.approx(upper.minimum)
    assert lower.maximum == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_lipschitz_constant_is_the_steepest_slope_between_snapshots(n_classes: int) -> None:
    estimator = bernstein_estimator("shannon", 6, n_classes, side="upper")
    snapshots = enumerate_snapshots(6, n_classes)
    first, second = (
        np.array(x) for x in zip(*itertools.combinations(range(len(snapshots)), 2), strict=True)
    )

    z = estimator(snapshots)
    slopes = np.abs(z[first] - z[second]) / (
        np.abs(snapshots[first] - snapshots[second]).sum(axis=1) / 6
    )

    assert slopes.max() == pytest.approx(estimator.lipschitz, rel=1e-12)


@pytest.mark.parametrize(("k", "n_classes"), [(1, 3), (4, 3), (6, 4), (3, 8), (7, 2)])
def test_extremes_are_those_of_all_snapshots(k: int, n_classes: int) -> None:
    estimator = bernstein_estimator("shannon", k, n_classes, side="lower")
    z = estimator(enumerate_snapshots(k, n_classes))

    assert (estimator.minimum, estimator.maximum) == pytest.approx((z.min(), z.max()), abs=1e-12)


def test_error_covers_wrong_snapshot_distributions() -> None:
    """Predictions at distance W1 from the truth miss E[H] by at most bias + lipschitz W1."""
    rng, hits = np.random.default_rng(2), np.arange(6)
    estimator = bernstein_estimator("shannon", 5, 2, epsilon=0.1)
    for _ in range(200):
        p = rng.beta(0.5, 0.5, size=3)
        truth = stats.binom.pmf(hits, 5, p[:, None]).mean(axis=0)
        predicted = rng.dirichlet(100 * truth + 0.1)
        distance = 2 * np.abs(np.cumsum(truth - predicted))[:-1].sum() / 5

        miss = abs(predicted @ estimator.values - Shannon().value(np.stack([p, 1 - p], -1)).mean())
        assert miss <= estimator.error(distance)


def test_a_larger_epsilon_buys_a_flatter_statistic() -> None:
    loose, robust = (bernstein_estimator("shannon", 10, 10, epsilon=e) for e in (0.0, 0.1))

    assert robust.lipschitz < loose.lipschitz
    assert robust.error(0.1) < loose.error(0.1)
    assert robust.bias > loose.bias


def test_solutions_are_remembered_and_cannot_be_altered() -> None:
    estimator = bernstein_estimator("shannon", 4, 3)

    assert bernstein_estimator(Shannon(), 4, 3) is estimator
    with pytest.raises(ValueError, match="read-only"):
        estimator.values[0] = 1


def test_snapshot_marginal_equals_exhaustive_thinning() -> None:
    counts, weights = np.array([[3, 2, 1], [0, 7, 0], [2, 2, 2]]), np.array([1.0, 2.0, 5.0])
    parts = sub_snapshots(counts, 3)
    mass = parts.probabilities * (weights / weights.sum())[parts.items]
    expected = [(mass[:, None] * (parts.snapshots == i)).sum() for i in range(4)]

    np.testing.assert_allclose(snapshot_marginal(counts, 3, weights=weights), expected, atol=1e-12)


def test_binary_snapshot_marginal_is_the_distribution_of_the_second_count() -> None:
    np.testing.assert_allclose(snapshot_marginal([[1, 2]], 2), [0, 2 / 3, 1 / 3], atol=1e-12)


def test_mean_from_the_marginal_is_the_mean_over_items() -> None:
    counts = np.random.default_rng(3).multinomial(4, [0.6, 0.3, 0.1], size=50)
    estimator = bernstein_estimator("shannon", 4, 3, side="upper")

    assert estimator.mean(snapshot_marginal(counts, 4)) == pytest.approx(
        estimator(counts).mean(), rel=1e-12
    )


# --- real labels
# ------------------------------------------------------------------------------------------


def real_labels(name: str) -> Array:
    folder = Path(os.environ["HOCAL_DATA"])
    if name == "cifar10h":
        counts = np.load(folder / "cifar10h" / "cifar10h-counts.npy")
    else:
        counts = np.load(folder / "chaosnli" / "chaosnli-snli.npz")["counts"].astype(np.int64)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def exact_marginal(p: Array, k: int) -> Array:
    return np.asarray(stats.binom.pmf(np.arange(k + 1), k, p[..., None]).mean(axis=0).sum(axis=0))


@needs_data
@pytest.mark.parametrize(
    ("name", "k", "lower", "upper"),
    [
        ("cifar10h", 2, 0.104, 0.247),
        ("cifar10h", 3, 0.109, 0.245),
        ("cifar10h", 5, 0.140, 0.208),
        ("cifar10h", 10, 0.152, 0.174),
        ("chaosnli", 2, 0.468, 0.637),
        ("chaosnli", 3, 0.484, 0.600),
        ("chaosnli", 5, 0.531, 0.570),
        ("chaosnli", 10, 0.549, 0.558),
    ],
)
def test_population_intervals_of_real_labels(name: str, k: int, lower: float, upper: float) -> None:
    """Intervals from the exact snapshot distributions of real labels, in nats: none is wider."""
    p = real_labels(name)
    marginal = exact_marginal(p, k)

    ends = [
        bernstein_estimator(
            "shannon", k, p.shape[1], side=side, reference=marginal, n_items=math.inf
        ).mean(marginal)
        for side in ("lower", "upper")
    ]

    assert lower - 6e-4 <= ends[0] <= lower + 2e-3
    assert upper - 2e-3 <= ends[1] <= upper + 6e-4
    assert ends[0] < Shannon().value(p).mean() < ends[1]


@needs_data
@pytest.mark.parametrize("k", [2, 3, 5, 10])
@pytest.mark.parametrize("name", ["cifar10h", "chaosnli"])
def test_population_intervals_are_nearly_those_of_the_extreme_mixtures(name: str, k: int) -> None:
    """The least and the largest E[H] of mixtures with the same counts, by a program over atoms.

    The other side of the same coin: no bound can be inside of what a mixture attains.
    """
    p = real_labels(name)
    marginal = exact_marginal(p, k)
    atoms = np.concatenate([simplex_points(p.shape[1])[::5], p[::40]])
    chances = stats.binom.pmf(np.arange(k + 1), k, atoms[..., None]).sum(axis=1)
    entropies = Shannon().value(atoms)
    for side, sign in (("lower", 1), ("upper", -1)):
        program = optimize.linprog(sign * entropies, A_eq=chances.T, b_eq=marginal)
        proven = bernstein_estimator(
            "shannon", k, p.shape[1], side=side, reference=marginal, n_items=math.inf
        ).mean(marginal)

        assert -1e-9 <= program.fun - sign * proven <= 0.01


@needs_data
def test_the_penalty_tames_the_statistic_at_a_small_price() -> None:
    p = real_labels("cifar10h")
    marginal, snapshots = exact_marginal(p, 10), np.random.default_rng(4).multinomial(10, p)
    wild, tame = (
        bernstein_estimator("shannon", 10, 10, side="upper", reference=marginal, n_items=n)
        for n in (math.inf, 500)
    )

    assert wild(snapshots).std() > 1.2
    assert tame(snapshots).std() < 0.4
    assert tame.mean(marginal) < wild.mean(marginal) + 0.02


# --- bad input
# ------------------------------------------------------------------------------------------


def test_an_order_above_an_items_labels_is_refused() -> None:
    with pytest.raises(ValueError, match=r"got order 3 with 2 labels in row 1"):
        factorial_moments([[2, 2], [1, 1]], [0, 3])


@pytest.mark.parametrize(
    ("exponents", "rule"),
    [
        ([0.5, 1], "must be whole numbers, got 0.5 in row 0"),
        ([-1, 2], "must be non-negative, got -1 in row 0"),
        (3, r"must have the shape \(n_classes,\) or \(n_moments, n_classes\), got \(\)"),
        ([[[1, 0]]], "must have the shape"),
        ([], "must have the shape"),
        ([[2**61, 2**61]], "must be at most 10,000, got 2,305,843,009,213,693,952"),
        ([1e30, 0], r"must be below 2\*\*62"),
    ],
)
def test_exponents_must_be_whole_vectors(exponents: Any, rule: str) -> None:
    with pytest.raises(hocal.InputError, match=f"`exponents` {rule}"):
        factorial_moments([[2, 2]], exponents)


def test_moments_of_high_order_are_numbers() -> None:
    """Of 200 labels of a class all are drawn: each product alone is beyond any float."""
    assert factorial_moments([[200, 0], [199, 1]], [200, 0]).tolist() == [1.0, 0.0]


def test_weights_must_match_the_items() -> None:
    with pytest.raises(
        ValueError, match="`weights` and `counts` must describe the same items, got 1 and 2 rows"
    ):
        average_moments([[2, 2], [1, 1]], [0, 1], weights=[1])


def test_too_few_moments_are_refused() -> None:
    with pytest.raises(ValueError, match="`moments` must reach order 3"):
        polynomial_estimator("shannon", 3).estimate([0.5, 0.3])


def test_a_high_degree_is_refused_with_the_stable_alternative() -> None:
    with pytest.raises(
        ValueError,
        match=r"`degree` must be an integer from 1 to 20, got 21\. Use bernstein_estimator",
    ):
        polynomial_estimator("shannon", 21)


def test_many_classes_need_an_entropy_that_is_a_sum() -> None:
    with pytest.raises(
        ValueError, match="`entropy` must be a sum over classes for n_classes=3, got 'zero-one'"
    ):
        bernstein_estimator("zero-one", 5, 3)


@pytest.mark.parametrize("side", ["minimax", "upper"])
def test_programs_that_no_memory_holds_are_refused_before_they_are_made(side: Side) -> None:
    with pytest.raises(ValueError, match=r"got 2e\+07 GB for a linear program over 1,000,000"):
        bernstein_estimator("shannon", 1_000_000, 2, side=side)


def test_programs_that_take_minutes_and_all_memory_are_refused() -> None:
    """They are held many times over while they are solved."""
    with pytest.raises(ValueError, match=r"`k` must need at most 4 GB, got 7\.3\d GB for a linear"):
        bernstein_estimator("shannon", 600, 3)


def test_a_ragged_reference_is_refused() -> None:
    with pytest.raises(hocal.InputError, match="`reference` must be an array, got rows of"):
        bernstein_estimator("shannon", 2, 3, side="upper", reference=[[1, 2], [3]])


@pytest.mark.parametrize("reference", [[1, 1], [1.0, 1.0, 0.5]])
def test_a_reference_of_the_wrong_size_or_sum_is_refused(reference: list[float]) -> None:
    with pytest.raises(ValueError, match=r"`reference` must hold k \+ 1 = 3 weights that sum to 3"):
        bernstein_estimator("shannon", 2, 3, side="upper", reference=reference)


def test_rows_with_another_total_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"`counts` must have k=2 labels in each row, got 3 in row 1"
    ):
        bernstein_estimator("brier", 2, 2)([[1, 1], [1, 2]])


def test_thinning_needs_enough_labels() -> None:
    with pytest.raises(ValueError, match="at least 3 labels in each row, got 2 in row 0"):
        snapshot_marginal([[1, 1]], 3)


def test_an_unknown_side_is_refused() -> None:
    with pytest.raises(
        ValueError, match="`side` must be one of 'minimax', 'upper', 'lower', got 'both'"
    ):
        bernstein_estimator("shannon", 2, 3, side="both")  # type: ignore[arg-type]


# Disagreement of pairs


def test_disagreement_is_the_share_of_pairs_that_differ() -> None:
    labels = [0, 0, 1, 2, 2, 2]
    pairs = list(itertools.permutations(labels, 2))

    assert pair_disagreement([[2, 1, 3]])[0] == sum(a != b for a, b in pairs) / len(pairs)


def test_disagreement_is_unbiased_for_brier_uncertainty() -> None:
    """The sum over all 3-snapshots, each with its multinomial probability."""
    p = np.array([0.2, 0.3, 0.5])
    snapshots = enumerate_snapshots(3, 3)
    expected = stats.multinomial(3, p).pmf(snapshots) @ pair_disagreement(snapshots)

    assert expected == pytest.approx(1 - np.square(p).sum(), abs=1e-12)


def test_disagreement_equals_the_factorial_moments() -> None:
    counts = np.random.default_rng(0).integers(1, 6, (20, 3))

    np.testing.assert_allclose(
        pair_disagreement(counts), 1 - factorial_moments(counts, 2 * np.eye(3)).sum(axis=1)
    )


def test_disagreement_needs_two_labels() -> None:
    assert np.isnan(pair_disagreement([[1, 0], [0, 0], [0, 2]])).tolist() == [True, True, False]


def test_sparse_counts_disagree_as_dense_ones_do() -> None:
    counts = np.random.default_rng(0).integers(0, 3, (30, 5))

    np.testing.assert_array_equal(
        pair_disagreement(sparse.csr_array(counts)), pair_disagreement(counts)
    )
