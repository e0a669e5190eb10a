"""The numbers of the uncertainty map."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hocal
from hocal.plot import UncertaintyMapDisplay


def dirichlet_map(n_items: int, **options: Any) -> UncertaintyMapDisplay:
    """Items that all lie at different places."""
    members = np.random.default_rng(0).dirichlet([1, 1, 1], (n_items, 3))
    return UncertaintyMapDisplay.from_predictions(hocal.Mixtures.from_ensemble(members), **options)


def test_the_parts_are_those_of_the_estimator(scene: Any) -> None:
    parts = scene.calibrator.decompose(scene.test.predictions, base=2)

    display = UncertaintyMapDisplay.from_estimator(scene.calibrator, scene.test.predictions, base=2)

    assert np.array_equal(display.aleatoric, parts.aleatoric)
    assert np.array_equal(display.epistemic, parts.epistemic)
    assert display.maximum == pytest.approx(np.log2(3))


def test_items_of_a_cell_are_one_point_whose_area_is_their_number(scene: Any) -> None:
    display = UncertaintyMapDisplay.from_estimator(scene.calibrator, scene.test.predictions).plot()
    n_items = display.distinct().n_items
    areas = display.points_.get_sizes()

    assert n_items.sum() == 500
    assert len(areas) == len(np.unique(scene.cells))
    assert areas.argmax() == n_items.argmax()
    assert areas[n_items > 20] / areas.max() == pytest.approx(n_items[n_items > 20] / n_items.max())


def test_points_are_drawn_at_the_numbers() -> None:
    display = dirichlet_map(50).plot()
    order = np.argsort(display.aleatoric)

    assert np.asarray(display.points_.get_offsets()) == pytest.approx(
        np.stack([display.aleatoric, display.epistemic], axis=1)[order]
    )


def test_many_items_are_drawn_as_a_density_that_counts_all_of_them() -> None:
    display = dirichlet_map(6000).plot()
    shown = display.density_.get_array()

    assert not hasattr(display, "points_")
    assert shown.sum() == 6000
    assert np.array_equal(shown.filled(0).reshape(80, 80), display.density()[0].T)


def test_the_density_counts_blocks_of_items_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    display = dirichlet_map(500)
    whole = display.density(10)[0]

    monkeypatch.setattr("hocal.plot.uncertainty_map._ITEMS_AT_ONCE", 7)

    assert np.array_equal(display.density(10)[0], whole)


def test_marked_items_are_circled_where_they_are() -> None:
    display = dirichlet_map(20, marked=[3, 5]).plot()
    marks = next(each for each in display.ax_.collections if each.get_label() == "marked items")

    assert np.asarray(marks.get_offsets()) == pytest.approx(
        np.stack([display.aleatoric[[3, 5]], display.epistemic[[3, 5]]], axis=1)
    )


def test_the_largest_possible_uncertainty_is_drawn_where_it_is_in_sight() -> None:
    near = UncertaintyMapDisplay.from_predictions(
        hocal.Mixtures.from_points([[0.5, 0.5], [0.9, 0.1]])
    ).plot()
    far = UncertaintyMapDisplay.from_decomposition(
        hocal.decompose(hocal.Mixtures.from_points([[0.5, 0.5]]))
    ).plot()

    assert near.maximum == pytest.approx(np.log(2))
    assert "largest possible" in [line.get_label() for line in near.ax_.lines]
    assert far.maximum is None
    assert "largest possible" not in [line.get_label() for line in far.ax_.lines]


def test_a_classifier_is_asked_for_its_classes() -> None:
    X = np.random.default_rng(0).normal(size=(120, 2))
    counts = np.random.default_rng(1).multinomial(3, [0.5, 0.3, 0.2], 120)
    classifier = hocal.HigherOrderCalibratedClassifier(cv=2).fit(X, counts)

    assert UncertaintyMapDisplay.from_estimator(classifier, X).maximum == pytest.approx(np.log(3))


def test_infinite_parts_have_no_place() -> None:
    parts = hocal.decompose(hocal.Mixtures.from_vertices([[0.5, 0.5]]), kind="reverse")

    with pytest.raises(
        ValueError, match=r"`parts` must be finite to have a place on the map, got inf in row 0"
    ):
        UncertaintyMapDisplay.from_decomposition(parts)


def test_a_marked_item_must_exist() -> None:
    with pytest.raises(ValueError, match="`marked` must be below 20, got 20 in row 1"):
        dirichlet_map(20, marked=[0, 20])


def test_a_map_needs_the_parts_of_an_item() -> None:
    with pytest.raises(
        ValueError, match="`parts` must be a Decomposition of at least one item, got ndarray"
    ):
        UncertaintyMapDisplay.from_decomposition(np.zeros(3))  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match="`parts` must be a Decomposition of at least one item, got none"
    ):
        UncertaintyMapDisplay.from_predictions(hocal.Mixtures.from_points([[0.5, 0.5]])[:0])
