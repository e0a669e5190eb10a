"""Features of items: their units and origins do not matter, and none of them runs away."""

from pathlib import Path

import numpy as np
import pytest

import hocal
from hocal._base.typing import Array, IntArray
from hocal.calibration.first_order.feature_scale import FeatureScale

N_ITEMS = 300


def world(seed: int = 0) -> tuple[Array, IntArray, Array]:
    """Return predictions, labels, and one feature that tells which items people agree about."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(N_ITEMS, 1))
    clear = features > 0
    predictions = rng.dirichlet(np.full(3, 20.0), N_ITEMS)
    truth = np.where(clear, np.eye(3)[rng.integers(3, size=N_ITEMS)], predictions)
    return predictions, rng.multinomial(3, truth), features


@pytest.fixture(scope="module")
def fitted() -> hocal.SnapshotCalibrator:
    predictions, counts, features = world()
    return hocal.SnapshotCalibrator().fit(predictions, counts, features=features)


@pytest.mark.parametrize("far", [1e5, 1e39, 1e100])
def test_a_feature_far_outside_the_fit_counts_as_one_of_30_spreads(
    fitted: hocal.SnapshotCalibrator, far: float
) -> None:
    predictions, _, features = world()
    edge = features.mean() + 30 * features.std()

    expected = fitted.decompose(predictions[:1], features=[[edge]])
    parts = fitted.decompose(predictions[:1], features=[[far]])

    assert parts.aleatoric == pytest.approx(expected.aleatoric, abs=1e-6)
    assert parts.predictive == pytest.approx(expected.predictive, abs=1e-6)


@pytest.mark.parametrize("far", [1e39, 1e100])
def test_one_feature_out_of_all_proportion_leaves_a_fit_finite(far: float) -> None:
    predictions, counts, features = world()
    features[0] = far

    calibrator = hocal.SnapshotCalibrator().fit(predictions, counts, features=features)
    parts = calibrator.decompose(predictions, features=features)

    assert np.isfinite([parts.aleatoric, parts.epistemic]).all()


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e9])
def test_a_feature_that_was_constant_in_the_fit_tells_nothing(constant: float) -> None:
    predictions, counts, features = world()
    same = np.hstack([features, np.full((N_ITEMS, 1), constant)])
    other = np.hstack([features, np.full((N_ITEMS, 1), constant + 1e31)])
    calibrator = hocal.SnapshotCalibrator().fit(predictions, counts, features=same)

    before = calibrator.decompose(predictions, features=same)
    after = calibrator.decompose(predictions, features=other)

    np.testing.assert_array_equal(after.aleatoric, before.aleatoric)


def test_a_feature_tells_as_much_far_from_zero_and_in_large_units() -> None:
    predictions, counts, features = world()
    moved = 1e50 * (features + 1e9)
    calibrator = hocal.SnapshotCalibrator().fit(predictions, counts, features=moved)

    aleatoric = calibrator.decompose(predictions, features=moved).aleatoric

    clear = features[:, 0] > 0
    assert aleatoric[clear].mean() < 0.5 * aleatoric[~clear].mean()


def test_features_in_large_and_small_units_are_the_same_from_a_file(tmp_path: Path) -> None:
    predictions, counts, features = world()
    units = features * [1e50, 1e-50]
    calibrator = hocal.SnapshotCalibrator().fit(predictions, counts, features=units)

    hocal.save(calibrator, tmp_path / "model.hocal")
    loaded = hocal.load(tmp_path / "model.hocal")

    expected = calibrator.decompose(predictions, features=units).aleatoric
    found = loaded.decompose(predictions, features=units).aleatoric
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("huge", [1e101, -1e300])
def test_a_feature_too_large_for_sums_of_squares_is_refused_with_its_place(
    fitted: hocal.SnapshotCalibrator, huge: float
) -> None:
    predictions, counts, features = world()
    features[17] = huge
    message = r"`features` must lie between -1e\+100 and 1e\+100, got .* in row 17, column 0"

    with pytest.raises(hocal.InputError, match=message):
        hocal.SnapshotCalibrator().fit(predictions, counts, features=features)
    with pytest.raises(hocal.InputError, match=message):
        fitted.decompose(predictions, features=features)


@pytest.mark.parametrize("n_items", [7, 1_000_000])
def test_rounding_gives_a_constant_feature_no_spread(n_items: int) -> None:
    scale = FeatureScale.of(np.full((n_items, 1), 0.1))

    assert scale.spread == 0
    assert scale.apply(np.array([[0.2]])) == 0
