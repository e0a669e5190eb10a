"""Mixtures that differ are told apart by a concave entropy, though by no symmetric one perhaps."""

import math

import numpy as np
import pytest

import hocal
from hocal import Mixtures
from hocal.uncertainty import Exponential, revealing_entropy

SEED = 20240612


def test_the_gradient_of_the_exponential_entropy_is_that_of_differences() -> None:
    entropy, p, step = Exponential((0.3, -1.0, 0.8)), np.array([0.2, 0.5, 0.3]), 1e-6
    move = np.array([1.0, -1.0, 0.0])

    rise = entropy.value(p + step * move) - entropy.value(p - step * move)

    assert entropy.gradient(p) @ move == pytest.approx(float(rise) / (2 * step), rel=1e-6)


def test_the_exponential_entropy_is_concave_and_never_negative() -> None:
    generator = np.random.default_rng(SEED)
    p, q = generator.dirichlet(np.ones(4), size=(2, 200))
    entropy = Exponential((1.0, -0.5, 0.2, 0.9))

    assert (entropy.divergence(p, q) >= -1e-12).all()
    assert (entropy.value(p) >= 0).all()


def test_equal_mixtures_have_no_revealing_entropy() -> None:
    mixtures = Mixtures.from_ensemble([[[0.2, 0.8], [0.7, 0.3]]])

    assert revealing_entropy(mixtures, mixtures).gap == pytest.approx(0, abs=1e-12)


def test_the_best_entropy_for_two_vertices_is_the_ends_of_the_box() -> None:
    """Sure of one class against sure of the other: |e^t0 - e^t1| is largest at 1 and -1."""
    first, second = (Mixtures.from_points([p]) for p in ([1, 0], [0, 1]))

    found = revealing_entropy(first, second)

    assert abs(found.gap) == pytest.approx(math.e - 1 / math.e)
    assert sorted(found.entropy.direction) == pytest.approx([-1, 1])


def test_the_gap_is_that_of_the_decompositions() -> None:
    predicted, truth = Mixtures.from_points([[0.5, 0.5]]), Mixtures.from_vertices([[0.5, 0.5]])

    found = revealing_entropy(predicted, truth)

    parts = [hocal.decompose(m, found.entropy).aleatoric[0] for m in (predicted, truth)]
    assert [found.predicted, found.truth] == pytest.approx(parts)
    assert found.gap == pytest.approx(parts[0] - parts[1])


def test_no_direction_of_a_fine_grid_shows_a_larger_gap() -> None:
    generator = np.random.default_rng(SEED)
    predicted, truth = (
        Mixtures.from_ensemble(generator.dirichlet(np.ones(3), size=(1, 5))) for _ in range(2)
    )
    axis = np.linspace(-1, 1, 21)
    grid = np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3)

    slow = np.abs(
        np.exp(predicted.points @ grid.T).mean(axis=0) - np.exp(truth.points @ grid.T).mean(axis=0)
    ).max()

    assert abs(revealing_entropy(predicted, truth).gap) >= slow - 1e-9


def test_mixtures_with_the_same_two_moments_are_told_apart() -> None:
    """Probabilities 0, 1/2, 1 with weights 1/6, 2/3, 1/6, and 1/2 -+ 1/sqrt 12: variance 1/12."""
    wide = Mixtures([[0, 1], [0.5, 0.5], [1, 0]], [1 / 6, 2 / 3, 1 / 6], [0, 3], [0])
    ends = 0.5 + np.array([-1, 1]) / math.sqrt(12)
    narrow = Mixtures.from_ensemble(np.stack([ends, 1 - ends], axis=-1)[None])
    brier = [hocal.decompose(m, "brier").aleatoric[0] for m in (wide, narrow)]

    small, large = (abs(revealing_entropy(wide, narrow, bound=bound).gap) for bound in (1, 4))

    assert brier[0] == pytest.approx(brier[1])
    assert 1e-4 < small < large


@pytest.mark.parametrize("direction", [(1.0, 0.0, 0.5), (-2.0, 3.0, 0.1, 0.0), (0.4, 0.4)])
def test_no_pair_exceeds_the_modulus_of_the_exponential_entropy(
    direction: tuple[float, ...],
) -> None:
    generator = np.random.default_rng(SEED)
    n_classes = len(direction)
    entropy = Exponential(direction)
    p, q = generator.dirichlet(np.full(n_classes, 0.3), size=(2, 5_000))
    near = q + generator.random((5_000, 1)) * (p - q)

    gap = np.abs(entropy.value(near) - entropy.value(q))

    distance = np.abs(near - q).sum(axis=1)
    assert (gap <= entropy.modulus(distance, n_classes) + 1e-12).all()


@pytest.mark.parametrize("moved", [0.0, 0.1, 0.6, 1.0])
def test_the_modulus_of_the_exponential_entropy_is_attained(moved: float) -> None:
    entropy = Exponential((1.0, 0.0, 0.5))

    gap = entropy.value([1 - moved, moved, 0]) - entropy.value([1, 0, 0])

    assert entropy.modulus(2 * moved, 3) == pytest.approx(float(gap), abs=1e-12)


def test_the_maximum_of_the_exponential_entropy_is_at_its_smallest_direction() -> None:
    entropy = Exponential((1.0, -0.5, 0.2))
    points = np.random.default_rng(SEED).dirichlet(np.full(3, 0.3), 2_000)

    assert entropy.maximum(3) == pytest.approx(float(entropy.value([0, 1, 0])), abs=1e-12)
    assert entropy.value(points).max() <= entropy.maximum(3)


def test_an_exponential_entropy_knows_its_number_of_classes() -> None:
    with pytest.raises(hocal.InputError, match=r"`n_classes` must be 2, as many as .* got 3"):
        Exponential((0.0, 1.0)).maximum(3)


@pytest.mark.parametrize("entropy", ["shannon", "brier", "tsallis", "zero-one", "spherical"])
def test_symmetric_entropies_do_not_see_exchanged_classes(entropy: str) -> None:
    points = np.random.default_rng(SEED).dirichlet(np.ones(3), size=(1, 6))
    truth, exchanged = (
        Mixtures.from_ensemble(points),
        Mixtures.from_ensemble(points[..., [1, 2, 0]]),
    )

    parts = [hocal.decompose(mixtures, entropy).aleatoric[0] for mixtures in (truth, exchanged)]

    assert parts[0] == pytest.approx(parts[1])
    assert abs(revealing_entropy(exchanged, truth).gap) > 0.05
    assert hocal.wasserstein(truth, exchanged)[0] > 0.1


@pytest.mark.parametrize(
    ("predicted", "truth", "message"),
    [
        ([[0.5, 0.5]] * 2, [[0.5, 0.5]], "`predicted` must be the mixture of one item, got 2"),
        ([[0.5, 0.5]], [[0.5, 0.25, 0.25]], "`truth` must have 2 classes, got 3"),
    ],
)
def test_bad_input_is_refused(predicted: object, truth: object, message: str) -> None:
    with pytest.raises(hocal.InputError, match=message):
        revealing_entropy(*map(Mixtures.from_points, (predicted, truth)))  # type: ignore[arg-type]
