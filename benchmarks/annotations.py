"""Time `count_labels` and `cell_statistics` against plain group-bys of the same tables.

Run from the repository root; tables of up to 50 million labels are made on the fly in a temporary directory
(2 GB there, and as much again while DuckDB spills), and DuckDB is held to 2 GB of memory:

    python benchmarks/annotations.py            # about three minutes, writes benchmarks/results/annotations.json
    python benchmarks/annotations.py --tiny     # seconds, without Spark, writes nothing
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
from measure import best_times, versions

from hocal.annotations import count_labels
from hocal.cell_tables import cell_statistics
from hocal.partition import TopLabelPartition
from hocal.statistics import CellStatistics

N_CLASSES, LABELS_PER_ITEM = 10, 5
TARGET = 12  # cell_statistics at most this many times the time of one plain group-by of the labels
COLUMNS = [f"p{j}" for j in range(N_CLASSES)]
CELLS: dict[str, Any] = {
    "item": "item", "label": "label", "classes": range(N_CLASSES), "probability_columns": COLUMNS
}  # fmt: skip
GROUP_BY = "select item, label, count(*) as n from '{}' group by item, label"
RESULTS = Path(__file__).parent / "results" / "annotations.json"


def connect(folder: Path) -> duckdb.DuckDBPyConnection:
    """Return DuckDB with two gigabytes of memory; what does not fit goes to the folder."""
    return duckdb.connect(
        config={"memory_limit": "2GB", "temp_directory": str(folder / "spill"), "preserve_insertion_order": False}
    )


def make_tables(folder: Path, n_items: int) -> tuple[str, str]:
    """Write labels in random order and predictions as Parquet files; all numbers come from hashes of the items."""
    labels, predictions = folder / f"labels-{n_items}.parquet", folder / f"predictions-{n_items}.parquet"
    raw = ", ".join(
        f"-ln(hash(i * {N_CLASSES} + {j}) / 18446744073709551616::double + 1e-12) "
        f"* (case when hash(i) % {N_CLASSES} = {j} then 12 else 1 end) as r{j}"
        for j in range(N_CLASSES)
    )
    total = " + ".join(f"r{j}" for j in range(N_CLASSES))
    partial = (f"when u * ({total}) < {' + '.join(f'r{i}' for i in range(j + 1))} then {j}" for j in range(N_CLASSES))
    with connect(folder) as connection:
        connection.execute(f"create view raw as select i as item, {raw} from range({n_items}) t(i)")
        shares = ", ".join(f"r{j} / ({total}) as p{j}" for j in range(N_CLASSES))
        connection.execute(f"copy (select item, {shares} from raw order by hash(item)) to '{predictions}'")
        drawn = (
            "select *, hash(item * 100 + worker + 77) / 18446744073709551616::double as u "
            f"from raw, range({LABELS_PER_ITEM}) t(worker)"
        )
        chosen = f"case {' '.join(partial)} else {N_CLASSES - 1} end as label"
        connection.execute(
            f"copy (select item, {chosen} from ({drawn}) order by hash(item * 7 + worker)) to '{labels}'"
        )
    return str(labels), str(predictions)


def count(folder: Path, n_items: int, repeats: int) -> dict[str, Any]:
    """Compare count_labels with the group-by it needs, in DuckDB and in polars; the table of counts comes back."""
    path, _ = make_tables(folder, n_items)
    with connect(folder) as connection:
        table = connection.read_parquet(path)
        lazy = pl.scan_parquet(path)
        calls = {
            "duckdb": lambda: connection.sql(GROUP_BY.format(path)).to_arrow_table(),
            "hocal_on_duckdb": lambda: count_labels(table, item="item", label="label"),
            "polars": lambda: lazy.group_by("item", "label").len().collect(),
            "hocal_on_polars": lambda: count_labels(lazy, item="item", label="label"),
        }
        seconds, values = best_times(calls, repeats)
    counts = values["hocal_on_duckdb"].counts
    return {
        "n_labels": n_items * LABELS_PER_ITEM,
        "seconds": seconds,
        "ratio_duckdb": seconds["hocal_on_duckdb"] / seconds["duckdb"],
        "ratio_polars": seconds["hocal_on_polars"] / seconds["polars"],
        "correct": bool(
            counts.sum() == n_items * LABELS_PER_ITEM
            and (counts > 0).sum() == values["duckdb"].num_rows
            and np.array_equal(counts, values["hocal_on_polars"].counts)
        ),
        "peak_gib": peak_gib(),
    }


def cells(folder: Path, n_items: int, repeats: int) -> dict[str, Any]:
    """Compare cell_statistics with one plain group-by of the labels, in DuckDB with 2 GB of memory."""
    labels, predictions = make_tables(folder, n_items)
    with connect(folder) as connection:
        tables = connection.read_parquet(labels), connection.read_parquet(predictions)
        calls = {
            "group_by": lambda: connection.sql(f"select sum(n) from ({GROUP_BY.format(labels)})").fetchall(),
            "hocal": lambda: cell_statistics(*tables, **CELLS),
        }
        seconds, values = best_times(calls, repeats)
    held = values["hocal"]
    return {
        "n_labels": n_items * LABELS_PER_ITEM,
        "n_items": n_items,
        "seconds": seconds,
        "ratio": seconds["hocal"] / seconds["group_by"],
        "target": TARGET,
        "histogram_rows": len(held.observed.cells) + len(held.aligned.cells),
        "correct": bool(held.n_labels.sum() == values["group_by"][0][0]) and is_exact(held, labels, predictions),
        "peak_gib": peak_gib(),
    }


def is_exact(held: CellStatistics, labels: str, predictions: str) -> bool:
    """Tell whether statistics equal those computed from arrays; beyond a million items only their totals are known."""
    if held.n_items.sum() > 1_000_000:
        return True
    counted = count_labels(pl.scan_parquet(labels), item="item", label="label", classes=range(N_CLASSES))
    p = pl.read_parquet(predictions).sort("item").select(COLUMNS).to_numpy()
    partition = TopLabelPartition().fit(p)
    return same(held, CellStatistics.from_items(p, counted.counts, partition.assign(p), partition.layout_))


def same(first: CellStatistics, second: CellStatistics) -> bool:
    """Tell whether two statistics are equal, bit for bit."""
    pairs = [*zip(first.observed, second.observed, strict=True), *zip(first.aligned, second.aligned, strict=True)]
    return all(np.array_equal(a, b) for a, b in [*pairs, (first.predicted, second.predicted)])


def on_spark(folder: Path, n_items: int) -> dict[str, Any]:
    """Run cell_statistics on a local Spark and on DuckDB, and compare the results."""
    from pyspark.sql import SparkSession

    labels, predictions = make_tables(folder, n_items)
    settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    settings |= {"spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "4", "spark.log.level": "ERROR"}
    settings["spark.ui.showConsoleProgress"] = "false"
    session = SparkSession.builder.master("local[2]").appName("hocal").config(map=settings).getOrCreate()
    with connect(folder) as connection:
        calls = {
            "duckdb": lambda: cell_statistics(
                connection.read_parquet(labels), connection.read_parquet(predictions), **CELLS
            ),
            "spark": lambda: cell_statistics(session.read.parquet(labels), session.read.parquet(predictions), **CELLS),
            "spark_group_by": lambda: session.read.parquet(labels).groupBy("item", "label").count().count(),
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


def peak_gib() -> float:
    """Return the largest memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**30 if sys.platform == "darwin" else 2**20)


def growth(rows: list[dict[str, Any]]) -> float:
    """Return the power of the number of labels with which the time of the two largest runs grows."""
    small, large = rows[-2:]
    return math.log(large["seconds"]["hocal"] / small["seconds"]["hocal"]) / math.log(
        large["n_labels"] / small["n_labels"]
    )


def run(tiny: bool) -> dict[str, Any]:
    """Return all measurements, sizes growing so that the peak memory is that of the largest so far."""
    sizes = [100, 1_000] if tiny else [20_000, 200_000, 2_000_000, 10_000_000]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measured = [cells(folder, n, 1 if tiny or n > 3_000_000 else 2) for n in sizes]
        result = {
            "versions": versions("numpy", "narwhals", "duckdb", "polars", "pyarrow"),
            "classes": N_CLASSES,
            "labels_per_item": LABELS_PER_ITEM,
            "duckdb_memory_limit": "2GB",
            "cells": measured,
            "cells_growth": growth(measured),
            "count": [count(folder, n, 1 if tiny else 2) for n in sizes[:-1]],
        }
        if not tiny:
            result["versions"] |= versions("pyspark")
            result["spark"] = [on_spark(folder, 1_000_000)]
    return result | {"minutes": (time.perf_counter() - start) / 60}


def main() -> None:
    """Measure, check every result, and print or store the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="small tables, no Spark; checks values, writes nothing")
    tiny = parser.parse_args().tiny
    result = run(tiny)
    text = json.dumps(result, indent=2)
    print(text)
    wrong = [row for part in ("cells", "count", "spark") for row in result.get(part, []) if not row["correct"]]
    if wrong:
        raise SystemExit(f"results differ from the group-by's or from those of arrays: {wrong}")
    if not tiny:
        RESULTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
