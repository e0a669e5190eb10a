"""The picture of risk against coverage."""

from __future__ import annotations

import numpy as np
import pytest

import hocal
from hocal.decisions import risk_coverage
from hocal.plot import RiskCoverageDisplay

SCORES = {"entropy": [0.1, 0.5, 0.3, 0.9], "guess": [0.4, 0.3, 0.2, 0.1]}
LOSSES = [0, 1, 0, 1]


def test_lines_are_the_curves_of_the_scores() -> None:
    display = RiskCoverageDisplay.from_scores(SCORES, LOSSES).plot(title="Owls")

    for name, line in display.lines_.items():
        np.testing.assert_array_equal(line.get_ydata(), risk_coverage(SCORES[name], LOSSES).risk)
    assert display.ax_.get_ylabel() == "mean loss of these items"
    assert display.ax_.get_title() == "Owls"


def test_the_legend_says_the_areas() -> None:
    display = RiskCoverageDisplay.from_scores(SCORES, LOSSES).plot()

    assert "entropy, area 0.208" in display.ax_.get_legend_handles_labels()[1]


def test_items_handed_on_are_named_by_the_axis() -> None:
    display = RiskCoverageDisplay.from_scores(SCORES, LOSSES, otherwise=[0, 0, 0, 0]).plot()

    assert display.ax_.get_ylabel() == "mean loss of all items"


def test_scores_without_names_are_refused() -> None:
    with pytest.raises(hocal.InputError, match="`scores` must be a mapping of one to 8 names"):
        RiskCoverageDisplay.from_scores([0.1, 0.2], [0, 1])  # type: ignore[arg-type]
    with pytest.raises(hocal.InputError, match="names to scores, got 0"):
        RiskCoverageDisplay.from_scores({}, [0, 1])
