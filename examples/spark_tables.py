"""Calibrate on tables that stay in Spark, and let its workers predict.

Only histograms of the cells leave Spark. Two small Parquet files stand for tables of any size.
Needs Java, and pip install "hocal[spark]".
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import SparkSession

import hocal
from hocal.datasets import make_mixture_world

CLASSES = ["cat", "dog", "fox"]
COLUMNS = ["p_cat", "p_dog", "p_fox"]


def write_tables(folder: Path) -> None:
    """Write one row per judgement, and one row per item with its predictions."""
    world = make_mixture_world(2000, len(CLASSES), random_state=0)
    labels = np.repeat(np.tile(CLASSES, 2000), world.draw(3, random_state=1).ravel())
    parquet.write_table(
        pa.table({"photo": np.repeat(np.arange(2000), 3), "choice": labels}),
        folder / "labels.parquet",
    )
    columns = dict(zip(COLUMNS, world.predictions.T, strict=True))
    parquet.write_table(
        pa.table({"photo": np.arange(2000), **columns}), folder / "predictions.parquet"
    )


# --8<-- [start:fit]
def fit(spark: SparkSession, folder: Path) -> hocal.SnapshotCalibrator:
    """Join, sort into cells and count inside Spark; calibrate on what comes out."""
    partition = hocal.TopLabelPartition(n_slices=10)
    statistics = hocal.cell_statistics(
        spark.read.parquet(f"{folder}/labels.parquet"),
        spark.read.parquet(f"{folder}/predictions.parquet"),
        item="photo",
        label="choice",
        classes=CLASSES,
        probability_columns=COLUMNS,
        partition=partition,
    )
    print(statistics)
    return hocal.SnapshotCalibrator(partition, method="cells").fit_statistics(statistics)


# --8<-- [end:fit]
# --8<-- [start:predict]
def predict(spark: SparkSession, folder: Path) -> pd.DataFrame:
    """Load the model file on the workers; here the mean of each part comes back."""

    def add_uncertainty(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        model = hocal.load(folder / "model.hocal")  # any place that the workers can read
        for batch in batches:
            parts = model.decompose(batch[COLUMNS].to_numpy())
            yield batch[["photo"]].assign(aleatoric=parts.aleatoric, epistemic=parts.epistemic)

    predictions = spark.read.parquet(f"{folder}/predictions.parquet")
    uncertainty = predictions.mapInPandas(
        add_uncertainty, "photo long, aleatoric double, epistemic double"
    )
    return uncertainty.selectExpr("avg(aleatoric)", "avg(epistemic)").toPandas()


# --8<-- [end:predict]


def main(folder: Path) -> None:
    """Start a Spark on this machine, fit, save, predict."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers use this environment
    settings = {
        "spark.sql.shuffle.partitions": "2",  # enough here; leave it out on a cluster
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
    }
    spark = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    write_tables(folder)
    hocal.save(fit(spark, folder), folder / "model.hocal")
    print(predict(spark, folder).to_string(index=False))
    spark.stop()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(temporary))
