"""Cell statistics inside an engine equal those of arrays in memory, bit for bit."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import hocal
from engines import IN_PROCESS, arrow_table, spark  # noqa: F401 - spark is a fixture
from hocal.annotations.cell_counting import cell_statistics
from hocal.cells.partitions import Partition
from hocal.cells.statistics import CellStatistics

Columns = dict[str, list[Any]]

ENGINES = [
    name for name in IN_PROCESS if name != "pandas of objects"
]  # numbers as objects are refused
CLASSES = ["cat", "dog", "ü"]
LABELS: Columns = {"id": [1, 1, 2, 3, 3, 3], "choice": ["cat", "dog", "dog", "ü", "cat", "ü"]}
PREDICTIONS: Columns = {
    "id": [3, 1, 2],
    "a": [0.2, 0.5, 0.1],
    "b": [0.2, 0.25, 0.9],
    "c": [0.6, 0.25, 0.0],
}
ARGUMENTS: dict[str, Any] = {
    "item": "id",
    "label": "choice",
    "classes": CLASSES,
    "probability_columns": list("abc"),
}


def in_engine(engine: str, *tables: Columns) -> list[Any]:
    """Return the tables in one engine; DuckDB joins tables of one connection only."""
    if engine == "duckdb":
        connection = duckdb.connect()
        return [connection.from_arrow(arrow_table(table)) for table in tables]
    return [IN_PROCESS[engine](arrow_table(table)) for table in tables]


def same(first: CellStatistics, second: CellStatistics) -> bool:
    """Tell whether all arrays are equal, types included."""
    pairs = [
        *zip(first.observed, second.observed, strict=True),
        *zip(first.aligned, second.aligned, strict=True),
    ]
    pairs += [(first.predicted, second.predicted), *zip(first.layout, second.layout, strict=True)]
    return all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in pairs)


def as_tables(
    p: NDArray[np.float64], counts: NDArray[np.int64], seed: int, as_item: Any = int
) -> tuple[Columns, Columns]:
    """Write items as tables with rows in random order; columns `id`, `choice`, `p0`, ..."""
    generator = np.random.default_rng(seed)
    items, labels = (
        np.repeat(part, counts.ravel()) for part in np.indices(counts.shape).reshape(2, -1)
    )
    rows, order = generator.permutation(len(items)), generator.permutation(len(p))
    predictions = {f"p{j}": p[order, j].tolist() for j in range(p.shape[1])}
    return (
        {"id": [as_item(i) for i in items[rows]], "choice": [f"ü{j}" for j in labels[rows]]},
        {"id": [as_item(i) for i in order], **predictions},
    )


def world(
    seed: int, n_items: int, n_classes: int, most: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw predictions with many ties, and counts with ragged totals."""
    generator = np.random.default_rng(seed)
    parts = (
        generator.integers(0, 4, (n_items, n_classes))
        + np.eye(n_classes, dtype=int)[generator.integers(n_classes)]
    )
    p = parts / parts.sum(axis=1, keepdims=True)
    return p, generator.multinomial(
        generator.integers(1, most + 1, n_items), np.full(n_classes, 1 / n_classes)
    )


def compute(
    engine: str, p: Any, counts: Any, partition: Partition, seed: int = 0, as_item: Any = int
) -> CellStatistics:
    tables = in_engine(engine, *as_tables(p, counts, seed, as_item))
    names = range(p.shape[1])
    return cell_statistics(
        *tables, item="id", label="choice", partition=partition,
        classes=[f"ü{j}" for j in names], probability_columns=[f"p{j}" for j in names],
    )  # fmt: skip


def reference(p: Any, counts: Any, partition: Partition) -> CellStatistics:
    fitted = partition.fit(p)
    return CellStatistics.from_items(p, counts, fitted.assign(p), fitted.layout_)


@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=8)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 30),
    st.integers(2, 6),
    st.sampled_from([1, 5, 70]),
    st.integers(1, 12),
    st.sampled_from([int, "item {}".format]),
)
def test_an_engine_finds_the_statistics_of_arrays(
    engine: str, seed: int, n_items: int, n_classes: int, most: int, n_slices: int, as_item: Any
) -> None:
    p, counts = world(seed, n_items, n_classes, most)
    partition = hocal.TopLabelPartition(n_slices)

    assert same(
        compute(engine, p, counts, partition, seed, as_item), reference(p, counts, partition)
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_two_classes_in_uniform_bins(engine: str) -> None:
    p, counts = world(5, 60, 2, 9)
    partition = hocal.UniformPartition(7)

    assert same(compute(engine, p, counts, partition), reference(p, counts, partition))


@pytest.mark.parametrize("engine", ENGINES)
def test_vectors_that_need_several_words(engine: str) -> None:
    """Twelve classes with up to 5,000 labels take 13 bits each, four in a number."""
    p, counts = world(6, 4, 12, 5_000)
    partition = hocal.TopLabelPartition(2)

    assert same(compute(engine, p, counts, partition), reference(p, counts, partition))


@pytest.mark.parametrize("n_classes", [17, 40, 100])
@pytest.mark.parametrize("engine", ENGINES)
def test_many_classes(engine: str, n_classes: int) -> None:
    p, counts = world(n_classes, 40, n_classes, 9)
    partition = hocal.TopLabelPartition(3)

    assert same(compute(engine, p, counts, partition), reference(p, counts, partition))


@pytest.mark.parametrize("engine", ENGINES)
def test_one_item_with_far_more_labels_than_the_others(engine: str) -> None:
    """The bits that the mean number of labels suggests are too few for it."""
    p, counts = world(11, 50, 12, 3)
    counts[17] = np.arange(12) * 1_000
    partition = hocal.TopLabelPartition(2)

    assert same(compute(engine, p, counts, partition), reference(p, counts, partition))


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(
    ("seed", "n_classes", "as_item"),
    [(9, 2, int), pytest.param(7, 40, str, marks=pytest.mark.slow)],
)
def test_spark_finds_the_statistics_of_arrays(
    spark: Any,  # noqa: F811
    seed: int,
    n_classes: int,
    as_item: Any,
) -> None:
    p, counts = world(seed, 50, n_classes, 6)
    labels, predictions = (
        spark.createDataFrame(arrow_table(table)) for table in as_tables(p, counts, seed, as_item)
    )
    partition = hocal.TopLabelPartition(4)

    found = cell_statistics(
        labels, predictions, item="id", label="choice", partition=partition,
        classes=[f"ü{j}" for j in range(n_classes)],
        probability_columns=[f"p{j}" for j in range(n_classes)],
    )  # fmt: skip

    assert same(found, reference(p, counts, partition))


def test_float32_probabilities_are_widened_first() -> None:
    p, counts = world(8, 40, 4, 5)
    labels, predictions = as_tables(p, counts, 0)
    narrow = pl.DataFrame(predictions).cast({f"p{j}": pl.Float32 for j in range(4)})
    names = [f"p{j}" for j in range(4)]

    found = cell_statistics(
        pl.DataFrame(labels), narrow, item="id", label="choice",
        classes=[f"ü{j}" for j in range(4)], probability_columns=names,
    )  # fmt: skip

    assert same(found, reference(p.astype(np.float32), counts, hocal.TopLabelPartition()))


def test_a_calibrator_learns_the_same_from_tables() -> None:
    p, counts = world(9, 300, 3, 5)
    partition = hocal.TopLabelPartition(2)

    learned = hocal.SnapshotCalibrator(partition, method="cells", random_state=0).fit_statistics(
        compute("duckdb", p, counts, partition)
    )

    expected = hocal.SnapshotCalibrator(partition, method="cells", random_state=0).fit(p, counts)
    assert learned.decompose(p).aleatoric.tolist() == expected.decompose(p).aleatoric.tolist()


@pytest.mark.parametrize("engine", ENGINES)
def test_cells_may_come_with_the_table(engine: str) -> None:
    labels, predictions = in_engine(engine, LABELS, PREDICTIONS | {"cell": [1, 0, 2]})

    found = cell_statistics(
        labels, predictions, partition=hocal.PrecomputedPartition(4), cell="cell", **ARGUMENTS
    )

    assert found.n_items.tolist() == [1, 1, 1, 0]
    assert found.n_labels.tolist() == [2, 3, 1, 0]


def test_any_fitted_partition_works_with_stored_cells() -> None:
    p, counts = world(10, 30, 3, 4)
    labels, predictions = as_tables(p, counts, 0)
    partition = hocal.QuantilePartition(2).fit(p)
    cells = partition.assign(p)

    found = cell_statistics(
        pd.DataFrame(labels), pd.DataFrame(predictions | {"cell": cells[predictions["id"]]}),
        item="id", label="choice", partition=partition, cell="cell",
        classes=["ü0", "ü1", "ü2"], probability_columns=["p0", "p1", "p2"],
    )  # fmt: skip

    assert same(found, reference(p, counts, partition))


def test_wide_tables_of_labels_are_read() -> None:
    wide = arrow_table(
        {
            "id": [1, 2, 3],
            "ann": ["cat", "dog", "ü"],
            "bob": ["dog", None, "cat"],
            "eve": [None, None, "ü"],
        }
    )

    found = cell_statistics(
        wide, arrow_table(PREDICTIONS), **ARGUMENTS | {"label": ["ann", "bob", "eve"]}
    )

    assert same(found, cell_statistics(arrow_table(LABELS), arrow_table(PREDICTIONS), **ARGUMENTS))


def test_tables_in_memory_may_be_of_different_libraries() -> None:
    found = cell_statistics(pd.DataFrame(LABELS), pl.DataFrame(PREDICTIONS), **ARGUMENTS)

    assert same(found, cell_statistics(arrow_table(LABELS), arrow_table(PREDICTIONS), **ARGUMENTS))


def test_item_numbers_of_different_widths_match() -> None:
    narrow = pl.DataFrame(PREDICTIONS, schema_overrides={"id": pl.Int16})

    found = cell_statistics(pl.DataFrame(LABELS), narrow, **ARGUMENTS)

    assert same(found, cell_statistics(arrow_table(LABELS), arrow_table(PREDICTIONS), **ARGUMENTS))


@pytest.mark.parametrize("engine", ENGINES)
def test_items_of_one_table_only_are_dropped_on_request(engine: str) -> None:
    more = {
        name: [*values, extra]
        for (name, values), extra in zip(LABELS.items(), [9, "cat"], strict=True)
    }
    fewer = {name: values[:2] for name, values in PREDICTIONS.items()}
    labels, predictions = in_engine(engine, more, PREDICTIONS | {"id": [3, 1, 4]})

    found = cell_statistics(labels, predictions, unlabelled="drop", unpredicted="drop", **ARGUMENTS)

    kept = {
        name: [v for v, i in zip(values, LABELS["id"], strict=True) if i != 2]
        for name, values in LABELS.items()
    }
    assert same(
        found,
        cell_statistics(in_engine("arrow", kept)[0], in_engine("arrow", fewer)[0], **ARGUMENTS),
    )


# Every problem is named.

STORED = {"cell": "cell", "partition": hocal.PrecomputedPartition(4)}
DROP = {"unpredicted": "drop", "unlabelled": "drop"}
PROBLEMS: dict[str, tuple[Columns, Columns, dict[str, Any], str]] = {
    "negative": (
        {},
        {"a": [0.2, 0.5, -0.1]},
        {},
        r"non-negative numbers, got -0\.1 in column 'a' for item 2, .* 1 of 3",
    ),
    "sum": (
        {},
        {"a": [0.2, 0.7, 0.1]},
        {},
        r"sum to 1 over the classes, got 1\.2 for item 1, .* Normalise it first",
    ),
    "infinite": (
        {},
        {"a": [0.2, float("inf"), 0.1]},
        {},
        r"must sum to 1 over the classes, got inf for item 1",
    ),
    "NaN": (
        {},
        {"b": [0.2, float("nan"), 0.9]},
        {},
        r"Column 'b' of `probabilities` must have a value .* item 1",
    ),
    "null": (
        {},
        {"b": [0.2, None, 0.9]},
        {},
        r"Column 'b' of `probabilities` must have a value .* item 1",
    ),
    "text": (
        {},
        {"b": ["x", "y", "z"]},
        {},
        r"Column 'b' of `probabilities` must hold numbers, got String",
    ),
    "no item": (
        {},
        {"id": [3, None, 2]},
        {},
        r"Column 'id' of `probabilities` must have a value .* got none",
    ),
    "repeat": (
        {},
        {"id": [3, 3, 2]},
        {},
        r"one row for each item, got several for 1 values of 'id': 3",
    ),
    "repeat of an unlabelled item": (
        {"id": [3] * 6},
        {"id": [3, 7, 7]},
        DROP,
        r"several for 1 values of 'id': 7",
    ),
    "repeat and unpredicted": ({}, {"id": [3, 3, 2]}, DROP, r"several for 1 values of 'id': 3"),
    "unpredicted": (
        {},
        {"id": [3, 1, 4]},
        {},
        r"a row for each item, got none for 1: 2\. .*unpredicted=\"drop\"",
    ),
    "unlabelled": (
        {},
        {"id": [3, 1, 4]},
        {"unpredicted": "drop"},
        r"label for each item, got none for 1: 4\. .*unlabelled",
    ),
    "nothing in common": ({}, {"id": [7, 8, 9]}, DROP, r"must have items in common, got none"),
    "unknown label": (
        {"choice": [*"abcde", "cat"]},
        {},
        {},
        r"one of the classes .*, got 'a', 'b', 'c', \.\.\. in 5 rows",
    ),
    "missing label": (
        {"choice": [None] * 5 + ["cat"]},
        {},
        {},
        r"Column 'choice' of `labels` must have .* 5 of 6 rows",
    ),
    "column": (
        {},
        {},
        {"item": "image"},
        r"`labels` must have the column 'image', .*: 'id', 'choice'",
    ),
    "item types": (
        {},
        {"id": ["3", "1", "2"]},
        {},
        r"`item` must name a column of the same type in both tables, got Int64 and String for 'id'",
    ),
    "bad cell": (
        {},
        {"cell": [0, 1, 4]},
        STORED,
        r"'cell' .* cell numbers from 0 to 3, got 4 for item 2",
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_problem_is_named(engine: str, problem: str) -> None:
    labels, predictions, options, message = PROBLEMS[problem]
    tables = in_engine(engine, LABELS | labels, PREDICTIONS | predictions)

    with pytest.raises(ValueError, match=message):
        cell_statistics(*tables, **ARGUMENTS | options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"classes": ["cat", "dog"]},
            "`probability_columns` must name a different column for each of the 2 classes",
        ),
        ({"probability_columns": ["a", "b", "b"]}, "a different column for each of the 3 classes"),
        ({"probability_columns": 3}, "a different column for each of the 3 classes, got 3"),
        ({"cell": "a"}, "`cell` must be left out with a TopLabelPartition"),
        (
            {"partition": hocal.QuantilePartition()},
            "`cell` must name a column .* with a QuantilePartition",
        ),
        (
            {"partition": hocal.QuantilePartition(), "cell": "a"},
            "`partition` must be fitted, got a QuantilePartition",
        ),
        (
            {"partition": hocal.TopLabelPartition().fit([[0.5, 0.5]])},
            "must be fitted for the 3 classes of `classes`, got 2",
        ),
        ({"missing": "keep"}, "`missing` must be one of 'error', 'drop', got 'keep'"),
        ({"unlabelled": "keep"}, "`unlabelled` must be one of 'error', 'drop', got 'keep'"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cell_statistics(arrow_table(LABELS), arrow_table(PREDICTIONS), **ARGUMENTS | options)


def test_too_many_classes_for_an_engine_are_refused() -> None:
    names = [f"c{j}" for j in range(200)]

    with pytest.raises(
        ValueError, match=r"`classes` must be at most 128 .* got 200\. .*CellStatistics\.from_items"
    ):
        cell_statistics(
            arrow_table(LABELS),
            arrow_table(PREDICTIONS),
            **ARGUMENTS | {"classes": names, "probability_columns": names},
        )


def test_labels_that_are_all_repeated_leave_nothing() -> None:
    labels = arrow_table({"id": [1, 1], "choice": ["cat", "dog"], "worker": ["w", "w"]})

    with pytest.raises(
        ValueError,
        match=r"must have a label that can be counted, got none. All were left out by duplicates=",
    ):
        cell_statistics(
            labels, arrow_table(PREDICTIONS), annotator="worker", duplicates="drop", **ARGUMENTS
        )


def test_repeated_judgements_are_left_out_on_request() -> None:
    workers = {"worker": ["u", "v", "u", "u", "v", "v"]}  # item 3 is judged twice by v

    found = cell_statistics(
        arrow_table(LABELS | workers),
        arrow_table(PREDICTIONS),
        annotator="worker",
        duplicates="drop",
        **ARGUMENTS,
    )

    assert found.n_labels.sum() == 4


def test_tables_of_different_engines_are_refused() -> None:
    (labels,) = in_engine("duckdb", LABELS)

    with pytest.raises(ValueError, match="must be held by the same engine, got duckdb and pandas"):
        cell_statistics(labels, pd.DataFrame(PREDICTIONS), **ARGUMENTS)


def test_tables_of_two_connections_are_refused() -> None:
    (labels,), (predictions,) = in_engine("duckdb", LABELS), in_engine("duckdb", PREDICTIONS)

    with pytest.raises(
        ValueError, match="`labels` and `probabilities` must come from one DuckDB connection"
    ):
        cell_statistics(labels, predictions, **ARGUMENTS)


def test_a_table_of_predictions_without_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="`probabilities` must have at least one row"):
        cell_statistics(arrow_table(LABELS), arrow_table(PREDICTIONS).slice(0, 0), **ARGUMENTS)
