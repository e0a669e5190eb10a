"""Learn mixtures directly from snapshots with PyTorch, and put other methods on the same scale.

Every model here ends in Mixtures, so `hocal.decompose`, `hocal.calibration_error`,
`hocal.aleatoric_error`, `hocal.predict_set` and `hocal.coverage` treat all of them alike. Post-hoc
calibration on top of any of them is one line, because the mean of a mixture is a first-order
prediction::

    hocal.SnapshotCalibrator().fit(mixtures.mean(), counts)
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("torch") is None:
    raise ImportError('`hocal.torch` needs PyTorch. Install it with: pip install "hocal[torch]"')

from hocal.torch.baselines import DeepEnsemble, Epinet, EvidentialHead, MCDropout, SoftmaxHead
from hocal.torch.classifier import SnapshotClassifier
from hocal.torch.decomposition import TensorDecomposition, decompose_members
from hocal.torch.heads import MixtureHead, SnapshotHead
from hocal.torch.outputs import as_mixtures
from hocal.torch.pairs import PairPrediction, predict_pairs
from hocal.torch.prediction import predict_mixture, predict_outputs
from hocal.torch.training import EpochReport, TrainingHistory, train

__all__ = [
    "DeepEnsemble",
    "Epinet",
    "EpochReport",
    "EvidentialHead",
    "MCDropout",
    "MixtureHead",
    "PairPrediction",
    "SnapshotClassifier",
    "SnapshotHead",
    "SoftmaxHead",
    "TensorDecomposition",
    "TrainingHistory",
    "as_mixtures",
    "decompose_members",
    "predict_mixture",
    "predict_outputs",
    "predict_pairs",
    "train",
]
