"""`hocal report`: a model and predictions in, one page to look at and to send out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from hocal._base.typing import Array, IntArray
from hocal.cli import options
from hocal.cli.items import LabelOptions, find_rows, label_options, read_items
from hocal.cli.messages import working
from hocal.cli.models import Model, load_model
from hocal.cli.options import split_list
from hocal.cli.outputs import report_file
from hocal.cli.tables import Probabilities, open_engine, same_items

if TYPE_CHECKING:
    pass


class Predicted(NamedTuple):
    """All items with their predictions, in the sorted order of the items; the names are those of `summarise`."""

    items: list[Any]
    probabilities: Array
    cells: IntArray | None
    images: list[Any] | None
    texts: list[Any] | None


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
            help="Foretell what more labels would bring, which takes seconds.", metavar=""
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
    """Write a page: what the uncertainty is made of, whether to trust the numbers, and where to act.

    The page needs no network. With --labels it says how well the model is calibrated; items without
    labels are reported all the same. Pictures and texts are shown for the items that stand out.

    Example: hocal report model.hocal softmax.parquet --labels test.parquet --label choice -o
    report.html
    """
    from hocal.report import Report, summarise

    rules = {"missing": missing, "unknown": unknown, "duplicates": duplicates}
    rules |= {"unlabelled": "drop", "unpredicted": unpredicted}
    given = label_options(
        label=label, annotator=annotator, count_columns=count_columns, names=names, rules=rules
    )
    _check_options(output, labels, given, as_json=as_json, as_markdown=as_markdown)
    loaded = load_model(model).called(
        item=item, probability_columns=split_list(probability_columns), cell=cell
    )
    asked: dict[str, Any] = {"title": title, "confidence": confidence, "k": k, "planning": planning}
    asked |= {"check": _read_check(check), "classes": loaded.classes, "random_state": random_state}
    with report_file(output, force=force) as write:
        with open_engine("duckdb", memory_limit=memory_limit) as read, working("Reading"):
            predictions = loaded.open(read, probabilities, names=split_list(probability_names))
            held = None
            if labels is not None:
                held, predictions = given.open(read, labels, predictions, item=loaded.item)
            whole = read(probabilities, split_list(probability_names), ())
            shown = _read_all(
                predictions, loaded, whole, {"images": images, "text": text}, image_folder
            )
            row_of = find_rows(shown.items)
            counts = (
                None if held is None else _read_counts(held, predictions, given, loaded, row_of)
            )
        with working("Summarising"), predictions.explained(shown.items):
            made = Report(summarise(loaded.calibrator, counts=counts, **shown._asdict(), **asked))
        write(made)
    if as_json:
        typer.echo(made.json())
    elif as_markdown:
        typer.echo(made.markdown(), nl=False)
    else:
        typer.echo(f"{len(shown.items)} items in {output}")


def _check_options(
    output: Path | None,
    labels: str | None,
    given: LabelOptions,
    *,
    as_json: bool,
    as_markdown: bool,
) -> None:
    """Refuse options that would do nothing, or would hide each other."""
    if (output is None and not as_json and not as_markdown) or (as_json and as_markdown):
        raise ValueError("`--output` must be given, or one of --json and --markdown to print.")
    if labels is None and (given.label or given.count_columns):
        raise ValueError(
            "`--labels` must be given with --label or --count-columns, which name its columns."
        )


def _read_check(path: Path | None) -> Any:
    try:
        return None if path is None else json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # no JSON, or no text at all
        raise ValueError(
            f"`--check` must be a file that `hocal check --json` printed, got {path}: {error}."
        ) from error


def _read_all(
    predictions: Probabilities,
    model: Model,
    whole: Any,
    media: Mapping[str, str | None],
    folder: Path,
) -> Predicted:
    """Return every predicted item, with its picture and its text where columns of the whole table are named."""
    import narwhals as nw
    import numpy as np

    table = nw.from_native(predictions.table).lazy()
    wanted = {option: column for option, column in media.items() if column is not None}
    if wanted:
        whole, _ = same_items(whole, predictions, model.item)
        table = table.join(
            _pick(nw.from_native(whole).lazy(), model.item, wanted), on=model.item, how="left"
        )
    rows = table.sort(model.item).collect().to_arrow()
    found = {
        option: rows[f"hocal {option}"].to_pylist() if option in wanted else None
        for option in media
    }
    return Predicted(
        items=rows[model.item].to_pylist(),
        probabilities=np.column_stack([rows[name].to_numpy() for name in predictions.columns]),
        cells=None if model.cell is None else rows[model.cell].to_numpy(),
        images=None
        if found["images"] is None
        else [_picture(entry, folder) for entry in found["images"]],
        texts=found["text"],
    )


def _pick(table: Any, item: str, wanted: Mapping[str, str]) -> Any:
    """Return the columns that options name, under names that no column of predictions has."""
    import narwhals as nw

    there = table.collect_schema().names()
    for option, column in wanted.items():
        if column not in there:
            raise ValueError(
                f"`--{option}` must name a column of PROBABILITIES, got {column!r}. It has {', '.join(there)}."
            )
    return table.select(
        item, *(nw.col(column).alias(f"hocal {option}") for option, column in wanted.items())
    )


def _picture(entry: Any, folder: Path) -> Any:
    """Return the bytes or the path of a picture; data sets on the Hugging Face hub keep both in a struct."""
    if isinstance(entry, dict):
        entry = entry.get("bytes") or entry.get("path")
    return folder / entry if isinstance(entry, str) else entry


def _read_counts(
    labels: Any,
    predictions: Probabilities,
    given: LabelOptions,
    model: Model,
    row_of: Mapping[Any, int],
) -> Any:
    """Return the counts of all items, dense or sparse, with nothing for those without labels."""
    import numpy as np
    from scipy import sparse

    held = read_items(
        labels, predictions, given, item=model.item, classes=model.classes, cell=model.cell
    )
    rows = [row_of[name] for name in held.items.tolist()]
    n_held = len(held.items)
    spread = sparse.csr_array(
        (np.ones(n_held, np.int64), (rows, np.arange(n_held))), shape=(len(row_of), n_held)
    )
    return spread @ held.counts
