"""Arguments of displays that nobody should pass: refused in words."""

from __future__ import annotations

import numpy as np
import pytest

import hocal
from hocal import plot
from refusals import Calls, assert_refused

MIXTURES = hocal.Mixtures.from_ensemble(np.full((4, 2, 2), 0.5))
COUNTS = np.ones((4, 2), dtype=int)
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
    "marked": (
        lambda: plot.UncertaintyMapDisplay.from_predictions(MIXTURES, marked=[[1, 2], [3]]),
        "`marked` must be",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_wrong_kinds_and_absurd_sizes_are_refused(case: str) -> None:
    assert_refused(*CASES[case])
