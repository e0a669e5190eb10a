"""What is proved about each cell: intervals with estimates, and how widths fall with items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from hocal._base.plurals import counted
from hocal._base.typing import Array, Index, IntArray, Mask
from hocal._base.validation import check_choice, check_kind
from hocal.guarantees.certificates import Certificate
from hocal.plot.canvas import ORANGE, Display, axis_label, blue, ink
from hocal.plot.inputs import check_method
from hocal.uncertainty.entropy import get_entropy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CertificateDisplay"]

_EMPTY = "says nothing: the whole range"
MAX_NAMED = 30  # cells whose numbers fit under the axis


@dataclass(eq=False, repr=False)
class CertificateDisplay(Display):
    """Certified intervals of the cells, or their widths against the number of items.

    Parameters
    ----------
    cells : ndarray of shape (n_shown,)
        Numbers of the cells with calibration items, in order of the estimate.
    n_items : ndarray of shape (n_shown,)
        Their calibration items.
    estimate, lower, upper : ndarray of shape (n_shown,)
        Estimate and certified limits.
    vacuous : ndarray of bool of shape (n_shown,)
        Where the interval is the whole possible range and says nothing.
    inside : ndarray of bool of shape (n_shown,)
        Where the estimate lies inside its interval.
    maximum : float
        Largest possible value.
    quantity, entropy : str
        What is certified.
    confidence : float
        Probability with which an interval holds.
    simultaneous : bool
        Whether it holds for all cells at once.

    Attributes
    ----------
    artists_ : dict of str to matplotlib artist
        What was drawn, by its words in the legend; only after `plot`.

    Examples
    --------
    >>> import hocal
    >>> from hocal.datasets import make_mixture_world
    >>> from hocal.plot import CertificateDisplay
    >>> world = make_mixture_world(2000, 3, random_state=0)
    >>> counts = world.draw(3, random_state=1)
    >>> calibrator = hocal.SnapshotCalibrator().fit(world.predictions, counts)
    >>> display = CertificateDisplay.from_estimator(calibrator)
    >>> bool((display.lower <= display.upper).all())
    True
    >>> bool((display.estimate[:-1] <= display.estimate[1:]).all())
    True
    >>> display.plot(kind="width").ax_.get_ylabel()
    'width of the interval of aleatoric uncertainty (nats)'
    """

    cells: Index
    n_items: IntArray
    estimate: Array
    lower: Array
    upper: Array
    vacuous: Mask
    inside: Mask
    maximum: float
    quantity: str
    entropy: str
    confidence: float
    simultaneous: bool

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        confidence: float = 0.95,
        simultaneous: bool = False,
        quantity: str = "aleatoric",
        entropy: str = "shannon",
    ) -> Self:
        """Certify a fitted SnapshotCalibrator or HigherOrderCalibratedClassifier.

        Parameters
        ----------
        estimator : object
            A fitted one.
        confidence : float, default=0.95
            Probability with which an interval is to hold.
        simultaneous : bool, default=False
            Whether it is to hold for all cells at once.
        quantity : {"aleatoric", "epistemic", "predictive"}
            What to show.
        entropy : {"shannon", "brier"}
            Measure of uncertainty.
        """
        check_method(estimator, "certify")
        certificate = estimator.certify(confidence, simultaneous=simultaneous)
        return cls.from_certificate(certificate, quantity=quantity, entropy=entropy)

    @classmethod
    def from_certificate(
        cls, certificate: Certificate, *, quantity: str = "aleatoric", entropy: str = "shannon"
    ) -> Self:
        """Take a certificate that was made before; options as in `from_estimator`."""
        check_kind(certificate, "certificate", Certificate)
        lower, upper = certificate.interval(quantity, entropy)
        estimate = certificate.estimate(quantity, entropy)
        certified = np.flatnonzero(certificate.n_items)
        cells = certified[np.argsort(estimate[certified], kind="stable")]
        return cls(
            cells=cells,
            n_items=certificate.n_items[cells],
            estimate=estimate[cells],
            lower=lower[cells],
            upper=upper[cells],
            vacuous=certificate.vacuous(quantity, entropy)[cells],
            inside=certificate.inside(quantity, entropy)[cells],
            maximum=get_entropy(entropy).maximum(certificate.n_classes),
            quantity=quantity,
            entropy=entropy,
            confidence=certificate.confidence,
            simultaneous=certificate.simultaneous,
        )

    @property
    def width(self) -> Array:
        """Widths of the intervals."""
        return self.upper - self.lower

    def plot(
        self,
        ax: Axes | None = None,
        *,
        kind: Literal["interval", "width"] = "interval",
        title: str | None = None,
    ) -> Self:
        """Draw the certificate.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        kind : {"interval", "width"}
            The interval of each cell in order of the estimate, or its width against its number of
            items.
        title : str, optional
            Title of the axes.

        Returns
        -------
        CertificateDisplay
            Itself, with `ax_` and `figure_`.
        """
        check_choice(kind, "kind", ("interval", "width"))
        ax = self._start(ax, width=7)
        self.artists_: dict[str, Any] = {}
        if kind == "interval":
            self._draw_intervals(ax)
        else:
            self._draw_widths(ax)
        scope = "all cells at once" if self.simultaneous else "each cell on its own"
        self._finish(ax, title, f"{self.confidence:.4g} confidence for {scope}")
        return self

    def _draw_intervals(self, ax: Axes) -> None:
        colour = ink(ax)
        self._add_lines(ax, ~self.vacuous, "interval", color=blue(ax), lw=2)
        self._add_lines(ax, self.vacuous, _EMPTY, color=colour, alpha=0.35, lw=1, ls=":")
        place = np.arange(len(self.cells))
        self._add_points(ax, self.inside, "estimate", place, self.estimate, color=colour, s=16)
        outside = "estimate outside its interval"
        self._add_points(
            ax, ~self.inside, outside, place, self.estimate, color=ORANGE, marker="X", s=45
        )
        self._name_cells(ax)
        top = max(float(self.upper.max()), float(self.estimate.max()))
        ax.set(ylabel=self._label(""), xlim=(-1, len(place)), ylim=(0, 1.05 * top))

    def _name_cells(self, ax: Axes) -> None:
        """Put the numbers of the cells under the axis, or of many cells how many there are."""
        n_cells = len(self.cells)
        if n_cells <= MAX_NAMED:
            ax.set_xticks(np.arange(n_cells), [str(cell) for cell in self.cells])
            ax.set_xlabel("cell")
        else:
            ax.set_xticks([], [])
            ax.set_xlabel(f"{counted(n_cells, 'cell')} in order of the estimate")

    def _add_lines(self, ax: Axes, chosen: Mask, name: str, **look: Any) -> None:
        if chosen.any():
            place = np.flatnonzero(chosen)
            self.artists_[name] = ax.vlines(
                place, self.lower[chosen], self.upper[chosen], label=name, **look
            )

    def _add_points(
        self, ax: Axes, chosen: Mask, name: str, x: NDArray[Any], y: Array, **look: Any
    ) -> None:
        if chosen.any():
            self.artists_[name] = ax.scatter(
                x[chosen], y[chosen], label=name, zorder=3, lw=0, **look
            )

    def _draw_widths(self, ax: Axes) -> None:
        self._add_points(
            ax, ~self.vacuous, "a cell", self.n_items, self.width, color=blue(ax), s=32, alpha=0.75
        )
        self._add_points(
            ax, self.vacuous, _EMPTY, self.n_items, self.width, color=ORANGE, marker="X", s=40
        )
        ax.axhline(self.maximum, color=ink(ax), ls="--", lw=1, label="largest possible")
        ax.set(
            xscale="log",
            xlabel="calibration items of the cell",
            ylabel=self._label("width of the interval of "),
            ylim=(0, 1.05 * self.maximum),
        )

    def _label(self, before: str) -> str:
        return axis_label(f"{before}{self.quantity} uncertainty", get_entropy(self.entropy))
