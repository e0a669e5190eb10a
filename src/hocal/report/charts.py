"""Place the marks of the page's drawings: coordinates only, computed from a summary."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import NamedTuple

from hocal.report.schema import CellRow, MapPoint, Parts
from hocal.report.words import fixed, percent, some

__all__ = ["Chart", "draw_disagreement", "draw_map", "draw_spread"]

WIDTH = 560
HEIGHT = 400
# of the plotting area
LEFT = 58
RIGHT = 540
TOP = 30
BOTTOM = 350
# radius of a dot
LARGEST = 26.0
SMALLEST = 3.5


class Tick(NamedTuple):
    """A mark on an axis."""

    place: float
    text: str


class Dot(NamedTuple):
    """A circle, and the sentence that it shows when pointed at."""

    x: float
    y: float
    radius: float
    kind: str
    text: str


class Line(NamedTuple):
    """A line through points, as SVG writes them."""

    points: str
    kind: str


class Chart(NamedTuple):
    """Everything of a drawing."""

    x_title: str
    y_title: str
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    dots: list[Dot]
    lines: list[Line]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = RIGHT
    top: int = TOP
    bottom: int = BOTTOM


def draw_map(points: list[MapPoint]) -> Chart:
    """Draw aleatoric against epistemic uncertainty, a dot for each cell."""
    x_step, x_top = _scale(max(point["aleatoric"] for point in points))
    y_step, y_top = _scale(max(point["epistemic"] for point in points))
    largest = max(point["n_items"] for point in points)
    dots = [
        Dot(
            _x(point["aleatoric"] / x_top),
            _y(point["epistemic"] / y_top),
            _radius(point["n_items"], largest),
            point["standing"],
            f"{point['name']}: {some(point['n_items'], 'item')}, aleatoric {fixed(point['aleatoric'])}, "
            f"epistemic {fixed(point['epistemic'])} nats",
        )
        for point in points
    ]
    return Chart(
        "aleatoric uncertainty, nats",
        "epistemic uncertainty, nats",
        [Tick(_x(value / x_top), f"{value:g}") for value in _ticks(x_step, x_top)],
        [Tick(_y(value / y_top), f"{value:g}") for value in _ticks(y_step, y_top)],
        dots,
        [],
    )


def draw_disagreement(cells: list[CellRow]) -> Chart | None:
    """Draw predicted against observed disagreement of the cells; None where none was observed."""
    seen = [
        (row, row["observed_disagreement"])
        for row in cells
        if row["observed_disagreement"] is not None
    ]
    if not seen:
        return None
    step, top = _scale(max(max(row["predicted_disagreement"], observed) for row, observed in seen))
    largest = max(row["n_items"] for row, _ in seen)
    dots = [
        Dot(
            _x(row["predicted_disagreement"] / top),
            _y(observed / top),
            _radius(row["n_items"], largest),
            "neutral",
            f"{row['name']}: {some(row['n_items'], 'item')}, two people disagree in "
            f"{percent(row['predicted_disagreement'])} of pairs as predicted, {percent(observed)} as seen",
        )
        for row, observed in seen
    ]
    dots.sort(key=lambda dot: -dot.radius)
    ticks = _ticks(step, top)
    return Chart(
        "disagreement predicted",
        "disagreement seen",
        [Tick(_x(value / top), percent(value)) for value in ticks],
        [Tick(_y(value / top), percent(value)) for value in ticks],
        dots,
        [Line(f"{LEFT},{BOTTOM} {RIGHT},{TOP}", "diagonal")],
    )


def draw_spread(parts: Parts) -> Chart:
    """Draw the share of items that have more than so much uncertainty of each kind."""
    edges = parts["edges"]
    step, top = _scale(edges[-1])
    lines = [
        Line(_steps(edges, parts["aleatoric_histogram"], top), "aleatoric"),
        Line(_steps(edges, parts["epistemic_histogram"], top), "epistemic"),
    ]
    return Chart(
        "uncertainty, nats",
        "items with at least so much",
        [Tick(_x(value / top), f"{value:g}") for value in _ticks(step, top)],
        [Tick(_y(share), percent(share)) for share in (0, 0.25, 0.5, 0.75, 1.0)],
        [],
        lines,
    )


def _steps(edges: list[float], histogram: list[int], top: float) -> str:
    """Return the falling staircase of the share of items at or above each edge."""
    above = list(accumulate(reversed(histogram)))[::-1]
    corners = []
    for left, right, n_above in zip(edges[:-1], edges[1:], above, strict=True):
        corners += [(left, n_above), (right, n_above)]
    corners.append((edges[-1], 0))
    return " ".join(f"{_x(value / top):.1f},{_y(n / above[0]):.1f}" for value, n in corners)


def _scale(largest: float) -> tuple[float, float]:
    """Return a round step and the end of an axis that holds 0 and the largest value."""
    largest = max(largest, 1e-6)
    power = 10 ** math.floor(math.log10(largest / 4))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if largest / (power * factor) <= 5)
    return step, step * math.ceil(largest * 1.04 / step)


def _ticks(step: float, top: float) -> list[float]:
    return [float(f"{i * step:.6g}") for i in range(round(top / step) + 1)]


def _x(share: float) -> float:
    return round(LEFT + (RIGHT - LEFT) * share, 2)


def _y(share: float) -> float:
    return round(BOTTOM - (BOTTOM - TOP) * share, 2)


def _radius(n_items: int, largest: int) -> float:
    """Return a radius whose square, the area, is in proportion to the items."""
    return round(max(LARGEST * math.sqrt(n_items / largest), SMALLEST), 2)
