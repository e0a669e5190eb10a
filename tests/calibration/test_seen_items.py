"""The items of a fit are known again, whatever labels they come with; new items are not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hocal
from hocal.calibration.inputs import check_items

RANDOM = np.random.default_rng(0)
PREDICTIONS = RANDOM.dirichlet([1.0] * 3, 300)
COUNTS = RANDOM.multinomial(4, PREDICTIONS)


@pytest.fixture(scope="module")
def calibrator() -> hocal.SnapshotCalibrator:
    return hocal.SnapshotCalibrator().fit(PREDICTIONS[:200], COUNTS[:200])


def test_items_of_the_fit_are_told_from_new_ones(calibrator: hocal.SnapshotCalibrator) -> None:
    known = calibrator.seen_.recognise(check_items(PREDICTIONS[100:]), COUNTS[100:])

    assert known.tolist() == [True] * 100 + [False] * 100


def test_items_of_the_fit_are_known_with_other_labels(
    calibrator: hocal.SnapshotCalibrator,
) -> None:
    more = COUNTS[100:] + RANDOM.multinomial(2, PREDICTIONS[100:])

    known = calibrator.seen_.recognise(check_items(PREDICTIONS[100:]), more)

    assert known.tolist() == [True] * 100 + [False] * 100


def test_new_items_that_share_a_prediction_with_the_fit_stay_new() -> None:
    """A judge with three answers: nearly every new item looks like one of the fit."""
    answers = np.array([[0.8, 0.2], [0.5, 0.5], [0.2, 0.8]])
    rng = np.random.default_rng(0)
    p = answers[rng.integers(0, 3, 400)]
    counts = rng.multinomial(3, p)
    fitted = hocal.SnapshotCalibrator().fit(p[:200], counts[:200])

    known = fitted.seen_.recognise(check_items(p[200:]), counts[200:])

    assert not known.any()
    assert fitted.seen_.recognise(check_items(p[:200]), counts[:200]).all()


def test_an_order_of_the_items_does_not_matter(calibrator: hocal.SnapshotCalibrator) -> None:
    assert calibrator.seen_.recognise(check_items(PREDICTIONS[:200][::-1])).all()


@pytest.mark.parametrize("method", ["items", "cells", "empirical"])
def test_a_saved_model_knows_its_items(method: str, tmp_path: Path) -> None:
    path = tmp_path / "model.hocal"
    fitted = hocal.SnapshotCalibrator(method=method).fit(PREDICTIONS[:200], COUNTS[:200])
    hocal.save(fitted, path)

    known = hocal.load(path).seen_.recognise(check_items(PREDICTIONS))

    assert known.sum() == 200


def test_statistics_know_no_items() -> None:
    fitted = hocal.SnapshotCalibrator(method="cells").fit(PREDICTIONS, COUNTS)
    again = hocal.SnapshotCalibrator(method="cells").fit_statistics(fitted.statistics_)

    assert not again.seen_.recognise(check_items(PREDICTIONS), COUNTS).any()


def fit_on_a_grid(n_cells: int) -> tuple[hocal.SnapshotCalibrator, Any, Any]:
    """Return a calibrator fitted on the first 200 of 400 items with predictions of few digits."""
    rng = np.random.default_rng(n_cells)
    p = (rng.integers(0, n_cells, 400) + 0.5) / n_cells
    p = np.column_stack([p, 1 - p])
    counts = rng.multinomial(3, p)
    return hocal.SnapshotCalibrator(method="cells").fit(p[:200], counts[:200]), p, counts


@pytest.mark.parametrize("n_cells", [20, 100, 1000])
def test_new_items_on_a_grid_of_predictions_stay_new(n_cells: int) -> None:
    """Some new item looks like one of the fit by chance."""
    fitted, p, counts = fit_on_a_grid(n_cells)

    assert fitted.seen_.recognise(check_items(p[200:]), counts[200:]).mean() < 0.02


def test_a_part_of_the_fit_is_known_on_a_fine_grid() -> None:
    fitted, p, counts = fit_on_a_grid(1000)

    assert fitted.seen_.recognise(check_items(p[50:150]), counts[50:150]).all()


def test_given_cells_tell_items_of_equal_predictions_apart() -> None:
    generator = np.random.default_rng(3)
    cells = generator.integers(3, size=600)
    predictions = np.array([[0.6, 0.4], [0.3, 0.7]])[generator.integers(2, size=600)]
    counts = generator.multinomial(3, np.array([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])[cells])
    other_order = generator.permutation(600)
    partition = hocal.PrecomputedPartition(n_cells=3)

    answers = [
        hocal.SnapshotCalibrator(partition)
        .fit(predictions[rows], counts[rows], cells=cells[rows])
        .decompose(predictions, counts=counts, cells=cells)
        .aleatoric
        for rows in (np.arange(600), other_order)
    ]

    np.testing.assert_allclose(*answers, atol=1e-9)
