"""`hocal fit`: labels and predictions in, a model file and a summary out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hocal._base.errors import InputError, OneLabelWarning
from hocal.cli import options
from hocal.cli.items import LabelOptions, label_options, read_items
from hocal.cli.left_out import count_left_out, say_left_out
from hocal.cli.messages import note, working
from hocal.cli.models import model_notes
from hocal.cli.options import split_list
from hocal.cli.outputs import output_file, print_json, print_table
from hocal.cli.tables import Probabilities, open_engine, open_probabilities

if TYPE_CHECKING:
    from hocal import CellStatistics, SnapshotCalibrator
    from hocal.cells.partitions import Partition

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


def fit(
    labels: options.LabelsFile,
    probabilities: options.ProbabilitiesFile,
    output: options.Output,
    item: options.Item,
    label: options.Label = None,
    annotator: options.Annotator = None,
    count_columns: options.CountColumns = None,
    classes: options.Classes = None,
    probability_columns: options.ProbabilityColumns = None,
    cell: options.Cell = None,
    names: options.Names = None,
    probability_names: options.ProbabilityNames = None,
    partition: Annotated[
        str, typer.Option(help="How items become cells: top-label, or uniform for two classes.")
    ] = "top-label",
    n_slices: Annotated[
        int, typer.Option(help="Slices of the top probability, for top-label.")
    ] = 10,
    n_bins: Annotated[
        int, typer.Option(help="Bins of the probability of the second class, for uniform.")
    ] = 10,
    n_cells: Annotated[int | None, typer.Option(help="Number of cells, with --cell.")] = None,
    method: Annotated[
        str, typer.Option(help="deconvolved, or empirical for the paper's method.")
    ] = "deconvolved",
    k: Annotated[int | None, typer.Option("--k", help="Snapshot size, for empirical.")] = None,
    panel_size: Annotated[
        int | None, typer.Option(help="Report what a panel of so many annotators shows.")
    ] = None,
    missing: options.Missing = "error",
    unknown: options.Unknown = "error",
    duplicates: options.Duplicates = "error",
    unlabelled: options.Unlabelled = "error",
    unpredicted: options.Unpredicted = "error",
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
    2, ...

    Example: hocal fit labels.parquet softmax.parquet -o model.hocal --item image --label choice
    """
    from hocal.calibration.persistence import serialise

    rules = {"missing": missing, "unknown": unknown, "duplicates": duplicates}
    rules |= {"unlabelled": unlabelled, "unpredicted": unpredicted}
    label_choices = label_options(
        label=label, annotator=annotator, count_columns=count_columns, names=names, rules=rules
    )
    declared = split_list(classes, "--classes")
    with (
        output_file(output, force=force) as temporary,
        open_engine(engine, memory_limit=memory_limit, spark_master=spark_master) as read,
    ):
        predictions = open_probabilities(
            read,
            probabilities,
            item=item,
            columns=split_list(probability_columns, "--probability-columns"),
            n_classes=None if declared is None else len(declared),
            cell=cell,
            names=split_list(probability_names, "--probability-names"),
        )
        order = predictions.classes if declared is None else declared
        chosen = _partition(
            partition, len(order), n_slices=n_slices, n_bins=n_bins, n_cells=n_cells, cell=cell
        )
        with working("Counting labels in cells"), predictions.explained():
            label_table, predictions = label_choices.open(read, labels, predictions, item=item)
            statistics = _statistics(
                label_table, predictions, label_choices, chosen, item=item, classes=order, cell=cell
            )
        with working("Fitting"):
            calibrator = _fit(chosen, statistics, method=method, k=k, panel_size=panel_size)
        notes = model_notes(
            classes=order, item=item, probability_columns=predictions.file_columns, cell=cell
        )
        temporary.write_bytes(serialise(calibrator, notes=notes))
        left_out = count_left_out(
            label_table, predictions, label_choices, statistics, item=item, classes=order
        )
        summary = {
            "model": output,
            **_summarise(calibrator),
            "classes": order,
            "left_out": left_out,
        }
    if as_json:
        print_json(summary)
    else:
        _show(summary, most_labels=int(statistics.observed.totals.max()))


def _fit(partition: Partition, statistics: CellStatistics, **choices: Any) -> SnapshotCalibrator:
    """Fit a calibrator; a warning that the summary repeats in its own words is not shown."""
    import hocal

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OneLabelWarning)
        return hocal.SnapshotCalibrator(partition, **choices).fit_statistics(statistics)


def _partition(
    name: str, n_classes: int, *, n_slices: int, n_bins: int, n_cells: int | None, cell: str | None
) -> Partition:
    """Return the partition that the options describe, fitted; none learns from predictions."""
    import hocal

    if (cell is None) != (n_cells is None):
        raise InputError("--cell and --n-cells", "must be given together")
    partitions: dict[str, Partition] = {
        "top-label": hocal.TopLabelPartition(n_slices),
        "uniform": hocal.UniformPartition(n_bins),
    }
    if name not in partitions:
        rule = f"must be one of {', '.join(partitions)}"
        raise InputError("--partition", rule, value=repr(name))
    chosen = partitions[name] if n_cells is None else hocal.PrecomputedPartition(n_cells)
    return chosen.fit([[1 / n_classes] * n_classes])


def _statistics(
    labels: Any,
    predictions: Probabilities,
    label_choices: LabelOptions,
    partition: Partition,
    *,
    item: str,
    classes: Sequence[str],
    cell: str | None,
) -> CellStatistics:
    """Count labels in cells inside the engine; a table of counts, one row per item, in memory."""
    from hocal.annotations.cell_counting import cell_statistics
    from hocal.cells.statistics import CellStatistics

    if label_choices.count_columns:
        items = read_items(
            labels, predictions, label_choices, item=item, classes=classes, cell=cell
        )
        with predictions.explained(items.place):
            where = partition.assign(items.probabilities, items.cells)
        return CellStatistics.from_items(
            items.probabilities, items.counts, where, partition.layout_
        )
    return cell_statistics(
        labels,
        predictions.table,
        item=item,
        label=label_choices.label_argument,
        annotator=label_choices.annotator,
        classes=classes,
        probability_columns=predictions.columns,
        partition=partition,
        cell=cell,
        **label_choices.rules,
    )


def _show(summary: dict[str, Any], *, most_labels: int) -> None:
    shown = summary | {"classes": ", ".join(summary["classes"])}
    if summary["left_out"]:
        shown["left_out"] = say_left_out(summary["left_out"])
    rows = {WORDS.get(name, name): value for name, value in shown.items() if value != {}}
    print_table("Fitted", rows)
    if most_labels == 1:
        note(
            "No item has two labels. One label per item cannot tell people who disagree from a "
            "model that does not know: the split into aleatoric and epistemic is a guess. "
            "Get a second label for some of the items."
        )


def _summarise(calibrator: SnapshotCalibrator) -> dict[str, Any]:
    """Return what was fitted, with uncertainty averaged over the calibration items."""
    import hocal

    statistics = calibrator.statistics_
    parts = hocal.decompose(calibrator.cell_mixtures_, panel_size=calibrator.panel_size).as_dict()
    shares = statistics.n_items / statistics.n_items.sum()
    return {
        "n_items": int(statistics.n_items.sum()),
        "n_labels": int(statistics.n_labels.sum()),
        "n_cells": statistics.n_cells,
        "n_filled_cells": int((statistics.n_items > 0).sum()),
        "smallest_total": statistics.smallest_total,
        "method": calibrator.method,
        "partition": str(calibrator.partition_),
        **{name: float(shares @ values) for name, values in parts.items()},
    }
