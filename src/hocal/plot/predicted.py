"""What is given and predicted for test items: means and uncertainty of all, mixtures of some."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing

from hocal._base.typing import Array, Index, IntArray
from hocal.calibration.by_cell.fitting import rank_items
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.calibration.calibrator_state import check_new_items
from hocal.plot.inputs import check_calibrator, check_method
from hocal.uncertainty.decomposition import decompose
from hocal.uncertainty.mixtures import Mixtures

__all__ = ["AskedItems", "DrawnItems", "PredictedItems", "n_listed"]

MAX_NUMBERS = 20_000_000  # in the atoms of items that a display lists, 160 MB
ATOMS = 400  # at most, of an item


class AskedItems(NamedTuple):
    """What was given about the items of a display, kept as it came."""

    X: Any  #: predictions for a calibrator, features for a classifier
    features: Any = None  #: (n_items, n_features) beside predictions
    cells: Any = None  #: (n_items,) cells of a PrecomputedPartition, or groups
    by: Any = None  #: (n_items,) groups

    @property
    def options(self) -> dict[str, Any]:
        """What goes with X to the methods of an estimator."""
        given = {"features": self.features, "cells": self.cells, "by": self.by}
        return {name: value for name, value in given.items() if value is not None}

    def locate(self, calibrator: Any) -> tuple[Array, Index]:
        """Return checked predictions, and the cells of the items in a fitted calibrator."""
        check_calibrator(calibrator)
        given, where, _ = check_new_items(
            calibrator, self.X, self.features, None, self.cells, self.by
        )
        return given.mean, where

    def mixtures(self, estimator: Any) -> Mixtures:
        """Return the mixtures that an estimator predicts for the items."""
        check_method(estimator, "predict_mixture")
        mixtures: Mixtures = estimator.predict_mixture(self.X, **self.options)
        return mixtures

    def rows(self, chosen: Index) -> AskedItems:
        """Return some of the items, after `locate` has checked them."""
        some = {name: _safe_indexing(values, chosen) for name, values in self.options.items()}
        return AskedItems(np.asarray(self.X)[chosen], **some)


class DrawnItems(NamedTuple):
    """Some items, to draw labels for."""

    mixtures: Mixtures  #: one per item
    ranking: Index | None  #: (n_items, n_classes) class of each column; None for class order

    def draw(self, places: Index, totals: IntArray, generator: np.random.Generator) -> IntArray:
        """Draw so many labels for the items in some places, in class order."""
        drawn = self.mixtures[places].draw(totals, random_state=generator)
        if self.ranking is None:
            return drawn
        counts = np.empty_like(drawn)
        np.put_along_axis(counts, self.ranking[places], drawn, axis=1)
        return counts


class PredictedItems(NamedTuple):
    """What is predicted for test items, in class order."""

    means: Array  #: (n_items, n_classes)
    aleatoric: Array  #: (n_items,)
    choose: Callable[[Index], DrawnItems]  #: gives the mixtures of some items
    n_drawable: int  #: items whose mixtures fit in memory together

    @classmethod
    def of_mixtures(cls, mixtures: Mixtures, entropy: str) -> PredictedItems:
        """Take mixtures of any origin, one per item."""
        aleatoric = decompose(mixtures, entropy).aleatoric
        return cls(
            mixtures.mean(), aleatoric, lambda rows: DrawnItems(mixtures[rows], None), len(mixtures)
        )

    @classmethod
    def of_calibrator(
        cls, calibrator: SnapshotCalibrator, asked: AskedItems, entropy: str
    ) -> PredictedItems:
        """Take each item's own mixture where there is one, else that of its cell."""
        means = calibrator.predict_proba(asked.X, **asked.options)
        if calibrator.item_model_ is not None:
            return cls._of_items(calibrator, asked, means, entropy)
        p, cells = asked.locate(calibrator)
        mixtures = calibrator.cell_mixtures_
        aleatoric = decompose(mixtures, entropy).aleatoric[cells]

        def choose(rows: Index) -> DrawnItems:
            where = cells[rows]
            by_class = calibrator.method == "empirical"
            ranking = rank_items(p[rows], where, calibrator.class_orders_)
            return DrawnItems(mixtures[where], None if by_class else ranking)

        return cls(means, aleatoric, choose, len(cells))

    @classmethod
    def _of_items(
        cls, calibrator: Any, asked: AskedItems, means: Array, entropy: str
    ) -> PredictedItems:
        plain = copy(calibrator).set_params(panel_size=None)  # labels of all people are compared

        def choose(rows: Index) -> DrawnItems:
            return DrawnItems(asked.rows(rows).mixtures(plain), None)

        aleatoric = plain.decompose(asked.X, entropy, **asked.options).aleatoric
        return cls(means, aleatoric, choose, n_listed(means.shape[1]))


def n_listed(n_classes: int) -> int:
    """Return how many items' mixtures are listed at once."""
    return max(MAX_NUMBERS // (ATOMS * n_classes), 1)
