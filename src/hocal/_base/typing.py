"""The array types of signatures, under one name each."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["Array", "Counts", "Index", "IntArray", "Mask"]

Array: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
#: Positions: rows, classes, cells.
Index: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]
#: Labels of each item by class, dense or CSR.
Counts: TypeAlias = "IntArray | sparse.csr_array"
