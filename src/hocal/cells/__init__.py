"""Items to cells by what a model predicts, and cells to histograms of their labels."""

from hocal.cells.crossed import CrossedPartition
from hocal.cells.given_cells import CallablePartition, PrecomputedPartition
from hocal.cells.partitions import (
    KMeansPartition,
    LevelSetPartition,
    QuantilePartition,
    TopLabelPartition,
    UniformPartition,
    as_partition,
)
from hocal.cells.protocol import CellLayout, Partition, find_partition, known_partitions
from hocal.cells.statistics import CellStatistics, Histogram

__all__ = [
    "CallablePartition",
    "CellLayout",
    "CellStatistics",
    "CrossedPartition",
    "Histogram",
    "KMeansPartition",
    "LevelSetPartition",
    "Partition",
    "PrecomputedPartition",
    "QuantilePartition",
    "TopLabelPartition",
    "UniformPartition",
    "as_partition",
    "find_partition",
    "known_partitions",
]
