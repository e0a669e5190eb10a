"""Predicted against observed entropies in some cells (the paper's figure 2, bottom rows)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.errors import InputError
from hocal._base.plurals import counted
from hocal._base.typing import Array, Index, IntArray
from hocal._base.validation import (
    check_cells,
    check_dense_counts,
    check_fraction,
    check_integer,
    check_n_resamples,
    check_random_state,
    check_same_length,
    check_simplex,
)
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.calibration.calibrator_state import predictor_of
from hocal.plot.canvas import Display, axis_label, blue, ink
from hocal.plot.inputs import check_chosen, check_n_bins, check_some_mixtures, locate_items
from hocal.plot.observed import chance_band, scale_noise
from hocal.uncertainty.decomposition import decompose
from hocal.uncertainty.entropy import Entropy, get_entropy
from hocal.uncertainty.mixtures import Mixtures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

__all__ = ["EntropyDistributionDisplay"]

# items of a cell whose labels are drawn anew; the spread of more is scaled from these
MAX_DRAWN = 2_000


@dataclass(eq=False, repr=False)
class EntropyDistributionDisplay(Display):
    """How the entropies of the items of a cell spread, as predicted and as observed.

    The entropy of a histogram of few labels is lower than that of the label distribution behind it.
    So both sides are what a panel of the same size shows: the predicted side draws, for each test
    item, as many labels from the predicted mixture as the item has. The bars between the thin lines
    are what chance allows if the prediction is right. With true label distributions nothing is
    drawn but the distributions themselves.

    Parameters
    ----------
    cells : ndarray of shape (n_shown,)
        Numbers of the cells.
    n_items : ndarray of shape (n_shown,)
        Their test items.
    edges : ndarray of shape (n_bins + 1,)
        Edges of the bins of entropy.
    predicted, observed : ndarray of shape (n_shown, n_bins)
        Share of the items in each bin.
    band : ndarray of shape (2, n_shown, n_bins)
        Limits of the observed shares by chance, if the prediction is right.
    predicted_mean, observed_mean : ndarray of shape (n_shown,)
        Mean entropies.
    entropy : Entropy
        The measure of uncertainty.
    confidence : float
        Of the band, for each bin on its own.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        One for each cell; only after `plot`.

    Examples
    --------
    >>> import hocal
    >>> from hocal.datasets import make_mixture_world
    >>> from hocal.plot import EntropyDistributionDisplay
    >>> world = make_mixture_world(1000, 3, n_cells=3, random_state=0)
    >>> display = EntropyDistributionDisplay.from_predictions(
    ...     world.mixtures, world.draw(20, random_state=0), cells=world.cells, random_state=0
    ... )
    >>> display.observed.sum(axis=1).round(6).tolist()
    [1.0, 1.0, 1.0]
    >>> len(display.plot().axes_)
    3
    """

    cells: Index
    n_items: IntArray
    edges: Array
    predicted: Array
    observed: Array
    band: Array
    predicted_mean: Array
    observed_mean: Array
    entropy: Entropy
    confidence: float

    @classmethod
    def from_estimator(
        cls,
        calibrator: SnapshotCalibrator,
        probabilities: ArrayLike,
        counts: Any = None,
        *,
        label_distributions: ArrayLike | None = None,
        cells: ArrayLike | None = None,
        shown: int | ArrayLike = 3,
        **options: Any,
    ) -> Self:
        """Compare a fitted calibrator with test labels; options as in `from_predictions`.

        This is about cells: predicted entropies come from the mixture of the cell, whatever the
        method, and not from the mixtures of its items.

        Parameters
        ----------
        calibrator : SnapshotCalibrator
            A fitted one.
        probabilities : array of shape (n_items, n_classes)
            Predictions for the test items.
        counts : array or sparse matrix of shape (n_items, n_classes)
            Their labels, not used to fit.
        label_distributions : array of shape (n_items, n_classes), optional
            The true label distributions, instead of `counts`.
        cells : array of shape (n_items,), optional
            Goes with a PrecomputedPartition.
        shown : int or array of int, default=3
            Numbers of the cells to show, or how many: those of highest predicted aleatoric
            uncertainty.
        **options
            For `from_predictions`.
        """
        p, where = locate_items(calibrator, probabilities, cells)
        measure = get_entropy(options.get("entropy", "shannon"), base=options.get("base"))
        by_cell = predictor_of(calibrator).cells
        # Where the order of the classes does not matter, the mixture over ranks serves as well.
        mixtures = by_cell.mixtures[where] if measure.symmetric else by_cell.of_items(p, where)
        return cls.from_predictions(
            mixtures,
            counts,
            label_distributions=label_distributions,
            cells=where,
            shown=shown,
            **options,
        )

    @classmethod
    def from_predictions(
        cls,
        mixtures: Mixtures,
        counts: Any = None,
        *,
        label_distributions: ArrayLike | None = None,
        cells: ArrayLike | None = None,
        shown: int | ArrayLike = 3,
        min_items: int = 30,
        entropy: str | Entropy = "shannon",
        base: float | None = None,
        n_bins: int = 20,
        confidence: float = 0.95,
        n_resamples: int = 200,
        random_state: Any = None,
    ) -> Self:
        """Compare mixtures of any origin, one per item, with test labels.

        Parameters
        ----------
        mixtures : Mixtures
            Predictions.
        counts : array or sparse matrix of shape (n_items, n_classes)
            Labels of the items, not used to fit.
        label_distributions : array of shape (n_items, n_classes), optional
            The true label distributions, instead of `counts`.
        cells : array of shape (n_items,), optional
            Cell of each item; items that share a stored mixture by default.
        shown : int or array of int, default=3
            Numbers of the cells to show, or how many: those of highest predicted aleatoric
            uncertainty.
        min_items : int, default=30
            Fewest items of a cell that is chosen for its uncertainty.
        entropy : str or Entropy, default="shannon"
            Measure of uncertainty.
        base : float, optional
            Base of Shannon's logarithm, 2 for bits.
        n_bins : int, default=20
            Bins of entropy from 0 to the largest one seen or drawn.
        confidence : float, default=0.95
            Of the band.
        n_resamples : int, default=200
            Draws from the prediction for each item.
        random_state : int, Generator or None
            Seed or source of randomness.
        """
        check_some_mixtures(mixtures)
        labels, totals = _labels(counts, label_distributions, mixtures.n_classes)
        name = "counts" if label_distributions is None else "label_distributions"
        check_same_length(mixtures, labels, ("mixtures", name))
        where = check_cells(mixtures.index if cells is None else cells, len(mixtures))
        measure = get_entropy(entropy, base=base)
        generator = check_random_state(random_state)
        fewest = check_integer(min_items, "min_items", minimum=1)
        chosen = _choose(mixtures, measure, where, shown, fewest)
        size = check_n_resamples(n_resamples)
        delta = 1 - check_fraction(confidence, "confidence")
        bins = check_n_bins(n_bins)
        rows = [generator.permutation(np.flatnonzero(where == cell)) for cell in chosen]
        seen = [measure.value(labels[own], check_input=False) for own in rows]
        drawn = [_draw(mixtures, totals, own[:MAX_DRAWN], measure, size, generator) for own in rows]
        return cls._of(chosen, seen, drawn, _edges([*seen, *drawn], bins), measure, delta)

    @classmethod
    def _of(
        cls,
        cells: Index,
        seen: list[Array],
        drawn: list[Array],
        edges: Array,
        measure: Entropy,
        delta: float,
    ) -> Self:
        """Count the entropies of each cell, (n_items,) seen and (n_resamples, n_drawn) drawn."""
        n_items = np.array([len(own) for own in seen])
        shares = [np.stack([_histogram(each, edges) for each in own]) for own in drawn]
        bands = [
            chance_band(scale_noise(each, min(n, MAX_DRAWN), n), delta)
            for each, n in zip(shares, n_items, strict=True)
        ]
        return cls(
            cells=cells,
            n_items=n_items,
            edges=edges,
            predicted=np.stack([each.mean(axis=0) for each in shares]),
            observed=np.stack([_histogram(each, edges) for each in seen]),
            band=np.stack(bands, axis=1),
            predicted_mean=np.array([each.mean() for each in drawn]),
            observed_mean=np.array([each.mean() for each in seen]),
            entropy=measure,
            confidence=1 - delta,
        )

    def plot(self, ax: Axes | Sequence[Axes] | None = None, *, title: str | None = None) -> Self:
        """Draw the cells side by side.

        Parameters
        ----------
        ax : matplotlib Axes or sequence of them, optional
            One for each cell; a new figure by default.
        title : str, optional
            Title of the figure.

        Returns
        -------
        EntropyDistributionDisplay
            Itself, with `axes_`, `ax_` (the first of them) and `figure_`.
        """
        self.axes_ = list(self._start_row(ax, len(self.cells), width=3.6, height=4))
        for place, panel in enumerate(self.axes_):
            self._draw_cell(panel, place)
        top = 1.05 * max(self.predicted.max(), self.observed.max(), self.band.max())
        for panel in self.axes_:
            panel.set(ylim=(0, top), xlim=(0, self.edges[-1]))
        self.axes_[0].set_ylabel("share of the items of the cell")
        self._finish_row(self.axes_, title)
        return self

    def _draw_cell(self, ax: Axes, place: int) -> None:
        colour = ink(ax)
        ax.stairs(
            self.band[1, place],
            self.edges,
            baseline=self.band[0, place],
            fill=True,
            color=colour,
            alpha=0.2,
            label=f"predicted, {self.confidence:.0%} of chance",
        )
        ax.stairs(self.predicted[place], self.edges, color=colour, lw=1.2, label="predicted")
        ax.stairs(self.observed[place], self.edges, color=blue(ax), lw=2, label="observed")
        ax.axvline(
            self.predicted_mean[place], color=colour, lw=1.2, ls="--", label="predicted mean"
        )
        ax.axvline(self.observed_mean[place], color=blue(ax), lw=2, ls=":", label="observed mean")
        ax.set(xlabel=axis_label("entropy of an item's labels", self.entropy))
        ax.set_title(
            f"cell {self.cells[place]}, {counted(self.n_items[place], 'item')}", fontsize="medium"
        )


def _labels(
    counts: Any, label_distributions: ArrayLike | None, n_classes: int
) -> tuple[Array, IntArray | None]:
    """Return label shares, and how many labels they stand for unless they are the truth."""
    if (counts is None) == (label_distributions is None):
        rule = "must be given, or `label_distributions` instead of it, and not both"
        raise InputError("counts", rule)
    if label_distributions is not None:
        name = "label_distributions"
        return check_simplex(label_distributions, name, ndim=2, n_classes=n_classes), None
    checked = check_dense_counts(counts, n_classes=n_classes)
    totals = checked.sum(axis=1)
    return np.asarray(checked / totals[:, None]), totals


def _choose(
    mixtures: Mixtures, measure: Entropy, cells: Index, shown: int | ArrayLike, min_items: int
) -> Index:
    """Return the cells to show."""
    n_items = np.bincount(cells)
    if not (shown is None or np.isscalar(shown)):
        numbers = check_chosen(shown, "shown", len(n_items))
        empty = numbers[n_items[numbers] == 0]
        if len(empty):
            value = f"{empty[0]}, which has none"
            raise InputError("shown", "must name cells with items", value=value)
        return numbers
    n_shown = check_integer(shown, "shown", minimum=1)
    large = np.flatnonzero(n_items >= min_items)
    if not len(large):
        value = f"{min_items} with {n_items.max()} at most"
        raise InputError("min_items", "must leave a cell to show", value=value)
    aleatoric = np.bincount(cells, decompose(mixtures, measure).aleatoric)[large] / n_items[large]
    return large[np.argsort(-aleatoric, kind="stable")[:n_shown]]


def _draw(
    mixtures: Mixtures,
    totals: IntArray | None,
    items: Index,
    measure: Entropy,
    n_resamples: int,
    generator: np.random.Generator,
) -> Array:
    """Return entropies of label shares drawn from the predictions, (n_resamples, n_items)."""
    entropies = np.empty((n_resamples, len(items)))
    own = mixtures[items]
    for each in entropies:
        if totals is None:
            shares = own.sample(random_state=generator)
        else:
            shares = own.draw(totals[items], random_state=generator) / totals[items, None]
        each[:] = measure.value(shares, check_input=False)
    return entropies


def _edges(entropies: list[Array], n_bins: int) -> Array:
    """Return the edges of bins from 0, or the least entropy below it, to the largest one."""
    low = min(float(each.min()) for each in entropies)
    high = max(float(each.max()) for each in entropies)
    return np.linspace(min(low, 0), high if high > 0 else 1, n_bins + 1)


def _histogram(values: Array, edges: Array) -> Array:
    """Return the share of values in each bin."""
    return np.asarray(np.histogram(values, edges)[0] / len(values))
