"""What is known about items beside PROBABILITIES: files of features, other members of an ensemble.

They are held in memory and found by item, whatever the order of the tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hocal._base.errors import InputError
from hocal.cli.engines import ReadTable
from hocal.cli.files import ENDINGS
from hocal.cli.messages import FileError
from hocal.cli.tables import check_columns

if TYPE_CHECKING:
    from hocal._base.typing import Array

__all__ = ["SideTable", "as_text", "check_width", "is_file", "joined", "load_features"]

NPY = ".npy"


class SideTable(NamedTuple):
    """Rows of numbers by item."""

    path: str
    items: Any  #: Arrow array of text, (n_rows,), all different
    values: Array  #: (n_rows, n_columns)

    @classmethod
    def of(cls, path: str, items: Any, values: Array) -> SideTable:
        """Hold rows after refusing an item that has several."""
        import pyarrow.compute as pc

        names = as_text(items)
        if pc.count_distinct(names).as_py() < len(names):
            counts = pc.value_counts(names)
            most = counts[pc.index(counts.field("counts"), pc.max(counts.field("counts"))).as_py()]
            found = f"{most['counts']} for {most['values'].as_py()!r}"
            raise FileError(path, "must have one row for each item", value=found)
        return cls(path, names, values)

    def take(self, items: Any) -> Array:
        """Return the rows of some items, an Arrow column."""
        import pyarrow.compute as pc

        wanted = as_text(items)
        place = pc.index_in(wanted, value_set=self.items)
        if place.null_count:
            absent = wanted.filter(pc.is_null(place))
            shown = ", ".join(repr(name) for name in absent[:3].to_pylist())
            raise FileError(
                self.path,
                "must have a row for each item of PROBABILITIES",
                value=f"none for {len(absent)} of {len(wanted)}, such as {shown}",
                remedy="Add them, or leave these items out of PROBABILITIES.",
            )
        rows: Array = self.values[place.to_numpy()]
        return rows


def is_file(text: str | None) -> bool:
    """Tell the name of a file of features from names of columns, by its ending."""
    return text is not None and text.lower().endswith((NPY, *ENDINGS))


def load_features(read: ReadTable, path: str, *, item: str, items: Any) -> SideTable:
    """Return features of a file: .npy in the order of the `items`, or a table with their column."""
    if path.lower().endswith(NPY):
        return SideTable.of(path, items, _load_array(read, path, len(items)))
    import narwhals as nw
    import numpy as np

    present = list(nw.from_native(read(path, None, [])).lazy().collect_schema())
    columns = [name for name in present if name != item]
    check_columns(present, [item], path, item)
    if not columns:
        raise FileError(path, f"must have columns of features besides {item!r}")
    rows = nw.from_native(read(path, None, columns)).lazy().collect().to_arrow()
    values = [_numbers(rows[name], path, name) for name in columns]
    return SideTable.of(path, rows[item], np.hstack(values))


def _numbers(column: Any, path: str, name: str) -> Array:
    """Return a column of numbers, or of lists of equal length, as (n_rows, n_columns)."""
    import numpy as np
    import pyarrow as pa

    rule = "must hold a number, or a list of as many numbers, in each row"
    try:
        if not pa.types.is_nested(column.type):
            return np.asarray(column.cast(pa.float64()).to_numpy())[:, None]
        return np.stack([np.asarray(x, dtype=np.float64) for x in column.to_pylist()])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError, ValueError) as error:
        raise FileError(path, rule, column=name, value=str(column.type)) from error


def _load_array(read: ReadTable, path: str, n_items: int) -> Array:
    """Return a numpy file with one row for each row of PROBABILITIES, which stays on disk."""
    import numpy as np

    if not read.keeps_order:
        remedy = "Write a Parquet file with the column of the items."
        raise InputError("--features", "must be a table with Spark", value=path, remedy=remedy)
    if not Path(path).is_file():
        raise FileError(path, "must name a file", value="none")
    try:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise FileError(path, "must be an array that numpy.save wrote", value=str(error)) from error
    if values.dtype.kind not in "biuf" or values.ndim not in (1, 2):
        found = f"{values.dtype} of shape {values.shape}"
        raise FileError(path, "must hold numbers, (n_rows, n_features)", value=found)
    if len(values) != n_items:
        raise FileError(
            path,
            f"must have a row for each of the {n_items} rows of PROBABILITIES, in their order",
            value=len(values),
            remedy="Or write a Parquet file with the column of the items, in any order.",
        )
    return np.asarray(values) if values.ndim == 2 else np.asarray(values)[:, None]


def as_text(items: Any) -> Any:
    """Return an Arrow column as one array of text."""
    import pyarrow as pa

    texts = items.cast(pa.large_string())
    return texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts


def check_width(table: SideTable, wanted: int) -> None:
    """Refuse other numbers of features than those of the fit."""
    found = table.values.shape[1]
    if found != wanted:
        rule = f"must have {wanted} columns of features, as in the fit"
        raise FileError(table.path, rule, value=found)


def joined(columns: Sequence[Array]) -> Array | None:
    """Return features side by side; None without any."""
    import numpy as np

    return np.hstack(list(columns)).astype(np.float64) if columns else None
