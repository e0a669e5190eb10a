"""Labelled items in memory: the counts of each item beside its prediction, for commands that need every item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hocal.cli._tables import Probabilities, count_rows, same_items

__all__ = ["Items", "read_items"]


class Items(NamedTuple):
    """Labelled items with their predictions, in the sorted order of the items."""

    items: NDArray[Any]  #: (n_items,) what the table calls them
    probabilities: NDArray[np.float64]  #: (n_items, n_classes)
    counts: Any  #: (n_items, n_classes), dense or sparse
    cells: NDArray[np.int64] | None  #: (n_items,) where the cells come with the data


def read_items(
    labels: Any,
    predictions: Probabilities,
    *,
    item: str,
    label: Sequence[str],
    annotator: str | None,
    count_columns: Sequence[str],
    classes: Sequence[str],
    cell: str | None,
    rules: Mapping[str, str],
) -> Items:
    """Count labels and fetch the predictions of the same items; `rules` say which mismatches are allowed."""
    from hocal.annotations import count_labels

    labels, table = same_items(labels, predictions.table, item)
    counted = count_labels(
        labels,
        item=item,
        label=(label[0] if len(label) == 1 else list(label)) if label else None,
        annotator=annotator,
        count_columns=_class_columns(count_columns, classes),
        classes=None if count_columns else classes,
        missing=rules["missing"],
        unknown=rules["unknown"],
        duplicates=rules["duplicates"],
        empty="drop",  # counted as unlabelled below
    )
    held = _fetch(table, labels, item)
    places = _places(held[item].to_pylist(), counted.items.tolist(), rules["unpredicted"])
    kept = np.array([place is not None for place in places])
    _check_unlabelled(count_rows(table), int(kept.sum()), rules["unlabelled"])
    rows = held.take([place for place in places if place is not None])
    p = np.column_stack([rows[name].to_numpy() for name in predictions.columns])
    cells = None if cell is None else rows[cell].to_numpy()
    return Items(counted.items[kept], p, counted.counts[kept], cells)


def _class_columns(columns: Sequence[str], classes: Sequence[str]) -> dict[str, str] | None:
    if not columns:
        return None
    if len(columns) != len(classes):
        raise ValueError(
            f"`count_columns` must name one column for each of {len(classes)} classes, got {len(columns)}."
        )
    return dict(zip(classes, columns, strict=True))


def _fetch(table: Any, labels: Any, item: str) -> Any:
    """Return the predictions of labelled items as an Arrow table."""
    import narwhals as nw

    labelled = nw.from_native(labels).lazy().select(item).unique()
    return nw.from_native(table).lazy().join(labelled, on=item, how="semi").collect().to_arrow()


def _places(predicted: list[Any], labelled: list[Any], unpredicted: str) -> list[int | None]:
    """Return the row of each labelled item among the predictions."""
    place = {name: row for row, name in enumerate(predicted)}
    if len(place) < len(predicted):
        repeated = next(name for row, name in enumerate(predicted) if place[name] != row)
        raise ValueError(f"PROBABILITIES must have one row for each item, got several for {repeated!r}.")
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
