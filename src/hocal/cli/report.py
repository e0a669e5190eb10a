"""`hocal report`: a model and predictions in, one page to look at and to send out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from hocal._base.errors import InputError
from hocal._base.plurals import counted
from hocal.cli import options
from hocal.cli.engines import open_engine
from hocal.cli.items import LabelOptions, count_items, find_items, find_rows, label_options
from hocal.cli.messages import working
from hocal.cli.models import Model, load_model
from hocal.cli.outputs import report_file
from hocal.cli.predictions import Probabilities, extra_column

if TYPE_CHECKING:
    from hocal._base.typing import Array, IntArray

# options that name columns of PROBABILITIES to show, and what `summarise` calls their content
MEDIA = {"images": "images", "text": "texts"}


class Predicted(NamedTuple):
    """All items with their predictions, in sorted order; the names are those of `summarise`."""

    items: list[Any]
    probabilities: Array
    cells: IntArray | None
    images: list[Any] | None
    texts: list[Any] | None

    def place(self, row: int) -> str:
        """Say in words where a row of the arrays is."""
        return f"for item {self.items[row]!r}"


def report(
    model: options.ModelFile,
    probabilities: options.ProbabilitiesFile,
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
    item: options.ItemOfModel = None,
    label: options.Label = None,
    annotator: options.Annotator = None,
    tool: options.Tool = None,
    question: options.Question = None,
    several: options.Several = "error",
    count_columns: options.CountColumns = None,
    probability_columns: options.ColumnsOfModel = None,
    cell: options.CellOfModel = None,
    names: options.Names = None,
    probability_names: options.ProbabilityNames = None,
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
    missing: options.Missing = "error",
    unknown: options.Unknown = "error",
    duplicates: options.Duplicates = "error",
    unpredicted: options.Unpredicted = "error",
    memory_limit: options.MemoryLimit = "2GB",
    force: options.Force = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as JSON.", metavar="")
    ] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a short report as Markdown.", metavar="")
    ] = False,
) -> None:
    """Write a page: what the uncertainty is made of, whether to trust it, and where to act.

    The page needs no network. With --labels it says how well the model is calibrated; items without
    labels are reported all the same. Pictures and texts are shown for the items that stand out.

    Example: hocal report model.hocal softmax.parquet --labels test.parquet --label choice -o
    report.html
    """
    from hocal.report import Report, summarise

    rules = {"missing": missing, "unknown": unknown, "duplicates": duplicates}
    rules |= {"unlabelled": "drop", "unpredicted": unpredicted}
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
    )
    _check_options(output, labels, label_choices, as_json=as_json, as_markdown=as_markdown)
    loaded = load_model(model, item=item, probability_columns=probability_columns, cell=cell)
    media = {option: column for option, column in (("images", images), ("text", text)) if column}
    asked: dict[str, Any] = {"title": title, "confidence": confidence, "k": k, "planning": planning}
    asked |= {"check": _read_check(check), "classes": loaded.classes, "random_state": random_state}
    with report_file(output, force=force) as write:
        with open_engine("duckdb", memory_limit=memory_limit) as read, working("Reading"):
            predictions = loaded.open(read, probabilities, names=probability_names, extra=media)
            table = None
            if labels is not None:
                table, predictions = label_choices.open(read, labels, predictions, item=loaded.item)
            shown = _read_all(predictions, loaded, media, image_folder)
            row_of = find_rows(shown.items)
            counts = _read_counts(table, label_choices, loaded, row_of)
        with working("Summarising"), predictions.explained(shown.place):
            summary = summarise(loaded.calibrator, counts=counts, **shown._asdict(), **asked)
        made = Report(summary)
        write(made)
    if as_json:
        typer.echo(made.json())
    elif as_markdown:
        typer.echo(made.markdown(), nl=False)
    else:
        typer.echo(f"{counted(len(shown.items), 'item')} in {output}")


def _check_options(
    output: Path | None,
    labels: str | None,
    label_choices: LabelOptions,
    *,
    as_json: bool,
    as_markdown: bool,
) -> None:
    """Refuse options that would do nothing, or would hide each other."""
    if (output is None and not as_json and not as_markdown) or (as_json and as_markdown):
        raise InputError("--output", "must be given, or one of --json and --markdown to print")
    if labels is None and (label_choices.label or label_choices.count_columns):
        rule = "must be given with --label or --count-columns, which name its columns"
        raise InputError("--labels", rule)


def _read_check(path: Path | None) -> Any:
    try:
        return None if path is None else json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # no JSON, no text at all, or too deep
        rule = "must be a file that `hocal check --json` printed"
        raise InputError("--check", rule, value=f"{path}: {error}") from error


def _read_all(
    predictions: Probabilities, model: Model, media: Mapping[str, str], folder: Path
) -> Predicted:
    """Return every predicted item, with its picture and its text where columns hold them."""
    import narwhals as nw
    import numpy as np

    rows = nw.from_native(predictions.table).lazy().sort(model.item).collect().to_arrow()
    shown = {MEDIA[option]: rows[extra_column(option)].to_pylist() for option in media}
    images = shown.get("images")
    return Predicted(
        items=rows[model.item].to_pylist(),
        probabilities=np.column_stack([rows[name].to_numpy() for name in predictions.columns]),
        cells=None if model.cell is None else rows[model.cell].to_numpy(),
        images=None if images is None else [_picture(entry, folder) for entry in images],
        texts=shown.get("texts"),
    )


def _picture(entry: Any, folder: Path) -> Any:
    """Return the bytes or the path of a picture; Hugging Face has a struct of both."""
    if isinstance(entry, dict):
        entry = entry.get("bytes") or entry.get("path")
    return folder / entry if isinstance(entry, str) else entry


def _read_counts(
    labels: Any, label_choices: LabelOptions, model: Model, row_of: Mapping[Any, int]
) -> Any:
    """Return the counts of all items, dense or sparse, with nothing for those without labels."""
    import numpy as np
    from scipy import sparse

    if labels is None:
        return None
    counted = count_items(labels, label_choices, item=model.item, classes=model.classes)
    places = find_items(counted.items.tolist(), row_of, label_choices.rules["unpredicted"])
    rows = [place for place in places if place is not None]
    kept = np.array([place is not None for place in places])
    ones = np.ones(len(rows), np.int64)
    shape = (len(row_of), len(rows))
    spread = sparse.csr_array((ones, (rows, np.arange(len(rows)))), shape=shape)
    return spread @ counted.counts[kept]
