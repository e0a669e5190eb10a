"""Save and load calibrators in one safetensors file: arrays and JSON, nothing that runs code."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hocal._base.errors import InputError
from hocal._base.files import write_atomically
from hocal._base.saved_arrays import SavedArrays
from hocal._base.validation import check_integer
from hocal.calibration.by_item.model import ItemModel
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.calibration.levels import QUANTITIES
from hocal.calibration.reference import Reference
from hocal.calibration.saved_header import (
    check_diagnostics,
    check_header_size,
    check_inputs,
    check_notes,
    check_parameters,
    check_temperature,
    parse_header,
)
from hocal.calibration.saved_partition import rebuild_partition, take_apart
from hocal.calibration.saved_parts import (
    SOURCES,
    check_index,
    check_item_model,
    statistics_arrays,
    take_class_orders,
    take_levels,
    take_mixtures,
    take_seen,
    take_sets,
    take_source,
    take_statistics,
)
from hocal.calibration.set_calibration import SetCalibration
from hocal.cells.protocol import Partition, find_partition

__all__ = ["load", "read_notes", "save", "serialise"]

FORMAT = "hocal-calibrator"
VERSION = 7
_ITEMS = "items."  # before the names of arrays of the model of items
_REFERENCE = "reference."  # before those of what calibration items were like

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
    partition, arrays = take_apart(calibrator.partition_)
    named = _tensors(calibrator) | arrays
    tensors = {name: np.asarray(array, order="C") for name, array in named.items()}
    header = _header(calibrator, partition, check_notes({} if notes is None else notes))
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "header": header,
        "checksum": _checksum(tensors, header),
    }
    return _in_order(to_bytes(tensors, metadata))


def _in_order(content: bytes) -> bytes:
    """Return a safetensors file whose header is sorted: equal models have equal files."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    places = sorted(header, key=lambda name: header[name].get("data_offsets", [-1]))
    ordered = {name: dict(sorted(header[name].items())) for name in places}
    text = json.dumps(ordered, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # what follows is aligned
    return len(text).to_bytes(8, "little") + text + content[8 + length :]


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
    header, tensors = _read_checked(path)
    said = header["partition"]
    kind = find_partition(said["class"], module=said["module"], where="in the file")
    with _sound(path):
        return _rebuild(kind, header, SavedArrays(tensors))


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
    with _sound(path):
        if set(metadata) != {"format", "version", "checksum", "header"}:
            raise InputError("metadata", "must have no other entries", value=sorted(metadata))
        return parse_header(metadata["header"]), tensors


@contextmanager
def _sound(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name the file in errors about its content, which anybody can have written."""
    try:
        yield
    # a partition of one's own may meet anything in a forged file
    except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
        raise InputError(
            "path",
            "must name a sound file written by hocal.save",
            value=str(error).rstrip("."),
            where=f"in {path}",
            remedy="Save it again, and take model files only from people you trust.",
        ) from error


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
        text = json.dumps(header, sort_keys=True)
    except TypeError as error:
        raise InputError(
            "calibrator",
            "must have plain parameters to be saved",
            value=f"{parameters}: {error}",
        ) from error
    check_header_size(text)
    return text


def _sets_header(sets: SetCalibration | None) -> dict[str, Any]:
    return {} if sets is None else {"sets": [sets.scores.n_items, sets.errors.unit]}


def _finite(value: float) -> float | None:
    """Return a number as JSON can hold it."""
    return value if math.isfinite(value) else None


def _tensors(calibrator: SnapshotCalibrator) -> Tensors:
    """Return every array of a fitted calibrator by name."""
    mixtures = calibrator.cell_mixtures_
    tensors: Tensors = {
        "source": np.array([SOURCES.index(name) for name in calibrator.source_], dtype=np.uint8),
        "class_orders": calibrator.class_orders_,
        "seen.fingerprints": calibrator.seen_.fingerprints,
        "seen.folds": calibrator.seen_.folds,
        "seen.inputs": calibrator.seen_.inputs,
        "mixtures.points": mixtures.support,
        **{f"mixtures.{name}": getattr(mixtures, name) for name in ("weights", "offsets", "index")},
        **statistics_arrays(calibrator.statistics_, ""),
    }
    for quantity, levels in calibrator.levels_.items():
        tensors[f"levels.{quantity}.edges"] = levels.edges
        tensors |= statistics_arrays(levels.statistics, f"levels.{quantity}.")
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


def _rebuild(
    kind: type[Partition], header: dict[str, Any], saved: SavedArrays
) -> SnapshotCalibrator:
    """Return the calibrator, every part of which has been checked."""
    calibrator = SnapshotCalibrator(**check_parameters(header["parameters"]))
    n_classes = check_integer(header["shape"][0], "shape", minimum=2)
    statistics = calibrator.statistics_ = take_statistics(saved, n_classes)
    partition = rebuild_partition(kind, header, saved, statistics.layout)
    calibrator.partition = calibrator.partition_ = partition
    calibrator.source_ = take_source(saved, statistics)
    calibrator.cell_mixtures_ = take_mixtures(saved.within("mixtures."), n_classes)
    check_index(calibrator)
    calibrator.class_orders_ = take_class_orders(saved, statistics)
    calibrator.diagnostics_ = check_diagnostics(header["diagnostics"], calibrator)
    calibrator.input_shape_ = check_inputs(header["inputs"], n_classes)
    calibrator.temperature_ = check_temperature(header["temperature"])
    _rebuild_items(calibrator, header["levels"], saved)
    calibrator.sets_ = None
    if "sets" in header:  # not with another method, or in a file from before there were such sets
        calibrator.sets_ = take_sets(saved.within("sets."), header["sets"], statistics)
    known = saved.within(_REFERENCE)
    shape = calibrator.input_shape_
    calibrator.reference_ = (
        Reference.from_arrays(known, shape, statistics.n_cells) if known else None
    )
    saved.refuse_others()
    return calibrator


def _rebuild_items(calibrator: SnapshotCalibrator, levels: Any, saved: SavedArrays) -> None:
    """Set what a calibrator knows of single items: nothing, or a model of them."""
    statistics = calibrator.statistics_
    has_model = bool(saved.within(_ITEMS))
    expected = sorted(QUANTITIES) if has_model else []
    if levels != expected or (has_model and calibrator.method != "items"):
        rule = 'must come with method="items" and a model of items'
        raise InputError("levels", rule, value=f"{levels} with method={calibrator.method!r}")
    n_items = int(statistics.n_items.sum())
    calibrator.seen_ = take_seen(saved.within("seen."), n_items, has_model=has_model)
    calibrator.item_model_ = None
    calibrator.levels_ = {}
    if not has_model:
        return
    model = calibrator.item_model_ = ItemModel.from_arrays(saved.within(_ITEMS))
    check_item_model(model, calibrator.input_shape_, statistics)
    for quantity, values in zip(QUANTITIES, model.out_of_fold, strict=True):
        inside = saved.within(f"levels.{quantity}.")
        calibrator.levels_[quantity] = take_levels(inside, values, statistics)


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
    # an array of a kind that numpy does not have is found late
    except (SafetensorError, TypeError, ValueError, LookupError, AttributeError) as error:
        raise InputError(
            "path",
            "must name a complete file written by hocal.save",
            value=f"{path}: {error}",
        ) from error
