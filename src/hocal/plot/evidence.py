"""Evidence of a monitor over time, and the alarm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hocal._base.errors import InputError
from hocal._base.typing import IntArray
from hocal.decisions.monitoring import EvidencePath, Monitor
from hocal.plot.canvas import STYLES, Display, ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

__all__ = ["EvidenceDisplay"]

NAMES = {
    "pooled": "pooled",
    "disagreement": "people's disagreement",
    "mean": "label distribution",
}
WIDTHS = {"pooled": 2.2, "disagreement": 1.2, "mean": 1.2}


@dataclass(eq=False, repr=False)
class EvidenceDisplay(Display):
    """Evidence for a change after each labelled item: pooled, for disagreement and for the mean.

    Parameters
    ----------
    path : EvidencePath
        Evidence after each item.
    threshold : float
        Evidence at which an alarm is raised.
    alarmed_at : int or None
        Item with which it was.
    since : int or None
        Item with which the change most likely began.

    Attributes
    ----------
    lines_ : dict of str to matplotlib Line2D
        The three curves; only after `plot`.

    Examples
    --------
    >>> import hocal
    >>> from hocal.datasets import make_mixture_world
    >>> from hocal.plot import EvidenceDisplay
    >>> world = make_mixture_world(400, 3, random_state=0)
    >>> counts = world.draw(3, random_state=1)
    >>> calibrator = hocal.SnapshotCalibrator(method="cells")
    >>> calibrator = calibrator.fit(world.predictions[:300], counts[:300])
    >>> monitor = hocal.Monitor(calibrator).update(world.predictions[300:], counts[300:])
    >>> EvidenceDisplay.from_monitor(monitor).plot().ax_.get_xlabel()
    'labelled items seen'
    """

    path: EvidencePath
    threshold: float
    alarmed_at: int | None
    since: int | None

    @classmethod
    def from_monitor(cls, monitor: Monitor) -> Self:
        """Take the evidence of a monitor so far.

        Parameters
        ----------
        monitor : Monitor
            It must have seen at least one item.
        """
        if not isinstance(monitor, Monitor):
            raise InputError("monitor", "must be a Monitor", value=type(monitor).__name__)
        if not monitor.n_items:
            raise InputError("monitor", "must have seen at least one item", value="none")
        threshold = 1 / (1 - monitor.confidence)
        return cls(monitor.history, threshold, monitor.alarmed_at, monitor.since)

    def plot(self, ax: Axes | None = None, *, title: str | None = None) -> Self:
        """Draw the evidence on a logarithmic axis.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
            Title of the axes.

        Returns
        -------
        EvidenceDisplay
            Itself, with `ax_` and `figure_`.
        """
        ax = self._start(ax, height=4.2)
        items = np.arange(1, len(self.path.pooled) + 1, dtype=np.int64)
        self.lines_: dict[str, Line2D] = {
            name: self._draw(ax, items, name, place) for place, name in enumerate(NAMES)
        }
        ax.axhline(self.threshold, color=ink(ax), lw=1, ls=":", label=f"alarm: {self.threshold:g}")
        if self.alarmed_at is not None:
            words = f"alarm at item {self.alarmed_at:,}, since item {self.since:,} most likely"
            ax.axvline(self.alarmed_at, color=ink(ax), lw=1, ls="--", label=words)
        ax.set(xlabel="labelled items seen", ylabel="evidence for a change", yscale="log")
        self._finish(ax, title)
        return self

    def _draw(self, ax: Axes, items: IntArray, name: str, place: int) -> Line2D:
        """Draw one curve."""
        style = STYLES[place]
        values = getattr(self.path, name)
        look: dict[str, Any] = {"color": style.colour, "ls": style.line, "lw": WIDTHS[name]}
        return ax.plot(items, values, label=NAMES[name], **look)[0]
