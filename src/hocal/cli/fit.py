"""`hocal fit`: labels and predictions in, a model file and a summary out."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from hocal._base.errors import InputError, OneLabelWarning
from hocal.cli import options
from hocal.cli.engines import open_engine
from hocal.cli.items import LabelOptions, MatchedItems, label_options, read_items
from hocal.cli.left_out import count_left_out, say_left_out
from hocal.cli.messages import note, working
from hocal.cli.models import model_notes
from hocal.cli.options import split_list
from hocal.cli.outputs import output_file, print_json, print_table
from hocal.cli.predictions import Probabilities, open_probabilities
from hocal.cli.tables import count_distinct

if TYPE_CHECKING:
    from hocal import CellStatistics, SnapshotCalibrator
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


def fit(
    labels: options.LabelsFile,
    probabilities: options.ProbabilitiesFile,
    output: options.Output,
    item: options.Item,
    label: options.Label = None,
    annotator: options.Annotator = None,
    tool: options.Tool = None,
    question: options.Question = None,
    several: options.Several = "error",
    count_columns: options.CountColumns = None,
    classes: options.Classes = None,
    probability_columns: options.ProbabilityColumns = None,
    score: options.Score = None,
    cell: options.Cell = None,
    names: options.Names = None,
    probability_names: options.ProbabilityNames = None,
    first: options.First = None,
    time: options.Time = None,
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
    n_cells: Annotated[int | None, typer.Option(help="Number of cells, with --cell.")] = None,
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
    2, ... The default method holds the labelled items in memory; where there are too many of them,
    a line says so and there is one mixture per cell instead.

    Example: hocal fit labels.parquet softmax.parquet -o model.hocal --item image --label choice
    """
    rules = {"missing": missing, "unknown": unknown, "duplicates": duplicates}
    rules |= {"unlabelled": unlabelled, "unpredicted": unpredicted}
    label_choices = label_options(
        labels,
        label=label,
        annotator=annotator,
        count_columns=count_columns,
        names=names,
        rules=rules,
        tool=tool,
        question=question,
        several=several,
        first=first,
        time=time,
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
            scores=split_list(score, "--score") or [],
        )
        order = predictions.classes if declared is None else declared
        chosen = _partition(
            partition, len(order), n_slices=n_slices, n_bins=n_bins, n_cells=n_cells, cell=cell
        )
        with working("Reading"), predictions.explained():
            label_table, predictions = label_choices.open(read, labels, predictions, item=item)
            data = _Tables(label_table, predictions, label_choices, item, order, cell)
            feasible = _feasible_method(method, data)
        choices = {"method": feasible, "k": k, "panel_size": panel_size}
        fit_model = _fit_items if feasible == "items" else _fit_cells
        with working("Fitting"):
            calibrator, means = fit_model(data, chosen, choices)
        temporary.write_bytes(data.serialise(calibrator))
        summary = {"model": output, **_summarise(calibrator), **means, **data.describe(calibrator)}
    if as_json:
        print_json(summary)
    else:
        _show(summary, most_labels=int(calibrator.statistics_.observed.totals.max()))


class _Tables(NamedTuple):
    """The two tables of a fit, and what their columns mean."""

    labels: Any
    predictions: Probabilities
    label_choices: LabelOptions
    item: str
    classes: Sequence[str]
    cell: str | None

    def read(self) -> MatchedItems:
        """Read all labelled items."""
        return read_items(
            self.labels,
            self.predictions,
            self.label_choices,
            item=self.item,
            classes=self.classes,
            cell=self.cell,
        )

    def serialise(self, calibrator: SnapshotCalibrator) -> bytes:
        """Return the model file, which remembers what the columns were called."""
        from hocal.calibration.persistence import serialise

        notes = model_notes(
            classes=self.classes,
            item=self.item,
            probability_columns=self.predictions.file_columns,
            cell=self.cell,
            scores=self.predictions.scores,
        )
        return serialise(calibrator, notes=notes)

    def describe(self, calibrator: SnapshotCalibrator) -> dict[str, Any]:
        """Return the classes, and how much of the tables was left out."""
        left_out = count_left_out(
            self.labels,
            self.predictions,
            self.label_choices,
            calibrator.statistics_,
            item=self.item,
            classes=self.classes,
        )
        return {"classes": self.classes, "left_out": left_out}


def _feasible_method(method: str, data: _Tables) -> str:
    """Return the method, or "cells" where the items of a mixture per item do not fit; say so."""
    if method != "items":
        if data.predictions.scores:
            raise InputError("method", "must be items with `--score`", value=method)
        return method
    n_columns = len(data.predictions.columns)
    if n_columns != len(data.classes):
        rule = f"must name a different column for each of the {len(data.classes)} classes"
        raise InputError("probability_columns", rule, value=f"{n_columns} columns")
    n_items = count_distinct(data.labels, data.item)
    if n_items * len(data.classes) <= MAX_NUMBERS:
        return method
    if data.predictions.scores:
        raise InputError("features", "must be left out for so many items", value=f"{n_items:,}")
    note(
        f"{n_items:,} items do not fit: one mixture per cell instead; --method cells says so "
        "beforehand."
    )
    return "cells"


def _fit_items(
    data: _Tables, partition: Partition, choices: Mapping[str, Any]
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
    data: _Tables, partition: Partition, choices: Mapping[str, Any]
) -> tuple[SnapshotCalibrator, dict[str, float]]:
    """Fit a mixture per cell; return the mean uncertainty of the calibration items as well."""
    import hocal

    with data.predictions.explained():
        fitted, statistics = _statistics(data, partition)
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


def _partition(
    name: str, n_classes: int, *, n_slices: int, n_bins: int, n_cells: int | None, cell: str | None
) -> Partition:
    """Return the partition that the options describe, fitted unless it learns from predictions."""
    import hocal

    if (cell is None) != (n_cells is None):
        raise InputError("--cell and --n-cells", "must be given together")
    if n_cells is not None:
        return hocal.PrecomputedPartition(n_cells).fit_classes(n_classes)
    kind = _partition_class(name)
    wanted = signature(kind).parameters
    settings = {"n_slices": n_slices, "n_bins": n_bins}
    chosen = kind(**{key: value for key, value in settings.items() if key in wanted})
    return chosen if chosen.learns_from_predictions else chosen.fit_classes(n_classes)


def _partition_class(name: str) -> type[Partition]:
    """Return the class of a name; "top-label" stands for TopLabelPartition."""
    from hocal.cells import find_partition, known_partitions

    own = "".join(f"{word[:1].upper()}{word[1:]}" for word in name.split("-")) + "Partition"
    known = known_partitions()
    if own not in known and name not in known:
        raise InputError(
            "--partition",
            "must be one of hocal, such as top-label or uniform, or one that --import brought",
            value=repr(name),
        )
    chosen = find_partition(own if own in known else name)
    required = [
        parameter.name
        for parameter in signature(chosen).parameters.values()
        if parameter.default is parameter.empty
    ]
    if required:
        raise InputError(
            "--partition",
            "must be one that needs no parameters",
            value=f"{name!r}, which needs {', '.join(required)}",
            remedy="Fit it in Python; the other commands take the model.",
        )
    return chosen


def _statistics(data: _Tables, partition: Partition) -> tuple[Partition, CellStatistics]:
    """Return the fitted partition and its labels, counted inside the engine where possible.

    A table of counts, one row per item, fits in memory, and so must the items of a partition whose
    cells no engine can compute.
    """
    from hocal.annotations.cell_counting import cell_statistics
    from hocal.cells.statistics import CellStatistics

    predictions = data.predictions
    label_choices = data.label_choices
    in_engine = partition.works_in_engine or partition.takes_cells
    if label_choices.count_columns or not in_engine:
        items = data.read()
        p = items.probabilities
        fitted = partition if partition.is_fitted else partition.fit(p)
        with predictions.explained(items.place):
            where = fitted.assign(p, items.cells)
        return fitted, CellStatistics.from_items(p, items.counts, where, fitted.layout_)
    return partition, cell_statistics(
        data.labels,
        predictions.table,
        item=data.item,
        label=label_choices.label_argument,
        annotator=label_choices.annotator,
        classes=data.classes,
        probability_columns=predictions.columns,
        partition=partition,
        cell=data.cell,
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
    }
