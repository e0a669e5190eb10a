"""Prediction sets keep their promise: coverage over worlds with known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

import hocal
from hocal.guarantees.certified_sets import FARTHEST, SquaredErrors, squared_errors
from hocal.uncertainty.label_sets import LabelScores, choose_labels

pytestmark = pytest.mark.slow

Array = NDArray[np.float64]
WORLDS = ["point mass", "certain", "rare doubt", "dirichlet"]
N_NEW = 200  # items on which a set is judged
LABELS = {20: 5, 200: 2, 2000: 10}  # per item, by the number of items
REPEATS = {20: 200, 200: 40, 2000: 6}


def draw_world(
    name: str, n_classes: int, size: int, generator: np.random.Generator
) -> tuple[Array, Array]:
    """Return label distributions, and predictions that are sure, and sometimes wrong."""
    eye = np.eye(n_classes)
    if name == "point mass":
        weights = np.arange(1.0, n_classes + 1)
        truth = np.tile(weights / weights.sum(), (size, 1))
    elif name == "certain":
        truth = eye[generator.integers(0, n_classes, size)]
    elif name == "rare doubt":
        truth = np.where(generator.random((size, 1)) < 0.02, 1 / n_classes, eye[0])
    else:
        truth = generator.dirichlet(np.full(n_classes, 1 / n_classes), size)
    noisy = (truth + 0.01) ** 1.5 * np.exp(generator.normal(0, 1, truth.shape))
    return truth, noisy / noisy.sum(axis=1, keepdims=True)


def generator_of(*setting: int) -> np.random.Generator:
    return np.random.default_rng([20240612, *setting])


@pytest.mark.parametrize("miss", [0.05, 0.1])
@pytest.mark.parametrize("n_classes", [2, 10, 50])
@pytest.mark.parametrize("name", WORLDS)
def test_sets_of_labels_hold_new_labels_as_often_as_promised(
    name: str, n_classes: int, miss: float
) -> None:
    """A mean over calibration sets and new items; each number of items on its own."""
    for n_items, repeats in REPEATS.items():
        generator = generator_of(WORLDS.index(name), n_classes, n_items, round(100 * miss))
        held = []
        for _ in range(repeats):
            truth, means = draw_world(name, n_classes, n_items + N_NEW, generator)
            counts = generator.multinomial(LABELS[n_items], truth[:n_items])
            scores = LabelScores.of(means[:n_items], counts)
            sets = choose_labels(means[n_items:], 1 - miss, scores)
            held.append(np.where(sets.members, truth[n_items:], 0).sum(axis=1).mean())
        noise = 3 * np.std(held) / math.sqrt(repeats)
        assert np.mean(held) >= 1 - miss - noise - 1e-9, n_items


@pytest.mark.parametrize("delta", [0.05, 0.1])
@pytest.mark.parametrize("n_classes", [2, 10, 50])
@pytest.mark.parametrize("name", WORLDS)
def test_the_squared_error_exceeds_its_limit_as_rarely_as_promised(
    name: str, n_classes: int, delta: float
) -> None:
    """Limits of means, which certified balls rest on; balls themselves hold far more."""
    for n_items, repeats in REPEATS.items():
        generator = generator_of(WORLDS.index(name), n_classes, n_items, round(100 * delta))
        truth, means = draw_world(name, n_classes, 20_000, generator)
        squares = ((truth - means) ** 2).sum(axis=1)
        expected = np.full(n_items, 0.05)
        unit = SquaredErrors.of(np.zeros(n_items), expected).unit
        true_mean = squares.mean() / (0.05 + unit)
        limits = []
        for _ in range(repeats // 2):
            rows = generator.integers(0, len(truth), n_items)
            counts = generator.multinomial(max(LABELS[n_items], 2), truth[rows])
            errors = SquaredErrors.of(squared_errors(means[rows], counts), expected)
            limits.append(errors.limit(delta))
        failures = (np.array(limits) < true_mean).sum()
        trials = len(limits)
        assert failures <= delta * trials + 3 * math.sqrt(delta * trials), n_items
        if n_items == 2000:  # of half of the items they say something
            assert np.sqrt(2 * np.mean(limits) * (0.05 + unit)) < FARTHEST


def test_sets_of_a_calibrator_hold_what_was_asked_though_folds_judge_them() -> None:
    held: dict[str, list[float]] = {"labels": [], "balls": []}
    for seed in range(8):
        generator = generator_of(seed)
        truth, means = draw_world("dirichlet", 3, 1300, generator)
        counts = generator.multinomial(3, truth)
        calibrator = hocal.SnapshotCalibrator().fit(means[:300], counts[:300])
        sets = calibrator.predict_set(means[300:], kind="labels", coverage=0.9)
        held["labels"].append(hocal.coverage(sets, label_distributions=truth[300:]))
        balls = calibrator.predict_set(means[300:], shape="certified", coverage=0.8)
        held["balls"].append(hocal.coverage(balls, label_distributions=truth[300:]))

    noise = 3 * np.std(held["labels"]) / math.sqrt(8)
    assert np.mean(held["labels"]) >= 0.9 - noise
    assert min(held["balls"]) >= 0.8
