"""W1 between mixtures: closed forms, metric axioms, POT and SciPy as references, bounds."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from scipy.stats import wasserstein_distance

from hocal._base.typing import Array
from hocal.uncertainty.distance import wasserstein, wasserstein_interval
from hocal.uncertainty.mixtures import Mixtures


def dirichlet(seed: int, *shape: int, n_classes: int = 4, concentration: float = 0.5) -> Array:
    return np.random.default_rng(seed).dirichlet(np.full(n_classes, concentration), size=shape)


def lattice(seed: int, n_items: int, k: int, n_classes: int = 4) -> NDArray[np.int64]:
    generator = np.random.default_rng(seed)
    return generator.multinomial(k, generator.dirichlet(np.full(n_classes, 0.5), size=n_items))


def weighted(points: Array, weights: Array) -> Mixtures:
    return Mixtures(points, weights, offsets=[0, len(points)], index=[0])


def joined(each: list[Mixtures]) -> Mixtures:
    """Store several mixtures in one batch."""
    offsets = np.cumsum([0, *(len(m.weights) for m in each)])
    points, weights = (
        np.concatenate(arrays)
        for arrays in zip(*((m.points, m.weights) for m in each), strict=True)
    )
    return Mixtures(points, weights, offsets, index=np.arange(len(each)))


@st.composite
def mixtures(draw: st.DrawFn, n_classes: int) -> Mixtures:
    """Mixtures of one to six atoms on a coarse lattice, so that atoms are often shared."""
    counts = draw(
        st.lists(
            st.lists(st.integers(0, 3), min_size=n_classes, max_size=n_classes),
            min_size=1,
            max_size=6,
        )
    )
    points = np.array(counts, dtype=np.float64) + np.eye(n_classes)[0]  # never empty
    weights = np.array(
        draw(st.lists(st.integers(1, 9), min_size=len(counts), max_size=len(counts))),
        dtype=np.float64,
    )
    return weighted(points / points.sum(axis=1, keepdims=True), weights / weights.sum())


triples = st.integers(2, 4).flatmap(lambda n_classes: st.tuples(*[mixtures(n_classes)] * 3))


# Closed forms


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_two_certain_different_labels_are_two_apart(n_classes: int) -> None:
    vertices = np.eye(n_classes)
    assert wasserstein(
        Mixtures.from_points(vertices[:1]), Mixtures.from_points(vertices[1:2])
    ).tolist() == [2.0]


def test_point_masses_are_as_far_apart_as_their_points() -> None:
    p, q = dirichlet(0, 5), dirichlet(1, 5)
    distances = wasserstein(Mixtures.from_points(p), Mixtures.from_points(q))
    np.testing.assert_allclose(distances, np.abs(p - q).sum(axis=1), atol=1e-14)


def test_distance_to_a_point_mass_is_the_mean_distance_to_the_point() -> None:
    p, q = dirichlet(0, 1, 30), dirichlet(1, 1)
    distance = wasserstein(Mixtures.from_ensemble(p), Mixtures.from_points(q))
    assert distance[0] == pytest.approx(np.abs(p[0] - q).sum(axis=1).mean(), abs=1e-14)


def test_vertices_and_their_mean_are_twice_the_gini_impurity_apart() -> None:
    """A vertex e_j is 2 (1 - p_j) away from p, so the mean distance is 2 (1 - ||p||^2)."""
    p = np.array([[0.5, 0.3, 0.2]])
    distance = wasserstein(Mixtures.from_vertices(p), Mixtures.from_points(p))
    assert distance[0] == pytest.approx(2 * (1 - 0.38), abs=1e-14)


def test_uniform_and_its_middle_are_half_apart_on_the_line() -> None:
    """Twice E|X - 1/2| = 1/2 for X uniform on [0, 1]."""
    x = (np.arange(10_000) + 0.5) / 10_000
    uniform = Mixtures.from_ensemble(np.stack([x, 1 - x], axis=-1)[None])
    assert wasserstein(uniform, Mixtures.from_points([[0.5, 0.5]]))[0] == pytest.approx(
        0.5, abs=1e-12
    )


# Metric axioms


@settings(max_examples=60, deadline=None)
@given(triples)
def test_distance_is_symmetric(triple: tuple[Mixtures, ...]) -> None:
    a, b, _ = triple
    assert wasserstein(a, b)[0] == pytest.approx(wasserstein(b, a)[0], abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(triples)
def test_triangle_inequality_holds(triple: tuple[Mixtures, ...]) -> None:
    a, b, c = triple
    assert wasserstein(a, c)[0] <= wasserstein(a, b)[0] + wasserstein(b, c)[0] + 1e-12


@settings(max_examples=60, deadline=None)
@given(triples)
def test_distance_lies_between_the_distance_of_the_means_and_two(
    triple: tuple[Mixtures, ...],
) -> None:
    a, b, _ = triple
    means = np.abs(a.mean() - b.mean()).sum()
    assert means - 1e-12 <= wasserstein(a, b)[0] <= 2 + 1e-12


@settings(max_examples=60, deadline=None)
@given(triples, st.randoms(use_true_random=False))
def test_splitting_and_shuffling_atoms_changes_nothing(
    triple: tuple[Mixtures, ...], random: object
) -> None:
    a, b, _ = triple
    order = random.sample(range(2 * len(a.points)), 2 * len(a.points))  # type: ignore[attr-defined]
    split = weighted(
        np.tile(a.points, (2, 1))[order], np.concatenate([a.weights / 4, 3 * a.weights / 4])[order]
    )
    assert wasserstein(a, split)[0] == pytest.approx(0, abs=1e-12)
    assert wasserstein(split, b)[0] == pytest.approx(wasserstein(a, b)[0], abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(triples)
def test_relabelling_classes_changes_nothing(triple: tuple[Mixtures, ...]) -> None:
    a, b, _ = triple
    turned = [weighted(np.roll(m.points, 1, axis=1), m.weights) for m in (a, b)]
    assert wasserstein(*turned)[0] == pytest.approx(wasserstein(a, b)[0], abs=1e-12)


# References


@pytest.mark.parametrize("k", [1, 3, 20])
def test_snapshots_agree_with_network_simplex_on_the_raw_samples(k: int) -> None:
    a, b = lattice(0, 150, k), lattice(1, 130, k)
    raw = ot.emd2([], [], cdist(a / k, b / k, "cityblock"))
    value = wasserstein(Mixtures.from_snapshots(a)[0], Mixtures.from_snapshots(b)[0])[0]
    assert value == pytest.approx(raw, abs=1e-9)


def test_distinct_atoms_agree_with_network_simplex() -> None:
    a, b = dirichlet(0, 100), dirichlet(1, 80)
    raw = ot.emd2([], [], cdist(a, b, "cityblock"))
    assert wasserstein(*(Mixtures.from_ensemble(x[None]) for x in (a, b)))[0] == pytest.approx(
        raw, abs=1e-9
    )


def test_two_classes_are_twice_the_distance_of_scipy() -> None:
    x, y = dirichlet(0, 70, n_classes=2), dirichlet(1, 90, n_classes=2)
    u, v = (np.random.default_rng(2).dirichlet(np.ones(n)) for n in (70, 90))
    expected = 2 * wasserstein_distance(x[:, 0], y[:, 0], u, v)
    assert wasserstein(weighted(x, u), weighted(y, v))[0] == pytest.approx(expected, abs=1e-12)


def test_two_classes_agree_with_the_same_mixtures_and_an_unused_third_class() -> None:
    a, b = lattice(0, 60, 7, n_classes=2), lattice(1, 60, 7, n_classes=2)
    two = wasserstein(Mixtures.from_snapshots(a), Mixtures.from_snapshots(b))
    three = wasserstein(*(Mixtures.from_snapshots(np.pad(x, ((0, 0), (0, 1)))) for x in (a, b)))
    np.testing.assert_allclose(two, three, atol=1e-12)


@pytest.mark.parametrize(
    ("n_a", "n_b"), [(4, 5), (15, 14), (15, 15), (40, 38), (40, 40), (150, 150)]
)
def test_cells_of_any_size_agree_with_network_simplex_on_their_raw_samples(
    n_a: int, n_b: int
) -> None:
    """Small cells are solved together, and samples of equal size by assignment."""
    a, b = lattice(0, 7 * n_a, 9), lattice(1, 7 * n_b, 9)
    first, second = (Mixtures.from_snapshots(x, np.arange(len(x)) % 7).stored() for x in (a, b))
    raw = [ot.emd2([], [], cdist(a[i::7] / 9, b[i::7] / 9, "cityblock")) for i in range(7)]
    np.testing.assert_allclose(wasserstein(first, second), raw, atol=1e-12)


def test_ensembles_of_equal_size_agree_with_the_best_assignment() -> None:
    a, b = dirichlet(0, 6, 30), dirichlet(1, 6, 30)
    costs = [cdist(x, y, "cityblock") for x, y in zip(a, b, strict=True)]
    best = [cost[linear_sum_assignment(cost)].mean() for cost in costs]
    np.testing.assert_allclose(wasserstein(*map(Mixtures.from_ensemble, (a, b))), best, atol=1e-14)


def test_masses_that_are_nearly_equal_units_are_not_rounded() -> None:
    a, b = dirichlet(0, 12), dirichlet(1, 12)
    stray = np.full(12, 1 / 12) + np.linspace(-1e-6, 1e-6, 12)
    raw = ot.emd2(stray, np.full(12, 1 / 12), cdist(a, b, "cityblock"))
    assert wasserstein(weighted(a, stray), weighted(b, np.full(12, 1 / 12)))[0] == pytest.approx(
        raw, abs=1e-13
    )


def test_many_classes_with_few_labels_each_agree_with_network_simplex() -> None:
    """Distances are summed over shared classes."""
    a, b = (lattice(seed, 160, 3, n_classes=200) for seed in (0, 1))
    raw = ot.emd2([], [], cdist(a / 3, b / 3, "cityblock"))
    value = wasserstein(Mixtures.from_snapshots(a)[0], Mixtures.from_snapshots(b)[0])[0]
    assert value == pytest.approx(raw, abs=1e-12)


@pytest.mark.parametrize("concentration", [0.1, 1.0])
@pytest.mark.parametrize(("n_a", "n_b"), [(400, 350), (12_000, 9)])
def test_large_supports_agree_with_network_simplex(
    n_a: int, n_b: int, concentration: float
) -> None:
    """Above 100,000 arcs only some are given to the network simplex."""
    a, b = (dirichlet(n, n, n_classes=10, concentration=concentration) for n in (n_a, n_b))
    u, v = (np.random.default_rng(n).dirichlet(np.ones(n)) for n in (n_a, n_b))
    raw = ot.emd2(u, v, cdist(a, b, "cityblock"), numItermax=10**7)
    assert wasserstein(weighted(a, u), weighted(b, v))[0] == pytest.approx(raw, abs=1e-9)


def test_large_supports_are_exact_when_screening_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = (Mixtures.from_snapshots(lattice(seed, 1000, 30, n_classes=10))[0] for seed in (0, 1))
    screened = wasserstein(a, b)[0]
    monkeypatch.setattr("hocal.uncertainty.flows._ARCS_PER_ATOM", 0)
    monkeypatch.setattr("hocal.uncertainty.flows._MAX_ROUNDS", 1)
    assert wasserstein(a, b)[0] == pytest.approx(screened, abs=1e-9)


# Batches


@pytest.mark.parametrize("n_classes", [2, 3])
def test_batch_equals_a_loop_over_items(n_classes: int) -> None:
    a, b = (Mixtures.from_ensemble(dirichlet(seed, 12, 7, n_classes=n_classes)) for seed in (0, 1))
    items = np.random.default_rng(2).permutation(12)[:9]  # not in the stored order, not all
    looped = [wasserstein(a[i], b[i])[0] for i in items]
    np.testing.assert_allclose(wasserstein(a[items], b[items]), looped, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_length_one_is_compared_with_every_item(n_classes: int) -> None:
    a = Mixtures.from_ensemble(dirichlet(0, 1, 5, n_classes=n_classes))
    b = Mixtures.from_ensemble(dirichlet(1, 6, 5, n_classes=n_classes))
    np.testing.assert_allclose(
        wasserstein(a, b), [wasserstein(a, b[i])[0] for i in range(6)], atol=1e-12
    )


def test_batches_hold_pairs_of_every_kind() -> None:
    """Equal, one atom on a side, small, uniform and large, in one call and one by one."""
    sides = [
        ([1], [1]),
        ([9], [1]),
        ([1], [9]),
        ([2, 3], [4, 1]),
        ([5] * 12, [5] * 12),
        ([1] * 30, [2] * 29),
    ]
    pairs = [
        tuple(
            weighted(dirichlet(i + j, len(side)), np.array(side) / sum(side))
            for j, side in enumerate(both)
        )
        for i, both in enumerate(sides)
    ]
    pairs.insert(2, (pairs[-1][0], pairs[-1][0]))
    together = [joined([pair[j] for pair in pairs]) for j in (0, 1)]
    one_by_one = [wasserstein(*pair)[0] for pair in pairs]
    np.testing.assert_allclose(wasserstein(*together), one_by_one, atol=1e-13)
    bounds = [wasserstein_interval(*pair, resolution=3) for pair in pairs]
    np.testing.assert_allclose(
        wasserstein_interval(*together, resolution=3), np.hstack(bounds), atol=1e-12
    )


def test_batches_beyond_one_block_are_exact() -> None:
    a, b = (dirichlet(seed, 2500, 2, n_classes=3) for seed in (0, 1))
    costs = np.abs(a[:, :, None] - b[:, None]).sum(axis=-1)
    expected = np.minimum(costs[:, 0, 0] + costs[:, 1, 1], costs[:, 0, 1] + costs[:, 1, 0]) / 2
    np.testing.assert_allclose(
        wasserstein(*map(Mixtures.from_ensemble, (a, b))), expected, atol=1e-12
    )


def test_two_class_batches_beyond_one_block_are_exact() -> None:
    a, b = (dirichlet(seed, 2500, 3, n_classes=2) for seed in (0, 1))
    values = wasserstein(Mixtures.from_ensemble(a), Mixtures.from_ensemble(b))
    # With equally many equal weights the sorted atoms are matched in order.
    expected = 2 * np.abs(np.sort(a[..., 0]) - np.sort(b[..., 0])).mean(axis=1)
    np.testing.assert_allclose(values, expected, atol=1e-11)


def test_each_distinct_pair_is_transported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    exact = ot.emd
    monkeypatch.setattr(
        ot, "emd", lambda *args, **kwargs: calls.append(1) or exact(*args, **kwargs)
    )
    cells = np.arange(1000) % 3
    a, b = (Mixtures.from_snapshots(lattice(seed, 1000, 5), cells) for seed in (0, 1))

    assert wasserstein(a, b).shape == (1000,)
    assert len(calls) == 3


@pytest.mark.parametrize("n_classes", [2, 3])
def test_total_variation_is_half_of_l1(n_classes: int) -> None:
    a, b = (Mixtures.from_ensemble(dirichlet(seed, 4, 6, n_classes=n_classes)) for seed in (0, 1))
    np.testing.assert_array_equal(wasserstein(a, b, metric="tv"), wasserstein(a, b) / 2)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_an_empty_mixture_is_at_an_unknown_distance(n_classes: int) -> None:
    vertices = np.eye(n_classes)
    holed = Mixtures(vertices[:2], [1, 1], offsets=[0, 1, 1, 2], index=[0, 1, 2])
    whole = Mixtures.from_points(vertices[[0, 0, 0]])
    np.testing.assert_array_equal(wasserstein(holed, whole), [0, np.nan, 2])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_only_empty_mixtures_give_only_nan(n_classes: int) -> None:
    holed = Mixtures(np.eye(n_classes)[:1], [1], offsets=[0, 1, 1], index=[1, 1])
    assert np.isnan(wasserstein(holed, holed)).all()


# Numerics


def test_weights_that_stray_from_one_are_balanced() -> None:
    a, b = dirichlet(0, 40), dirichlet(1, 40)
    weights = np.full(40, 1 / 40)
    exact = wasserstein(weighted(a, weights), weighted(b, weights))[0]
    assert wasserstein(weighted(a, weights * (1 + 9e-6)), weighted(b, weights))[0] == pytest.approx(
        exact, abs=1e-12
    )


@pytest.mark.parametrize("n_atoms", [60, 4000])
def test_atoms_of_negligible_mass_do_not_disturb_the_network_simplex(n_atoms: int) -> None:
    """Weights from 1e-300 to 1, as an EM algorithm leaves them."""
    weights = np.logspace(-300, 0, n_atoms)
    weights /= weights.sum()
    points, others = dirichlet(0, n_atoms), dirichlet(1, 350)
    heavy = weights > 1e-12
    a, b = weighted(points, weights), weighted(others, np.full(350, 1 / 350))
    dominant = weighted(points[heavy], weights[heavy] / weights[heavy].sum())
    assert wasserstein(a, b)[0] == pytest.approx(wasserstein(dominant, b)[0], abs=1e-9)


def test_a_failed_network_simplex_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hocal.uncertainty.flows._MAX_PIVOTS", 1)
    a, b = Mixtures.from_ensemble(dirichlet(0, 1, 20)), Mixtures.from_ensemble(dirichlet(1, 1, 19))
    with pytest.raises(
        RuntimeError, match="optimal transport of 20 x 19 atoms failed: numItermax reached"
    ):
        wasserstein(a, b)


def test_a_network_simplex_that_fails_on_several_pairs_together_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hocal.uncertainty.flows._MAX_PIVOTS", 1)
    a, b = Mixtures.from_ensemble(dirichlet(0, 3, 5)), Mixtures.from_ensemble(dirichlet(1, 3, 4))
    with pytest.raises(
        RuntimeError, match="optimal transport of 15 x 12 atoms failed: numItermax reached"
    ):
        wasserstein(a, b)


def test_importing_the_module_does_not_import_pot() -> None:
    code = "import sys, hocal.uncertainty.distance; sys.exit('ot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Bounds


@pytest.mark.parametrize("metric", ["l1", "tv"])
@pytest.mark.parametrize("resolution", [1, 2, 5, 30])
def test_interval_contains_the_exact_distance(resolution: int, metric: str) -> None:
    a, b = (Mixtures.from_ensemble(dirichlet(seed, 5, 30)) for seed in (0, 1))
    lower, upper = wasserstein_interval(a, b, resolution=resolution, metric=metric)
    exact = wasserstein(a, b, metric=metric)
    assert (lower <= exact + 1e-12).all()
    assert (exact <= upper + 1e-12).all()


def test_interval_is_as_narrow_as_stated() -> None:
    a, b = (Mixtures.from_ensemble(dirichlet(seed, 5, 30)) for seed in (0, 1))
    lower, upper = wasserstein_interval(a, b, resolution=100)
    assert (upper - lower <= 2 * a.n_classes / 100).all()


def test_interval_of_snapshots_at_their_own_resolution_is_exact() -> None:
    a, b = (Mixtures.from_snapshots(lattice(seed, 200, 7))[0] for seed in (0, 1))
    lower, upper = wasserstein_interval(a, b, resolution=7)
    np.testing.assert_allclose([lower, upper], wasserstein(a, b) + np.zeros((2, 1)), atol=1e-12)


def test_interval_of_two_classes_is_exact() -> None:
    a, b = (Mixtures.from_ensemble(dirichlet(seed, 3, 9, n_classes=2)) for seed in (0, 1))
    lower, upper = wasserstein_interval(a, b, resolution=1)
    np.testing.assert_array_equal([lower, upper], np.tile(wasserstein(a, b), (2, 1)))


def test_interval_of_equal_mixtures_is_zero() -> None:
    a = Mixtures.from_ensemble(dirichlet(0, 2, 9))
    assert np.array(wasserstein_interval(a, a, resolution=3)).tolist() == [[0, 0], [0, 0]]


def test_interval_of_mixtures_that_differ_by_round_off_is_nearly_zero() -> None:
    """The mass that one atom lacks is found on two others, where it is too small to count."""
    points = dirichlet(0, 3)
    a, b = (
        weighted(points[:1], np.ones(1)),
        weighted(points, np.array([1 - 1.8e-14, 0.9e-14, 0.9e-14])),
    )
    np.testing.assert_allclose(wasserstein_interval(a, b, resolution=3), 0, atol=1e-13)


def test_interval_of_an_empty_mixture_is_unknown() -> None:
    holed = Mixtures(np.eye(3)[:1], [1], offsets=[0, 1, 1], index=[0, 1])
    lower, upper = wasserstein_interval(holed, holed, resolution=4)
    np.testing.assert_array_equal([lower, upper], [[0, np.nan], [0, np.nan]])


# Refusals


def test_supports_too_large_for_exact_transport_name_their_sizes_and_the_remedy() -> None:
    a, b = (Mixtures.from_ensemble(dirichlet(seed, 1, 5001, n_classes=3)) for seed in (0, 1))
    with pytest.raises(
        ValueError, match=r"at most 25000000 .* got 5001 x 5001 .* Use wasserstein_interval"
    ):
        wasserstein(a, b)


def test_supports_too_large_for_exact_transport_have_an_interval() -> None:
    a, b = (Mixtures.from_ensemble(dirichlet(seed, 1, 5001, n_classes=3)) for seed in (0, 1))
    lower, upper = wasserstein_interval(a, b, resolution=20)
    assert 0 < lower[0] < upper[0] < 0.3


def test_different_lengths_are_refused() -> None:
    a, b = Mixtures.from_points(np.eye(3)), Mixtures.from_points(np.eye(3)[:2])
    with pytest.raises(
        ValueError, match=r"equal length, or one of them length 1, got 3 and 2 items\."
    ):
        wasserstein(a, b)


def test_different_numbers_of_classes_are_refused() -> None:
    a, b = Mixtures.from_points(np.eye(3)), Mixtures.from_points(np.eye(4)[:3])
    with pytest.raises(ValueError, match=r"the same classes, got 3 and 4 classes\."):
        wasserstein(a, b)


@pytest.mark.parametrize(
    "function",
    [wasserstein, lambda a, b, metric: wasserstein_interval(a, b, resolution=2, metric=metric)],
)
def test_unknown_metrics_are_refused(function: object) -> None:
    a = Mixtures.from_points(np.eye(3))
    with pytest.raises(ValueError, match=r"`metric` must be one of 'l1', 'tv', got 'l2'\."):
        function(a, a, metric="l2")  # type: ignore[operator]


def test_a_resolution_below_one_is_refused() -> None:
    a = Mixtures.from_points(np.eye(3))
    with pytest.raises(ValueError, match=r"`resolution` must be an integer of at least 1, got 0\."):
        wasserstein_interval(a, a, resolution=0)
