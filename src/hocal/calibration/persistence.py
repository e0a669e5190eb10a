"""Save and load calibrators in one safetensors file: arrays and JSON, nothing that runs code."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hocal._base.errors import InputError
from hocal._base.files import write_atomically
from hocal._base.typing import Counts
from hocal.calibration.by_item.model import ItemModel
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.calibration.inputs import InputShape
from hocal.calibration.levels import LevelSets
from hocal.calibration.reference import Reference
from hocal.calibration.seen_items import SeenItems
from hocal.calibration.set_calibration import SetCalibration
from hocal.cells.protocol import CellLayout, Partition, find_partition
from hocal.cells.statistics import CellStatistics, Histogram
from hocal.guarantees.certified_sets import SquaredErrors
from hocal.uncertainty.label_sets import LabelScores
from hocal.uncertainty.mixtures import Mixtures

__all__ = ["load", "read_notes", "save", "serialise"]

FORMAT = "hocal-calibrator"
VERSION = 2
_LEARNED = "partition."  # before the names of arrays that a partition learned
_PARAMETER = "partition parameter."  # before those that it was made with
_ITEMS = "items."  # before the names of arrays of the model of items
_REFERENCE = "reference."  # before those of what calibration items were like
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
        Fitted, with no Generator as `random_state`. A partition of your own is saved as well; a
        callable cannot be.
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
        raise InputError(
            "calibrator",
            "must be a fitted SnapshotCalibrator",
            value=repr(calibrator),
            remedy="Fit it first; of a HigherOrderCalibratedClassifier save calibrator_, "
            "and the base estimator with its own tools.",
        )
    partition, arrays = _take_apart(calibrator.partition_)
    named = _tensors(calibrator) | arrays
    tensors = {name: np.asarray(array, order="C") for name, array in named.items()}
    header = _header(calibrator, partition, _check_notes(notes or {}))
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "header": header,
        "checksum": _checksum(tensors, header),
    }
    return to_bytes(tensors, metadata)


def load(path: str | os.PathLike[str]) -> SnapshotCalibrator:
    """Read a calibrator written by `save`.

    Parameters
    ----------
    path : str or path
        The file. One that is truncated, altered, of another kind or of a newer version is refused.
        One with a partition of your own needs the module that defines it to be imported first; a
        file is never a reason to import anything.

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
        raise InputError(
            "path",
            "must name a file written by hocal.save",
            value=f"another safetensors file, {path}",
        )
    if metadata.get("version") != str(VERSION):
        raise InputError(
            "path",
            f"must name a file of version {VERSION}",
            value=f"version {metadata.get('version')}",
            where=f"in {path}",
            remedy="Upgrade hocal, or save the calibrator again.",
        )
    if metadata.get("checksum") != _checksum(tensors, metadata.get("header", "")):
        raise InputError(
            "path",
            "must name an unaltered file",
            value="a wrong checksum",
            where=f"in {path}",
            remedy="Save it again.",
        )
    return json.loads(metadata["header"]), tensors


def _check_notes(notes: Mapping[str, str]) -> dict[str, str]:
    for key, value in notes.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise InputError(
                "notes",
                "must map str to str",
                value=f"{key!r}: {value!r}",
                remedy="Turn values into text first.",
            )
    return dict(notes)


def _header(
    calibrator: SnapshotCalibrator, partition: dict[str, Any], notes: dict[str, str]
) -> str:
    """Return parameters of calibrator and partition as JSON, and the notes where there are any."""
    parameters = {**calibrator.get_params(deep=False), "partition": None}
    fitted = calibrator.partition_
    header = {
        "parameters": parameters,
        "partition": partition,
        "shape": [fitted.n_classes_, fitted.n_cells_],
        "diagnostics": calibrator.diagnostics_,
        "inputs": list(calibrator.input_shape_),
        "temperature": _finite(calibrator.temperature_),
        "levels": sorted(calibrator.levels_),
        **_sets_header(calibrator.sets_),
        **({"notes": notes} if notes else {}),
    }
    try:
        return json.dumps(header, sort_keys=True)
    except TypeError as error:
        raise InputError(
            "calibrator",
            "must have plain parameters to be saved",
            value=f"{parameters}: {error}",
        ) from error


def _sets_header(sets: SetCalibration | None) -> dict[str, Any]:
    return {} if sets is None else {"sets": [sets.scores.n_items, sets.errors.unit]}


def _finite(value: float) -> float | None:
    """Return a number as JSON can hold it."""
    return value if math.isfinite(value) else None


def _take_apart(partition: Partition) -> tuple[dict[str, Any], Tensors]:
    """Return what the header says about a partition, and its arrays by name."""
    parts = {_PARAMETER: partition.get_params(deep=False), _LEARNED: partition.state()}
    plain: dict[str, dict[str, Any]] = {prefix: {} for prefix in parts}
    arrays: Tensors = {}
    for prefix, values in parts.items():
        for name, value in values.items():
            if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
                arrays[prefix + name] = value
            else:
                plain[prefix][name] = _plain(value, name, partition)
    said = {
        "class": partition.registered_name,
        "module": type(partition).__module__,
        "parameters": plain[_PARAMETER],
        "learned": plain[_LEARNED],
    }
    return said, arrays


def _plain(value: Any, name: str, partition: Partition) -> Any:
    """Return a value in the types of JSON, which come back as they were."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (list, tuple)):
        return [_plain(entry, name, partition) for entry in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(entry, name, partition) for key, entry in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise InputError(
        "calibrator",
        "must have a partition of numbers, text and numeric arrays to be saved",
        value=repr(value),
        where=f"as `{name}` of a {type(partition).__name__}",
        remedy="Write a class with `state` and `restore`, as CONTRIBUTING.md shows.",
    )


def _tensors(calibrator: SnapshotCalibrator) -> Tensors:
    """Return every array of a fitted calibrator by name."""
    mixtures = calibrator.cell_mixtures_
    tensors: Tensors = {
        "source": np.array([_SOURCES.index(name) for name in calibrator.source_], dtype=np.uint8),
        "class_orders": calibrator.class_orders_,
        "seen.fingerprints": calibrator.seen_.fingerprints,
        "seen.folds": calibrator.seen_.folds,
        "mixtures.points": mixtures.support,
        **{f"mixtures.{name}": getattr(mixtures, name) for name in ("weights", "offsets", "index")},
        **_statistics_arrays(calibrator.statistics_, ""),
    }
    for quantity, levels in calibrator.levels_.items():
        tensors[f"levels.{quantity}.edges"] = levels.edges
        tensors |= _statistics_arrays(levels.statistics, f"levels.{quantity}.")
    if calibrator.item_model_ is not None:
        arrays = calibrator.item_model_.arrays()
        tensors |= {f"{_ITEMS}{name}": array for name, array in arrays.items()}
    if calibrator.sets_ is not None:
        scores, errors = calibrator.sets_
        tensors |= {"sets.scores": scores.weights}
        tensors |= {"sets.errors": errors.values, "sets.repeats": errors.repeats}
    if calibrator.reference_ is not None:
        arrays = calibrator.reference_.arrays()
        tensors |= {f"{_REFERENCE}{name}": array for name, array in arrays.items()}
    return tensors


def _statistics_arrays(statistics: CellStatistics, prefix: str) -> Tensors:
    """Return the arrays of cell statistics, their names after a prefix."""
    tensors: Tensors = {
        f"{prefix}predicted": statistics.predicted,
        f"{prefix}layout.group": statistics.layout.group,
        f"{prefix}layout.level": statistics.layout.level,
    }
    for name in ("observed", "aligned"):
        histogram: Histogram = getattr(statistics, name)
        tensors[f"{prefix}{name}.cells"] = histogram.cells
        tensors[f"{prefix}{name}.multiplicity"] = histogram.multiplicity
        for part, array in _count_arrays(histogram.counts).items():
            tensors[f"{prefix}{name}.counts{part}"] = array
    return tensors


def _join_statistics(tensors: Tensors, prefix: str) -> CellStatistics:
    """Return the cell statistics whose arrays have names after a prefix."""
    histograms = [
        Histogram(
            tensors[f"{prefix}{name}.cells"],
            _join_counts(tensors, f"{prefix}{name}.counts"),
            tensors[f"{prefix}{name}.multiplicity"],
        )
        for name in ("observed", "aligned")
    ]
    layout = CellLayout(tensors[f"{prefix}layout.group"], tensors[f"{prefix}layout.level"])
    observed, aligned = histograms
    return CellStatistics(observed, aligned, tensors[f"{prefix}predicted"], layout)


def _rebuild(header: dict[str, Any], tensors: Tensors) -> SnapshotCalibrator:
    calibrator = SnapshotCalibrator(**header["parameters"])
    calibrator.statistics_ = _join_statistics(tensors, "")
    layout = calibrator.statistics_.layout
    calibrator.partition = calibrator.partition_ = _rebuild_partition(header, tensors, layout)
    parts = (tensors[f"mixtures.{x}"] for x in ("points", "weights", "offsets", "index"))
    calibrator.cell_mixtures_ = Mixtures.trusted(*parts)  # as it was saved: the checksum is right
    calibrator.source_ = np.array(_SOURCES)[tensors["source"]]
    calibrator.class_orders_ = tensors["class_orders"]
    calibrator.diagnostics_ = header["diagnostics"]
    calibrator.input_shape_ = InputShape(*header["inputs"])
    temperature = header["temperature"]
    calibrator.temperature_ = math.nan if temperature is None else temperature
    calibrator.seen_ = SeenItems(tensors["seen.fingerprints"], tensors["seen.folds"])
    calibrator.levels_ = {
        quantity: LevelSets(
            tensors[f"levels.{quantity}.edges"], _join_statistics(tensors, f"levels.{quantity}.")
        )
        for quantity in header["levels"]
    }
    arrays = _with_prefix(tensors, _ITEMS)
    calibrator.item_model_ = ItemModel.from_arrays(arrays) if arrays else None
    calibrator.sets_ = _rebuild_sets(header, tensors)
    known = _with_prefix(tensors, _REFERENCE)
    calibrator.reference_ = Reference.from_arrays(known) if known else None
    return calibrator


def _rebuild_sets(header: dict[str, Any], tensors: Tensors) -> SetCalibration | None:
    if "sets" not in header:  # another method, or a file from before there were such sets
        return None
    n_items, unit = header["sets"]
    errors = SquaredErrors(tensors["sets.errors"], tensors["sets.repeats"], unit)
    return SetCalibration(LabelScores(tensors["sets.scores"], n_items), errors)


def _rebuild_partition(header: dict[str, Any], tensors: Tensors, layout: CellLayout) -> Partition:
    said = header["partition"]
    module = said.get("module", "")
    kind = find_partition(said["class"], module=module, where="in the file")
    partition = kind(**said["parameters"], **_with_prefix(tensors, _PARAMETER))
    partition.n_classes_, partition.n_cells_ = header["shape"]
    partition.layout_ = layout
    partition.restore({**said.get("learned", {}), **_with_prefix(tensors, _LEARNED)})
    return partition


def _with_prefix(tensors: Tensors, prefix: str) -> Tensors:
    return {
        name.removeprefix(prefix): array
        for name, array in tensors.items()
        if name.startswith(prefix)
    }


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
        digest.update(tensors[name].tobytes())
    return digest.hexdigest()


def _read(path: Path) -> tuple[dict[str, str], Tensors]:
    """Return the metadata and arrays of a safetensors file."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise FileNotFoundError(f"No calibrator at {path}.")
    try:
        with safe_open(path, framework="numpy") as file:
            names = list(file.keys())
            return file.metadata() or {}, {name: file.get_tensor(name) for name in names}
    except SafetensorError as error:
        raise InputError(
            "path",
            "must name a complete file written by hocal.save",
            value=f"{path}: {error}",
        ) from error
