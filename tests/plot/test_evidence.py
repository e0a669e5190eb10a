"""The picture of a monitor's evidence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hocal
from hocal.plot import EvidenceDisplay


@pytest.fixture(scope="module")
def monitor(scene: Any) -> hocal.Monitor:
    """People who always disagree about the second half of the items."""
    counts = scene.counts.copy()
    counts[250:] = [2, 2, 1]
    return hocal.Monitor(scene.calibrator).update(scene.test.predictions, counts)


def test_lines_are_the_history_of_the_monitor(monitor: hocal.Monitor) -> None:
    display = EvidenceDisplay.from_monitor(monitor).plot()

    for name, line in display.lines_.items():
        np.testing.assert_array_equal(line.get_ydata(), getattr(monitor.history, name))
    assert display.ax_.get_yscale() == "log"


def test_the_alarm_is_drawn_where_it_was_raised(monitor: hocal.Monitor) -> None:
    display = EvidenceDisplay.from_monitor(monitor).plot(title="Week 7")
    labels = display.ax_.get_legend_handles_labels()[1]

    assert monitor.alarm
    assert (
        f"alarm at item {monitor.alarmed_at:,}, since item {monitor.since:,} most likely" in labels
    )
    assert "alarm: 20" in labels
    assert display.ax_.get_title() == "Week 7"


def test_without_an_alarm_none_is_drawn(scene: Any) -> None:
    quiet = hocal.Monitor(scene.calibrator).update(scene.test.predictions[:50], scene.counts[:50])
    labels = EvidenceDisplay.from_monitor(quiet).plot().ax_.get_legend_handles_labels()[1]

    assert not any("since" in label for label in labels)


def test_a_monitor_that_has_seen_nothing_has_no_picture(scene: Any) -> None:
    with pytest.raises(hocal.InputError, match="`monitor` must have seen at least one item"):
        EvidenceDisplay.from_monitor(hocal.Monitor(scene.calibrator))
    with pytest.raises(hocal.InputError, match="`monitor` must be a Monitor, got str"):
        EvidenceDisplay.from_monitor("monitor")  # type: ignore[arg-type]
