"""Cell statistics of labels and predictions that stay in their engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from hocal._base.errors import InputError, Setting
from hocal._base.typing import IntArray
from hocal._base.validation import check_choice, known_length
from hocal.annotations.judgements import Judgements, check_classes, read_judgements, value_of_label
from hocal.annotations.predictions import (
    Predictions,
    check_one_row_per_item,
    read_predictions,
    sum_in_falling_order,
    with_rank,
)
from hocal.annotations.tables import (
    Frame,
    collect,
    column_values,
    examples,
    open_tables,
    quote,
    with_one_key,
)
from hocal.cells.partitions import as_partition
from hocal.cells.protocol import Partition
from hocal.cells.statistics import CellStatistics, Histogram

__all__ = ["cell_statistics"]

_MOST_CLASSES = 128  # beyond, nearly every item is a histogram row of its own
_WORD_BITS = 52  # a float64 holds integers below 2**53 exactly, and every engine adds those exactly


class _Packing(NamedTuple):
    """How a vector of small integers is written as a few numbers, each entry in its own bits."""

    length: int
    bits: int

    @property
    def width(self) -> int:
        """Entries of one number."""
        return _WORD_BITS // self.bits

    @property
    def words(self) -> list[range]:
        """Entries of each number."""
        return [
            range(start, min(start + self.width, self.length))
            for start in range(0, self.length, self.width)
        ]

    def pack(self, entry: nw.Expr, amount: nw.Expr) -> list[nw.Expr]:
        """Write numbers for an amount in the one entry that a column tells; such numbers add up."""
        which = (entry / self.width).floor()
        # Rounded, since not every library promises that powers of two are exact.
        place = (nw.lit(2.0) ** ((entry - which * self.width) * self.bits) + 0.5).floor()
        return [
            nw.when(which == w).then(amount * place).otherwise(nw.lit(0.0))
            for w in range(len(self.words))
        ]

    def unpack(self, packed: Sequence[NDArray[Any]]) -> IntArray:
        """Return the vectors, (n_rows, length)."""
        parts = [
            (values.astype(np.int64)[:, None] >> (self.bits * np.arange(len(word))))
            & ((1 << self.bits) - 1)
            for values, word in zip(packed, self.words, strict=True)
        ]
        return np.concatenate(parts, axis=1)


def cell_statistics(
    labels: Any,
    probabilities: Any,
    *,
    item: str,
    label: str | Sequence[str],
    classes: Sequence[Any],
    probability_columns: Sequence[str],
    partition: Partition | None = None,
    annotator: str | None = None,
    cell: str | None = None,
    missing: str = "error",
    unknown: str = "error",
    duplicates: str = "error",
    unlabelled: str = "error",
    unpredicted: str = "error",
) -> CellStatistics:
    """Compute the statistics of each cell from a table of labels and a table of predictions.

    The join, the cells and the histograms run inside the engine that holds both tables (DuckDB,
    Spark, polars, pyarrow, or pandas with pyarrow), which may keep them on disk; only the
    histograms leave it. The result equals `CellStatistics.from_items` bit for bit and goes to
    `SnapshotCalibrator.fit_statistics`.

    Parameters
    ----------
    labels : dataframe
        One row per judgement, as in `count_labels`.
    probabilities : dataframe
        One row per item, with its predicted probabilities; held by the same engine.
    item : str
        Column that tells the items apart, in both tables.
    label : str or sequence of str
        Column with the labels, or one column for each annotator.
    classes : sequence
        The classes, in the order of `probability_columns`.
    probability_columns : sequence of str
        Column with the probability of each class.
    partition : Partition, optional
        One whose cells an engine can compute, such as TopLabelPartition (the default) or
        UniformPartition. Any other fitted partition needs `cell`.
    annotator : str, optional
        Column that tells who judged, to find repeated judgements.
    cell : str, optional
        Column of `probabilities` with the cell numbers, as `partition.assign` gives them.
    missing, unknown, duplicates : str, default="error"
        What to do with gaps, unknown labels and repeated judgements, as in `count_labels`. Gaps in
        `probabilities` are always an error.
    unlabelled : {"error", "drop"}, default="error"
        What to do with items that have predictions but no label.
    unpredicted : {"error", "drop"}, default="error"
        What to do with items that have labels but no prediction.

    Returns
    -------
    CellStatistics
        Both histograms and the sum of the predictions.

    Examples
    --------
    >>> import pandas as pd
    >>> from hocal.annotations.cell_counting import cell_statistics
    >>> labels = pd.DataFrame({"image": [1, 1, 2], "choice": ["cat", "dog", "dog"]})
    >>> predictions = pd.DataFrame({"image": [1, 2], "cat": [0.9, 0.2], "dog": [0.1, 0.8]})
    >>> classes = ["cat", "dog"]
    >>> cell_statistics(
    ...     labels,
    ...     predictions,
    ...     item="image",
    ...     label="choice",
    ...     classes=classes,
    ...     probability_columns=classes,
    ... )
    CellStatistics(2 items, 3 labels, 2 of 20 cells filled, 2 classes)
    """
    dropping = {
        "missing": missing,
        "unknown": unknown,
        "unlabelled": unlabelled,
        "unpredicted": unpredicted,
    }
    for name, rule in dropping.items():
        check_choice(rule, name, ["error", "drop"])
    check_choice(duplicates, "duplicates", ["error", "keep", "drop"])
    names = _check_columns(classes, probability_columns)
    fitted = _fit(partition, len(names), cell)
    first, second = open_tables(labels, probabilities, ("labels", "probabilities"))
    judgements = read_judgements(
        first,
        item=item,
        label=label,
        annotator=annotator,
        classes=names,
        missing=missing,
        unknown=unknown,
        duplicates=duplicates,
        name="labels",
    )
    _check_some_left(judgements)
    predictions = read_predictions(
        second, item=item, probability_columns=probability_columns, partition=fitted, cell=cell
    )
    left, right = with_one_key(judgements.frame, predictions.frame, item)
    tables = _Tables(judgements._replace(frame=left), predictions._replace(frame=right), item)
    return _count(tables, fitted, unlabelled, unpredicted)


def _check_some_left(judgements: Judgements) -> None:
    if judgements.n_rows == 0:
        raise InputError(
            "labels",
            "must have a label that can be counted",
            value="none",
            remedy="All were left out by {0}.",
            settings=[Setting("duplicates", "drop")],
        )


class _Tables(NamedTuple):
    """Two checked tables whose items have the same type."""

    judgements: Judgements
    predictions: Predictions
    item: str  #: what the users' tables call the items


def _count(
    tables: _Tables, partition: Partition, unlabelled: str, unpredicted: str
) -> CellStatistics:
    """Count labels in cells, and sum up the predictions of the same items."""
    groups, packing = _count_vectors(tables.judgements, tables.predictions)
    labelled = _check_match(groups, tables, unlabelled, unpredicted)
    matched = groups.filter(nw.col("cell") >= 0)
    observed = _histogram(matched.filter(nw.col("kind") == 0), packing)
    aligned = _histogram(matched.filter(nw.col("kind") == 1), packing)
    predicted = sum_in_falling_order(labelled, partition.n_cells_)
    return CellStatistics(observed, aligned, predicted, partition.layout_)


def _check_columns(classes: Sequence[Any], columns: Sequence[str]) -> tuple[Any, ...]:
    names = check_classes(classes)
    listed = not isinstance(columns, str) and known_length(columns) == len(names)
    if not listed or len(set(columns)) < len(names):
        rule = f"must name a different column for each of the {len(names)} classes"
        raise InputError("probability_columns", rule, value=repr(columns))
    if len(names) > _MOST_CLASSES:
        raise InputError(
            "classes",
            f"must be at most {_MOST_CLASSES} to work inside an engine",
            value=len(names),
            remedy="Read the tables in batches of items, use CellStatistics.from_items on each, "
            "and add them up.",
        )
    return names


def _fit(partition: Any, n_classes: int, cell: str | None) -> Partition:
    """Return a fitted partition for which the cells can be found."""
    chosen = as_partition(partition)
    name = type(chosen).__name__
    if chosen.works_in_engine and cell is not None:
        raise InputError("cell", f"must be left out with a {name}, which computes the cells")
    if not chosen.works_in_engine and cell is None:
        raise InputError(
            "cell",
            f"must name a column of `probabilities` with a {name}, "
            "whose cells no engine can compute",
            remedy="Store those of partition.assign in one.",
        )
    if not chosen.is_fitted:
        chosen = clone(chosen).fit_classes(n_classes)
    if chosen.n_classes_ != n_classes:
        raise InputError(
            "partition",
            f"must be fitted for the {n_classes} classes of `classes`",
            value=chosen.n_classes_,
        )
    return chosen


def _count_vectors(
    judgements: Judgements, predictions: Predictions
) -> tuple[nw.DataFrame[Any], _Packing]:
    """Count equal packed vectors in each cell: kind 0 in class order, kind 1 in rank order.

    Items without a prediction are in cell -1. The bits of an entry must be known before the labels
    of any item are, so they are guessed from the mean number of labels, and all is done again where
    that was too few.
    """
    n_classes = len(judgements.classes)
    twice_the_mean = 2 * judgements.n_rows // predictions.n_items
    enough = min(twice_the_mean.bit_length(), _WORD_BITS)
    packing = _Packing(n_classes, max(_WORD_BITS // n_classes, enough, 1))
    groups = _count_packed(judgements, predictions, packing)
    most = int(groups["most_labels"].max())
    if most >= 1 << packing.bits:
        packing = _Packing(n_classes, min(most.bit_length(), _WORD_BITS))
        groups = _count_packed(judgements, predictions, packing)
    return groups, packing


def _count_packed(
    judgements: Judgements, predictions: Predictions, packing: _Packing
) -> nw.DataFrame[Any]:
    """Count equal vectors, all packed in the same way."""
    words = {
        f"word_{w}": word
        for w, word in enumerate(packing.pack(nw.col("entry"), nw.col("n_labels")))
    }
    rows = _entries(judgements, predictions).select("item", "cell", "kind", "n_labels", **words)
    vectors = rows.group_by("item", "cell", "kind").agg(
        *(nw.col(name).sum() for name in ("n_labels", *words))
    )
    n_labels = nw.col("n_labels")
    groups = vectors.group_by("cell", "kind", *words)
    return collect(
        groups.agg(nw.len().alias("n_items"), n_labels.sum(), n_labels.max().alias("most_labels"))
    )


def _entries(judgements: Judgements, predictions: Predictions) -> Frame:
    """Return two rows for each class that an item got: kind 0 has its number, kind 1 its rank."""
    code = value_of_label({label: float(j) for label, j in judgements.numbers.items()})
    votes = judgements.frame.select("item", code.alias("code")).group_by("item", "code")
    joined = votes.agg(nw.len().alias("n_labels")).join(predictions.frame, on="item", how="left")
    ranked = with_rank(joined, predictions.columns).with_columns(
        nw.col("cell").fill_null(-1).cast(nw.Int64), nw.col("n_labels").cast(nw.Float64)
    )
    is_count = nw.col("kind") == 0
    entry = nw.when(is_count).then(nw.col("code")).otherwise(nw.col("rank"))
    # A join between the rank and what is made of it, since DuckDB would copy its long expression to
    # every use.
    both = ranked.join(_two_rows(predictions.frame), how="cross")
    return both.select("item", "cell", "kind", "n_labels", entry.alias("entry"))


def _two_rows(frame: Frame) -> Frame:
    """Return a table of the engine with one column `kind`, 0 and 1."""
    one = frame.select("cell").head(1)
    return nw.concat(
        [
            one.select(nw.lit(kind).cast(nw.Int64).alias("kind"), "cell").select("kind")
            for kind in (0, 1)
        ]
    )


def _check_match(
    groups: nw.DataFrame[Any], tables: _Tables, unlabelled: str, unpredicted: str
) -> Predictions:
    """Return the predictions of labelled items after refusing items that do not match."""
    judgements, predictions, item = tables
    items = groups.filter(nw.col("kind") == 0)
    n_matched = int(items.filter(nw.col("cell") >= 0)["n_items"].sum())
    n_labels = int(items["n_labels"].sum())
    # An item with two predictions is joined twice, and so are its labels.
    if n_labels > judgements.n_rows or n_matched < predictions.n_items:
        check_one_row_per_item(predictions, item)
    if n_matched < int(items["n_items"].sum()) and unpredicted == "error":
        _refuse_items(
            judgements.frame, predictions.frame, ("probabilities", "must have a row"), "unpredicted"
        )
    if n_matched < predictions.n_items and unlabelled == "error":
        _refuse_items(
            predictions.frame, judgements.frame, ("labels", "must have a label"), "unlabelled"
        )
    if n_matched == 0:
        rule = "must have items in common"
        raise InputError("labels and probabilities", rule, value="none")
    if n_matched == predictions.n_items:
        return predictions
    return predictions._replace(
        frame=predictions.frame.join(judgements.frame.select("item"), on="item", how="semi")
    )


def _histogram(rows: nw.DataFrame[Any], packing: _Packing) -> Histogram:
    counts = packing.unpack([rows[f"word_{w}"].to_numpy() for w in range(len(packing.words))])
    return Histogram.of(column_values(rows["cell"]), counts, column_values(rows["n_items"]))


def _refuse_items(some: Frame, others: Frame, rule: tuple[str, str], option: str) -> None:
    """Raise the InputError for items of one table that the other lacks."""
    count, rows = examples(
        some.select("item").join(others.select("item"), on="item", how="anti"), "item"
    )
    raise InputError(
        rule[0],
        f"{rule[1]} for each item",
        value=f"none for {count}: {quote([row[0] for row in rows], count)}",
        remedy="Leave such items out with {0}.",
        settings=[Setting(option, "drop")],
    )
