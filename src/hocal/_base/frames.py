"""Hand results to whatever dataframe library the user has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["to_frame"]


def to_frame(columns: Mapping[str, Any], backend: Any) -> Any:
    """Return a native dataframe of the columns; `backend` is "pandas", "polars" or "pyarrow"."""
    import narwhals as nw

    try:
        return nw.from_dict(columns, backend=backend).to_native()
    except ModuleNotFoundError as error:
        raise ImportError(
            f"`to_frame` needs {backend}. Install it with: pip install {backend}"
        ) from error
