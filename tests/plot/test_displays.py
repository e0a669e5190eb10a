"""What all displays share: they draw on any axes and leave the rest of matplotlib alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from matplotlib import style
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray

import hocal
from hocal.plot import (
    CertificateDisplay,
    CoverageDisplay,
    EntropyDistributionDisplay,
    EvidenceDisplay,
    LabelCurveDisplay,
    MixtureDisplay,
    PredictionSetDisplay,
    ReliabilityDisplay,
    UncertaintyMapDisplay,
)
from hocal.plot.canvas import BLUE, GREEN, ORANGE, PURPLE, SKY, STYLES
from hocal.uncertainty.entropy import Brier, Entropy, Shannon

Make = Callable[[Any], Any]

DISPLAYS: dict[str, Make] = {
    "uncertainty map": lambda s: UncertaintyMapDisplay.from_estimator(
        s.calibrator, s.test.predictions, marked=[0]
    ),
    "reliability": lambda s: ReliabilityDisplay.from_estimator(
        s.calibrator, s.test.predictions, s.counts, n_resamples=10, random_state=0
    ),
    "entropies": lambda s: EntropyDistributionDisplay.from_estimator(
        s.calibrator, s.test.predictions, s.counts, shown=1, n_resamples=10, random_state=0
    ),
    "label curve": lambda _: LabelCurveDisplay.from_errors(
        {"a": {2: [0.2, 0.1], 5: [0.1, 0.1]}}, floor=0.05
    ),
    "triangle": lambda s: MixtureDisplay.from_estimator(s.calibrator, s.test.predictions),
    "line": lambda _: MixtureDisplay.from_predictions(hocal.Mixtures.from_vertices([[0.3, 0.7]])),
    "certificate": lambda s: CertificateDisplay.from_estimator(s.calibrator),
    "prediction set": lambda s: PredictionSetDisplay.from_estimator(
        s.calibrator, s.test.predictions, s.counts
    ),
    "coverage": lambda s: CoverageDisplay.from_estimator(
        s.calibrator, s.test.predictions, s.counts, n_resamples=10, random_state=0
    ),
    "evidence": lambda s: EvidenceDisplay.from_monitor(
        hocal.Monitor(s.calibrator).update(s.test.predictions, 5 - s.counts)
    ),
}


FROM_MIXTURES: dict[str, Make] = {
    "reliability": lambda mixtures: ReliabilityDisplay.from_predictions(mixtures, [[1, 1]]),
    "entropies": lambda mixtures: EntropyDistributionDisplay.from_predictions(mixtures, [[1, 1]]),
    "mixture": lambda mixtures: MixtureDisplay.from_predictions(mixtures),
    "prediction set": lambda mixtures: PredictionSetDisplay.from_predictions(mixtures),
    "coverage": lambda mixtures: CoverageDisplay.from_predictions(mixtures, [[1, 1]]),
}
NOTHING: dict[str, Make] = {
    "shown": lambda s: EntropyDistributionDisplay.from_estimator(
        s.calibrator, s.test.predictions, s.counts, shown=[]
    ),
    "items": lambda s: PredictionSetDisplay.from_estimator(
        s.calibrator, s.test.predictions, items=[]
    ),
    "levels": lambda s: CoverageDisplay.from_estimator(
        s.calibrator, s.test.predictions, s.counts, levels=[]
    ),
    "k": lambda s: LabelCurveDisplay.from_estimator(
        s.calibrator, s.test.predictions, s.counts, k=[]
    ),
}


@pytest.mark.parametrize("name", FROM_MIXTURES)
def test_probabilities_are_no_mixtures(name: str) -> None:
    with pytest.raises(
        ValueError, match=r"`mixtures` must be Mixtures, got ndarray. Build them with"
    ):
        FROM_MIXTURES[name](np.array([[0.5, 0.5]]))


@pytest.mark.parametrize("name", FROM_MIXTURES)
def test_mixtures_of_no_item_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="`mixtures` must hold at least one item, got none"):
        FROM_MIXTURES[name](hocal.Mixtures.from_points([[0.5, 0.5]])[:0])


@pytest.mark.parametrize("name", NOTHING)
def test_a_choice_of_nothing_is_refused(name: str, scene: Any) -> None:
    with pytest.raises(ValueError, match=f"`{name}` must hold at least one value, got none"):
        NOTHING[name](scene)


@pytest.fixture(scope="module", params=list(DISPLAYS))
def display(request: pytest.FixtureRequest, scene: Any) -> Any:
    """Each display in turn, computed once; drawing again replaces what was drawn before."""
    return DISPLAYS[request.param](scene)


def pixels(figure: Figure) -> NDArray[np.float64]:
    """Render and return the colours of all pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba(), dtype=np.float64)[..., :3] / 255


def test_a_display_draws_on_a_figure_of_its_own(display: Any) -> None:
    assert display.plot() is display
    assert display.ax_.figure is display.figure_
    assert len(np.unique(pixels(display.figure_).reshape(-1, 3), axis=0)) > 10


def test_a_display_draws_on_given_axes(display: Any) -> None:
    figure = Figure()
    ax = figure.subplots()

    display.plot(ax)

    assert display.ax_ is ax
    assert display.figure_ is figure
    assert ax.has_data()
    pixels(figure)


def test_a_display_draws_on_a_dark_background(display: Any) -> None:
    """Guides are white there: something bright is drawn besides the text."""
    with style.context("dark_background"):
        image = pixels(display.plot().figure_)

    assert image[0, 0].max() < 0.1
    assert (image.min(axis=-1) > 0.9).sum() > 100


@pytest.mark.parametrize(
    ("measure", "unit"),
    [(Shannon(), "nats"), (Shannon(2), "bits"), (Shannon(3), "base 3"), (Brier(), "brier")],
)
def test_axes_name_their_unit(measure: Entropy, unit: str) -> None:
    parts = hocal.decompose(hocal.Mixtures.from_points([[0.5, 0.5]]), measure)

    assert (
        UncertaintyMapDisplay.from_decomposition(parts).plot().ax_.get_xlabel()
        == f"aleatoric uncertainty ({unit})"
    )


def test_a_display_takes_a_title(display: Any) -> None:
    display.plot(title="a word")
    titles = [display.ax_.get_title(), display.figure_.get_suptitle()]

    assert "a word" in titles


def test_no_text_runs_out_of_the_figure(display: Any) -> None:
    figure = display.plot().figure_
    pixels(figure)
    width, height = figure.get_size_inches()
    box = figure.get_tightbbox()  # of everything visible, in inches

    assert box.x0 > 0
    assert box.y0 > 0
    assert box.x1 < width
    assert box.y1 < height


def test_the_legend_of_a_figure_of_its_own_hides_nothing(display: Any) -> None:
    figure = display.plot().figure_
    pixels(figure)
    legend = figure.legends[0].get_window_extent()

    assert all(legend.y1 <= ax.get_tightbbox().y0 for ax in figure.axes)


def test_a_drawn_display_shows_itself_in_a_notebook() -> None:
    display = MixtureDisplay.from_predictions(hocal.Mixtures.from_vertices([[0.3, 0.7]]))
    image = display.plot()._repr_png_()

    assert image is not None
    assert image[:4] == b"\x89PNG"


def test_a_display_on_given_axes_leaves_showing_to_their_owner() -> None:
    display = MixtureDisplay.from_predictions(hocal.Mixtures.from_vertices([[0.3, 0.7]]))

    assert display._repr_png_() is None
    assert display.plot(Figure().subplots())._repr_png_() is None


def test_displays_are_made_without_matplotlib_and_drawing_names_its_pip_command() -> None:
    code = (
        "import sys, hocal.plot; assert 'matplotlib' not in sys.modules\n"
        "sys.modules['matplotlib'] = None\n"
        "import hocal; from hocal.plot import MixtureDisplay\n"
        "display = MixtureDisplay.from_predictions(hocal.Mixtures.from_points([[0.5, 0.5]]))\n"
        "try: display.plot()\n"
        "except ImportError as error: print(error)"
    )

    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert 'pip install "hocal[app]"' in finished.stdout


def test_axes_without_a_figure_are_refused() -> None:
    ax = Figure().subplots()
    ax.remove()

    with pytest.raises(
        ValueError, match="`ax` must belong to a figure, got axes that were removed from theirs"
    ):
        MixtureDisplay.from_predictions(hocal.Mixtures.from_vertices([[0.3, 0.7]])).plot(ax)


# Colours as people with each deficiency see them, on linear RGB: Machado, Oliveira and Fernandes
# (2009), severity 1.
SIGHT = {
    "full": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour: str) -> NDArray[np.float64]:
    c = np.array(to_rgb(colour))
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(light: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return CIELAB coordinates, where a distance of about 2 is just visible."""
    ratio = TO_XYZ @ light / TO_XYZ.sum(axis=1)
    x, y, z = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", SIGHT)
def test_the_colours_of_series_are_told_apart_whatever_the_sight(sight: str) -> None:
    seen = [
        lab(np.clip(np.array(SIGHT[sight]) @ linear(c), 0, 1))
        for c in (BLUE, ORANGE, GREEN, PURPLE)
    ]

    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 15


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("blue", [BLUE, SKY])
def test_blue_and_orange_which_carry_meaning_are_far_apart_whatever_the_sight(
    blue: str, sight: str
) -> None:
    first, second = (lab(np.clip(np.array(SIGHT[sight]) @ linear(c), 0, 1)) for c in (blue, ORANGE))

    assert np.linalg.norm(first - second) > 60


@pytest.mark.parametrize("background", ["white", "black"])
@pytest.mark.parametrize("colour", [BLUE, ORANGE, GREEN, PURPLE])
def test_a_colour_stands_out_from_both_backgrounds(colour: str, background: str) -> None:
    """A contrast of 3 is what the accessibility guidelines ask of graphics."""
    light, dark = sorted((float(TO_XYZ[1] @ linear(c)) for c in (colour, background)), reverse=True)

    assert (light + 0.05) / (dark + 0.05) >= 3


def test_series_are_told_apart_without_colour() -> None:
    assert len({(look.marker, look.line) for look in STYLES}) == len(STYLES)
    assert len({look.marker for look in STYLES}) == len(STYLES)
