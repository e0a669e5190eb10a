"""Split a classifier's uncertainty into disagreement in the data and ignorance of the model."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hocal.annotations import count_labels
    from hocal.budget import plan_budget
    from hocal.calibration import SnapshotCalibrator
    from hocal.cell_tables import cell_statistics
    from hocal.certificates import Certificate
    from hocal.classifier import HigherOrderCalibratedClassifier
    from hocal.decomposition import Decomposition, LossDecomposition, decompose, decompose_loss
    from hocal.evaluation import CalibrationError, aleatoric_error, calibration_error, coverage
    from hocal.independence import check_annotations
    from hocal.mixtures import Mixtures
    from hocal.partition import (
        KMeansPartition,
        LevelSetPartition,
        PrecomputedPartition,
        QuantilePartition,
        TopLabelPartition,
        UniformPartition,
    )
    from hocal.persistence import load, save
    from hocal.planning import interval_width, items_needed
    from hocal.prediction_sets import PredictionSets, predict_set
    from hocal.statistics import CellStatistics
    from hocal.transport import wasserstein

__version__ = "0.1.0"

__all__ = [
    "CalibrationError",
    "CellStatistics",
    "Certificate",
    "Decomposition",
    "HigherOrderCalibratedClassifier",
    "KMeansPartition",
    "LevelSetPartition",
    "LossDecomposition",
    "Mixtures",
    "PrecomputedPartition",
    "PredictionSets",
    "QuantilePartition",
    "SnapshotCalibrator",
    "TopLabelPartition",
    "UniformPartition",
    "aleatoric_error",
    "calibration_error",
    "cell_statistics",
    "check_annotations",
    "count_labels",
    "coverage",
    "decompose",
    "decompose_loss",
    "interval_width",
    "items_needed",
    "load",
    "plan_budget",
    "predict_set",
    "save",
    "wasserstein",
]

# Names are imported on first use: scikit-learn alone takes a second and brings pandas along.
_HOMES = {
    "annotations": ["count_labels"],
    "budget": ["plan_budget"],
    "calibration": ["SnapshotCalibrator"],
    "cell_tables": ["cell_statistics"],
    "certificates": ["Certificate"],
    "classifier": ["HigherOrderCalibratedClassifier"],
    "decomposition": ["Decomposition", "LossDecomposition", "decompose", "decompose_loss"],
    "evaluation": ["CalibrationError", "aleatoric_error", "calibration_error", "coverage"],
    "independence": ["check_annotations"],
    "mixtures": ["Mixtures"],
    "partition": [
        "KMeansPartition",
        "LevelSetPartition",
        "PrecomputedPartition",
        "QuantilePartition",
        "TopLabelPartition",
        "UniformPartition",
    ],
    "persistence": ["load", "save"],
    "planning": ["interval_width", "items_needed"],
    "prediction_sets": ["PredictionSets", "predict_set"],
    "statistics": ["CellStatistics"],
    "transport": ["wasserstein"],
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
