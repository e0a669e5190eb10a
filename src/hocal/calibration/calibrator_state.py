"""What a calibrator keeps: its parameters, what a fit found, and who predicts from it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from hocal._base.errors import InputError
from hocal._base.notebook import FittedInNotebooks, fitted_table
from hocal._base.typing import Array, Counts, Index, Mask
from hocal._base.validation import check_choice
from hocal.calibration.by_cell.prediction import CellMixtures
from hocal.calibration.by_item.model import ItemModel
from hocal.calibration.inputs import (
    GivenItems,
    InputShape,
    cells_or_groups,
    check_items,
    check_own_labels,
)
from hocal.calibration.levels import LevelSets
from hocal.calibration.predictor import Predictor
from hocal.calibration.reference import Reference
from hocal.calibration.seen_items import SeenItems
from hocal.calibration.set_calibration import SetCalibration
from hocal.cells.protocol import Partition
from hocal.cells.statistics import CellStatistics
from hocal.uncertainty.decomposition import check_panel_size, decompose
from hocal.uncertainty.mixtures import Mixtures

__all__ = [
    "METHODS",
    "THINNINGS",
    "CalibratorState",
    "Located",
    "assign_cells",
    "cells_given",
    "check_fitted",
    "check_new_items",
    "check_parameters",
    "expected_shape",
    "fitted_html",
    "predictor_of",
    "recognise_fitted",
]

METHODS = ("items", "cells", "empirical")
THINNINGS = ("exact", "draw")


class Located(NamedTuple):
    """Predictions and where they belong."""

    probabilities: Array  #: (n_items, n_classes), checked
    cells: Index  #: (n_items,)


class CalibratorState(FittedInNotebooks, BaseEstimator):
    """Parameters and attributes of a calibrator, as `SnapshotCalibrator` explains them."""

    partition: Any
    method: Literal["items", "cells", "empirical"]
    k: int | None
    thinning: Literal["exact", "draw"]
    panel_size: int | None
    random_state: Any

    partition_: Partition
    statistics_: CellStatistics
    cell_mixtures_: Mixtures
    class_orders_: Index
    source_: NDArray[np.str_]
    item_model_: ItemModel | None
    levels_: dict[str, LevelSets]
    seen_: SeenItems
    sets_: SetCalibration | None
    input_shape_: InputShape
    reference_: Reference | None
    temperature_: float
    diagnostics_: dict[str, Any]

    def locate(self, probabilities: ArrayLike, cells: ArrayLike | None = None) -> Located:
        """Return the predictions after checking them, and the cell of each item.

        What comes with the data is in `cells`: cell numbers, or groups where the fit had `by`.
        """
        given = _check_given(self, probabilities, None, any_features=True)
        return Located(given.mean, self.partition_.assign_checked(given.mean, cells))

    def known_reference(self) -> Reference:
        """Return `reference_`, or say that there is none."""
        check_fitted(self)
        if self.reference_ is None:
            raise InputError(
                "calibrator",
                "must have been fitted with `fit`, on items, by this version of hocal",
                value="one that knows no calibration items",
                remedy="Call fit(probabilities, counts); save it again if it comes from a file.",
            )
        return self.reference_

    def _fitted_html(self) -> str:
        return fitted_html(self)


def predictor_of(calibrator: CalibratorState) -> Predictor:
    """Return what says something about items: the model of items, or the mixtures of cells."""
    orders = None if calibrator.method == "empirical" else calibrator.class_orders_
    cells = CellMixtures(calibrator.cell_mixtures_, orders)
    given = cells_given(calibrator.partition_)
    return Predictor(cells, calibrator.item_model_, calibrator.seen_, given)


def cells_given(partition: Partition) -> bool:
    """Tell whether cells come with the items; groups do too, and are among their features."""
    return partition.takes_cells and not partition.takes_groups


def check_new_items(
    calibrator: CalibratorState, probabilities: Any, features: Any, counts: Any, cells: Any, by: Any
) -> tuple[GivenItems, Index, Counts | None]:
    """Check what is given about items, find their cells, and take their own labels."""
    given = _check_given(calibrator, probabilities, features)
    where = assign_cells(calibrator, given, cells, by)
    given = given.beside(calibrator.partition_.item_columns(where))
    return given, where, check_own_labels(counts, given)


def assign_cells(calibrator: CalibratorState, given: GivenItems, cells: Any, by: Any) -> Index:
    """Return the cell of each item."""
    partition = calibrator.partition_
    return partition.assign_checked(given.mean, cells_or_groups(cells, by, partition))


def _check_given(
    calibrator: CalibratorState, probabilities: Any, features: Any, *, any_features: bool = False
) -> GivenItems:
    check_fitted(calibrator)
    expected = expected_shape(calibrator)
    if any_features:
        expected = expected._replace(n_features=0)
    return check_items(probabilities, features, expected)


def expected_shape(calibrator: CalibratorState) -> InputShape:
    """Return the shape of what is given; columns of the partition are not."""
    n_given = calibrator.input_shape_.n_features - calibrator.partition_.n_item_columns
    return calibrator.input_shape_._replace(n_features=n_given)


def recognise_fitted(
    calibrator: CalibratorState, probabilities: Any, features: Any, where: Index, labels: Counts
) -> Mask:
    """Tell which items, in these cells, the calibrator was fitted on."""
    given = check_items(probabilities, features)
    beside = given.beside(calibrator.partition_.item_columns(where))
    own_cells = where if cells_given(calibrator.partition_) else None
    return calibrator.seen_.recognise(beside, labels, own_cells)


def check_parameters(calibrator: CalibratorState) -> None:
    """Check what the constructor was given."""
    check_choice(calibrator.method, "method", METHODS)
    check_choice(calibrator.thinning, "thinning", THINNINGS)
    if calibrator.panel_size is not None:
        check_panel_size(calibrator.panel_size)


def check_fitted(calibrator: CalibratorState) -> None:
    """Say so where nothing was fitted yet."""
    if not hasattr(calibrator, "cell_mixtures_"):
        raise NotFittedError(
            "This SnapshotCalibrator is not fitted yet. Call fit(probabilities, counts) first."
        )


def fitted_html(calibrator: CalibratorState) -> str:
    """Return what a notebook shows of a fitted calibrator; nothing of one that is not."""
    if not hasattr(calibrator, "cell_mixtures_"):
        return ""
    parts = decompose(calibrator.cell_mixtures_, panel_size=calibrator.panel_size)
    n_borrowed = int((calibrator.source_ != "cell").sum())
    return fitted_table(calibrator.statistics_, parts.as_dict(), n_borrowed=n_borrowed)
