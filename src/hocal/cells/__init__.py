"""Items to cells by what a model predicts, and cells to histograms of their labels."""

from hocal.cells.partitions import (
    CallablePartition,
    CellLayout,
    KMeansPartition,
    LevelSetPartition,
    Partition,
    PrecomputedPartition,
    QuantilePartition,
    TopLabelPartition,
    UniformPartition,
    as_partition,
)
from hocal.cells.statistics import CellStatistics, Histogram

__all__ = [
    "CallablePartition",
    "CellLayout",
    "CellStatistics",
    "Histogram",
    "KMeansPartition",
    "LevelSetPartition",
    "Partition",
    "PrecomputedPartition",
    "QuantilePartition",
    "TopLabelPartition",
    "UniformPartition",
    "as_partition",
]
