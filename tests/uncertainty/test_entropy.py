"""Entropies, the losses and divergences they induce, and their moduli of continuity."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import reference
from hocal._base.typing import Array
from hocal.uncertainty.decomposition import decompose
from hocal.uncertainty.entropy import (
    Brier,
    Custom,
    Entropy,
    Ordinal,
    Shannon,
    Spherical,
    Tsallis,
    ZeroOne,
    get_entropy,
)
from hocal.uncertainty.mixtures import Mixtures
from hocal.uncertainty.moments import pair_disagreement
from hocal.uncertainty.own_entropy import least_concave_majorant
from strategies import label_distributions, pairs_of_distributions, seeds

ENTROPIES: list[Entropy] = [
    Shannon(),
    Shannon(base=2),
    Brier(),
    Brier(scale=2),
    Tsallis(0.5),
    Tsallis(1.5),
    Tsallis(3),
    ZeroOne(),
    Spherical(),
    Ordinal(),
]
SLOW: list[tuple[Entropy, Callable[[Any], float]]] = [
    (Shannon(), reference.shannon),
    (Shannon(base=2), functools.partial(reference.shannon, base=2)),
    (Brier(), reference.brier),
    (Brier(scale=3), lambda p: 3 * reference.brier(p)),
    (Tsallis(0.5), functools.partial(reference.tsallis, order=0.5)),
    (Tsallis(3), functools.partial(reference.tsallis, order=3)),
    (ZeroOne(), reference.zero_one),
    (Spherical(), reference.spherical),
    (Ordinal(), reference.ordinal),
]
each_entropy = pytest.mark.parametrize("entropy", ENTROPIES, ids=str)
each_of_unordered_classes = pytest.mark.parametrize(
    "entropy", [entropy for entropy in ENTROPIES if entropy.symmetric], ids=str
)


def gini(p: Array) -> Array:
    """Return the Brier entropy the way a user would write it."""
    return 1 - np.square(p).sum(axis=-1)


def binary_entropy(t: float) -> float:
    """Return H_b(t) in nats."""
    return reference.shannon([t, 1 - t])


# Closed forms


def test_a_fair_coin_has_one_bit() -> None:
    assert Shannon(base=2).value([0.5, 0.5]) == 1


def test_shannon_is_in_nats_unless_told_otherwise() -> None:
    assert Shannon().value([0.5, 0.5]) == pytest.approx(math.log(2), abs=1e-15)


@pytest.mark.parametrize(
    ("entropy", "largest"),
    [
        (Shannon(), math.log(4)),
        (Shannon(base=2), 2),
        (Brier(), 3 / 4),
        (Tsallis(3), (1 - 4**-2) / 2),
        (ZeroOne(), 3 / 4),
        (Spherical(), 1 / 2),
        (Ordinal(), 3 / 4),
        (Custom(gini), 3 / 4),
    ],
    ids=str,
)
def test_the_maximum_over_four_classes_is_known(entropy: Entropy, largest: float) -> None:
    assert entropy.maximum(4) == pytest.approx(largest, abs=1e-12)


@each_entropy
def test_a_certain_label_has_no_entropy(entropy: Entropy) -> None:
    assert entropy.value(np.eye(3)).tolist() == [0, 0, 0]


def test_a_certain_label_has_positive_zero_entropy() -> None:
    assert not np.signbit(Shannon().value([1, 0]))


def test_brier_with_scale_two_peaks_at_one_for_two_classes() -> None:
    assert Brier(scale=2).maximum(2) == 1


def test_tsallis_of_order_two_is_brier() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(5), 20)

    np.testing.assert_allclose(Tsallis(order=2).value(p), Brier().value(p), atol=1e-15)


def test_tsallis_tends_to_shannon() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(5), 20)

    np.testing.assert_allclose(Tsallis(order=1 + 1e-6).value(p), Shannon().value(p), atol=1e-5)


# Against the slow reference


@pytest.mark.parametrize(("entropy", "slow"), SLOW, ids=[str(entropy) for entropy, _ in SLOW])
@given(p=label_distributions())
def test_values_equal_the_slow_ones(
    entropy: Entropy, slow: Callable[[Any], float], p: Array
) -> None:
    assert entropy.value(p) == pytest.approx(slow(p), abs=1e-12)


@given(pair=pairs_of_distributions())
def test_shannon_divergence_is_kullback_leibler(pair: tuple[Array, Array]) -> None:
    assert Shannon().divergence(*pair) == pytest.approx(
        reference.kullback_leibler(*pair), abs=1e-12
    )


@given(pair=pairs_of_distributions())
def test_shannon_divergence_in_bits_is_divided_by_log_two(pair: tuple[Array, Array]) -> None:
    expected = Shannon().divergence(*pair) / math.log(2)

    assert Shannon(base=2).divergence(*pair) == pytest.approx(expected, abs=1e-12)


@given(pair=pairs_of_distributions())
def test_brier_divergence_is_the_squared_distance(pair: tuple[Array, Array]) -> None:
    assert Brier().divergence(*pair) == pytest.approx(reference.squared_distance(*pair), abs=1e-12)


def test_shannon_loss_is_the_cross_entropy() -> None:
    assert Shannon(base=2).loss([0.5, 0.5], [0.25, 0.75]) == pytest.approx(
        -0.5 * math.log2(0.25 * 0.75)
    )


@given(pair=pairs_of_distributions())
def test_zero_one_loss_is_the_error_rate_of_guessing_among_the_best(
    pair: tuple[Array, Array],
) -> None:
    truth, prediction = pair
    best = np.flatnonzero(prediction == prediction.max())

    assert ZeroOne().loss(truth, prediction) == pytest.approx(1 - truth[best].mean(), abs=1e-12)


# Properties


@each_of_unordered_classes
@given(p=label_distributions(3), seed=seeds)
def test_relabelling_classes_does_not_change_an_entropy(
    entropy: Entropy, p: Array, seed: int
) -> None:
    order = np.random.default_rng(seed).permutation(3)

    assert entropy.value(p[order]) == pytest.approx(float(entropy.value(p)), abs=1e-14)


def test_measures_that_treat_classes_differently_do_not_claim_to_be_symmetric() -> None:
    assert [entropy for entropy in ENTROPIES if not entropy.symmetric] == [Ordinal()]
    assert not Custom(gini).symmetric  # nobody knows


@each_of_unordered_classes
@given(pair=pairs_of_distributions(), seed=seeds)
def test_relabelling_classes_does_not_change_a_loss(
    entropy: Entropy, pair: tuple[Array, Array], seed: int
) -> None:
    order = np.random.default_rng(seed).permutation(len(pair[0]))
    relabelled = entropy.loss(pair[0][order], pair[1][order])

    assert relabelled == pytest.approx(float(entropy.loss(*pair)), abs=1e-12)


@each_entropy
@given(pair=pairs_of_distributions())
def test_loss_minus_entropy_is_the_divergence(entropy: Entropy, pair: tuple[Array, Array]) -> None:
    expected = entropy.loss(*pair) - entropy.value(pair[0])

    assert entropy.divergence(*pair) == pytest.approx(float(expected), abs=1e-12)


@each_entropy
@given(pair=pairs_of_distributions())
def test_a_divergence_is_not_negative(entropy: Entropy, pair: tuple[Array, Array]) -> None:
    assert entropy.divergence(*pair) >= -1e-14


@each_entropy
@given(p=label_distributions())
def test_the_truth_diverges_from_itself_by_nothing(entropy: Entropy, p: Array) -> None:
    assert entropy.divergence(p, p) == pytest.approx(0, abs=1e-14)


@each_entropy
@given(pair=pairs_of_distributions())
def test_the_loss_is_affine_in_the_truth(entropy: Entropy, pair: tuple[Array, Array]) -> None:
    """L(q||p) is the mean over labels drawn from q of the loss of predicting p."""
    truth, prediction = pair
    allowed = truth > 0
    of_labels = entropy.loss(np.eye(len(truth))[allowed], prediction)

    assert entropy.loss(truth, prediction) == pytest.approx(
        float(truth[allowed] @ of_labels), abs=1e-12
    )


@pytest.mark.parametrize("entropy", [e for e in ENTROPIES if not isinstance(e, ZeroOne)], ids=str)
@given(p=label_distributions(interior=True), seed=seeds)
def test_gradients_equal_central_differences(entropy: Entropy, p: Array, seed: int) -> None:
    direction = np.random.default_rng(seed).normal(size=len(p))
    direction -= direction.mean()  # stays on the simplex
    direction /= np.abs(direction).max()
    step = 1e-3 * p.min()
    numeric = (entropy.value(p + step * direction) - entropy.value(p - step * direction)) / (
        2 * step
    )

    assert entropy.gradient(p) @ direction == pytest.approx(float(numeric), rel=1e-4, abs=1e-5)


@each_entropy
def test_batches_equal_single_calls(entropy: Entropy) -> None:
    p, q = np.random.default_rng(0).dirichlet(np.ones(3), size=(2, 4, 5))
    single = [[float(entropy.divergence(p[i, j], q[i, j])) for j in range(5)] for i in range(4)]

    np.testing.assert_allclose(entropy.divergence(p, q), single, atol=1e-14)


@each_entropy
def test_one_truth_is_compared_with_many_predictions(entropy: Entropy) -> None:
    assert entropy.loss([0.2, 0.3, 0.5], np.full((4, 5, 3), 1 / 3)).shape == (4, 5)


@each_entropy
def test_skipping_the_check_does_not_change_a_number(entropy: Entropy) -> None:
    p, q = np.random.default_rng(1).dirichlet(np.ones(3), size=(2, 6))
    checked = [entropy.value(p), entropy.gradient(p), entropy.loss(p, q), entropy.divergence(p, q)]
    trusted = [
        entropy.value(p, check_input=False),
        entropy.gradient(p, check_input=False),
        entropy.loss(p, q, check_input=False),
        entropy.divergence(p, q, check_input=False),
    ]

    assert all(np.array_equal(a, b) for a, b in zip(checked, trusted, strict=True))


def test_a_value_does_not_change_its_input() -> None:
    p = np.array([0.25, 0.75])
    Shannon().value(p)

    assert p.tolist() == [0.25, 0.75]


# Infinities


@pytest.mark.parametrize("entropy", [Shannon(), Tsallis(0.5)], ids=str)
def test_excluding_a_label_that_comes_costs_infinitely_much(entropy: Entropy) -> None:
    assert entropy.divergence([0.5, 0.5], [1, 0]) == math.inf


@pytest.mark.parametrize("entropy", [Shannon(), Tsallis(0.5)], ids=str)
def test_excluding_a_label_that_never_comes_costs_nothing(entropy: Entropy) -> None:
    assert entropy.loss([1, 0], [1, 0]) == 0


@pytest.mark.parametrize("entropy", [Shannon(), Tsallis(0.5)], ids=str)
def test_the_slope_at_a_vertex_is_infinite(entropy: Entropy) -> None:
    assert entropy.gradient([1, 0])[1] == math.inf


@pytest.mark.parametrize("entropy", [Brier(), Tsallis(1.5), ZeroOne(), Spherical()], ids=str)
def test_bounded_entropies_have_finite_losses_everywhere(entropy: Entropy) -> None:
    assert np.isfinite(entropy.loss(np.eye(3)[:, None], np.eye(3))).all()


def test_ties_share_the_zero_one_gradient() -> None:
    assert ZeroOne().gradient([0.4, 0.4, 0.2]).tolist() == [-0.5, -0.5, 0]


def test_ordinal_divergence_is_the_squared_distance_of_cumulative_probabilities() -> None:
    assert Ordinal().divergence([1, 0, 0], [0, 0, 1]) == 2
    assert Ordinal().divergence([1, 0, 0], [0, 1, 0]) == 1


def test_ordinal_loss_is_the_ranked_probability_score() -> None:
    """Of the middle class against (.2, .3, .5): .2^2 + (1 - .5)^2."""
    assert Ordinal().loss([0, 1, 0], [0.2, 0.3, 0.5]) == pytest.approx(0.2**2 + 0.5**2)


def test_half_the_distance_of_two_labels_is_the_ordinal_entropy_on_average() -> None:
    p = np.array([0.2, 0.1, 0.4, 0.3])
    pairs = np.eye(4, dtype=int)[:, None] + np.eye(4, dtype=int)  # (first, second, n_classes)
    values = pair_disagreement(pairs.reshape(-1, 4), ordinal=True).reshape(4, 4)

    assert p @ values @ p == pytest.approx(float(Ordinal().value(p)))


def test_ordinal_aleatoric_uncertainty_of_a_uniform_beta_is_one_sixth() -> None:
    """E[p (1 - p)] for p ~ Beta(1, 1)."""
    p = (np.arange(2000) + 0.5) / 2000
    mixtures = Mixtures.from_ensemble(np.stack([p, 1 - p], axis=-1)[None])

    assert decompose(mixtures, "ordinal").aleatoric[0] == pytest.approx(1 / 6, abs=1e-6)


# Erratum E9: the loss is the gradient only up to a constant


def test_brier_loss_of_a_label_is_its_gradient_shifted_by_one_plus_the_squared_norm() -> None:
    p = np.array([0.2, 0.3, 0.5])
    losses = Brier().loss(np.eye(3), p)

    np.testing.assert_allclose(losses - Brier().gradient(p), 1 + p @ p, atol=1e-14)


def test_brier_loss_of_a_label_is_its_squared_distance() -> None:
    """The gradient alone, -2 p_j, would be negative."""
    assert Brier().loss([0, 1], [0.5, 0.5]) == pytest.approx(0.5, abs=1e-15)


# Moduli of continuity


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("distance", [0.0, 0.1, 0.7, 1.0, 1.3, 2.0])
def test_shannon_modulus_is_the_fannes_audenaert_bound(n_classes: int, distance: float) -> None:
    t = distance / 2
    low = binary_entropy(t) + t * math.log(n_classes - 1)
    expected = low if t <= 1 - 1 / n_classes else math.log(n_classes)

    assert Shannon().modulus(distance, n_classes) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("distance", [0.0, 0.1, 0.7, 1.0, 1.3, 2.0])
def test_brier_modulus_is_the_closed_form(n_classes: int, distance: float) -> None:
    t, top = distance / 2, 1 - 1 / n_classes
    expected = 2 * t - t**2 / top if t <= top else top

    assert Brier().modulus(distance, n_classes) == pytest.approx(expected, abs=1e-14)


def test_shannon_modulus_of_the_largest_distance_is_a_whole_bit() -> None:
    """Erratum E3: H_b(x) for all x would give 0 at k = 1, where the true gap is one bit."""
    assert Shannon(base=2).modulus(2.0, 2) == pytest.approx(1, abs=1e-15)


def test_shannon_modulus_does_not_fall_beyond_half_of_the_mass() -> None:
    """Erratum E3: H_b(3/4) is below log 2."""
    assert Shannon().modulus(1.5, 2) == pytest.approx(math.log(2), abs=1e-15)


def test_shannon_modulus_takes_l1_distances() -> None:
    """Erratum E4: moving probability x is an l1 distance of 2x, so H_b(d) would be a factor off."""
    assert Shannon().modulus(0.2, 2) == pytest.approx(binary_entropy(0.1), abs=1e-15)


@each_entropy
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_no_pair_exceeds_the_modulus(entropy: Entropy, n_classes: int) -> None:
    generator = np.random.default_rng(n_classes)
    p = np.concatenate([generator.dirichlet(np.full(n_classes, a), 2000) for a in (0.05, 0.5, 3)])
    target = np.concatenate([generator.dirichlet(np.full(n_classes, a), 3000) for a in (0.05, 1)])
    q = p + generator.random((len(p), 1)) * (target - p)
    distance = np.abs(p - q).sum(axis=1)
    far = distance > 1e-3  # below, rounding is as large as the gap
    gap = np.abs(entropy.value(p) - entropy.value(q))

    assert (gap <= entropy.modulus(distance, n_classes) + 1e-12)[far].all()


@pytest.mark.parametrize("moved", [0.05, 0.3, 0.5])
def test_the_ordinal_modulus_is_attained_from_end_to_end(moved: float) -> None:
    gap = float(Ordinal().value([1 - moved, 0, 0, moved]))

    assert Ordinal().modulus(2 * moved, 4) == pytest.approx(gap, abs=1e-12)


@each_of_unordered_classes
@pytest.mark.parametrize("moved", [0.05, 0.3, 0.6])
def test_the_modulus_is_attained_at_a_vertex(entropy: Entropy, moved: float) -> None:
    vertex, spread = np.array([1.0, 0, 0]), np.array([1 - moved, moved / 2, moved / 2])
    distance = np.abs(vertex - spread).sum()
    gap = entropy.value(spread) - entropy.value(vertex)

    assert entropy.modulus(distance, 3) == pytest.approx(float(gap), abs=1e-12)


@each_entropy
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_the_modulus_is_concave_on_the_whole_range(entropy: Entropy, n_classes: int) -> None:
    """Erratum E10: Jensen needs concavity everywhere, not for small distances only."""
    values = entropy.modulus(np.linspace(0, 2, 401), n_classes)

    assert (np.diff(values, 2) <= 1e-12).all()


@each_entropy
def test_no_distance_means_no_gap(entropy: Entropy) -> None:
    assert entropy.modulus(0.0, 3) == 0


@each_entropy
def test_the_modulus_ends_at_the_maximum(entropy: Entropy) -> None:
    assert entropy.modulus(2.0, 3) == pytest.approx(entropy.maximum(3), abs=1e-14)


@given(seed=seeds)
def test_the_least_concave_majorant_is_concave_and_above(seed: int) -> None:
    generator = np.random.default_rng(seed)
    x, y = np.sort(generator.random(12)), generator.normal(size=12)
    majorant = least_concave_majorant(x, y)
    slopes = np.diff(majorant) / np.diff(x)

    assert (majorant >= y - 1e-12).all()
    assert (np.diff(slopes) <= 1e-6 * np.abs(slopes).max()).all()


def test_the_least_concave_majorant_is_the_least() -> None:
    """Each value is the highest chord above it, over all pairs of points."""
    x, y = np.linspace(0, 1, 9), np.random.default_rng(3).normal(size=9)
    chords = [
        max(float(np.interp(x[i], x[[a, b]], y[[a, b]])) for a in range(i + 1) for b in range(i, 9))
        for i in range(9)
    ]

    np.testing.assert_allclose(least_concave_majorant(x, y), chords, atol=1e-12)


def test_a_concave_sequence_is_its_own_majorant() -> None:
    x = np.linspace(0, 1, 50)

    np.testing.assert_allclose(least_concave_majorant(x, np.sqrt(x)), np.sqrt(x), atol=1e-15)


# Entropies of the user


@pytest.mark.parametrize(
    "custom", [Custom(gini), Custom(gini, gradient=lambda p: -2 * p)], ids=["numeric", "given"]
)
@given(pair=pairs_of_distributions())
def test_a_custom_gini_has_briers_divergence(custom: Custom, pair: tuple[Array, Array]) -> None:
    assert custom.divergence(*pair) == pytest.approx(float(Brier().divergence(*pair)), abs=1e-7)


@given(p=label_distributions(3))
def test_numeric_gradients_are_right_along_the_simplex(p: Array) -> None:
    """Gradients on the simplex are known up to a constant; boundary points included."""
    difference = Custom(gini).gradient(p) - Brier().gradient(p)

    np.testing.assert_allclose(difference, difference[0], atol=1e-7)


def test_a_custom_shannon_has_shannons_loss_inside_the_simplex() -> None:
    custom = Custom(lambda p: Shannon().value(p, check_input=False))
    p, q = np.random.default_rng(0).dirichlet(np.full(3, 5), size=(2, 20))

    np.testing.assert_allclose(custom.loss(q, p), Shannon().loss(q, p), atol=1e-6)


def test_a_given_gradient_is_used() -> None:
    custom = Custom(gini, gradient=lambda p: np.full_like(p, 7.0))

    assert custom.gradient([0.5, 0.5]).tolist() == [7, 7]


@pytest.mark.parametrize(
    ("function", "n_classes", "largest"),
    [
        (lambda p: p[..., 0], 3, 1.0),
        (lambda p: 1 - np.abs(p[..., 0] - 0.9), 2, 1.0),
        (lambda p: np.minimum(2 * p[..., 0], 1 - p[..., 1]), 4, 1.0),
        (lambda p: gini(p) + 0.5 * p[..., 0], 3, 7 / 8),  # at (1/2, 1/4, 1/4)
        (lambda p: np.sqrt(p[..., 0]) + 2 * np.sqrt(p[..., 1]), 3, np.sqrt(5)),
    ],
)
def test_the_maximum_of_an_entropy_of_your_own_need_not_be_at_the_centre(
    function: Any, n_classes: int, largest: float
) -> None:
    assert Custom(function).maximum(n_classes) == pytest.approx(largest, abs=1e-6)


def test_an_entropy_that_treats_classes_differently_must_have_its_own_modulus() -> None:
    class First(Entropy):
        def _value(self, p: Array) -> Array:
            return np.sqrt(p[..., 0])

        def _gradient(self, p: Array) -> Array:
            return 0.5 / np.sqrt(p) * [1, 0]

    with pytest.raises(ValueError, match=r"modulus of its own, got First\. Override modulus"):
        First().modulus(0.1, 2)


def test_a_given_modulus_is_used() -> None:
    custom = Custom(gini, modulus=lambda distance, n_classes: distance * n_classes)

    assert custom.modulus(0.5, 3) == 1.5


@pytest.mark.parametrize("entropy", [Brier(), Shannon(), Spherical(), ZeroOne()], ids=str)
def test_the_grid_modulus_is_a_close_upper_bound(entropy: Entropy) -> None:
    distance = np.linspace(0, 2, 173)
    exact = entropy.modulus(distance, 2)
    bound = Custom(lambda p: entropy.value(p, check_input=False)).modulus(distance, 2)

    assert (bound >= exact - 1e-12).all()
    assert (bound <= exact + 0.01).all()


def test_the_grid_modulus_is_an_upper_bound_at_tiny_distances() -> None:
    custom = Custom(lambda p: Shannon().value(p, check_input=False))

    assert custom.modulus(2e-9, 2) >= Shannon().modulus(2e-9, 2)


def test_the_grid_modulus_is_made_concave() -> None:
    """Erratum E10: the raw modulus max(min(5t, .5), min(t, .9)) dents inwards at t = 1/2.

    There it is .5; the chord from (.1, .5) to (.9, .9) passes at .7.
    """
    dented = Custom(lambda p: np.minimum(5 * p[..., 0], np.minimum(0.5, 0.6 - p[..., 0])))

    assert dented.modulus(1.0, 2) == pytest.approx(0.7, abs=0.004)


def test_a_convex_function_is_refused() -> None:
    convex = Custom(lambda p: np.square(p).sum(axis=-1))

    with pytest.raises(
        ValueError,
        match=r"`value` must be concave, got -0\.5 below the chord .* Negate or correct it",
    ):
        convex.value([0.5, 0.5])


def test_a_function_convex_in_a_small_region_is_refused() -> None:
    """Concave but for a dent at the centre of three classes."""
    dented = Custom(lambda p: gini(p) - 0.5 * np.exp(-50 * np.square(p - 1 / 3).sum(axis=-1)))

    with pytest.raises(ValueError, match="`value` must be concave"):
        dented.loss([0.2, 0.3, 0.5], [0.5, 0.3, 0.2])


def test_a_function_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="`value` must be finite on the simplex"):
        Custom(lambda p: p[..., 0] * np.nan).value([0.5, 0.5])


def test_a_linear_function_is_concave() -> None:
    assert Custom(lambda p: p[..., 0]).value([0.25, 0.75]) == 0.25


def test_a_custom_value_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"`value` must map an array of shape .* Work over the last axis only"
    ):
        Custom(lambda p: p).value([0.5, 0.5])


def test_a_custom_gradient_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="`gradient` must"):
        Custom(gini, gradient=lambda p: -2 * p.sum(axis=-1)).loss(
            [[0.5, 0.5], [0.2, 0.8]], [0.4, 0.6]
        )


def test_the_gradient_of_a_convex_function_is_refused() -> None:
    with pytest.raises(ValueError, match="`value` must be concave"):
        Custom(lambda p: np.square(p).sum(axis=-1)).gradient([0.25, 0.75])


def test_the_modulus_of_a_convex_function_is_refused() -> None:
    with pytest.raises(ValueError, match="`value` must be concave"):
        Custom(lambda p: np.square(p).sum(axis=-1)).modulus(0.5, 2)


def test_a_callable_without_a_hash_is_accepted() -> None:
    class Gini:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, p: Array) -> Array:
            return gini(p)

    assert Custom(Gini()).value([0.5, 0.5]) == 0.5


def test_a_custom_modulus_for_three_classes_must_be_given() -> None:
    with pytest.raises(
        ValueError, match=r"`modulus` must be given for a Custom entropy .* got n_classes=3"
    ):
        Custom(gini).modulus(0.5, 3)


def test_a_custom_modulus_checks_the_number_of_classes() -> None:
    with pytest.raises(ValueError, match="`n_classes` must be an integer of at least 2, got 1"):
        Custom(gini).modulus(0.5, 1)


# Choosing an entropy


@pytest.mark.parametrize(
    ("name", "entropy"),
    [
        ("shannon", Shannon()),
        ("brier", Brier()),
        ("tsallis", Tsallis()),
        ("zero-one", ZeroOne()),
        ("spherical", Spherical()),
        ("ordinal", Ordinal()),
    ],
)
def test_entropies_go_by_name(name: str, entropy: Entropy) -> None:
    assert get_entropy(name) == entropy


def test_shannon_by_name_takes_a_base() -> None:
    assert get_entropy("shannon", base=2) == Shannon(base=2)


def test_an_entropy_object_is_used_as_it_is() -> None:
    custom = Custom(gini)

    assert get_entropy(custom) is custom


@pytest.mark.parametrize("name", ["renyi", 3, None, ["shannon"]])
def test_an_unknown_entropy_lists_the_known_ones(name: Any) -> None:
    with pytest.raises(ValueError, match=r"`entropy` must be one of 'shannon', 'brier', .* got"):
        get_entropy(name)


@pytest.mark.parametrize("entropy", ["brier", Shannon()])
def test_a_base_without_shannon_by_name_is_refused(entropy: Any) -> None:
    with pytest.raises(
        ValueError, match="`base` must be left out unless entropy='shannon', got base=2"
    ):
        get_entropy(entropy, base=2)


# Bad input


@pytest.mark.parametrize("base", [1, 0.5, -2, np.nan, "2", True])
def test_a_base_up_to_one_is_refused(base: Any) -> None:
    with pytest.raises(ValueError, match="`base` must be a number greater than 1, got"):
        Shannon(base=base)


@pytest.mark.parametrize("scale", [0, -1, np.nan, "1"])
def test_a_scale_up_to_zero_is_refused(scale: Any) -> None:
    with pytest.raises(ValueError, match="`scale` must be a number greater than 0, got"):
        Brier(scale=scale)


@pytest.mark.parametrize("order", [0, -1, np.nan])
def test_a_tsallis_order_up_to_zero_is_refused(order: Any) -> None:
    with pytest.raises(ValueError, match="`order` must be a number greater than 0, got"):
        Tsallis(order=order)


def test_tsallis_of_order_one_points_to_shannon() -> None:
    with pytest.raises(ValueError, match=r"`order` must not be 1, .* Use Shannon"):
        Tsallis(order=1)


@pytest.mark.parametrize(
    "make", [lambda: Shannon(np.inf), lambda: Brier(np.inf), lambda: Tsallis(np.inf)]
)
def test_an_infinite_parameter_is_refused(make: Callable[[], Entropy]) -> None:
    with pytest.raises(ValueError, match=r"must be .* got inf"):
        make()


@pytest.mark.parametrize(
    ("p", "message"),
    [
        ([0.5, 0.6], r"`p` must sum to 1 over the classes, got 1\.1"),
        ([1.5, -0.5], r"`p` must be non-negative numbers, got -0\.5"),
        ([np.nan, 1], "`p` must be non-negative numbers, got nan"),
        ([], "`p` must not be empty"),
        (["a", "b"], "`p` must be an array of numbers, got dtype <U1"),
    ],
)
def test_a_value_of_no_label_distribution_is_refused(p: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Shannon().value(p)


def test_a_gradient_of_no_label_distribution_is_refused() -> None:
    with pytest.raises(ValueError, match="`p` must sum to 1 over the classes, got 2"):
        Brier().gradient([1, 1])


def test_a_loss_names_the_prediction_it_refuses() -> None:
    with pytest.raises(ValueError, match="`prediction` must sum to 1 over the classes, got 2"):
        Brier().loss([0.5, 0.5], [1, 1])


def test_a_divergence_names_the_truth_it_refuses() -> None:
    with pytest.raises(ValueError, match="`truth` must sum to 1 over the classes, got 2"):
        Brier().divergence([1, 1], [0.5, 0.5])


def test_distributions_over_different_classes_have_no_loss() -> None:
    with pytest.raises(
        ValueError, match="`prediction` must have 2 classes on its last axis, got 3"
    ):
        Brier().loss([0.5, 0.5], [0.2, 0.3, 0.5])


def test_batches_that_do_not_fit_together_have_no_loss() -> None:
    with pytest.raises(ValueError, match="`prediction` must"):
        Brier().loss(np.full((3, 2), 0.5), np.full((4, 2), 0.5))


@pytest.mark.parametrize("entropy", [Shannon(), Custom(gini)], ids=["shannon", "custom"])
@pytest.mark.parametrize("distance", [-0.5, np.nan])
def test_a_modulus_of_a_bad_distance_is_refused(entropy: Entropy, distance: float) -> None:
    with pytest.raises(ValueError, match=f"`distance` must be non-negative, got {distance}"):
        entropy.modulus([0.1, distance], 2)


@pytest.mark.parametrize("n_classes", [1, 2.0, True, "2"])
def test_a_modulus_needs_two_classes(n_classes: Any) -> None:
    with pytest.raises(ValueError, match="`n_classes` must be an integer of at least 2, got"):
        Shannon().modulus(0.5, n_classes)


def test_a_maximum_needs_two_classes() -> None:
    with pytest.raises(ValueError, match="`n_classes` must be an integer of at least 2, got 1"):
        Shannon().maximum(1)


def test_entropies_are_frozen() -> None:
    with pytest.raises(AttributeError, match="cannot assign to field 'scale'"):
        Brier().scale = 2.0  # type: ignore[misc]
