"""Headroom and comparisons keep their promise: failure rates over worlds with known truth."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from hocal.decisions.comparison import share_closed
from hocal.decisions.gains import ModelLosses, headroom
from hocal.decisions.losses import Judged
from hocal.uncertainty.entropy import get_entropy

pytestmark = pytest.mark.slow

Array = NDArray[np.float64]
WORLDS = ["point mass", "certain", "rare doubt", "rare labels", "dirichlet"]
REPEATS = {20: 40, 200: 20, 2000: 8}
LEAST = 1e-3  # predicted probability; one item in a hundred has a true class with that little
TRUTH_ITEMS = 100_000
ROUNDING = 2e-3  # of a truth from that many items


class Items(NamedTuple):
    """Label distributions and what two models predict."""

    truth: Array
    first: Array
    second: Array


def draw_items(name: str, n_classes: int, size: int, generator: np.random.Generator) -> Items:
    """Draw items of a world; the first model is sometimes badly wrong, the second vague."""
    truth = distributions(name, n_classes, size, generator)
    noisy = 0.7 * truth + 0.3 * generator.dirichlet(np.ones(n_classes), size)
    wrong = np.full((size, n_classes), (1 - LEAST) / (n_classes - 1))
    wrong[np.arange(size), truth.argmax(axis=1)] = LEAST
    first = np.where(generator.random((size, 1)) < 0.01, wrong, noisy)
    second = 0.8 * truth + 0.2 / n_classes
    return Items(truth, *(smooth(model) for model in (first, second)))


def distributions(name: str, n_classes: int, size: int, generator: np.random.Generator) -> Array:
    eye = np.eye(n_classes)
    if name == "point mass":
        weights = np.arange(1.0, n_classes + 1)
        return np.tile(weights / weights.sum(), (size, 1))
    if name == "certain":
        return np.asarray(eye[generator.integers(0, n_classes, size)])
    if name == "rare doubt":
        rare = generator.random((size, 1)) < 0.01
        return np.asarray(np.where(rare, 1 / n_classes, eye[0]))
    if name == "rare labels":
        return np.tile(0.99 * eye[0] + 0.01 / n_classes, (size, 1))
    return np.asarray(generator.dirichlet(np.full(n_classes, 1 / n_classes), size))


def smooth(probabilities: Array) -> Array:
    """Move predictions away from 0, to a floor that is known."""
    n_classes = probabilities.shape[1]
    least = LEAST / n_classes
    return np.asarray((1 - n_classes * least) * probabilities + least)


def true_values(items: Items, loss: str) -> dict[str, float]:
    """Return what the intervals are about, from many items."""
    kind = get_entropy({"log": "shannon", "brier": "brier"}[loss])
    losses = [expected_loss(items.truth, model, loss).mean() for model in items[1:]]
    floor = kind.value(items.truth).mean()
    top = items.first.argmax(axis=1)
    error = 1 - items.truth[np.arange(len(top)), top].mean()
    least = 1 - items.truth.max(axis=1).mean()
    return {
        "loss": losses[0],
        "irreducible": floor,
        "remaining": losses[0] - floor,
        "difference": losses[1] - losses[0],
        "share closed": (losses[0] - losses[1]) / (losses[0] - floor),
        "error": error,
        "least error": least,
        "remaining error": error - least,
    }


def expected_loss(truth: Array, model: Array, loss: str) -> Array:
    if loss == "log":
        return np.asarray(-(truth * np.log(model)).sum(axis=1))
    return np.asarray(1 - 2 * (truth * model).sum(axis=1) + (model**2).sum(axis=1))


def limits(items: Items, counts: NDArray[np.int64], loss: str, delta: float) -> dict[str, Array]:
    """Return the limits of each quantity, as `headroom` and `compare` compute them."""
    judged = Judged.of(counts).advised(items.first, items.second)
    floor = LEAST / counts.shape[1]
    one = ModelLosses.of(items.first, "first", judged, loss, floor)
    other = ModelLosses.of(items.second, "second", judged, loss, floor)
    everything = judged.everything
    bounds = one.entropy_bounds(len(counts))
    difference = other.losses - one.losses
    found = {
        "loss": one.losses.limits(delta, everything, judged.advises),
        "irreducible": one.irreducible_limits(everything, bounds, delta),
        "remaining": one.remaining_limits(everything, bounds, delta),
        "difference": difference.limits(delta, everything, judged.advises),
    }
    hits = one.with_loss("accuracy")
    bounds_of_hits = hits.entropy_bounds(len(counts))
    found |= {
        "error": hits.losses.limits(delta, everything, judged.advises),
        "least error": hits.irreducible_limits(everything, bounds_of_hits, delta),
        "remaining error": hits.remaining_limits(everything, bounds_of_hits, delta),
    }
    gap = difference.interval(delta / 2, everything, judged.advises)
    left = one.remaining_limits(everything, bounds, delta / 2)
    found["share closed"] = share_closed(gap, left, math.nan)[1:]
    return {name: np.array(ends) for name, ends in found.items()}


def failures(
    name: str, n_classes: int, n_items: int, k: int, loss: str, delta: float, repeats: int
) -> tuple[Counter[str], dict[str, float]]:
    """Count the intervals that miss the truth, and return their mean widths."""
    seed = [WORLDS.index(name), n_classes, n_items, k, len(loss), round(100 * delta)]
    generator = np.random.default_rng(seed)
    many = TRUTH_ITEMS // max(n_classes // 5, 1)
    truth = true_values(draw_items(name, n_classes, many, generator), loss)
    missed: Counter[str] = Counter()
    widths = dict.fromkeys(truth, 0.0)
    for _ in range(repeats):
        items = draw_items(name, n_classes, n_items, generator)
        counts = generator.multinomial(k, items.truth)
        for quantity, (lower, upper) in limits(items, counts, loss, delta).items():
            value = truth[quantity]
            missed[quantity] += not lower - ROUNDING <= value <= upper + ROUNDING
            widths[quantity] += (upper - lower) / repeats
    return missed, widths


def allowed(trials: int, delta: float) -> float:
    """Return the mean plus three standard deviations of the failures that delta allows."""
    return delta * trials + 3 * math.sqrt(delta * (1 - delta) * trials)


@pytest.mark.parametrize("delta", [0.05, 0.1])
@pytest.mark.parametrize("loss", ["log", "brier"])
@pytest.mark.parametrize("n_classes", [2, 10, 50])
@pytest.mark.parametrize("name", WORLDS)
def test_no_interval_fails_more_often_than_it_may(
    name: str, n_classes: int, loss: str, delta: float
) -> None:
    """Each number of items on its own, so that a bad one cannot hide."""
    for n_items, repeats in REPEATS.items():
        k = {20: 5, 200: 2, 2000: 3}[n_items]
        missed, _ = failures(name, n_classes, n_items, k, loss, delta, repeats)
        assert max(missed.values()) <= allowed(repeats, delta), (n_items, missed)


@pytest.mark.parametrize("loss", ["log", "brier"])
def test_intervals_of_predicted_classes_hold_with_any_numbers_of_labels(loss: Any) -> None:
    """Each class is a promise of its own; items have one to five labels."""
    generator = np.random.default_rng(7)
    many = draw_items("dirichlet", 3, TRUTH_ITEMS, generator)
    top = many.first.argmax(axis=1)
    truth = {j: true_values(Items(*(x[top == j] for x in many)), loss) for j in range(3)}
    missed: Counter[tuple[int, str]] = Counter()
    for _ in range(60):
        items = draw_items("dirichlet", 3, 300, generator)
        counts = generator.multinomial(generator.integers(1, 6, 300), items.truth)
        found = headroom(items.first, counts, loss=loss, confidence=0.9, floor=LEAST / 3)
        for j, part in found.per_class.items():
            for quantity in ("loss", "irreducible", "remaining"):
                _, lower, upper = getattr(part, quantity)
                value = truth[j][quantity]
                missed[j, quantity] += not lower - ROUNDING <= value <= upper + ROUNDING
    assert max(missed.values()) <= allowed(60, 0.1), missed
