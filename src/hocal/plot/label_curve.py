"""What labels buy: the error of aleatoric uncertainty against the number of labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from hocal._base.typing import Array, IntArray
from hocal._base.validation import (
    check_choice,
    check_dense_counts,
    check_fraction,
    check_integer,
    check_number,
    check_random_state,
    check_same_length,
    check_simplex,
    check_weights,
)
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.calibration.empirical import borrow
from hocal.calibration.evaluation import aleatoric_error
from hocal.cells.partitions import as_partition
from hocal.plot.canvas import STYLES, Display, ink
from hocal.plot.inputs import check_some
from hocal.uncertainty.decomposition import Decomposition, decompose
from hocal.uncertainty.entropy import get_entropy
from hocal.uncertainty.mixtures import Mixtures
from hocal.uncertainty.snapshots import draw_snapshots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

__all__ = ["LabelCurve", "LabelCurveDisplay"]

_ROUND = [
    digit * 10.0**power for power in range(-6, 2) for digit in (1, 2, 5)
]  # ticks of the error


class LabelCurve(NamedTuple):
    """The errors of one method."""

    k: IntArray  #: (n_sizes,) labels an item, rising
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
    >>> errors = {"the paper's": {2: [0.10, 0.11], 5: [0.06, 0.07]}, "hocal": {2: [0.03, 0.02], 5: [0.02, 0.02]}}
    >>> display = LabelCurveDisplay.from_errors(errors, floor=0.02)
    >>> display.curves["hocal"].errors.mean(axis=1).tolist()
    [0.025, 0.02]
    >>> display.plot().ax_.get_xlabel()
    'labels an item'
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
        """Fit on one half of the items with k labels each, measure on the other half with all of its labels.

        The floor is the error of the empirical mixtures of the first half with all of its labels.

        Parameters
        ----------
        calibrators : SnapshotCalibrator or dict of them
            What to compare; clones are fitted, these are left alone.
        probabilities : array of shape (n_items, n_classes)
            Predictions.
        counts : array or sparse matrix of shape (n_items, n_classes)
            Labels, many more an item than the largest k, because their histograms stand for the
            truth.
        k : array of int, default=(2, 5, 10)
            Labels an item to fit with.
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
        sizes = [check_integer(size, "k", minimum=1) for size in np.asarray(k).reshape(-1).tolist()]
        generator = check_random_state(random_state)
        errors: dict[str, dict[int, list[float]]] = {
            name: {size: [] for size in sizes} for name in named
        }
        floors = []
        for _ in range(check_integer(n_splits, "n_splits", minimum=1)):
            fit, test = np.array_split(generator.permutation(len(p)), 2)
            floors.append(
                _floor(next(iter(named.values())), (p[fit], labels[fit]), (p[test], labels[test]))
            )
            for size in sizes:
                few = draw_snapshots(labels[fit], size, replace=replace, random_state=generator)
                for name, calibrator in named.items():
                    errors[name][size].append(
                        _error(calibrator, (p[fit], few), (p[test], labels[test]))
                    )
        return cls.from_errors(
            errors, floor=float(np.mean(floors)), n_items=-(-len(p) // 2), share=share
        )

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
            For each method, the errors of the splits by the number of labels an item.
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
            raise ValueError(f"`errors` must be a dict of methods, got {type(errors).__name__}.")
        if not errors:
            raise ValueError("`errors` must hold at least one method, got none.")
        curves = {name: _curve(by_size, name) for name, by_size in errors.items()}
        limit = None if floor is None else check_number(floor, "floor", minimum=0)
        size = None if n_items is None else check_integer(n_items, "n_items", minimum=1)
        return cls(curves, limit, size, check_fraction(share, "share"), unit)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        against: Literal["labels an item", "labels in all"] = "labels an item",
        title: str | None = None,
    ) -> Self:
        """Draw the curves, on logarithmic axes.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        against : {"labels an item", "labels in all"}
            The horizontal axis; labels in all need `n_items`.
        title : str, optional
            Title of the axes.

        Returns
        -------
        LabelCurveDisplay
            Itself, with `ax_` and `figure_`.
        """
        check_choice(against, "against", ("labels an item", "labels in all"))
        if against == "labels in all" and self.n_items is None:
            raise ValueError(
                "`against` must be 'labels an item' unless n_items is known, got 'labels in all'."
            )
        factor = 1 if against == "labels an item" or self.n_items is None else self.n_items
        ax = self._start(ax)
        self.lines_: dict[str, Line2D] = {}
        for (name, curve), style in zip(self.curves.items(), cycle(STYLES), strict=False):
            look: dict[str, Any] = {
                "color": style.colour,
                "marker": style.marker,
                "ls": style.line,
                "lw": 1.8,
            }
            self.lines_[name] = ax.plot(
                factor * curve.k, curve.errors.mean(axis=1), label=name, **look
            )[0]
            if curve.errors.shape[1] > 1:
                ends = np.quantile(
                    curve.errors, [(1 - self.share) / 2, (1 + self.share) / 2], axis=1
                )
                ax.fill_between(factor * curve.k, *ends, color=style.colour, alpha=0.2, lw=0)
        if self.floor is not None:
            ax.axhline(
                self.floor, color=ink(ax), lw=1, ls=":", label="with all labels of these items"
            )
        self._label_axes(ax, against, factor)
        if title is not None:
            ax.set_title(title)
        return self

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
        shaded = any(curve.errors.shape[1] > 1 for curve in self.curves.values())
        note = f"shade: {self.share:.0%} of the splits" if shaded else None
        self._legend(ax, note)


Items = tuple[Array, IntArray]  # predictions and labels


def _named(calibrators: Any) -> dict[str, SnapshotCalibrator]:
    """Return calibrators by their names; a single one is called by its method."""
    given = (
        calibrators
        if isinstance(calibrators, Mapping)
        else {getattr(calibrators, "method", ""): calibrators}
    )
    wrong = [
        calibrator
        for calibrator in given.values()
        if not isinstance(calibrator, SnapshotCalibrator)
    ]
    if wrong or not given:
        got = type(wrong[0]).__name__ if wrong else "an empty dict"
        raise ValueError(
            f"`calibrators` must be a SnapshotCalibrator or a dict of them, got {got}."
        )
    return dict(given)


def _curve(by_size: Mapping[int, ArrayLike], name: str) -> LabelCurve:
    """Return the errors of one method in order of the number of labels."""
    for size in by_size:
        check_integer(
            size, f"errors[{name!r}]", minimum=1, why="Its keys are numbers of labels an item."
        )
    sizes = sorted(by_size)
    rows = [check_weights(by_size[size], f"errors[{name!r}][{size}]") for size in sizes]
    if not rows or len({len(row) for row in rows}) > 1:
        raise ValueError(
            f"`errors[{name!r}]` must have the same number of splits for each k, got {[*map(len, rows)]}."
        )
    return LabelCurve(np.array(sizes, dtype=np.int64), np.stack(rows))


def _error(calibrator: SnapshotCalibrator, fit: Items, test: Items) -> float:
    """Fit a clone on one half and return the item-averaged error on the other."""
    fitted = clone(calibrator).fit(*fit)
    return aleatoric_error(
        fitted.decompose(test[0]), test[1], cells=fitted.partition_.assign(test[0])
    )


def _floor(calibrator: SnapshotCalibrator, fit: Items, test: Items) -> float:
    """Return the error of the entropies of the first half's own histograms."""
    partition = clone(as_partition(calibrator.partition)).fit(fit[0])
    cells = partition.assign(fit[0])
    where = partition.assign(test[0])
    mixtures = Mixtures.from_snapshots(fit[1], cells, n_cells=partition.n_cells_).stored()
    source = borrow(np.bincount(cells, minlength=partition.n_cells_) > 0, partition.layout_)[where]
    pool = Mixtures.from_snapshots(fit[1])[:1]
    aleatoric = np.where(
        source < 0, decompose(pool).aleatoric[0], decompose(mixtures).aleatoric[source]
    )
    parts = Decomposition(
        aleatoric, aleatoric, np.zeros_like(aleatoric), get_entropy("shannon"), "mutual-information"
    )
    return aleatoric_error(parts, test[1], cells=where)
