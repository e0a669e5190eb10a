"""Read arrays from files that people may have packed themselves, and say what is wrong with them."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["read_arrays"]


def read_arrays(
    path: Path, shapes: Mapping[str, tuple[int | None, ...]]
) -> dict[str, NDArray[Any]]:
    """Return the named arrays of an .npz file after checking their shapes; None stands for any length."""
    if not zipfile.is_zipfile(path):
        raise ValueError(f"`{path}` must be a whole .npz file, got something else or a torn one.")
    try:
        with np.load(path) as file:
            arrays = {name: file[name] for name in shapes if name in file}
            found = ", ".join(map(repr, file)) or "none"
    except (ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(
            f"`{path}` must be an .npz file of plain arrays, got an unreadable one: {error}"
        ) from error
    if missing := [name for name in shapes if name not in arrays]:
        raise ValueError(f"`{path}` must hold an array {missing[0]!r}, got {found}.")
    for name, shape in shapes.items():
        _check_shape(path, name, arrays[name].shape, shape)
    return arrays


def _check_shape(
    path: Path, name: str, found: tuple[int, ...], expected: tuple[int | None, ...]
) -> None:
    """Refuse an array of another shape."""
    if len(found) != len(expected) or any(
        e not in (None, f) for f, e in zip(found, expected, strict=True)
    ):
        wanted = ", ".join("any" if length is None else str(length) for length in expected)
        raise ValueError(f"`{path}` must hold `{name}` with shape ({wanted}), got {found}.")
