"""Batches of mixtures: constructors, means, expectations, projections, likelihoods, indexing."""

from __future__ import annotations

import dataclasses
import math
import tracemalloc
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, special

import reference
from hocal import (
    Mixtures,
    SnapshotCalibrator,
    TopLabelPartition,
    calibration_error,
    decompose,
    predict_set,
)
from hocal._base.typing import Array, IntArray
from hocal.uncertainty.entropy import Shannon
from hocal.uncertainty.snapshots import enumerate_snapshots
from strategies import count_matrices, label_distributions, mixtures, seeds


def two_worlds() -> Mixtures:
    """Return an ambiguous world (item 0) and a world of clear cases (item 1)."""
    return Mixtures([[0.5, 0.5], [1, 0], [0, 1]], [1, 0.5, 0.5], offsets=[0, 1, 3], index=[0, 1])


def with_an_empty_mixture() -> Mixtures:
    """Return an item of an empty cell and an item with a fair coin."""
    return Mixtures([[0.5, 0.5]], [1.0], offsets=[0, 0, 1], index=[0, 1])


# Constructors


def test_a_point_mass_is_one_atom_per_item() -> None:
    p = np.array([[0.2, 0.8], [0.7, 0.3]])
    m = Mixtures.from_points(p)

    assert m.points.tolist() == p.tolist()
    assert m.weights.tolist() == [1, 1]


def test_a_vertex_mixture_holds_certain_labels_only() -> None:
    m = Mixtures.from_vertices([[0.2, 0.8], [0.7, 0.3]])

    assert m.points.tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]
    assert m.weights.tolist() == [0.2, 0.8, 0.7, 0.3]


@given(p=label_distributions(3, shape=(2,)))
def test_points_and_vertices_share_their_mean_only(p: Array) -> None:
    """Erratum E11: the paper uses one name for both; two labels per item tell them apart."""
    points, vertices = Mixtures.from_points(p), Mixtures.from_vertices(p)

    np.testing.assert_allclose(points.mean(), vertices.mean(), atol=1e-15)
    same_pair = [m.expect(lambda q: np.square(q).sum(axis=-1)) for m in (points, vertices)]
    np.testing.assert_allclose(same_pair, [np.square(p).sum(axis=-1), [1, 1]], atol=1e-12)


def test_members_of_an_ensemble_are_equally_likely() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(3), size=(4, 5))

    np.testing.assert_allclose(Mixtures.from_ensemble(p).mean(), p.mean(axis=1), atol=1e-15)


@pytest.mark.parametrize(
    "alpha", [[1, 1], [2, 5], [0.5, 0.5, 0.5], [3, 1, 2], [0.3] * 5, [40, 2, 1, 1]]
)
def test_dirichlet_atoms_have_the_expected_entropy_in_closed_form(alpha: list[float]) -> None:
    """E[H(p)] = psi(a + 1) - sum_j (a_j / a) psi(a_j + 1) with a the sum of the a_j."""
    total = sum(alpha)
    expected = special.digamma(total + 1) - sum(a / total * special.digamma(a + 1) for a in alpha)
    m = Mixtures.from_dirichlet([alpha], n_atoms=4096)

    assert m.expect(lambda p: Shannon().value(p, check_input=False))[0] == pytest.approx(
        expected, abs=2e-3
    )


def test_dirichlet_atoms_have_the_right_mean() -> None:
    alpha = np.array([[1.0, 2, 3], [0.2, 0.2, 5]])

    np.testing.assert_allclose(
        Mixtures.from_dirichlet(alpha, n_atoms=1024).mean(),
        alpha / alpha.sum(axis=1, keepdims=True),
        atol=2e-3,
    )


@pytest.mark.parametrize("n_atoms", [1, 2, 7, 100, 256])
def test_dirichlet_atoms_are_label_distributions(n_atoms: int) -> None:
    m = Mixtures.from_dirichlet([[0.1, 1, 5, 0.3]], n_atoms=n_atoms)

    assert m.points.shape == (n_atoms, 4)
    assert (m.points >= 0).all()
    np.testing.assert_allclose(m.points.sum(axis=1), 1, atol=1e-12)


@given(counts=count_matrices(), seed=seeds)
def test_snapshots_of_a_cell_make_its_empirical_mixture(counts: IntArray, seed: int) -> None:
    cells = np.random.default_rng(seed).integers(0, 3, len(counts))
    m = Mixtures.from_snapshots(counts, cells, n_cells=3)
    for item, cell in enumerate(cells):
        rows = [tuple(row / row.sum()) for row in counts[cells == cell]]
        expected: dict[tuple[float, ...], float] = {}
        for row in rows:
            expected[row] = expected.get(row, 0) + 1 / len(rows)
        found: dict[tuple[float, ...], float] = {}
        for weight, point in reference.atoms_of(m, item):
            found[tuple(point)] = found.get(tuple(point), 0) + weight

        assert found == pytest.approx(expected)


@given(counts=count_matrices(), seed=seeds)
def test_sparse_snapshots_make_the_mixture_of_dense_ones(counts: IntArray, seed: int) -> None:
    cells = np.random.default_rng(seed).integers(0, 2, len(counts))
    dense, thin = (Mixtures.from_snapshots(x, cells) for x in (counts, sparse.csr_array(counts)))

    np.testing.assert_allclose(thin.moments(2), dense.moments(2), atol=1e-14)


def test_snapshots_without_cells_share_one_mixture() -> None:
    m = Mixtures.from_snapshots([[2, 0], [1, 1], [2, 0]])

    assert (len(m), m.n_mixtures, len(m.points)) == (3, 1, 2)


def test_a_skipped_cell_has_an_empty_mixture() -> None:
    assert Mixtures.from_snapshots([[2, 0], [1, 1]], [0, 2], n_cells=4).offsets.tolist() == [
        0,
        1,
        1,
        2,
        2,
    ]


def test_ten_thousand_items_in_two_cells_cost_two_mixtures() -> None:
    generator = np.random.default_rng(0)
    m = Mixtures.from_snapshots(
        generator.multinomial(3, [0.2, 0.8], 10_000), generator.integers(0, 2, 10_000)
    )

    assert (len(m), m.n_mixtures, len(m.points)) == (10_000, 2, 8)


def test_the_representation_states_the_sizes() -> None:
    assert repr(two_worlds()) == "Mixtures(2 items, 2 mixtures, 3 atoms, 2 classes)"


# Means, expectations, moments


@given(m=mixtures())
def test_means_equal_the_slow_ones(m: Mixtures) -> None:
    expected = [reference.mean(reference.atoms_of(m, i)) for i in range(len(m))]

    np.testing.assert_allclose(m.mean(), expected, atol=1e-14)


@given(m=mixtures())
def test_expectations_are_weighted_sums_over_atoms(m: Mixtures) -> None:
    expected = [sum(w * math.exp(p[0]) for w, p in reference.atoms_of(m, i)) for i in range(len(m))]

    np.testing.assert_allclose(m.expect(lambda p: np.exp(p[:, 0])), expected, atol=1e-13)


def test_an_expectation_may_have_many_components() -> None:
    assert two_worlds().expect(lambda p: p[:, :, None] * p[:, None, :]).tolist() == [
        [[0.25, 0.25], [0.25, 0.25]],
        [[0.5, 0], [0, 0.5]],
    ]


def test_an_expectation_over_many_blocks_equals_one_over_all() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(2), 70_000)
    m = Mixtures.from_ensemble(p[None])

    assert m.expect(lambda q: q[:, 0] ** 2)[0] == pytest.approx(np.mean(p[:, 0] ** 2), abs=1e-12)


@given(m=mixtures(), order=st.integers(1, 3))
def test_moments_equal_the_slow_ones(m: Mixtures, order: int) -> None:
    exponents = reference.snapshots(order, m.n_classes)
    expected = [
        [reference.moment(reference.atoms_of(m, i), a) for a in exponents] for i in range(len(m))
    ]

    np.testing.assert_allclose(m.moments(order), expected, atol=1e-13)


def test_moments_of_many_atoms_and_columns_equal_a_direct_product() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(4), 20_000)  # more than one block of columns
    exponents = enumerate_snapshots(6, 4)
    expected = np.array([np.prod(p**a, axis=1).mean() for a in exponents])

    np.testing.assert_allclose(Mixtures.from_ensemble(p[None]).moments(6)[0], expected, atol=1e-12)


# Projections


@given(m=mixtures(), k=st.integers(1, 4))
def test_snapshot_probabilities_equal_the_enumeration_of_tuples(m: Mixtures, k: int) -> None:
    expected = [
        list(reference.project(reference.atoms_of(m, i), k).values()) for i in range(len(m))
    ]

    np.testing.assert_allclose(m.snapshot_distribution(k), expected, atol=1e-12)


@given(p=label_distributions(), k=st.integers(1, 6))
def test_a_point_mass_generates_multinomial_snapshots(p: Array, k: int) -> None:
    expected = [reference.multinomial(s, p) for s in reference.snapshots(k, len(p))]

    np.testing.assert_allclose(
        Mixtures.from_points(p[None]).snapshot_distribution(k)[0], expected, atol=1e-12
    )


@given(m=mixtures(), k=st.integers(1, 4))
def test_a_projection_puts_snapshot_probabilities_on_the_lattice(m: Mixtures, k: int) -> None:
    projected = m.project(k)
    for i in range(len(m)):
        expected = reference.project(reference.atoms_of(m, i), k)
        found = {tuple(round(k * x) for x in p): w for w, p in reference.atoms_of(projected, i)}

        assert found == pytest.approx({s: x for s, x in expected.items() if x > 0}, abs=1e-12)


@given(m=mixtures(), k=st.integers(1, 5))
def test_a_projection_keeps_the_mean(m: Mixtures, k: int) -> None:
    np.testing.assert_allclose(m.project(k).mean(), m.mean(), atol=1e-12)


def test_a_uniform_mixture_makes_all_numbers_of_heads_equally_likely() -> None:
    """Integrating C(k, i) p^i (1 - p)^(k - i) over p gives 1 / (k + 1)."""
    m = Mixtures.from_dirichlet([[1, 1]], n_atoms=4096)

    np.testing.assert_allclose(m.snapshot_distribution(9), 0.1, atol=1e-5)


def test_projections_to_fifty_labels_stay_normalised() -> None:
    m = Mixtures.from_points([[1e-12, 1 - 1e-12], [0.3, 0.7]])

    np.testing.assert_allclose(m.snapshot_distribution(50).sum(axis=1), 1, atol=1e-12)


def test_one_label_turns_points_into_vertices() -> None:
    p = np.array([[0.2, 0.3, 0.5]])
    projected, vertices = Mixtures.from_points(p).project(1), Mixtures.from_vertices(p)

    np.testing.assert_allclose(projected.moments(3), vertices.moments(3), atol=1e-15)


def test_items_of_a_projection_still_share_mixtures() -> None:
    m = two_worlds()[[1, 0, 1, 1]].project(2)

    assert (len(m), m.n_mixtures) == (4, 2)


@pytest.mark.parametrize("use", [Mixtures.project, Mixtures.snapshot_distribution])
def test_a_projection_with_too_many_atoms_is_refused(use: Callable[[Mixtures, int], Any]) -> None:
    m = Mixtures.from_points(np.full((300, 10), 0.1))

    with pytest.raises(
        ValueError,
        match=r"`k` must give at most 20000000 atoms in all, got 92378 .* Use a smaller k",
    ):
        use(m, 10)


def test_a_projection_too_large_to_list_is_refused() -> None:
    with pytest.raises(
        ValueError, match="`k` must give at most 20000000 snapshots, got 12565671261 for k=50"
    ):
        Mixtures.from_points(np.full((1, 10), 0.1)).project(50)


# Drawing


def test_drawn_labels_follow_the_projection() -> None:
    """20,000 items with two labels each; the sampling deviation of a share is below .004."""
    m = two_worlds()[np.repeat([0, 1], 20_000)]
    counts = m.draw(2, random_state=0)

    shares = [(counts[rows, 0] == 1).mean() for rows in (slice(0, 20_000), slice(20_000, None))]

    assert shares == pytest.approx([0.5, 0.0], abs=0.015)


def test_labels_drawn_in_blocks_are_those_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(4), size=(50, 3))
    ensemble = Mixtures.from_ensemble(p)
    whole = ensemble.draw(np.arange(50), random_state=1)
    monkeypatch.setattr("hocal.uncertainty.mixtures.CACHE_BYTES", 8 * 4 * 7)

    assert ensemble.draw(np.arange(50), random_state=1).tolist() == whole.tolist()


def test_items_may_draw_different_numbers_of_labels() -> None:
    assert two_worlds().draw([3, 5], random_state=0).sum(axis=1).tolist() == [3, 5]


def test_an_empty_mixture_has_no_labels_to_draw() -> None:
    with pytest.raises(ValueError, match="`mixtures` must not be empty to draw from"):
        with_an_empty_mixture().draw(1)


# Likelihoods


@given(data=st.data())
def test_log_likelihoods_equal_the_slow_ones(data: st.DataObject) -> None:
    m = data.draw(mixtures(3))
    counts = data.draw(count_matrices(3, n_items=len(m)))
    expected = [
        reference.log_likelihood(reference.atoms_of(m, i), counts[i].tolist())
        for i in range(len(m))
    ]

    np.testing.assert_allclose(m.log_likelihood(counts), expected, atol=1e-10)


@given(m=mixtures(), k=st.integers(1, 3))
def test_likelihoods_of_all_snapshots_are_the_projection(m: Mixtures, k: int) -> None:
    snapshots = enumerate_snapshots(k, m.n_classes)
    likelihood = np.exp(m[np.zeros(len(snapshots), dtype=int)].log_likelihood(snapshots))

    np.testing.assert_allclose(likelihood, m.snapshot_distribution(k)[0], atol=1e-12)


def test_likelihoods_over_many_blocks_equal_a_direct_sum() -> None:
    generator = np.random.default_rng(0)
    p, counts = generator.dirichlet(np.ones(2), 2000), generator.integers(1, 60, (600, 2))
    direct = special.logsumexp(counts @ np.log(p).T, axis=1) - math.log(2000)
    orders = special.gammaln(counts.sum(axis=1) + 1) - special.gammaln(counts + 1).sum(axis=1)
    m = Mixtures.from_ensemble(p[None])[np.zeros(600, dtype=int)]

    np.testing.assert_allclose(m.log_likelihood(counts), direct + orders, atol=1e-9)


def test_what_cannot_happen_has_likelihood_zero() -> None:
    assert two_worlds().log_likelihood([[1, 1], [1, 1]]).tolist() == [
        pytest.approx(math.log(0.5)),
        -math.inf,
    ]


def test_an_atom_without_weight_makes_nothing_possible() -> None:
    m = Mixtures([[1, 0], [0.5, 0.5]], [1, 0], offsets=[0, 2], index=[0])

    assert m.log_likelihood([[1, 1]])[0] == -math.inf


def test_thousands_of_labels_do_not_underflow() -> None:
    value = Mixtures.from_points([[0.5, 0.5]]).log_likelihood([[5000, 5000]])[0]
    expected = special.gammaln(10_001) - 2 * special.gammaln(5001) - 10_000 * math.log(2)

    assert value == pytest.approx(expected, abs=1e-6)


def test_sparse_counts_have_the_likelihood_of_dense_ones() -> None:
    counts = np.array([[2, 1], [0, 3]])

    assert np.array_equal(
        two_worlds().log_likelihood(sparse.csr_array(counts)), two_worlds().log_likelihood(counts)
    )


# Empty mixtures


@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.mean()[:, 0],
        lambda m: m.expect(lambda p: p[:, 0]),
        lambda m: m.moments(2)[:, 0],
        lambda m: m.snapshot_distribution(2)[:, 0],
        lambda m: m.log_likelihood([[1, 1], [1, 1]]),
        lambda m: m.project(2).mean()[:, 0],
    ],
    ids=["mean", "expect", "moments", "snapshot_distribution", "log_likelihood", "project"],
)
def test_an_empty_mixture_gives_nan_and_its_neighbour_does_not(
    use: Callable[[Mixtures], Array],
) -> None:
    assert np.isnan(use(with_an_empty_mixture())).tolist() == [True, False]


def test_likelihoods_of_empty_mixtures_alone_are_nan() -> None:
    assert np.isnan(with_an_empty_mixture()[0].log_likelihood([[1, 1]])).tolist() == [True]


def test_storing_again_gives_one_item_per_mixture() -> None:
    m = two_worlds()[[1, 1, 0, 1]]

    assert (len(m), len(m.stored())) == (4, 2)


def test_the_projection_of_an_empty_mixture_is_empty() -> None:
    assert with_an_empty_mixture().project(2).offsets.tolist() == [0, 0, 3]


def test_an_empty_mixture_at_the_end_does_not_disturb_the_others() -> None:
    m = Mixtures([[0.5, 0.5], [1, 0]], [0.5, 0.5], offsets=[0, 2, 2], index=[1, 0])

    np.testing.assert_array_equal(m.mean(), [[np.nan, np.nan], [0.75, 0.25]])


# Mixtures on one common set of points, or in float32


def vertices() -> Mixtures:
    """Return shared points on the boundary, each item with its own weights."""
    return Mixtures.from_vertices(np.random.default_rng(3).dirichlet([0.5, 1, 2], size=8))[
        [0, 5, 5, 2, 7, 7, 7, 1]
    ]


@cache
def calibrated() -> Mixtures:
    """Return shared points inside the simplex, as a calibrator makes them."""
    generator = np.random.default_rng(3)
    p = generator.dirichlet([0.5, 1, 2], size=60)
    fitted = SnapshotCalibrator(TopLabelPartition(3)).fit(p, generator.multinomial(4, p))
    return fitted.cell_mixtures_[[0, 5, 5, 2, 7, 7, 7, 1]]


def single() -> Mixtures:
    """Return an ensemble in float32, which is stored as it is."""
    return Mixtures.from_ensemble(
        np.random.default_rng(3).dirichlet([0.5, 1, 2], size=(8, 5)).astype(np.float32)
    )


CELLS = [0, 0, 1, 1, 1, 3, 3, 3]  # the third has no items
COUNTS = np.random.default_rng(4).multinomial(3, [0.2, 0.3, 0.5], size=8)


@pytest.mark.parametrize("make", [vertices, calibrated, single])
@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda m: m.mean(), id="mean"),
        pytest.param(lambda m: m.expect(lambda p: p**2), id="expect"),
        pytest.param(
            lambda m: m.expect(lambda p: p[:, :, None] * p[:, None]), id="expect a matrix"
        ),
        pytest.param(lambda m: m.moments(3), id="moments"),
        pytest.param(lambda m: m.snapshot_distribution(2), id="snapshot_distribution"),
        pytest.param(lambda m: m.project(3).mean(), id="project"),
        pytest.param(lambda m: m.sample(random_state=0), id="sample"),
        pytest.param(lambda m: m.draw(5, random_state=0), id="draw"),
        pytest.param(lambda m: m.log_likelihood(COUNTS), id="log_likelihood"),
        pytest.param(lambda m: m[2:5].mean(), id="index"),
        pytest.param(lambda m: m.stored().mean(), id="stored"),
        pytest.param(lambda m: m.points_at(slice(2, 11, 3)), id="a slice of atoms"),
        pytest.param(lambda m: m.points_at(np.array([11, 0, 4])), id="chosen atoms"),
        pytest.param(lambda m: decompose(m, panel_size=3).aleatoric, id="panel"),
        pytest.param(lambda m: predict_set(m).centres.mean(), id="heaviest atoms"),
        pytest.param(lambda m: predict_set(m, shape="ball").radius, id="ball"),
        pytest.param(lambda m: predict_set(m).expand(0.3).contains(m.mean()), id="contains"),
        pytest.param(
            lambda m: calibration_error(m, COUNTS, cells=CELLS, random_state=0).per_cell,
            id="calibration",
        ),
    ],
)
def test_results_do_not_depend_on_how_points_are_stored(
    make: Callable[[], Mixtures], use: Callable[[Mixtures], Any]
) -> None:
    """Once for all mixtures, or in float32, or for each mixture in float64."""
    m = make()
    plain = Mixtures(m.points, m.weights, m.offsets, m.index)

    np.testing.assert_allclose(use(m), use(plain), rtol=0, atol=1e-12)


def test_a_function_meets_each_shared_point_once() -> None:
    met: list[Array] = []

    def remember(p: Array) -> Array:
        met.append(p)
        return p

    Mixtures.from_vertices(np.full((1000, 4), 0.25)).expect(remember)

    assert np.concatenate(met).tolist() == np.eye(4).tolist()


def test_shared_points_take_the_memory_of_one_copy() -> None:
    """A hundred classes and 20,000 items would repeat 1.6 GB of vertices."""
    p = np.full((20_000, 100), 0.01)
    p.flags.writeable = False
    tracemalloc.start()
    decompose(Mixtures.from_vertices(p))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 4 * p.nbytes


def test_points_are_float64_whatever_was_given() -> None:
    assert single().points.dtype == single().points_at(slice(2)).dtype == np.float64


def test_points_of_one_owner_are_handed_out_without_a_copy() -> None:
    m = two_worlds()

    assert m.points is m.points


# Indexing


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        pytest.param(1, [1], id="integer"),
        pytest.param(np.int64(1), [1], id="numpy integer"),
        pytest.param(-1, [2], id="from the end"),
        pytest.param(slice(1, None), [1, 2], id="slice"),
        pytest.param(slice(None, None, -1), [2, 1, 0], id="reversed"),
        pytest.param([2, 0, 2], [2, 0, 2], id="list"),
        pytest.param(np.array([True, False, True]), [0, 2], id="mask"),
        pytest.param(np.array([1, 1]), [1, 1], id="array"),
        pytest.param([], [], id="nothing"),
    ],
)
def test_indexing_picks_items(items: Any, expected: list[int]) -> None:
    p = np.array([[0.1, 0.9], [0.2, 0.8], [0.3, 0.7]])
    picked = Mixtures.from_points(p)[items]

    assert len(picked) == len(expected)
    np.testing.assert_array_equal(picked.mean(), p[expected].reshape(-1, 2))


def test_iterating_gives_each_item() -> None:
    p = np.array([[0.1, 0.9], [0.2, 0.8]])

    assert [m.mean()[0].tolist() for m in Mixtures.from_points(p)] == p.tolist()


def test_an_item_out_of_range_is_an_index_error() -> None:
    with pytest.raises(IndexError, match="index 2 is out of bounds"):
        two_worlds()[2]


def test_items_must_be_picked_along_one_axis() -> None:
    with pytest.raises((IndexError, ValueError), match="one"):
        two_worlds()[np.array([[0, 1]])]


# Immutability


@pytest.mark.parametrize("make", [two_worlds, vertices, single])
@pytest.mark.parametrize("name", ["points", "weights", "offsets", "index"])
def test_arrays_are_read_only(make: Callable[[], Mixtures], name: str) -> None:
    with pytest.raises(ValueError, match="read-only"):
        getattr(make(), name)[0] = 0


@pytest.mark.parametrize("name", ["points", "weights", "offsets", "index"])
def test_arrays_cannot_be_replaced(name: str) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError, match=f"cannot assign to field '{name}'"):
        setattr(two_worlds(), name, np.zeros(3))


def test_the_input_stays_writeable() -> None:
    p = np.array([[0.5, 0.5]])
    Mixtures.from_points(p)

    assert p.flags.writeable


def test_changing_the_input_later_does_not_change_the_mixture() -> None:
    p = np.array([[0.5, 0.5]])
    m = Mixtures.from_points(p)
    p[0] = [1, 0]

    assert m.mean().tolist() == [[0.5, 0.5]]


class Table:
    """An owner of memory that hands out views, as tensors and dataframes do."""

    def __init__(self, data: Array) -> None:
        self.data = data

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.data[:]


def test_changing_a_table_later_does_not_change_the_mixture() -> None:
    table = Table(np.array([[0.5, 0.5]]))
    m = Mixtures.from_points(table)  # type: ignore[arg-type]
    table.data[0] = [1, 0]

    assert m.mean().tolist() == [[0.5, 0.5]]


# Bad input


def make(**changes: Any) -> Mixtures:
    """Build the two worlds with some arguments replaced."""
    arguments: dict[str, Any] = {
        "points": [[0.5, 0.5], [1, 0], [0, 1]],
        "weights": [1, 0.5, 0.5],
        "offsets": [0, 1, 3],
        "index": [0, 1],
    }
    return Mixtures(**(arguments | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"points": [[0.5, 0.6], [1, 0], [0, 1]]},
            r"`points` must sum to 1 over the classes, got 1\.1 in row 0",
        ),
        (
            {"points": [[np.nan, 1], [1, 0], [0, 1]]},
            "`points` must be non-negative numbers, got nan in row 0",
        ),
        ({"points": [0.5, 0.5]}, r"`points` must have 2 dimensions, got shape \(2,\)"),
        ({"points": np.zeros((0, 2))}, r"`points` must not be empty, got shape \(0, 2\)"),
        ({"points": [["a", "b"]]}, "`points` must be an array of numbers, got dtype <U1"),
        (
            {"weights": [1, 0.5]},
            r"`weights` must hold one weight for each of 3 points, got shape \(2,\)",
        ),
        (
            {"weights": [1, 0.5, 0.6]},
            r"`weights` must sum to 1 within each mixture, got 1\.1 in mixture 1",
        ),
        (
            {"weights": [1, 1.5, -0.5]},
            r"`weights` must be finite and non-negative, got -0\.5 in row 2",
        ),
        (
            {"weights": [1, np.nan, 0.5]},
            "`weights` must be finite and non-negative, got nan in row 1",
        ),
        ({"offsets": [0, 1]}, "`offsets` must rise from 0 to the number of points, 3"),
        ({"offsets": [1, 3]}, "`offsets` must rise from 0 to the number of points, 3"),
        ({"offsets": [0, 2, 1, 3]}, "`offsets` must rise from 0 to the number of points, 3"),
        ({"offsets": [0.0, 1.5, 3.0]}, "`offsets` must be whole numbers, got 1.5"),
        ({"offsets": 3}, "`offsets` must rise from 0 to the number of points, 3"),
        ({"offsets": ["a", "b"]}, "`offsets` must be an array of numbers, got dtype <U1"),
        ({"index": [0, -1]}, "`index` must be non-negative, got -1 in row 1"),
        ({"index": [0.5, 1]}, r"`index` must be whole numbers, got 0\.5 in row 0"),
        ({"index": [0, 2]}, "`index` must be below .*2, got 2 in row 1"),
        ({"index": [[0, 1]]}, r"`index` must .* got shape \(1, 2\)"),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**changes)


def test_bad_offsets_are_shown() -> None:
    with pytest.raises(ValueError, match=r"`offsets` must .* got .*2"):
        make(offsets=[0, 2])


def test_falling_unsigned_offsets_are_refused() -> None:
    with pytest.raises(ValueError, match="`offsets` must rise"):
        make(weights=[1, 0, 1], offsets=np.array([0, 2, 1, 3], dtype=np.uint8))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: Mixtures.from_ensemble([[0.5, 0.5]]),
            r"`probabilities` must have 3 dimensions, got shape \(1, 2\)",
        ),
        (lambda: Mixtures.from_ensemble(np.zeros((2, 0, 3))), "`probabilities` must not be empty"),
        (
            lambda: Mixtures.from_points([0.5, 0.5]),
            r"`probabilities` must have 2 dimensions, got shape \(2,\)",
        ),
        (
            lambda: Mixtures.from_vertices([[1.0]]),
            r"`probabilities` must have at least two classes .* \(1, 1\)",
        ),
        (
            lambda: Mixtures.from_dirichlet([1.0, 1.0]),
            r"`alpha` must have 2 dimensions, got shape \(2,\)",
        ),
        (lambda: Mixtures.from_dirichlet([[0.0, 1.0]]), "`alpha` must be finite and positive"),
        (lambda: Mixtures.from_dirichlet([[np.nan, 1.0]]), "`alpha` must be finite and positive"),
        (lambda: Mixtures.from_dirichlet([[np.inf, 1.0]]), "`alpha` must be finite and positive"),
        (lambda: Mixtures.from_dirichlet([[1.0]]), "`alpha` must be .* with at least two classes"),
        (
            lambda: Mixtures.from_dirichlet([[1, 1]], n_atoms=0),
            "`n_atoms` must be an integer of at least 1, got 0",
        ),
        (
            lambda: Mixtures.from_snapshots([[1, 1]], [0, 1]),
            "`cells` must hold one number for each of 1 items",
        ),
        (
            lambda: Mixtures.from_snapshots([[1, 1]], [-1]),
            "`cells` must be non-negative, got -1 in row 0",
        ),
        (
            lambda: Mixtures.from_snapshots([[1, 1]], [2], n_cells=2),
            "`cells` must be below 2, got 2 in row 0",
        ),
    ],
)
def test_constructors_refuse_bad_input(build: Callable[[], Mixtures], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


def test_a_bad_concentration_is_shown() -> None:
    with pytest.raises(ValueError, match=r"`alpha` must be .* got -2 in row 1"):
        Mixtures.from_dirichlet([[1.0, 1.0], [-2.0, 1.0]])


@pytest.mark.parametrize("n_cells", [0, -1, 2.0, "two"])
def test_a_bad_number_of_cells_is_refused(n_cells: Any) -> None:
    with pytest.raises(ValueError, match="`n_cells` must be an integer of at least 1, got"):
        Mixtures.from_snapshots([[1, 1]], n_cells=n_cells)


@pytest.mark.parametrize("k", [0, -1, 2.0, True, "2"])
def test_a_projection_needs_a_positive_integer(k: Any) -> None:
    with pytest.raises(ValueError, match=f"`k` must be an integer of at least 1, got {k!r}"):
        two_worlds().project(k)


def test_moments_need_a_positive_order() -> None:
    with pytest.raises(ValueError, match="`order` must be an integer of at least 1, got 0"):
        two_worlds().moments(0)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([[1, 1]], "`counts` must describe the 2 items of the mixtures, got 1 rows"),
        ([[1, 1, 1], [1, 1, 1]], r"`counts` must have 2 classes \(columns\), got 3"),
        ([[1, 1], [0, 0]], "`counts` must have at least 1 label in each row, got 0 in row 1"),
    ],
)
def test_likelihoods_of_counts_that_do_not_fit_are_refused(counts: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        two_worlds().log_likelihood(counts)


@pytest.mark.parametrize("function", [lambda _: 1.0, lambda p: p.sum(), lambda p: p[:2, 0]])
def test_a_function_that_loses_the_atoms_is_refused(function: Callable[[Array], Any]) -> None:
    with pytest.raises(ValueError, match="`function` must return one result"):
        two_worlds().expect(function)


def test_an_atom_is_drawn_where_the_weights_of_its_mixture_reach_a_share() -> None:
    """Against each mixture's own sums; blocks of mixtures have sums that run through several."""
    generator = np.random.default_rng(7)
    weights = generator.dirichlet(np.full(3_000, 0.2), size=400)
    mixtures = Mixtures.on_common_points(np.full((3_000, 2), 0.5), weights)
    chosen = generator.integers(400, size=500)
    shares = generator.random(500)

    found = mixtures.atoms_at_shares(chosen, shares)

    sums = np.cumsum(weights[chosen], axis=1)
    expected = (sums <= (shares * sums[:, -1])[:, None]).sum(axis=1)
    np.testing.assert_array_equal(found, chosen * 3_000 + expected)
