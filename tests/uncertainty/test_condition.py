"""What an item's own labels say about its mixture."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

import reference
from hocal import InputError, Mixtures, decompose
from strategies import count_matrices, mixtures


def clear_or_torn() -> Mixtures:
    """Return one item that is surely of the first class or a fair coin, equally likely."""
    return Mixtures.from_ensemble([[[1.0, 0.0], [0.5, 0.5]]])


def own_weights(m: Mixtures, item: int) -> list[float]:
    """Return the weights of an item's atoms, in the order they are stored."""
    start, end = m.offsets[m.index[item]], m.offsets[m.index[item] + 1]
    return list(m.weights[start:end])


def shared_points(n_items: int = 40, n_points: int = 7, n_classes: int = 3) -> Mixtures:
    """Return mixtures that differ in their weights only, as a calibrator makes them."""
    generator = np.random.default_rng(5)
    points = generator.dirichlet(np.ones(n_classes), n_points)
    return Mixtures.on_common_points(points, generator.dirichlet(np.ones(n_points), n_items))


def own_labels(n_items: int = 40, n_classes: int = 3) -> Any:
    """Return ragged counts, some rows without labels."""
    generator = np.random.default_rng(6)
    totals = generator.integers(0, 4, n_items)
    return generator.multinomial(totals, np.full(n_classes, 1 / n_classes))


# Closed forms


@pytest.mark.parametrize("counts", [[0, 3], [2, 2], [7, 1]])
def test_a_uniform_coin_given_labels_is_a_beta_distribution(counts: list[int]) -> None:
    """Conjugacy: Beta(1, 1) and s labels of a class among n give Beta(1 + s, 1 + n - s)."""
    p = (np.arange(20_000) + 0.5) / 20_000
    coin = Mixtures.from_ensemble(np.stack([p, 1 - p], axis=-1)[None])
    expected = stats.beta(1 + counts[0], 1 + counts[1])

    given_labels = coin.condition([counts])

    assert given_labels.mean()[0, 0] == pytest.approx(expected.mean(), abs=1e-7)
    second = given_labels.expect(lambda q: q[:, 0] ** 2)[0]
    assert second - expected.mean() ** 2 == pytest.approx(expected.var(), abs=1e-7)


def test_two_labels_that_agree_make_an_item_likely_to_be_clear() -> None:
    """Bayes: 1/2 x 1 against 1/2 x 1/4."""
    assert clear_or_torn().condition([[2, 0]]).weights.tolist() == pytest.approx([0.8, 0.2])


def test_a_label_that_an_atom_excludes_removes_the_atom() -> None:
    assert clear_or_torn().condition([[5, 1]]).weights.tolist() == [0, 1]


def test_many_labels_do_not_underflow() -> None:
    """0.6^6000 0.4^4000 is below the smallest float by thousands of digits."""
    m = Mixtures.from_ensemble([[[0.6, 0.4], [0.4, 0.6]]])

    assert m.condition([[6000, 4000]]).mean()[0].tolist() == pytest.approx([0.6, 0.4])


def test_many_labels_take_the_epistemic_uncertainty_away() -> None:
    m = Mixtures.from_dirichlet([[1.0, 1.0, 1.0]], n_atoms=512)

    before = decompose(m).epistemic[0]
    after = decompose(m.condition([[300, 400, 300]])).epistemic[0]

    assert after < 0.05 * before


# The slow way


@given(data=st.data())
def test_posterior_weights_equal_the_slow_ones(data: st.DataObject) -> None:
    m = data.draw(mixtures(3, interior=True))
    counts = data.draw(count_matrices(3, n_items=len(m), minimum_total=0))
    conditioned = m.condition(counts)
    for i in range(len(m)):
        atoms = reference.atoms_of(m, i)
        expected = reference.posterior(atoms, counts[i].tolist())
        found = [weight for weight, _ in reference.atoms_of(conditioned, i)]

        assert found == pytest.approx(expected, abs=1e-12)


def test_common_points_give_the_weights_of_separate_ones() -> None:
    shared = shared_points()
    separate = Mixtures(shared.points, shared.weights, shared.offsets, shared.index)
    counts = own_labels()

    found, expected = shared.condition(counts), separate.condition(counts)

    for item in range(len(shared)):
        assert own_weights(found, item) == pytest.approx(own_weights(expected, item), abs=1e-14)


def test_a_mixture_may_pass_through_common_points_twice() -> None:
    m = shared_points(6)
    twice = Mixtures.trusted(m.support, m.weights / 2, m.offsets[::2], np.array([0, 1, 2]))
    plain = Mixtures(twice.points, twice.weights, twice.offsets, twice.index)
    counts = [[1, 0, 2], [0, 0, 0], [3, 1, 0]]

    np.testing.assert_allclose(twice.condition(counts).mean(), plain.condition(counts).mean())


# Laws


@given(data=st.data())
def test_conditioning_twice_is_conditioning_on_the_sum(data: st.DataObject) -> None:
    m = data.draw(mixtures(3, interior=True))
    first, second = (
        data.draw(count_matrices(3, n_items=len(m), minimum_total=0)) for _ in range(2)
    )
    step_by_step = m.condition(first).condition(second)
    at_once = m.condition(first + second)

    np.testing.assert_allclose(step_by_step.mean(), at_once.mean(), atol=1e-12)
    np.testing.assert_allclose(step_by_step.moments(2), at_once.moments(2), atol=1e-12)


@given(data=st.data())
def test_the_chance_of_all_labels_is_that_of_some_times_that_of_the_rest(
    data: st.DataObject,
) -> None:
    """The chain rule in terms of ordered labels, whose number of orders is taken out."""
    m = data.draw(mixtures(2, interior=True))
    first, second = (data.draw(count_matrices(2, n_items=len(m))) for _ in range(2))

    def ordered(mixture: Mixtures, counts: Any) -> Any:
        orders = [np.log(reference.multiplicity(row)) for row in counts.tolist()]
        return mixture.log_likelihood(counts) - orders

    np.testing.assert_allclose(
        ordered(m, first) + ordered(m.condition(first), second),
        ordered(m, first + second),
        atol=1e-10,
    )


def test_posterior_means_average_to_the_prior_mean() -> None:
    """E[E[p | labels]] = E[p], the sum over all 3-snapshots with their probabilities."""
    m = Mixtures.from_dirichlet([[0.5, 1.0, 2.0]], n_atoms=64)
    snapshots = np.array(reference.snapshots(3, 3))
    each = m[np.zeros(len(snapshots), dtype=int)].condition(snapshots).mean()

    np.testing.assert_allclose(m.snapshot_distribution(3) @ each, m.mean(), atol=1e-12)


def test_the_order_of_items_does_not_matter() -> None:
    m, counts = shared_points(), own_labels()
    order = np.random.default_rng(7).permutation(len(m))

    np.testing.assert_array_equal(
        m[order].condition(counts[order]).mean(), m.condition(counts).mean()[order]
    )


def test_the_order_of_classes_does_not_matter() -> None:
    m, counts = shared_points(), own_labels()
    order = [2, 0, 1]
    relabelled = Mixtures(m.points[:, order], m.weights, m.offsets, m.index)

    found = relabelled.condition(counts[:, order]).mean()

    np.testing.assert_allclose(found, m.condition(counts).mean()[:, order], atol=1e-14)


# Rows without labels, sparse counts, storage


def test_rows_of_zeros_leave_the_mixture_as_it_is() -> None:
    m = shared_points()

    np.testing.assert_array_equal(m.condition(np.zeros((40, 3))).mean(), m.mean())


def test_an_item_without_labels_is_not_touched_by_the_labels_of_another() -> None:
    m = clear_or_torn()[[0, 0]]

    assert own_weights(m.condition([[0, 0], [0, 1]]), 0) == [0.5, 0.5]


@pytest.mark.parametrize(
    "make", [shared_points, lambda: Mixtures.from_dirichlet(np.ones((40, 3)), n_atoms=5)]
)
def test_sparse_counts_give_the_weights_of_dense_ones(make: Any) -> None:
    m, counts = make(), own_labels()

    dense, thin = m.condition(counts), m.condition(sparse.csr_array(counts))

    for item in range(len(m)):
        assert own_weights(thin, item) == pytest.approx(own_weights(dense, item), abs=1e-15)


def test_items_with_the_same_mixture_and_labels_share_the_posterior() -> None:
    m = clear_or_torn()[[0, 0, 0, 0]].condition([[1, 0], [2, 0], [1, 0], [0, 0]])

    assert (len(m), m.n_mixtures) == (4, 3)


def test_common_points_stay_common() -> None:
    m = shared_points()

    assert m.condition(own_labels()).support.base is m.support.base


def test_an_ensemble_in_float32_is_not_copied() -> None:
    members = np.random.default_rng(0).dirichlet(np.ones(3), size=(5, 4)).astype(np.float32)
    m = Mixtures.from_ensemble(members)

    assert np.shares_memory(m.condition(np.eye(5, 3, dtype=int)).support, m.support)


def test_an_empty_mixture_stays_empty() -> None:
    m = Mixtures([[0.5, 0.5]], [1.0], offsets=[0, 0, 1], index=[0, 1])

    assert np.isnan(m.condition([[1, 0], [1, 0]]).mean()).any(axis=1).tolist() == [True, False]


def test_many_items_and_classes_need_no_loop_over_items() -> None:
    """A thousand classes: blocks are cut by atoms, not by atoms times classes."""
    generator = np.random.default_rng(0)
    points = generator.dirichlet(np.ones(1000), 50)
    m = Mixtures.on_common_points(points, generator.dirichlet(np.ones(50), 3000))
    counts = sparse.csr_array(generator.multinomial(3, np.full(1000, 1e-3), 3000))

    blocks = list(m.blocks(m.index, numbers_per_atom=1))

    assert len(blocks) == 1
    assert m.condition(counts).weights.reshape(3000, 50).sum(axis=1) == pytest.approx(1)


# Bad input


def test_labels_that_no_atom_allows_are_refused_by_item() -> None:
    vertices = Mixtures.from_vertices([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
    message = (
        r"`counts` must be possible under the mixture of each item, got labels of classes 0, 1 "
        r"in row 1, .* Give the atoms some probability of every class"
    )

    with pytest.raises(InputError, match=message) as caught:
        vertices.condition([[2, 0, 0], [1, 1, 0]])

    assert caught.value.argument == "counts"


def test_atoms_without_weight_do_not_make_labels_possible() -> None:
    m = Mixtures([[1, 0], [0.5, 0.5]], [1, 0], offsets=[0, 2], index=[0])

    with pytest.raises(InputError, match="got labels of class 1 in row 0"):
        m.condition([[0, 1]])


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([[1, 1], [1, 1]], "`counts` must describe the 1 items of the mixtures, got 2 rows"),
        ([[1, 1, 1]], r"`counts` must have 2 classes \(columns\), got 3"),
        ([[1, -1]], "`counts` must be non-negative, got -1 in row 0"),
        ([[0.5, 1]], r"`counts` must be whole numbers, got 0\.5 in row 0"),
    ],
)
def test_counts_that_do_not_fit_are_refused(counts: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        clear_or_torn().condition(counts)
