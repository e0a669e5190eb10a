"""Fit, measure and keep: from predictions and a few labels per item to mixtures."""

from hocal.calibration.against_truth import aleatoric_error, coverage
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.calibration.classifier import HigherOrderCalibratedClassifier
from hocal.calibration.evaluation import CalibrationError, calibration_error
from hocal.calibration.item_posteriors import LabelPosterior, label_posterior
from hocal.calibration.labels_alone import label_prior
from hocal.calibration.persistence import load, read_notes, save
from hocal.calibration.scores import resolution, snapshot_score

__all__ = [
    "CalibrationError",
    "HigherOrderCalibratedClassifier",
    "LabelPosterior",
    "SnapshotCalibrator",
    "aleatoric_error",
    "calibration_error",
    "coverage",
    "label_posterior",
    "label_prior",
    "load",
    "read_notes",
    "resolution",
    "save",
    "snapshot_score",
]
