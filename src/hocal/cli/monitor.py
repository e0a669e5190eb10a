"""`hocal monitor`: a model and newly labelled items in, evidence that something changed out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hocal._base.errors import InputError
from hocal.cli import options
from hocal.cli.engines import open_engine
from hocal.cli.items import MatchedItems, find_rows, label_options
from hocal.cli.messages import FileError, called, working
from hocal.cli.models import Model, load_model
from hocal.cli.option_groups import LabelColumns, PredictionColumns, Rules, grouped, refuse_idle
from hocal.cli.outputs import check_folder, output_file, print_json, print_rows, print_table
from hocal.cli.predictions import Probabilities

if TYPE_CHECKING:
    from hocal.decisions import Finding, Monitor

CONFIDENCE = 0.95  # of a new state
PICTURES = (".png", ".svg", ".pdf")
SHOWN = 10  # findings in the table; JSON has all
ALARM = 1  # exit code


@grouped
def monitor(
    model: options.ModelFile,
    labels: options.LabelsFile,
    probabilities: options.ProbabilitiesFile,
    columns: LabelColumns,
    predicted: PredictionColumns,
    rules: Rules,
    unlabelled: options.Unlabelled = "error",
    state: Annotated[
        Path | None,
        typer.Option(
            help="File with what was seen before: read if it exists, and written anew.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Picture of the evidence: .png, .svg or .pdf."),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Chance of no alarm, for ever, if nothing changes: 0.95, or that of the state.",
            show_default=False,
        ),
    ] = None,
    memory_limit: options.MemoryLimit = "2GB",
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Test on newly labelled items whether a model is still right about what people say.

    Items are taken in the order of the rows of PROBABILITIES; with --state a later call goes on
    where this one stops, and looking often costs nothing. If nothing has changed since the
    calibration, the chance that an alarm is ever raised is at most 1 - confidence. Exit code 0
    means no alarm, 1 an alarm, 2 bad input.

    Example: hocal monitor model.hocal week-7.csv softmax.parquet --label choice --state watch.hocal
    --unlabelled drop
    """
    refuse_idle({"--force": "without --output" if output is None else None})
    choices = label_options(labels, columns, rules._asdict() | {"unlabelled": unlabelled})
    _check_picture(output)
    if state is not None:
        check_folder(state, "--state")
    loaded = load_model(model, predicted)
    watch = _start(loaded, state, confidence)
    with open_engine("duckdb", memory_limit=memory_limit) as read, working("Reading"):
        predictions, items = loaded.read(read, (labels, probabilities), choices)
        items = _in_order(items, predictions)
    with working("Betting"), predictions.explained(items.place):
        watch.update(items.probabilities, items.counts, **items.inputs)
    _draw(watch, output, force)
    if state is not None:
        watch.save(state)
    show = _show_json if as_json else _show
    show(watch, len(items.items), watch.findings(classes=loaded.classes))
    if watch.alarm:
        raise typer.Exit(ALARM)


def _start(model: Model, state: Path | None, confidence: float | None) -> Monitor:
    """Go on with a state if there is one, else begin."""
    import hocal

    if state is None or not state.exists():
        return hocal.Monitor(model.calibrator, CONFIDENCE if confidence is None else confidence)
    with called("--state"):
        watch = hocal.Monitor.load(state, model.calibrator)
    if confidence is not None and confidence != watch.confidence:
        rule = f"must be that of the state, {watch.confidence:g}, or left out"
        raise InputError("confidence", rule, value=confidence)
    return watch


def _in_order(items: MatchedItems, predictions: Probabilities) -> MatchedItems:
    """Return items in the order of the rows of the predictions."""
    import numpy as np

    row_of = find_rows(predictions.all_items().to_pylist())
    rows = np.array([row_of[name] for name in items.items.tolist()], dtype=np.intp)
    return items.take(np.argsort(rows))


def _check_picture(output: Path | None) -> None:
    """Refuse other endings before the work begins."""
    if output is not None and output.suffix not in PICTURES:
        rule = f"must end with {', '.join(PICTURES)}"
        raise FileError(str(output), rule)


def _draw(watch: Monitor, output: Path | None, force: bool) -> None:
    """Write the picture, if one is wanted."""
    if output is None:
        return
    from hocal.plot import EvidenceDisplay

    with output_file(output, force=force) as temporary:
        figure = EvidenceDisplay.from_monitor(watch).plot().figure_
        figure.savefig(temporary, format=output.suffix[1:])


def _show_json(watch: Monitor, n_new: int, found: list[Finding]) -> None:
    print_json(
        {
            "alarm": watch.alarm,
            "alarmed_at": watch.alarmed_at,
            "since": watch.since,
            "confidence": watch.confidence,
            "evidence": watch.evidence,
            "evidence_by_kind": watch.evidence_by_kind,
            "n_items": watch.n_items,
            "n_new": n_new,
            "findings": [each._asdict() for each in found],
        }
    )


def _show(watch: Monitor, n_new: int, found: list[Finding]) -> None:
    kinds: dict[str, Any] = watch.evidence_by_kind
    said = f"at item {watch.alarmed_at}; most likely since item {watch.since}"
    print_table(
        "Monitor",
        {
            "items": f"{watch.n_items}, of which {n_new} new",
            "alarm": said if watch.alarm else "no",
            "evidence": f"{watch.evidence:.3g}; an alarm asks for {1 / (1 - watch.confidence):g}",
            "for a changed disagreement": f"{kinds['disagreement']:.3g}",
            "for a changed label distribution": f"{kinds['mean']:.3g}",
        },
    )
    heads = ["what", "where", "by", "evidence", "items", "since"]
    rows = [
        [
            each.kind if each.label is None else f"share of {each.label}",
            each.where,
            f"{each.shift:+.3f}",
            f"{each.evidence:.2g}",
            str(each.n_items),
            str(each.since),
        ]
        for each in found[:SHOWN]
    ]
    if rows:
        print_rows("What speaks for a change", heads, rows)
