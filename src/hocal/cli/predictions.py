"""Predictions in: one column per class, or lists, or scores, checked and typed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from hocal._base.errors import InputError
from hocal.cli.engines import ReadTable
from hocal.cli.messages import FileError
from hocal.cli.tables import check_columns

__all__ = ["Probabilities", "extra_column", "open_probabilities", "same_items"]


class Probabilities(NamedTuple):
    """A table of predictions with one column per class."""

    #: native table with the item, one column of numbers per class, and what else was asked for
    table: Any
    columns: list[str]  #: the columns of the classes
    file_columns: list[str]  #: the same as the file calls them; one for a column of lists
    scores: Sequence[str] = ()  #: columns of scores, which are features

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


def _advice(error: InputError) -> str | None:
    """Return what to do about probabilities in a file that are none."""
    from hocal._base.validation import NON_NEGATIVE, SUM_TO_ONE

    advice = {
        SUM_TO_ONE: "Write more digits, or divide each row by its sum before writing the file.",
        NON_NEGATIVE: "Apply softmax if they are logits.",
    }
    return advice.get(error.rule) if error.argument == "probabilities" else None


def open_probabilities(
    read: ReadTable,
    path: str,
    *,
    item: str,
    columns: Sequence[str] | None = None,
    n_classes: int | None = None,
    cell: str | None = None,
    extra: Mapping[str, str] | None = None,
    names: Sequence[str] | None = None,
    scores: Sequence[str] = (),
) -> Probabilities:
    """Return a table of predictions; a lone column is taken for lists, which become one per class.

    `extra` names columns by the options that asked for them; they come along as `extra_column`.
    `scores` names columns of features; where there is nothing else, all classes are predicted
    alike.
    """
    import narwhals as nw

    wanted = extra or {}
    frame = nw.from_native(read(path, names, [])).lazy()
    present = list(frame.collect_schema())
    _check_extra(present, wanted)
    keys = [item] if cell is None else [item, cell]
    others = {*keys, *wanted.values(), *scores}
    chosen = [x for x in present if x not in others] if columns is None else list(columns)
    check_columns(present, [*keys, *scores, *chosen], path, item)
    _check_numbers(frame, scores, path, "scores")
    if not chosen and not scores:
        listed = ", ".join(map(repr, keys))
        raise FileError(path, f"must have columns of probabilities besides {listed}")
    kept = [nw.col(column).alias(extra_column(option)) for option, column in wanted.items()]
    kept += [nw.col(column).cast(nw.Float64) for column in scores]
    if cell is not None:
        kept.append(nw.col(cell).cast(nw.Float64))
    if len(chosen) == 1:
        opened = _open_lists(frame, path, item, chosen[0], n_classes, kept)
        return opened._replace(scores=scores)
    if not chosen:
        return _open_scores(frame, item, n_classes, kept)._replace(scores=scores)
    _check_numbers(frame, chosen, path)
    frame = nw.from_native(read(path, names, [*chosen, *scores])).lazy()  # now that they are known
    numbers = [nw.col(column).cast(nw.Float64) for column in chosen]
    return Probabilities(frame.select(item, *numbers, *kept).to_native(), chosen, chosen, scores)


def extra_column(option: str) -> str:
    """Return the name of a column that an option asked for, which no column of a file has."""
    return f"hocal {option}"


def _open_scores(frame: Any, item: str, n_classes: int | None, kept: list[Any]) -> Probabilities:
    """Return predictions that know nothing but scores: all classes are alike."""
    import narwhals as nw

    if n_classes is None:
        rule = "must be given with `--score` where there are no columns of probabilities"
        raise InputError("--classes", rule)
    names = [extra_column(f"class {j}") for j in range(n_classes)]
    alike = [nw.lit(1 / n_classes).alias(name) for name in names]
    return Probabilities(frame.select(item, *kept, *alike).to_native(), names, [])


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
    return Probabilities(lists.select(item, *numbers, *others).to_native(), names, [column])


def same_items(table: Any, predictions: Probabilities, item: str) -> tuple[Any, Probabilities]:
    """Return a table and predictions whose items are text in both where they are in one of them."""
    import narwhals as nw

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

    first = frame.select(nw.col(column).list.len().alias("n")).head(1).collect()["n"].to_list()
    found = first[0] if first else n_classes
    if found is None or found < 2 or n_classes not in (None, found):
        wanted = "at least two" if n_classes is None else n_classes
        rule = f"must hold lists of {wanted} probabilities, one for each class"
        raise FileError(path, rule, column=column, value=found or "none")
    return int(found)
