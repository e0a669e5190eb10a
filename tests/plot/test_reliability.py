"""The numbers of the higher-order reliability diagram."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

import hocal
from hocal.cells.statistics import CellStatistics, align_counts
from hocal.datasets import make_mixture_world
from hocal.guarantees.certificates import certify
from hocal.guarantees.means import betting_interval
from hocal.plot import ReliabilityDisplay
from hocal.uncertainty.entropy import Shannon, get_entropy

QUANTITIES = ["aleatoric", "epistemic", "mean"]


def cell_means(
    values: NDArray[np.float64], cells: NDArray[np.intp], n_cells: int
) -> NDArray[np.float64]:
    """Average over the items of each cell, the slow way."""
    inside = [values[cells == cell] for cell in range(n_cells)]
    return np.array([each.mean() if len(each) else np.nan for each in inside])


def reliability(scene: Any, **options: Any) -> ReliabilityDisplay:
    return ReliabilityDisplay.from_estimator(
        scene.calibrator,
        scene.test.predictions,
        scene.counts,
        n_resamples=40,
        random_state=0,
        **options,
    )


@pytest.mark.parametrize("quantity", ["aleatoric", "epistemic"])
@pytest.mark.parametrize("kind", ["scene", "empirical_scene"])
def test_predicted_uncertainty_is_that_of_the_calibrator(
    kind: str, quantity: str, request: pytest.FixtureRequest
) -> None:
    scene = request.getfixturevalue(kind)
    expected = hocal.decompose(scene.calibrator.cell_mixtures_).as_dict()[quantity]

    display = reliability(scene, quantity=quantity)

    filled = display.n_items > 0
    assert display.predicted[filled] == pytest.approx(expected[filled], abs=1e-9)
    assert np.isnan(display.predicted[~filled]).all()


@pytest.mark.parametrize("entropy", ["shannon", "brier"])
def test_a_cell_is_predicted_to_have_the_average_of_its_items(
    item_scene: Any, entropy: str
) -> None:
    p = item_scene.test.predictions
    expected = item_scene.calibrator.decompose(p, entropy).aleatoric

    display = reliability(item_scene, entropy=entropy)

    assert display.predicted == pytest.approx(
        cell_means(expected, item_scene.cells, 15), abs=1e-6, nan_ok=True
    )


def test_epistemic_uncertainty_of_a_cell_is_what_its_mean_adds(item_scene: Any) -> None:
    """Differences between the items of a cell are unknown to who knows the cell alone."""
    p = item_scene.test.predictions
    means = np.take_along_axis(
        item_scene.calibrator.predict_proba(p), np.argsort(-p, axis=1, kind="stable"), axis=1
    )
    centres = np.column_stack([cell_means(column, item_scene.cells, 15) for column in means.T])
    aleatoric = cell_means(item_scene.calibrator.decompose(p).aleatoric, item_scene.cells, 15)
    expected = Shannon().value(centres, check_input=False) - aleatoric

    display = reliability(item_scene, quantity="epistemic")

    assert display.predicted == pytest.approx(expected, abs=1e-6, nan_ok=True)


def test_few_items_are_drawn_from_where_mixtures_take_much_memory(
    item_scene: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 20 items of each cell the band is as wide as with all of them, but for chance."""
    whole = reliability(item_scene)
    monkeypatch.setattr("hocal.plot.predicted.MAX_NUMBERS", 1)
    part = reliability(item_scene)

    large = whole.n_items > 20
    ratio = np.diff(part.band[:, large], axis=0) / np.diff(whole.band[:, large], axis=0)
    assert 0.6 < np.median(ratio) < 1.6


@pytest.mark.parametrize("kind", ["scene", "empirical_scene", "item_scene"])
def test_the_mean_is_that_of_the_class_ranked_first(
    kind: str, request: pytest.FixtureRequest
) -> None:
    scene = request.getfixturevalue(kind)
    p = scene.test.predictions
    first = np.arange(len(p)), p.argmax(axis=1)
    predicted = scene.calibrator.predict_proba(p)[first]
    observed = (scene.counts / 5)[first]

    display = reliability(scene, quantity="mean")

    assert display.predicted == pytest.approx(
        cell_means(predicted, scene.cells, 15), abs=1e-9, nan_ok=True
    )
    assert display.observed == pytest.approx(
        cell_means(observed, scene.cells, 15), abs=1e-9, nan_ok=True
    )


def test_observed_brier_disagreement_is_the_unbiased_share_of_pairs_that_differ(scene: Any) -> None:
    pairs = 5 / 4 * (1 - ((scene.counts / 5) ** 2).sum(axis=1))

    display = reliability(scene, entropy="brier")

    assert display.observed == pytest.approx(
        cell_means(pairs, scene.cells, 15), abs=1e-9, nan_ok=True
    )


def test_observed_aleatoric_uncertainty_lacks_the_bias_of_the_plug_in() -> None:
    """With 20,000 items in a cell only what five labels leave open remains."""
    world = make_mixture_world(20_000, 3, n_cells=1, ambiguity=0.3, random_state=0)
    counts, truth = world.draw(5, random_state=1), hocal.decompose(world.mixtures).aleatoric[0]
    plug_in = Shannon().value(counts / 5).mean()

    display = ReliabilityDisplay.from_predictions(
        world.mixtures, counts, n_resamples=1, random_state=0
    )

    assert abs(plug_in - truth) > 0.08
    assert abs(display.observed[0] - truth) < 0.03


@pytest.mark.parametrize("entropy", ["shannon", "brier"])
def test_observed_predictive_uncertainty_is_not_lowered_by_few_items(entropy: str) -> None:
    """The entropy of the mean of four items' labels is .05 nats too low on average."""
    mixtures = hocal.Mixtures.from_points([[0.5, 0.3, 0.2]])[np.zeros(400, dtype=int)]
    options: dict[str, Any] = {
        "cells": np.arange(400) // 4,
        "entropy": entropy,
        "n_resamples": 2,
        "random_state": 0,
    }
    counts = mixtures.draw(5, random_state=0)

    parts = [
        ReliabilityDisplay.from_predictions(mixtures, counts, quantity=q, **options)
        for q in QUANTITIES[:2]
    ]
    naive = get_entropy(entropy).value(counts.reshape(100, 4, 3).sum(axis=1) / 20).mean()
    truth = float(get_entropy(entropy).value([0.5, 0.3, 0.2]))

    assert naive < truth - 0.02
    assert sum(part.observed for part in parts).mean() == pytest.approx(truth, abs=0.015)


@pytest.mark.parametrize("quantity", ["aleatoric", "epistemic"])
def test_intervals_are_those_of_a_certificate_for_the_test_labels(
    scene: Any, quantity: str
) -> None:
    partition = scene.calibrator.partition_
    statistics = CellStatistics.from_items(
        scene.test.predictions, scene.counts, scene.cells, partition.layout_
    )
    certificate = certify(statistics, scene.calibrator.cell_mixtures_, confidence=0.9, aligned=True)
    lower, upper = certificate.interval(quantity)

    display = reliability(scene, quantity=quantity, confidence=0.9)

    assert display.lower == pytest.approx(lower, nan_ok=True)
    assert display.upper == pytest.approx(upper, nan_ok=True)


def test_intervals_of_the_mean_are_betting_intervals(scene: Any) -> None:
    display = reliability(scene, quantity="mean")
    cell = int(display.n_items.argmax())
    shares = (
        np.asarray(align_counts(scene.test.predictions, scene.counts))[scene.cells == cell, 0] / 5
    )

    expected = betting_interval(shares, delta=0.05)

    assert (display.lower[cell], display.upper[cell]) == pytest.approx(
        (expected.lower, expected.upper)
    )


@pytest.mark.slow
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_the_noise_band_holds_the_share_it_promises_when_predictions_are_right(
    quantity: Any,
) -> None:
    world = make_mixture_world(2400, 3, n_cells=60, ambiguity=0.4, random_state=0)

    display = ReliabilityDisplay.from_predictions(
        world.mixtures,
        world.draw(4, random_state=1),
        quantity=quantity,
        confidence=0.9,
        n_resamples=200,
        random_state=2,
    )

    # Binomial: of 60 cells, 12 or more are outside with chance .02.
    assert 1 <= display.outside.sum() <= 11


def test_the_noise_band_of_a_large_cell_is_as_narrow_as_its_items_make_it() -> None:
    """Labels of 200 items are drawn, and the band is scaled to all 5,000."""
    mixtures = hocal.Mixtures.from_points([[0.5, 0.5]])[np.zeros(5000, dtype=int)]

    display = ReliabilityDisplay.from_predictions(
        mixtures, mixtures.draw(2, random_state=0), entropy="brier", n_resamples=400, random_state=1
    )

    # Two labels differ or not, and the statistic is 1 or 0: standard error .5 / sqrt(5000).
    assert np.diff(display.band[:, 0]) == pytest.approx(2 * 1.96 * 0.5 / 5000**0.5, rel=0.15)


def test_wrong_predictions_lie_outside_the_band() -> None:
    world = make_mixture_world(2000, 3, n_cells=4, ambiguity=0.4, random_state=0)
    certain = hocal.Mixtures.from_vertices(world.mixtures.mean())

    display = ReliabilityDisplay.from_predictions(
        certain, world.draw(3, random_state=1), cells=world.cells, n_resamples=50, random_state=0
    )

    assert display.outside.all()


def test_equal_seeds_give_equal_bands(scene: Any) -> None:
    assert np.array_equal(reliability(scene).band, reliability(scene).band, equal_nan=True)


def test_points_bands_and_intervals_are_drawn_at_the_numbers(scene: Any) -> None:
    display = reliability(scene).plot(min_items=40)
    shown = display.n_items >= 40
    points = np.concatenate([display.points_.get_offsets(), display.outside_.get_offsets()])
    expected = np.stack([display.predicted, display.observed], axis=1)[shown]
    ends = [
        np.stack([segment[:, 1] for segment in drawn.get_segments()])
        for drawn in (display.band_, display.intervals_)
    ]

    assert 0 < shown.sum() < (display.n_items > 0).sum()
    assert np.array_equal(points[np.lexsort(points.T)], expected[np.lexsort(expected.T)])
    assert np.array_equal(ends[0], display.band[:, shown].T)
    assert np.array_equal(ends[1], np.stack([display.lower, display.upper], axis=1)[shown])


def test_the_legend_says_how_many_cells_are_not_drawn(scene: Any) -> None:
    display = reliability(scene).plot(min_items=40)
    hidden = ((display.n_items > 0) & (display.n_items < 40)).sum()

    assert f"{hidden} smaller cell" in display.figure_.legends[0].get_title().get_text()


def test_items_with_one_label_count_for_the_mean_alone() -> None:
    mixtures = hocal.Mixtures.from_points([[0.6, 0.4]])[np.zeros(300, dtype=int)]
    counts = mixtures.draw(np.where(np.arange(300) < 100, 1, 3), random_state=0)
    options: dict[str, Any] = {"entropy": "brier", "n_resamples": 2, "random_state": 0}
    several = counts[100:]

    aleatoric = ReliabilityDisplay.from_predictions(mixtures, counts, **options)
    mean = ReliabilityDisplay.from_predictions(mixtures, counts, quantity="mean", **options)

    assert aleatoric.observed[0] == pytest.approx(
        (1.5 * (1 - ((several / 3) ** 2).sum(axis=1))).mean()
    )
    assert mean.observed[0] == pytest.approx((counts[:, 0] / counts.sum(axis=1)).mean())


def test_one_label_per_item_cannot_show_disagreement(scene: Any) -> None:
    with pytest.raises(
        ValueError, match="`counts` must have two labels for some items, got one for each"
    ):
        ReliabilityDisplay.from_estimator(
            scene.calibrator, scene.test.predictions, scene.test.draw(1, random_state=0)
        )


def test_min_items_must_leave_a_cell(scene: Any) -> None:
    with pytest.raises(ValueError, match="`min_items` must leave a cell to draw, got 100000"):
        reliability(scene).plot(min_items=100_000)


def test_an_unknown_quantity_is_refused(scene: Any) -> None:
    with pytest.raises(
        ValueError, match="`quantity` must be one of 'aleatoric', 'epistemic', 'mean', got 'total'"
    ):
        reliability(scene, quantity="total")


def test_a_calibrator_must_be_fitted(scene: Any) -> None:
    with pytest.raises(NotFittedError, match="SnapshotCalibrator instance is not fitted yet"):
        ReliabilityDisplay.from_estimator(
            hocal.SnapshotCalibrator(), scene.test.predictions, scene.counts
        )


def test_anything_but_a_calibrator_is_sent_to_from_predictions(scene: Any) -> None:
    classifier: Any = hocal.HigherOrderCalibratedClassifier()

    with pytest.raises(
        ValueError, match="must be a SnapshotCalibrator, got HigherOrderCalibratedClassifier"
    ):
        ReliabilityDisplay.from_estimator(classifier, scene.test.predictions, scene.counts)


def test_mixtures_and_counts_of_different_items_are_named() -> None:
    mixtures = hocal.Mixtures.from_points([[0.5, 0.5]] * 3)

    with pytest.raises(
        ValueError, match="`mixtures` and `counts` must describe the same items, got 3 and 2 rows"
    ):
        ReliabilityDisplay.from_predictions(mixtures, [[1, 1], [1, 1]])


def test_a_single_item_shows_no_epistemic_uncertainty() -> None:
    mixtures = hocal.Mixtures.from_points([[0.5, 0.5]])
    display = ReliabilityDisplay.from_predictions(
        mixtures, [[2, 2]], quantity="epistemic", random_state=0
    )

    with pytest.raises(
        ValueError, match="whose labels show epistemic uncertainty, the largest has 0 items"
    ):
        display.plot(min_items=1)
