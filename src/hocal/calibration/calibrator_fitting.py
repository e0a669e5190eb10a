"""Fit a calibrator: on items, on items that come in parts, or on statistics of cells."""

from __future__ import annotations

import math
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.errors import InputError, OneLabelWarning
from hocal._base.typing import Array, Counts, Index
from hocal._base.validation import check_kind
from hocal.calibration.by_cell.fitting import (
    CellFit,
    class_orders,
    fit_deconvolved,
    fit_empirical,
    put_in_order,
)
from hocal.calibration.by_item.fitting import FEWEST_ITEMS
from hocal.calibration.calibrator_state import (
    CalibratorState,
    assign_cells,
    cells_given,
    check_parameters,
    expected_shape,
    predictor_of,
)
from hocal.calibration.first_order.temperature import fit_temperature
from hocal.calibration.inputs import (
    GivenItems,
    InputShape,
    check_items,
    check_labels,
    choose_partition,
    partition_of,
)
from hocal.calibration.item_fit import fit_with_folds
from hocal.calibration.reference import Reference, learn_reference, reference_means, thinned
from hocal.calibration.seen_items import SeenItems
from hocal.cells.partitions import as_partition
from hocal.cells.statistics import CellStatistics

__all__ = ["CalibratorFitting"]

_ONE_LABEL = (
    "No item has two labels, and one label cannot tell disagreement from ignorance: how the "
    "uncertainty is split rests on the method alone. Collect a second label for some of the "
    "items."
)
_NO_ITEMS = (
    'Without the items themselves, method="items" gives every item the mixture of its cell. '
    'Pass method="cells" to say that this is meant, or fit on predictions and counts.'
)


class CalibratorFitting(CalibratorState):
    """What `SnapshotCalibrator` learns, and from what."""

    def fit(
        self,
        probabilities: ArrayLike,
        counts: Any,
        *,
        features: ArrayLike | None = None,
        cells: ArrayLike | None = None,
        by: ArrayLike | None = None,
    ) -> Self:
        """Calibrate on predictions and labels of the same items.

        The model must not have been trained on these items.

        Parameters
        ----------
        probabilities : array of shape (n_items, n_classes) or (n_items, n_members, n_classes)
            Predictions, or those of each member of an ensemble, whose mean is the prediction.
        counts : array or sparse matrix of shape (n_items, n_classes)
            How often people gave each label; rows may have different totals.
        features : array of shape (n_items, n_features), optional
            Whatever else is known about the items, as numbers: an embedding, say. For
            ``method="items"``. Units and origins do not matter: each column is standardised by its
            mean and spread here, and a value further than 30 spreads from the mean counts as one
            at 30. A column that is constant here tells nothing of later items.
        cells : array of shape (n_items,), optional
            The cells of a PrecomputedPartition.
        by : array of shape (n_items,), optional
            The group of each item, such as the aspect that was judged: cells are crossed with the
            groups, and "items" learns what they differ in. A pandas series gives them its name.
            Whoever predicts later must name groups as well, and of these only.

        Returns
        -------
        self : SnapshotCalibrator
            Fitted.
        """
        check_parameters(self)
        given = check_items(probabilities, features)
        if given.features is not None and self.method != "items":
            rule = 'must be left out unless method="items"'
            raise InputError("features", rule, value=f"method={self.method!r}")
        labels = check_labels(counts, given)
        self.partition_ = choose_partition(self.partition, by).fit_checked(given.mean)
        where = assign_cells(self, given, cells, by)
        given = given.beside(self.partition_.item_columns(where))
        cells_fit = self._fit_cells(self._count(given, labels, where))
        self.input_shape_ = given.shape
        self._forget_items()
        self.temperature_ = fit_temperature(given.mean, labels)
        folds = None
        if self.method == "items" and len(given) >= FEWEST_ITEMS:
            folds = self._fit_items(given, labels, where, cells_fit.levels())
        else:
            self.seen_ = SeenItems.without_labels(given)
        self.cell_mixtures_ = cells_fit.mixtures()  # large, and of no use to the fit of items
        self.reference_ = self._refer(given, labels, where, folds)
        return self

    def partial_fit(
        self,
        probabilities: ArrayLike,
        counts: Any,
        *,
        cells: ArrayLike | None = None,
        by: ArrayLike | None = None,
    ) -> Self:
        """Add items to those seen before; the result is the same as fitting on all at once.

        For the methods "cells" and "empirical", which need no items. A partition that learns from
        predictions (quantiles, k-means) learns from the first batch only, and all groups of `by`
        must be in it.
        """
        check_parameters(self)
        self._warn_without_items()
        given = check_items(probabilities, expected=self._shape_so_far())
        labels = check_labels(counts, given)
        if not hasattr(self, "statistics_"):
            self.partition_ = choose_partition(self.partition, by).fit_checked(given.mean)
        where = assign_cells(self, given, cells, by)
        given = given.beside(self.partition_.item_columns(where))
        statistics = self._count(given, labels, where)
        if hasattr(self, "statistics_"):
            statistics = self.statistics_ + statistics
        self.cell_mixtures_ = self._fit_cells(statistics).mixtures()
        self.input_shape_ = given.shape
        self._forget_items()
        return self

    def fit_statistics(self, statistics: CellStatistics) -> Self:
        """Calibrate from statistics gathered elsewhere with this calibrator's partition.

        For the methods "cells" and "empirical", which need no items.
        """
        check_parameters(self)
        check_kind(statistics, "statistics", CellStatistics)
        self._warn_without_items()
        self.partition_ = partition_of(statistics, as_partition(self.partition))
        self.cell_mixtures_ = self._fit_cells(statistics).mixtures()
        n_columns = self.partition_.n_item_columns
        self.input_shape_ = InputShape(1, statistics.n_classes, n_columns)
        self._forget_items()
        return self

    def _count(self, given: GivenItems, labels: Counts, where: Index) -> CellStatistics:
        layout = self.partition_.layout_
        return CellStatistics.from_checked(given.mean, labels, where, layout)

    def _fit_cells(self, statistics: CellStatistics) -> CellFit:
        if statistics.observed.totals.max() == 1:
            warnings.warn(_ONE_LABEL, OneLabelWarning, stacklevel=3)
        if self.method == "empirical":
            orders = np.full((statistics.n_cells, statistics.n_classes), -1, dtype=np.intp)
            fit = fit_empirical(statistics, self.k, self.thinning, self.random_state)
        else:
            orders = class_orders(statistics)
            fit = fit_deconvolved(put_in_order(statistics, orders))
        self.class_orders_ = orders
        self.source_ = fit.source
        self.diagnostics_ = fit.diagnostics
        self.statistics_ = statistics
        return fit

    def _forget_items(self) -> None:
        self.temperature_ = math.nan
        self.reference_ = None
        self.item_model_ = None
        self.levels_ = {}
        self.seen_ = SeenItems.none()
        self.sets_ = None

    def _fit_items(self, given: GivenItems, labels: Counts, where: Index, levels: Array) -> Index:
        """Fit the mixtures of items, with the levels of the cells as anchors; return folds."""
        known = cells_given(self.partition_)
        fit = fit_with_folds(given, labels, where, self.statistics_, levels, cells_given=known)
        self.item_model_ = fit.model
        self.seen_ = fit.seen
        self.sets_ = fit.sets
        self.levels_ = fit.levels
        return fit.folds

    def _refer(
        self, given: GivenItems, labels: Counts, where: Index, folds: Index | None
    ) -> Reference:
        """Return what the items of the fit are like, each predicted without its own fold."""
        rows = thinned(given)
        items, cells = given.rows(rows), where[rows]
        predictor = predictor_of(self)
        expected = predictor.expect(items, cells, None if folds is None else folds[rows])
        means = reference_means(labels[rows], expected, self.statistics_.n_cells)
        if folds is not None:
            del expected  # as large as what comes now
            expected = predictor.expect(items, cells, None)
        return learn_reference(items, means, expected)

    def _shape_so_far(self) -> InputShape | None:
        return expected_shape(self) if hasattr(self, "statistics_") else None

    def _warn_without_items(self) -> None:
        if self.method == "items":
            warnings.warn(_NO_ITEMS, UserWarning, stacklevel=3)
