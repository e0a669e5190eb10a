"""Arrays from a file, checked as they are taken: kind, shape and range, and none that is unknown.

A checksum finds damage, not intent: whoever writes a file can compute it. What is read from a file
is checked as what a user passes in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hocal._base.errors import InputError

__all__ = ["SavedArrays"]


class SavedArrays:
    """Arrays by name, each of which must be taken.

    Parameters
    ----------
    arrays : mapping from str to array
        What a file holds.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = dict(arrays)
        self._prefix = ""
        self._left = set(arrays)

    def within(self, prefix: str) -> SavedArrays:
        """Return the arrays whose names begin with a prefix, without it."""
        inside = SavedArrays({})
        inside._arrays = self._arrays
        inside._left = self._left  # taken there is taken here
        inside._prefix = self._prefix + prefix
        return inside

    def __contains__(self, name: str) -> bool:
        return self._prefix + name in self._arrays

    def __bool__(self) -> bool:
        return any(name.startswith(self._prefix) for name in self._arrays)

    def take(
        self,
        name: str,
        *shape: int,
        dtypes: str = "f8",
        least: float = -math.inf,
        most: float = math.inf,
        size: float = math.inf,
    ) -> NDArray[Any]:
        """Return an array after checking it.

        Parameters
        ----------
        name : str
            Its name behind the prefix.
        *shape : int
            Its shape, -1 for any length.
        dtypes : str
            Kinds and bytes that its numbers may have, as in "f4 f8".
        least, most : float
            Limits of its numbers, which must be finite in any case.
        size : float
            Limit of their sizes, whatever their sign.
        """
        array = self._find(name)
        full = self._prefix + name
        lengths = zip(shape, array.shape, strict=False)
        if array.ndim != len(shape) or any(a not in (-1, b) for a, b in lengths):
            shown = str(shape).replace("-1", "any")
            raise InputError(full, f"must have shape {shown}", value=f"shape {array.shape}")
        if array.dtype.str[1:] not in dtypes.split():
            kinds = dtypes.replace(" ", " or ")
            raise InputError(full, f"must have numbers of type {kinds}", value=str(array.dtype))
        self._check_range(full, array, max(least, -size), min(most, size))
        return array

    def take_any(self) -> dict[str, NDArray[Any]]:
        """Return all arrays behind the prefix as they are."""
        names = [name for name in self._arrays if name.startswith(self._prefix)]
        self._left.difference_update(names)
        return {name.removeprefix(self._prefix): self._arrays[name] for name in names}

    def refuse_others(self) -> None:
        """Refuse arrays that nobody took."""
        if self._left:
            rule = "must be the name of no array"
            raise InputError(min(self._left), rule, value=f"{len(self._left)} too many")

    def _find(self, name: str) -> NDArray[Any]:
        full = self._prefix + name
        if full not in self._arrays:
            raise InputError(full, "must be among the arrays", value="none of that name")
        self._left.discard(full)
        return np.asarray(self._arrays[full])

    @staticmethod
    def _check_range(name: str, array: NDArray[Any], least: float, most: float) -> None:
        if not array.size:
            return
        low, high = array.min(), array.max()  # NaN if there is one
        if not (low >= least and high <= most and np.isfinite(low) and np.isfinite(high)):
            rule = f"must lie between {least:g} and {most:g}"
            raise InputError(name, rule, value=f"{low:.6g} to {high:.6g}")
