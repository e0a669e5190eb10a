"""The bound by scales: its cells, their widths, and simulated distances below it."""

import math

import numpy as np
import pytest

import hocal
from hocal.guarantees import epsilon_bound, sample_size
from hocal.guarantees.dyadic import dyadic_expectation, n_cells, width
from hocal.uncertainty.snapshots import n_snapshots

SEED = 20240612


@pytest.mark.parametrize(("n_classes", "scale"), [(2, 3), (3, 1), (3, 3), (4, 2), (5, 1)])
def test_cells_are_counted_as_random_points_find_them(n_classes: int, scale: int) -> None:
    points = np.random.default_rng(SEED).dirichlet(np.ones(n_classes), size=200_000)

    found = np.unique(np.floor(points * 2**scale).astype(int), axis=0)

    assert len(found) == n_cells(scale, n_classes)


@pytest.mark.parametrize(("n_classes", "scale"), [(3, 2), (4, 2), (5, 2)])
def test_points_of_a_cell_are_no_farther_apart_than_its_width(n_classes: int, scale: int) -> None:
    points = np.random.default_rng(SEED).dirichlet(np.ones(n_classes), size=100_000)
    cells, owner = np.unique(np.floor(points * 2**scale).astype(int), axis=0, return_inverse=True)
    order = np.argsort(owner.ravel(), kind="stable")
    same = owner.ravel()[order][1:] == owner.ravel()[order][:-1]

    apart = np.abs(np.diff(points[order], axis=0)).sum(axis=1)[same]

    assert len(cells) > 1
    assert apart.max() <= width(scale, n_classes)
    assert apart.max() > 0.4 * width(scale, n_classes)


def test_it_is_the_obvious_sum_for_the_best_number_of_scales() -> None:
    n, k, n_classes = 500, 60, 3
    m = n_snapshots(k, n_classes)

    def with_scales(finest: int) -> float:
        spread = [math.sqrt((n_cells(j, n_classes) - 1) / n) for j in range(1, finest + 1)]
        steps = [(0.5 if j == 1 else 1) * width(j - 1, n_classes) for j in range(1, finest + 1)]
        last = (0.5 if finest == 0 else 1) * width(finest, n_classes)
        rest = math.sqrt((m - 1) / n) if finest == 0 else min(1, math.sqrt((m - 1) / n))
        return float(np.dot(steps, spread) + last * rest)

    assert dyadic_expectation(n, k, n_classes) == pytest.approx(
        min(with_scales(j) for j in range(12))
    )


@pytest.mark.parametrize("k", [5, 40])
def test_distances_of_samples_lie_below_the_bound(k: int) -> None:
    """A smooth mixture over three classes; the truth is a sample a hundred times as large."""
    generator = np.random.default_rng(SEED)
    n_items = 60

    def sample(size: int) -> hocal.Mixtures:
        counts = generator.multinomial(k, generator.dirichlet(np.ones(3), size=size))
        return hocal.Mixtures.from_ensemble((counts / k)[None])

    truth = sample(2000)
    distances = [hocal.wasserstein(sample(n_items), truth)[0] for _ in range(5)]

    assert 0.05 < np.mean(distances) < dyadic_expectation(n_items, k, 3)


def test_it_is_used_where_snapshots_are_many() -> None:
    few, many = epsilon_bound(1000, 0.05, 10, 3), epsilon_bound(1000, 0.05, 200, 3)

    assert few.method != "dyadic"
    assert many.method == "dyadic"
    assert not many.vacuous
    assert many.value < 0.7


def test_the_sample_size_is_the_smallest_that_the_bound_allows() -> None:
    n_items = sample_size(0.5, 0.05, 200, 3)

    assert epsilon_bound(n_items, 0.05, 200, 3).value <= 0.5
    assert epsilon_bound(n_items - 1, 0.05, 200, 3).value > 0.5
    assert n_items < sample_size(0.5, 0.05, 200, 3, method="paper") / 20


@pytest.mark.parametrize(("n_classes", "first"), [(3, 15), (5, 8)])
def test_from_how_many_labels_it_is_the_smallest_is_as_documented(
    n_classes: int, first: int
) -> None:
    methods = [epsilon_bound(1000, 0.05, k, n_classes).method for k in (first - 1, first)]

    assert methods[0] != "dyadic"
    assert methods[1] == "dyadic"
