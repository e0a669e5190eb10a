"""The calibrator: both methods, backing off, mapping back to classes, refusals."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import hocal
from hocal._base import validation
from hocal.calibration.by_cell.empirical import borrow
from hocal.cells.partitions import CellLayout
from hocal.cells.statistics import CellStatistics
from hocal.uncertainty.entropy import Custom
from hocal.uncertainty.equivalence import Exponential
from hocal.uncertainty.snapshots import draw_labels, draw_snapshots

METHODS = ["cells", "empirical"]


def ambiguous_world(n_items: int, seed: int, n_classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions and true label distributions that scatter around them."""
    generator = np.random.default_rng(seed)
    p = generator.dirichlet(np.full(n_classes, 0.6), size=n_items)
    sharpness = generator.choice([1.0, 20.0], size=(n_items, 1))
    truth = generator.standard_gamma(np.maximum(p * sharpness, 1e-3)) + 1e-9
    return p, truth / truth.sum(axis=1, keepdims=True)


PREDICTIONS, TRUTH = ambiguous_world(800, seed=1)
COUNTS = draw_labels(TRUTH, 4, random_state=2)


def calibrated(method: str, counts: Any = COUNTS, **options: Any) -> hocal.SnapshotCalibrator:
    return hocal.SnapshotCalibrator(method=method, **options).fit(PREDICTIONS, counts)


# What both methods do


ENTROPIES = [
    *("shannon", "brier", "tsallis", "zero-one", "spherical", "ordinal"),
    Exponential((0.0, 1.0, 3.0)),
    Custom(lambda p: 1 - np.abs(p[..., 0] - p[..., 1])),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("entropy", ENTROPIES, ids=str)
@pytest.mark.parametrize("own", [False, True], ids=["alone", "own labels"])
def test_parts_of_cells_are_those_of_the_mixtures_of_items(
    method: str, entropy: Any, own: bool
) -> None:
    """Mixtures over ranks serve only where the order of the classes does not matter."""
    calibrator = calibrated(method)
    some = PREDICTIONS[:100]
    labels = COUNTS[:100] if own else None

    parts = calibrator.decompose(some, entropy, counts=labels)
    listed = hocal.decompose(calibrator.predict_mixture(some, counts=labels), entropy)

    for name, values in parts.as_dict().items():
        np.testing.assert_allclose(values, listed.as_dict()[name], atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_means_given_own_labels_are_those_of_the_mixtures_of_items(
    method: str, form: Callable[[Any], Any]
) -> None:
    calibrator = calibrated(method)
    labels = COUNTS[:100].copy()
    labels[::3] = 0

    means = calibrator.predict_proba(PREDICTIONS[:100], counts=form(labels))

    listed = calibrator.predict_mixture(PREDICTIONS[:100], counts=labels)
    np.testing.assert_allclose(means, listed.mean(), atol=1e-12)


@pytest.mark.parametrize("entropy", ["shannon", "ordinal"])
def test_own_labels_need_no_list_of_all_mixtures(
    entropy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 100 classes every item ranks them otherwise, and cells have thousands of atoms."""
    calibrator = calibrated("cells")
    expected = calibrator.decompose(PREDICTIONS, entropy, counts=COUNTS)
    largest = int(calibrator.cell_mixtures_.sizes.max()) * 3
    monkeypatch.setattr("hocal.calibration.by_cell.class_order.MAX_NUMBERS", 10 * largest)
    monkeypatch.setattr("hocal.calibration.by_cell.prediction.BLOCK_NUMBERS", 7 * largest)

    with pytest.raises(hocal.InputError, match="Predict mixtures in batches"):
        calibrator.predict_mixture(PREDICTIONS)
    parts = calibrator.decompose(PREDICTIONS, entropy, counts=COUNTS)

    np.testing.assert_allclose(parts.aleatoric, expected.aleatoric, atol=1e-12)


def test_calibration_error_of_many_classes_is_that_of_all_atoms_but_for_rounding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calibrator = calibrated("cells")
    options: dict[str, Any] = {"n_resamples": 20, "random_state": 0}
    expected = calibrator.calibration_error(PREDICTIONS, COUNTS, **options)
    monkeypatch.setattr("hocal.calibration.by_cell.prediction.MAX_NUMBERS", 1)

    found = calibrator.calibration_error(PREDICTIONS, COUNTS, **options)

    assert found.mean == pytest.approx(expected.mean, abs=0.01)
    assert np.nanmean(found.null) == pytest.approx(np.nanmean(expected.null), abs=0.01)


@pytest.mark.parametrize("method", METHODS)
def test_parts_add_up(method: str) -> None:
    parts = calibrated(method).decompose(PREDICTIONS)

    np.testing.assert_allclose(parts.predictive, parts.aleatoric + parts.epistemic, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_the_prediction_is_the_mean_of_the_mixture(method: str) -> None:
    calibrator = calibrated(method)

    np.testing.assert_allclose(
        calibrator.predict_proba(PREDICTIONS),
        calibrator.predict_mixture(PREDICTIONS).mean(),
        atol=1e-12,
    )


@pytest.mark.parametrize("method", METHODS)
def test_the_decomposition_is_that_of_the_predicted_mixtures(method: str) -> None:
    calibrator = calibrated(method)

    direct = hocal.decompose(calibrator.predict_mixture(PREDICTIONS))

    np.testing.assert_allclose(
        calibrator.decompose(PREDICTIONS).aleatoric, direct.aleatoric, atol=1e-12
    )
    np.testing.assert_allclose(
        calibrator.decompose(PREDICTIONS).predictive, direct.predictive, atol=1e-12
    )


@pytest.mark.parametrize("method", METHODS)
def test_splitting_the_data_any_way_gives_a_bit_identical_model(method: str) -> None:
    order = np.random.default_rng(0).permutation(800)
    partition = hocal.TopLabelPartition(5)
    whole = calibrated(method, partition=partition)
    pieces = hocal.SnapshotCalibrator(partition, method=method)  # type: ignore[arg-type]
    for part in np.array_split(order, 3):
        pieces.partial_fit(PREDICTIONS[part], COUNTS[part])

    assert (pieces.cell_mixtures_.weights == whole.cell_mixtures_.weights).all()
    assert (pieces.cell_mixtures_.points == whole.cell_mixtures_.points).all()


@pytest.mark.parametrize("method", METHODS)
def test_statistics_gathered_elsewhere_give_the_same_model(method: str) -> None:
    whole = calibrated(method)

    elsewhere = hocal.SnapshotCalibrator(method=method).fit_statistics(whole.statistics_)

    assert (elsewhere.predict_proba(PREDICTIONS) == whole.predict_proba(PREDICTIONS)).all()


@pytest.mark.parametrize("method", METHODS)
def test_sparse_counts_give_the_same_numbers(method: str) -> None:
    dense, thin = calibrated(method), calibrated(method, sparse.csr_array(COUNTS))

    np.testing.assert_allclose(
        thin.decompose(PREDICTIONS).aleatoric, dense.decompose(PREDICTIONS).aleatoric, atol=1e-9
    )


@pytest.mark.parametrize("method", METHODS)
def test_relabelling_the_classes_relabels_the_predictions(method: str) -> None:
    order = [2, 0, 1]
    moved = hocal.SnapshotCalibrator(method=method).fit(PREDICTIONS[:, order], COUNTS[:, order])

    np.testing.assert_allclose(
        moved.predict_proba(PREDICTIONS[:, order]),
        calibrated(method).predict_proba(PREDICTIONS)[:, order],
        atol=1e-3,
    )


@pytest.mark.parametrize("method", METHODS)
def test_every_cell_has_a_mixture_and_says_where_it_comes_from(method: str) -> None:
    calibrator = calibrated(method)
    filled = calibrator.statistics_.n_items > 0

    assert np.isfinite(calibrator.cell_mixtures_.mean()).all()
    assert (calibrator.source_[filled] == "cell").all()
    assert set(calibrator.source_[~filled]) <= {"neighbours", "pool"}


@pytest.mark.parametrize("method", METHODS)
def test_precomputed_cells_are_used(method: str) -> None:
    cells = np.arange(800) % 4
    calibrator = hocal.SnapshotCalibrator(hocal.PrecomputedPartition(4), method=method)
    calibrator.fit(PREDICTIONS, COUNTS, cells=cells)

    parts = calibrator.decompose(PREDICTIONS[:8], cells=cells[:8])

    np.testing.assert_allclose(parts.aleatoric[:4], parts.aleatoric[4:])


@pytest.mark.parametrize("method", METHODS)
def test_an_asymmetric_entropy_sees_the_classes_in_their_order(method: str) -> None:
    first_class = Custom(lambda p: p[..., 0])
    calibrator = calibrated(method)

    np.testing.assert_allclose(
        calibrator.decompose(PREDICTIONS, first_class).aleatoric,
        calibrator.predict_proba(PREDICTIONS)[:, 0],
        atol=1e-9,
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_panel_shows_less_disagreement_than_the_population(method: str) -> None:
    panel = calibrated(method, panel_size=3).decompose(PREDICTIONS).aleatoric

    assert (panel <= calibrated(method).decompose(PREDICTIONS).aleatoric + 1e-12).all()


@pytest.mark.parametrize("method", METHODS)
def test_sets_have_the_mass_asked_for(method: str) -> None:
    assert (calibrated(method).predict_set(PREDICTIONS, coverage=0.8).mass >= 0.8 - 1e-9).all()


def test_cloning_keeps_the_parameters() -> None:
    calibrator = hocal.SnapshotCalibrator(
        hocal.TopLabelPartition(4), method="empirical", k=2, panel_size=5
    )

    assert str(clone(calibrator)) == str(calibrator)


def test_two_labels_tell_ambiguous_items_from_mixed_clear_ones() -> None:
    """The paper's X-ray worlds: same mean, one bit of aleatoric uncertainty against none."""
    p = np.full((2000, 2), 0.5)
    worlds = [p, np.repeat(np.eye(2), 1000, axis=0)]

    bits = [
        hocal.SnapshotCalibrator()
        .fit(p, draw_labels(world, 2, random_state=0))
        .decompose(p[:1], base=2)
        .aleatoric[0]
        for world in worlds
    ]

    assert bits[0] > 0.9
    assert bits[1] < 0.1


@pytest.mark.parametrize("method", METHODS)
def test_certified_intervals_hold_the_truth_of_nearly_all_cells(method: str) -> None:
    """At 99% for all cells at once, no cell of this world is missed."""
    calibrator = calibrated(method)
    cells = calibrator.partition_.assign(PREDICTIONS)
    entropy = hocal.decompose(hocal.Mixtures.from_points(TRUTH)).aleatoric
    n_items = np.bincount(cells, minlength=30)
    truth = np.bincount(cells, entropy, minlength=30)[n_items > 0] / n_items[n_items > 0]

    lower, upper = (
        end[n_items > 0]
        for end in calibrator.certify(0.99, simultaneous=True).interval("aleatoric")
    )

    assert ((lower <= truth) & (truth <= upper)).all()


def test_certifying_before_fitting_is_refused() -> None:
    with pytest.raises(NotFittedError, match="Call fit"):
        hocal.SnapshotCalibrator().certify()


@pytest.mark.parametrize("method", METHODS)
def test_a_calibrator_that_fits_its_world_is_not_refuted_by_fresh_labels(method: str) -> None:
    """Calibrated and tested on 6,000 items each; few labels: both methods see snapshots of two."""
    p, truth = ambiguous_world(12_000, seed=8)
    counts = draw_labels(truth, 2, random_state=9)
    calibrator = hocal.SnapshotCalibrator(hocal.TopLabelPartition(5), method=method)

    error = calibrator.fit(p[:6000], counts[:6000]).calibration_error(
        p[6000:], counts[6000:], random_state=0
    )

    assert error.debiased < 0.03


def test_calibration_sees_that_classes_are_mistaken_for_each_other() -> None:
    """Two labels of a world of confusions: over ranks the loss of the classes would not show."""
    generator = np.random.default_rng(0)
    truth = generator.dirichlet([0.3, 0.3, 0.3], 3000)
    swapped = truth[:, [0, 2, 1]]
    counts = generator.multinomial(2, truth)
    honest = hocal.SnapshotCalibrator(method="cells").fit(truth, counts)
    honest.class_orders_ = np.full_like(honest.class_orders_, -1)

    right = honest.calibration_error(truth, counts, k=2, n_resamples=5, random_state=0)
    wrong = honest.calibration_error(swapped, counts, k=2, n_resamples=5, random_state=0)

    assert right.debiased < 0.05
    assert wrong.debiased > 0.2


def test_calibration_is_measured_on_as_many_predictions_as_labels() -> None:
    with pytest.raises(
        ValueError, match="`probabilities` and `counts` must describe the same items"
    ):
        calibrated("empirical").calibration_error(PREDICTIONS, COUNTS[:-1])


# Empirical


def test_items_with_more_than_k_labels_are_thinned_exactly() -> None:
    """(2, 1) holds (1, 1) twice as often as (2, 0)."""
    calibrator = hocal.SnapshotCalibrator(method="empirical", k=2).fit([[0.6, 0.4]], [[2, 1]])
    mixture = calibrator.predict_mixture([[0.6, 0.4]])

    np.testing.assert_allclose(mixture.mean(), [[2 / 3, 1 / 3]])
    np.testing.assert_allclose(hocal.decompose(mixture, base=2).aleatoric, 2 / 3)


def test_drawing_one_snapshot_an_item_is_the_papers_way() -> None:
    calibrator = calibrated("empirical", k=2, thinning="draw", random_state=0)
    points = calibrator.cell_mixtures_.points

    assert set(np.unique(points)) <= {0.0, 0.5, 1.0}


def test_the_smallest_total_is_the_default_snapshot_size() -> None:
    assert hocal.SnapshotCalibrator(method="empirical").fit(
        [[0.5, 0.5]] * 2, [[2, 1], [3, 4]]
    ).diagnostics_ == {"k": 3}


def test_more_labels_than_the_poorest_item_has_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"`k` must be an integer from 1 to 4, got 5\. It is the smallest number"
    ):
        calibrated("empirical", k=5)


def test_a_thousand_classes_work() -> None:
    generator = np.random.default_rng(0)
    p = generator.dirichlet(np.full(1000, 0.01), size=200)
    counts = sparse.csr_array(draw_labels(p, 3, random_state=1))

    parts = hocal.SnapshotCalibrator(method="empirical").fit(p, counts).decompose(p)

    assert np.isfinite(parts.aleatoric).all()


def test_an_empty_cell_takes_the_nearest_of_its_group_then_the_pool() -> None:
    layout = CellLayout(np.array([0, 0, 0, 0, 1]), np.array([0, 1, 2, 3, 0]))

    assert borrow(np.array([True, False, False, True, False]), layout).tolist() == [0, 0, 3, 3, -1]


def test_of_two_neighbours_at_one_distance_the_more_confident_is_taken() -> None:
    layout = CellLayout(np.zeros(3, int), np.arange(3))

    assert borrow(np.array([True, False, True]), layout).tolist() == [0, 2, 2]


# Deconvolved


def test_deconvolution_is_nearer_to_the_truth_than_the_histogram() -> None:
    p, truth = ambiguous_world(3000, seed=5)
    counts = draw_labels(truth, 2, random_state=6)
    cells = hocal.TopLabelPartition().fit(p).assign(p)

    errors = [
        hocal.aleatoric_error(
            hocal.SnapshotCalibrator(method=method).fit(p, counts).decompose(p),
            cells=cells,
            label_distributions=truth,
        )
        for method in METHODS
    ]

    assert errors[0] < 0.4 * errors[1]


def test_held_out_labels_are_at_least_as_likely_as_under_the_histogram() -> None:
    """A snapshot that the histogram has not seen counts as a chance of exp(-20), not 0."""
    fit, test = np.arange(800) < 400, np.arange(800) >= 400
    scores = []
    for method in METHODS:
        calibrator = hocal.SnapshotCalibrator(method=method).fit(PREDICTIONS[fit], COUNTS[fit])
        scores.append(
            np.maximum(
                calibrator.predict_mixture(PREDICTIONS[test]).log_likelihood(COUNTS[test]), -20
            ).mean()
        )

    assert scores[0] >= scores[1]


def test_ragged_labels_and_single_labels_are_used() -> None:
    totals = np.random.default_rng(3).integers(1, 7, size=800)
    counts = np.random.default_rng(4).multinomial(totals, TRUTH)

    parts = calibrated("cells", counts).decompose(PREDICTIONS)

    assert (
        abs(
            parts.aleatoric.mean()
            - hocal.decompose(hocal.Mixtures.from_points(TRUTH)).aleatoric.mean()
        )
        < 0.08
    )


def test_the_solver_reports_convergence_and_shrinkage() -> None:
    diagnostics = calibrated("cells").diagnostics_

    assert diagnostics["gap"] < 1e-6
    assert all(scale > 0 for scale in diagnostics["scales"].values())


# Refusals


def test_predicting_before_fitting_is_refused() -> None:
    with pytest.raises(NotFittedError, match="Call fit"):
        hocal.SnapshotCalibrator().predict_proba(PREDICTIONS)


@pytest.mark.parametrize(
    ("predictions", "counts", "message"),
    [
        (
            PREDICTIONS,
            COUNTS[:-1],
            "`probabilities` and `counts` must describe the same items, got 800 and 799",
        ),
        (
            PREDICTIONS,
            np.hstack([COUNTS, COUNTS[:, :1]]),
            r"`counts` must have 3 classes \(columns\), got 4",
        ),
        (PREDICTIONS[:2], [[1, 0, 0], [0, 0, 0]], "at least 1 label in each row, got 0 in row 1"),
        (PREDICTIONS[:1], [[1, -1, 2]], "`counts` must be non-negative, got -1 in row 0"),
        (PREDICTIONS[:1] / 2, [[1, 1, 2]], "`probabilities` must sum to 1"),
    ],
)
def test_bad_data_are_refused(predictions: Any, counts: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hocal.SnapshotCalibrator().fit(predictions, counts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "magic"}, "`method` must be one of 'items', 'cells', 'empirical', got 'magic'"),
        (
            {"method": "empirical", "thinning": "half"},
            "`thinning` must be one of 'exact', 'draw', got 'half'",
        ),
        ({"partition": 7}, "`partition` must be a Partition or a callable, got 7"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        hocal.SnapshotCalibrator(**options).fit(PREDICTIONS, COUNTS)


def test_predictions_of_another_width_are_refused() -> None:
    with pytest.raises(
        ValueError, match="`probabilities` must have 3 classes on its last axis, got 2"
    ):
        calibrated("empirical").decompose([[0.5, 0.5]])


def test_statistics_of_another_partition_are_refused() -> None:
    held = calibrated("empirical").statistics_

    with pytest.raises(
        ValueError, match="`statistics` must come from the calibrator's partition, got 30 cells"
    ):
        hocal.SnapshotCalibrator(hocal.TopLabelPartition(4), method="empirical").fit_statistics(
            held
        )


def test_a_partition_that_learns_must_be_fitted_before_statistics() -> None:
    with pytest.raises(ValueError, match="`partition` must be fitted before fit_statistics"):
        hocal.SnapshotCalibrator(hocal.QuantilePartition(), method="cells").fit_statistics(
            calibrated("empirical").statistics_
        )


def test_a_fitted_partition_serves_statistics() -> None:
    partition = hocal.QuantilePartition(3).fit(PREDICTIONS)
    held = CellStatistics.from_items(
        PREDICTIONS, COUNTS, partition.assign(PREDICTIONS), partition.layout_
    )

    calibrator = hocal.SnapshotCalibrator(partition, method="empirical").fit_statistics(held)

    assert calibrator.predict_proba(PREDICTIONS).shape == (800, 3)


def test_too_many_rankings_in_one_call_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    calibrator = calibrated("cells")
    monkeypatch.setattr("hocal.calibration.by_cell.class_order.MAX_NUMBERS", 1000)

    with pytest.raises(ValueError, match="Predict mixtures in batches"):
        calibrator.predict_mixture(PREDICTIONS)


# Real labels


@pytest.mark.skipif("HOCAL_DATA" not in os.environ, reason="HOCAL_DATA names no data folder")
@pytest.mark.parametrize(
    ("k", "papers", "ours"), [(2, 0.100, 0.029), (5, 0.065, 0.0225), (10, 0.046, 0.0195)]
)
def test_errors_on_cifar10h_are_those_of_the_stored_experiment(
    k: int, papers: float, ours: float
) -> None:
    """Three resamplings of experiments/label_efficiency.py, with some room for their noise."""
    folder = Path(os.environ["HOCAL_DATA"]) / "cifar10h"
    counts = np.load(folder / "cifar10h-counts.npy")
    with np.load(folder / "cifar10-test-softmax.npz") as file:
        p = file["resnet18"].astype(np.float64)
    errors = []
    for seed in range(3):
        generator = np.random.default_rng(seed)
        fit, test = np.array_split(generator.permutation(len(p)), 2)
        labels = draw_snapshots(counts[fit], k, replace=True, random_state=generator)
        for method in ("empirical", "cells"):
            calibrator = hocal.SnapshotCalibrator(method=method).fit(p[fit], labels)
            cells = calibrator.partition_.assign(p[test])
            errors.append(
                hocal.aleatoric_error(calibrator.decompose(p[test]), counts[test], cells=cells)
            )

    assert np.mean(errors[::2]) == pytest.approx(papers, abs=0.004)
    assert np.mean(errors[1::2]) < ours * 1.1


def test_one_label_per_item_is_warned_of() -> None:
    with pytest.warns(UserWarning, match=r"No item has two labels.*Collect a second label") as said:
        hocal.SnapshotCalibrator(method="empirical").fit([[0.5, 0.5]] * 4, [[1, 0], [0, 1]] * 2)

    assert said[0].filename == __file__  # where the call stands


def test_an_unfitted_calibrator_says_so_whatever_is_asked() -> None:
    with pytest.raises(NotFittedError, match="Call fit"):
        hocal.SnapshotCalibrator().decompose([[0.5, 0.5]])


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        (
            hocal.Mixtures.from_points([[0.5, 0.5]]),
            r"must be label distributions, got Mixtures\. Pass their mean",
        ),
        (np.full((4, 3, 2), 0.5), r"got \(4, 3, 2\) for 3 rows of counts\. Pass prob.*swapaxes"),
    ],
    ids=["mixtures", "members first"],
)
def test_what_is_nearly_a_prediction_is_refused_with_a_way_out(
    probabilities: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        hocal.SnapshotCalibrator().fit(probabilities, [[1, 1]] * 3)


def count_checks(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> list[int]:
    """Return how often the predictions and the labels that were given are checked, anywhere."""
    calls = {"check_simplex": 0, "check_counts": 0}
    for name in calls:
        check = getattr(validation, name)

        def counted(
            values: Any, *rest: Any, _name: str = name, _check: Any = check, **o: Any
        ) -> Any:
            calls[_name] += any(np.shares_memory(values, given) for given in (PREDICTIONS, COUNTS))
            return _check(values, *rest, **o)

        for module in list(sys.modules.values()):
            if module.__name__.startswith("hocal.") and hasattr(module, name):
                monkeypatch.setattr(module, name, counted)
    work()
    return list(calls.values())


@pytest.mark.parametrize("method", METHODS)
def test_a_fit_checks_predictions_and_labels_once(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = count_checks(monkeypatch, lambda: calibrated(method))

    assert checks == [1, 1]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "predict", ["predict_proba", "predict_mixture", "predict_set", "decompose"]
)
def test_a_prediction_checks_predictions_once(
    method: str, predict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calibrator = calibrated(method)

    checks = count_checks(monkeypatch, lambda: getattr(calibrator, predict)(PREDICTIONS))

    assert checks == [1, 0]


def test_cells_in_their_own_class_order_are_the_same_from_sparse_counts() -> None:
    """Two classes are mistaken for each other, so that labels order the classes of cells."""
    generator = np.random.default_rng(8)
    p = generator.dirichlet(np.full(4, 0.3), size=300)
    counts = np.stack([generator.multinomial(3, row[[1, 0, 2, 3]]) for row in p])

    dense, few = (
        hocal.SnapshotCalibrator(method="cells").fit(p, given)
        for given in (counts, sparse.csr_array(counts))
    )

    assert (dense.class_orders_[:, 0] >= 0).any()
    np.testing.assert_array_equal(dense.cell_mixtures_.weights, few.cell_mixtures_.weights)
