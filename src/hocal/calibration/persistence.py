"""Save and load calibrators in one safetensors file: arrays and JSON, nothing that could run code."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hocal._base.files import write_atomically
from hocal._base.typing import Counts
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.cells import partitions as partitions
from hocal.cells.partitions import CellLayout, Partition
from hocal.cells.statistics import CellStatistics, Histogram
from hocal.uncertainty.mixtures import Mixtures

__all__ = ["load", "read_notes", "save", "serialise"]

FORMAT = "hocal-calibrator"
VERSION = 1
_PARTITIONS = (
    "KMeansPartition",
    "LevelSetPartition",
    "PrecomputedPartition",
    "QuantilePartition",
    "TopLabelPartition",
    "UniformPartition",
)
_SOURCES = ("cell", "neighbours", "pool")

Tensors = dict[str, NDArray[Any]]


def save(
    calibrator: SnapshotCalibrator,
    path: str | os.PathLike[str],
    *,
    notes: Mapping[str, str] | None = None,
) -> None:
    """Write a fitted calibrator to a file, whole or not at all.

    Parameters
    ----------
    calibrator : SnapshotCalibrator
        Fitted, with a partition of this package (a callable cannot be saved) and no Generator as
        `random_state`.
    path : str or path
        Where to write; an existing file is replaced once the new one is complete.
    notes : mapping from str to str, optional
        Whatever else should travel with the calibrator, such as the names of the classes;
        `read_notes` gives them back, and the checksum of the file covers them.

    Examples
    --------
    >>> import tempfile
    >>> import hocal
    >>> calibrator = hocal.SnapshotCalibrator().fit([[0.4, 0.6]] * 4, [[1, 1]] * 4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hocal.save(calibrator, f"{folder}/model.hocal")
    ...     same = hocal.load(f"{folder}/model.hocal").predict_proba([[0.4, 0.6]])
    >>> bool((same == calibrator.predict_proba([[0.4, 0.6]])).all())
    True
    """
    write_atomically(Path(path), serialise(calibrator, notes=notes))


def serialise(calibrator: SnapshotCalibrator, *, notes: Mapping[str, str] | None = None) -> bytes:
    """Return what `save` writes, for a program that writes files in its own way."""
    from safetensors.numpy import save as to_bytes

    if not isinstance(calibrator, SnapshotCalibrator) or not hasattr(calibrator, "cell_mixtures_"):
        raise ValueError(
            f"`calibrator` must be a fitted SnapshotCalibrator, got {calibrator!r}. Fit it first; of a "
            "HigherOrderCalibratedClassifier save calibrator_, and the base estimator with its own tools."
        )
    tensors = {name: np.ascontiguousarray(array) for name, array in _tensors(calibrator).items()}
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "header": _header(calibrator, _check_notes(notes or {})),
    }
    metadata["checksum"] = _checksum(tensors, metadata["header"])
    return to_bytes(tensors, metadata)


def load(path: str | os.PathLike[str]) -> SnapshotCalibrator:
    """Read a calibrator written by `save`.

    Parameters
    ----------
    path : str or path
        The file. One that is truncated, altered, of another kind or of a newer version is refused.

    Returns
    -------
    SnapshotCalibrator
        Predicts the same numbers as the one that was saved, and can be refitted or added to.

    Examples
    --------
    >>> import hocal
    >>> hocal.load("missing.hocal")
    Traceback (most recent call last):
    FileNotFoundError: No calibrator at missing.hocal.
    """
    return _rebuild(*_read_checked(path))


def read_notes(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read the notes that were saved with a calibrator.

    Parameters
    ----------
    path : str or path
        A file written by `save`; refused for the same reasons as by `load`.

    Returns
    -------
    dict
        The notes; empty when there were none.

    Examples
    --------
    >>> import tempfile
    >>> import hocal
    >>> from hocal.calibration.persistence import read_notes
    >>> calibrator = hocal.SnapshotCalibrator().fit([[0.4, 0.6]] * 4, [[1, 1]] * 4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hocal.save(calibrator, f"{folder}/model.hocal", notes={"classes": "cat, dog"})
    ...     read_notes(f"{folder}/model.hocal")
    {'classes': 'cat, dog'}
    """
    notes: dict[str, str] = _read_checked(path)[0].get("notes", {})
    return notes


def _read_checked(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Tensors]:
    """Return the header and the arrays of a file after checking that `save` wrote all of it."""
    metadata, tensors = _read(Path(path))
    if metadata.get("format") != FORMAT:
        raise ValueError(
            f"`path` must name a file written by hocal.save, got another safetensors file, {path}."
        )
    if metadata.get("version") != str(VERSION):
        raise ValueError(
            f"`path` must name a file of version {VERSION}, got version {metadata.get('version')} in {path}. "
            "Upgrade hocal, or save the calibrator again."
        )
    if metadata.get("checksum") != _checksum(tensors, metadata.get("header", "")):
        raise ValueError(
            f"`path` must name an unaltered file, got a wrong checksum in {path}. Save it again."
        )
    return json.loads(metadata["header"]), tensors


def _check_notes(notes: Mapping[str, str]) -> dict[str, str]:
    for key, value in notes.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise ValueError(
                f"`notes` must map str to str, got {key!r}: {value!r}. Turn values into text first."
            )
    return dict(notes)


def _header(calibrator: SnapshotCalibrator, notes: dict[str, str]) -> str:
    """Return parameters of calibrator and partition as JSON, and the notes where there are any."""
    partition = calibrator.partition_
    if type(partition).__name__ not in _PARTITIONS:
        raise ValueError(
            f"`calibrator` must have a partition of hocal to be saved, got {partition!r}."
        )
    parameters = {**calibrator.get_params(deep=False), "partition": None}
    try:
        return json.dumps(
            {
                "parameters": parameters,
                "partition": {
                    "class": type(partition).__name__,
                    "parameters": partition.get_params(),
                },
                "shape": [partition.n_classes_, partition.n_cells_],
                "diagnostics": calibrator.diagnostics_,
                **({"notes": notes} if notes else {}),
            },
            sort_keys=True,
        )
    except TypeError as error:
        raise ValueError(
            f"`calibrator` must have plain parameters to be saved, got {parameters}: {error}."
        ) from error


def _tensors(calibrator: SnapshotCalibrator) -> Tensors:
    """Return every array of a fitted calibrator by name."""
    statistics = calibrator.statistics_
    mixtures = calibrator.cell_mixtures_
    tensors: Tensors = {
        "predicted": statistics.predicted,
        "layout.group": statistics.layout.group,
        "layout.level": statistics.layout.level,
        "source": np.array([_SOURCES.index(name) for name in calibrator.source_], dtype=np.uint8),
        "mixtures.points": mixtures._support,
        **{f"mixtures.{name}": getattr(mixtures, name) for name in ("weights", "offsets", "index")},
    }
    for name in ("observed", "aligned"):
        histogram: Histogram = getattr(statistics, name)
        tensors |= {
            f"{name}.cells": histogram.cells,
            f"{name}.multiplicity": histogram.multiplicity,
        }
        tensors |= {
            f"{name}.counts{part}": array for part, array in _count_arrays(histogram.counts).items()
        }
    for name, value in vars(calibrator.partition_).items():
        if isinstance(value, np.ndarray):
            tensors[f"partition.{name}"] = value
    return tensors


def _rebuild(header: dict[str, Any], tensors: Tensors) -> SnapshotCalibrator:
    calibrator = SnapshotCalibrator(**header["parameters"])
    layout = CellLayout(tensors["layout.group"], tensors["layout.level"])
    calibrator.partition = calibrator.partition_ = _rebuild_partition(header, tensors, layout)
    observed, aligned = (
        Histogram(
            tensors[f"{name}.cells"],
            _join_counts(tensors, f"{name}.counts"),
            tensors[f"{name}.multiplicity"],
        )
        for name in ("observed", "aligned")
    )
    calibrator.statistics_ = CellStatistics(observed, aligned, tensors["predicted"], layout)
    parts = (tensors[f"mixtures.{x}"] for x in ("points", "weights", "offsets", "index"))
    calibrator.cell_mixtures_ = Mixtures._trusted(*parts)  # as it was saved: the checksum is right
    calibrator.source_ = np.array(_SOURCES)[tensors["source"]]
    calibrator.diagnostics_ = header["diagnostics"]
    return calibrator


def _rebuild_partition(header: dict[str, Any], tensors: Tensors, layout: CellLayout) -> Partition:
    if header["partition"]["class"] not in _PARTITIONS:
        raise ValueError(
            f"`path` must hold a known partition, got {header['partition']['class']!r}. Upgrade hocal."
        )
    partition: Partition = getattr(partitions, header["partition"]["class"])(
        **header["partition"]["parameters"]
    )
    partition.n_classes_, partition.n_cells_ = header["shape"]
    partition.layout_ = layout
    for name, array in tensors.items():
        if name.startswith("partition."):
            setattr(partition, name.removeprefix("partition."), array)
    return partition


def _count_arrays(counts: Counts) -> Tensors:
    if isinstance(counts, np.ndarray):
        return {"": counts}
    shape = np.array(counts.shape, dtype=np.int64)
    return {
        ".data": counts.data,
        ".indices": counts.indices,
        ".indptr": counts.indptr,
        ".shape": shape,
    }


def _join_counts(tensors: Tensors, name: str) -> Counts:
    if name in tensors:
        return tensors[name]
    parts = tuple(tensors[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    return sparse.csr_array(parts, shape=tuple(tensors[f"{name}.shape"]))


def _checksum(tensors: Tensors, header: str) -> str:
    digest = hashlib.sha256(header.encode())
    for name in sorted(tensors):
        digest.update(f"{name}{tensors[name].dtype.str}{tensors[name].shape}".encode())
        digest.update(np.ascontiguousarray(tensors[name]).tobytes())
    return digest.hexdigest()


def _read(path: Path) -> tuple[dict[str, str], Tensors]:
    """Return the metadata and arrays of a safetensors file."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise FileNotFoundError(f"No calibrator at {path}.")
    try:
        with safe_open(path, framework="numpy") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(
            f"`path` must name a complete file written by hocal.save, got {path}: {error}."
        ) from error
