"""Classes that are alike: how labels are chosen, what is counted, and scales of known truth."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import hocal
from hocal._base.errors import InputError
from hocal._base.saved_arrays import SavedArrays
from hocal._base.typing import Array, IntArray
from hocal.calibration.by_item.components import Components, labels_of
from hocal.calibration.by_item.likeness import (
    SHARES,
    Alike,
    Likeness,
    count_together,
    likeness_of,
    make_alike,
)
from hocal.calibration.by_item.model import ItemModel

N_CLASSES = 5
STEPS = np.abs(np.subtract.outer(np.arange(N_CLASSES), np.arange(N_CLASSES)))
SCALE = np.exp(-STEPS)
COUNTS = np.array([[2, 1, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 1, 0, 1], [0, 3, 0, 0, 0]])


def predictions(n_items: int, seed: int = 0) -> Array:
    """Return predictions of which some are next to certain."""
    drawn = np.random.default_rng(seed).dirichlet(np.full(N_CLASSES, 0.2), n_items) + 1e-7
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))


def alike(mean: Array, likeness: Array = SCALE) -> Alike:
    return make_alike(Likeness(likeness[None], np.zeros(len(mean), dtype=np.intp)), mean)


@pytest.mark.parametrize("power", [1.0, 4.0, 16.0])
def test_the_mean_is_the_prediction_however_alike_classes_are(power: float) -> None:
    mean = predictions(300)
    found = alike(mean, SCALE**power)

    np.testing.assert_allclose(found.kernel.sum(axis=2), 1, atol=1e-9)
    assert found.kernel.min() >= 0
    np.testing.assert_allclose(np.einsum("ij,ijm->im", mean, found.kernel), mean, atol=1e-12)
    flows = mean[:, :, None] * found.kernel
    np.testing.assert_allclose(flows, flows.transpose(0, 2, 1), atol=1e-12)


def test_where_all_classes_are_alike_labels_are_chosen_as_by_stars() -> None:
    """One form has two derivations: people who lapse, and people who choose by likeness."""
    mean = predictions(4, seed=1) * 0.9 + 0.02
    mean /= mean.sum(axis=1, keepdims=True)
    found = alike(mean, np.ones_like(SCALE))
    stars = Components(np.zeros(0), SHARES[:-1])

    np.testing.assert_allclose(found.kernel, np.repeat(mean[:, None], N_CLASSES, axis=1))
    for labels in (None, labels_of(COUNTS)):
        for name in ("brier", "shannon"):
            values = getattr(found, name)(labels)[:, :-1]
            np.testing.assert_allclose(values, getattr(stars, name)(mean, labels), atol=1e-6)
    logs = found.log_likelihood(labels_of(COUNTS))
    stars_logs = stars.log_likelihood(mean, labels_of(COUNTS))
    np.testing.assert_allclose(logs[:, :-1], stars_logs, atol=1e-9)
    chosen_freely = (COUNTS * np.log(mean)).sum(axis=1)  # with a share of one it is the prediction
    np.testing.assert_allclose(logs[:, -1], chosen_freely, atol=1e-9)


def test_closed_forms_are_sums_over_the_class_of_an_item() -> None:
    mean = predictions(4, seed=2) * 0.9 + 0.02
    mean /= mean.sum(axis=1, keepdims=True)
    found = alike(mean)
    weights = np.random.default_rng(0).dirichlet(np.ones(len(SHARES)), 4)
    expected = np.zeros_like(mean)
    for c, share in enumerate(SHARES):
        for item in range(4):
            points = share * found.kernel[item] + (1 - share) * np.eye(N_CLASSES)
            joint = mean[item] * np.prod(points ** COUNTS[item], axis=1)
            given = joint / joint.sum()
            labels = labels_of(COUNTS)
            assert found.log_likelihood(labels)[item, c] == pytest.approx(np.log(joint.sum()))
            brier = given @ (1 - (points**2).sum(axis=1))
            shannon = given @ -(points * np.log(np.maximum(points, 1e-300))).sum(axis=1)
            assert found.brier(labels)[item, c] == pytest.approx(brier)
            assert found.shannon(labels)[item, c] == pytest.approx(shannon)
            expected[item] += weights[item, c] * given @ points
    np.testing.assert_allclose(found.means(weights, labels_of(COUNTS)), expected)


def test_pairs_are_counted_against_what_predictions_make_us_expect() -> None:
    """Two items, by hand: five pairs as frequent as expected are added to each count."""
    mean = np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]])
    counts = np.array([[1, 1, 0], [0, 2, 1]])
    disagreement = np.array([0.6, 0.3])
    folds = np.array([0, 1])

    found = count_together(mean, disagreement, counts, folds)

    rates = np.array([2 * 0.6, 3 * 0.3]) / (1 - 0.38)
    assert found[0, 0, 1] == pytest.approx((1 + 5) / (rates.sum() * 0.15 + 5))
    assert found[0, 1, 2] == pytest.approx((2 / 2 + 5) / (rates.sum() * 0.06 + 5))
    assert found[1, 0, 1] == pytest.approx(5 / (rates[1] * 0.15 + 5))  # without the first item
    assert np.array_equal(found, found.transpose(0, 2, 1))
    assert (np.einsum("fjj->fj", found) >= 1).all()


def test_items_with_one_label_tell_nothing_of_likeness() -> None:
    counts = np.eye(N_CLASSES, dtype=int)
    found = count_together(predictions(5), np.full(5, 0.3), counts, np.arange(5) % 2)

    assert np.array_equal(found, np.ones_like(found))


def test_the_likeness_without_a_fold_has_not_seen_its_labels() -> None:
    rng = np.random.default_rng(0)
    mean = predictions(100)
    counts = rng.multinomial(3, mean)
    folds = np.repeat(np.arange(5), 20)
    others = counts.copy()
    others[folds == 2] = rng.multinomial(3, np.full(N_CLASSES, 0.2), 20)

    first, second = (count_together(mean, np.full(100, 0.4), c, folds) for c in (counts, others))

    assert np.array_equal(first[3], second[3])
    assert not np.array_equal(first[0], second[0])


def test_a_likeness_that_is_out_of_range_is_held() -> None:
    assert likeness_of(np.array([1e-5, 1.0, 1e5]), 16.0).tolist() == [1e-9, 1.0, 1e9]


class Scale(NamedTuple):
    """Items on a scale: what a model sees of them, and what people think of them."""

    prediction: Array  #: (n_items, N_CLASSES) exact, given what the model sees
    chances: Array  #: (n_items, n_places) of the item's place on the scale, given the same
    truth: Array  #: (n_items, N_CLASSES) label distribution at its place


PLACES = np.linspace(-1.5, 5.5, 60)
AT_PLACE = np.exp(-((PLACES[:, None] - np.arange(N_CLASSES)) ** 2) / 0.8)
AT_PLACE /= AT_PLACE.sum(axis=1, keepdims=True)


@cache
def scale_world(n_items: int, seed: int) -> Scale:
    """Places are uniform; the model sees them with noise, people choose the nearest classes."""
    rng = np.random.default_rng(seed)
    place = rng.integers(len(PLACES), size=n_items)
    seen = PLACES[place] + 1.2 * rng.normal(size=n_items)
    chances = np.exp(-((seen[:, None] - PLACES) ** 2) / (2 * 1.2**2))
    chances /= chances.sum(axis=1, keepdims=True)
    return Scale(chances @ AT_PLACE, chances, AT_PLACE[place])


def draw(p: Array, k: int, seed: int) -> IntArray:
    return np.random.default_rng(seed).multinomial(k, p)


@cache
def fitted(k: int = 2) -> hocal.SnapshotCalibrator:
    world = scale_world(3_000, 0)
    return hocal.SnapshotCalibrator().fit(world.prediction, draw(world.truth, k, 1))


def log_loss(mean: Array, truth: Array) -> float:
    return float(-(truth * np.log(mean)).sum(axis=1).mean())


def test_own_labels_on_a_scale_say_nearly_what_they_say_to_one_who_knows_it() -> None:
    """Two labels of 4 make 5 likelier, and not 1. Without likeness the loss is .19 above."""
    world = scale_world(3_000, 2)
    own = draw(world.truth, 2, 3)
    model = fitted().item_model_
    assert model is not None
    assert model.likeness.shape == (6, N_CLASSES, N_CLASSES)

    mean = fitted().predict_proba(world.prediction, counts=own)
    likelihood = np.prod(AT_PLACE ** own[:, None], axis=2)
    given = world.chances * likelihood
    exact = (given / given.sum(axis=1, keepdims=True)) @ AT_PLACE

    assert log_loss(mean, world.truth) - log_loss(exact, world.truth) < 0.02


@pytest.mark.parametrize("entropy", ["shannon", "brier", "ordinal"])
def test_uncertainty_on_a_scale_is_that_of_the_world(entropy: str) -> None:
    """Steps of a scale too: half the mean distance of two labels."""
    world = scale_world(3_000, 2)
    truth = hocal.decompose(hocal.Mixtures.from_points(world.truth), entropy).aleatoric.mean()
    found = fitted().decompose(world.prediction[:1_000], entropy).aleatoric.mean()

    assert found == pytest.approx(truth, rel=0.05)


def test_own_labels_of_the_fit_are_not_counted_twice() -> None:
    """With the labels of the fit, its items have the loss that fresh items have with theirs."""
    losses = []
    for seed, labels_seed in ((0, 1), (2, 3)):
        world = scale_world(3_000, seed)
        own = draw(world.truth, 2, labels_seed)
        mean = fitted().predict_proba(world.prediction, counts=own)
        losses.append(log_loss(mean, world.truth) - log_loss(world.truth, world.truth))

    assert losses[0] == pytest.approx(losses[1], abs=0.012)


def test_classes_that_are_no_more_alike_than_others_need_no_likeness() -> None:
    rng = np.random.default_rng(0)
    prediction = rng.dirichlet(np.ones(N_CLASSES), 1_500)
    truth = np.stack([rng.dirichlet(6 * p) for p in prediction])

    model = hocal.SnapshotCalibrator().fit(prediction, draw(truth, 3, 0)).item_model_

    assert model is not None
    assert model.likeness.shape == (6, 0, 0)


def test_a_saved_model_knows_which_classes_are_alike(tmp_path: Path) -> None:
    world = scale_world(3_000, 2)
    hocal.save(fitted(), tmp_path / "model.hocal")
    loaded = hocal.load(tmp_path / "model.hocal")
    own = draw(world.truth, 2, 3)

    first, second = (each.decompose(world.prediction, counts=own) for each in (fitted(), loaded))
    assert np.array_equal(first.aleatoric, second.aleatoric)


def test_a_likeness_that_is_not_symmetric_is_refused() -> None:
    model = fitted().item_model_
    assert model is not None
    arrays = model.arrays()
    arrays["likeness"] = arrays["likeness"].copy()
    arrays["likeness"][0, 0, 1] *= 2

    with pytest.raises(InputError, match=r"`items.likeness` must be symmetric"):
        ItemModel.from_arrays(SavedArrays(arrays))
