"""Labelled items in memory: the counts of each item beside its prediction, for commands that need every item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hocal._base.typing import Array, IntArray
from hocal.cli.options import split_list
from hocal.cli.tables import Probabilities, Read, count_rows, open_labels, same_items

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Items", "LabelOptions", "find_rows", "label_options", "read_items"]


class LabelOptions(NamedTuple):
    """What the options of a command say about its table of labels."""

    label: list[str]  #: columns with labels; empty where there are counts
    annotator: str | None  #: column that tells who judged
    count_columns: list[str]  #: columns with numbers of labels; empty where there are labels
    names: list[str] | None  #: names of all columns, of a CSV file without a header
    rules: Mapping[str, str]  #: which rows and items may be left out, by the names of these options

    @property
    def label_argument(self) -> str | list[str] | None:
        """The columns with labels as the library takes them: one name for judgements, several for annotators."""
        return self.label[0] if len(self.label) == 1 else self.label or None

    def open(
        self, read: Read, path: str, predictions: Probabilities, *, item: str
    ) -> tuple[Any, Probabilities]:
        """Open the table of labels; items of both tables then have the same type."""
        labels = open_labels(
            read,
            path,
            item=item,
            label=self.label,
            annotator=self.annotator,
            count_columns=self.count_columns,
            names=self.names,
        )
        return same_items(labels, predictions, item)


def label_options(
    *,
    label: str | None,
    annotator: str | None,
    count_columns: str | None,
    names: str | None,
    rules: Mapping[str, str],
) -> LabelOptions:
    """Return the options as they were typed, their lists taken apart."""
    return LabelOptions(
        split_list(label) or [],
        annotator,
        split_list(count_columns) or [],
        split_list(names),
        rules,
    )


class Items(NamedTuple):
    """Labelled items with their predictions, in the sorted order of the items."""

    items: NDArray[Any]  #: (n_items,) what the table calls them
    probabilities: Array  #: (n_items, n_classes)
    counts: Any  #: (n_items, n_classes), dense or sparse
    cells: IntArray | None  #: (n_items,) where the cells come with the data


def read_items(
    labels: Any,
    predictions: Probabilities,
    options: LabelOptions,
    *,
    item: str,
    classes: Sequence[str],
    cell: str | None,
) -> Items:
    """Count labels and fetch the predictions of the same items; the rules say which mismatches are allowed."""
    import numpy as np

    from hocal._base.validation import check_choice
    from hocal.annotations.counting import count_labels

    rules = options.rules
    for name in ("unlabelled", "unpredicted"):
        check_choice(rules[name], name, ("error", "drop"))
    counted = count_labels(
        labels,
        item=item,
        label=options.label_argument,
        annotator=options.annotator,
        count_columns=_class_columns(options.count_columns, classes),
        classes=None if options.count_columns else classes,
        missing=rules["missing"],
        unknown=rules["unknown"],
        duplicates=rules["duplicates"],
        empty="drop",  # counted as unlabelled below
    )
    held = _fetch(predictions.table, labels, item)
    places = _places(held[item].to_pylist(), counted.items.tolist(), rules["unpredicted"])
    kept = np.array([place is not None for place in places])
    _check_unlabelled(count_rows(predictions.table), int(kept.sum()), rules["unlabelled"])
    rows = held.take([place for place in places if place is not None])
    p = np.column_stack([rows[name].to_numpy() for name in predictions.columns])
    cells = None if cell is None else rows[cell].to_numpy()
    return Items(counted.items[kept], p, counted.counts[kept], cells)


def find_rows(items: Sequence[Any]) -> dict[Any, int]:
    """Return the row of each predicted item; an item that has several is refused."""
    rows = {name: row for row, name in enumerate(items)}
    if len(rows) < len(items):
        repeated = next(name for row, name in enumerate(items) if rows[name] != row)
        raise ValueError(
            f"PROBABILITIES must have one row for each item, got several for {repeated!r}."
        )
    return rows


def _class_columns(columns: Sequence[str], classes: Sequence[str]) -> dict[str, str] | None:
    if not columns:
        return None
    if len(columns) != len(classes):
        raise ValueError(
            f"`--count-columns` must name one column for each of {len(classes)} classes, got {len(columns)}."
        )
    return dict(zip(classes, columns, strict=True))


def _fetch(table: Any, labels: Any, item: str) -> Any:
    """Return the predictions of labelled items as an Arrow table."""
    import narwhals as nw

    labelled = nw.from_native(labels).lazy().select(item).unique()
    return nw.from_native(table).lazy().join(labelled, on=item, how="semi").collect().to_arrow()


def _places(predicted: list[Any], labelled: list[Any], unpredicted: str) -> list[int | None]:
    """Return the row of each labelled item among the predictions."""
    place = find_rows(predicted)
    absent = [name for name in labelled if name not in place]
    if absent and (unpredicted == "error" or len(absent) == len(labelled)):
        raise ValueError(
            f"PROBABILITIES must have a row for each labelled item, got none for {len(absent)} of {len(labelled)}, "
            f"such as {absent[0]!r}. Add them, or leave such items out with --unpredicted drop."
        )
    return [place.get(name) for name in labelled]


def _check_unlabelled(n_predicted: int, n_labelled: int, unlabelled: str) -> None:
    n_bare = n_predicted - n_labelled
    if n_bare and unlabelled == "error":
        raise ValueError(
            f"LABELS must have a label for each item of PROBABILITIES, got none for {n_bare} of {n_predicted}. "
            "Add them, or leave such items out with --unlabelled drop."
        )
