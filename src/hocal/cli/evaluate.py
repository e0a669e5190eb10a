"""`hocal evaluate`: a model, predictions and labels of test items in, how good the model is out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from hocal._base.plurals import counted
from hocal.cli import options
from hocal.cli.caution import take_fresh
from hocal.cli.engines import open_engine
from hocal.cli.items import MatchedItems, label_options
from hocal.cli.messages import working
from hocal.cli.models import load_model
from hocal.cli.option_groups import LabelColumns, PredictionColumns, Rules, grouped
from hocal.cli.outputs import print_json, print_rows, print_table

if TYPE_CHECKING:
    from hocal import CalibrationError, Certificate, Interval, SnapshotCalibrator
    from hocal.calibration.scores import MeanScores
    from hocal.decisions import Headroom

# of an item, for its observed entropy to be worth comparing with
ENOUGH_LABELS = 10
# what a certificate is about, in the order of its columns
QUANTITIES = ("predictive", "aleatoric", "epistemic")
# items whose mixtures are listed for the snapshot score: the standard error is small with so many
MAX_SCORED = 5_000
# in the atoms of these mixtures, 160 MB; with many classes fewer items are scored
MAX_NUMBERS = 20_000_000
ATOMS = 400  # at most, of an item's mixture
MEANS = {  # what the table calls the predictions whose means it scores
    "calibrated": "calibrated",
    "raw": "the model as it is",
    "temperature": "temperature scaling",
}
_MARKS = (
    "[-]: the labels prove nothing. !: the estimate lies outside its interval.\n"
    "error up to: predicted and true snapshots of k labels are no further apart, from 0 to 2."
)


class Scored(NamedTuple):
    """A score with its interval, and how many items it was found on."""

    interval: Interval
    n_items: int

    def __str__(self) -> str:
        items = counted(self.n_items, "item")
        estimate, lower, upper = (f"{value:.4f}" for value in self.interval)
        return f"{estimate} [{lower}, {upper}] on {items}"

    def as_dict(self) -> dict[str, float]:
        """Return the numbers by their names."""
        return {**self.interval._asdict(), "n_items": self.n_items}


class Measured(NamedTuple):
    """What test labels say about a model."""

    error: CalibrationError
    gap: dict[str, float]  #: error of the aleatoric uncertainty
    resolution: Scored | None  #: None where no item has four labels
    snapshots: Scored
    means: dict[str, MeanScores]  #: of the mean: calibrated, raw, by temperature scaling
    headroom: Headroom  #: of the calibrated mean
    n_fitted: int  #: items that the model was fitted on
    training: bool  #: whether such are among those measured, for lack of others


@grouped
def evaluate(
    model: options.ModelFile,
    labels: options.LabelsFile,
    probabilities: options.ProbabilitiesFile,
    columns: LabelColumns,
    predicted: PredictionColumns,
    rules: Rules,
    unlabelled: options.Unlabelled = "error",
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
    memory_limit: options.MemoryLimit = "2GB",
    as_json: options.AsJson = False,
) -> None:
    """Measure a model on items it was not fitted on, and show what its calibration labels prove.

    The calibration error is the distance between predicted and observed snapshots of k labels. It
    is large by chance alone when items are few, so compare it with the noise floor; a small p-value
    says that the model is not calibrated. Resolution is the share of the differences in
    disagreement between items that the predictions explain, from items with four labels or more;
    the snapshot score is the mean log-probability of a label. A second table scores the mean
    prediction before and after calibration; below it stands how much any model could still gain on
    the calibrated one. The items are held in memory.

    Example: hocal evaluate model.hocal test.parquet softmax.parquet --label choice --k 5
    --unlabelled drop
    """
    choices = label_options(labels, columns, rules._asdict() | {"unlabelled": unlabelled})
    loaded = load_model(model, predicted)
    with open_engine("duckdb", memory_limit=memory_limit) as read, working("Reading"):
        predictions, items = loaded.read(read, (labels, probabilities), choices)
    with working("Measuring calibration"), predictions.explained(items.place):
        noise = {"n_resamples": n_resamples, "random_state": random_state}
        measured = _measure(loaded.calibrator, items, k, entropy, confidence, noise)
    with working("Certifying"):
        certificate = loaded.calibrator.certify(confidence, simultaneous=simultaneous)
    show = _show_json if as_json else _show
    show(measured, certificate, entropy, loaded.cell_names())


def _measure(
    calibrator: SnapshotCalibrator,
    items: MatchedItems,
    k: int | None,
    entropy: str,
    confidence: float,
    noise: Mapping[str, int],
) -> Measured:
    """Hold a model against the labels of items that it has not seen."""
    items, n_fitted, training = take_fresh(calibrator, items)
    error = calibrator.calibration_error(
        items.probabilities, items.counts, k=k, **items.inputs, **noise
    )
    return Measured(
        error=error,
        gap=_aleatoric_error(calibrator, items, entropy),
        resolution=_resolution(calibrator, items),
        snapshots=_snapshot_score(calibrator, items, noise["random_state"]),
        means=_mean_scores(calibrator, items),
        headroom=_headroom(calibrator, items, confidence),
        n_fitted=n_fitted,
        training=training,
    )


def _aleatoric_error(
    calibrator: SnapshotCalibrator, items: MatchedItems, entropy: str
) -> dict[str, float]:
    """Return the error of the aleatoric uncertainty, averaged over items and over cells."""
    import numpy as np

    import hocal
    from hocal._base.validation import label_totals

    parts = calibrator.decompose(items.probabilities, entropy, **items.inputs)
    where = calibrator.partition_.assign(items.given.mean, items.given.cells)
    return {
        "items": hocal.aleatoric_error(parts, items.counts, cells=where, average="items"),
        "cells": hocal.aleatoric_error(parts, items.counts, cells=where, average="cells"),
        "median_labels": float(np.median(label_totals(items.counts))),
    }


def _resolution(calibrator: SnapshotCalibrator, items: MatchedItems) -> Scored | None:
    """Return how much of the disagreement of items is told apart; None without four labels."""
    import numpy as np

    import hocal
    from hocal._base.validation import label_totals
    from hocal.calibration.scores import FEWEST_LABELS

    rows = np.flatnonzero(label_totals(items.counts) >= FEWEST_LABELS)
    if not len(rows):
        return None
    chosen = items.take(rows)
    parts = calibrator.decompose(chosen.probabilities, "brier", **chosen.inputs)
    return Scored(hocal.resolution(parts, chosen.counts), len(rows))


def _snapshot_score(
    calibrator: SnapshotCalibrator, items: MatchedItems, random_state: int
) -> Scored:
    """Return the log-probability of a label under the items' mixtures, of a sample of many."""
    import numpy as np

    import hocal

    n_items, n_classes = items.given.mean.shape
    n_scored = min(n_items, MAX_SCORED, max(MAX_NUMBERS // (ATOMS * n_classes), 1))
    rows = np.random.default_rng(random_state).permutation(n_items)[:n_scored]
    chosen = items.take(np.sort(rows))
    mixtures = calibrator.predict_mixture(chosen.probabilities, **chosen.inputs)
    return Scored(hocal.snapshot_score(mixtures, chosen.counts), n_scored)


def _mean_scores(calibrator: SnapshotCalibrator, items: MatchedItems) -> dict[str, MeanScores]:
    """Return scores of the mean: calibrated, raw, and scaled by the temperature of the fit."""
    import math

    from hocal.calibration.first_order.temperature import apply_temperature
    from hocal.calibration.scores import mean_scores

    raw = items.given.mean
    calibrated = calibrator.predict_proba(items.probabilities, **items.inputs)
    scores = {
        "calibrated": mean_scores(calibrated, items.counts),
        "raw": mean_scores(raw, items.counts),
    }
    if math.isfinite(calibrator.temperature_):
        scaled = apply_temperature(raw, calibrator.temperature_)
        scores["temperature"] = mean_scores(scaled, items.counts)
    return scores


def _headroom(calibrator: SnapshotCalibrator, items: MatchedItems, confidence: float) -> Headroom:
    """Return what is left to gain on the calibrated mean: in log loss, unless it has zeros."""
    import hocal

    mean = calibrator.predict_proba(items.probabilities, **items.inputs)
    loss: Literal["log", "brier"] = "log" if mean.min() > 0 else "brier"
    return hocal.headroom(mean, items.counts, loss=loss, confidence=confidence)


def _headroom_numbers(found: Headroom) -> dict[str, Any]:
    names = ("loss", "irreducible", "remaining", "accuracy", "best_accuracy")
    intervals = {name: getattr(found, name)._asdict() for name in names}
    return {"metric": found.metric, "confidence": found.confidence, **intervals}


def _show_json(
    measured: Measured, certificate: Certificate, entropy: str, names: list[str]
) -> None:
    error = measured.error
    scalars = ("k", "mean", "max", "noise_floor", "noise_floor_max", "p_value", "debiased")
    resolution = measured.resolution
    print_json(
        {
            "n_items": int(error.n_items.sum()),
            "n_fitted": measured.n_fitted,
            "training": measured.training,
            "calibration_error": {
                **{name: getattr(error, name) for name in scalars},
                "per_cell": error.per_cell,
                "noise_floor_per_cell": error.noise_floor_per_cell,
                "p_value_per_cell": error.p_value_per_cell,
                "n_items_per_cell": error.n_items,
            },
            "aleatoric_error": measured.gap,
            "resolution": None if resolution is None else resolution.as_dict(),
            "snapshot_score": measured.snapshots.as_dict(),
            "mean": {name: scores._asdict() for name, scores in measured.means.items()},
            "headroom": _headroom_numbers(measured.headroom),
            "entropy": entropy,
            "certificate": {
                "confidence": certificate.confidence,
                "simultaneous": certificate.simultaneous,
                "assumptions": certificate.assumptions,
                "cells": {"name": names, **certificate.as_dict(entropy)},
            },
        }
    )


def _show(measured: Measured, certificate: Certificate, entropy: str, names: list[str]) -> None:
    error = measured.error
    gap = measured.gap
    unit = "nats" if entropy == "shannon" else entropy
    mean = f"{error.mean:.4f}, by chance {error.noise_floor:.4f}"
    worst = f"{error.max:.4f}, by chance {error.noise_floor_max:.4f}"
    n_items = int(error.n_items.sum())
    resolution = measured.resolution
    print_table(
        "Training figures, no test" if measured.training else "Evaluation",
        {
            "items": n_items,
            "labels in a snapshot": error.k,
            "calibration error": f"{mean}, p = {error.p_value:.3g}",
            "calibration error, worst cell": worst,
            "aleatoric error": f"{gap['items']:.4f} {unit} (mean over items)",
            "resolution": "no item has four labels" if resolution is None else str(resolution),
            "snapshot score, nats per label": str(measured.snapshots),
        },
    )
    print_rows("Mean prediction (less is better)", *_mean_table(measured.means))
    typer.echo(f"Headroom of the calibrated mean: {measured.headroom}")
    _caution(error, gap["median_labels"])
    typer.echo(_certificate_table(certificate, entropy, names))


def _caution(error: CalibrationError, median_labels: float) -> None:
    """Say where labels are too few for a number to mean what it seems to."""
    if error.k == 1:
        typer.echo(
            "One label per item: only ordinary calibration is tested. To test how people "
            "disagree, leave out the items with one label, so that k is 2 or more."
        )
    if median_labels < ENOUGH_LABELS:
        typer.echo(
            f"So few labels per item ({median_labels:g}) make the observed entropies far "
            "too low, and the aleatoric error is mostly that; judge by the calibration error."
        )


def _mean_table(means: Mapping[str, MeanScores]) -> tuple[list[str], list[list[str]]]:
    """Return the heads and rows of the table of scores."""
    heads = ["", "log loss, nats", "Brier score", "calibration error"]
    rows = [[MEANS[name], *(f"{score:.4f}" for score in scores)] for name, scores in means.items()]
    return heads, rows


def _certificate_table(certificate: Certificate, entropy: str, names: Sequence[str]) -> str:
    """Return the table of a certificate under heads in plain words, and what its marks say."""
    heads = "".join(f"{quantity:>22}" for quantity in QUANTITIES)
    head = f"{'cell':>5}{'items':>7}{'k':>4}{heads}{'error up to':>13}  predictions"
    _, *rows, _ = certificate.table(entropy, names=names).split("\n")
    scope = "for all cells at once" if certificate.simultaneous else "for each cell on its own"
    assumptions = " ".join(certificate.assumptions)
    confidence = f"Confidence {certificate.confidence:g} {scope}. {assumptions}"
    return "\n".join([head, *rows, _MARKS, confidence])
