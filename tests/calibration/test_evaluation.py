"""Evaluation: distances to observed snapshots, their noise floor, aleatoric error, coverage."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hocal
from hocal import Mixtures
from hocal.uncertainty.snapshots import draw_labels
from reference import shannon


def world(n_items: int, n_classes: int, seed: int) -> tuple[Mixtures, np.ndarray]:
    """Return a Dirichlet mixture for all items, and label distributions drawn from it."""
    generator = np.random.default_rng(seed)
    atoms = generator.dirichlet(np.full(n_classes, 0.5), size=30)
    mixtures = Mixtures(atoms, np.full(30, 1 / 30), [0, 30], np.zeros(n_items, int))
    return mixtures, atoms[generator.integers(30, size=n_items)]


def test_a_world_of_split_panels_is_half_away_from_agreeing_ones() -> None:
    """Half the snapshots (1, 1) at distance 1 from a vertex, half already there."""
    mixtures = Mixtures.from_points([[0.5, 0.5]] * 100)

    error = hocal.calibration_error(
        mixtures, [[2, 0]] * 50 + [[0, 2]] * 50, cells=[0] * 100, n_resamples=5
    )

    assert error.mean == pytest.approx(0.5)


def test_items_with_more_labels_count_with_all_their_snapshots() -> None:
    """(2, 2) holds the 1-snapshots of a fair coin exactly."""
    error = hocal.calibration_error(
        Mixtures.from_points([[0.5, 0.5]]), [[2, 2]], k=1, n_resamples=1
    )

    assert error.max == pytest.approx(0, abs=1e-12)


def test_resamples_that_are_as_far_but_for_rounding_count_as_far() -> None:
    mixtures, p = world(60, 5, seed=0)
    cells = np.arange(60) % 3
    counts = draw_labels(p, 3, random_state=1)
    error = hocal.calibration_error(mixtures, counts, cells=cells, n_resamples=9, random_state=2)

    tied = replace(error, null=np.tile(error.per_cell * (1 - 1e-15), (9, 1)))

    assert tied.p_value == 1
    assert tied.p_value_per_cell.tolist() == [1, 1, 1]


def test_cells_compared_in_blocks_have_the_distances_of_all_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mixtures, p = world(60, 5, seed=0)
    counts = draw_labels(p, 3, random_state=1)
    options = {"k": 2, "cells": np.arange(60) % 9, "n_cells": 11, "n_resamples": 4}
    whole = hocal.calibration_error(mixtures, counts, **options, random_state=2)
    monkeypatch.setattr("hocal.calibration.evaluation.BLOCK_NUMBERS", 40)

    found = hocal.calibration_error(mixtures, counts, **options, random_state=2)

    assert found.per_cell == pytest.approx(whole.per_cell, abs=1e-12, nan_ok=True)
    assert found.null == pytest.approx(whole.null, abs=1e-12, nan_ok=True)


def test_many_cells_of_many_classes_are_compared_with_fewer_draws(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """110 classes have 6,105 pairs of labels, too many to list; 30 cells get 20 draws each."""
    mixtures, p = world(60, 110, seed=0)
    counts = draw_labels(p, 2, random_state=1)
    monkeypatch.setattr("hocal.calibration.evaluation.MAX_DRAWN", 30 * 110 * 20)
    drawn = []
    draw = Mixtures.draw_in_blocks

    def spy(self: Mixtures, *options: Any) -> object:
        drawn.append(len(self))
        return draw(self, *options)

    monkeypatch.setattr(Mixtures, "draw_in_blocks", spy)

    hocal.calibration_error(mixtures, counts, k=2, cells=np.arange(60) % 30, n_resamples=1)

    assert drawn == [600, 60]


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_p_values_are_uniform_under_the_truth(n_classes: int) -> None:
    """Over 200 worlds the Kolmogorov-Smirnov distance is below its 0.1% quantile, .138."""
    p_values = []
    for seed in range(200):
        mixtures, truth = world(30, n_classes, seed)
        counts = draw_labels(truth, 2, random_state=seed)
        p_values.append(
            hocal.calibration_error(mixtures, counts, n_resamples=19, random_state=seed).p_value
        )

    distance = np.abs(np.sort(p_values) - np.arange(1, 201) / 200).max()

    assert distance < 0.138


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_debiased_error_of_a_calibrated_predictor_is_near_zero(n_classes: int) -> None:
    errors = []
    for seed in range(40):
        mixtures, truth = world(60, n_classes, seed)
        counts = draw_labels(truth, 3, random_state=seed)
        errors.append(hocal.calibration_error(mixtures, counts, n_resamples=20, random_state=seed))

    debiased, floor = (
        np.mean([e.debiased for e in errors]),
        np.mean([e.noise_floor for e in errors]),
    )

    assert abs(debiased) < 0.1 * floor


def test_a_wrong_predictor_is_found_out() -> None:
    _, truth = world(300, 3, seed=1)
    counts = draw_labels(truth, 3, random_state=1)

    error = hocal.calibration_error(
        Mixtures.from_points([[1 / 3] * 3] * 300), counts, cells=[0] * 300, random_state=0
    )

    assert error.p_value < 0.02


def test_too_many_snapshots_to_list_are_replaced_by_a_sample() -> None:
    """Ten labels of ten classes make 92,378 snapshots; a true predictor is not refused."""
    mixtures, truth = world(50, 10, seed=4)
    counts = draw_labels(truth, 10, random_state=5)

    error = hocal.calibration_error(mixtures, counts, n_resamples=9, random_state=6)

    assert abs(error.debiased) < 0.1


def test_cells_without_items_are_nan_and_do_not_count() -> None:
    mixtures = Mixtures.from_points([[0.5, 0.5]] * 2)

    error = hocal.calibration_error(
        mixtures, [[1, 1], [2, 0]], cells=[0, 2], n_cells=4, n_resamples=3
    )

    assert np.isnan(error.per_cell).tolist() == [False, True, False, True]
    assert np.isnan(error.p_value_per_cell).tolist() == [False, True, False, True]
    assert np.isfinite(
        [error.mean, error.max, error.noise_floor, error.noise_floor_max, error.quantile(0.5)]
    ).all()


def test_items_weigh_the_same_in_the_mean() -> None:
    mixtures = Mixtures.from_vertices([[1.0, 0.0]] * 4)

    error = hocal.calibration_error(
        mixtures, [[1, 0], [1, 0], [1, 0], [0, 1]], cells=[0, 0, 0, 1], n_resamples=1
    )

    assert error.per_cell.tolist() == [0, 2]
    assert error.mean == 0.5


def test_a_cell_averages_the_mixtures_of_its_items() -> None:
    """One certain yes and one certain no make a cell of two certain halves."""
    mixtures = Mixtures.from_points([[1.0, 0.0], [0.0, 1.0]])

    error = hocal.calibration_error(mixtures, [[0, 3], [3, 0]], cells=[0, 0], n_resamples=1)

    assert error.max == 0


def test_the_higher_order_bound_adds_the_slack_of_k_labels_twice() -> None:
    error = hocal.calibration_error(Mixtures.from_points([[0.5, 0.5]]), [[50, 50]], n_resamples=1)

    assert error.max < error.higher_order_bound <= error.max + 2 / np.sqrt(100) + 1e-9


def test_debiased_and_floor_agree_per_cell() -> None:
    error = hocal.calibration_error(
        Mixtures.from_points([[0.5, 0.5]] * 9), [[1, 1]] * 9, cells=[0] * 9, random_state=0
    )

    assert error.debiased_per_cell[0] == pytest.approx(
        error.per_cell[0] - error.noise_floor_per_cell[0]
    )


def test_predicted_snapshots_are_compared_as_they_are() -> None:
    """A panel of two that always splits is right as a panel, wrong as a distribution."""
    always_split, counts = Mixtures.from_points([[0.5, 0.5]] * 20), [[1, 1]] * 20

    errors = [
        hocal.calibration_error(
            always_split, counts, cells=[0] * 20, predictor=predictor, n_resamples=3
        ).mean
        for predictor in ("snapshot", "mixture")
    ]

    assert errors == pytest.approx([0.0, 0.5])


@pytest.mark.slow
def test_p_values_of_predicted_snapshots_are_uniform_under_the_truth() -> None:
    """The Kolmogorov-Smirnov distance of 200 p-values stays below its 0.1% quantile, .138."""
    p_values = []
    for seed in range(200):
        mixtures, _ = world(30, 3, seed)
        snapshots = mixtures.project(2)
        counts = mixtures.draw(2, random_state=seed)
        error = hocal.calibration_error(
            snapshots, counts, predictor="snapshot", n_resamples=19, random_state=seed
        )
        p_values.append(error.p_value)

    assert np.abs(np.sort(p_values) - np.arange(1, 201) / 200).max() < 0.138


def test_snapshots_of_another_size_are_refused() -> None:
    with pytest.raises(
        ValueError, match="`k` must be the size of the predicted snapshots, got k=2 and an atom"
    ):
        hocal.calibration_error(Mixtures.from_points([[0.3, 0.7]]), [[1, 1]], predictor="snapshot")


def test_more_labels_asked_for_than_an_item_has_are_refused() -> None:
    with pytest.raises(
        ValueError, match="`counts` must have at least 3 labels in each row, got 2 in row 0"
    ):
        hocal.calibration_error(Mixtures.from_points([[0.5, 0.5]]), [[1, 1]], k=3)


def test_aleatoric_error_compares_means_within_a_cell() -> None:
    """Predicted 1 bit, true 1 and 0: the cell's gap is half a bit."""
    parts = hocal.decompose(Mixtures.from_points([[0.5, 0.5]] * 2), base=2)

    assert hocal.aleatoric_error(parts, [[5, 5], [9, 0]], cells=[0, 0]) == pytest.approx(0.5)


def test_aleatoric_error_averages_over_items_or_cells() -> None:
    parts = hocal.decompose(Mixtures.from_points([[0.5, 0.5]] * 4), base=2)
    counts, cells = [[1, 1], [1, 1], [1, 1], [2, 0]], [0, 0, 0, 2]

    assert hocal.aleatoric_error(parts, counts, cells=cells) == pytest.approx(0.25)
    assert hocal.aleatoric_error(parts, counts, cells=cells, average="cells") == pytest.approx(0.5)
    assert np.isnan(hocal.aleatoric_error(parts, counts, cells=cells, average=None)).tolist() == [
        False,
        True,
        False,
    ]


def test_one_label_per_item_leaves_the_whole_entropy_as_error_in_every_partition() -> None:
    """Erratum E2: 1-snapshots have no entropy, so the item-averaged error is the mean entropy."""
    _, truth = world(200, 3, seed=2)
    cells = np.arange(200) % 7
    mixtures = Mixtures.from_snapshots(draw_labels(truth, 1, random_state=0), cells)

    error = hocal.aleatoric_error(hocal.decompose(mixtures), cells=cells, label_distributions=truth)

    assert error == pytest.approx(np.mean([shannon(p) for p in truth]))


def test_aleatoric_error_needs_one_kind_of_truth() -> None:
    parts = hocal.decompose(Mixtures.from_points([[0.5, 0.5]]))

    with pytest.raises(
        ValueError, match="`counts` must be given, or `label_distributions` instead"
    ):
        hocal.aleatoric_error(parts, cells=[0])


def test_an_unknown_average_is_refused() -> None:
    parts = hocal.decompose(Mixtures.from_points([[0.5, 0.5]]))

    with pytest.raises(ValueError, match="`average` must be one of 'items', 'cells', got 'rows'"):
        hocal.aleatoric_error(parts, [[1, 1]], cells=[0], average="rows")  # type: ignore


def test_coverage_is_the_share_of_items_inside() -> None:
    sets = hocal.predict_set(Mixtures.from_points([[0.5, 0.5]] * 4)).expand(0.21)

    assert (
        hocal.coverage(sets, label_distributions=[[0.5, 0.5], [0.4, 0.6], [0.3, 0.7], [0.0, 1.0]])
        == 0.5
    )


def test_repr_says_mean_chance_and_p_value() -> None:
    error = hocal.calibration_error(
        Mixtures.from_points([[0.5, 0.5]]), [[1, 1]], n_resamples=1, random_state=0
    )

    assert "mean" in repr(error)
    assert "by chance" in repr(error)


def test_cells_are_projected_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the first cells and the last ones have no items."""
    mixtures, p = world(60, 3, seed=0)
    counts = draw_labels(p, 2, random_state=1)
    cells = 3 + np.arange(60) % 4
    options = {"cells": cells, "n_cells": 9, "n_resamples": 3, "random_state": 2}
    whole = hocal.calibration_error(mixtures, counts, **options)
    monkeypatch.setattr("hocal.calibration.evaluation.PROJECTED_NUMBERS", 7)

    found = hocal.calibration_error(mixtures, counts, **options)

    assert found.per_cell == pytest.approx(whole.per_cell, abs=1e-12, nan_ok=True)
