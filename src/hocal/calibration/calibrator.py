"""Calibrate a first-order predictor to a higher-order one from a few labels per item."""

from __future__ import annotations

import warnings
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

from hocal._base.errors import InputError, OneLabelWarning
from hocal._base.notebook import FittedInNotebooks, fitted_table
from hocal._base.typing import Array, Index
from hocal._base.validation import (
    check_choice,
    check_counts,
    check_integer,
    check_same_length,
    check_simplex,
)
from hocal.calibration.deconvolution import deconvolve
from hocal.calibration.empirical import borrow, empirical_mixtures
from hocal.calibration.evaluation import CalibrationError, calibration_error
from hocal.cells.partitions import as_partition
from hocal.cells.protocol import Partition
from hocal.cells.statistics import CellStatistics, align_counts, item_blocks, rank_classes
from hocal.guarantees import certificates
from hocal.guarantees.certificates import Certificate
from hocal.uncertainty.decomposition import Decomposition, decompose
from hocal.uncertainty.entropy import Custom, Entropy
from hocal.uncertainty.mixtures import Mixtures
from hocal.uncertainty.sets import PredictionSets, predict_set
from hocal.uncertainty.snapshots import compress

__all__ = ["Located", "SnapshotCalibrator", "fitted_html"]

METHODS = ("deconvolved", "empirical")
THINNINGS = ("exact", "draw")
MAX_NUMBERS = 250_000_000  # in the atoms of predicted mixtures: 2 GB
_ONE_LABEL = (
    "No item has two labels, and one label cannot tell disagreement from ignorance: how the "
    "uncertainty is split rests on the method alone. Collect a second label for some of the "
    "items."
)


class Located(NamedTuple):
    """Predictions and where they belong."""

    probabilities: Array  #: (n_items, n_classes), checked
    cells: Index  #: (n_items,)


class SnapshotCalibrator(FittedInNotebooks, BaseEstimator):
    """Turn predictions and a few labels per item into mixtures: disagreement apart from ignorance.

    Items are sorted into cells by their prediction. For each cell the distribution of the true
    label distributions is estimated from the labels of its calibration items; items with the same
    prediction share it. Labels of one item must be independent of each other given the item.

    Parameters
    ----------
    partition : Partition or callable, optional
        How predictions are sorted into cells; ten slices for each top label by default.
    method : {"deconvolved", "empirical"}
        "deconvolved" estimates the mixture that generated the labels and uses every label of every
        item. "empirical" is the paper's method: the histogram of k-snapshots itself, which sees too
        little disagreement when labels are few. Where all items have one label, neither can know:
        the first then reports what its prior guesses, the second none; the certificate says that
        nothing is certain.
    k : int, optional
        Snapshot size for "empirical"; the smallest number of labels of an item by default.
    thinning : {"exact", "draw"}
        For "empirical" and items with more than k labels: count all their k-snapshots, or draw one.
    panel_size : int, optional
        Report aleatoric uncertainty as a panel of this many annotators would show it.
    random_state : int, Generator or None
        For ``thinning="draw"``; everything else is deterministic.

    Attributes
    ----------
    partition_ : Partition
        The fitted partition.
    statistics_ : CellStatistics
        All that the fit used of the data.
    cell_mixtures_ : Mixtures
        One mixture per cell; for "deconvolved", of label distributions in order of falling
        prediction.
    source_ : ndarray of str of shape (n_cells,)
        "cell" where a cell has items of its own, else "neighbours" or "pool".
    diagnostics_ : dict
        How the fit went: the snapshot size, or the amount of shrinkage and the convergence of the
        solver.

    Examples
    --------
    A model says 50% for all. Two people agree half of the time on the first items, always on the
    others.

    >>> import hocal
    >>> p, calibrator = [[0.5, 0.5]] * 400, hocal.SnapshotCalibrator()
    >>> ambiguous = [[2, 0]] * 100 + [[1, 1]] * 200 + [[0, 2]] * 100
    >>> clear = [[2, 0]] * 200 + [[0, 2]] * 200
    >>> for counts in (ambiguous, clear):
    ...     parts = calibrator.fit(p, counts).decompose(p, base=2)
    ...     print(f"{parts.aleatoric[0]:.1f}")
    1.0
    0.0
    """

    partition_: Partition
    statistics_: CellStatistics
    cell_mixtures_: Mixtures
    source_: NDArray[np.str_]
    diagnostics_: dict[str, Any]

    def __init__(
        self,
        partition: Any = None,
        *,
        method: Literal["deconvolved", "empirical"] = "deconvolved",
        k: int | None = None,
        thinning: Literal["exact", "draw"] = "exact",
        panel_size: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.partition = partition
        self.method = method
        self.k = k
        self.thinning = thinning
        self.panel_size = panel_size
        self.random_state = random_state

    def fit(self, probabilities: ArrayLike, counts: Any, *, cells: ArrayLike | None = None) -> Self:
        """Calibrate on predictions (n_items, n_classes) and label counts of the same shape.

        The model must not have been trained on these items. Counts may be dense or sparse; `cells`
        goes with a PrecomputedPartition.
        """
        p = _check_predictions(probabilities)
        self.partition_ = clone(as_partition(self.partition)).fit_checked(p)
        return self._fit(self._count(p, counts, cells))

    def partial_fit(
        self, probabilities: ArrayLike, counts: Any, *, cells: ArrayLike | None = None
    ) -> Self:
        """Add items to those seen before; the result is the same as fitting on all at once.

        A partition that learns from predictions (quantiles, k-means) learns from the first batch
        only.
        """
        if not hasattr(self, "statistics_"):
            return self.fit(probabilities, counts, cells=cells)
        p = _check_predictions(probabilities, self.statistics_.n_classes)
        return self._fit(self.statistics_ + self._count(p, counts, cells))

    def fit_statistics(self, statistics: CellStatistics) -> Self:
        """Calibrate from statistics gathered elsewhere with this calibrator's partition."""
        self.partition_ = _partition_for(statistics, as_partition(self.partition))
        return self._fit(statistics)

    def locate(self, probabilities: ArrayLike, cells: ArrayLike | None = None) -> Located:
        """Return the predictions after checking them, and the cell of each item."""
        self._check_fitted()
        p = _check_predictions(probabilities, self.statistics_.n_classes)
        return Located(p, self.partition_.assign_checked(p, cells))

    def predict_mixture(
        self, probabilities: ArrayLike, *, cells: ArrayLike | None = None
    ) -> Mixtures:
        """Return the calibrated mixture of each item, in class order."""
        p, where = self.locate(probabilities, cells)
        if self.method == "empirical":
            return self.cell_mixtures_[where]
        return _unalign(self.cell_mixtures_[where], rank_classes(p))

    def predict_proba(self, probabilities: ArrayLike, *, cells: ArrayLike | None = None) -> Array:
        """Return the mean of each item's mixture, a calibrated first-order prediction."""
        p, where = self.locate(probabilities, cells)
        means = self.cell_mixtures_.mean()
        if self.method == "empirical":
            return means[where]
        result = np.empty_like(p)
        for block in item_blocks(p):
            np.put_along_axis(result[block], rank_classes(p[block]), means[where[block]], axis=1)
        return result

    def decompose(
        self,
        probabilities: ArrayLike,
        entropy: str | Entropy = "shannon",
        *,
        base: float | None = None,
        kind: Any = "mutual-information",
        cells: ArrayLike | None = None,
    ) -> Decomposition:
        """Split the uncertainty of each item; options as in `hocal.decompose`."""
        if isinstance(entropy, Custom):
            # It may treat classes differently, so it needs them in their order.
            mixtures = self.predict_mixture(probabilities, cells=cells)
        else:
            _, where = self.locate(probabilities, cells)
            mixtures = self.cell_mixtures_[where]
        return decompose(mixtures, entropy, base=base, kind=kind, panel_size=self.panel_size)

    def predict_set(
        self,
        probabilities: ArrayLike,
        *,
        coverage: float = 0.9,
        shape: Any = "atoms",
        cells: ArrayLike | None = None,
    ) -> PredictionSets:
        """Return a set of label distributions with the given mass for each item."""
        return predict_set(
            self.predict_mixture(probabilities, cells=cells), coverage=coverage, shape=shape
        )

    def calibration_error(
        self,
        probabilities: ArrayLike,
        counts: Any,
        *,
        k: int | None = None,
        cells: ArrayLike | None = None,
        n_resamples: int = 100,
        random_state: Any = None,
    ) -> CalibrationError:
        """Measure calibration on test items, cell by cell; options as in `hocal.calibration_error`.

        For "deconvolved" both sides have the classes in order of falling prediction, so that one
        mixture per cell suffices however many items there are. "empirical" predicts snapshots, of
        the k of its fit.
        """
        p, where = self.locate(probabilities, cells)
        checked = check_counts(counts, n_classes=p.shape[1])
        check_same_length(p, checked, ("probabilities", "counts"))
        snapshots = self.method == "empirical"
        return calibration_error(
            self.cell_mixtures_[where],
            checked if snapshots else align_counts(p, checked),
            k=self.diagnostics_["k"] if snapshots and k is None else k,
            cells=where,
            n_cells=self.statistics_.n_cells,
            predictor="snapshot" if snapshots else "mixture",
            n_resamples=n_resamples,
            random_state=random_state,
        )

    def certify(
        self, confidence: float = 0.95, *, simultaneous: bool = False, k: int | None = None
    ) -> Certificate:
        """Say what the calibration labels prove about each cell; as `hocal.guarantees.certify`."""
        self._check_fitted()
        return certificates.certify(
            self.statistics_,
            self.cell_mixtures_,
            confidence=confidence,
            simultaneous=simultaneous,
            aligned=self.method == "deconvolved",
            k=k,
            snapshot_size=self.diagnostics_.get("k"),
            source=self.source_,
        )

    def _fitted_html(self) -> str:
        return fitted_html(self)

    def _count(self, p: Array, counts: Any, cells: ArrayLike | None) -> CellStatistics:
        checked = check_counts(counts, n_classes=p.shape[1])
        check_same_length(p, checked, ("probabilities", "counts"))
        where = self.partition_.assign_checked(p, cells)
        return CellStatistics.from_checked(p, checked, where, self.partition_.layout_)

    def _fit(self, statistics: CellStatistics) -> Self:
        check_choice(self.method, "method", METHODS)
        check_choice(self.thinning, "thinning", THINNINGS)
        if statistics.observed.totals.max() == 1:
            warnings.warn(_ONE_LABEL, OneLabelWarning, stacklevel=3)
        fit = self._fit_empirical if self.method == "empirical" else self._fit_deconvolved
        self.cell_mixtures_, self.source_, self.diagnostics_ = fit(statistics)
        self.statistics_ = statistics
        return self

    def _fit_empirical(
        self, statistics: CellStatistics
    ) -> tuple[Mixtures, NDArray[np.str_], dict[str, Any]]:
        smallest = statistics.smallest_total
        why = "It is the smallest number of labels of an item."
        k = (
            smallest
            if self.k is None
            else check_integer(self.k, "k", minimum=1, maximum=smallest, why=why)
        )
        source = borrow(statistics.n_items > 0, statistics.layout)
        mixtures = empirical_mixtures(
            statistics.observed, source, k, thinning=self.thinning, random_state=self.random_state
        )
        return mixtures, _source_names(source), {"k": k}

    def _fit_deconvolved(
        self, statistics: CellStatistics
    ) -> tuple[Mixtures, NDArray[np.str_], dict[str, Any]]:
        cells, counts, multiplicity = statistics.aligned
        # Threads on matrices this small cost more than they bring.
        with threadpool_limits(1, user_api="blas"):
            fit = deconvolve(
                counts,
                cells,
                multiplicity,
                group=statistics.layout.group,
                level=statistics.layout.level,
                mean_prediction=statistics.mean_prediction,
            )
        mixtures = Mixtures.on_common_points(fit.atoms, fit.weights)
        return (
            mixtures,
            fit.source,
            {"scales": fit.scales, "gap": fit.gap, "n_iterations": fit.n_iterations},
        )

    def _check_fitted(self) -> None:
        if not hasattr(self, "cell_mixtures_"):
            raise NotFittedError(
                "This SnapshotCalibrator is not fitted yet. Call fit(probabilities, counts) first."
            )


def fitted_html(calibrator: SnapshotCalibrator) -> str:
    """Return what a notebook shows of a fitted calibrator; nothing of one that is not."""
    if not hasattr(calibrator, "cell_mixtures_"):
        return ""
    parts = decompose(calibrator.cell_mixtures_, panel_size=calibrator.panel_size)
    n_borrowed = int((calibrator.source_ != "cell").sum())
    return fitted_table(calibrator.statistics_, parts.as_dict(), n_borrowed=n_borrowed)


def _check_predictions(probabilities: Any, n_classes: int | None = None) -> Array:
    """Return one label distribution per item; say the way out where it is one step away."""
    if isinstance(probabilities, Mixtures):
        rule = "must be label distributions"
        raise InputError("probabilities", rule, value="Mixtures", remedy="Pass their mean().")
    if np.ndim(probabilities) == 3:
        raise InputError(
            "probabilities",
            "must have shape (n_items, n_classes)",
            value=np.shape(probabilities),
            remedy="Average the members of an ensemble first, as in probabilities.mean(axis=1).",
        )
    return check_simplex(probabilities, ndim=2, n_classes=n_classes)


def _source_names(source: Index) -> NDArray[np.str_]:
    own = source == np.arange(len(source))
    return np.where(own, "cell", np.where(source < 0, "pool", "neighbours"))


def _partition_for(statistics: CellStatistics, partition: Partition) -> Partition:
    """Return a fitted partition for statistics gathered elsewhere and check that it is theirs."""
    if not partition.is_fitted and partition.learns_from_predictions:
        raise InputError(
            "partition",
            "must be fitted before fit_statistics when it learns from predictions",
            value=f"a {type(partition).__name__} that is not",
            remedy="Fit it on predictions and use the same one for the statistics.",
        )
    n_classes = statistics.n_classes
    fitted = partition if partition.is_fitted else clone(partition).fit_classes(n_classes)
    same_layout = all(map(np.array_equal, fitted.layout_, statistics.layout))
    if fitted.n_classes_ != n_classes or not same_layout:
        raise InputError(
            "statistics",
            "must come from the calibrator's partition",
            value=f"{statistics.n_cells} cells of {n_classes} classes for {partition}",
        )
    return fitted


def _unalign(mixtures: Mixtures, ranking: Index) -> Mixtures:
    """Map mixtures over ranks to mixtures over classes, once per pair of mixture and ranking."""
    packed = compress(np.column_stack([mixtures.index, ranking]))
    pairs = np.asarray(packed.unique)
    row, atom, offsets = mixtures.pairs(pairs[:, 0])
    if len(row) * mixtures.n_classes > MAX_NUMBERS:
        raise InputError(
            "probabilities",
            "must have fewer distinct rankings in one call",
            value=f"{len(pairs)} with {len(row)} atoms",
            remedy="Predict in batches; decompose, predict_proba and calibration_error "
            "need no mixture per item.",
        )
    points = np.empty((len(row), mixtures.n_classes))
    for block in mixtures.blocks(pairs[:, 0]):
        own = slice(*offsets[[block.start, min(block.stop, len(pairs))]])
        np.put_along_axis(points[own], pairs[row[own], 1:], mixtures.points_at(atom[own]), axis=1)
    return Mixtures.trusted(points, mixtures.weights[atom], offsets, packed.inverse)
