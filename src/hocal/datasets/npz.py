"""Read arrays from files that people may have packed themselves, and say what is wrong."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hocal._base.errors import InputError

__all__ = ["read_arrays"]


def read_arrays(
    path: Path, shapes: Mapping[str, tuple[int | None, ...]]
) -> dict[str, NDArray[Any]]:
    """Return the named arrays of an .npz file after checking shapes; None stands for any length."""
    name_of_file = str(path)
    if not zipfile.is_zipfile(path):
        found = "something else or a torn one"
        raise InputError(name_of_file, "must be a whole .npz file", value=found)
    try:
        with np.load(path) as file:
            arrays = {name: file[name] for name in shapes if name in file}
            found = ", ".join(map(repr, file)) or "none"
    except (ValueError, zipfile.BadZipFile, zlib.error) as error:
        rule = "must be an .npz file of plain arrays"
        raise InputError(name_of_file, rule, value=f"an unreadable one: {error}") from error
    if missing := [name for name in shapes if name not in arrays]:
        raise InputError(name_of_file, f"must hold an array {missing[0]!r}", value=found)
    for name, shape in shapes.items():
        _check_shape(path, name, arrays[name].shape, shape)
    return arrays


def _check_shape(
    path: Path, name: str, found: tuple[int, ...], expected: tuple[int | None, ...]
) -> None:
    """Refuse an array of another shape."""
    lengths = zip(found, expected, strict=False)
    fits = all(wanted in (None, length) for length, wanted in lengths)
    if len(found) != len(expected) or not fits:
        shape = ", ".join("any" if length is None else str(length) for length in expected)
        raise InputError(str(path), f"must hold `{name}` with shape ({shape})", value=f"{found}")
