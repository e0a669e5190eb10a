"""Certified balls: unbiased squared errors, their limit, and how often balls hold the truth."""

import numpy as np
import pytest

import hocal
from hocal import Mixtures
from hocal.guarantees import certified_set
from hocal.guarantees.certified_sets import (
    BEST_ERROR,
    FARTHEST,
    WORST_ERROR,
    SquaredErrors,
    squared_errors,
)
from hocal.uncertainty.snapshots import enumerate_snapshots

SEED = 20240612


@pytest.mark.parametrize("k", [2, 3, 4])
def test_estimated_squared_errors_are_unbiased(k: int) -> None:
    """Summed over all snapshots of k labels with their probabilities."""
    truth, mean = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.2, 0.7])
    snapshots = np.asarray(enumerate_snapshots(k, 3))
    mixture = Mixtures.from_points(truth[None]).project(k)
    order = [
        int(np.flatnonzero((snapshots == k * point).all(axis=1))[0]) for point in mixture.points
    ]

    values = squared_errors(np.tile(mean, (len(snapshots), 1)), snapshots)

    assert values[order] @ mixture.weights == pytest.approx(((truth - mean) ** 2).sum())


def test_estimated_squared_errors_stay_in_their_range() -> None:
    generator = np.random.default_rng(SEED)
    means = generator.dirichlet(np.full(4, 0.1), size=5000)
    counts = generator.multinomial(2, np.full(4, 0.25), size=5000)

    values = squared_errors(means, counts)

    assert values.min() >= BEST_ERROR
    assert values.max() <= WORST_ERROR


def test_one_label_says_nothing_of_the_squared_error() -> None:
    assert np.isnan(squared_errors(np.array([[0.5, 0.5]]), np.array([[1, 0]]))).all()


def test_without_a_second_label_no_ball_is_certified() -> None:
    mixtures = Mixtures.from_points([[0.5, 0.5]] * 3)

    with pytest.raises(hocal.InputError, match="must have items with two labels or more"):
        certified_set(mixtures, (mixtures, [[1, 0]] * 3))


def test_rounding_up_keeps_few_values_and_never_lowers_one() -> None:
    generator = np.random.default_rng(SEED)
    errors = generator.normal(0, 1, 50_000)

    kept = SquaredErrors.of(errors, np.full(50_000, 0.1))
    plain = errors / (0.1 + kept.unit)

    assert len(kept.values) < 15_000
    mean = kept.repeats @ kept.values / kept.n_items
    assert plain.mean() <= mean <= plain.mean() + 2e-3 * np.abs(plain).mean()


def test_balls_of_surer_mixtures_are_smaller() -> None:
    mixtures = Mixtures.from_ensemble([[[0.5, 0.5], [0.5, 0.5]], [[0.9, 0.1], [0.1, 0.9]]] * 500)
    counts = [[2, 0], [0, 2], [1, 1], [1, 1], [0, 2], [2, 0], [1, 1], [2, 0]] * 125

    sets = certified_set(mixtures[:2], (mixtures, counts), coverage=0.5)

    assert sets.radius[0] < sets.radius[1] < FARTHEST


def test_more_coverage_and_more_confidence_need_larger_balls() -> None:
    mixtures = Mixtures.from_points([[0.5, 0.5]] * 400)
    calibration = (mixtures, [[1, 1], [2, 0], [0, 2], [1, 1]] * 100)

    plain, sure, surer = (
        certified_set(mixtures[:1], calibration, coverage=coverage, confidence=confidence).radius[0]
        for coverage, confidence in ((0.5, 0.9), (0.8, 0.9), (0.8, 0.99))
    )

    assert plain < sure < surer


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("delta", [0.05, 0.1])
def test_the_limit_of_the_mean_error_fails_as_rarely_as_promised(k: int, delta: float) -> None:
    """400 worlds of 150 items; predictions are right for nine items in ten, far off for one."""
    generator = np.random.default_rng(SEED)
    n_worlds, n_items = 400, 150
    shape = (n_worlds, n_items)
    means = generator.dirichlet([2, 1, 0.5], size=shape)
    off = generator.random(shape) < 0.1
    truth = np.where(off[..., None], generator.dirichlet([0.1, 0.1, 0.1], size=shape), means)
    counts = generator.multinomial(k, truth)
    expected = np.full(n_items, 0.05)
    unit = SquaredErrors.of(np.zeros(n_items), expected).unit
    true_mean = (((truth - means) ** 2).sum(axis=-1) / (0.05 + unit)).mean()

    limits = np.array(
        [
            SquaredErrors.of(squared_errors(*world), expected).limit(delta)
            for world in zip(means, counts, strict=True)
        ]
    )

    failures = (limits < true_mean).mean()
    assert failures <= delta + 3 * np.sqrt(delta / n_worlds)
    assert np.median(limits) < WORST_ERROR / (0.05 + unit) / 2  # and they say something
