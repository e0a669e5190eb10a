"""Displays of calibrators that know groups or features of items."""

from typing import Any

import numpy as np
import pytest

import hocal
from hocal.datasets import make_mixture_world
from hocal.plot import (
    CoverageDisplay,
    MixtureDisplay,
    PredictionSetDisplay,
    ReliabilityDisplay,
)

WORLD = make_mixture_world(400, 3, random_state=0)
COUNTS = WORLD.draw(4, random_state=1)
GROUPS = np.array(["left", "right"])[np.arange(400) % 2]
FEATURES = np.random.default_rng(2).normal(size=(400, 1))
GIVEN: dict[str, dict[str, Any]] = {"groups": {"by": GROUPS}, "features": {"features": FEATURES}}
COMPARING = [ReliabilityDisplay, CoverageDisplay]


def fit(method: Any = "items", **given: Any) -> hocal.SnapshotCalibrator:
    return hocal.SnapshotCalibrator(method=method).fit(WORLD.predictions, COUNTS, **given)


@pytest.mark.parametrize("method", ["items", "cells"])
@pytest.mark.parametrize("display", COMPARING)
def test_groups_as_cells_are_those_of_by(display: Any, method: str) -> None:
    calibrator = fit(method, by=GROUPS)
    options = {"n_resamples": 20, "random_state": 0}

    shown = [
        display.from_estimator(calibrator, WORLD.predictions, COUNTS, **options, **given)
        for given in ({"cells": GROUPS}, {"by": GROUPS.tolist()})
    ]

    assert np.array_equal(shown[0].observed, shown[1].observed, equal_nan=True)
    assert np.array_equal(shown[0].band, shown[1].band, equal_nan=True)


@pytest.mark.parametrize("display", COMPARING)
def test_features_are_given_to_the_calibrator(display: Any) -> None:
    calibrator = fit(features=FEATURES)

    made = display.from_estimator(
        calibrator, WORLD.predictions, COUNTS, features=FEATURES, n_resamples=20
    )

    assert np.isfinite(made.observed).any()


def test_the_sets_of_a_sample_have_the_features_of_its_items(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hocal.plot.coverage.MAX_COMPARED", 50)
    calibrator = fit(features=FEATURES)
    options = {"n_resamples": 20, "random_state": 0}

    made = CoverageDisplay.from_estimator(
        calibrator, WORLD.predictions, COUNTS, features=FEATURES, **options
    )

    assert made.n_items == 50


@pytest.mark.parametrize("kind", sorted(GIVEN))
@pytest.mark.parametrize("display", [MixtureDisplay, PredictionSetDisplay])
def test_the_picture_of_an_item_knows_what_goes_with_it(display: Any, kind: str) -> None:
    given = GIVEN[kind]
    calibrator = fit(**given)
    mixtures = calibrator.predict_mixture(WORLD.predictions, **given)

    made = display.from_estimator(calibrator, WORLD.predictions, **given)

    expected = display.from_predictions(mixtures)
    assert np.array_equal(made.weights, expected.weights)


def test_features_of_too_few_items_are_refused() -> None:
    calibrator = fit(features=FEATURES)

    with pytest.raises(hocal.InputError, match="`probabilities` and `features` must describe"):
        CoverageDisplay.from_estimator(
            calibrator, WORLD.predictions, COUNTS, features=FEATURES[:10]
        )
