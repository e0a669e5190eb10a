"""Coverage of prediction sets: how often the labels people gave lie where they were predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.shares import percent
from hocal._base.typing import Array, Index, IntArray
from hocal._base.validation import (
    check_array,
    check_dense_counts,
    check_fraction,
    check_integer,
    check_n_resamples,
    check_random_state,
    check_same_length,
)
from hocal.calibration.by_cell.fitting import rank_items
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.plot.canvas import Display, blue, ink
from hocal.plot.inputs import check_some, check_some_mixtures
from hocal.plot.observed import chance_band, scale_noise
from hocal.plot.predicted import AskedItems, n_listed
from hocal.uncertainty.mixtures import Mixtures
from hocal.uncertainty.sets import predict_set

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

__all__ = ["CoverageDisplay"]

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
# items whose labels are drawn anew at a time; the spread of more is scaled from these
MAX_DRAWN = 20_000
MAX_LEVELS = 1_000  # more than a line has pixels
MAX_COMPARED = 5_000  # items with sets of their own: the noise is a hundredth
ROUNDING = 1e-12  # a distance that equals the radius is inside in spite of rounding


@dataclass(eq=False, repr=False)
class CoverageDisplay(Display):
    """Share of items whose labels lie in their prediction set, against the mass asked of the set.

    Sets are the smallest l1 balls around the mean. The shares of few labels stray from the label
    distribution behind them, so a right prediction need not be on the diagonal: the band is where
    it would be, found by drawing labels from the predicted mixtures. Sets hold whole atoms, so a
    mixture of few atoms covers more than was asked for.

    Parameters
    ----------
    levels : ndarray of shape (n_levels,)
        Mass that the sets were asked to have.
    observed : ndarray of shape (n_levels,)
        Share of the items whose label shares lie in the set.
    band : ndarray of shape (2, n_levels)
        Limits of that share by chance, if the prediction is right.
    n_items : int
        Test items.
    confidence : float
        Of the band, for each level on its own.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The observed coverage; only after `plot`.

    Examples
    --------
    >>> from hocal.datasets import make_mixture_world
    >>> from hocal.plot import CoverageDisplay
    >>> world = make_mixture_world(1000, 3, random_state=0)
    >>> display = CoverageDisplay.from_predictions(
    ...     world.mixtures, world.draw(10, random_state=0), levels=[0.5, 0.9], random_state=0
    ... )
    >>> bool(((display.band[0] <= display.observed) & (display.observed <= display.band[1])).all())
    True
    >>> display.plot().ax_.get_ylabel()
    'share of items whose labels lie in the set'
    """

    levels: Array
    observed: Array
    band: Array
    n_items: int
    confidence: float

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        counts: Any,
        *,
        features: ArrayLike | None = None,
        cells: ArrayLike | None = None,
        by: ArrayLike | None = None,
        **options: Any,
    ) -> Self:
        """Compare the sets of a fitted estimator with test labels.

        Of a calibrator with ``method="items"``, whose items have sets of their own, at most 5,000
        items are compared, fewer with many classes, drawn at random.

        Parameters
        ----------
        estimator : object
            A SnapshotCalibrator, HigherOrderCalibratedClassifier or anything else with
            `predict_mixture`.
        X : array
            What its `predict_mixture` takes: probabilities for a calibrator, features for a
            classifier.
        counts : array or sparse matrix of shape (n_items, n_classes)
            Labels of the same items, not used to fit.
        features, cells, by : array, optional
            What goes with the items, as in `SnapshotCalibrator.decompose`.
        **options
            For `from_predictions`.
        """
        asked = AskedItems(X, features, cells, by)
        if isinstance(estimator, SnapshotCalibrator) and estimator.method == "items":
            return cls._from_items(estimator, asked, counts, options)
        if not isinstance(estimator, SnapshotCalibrator) or estimator.method == "empirical":
            return cls.from_predictions(asked.mixtures(estimator), counts, **options)
        # Distances do not depend on the order of the classes: the mixture over ranks serves all
        # items of a cell.
        p, where = asked.locate(estimator)
        checked = check_dense_counts(counts, n_classes=p.shape[1])
        check_same_length(p, checked, ("X", "counts"))
        ranking = rank_items(p, where, estimator.class_orders_)
        ranked = np.take_along_axis(checked, ranking, axis=1)
        return cls.from_predictions(estimator.cell_mixtures_[where], ranked, **options)

    @classmethod
    def _from_items(
        cls, calibrator: Any, asked: AskedItems, counts: Any, options: dict[str, Any]
    ) -> Self:
        """Compare the sets of items, of a sample where there are many."""
        p, _ = asked.locate(calibrator)
        checked = check_dense_counts(counts, n_classes=p.shape[1])
        check_same_length(p, checked, ("X", "counts"))
        n_compared = min(n_listed(p.shape[1]), MAX_COMPARED)
        rows = np.arange(len(p))
        if len(p) > n_compared:
            generator = check_random_state(options.get("random_state"))
            rows = np.sort(generator.choice(len(p), n_compared, replace=False))
        mixtures = asked.rows(rows).mixtures(calibrator)
        return cls.from_predictions(mixtures, checked[rows], **options)

    @classmethod
    def from_predictions(
        cls,
        mixtures: Mixtures,
        counts: Any,
        *,
        levels: ArrayLike = LEVELS,
        confidence: float = 0.95,
        n_resamples: int = 200,
        random_state: Any = None,
    ) -> Self:
        """Compare the sets of mixtures of any origin with test labels.

        Parameters
        ----------
        mixtures : Mixtures
            Predictions, one per item.
        counts : array or sparse matrix of shape (n_items, n_classes)
            Labels of the same items, not used to fit.
        levels : array of float
            Mass that the sets are asked to have.
        confidence : float, default=0.95
            Of the band.
        n_resamples : int, default=200
            Simulations of the band.
        random_state : int, Generator or None
            Seed or source of randomness.
        """
        check_some_mixtures(mixtures)
        check_some(levels, "levels")
        checked = check_dense_counts(counts, n_classes=mixtures.n_classes)
        check_same_length(mixtures, checked, ("mixtures", "counts"))
        flat = check_array(levels, "levels").reshape(-1)
        check_integer(len(flat), "levels", minimum=1, maximum=MAX_LEVELS, why="They are counted.")
        masses = np.array([check_fraction(level, "levels") for level in flat.tolist()])
        delta = 1 - check_fraction(confidence, "confidence")
        size = check_n_resamples(n_resamples)
        generator = check_random_state(random_state)
        balls = _Balls.of(mixtures.stored(), masses)
        noise = _resample(mixtures, checked.sum(axis=1), balls, size, generator)
        return cls(
            levels=masses,
            observed=balls.covered(checked, mixtures.index),
            band=chance_band(noise, delta),
            n_items=len(checked),
            confidence=1 - delta,
        )

    def plot(self, ax: Axes | None = None, *, title: str | None = None) -> Self:
        """Draw the coverage.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
            Title of the axes.

        Returns
        -------
        CoverageDisplay
            Itself, with `ax_` and `figure_`.
        """
        ax = self._start(ax, width=5.6, height=5.6)
        colour = ink(ax)
        words = f"{percent(self.confidence)} of chance, if the prediction is right"
        order = np.argsort(self.levels)
        ax.fill_between(
            self.levels[order], *self.band[:, order], color=colour, alpha=0.2, lw=0, label=words
        )
        line = ax.plot(
            self.levels[order],
            self.observed[order],
            "o-",
            color=blue(ax),
            label=f"observed, {self.n_items:,} items",
        )
        self.line_: Line2D = line[0]
        ax.plot([0, 1], [0, 1], color=colour, lw=1, ls="--", label="right, with endless labels")
        ax.set(
            xlim=(0, 1),
            ylim=(0, 1),
            aspect="equal",
            xlabel="mass of the prediction set",
            ylabel="share of items whose labels lie in the set",
        )
        self._finish(ax, title)
        return self


class _Balls(NamedTuple):
    """The prediction sets of stored mixtures: balls around their means, one for each level."""

    means: Array  #: (n_mixtures, n_classes)
    radii: Array  #: (n_mixtures, n_levels)

    @classmethod
    def of(cls, stored: Mixtures, masses: Array) -> _Balls:
        """Find the smallest balls that hold the masses."""
        radii = [predict_set(stored, coverage=mass, shape="ball").radius for mass in masses]
        return cls(stored.mean(), np.stack(radii, axis=1))

    def covered(self, counts: IntArray, mixture: Index) -> Array:
        """Return the share of items whose label shares lie in the ball of each level."""
        shares = counts / counts.sum(axis=1, keepdims=True)
        distance = np.abs(shares - self.means[mixture]).sum(axis=1)
        inside = distance[:, None] <= self.radii[mixture] + ROUNDING
        return np.asarray(inside.mean(axis=0))


def _resample(
    mixtures: Mixtures,
    totals: IntArray,
    balls: _Balls,
    n_resamples: int,
    generator: np.random.Generator,
) -> Array:
    """Return the coverage of labels drawn from the predictions, (n_resamples, n_levels)."""
    n_items = len(totals)
    n_drawn = min(n_items, MAX_DRAWN)
    noise = np.empty((n_resamples, balls.radii.shape[1]))
    for each in noise:
        rows = generator.choice(n_items, n_drawn, replace=False, shuffle=False)
        drawn = mixtures[rows].draw(totals[rows], random_state=generator)
        each[:] = balls.covered(drawn, mixtures.index[rows])
    return scale_noise(noise, n_drawn, n_items)
