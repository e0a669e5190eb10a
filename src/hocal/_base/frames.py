"""Hand results to whatever dataframe library the user has."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, cast

from hocal._base.errors import InputError

__all__ = ["to_frame"]


def to_frame(columns: Mapping[str, Any], backend: Any) -> Any:
    """Return a native dataframe of the columns; `backend` is "pandas", "polars" or "pyarrow"."""
    import narwhals as nw

    if backend is not None and not isinstance(backend, str | ModuleType):
        known = "pandas, polars, pyarrow"
        raise InputError("backend", f"must be one of {known}", value=type(backend).__name__)
    try:
        made = nw.from_dict(columns, backend=cast(Any, backend))
        return made.to_native()
    except ModuleNotFoundError as error:
        raise ImportError(
            f"`to_frame` needs {backend}. Install it with: pip install {backend}"
        ) from error
    except ValueError as error:
        raise InputError("backend", "must name a dataframe library", value=repr(backend)) from error
