"""Predictions in: one column per class, or lists, or scores, checked and typed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from hocal._base.errors import InputError
from hocal.cli.engines import ReadTable
from hocal.cli.messages import FileError
from hocal.cli.side_tables import SideTable, joined, load_features
from hocal.cli.tables import check_columns, refuse_names

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hocal._base.typing import Array

__all__ = [
    "BY",
    "GivenRows",
    "Probabilities",
    "Wanted",
    "extra_column",
    "open_probabilities",
    "same_items",
]


def extra_column(option: str) -> str:
    """Return the name of a column that an option asked for, which no column of a file has."""
    return f"hocal {option}"


BY = extra_column("by")  # groups, as text


class GivenRows(NamedTuple):
    """What a calibrator takes about rows of PROBABILITIES; but for `cells`, by its own names."""

    probabilities: Array  #: (n_rows, n_classes), or (n_rows, n_members, n_classes)
    cells: NDArray[Any] | None  #: (n_rows,) cell numbers or groups, where they come with the data
    features: Array | None  #: (n_rows, n_features)

    @property
    def mean(self) -> Array:
        """The prediction of each item: the mean over the members, (n_rows, n_classes)."""
        p = self.probabilities
        return p if p.ndim == 2 else p.mean(axis=1)

    @property
    def beside(self) -> dict[str, Any]:
        """What a calibrator takes beside the predictions, by name."""
        return {"cells": self.cells, "features": self.features}

    def rows(self, chosen: Any) -> GivenRows:
        """Return some of the rows."""
        taken = (None if part is None else part[chosen] for part in self)
        return GivenRows(*taken)  # type: ignore[arg-type]


class Probabilities(NamedTuple):
    """A table of predictions with one column per class."""

    #: native table with the item, one column of numbers per class, and what else was asked for
    table: Any
    columns: list[str]  #: the columns of the classes
    file_columns: list[str]  #: the same as the file calls them; one for a column of lists
    item: str  #: the column of the items
    scores: Sequence[str] = ()  #: columns of scores, which are features
    cell: str | None = None  #: the column of the cells, where they come with the data
    by: str | None = None  #: what the file calls the groups, which are in the column `BY`
    members: Sequence[SideTable] = ()  #: predictions of the other members of an ensemble
    features: SideTable | None = None  #: of a file

    def arrays(self, rows: Any) -> GivenRows:
        """Return what a calibrator takes about rows of the table, which are those of Arrow."""
        import numpy as np

        items = rows[self.item]
        plain = np.column_stack([_numpy(rows[name]) for name in self.columns])
        others = [member.take(items) for member in self.members]
        columns = [_score(rows[name], name, items) for name in self.scores]
        columns += [] if self.features is None else [self.features.take(items)]
        cells = None if self.cell is None else _numpy(rows[self.cell])
        return GivenRows(
            np.stack([plain, *others], axis=1) if others else plain,
            cells if self.by is None else _groups(rows[BY], items),
            joined(columns),
        )

    def all_items(self) -> Any:
        """Return the items as an Arrow column, in the order of the file where it has one."""
        import narwhals as nw

        return nw.from_native(self.table).lazy().select(self.item).collect().to_arrow()[self.item]

    @property
    def classes(self) -> list[str]:
        """Names of the classes where none are declared."""
        if len(self.file_columns) > 1:
            return self.columns
        return [str(j) for j in range(len(self.columns))]

    @contextmanager
    def explained(self, place: Callable[[int], str] | None = None) -> Iterator[None]:
        """Say in an error about probabilities which columns were taken for them, and what to do.

        `place` says in words where a row is, for arrays that are not in the order of the file.
        """
        try:
            yield
        except InputError as error:
            where = error.where
            if place is not None and error.row is not None:
                where = place(error.row)
            advice = _advice(error)
            if advice is None:
                raise error.replace(where=where) from error
            remedy = f"{advice} {_taken(self.file_columns)}"
            raise error.replace(where=where, remedy=remedy, settings=()) from error


def _numpy(column: Any) -> Any:
    """Return a column of an Arrow table or batch as an array; gaps are NaN."""
    import numpy as np

    return np.asarray(column.to_numpy(zero_copy_only=False))


def _score(column: Any, name: str, items: Any) -> Array:
    """Return a column of scores, (n_rows, 1); a gap is refused."""
    import numpy as np

    values = np.asarray(_numpy(column), dtype=np.float64)
    if not np.isfinite(values).all():
        where = _where(items, int(np.flatnonzero(~np.isfinite(values))[0]))
        rule = "must hold scores or features, a number in each row"
        raise InputError("probabilities", rule, column=name, value="none", where=where)
    return values[:, None]


def _where(items: Any, row: int) -> str:
    return f"for item {items[row].as_py()!r}"


def _groups(column: Any, items: Any) -> NDArray[Any]:
    """Return a column of groups as text; a gap is refused."""
    import numpy as np
    import pyarrow as pa

    if column.null_count:
        where = _where(items, column.is_null().to_pylist().index(True))
        remedy = "Give such items a group of their own, such as 'unknown'."
        rule = "must name the group of each item"
        raise InputError("by", rule, value="none", where=where, remedy=remedy)
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    encoded = whole.dictionary_encode()
    names = np.array(encoded.dictionary.to_pylist(), dtype=np.str_)
    return np.asarray(names[encoded.indices.to_numpy()])


def _advice(error: InputError) -> str | None:
    """Return what to do about probabilities in a file that are none."""
    from hocal._base.validation import NON_NEGATIVE, SUM_TO_ONE

    advice = {
        SUM_TO_ONE: "Write more digits, or divide each row by its sum before writing the file.",
        NON_NEGATIVE: "Apply softmax if they are logits.",
    }
    return advice.get(error.rule) if error.argument == "probabilities" else None


class Wanted(NamedTuple):
    """What the options of a command say about PROBABILITIES, their lists taken apart."""

    item: str  #: the column of the items
    columns: Sequence[str] | None = None  #: of the classes; None for all but the others
    n_classes: int | None = None  #: where it is known
    cell: str | None = None
    by: str | None = None
    scores: Sequence[str] = ()  #: columns of features
    names: Sequence[str] | None = None  #: of all columns, of a CSV file without a header
    features: str | None = None  #: a file
    ensemble: Sequence[str] = ()  #: files of other members
    #: columns by the options that asked for them; they come along as `extra_column`
    extra: Mapping[str, str] = {}

    @property
    def keys(self) -> list[str]:
        """The columns that are neither probabilities nor scores."""
        return [name for name in (self.item, self.cell, self.by) if name is not None]

    @property
    def knows_more(self) -> bool:
        """Whether there is something to predict from beside probabilities."""
        return bool(self.scores) or self.features is not None


def open_probabilities(read: ReadTable, path: str, wanted: Wanted) -> Probabilities:
    """Return a table of predictions; a lone column is taken for lists, which become one per class.

    Where there are no columns of probabilities, but scores, all classes are predicted alike.
    """
    refuse_names(path, wanted.names, "--probability-names")
    opened = _open_table(read, path, wanted)
    opened = opened._replace(scores=wanted.scores, cell=wanted.cell, by=wanted.by)
    if wanted.features is not None:
        items = opened.all_items()
        found = load_features(read, wanted.features, item=wanted.item, items=items)
        opened = opened._replace(features=found)
    return _add_members(read, opened, wanted)


def _open_table(read: ReadTable, path: str, wanted: Wanted) -> Probabilities:
    """Return predictions with nothing beside them."""
    import narwhals as nw

    frame = nw.from_native(read(path, wanted.names, [])).lazy()
    present = list(frame.collect_schema())
    chosen = _choose_columns(frame, present, path, wanted)
    kept = _kept_columns(frame, wanted)
    if len(chosen) == 1:
        return _open_lists(frame, path, wanted.item, chosen[0], wanted.n_classes, kept)
    if not chosen:
        return _open_scores(frame, wanted.item, wanted.n_classes, kept)
    _check_numbers(frame, chosen, path)
    numeric = [*chosen, *wanted.scores]  # now that they are known
    frame = nw.from_native(read(path, wanted.names, numeric)).lazy()
    numbers = [nw.col(column).cast(nw.Float64) for column in chosen]
    table = frame.select(wanted.item, *numbers, *kept).to_native()
    return Probabilities(table, chosen, chosen, wanted.item)


def _choose_columns(frame: Any, present: list[str], path: str, wanted: Wanted) -> list[str]:
    """Return the columns of probabilities, which are all that have no other role."""
    _check_extra(present, wanted.extra)
    others = {*wanted.keys, *wanted.extra.values(), *wanted.scores}
    chosen = list(wanted.columns or [])
    if wanted.columns is None:
        chosen = [name for name in present if name not in others]
    check_columns(present, [*wanted.keys, *wanted.scores, *chosen], path, wanted.item)
    _check_numbers(frame, wanted.scores, path, "scores or features")
    if not chosen and not wanted.knows_more:
        listed = ", ".join(map(repr, wanted.keys))
        raise FileError(path, f"must have columns of probabilities besides {listed}")
    return chosen


def _kept_columns(frame: Any, wanted: Wanted) -> list[Any]:
    """Return the columns beside the item and the probabilities, as expressions."""
    import narwhals as nw

    from hocal.cells.crossed import group_in_engine

    kept = [nw.col(column).alias(extra_column(option)) for option, column in wanted.extra.items()]
    kept += [nw.col(column).cast(nw.Float64) for column in wanted.scores]
    if wanted.cell is not None:
        kept.append(nw.col(wanted.cell).cast(nw.Float64))
    if wanted.by is not None:
        kept.append(group_in_engine(frame, wanted.by).alias(BY))
    return kept


def _add_members(read: ReadTable, first: Probabilities, wanted: Wanted) -> Probabilities:
    """Return predictions with those of the other members of an ensemble."""
    if wanted.ensemble and not first.file_columns:
        rule = "must be left out where there are no columns of probabilities"
        raise InputError("--ensemble", rule)
    alike = Wanted(wanted.item, first.file_columns, len(first.columns), names=wanted.names)
    members = [_load_member(read, path, alike) for path in wanted.ensemble]
    return first._replace(members=members)


def _load_member(read: ReadTable, path: str, wanted: Wanted) -> SideTable:
    """Return the predictions of a member of an ensemble, by item."""
    import narwhals as nw

    opened = open_probabilities(read, path, wanted)
    rows = nw.from_native(opened.table).lazy().collect().to_arrow()
    return SideTable.of(path, rows[wanted.item], opened.arrays(rows).probabilities)


def _open_scores(frame: Any, item: str, n_classes: int | None, kept: list[Any]) -> Probabilities:
    """Return predictions that know nothing but scores: all classes are alike."""
    import narwhals as nw

    if n_classes is None:
        rule = "must be given where there are no columns of probabilities, but scores or features"
        raise InputError("--classes", rule)
    names = [extra_column(f"class {j}") for j in range(n_classes)]
    alike = [nw.lit(1 / n_classes).alias(name) for name in names]
    return Probabilities(frame.select(item, *kept, *alike).to_native(), names, [], item)


def _open_lists(
    frame: Any, path: str, item: str, column: str, n_classes: int | None, kept: list[Any]
) -> Probabilities:
    """Return predictions of a column of lists, with one column per class."""
    import narwhals as nw

    if not isinstance(frame.collect_schema()[column], (nw.List, nw.Array, nw.String)):
        remedy = "Name the columns of all classes otherwise."
        raise FileError(path, "must hold lists", column=column, remedy=remedy)
    lists = frame.select(item, nw.col(column).cast(nw.List(nw.Float64)), *kept)
    size = _first_length(lists, path, column, n_classes)
    values = nw.col(column)
    fits = values.list.len() == size  # a list of another length becomes gaps, which are refused
    names = [f"{column}_{j}" for j in range(size)]
    numbers = [nw.when(fits).then(values.list.get(j)).alias(name) for j, name in enumerate(names)]
    others = [name for name in lists.collect_schema().names() if name not in (item, column)]
    return Probabilities(lists.select(item, *numbers, *others).to_native(), names, [column], item)


def same_items(table: Any, predictions: Probabilities) -> tuple[Any, Probabilities]:
    """Return a table and predictions whose items are text in both where they are in one of them."""
    import narwhals as nw

    item = predictions.item
    frames = [nw.from_native(native).lazy() for native in (table, predictions.table)]
    if len({frame.collect_schema()[item] == nw.String for frame in frames}) == 1:
        return table, predictions
    first, second = (
        frame.with_columns(nw.col(item).cast(nw.String)).to_native() for frame in frames
    )
    return first, predictions._replace(table=second)


def _check_extra(present: Sequence[str], wanted: Mapping[str, str]) -> None:
    """Refuse options that name a column which is not there."""
    for option, column in wanted.items():
        if column not in present:
            raise InputError(
                f"--{option}",
                "must name a column of PROBABILITIES",
                value=repr(column),
                remedy=f"It has {', '.join(present)}.",
            )


def _check_numbers(
    frame: Any, columns: Sequence[str], path: str, what: str = "probabilities"
) -> None:
    """Refuse text among numbers, as far as the first row tells; CSV is text until cast."""
    if not columns:
        return
    first = frame.select(*columns).head(1).collect().to_dict(as_series=False)
    for column, values in first.items():
        try:
            [float(value) for value in values if value is not None]
        except (TypeError, ValueError) as error:
            raise FileError(
                path,
                f"must hold {what}",
                column=column,
                value=repr(values[0]),
                remedy=_taken(columns) if what == "probabilities" else "",
            ) from error


def _taken(columns: Sequence[str]) -> str:
    """Say which columns are taken for probabilities, and how to name others."""
    return (
        f"Columns taken as probabilities: {', '.join(columns)}. "
        "If one of them is something else, name those that are with --probability-columns."
    )


def _first_length(frame: Any, path: str, column: str, n_classes: int | None) -> int:
    """Return the length of the first list, one entry per class; without rows, any will do."""
    import narwhals as nw

    length = nw.col(column).list.len().alias("n")
    first = frame.select(length).head(1).collect()["n"].to_list()
    found = first[0] if first else n_classes
    if found is None or found < 2 or n_classes not in (None, found):
        wanted = "at least two" if n_classes is None else n_classes
        rule = f"must hold lists of {wanted} probabilities, one for each class"
        raise FileError(path, rule, column=column, value=found or "none")
    return int(found)
