"""Place the marks of the page's drawings: coordinates only, computed from a summary."""

from __future__ import annotations

import math
from typing import NamedTuple

from hocal.report.label_schema import Forecast
from hocal.report.schema import CellRow, Gains, Limited, MapPoint, Parts, Step
from hocal.report.words import counted, fixed, percent

__all__ = [
    "Chart",
    "GainBar",
    "draw_disagreement",
    "draw_forecast",
    "draw_gains",
    "draw_labels_spread",
    "draw_map",
    "draw_spread",
]

# pixels of a drawing, before the page scales it
WIDTH = 560
HEIGHT = 400
# the plotting area inside: room on the left and below for ticks, above for the title of the axis
LEFT = 58
RIGHT = 540
TOP = 30
BOTTOM = 350
# radius of a dot: the largest leaves others in sight, the smallest can still be pointed at
LARGEST = 26.0
SMALLEST = 3.5
SMALLEST_TOP = 1e-6  # the end of an axis along which everything is 0
HEADROOM = 1.04  # a mark at the largest value stays clear of the edge


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


class GainBar(NamedTuple):
    """A bar from 0 to 100, and the range in which its end lies."""

    kind: str  #: "loss", "aleatoric" or "epistemic"
    start: float
    width: float
    range_start: float
    range_width: float  #: 0 where nothing was measured


class GainBars(NamedTuple):
    """What the model loses, what nobody can avoid, and what is left, under each other."""

    loss: GainBar
    irreducible: GainBar
    remaining: GainBar
    top: float  #: the value at the right end


def draw_gains(gains: Gains) -> GainBars:
    """Draw a loss and its parts: the first two from 0 on, what is left up to the loss."""
    loss, irreducible, remaining = gains["loss"], gains["irreducible"], gains["remaining"]
    whole = loss["estimate"] or 0.0
    ends = [_end(each) for each in (loss, irreducible)]
    top = max(*ends, SMALLEST_TOP) * HEADROOM
    return GainBars(
        loss=_gain_bar("loss", 0.0, whole, loss, top),
        irreducible=_gain_bar("aleatoric", 0.0, irreducible["estimate"] or 0.0, irreducible, top),
        remaining=_left_bar(whole, remaining, top),
        top=top,
    )


def _end(value: Limited) -> float:
    return max(value["estimate"] or 0.0, value["upper"] or 0.0)


def _left_bar(whole: float, remaining: Limited, top: float) -> GainBar:
    """Return the bar that ends where the loss does; its range is about where it starts."""
    start = max(whole - (remaining["estimate"] or 0.0), 0.0)
    lower, upper = remaining["upper"], remaining["lower"]
    if lower is None or upper is None:
        about: Limited = {"estimate": None, "lower": None, "upper": None}
    else:
        about = {"estimate": None, "lower": max(whole - lower, 0.0), "upper": max(whole - upper, 0)}
    return _gain_bar("epistemic", start, whole, about, top)


def _gain_bar(kind: str, start: float, end: float, limits: Limited, top: float) -> GainBar:
    lower, upper = limits["lower"], limits["upper"]
    if lower is None or upper is None:
        lower = upper = end
    places = [round(100 * value / top, 3) for value in (start, end - start, lower, upper - lower)]
    return GainBar(kind, *places)


def draw_map(points: list[MapPoint]) -> Chart:
    """Draw aleatoric against epistemic uncertainty, a dot for each cell."""
    x_step, x_top = _scale(max(point["aleatoric"] for point in points))
    y_step, y_top = _scale(max(point["epistemic"] for point in points))
    largest = max(point["n_items"] for point in points)
    dots = [
        Dot(
            x=_x(point["aleatoric"] / x_top),
            y=_y(point["epistemic"] / y_top),
            radius=_radius(point["n_items"], largest),
            kind=point["standing"] or "neutral",
            text=_about_point(point),
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


def _about_point(point: MapPoint) -> str:
    aleatoric = fixed(point["aleatoric"])
    epistemic = fixed(point["epistemic"])
    items = counted(point["n_items"], "item")
    return f"{point['name']}: {items}, aleatoric {aleatoric}, epistemic {epistemic} nats"


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
            x=_x(row["predicted_disagreement"] / top),
            y=_y(observed / top),
            radius=_radius(row["n_items"], largest),
            kind="neutral",
            text=_about_disagreement(row, observed),
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


def _about_disagreement(row: CellRow, observed: float) -> str:
    items = counted(row["n_items"], "item")
    predicted = percent(row["predicted_disagreement"])
    return (
        f"{row['name']}: {items}, two people disagree in {predicted} of pairs as predicted, "
        f"{percent(observed)} as seen"
    )


def draw_spread(parts: Parts) -> Chart:
    """Draw the share of items that have at least this much uncertainty of each kind."""
    step, top = _scale(max(parts["aleatoric"]["maximum"], parts["epistemic"]["maximum"]))
    lines = [
        Line(_staircase(parts["aleatoric_steps"], top), "aleatoric"),
        Line(_staircase(parts["epistemic_steps"], top), "epistemic"),
    ]
    return Chart(
        "uncertainty, nats",
        "items with at least this much",
        [Tick(_x(value / top), f"{value:g}") for value in _ticks(step, top)],
        [Tick(_y(share), percent(share)) for share in (0, 0.25, 0.5, 0.75, 1.0)],
        [],
        lines,
    )


def draw_labels_spread(steps: list[Step], unit: str) -> Chart:
    """Draw the share of items that have at least this much aleatoric uncertainty."""
    step, top = _scale(steps[-1][0])
    return Chart(
        f"aleatoric uncertainty, {unit}",
        "items with at least this much",
        [Tick(_x(value / top), f"{value:g}") for value in _ticks(step, top)],
        [Tick(_y(share), percent(share)) for share in (0, 0.25, 0.5, 0.75, 1.0)],
        [],
        [Line(_staircase(steps, top), "aleatoric")],
    )


def draw_forecast(forecast: Forecast) -> Chart:
    """Draw the expected error against labels bought, where they help most and evenly."""
    rows = forecast["rows"]
    x_step, x_top = _scale(max(row["per_item"] for row in rows))
    y_step, y_top = _scale(forecast["now"])
    start = (0.0, forecast["now"])
    chosen = [start, *((row["per_item"], row["chosen"]) for row in rows)]
    evenly = [start, *((row["per_item"], row["evenly"]) for row in rows)]
    lines = [
        Line(" ".join(f"{_x(x / x_top)},{_y(y / y_top)}" for x, y in points), kind)
        for points, kind in ((chosen, "aleatoric"), (evenly, "epistemic"))
    ]
    return Chart(
        "labels bought per item",
        "expected squared error",
        [Tick(_x(value / x_top), f"{value:g}") for value in _ticks(x_step, x_top)],
        [Tick(_y(value / y_top), f"{value:g}") for value in _ticks(y_step, y_top)],
        [],
        lines,
    )


def _staircase(steps: list[Step], top: float) -> str:
    """Return the line that falls at each value from the share of items with as much to the next."""
    corners = []
    left = 0.0
    for value, share in steps:
        corners += [(left, share), (value, share)]
        left = value
    corners.append((left, 0.0))
    return " ".join(f"{_x(value / top):.2f},{_y(share):.2f}" for value, share in corners)


def _scale(largest: float) -> tuple[float, float]:
    """Return a round step and the end of an axis that holds 0 and the largest value."""
    reach = max(largest, SMALLEST_TOP)
    power = 10 ** math.floor(math.log10(reach / 4))
    round_steps = [power * factor for factor in (1, 2, 2.5, 5, 10)]
    step = next(step for step in round_steps if reach / step <= 5)  # five ticks at most
    return step, step * math.ceil(reach * HEADROOM / step)


def _ticks(step: float, top: float) -> list[float]:
    return [float(f"{i * step:.6g}") for i in range(round(top / step) + 1)]


def _x(share: float) -> float:
    return round(LEFT + (RIGHT - LEFT) * share, 2)


def _y(share: float) -> float:
    return round(BOTTOM - (BOTTOM - TOP) * share, 2)


def _radius(n_items: int, largest: int) -> float:
    """Return a radius whose square, the area, is in proportion to the items."""
    return round(max(LARGEST * math.sqrt(n_items / largest), SMALLEST), 2)
