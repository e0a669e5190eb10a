"""Certificates keep their promise: failure rates over simulated worlds with known mixtures."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hocal import Mixtures, decompose
from hocal.cells.partitions import CellLayout
from hocal.cells.statistics import CellStatistics
from hocal.guarantees.cell_uncertainty import (
    ENTROPIES,
    QUANTITIES,
    Sample,
    Target,
    advise,
    all_intervals,
    estimator_sizes,
)
from hocal.guarantees.certificates import Certificate, certify
from hocal.uncertainty.distance import wasserstein
from hocal.uncertainty.distinct_counts import compress

pytestmark = pytest.mark.slow

DELTA = 0.1
TARGETS = [Target(quantity, entropy) for entropy in ENTROPIES for quantity in QUANTITIES]
Array = NDArray[np.float64]


def world(name: str, n_classes: int, generator: np.random.Generator, size: int) -> Array:
    """Label distributions of `size` items of one cell."""
    eye = np.eye(n_classes)
    if name == "point mass":
        return np.tile(np.arange(1, n_classes + 1) / (n_classes * (n_classes + 1) / 2), (size, 1))
    if name == "two points at the ends":
        return eye[generator.integers(0, 2, size)]
    if name == "near a vertex":
        rare = generator.random(size) < 0.05
        return np.where(rare[:, None], 1 / n_classes, 0.99 * eye[0] + 0.01 / n_classes)
    if name == "rare doubt":
        return np.where(generator.random((size, 1)) < 0.02, 1 / n_classes, eye[0])
    if name == "beta":
        return generator.dirichlet(np.r_[0.8, np.full(n_classes - 1, 0.2)], size)
    if name == "uniform":
        return generator.dirichlet(np.ones(n_classes), size)
    p = 0.5 + 0.45 * np.sin(24 * np.pi * generator.random(size))  # "sine"
    return p[:, None] * eye[0] + (1 - p)[:, None] * (np.arange(n_classes) > 0) / (n_classes - 1)


WORLDS = [
    "point mass",
    "two points at the ends",
    "near a vertex",
    "rare doubt",
    "beta",
    "uniform",
    "sine",
]
SETTINGS: list[tuple[int, int | str]] = [
    (2, 3),
    (3, 5),
    (3, "ragged"),
    (10, 2),
    (10, 3),
    (10, 10),
    (50, 3),
]


TOTALS = {"ragged": [1, 2, 3, 5, 12]}


def draw(
    name: str, n_classes: int, n_items: int, k: int | str, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Label counts of items of one cell."""
    totals = np.full(n_items, k) if isinstance(k, int) else generator.choice(TOTALS[k], n_items)
    return generator.multinomial(totals, world(name, n_classes, generator, n_items))


def sample_of(counts: NDArray[np.int64]) -> Sample:
    packed = compress(counts)
    return Sample(np.asarray(packed.unique), packed.multiplicity.astype(np.float64))


@cache
def truth(name: str, n_classes: int) -> dict[Target, float]:
    """Uncertainty of a world from 100,000 of its items, known to about a thousandth."""
    mixture = Mixtures.from_ensemble(
        world(name, n_classes, np.random.default_rng(99), 100_000)[None]
    )
    parts = {entropy: decompose(mixture, entropy).as_dict() for entropy in ("shannon", "brier")}
    return {target: float(parts[target.entropy][target.quantity][0]) for target in TARGETS}


def misses(intervals: Any, values: dict[Target, float]) -> Counter[Target]:
    return Counter(
        key
        for key, v in values.items()
        if not intervals[key][0] - 2e-3 <= v <= intervals[key][1] + 2e-3
    )


def allowed(trials: int) -> float:
    """Return the mean plus three standard deviations of the failures that delta allows."""
    return DELTA * trials + 3 * math.sqrt(DELTA * (1 - DELTA) * trials)


@pytest.mark.parametrize(("n_classes", "k"), SETTINGS)
@pytest.mark.parametrize("name", WORLDS)
def test_no_interval_fails_more_often_than_it_may(name: str, n_classes: int, k: int | str) -> None:
    """Each setting on its own, so that a bad one cannot hide; with and without guess and advice."""
    generator = np.random.default_rng([WORLDS.index(name), n_classes, len(str(k)), k == 3])
    values = truth(name, n_classes)
    others = sample_of(draw(name, n_classes, 300, k, generator))
    sizes = estimator_sizes(others.totals)
    settings = [(20, 20, others, True), (150, 20, others, True), (60, 10, others, False)]
    settings += [(60, 10, None, False)]
    for n_items, repeats, advisers, guessed in settings:
        advice = advise(advisers, sizes, n_classes=n_classes, n_items=100, same_order=guessed)
        samples = [sample_of(draw(name, n_classes, n_items, k, generator)) for _ in range(repeats)]
        found = all_intervals(samples, [advice] * repeats, DELTA)
        missed: Counter[Target] = Counter()
        for row in range(repeats):
            missed += misses({target: each[row] for target, each in found.items()}, values)
        assert max(missed.values(), default=0) <= allowed(repeats), (n_items, missed)


@pytest.mark.parametrize("name", WORLDS)
def test_cells_that_advise_each_other_keep_the_promise(name: str) -> None:
    """The whole of certify: four alike cells, each advised by the other three."""
    values, missed, repeats = truth(name, 3), Counter[Target](), 6
    for seed in range(repeats):
        certificate = certificate_of(name, 3, 60, 3, seed=seed)
        for cell in range(4):
            ends = {target: certificate.limits[target][cell] for target in values}
            missed += misses(ends, values)
    assert max(missed.values(), default=0) <= allowed(4 * repeats), missed


def test_simultaneous_intervals_hold_for_all_cells_at_once() -> None:
    values, failed, repeats = truth("beta", 3), 0, 12
    for seed in range(repeats):
        certificate = certificate_of("beta", 3, 60, 3, seed=seed, simultaneous=True)
        lower, upper = certificate.interval("aleatoric")
        true = values[Target("aleatoric", "shannon")]
        failed += bool(((lower > true) | (upper < true)).any())
    assert failed <= allowed(repeats)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_epsilon_bounds_the_distance_to_the_true_snapshots(n_classes: int) -> None:
    missed = trials = 0
    for name in WORLDS:
        items = world(name, n_classes, np.random.default_rng(99), 2000)
        mixture = Mixtures.from_ensemble(items[None]).project(3)
        for seed in range(2):
            counts = draw(name, n_classes, 240, 3, np.random.default_rng(seed))
            predicted = Mixtures.from_snapshots(counts, np.arange(240) % 4).stored().project(3)
            certificate = certificate_of(name, n_classes, 60, 3, seed=seed)
            missed, trials = (
                missed + int((wasserstein(predicted, mixture) > certificate.epsilon).sum()),
                trials + 4,
            )
    assert missed <= allowed(trials)


def certificate_of(
    name: str, n_classes: int, n_items: int, k: int, *, seed: int, simultaneous: bool = False
) -> Certificate:
    """Certify the empirical mixtures of four cells of a world."""
    counts, cells = (
        draw(name, n_classes, 4 * n_items, k, np.random.default_rng(seed)),
        np.arange(4 * n_items) % 4,
    )
    predictions = np.tile(
        np.arange(n_classes, 0, -1) / (n_classes * (n_classes + 1) / 2), (len(counts), 1)
    )
    statistics = CellStatistics.from_items(
        predictions, counts, cells, CellLayout(np.arange(4), np.array([0, 0, 1, 1]))
    )
    mixtures = Mixtures.from_snapshots(counts, cells, n_cells=4).stored()
    return certify(statistics, mixtures, confidence=1 - DELTA, simultaneous=simultaneous)
