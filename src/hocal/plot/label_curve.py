"""What labels buy: the error of aleatoric uncertainty against the number of labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from hocal._base.errors import InputError
from hocal._base.shares import percent
from hocal._base.typing import Array, IntArray
from hocal._base.validation import (
    check_choice,
    check_dense_counts,
    check_fraction,
    check_integer,
    check_integers,
    check_number,
    check_random_state,
    check_repeats,
    check_same_length,
    check_simplex,
    check_weights,
)
from hocal.calibration.against_truth import aleatoric_error
from hocal.calibration.by_cell.empirical import borrow
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.cells.partitions import as_partition
from hocal.plot.canvas import STYLES, Display, Style, ink
from hocal.plot.inputs import check_some
from hocal.uncertainty.decomposition import Decomposition, decompose
from hocal.uncertainty.entropy import get_entropy
from hocal.uncertainty.mixtures import Mixtures
from hocal.uncertainty.snapshots import draw_snapshots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

__all__ = ["LabelCurve", "LabelCurveDisplay"]

# ticks of the error
_ROUND = [digit * 10.0**power for power in range(-6, 2) for digit in (1, 2, 5)]
PER_ITEM = "labels per item"
IN_ALL = "labels in all"


class LabelCurve(NamedTuple):
    """The errors of one method."""

    k: IntArray  #: (n_sizes,) labels per item, rising
    errors: Array  #: (n_sizes, n_splits)


@dataclass(eq=False, repr=False)
class LabelCurveDisplay(Display):
    """Error of the predicted aleatoric uncertainty against labels, for one method or several.

    The line is the mean over random splits, the shade the range that holds the given share of them.
    Splits of the same data overlap, so the shade shows how much a result depends on the split, not
    a confidence interval.

    Parameters
    ----------
    curves : dict of str to LabelCurve
        Errors by the name of the method.
    floor : float or None
        The error that more labels for the same items do not undercut.
    n_items : int or None
        Calibration items, to count labels in all.
    share : float
        Share of the splits inside the shade.
    unit : str
        Unit of the errors.

    Attributes
    ----------
    lines_ : dict of str to matplotlib Line2D
        The mean curves; only after `plot`.

    Examples
    --------
    >>> from hocal.plot import LabelCurveDisplay
    >>> theirs = {2: [0.10, 0.11], 5: [0.06, 0.07]}
    >>> ours = {2: [0.03, 0.02], 5: [0.02, 0.02]}
    >>> errors = {"the paper's": theirs, "hocal": ours}
    >>> display = LabelCurveDisplay.from_errors(errors, floor=0.02)
    >>> display.curves["hocal"].errors.mean(axis=1).tolist()
    [0.025, 0.02]
    >>> display.plot().ax_.get_xlabel()
    'labels per item'
    """

    curves: dict[str, LabelCurve]
    floor: float | None
    n_items: int | None
    share: float
    unit: str

    @classmethod
    def from_estimator(
        cls,
        calibrators: SnapshotCalibrator | Mapping[str, SnapshotCalibrator],
        probabilities: ArrayLike,
        counts: Any,
        *,
        k: ArrayLike = (2, 5, 10),
        n_splits: int = 10,
        replace: bool = False,
        share: float = 0.95,
        random_state: Any = None,
    ) -> Self:
        """Fit on half of the items with k labels each, measure on the other half with all labels.

        The floor is the error of the empirical mixtures of the first half with all of its labels.

        Parameters
        ----------
        calibrators : SnapshotCalibrator or dict of them
            What to compare; clones are fitted, these are left alone.
        probabilities : array of shape (n_items, n_classes)
            Predictions.
        counts : array or sparse matrix of shape (n_items, n_classes)
            Labels, many more per item than the largest k, because their histograms stand for the
            truth.
        k : array of int, default=(2, 5, 10)
            Labels per item to fit with.
        n_splits : int, default=10
            Random halves.
        replace : bool, default=False
            Whether a label may be drawn twice, as in the paper.
        share : float, default=0.95
            Share of the splits inside the shade.
        random_state : int, Generator or None
            Seed or source of randomness.
        """
        p = check_simplex(probabilities, ndim=2)
        labels = check_dense_counts(counts, n_classes=p.shape[1])
        check_same_length(p, labels, ("probabilities", "counts"))
        named = _named(calibrators)
        check_some(k, "k")
        sizes = check_integers(k, "k", minimum=1)
        generator = check_random_state(random_state)
        errors: dict[str, dict[int, list[float]]] = {
            name: {size: [] for size in sizes} for name in named
        }
        floors = []
        first = next(iter(named.values()))
        for _ in range(check_repeats(n_splits, "n_splits")):
            halves = np.array_split(generator.permutation(len(p)), 2)
            fit, test = (_Half(p[rows], labels[rows]) for rows in halves)
            floors.append(_floor(first, fit, test))
            for size in sizes:
                few = draw_snapshots(fit.counts, size, replace=replace, random_state=generator)
                for name, calibrator in named.items():
                    errors[name][size].append(_error(calibrator, fit._replace(counts=few), test))
        n_fit = -(-len(p) // 2)  # the larger half
        return cls.from_errors(errors, floor=float(np.mean(floors)), n_items=n_fit, share=share)

    @classmethod
    def from_errors(
        cls,
        errors: Mapping[str, Mapping[int, ArrayLike]],
        *,
        floor: float | None = None,
        n_items: int | None = None,
        share: float = 0.95,
        unit: str = "nats",
    ) -> Self:
        """Take errors that were measured before.

        Parameters
        ----------
        errors : dict of dict
            For each method, the errors of the splits by the number of labels per item.
        floor : float, optional
            The error that more labels for the same items do not undercut.
        n_items : int, optional
            Calibration items, to count labels in all.
        share : float, default=0.95
            Share of the splits inside the shade.
        unit : str, default="nats"
            Unit of the errors.
        """
        if not isinstance(errors, Mapping):
            got = type(errors).__name__
            raise InputError("errors", "must be a dict of methods", value=got)
        if not errors:
            raise InputError("errors", "must hold at least one method", value="none")
        curves = {name: _curve(by_size, name) for name, by_size in errors.items()}
        limit = None if floor is None else check_number(floor, "floor", minimum=0)
        size = None if n_items is None else check_integer(n_items, "n_items", minimum=1)
        return cls(curves, limit, size, check_fraction(share, "share"), unit)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        against: Literal["labels per item", "labels in all"] = "labels per item",
        title: str | None = None,
    ) -> Self:
        """Draw the curves, on logarithmic axes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        against : {"labels per item", "labels in all"}
            The horizontal axis; labels in all need `n_items`.
        title : str, optional
            Title of the axes.

        Returns
        -------
        LabelCurveDisplay
            Itself, with `ax_` and `figure_`.
        """
        check_choice(against, "against", (PER_ITEM, IN_ALL))
        factor = 1 if against == PER_ITEM else self.n_items
        if factor is None:
            rule = f"must be {PER_ITEM!r} unless n_items is known"
            raise InputError("against", rule, value=repr(against))
        ax = self._start(ax)
        self.lines_: dict[str, Line2D] = {}
        for (name, curve), style in zip(self.curves.items(), cycle(STYLES), strict=False):
            self._draw_curve(ax, name, curve, style, factor)
        if self.floor is not None:
            words = "with all labels of these items"
            ax.axhline(self.floor, color=ink(ax), lw=1, ls=":", label=words)
        self._label_axes(ax, against, factor)
        shaded = any(curve.errors.shape[1] > 1 for curve in self.curves.values())
        note = f"shade: {percent(self.share)} of the splits" if shaded else None
        self._finish(ax, title, note)
        return self

    def _draw_curve(
        self, ax: Axes, name: str, curve: LabelCurve, style: Style, factor: int
    ) -> None:
        """Draw the mean of one method, and the range of its splits where there are several."""
        x = factor * curve.k
        look: dict[str, Any] = {"color": style.colour, "marker": style.marker, "ls": style.line}
        mean = curve.errors.mean(axis=1)
        self.lines_[name] = ax.plot(x, mean, label=name, lw=1.8, **look)[0]
        if curve.errors.shape[1] > 1:
            shares = [(1 - self.share) / 2, (1 + self.share) / 2]
            ends = np.quantile(curve.errors, shares, axis=1)
            ax.fill_between(x, *ends, color=style.colour, alpha=0.2, lw=0)

    def _label_axes(self, ax: Axes, against: str, factor: int) -> None:
        from matplotlib.ticker import NullLocator

        positive = any((curve.errors > 0).any() for curve in self.curves.values())
        ax.set(
            xscale="log",
            yscale="log" if positive else "linear",
            xlabel=against,
            ylabel=f"error of aleatoric uncertainty ({self.unit})",
        )
        sizes = np.unique(np.concatenate([curve.k for curve in self.curves.values()])) * factor
        ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
        ax.xaxis.set_minor_locator(NullLocator())
        low, high = ax.get_ylim()
        ticks = [tick for tick in _ROUND if low <= tick <= high]
        ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.yaxis.set_minor_locator(NullLocator())


class _Half(NamedTuple):
    """The items of one half of a split."""

    probabilities: Array
    counts: IntArray


def _named(calibrators: Any) -> dict[str, SnapshotCalibrator]:
    """Return calibrators by their names; a single one is called by its method."""
    named = (
        dict(calibrators)
        if isinstance(calibrators, Mapping)
        else {getattr(calibrators, "method", ""): calibrators}
    )
    wrong = [each for each in named.values() if not isinstance(each, SnapshotCalibrator)]
    if wrong or not named:
        got = type(wrong[0]).__name__ if wrong else "an empty dict"
        rule = "must be a SnapshotCalibrator or a dict of them"
        raise InputError("calibrators", rule, value=got)
    return named


def _curve(by_size: Mapping[int, ArrayLike], name: str) -> LabelCurve:
    """Return the errors of one method in order of the number of labels."""
    argument = f"errors[{name!r}]"
    if not isinstance(by_size, Mapping):
        got = type(by_size).__name__
        raise InputError(argument, "must be a dict of numbers of labels", value=got)
    for size in by_size:
        why = "Its keys are numbers of labels per item."
        check_integer(size, argument, minimum=1, why=why)
    sizes = sorted(by_size)
    rows = [check_weights(by_size[size], f"{argument}[{size}]") for size in sizes]
    lengths = [len(row) for row in rows]
    if len(set(lengths)) != 1:
        rule = "must have the same number of splits for each k"
        raise InputError(argument, rule, value=str(lengths))
    return LabelCurve(np.array(sizes, dtype=np.int64), np.stack(rows))


def _error(calibrator: SnapshotCalibrator, fit: _Half, test: _Half) -> float:
    """Fit a clone on one half and return the item-averaged error on the other."""
    fitted = clone(calibrator).fit(fit.probabilities, fit.counts)
    parts = fitted.decompose(test.probabilities)
    return aleatoric_error(parts, test.counts, cells=fitted.partition_.assign(test.probabilities))


def _floor(calibrator: SnapshotCalibrator, fit: _Half, test: _Half) -> float:
    """Return the error of the entropies of the first half's own histograms."""
    partition = clone(as_partition(calibrator.partition)).fit(fit.probabilities)
    cells = partition.assign(fit.probabilities)
    where = partition.assign(test.probabilities)
    mixtures = Mixtures.from_snapshots(fit.counts, cells, n_cells=partition.n_cells_).stored()
    has_items = np.bincount(cells, minlength=partition.n_cells_) > 0
    source = borrow(has_items, partition.layout_)[where]
    pooled = decompose(Mixtures.from_snapshots(fit.counts)[:1]).aleatoric[0]
    aleatoric = np.where(source < 0, pooled, decompose(mixtures).aleatoric[source])
    parts = Decomposition(
        predictive=aleatoric,
        aleatoric=aleatoric,
        epistemic=np.zeros_like(aleatoric),
        entropy=get_entropy("shannon"),
        kind="mutual-information",
    )
    return aleatoric_error(parts, test.counts, cells=where)
