"""Partitions in model files: what they say about themselves as JSON, and their arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hocal._base.errors import InputError
from hocal._base.saved_arrays import SavedArrays
from hocal.cells.protocol import CellLayout, Partition

__all__ = ["rebuild_partition", "take_apart"]

_LEARNED = "partition."  # before the names of arrays that a partition learned
_PARAMETER = "partition parameter."  # before those that it was made with


def take_apart(partition: Partition) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what the header says about a partition, and its arrays by name."""
    parts = {_PARAMETER: partition.get_params(deep=False), _LEARNED: partition.state()}
    plain: dict[str, dict[str, Any]] = {prefix: {} for prefix in parts}
    arrays: dict[str, NDArray[Any]] = {}
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


def rebuild_partition(
    kind: type[Partition], header: dict[str, Any], saved: SavedArrays, layout: CellLayout
) -> Partition:
    """Return the partition of a file, after checking that it is one of this kind and layout."""
    said = header["partition"]
    parameters = {**said["parameters"], **saved.within(_PARAMETER).take_any()}
    if sorted(parameters) != sorted(kind._get_param_names()):
        raise InputError("partition", "must have its parameters alone", value=sorted(parameters))
    partition = kind(**parameters)
    partition.n_classes_, partition.n_cells_ = header["shape"]
    partition.layout_ = layout
    partition.restore({**said["learned"], **saved.within(_LEARNED).take_any()})
    if partition.n_cells_ != len(layout.group):
        raise InputError("shape", f"must name {len(layout.group)} cells", value=header["shape"])
    partition.check_restored()
    return partition
