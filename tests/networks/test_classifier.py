"""SnapshotClassifier: the heads for people with a table."""

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from hocal.datasets import World, make_mixture_world
from hocal.torch import MixtureHead, SnapshotClassifier, SnapshotHead


@pytest.fixture(scope="module")
def world() -> World:
    return make_mixture_world(400, 3, n_cells=4, ambiguity=0.6, random_state=0)


@pytest.fixture(scope="module")
def fitted(world: World) -> SnapshotClassifier:
    totals = np.random.default_rng(0).integers(2, 6, size=len(world))
    classifier = SnapshotClassifier(epochs=40, device="cpu", random_state=0)
    return classifier.fit(world.features, world.draw(totals, random_state=1))


def test_means_are_near_the_true_ones(fitted: SnapshotClassifier, world: World) -> None:
    assert np.abs(fitted.predict_proba(world.features) - world.predictions).max() < 0.15


def test_aleatoric_uncertainty_is_near_the_true_one(
    fitted: SnapshotClassifier, world: World
) -> None:
    predicted, truth = fitted.decompose(world.features, "brier"), world.mixtures
    expected = truth.expect(lambda p: 1 - (p**2).sum(axis=1))

    assert np.abs(predicted.aleatoric - expected).mean() < 0.08


def test_prediction_is_the_most_likely_class(fitted: SnapshotClassifier, world: World) -> None:
    np.testing.assert_array_equal(
        fitted.predict(world.features), fitted.predict_proba(world.features).argmax(axis=1)
    )


def test_predictions_are_the_means_of_the_mixtures(
    fitted: SnapshotClassifier, world: World
) -> None:
    np.testing.assert_allclose(
        fitted.predict_proba(world.features),
        fitted.predict_mixture(world.features).mean(),
        atol=1e-12,
    )


@pytest.mark.parametrize(
    ("parameters", "head"),
    [({"k": 2}, SnapshotHead), ({"n_components": 3}, MixtureHead), ({}, MixtureHead)],
)
def test_parameters_choose_the_head(parameters: dict[str, int], head: type, world: World) -> None:
    classifier = SnapshotClassifier(**parameters, epochs=1, device="cpu", random_state=0)

    assert isinstance(
        classifier.fit(world.features, world.draw(2, random_state=0)).model_[-1], head
    )


def test_a_seed_repeats_the_fit(world: World) -> None:
    counts = world.draw(2, random_state=0)
    first, second = (
        SnapshotClassifier(epochs=2, device="cpu", random_state=3)
        .fit(world.features, counts)
        .predict_proba(world.features)
        for _ in range(2)
    )

    np.testing.assert_array_equal(first, second)


def test_sparse_counts_are_taken(world: World) -> None:
    counts = world.draw(2, random_state=0)
    dense, thin = (
        SnapshotClassifier(epochs=1, device="cpu", random_state=0).fit(world.features, labels)
        for labels in (counts, sparse.csr_array(counts))
    )

    np.testing.assert_array_equal(
        dense.predict_proba(world.features), thin.predict_proba(world.features)
    )


def test_fitting_leaves_torchs_random_numbers_alone(world: World) -> None:
    before = torch.get_rng_state()

    SnapshotClassifier(epochs=1, device="cpu", random_state=0).fit(
        world.features, world.draw(2, random_state=0)
    )

    assert torch.equal(torch.get_rng_state(), before)


def test_without_validation_training_runs_to_the_end(world: World) -> None:
    classifier = SnapshotClassifier(epochs=3, validation_fraction=0, device="cpu", random_state=0)

    history = classifier.fit(world.features, world.draw(2, random_state=0)).history_

    assert (len(history.losses), history.validation_losses) == (3, ())


def test_a_constant_feature_does_no_harm(world: World) -> None:
    features = np.column_stack([world.features, np.ones(len(world))])
    classifier = SnapshotClassifier(epochs=1, device="cpu", random_state=0)

    assert np.isfinite(
        classifier.fit(features, world.draw(2, random_state=0)).predict_proba(features)
    ).all()


def test_a_feature_far_from_zero_tells_as_much(world: World) -> None:
    counts = world.draw(2, random_state=0)
    features = np.round(world.features * 2**16) / 2**16  # which an offset leaves exact
    near, far = (
        SnapshotClassifier(epochs=2, device="cpu", random_state=0).fit(X, counts).predict_proba(X)
        for X in (features, features + 2.0**30)
    )

    np.testing.assert_allclose(far, near, atol=1e-4)
    assert np.ptp(far, axis=0).max() > 0.01


@pytest.mark.parametrize("constant", [0.1, 1e9])
def test_a_feature_that_was_constant_in_the_fit_tells_nothing(
    world: World, constant: float
) -> None:
    same = np.column_stack([world.features, np.full(len(world), constant)])
    other = np.column_stack([world.features, np.full(len(world), constant + 0.1)])
    classifier = SnapshotClassifier(epochs=1, device="cpu", random_state=0)
    classifier.fit(same, world.draw(2, random_state=0))

    np.testing.assert_array_equal(classifier.predict_proba(other), classifier.predict_proba(same))


@pytest.mark.parametrize("gap", [np.nan, np.inf])
def test_gaps_in_features_are_refused_with_their_place(
    fitted: SnapshotClassifier, world: World, gap: float
) -> None:
    features = world.features.copy()
    features[3, 1] = gap
    message = "`X` must be finite numbers, got (nan|inf) in row 3, column 1"

    with pytest.raises(ValueError, match=message):
        fitted.predict(features)
    with pytest.raises(ValueError, match=message):
        SnapshotClassifier(epochs=1).fit(features, world.draw(2, random_state=0))


def test_it_can_be_cloned() -> None:
    assert clone(SnapshotClassifier(k=3, hidden=(8,))).get_params()["hidden"] == (8,)


def test_both_heads_at_once_are_refused(world: World) -> None:
    with pytest.raises(ValueError, match="`k` must be left out when `n_components` is given"):
        SnapshotClassifier(k=2, n_components=3).fit(world.features, world.draw(2, random_state=0))


def test_items_with_too_few_labels_are_refused(world: World) -> None:
    with pytest.raises(ValueError, match="at least 3 labels in each row, got 2 in row 0"):
        SnapshotClassifier(k=3).fit(world.features, world.draw(2, random_state=0))


def test_predicting_before_fitting_is_refused() -> None:
    with pytest.raises(NotFittedError, match="not fitted yet"):
        SnapshotClassifier().predict([[0.0]])


def test_another_number_of_features_is_refused(fitted: SnapshotClassifier) -> None:
    with pytest.raises(ValueError, match="`X` must have 8 features, got 1"):
        fitted.predict([[0.0]])
