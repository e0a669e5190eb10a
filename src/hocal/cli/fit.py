"""`hocal fit`: labels and predictions in, a model file and a summary out."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hocal._base.errors import InputError, OneLabelWarning
from hocal.cli import options
from hocal.cli.caution import cells_outside, warn_outside
from hocal.cli.engines import open_engine
from hocal.cli.fit_tables import FitTables, fit_statistics
from hocal.cli.items import MatchedItems, label_options
from hocal.cli.left_out import say_left_out
from hocal.cli.messages import note, working
from hocal.cli.option_groups import LabelColumns, Rules, grouped, refuse_idle
from hocal.cli.options import split_list
from hocal.cli.outputs import output_file, print_json, print_table
from hocal.cli.partition_options import make_partition, partition_class
from hocal.cli.predictions import Wanted
from hocal.cli.side_tables import is_file
from hocal.cli.tables import count_distinct

if TYPE_CHECKING:
    from hocal import SnapshotCalibrator
    from hocal.cells.partitions import Partition

# Of the predictions that a fit holds in memory for a mixture per item, n_items x n_classes: 800 MB,
# and a few times as much while it works.
MAX_NUMBERS = 100_000_000
# items that are decomposed at once for the summary: some tens of MB for ten classes
ROWS = 100_000
WORDS = {  # what people read instead of the keys for machines
    "n_items": "items",
    "n_labels": "labels",
    "left_out": "left out",
    "n_cells": "cells",
    "n_filled_cells": "cells with items",
    "smallest_total": "fewest labels of an item",
    "predictive": "predictive, nats",
    "aleatoric": "aleatoric, nats",
    "epistemic": "epistemic, nats",
}


@grouped
def fit(
    labels: options.LabelsFile,
    probabilities: options.ProbabilitiesFile,
    output: options.Output,
    item: options.Item,
    columns: LabelColumns,
    rules: Rules,
    unlabelled: options.Unlabelled = "error",
    first: options.First = None,
    time: options.Time = None,
    classes: options.Classes = None,
    probability_columns: options.ProbabilityColumns = None,
    probability_names: options.ProbabilityNames = None,
    score: options.Score = None,
    features: options.Features = None,
    ensemble: options.Ensemble = None,
    by: options.By = None,
    cell: options.Cell = None,
    n_cells: Annotated[int | None, typer.Option(help="Number of cells, with --cell.")] = None,
    partition: Annotated[
        str,
        typer.Option(
            help="How items become cells: top-label, uniform for two classes, quantile, "
            "level-set, k-means, or a "
            "class of your own as package.module:Name, after hocal --import package.module."
        ),
    ] = "top-label",
    n_slices: Annotated[
        int, typer.Option(help="Slices of the top probability, for top-label and quantile.")
    ] = 10,
    n_bins: Annotated[
        int, typer.Option(help="Bins of the probability of the second class, for uniform.")
    ] = 10,
    method: Annotated[
        str,
        typer.Option(
            help="items: one mixture per item. cells: one per cell, counted inside the engine, for "
            "tables of any size. empirical: the paper's method."
        ),
    ] = "items",
    k: Annotated[int | None, typer.Option("--k", help="Snapshot size, for empirical.")] = None,
    panel_size: Annotated[
        int | None, typer.Option(help="Report what a panel of so many annotators shows.")
    ] = None,
    engine: Annotated[
        str, typer.Option(help="Where the tables are joined and counted: duckdb or spark.")
    ] = "duckdb",
    spark_master: Annotated[
        str | None,
        typer.Option(
            help="Spark to use: local[4], spark://host:7077 or sc://host; local by default."
        ),
    ] = None,
    memory_limit: options.MemoryLimit = "2GB",
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Calibrate predictions on labels and save the model.

    The model that made the predictions must not have been trained on these items. Without --classes
    the classes are the names of the columns of probabilities; of a column of lists they are 0, 1,
    2, ... The default method holds the labelled items in memory; where there are too many of them,
    a line says so and there is one mixture per cell instead.

    Example: hocal fit labels.parquet softmax.parquet -o model.hocal --item image --label choice
    """
    kind = partition_class(partition) if cell is None else None
    _refuse_idle(kind, method=method, engine=engine)
    choices = label_options(
        labels, columns, rules._asdict() | {"unlabelled": unlabelled}, first=first, time=time
    )
    declared = split_list(classes, "--classes")
    wanted = Wanted(
        item,
        split_list(probability_columns, "--probability-columns"),
        None if declared is None else len(declared),
        cell=cell,
        by=by,
        scores=_feature_columns(score, features),
        names=split_list(probability_names, "--probability-names"),
        features=features if is_file(features) else None,
        ensemble=split_list(ensemble, "--ensemble") or [],
    )
    settings = {"n_slices": n_slices, "n_bins": n_bins, "n_cells": n_cells}
    with (
        output_file(output, force=force) as temporary,
        open_engine(engine, memory_limit=memory_limit, spark_master=spark_master) as read,
    ):
        data = FitTables.open(read, (labels, probabilities), choices, wanted, declared)
        chosen = data.cross(make_partition(kind, len(data.classes), settings))
        choices_of_fit = {"method": method, "k": k, "panel_size": panel_size}
        calibrator, means = _fit(data, chosen, choices_of_fit)
        temporary.write_bytes(data.serialise(calibrator))
        summary = {"model": output, **_summarise(calibrator), **means, **data.describe(calibrator)}
    most_labels = int(calibrator.statistics_.observed.totals.max())
    print_json(summary) if as_json else _show(summary, most_labels=most_labels)


def _refuse_idle(kind: type[Partition] | None, *, method: str, engine: str) -> None:
    """Refuse options that would do nothing."""
    taken = {} if kind is None else signature(kind).parameters
    given_cells = "with --cell, which brings the cells" if kind is None else None
    other = "with a partition that does not take it"
    refuse_idle(
        {
            "--partition": given_cells,
            "--by": given_cells and f"{given_cells}: cross them with the groups beforehand",
            "--n-slices": given_cells or (None if "n_slices" in taken else other),
            "--n-bins": given_cells or (None if "n_bins" in taken else other),
            "--k": None if method == "empirical" else "unless with --method empirical",
            "--spark-master": None if engine == "spark" else "unless with --engine spark",
            "--memory-limit": "with --engine spark" if engine == "spark" else None,
        }
    )


def _feature_columns(score: str | None, features: str | None) -> list[str]:
    """Return the columns of PROBABILITIES that are features."""
    scores = split_list(score, "--score") or []
    return scores if is_file(features) else scores + (split_list(features, "--features") or [])


def _feasible_method(method: str, data: FitTables, *, n_groups: int) -> str:
    """Return the method, or "cells" where the items of a mixture per item do not fit; say so."""
    predictions = data.predictions
    has_features = bool(predictions.scores) or predictions.features is not None
    if method != "items":
        if has_features:
            raise InputError("method", "must be items with --score or --features", value=method)
        return method
    n_columns = len(predictions.columns)
    if n_columns != len(data.classes):
        rule = f"must name a different column for each of the {len(data.classes)} classes"
        raise InputError("probability_columns", rule, value=f"{n_columns} columns")
    n_items = count_distinct(data.labels, data.item)
    width = len(data.classes) * (1 + len(predictions.members)) + n_groups
    if n_items * width <= MAX_NUMBERS:
        return method
    if has_features or predictions.members:
        option = "features" if has_features else "--ensemble"
        raise InputError(option, "must be left out for so many items", value=f"{n_items:,}")
    note(
        f"{n_items:,} items do not fit: one mixture per cell instead; --method cells says so "
        "beforehand."
    )
    return "cells"


def _fit(
    data: FitTables, partition: Partition, choices: Mapping[str, Any]
) -> tuple[SnapshotCalibrator, dict[str, float]]:
    """Fit in memory where items or members are needed, else on what an engine counts."""
    with data.predictions.explained():
        method = _feasible_method(choices["method"], data, n_groups=partition.n_item_columns)
    in_memory = method == "items" or data.predictions.members
    fit_model = _fit_items if in_memory else _fit_cells
    with working("Fitting"):
        return fit_model(data, partition, {**choices, "method": method})


def _fit_items(
    data: FitTables, partition: Partition, choices: Mapping[str, Any]
) -> tuple[SnapshotCalibrator, dict[str, float]]:
    """Fit a mixture per item; return the mean uncertainty of the calibration items as well."""
    import hocal

    with data.predictions.explained():
        items = data.read()
    calibrator = hocal.SnapshotCalibrator(partition, **choices)
    with data.predictions.explained(items.place), _without_repeats():
        calibrator.fit(items.probabilities, items.counts, **items.inputs)
    return calibrator, _item_means(calibrator, items)


def _fit_cells(
    data: FitTables, partition: Partition, choices: Mapping[str, Any]
) -> tuple[SnapshotCalibrator, dict[str, float]]:
    """Fit a mixture per cell; return the mean uncertainty of the calibration items as well."""
    import hocal

    with data.predictions.explained():
        fitted, statistics = fit_statistics(data, partition)
    with _without_repeats():
        calibrator = hocal.SnapshotCalibrator(fitted, **choices).fit_statistics(statistics)
    parts = hocal.decompose(calibrator.cell_mixtures_, panel_size=calibrator.panel_size).as_dict()
    shares = statistics.n_items / statistics.n_items.sum()
    return calibrator, {name: float(shares @ values) for name, values in parts.items()}


@contextmanager
def _without_repeats() -> Iterator[None]:
    """Hide a warning that the summary repeats in its own words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OneLabelWarning)
        yield


def _item_means(calibrator: SnapshotCalibrator, items: MatchedItems) -> dict[str, float]:
    """Return uncertainty averaged over the items, which are decomposed block by block."""
    import numpy as np

    n_items = len(items.items)
    sums: dict[str, float] = {}
    for start in range(0, n_items, ROWS):
        rows = slice(start, start + ROWS)
        block = items.take(np.arange(n_items)[rows])
        parts = calibrator.decompose(block.probabilities, **block.inputs).as_dict()
        sums = {name: sums.get(name, 0.0) + float(np.sum(part)) for name, part in parts.items()}
    return {name: total / n_items for name, total in sums.items()}


def _show(summary: dict[str, Any], *, most_labels: int) -> None:
    shown = summary | {"classes": ", ".join(summary["classes"])}
    if summary["left_out"]:
        shown["left_out"] = say_left_out(summary["left_out"])
    outside = shown.pop("outside_limits")
    rows = {WORDS.get(name, name): value for name, value in shown.items() if value != {}}
    print_table("Fitted", rows)
    warn_outside(outside)
    if most_labels == 1:
        note(
            "No item has two labels. One label per item cannot tell people who disagree from a "
            "model that does not know: the split into aleatoric and epistemic is a guess. "
            "Get a second label for some of the items."
        )


def _summarise(calibrator: SnapshotCalibrator) -> dict[str, Any]:
    """Return what was fitted."""
    statistics = calibrator.statistics_
    return {
        "n_items": int(statistics.n_items.sum()),
        "n_labels": int(statistics.n_labels.sum()),
        "n_cells": statistics.n_cells,
        "n_filled_cells": int((statistics.n_items > 0).sum()),
        "smallest_total": statistics.smallest_total,
        "method": calibrator.method,
        "partition": str(calibrator.partition_),
        "outside_limits": _certified_outside(calibrator),
    }


def _certified_outside(calibrator: SnapshotCalibrator) -> list[int]:
    """Return the cells whose estimate lies outside its limits."""
    with working("Certifying"):
        return cells_outside(calibrator.certify())
