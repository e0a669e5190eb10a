"""The uncertainty map: how much of each item's uncertainty is aleatoric and how much epistemic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.errors import InputError
from hocal._base.plurals import counted
from hocal._base.typing import Array, Index, IntArray
from hocal._base.validation import check_cells, check_integer, check_whole
from hocal.plot.canvas import ORANGE, Display, axis_label, blue, ink, marker_areas
from hocal.plot.inputs import check_method, check_n_bins, is_empty
from hocal.uncertainty.decomposition import Decomposition, decompose
from hocal.uncertainty.entropy import Entropy
from hocal.uncertainty.mixtures import Mixtures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection, QuadMesh

__all__ = ["UncertaintyMapDisplay"]

MAX_POINTS = 5_000  # distinct points that are drawn one by one
_BINS = 80  # of the density, along each axis
_ITEMS_AT_ONCE = 1 << 20  # in the density, so that memory does not grow with their number


class _Points(NamedTuple):
    aleatoric: Array
    epistemic: Array
    n_items: IntArray


@dataclass(eq=False, repr=False)
class UncertaintyMapDisplay(Display):
    """Aleatoric against epistemic uncertainty: right is disagreement, up is ignorance.

    Items at the same place are one point whose area is their number, as all items of a calibrated
    cell are. More than 5,000 distinct places are drawn as a density.

    Parameters
    ----------
    aleatoric, epistemic : ndarray of shape (n_items,)
        The two parts of each item's uncertainty.
    entropy : Entropy
        The measure of uncertainty, for the units.
    maximum : float or None
        Largest possible sum of the two parts, drawn as a line where it is in sight.
    marked : ndarray of int
        Numbers of the items to mark.

    Attributes
    ----------
    points_ : matplotlib PathCollection
        The points, if there are few; only after `plot`.
    density_ : matplotlib QuadMesh
        The density, if there are many; only after `plot`.

    Examples
    --------
    >>> import hocal
    >>> from hocal.plot import UncertaintyMapDisplay
    >>> members = [[[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5]]]
    >>> mixtures = hocal.Mixtures.from_ensemble(members)
    >>> display = UncertaintyMapDisplay.from_predictions(mixtures, base=2)
    >>> display.aleatoric.round(2).tolist(), display.epistemic.round(2).tolist()
    ([0.47, 1.0], [0.53, 0.0])
    >>> display.plot().ax_.get_xlabel()
    'aleatoric uncertainty (bits)'
    """

    aleatoric: Array
    epistemic: Array
    entropy: Entropy
    maximum: float | None
    marked: Index

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        entropy: str | Entropy = "shannon",
        base: float | None = None,
        marked: ArrayLike = (),
        **options: Any,
    ) -> Self:
        """Decompose the predictions of a fitted estimator.

        Parameters
        ----------
        estimator : object
            A SnapshotCalibrator, HigherOrderCalibratedClassifier or anything else with `decompose`.
        X : array
            What its `decompose` takes: probabilities for a calibrator, features for a classifier.
        entropy : str or Entropy, default="shannon"
            Measure of uncertainty.
        base : float, optional
            Base of Shannon's logarithm, 2 for bits.
        marked : array of int
            Numbers of the items to mark.
        **options
            For `decompose`, such as ``cells=`` with a PrecomputedPartition.
        """
        check_method(estimator, "decompose")
        parts = estimator.decompose(X, entropy, base=base, **options)
        n_classes = getattr(getattr(estimator, "statistics_", None), "n_classes", None)
        if n_classes is None and hasattr(estimator, "classes_"):
            n_classes = len(estimator.classes_)
        return cls.from_decomposition(parts, n_classes=n_classes, marked=marked)

    @classmethod
    def from_predictions(
        cls,
        mixtures: Mixtures,
        *,
        entropy: str | Entropy = "shannon",
        base: float | None = None,
        marked: ArrayLike = (),
    ) -> Self:
        """Decompose mixtures of any origin; options as in `from_estimator`."""
        return cls.from_decomposition(
            decompose(mixtures, entropy, base=base), n_classes=mixtures.n_classes, marked=marked
        )

    @classmethod
    def from_decomposition(
        cls, parts: Decomposition, *, n_classes: int | None = None, marked: ArrayLike = ()
    ) -> Self:
        """Take parts that were computed before; `n_classes` tells the largest possible sum."""
        if not isinstance(parts, Decomposition) or not len(parts):
            got = "none" if isinstance(parts, Decomposition) else type(parts).__name__
            raise InputError("parts", "must be a Decomposition of at least one item", value=got)
        wrong = ~np.isfinite(parts.aleatoric + parts.epistemic)
        if wrong.any():
            raise InputError(
                "parts",
                "must be finite to have a place on the map",
                value=f"{parts.epistemic[wrong][0]:g}",
                where=f"in row {np.argmax(wrong)}",
                remedy="Use kind='mutual-information', and leave out items without a mixture.",
            )
        maximum = None
        bounded = parts.kind == "mutual-information"
        if n_classes is not None and bounded:
            maximum = parts.entropy.maximum(n_classes)
        none = np.empty(0, dtype=np.intp)
        chosen = none if is_empty(marked) else check_whole(marked, "marked")
        numbers = check_cells(chosen, chosen.size, n_cells=len(parts), name="marked")
        return cls(parts.aleatoric, parts.epistemic, parts.entropy, maximum, numbers)

    def distinct(self) -> _Points:
        """Return the distinct points and how many items each stands for."""
        both, n_items = np.unique(self.aleatoric + 1j * self.epistemic, return_counts=True)
        return _Points(both.real, both.imag, n_items)

    def density(self, n_bins: int = _BINS) -> tuple[IntArray, Array, Array]:
        """Return the items in each square of a grid, (n_bins, n_bins), and its edges."""
        n_bins = check_n_bins(n_bins)
        across = np.linspace(0, _reach(self.aleatoric), n_bins + 1)
        up = np.linspace(0, _reach(self.epistemic), n_bins + 1)
        total = np.zeros((n_bins, n_bins), dtype=np.int64)
        for start in range(0, len(self.aleatoric), _ITEMS_AT_ONCE):
            block = slice(start, start + _ITEMS_AT_ONCE)
            found = np.histogram2d(self.aleatoric[block], self.epistemic[block], bins=(across, up))
            total += found[0].astype(np.int64)
        return total, across, up

    def plot(
        self, ax: Axes | None = None, *, max_points: int = MAX_POINTS, title: str | None = None
    ) -> Self:
        """Draw the map.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        max_points : int, default=5000
            Most distinct points that are drawn one by one.
        title : str, optional
            Title of the axes.

        Returns
        -------
        UncertaintyMapDisplay
            Itself, with `ax_` and `figure_`.
        """
        ax = self._start(ax)
        points = self.distinct()
        if len(points.n_items) <= check_integer(max_points, "max_points", minimum=0):
            self._draw_points(ax, points)
        else:
            self._draw_density(ax)
        self._draw_guides(ax)
        if len(self.marked):
            self._draw_marked(ax)
        ax.set(
            xlabel=axis_label("aleatoric uncertainty", self.entropy),
            ylabel=axis_label("epistemic uncertainty", self.entropy),
        )
        self._finish(ax, title)
        return self

    def _draw_marked(self, ax: Axes) -> None:
        look: dict[str, Any] = {"s": 110, "marker": "s", "facecolors": "none", "linewidths": 1.8}
        x = self.aleatoric[self.marked]
        y = self.epistemic[self.marked]
        ax.scatter(x, y, edgecolors=ORANGE, label="marked items", **look)

    def _draw_points(self, ax: Axes, points: _Points) -> None:
        largest = int(points.n_items.max())
        single = largest == 1
        areas = (
            np.full(len(points.n_items), 12.0) if single else marker_areas(points.n_items, largest)
        )
        self.points_: PathCollection = ax.scatter(
            points.aleatoric,
            points.epistemic,
            s=areas,
            color=blue(ax),
            alpha=0.6,
            linewidths=0,
            label="an item" if single else None,
        )
        for size in () if single else _example_sizes(largest):
            area = float(marker_areas(np.array([size]), largest)[0])
            ax.scatter(
                [], [], s=area, color=blue(ax), alpha=0.6, linewidths=0, label=counted(size, "item")
            )

    def _draw_density(self, ax: Axes) -> None:
        from matplotlib.colors import LogNorm

        total, right, up = self.density()
        # many items stand out most from the background
        colours = "cividis_r" if ink(ax) == "black" else "cividis"
        shown = np.ma.masked_equal(total.T, 0)
        norm = LogNorm(1, max(int(total.max()), 2))
        self.density_: QuadMesh = ax.pcolormesh(
            right, up, shown, cmap=colours, norm=norm, rasterized=True
        )
        words = f"items in a square (of {len(self.aleatoric):,})"
        self.figure_.colorbar(self.density_, ax=ax, label=words)

    def _draw_guides(self, ax: Axes) -> None:
        right = _reach(self.aleatoric)
        up = _reach(self.epistemic)
        colour = ink(ax)
        diagonal = [0, 2 * max(right, up)]
        words = "both parts equal"
        ax.plot(diagonal, diagonal, color=colour, alpha=0.5, lw=1, ls=":", label=words)
        if self.maximum is not None and right + up > self.maximum:
            ends = [0, self.maximum]
            ax.plot(ends, ends[::-1], color=colour, lw=1, ls="--", label="largest possible")
        ax.set(xlim=(-0.02 * right, 1.05 * right), ylim=(-0.02 * up, 1.05 * up))


def _reach(values: Array) -> float:
    """Return where an axis from 0 should end: the largest value, or 1 if that is 0."""
    return float(values.max(initial=0)) or 1.0


def _example_sizes(largest: int) -> list[int]:
    """Return round numbers of items for the legend: at most the largest, and a fifth of it."""
    rounds = [digit * 10**power for power in range(len(str(largest))) for digit in (1, 2, 5)]
    limits = (largest, max(largest / 5, 1))
    sizes = {max(size for size in rounds if size <= limit) for limit in limits}
    return sorted(sizes, reverse=True)
