"""What all displays share: axes, colours that everyone can tell apart, and words for units."""

from __future__ import annotations

from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hocal._base.errors import InputError
from hocal._base.typing import Array
from hocal._base.validation import check_kind
from hocal.uncertainty.entropy import Entropy, Shannon

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "BLUE",
    "GREEN",
    "ORANGE",
    "PURPLE",
    "SKY",
    "STYLES",
    "Display",
    "Style",
    "axis_label",
    "blue",
    "ink",
    "marker_areas",
    "require_matplotlib",
    "weight_areas",
]

# Four colours of Okabe and Ito (2008): told apart by the colour-blind, and clear on white and on
# black.
BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
SKY = "#56B4E9"  # their brighter blue, for thin lines on dark axes
_BRIGHTNESS = [0.299, 0.587, 0.114]  # of red, green and blue as people perceive them (ITU-R BT.601)
_NARROWEST = 5.2  # inches, for the words of a legend


class Style(NamedTuple):
    """How a series looks; the marker and the line tell it apart in print without colours."""

    colour: str
    marker: str
    line: str


STYLES = (
    Style(BLUE, "o", "-"),
    Style(ORANGE, "s", "--"),
    Style(GREEN, "^", "-."),
    Style(PURPLE, "D", ":"),
    Style(BLUE, "v", ":"),
    Style(ORANGE, "P", "-"),
    Style(GREEN, "X", "--"),
    Style(PURPLE, "*", "-."),
)


class Display:
    """Base of the displays: they hold data, and draw only when `plot` is called.

    Without an `ax`, `plot` makes a figure of its own that pyplot knows nothing about: nothing
    global changes and nothing has to be closed. Save it with ``display.figure_.savefig(path)``; in
    a notebook it shows by itself.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where `plot` drew; only after `plot`.
    figure_ : matplotlib Figure
        The figure of `ax_`; only after `plot`.
    """

    ax_: Axes
    figure_: Figure
    _own = False  # whether the figure was made here

    def _start(self, ax: Axes | None, *, width: float = 6.0, height: float = 5.0) -> Axes:
        """Return the axes to draw on and remember them; a new figure has these sizes, in inches."""
        return self._start_row(ax, 1, width=width, height=height)[0]

    def _start_row(self, axes: Any, n_axes: int, *, width: float, height: float) -> list[Axes]:
        """Return several axes side by side; `width` is that of each."""
        require_matplotlib()
        from matplotlib.figure import Figure

        if axes is None:
            figure = Figure(figsize=(max(width * n_axes, _NARROWEST), height), layout="constrained")
            row: list[Axes] = list(figure.subplots(1, n_axes, squeeze=False)[0])
        else:
            several = isinstance(axes, (list, tuple, np.ndarray))
            row = list(np.asarray(axes, dtype=object).reshape(-1)) if several else [axes]
            if len(row) != n_axes:
                rule = f"must hold {n_axes} axes, one for each panel"
                raise InputError("ax", rule, value=len(row))
        self._own = axes is None
        self.ax_ = row[0]
        self.figure_ = _figure_of(row[0])
        return row

    def _finish(self, ax: Axes, title: str | None, note: str | None = None) -> None:
        """Add the title, where one is asked for, and the legend with a note."""
        if title is not None:
            ax.set_title(title)
        self._legend(ax, note)

    def _finish_row(self, axes: list[Axes], title: str | None) -> None:
        """Add the title of several axes side by side, where one is asked for, and one legend."""
        self._legend(axes[-1])
        if title is not None:
            self.figure_.suptitle(title)

    def _legend(self, ax: Axes, note: str | None = None, *, loc: Any = "best") -> None:
        """Put the legend under a figure of its own, where it hides nothing, else into the axes."""
        look: dict[str, Any] = {
            "title": note,
            "fontsize": "small",
            "title_fontsize": "small",
            "alignment": "left",
        }
        if self._own:
            self.figure_.legend(
                *ax.get_legend_handles_labels(),
                loc="outside lower center",
                ncols=2,
                borderaxespad=0.8,
                **look,
            )
        else:
            ax.legend(loc=loc, framealpha=0.9, **look)

    def _repr_png_(self) -> bytes | None:
        """Show a figure of its own in notebooks; whoever passed axes shows them by other means."""
        if not self._own:
            return None
        buffer = BytesIO()
        self.figure_.savefig(buffer, format="png")
        return buffer.getvalue()


def require_matplotlib() -> None:
    """Name the pip command if matplotlib is missing."""
    if find_spec("matplotlib") is None:
        raise ImportError('`plot` needs matplotlib. Install it with: pip install "hocal[app]"')


def _figure_of(ax: Axes) -> Figure:
    from matplotlib.axes import Axes

    check_kind(ax, "ax", Axes)
    figure = ax.get_figure(root=True)
    if figure is None:
        rule = "must belong to a figure"
        raise InputError("ax", rule, value="axes that were removed from theirs")
    return figure


def ink(ax: Axes) -> str:
    """Return black or white, whichever stands out from the background of the axes."""
    from matplotlib.colors import to_rgba

    colour = np.ones(3)
    for layer in (_figure_of(ax).get_facecolor(), ax.get_facecolor()):
        *shade, opacity = to_rgba(layer)
        colour = opacity * np.array(shade) + (1 - opacity) * colour
    brightness = colour @ _BRIGHTNESS
    return "black" if brightness > 0.5 else "white"


def blue(ax: Axes) -> str:
    """Return the blue that stands out from the background of the axes."""
    return BLUE if ink(ax) == "black" else SKY


def axis_label(quantity: str, entropy: Entropy) -> str:
    """Return a quantity with its unit."""
    if not isinstance(entropy, Shannon):
        return f"{quantity} ({entropy.name})"
    if entropy.base is None:
        return f"{quantity} (nats)"
    unit = "bits" if entropy.base == 2 else f"base {entropy.base:g}"
    return f"{quantity} ({unit})"


def marker_areas(
    n_items: NDArray[Any], largest: float, *, area: float = 300.0, least: float = 9.0
) -> Array:
    """Return marker areas in points squared, proportional to items; tiny ones stay visible."""
    return np.maximum(area * np.asarray(n_items, dtype=np.float64) / largest, least)


def weight_areas(weights: Array, area: float) -> Array:
    """Return marker areas in points squared, proportional to weights.

    Many light points get more ink than a single one: `area` is divided by the root of their
    effective number, 1 / sum of squares.
    """
    return np.asarray(area * weights / np.sqrt((weights**2).sum()))
