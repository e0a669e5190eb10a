"""Partitions by what was typed: their names, and the numbers that some of them take."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

from hocal._base.errors import InputError

if TYPE_CHECKING:
    from hocal.cells.partitions import Partition

__all__ = ["make_partition", "partition_class"]


def make_partition(
    kind: type[Partition] | None, n_classes: int, settings: Mapping[str, Any]
) -> Partition:
    """Return the partition that the options describe, fitted unless it learns from predictions."""
    import hocal

    n_cells = settings["n_cells"]
    if (kind is None) != (n_cells is not None):
        raise InputError("--cell and --n-cells", "must be given together")
    if kind is None:
        return hocal.PrecomputedPartition(n_cells).fit_classes(n_classes)
    own = {"n_slices", "n_bins"} & set(signature(kind).parameters)
    chosen = kind(**{name: settings[name] for name in own})
    return chosen if chosen.learns_from_predictions else chosen.fit_classes(n_classes)


def partition_class(name: str) -> type[Partition]:
    """Return the class of a name; "top-label" stands for TopLabelPartition."""
    from hocal.cells import find_partition, known_partitions

    words = (f"{word[:1].upper()}{word[1:]}" for word in name.split("-"))
    own = "".join(words) + "Partition"
    known = known_partitions()
    if own not in known and name not in known:
        raise InputError(
            "--partition",
            "must be one of hocal, such as top-label or uniform, or one that --import brought",
            value=repr(name),
        )
    chosen = find_partition(own if own in known else name)
    required = [
        parameter.name
        for parameter in signature(chosen).parameters.values()
        if parameter.default is parameter.empty
    ]
    if required:
        raise InputError(
            "--partition",
            "must be one that needs no parameters",
            value=f"{name!r}, which needs {', '.join(required)}",
            remedy="Fit it in Python; the other commands take the model.",
        )
    return chosen
