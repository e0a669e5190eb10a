"""The reliability diagram of cells: predicted uncertainty against what test labels show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.errors import InputError
from hocal._base.plurals import counted
from hocal._base.typing import Array, IntArray, Mask
from hocal._base.validation import (
    check_cells,
    check_counts,
    check_fraction,
    check_integer,
    check_n_resamples,
    check_random_state,
    check_same_length,
)
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.cells.partitions import CellLayout
from hocal.plot.canvas import ORANGE, Display, axis_label, blue, ink, marker_areas
from hocal.plot.inputs import check_some_mixtures
from hocal.plot.observed import Comparison, Quantity, chance_band, check_compared
from hocal.plot.predicted import AskedItems, PredictedItems
from hocal.uncertainty.entropy import get_entropy
from hocal.uncertainty.mixtures import Mixtures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection, PathCollection

__all__ = ["ReliabilityDisplay"]

_NAMES = {
    "aleatoric": "aleatoric uncertainty",
    "epistemic": "epistemic uncertainty",
    "mean": "share of labels for the class ranked first",
}


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(Display):
    """Predicted against observed uncertainty of each cell, on labels that were not used to fit.

    A cell is a point, its area the number of test items. The vertical line is an interval that
    holds for the true value with the given confidence, whatever the mixture of the cell is; it
    comes from the test labels alone. The pale bar is the noise band: where the point would lie by
    chance if the prediction were right, found by drawing labels from the predicted mixtures and
    estimating again. A point outside its band, or an interval off the diagonal, tells against the
    prediction.

    Shannon entropy cannot be estimated without bias from few labels. The point is halfway between a
    lower and an upper estimate (see docs/mathematics.md); the noise band goes through the same
    estimate, so it may lie beside the diagonal when items have two or three labels. Trust the band,
    not the diagonal, then.

    Parameters
    ----------
    predicted, observed : ndarray of shape (n_cells,)
        The two values of each cell; NaN for a cell without test items.
    lower, upper : ndarray of shape (n_cells,)
        Limits of the true value.
    band : ndarray of shape (2, n_cells)
        Limits of the noise band.
    n_items : ndarray of shape (n_cells,)
        Test items of each cell.
    quantity : {"aleatoric", "epistemic", "mean"}
        What is compared; "mean" is the share of labels for the class that the model ranks first.
    entropy : {"shannon", "brier"}
        Measure of uncertainty.
    confidence : float
        Of the intervals and of the band, for each cell on its own.
    k : int
        Fewest labels of a test item.

    Attributes
    ----------
    points_, outside_ : matplotlib PathCollection
        The cells inside and outside their noise band; only after `plot`.
    intervals_, band_ : matplotlib LineCollection
        The intervals and the noise band; only after `plot`.

    Examples
    --------
    >>> import hocal
    >>> from hocal.datasets import make_mixture_world
    >>> from hocal.plot import ReliabilityDisplay
    >>> world, test = (make_mixture_world(1000, 3, random_state=0) for _ in range(2))
    >>> counts = world.draw(5, random_state=1)
    >>> calibrator = hocal.SnapshotCalibrator().fit(world.predictions, counts)
    >>> display = ReliabilityDisplay.from_estimator(
    ...     calibrator, test.predictions, test.draw(5, random_state=2), random_state=0
    ... )
    >>> bool((display.lower < display.observed)[display.n_items > 0].all())
    True
    >>> display.plot().ax_.get_xlabel()
    'predicted aleatoric uncertainty (nats)'
    """

    predicted: Array
    observed: Array
    lower: Array
    upper: Array
    band: Array
    n_items: IntArray
    quantity: Quantity
    entropy: str
    confidence: float
    k: int

    @classmethod
    def from_estimator(
        cls,
        calibrator: SnapshotCalibrator,
        probabilities: ArrayLike,
        counts: Any,
        *,
        features: ArrayLike | None = None,
        cells: ArrayLike | None = None,
        by: ArrayLike | None = None,
        quantity: Quantity = "aleatoric",
        entropy: str = "shannon",
        confidence: float = 0.95,
        n_resamples: int = 200,
        random_state: Any = None,
    ) -> Self:
        """Compare a fitted calibrator with test labels, cell by cell of its partition.

        What is predicted for a cell is the average over its test items, each with a mixture of its
        own for ``method="items"``.

        Parameters
        ----------
        calibrator : SnapshotCalibrator
            A fitted one.
        probabilities : array of shape (n_items, n_classes)
            Predictions for the test items.
        counts : array or sparse matrix of shape (n_items, n_classes)
            Their labels, not used to fit; aleatoric and epistemic need items with two labels or
            more.
        features, cells, by : array, optional
            What goes with the items, as in `SnapshotCalibrator.decompose`.
        quantity : {"aleatoric", "epistemic", "mean"}
            What to compare.
        entropy : {"shannon", "brier"}
            Measure of uncertainty.
        confidence : float, default=0.95
            Of intervals and noise band.
        n_resamples : int, default=200
            Simulations of the noise band.
        random_state : int, Generator or None
            Seed or source of randomness of the noise band.
        """
        asked = AskedItems(probabilities, features, cells, by)
        p, where = asked.locate(calibrator)
        checked = check_counts(counts, n_classes=p.shape[1])
        check_same_length(p, checked, ("probabilities", "counts"))
        check_compared(quantity, entropy)
        comparison = Comparison.of(
            PredictedItems.of_calibrator(calibrator, asked, entropy),
            p,
            checked,
            where,
            calibrator.partition_.layout_,
            aligned=calibrator.method != "empirical",
            quantity=quantity,
            entropy=entropy,
        )
        return cls._of(comparison, confidence, n_resamples, random_state)

    @classmethod
    def from_predictions(
        cls,
        mixtures: Mixtures,
        counts: Any,
        *,
        cells: ArrayLike | None = None,
        quantity: Quantity = "aleatoric",
        entropy: str = "shannon",
        confidence: float = 0.95,
        n_resamples: int = 200,
        random_state: Any = None,
    ) -> Self:
        """Compare mixtures of any origin, one per item, with test labels.

        Parameters
        ----------
        mixtures : Mixtures
            Predictions in class order. A cell is predicted to hold the average of its items'
            mixtures.
        counts : array or sparse matrix of shape (n_items, n_classes)
            Labels of the items, not used to fit.
        cells : array of shape (n_items,), optional
            Cell of each item, chosen without looking at the labels; items that share a stored
            mixture by default.
        quantity, entropy, confidence, n_resamples, random_state
            See `from_estimator`.
        """
        check_some_mixtures(mixtures)
        checked = check_counts(counts, n_classes=mixtures.n_classes)
        check_same_length(mixtures, checked, ("mixtures", "counts"))
        where = check_cells(mixtures.index if cells is None else cells, len(mixtures))
        n_cells = int(where.max()) + 1
        check_compared(quantity, entropy)
        layout = CellLayout(np.arange(n_cells), np.zeros(n_cells, dtype=np.intp))
        comparison = Comparison.of(
            PredictedItems.of_mixtures(mixtures, entropy),
            mixtures.mean(),
            checked,
            where,
            layout,
            aligned=False,
            quantity=quantity,
            entropy=entropy,
        )
        return cls._of(comparison, confidence, n_resamples, random_state)

    @classmethod
    def _of(
        cls, comparison: Comparison, confidence: float, n_resamples: int, random_state: Any
    ) -> Self:
        """Measure all that is drawn."""
        delta = 1 - check_fraction(confidence, "confidence")
        size = check_n_resamples(n_resamples)
        noise = comparison.noise(size, check_random_state(random_state))
        lower, upper = comparison.certified(1 - delta)
        return cls(
            predicted=comparison.predicted(),
            observed=comparison.observed(),
            lower=lower,
            upper=upper,
            band=chance_band(noise, delta),
            n_items=comparison.statistics.n_items,
            quantity=comparison.quantity,
            entropy=comparison.entropy,
            confidence=1 - delta,
            k=int(comparison.totals.min()),
        )

    @property
    def outside(self) -> Mask:
        """Cells whose point lies outside its noise band; 1 - confidence of them do so by chance."""
        return np.asarray((self.observed < self.band[0]) | (self.observed > self.band[1]))

    def plot(
        self, ax: Axes | None = None, *, min_items: int = 10, title: str | None = None
    ) -> Self:
        """Draw the diagram.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        min_items : int, default=10
            Cells with fewer test items are left out, and the legend says how many.
        title : str, optional
            Title of the axes.

        Returns
        -------
        ReliabilityDisplay
            Itself, with `ax_` and `figure_`.
        """
        ax = self._start(ax, width=6.2, height=6.2)
        known = np.isfinite(self.predicted + self.observed)
        shown = known & (self.n_items >= check_integer(min_items, "min_items", minimum=1))
        if not shown.any():
            largest = counted(self.n_items[known].max(initial=0), "item")
            told = (
                f"of the cells whose labels show {_NAMES[self.quantity]}, the largest has {largest}"
            )
            value = f"{min_items}: {told}"
            raise InputError("min_items", "must leave a cell to draw", value=value)
        self._draw_limits(ax, shown)
        self._draw_cells(ax, shown)
        self._set_axes(ax, shown)
        self._finish(ax, title, self._note(shown))
        return self

    def _draw_limits(self, ax: Axes, shown: Mask) -> None:
        """Draw the noise band and the interval of each cell."""
        share = f"{self.confidence:.0%}"
        band: dict[str, Any] = {"color": ink(ax), "alpha": 0.2, "lw": 7}
        band["label"] = f"{share} of chance, if the prediction is right"
        self.band_ = self._verticals(ax, shown, self.band, **band)
        interval: dict[str, Any] = {"color": blue(ax), "alpha": 0.7, "lw": 1.2}
        interval["label"] = f"{share} interval for the true value"
        limits = np.stack([self.lower, self.upper])
        self.intervals_ = self._verticals(ax, shown, limits, **interval)

    def _set_axes(self, ax: Axes, shown: Mask) -> None:
        """Set limits that hold all points and bands, while wide intervals may run out of sight."""
        values = np.concatenate([self.predicted[shown], self.observed[shown], *self.band[:, shown]])
        low = float(np.nanmin(values))
        high = float(np.nanmax(values))
        margin = 0.06 * (high - low) or 0.05
        view = low - margin, high + margin
        ax.axline((low, low), slope=1, color=ink(ax), lw=1, ls="--", label="perfect")
        name = _NAMES[self.quantity]
        name = name if self.quantity == "mean" else axis_label(name, get_entropy(self.entropy))
        ax.set(
            xlim=view,
            ylim=view,
            aspect="equal",
            xlabel=f"predicted {name}",
            ylabel=f"observed {name}",
        )

    def _note(self, shown: Mask) -> str:
        """Return what the legend says about sizes and about cells that are not drawn."""
        left_out = int((self.n_items > 0).sum() - shown.sum())
        sizes = self.n_items[shown]
        note = f"area of a point: its items, {sizes.min():,} to {sizes.max():,}"
        return note + f"\n{counted(left_out, 'smaller cell')} not shown" * (left_out > 0)

    def _verticals(self, ax: Axes, shown: Mask, ends: Array, **style: Any) -> LineCollection:
        """Draw a vertical line at each cell's prediction."""
        return ax.vlines(self.predicted[shown], ends[0, shown], ends[1, shown], **style)

    def _draw_cells(self, ax: Axes, shown: Mask) -> None:
        largest = float(self.n_items[shown].max())

        def draw(chosen: Mask, where: str, **look: Any) -> PathCollection:
            return ax.scatter(
                self.predicted[chosen],
                self.observed[chosen],
                s=marker_areas(self.n_items[chosen], largest, area=220, least=14),
                label=f"{counted(chosen.sum(), 'cell')} {where}",
                alpha=0.75,
                lw=0,
                zorder=3,
                **look,
            )

        inside = shown & ~self.outside
        outside = shown & self.outside
        self.points_ = draw(inside, "inside the band", c=blue(ax), marker="o")
        self.outside_ = draw(outside, "outside the band", c=ORANGE, marker="D")
