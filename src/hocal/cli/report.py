"""`hocal report`: a model and predictions in, one page to look at and to send out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from hocal._base.errors import InputError
from hocal._base.plurals import counted
from hocal.cli import options
from hocal.cli.engines import open_engine
from hocal.cli.items import LabelOptions, count_items, find_items, find_rows, label_options
from hocal.cli.messages import working
from hocal.cli.models import Model, load_model
from hocal.cli.option_groups import (
    LabelColumns,
    PredictionColumns,
    Rules,
    grouped,
    refuse_idle,
    refuse_without_labels,
)
from hocal.cli.outputs import check_report_output, report_file, say_report
from hocal.cli.predictions import GivenRows, Probabilities, extra_column

# options that name columns of PROBABILITIES to show, and what `summarise` calls their content
MEDIA = {"images": "images", "text": "texts"}


class Predicted(NamedTuple):
    """All items with their predictions, in sorted order."""

    items: list[Any]
    given: GivenRows
    images: list[Any] | None
    texts: list[Any] | None

    def place(self, row: int) -> str:
        """Say in words where a row of the arrays is."""
        return f"for item {self.items[row]!r}"

    def as_dict(self) -> dict[str, Any]:
        """Return all by the names of `summarise`."""
        shown = {"items": self.items, "images": self.images, "texts": self.texts}
        return {**shown, **self.given._asdict()}


@grouped
def report(
    model: options.ModelFile,
    probabilities: options.ProbabilitiesFile,
    columns: LabelColumns,
    predicted: PredictionColumns,
    rules: Rules,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; it ends with .html, .md or .json."),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(help="Table of labels that were not used to fit, to measure calibration."),
    ] = None,
    images: Annotated[
        str | None,
        typer.Option(help="Column of PROBABILITIES with the paths or the bytes of pictures."),
    ] = None,
    image_folder: Annotated[
        Path, typer.Option(help="Where relative paths of pictures begin.")
    ] = Path(),
    text: Annotated[str | None, typer.Option(help="Column of PROBABILITIES with texts.")] = None,
    check: Annotated[
        Path | None, typer.Option(help="What `hocal check --json` printed about the labels.")
    ] = None,
    title: Annotated[str, typer.Option(help="Title of the page.")] = "Uncertainty report",
    k: Annotated[
        int | None, typer.Option("--k", help="Labels in a snapshot; pairs by default.")
    ] = None,
    confidence: options.Confidence = 0.95,
    planning: Annotated[
        bool,
        typer.Option(
            help="Forecast what more labels would bring, which takes seconds.", metavar=""
        ),
    ] = True,
    random_state: options.RandomState = 0,
    memory_limit: options.MemoryLimit = "2GB",
    force: options.Force = False,
    as_json: options.SummaryAsJson = False,
    as_markdown: options.SummaryAsMarkdown = False,
) -> None:
    """Write a page: what the uncertainty is made of, whether to trust it, and where to act.

    The page needs no network. With --labels it says how well the model is calibrated; items without
    labels are reported all the same. Pictures and texts are shown for the items that stand out.

    Example: hocal report model.hocal softmax.parquet --labels test.parquet --label choice -o
    report.html
    """
    from hocal.report import Report, summarise

    _check_output(output, labels, images, as_json=as_json, as_markdown=as_markdown)
    choices = None
    if labels is not None:
        choices = label_options(labels, columns, rules._asdict() | {"unlabelled": "drop"})
    loaded = load_model(model, predicted)
    asked: dict[str, Any] = {"title": title, "confidence": confidence, "k": k, "planning": planning}
    asked |= {"check": _read_check(check), "classes": loaded.classes, "random_state": random_state}
    media = {option: column for option, column in (("images", images), ("text", text)) if column}
    with report_file(output, force=force) as write:
        with open_engine("duckdb", memory_limit=memory_limit) as read, working("Reading"):
            predictions = loaded.open(read, probabilities, extra=media)
            table = None
            if choices is not None and labels is not None:
                table, predictions = choices.open(read, labels, predictions)
            shown = _read_all(predictions, media, image_folder)
            counts = _read_counts(table, choices, loaded, find_rows(shown.items))
        with working("Summarising"), predictions.explained(shown.place):
            summary = summarise(loaded.calibrator, counts=counts, **shown.as_dict(), **asked)
        made = Report(summary)
        write(made)
    say_report(made, f"{counted(len(shown.items), 'item')} in {output}", as_json, as_markdown)


def _check_output(
    output: Path | None,
    labels: str | None,
    images: str | None,
    *,
    as_json: bool,
    as_markdown: bool,
) -> None:
    """Refuse options that would do nothing, or would hide each other."""
    check_report_output(output, as_json=as_json, as_markdown=as_markdown)
    refuse_without_labels(labels)
    refuse_idle(
        {
            "--k": "without --labels, which are compared with" if labels is None else None,
            "--image-folder": "without --images" if images is None else None,
            "--force": "without --output" if output is None else None,
        }
    )


def _read_check(path: Path | None) -> Any:
    try:
        return None if path is None else json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # no JSON, no text at all, or too deep
        rule = "must be a file that `hocal check --json` printed"
        raise InputError("--check", rule, value=f"{path}: {error}") from error


def _read_all(predictions: Probabilities, media: Mapping[str, str], folder: Path) -> Predicted:
    """Return every predicted item, with its picture and its text where columns hold them."""
    import narwhals as nw

    item = predictions.item
    rows = nw.from_native(predictions.table).lazy().sort(item).collect().to_arrow()
    shown = {MEDIA[option]: rows[extra_column(option)].to_pylist() for option in media}
    images = shown.get("images")
    return Predicted(
        items=rows[item].to_pylist(),
        given=predictions.arrays(rows),
        images=None if images is None else [_picture(entry, folder) for entry in images],
        texts=shown.get("texts"),
    )


def _picture(entry: Any, folder: Path) -> Any:
    """Return the bytes or the path of a picture; Hugging Face has a struct of both."""
    if isinstance(entry, dict):
        entry = entry.get("bytes") or entry.get("path")
    return folder / entry if isinstance(entry, str) else entry


def _read_counts(
    labels: Any, choices: LabelOptions | None, model: Model, row_of: Mapping[Any, int]
) -> Any:
    """Return the counts of all items, dense or sparse, with nothing for those without labels."""
    import numpy as np
    from scipy import sparse

    if labels is None or choices is None:
        return None
    counted = count_items(labels, choices, item=model.item, classes=model.classes)
    places = find_items(counted.items.tolist(), row_of, choices.rules["unpredicted"])
    rows = [place for place in places if place is not None]
    kept = np.array([place is not None for place in places])
    ones = np.ones(len(rows), np.int64)
    shape = (len(row_of), len(rows))
    spread = sparse.csr_array((ones, (rows, np.arange(len(rows)))), shape=shape)
    return spread @ counted.counts[kept]
