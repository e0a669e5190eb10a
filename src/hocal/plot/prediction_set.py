"""Prediction sets: which label distributions items may have, and what people then said."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.typing import Array, Index, Mask
from hocal._base.validation import check_dense_counts, check_same_length
from hocal.plot.canvas import ORANGE, Display, blue, ink, weight_areas
from hocal.plot.inputs import check_chosen, check_some_mixtures, name_classes
from hocal.plot.predicted import AskedItems
from hocal.uncertainty.mixtures import Mixtures
from hocal.uncertainty.sets import PredictionSets, Shape, predict_set

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

__all__ = ["PredictionSetDisplay"]

_AREA = 120.0  # in points squared, of a single atom
_THINNEST = 0.006  # share of labels: a set of one point is a visible line


@dataclass(eq=False, repr=False)
class PredictionSetDisplay(Display):
    """For chosen items, the label distributions that the prediction set of each holds.

    For each class, a point is the share of labels it gets in a label distribution of the set, its
    area the weight in the item's mixture. The pale bar spans all shares that the set allows. Labels
    inside every bar may still be outside of the set: `contains` tells.

    Parameters
    ----------
    items : ndarray of shape (n_shown,)
        Numbers of the items.
    points : list of ndarray of shape (n_atoms, n_classes)
        For each item, the atoms of its mixture that lie in the set.
    weights : list of ndarray of shape (n_atoms,)
        Their weights in the mixture; they sum to the mass of the set.
    lower, upper : ndarray of shape (n_shown, n_classes)
        Smallest and largest share of each class over the set.
    shares : ndarray of shape (n_shown, n_classes) or None
        Shares of the labels that people gave.
    contains : ndarray of bool of shape (n_shown,) or None
        Whether those shares lie in the set.
    classes : tuple of str
        Names of the classes.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        One for each item; only after `plot`.

    Examples
    --------
    >>> import hocal
    >>> from hocal.plot import PredictionSetDisplay
    >>> mixtures = hocal.Mixtures.from_ensemble([[[0.9, 0.1], [0.7, 0.3]]])
    >>> display = PredictionSetDisplay.from_predictions(mixtures, [[8, 2]], classes=["cat", "dog"])
    >>> display.lower.round(2).tolist(), display.upper.round(2).tolist(), display.contains.tolist()
    ([[0.7, 0.1]], [[0.9, 0.3]], [True])
    >>> display.plot().ax_.get_ylabel()
    'share of labels'
    """

    items: Index
    points: list[Array]
    weights: list[Array]
    lower: Array
    upper: Array
    shares: Array | None
    contains: Mask | None
    classes: tuple[str, ...]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        counts: Any = None,
        *,
        classes: Sequence[str] | None = None,
        features: ArrayLike | None = None,
        cells: ArrayLike | None = None,
        by: ArrayLike | None = None,
        **options: Any,
    ) -> Self:
        """Predict sets with a fitted estimator.

        Parameters
        ----------
        estimator : object
            A SnapshotCalibrator, HigherOrderCalibratedClassifier or anything else with
            `predict_mixture`.
        X : array
            What its `predict_mixture` takes: probabilities for a calibrator, features for a
            classifier.
        counts : array or sparse matrix of shape (n_items, n_classes), optional
            Labels of the same items.
        classes : sequence of str, optional
            Names of the classes; those the estimator knows, else their numbers.
        features, cells, by : array, optional
            What goes with the items, as in `SnapshotCalibrator.decompose`.
        **options
            For `from_predictions`.
        """
        mixtures = AskedItems(X, features, cells, by).mixtures(estimator)
        names = getattr(estimator, "classes_", None) if classes is None else classes
        return cls.from_predictions(mixtures, counts, classes=names, **options)

    @classmethod
    def from_predictions(
        cls,
        mixtures: Mixtures,
        counts: Any = None,
        *,
        items: ArrayLike = (0,),
        coverage: float = 0.9,
        shape: Shape = "ball",
        delta: float = 0.0,
        classes: Sequence[str] | None = None,
    ) -> Self:
        """Make the sets of mixtures of any origin.

        Parameters
        ----------
        mixtures : Mixtures
            Predictions, one per item.
        counts : array or sparse matrix of shape (n_items, n_classes), optional
            Labels of the same items.
        items : array of int, default=(0,)
            Rows to show.
        coverage : float, default=0.9
            Mass each set must have under the item's own mixture.
        shape : {"ball", "atoms"}
            As in `hocal.predict_set`. Sets of atoms hold single points: without `delta` hardly any
            labels are inside.
        delta : float, default=0
            How far to expand the sets, in l1 distance.
        classes : sequence of str, optional
            Names of the classes; their numbers by default.
        """
        check_some_mixtures(mixtures)
        chosen = check_chosen(items, "items", len(mixtures))
        names = name_classes(classes, mixtures.n_classes)
        own = mixtures[chosen]
        sets = predict_set(own, coverage=coverage, shape=shape).expand(delta)
        lower, upper = _ranges(sets)
        points, weights = _atoms_inside(own, sets)
        shares = None
        if counts is not None:
            checked = check_dense_counts(counts, n_classes=mixtures.n_classes)
            check_same_length(mixtures, checked, ("mixtures", "counts"))
            shares = checked[chosen] / checked[chosen].sum(axis=1, keepdims=True)
        return cls(
            items=chosen,
            points=points,
            weights=weights,
            lower=lower,
            upper=upper,
            shares=shares,
            contains=None if shares is None else sets.contains(shares),
            classes=names,
        )

    def plot(self, ax: Axes | Sequence[Axes] | None = None, *, title: str | None = None) -> Self:
        """Draw the items side by side.

        Parameters
        ----------
        ax : matplotlib Axes or sequence of them, optional
            One for each item; a new figure by default.
        title : str, optional
            Title of the figure.

        Returns
        -------
        PredictionSetDisplay
            Itself, with `axes_`, `ax_` (the first of them) and `figure_`.
        """
        width = max(3.4, 0.36 * len(self.classes))
        self.axes_ = list(self._start_row(ax, len(self.items), width=width, height=4))
        for place, panel in enumerate(self.axes_):
            self._draw_item(panel, place)
        self.axes_[0].set_ylabel("share of labels")
        self._finish_row(self.axes_, title)
        return self

    def _draw_item(self, ax: Axes, place: int) -> None:
        x = np.arange(len(self.classes))
        self._draw_set(ax, place)
        title = f"item {self.items[place]}, {self.weights[place].sum():.0%} of the mass"
        if self.shares is not None and self.contains is not None:
            look: dict[str, Any] = {"marker": "D", "s": 26, "color": ORANGE, "zorder": 3}
            ax.scatter(x, self.shares[place], label="labels that people gave", **look)
            title += ": labels inside" if self.contains[place] else ": labels outside"
        slanted = max(map(len, self.classes)) > 2
        turned: dict[str, Any] = {"rotation": 45, "ha": "right"} if slanted else {}
        ax.set_xticks(x, self.classes, **turned)
        ax.set(ylim=(-0.05, 1.05), xlim=(-0.6, len(x) - 0.4))
        ax.set_title(title, fontsize="medium")

    def _draw_set(self, ax: Axes, place: int) -> None:
        """Draw what the set of an item allows for each class, and its label distributions."""
        x = np.arange(len(self.classes))
        lower = self.lower[place]
        height = np.maximum(self.upper[place] - lower, _THINNEST)
        words = "all that the set holds"
        ax.bar(x, height, 0.7, bottom=lower, color=ink(ax), alpha=0.12, label=words)
        points = self.points[place]
        columns = np.broadcast_to(x, points.shape).reshape(-1)
        areas = np.repeat(weight_areas(self.weights[place], _AREA), len(x))
        look: dict[str, Any] = {"color": blue(ax), "alpha": 0.5, "lw": 0}
        ax.scatter(columns, points.reshape(-1), s=areas, **look)
        ax.scatter([], [], s=40, label="predicted label shares, area: weight", **look)


def _ranges(sets: PredictionSets) -> tuple[Array, Array]:
    """Return the smallest and largest share of each class.

    An l1 ball reaches half of its radius in one class.
    """
    centres = sets.centres
    own = [slice(*centres.offsets[place : place + 2]) for place in centres.index]
    reach = sets.radius[:, None] / 2
    lower = np.stack([centres.points_at(each).min(axis=0) for each in own]) - reach
    upper = np.stack([centres.points_at(each).max(axis=0) for each in own]) + reach
    return np.maximum(lower, 0), np.minimum(upper, 1)


def _atoms_inside(mixtures: Mixtures, sets: PredictionSets) -> tuple[list[Array], list[Array]]:
    """Return the atoms of each item's mixture that lie in its set, and their weights."""
    points = []
    weights = []
    for place, mixture in enumerate(mixtures.index):
        own = slice(*mixtures.offsets[mixture : mixture + 2])
        repeated = np.full(own.stop - own.start, place)
        one = replace(
            sets,
            centres=sets.centres[repeated],
            radius=sets.radius[repeated],
            mass=sets.mass[repeated],
        )
        atoms = mixtures.points_at(own)
        inside = one.contains(atoms)
        points.append(atoms[inside])
        weights.append(mixtures.weights[own][inside])
    return points, weights
