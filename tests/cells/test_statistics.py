"""Cell statistics: additive, exact, independent of the order of the data."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

import hocal
from hocal.cells.statistics import CellStatistics, Histogram, align_counts

GENERATOR = np.random.default_rng(3)
PREDICTIONS = GENERATOR.dirichlet(np.full(4, 0.5), size=300)
COUNTS = GENERATOR.multinomial(GENERATOR.integers(1, 6, size=300), PREDICTIONS)
PARTITION = hocal.TopLabelPartition(n_slices=3).fit(PREDICTIONS)
CELLS = PARTITION.assign(PREDICTIONS)


def statistics(rows: object = slice(None)) -> CellStatistics:
    return CellStatistics.from_items(
        PREDICTIONS[rows], COUNTS[rows], CELLS[rows], PARTITION.layout_
    )  # type: ignore[index]


def same(first: CellStatistics, second: CellStatistics) -> bool:
    pairs = [
        *zip(first.observed, second.observed, strict=True),
        *zip(first.aligned, second.aligned, strict=True),
    ]
    return all(np.array_equal(a, b) for a, b in [*pairs, (first.predicted, second.predicted)])


@given(st.lists(st.integers(0, 2), min_size=300, max_size=300), st.permutations(range(3)))
def test_any_split_in_any_order_gives_the_same_statistics(
    part: list[int], order: list[int]
) -> None:
    pieces = [statistics(np.array(part) == i) for i in order if i in part]

    merged = pieces[0]
    for piece in pieces[1:]:
        merged = merged + piece

    assert same(merged, statistics())


def test_the_order_of_items_does_not_matter() -> None:
    assert same(statistics(np.random.default_rng(0).permutation(300)), statistics())


def test_histogram_rows_are_distinct_and_count_every_item() -> None:
    observed = statistics().observed

    rows = {
        (int(cell), *map(int, row))
        for cell, row in zip(observed.cells, observed.counts, strict=True)
    }

    assert len(rows) == len(observed.cells)
    assert observed.multiplicity.sum() == 300


def test_items_and_labels_are_counted_in_each_cell() -> None:
    held = statistics()

    assert held.n_items.tolist() == np.bincount(CELLS, minlength=12).tolist()
    assert (
        held.n_labels.tolist()
        == np.bincount(CELLS, COUNTS.sum(axis=1), minlength=12).astype(int).tolist()
    )


def test_aligned_counts_follow_the_order_of_the_predictions() -> None:
    assert align_counts(np.array([[0.1, 0.6, 0.3]]), np.array([[7, 8, 9]])).tolist() == [[8, 9, 7]]


def test_ties_keep_the_order_of_the_classes() -> None:
    assert align_counts(np.array([[0.5, 0.5]]), np.array([[1, 2]])).tolist() == [[1, 2]]


def test_sparse_counts_align_like_dense_ones() -> None:
    aligned = align_counts(PREDICTIONS, sparse.csr_array(COUNTS))

    assert (aligned.toarray() == align_counts(PREDICTIONS, COUNTS)).all()


@pytest.mark.parametrize("times", [None, np.arange(1, 301)])
def test_sparse_counts_give_the_rows_of_dense_ones_in_their_order(
    times: NDArray[np.int64] | None,
) -> None:
    """Cell 0 is filled: its number is no entry of a sparse matrix."""
    cells = np.arange(300) % 3
    held = Histogram.of(cells, sparse.csr_array(COUNTS), times)
    dense = Histogram.of(cells, COUNTS, times)

    assert held.cells.tolist() == dense.cells.tolist()
    assert held.counts.toarray().tolist() == dense.counts.tolist()
    assert held.multiplicity.tolist() == dense.multiplicity.tolist()


def test_sparse_and_dense_statistics_merge() -> None:
    half = np.arange(300) < 150
    left = CellStatistics.from_items(
        PREDICTIONS[half], sparse.csr_array(COUNTS[half]), CELLS[half], PARTITION.layout_
    )

    assert (left + statistics(~half)).n_labels.tolist() == statistics().n_labels.tolist()


def test_mean_prediction_is_the_mean_of_sorted_predictions() -> None:
    inside = np.flatnonzero(CELLS[0] == CELLS)
    expected = -np.sort(-PREDICTIONS[inside], axis=1).mean(axis=0)

    np.testing.assert_allclose(statistics().mean_prediction[CELLS[0]], expected, atol=1e-9)


def test_mean_prediction_of_an_empty_cell_is_nan() -> None:
    empty = np.flatnonzero(statistics().n_items == 0)[0]

    assert np.isnan(statistics().mean_prediction[empty]).all()


def test_histograms_merge_multiplicities() -> None:
    one = Histogram.of(np.array([1]), np.array([[0, 2]]))

    assert (one + one + one).multiplicity.tolist() == [3]


def test_statistics_of_different_partitions_do_not_merge() -> None:
    other = hocal.TopLabelPartition(n_slices=4).fit(PREDICTIONS)
    moved = CellStatistics.from_items(PREDICTIONS, COUNTS, other.assign(PREDICTIONS), other.layout_)

    with pytest.raises(ValueError, match="`other` must come from the same partition"):
        statistics() + moved


def test_predictions_and_counts_must_describe_the_same_items() -> None:
    with pytest.raises(
        ValueError,
        match="`probabilities` and `counts` must describe the same items, got 300 and 299",
    ):
        CellStatistics.from_items(PREDICTIONS, COUNTS[:-1], CELLS, PARTITION.layout_)


def test_items_without_labels_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 label in each row, got 0 in row 2"):
        CellStatistics.from_items(
            PREDICTIONS[:3], [[1, 0, 0, 0], [1, 0, 0, 0], [0] * 4], CELLS[:3], PARTITION.layout_
        )


@pytest.mark.parametrize("largest", [3, 2**40])
def test_a_histogram_counts_equal_rows_in_sorted_order(largest: int) -> None:
    """Rows of small counts fit into one integer, rows of large ones do not."""
    generator = np.random.default_rng(0)
    cells, counts = generator.integers(0, 3, 200), generator.integers(0, 2, (200, 4)) * largest

    found = Histogram.of(cells, counts)

    expected = sorted(Counter(map(tuple, np.column_stack([cells, counts]).tolist())).items())
    assert [
        (cell, *row) for cell, row in zip(found.cells.tolist(), found.counts.tolist(), strict=True)
    ] == [row for row, _ in expected]
    assert found.multiplicity.tolist() == [times for _, times in expected]
