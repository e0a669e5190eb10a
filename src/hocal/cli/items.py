"""Items in memory: the counts of each beside its prediction, for commands that need them all."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hocal._base.errors import InputError, Setting
from hocal.cli.engines import ReadTable
from hocal.cli.exports import ANNOTATOR, LABEL, ExportOptions, export_options, open_judgements
from hocal.cli.messages import FileError
from hocal.cli.option_groups import LabelColumns, idle_of_labels, refuse_idle
from hocal.cli.options import split_list
from hocal.cli.predictions import Probabilities, same_items
from hocal.cli.tables import count_rows, open_labels, spell_as

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hocal._base.typing import Array, Index
    from hocal.annotations import LabelCounts
    from hocal.cli.predictions import GivenRows

__all__ = [
    "LabelOptions",
    "MatchedItems",
    "count_items",
    "find_items",
    "find_rows",
    "label_options",
    "read_items",
]


class LabelOptions(NamedTuple):
    """What the options of a command say about its table of labels."""

    label: list[str]  #: columns with labels; empty where there are counts
    annotator: str | None  #: column that tells who judged
    count_columns: list[str]  #: columns with numbers of labels; empty where there are labels
    names: list[str] | None  #: names of all columns, of a CSV file without a header
    rules: Mapping[str, str]  #: which rows and items may be left out, by the names of these options
    export: ExportOptions | None = None  #: where the labels are the export of an annotation tool
    first: int | None = None  #: labels to keep of each item, the first ones; None for all
    time: str | None = None  #: column that orders the labels of an item

    @property
    def label_argument(self) -> str | list[str]:
        """The columns with labels as the library takes them: judgements, or one per annotator."""
        return self.label[0] if len(self.label) == 1 else self.label

    def open(
        self, read: ReadTable, path: str, predictions: Probabilities
    ) -> tuple[Any, Probabilities]:
        """Open the table of labels; items of both tables then have the same type."""
        return same_items(self.open_alone(read, path, item=predictions.item), predictions)

    def open_alone(self, read: ReadTable, path: str, *, item: str | None) -> Any:
        """Open the table of labels, and keep the first of each item if asked to.

        An export names its items itself where `item` is None.
        """
        if self.export is not None:
            return open_judgements(read, path, self.export, item=item)
        if item is None:
            raise InputError("--item", "must be given, unless LABELS is an export")
        if not self.label and not self.count_columns:
            raise InputError("--label", "must be given, unless --count-columns is")
        if self.label and self.count_columns:
            raise InputError("--label", "must be left out with --count-columns")
        labels = open_labels(
            read,
            path,
            item=item,
            label=self.label,
            annotator=self.annotator,
            count_columns=self.count_columns,
            time=self.time,
            names=self.names,
        )
        if self.first is None or self.time is None:
            return labels
        from hocal.annotations.first_labels import first_labels

        return first_labels(labels, item=item, time=self.time, k=self.first)


def label_options(
    path: str,
    columns: LabelColumns,
    rules: Mapping[str, str],
    *,
    first: int | None = None,
    time: str | None = None,
) -> LabelOptions:
    """Return the options as they were typed, their lists taken apart; `path` is that of LABELS.

    Those that would do nothing are refused.
    """
    from hocal._base.validation import check_choice

    for name in ("unlabelled", "unpredicted"):
        check_choice(rules[name], name, ("error", "drop"))
    if (first is None) != (time is None):
        raise InputError("--first and --time", "must be given together")
    export = export_options(path, columns)
    refuse_idle(idle_of_labels(columns, export=export is not None))
    if export is not None:
        rule = "must be left out for an export, which is read without time"
        if first is not None:
            raise InputError("--first", rule)
        return LabelOptions([LABEL], ANNOTATOR, [], None, rules, export)
    chosen = split_list(columns.label, "--label") or []
    if first is not None and len(chosen) != 1:
        raise InputError("--first", "must come with one column of labels, one row per judgement")
    return LabelOptions(
        chosen,
        columns.annotator,
        split_list(columns.count_columns, "--count-columns") or [],
        split_list(columns.names, "--names"),
        rules,
        first=first,
        time=time,
    )


class MatchedItems(NamedTuple):
    """Labelled items with their predictions, in the sorted order of the items."""

    items: NDArray[Any]  #: (n_items,) what the table calls them
    given: GivenRows  #: what a calibrator takes about them
    counts: Any  #: (n_items, n_classes), dense or sparse

    def place(self, row: int) -> str:
        """Say in words where a row of the arrays is."""
        return f"for item {self.items.item(row)!r}"

    def take(self, rows: Index) -> MatchedItems:
        """Return some of the items."""
        return MatchedItems(self.items[rows], self.given.rows(rows), self.counts[rows])

    @property
    def probabilities(self) -> Array:
        """The predictions, those of each member for an ensemble."""
        return self.given.probabilities

    @property
    def inputs(self) -> dict[str, Any]:
        """What a calibrator takes beside the predictions, by name."""
        return self.given.beside


def count_items(
    labels: Any, options: LabelOptions, *, item: str, classes: Sequence[str] | None
) -> LabelCounts:
    """Count the labels of each item that has any; without classes, those that are found."""
    from hocal.annotations.counting import count_labels

    return count_labels(
        spell_as(labels, options.label, classes),
        item=item,
        label=options.label_argument or None,
        annotator=options.annotator,
        count_columns=_class_columns(options.count_columns, classes or options.count_columns),
        classes=None if options.count_columns else classes,
        missing=options.rules["missing"],
        unknown=options.rules["unknown"],
        duplicates=options.rules["duplicates"],
        empty="drop",  # items without a label have a rule of their own
    )


def read_items(
    labels: Any,
    predictions: Probabilities,
    options: LabelOptions,
    *,
    classes: Sequence[str],
) -> MatchedItems:
    """Count labels and fetch the predictions of the same items; rules say what may be left out."""
    import numpy as np

    item = predictions.item
    counted = count_items(labels, options, item=item, classes=classes)
    unlabelled = options.rules["unlabelled"]
    fetched, n_predicted = _fetch(predictions.table, labels, item, unlabelled, len(counted.items))
    row_of = find_rows(fetched[item].to_pylist())
    if not len(counted.items):
        remedy = "All rows were left out by rules such as --missing drop."
        raise FileError(
            "LABELS", "must have a label that can be counted", value="none", remedy=remedy
        )
    places = find_items(counted.items.tolist(), row_of, options.rules["unpredicted"])
    kept = np.array([place is not None for place in places])
    if unlabelled == "error":
        _check_labelled(n_predicted, int(kept.sum()))
    rows = fetched.take([place for place in places if place is not None])
    return MatchedItems(counted.items[kept], predictions.arrays(rows), counted.counts[kept])


def find_rows(items: Sequence[Any]) -> dict[Any, int]:
    """Return the row of each predicted item; an item that has several is refused."""
    nested = next((name for name in items if not isinstance(name, Hashable)), None)
    if nested is not None:
        rule = "must name items by plain values, such as text or numbers"
        raise FileError("PROBABILITIES", rule, value=nested)
    rows = {name: row for row, name in enumerate(items)}
    if len(rows) < len(items):
        repeated = next(name for row, name in enumerate(items) if rows[name] != row)
        rule = "must have one row for each item"
        raise FileError("PROBABILITIES", rule, value=f"several for {repeated!r}")
    return rows


def find_items(
    labelled: Sequence[Any], row_of: Mapping[Any, int], unpredicted: str
) -> list[int | None]:
    """Return the row of each labelled item among the predictions, None where that is allowed."""
    absent = [name for name in labelled if name not in row_of]
    if absent and (unpredicted == "error" or len(absent) == len(labelled)):
        rule = "must have a row for each labelled item"
        found = f"none for {len(absent)} of {len(labelled)}, such as {absent[0]!r}"
        raise _lack("PROBABILITIES", rule, found, "unpredicted")
    return [row_of.get(name) for name in labelled]


def _lack(file: str, rule: str, found: str, option: str) -> FileError:
    """Return the error for items that one of two files does not have."""
    remedy = "Add them, or leave such items out with {0}."
    return FileError(file, rule, value=found, remedy=remedy, settings=[Setting(option, "drop")])


def _class_columns(columns: Sequence[str], classes: Sequence[str]) -> dict[str, str] | None:
    if not columns:
        return None
    if len(columns) != len(classes):
        rule = f"must name one column for each of {len(classes)} classes"
        raise InputError("--count-columns", rule, value=len(columns))
    return dict(zip(classes, columns, strict=True))


def _fetch(table: Any, labels: Any, item: str, unlabelled: str, n_labelled: int) -> tuple[Any, int]:
    """Return the predictions of labelled items, and how many predictions were looked at.

    The file is read once. Where every predicted item must have a label there can be no more rows
    than labelled items: so many are read, and the rest only to tell what is wrong.
    """
    import narwhals as nw

    frame = nw.from_native(table).lazy()
    if unlabelled == "error":
        first = frame.head(n_labelled + 1).collect().to_arrow()
        if first.num_rows <= n_labelled:
            return first, first.num_rows
    labelled = nw.from_native(labels).lazy().select(item).unique()
    fetched = frame.join(labelled, on=item, how="semi").collect().to_arrow()
    n_predicted = count_rows(table) if unlabelled == "error" else fetched.num_rows
    return fetched, n_predicted


def _check_labelled(n_predicted: int, n_labelled: int) -> None:
    """Refuse predicted items without a label."""
    n_bare = n_predicted - n_labelled
    if n_bare:
        rule = "must have a label for each item of PROBABILITIES"
        raise _lack("LABELS", rule, f"none for {n_bare} of {n_predicted}", "unlabelled")
