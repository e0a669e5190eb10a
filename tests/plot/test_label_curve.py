"""The numbers of the label curves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hocal
from hocal.calibration.by_cell.empirical import borrow
from hocal.plot import LabelCurveDisplay
from hocal.uncertainty.snapshots import draw_snapshots

ERRORS = {"slow": {5: [0.2, 0.3], 2: [0.4, 0.4]}, "fast": {2: [0.1, 0.1], 5: [0.05, 0.07]}}


def test_errors_are_kept_in_order_of_the_number_of_labels() -> None:
    curve = LabelCurveDisplay.from_errors(ERRORS).curves["slow"]

    assert curve.k.tolist() == [2, 5]
    assert curve.errors.tolist() == [[0.4, 0.4], [0.2, 0.3]]


@pytest.mark.parametrize(("against", "factor"), [("labels per item", 1), ("labels in all", 100)])
def test_lines_are_drawn_at_the_mean_errors(against: Any, factor: int) -> None:
    display = LabelCurveDisplay.from_errors(ERRORS, n_items=100, floor=0.04).plot(against=against)

    assert display.lines_["slow"].get_xdata() == pytest.approx([2 * factor, 5 * factor])
    assert display.lines_["slow"].get_ydata() == pytest.approx([0.4, 0.25])
    assert display.ax_.get_xlabel() == against
    assert [line.get_ydata()[0] for line in display.ax_.lines][-1] == 0.04


def test_the_shade_holds_the_middle_of_the_splits() -> None:
    errors = np.linspace(0.1, 0.2, 101)
    display = LabelCurveDisplay.from_errors({"a": {2: errors, 5: errors}}, share=0.8).plot()
    heights = display.ax_.collections[0].get_paths()[0].vertices[:, 1]

    assert (heights.min(), heights.max()) == pytest.approx((0.11, 0.19))


def test_a_single_split_has_no_shade() -> None:
    display = LabelCurveDisplay.from_errors({"a": {2: [0.3], 5: [0.2]}}).plot()

    assert not display.ax_.collections


def test_measured_errors_are_those_of_the_public_functions(scene: Any) -> None:
    """The same split and draws by hand."""
    p, counts = scene.test.predictions, scene.test.draw(12, random_state=5)
    generator = np.random.default_rng(0)
    fit, test = np.array_split(generator.permutation(len(p)), 2)
    few = draw_snapshots(counts[fit], 3, random_state=generator)
    calibrator = hocal.SnapshotCalibrator(method="empirical").fit(p[fit], few)
    cells = calibrator.partition_.assign(p[test])
    expected = hocal.aleatoric_error(calibrator.decompose(p[test]), counts[test], cells=cells)
    partition, where = calibrator.partition_, calibrator.partition_.assign(p[fit])
    full = hocal.Mixtures.from_snapshots(counts[fit], where, n_cells=partition.n_cells_).stored()
    source = borrow(np.bincount(where, minlength=partition.n_cells_) > 0, partition.layout_)[cells]
    floor = hocal.aleatoric_error(hocal.decompose(full[source]), counts[test], cells=cells)

    display = LabelCurveDisplay.from_estimator(
        hocal.SnapshotCalibrator(method="empirical"), p, counts, k=[3], n_splits=1, random_state=0
    )

    assert display.curves["empirical"].errors.tolist() == [[expected]]
    assert display.floor == pytest.approx(floor)
    assert display.n_items == 250


def test_methods_are_measured_on_the_same_splits_and_left_unfitted(scene: Any) -> None:
    both = {
        "one": hocal.SnapshotCalibrator(method="empirical"),
        "two": hocal.SnapshotCalibrator(method="empirical"),
    }

    display = LabelCurveDisplay.from_estimator(
        both, scene.test.predictions, scene.counts, k=(2, 3), n_splits=2, random_state=0
    )

    assert np.array_equal(display.curves["one"].errors, display.curves["two"].errors)
    assert not hasattr(both["one"], "statistics_")


def test_a_top_label_that_no_calibration_item_has_falls_back_to_the_pool() -> None:
    p = np.array([[0.9, 0.1]] * 9 + [[0.1, 0.9]])
    counts = np.array([[8, 2]] * 9 + [[2, 8]])

    display = LabelCurveDisplay.from_estimator(
        hocal.SnapshotCalibrator(method="empirical"), p, counts, k=[2], n_splits=6, random_state=0
    )

    assert display.floor == pytest.approx(0, abs=1e-12)


def test_more_labels_than_items_have_cannot_be_drawn(scene: Any) -> None:
    with pytest.raises(
        ValueError, match="`counts` must have at least 6 labels in each row, got 5 in row 0"
    ):
        LabelCurveDisplay.from_estimator(
            hocal.SnapshotCalibrator(), scene.test.predictions, scene.counts, k=[6]
        )


def test_splits_must_be_equally_many_for_each_k() -> None:
    with pytest.raises(
        ValueError,
        match=r"`errors\['a'\]` must have the same number of splits for each k, got \[1, 2\]",
    ):
        LabelCurveDisplay.from_errors({"a": {2: [0.1], 5: [0.1, 0.2]}})


def test_a_curve_needs_a_method() -> None:
    with pytest.raises(ValueError, match="`errors` must be a dict of methods, got list"):
        LabelCurveDisplay.from_errors([0.1])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`errors` must hold at least one method, got none"):
        LabelCurveDisplay.from_errors({})


def test_labels_in_all_need_the_number_of_items() -> None:
    with pytest.raises(
        ValueError, match="`against` must be 'labels per item' unless n_items is known"
    ):
        LabelCurveDisplay.from_errors(ERRORS).plot(against="labels in all")


@pytest.mark.parametrize(
    ("given", "got"), [({}, "an empty dict"), ({"mine": 3}, "int"), (None, "NoneType")]
)
def test_calibrators_are_calibrators(given: Any, got: str) -> None:
    p, counts = np.full((4, 2), 0.5), np.full((4, 2), 3)

    with pytest.raises(
        ValueError, match=f"`calibrators` must be a SnapshotCalibrator or a dict of them, got {got}"
    ):
        LabelCurveDisplay.from_estimator(given, p, counts)


def test_keys_of_errors_are_numbers_of_labels() -> None:
    with pytest.raises(
        ValueError, match=r"`errors\['a'\]` must be an integer of at least 1, got 'two'"
    ):
        LabelCurveDisplay.from_errors({"a": {5: [0.1], "two": [0.1]}})  # type: ignore[dict-item]


def test_errors_of_zero_are_drawn_on_a_linear_axis() -> None:
    """A logarithmic axis would have no place for them."""
    ax = LabelCurveDisplay.from_errors({"perfect": {2: [0.0, 0.0], 5: [0.0, 0.0]}}).plot().ax_

    assert ax.get_yscale() == "linear"
