"""The calibrator by items: mean, parts, own labels, level sets, and what it refuses."""

from copy import copy
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

import hocal
from hocal.datasets import make_mixture_world

Array = NDArray[np.float64]


def confused_world(n_items: int, seed: int) -> tuple[Array, Array]:
    """Return label distributions, and a model that says class 1 where people say class 2."""
    generator = np.random.default_rng(seed)
    truth = generator.dirichlet([0.4, 0.4, 0.4], n_items)
    tempered = truth**0.7 * np.exp(generator.normal(0, 0.4, truth.shape)) + 1e-3
    return truth, (tempered / tempered.sum(axis=1, keepdims=True))[:, [0, 2, 1]]


def labels(truth: Array, k: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).multinomial(k, truth)


@pytest.fixture(scope="module")
def fitted() -> hocal.SnapshotCalibrator:
    truth, predictions = confused_world(2000, 0)
    return hocal.SnapshotCalibrator().fit(predictions, labels(truth, 3, 1))


def test_the_mean_knows_which_class_is_which(fitted: hocal.SnapshotCalibrator) -> None:
    truth, predictions = confused_world(1000, 2)

    loss = -(truth * np.log(fitted.predict_proba(predictions))).sum(axis=1).mean()
    raw = -(truth * np.log(predictions)).sum(axis=1).mean()
    floor = -(truth * np.log(truth)).sum(axis=1).mean()

    assert loss - floor < 0.1 * (raw - floor)


def test_predictive_uncertainty_is_the_loss_it_claims(fitted: hocal.SnapshotCalibrator) -> None:
    truth, predictions = confused_world(2000, 3)

    loss = -(truth * np.log(fitted.predict_proba(predictions))).sum(axis=1).mean()

    assert fitted.decompose(predictions).predictive.mean() == pytest.approx(loss, abs=0.03)


@pytest.mark.parametrize("entropy", ["shannon", "brier"])
def test_parts_of_items_are_those_of_their_atoms(
    fitted: hocal.SnapshotCalibrator, entropy: str
) -> None:
    _, predictions = confused_world(50, 4)

    parts = fitted.decompose(predictions, entropy)
    listed = hocal.decompose(fitted.predict_mixture(predictions), entropy)

    assert parts.aleatoric == pytest.approx(listed.aleatoric, abs=1e-6)
    assert parts.epistemic == pytest.approx(listed.epistemic, abs=1e-6)


def test_the_mean_is_that_of_the_atoms(fitted: hocal.SnapshotCalibrator) -> None:
    _, predictions = confused_world(50, 4)

    mean = fitted.predict_mixture(predictions).mean()

    assert mean == pytest.approx(fitted.predict_proba(predictions), abs=1e-6)


def test_items_are_told_apart_within_a_cell(fitted: hocal.SnapshotCalibrator) -> None:
    truth, predictions = confused_world(2000, 5)
    held_out = labels(truth, 20, 6)
    cells = hocal.SnapshotCalibrator(method="cells")
    cells.fit(*_calibration())

    by_item = hocal.resolution(fitted.decompose(predictions, "brier"), held_out)
    by_cell = hocal.resolution(cells.decompose(predictions, "brier"), held_out)

    assert by_item.estimate > by_cell.estimate + 0.02


def _calibration() -> tuple[Array, NDArray[np.int64]]:
    truth, predictions = confused_world(2000, 0)
    return predictions, labels(truth, 3, 1)


def test_own_labels_say_more(fitted: hocal.SnapshotCalibrator) -> None:
    truth, predictions = confused_world(2000, 7)
    own = labels(truth, 5, 8)
    held_out = labels(truth, 20, 9)

    alone = hocal.resolution(fitted.decompose(predictions, "brier"), held_out)
    with_own = hocal.resolution(fitted.decompose(predictions, "brier", counts=own), held_out)

    assert with_own.estimate > alone.upper


def test_a_row_of_zeros_is_an_item_without_labels(fitted: hocal.SnapshotCalibrator) -> None:
    _, predictions = confused_world(5, 10)
    none = np.zeros((5, 3), dtype=np.int64)

    alone = fitted.decompose(predictions)
    with_none = fitted.decompose(predictions, counts=none)

    assert with_none.aleatoric == pytest.approx(alone.aleatoric, abs=1e-6)


def test_sparse_own_labels_give_the_numbers_of_dense_ones(
    fitted: hocal.SnapshotCalibrator,
) -> None:
    truth, predictions = confused_world(20, 11)
    own = labels(truth, 3, 12)

    dense = fitted.decompose(predictions, counts=own)
    packed = fitted.decompose(predictions, counts=sparse.csr_array(own))

    assert packed.aleatoric == pytest.approx(dense.aleatoric, abs=1e-12)


def test_labels_of_the_fit_are_not_counted_twice() -> None:
    """Labels that say nothing about other items: what a fit remembers of them is noise."""
    generator = np.random.default_rng(0)
    predictions = np.full((300, 2), 0.5) + generator.normal(0, 1e-3, (300, 1)) * [1, -1]
    own = generator.multinomial(3, [0.5, 0.5], 300)
    calibrator = hocal.SnapshotCalibrator().fit(predictions, own)

    known = calibrator.predict_proba(predictions, counts=own)
    fresh = calibrator.predict_proba(predictions + np.array([1e-9, -1e-9]), counts=own)

    # Somebody else's label for the same items: both must be equally far from it.
    again = generator.multinomial(50, [0.5, 0.5], 300)
    losses = [-(again * np.log(p)).sum() / again.sum() for p in (known, fresh)]
    assert losses[0] <= losses[1] + 1e-3


def test_posteriors_of_fitted_items_are_as_calibrated_as_those_of_fresh_ones() -> None:
    truth, predictions = confused_world(3000, 20)
    own = labels(truth, 3, 21)
    calibrator = hocal.SnapshotCalibrator().fit(predictions[:1500], own[:1500])

    gaps = []
    for rows in (slice(0, 1500), slice(1500, 3000)):
        parts = calibrator.decompose(predictions[rows], "brier", counts=own[rows])
        observed = 1 - (truth[rows] ** 2).sum(axis=1)
        gaps.append(parts.aleatoric.mean() - observed.mean())

    assert np.abs(gaps).max() < 0.02
    assert gaps[0] == pytest.approx(gaps[1], abs=0.02)


def test_the_order_of_the_items_does_not_matter(fitted: hocal.SnapshotCalibrator) -> None:
    predictions, counts = _calibration()
    order = np.random.default_rng(1).permutation(len(counts))
    _, new = confused_world(20, 13)

    first = fitted.decompose(new)
    second = hocal.SnapshotCalibrator().fit(predictions[order], counts[order]).decompose(new)

    assert second.aleatoric == pytest.approx(first.aleatoric, abs=1e-9)


def test_members_that_disagree_tell_more_than_their_mean() -> None:
    """Where members agree, people do too; the mean says the same about both kinds of items."""
    generator = np.random.default_rng(2)
    torn = generator.random(3000) < 0.5
    first = np.where(torn[:, None], [0.95, 0.05], [0.5, 0.5])
    second = np.where(torn[:, None], [0.05, 0.95], [0.5, 0.5])
    members = np.stack([first, second], axis=1)
    truth = np.where(torn[:, None], np.eye(2)[generator.integers(0, 2, 3000)], [0.5, 0.5])
    calibrator = hocal.SnapshotCalibrator().fit(members, labels(truth, 3, 3))

    parts = calibrator.decompose(members)

    assert parts.aleatoric[torn].mean() < 0.15
    assert parts.aleatoric[~torn].mean() > 0.55


def test_features_tell_what_the_prediction_does_not() -> None:
    generator = np.random.default_rng(4)
    clear = generator.random(3000) < 0.5
    truth = np.where(clear[:, None], np.eye(2)[generator.integers(0, 2, 3000)], [0.5, 0.5])
    features = clear[:, None] + generator.normal(0, 0.1, (3000, 1))
    predictions = np.full((3000, 2), 0.5)
    counts = labels(truth, 3, 5)

    calibrator = hocal.SnapshotCalibrator().fit(predictions, counts, features=features)
    parts = calibrator.decompose(predictions, features=features)

    assert parts.aleatoric[clear].mean() < 0.15
    assert parts.aleatoric[~clear].mean() > 0.55


@pytest.mark.slow
def test_fifty_classes_have_the_right_predictive_uncertainty() -> None:
    generator = np.random.default_rng(6)
    truth = generator.dirichlet(np.full(50, 0.1), 4000)
    noisy = truth * np.exp(generator.normal(0, 1, truth.shape)) + 1e-4
    predictions = noisy / noisy.sum(axis=1, keepdims=True)
    calibrator = hocal.SnapshotCalibrator()
    calibrator.fit(predictions[:2500], labels(truth[:2500], 3, 7))

    new = predictions[2500:]
    loss = -(truth[2500:] * np.log(calibrator.predict_proba(new))).sum(axis=1).mean()
    parts = calibrator.decompose(new)
    entropy = -(truth[2500:] * np.log(truth[2500:] + 1e-300)).sum(axis=1).mean()

    assert parts.predictive.mean() == pytest.approx(loss, abs=0.05)
    assert parts.aleatoric.mean() == pytest.approx(entropy, abs=0.12)


def test_cells_restore_the_identity_of_classes() -> None:
    truth, predictions = confused_world(4000, 30)
    counts = labels(truth, 3, 31)
    calibrator = hocal.SnapshotCalibrator(method="cells").fit(predictions[:2000], counts[:2000])

    mean = calibrator.predict_proba(predictions[2000:])
    raw = predictions[2000:]
    losses = [-(truth[2000:] * np.log(p + 1e-12)).sum(axis=1).mean() for p in (mean, raw)]

    assert losses[0] < losses[1]


def test_level_sets_hold_what_is_called_ambiguous(fitted: hocal.SnapshotCalibrator) -> None:
    certificate = fitted.certify(0.95, by="aleatoric")
    lower, upper = certificate.interval("aleatoric")

    assert certificate.n_items.tolist() == [200] * 10
    assert lower[-1] > upper[0]
    assert certificate.names[-1].startswith("predicted aleatoric from")


def test_new_items_find_their_level(fitted: hocal.SnapshotCalibrator) -> None:
    truth, predictions = confused_world(2000, 40)
    entropy = -(truth * np.log(truth + 1e-300)).sum(axis=1)
    lower, upper = fitted.certify(0.99, by="aleatoric").interval("aleatoric")

    level = fitted.level(predictions)
    means = [entropy[level == j].mean() for j in range(10)]

    assert (lower < means).all()
    assert (means < upper).all()


def test_a_panel_does_not_move_items_to_another_level(fitted: hocal.SnapshotCalibrator) -> None:
    _, predictions = confused_world(500, 41)
    panel = copy(fitted).set_params(panel_size=3)

    assert np.array_equal(panel.level(predictions), fitted.level(predictions))


@pytest.mark.parametrize("method", ["predict_mixture", "predict_set", "calibration_error"])
def test_items_whose_mixtures_do_not_fit_into_memory_are_to_come_in_batches(
    fitted: hocal.SnapshotCalibrator, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("by_item.mixtures", "predictor"):
        monkeypatch.setattr(f"hocal.calibration.{module}.MAX_NUMBERS", 6_000)
    truth, predictions = confused_world(100, 42)
    more = (labels(truth, 3, 43),) if method == "calibration_error" else ()

    with pytest.raises(
        hocal.InputError, match=r"`probabilities` must be .* for 100 items.* Pass at most \d+ items"
    ):
        getattr(fitted, method)(predictions, *more)


def test_other_methods_have_no_level_sets() -> None:
    calibrator = hocal.SnapshotCalibrator(method="cells").fit(*_calibration())

    with pytest.raises(hocal.InputError, match=r'`by` must be "partition" unless'):
        calibrator.certify(by="aleatoric")


def test_a_saved_calibrator_answers_the_same(
    fitted: hocal.SnapshotCalibrator, tmp_path: Path
) -> None:
    truth, predictions = confused_world(50, 14)
    own = labels(truth, 3, 15)
    hocal.save(fitted, tmp_path / "model.hocal")

    loaded = hocal.load(tmp_path / "model.hocal")

    parts = fitted.decompose(predictions, counts=own)
    again = loaded.decompose(predictions, counts=own)
    assert (again.aleatoric == parts.aleatoric).all()
    levels = [one.certify(by="epistemic").interval("aleatoric") for one in (fitted, loaded)]
    assert np.array_equal(*levels)


def test_statistics_alone_give_every_item_its_cell() -> None:
    predictions, counts = _calibration()
    cells = hocal.SnapshotCalibrator(method="cells").fit(predictions, counts)
    items = hocal.SnapshotCalibrator()

    with pytest.warns(UserWarning, match='method="items" gives every item the mixture of its cell'):
        items.fit_statistics(cells.statistics_)

    assert (items.predict_proba(predictions) == cells.predict_proba(predictions)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": [[1.0]] * 3}, "`features` must be left out, because the calibrator"),
        ({"counts": [[1, 0]] * 3}, r"`counts` must have 3 classes \(columns\), got 2"),
        ({"counts": [[1, 0, 0]] * 2}, "`probabilities` and `counts` must describe the same"),
    ],
)
def test_what_does_not_fit_is_refused(
    fitted: hocal.SnapshotCalibrator, change: dict[str, object], message: str
) -> None:
    with pytest.raises(hocal.InputError, match=message):
        fitted.decompose([[0.2, 0.3, 0.5]] * 3, **change)  # type: ignore[arg-type]


def test_features_of_another_width_are_refused() -> None:
    predictions, counts = _calibration()
    features = predictions[:40, :2]
    calibrator = hocal.SnapshotCalibrator().fit(predictions[:40], counts[:40], features=features)

    with pytest.raises(
        hocal.InputError, match="`features` must have 2 columns, as in the fit, got 3"
    ):
        calibrator.decompose(predictions[:5], features=predictions[:5])
    with pytest.raises(hocal.InputError, match=r"`features` must have 2 columns.*got none"):
        calibrator.decompose(predictions[:5])


def test_features_with_gaps_are_refused_with_their_place() -> None:
    predictions, counts = _calibration()
    features = predictions[:, :2].copy()
    features[17, 1] = np.nan

    with pytest.raises(hocal.InputError, match="finite numbers, got nan in row 17, column 1"):
        hocal.SnapshotCalibrator().fit(predictions, counts, features=features)


def test_features_need_the_method_of_items() -> None:
    predictions, counts = _calibration()

    with pytest.raises(hocal.InputError, match='`features` must be left out unless method="items"'):
        hocal.SnapshotCalibrator(method="cells").fit(predictions, counts, features=predictions)


def test_an_ensemble_with_its_axes_swapped_is_named() -> None:
    predictions, counts = _calibration()
    members = np.stack([predictions, predictions])

    with (
        pytest.raises(hocal.InputError, match=r"shape \(n_items, n_members, n_classes\)"),
        pytest.warns(UserWarning, match="has 2000 members for 2 items"),
    ):
        hocal.SnapshotCalibrator().fit(members, counts)


def test_another_number_of_members_is_refused() -> None:
    predictions, counts = _calibration()
    members = np.stack([predictions[:40]] * 2, axis=1)
    calibrator = hocal.SnapshotCalibrator().fit(members, counts[:40])

    with pytest.raises(hocal.InputError, match="must have 2 members per item, as in the fit"):
        calibrator.predict_proba(predictions)


def test_many_items_are_decomposed_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a last part of another size; items keep their order."""
    world = make_mixture_world(300, 3, random_state=0)
    p = world.predictions
    calibrator = hocal.SnapshotCalibrator().fit(p, world.draw(3, random_state=1))
    parts, means = calibrator.decompose(p), calibrator.predict_proba(p)
    monkeypatch.setattr("hocal.calibration.by_item.model.BLOCK_ITEMS", 5)

    assert calibrator.decompose(p).aleatoric == pytest.approx(parts.aleatoric, abs=1e-5)
    assert calibrator.predict_proba(p) == pytest.approx(means, abs=1e-5)


@pytest.mark.parametrize("n_classes", [3, 10])
@pytest.mark.parametrize("slips", [0.0, 0.003, 0.01])
@pytest.mark.parametrize("own", [False, True])
def test_doubt_about_items_that_people_agree_on_is_not_called_aleatoric(
    n_classes: int, slips: float, own: bool
) -> None:
    """The model knows next to nothing; people all but agree, so that its doubt is epistemic."""
    generator = np.random.default_rng(0)
    predictions = generator.dirichlet(np.ones(n_classes), 2000)
    certain = np.eye(n_classes)[(predictions.cumsum(axis=1) < generator.random((2000, 1))).sum(1)]
    truth = (1 - slips) * certain + slips / n_classes
    entropy = -(truth * np.log(np.maximum(truth, 1e-300))).sum(axis=1).mean()
    counts = labels(truth, 3, 1)
    one_cell = hocal.PrecomputedPartition(1)
    calibrator = hocal.SnapshotCalibrator(one_cell).fit(predictions, counts, cells=np.zeros(2000))

    parts = calibrator.decompose(
        predictions, counts=counts if own else None, cells=np.zeros(2000, dtype=int)
    )

    assert parts.aleatoric.mean() == pytest.approx(entropy, abs=0.025)
