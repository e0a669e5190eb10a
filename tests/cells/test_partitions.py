"""Partitions: every item gets one cell, by its predictions alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import hocal
from hocal.cells.given_cells import CallablePartition
from hocal.cells.partitions import Partition, as_partition

PREDICTIONS = np.random.default_rng(5).dirichlet(np.full(3, 0.5), size=500)


def test_top_label_cells_are_class_times_slices_plus_slice() -> None:
    partition = hocal.TopLabelPartition(n_slices=10).fit(PREDICTIONS)

    assert partition.assign([[0.05, 0.85, 0.1]]).tolist() == [18]


def test_confidence_of_one_belongs_to_the_last_slice() -> None:
    assert hocal.TopLabelPartition(n_slices=10).fit(PREDICTIONS).assign([[1.0, 0, 0]]).tolist() == [
        9
    ]


def test_ten_slices_of_ten_classes_leave_the_lowest_slice_empty() -> None:
    """Erratum E13: the top of ten probabilities is at least 0.1, so at most 90 cells fill."""
    p = np.random.default_rng(0).dirichlet(np.ones(10), size=20_000)

    cells = hocal.TopLabelPartition(n_slices=10).fit(p).assign(p)

    assert not np.isin(np.arange(10) * 10, cells).any()


def test_uniform_bins_cut_the_second_class() -> None:
    partition = hocal.UniformPartition(n_bins=2).fit([[0.5, 0.5]])

    assert partition.assign([[0.51, 0.49], [0.5, 0.5], [0.0, 1.0]]).tolist() == [0, 1, 1]


def test_uniform_bins_need_two_classes() -> None:
    with pytest.raises(ValueError, match="two classes for a UniformPartition, got 3"):
        hocal.UniformPartition().fit(PREDICTIONS)


def test_quantile_slices_are_equally_filled() -> None:
    cells = hocal.QuantilePartition(n_slices=4).fit(PREDICTIONS).assign(PREDICTIONS)
    sizes = np.bincount(cells, minlength=12).reshape(3, 4)

    assert (np.ptp(sizes, axis=1) <= 2).all()


def test_quantiles_of_a_class_never_on_top_come_from_all_items() -> None:
    partition = hocal.QuantilePartition(n_slices=2).fit([[0.6, 0.4], [0.8, 0.2]])

    assert partition.assign([[0.1, 0.9]]).tolist() == [3]


def test_level_sets_hold_equal_rounded_predictions() -> None:
    partition = hocal.LevelSetPartition(decimals=1).fit(PREDICTIONS)
    cells = partition.assign(PREDICTIONS)

    assert all(
        len(np.unique(np.round(PREDICTIONS[cells == c], 1), axis=0)) == 1 for c in np.unique(cells)
    )


def test_an_unseen_level_goes_to_the_nearest() -> None:
    partition = hocal.LevelSetPartition(decimals=1).fit([[0.1, 0.9], [0.9, 0.1]])

    assert partition.assign([[0.3, 0.7]]).tolist() == [0]


def test_kmeans_makes_no_more_cells_than_distinct_predictions() -> None:
    assert hocal.KMeansPartition(n_cells=50).fit([[0.1, 0.9], [0.9, 0.1], [0.9, 0.1]]).n_cells_ == 2


def test_predictions_are_told_apart_however_many_equal_ones_come_first() -> None:
    p = np.repeat([[0.5, 0.5], [0.1, 0.9], [0.9, 0.1]], [100_000, 1, 1], axis=0)

    assert hocal.KMeansPartition(n_cells=10).fit(p).n_cells_ == 3


def test_kmeans_is_deterministic() -> None:
    first, second = (
        hocal.KMeansPartition(n_cells=7).fit(PREDICTIONS).assign(PREDICTIONS) for _ in range(2)
    )

    assert (first == second).all()


def test_a_callable_is_a_partition() -> None:
    partition = as_partition(lambda p: (p[:, 0] > 0.5).astype(int)).fit(PREDICTIONS)

    assert partition.n_cells_ == 2


def test_a_callable_must_not_name_cells_it_did_not_declare() -> None:
    with pytest.raises(ValueError, match="must be below 2, got 2"):
        CallablePartition(lambda p: np.full(len(p), 2), n_cells=2).fit(PREDICTIONS)


def test_no_partition_means_ten_slices_a_top_label() -> None:
    assert isinstance(as_partition(None), hocal.TopLabelPartition)


def test_something_else_is_no_partition() -> None:
    with pytest.raises(
        ValueError, match="`partition` must be a Partition or a callable, got 'top'"
    ):
        as_partition("top")


def test_precomputed_cells_are_passed_through() -> None:
    partition = hocal.PrecomputedPartition(n_cells=4).fit(PREDICTIONS)

    assert partition.assign(PREDICTIONS[:3], cells=[3, 0, 1]).tolist() == [3, 0, 1]


def test_precomputed_cells_must_be_given() -> None:
    with pytest.raises(ValueError, match="`cells` must be given with a PrecomputedPartition"):
        hocal.PrecomputedPartition(n_cells=4).fit(PREDICTIONS).assign(PREDICTIONS)


def test_cells_are_refused_by_a_partition_that_computes_them() -> None:
    with pytest.raises(ValueError, match="`cells` must be left out with a TopLabelPartition"):
        hocal.TopLabelPartition().fit(PREDICTIONS).assign(PREDICTIONS, cells=np.zeros(500, int))


def test_assigning_before_fitting_is_refused() -> None:
    with pytest.raises(NotFittedError, match="not fitted"):
        hocal.TopLabelPartition().assign(PREDICTIONS)


def test_another_number_of_classes_is_refused() -> None:
    with pytest.raises(
        ValueError, match="`probabilities` must have 3 classes on its last axis, got 2"
    ):
        hocal.TopLabelPartition().fit(PREDICTIONS).assign([[0.5, 0.5]])


@pytest.mark.parametrize(
    "partition",
    [
        hocal.TopLabelPartition(4),
        hocal.QuantilePartition(4),
        hocal.LevelSetPartition(1),
        hocal.KMeansPartition(6),
        CallablePartition(lambda p: p.argmax(axis=1)),
    ],
)
@given(row=st.lists(st.floats(0, 1), min_size=3, max_size=3).filter(lambda r: sum(r) > 0.1))
def test_every_prediction_has_a_cell_in_the_layout(
    partition: hocal.TopLabelPartition, row: list[float]
) -> None:
    fitted = clone(partition).fit(PREDICTIONS)

    cell = fitted.assign([np.array(row) / sum(row)])[0]

    assert 0 <= cell < fitted.n_cells_ == len(fitted.layout_.group) == len(fitted.layout_.level)


@pytest.mark.parametrize(
    "partition",
    [
        hocal.TopLabelPartition(100_000),
        hocal.TopLabelPartition(2**60),
        hocal.QuantilePartition(100_000),
        hocal.UniformPartition(100_000),
        hocal.KMeansPartition(2**31),
        hocal.PrecomputedPartition(2**31),
    ],
)
def test_more_cells_than_a_fit_can_hold_are_refused(partition: Partition) -> None:
    with pytest.raises(hocal.InputError, match="must give at most 50,000 cells, got"):
        partition.fit([[0.5, 0.5], [0.4, 0.6]])
