"""One mixture on the simplex: which label distributions a prediction holds possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.errors import InputError
from hocal._base.typing import Array, Index
from hocal._base.validation import check_cells, check_integer
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.plot.canvas import ORANGE, Display, blue, ink, weight_areas
from hocal.plot.inputs import check_calibrator, check_some_mixtures, name_classes
from hocal.plot.predicted import AskedItems
from hocal.uncertainty.mixtures import Mixtures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

__all__ = ["MixtureDisplay"]

MAX_STEMS = 40  # atoms of a binary mixture that are drawn one by one
_BINS = 40  # of a binary mixture with more atoms
_VISIBLE = 1e-6  # weight: an atom with less leaves no ink
_AREA = 350.0  # in points squared, of a single atom
_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
_RANKS = ("first choice", "second choice", "third choice")


@dataclass(eq=False, repr=False)
class MixtureDisplay(Display):
    """The label distributions of one mixture: spread out is ignorance, inside is disagreement.

    Two classes are drawn on [0, 1], three in a triangle whose corners are certain labels. Of more
    classes the three with the largest mean are shown: each label distribution is divided by its
    mass on these three, and drawn with that mass, so that the ink that is missing is the share that
    was projected away.

    Parameters
    ----------
    points : ndarray of shape (n_atoms, n_classes)
        Label distributions.
    weights : ndarray of shape (n_atoms,)
        Their weights, which sum to 1.
    classes : tuple of str
        Names of the classes.

    Attributes
    ----------
    points_ : matplotlib artist
        The drawn mixture; only after `plot`.

    Examples
    --------
    >>> import hocal
    >>> from hocal.plot import MixtureDisplay
    >>> mixtures = hocal.Mixtures.from_vertices([[0.4, 0.3, 0.2, 0.1]])
    >>> display = MixtureDisplay.from_predictions(mixtures, classes=["cat", "dog", "fox", "owl"])
    >>> display.shown.tolist(), round(display.projected_away, 6)
    ([0, 1, 2], 0.1)
    >>> display.plot().ax_.get_title()
    '10% of the labels are for other classes'
    """

    points: Array
    weights: Array
    classes: tuple[str, ...]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        item: int = 0,
        classes: Sequence[str] | None = None,
        features: ArrayLike | None = None,
        cells: ArrayLike | None = None,
        by: ArrayLike | None = None,
    ) -> Self:
        """Show the mixture that a fitted estimator predicts for an item.

        Parameters
        ----------
        estimator : object
            A SnapshotCalibrator, HigherOrderCalibratedClassifier or anything else with
            `predict_mixture`.
        X : array
            What its `predict_mixture` takes: probabilities for a calibrator, features for a
            classifier.
        item : int, default=0
            Row of X.
        classes : sequence of str, optional
            Names of the classes; those the estimator knows, else their numbers.
        features, cells, by : array, optional
            What goes with the items, as in `SnapshotCalibrator.decompose`.
        """
        mixtures = AskedItems(X, features, cells, by).mixtures(estimator)
        names = getattr(estimator, "classes_", None) if classes is None else classes
        return cls.from_predictions(mixtures, item=item, classes=names)

    @classmethod
    def from_predictions(
        cls, mixtures: Mixtures, *, item: int = 0, classes: Sequence[str] | None = None
    ) -> Self:
        """Show the mixture of one of several items; options as in `from_estimator`."""
        check_some_mixtures(mixtures)
        place = check_integer(item, "item", minimum=0, maximum=len(mixtures) - 1)
        stored = mixtures.index[place]
        own = slice(*mixtures.offsets[stored : stored + 2])
        if own.start == own.stop:
            value = f"{item}, whose cell is empty"
            raise InputError("item", "must have a mixture with atoms", value=value)
        names = name_classes(classes, mixtures.n_classes)
        return cls(mixtures.points_at(own), mixtures.weights[own], names)

    @classmethod
    def from_cell(
        cls, calibrator: SnapshotCalibrator, cell: int, *, classes: Sequence[str] | None = None
    ) -> Self:
        """Show the mixture of a cell of a fitted calibrator.

        This is the mixture over all items of the cell, whatever the method. It has its classes in
        order of falling prediction: first choice, second choice, ...; or, where the labels of the
        cell order them better, classes by their names.
        """
        check_calibrator(calibrator)
        mixtures = calibrator.cell_mixtures_
        place = int(check_cells([cell], 1, n_cells=len(mixtures), name="cell")[0])
        order = calibrator.class_orders_[place]
        if order[0] >= 0:
            names = name_classes(classes, mixtures.n_classes)
            classes = [names[j] for j in order]
        elif classes is None and calibrator.method != "empirical":
            later = [f"choice {rank + 1}" for rank in range(len(_RANKS), mixtures.n_classes)]
            classes = [*_RANKS[: mixtures.n_classes], *later]
        return cls.from_predictions(mixtures, item=place, classes=classes)

    @property
    def mean(self) -> Array:
        """The mean label distribution."""
        return np.asarray(self.weights @ self.points)

    @property
    def shown(self) -> Index:
        """The classes that are drawn: all in their order, or of many the three of largest mean."""
        if len(self.classes) <= 3:
            return np.arange(len(self.classes))
        return np.argsort(-self.mean, kind="stable")[:3]

    @property
    def projected_away(self) -> float:
        """Share of the labels that goes to classes which are not drawn."""
        return float(1 - self.mean[self.shown].sum())

    def plot(self, ax: Axes | None = None, *, title: str | None = None) -> Self:
        """Draw the mixture and its mean.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
            Title of the axes; by default it says what share was projected away, if any was.

        Returns
        -------
        MixtureDisplay
            Itself, with `ax_` and `figure_`.
        """
        if len(self.classes) == 2:
            ax = self._start(ax, height=4)
            self._draw_line(ax)
        else:
            ax = self._start(ax, width=5.4, height=5.2)
            self._draw_triangle(ax)
        if title is None and len(self.classes) > 3:
            title = f"{self.projected_away:.0%} of the labels are for other classes"
        if title is not None:
            ax.set_title(title, fontsize="medium")
        under_triangle = "lower center"
        self._legend(ax, loc="best" if len(self.classes) == 2 else under_triangle)
        return self

    def _draw_line(self, ax: Axes) -> None:
        x, owner = np.unique(self.points[:, 1], return_inverse=True)
        mass = np.bincount(owner, self.weights)
        heavy = mass > _VISIBLE
        if heavy.sum() <= MAX_STEMS:
            self.points_: Any = ax.vlines(x[heavy], 0, mass[heavy], color=blue(ax), lw=2.5)
            look: dict[str, Any] = {"color": blue(ax), "s": 36, "clip_on": False, "zorder": 3}
            ax.scatter(x[heavy], mass[heavy], label="a label distribution", **look)
            ax.set_ylabel("weight")
        else:
            shares, edges = np.histogram(x, _BINS, (0, 1), weights=mass)
            self.points_ = ax.stairs(
                shares, edges, fill=True, color=blue(ax), alpha=0.8, label="label distributions"
            )
            ax.set_ylabel(f"weight in each {1 / _BINS:g}")
        ax.axvline(self.mean[1], color=ORANGE, ls="--", lw=1.8, label="mean")
        ax.set(xlim=(-0.02, 1.02), xlabel=f"share of labels for {self.classes[1]}")
        ax.set_ylim(bottom=0)

    def _draw_triangle(self, ax: Axes) -> None:
        self._draw_grid(ax)
        mass = self.points[:, self.shown].sum(axis=1)
        drawn = self.weights * mass
        heavy = drawn > _VISIBLE
        place = self.points[np.ix_(heavy, self.shown)] / mass[heavy, None] @ _CORNERS
        look: dict[str, Any] = {"color": blue(ax), "alpha": 0.6, "lw": 0}
        self.points_ = ax.scatter(
            place[:, 0], place[:, 1], s=weight_areas(drawn[heavy], _AREA), **look
        )
        ax.scatter([], [], s=40, label="label distributions, area: weight", **look)
        mean = self.mean[self.shown] / self.mean[self.shown].sum() @ _CORNERS
        cross: dict[str, Any] = {"marker": "X", "color": ORANGE, "edgecolors": ink(ax), "lw": 0.6}
        ax.scatter(mean[0], mean[1], s=90, label="mean", zorder=3, **cross)
        room_for_legend = 0.0 if self._own else 0.25
        ax.set(xlim=(-0.12, 1.12), ylim=(-0.1 - room_for_legend, 0.98), aspect="equal")
        ax.set_axis_off()

    def _draw_grid(self, ax: Axes) -> None:
        """Draw the triangle, lines at every quarter, and the names of its corners."""
        colour = ink(ax)
        ax.plot(*_CORNERS[[0, 1, 2, 0]].T, color=colour, lw=1)
        for level in (0.25, 0.5, 0.75):
            for first, second, third in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
                ends = level * _CORNERS[first] + (1 - level) * _CORNERS[[second, third]]
                ax.plot(*ends.T, color=colour, alpha=0.15, lw=0.8)
        for corner, name, side in zip(_CORNERS, self.shown, ("top", "top", "bottom"), strict=True):
            offset = (0, -10 if side == "top" else 10)
            place: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": side}
            ax.annotate(self.classes[name], corner, offset, **place)
