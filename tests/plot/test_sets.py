"""The numbers of prediction sets and of their coverage."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hocal
from hocal.plot import CoverageDisplay, PredictionSetDisplay


@pytest.mark.parametrize("shape", ["ball", "atoms"])
def test_bars_span_the_shares_that_the_set_allows(shape: Any) -> None:
    mixtures = hocal.Mixtures.from_ensemble([[[0.9, 0.1], [0.7, 0.3]]])

    display = PredictionSetDisplay.from_predictions(mixtures, shape=shape, delta=0.1)

    assert display.lower == pytest.approx(np.array([[0.65, 0.05]]))
    assert display.upper == pytest.approx(np.array([[0.95, 0.35]]))


def test_atoms_of_the_set_have_its_mass(scene: Any) -> None:
    p = scene.test.predictions
    display = PredictionSetDisplay.from_estimator(scene.calibrator, p, items=[3, 8])

    sets = scene.calibrator.predict_set(p, coverage=0.9, shape="ball")

    # atoms as far from the centre as the last one that is needed are inside as well
    inside = np.array([weights.sum() for weights in display.weights])
    assert (inside > sets.mass[[3, 8]] - 1e-9).all()
    assert inside == pytest.approx(sets.mass[[3, 8]], abs=0.02)


def test_labels_are_inside_when_the_public_sets_say_so(scene: Any) -> None:
    p, items = scene.test.predictions, np.arange(60)
    display = PredictionSetDisplay.from_estimator(
        scene.calibrator, p, scene.counts, items=items, coverage=0.6
    )

    expected = scene.calibrator.predict_set(p, coverage=0.6, shape="ball").contains(
        scene.counts / 5
    )[:60]

    assert np.array_equal(display.contains, expected)
    assert 0 < expected.sum() < 60


def test_atoms_and_labels_are_drawn_at_the_numbers(scene: Any) -> None:
    display = PredictionSetDisplay.from_estimator(
        scene.calibrator,
        scene.test.predictions,
        scene.counts,
        items=[1, 2],
        classes=["a", "b", "c"],
    ).plot()
    atoms, _, labels = display.axes_[1].collections

    assert np.asarray(atoms.get_offsets())[:, 1] == pytest.approx(display.points[1].reshape(-1))
    assert np.asarray(labels.get_offsets())[:, 1] == pytest.approx(scene.counts[2] / 5)
    assert [tick.get_text() for tick in display.axes_[1].get_xticklabels()] == ["a", "b", "c"]


def test_the_title_says_whether_the_labels_are_inside() -> None:
    mixtures = hocal.Mixtures.from_points([[0.5, 0.5]] * 2)
    display = PredictionSetDisplay.from_predictions(mixtures, [[1, 1], [2, 0]], items=[0, 1]).plot()

    assert [ax.get_title() for ax in display.axes_] == [
        "item 0, 100% of the mass: labels inside",
        "item 1, 100% of the mass: labels outside",
    ]


def test_a_set_without_labels_is_drawn_alone() -> None:
    display = PredictionSetDisplay.from_predictions(hocal.Mixtures.from_points([[0.5, 0.5]])).plot(
        title="alone"
    )

    assert display.shares is None
    assert display.ax_.get_title() == "item 0, 100% of the mass"


def test_a_classifier_is_asked_for_its_classes() -> None:
    X = np.random.default_rng(0).normal(size=(120, 2))
    counts = np.random.default_rng(1).multinomial(3, [0.5, 0.3, 0.2], 120)
    classifier = hocal.HigherOrderCalibratedClassifier(cv=2).fit(X, counts, classes=["x", "y", "z"])

    assert PredictionSetDisplay.from_estimator(classifier, X).classes == ("x", "y", "z")


def test_all_classes_need_names() -> None:
    with pytest.raises(ValueError, match="`classes` must be a list of 2 names, got 1"):
        PredictionSetDisplay.from_predictions(
            hocal.Mixtures.from_points([[0.5, 0.5]]), classes=["a"]
        )


def test_an_item_must_exist() -> None:
    with pytest.raises(ValueError, match="`items` must be below 1, got 1 in row 0"):
        PredictionSetDisplay.from_predictions(hocal.Mixtures.from_points([[0.5, 0.5]]), items=[1])


def test_a_list_of_lists_names_no_items() -> None:
    with pytest.raises(hocal.InputError, match="`items` must be"):
        PredictionSetDisplay.from_predictions(
            hocal.Mixtures.from_points([[0.5, 0.5]]), items=[[0, 0], [0]]
        )


def test_coverage_of_many_items_is_that_of_a_sample(
    item_scene: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hocal.plot.coverage.MAX_COMPARED", 60)

    display = CoverageDisplay.from_estimator(
        item_scene.calibrator,
        item_scene.test.predictions,
        item_scene.counts,
        n_resamples=2,
        random_state=0,
    )

    assert display.n_items == 60


@pytest.mark.parametrize("kind", ["scene", "empirical_scene", "item_scene"])
def test_coverage_is_that_of_the_public_function(kind: str, request: pytest.FixtureRequest) -> None:
    """Also for the calibrator that works on ranks instead of classes."""
    scene = request.getfixturevalue(kind)
    p = scene.test.predictions

    display = CoverageDisplay.from_estimator(
        scene.calibrator, p, scene.counts, levels=[0.5, 0.8], n_resamples=2, random_state=0
    )
    expected = [
        hocal.coverage(scene.calibrator.predict_set(p, coverage=level, shape="ball"), scene.counts)
        for level in (0.5, 0.8)
    ]

    assert display.observed == pytest.approx(expected)


def test_coverage_needs_cells_where_the_partition_does() -> None:
    p, counts, cells = [[0.5, 0.5]] * 40, [[2, 0], [1, 1]] * 20, [0, 1] * 20
    options: dict[str, Any] = {"levels": [0.9], "n_resamples": 2, "random_state": 0}
    found = []
    for method in ("cells", "empirical"):
        partition = hocal.PrecomputedPartition(n_cells=2)
        calibrator = hocal.SnapshotCalibrator(partition, method=method)  # type: ignore[arg-type]
        calibrator.fit(p, counts, cells=cells)
        found.append(
            CoverageDisplay.from_estimator(calibrator, p, counts, cells=cells, **options).n_items
        )

    assert found == [40, 40]


def test_the_band_holds_the_coverage_of_right_predictions(scene: Any) -> None:
    display = CoverageDisplay.from_predictions(
        scene.test.mixtures, scene.counts, levels=[0.3, 0.6, 0.9], confidence=0.99, random_state=0
    )

    assert ((display.band[0] <= display.observed) & (display.observed <= display.band[1])).all()


def test_the_band_of_many_items_is_as_narrow_as_they_make_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Half of the pairs of labels are (1, 1), the centre of a ball of radius 0."""
    mixtures = hocal.Mixtures.from_points([[0.5, 0.5]])[np.zeros(4000, dtype=int)]
    monkeypatch.setattr("hocal.plot.coverage.MAX_DRAWN", 200)

    display = CoverageDisplay.from_predictions(
        mixtures, mixtures.draw(2, random_state=0), levels=[0.9], n_resamples=400, random_state=1
    )

    assert np.diff(display.band[:, 0]) == pytest.approx(2 * 1.96 * 0.5 / 4000**0.5, rel=0.15)


def test_coverage_is_drawn_at_the_numbers_in_order_of_the_mass(scene: Any) -> None:
    display = CoverageDisplay.from_predictions(
        scene.test.mixtures, scene.counts, levels=[0.9, 0.3], n_resamples=2, random_state=0
    ).plot()

    assert display.line_.get_xdata() == pytest.approx([0.3, 0.9])
    assert display.line_.get_ydata() == pytest.approx(display.observed[::-1])


def test_a_level_is_a_fraction(scene: Any) -> None:
    with pytest.raises(ValueError, match=r"`levels` must lie strictly between 0 and 1, got 1\.5"):
        CoverageDisplay.from_predictions(scene.test.mixtures, scene.counts, levels=[1.5])
