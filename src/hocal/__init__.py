"""Split a classifier's uncertainty into disagreement in the data and ignorance of the model."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hocal._base.errors import InputError
    from hocal._base.interval import Interval
    from hocal.annotations import (
        agreement,
        cell_statistics,
        check_annotations,
        count_labels,
        read_annotations,
    )
    from hocal.calibration import (
        CalibrationError,
        HigherOrderCalibratedClassifier,
        SnapshotCalibrator,
        aleatoric_error,
        calibration_error,
        coverage,
        load,
        resolution,
        save,
        snapshot_score,
    )
    from hocal.cells import (
        CellStatistics,
        KMeansPartition,
        LevelSetPartition,
        PrecomputedPartition,
        QuantilePartition,
        TopLabelPartition,
        UniformPartition,
    )
    from hocal.decisions import (
        Monitor,
        compare,
        headroom,
        interval_width,
        items_needed,
        next_labels,
        plan_budget,
    )
    from hocal.guarantees import Certificate
    from hocal.uncertainty import (
        Decomposition,
        LossDecomposition,
        Mixtures,
        PredictionSets,
        decompose,
        decompose_loss,
        predict_set,
        wasserstein,
    )

__version__ = "0.1.0"

__all__ = [
    "CalibrationError",
    "CellStatistics",
    "Certificate",
    "Decomposition",
    "HigherOrderCalibratedClassifier",
    "InputError",
    "Interval",
    "KMeansPartition",
    "LevelSetPartition",
    "LossDecomposition",
    "Mixtures",
    "Monitor",
    "PrecomputedPartition",
    "PredictionSets",
    "QuantilePartition",
    "SnapshotCalibrator",
    "TopLabelPartition",
    "UniformPartition",
    "agreement",
    "aleatoric_error",
    "calibration_error",
    "cell_statistics",
    "check_annotations",
    "compare",
    "count_labels",
    "coverage",
    "decompose",
    "decompose_loss",
    "headroom",
    "interval_width",
    "items_needed",
    "load",
    "next_labels",
    "plan_budget",
    "predict_set",
    "read_annotations",
    "resolution",
    "save",
    "snapshot_score",
    "wasserstein",
]

# Names are imported on first use: scikit-learn alone takes a second and brings pandas along.
_HOMES = {
    "_base.errors": ["InputError"],
    "_base.interval": ["Interval"],
    "annotations": [
        "agreement",
        "cell_statistics",
        "check_annotations",
        "count_labels",
        "read_annotations",
    ],
    "calibration": [
        "CalibrationError",
        "HigherOrderCalibratedClassifier",
        "SnapshotCalibrator",
        "aleatoric_error",
        "calibration_error",
        "coverage",
        "load",
        "resolution",
        "save",
        "snapshot_score",
    ],
    "cells": [
        "CellStatistics",
        "KMeansPartition",
        "LevelSetPartition",
        "PrecomputedPartition",
        "QuantilePartition",
        "TopLabelPartition",
        "UniformPartition",
    ],
    "decisions": [
        "Monitor",
        "compare",
        "headroom",
        "interval_width",
        "items_needed",
        "next_labels",
        "plan_budget",
    ],
    "guarantees": ["Certificate"],
    "uncertainty": [
        "Decomposition",
        "LossDecomposition",
        "Mixtures",
        "PredictionSets",
        "decompose",
        "decompose_loss",
        "predict_set",
        "wasserstein",
    ],
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        from importlib.util import find_spec

        remedy = f" before `import hocal.{name}`" if find_spec(f"hocal.{name}") else ""
        raise AttributeError(f"module 'hocal' has no attribute {name!r}{remedy}")
    value = getattr(import_module(f"hocal.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
