"""`hocal evaluate`: a model, predictions and labels of test items in, how good the model is out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hocal.cli import options
from hocal.cli.items import Items, label_options, read_items
from hocal.cli.messages import working
from hocal.cli.models import load_model
from hocal.cli.options import split_list
from hocal.cli.outputs import print_json, print_table
from hocal.cli.tables import open_engine

if TYPE_CHECKING:
    from hocal import CalibrationError, Certificate, SnapshotCalibrator

ENOUGH_LABELS = 10  # of an item, for its observed entropy to be worth comparing with


def evaluate(
    model: options.ModelFile,
    labels: options.LabelsFile,
    probabilities: options.ProbabilitiesFile,
    item: options.ItemOfModel = None,
    label: options.Label = None,
    annotator: options.Annotator = None,
    count_columns: options.CountColumns = None,
    probability_columns: options.ColumnsOfModel = None,
    cell: options.CellOfModel = None,
    names: options.Names = None,
    probability_names: options.ProbabilityNames = None,
    k: Annotated[
        int | None,
        typer.Option("--k", help="Labels in a snapshot; the fewest of an item by default."),
    ] = None,
    n_resamples: Annotated[
        int, typer.Option(help="Simulations of the noise floor and the p-value.")
    ] = 100,
    random_state: options.RandomState = 0,
    confidence: options.Confidence = 0.95,
    simultaneous: options.Simultaneous = False,
    entropy: options.Entropy = "shannon",
    missing: options.Missing = "error",
    unknown: options.Unknown = "error",
    duplicates: options.Duplicates = "error",
    unlabelled: options.Unlabelled = "error",
    unpredicted: options.Unpredicted = "error",
    memory_limit: options.MemoryLimit = "2GB",
    as_json: options.AsJson = False,
) -> None:
    """Measure a model on items it was not fitted on, and show what its calibration labels prove.

    The calibration error is the distance between predicted and observed snapshots of k labels. It
    is large by chance alone when items are few, so compare it with the noise floor; a small p-value
    says that the model is not calibrated. The items are held in memory.

    Example: hocal evaluate model.hocal test.parquet softmax.parquet --label choice --k 5
    --unlabelled drop
    """
    rules = {"missing": missing, "unknown": unknown, "duplicates": duplicates}
    rules |= {"unlabelled": unlabelled, "unpredicted": unpredicted}
    given = label_options(
        label=label, annotator=annotator, count_columns=count_columns, names=names, rules=rules
    )
    loaded = load_model(model).called(
        item=item, probability_columns=split_list(probability_columns), cell=cell
    )
    with open_engine("duckdb", memory_limit=memory_limit) as read, working("Reading"):
        predictions = loaded.open(read, probabilities, names=split_list(probability_names))
        held, predictions = given.open(read, labels, predictions, item=loaded.item)
        items = read_items(
            held, predictions, given, item=loaded.item, classes=loaded.classes, cell=loaded.cell
        )
    with working("Measuring calibration"), predictions.explained(items.items.tolist()):
        error = loaded.calibrator.calibration_error(
            items.probabilities,
            items.counts,
            k=k,
            cells=items.cells,
            n_resamples=n_resamples,
            random_state=random_state,
        )
        gap = _aleatoric_error(loaded.calibrator, items, entropy)
    with working("Certifying"):
        certificate = loaded.calibrator.certify(confidence, simultaneous=simultaneous)
    show = _show_json if as_json else _show
    show(error, gap, certificate, entropy, loaded.cell_names())


def _aleatoric_error(
    calibrator: SnapshotCalibrator, items: Items, entropy: str
) -> dict[str, float]:
    """Return the error of the aleatoric uncertainty, averaged over items and over cells."""
    import numpy as np

    import hocal
    from hocal._base.validation import label_totals

    parts = calibrator.decompose(items.probabilities, entropy, cells=items.cells)
    where = calibrator.partition_.assign(items.probabilities, items.cells)
    return {
        "items": hocal.aleatoric_error(parts, items.counts, cells=where, average="items"),
        "cells": hocal.aleatoric_error(parts, items.counts, cells=where, average="cells"),
        "median_labels": float(np.median(label_totals(items.counts))),
    }


def _show_json(
    error: CalibrationError,
    gap: dict[str, float],
    certificate: Certificate,
    entropy: str,
    names: list[str],
) -> None:
    scalars = ("k", "mean", "max", "noise_floor", "noise_floor_max", "p_value", "debiased")
    print_json(
        {
            "n_items": int(error.n_items.sum()),
            "calibration_error": {
                **{name: getattr(error, name) for name in scalars},
                "per_cell": error.per_cell,
                "noise_floor_per_cell": error.noise_floor_per_cell,
                "p_value_per_cell": error.p_value_per_cell,
                "n_items_per_cell": error.n_items,
            },
            "aleatoric_error": gap,
            "entropy": entropy,
            "certificate": {
                "confidence": certificate.confidence,
                "simultaneous": certificate.simultaneous,
                "assumptions": certificate.assumptions,
                "cells": {"name": names, **certificate.as_dict(entropy)},
            },
        }
    )


def _show(
    error: CalibrationError,
    gap: dict[str, float],
    certificate: Certificate,
    entropy: str,
    names: list[str],
) -> None:
    unit = "nats" if entropy == "shannon" else entropy
    print_table(
        "Evaluation",
        {
            "items": int(error.n_items.sum()),
            "labels in a snapshot": error.k,
            "calibration error": f"{error.mean:.4f}, by chance {error.noise_floor:.4f}, p = {error.p_value:.3g}",
            "calibration error, worst cell": f"{error.max:.4f}, by chance {error.noise_floor_max:.4f}",
            "aleatoric error": f"{gap['items']:.4f} {unit} (mean over items)",
        },
    )
    if error.k == 1:
        typer.echo(
            "One label an item: only ordinary calibration is tested. To test how people disagree, leave out the items "
            "with one label, so that k is 2 or more."
        )
    if gap["median_labels"] < ENOUGH_LABELS:
        typer.echo(
            f"So few labels an item ({gap['median_labels']:g}) make the observed entropies far too low, and the "
            "aleatoric error is mostly that; judge by the calibration error."
        )
    typer.echo(_name_cells(certificate, entropy, names))


def _name_cells(certificate: Certificate, entropy: str, names: list[str]) -> str:
    """Return the table of a certificate with the name of each cell at the end of its line, and what its marks say."""
    head, *lines = certificate.table(entropy).splitlines()
    filled = [name for name, n_items in zip(names, certificate.n_items, strict=True) if n_items]
    rows = [f"{line}  {name}" for line, name in zip(lines, filled, strict=False)]
    marks = "[-]: the labels prove nothing. !: the estimate lies outside its interval."
    return "\n".join([f"{head}  predictions", *rows, marks, *lines[len(rows) :]])
