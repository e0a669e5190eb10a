"""The first labels of each item."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import pytest

import hocal
from engines import tables
from hocal.annotations import first_labels

COLUMNS = {
    "image": [7, 7, 7, 2, 2, 5],
    "choice": list("abcabc"),
    "when": [3, 1, 2, 9, 9, 4],
}
TABLES = tables(COLUMNS)


def rows(table: Any) -> list[tuple[Any, ...]]:
    return sorted(nw.from_native(table).lazy().collect().iter_rows())


@pytest.mark.parametrize("engine", TABLES)
def test_every_engine_keeps_the_earliest(engine: str) -> None:
    kept = first_labels(TABLES[engine], item="image", time="when", k=2)

    assert rows(kept) == [(2, "a", 9), (2, "b", 9), (5, "c", 4), (7, "b", 1), (7, "c", 2)]


@pytest.mark.parametrize("engine", TABLES)
def test_every_engine_refuses_equal_times_at_the_limit(engine: str) -> None:
    message = "`time` must tell which 1 labels of an item came first, got equal times for item 2"
    with pytest.raises(hocal.InputError, match=message):
        first_labels(TABLES[engine], item="image", time="when", k=1)


def test_text_that_sorts_in_the_order_of_time_is_time() -> None:
    dates = ["2026-01-03", "2026-01-01", "2026-01-02", "2026-01-04", "2026-01-05", "2026-01-06"]
    kept = first_labels(COLUMNS | {"when": dates}, item="image", time="when", k=1)

    assert [row[1] for row in rows(kept)] == ["a", "c", "b"]


def test_counts_are_those_of_the_first_labels() -> None:
    kept = first_labels(TABLES["pandas"], item="image", time="when", k=2)
    counted = hocal.count_labels(kept, item="image", label="choice")

    assert counted.counts.sum(axis=1).tolist() == [2, 1, 2]


def test_rows_without_a_time_are_refused() -> None:
    with pytest.raises(hocal.InputError, match="must have an item and a time in each row"):
        first_labels(
            {"image": [1, 1], "choice": ["a", "b"], "when": [1, None]},
            item="image",
            time="when",
            k=1,
        )


@pytest.mark.parametrize("k", [0, 1.5])
def test_k_is_a_positive_integer(k: Any) -> None:
    with pytest.raises(hocal.InputError, match="`k` must be an integer of at least 1"):
        first_labels(TABLES["pandas"], item="image", time="when", k=k)
