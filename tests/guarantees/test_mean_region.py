"""Regions of mean label distributions, and the least entropies in them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from hocal._base.typing import Array
from hocal.guarantees import mean_region
from hocal.guarantees.mean_region import (
    LOSS_MULTIPLIERS,
    MeanRegions,
    least_rests,
    mean_regions,
)
from hocal.guarantees.samples import Sample
from hocal.uncertainty.entropy import Brier, Shannon


def inside(mean: Array, radius: float, n_draws: int) -> Array:
    """Return label distributions of a region, by brute force."""
    generator = np.random.default_rng(0)
    near = generator.dirichlet(1 + 60 * mean, n_draws)
    return near[special.rel_entr(mean, near).sum(axis=1) <= radius]


@pytest.mark.parametrize("entropy", [Shannon(), Brier()])
def test_nothing_in_a_region_is_below_the_least_rest(entropy: Shannon | Brier) -> None:
    means = np.array([[0.7, 0.2, 0.1, 0.0], [0.4, 0.3, 0.2, 0.1]])
    radii = np.array([0.03, 0.05])
    losses = np.array([[0.0, 0.0, 0.0, 0.0], [0.3, 1.5, 2.5, 4.0]])

    found = least_rests(entropy.component, MeanRegions.of(means, radii), losses)

    for mean, radius, loss, bounds in zip(means, radii, losses, found, strict=True):
        points = inside(mean, radius, 20_000)
        lost = LOSS_MULTIPLIERS[:, None] * (points @ loss)
        rests = (entropy.component(points).sum(axis=1) - lost).min(axis=1)
        assert (rests >= bounds).all()
        assert rests == pytest.approx(bounds, abs=0.15)


def test_the_shares_of_a_region_lie_inside_their_limits() -> None:
    mean = np.array([0.7, 0.2, 0.1, 0.0])
    regions = MeanRegions.of(mean[None], np.array([0.03]))

    points = inside(mean, 0.03, 20_000)

    assert (points >= regions.low[0]).all()
    assert (points <= regions.high[0]).all()


@pytest.mark.parametrize("n_classes", [5, 40])
def test_many_cells_have_the_rests_that_each_has_alone(n_classes: int) -> None:
    """Of many classes, most were never seen and are alike."""
    generator = np.random.default_rng(4)
    means = generator.multinomial(30, generator.dirichlet(np.full(n_classes, 0.2), 60)) / 30
    radii = generator.random(60) / 20
    losses = generator.integers(1, 4, (60, n_classes)) / 2

    together = least_rests(Shannon().component, MeanRegions.of(means, radii), losses)

    for row in (0, 31, 59):
        own = slice(row, row + 1)
        region = MeanRegions.of(means[own], radii[own])
        alone = least_rests(Shannon().component, region, losses[own])
        assert together[own] == pytest.approx(alone, abs=1e-12)


def test_classes_that_are_alike_may_be_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    means = np.array([[0.6, 0.4] + [0.0] * 28])
    losses = np.array([[0.5, 1.0] + [3.0] * 28])
    regions = MeanRegions.of(means, np.array([0.04]))

    merged = least_rests(Shannon().component, regions, losses)
    monkeypatch.setattr(mean_region, "_FEW_CLASSES", 100)

    assert least_rests(Shannon().component, regions, losses) == pytest.approx(merged, abs=1e-12)


def test_a_region_shrinks_with_the_number_of_items() -> None:
    counts = np.array([[3, 0], [2, 1], [0, 3]])
    samples = [Sample(counts, scale * np.array([6.0, 3.0, 1.0])) for scale in (10, 100, 1000)]

    radii = mean_regions(samples, np.tile([0.6, 0.4], (3, 1)), 0.05).radius

    assert radii[0] > 5 * radii[1] > 25 * radii[2]


@pytest.mark.parametrize("k", [1, 4])
def test_regions_hold_the_mean_as_often_as_promised(k: int) -> None:
    """Items of their own label distributions; three standard errors."""
    generator = np.random.default_rng(k)
    truth = np.array([0.8, 0.15, 0.05])
    p = generator.dirichlet(0.5 * truth, (400, 100))
    samples = [Sample(counts, np.ones(100)) for counts in generator.multinomial(k, p)]

    regions = mean_regions(samples, np.tile([0.5, 0.3, 0.2], (400, 1)), 0.1)

    missed = special.rel_entr(regions.mean, truth).sum(axis=1) > regions.radius
    assert missed.sum() <= 400 * 0.1 + 3 * 6
