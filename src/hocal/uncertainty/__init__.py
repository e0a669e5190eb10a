"""What a mixture of label distributions is, and what follows from it."""

from hocal.uncertainty.credal_sets import CredalSets, credal_set
from hocal.uncertainty.decomposition import Decomposition, decompose
from hocal.uncertainty.distance import WassersteinInterval, wasserstein, wasserstein_interval
from hocal.uncertainty.distinct_counts import Compressed, compress
from hocal.uncertainty.entropy import (
    Brier,
    Custom,
    Entropy,
    Ordinal,
    Shannon,
    Spherical,
    Tsallis,
    ZeroOne,
    get_entropy,
)
from hocal.uncertainty.equivalence import Exponential, RevealingEntropy, revealing_entropy
from hocal.uncertainty.label_sets import LabelSets
from hocal.uncertainty.loss_decomposition import LossDecomposition, decompose_loss
from hocal.uncertainty.mixtures import Mixtures
from hocal.uncertainty.moment_tensors import (
    Realisation,
    from_tuples,
    nearest_realisable,
    thin_distribution,
    to_tuples,
)
from hocal.uncertainty.moments import (
    CentralMoments,
    average_moments,
    binary_moments,
    central_moments,
    factorial_moments,
    pair_disagreement,
    snapshot_weights,
)
from hocal.uncertainty.sets import PredictionSets, predict_set
from hocal.uncertainty.snapshots import (
    SubSnapshots,
    draw_labels,
    draw_snapshots,
    enumerate_snapshots,
    log_multiplicity,
    n_snapshots,
    rank_snapshots,
    sub_snapshots,
)

__all__ = [
    "Brier",
    "CentralMoments",
    "Compressed",
    "CredalSets",
    "Custom",
    "Decomposition",
    "Entropy",
    "Exponential",
    "LabelSets",
    "LossDecomposition",
    "Mixtures",
    "Ordinal",
    "PredictionSets",
    "Realisation",
    "RevealingEntropy",
    "Shannon",
    "Spherical",
    "SubSnapshots",
    "Tsallis",
    "WassersteinInterval",
    "ZeroOne",
    "average_moments",
    "binary_moments",
    "central_moments",
    "compress",
    "credal_set",
    "decompose",
    "decompose_loss",
    "draw_labels",
    "draw_snapshots",
    "enumerate_snapshots",
    "factorial_moments",
    "from_tuples",
    "get_entropy",
    "log_multiplicity",
    "n_snapshots",
    "nearest_realisable",
    "pair_disagreement",
    "predict_set",
    "rank_snapshots",
    "revealing_entropy",
    "snapshot_weights",
    "sub_snapshots",
    "thin_distribution",
    "to_tuples",
    "wasserstein",
    "wasserstein_interval",
]
