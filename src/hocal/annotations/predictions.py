"""Check a table of predictions and find the cell of each item, inside the engine that holds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import narwhals as nw
import numpy as np

from hocal._base.errors import InputError
from hocal._base.typing import IntArray
from hocal._base.validation import NON_NEGATIVE, SUM_TO_ONE, SUM_TOLERANCE
from hocal.annotations.tables import (
    Frame,
    collect,
    collect_rows,
    column_values,
    examples,
    pick,
    quote,
    total,
)
from hocal.cells.protocol import Partition

__all__ = [
    "Predictions",
    "check_one_row_per_item",
    "read_predictions",
    "sum_in_falling_order",
    "with_rank",
]

_UNIT = 2.0**32  # as in hocal.cells.statistics: a prediction is summed in units of 2**-32


class Predictions(NamedTuple):
    """Checked predictions, still inside their engine."""

    frame: Frame  #: columns `item`, `cell` and those of `columns`; one row per item
    columns: list[str]  #: the probability of each class, float64
    n_items: int


def read_predictions(
    frame: Frame,
    *,
    item: str,
    probability_columns: Sequence[str],
    partition: Partition,
    cell: str | None,
) -> Predictions:
    """Check predictions as `check_simplex` does and add each item's cell, inside the engine."""
    titles = {f"p_{j}": column for j, column in enumerate(probability_columns)}
    given = {} if cell is None else {"cell": cell}
    picked = pick(frame, {"item": item, **titles, **given}, "probabilities")
    schema = picked.collect_schema()
    for place, title in {**titles, **given}.items():
        if not schema[place].is_numeric():
            raise InputError(
                "probabilities", "must hold numbers", column=title, value=str(schema[place])
            )
    numbers = picked.select(
        "item", *(nw.col(place).cast(nw.Float64) for place in [*titles, *given])
    )
    n_items = _check_rows(numbers, {"item": item, **titles, **given}, partition.n_cells_)
    return Predictions(_with_cells(numbers, list(titles), partition, cell), list(titles), n_items)


def sum_in_falling_order(predictions: Predictions, n_cells: int) -> IntArray:
    """Sum each cell's predictions in falling order, in units of 2**-32, (n_cells, n_classes)."""
    columns = predictions.columns
    ordered = predictions.frame.select(
        "cell", nw.list(*columns).list.sort(descending=True).alias("falling")
    )
    falling = {place: nw.col("falling").list.get(rank) for rank, place in enumerate(columns)}
    units = ordered.select(
        "cell", **{place: (p * _UNIT).floor().cast(nw.Int64) for place, p in falling.items()}
    )
    sums = units.group_by("cell").agg(*(nw.col(place).sum() for place in columns))
    # DuckDB adds 64-bit integers as 128-bit ones, which would leave it as decimal numbers.
    held = collect(sums.select("cell", *(nw.col(place).cast(nw.Int64) for place in columns)))
    result = np.zeros((n_cells, len(columns)), dtype=np.int64)
    result[column_values(held["cell"])] = np.column_stack(
        [column_values(held[place]) for place in columns]
    )
    return result


def with_rank(frame: Frame, columns: Sequence[str]) -> Frame:
    """Replace the probabilities by the rank of the class in `code`; ties keep the class order."""
    rest = [name for name in frame.collect_schema().names() if name not in columns]
    code = nw.col("code")
    own = nw.col("own")
    zero = nw.lit(0.0)
    choices = (
        nw.when(code == float(j)).then(nw.col(column)).otherwise(zero)
        for j, column in enumerate(columns)
    )
    ahead = []
    for j, column in enumerate(columns):
        larger = nw.col(column) > own
        tied_before = (nw.col(column) == own) & (code > float(j))
        ahead.append(nw.when(larger | tied_before).then(nw.lit(1.0)).otherwise(zero))
    with_own = frame.with_columns(total(choices).alias("own"))
    return with_own.select(*rest, total(ahead).alias("rank"))


def check_one_row_per_item(predictions: Predictions, item: str) -> None:
    """Refuse items that have several predictions."""
    repeated = (
        predictions.frame.group_by("item")
        .agg(nw.len().alias("n_rows"))
        .filter(nw.col("n_rows") > 1)
    )
    count, rows = examples(repeated, "item")
    if count:
        shown = quote([row[0] for row in rows], count)
        raise InputError(
            "probabilities",
            "must have one row for each item",
            value=f"several for {count} values of {item!r}: {shown}",
            remedy="Keep one prediction per item.",
        )


def _check_rows(frame: Frame, titles: dict[str, str], n_cells: int) -> int:
    """Return the number of rows after refusing gaps, wrong distributions and wrong cell numbers."""
    places = [place for place in titles if place.startswith("p_")]
    wrong = {
        "gap": nw.any_horizontal(
            *(nw.col(place).is_null() for place in titles), ignore_nulls=False
        ),
        "negative": nw.any_horizontal(*(nw.col(place) < 0 for place in places), ignore_nulls=True),
        # An infinite sum, too, is not within the tolerance.
        "sum": ~((total(nw.col(place) for place in places) - 1).abs() <= SUM_TOLERANCE),
    }
    if "cell" in titles:
        value = nw.col("cell")
        wrong["no_cell"] = ~((value >= 0) & (value < n_cells) & (value == value.floor()))
    flagged = frame.with_columns(**{name: flag.fill_null(False) for name, flag in wrong.items()})
    found = collect(
        flagged.select(
            nw.len().alias("n_rows"), *(nw.col(name).cast(nw.Int64).sum() for name in wrong)
        )
    )
    n_rows = int(found["n_rows"][0])
    if n_rows == 0:
        raise InputError("probabilities", "must have at least one row")
    for name in wrong:
        if count := int(found[name][0]):
            first = collect_rows(flagged.filter(nw.col(name)).sort("item").head(1))[0]
            place = f"for item {first['item']!r}, and such values in {count} of {n_rows} rows"
            _refuse(name, first, titles, place, n_cells)
    return n_rows


def _refuse(
    kind: str, row: dict[str, Any], titles: dict[str, str], where: str, n_cells: int
) -> None:
    """Raise the InputError for a wrong row."""
    if kind == "gap":
        _refuse_gap(row, titles, where)
    if kind in ("negative", "sum"):
        _refuse_chances(kind, row, titles, where)
    raise InputError(
        "probabilities",
        f"must hold cell numbers from 0 to {n_cells - 1}",
        column=titles["cell"],
        value=f"{row['cell']:.6g}",
        where=where,
    )


def _refuse_gap(row: dict[str, Any], titles: dict[str, str], where: str) -> NoReturn:
    place = next(place for place in titles if row[place] is None or row[place] != row[place])
    raise InputError(
        "probabilities",
        "must have a value in each row",
        column=titles[place],
        value="none",
        where=where,
    )


def _refuse_chances(kind: str, row: dict[str, Any], titles: dict[str, str], where: str) -> NoReturn:
    p = {place: row[place] for place in titles if place.startswith("p_")}
    if kind == "negative":
        place = next(place for place in p if p[place] < 0)
        raise InputError(
            "probabilities",
            NON_NEGATIVE,
            value=f"{p[place]:.6g}",
            where=f"in column {titles[place]!r} {where}",
        )
    raise InputError(
        "probabilities",
        SUM_TO_ONE,
        value=f"{sum(p.values()):.6g}",
        where=where,
        remedy="Normalise it first.",
    )


def _with_cells(frame: Frame, columns: list[str], partition: Partition, cell: str | None) -> Frame:
    """Add the cell of each item, exactly as `partition.assign` computes it, unless it is there."""
    located = partition.locate_in_engine(frame, columns) if cell is None else frame
    return located.select("item", nw.col("cell").cast(nw.Int64), *columns)
