"""The numbers of a mixture on the simplex."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hocal
from hocal.plot import MixtureDisplay

FOUR = hocal.Mixtures(
    [[0.7, 0.2, 0.1, 0.0], [0.0, 0.0, 0.0, 1.0], [0.1, 0.2, 0.6, 0.1]], [0.6, 0.1, 0.3], [0, 3], [0]
)
SIDE = np.sqrt(3) / 2


def test_two_classes_are_stems_at_the_shares_of_the_second() -> None:
    mixtures = hocal.Mixtures.from_ensemble([[[0.9, 0.1], [0.2, 0.8], [0.2, 0.8]]])
    display = MixtureDisplay.from_predictions(mixtures, classes=["no", "yes"]).plot()
    stems = {
        round(float(s[0, 0]), 6): round(float(s[1, 1]), 6) for s in display.points_.get_segments()
    }

    assert stems == {0.1: 0.333333, 0.8: 0.666667}
    assert display.ax_.get_xlabel() == "share of labels for yes"


def test_many_binary_atoms_are_a_histogram_of_all_the_weight() -> None:
    display = MixtureDisplay.from_predictions(hocal.Mixtures.from_dirichlet([[2, 1]])).plot()
    values, edges, _ = display.points_.get_data()

    assert values.sum() == pytest.approx(1)
    assert (edges[0], edges[-1]) == (0, 1)


def test_three_classes_lie_in_a_triangle_with_certain_labels_at_its_corners() -> None:
    display = MixtureDisplay.from_predictions(
        hocal.Mixtures.from_vertices([[0.5, 0.3, 0.2]])
    ).plot()

    assert np.asarray(display.points_.get_offsets()) == pytest.approx(
        np.array([[0, 0], [1, 0], [0.5, SIDE]])
    )
    assert display.points_.get_sizes() / display.points_.get_sizes().sum() == pytest.approx(
        [0.5, 0.3, 0.2]
    )


def test_more_classes_show_the_three_of_largest_mean() -> None:
    display = MixtureDisplay.from_predictions(FOUR, classes=["a", "b", "c", "d"]).plot()
    names = [text.get_text() for text in display.ax_.texts]

    assert display.shown.tolist() == [0, 2, 1]
    assert names == ["a", "c", "b"]


def test_what_is_projected_away_is_missing_from_the_ink() -> None:
    """The second atom lies outside of the three classes, the third with a tenth of its mass."""
    display = MixtureDisplay.from_predictions(FOUR).plot()
    areas = display.points_.get_sizes()

    assert display.projected_away == pytest.approx(0.1 + 0.3 * 0.1)
    assert areas / areas.sum() == pytest.approx(np.array([0.6, 0.27]) / 0.87)
    assert display.ax_.get_title() == "13% of the labels are for other classes"


def test_an_estimator_is_asked_for_its_mixture_and_its_classes() -> None:
    X = np.random.default_rng(0).normal(size=(120, 2))
    counts = np.random.default_rng(1).multinomial(3, [0.5, 0.3, 0.2], 120)
    classifier = hocal.HigherOrderCalibratedClassifier(cv=2).fit(X, counts, classes=["x", "y", "z"])

    display = MixtureDisplay.from_estimator(classifier, X, item=4)

    assert display.classes == ("x", "y", "z")
    assert display.mean == pytest.approx(classifier.predict_proba(X)[4])


def test_a_cell_whose_labels_order_its_classes_has_their_names() -> None:
    """The model says the first class where people say the second, or the third."""
    p = np.tile([0.5, 0.3, 0.2], (200, 1)) + np.random.default_rng(0).uniform(0, 0.01, (200, 3))
    p[::2] = p[::2][:, [0, 2, 1]]
    p /= p.sum(axis=1, keepdims=True)
    calibrator = hocal.SnapshotCalibrator(hocal.TopLabelPartition(1), method="cells")
    calibrator.fit(p, np.tile([0, 3, 1], (200, 1)))

    display = MixtureDisplay.from_cell(calibrator, 0, classes=["ant", "bee", "cat"])

    assert calibrator.class_orders_[0].tolist() == [1, 2, 0]
    assert display.classes == ("bee", "cat", "ant")
    assert display.mean[0] == pytest.approx(0.75, abs=0.05)


def test_a_deconvolved_cell_has_choices_for_classes(scene: Any) -> None:
    cell = int(scene.cells[0])
    display = MixtureDisplay.from_cell(scene.calibrator, cell)

    assert display.classes == ("first choice", "second choice", "third choice")
    assert display.mean == pytest.approx(scene.calibrator.cell_mixtures_.mean()[cell])


def test_an_empirical_cell_keeps_its_classes(empirical_scene: Any) -> None:
    assert MixtureDisplay.from_cell(empirical_scene.calibrator, 4).classes == ("0", "1", "2")


def test_all_classes_need_names() -> None:
    with pytest.raises(ValueError, match="`classes` must be a list of 4 names, got 2"):
        MixtureDisplay.from_predictions(FOUR, classes=["a", "b"])


def test_an_empty_mixture_cannot_be_shown() -> None:
    mixtures = hocal.Mixtures.from_snapshots([[1, 0]], [0], n_cells=2).stored()

    with pytest.raises(
        ValueError, match="`item` must have a mixture with atoms, got 1, whose cell is empty"
    ):
        MixtureDisplay.from_predictions(mixtures, item=1)


def test_an_item_must_exist() -> None:
    with pytest.raises(ValueError, match="`item` must be an integer from 0 to 0, got 1"):
        MixtureDisplay.from_predictions(FOUR, item=1)
