"""Counting labels: one table, every engine, the same counts; and every problem named."""

from __future__ import annotations

import sys
from collections import Counter
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import sparse

from engines import IN_PROCESS, arrow_table, spark, tables  # noqa: F401 - spark is a fixture
from hocal.annotations.counting import LabelCounts, count_labels

LONG = {
    "image": [7, 7, 2, 7],
    "choice": ["dog", "cat", "cat", "dog"],
    "worker": ["a", "b", "a", "c"],
}
WIDE = {"image": [7, 2], "ann": ["dog", None], "bob": ["cat", "cat"]}
CATEGORIES = {"item": [5, 4, 5], "label": ["a", "b", "b"]}
COUNTS = {"image": [7, 2], "cats": [1, 3], "dogs": [2, 0]}
OPTIONS: dict[str, Any] = {
    "missing": "drop",
    "unknown": "drop",
    "duplicates": "drop",
    "empty": "keep",
}

texts = st.sampled_from(["cat", "dog", "Käse", "日本", "", " x", "Z", "🙂"])


def same(first: LabelCounts, second: LabelCounts) -> bool:
    return (
        first.items.dtype == second.items.dtype
        and first.items.tolist() == second.items.tolist()
        and first.classes == second.classes
        and np.array_equal(first.counts, second.counts)
    )


def every_engine(columns: Any, types: Any = None, **options: Any) -> LabelCounts:
    """Count in every engine, check that all agree, and return the result."""
    results = {
        name: count_labels(table, **options) for name, table in tables(columns, types).items()
    }
    first = results["arrow"]
    assert all(same(result, first) for result in results.values()), results
    return first


@pytest.fixture(params=list(IN_PROCESS))
def convert(request: pytest.FixtureRequest) -> Any:
    """Each engine in turn."""
    return lambda columns, types=None: IN_PROCESS[request.param](arrow_table(columns, types))


@st.composite
def judgements(draw: st.DrawFn) -> tuple[dict[str, list[Any]], dict[str, pa.DataType]]:
    """Draw a long table with gaps, repeats and unrecognised labels, of several types."""
    n = draw(st.integers(1, 25))
    item = draw(st.sampled_from([st.integers(-3, 5), texts]))
    label = draw(st.sampled_from([st.integers(0, 3), texts, st.booleans()]))

    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(
            st.lists(
                st.one_of(values, st.none()) if draw(st.booleans()) else values,
                min_size=n,
                max_size=n,
            )
        )

    columns = {"item": column(item), "label": column(label), "worker": column(st.integers(0, 3))}
    kind = {"item": pa.string() if item is texts else pa.int64(), "worker": pa.int64()}
    kind["label"] = (
        pa.string() if label is texts else pa.bool_() if label == st.booleans() else pa.int64()
    )
    return columns, kind


def obvious(columns: dict[str, list[Any]], classes: list[Any]) -> LabelCounts:
    """Count with dictionaries; everything wrong is dropped, empty items are kept."""
    rows = list(zip(columns["item"], columns["label"], columns["worker"], strict=True))
    good = [row for row in rows if None not in row and row[1] in classes]
    times = Counter((item, worker) for item, _, worker in good)
    counted = Counter((item, label) for item, label, worker in good if times[item, worker] == 1)
    items = sorted({item for item, _, _ in rows if item is not None})
    counts = [[counted[item, label] for label in classes] for item in items]
    held = np.array(
        items, dtype=object if any(isinstance(item, str) for item in items) else np.int64
    )
    return LabelCounts(
        held, tuple(classes), np.array(counts, dtype=np.int64).reshape(len(items), len(classes))
    )


@given(judgements())
def test_every_engine_counts_like_a_loop(
    table: tuple[dict[str, list[Any]], dict[str, pa.DataType]],
) -> None:
    columns, types = table
    kind = types["label"]
    classes: list[Any] = (
        ["cat", "日本", "Z"]
        if kind == pa.string()
        else [True, False]
        if kind == pa.bool_()
        else [2, 0]
    )
    expected = obvious(columns, classes)
    assume(
        any(None not in row and row[1] in classes for row in zip(*columns.values(), strict=True))
    )

    found = every_engine(
        columns, types, item="item", label="label", annotator="worker", classes=classes, **OPTIONS
    )

    assert found.items.tolist() == expected.items.tolist()
    assert found.counts.tolist() == expected.counts.tolist()


@given(
    st.lists(
        st.tuples(st.integers(0, 4), *[st.one_of(st.none(), texts)] * 3), min_size=1, max_size=8
    )
)
def test_a_wide_table_counts_like_its_long_form(rows: list[tuple[Any, ...]]) -> None:
    items, *columns = (list(column) for column in zip(*rows, strict=True))
    wide = dict(zip(["item", "a", "b", "c"], [items, *columns], strict=True))
    assume(any(label is not None for column in columns for label in column))
    long = {"item": items * 3, "label": [label for column in columns for label in column]}
    classes, kind = ["cat", "dog", "Käse", "日本", "", " x", "Z", "🙂"], pa.string()

    found = every_engine(
        wide, dict.fromkeys("abc", kind), item="item", label=["a", "b", "c"], classes=classes,
        duplicates="keep", empty="keep",
    )  # fmt: skip

    options = {"classes": classes, "missing": "drop", "empty": "keep"}
    assert same(
        found,
        count_labels(arrow_table(long, {"label": kind}), item="item", label="label", **options),
    )


@pytest.mark.xdist_group("spark")
def test_spark_counts_like_arrow(spark: Any) -> None:  # noqa: F811
    columns = {
        "item": ["b", "a", None, "ü", "b", "a"],
        "label": ["x", "é", "x", None, "x", "unknown"],
        "worker": [1, 1, 1, 1, 1, 2],
    }
    table = arrow_table(columns)
    options = {
        "item": "item",
        "label": "label",
        "annotator": "worker",
        "classes": ["é", "x"],
        **OPTIONS,
    }

    assert same(
        count_labels(spark.createDataFrame(table), **options), count_labels(table, **options)
    )


@settings(max_examples=4)  # each is several jobs
@given(table=judgements())
def test_spark_counts_random_tables_like_arrow(
    spark: Any,  # noqa: F811
    table: tuple[dict[str, list[Any]], dict[str, pa.DataType]],
) -> None:
    held = arrow_table(*table)
    assume(held.drop_null().num_rows > 0 and len(set(held.drop_null()["label"].to_pylist())) > 1)
    options = {
        "item": "item",
        "label": "label",
        "annotator": "worker",
        **OPTIONS,
        "duplicates": "keep",
    }

    assert same(count_labels(spark.createDataFrame(held), **options), count_labels(held, **options))


@pytest.mark.xdist_group("spark")
def test_spark_reads_wide_tables(spark: Any) -> None:  # noqa: F811
    table = arrow_table({"item": [3, 1, 2], "a": [1, None, None], "b": [2.0, None, 1.0]})

    found = count_labels(spark.createDataFrame(table), item="item", label=["a", "b"], empty="keep")

    assert same(found, count_labels(table, item="item", label=["a", "b"], empty="keep"))


def test_a_long_table_is_counted(convert: Any) -> None:
    labels = count_labels(convert(LONG), item="image", label="choice", annotator="worker")

    assert labels.items.tolist() == [2, 7]
    assert labels.classes == ("cat", "dog")
    assert labels.counts.tolist() == [[1, 0], [1, 2]]


def test_counts_are_shown_in_one_line() -> None:
    table = {"item": np.arange(2000), "label": ["cat", "dog"] * 1000}
    labels = count_labels(table, item="item", label="label")

    assert repr(labels) == "LabelCounts(2,000 items, 2 classes, 2,000 labels)"


def test_columns_of_annotators_are_counted(convert: Any) -> None:
    labels = count_labels(convert(WIDE), item="image", label=["ann", "bob"])

    assert labels.counts.tolist() == [[1, 0], [1, 1]]


def test_columns_of_annotators_are_named_by_an_index_or_one_by_one() -> None:
    table = pd.DataFrame({"i": [1, 2], "a": ["x", "y"], "b": ["y", "y"]})

    by_index = count_labels(table, item="i", label=table.columns[1:])
    one_by_one = count_labels(table, item="i", label=iter(["a", "b"]))  # type: ignore[arg-type]

    assert by_index.counts.tolist() == one_by_one.counts.tolist() == [[1, 1], [0, 2]]


@pytest.mark.parametrize("engine", [name for name in IN_PROCESS if name != "pandas of objects"])
def test_columns_of_counts_are_read(engine: str) -> None:
    labels = count_labels(
        IN_PROCESS[engine](arrow_table(COUNTS)), item="image", count_columns=["cats", "dogs"]
    )

    assert labels.items.tolist() == [2, 7]
    assert labels.classes == ("cats", "dogs")
    assert labels.counts.tolist() == [[3, 0], [1, 2]]


def test_counts_in_a_column_of_objects_are_refused() -> None:
    table = IN_PROCESS["pandas of objects"](arrow_table(COUNTS))

    with pytest.raises(ValueError, match="`count_columns` must hold numbers, got Object in 'cats'"):
        count_labels(table, item="image", count_columns=["cats", "dogs"])


def test_a_mapping_names_the_classes_of_count_columns() -> None:
    labels = count_labels(
        arrow_table(COUNTS), item="image", count_columns={"dog": "dogs", "cat": "cats"}
    )

    assert labels.classes == ("dog", "cat")
    assert labels.counts.tolist() == [[0, 3], [2, 1]]


def test_declared_classes_keep_their_order_and_may_be_unused() -> None:
    labels = count_labels(
        arrow_table(LONG), item="image", label="choice", classes=["dog", "owl", "cat"]
    )

    assert labels.counts.tolist() == [[0, 0, 1], [2, 0, 1]]


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        ([3, 1, 3], (1, 3)),
        ([True, False, True], (False, True)),
        (
            [date(2024, 2, 1), date(2024, 1, 1), date(2024, 2, 1)],
            (date(2024, 1, 1), date(2024, 2, 1)),
        ),
        ([0.5, 0.25, 0.5], (0.25, 0.5)),
    ],
    ids=["integers", "booleans", "dates", "fractions"],
)
def test_labels_of_any_plain_type_are_sorted(
    convert: Any, values: list[Any], classes: tuple[Any, ...]
) -> None:
    labels = count_labels(
        convert({"item": ["a", "b", "b"], "label": values}), item="item", label="label"
    )

    assert labels.classes == classes
    assert labels.counts.tolist() == [[0, 1], [1, 1]]


def test_integers_that_pandas_made_floats_are_integers_again() -> None:
    table = pd.DataFrame({"item": [1, 2, None], "label": [0, 1, None]})

    labels = count_labels(table, item="item", label="label", missing="drop")

    assert labels.items.dtype == np.int64
    assert [type(name) for name in labels.classes] == [int, int]


def test_types_of_pandas_that_allow_gaps_are_plain_values() -> None:
    table = pd.DataFrame({"item": [2**60 + 1, None, 2], "label": [True, False, True]}, dtype=object)
    table = table.astype({"item": "Int64", "label": "boolean"})

    labels = count_labels(table, item="item", label="label", missing="drop", classes=[False, True])

    assert labels.items.tolist() == [2, 2**60 + 1]
    assert labels.counts.tolist() == [[0, 1], [0, 1]]


def test_items_far_apart_are_sorted_like_neighbours(convert: Any) -> None:
    table = convert({"item": [-(2**62), 2**62, 5, 2**62], "label": ["a", "b", "a", "a"]})

    labels = count_labels(table, item="item", label="label")

    assert labels.items.tolist() == [-(2**62), 5, 2**62]
    assert labels.counts.tolist() == [[1, 0], [1, 0], [1, 1]]


def test_large_item_numbers_keep_every_digit(convert: Any) -> None:
    table = convert({"item": [2**60 + 1, 2**60], "label": ["a", "b"]})

    assert count_labels(table, item="item", label="label").items.tolist() == [2**60, 2**60 + 1]


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame(CATEGORIES, dtype="category"),
        pl.DataFrame(CATEGORIES, schema_overrides={"label": pl.Categorical}),
        pl.DataFrame(CATEGORIES, schema_overrides={"label": pl.Enum(["a", "b"])}),
        pa.table({name: pa.array(x).dictionary_encode() for name, x in CATEGORIES.items()}),
    ],
    ids=["pandas", "polars", "polars enum", "arrow"],
)  # fmt: skip
def test_categories_are_their_values(table: Any) -> None:
    labels = count_labels(table, item="item", label="label")

    assert labels.items.tolist() == [4, 5]
    assert labels.classes == ("a", "b")


def test_values_of_mixed_types_have_a_fixed_order() -> None:
    table = pd.DataFrame({"item": ["b", 2, "a"], "label": ["x", 1, "x"]}, dtype=object)

    labels = count_labels(table, item="item", label="label")

    assert labels.items.tolist() == [2, "a", "b"]
    assert labels.classes == (1, "x")


def test_counts_are_sparse_on_request() -> None:
    labels = count_labels(arrow_table(LONG), item="image", label="choice", sparse=True)

    assert isinstance(labels.counts, sparse.csr_array)
    assert labels.counts.toarray().tolist() == [[1, 0], [1, 2]]
    assert labels.counts.dtype == np.int64


def test_counts_are_sparse_when_dense_would_be_too_large() -> None:
    n, classes = 2_000, [f"c{j}" for j in range(50_001)]
    table = arrow_table({"item": range(n), "label": ["c0", "c1"] * (n // 2)})

    assert sparse.issparse(count_labels(table, item="item", label="label", classes=classes).counts)


def test_hundreds_of_classes_are_counted(convert: Any) -> None:
    names = [f"{j:03}" for j in range(300)]

    labels = count_labels(
        convert({"item": [0, 1] * 150, "label": names}), item="item", label="label"
    )

    assert labels.classes == tuple(names)
    assert labels.counts.tolist() == [[1, 0] * 150, [0, 1] * 150]


def test_a_missing_item_of_a_wide_table_is_counted_once() -> None:
    table = arrow_table({"i": [1, None, 2], "a": ["x", "y", "x"], "b": ["x", "y", "x"]})

    with pytest.raises(
        ValueError,
        match="Column 'i' of `table` must have a value in each row, got none in 1 of 3 rows",
    ):
        count_labels(table, item="i", label=["a", "b"])


def test_mixed_items_are_quoted_in_a_fixed_order() -> None:
    table = pd.DataFrame({"item": ["b", 2, "a"], "label": [None, None, "x"]}, dtype=object)

    with pytest.raises(ValueError, match=r"2 of 3 rows \(item 2, 'b'\)"):
        count_labels(table, item="item", label="label")


def test_repeated_judgements_are_kept_on_request() -> None:
    repeated = {"item": [1, 1, 2], "label": ["a", "b", "a"], "worker": ["x", "x", "x"]}

    labels = count_labels(
        arrow_table(repeated), item="item", label="label", annotator="worker", duplicates="keep"
    )

    assert labels.counts.tolist() == [[1, 1], [1, 0]]


@pytest.mark.parametrize(("choice", "expected"), [("keep", [[3, 1], [1, 0]]), ("drop", [[1, 0]])])
def test_repeated_rows_of_counts_are_added_or_dropped(
    choice: str, expected: list[list[int]]
) -> None:
    table = arrow_table({"item": [1, 1, 2], "a": [1, 2, 1], "b": [0, 1, 0]})

    labels = count_labels(
        table, item="item", count_columns=["a", "b"], duplicates=choice, empty="drop"
    )

    assert labels.counts.tolist() == expected


def test_missing_counts_are_zero_on_request() -> None:
    table = arrow_table({"item": [1, None], "a": [1, 2], "b": [None, 1]})

    labels = count_labels(table, item="item", count_columns=["a", "b"], missing="drop")

    assert labels.counts.tolist() == [[1, 0]]


def test_a_column_of_an_annotator_without_labels_is_allowed(convert: Any) -> None:
    columns = {"item": [1, 2], "a": ["x", "y"], "b": [None, None]}

    labels = count_labels(convert(columns), item="item", label=["a", "b"])

    assert labels.counts.tolist() == [[1, 0], [0, 1]]


# Every problem is named, with the rows where it is and the way out.

PROBLEMS: dict[str, tuple[dict[str, list[Any]], dict[str, Any], str]] = {
    "missing label": (
        {"item": ["a", "b", "c"], "label": ["x", None, "y"]},
        {},
        r"'label' of `table` must have a value in each row, got none in 1 of 3 rows "
        r"\(item 'b'\)\. .*missing=\"drop\"",
    ),
    "NaN": (
        {"item": ["a", "b", "c"], "label": [1.0, float("nan"), 2.0]},
        {},
        r"Column 'label' .* got none in 1 of 3 rows \(item 'b'\)",
    ),
    "missing item": (
        {"item": ["a", None, None], "label": ["x", "y", "x"]},
        {},
        r"Column 'item' .* got none in 2 of 3 rows \(label 'x', 'y'\)",
    ),
    "missing annotator": (
        {"item": ["a", "b"], "label": ["x", "y"], "worker": ["w", None]},
        {"annotator": "worker"},
        r"Column 'worker' .* got none in 1 of 2 rows \(item 'b'\)",
    ),
    "unknown label": (
        {"item": [1, 2, 3, 4, 5, 6], "label": ["x", "y", "q", "q", "q", "q"]},
        {"classes": ["x", "y"]},
        r"one of the classes 'x', 'y', got 'q' in 4 rows \(item 3, 4, 5, \.\.\.\)\. "
        r".*unknown=\"drop\"",
    ),
    "repeat": (
        {"item": [1, 1, 2], "label": ["x", "y", "x"], "worker": ["w", "w", "w"]},
        {"annotator": "worker"},
        r"one label for each item and annotator, got several for 1 pair: item 1 by 'w'\. "
        r".*duplicates=\"keep\"",
    ),
    "nothing left": (
        {"item": ["a", "a", "b"], "label": ["x", "y", "q"]},
        {"classes": ["x", "y"], "unknown": "drop"},
        r"a label for each item, got none for 1 of 2 items: 'b'\. .*empty=\"drop\"",
    ),
    "one class": (
        {"item": [1, 2], "label": ["x", "x"]},
        {},
        r"`classes` must be declared when a table has fewer than two different labels, got 'x'",
    ),
    "missing column": (
        {"id": [1, 2], "label": ["x", "x"]},
        {},
        r"`table` must have the column 'item', which is not among its columns: 'id', 'label'",
    ),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_problem_is_named(convert: Any, problem: str) -> None:
    columns, options, message = PROBLEMS[problem]

    with pytest.raises(ValueError, match=message):
        count_labels(convert(columns), item="item", label="label", **options)


def test_a_table_without_rows_is_refused(convert: Any) -> None:
    empty = convert({"item": [], "label": []}, {"item": pa.string(), "label": pa.string()})

    with pytest.raises(ValueError, match="`table` must have at least one row"):
        count_labels(empty, item="item", label="label")


def test_a_table_of_counts_without_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="`table` must have at least one row"):
        count_labels(arrow_table(COUNTS).slice(0, 0), item="image", count_columns=["cats", "dogs"])


def test_an_item_that_nobody_judged_is_refused(convert: Any) -> None:
    with pytest.raises(ValueError, match="got none for 1 of 3 items: 2"):
        count_labels(convert({"i": [1, 2, 3], "a": ["x", None, "y"]}), item="i", label=["a"])


def test_an_annotator_twice_in_a_wide_table_is_refused(convert: Any) -> None:
    with pytest.raises(ValueError, match="several for 1 pair: item 1 by 'a'"):
        count_labels(convert({"i": [1, 1, 3], "a": ["x", "y", "y"]}), item="i", label=["a"])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"a": [1, -2], "b": [1, 1]},
            r"non-negative, got -2 in column 'a' and 1 such counts in all \(item 2\)",
        ),
        ({"a": [1, 1], "b": [0.5, 1]}, r"whole numbers, got 0\.5 in column 'b'"),
        ({"a": [1, None], "b": [1, 1]}, r"present, got nan in column 'a'.*missing=\"drop\""),
        ({"a": [1, 0], "b": [1, 0]}, r"a label for each item, got none for 1 of 2 items: 2"),
        ({"a": ["x", "y"], "b": [1, 1]}, r"`count_columns` must hold numbers, got String in 'a'"),
    ],
    ids=["negative", "fraction", "missing", "empty", "text"],
)
def test_wrong_counts_are_refused(columns: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        count_labels(
            arrow_table({"item": [1, 2], **columns}), item="item", count_columns=["a", "b"]
        )


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"item": [1, 1], "a": [1, 2], "b": [1, 1]},
            r"one row for each item, got several for 1: 1\. ",
        ),
        (
            {"item": [1, None], "a": [1, 2], "b": [1, 1]},
            r"Column 'item' .* got none in 1 of 2 rows",
        ),
    ],
    ids=["repeated", "missing"],
)
def test_wrong_items_of_counts_are_refused(columns: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        count_labels(arrow_table(columns), item="item", count_columns=["a", "b"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "`label` and `count_columns` must not be given together"),
        (
            {"label": "choice", "count_columns": ["a", "b"]},
            "`label` and `count_columns` must not be given together",
        ),
        (
            {"count_columns": ["cats", "dogs"], "annotator": "worker"},
            "must be left out with `count_columns`",
        ),
        (
            {"count_columns": ["cats", "dogs"], "annotator": np.array(["a", "b"])},
            "must be left out with `count_columns`",
        ),
        (
            {"count_columns": "cats"},
            "`count_columns` must name at least two different columns, got 'cats'",
        ),
        (
            {"label": ["choice"], "annotator": "worker"},
            "`annotator` must be left out when `label` names a column for",
        ),
        ({"label": []}, "`label` must name at least one column"),
        (
            {"label": ["choice", "image"]},
            r"columns of one type, got 'choice' \(String\), 'image' \(Int64\)",
        ),
        ({"label": "choice", "classes": ["cat"]}, "`classes` must be at least two distinct labels"),
        (
            {"label": "choice", "classes": "cat"},
            "`classes` must be at least two distinct labels, got 'cat'",
        ),
        (
            {"label": "choice", "missing": "ignore"},
            "`missing` must be one of 'error', 'drop', got 'ignore'",
        ),
        (
            {"label": "choice", "duplicates": "first"},
            "`duplicates` must be one of 'error', 'keep', 'drop'",
        ),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        count_labels(arrow_table(LONG), item="image", **options)


def test_a_table_without_a_usable_label_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one label that can be counted"):
        count_labels(
            arrow_table(LONG), item="image", label="choice", classes=["x", "y"], unknown="drop"
        )


def test_something_that_is_no_table_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"`table` must be a pandas, polars or Spark dataframe, .* got list"
    ):
        count_labels([LONG], item="image", label="choice")


def test_a_dictionary_of_columns_counts_like_a_table() -> None:
    expected = count_labels(arrow_table(LONG), item="image", label="choice")
    found = count_labels(LONG, item="image", label="choice")

    assert found.counts.tolist() == expected.counts.tolist()


def test_a_dictionary_of_columns_needs_a_dataframe_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hocal.annotations.tables.find_spec", lambda _: None)

    with pytest.raises(ImportError, match="pip install pyarrow"):
        count_labels(LONG, item="image", label="choice")


def test_repeated_column_names_are_refused() -> None:
    table = pd.DataFrame([[1, "x", "y"]], columns=["item", "label", "label"])

    with pytest.raises(ValueError, match="`table` must have distinct column names"):
        count_labels(table, item="item", label="label")


def test_labels_that_are_no_plain_values_are_refused() -> None:
    table = pd.DataFrame({"item": [1, 2], "label": [("a", 1), ("b", 2)]})

    with pytest.raises(
        ValueError, match=r"text, integers, floats, booleans or dates, got \('a', 1\)"
    ):
        count_labels(table, item="item", label="label")


@settings(max_examples=10)
@given(st.permutations(range(4)))
def test_the_order_of_rows_does_not_matter(order: list[int]) -> None:
    shuffled = {name: [values[i] for i in order] for name, values in LONG.items()}

    assert same(
        count_labels(arrow_table(shuffled), item="image", label="choice"),
        count_labels(arrow_table(LONG), item="image", label="choice"),
    )


@pytest.mark.parametrize(
    "values", [["z", "ä", "a", "🙂", "ﬀ"], [3, -1, 2**40, 0, 7], [2.5, 0.5, 1.0, 8.0, 4.0]]
)
def test_items_of_a_clean_table_are_numbered_alike_in_every_engine(values: list[Any]) -> None:
    labels = [1, 0, 1, 1, 0, 0]
    found = every_engine(
        {"item": [*values, values[0]], "label": labels}, item="item", label="label"
    )

    counted = Counter(zip([*values, values[0]], labels, strict=True))
    assert found.items.tolist() == sorted(values)
    assert found.counts.tolist() == [
        [counted[value, label] for label in (0, 1)] for value in sorted(values)
    ]


def test_text_is_counted_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    table = pl.DataFrame(LONG)

    assert count_labels(table, item="choice", label="worker").items.tolist() == ["cat", "dog"]


def test_text_in_several_chunks_is_counted() -> None:
    chunks = pa.chunked_array([["b", "a"], ["c", "b"]])
    table = pa.table({"item": chunks, "label": [0, 1, 0, 1]})

    found = count_labels(table, item="item", label="label")

    assert (found.items.tolist(), found.counts.tolist()) == (
        ["a", "b", "c"],
        [[0, 1], [1, 1], [1, 0]],
    )


@pytest.mark.parametrize("column", ["item", "label", "annotator"])
@pytest.mark.parametrize(
    "values", [[[1], [2]], [{"x": 1}, {"x": 2}]], ids=["lists", "dictionaries"]
)
def test_nested_columns_are_refused(column: str, values: list[object]) -> None:
    table = {"item": [1, 2], "label": ["a", "b"], "annotator": ["x", "y"], column: values}

    with pytest.raises(ValueError, match=f"'{column}' of `table` must hold plain values"):
        count_labels(table, item="item", label="label", annotator="annotator")
