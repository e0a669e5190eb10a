"""Cell statistics of labels and predictions that stay in their engine; only the histograms leave it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from hocal._judgements import Judgements, check_classes, read_judgements, value_of_label
from hocal._predictions import Predictions, read_predictions, sort_across, sum_in_falling_order
from hocal._tables import Frame, collect, column_values, examples, open_tables, quote, total, with_one_key
from hocal._validation import check_choice
from hocal.partition import Partition, PrecomputedPartition, TopLabelPartition, UniformPartition, as_partition
from hocal.statistics import CellStatistics, Histogram

__all__ = ["cell_statistics"]

_MOST_CLASSES = 128  # beyond, expressions grow unwieldy and nearly every item is a histogram row of its own
_WORD_BITS = 52  # a float64 holds integers below 2**53 exactly, and every engine adds those exactly

IntArray = NDArray[np.int64]


class _Packing(NamedTuple):
    """How a vector of small integers is written as a few numbers: each entry has its bits in one of them."""

    length: int
    bits: int

    @property
    def width(self) -> int:
        """Entries of one number."""
        return _WORD_BITS // self.bits

    @property
    def words(self) -> list[range]:
        """Entries of each number."""
        return [range(start, min(start + self.width, self.length)) for start in range(0, self.length, self.width)]

    def place(self, entry: int) -> float:
        """Return what a one in this entry adds to its number."""
        return 2.0 ** (self.bits * (entry % self.width))

    def pack(self, entries: Sequence[nw.Expr]) -> list[nw.Expr]:
        """Write expressions as numbers."""
        return [total(entries[i] * self.place(i) for i in word) for word in self.words]

    def entry(self, words: Sequence[str], i: int) -> nw.Expr:
        """Read an entry of numbers in columns."""
        return self._field(nw.col(words[i // self.width]), nw.lit(self.place(i)))

    def entry_at(self, words: Sequence[str], i: nw.Expr) -> nw.Expr:
        """Read the entry that another column tells."""
        which = (i / self.width).floor()
        word = total(nw.when(which == w).then(nw.col(name)).otherwise(nw.lit(0.0)) for w, name in enumerate(words))
        # Rounded, since not every library promises that powers of two are exact.
        place = (nw.lit(2.0) ** ((i - which * self.width) * self.bits) + 0.5).floor()
        return self._field(word, place)

    def unpack(self, packed: Sequence[NDArray[Any]]) -> IntArray:
        """Return the vectors, (n_rows, length)."""
        parts = [
            (values.astype(np.int64)[:, None] >> (self.bits * np.arange(len(word)))) & ((1 << self.bits) - 1)
            for values, word in zip(packed, self.words, strict=True)
        ]
        return np.concatenate(parts, axis=1)

    def _field(self, word: nw.Expr, place: nw.Expr) -> nw.Expr:
        size = 2.0**self.bits
        return (word / place).floor() - (word / (place * size)).floor() * size


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

    The join, the cells and the histograms run inside the engine that holds both tables (DuckDB, Spark,
    polars, pandas or pyarrow), which may keep them on disk; only the histograms leave it. The result
    equals `CellStatistics.from_items` bit for bit and goes to `SnapshotCalibrator.fit_statistics`.

    Parameters
    ----------
    labels : dataframe
        A row a judgement, as in `count_labels`.
    probabilities : dataframe
        A row an item, with its predicted probabilities; held by the same engine.
    item : str
        Column that tells the items apart, in both tables.
    label : str or sequence of str
        Column with the labels, or one column for each annotator.
    classes : sequence
        The classes, in the order of `probability_columns`.
    probability_columns : sequence of str
        Column with the probability of each class.
    partition : Partition, optional
        A TopLabelPartition (the default) or UniformPartition. Any other fitted partition needs `cell`.
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
    >>> from hocal.cell_tables import cell_statistics
    >>> labels = pd.DataFrame({"image": [1, 1, 2], "choice": ["cat", "dog", "dog"]})
    >>> predictions = pd.DataFrame({"image": [1, 2], "cat": [0.9, 0.2], "dog": [0.1, 0.8]})
    >>> classes = ["cat", "dog"]
    >>> cell_statistics(
    ...     labels, predictions, item="image", label="choice", classes=classes, probability_columns=classes
    ... )
    CellStatistics(2 items, 3 labels, 2 of 20 cells filled, 2 classes)
    """
    check_choice(missing, "missing", ["error", "drop"])
    check_choice(unknown, "unknown", ["error", "drop"])
    check_choice(duplicates, "duplicates", ["error", "keep", "drop"])
    check_choice(unlabelled, "unlabelled", ["error", "drop"])
    check_choice(unpredicted, "unpredicted", ["error", "drop"])
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
    predictions = read_predictions(
        second, item=item, probability_columns=probability_columns, partition=fitted, cell=cell
    )
    left, right = with_one_key(judgements.frame, predictions.frame, item)
    return _statistics(
        judgements._replace(frame=left), predictions._replace(frame=right), fitted, unlabelled, unpredicted
    )


def _statistics(
    judgements: Judgements, predictions: Predictions, partition: Partition, unlabelled: str, unpredicted: str
) -> CellStatistics:
    sizes = judgements.frame.group_by("item").agg(nw.len().alias("n_labels"))
    (n_items, most), *_ = collect(sizes.select(nw.len().alias("n_items"), nw.col("n_labels").max())).rows()
    packing = _Packing(len(judgements.classes), int(most).bit_length())
    held = _count_vectors(judgements, predictions, packing)
    n_matched = int(held.filter(nw.col("kind") == 0)["n_items"].sum())
    if n_matched < n_items and unpredicted == "error":
        _refuse_items(judgements.frame, predictions.frame, "`probabilities` must have a row", "unpredicted")
    if n_matched < predictions.n_items and unlabelled == "error":
        _refuse_items(predictions.frame, judgements.frame, "`labels` must have a label", "unlabelled")
    if n_matched == 0:
        raise ValueError("`labels` and `probabilities` must have items in common, got none.")
    if n_matched < predictions.n_items:
        labelled = predictions.frame.join(judgements.frame.select("item"), on="item", how="semi")
        predictions = predictions._replace(frame=labelled)
    observed, aligned = (_histogram(held.filter(nw.col("kind") == kind), packing) for kind in (0, 1))
    return CellStatistics(observed, aligned, sum_in_falling_order(predictions, partition.n_cells_), partition.layout_)


def _check_columns(classes: Sequence[Any], columns: Sequence[str]) -> tuple[Any, ...]:
    names = check_classes(classes)
    if isinstance(columns, str) or len(columns) != len(names) or len(set(columns)) < len(names):
        raise ValueError(
            f"`probability_columns` must name a different column for each of the {len(names)} classes, got {columns!r}."
        )
    if len(names) > _MOST_CLASSES:
        raise ValueError(
            f"`classes` must be at most {_MOST_CLASSES} to work inside an engine, got {len(names)}. Read the tables "
            "in batches of items, use CellStatistics.from_items on each, and add them up."
        )
    return names


def _fit(partition: Any, n_classes: int, cell: str | None) -> Partition:
    """Return a fitted partition for which the cells can be found."""
    chosen = as_partition(partition)
    computed = isinstance(chosen, (TopLabelPartition, UniformPartition))
    if computed and cell is not None:
        raise ValueError(f"`cell` must be left out with a {type(chosen).__name__}, which computes the cells.")
    if not computed and cell is None:
        raise ValueError(
            f"`cell` must name a column of `probabilities` with a {type(chosen).__name__}, whose cells no engine "
            "can compute. Store those of partition.assign in one."
        )
    if not hasattr(chosen, "n_cells_"):
        if not (computed or isinstance(chosen, PrecomputedPartition)):
            raise ValueError(f"`partition` must be fitted, got a {type(chosen).__name__} that is not. Call fit first.")
        chosen = clone(chosen).fit(np.full((1, n_classes), 1 / n_classes))  # learns nothing but the number of classes
    if chosen.n_classes_ != n_classes:
        raise ValueError(f"`partition` was fitted for {chosen.n_classes_} classes, but `classes` has {n_classes}.")
    return chosen


def _count_vectors(judgements: Judgements, predictions: Predictions, packing: _Packing) -> nw.DataFrame[Any]:
    """Count equal packed vectors in each cell, of kind 0 in class order and of kind 1 by falling probability."""
    labels, ranking = _packed_labels(judgements, packing), _packed_ranking(predictions)
    observed = [f"labels_{w}" for w in range(len(packing.words))]
    order = _ranking(packing.length)
    steps = [f"class_{w}" for w in range(len(order.words))]
    aligned = packing.pack([packing.entry_at(observed, order.entry(steps, r)) for r in range(packing.length)])
    items = labels.join(ranking, on="item").select("cell", *observed, **{f"a_{w}": a for w, a in enumerate(aligned)})
    chosen = {
        f"word_{w}": nw.when(nw.col("kind") == 0).then(nw.col(name)).otherwise(nw.col(f"a_{w}"))
        for w, name in enumerate(observed)
    }
    both = items.join(_two_rows(predictions.frame), how="cross").select("cell", "kind", **chosen)
    return collect(both.group_by("cell", "kind", *chosen).agg(nw.len().alias("n_items")))


def _packed_labels(judgements: Judgements, packing: _Packing) -> Frame:
    """Return a row an item with its packed count vector."""
    ones = {
        f"labels_{w}": value_of_label(
            {label: packing.place(j) if j in word else 0.0 for label, j in judgements.numbers.items()}
        )
        for w, word in enumerate(packing.words)
    }
    rows = judgements.frame.select("item", **ones)
    return rows.group_by("item").agg(*(nw.col(name).sum() for name in ones))


def _packed_ranking(predictions: Predictions) -> Frame:
    """Return a row an item with its cell and its classes in order of falling probability, packed."""
    columns = predictions.columns
    classes = {f"c_{j}": nw.lit(float(j)) for j in range(len(columns))}
    numbered = predictions.frame.select("item", "cell", *columns, **classes)
    ordered = sort_across(numbered, columns, list(classes))
    packed = _ranking(len(columns)).pack([nw.col(name) for name in classes])
    return ordered.select("item", "cell", **{f"class_{w}": word for w, word in enumerate(packed)})


def _ranking(n_classes: int) -> _Packing:
    return _Packing(n_classes, (n_classes - 1).bit_length())


def _two_rows(frame: Frame) -> Frame:
    """Return a table of the engine with one column `kind`, 0 and 1, to count twice in one pass."""
    one = frame.select("cell").head(1)
    return nw.concat([one.select(nw.lit(kind).cast(nw.Int64).alias("kind"), "cell").select("kind") for kind in (0, 1)])


def _histogram(rows: nw.DataFrame[Any], packing: _Packing) -> Histogram:
    counts = packing.unpack([rows[f"word_{w}"].to_numpy() for w in range(len(packing.words))])
    return Histogram.of(column_values(rows["cell"]), counts, column_values(rows["n_items"]))


def _refuse_items(some: Frame, others: Frame, rule: str, option: str) -> None:
    """Raise the ValueError for items of one table that the other lacks."""
    count, rows = examples(some.select("item").join(others.select("item"), on="item", how="anti"), "item")
    raise ValueError(
        f"{rule} for each item, got none for {count}: {quote([row[0] for row in rows], count)}. "
        f'Leave such items out with {option}="drop".'
    )
