"""Time `count_labels` and `cell_statistics` against plain group-bys of the tables and peers.

Run from the repository root; tables of up to a hundred million labels are made on the fly in a
temporary directory (2 GB there, and as much again while DuckDB spills), and DuckDB is held to 2 GB
of memory:

    python benchmarks/annotations.py          # minutes, writes results/annotations.json
    python benchmarks/annotations.py --tiny   # seconds, without Spark, writes nothing
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import polars as pl
from cleanlab.multiannotator import get_majority_vote_label
from crowdkit.aggregation import MajorityVote
from measure import best_times, growth, measure_once, peak_bytes, too_large, versions

from hocal.annotations.cell_counting import cell_statistics
from hocal.annotations.counting import LabelCounts, count_labels
from hocal.cells.partitions import TopLabelPartition
from hocal.cells.statistics import CellStatistics

N_CLASSES = 10
LABELS_PER_ITEM = 5
TARGET = 12  # cell_statistics at most this many times the time of one plain group-by of the labels
COLUMNS = [f"p{j}" for j in range(N_CLASSES)]
CELLS: dict[str, Any] = {
    "item": "item",
    "label": "label",
    "classes": range(N_CLASSES),
    "probability_columns": COLUMNS,
}
ENGINES = ("duckdb", "polars", "pandas")
NO_WIDE_TABLE = dict.fromkeys(
    ["cleanlab", "hocal_on_wide_pandas"], "measured on integer labels of ten classes only"
)
GROUP_BY = "select item, label, count(*) as n from '{}' group by item, label"
RESULTS = Path(__file__).parent / "results" / "annotations.json"


class Table(NamedTuple):
    """A table of labels to count."""

    n_labels: int
    n_classes: int = N_CLASSES
    text: bool = False  #: whether items and labels are text instead of integers


def connect(folder: Path) -> duckdb.DuckDBPyConnection:
    """Return DuckDB with two gigabytes of memory; what does not fit goes to the folder."""
    return duckdb.connect(
        config={
            "memory_limit": "2GB",
            "temp_directory": str(folder / "spill"),
            "preserve_insertion_order": False,
        }
    )


def make_labels(folder: Path, table: Table) -> Path:
    """Write labels as a Parquet file: items in random order, five labels each on average."""
    path = folder / "counted.parquet"
    item = f"(hash(i) % {max(table.n_labels // LABELS_PER_ITEM, 1)})::bigint"
    chosen = (
        f"case when hash(i + 1) % 10 < 7 then hash(item) else hash(i + 2) end % {table.n_classes}"
    )
    columns = [
        f"'{name} ' || {name} as {name}" if table.text else name for name in ("item", "label")
    ]
    items = f"select i, {item} as item from range({table.n_labels}) t(i)"
    rows = f"select *, ({chosen})::bigint as label from ({items})"
    with connect(folder) as connection:
        chosen_columns = f"select {', '.join(columns)}, hash(i + 3) % 1000 as worker from ({rows})"
        connection.execute(f"copy ({chosen_columns}) to '{path}'")
    return path


def count(folder: Path, table: Table, repeats: int, left_out: Mapping[str, str]) -> dict[str, Any]:
    """Compare count_labels with the group-by it needs and with peers; return the counts."""
    path = make_labels(folder, table)
    seconds: dict[str, float] = {}
    peaks: dict[str, int | None] = {}
    values: dict[str, Any] = {}
    with connect(folder) as connection:
        calls = counters(connection, path, left_out)
        for _ in range(repeats):
            for name, call in calls.items():
                duration, peaks[name], values[name] = measure_once(call)
                seconds[name] = min(seconds.get(name, np.inf), duration)
    path.unlink()
    return {
        **table._asdict(),
        "best_of": repeats,
        "seconds": seconds,
        "ratio_to_group_by": {
            engine: seconds[f"hocal_on_{engine}"] / seconds[engine]
            for engine in ENGINES
            if {engine, f"hocal_on_{engine}"} <= seconds.keys()
        },
        "times_faster_than_crowdkit": {
            name: seconds["crowdkit"] / value
            for name, value in seconds.items()
            if "crowdkit" in seconds and name.startswith("hocal")
        },
        "peak_bytes": peaks,
        "left_out": dict(left_out),
        "correct": is_right(values, table.n_labels),
    }


def counters(
    connection: duckdb.DuckDBPyConnection, path: Path, left_out: Mapping[str, str]
) -> dict[str, Callable[[], Any]]:
    """Return the ways to count a table; frames in memory are made before the clock runs."""
    relation = connection.read_parquet(str(path))
    lazy = pl.scan_parquet(path)
    calls: dict[str, Callable[[], Any]] = {
        "duckdb": lambda: connection.sql(GROUP_BY.format(path)).to_arrow_table(),
        "hocal_on_duckdb": lambda: count_labels(relation, item="item", label="label"),
        "polars": lambda: lazy.group_by("item", "label").len().collect(),
        "hocal_on_polars": lambda: count_labels(lazy, item="item", label="label"),
    }
    if "pandas" not in left_out:
        frame = pd.read_parquet(path)
        renamed = frame.rename(columns={"item": "task"})
        calls |= {
            "pandas": lambda: frame.groupby(["item", "label"]).size(),
            "hocal_on_pandas": lambda: count_labels(frame, item="item", label="label"),
            "crowdkit": lambda: MajorityVote().fit(renamed).labels_,
        }
    if "cleanlab" not in left_out:
        slot = frame.groupby("item").cumcount()
        wide = frame.assign(slot=slot).pivot(index="item", columns="slot", values="label")
        named = wide.rename(columns=str).reset_index()
        calls |= {
            "cleanlab": lambda: pd.Series(
                get_majority_vote_label(wide.to_numpy(), verbose=False), index=wide.index
            ),
            "hocal_on_wide_pandas": lambda: count_labels(
                named, item="item", label=[str(name) for name in wide]
            ),
        }
    return {name: call for name, call in calls.items() if name not in left_out}


def is_right(values: Mapping[str, Any], n_labels: int) -> bool:
    """Tell whether all counts are equal and add up, and majority votes agree without ties."""
    ours = [value for name, value in values.items() if name.startswith("hocal")]
    first = ours[0]
    equal = all(
        np.array_equal(one.items, first.items) and abs(one.counts - first.counts).max() == 0
        for one in ours
    )
    added = first.counts.sum() == n_labels and (first.counts > 0).sum() == values["duckdb"].num_rows
    votes = [values[name] for name in ("crowdkit", "cleanlab") if name in values]
    return bool(equal and added and all(agrees(first, vote) for vote in votes))


def agrees(counted: LabelCounts, votes: pd.Series) -> bool:
    """Tell whether a peer's majority votes are those of the counts, wherever there is no tie."""
    counts = counted.counts if isinstance(counted.counts, np.ndarray) else counted.counts.toarray()
    alone = (counts == counts.max(axis=1, keepdims=True)).sum(axis=1) == 1
    expected = np.array(counted.classes)[counts.argmax(axis=1)]
    return bool((votes.loc[counted.items].to_numpy() == expected)[alone].all())


def grow_counts(folder: Path, sizes: list[int]) -> list[dict[str, Any]]:
    """Count tables of ten classes, each ten times the last; methods that need too much stop."""
    rows: list[dict[str, Any]] = []
    for n_labels in sizes:
        left_out = (
            rows[-1]["left_out"] | stops(rows[-1], n_labels / rows[-1]["n_labels"]) if rows else {}
        )
        repeats = 5 if n_labels <= 100_000 else 2 if n_labels < 10**8 else 1
        rows.append(count(folder, Table(n_labels), repeats, left_out))
    return rows


def stops(row: Mapping[str, Any], times_larger: float) -> dict[str, str]:
    """Tell which methods stop and why; DuckDB keeps to its memory, so it never does."""
    reasons = too_large(row["seconds"], row["peak_bytes"], times_larger)
    reasons = {name: why for name, why in reasons.items() if not name.endswith("duckdb")}
    if row["n_labels"] * times_larger > 10**7:
        frames = ("pandas", "hocal_on_pandas", "crowdkit", "cleanlab")
        reasons |= dict.fromkeys(frames, "the whole table would have to be in memory")
    if "cleanlab" in reasons:
        reasons["hocal_on_wide_pandas"] = "stops with cleanlab, whose table it counts"
    return reasons


def make_tables(folder: Path, n_items: int) -> tuple[str, str]:
    """Write labels in random order and predictions as Parquet files, from hashes of the items."""
    labels = folder / f"labels-{n_items}.parquet"
    predictions = folder / f"predictions-{n_items}.parquet"
    raw = ", ".join(
        f"-ln(hash(i * {N_CLASSES} + {j}) / 18446744073709551616::double + 1e-12) "
        f"* (case when hash(i) % {N_CLASSES} = {j} then 12 else 1 end) as r{j}"
        for j in range(N_CLASSES)
    )
    total = " + ".join(f"r{j}" for j in range(N_CLASSES))
    partial = (
        f"when u * ({total}) < {' + '.join(f'r{i}' for i in range(j + 1))} then {j}"
        for j in range(N_CLASSES)
    )
    with connect(folder) as connection:
        connection.execute(f"create view raw as select i as item, {raw} from range({n_items}) t(i)")
        shares = ", ".join(f"r{j} / ({total}) as p{j}" for j in range(N_CLASSES))
        connection.execute(
            f"copy (select item, {shares} from raw order by hash(item)) to '{predictions}'"
        )
        drawn = (
            "select *, hash(item * 100 + worker + 77) / 18446744073709551616::double as u "
            f"from raw, range({LABELS_PER_ITEM}) t(worker)"
        )
        chosen = f"case {' '.join(partial)} else {N_CLASSES - 1} end as label"
        connection.execute(
            f"copy (select item, {chosen} from ({drawn}) "
            f"order by hash(item * 7 + worker)) to '{labels}'"
        )
    return str(labels), str(predictions)


def cells(folder: Path, n_items: int, repeats: int) -> dict[str, Any]:
    """Compare cell_statistics with a plain group-by of the labels, in DuckDB with 2 GB."""
    labels, predictions = make_tables(folder, n_items)
    with connect(folder) as connection:
        tables = connection.read_parquet(labels), connection.read_parquet(predictions)
        calls = {
            "group_by": lambda: connection.sql(
                f"select sum(n) from ({GROUP_BY.format(labels)})"
            ).fetchall(),
            "hocal": lambda: cell_statistics(*tables, **CELLS),
        }
        seconds, values = best_times(calls, repeats)
        peaks = {name: peak_bytes(call) for name, call in calls.items()}
    statistics = values["hocal"]
    return {
        "n_labels": n_items * LABELS_PER_ITEM,
        "n_items": n_items,
        "seconds": seconds,
        "ratio": seconds["hocal"] / seconds["group_by"],
        "target": TARGET,
        "histogram_rows": len(statistics.observed.cells) + len(statistics.aligned.cells),
        "correct": bool(statistics.n_labels.sum() == values["group_by"][0][0])
        and is_exact(statistics, labels, predictions),
        "peak_bytes": peaks,
    }


def is_exact(statistics: CellStatistics, labels: str, predictions: str) -> bool:
    """Tell whether statistics equal those from arrays; totals alone beyond a million items."""
    if statistics.n_items.sum() > 1_000_000:
        return True
    counted = count_labels(
        pl.scan_parquet(labels), item="item", label="label", classes=range(N_CLASSES)
    )
    p = pl.read_parquet(predictions).sort("item").select(COLUMNS).to_numpy()
    partition = TopLabelPartition().fit(p)
    return same(
        statistics,
        CellStatistics.from_items(p, counted.counts, partition.assign(p), partition.layout_),
    )


def same(first: CellStatistics, second: CellStatistics) -> bool:
    """Tell whether two statistics are equal, bit for bit."""
    pairs = [
        *zip(first.observed, second.observed, strict=True),
        *zip(first.aligned, second.aligned, strict=True),
    ]
    return all(np.array_equal(a, b) for a, b in [*pairs, (first.predicted, second.predicted)])


def on_spark(folder: Path, n_items: int) -> dict[str, Any]:
    """Run cell_statistics on a local Spark and on DuckDB, and compare the results."""
    from pyspark.sql import SparkSession

    labels, predictions = make_tables(folder, n_items)
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    settings |= {
        "spark.driver.memory": "4g",
        "spark.sql.shuffle.partitions": "4",
        "spark.log.level": "ERROR",
    }
    settings["spark.ui.showConsoleProgress"] = "false"
    session = (
        SparkSession.builder.master("local[2]").appName("hocal").config(map=settings).getOrCreate()
    )
    with connect(folder) as connection:
        calls = {
            "duckdb": lambda: cell_statistics(
                connection.read_parquet(labels), connection.read_parquet(predictions), **CELLS
            ),
            "spark": lambda: cell_statistics(
                session.read.parquet(labels), session.read.parquet(predictions), **CELLS
            ),
            "spark_group_by": lambda: (
                session.read.parquet(labels).groupBy("item", "label").count().count()
            ),
        }
        seconds, values = best_times(calls, 1)
    session.stop()
    return {
        "n_labels": n_items * LABELS_PER_ITEM,
        "seconds": seconds,
        "ratio_to_group_by_on_spark": seconds["spark"] / seconds["spark_group_by"],
        "ratio_to_duckdb": seconds["spark"] / seconds["duckdb"],
        "correct": same(values["duckdb"], values["spark"]),
    }


def exponent(rows: list[dict[str, Any]], name: str) -> float:
    """Return the power of the number of labels with which a method's time grows."""
    timed = [row for row in rows if name in row["seconds"]]
    return growth([row["n_labels"] for row in timed], [row["seconds"][name] for row in timed])


def run(tiny: bool) -> dict[str, Any]:
    """Return all measurements."""
    sizes = [1_000, 5_000] if tiny else [10**5, 10**6, 10**7, 10**8]
    other = [Table(sizes[1], 100), Table(sizes[1], 1_000), Table(sizes[1], text=True)]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        counted = grow_counts(folder, sizes)
        n_items = [100, 1_000] if tiny else [20_000, 200_000, 2_000_000, 10_000_000]
        measured = [cells(folder, n, 1 if tiny or n > 3_000_000 else 2) for n in n_items]
        result = {
            "versions": versions(
                "numpy",
                "narwhals",
                "duckdb",
                "polars",
                "pyarrow",
                "pandas",
                "crowd-kit",
                "cleanlab",
            ),
            "labels_per_item": LABELS_PER_ITEM,
            "duckdb_memory_limit": "2GB",
            "count": counted,
            "count_growth": {method: exponent(counted, method) for method in counted[0]["seconds"]},
            "count_other": [
                count(folder, table, 1 if tiny else 2, NO_WIDE_TABLE) for table in other
            ],
            "cells": measured,
            "cells_growth": exponent(measured[-2:], "hocal"),
        }
        if not tiny:
            result["versions"] |= versions("pyspark")
            result["spark"] = [on_spark(folder, 1_000_000)]
    return result | {"minutes": (time.perf_counter() - start) / 60}


def main() -> None:
    """Measure, check every result, and print or store the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--tiny", action="store_true", help="small tables, no Spark; checks values, writes nothing"
    )
    tiny = parser.parse_args().tiny
    result = run(tiny)
    text = json.dumps(result, indent=2)
    print(text)
    parts = ("count", "count_other", "cells", "spark")
    wrong = [row for part in parts for row in result.get(part, []) if not row["correct"]]
    if wrong:
        raise SystemExit(
            f"results differ from the group-by's, from a peer's or from those of arrays: {wrong}"
        )
    if not tiny:
        RESULTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
