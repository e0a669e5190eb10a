"""Arguments of displays that nobody should pass: refused in words."""

from __future__ import annotations

import numpy as np
import pytest

import hocal
from hocal import plot
from refusals import Calls, assert_refused


class Unreadable:
    """A name that must not be read."""

    def __str__(self) -> str:
        raise AssertionError("read, although there are too many")


CALIBRATOR = hocal.SnapshotCalibrator(method="empirical")
MIXTURES = hocal.Mixtures.from_ensemble(np.full((4, 2, 2), 0.5))
COUNTS = np.ones((4, 2), dtype=int)
P = np.full((4, 2), 0.5)
CASES: Calls = {
    "axes": (
        lambda: plot.MixtureDisplay.from_predictions(MIXTURES).plot(ax=3),  # type: ignore[arg-type]
        "`ax` must be Axes, got int",
    ),
    "estimator": (
        lambda: plot.MixtureDisplay.from_estimator([1.0], COUNTS),
        "`estimator` must have a method predict_mixture, got list",
    ),
    "certificate": (
        lambda: plot.CertificateDisplay.from_certificate("0.9"),  # type: ignore[arg-type]
        "`certificate` must be Certificate, got str",
    ),
    "levels": (
        lambda: plot.CoverageDisplay.from_predictions(MIXTURES, COUNTS, levels=np.ones(10**6)),
        "`levels` must be an integer from 1 to 1000",
    ),
    "resamples": (
        lambda: plot.CoverageDisplay.from_predictions(MIXTURES, COUNTS, n_resamples=10**9),
        "`n_resamples` must be at most 10,000",
    ),
    "names": (
        lambda: plot.PredictionSetDisplay.from_predictions(MIXTURES, classes=[Unreadable()] * 3),
        "`classes` must be a list of 2 names, got 3",
    ),
    "rows for names": (
        lambda: plot.MixtureDisplay.from_predictions(MIXTURES, classes=np.ones((2, 2))),
        "`classes` must be a list of 2 names, got ndarray",
    ),
    "bins": (
        lambda: plot.EntropyDistributionDisplay.from_predictions(
            MIXTURES, COUNTS, min_items=1, n_bins=10**9
        ),
        "`n_bins` must be an integer from 1 to 1000, got 1000000000",
    ),
    "bins of a map": (
        lambda: plot.UncertaintyMapDisplay.from_predictions(MIXTURES).density(10**9),
        "`n_bins` must be an integer from 1 to 1000, got 1000000000",
    ),
    "sizes": (
        lambda: plot.LabelCurveDisplay.from_estimator(CALIBRATOR, P, COUNTS, k=[[1, 2], [3]]),
        "`k` must be an array, got rows of different lengths or shapes",
    ),
    "splits": (
        lambda: plot.LabelCurveDisplay.from_estimator(CALIBRATOR, P, COUNTS, n_splits=10**6),
        "`n_splits` must be at most 1,000, got 1,000,000",
    ),
    "errors of no size": (
        lambda: plot.LabelCurveDisplay.from_errors({"hocal": [0.1]}),  # type: ignore[dict-item]
        "`errors['hocal']` must be a dict of numbers of labels, got list",
    ),
    "marked": (
        lambda: plot.UncertaintyMapDisplay.from_predictions(MIXTURES, marked=[[1, 2], [3]]),
        "`marked` must be",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_wrong_kinds_and_absurd_sizes_are_refused(case: str) -> None:
    assert_refused(*CASES[case])
