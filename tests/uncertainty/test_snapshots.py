"""Count vectors: drawing, thinning, listing, ranking, compressing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import hocal
import reference
from hocal._base.typing import IntArray
from hocal.uncertainty.distinct_counts import compress
from hocal.uncertainty.snapshots import (
    draw_labels,
    draw_snapshots,
    enumerate_snapshots,
    log_multiplicity,
    n_snapshots,
    rank_snapshots,
    sub_snapshots,
)
from strategies import count_matrices, seeds

# Enumeration


@pytest.mark.parametrize(
    ("k", "size"), [(1, 10), (2, 55), (3, 220), (4, 715), (5, 2002), (10, 92378)]
)
def test_the_number_of_snapshots_of_ten_classes_is_known(k: int, size: int) -> None:
    assert n_snapshots(k, 10) == size


def test_the_number_of_snapshots_is_exact_beyond_64_bits() -> None:
    assert n_snapshots(100, 1000) == math.comb(1099, 999)


def test_pairs_of_two_classes_have_three_snapshots() -> None:
    """Erratum E12: the paper counts four, the ordered pairs."""
    assert n_snapshots(2, 2) == 3


@given(k=st.integers(0, 5), n_classes=st.integers(2, 4))
def test_snapshots_are_listed_in_lexicographic_order(k: int, n_classes: int) -> None:
    assert [tuple(s) for s in enumerate_snapshots(k, n_classes).tolist()] == reference.snapshots(
        k, n_classes
    )


@given(k=st.integers(0, 8), n_classes=st.integers(2, 5))
def test_ranks_undo_the_enumeration(k: int, n_classes: int) -> None:
    assert rank_snapshots(enumerate_snapshots(k, n_classes)).tolist() == list(
        range(n_snapshots(k, n_classes))
    )


@given(counts=count_matrices(minimum_total=0))
def test_each_row_is_ranked_among_those_with_its_own_total(counts: IntArray) -> None:
    listed = [reference.snapshots(sum(row), len(row)).index(tuple(row)) for row in counts.tolist()]

    assert rank_snapshots(counts).tolist() == listed


def test_sparse_counts_have_the_ranks_of_dense_ones() -> None:
    counts = enumerate_snapshots(3, 3)

    assert rank_snapshots(sparse.csr_array(counts)).tolist() == list(range(10))


def test_a_list_beyond_the_size_guard_is_refused() -> None:
    with pytest.raises(
        ValueError, match="`k` must give at most 54 snapshots, got 55 for k=2 and 10 classes"
    ):
        enumerate_snapshots(2, 10, max_size=54)


def test_a_size_beyond_digits_is_told_by_its_power_of_ten() -> None:
    with pytest.raises(hocal.InputError, match=r"got about 10\*\*6426 for k=1000000000 and 1000"):
        enumerate_snapshots(10**9, 1000)


def test_a_list_that_takes_more_than_its_rows_to_make_is_refused() -> None:
    """Its rows alone would take 1.2 GB, and five times as much while they are listed."""
    with pytest.raises(hocal.InputError, match=r"got 6\.4 GB for 50,015,001 snapshots"):
        enumerate_snapshots(10_000, 3, max_size=10**9)


def test_sizes_of_eight_bits_are_numbers_like_others() -> None:
    k, n_classes = np.int8(100), np.int8(100)

    assert n_snapshots(k, n_classes) == math.comb(199, 99)
    assert enumerate_snapshots(np.int8(2), np.int8(30)).shape == (465, 30)


def test_a_list_at_the_size_guard_is_made() -> None:
    assert len(enumerate_snapshots(2, 10, max_size=55)) == 55


def test_fifty_labels_of_ten_classes_are_not_listed() -> None:
    with pytest.raises(ValueError, match="Use a smaller k, merge classes, or raise max_size"):
        enumerate_snapshots(50, 10)


def test_a_rank_beyond_64_bits_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"`counts` must have a rank below 2\*\*62, got about 10\*\*\d+ snapshots"
    ):
        rank_snapshots(np.full((1, 100), 5))


@given(counts=count_matrices(minimum_total=0))
def test_multiplicity_counts_the_orders_of_the_labels(counts: IntArray) -> None:
    expected = [math.log(reference.multiplicity(row)) for row in counts.tolist()]

    np.testing.assert_allclose(log_multiplicity(counts), expected, atol=1e-12)


def test_multiplicity_of_a_single_snapshot_is_a_scalar() -> None:
    assert log_multiplicity([2, 1]) == pytest.approx(math.log(3))


# Drawing


def test_drawn_labels_sum_to_k() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(4), 50)

    assert (draw_labels(p, 7, random_state=1).sum(axis=1) == 7).all()


def test_impossible_labels_are_never_drawn() -> None:
    assert draw_labels([[0.0, 1.0, 0.0]] * 20, 5, random_state=0).tolist() == [[0, 5, 0]] * 20


def test_label_frequencies_approach_their_probabilities() -> None:
    p = np.array([0.1, 0.2, 0.7])
    frequency = draw_labels(p[None], 100_000, random_state=0)[0] / 100_000

    np.testing.assert_allclose(frequency, p, atol=0.006)  # four standard deviations


def test_float32_probabilities_can_be_drawn_from() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(1000), 5).astype(np.float32)

    assert (draw_labels(p, 3, random_state=0).sum(axis=1) == 3).all()


def test_a_seed_repeats_a_draw_of_labels() -> None:
    p = np.full((20, 3), 1 / 3)

    assert np.array_equal(draw_labels(p, 5, random_state=4), draw_labels(p, 5, random_state=4))


def test_a_generator_moves_on_between_draws() -> None:
    p, generator = np.full((20, 3), 1 / 3), np.random.default_rng(4)

    assert not np.array_equal(
        draw_labels(p, 5, random_state=generator), draw_labels(p, 5, random_state=generator)
    )


@given(counts=count_matrices(minimum_total=2), seed=seeds)
def test_a_draw_without_replacement_is_part_of_the_labels(counts: IntArray, seed: int) -> None:
    drawn = draw_snapshots(counts, 2, random_state=seed)

    assert (drawn.sum(axis=1) == 2).all()
    assert (drawn <= counts).all()
    assert (drawn >= 0).all()


def test_drawing_all_labels_returns_the_counts() -> None:
    counts = np.array([[3, 0, 2], [1, 4, 0]])

    assert np.array_equal(draw_snapshots(counts, 5, random_state=0), counts)


def test_random_thinning_has_the_exact_hypergeometric_distribution() -> None:
    exact = sub_snapshots([[3, 2, 1]], 3)
    drawn = compress(draw_snapshots(np.tile([3, 2, 1], (40_000, 1)), 3, random_state=0))

    assert np.array_equal(drawn.unique, exact.snapshots)
    np.testing.assert_allclose(drawn.multiplicity / 40_000, exact.probabilities, atol=0.01)


def test_a_draw_with_replacement_may_exceed_the_labels() -> None:
    assert draw_snapshots([[1, 0]], 5, replace=True, random_state=0).tolist() == [[5, 0]]


def test_drawing_from_sparse_counts_equals_drawing_from_dense_ones() -> None:
    counts = np.random.default_rng(0).integers(1, 5, (10, 3))
    dense, thin = (
        draw_snapshots(x, 2, random_state=5) for x in (counts, sparse.csr_matrix(counts))
    )

    assert np.array_equal(dense, thin)


@pytest.mark.parametrize("replace", [False, True])
def test_a_seed_repeats_a_draw_of_snapshots(replace: bool) -> None:
    counts = np.full((20, 3), 4)
    first, second = (draw_snapshots(counts, 5, replace=replace, random_state=4) for _ in range(2))

    assert np.array_equal(first, second)


# Exact thinning


@given(counts=count_matrices(minimum_total=3), k=st.integers(1, 3))
def test_thinning_equals_the_enumeration_of_subsets(counts: IntArray, k: int) -> None:
    thinned = sub_snapshots(counts, k)
    for item, row in enumerate(counts.tolist()):
        mine = thinned.items == item
        found = zip(
            map(tuple, thinned.snapshots[mine].tolist()),
            thinned.probabilities[mine].tolist(),
            strict=True,
        )

        assert dict(found) == pytest.approx(reference.thin(row, k), abs=1e-12)


def test_thinned_rows_are_grouped_by_item() -> None:
    items = sub_snapshots([[2, 1], [0, 3], [4, 4]], 2).items

    assert items.tolist() == [0, 0, 1, 2, 2, 2]


@given(counts=count_matrices(minimum_total=2))
def test_thinning_keeps_the_mean(counts: IntArray) -> None:
    thinned = sub_snapshots(counts, 2)
    mean = np.zeros(counts.shape)
    np.add.at(mean, thinned.items, thinned.snapshots * thinned.probabilities[:, None] / 2)

    np.testing.assert_allclose(mean, counts / counts.sum(axis=1, keepdims=True), atol=1e-12)


def test_thinning_sparse_counts_equals_thinning_dense_ones() -> None:
    counts = np.random.default_rng(0).integers(1, 4, (6, 3))
    dense, thin = sub_snapshots(counts, 2), sub_snapshots(sparse.csr_array(counts), 2)

    assert all(np.array_equal(a, b) for a, b in zip(dense, thin, strict=True))


def test_thinning_hundreds_of_labels_stays_normalised() -> None:
    assert sub_snapshots([[300, 200, 500]], 20).probabilities.sum() == pytest.approx(1, abs=1e-10)


def test_a_thinning_beyond_the_size_guard_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"`k` must give at most 4 sub-snapshots, got 5 or more for k=4\. Use a sm"
    ):
        sub_snapshots([[5, 5]], 4, max_size=4)


# Compression


@given(counts=count_matrices(minimum_total=0))
def test_compression_counts_distinct_rows(counts: IntArray) -> None:
    packed = compress(counts)
    found = dict(zip(map(tuple, packed.unique.tolist()), packed.multiplicity.tolist(), strict=True))

    assert found == reference.compress(counts)


@given(counts=count_matrices(minimum_total=0))
def test_compression_can_be_undone(counts: IntArray) -> None:
    packed = compress(counts)

    assert np.array_equal(packed.unique[packed.inverse], counts)


@given(counts=count_matrices(minimum_total=0))
def test_distinct_rows_come_in_lexicographic_order(counts: IntArray) -> None:
    rows = compress(counts).unique.tolist()

    assert rows == sorted(rows)


@given(counts=count_matrices(minimum_total=0))
def test_sparse_rows_are_counted_like_dense_ones(counts: IntArray) -> None:
    packed = compress(sparse.csr_array(counts))
    found = dict(
        zip(map(tuple, packed.unique.toarray().tolist()), packed.multiplicity.tolist(), strict=True)
    )

    assert found == reference.compress(counts)


@given(counts=count_matrices(minimum_total=0))
def test_sparse_compression_can_be_undone(counts: IntArray) -> None:
    packed = compress(sparse.csr_array(counts))

    assert np.array_equal(packed.unique.toarray()[packed.inverse], counts)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_compression_is_exact_when_codes_overflow(form: Any) -> None:
    """A row of 1,000 classes does not fit into one integer; rows differ in a late label."""
    generator = np.random.default_rng(0)
    rows = generator.integers(0, 3, (1, 1000)) + (
        np.arange(1000) == generator.integers(900, 1000, (300, 1))
    )
    packed = compress(form(rows))
    unique = packed.unique if isinstance(packed.unique, np.ndarray) else packed.unique.toarray()
    found = dict(zip(map(tuple, unique.tolist()), packed.multiplicity.tolist(), strict=True))

    assert 50 < len(found) < 300
    assert found == reference.compress(rows)


def test_overflowing_codes_keep_the_lexicographic_order() -> None:
    rows = compress(np.random.default_rng(1).integers(0, 50, (200, 30))).unique.tolist()

    assert rows == sorted(rows)


def test_counts_of_a_billion_compress() -> None:
    counts = np.array([[10**9, 1, 10**9], [10**9, 0, 10**9], [10**9, 1, 10**9]])

    assert compress(counts).inverse.tolist() == [1, 0, 1]


def test_counts_near_the_largest_integer_compress() -> None:
    assert compress([[2**62 - 1, 0], [0, 1]]).inverse.tolist() == [1, 0]


def test_stored_zeros_do_not_make_sparse_rows_differ() -> None:
    """Both rows are (1, 0, 0); the first stores its second zero."""
    counts = sparse.csr_array(
        (np.array([1, 0, 1]), np.array([0, 1, 0]), np.array([0, 2, 3])), shape=(2, 3)
    )

    assert compress(counts).multiplicity.tolist() == [2]


def test_items_without_labels_compress() -> None:
    assert compress(sparse.csr_array((3, 4), dtype=np.int64)).multiplicity.tolist() == [3]


# Bad input


@pytest.mark.parametrize("k", [0, -1, 2.0, True, "2", None])
def test_k_must_be_a_positive_integer(k: Any) -> None:
    for use in (
        lambda: draw_labels([[0.5, 0.5]], k),
        lambda: draw_snapshots([[3, 3]], k),
        lambda: sub_snapshots([[3, 3]], k),
    ):
        with pytest.raises(ValueError, match=f"`k` must be an integer of at least 1, got {k!r}"):
            use()


@pytest.mark.parametrize("k", [-1, 2.0, True])
def test_a_number_of_snapshots_needs_a_whole_k(k: Any) -> None:
    with pytest.raises(ValueError, match=f"`k` must be an integer of at least 0, got {k!r}"):
        n_snapshots(k, 3)


@pytest.mark.parametrize("n_classes", [1, 0, 3.0, True])
def test_snapshots_need_two_classes(n_classes: Any) -> None:
    with pytest.raises(
        ValueError, match=f"`n_classes` must be an integer of at least 2, got {n_classes!r}"
    ):
        enumerate_snapshots(2, n_classes)


def test_more_labels_than_an_item_has_cannot_be_drawn() -> None:
    with pytest.raises(
        ValueError, match="`counts` must have at least 4 labels in each row, got 3 in row 1"
    ):
        draw_snapshots([[2, 2], [1, 2]], 4)


def test_an_item_cannot_be_thinned_to_more_labels_than_it_has() -> None:
    with pytest.raises(
        ValueError, match="`counts` must have at least 4 labels in each row, got 3 in row 1"
    ):
        sub_snapshots([[2, 2], [1, 2]], 4)


def test_nothing_can_be_drawn_from_an_item_without_labels() -> None:
    with pytest.raises(
        ValueError, match="`counts` must have at least 1 label in each row, got 0 in row 1"
    ):
        draw_snapshots([[2, 2], [0, 0]], 4, replace=True)


def test_labels_need_a_row_of_probabilities_an_item() -> None:
    with pytest.raises(
        ValueError, match=r"`probabilities` must have 2 dimensions, got shape \(2,\)"
    ):
        draw_labels([0.5, 0.5], 3)


def test_labels_are_not_drawn_from_what_is_no_distribution() -> None:
    with pytest.raises(
        ValueError, match=r"`probabilities` must sum to 1 over the classes, got 0\.9 in row 0"
    ):
        draw_labels([[0.5, 0.4]], 3)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([[1, -2]], "`counts` must be non-negative, got -2 in row 0"),
        ([[1, 0.5]], r"`counts` must be whole numbers, got 0\.5 in row 0"),
        ([[1, np.nan]], "`counts` must be whole numbers, got nan in row 0"),
    ],
)
def test_bad_counts_are_not_compressed(counts: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compress(counts)


@pytest.mark.parametrize("counts", [[-1, 2], [0.5, 2], [np.nan, 2]])
def test_bad_counts_have_no_multiplicity(counts: Any) -> None:
    with pytest.raises(ValueError, match="`counts` must be"):
        log_multiplicity(counts)


def test_a_size_guard_must_be_a_number() -> None:
    with pytest.raises(ValueError, match="`max_size` must be"):
        enumerate_snapshots(2, 2, max_size="many")  # type: ignore[arg-type]
