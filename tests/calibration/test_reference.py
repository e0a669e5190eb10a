"""What a calibrator remembers of its calibration items, to compare new ones with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hocal
from hocal._base.fingerprints import fingerprint
from hocal._base.saved_arrays import SavedArrays
from hocal.calibration.reference import Expected, Reference, residuals
from hocal.datasets import make_mixture_world


@pytest.fixture(scope="module")
def world() -> Any:
    return make_mixture_world(300, 3, n_cells=6, random_state=0)


@pytest.fixture(scope="module", params=["cells", "items", "empirical"])
def fitted(request: pytest.FixtureRequest, world: Any) -> Any:
    calibrator = hocal.SnapshotCalibrator(hocal.TopLabelPartition(2), method=request.param)
    return calibrator.fit(world.predictions, world.draw(4, random_state=1))


def test_residuals_are_what_labels_differ_from_what_was_expected() -> None:
    expected = Expected(np.array([0, 0]), np.array([[0.5, 0.5], [0.2, 0.8]]), np.array([0.5, 0.3]))

    found = residuals(expected, np.array([[2, 2], [1, 0]]))

    assert found.disagreement == pytest.approx([4 / 6 - 0.5, np.nan], nan_ok=True)
    assert found.top == pytest.approx([0, -0.8])
    np.testing.assert_allclose(found.classes, [[0, 0], [0.8, -0.8]])


def test_what_is_expected_is_the_mean_and_the_brier_uncertainty(fitted: Any, world: Any) -> None:
    expected = fitted.expect(world.predictions[:50])
    brier = fitted.decompose(world.predictions[:50], "brier")

    np.testing.assert_allclose(expected.mean, fitted.predict_proba(world.predictions[:50]))
    np.testing.assert_allclose(expected.disagreement, brier.aleatoric)
    np.testing.assert_array_equal(expected.cells, fitted.locate(world.predictions[:50]).cells)


def test_every_item_counts_once_over_all_and_once_in_its_cell(fitted: Any) -> None:
    n_values = fitted.reference_.means.n_values

    assert n_values[:5].tolist() == [300] * 5
    assert n_values[5::2].sum() == n_values[6::2].sum() == 300


def test_residuals_of_calibration_items_are_small_on_average(fitted: Any) -> None:
    """But for the paper's method, whose snapshots show too little disagreement."""
    centre = fitted.reference_.means.centre[:5]
    bias = np.array([0.1 if fitted.method == "empirical" else 0, 0, 0, 0, 0])

    assert (np.abs(centre - bias) < 0.03).all()


def test_a_file_keeps_the_reference(fitted: Any, tmp_path: Path) -> None:
    hocal.save(fitted, tmp_path / "model.hocal")

    loaded = hocal.load(tmp_path / "model.hocal").reference_

    assert loaded is not None
    for old, new in zip(fitted.reference_.means, loaded.means, strict=True):
        np.testing.assert_array_equal(old, new)
    for name in ("summaries", "feature_centre", "feature_spread"):
        np.testing.assert_array_equal(getattr(fitted.reference_, name), getattr(loaded, name))


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("centre", np.zeros(2), "`centre` must have shape"),
        ("log_doubt", None, "`log_doubt` must be among the arrays"),
        ("rows", np.array([9, 3]), "`reference.rows` must rise"),
        ("summaries", np.full((2, 5), np.nan), "`summaries` must lie between"),
    ],
)
def test_a_reference_that_does_not_fit_together_is_refused(
    fitted: Any, name: str, array: Any, message: str
) -> None:
    arrays = fitted.reference_.arrays()
    if name == "rows":
        array = np.concatenate([array, arrays["rows"][2:]])
    arrays[name] = array
    if array is None:
        del arrays[name]

    with pytest.raises(hocal.InputError, match=message):
        Reference.from_arrays(SavedArrays(arrays), fitted.input_shape_, fitted.statistics_.n_cells)


def test_a_fit_on_statistics_knows_no_items(world: Any) -> None:
    fitted = hocal.SnapshotCalibrator(method="cells")
    fitted.partial_fit(world.predictions, world.draw(2, random_state=0))

    assert fitted.reference_ is None
    with pytest.raises(hocal.InputError, match=r"`calibrator` must have been fitted with `fit`"):
        fitted.known_reference()


def test_a_single_item_can_be_fitted() -> None:
    fitted = hocal.SnapshotCalibrator().fit([[0.4, 0.6]], [[1, 1]])

    assert fitted.reference_ is not None
    assert fitted.reference_.summaries.shape == (0, 5)


def test_features_are_measured_from_the_centre_of_other_calibration_items(world: Any) -> None:
    features = np.random.default_rng(0).normal(3, 2, (300, 4))
    fitted = hocal.SnapshotCalibrator().fit(
        world.predictions, world.draw(3, random_state=1), features=features
    )

    distances = fitted.summarise(world.predictions, features=features)[:, -1]

    order = np.argsort(fingerprint(world.predictions, features))
    here, other = features[order[1::2]], features[order[::2]]
    scaled = (here - other.mean(axis=0)) / other.std(axis=0)
    assert distances.mean() == pytest.approx(1, abs=0.2)
    assert distances[order[1::2]].mean() == pytest.approx(np.mean(scaled**2))


def test_the_order_of_rows_does_not_choose_what_is_remembered(world: Any) -> None:
    """Every second row of a table may be another kind of item."""
    p, counts = world.predictions, world.draw(4, random_state=1)
    pattern = np.argsort(p.max(axis=1)).reshape(2, -1).T.ravel()  # unsure and sure by turns
    calibrator = hocal.SnapshotCalibrator(method="cells")

    first = calibrator.fit(p, counts).known_reference().summaries
    again = calibrator.fit(p[pattern], counts[pattern]).known_reference().summaries

    np.testing.assert_allclose(again, first)


def test_a_few_items_of_an_ensemble_that_was_fitted_need_no_warning(
    world: Any, recwarn: pytest.WarningsRecorder
) -> None:
    members = np.stack([world.predictions] * 4, axis=1)
    calibrator = hocal.SnapshotCalibrator().fit(members, world.draw(4, random_state=1))

    calibrator.decompose(members[:2])

    assert not [str(each.message) for each in recwarn if "members" in str(each.message)]
