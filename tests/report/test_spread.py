"""The drawing of how many items have how much, held against numpy at many thresholds."""

import numpy as np
import pytest
from numpy.typing import NDArray

from hocal.report import Summary
from hocal.report.charts import Chart, draw_labels_spread, draw_spread
from hocal.report.parts import MAX_STEPS, steps
from report.example import Example

PIXEL = 1 / 320  # of all items: the drawing is 320 pixels high
ROUNDING = 0.01  # pixels: points are written with two digits


def drawn_shares(chart: Chart, line: int, thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Read the shares of items off a line of a drawing, by its ticks."""
    points = np.array([point.split(",") for point in chart.lines[line].points.split()], dtype=float)
    ticks = [(tick.place, float(tick.text)) for tick in (chart.x_ticks[0], chart.x_ticks[-1])]
    (start, low), (stop, high) = ticks
    places = start + (thresholds - low) / (high - low) * (stop - start)
    # The line falls at a value from the share with at least as much to the share with more.
    corner = np.searchsorted(points[:, 0], places - ROUNDING)
    heights = points[np.minimum(corner, len(points) - 1), 1]
    return np.asarray((chart.bottom - heights) / (chart.bottom - chart.top))


def true_shares(values: NDArray[np.float64], thresholds: NDArray[np.float64]) -> list[float]:
    return [float((values >= threshold).mean()) for threshold in thresholds]


@pytest.mark.parametrize("kind", ["aleatoric", "epistemic"])
def test_the_line_is_exact_at_every_value_and_between(
    example: Example, summary: Summary, kind: str
) -> None:
    values = example.calibrator.decompose(example.probabilities).as_dict()[kind]
    between = np.random.default_rng(0).uniform(0, values.max(), 2000)
    chart = draw_spread(summary["parts"])
    line = ["aleatoric", "epistemic"].index(kind)
    # two values closer than a hundredth of a pixel are one in the drawing
    top = float(chart.x_ticks[-1].text)
    near = np.abs(values[:, None] - between).min(axis=0) < 2 * ROUNDING * top / 482
    thresholds = between[~near]

    found = drawn_shares(chart, line, thresholds)

    assert len(thresholds) > 1000
    assert found == pytest.approx(true_shares(values, thresholds), abs=ROUNDING * PIXEL + 1e-9)


def test_at_the_maximum_the_line_shows_the_items_that_have_it_and_beyond_it_none() -> None:
    values = np.array([0.1, 0.217, 0.217, 0.217])
    chart = draw_labels_spread(steps(values), "nats")

    shares = drawn_shares(chart, 0, np.array([0.217, 0.22]))

    assert shares == pytest.approx([0.75, 0.0], abs=1e-4)


def test_a_staircase_of_many_values_is_nowhere_off_by_half_a_pixel() -> None:
    generator = np.random.default_rng(1)
    spread_out = generator.beta(0.4, 3, 40_000)
    values = np.concatenate([spread_out, np.full(20_000, 0.123456789), np.zeros(5_000)])
    kept = steps(values)
    thresholds = np.concatenate([generator.uniform(0, 1, 500), [value for value, _ in kept]])

    places = np.searchsorted([value for value, _ in kept], thresholds)
    shares = np.array([share for _, share in kept] + [0.0])[places]

    assert len(kept) <= MAX_STEPS + 1
    assert np.abs(shares - true_shares(values, thresholds)).max() <= 1 / MAX_STEPS < PIXEL / 2


def test_of_many_values_those_that_stay_are_exact_and_the_ends_stay() -> None:
    values = np.random.default_rng(2).gamma(0.5, size=30_000)
    kept = steps(values)

    stored = np.array([value for value, _ in kept])
    assert [share for _, share in kept] == pytest.approx(true_shares(values, stored), rel=1e-5)
    assert (stored[0], stored[-1]) == (values.min(), values.max())
