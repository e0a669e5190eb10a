"""Thinned distributions, ordered tuples, and which snapshot distributions are possible."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from hocal import Mixtures
from hocal._base.typing import Array
from hocal.uncertainty.moment_tensors import (
    from_tuples,
    nearest_realisable,
    thin_distribution,
    to_tuples,
)
from hocal.uncertainty.snapshots import enumerate_snapshots, n_snapshots, rank_snapshots
from strategies import label_distributions, mixtures, seeds


def at(*snapshot: int) -> Array:
    """Return the distribution that is certain of one snapshot."""
    distribution = np.zeros(n_snapshots(sum(snapshot), len(snapshot)))
    distribution[rank_snapshots([snapshot])[0]] = 1
    return distribution


def dirichlet_projection(seed: int, k: int, n_classes: int) -> Array:
    """Return proj_k of four random atoms."""
    points = np.random.default_rng(seed).dirichlet(np.ones(n_classes), 4)
    return Mixtures.from_ensemble(points[None]).snapshot_distribution(k)[0]


# Thinning


@given(m=mixtures(), data=st.data())
def test_thinning_a_projection_gives_the_smaller_projection(
    m: Mixtures, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, 5))
    j = data.draw(st.integers(1, k))
    thinned = thin_distribution(m.snapshot_distribution(k), k, j, n_classes=m.n_classes)

    np.testing.assert_allclose(thinned, m.snapshot_distribution(j), atol=1e-12)


@given(data=st.data())
def test_thinning_any_distribution_averages_over_subsets(data: st.DataObject) -> None:
    """Realisable or not: each snapshot is replaced by its subsets of two labels."""
    p = data.draw(label_distributions(n_snapshots(3, 3)))
    expected = dict.fromkeys(reference.snapshots(2, 3), 0.0)
    for probability, snapshot in zip(p, reference.snapshots(3, 3), strict=True):
        for smaller, share in reference.thin(snapshot, 2).items():
            expected[smaller] += probability * share

    np.testing.assert_allclose(
        thin_distribution(p, 3, 2, n_classes=3), list(expected.values()), atol=1e-12
    )


@given(p=label_distributions(n_snapshots(4, 2)))
def test_thinning_in_two_steps_equals_thinning_in_one(p: Array) -> None:
    twice = thin_distribution(thin_distribution(p, 4, 3, n_classes=2), 3, 1, n_classes=2)

    np.testing.assert_allclose(twice, thin_distribution(p, 4, 1, n_classes=2), atol=1e-12)


def test_thinning_to_all_labels_changes_nothing() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(10))

    np.testing.assert_allclose(thin_distribution(p, 3, 3, n_classes=3), p, atol=1e-12)


def test_thinning_works_over_several_leading_axes() -> None:
    """The docstring promises (..., n_snapshots)."""
    p = np.random.default_rng(0).dirichlet(np.ones(3), size=(4, 5))

    assert thin_distribution(p, 2, 1, n_classes=2).shape == (4, 5, 2)


# Ordered tuples


@given(m=mixtures(n_items=1), k=st.integers(1, 3))
def test_tuples_of_a_projection_are_the_moment_tensor(m: Mixtures, k: int) -> None:
    tensor = to_tuples(m.snapshot_distribution(k)[0], k, n_classes=m.n_classes)

    np.testing.assert_allclose(
        tensor, reference.tuple_probabilities(reference.atoms_of(m, 0), k), atol=1e-12
    )


@given(p=label_distributions(n_snapshots(3, 3)))
def test_tuples_lead_back_to_their_snapshots(p: Array) -> None:
    np.testing.assert_allclose(from_tuples(to_tuples(p, 3, n_classes=3)), p, atol=1e-12)


@given(p=label_distributions(27))
def test_tuples_in_any_order_count_towards_their_snapshot(p: Array) -> None:
    """The tensor need not be symmetric."""
    tensor = p.reshape(3, 3, 3)
    expected = dict.fromkeys(reference.snapshots(3, 3), 0.0)
    for labels in itertools.product(range(3), repeat=3):
        expected[reference.snapshot_of(labels, 3)] += tensor[labels]

    np.testing.assert_allclose(from_tuples(tensor), list(expected.values()), atol=1e-12)


@given(p=label_distributions(n_snapshots(3, 3)), seed=seeds)
def test_the_order_of_tuples_carries_no_information(p: Array, seed: int) -> None:
    tensor = to_tuples(p, 3, n_classes=3)
    axes = np.random.default_rng(seed).permutation(3)

    np.testing.assert_allclose(tensor.transpose(axes), tensor, atol=1e-15)


def test_tuples_of_one_label_are_the_reversed_snapshots() -> None:
    """Snapshot (0, 1), the second class, comes first in lexicographic order."""
    assert to_tuples([0.3, 0.7], 1, n_classes=2).tolist() == [0.7, 0.3]


# Realisability


@pytest.mark.parametrize(
    ("k", "n_classes"), [(1, 2), (2, 2), (5, 2), (10, 2), (2, 3), (3, 3), (2, 4), (2, 5)]
)
def test_a_projection_is_realisable(k: int, n_classes: int) -> None:
    result = nearest_realisable(dirichlet_projection(0, k, n_classes), k, n_classes=n_classes)

    assert result.distance == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize(("seed", "k", "n_classes"), [(1, 4, 3), (3, 4, 3)])
def test_a_larger_projection_is_realisable(seed: int, k: int, n_classes: int) -> None:
    result = nearest_realisable(dirichlet_projection(seed, k, n_classes), k, n_classes=n_classes)

    assert result.distance == pytest.approx(0, abs=1e-5)


def test_two_labels_that_always_differ_are_half_away_from_any_mixture() -> None:
    assert nearest_realisable([0, 1, 0], 2, n_classes=2).distance == pytest.approx(0.5, abs=1e-6)


def test_two_of_three_labels_that_always_differ_are_a_third_away() -> None:
    """Two labels of a mixture agree with probability sum p_j^2, at least 1/3."""
    never_equal = (at(1, 1, 0) + at(1, 0, 1) + at(0, 1, 1)) / 3

    assert nearest_realisable(never_equal, 2, n_classes=3).distance == pytest.approx(
        1 / 3, abs=1e-6
    )


def test_three_labels_that_all_differ_are_seven_ninths_away() -> None:
    """6 p_1 p_2 p_3 is at most 6/27, at the centre."""
    assert nearest_realisable(at(1, 1, 1), 3, n_classes=3).distance == pytest.approx(
        7 / 9, abs=1e-6
    )


@settings(max_examples=20)
@given(p=label_distributions(3))
def test_pairs_of_two_classes_are_realisable_unless_they_differ_too_often(p: Array) -> None:
    """E[p^2] >= E[p]^2 is all that two labels ask for: P(differ)^2 <= 4 P(both 0) P(both 1)."""
    margin = p[1] ** 2 - 4 * p[0] * p[2]
    distance = nearest_realisable(p, 2, n_classes=2).distance

    assert distance <= 1e-6 if margin <= 0 else distance > 0.05 * margin


@pytest.mark.parametrize("target", [[0, 1, 0], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3], [1, 0, 0]])
def test_the_mixture_lies_at_the_stated_distance(target: list[float]) -> None:
    result = nearest_realisable(target, 2, n_classes=2)
    generated = result.mixture.snapshot_distribution(2)[0]

    assert np.abs(generated - target).sum() / 2 == pytest.approx(result.distance, abs=1e-6)


def test_no_random_mixture_is_nearer_than_the_nearest() -> None:
    target = np.random.default_rng(0).dirichlet(np.full(6, 0.3))
    distance = nearest_realisable(target, 2, n_classes=3).distance
    points = np.random.default_rng(1).dirichlet(np.full(3, 0.5), size=(2000, 3))
    others = Mixtures.from_ensemble(points).snapshot_distribution(2)

    assert distance <= np.abs(others - target).sum(axis=1).min() / 2 + 1e-9


def test_atoms_between_lattice_points_are_found() -> None:
    """A single atom off the lattice generates an extreme distribution that only it comes near."""
    atom = np.array([[0.123456, 0.3, 0.576544]])
    target = Mixtures.from_points(atom).snapshot_distribution(4)[0]

    assert nearest_realisable(target, 4, n_classes=3).distance == pytest.approx(0, abs=1e-6)


# Bad input


@pytest.mark.parametrize(
    ("distribution", "message"),
    [
        (
            [0.5, 0.5],
            r"`distribution` must have 3 entries on its last axis, one for each 2-snapshot of 2 cl",
        ),
        (0.5, r"`distribution` must have 3 entries on its last axis, .* got shape \(\)"),
        ([0.5, 0.5, 0.5], r"`distribution` must sum to 1 .* got 1\.5"),
        ([1.5, -0.5, 0], r"`distribution` must be non-negative numbers, got -0\.5"),
        ([np.nan, 1, 0], "`distribution` must be non-negative numbers, got nan"),
        (["a", "b", "c"], "`distribution` must be an array of numbers, got dtype <U1"),
        ([], "`distribution` must not be empty"),
    ],
)
def test_what_is_no_distribution_over_snapshots_is_refused(distribution: Any, message: str) -> None:
    for use in (
        lambda: thin_distribution(distribution, 2, 1, n_classes=2),
        lambda: to_tuples(distribution, 2, n_classes=2),
        lambda: nearest_realisable(distribution, 2, n_classes=2),
    ):
        with pytest.raises(ValueError, match=message):
            use()


@pytest.mark.parametrize("k", [0, 2.0, True])
def test_a_distribution_needs_a_positive_k(k: Any) -> None:
    with pytest.raises(ValueError, match=f"`k` must be an integer of at least 1, got {k!r}"):
        thin_distribution([0.25, 0.5, 0.25], k, 1, n_classes=2)


def test_labels_cannot_be_added_by_thinning() -> None:
    with pytest.raises(
        ValueError,
        match=r"`j` must be an integer from 1 to 2, got 3\. Labels can be removed, not added",
    ):
        thin_distribution([0.25, 0.5, 0.25], 2, 3, n_classes=2)


def test_a_distribution_needs_two_classes() -> None:
    with pytest.raises(ValueError, match="`n_classes` must be an integer of at least 2, got 1"):
        to_tuples([1.0], 2, n_classes=1)


@pytest.mark.parametrize("n_rows", [1, 3])
def test_tuples_of_a_batch_are_refused(n_rows: int) -> None:
    with pytest.raises(ValueError, match="`distribution` must be a single distribution, got shape"):
        to_tuples(np.full((n_rows, 3), 1 / 3), 2, n_classes=2)


@pytest.mark.parametrize("tensor", [[[0.25, 0.75]], 3.0, [1.0]])
def test_a_tensor_with_unequal_axes_is_refused(tensor: Any) -> None:
    with pytest.raises(
        ValueError, match="`tensor` must have axes of one length, the number of classes, got shape"
    ):
        from_tuples(tensor)


@pytest.mark.parametrize(
    "tensor", [[[0.5, 0.5], [0.5, 0.5]], [[-0.5, 0.5], [0.5, 0.5]], [[np.nan, 0.5], [0.5, 0]]]
)
def test_a_tensor_that_is_no_distribution_is_refused(tensor: Any) -> None:
    with pytest.raises(ValueError, match="`tensor` must"):
        from_tuples(tensor)


def test_a_tensor_too_large_to_write_down_is_refused() -> None:
    with pytest.raises(
        ValueError,
        match=r"`k` must give at most 1000000 ordered tuples, got 10\*\*7\. Work with snap",
    ):
        to_tuples(at(7, 0, 0, 0, 0, 0, 0, 0, 0, 0), 7, n_classes=10)


def test_a_distribution_beyond_digits_is_refused_in_words() -> None:
    with pytest.raises(ValueError, match=r"must have about 10\*\*6426 entries on its last axis"):
        thin_distribution([0.5, 0.5], 10**9, 1, n_classes=1000)


def test_classes_may_be_counted_in_eight_bits() -> None:
    p = np.full(6, 1 / 6)
    few: Any = np.int8(3)

    found = nearest_realisable(p, 2, n_classes=few).distance

    assert found == nearest_realisable(p, 2, n_classes=3).distance


def test_a_batch_has_no_nearest_mixture() -> None:
    with pytest.raises(
        ValueError, match=r"`distribution` must be a single distribution, got shape \(2, 3\)"
    ):
        nearest_realisable(np.full((2, 3), 1 / 3), 2, n_classes=2)


@pytest.mark.parametrize("tolerance", [0, -1, np.nan, "small"])
def test_a_tolerance_must_be_positive(tolerance: Any) -> None:
    with pytest.raises(ValueError, match="`tolerance` must be a number greater than 0, got"):
        nearest_realisable([0.25, 0.5, 0.25], 2, n_classes=2, tolerance=tolerance)


def test_distributions_come_in_the_order_of_the_enumeration() -> None:
    """The vertex (1, 0, 0) generates the last snapshot of every list."""
    p = Mixtures.from_points([[1, 0, 0]]).snapshot_distribution(2)[0]

    assert enumerate_snapshots(2, 3)[p.argmax()].tolist() == [2, 0, 0]
