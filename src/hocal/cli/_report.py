"""`hocal report`: a model and predictions in, one page to look at and to send out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from hocal.cli import _options as options
from hocal.cli._items import Items, read_items
from hocal.cli._messages import working
from hocal.cli._models import Model, load_model
from hocal.cli._options import split_list
from hocal.cli._outputs import output_file
from hocal.cli._tables import Probabilities, Read, open_engine, open_labels

if TYPE_CHECKING:
    from hocal.report import Report


class Predicted(NamedTuple):
    """All items with their predictions, in the sorted order of the items."""

    items: list[Any]
    probabilities: NDArray[np.float64]
    cells: NDArray[np.int64] | None
    images: list[Any] | None
    texts: list[Any] | None


def report(
    model: options.ModelFile,
    probabilities: options.ProbabilitiesFile,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; it ends with .html, .md or .json.")
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="Table of labels that were not used to fit, to measure calibration.")
    ] = None,
    images: Annotated[
        str | None, typer.Option(help="Column of PROBABILITIES with the paths or the bytes of pictures.")
    ] = None,
    image_folder: Annotated[Path, typer.Option(help="Where relative paths of pictures begin.")] = Path(),
    text: Annotated[str | None, typer.Option(help="Column of PROBABILITIES with texts.")] = None,
    check: Annotated[Path | None, typer.Option(help="What `hocal check --json` printed about the labels.")] = None,
    title: Annotated[str, typer.Option(help="Title of the page.")] = "Uncertainty report",
    item: options.ItemOfModel = None,
    label: options.Label = None,
    annotator: options.Annotator = None,
    count_columns: options.CountColumns = None,
    probability_columns: options.ColumnsOfModel = None,
    cell: options.CellOfModel = None,
    names: options.Names = None,
    probability_names: options.ProbabilityNames = None,
    k: Annotated[int | None, typer.Option("--k", help="Labels in a snapshot; pairs by default.")] = None,
    confidence: options.Confidence = 0.95,
    planning: Annotated[bool, typer.Option(help="Foretell what more labels would bring, which takes seconds.")] = True,
    random_state: options.RandomState = 0,
    missing: options.Missing = "error",
    unknown: options.Unknown = "error",
    duplicates: options.Duplicates = "error",
    unpredicted: options.Unpredicted = "error",
    memory_limit: options.MemoryLimit = "2GB",
    force: options.Force = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print a short report as Markdown.")] = False,
) -> None:
    """Write a page: what the uncertainty is made of, whether to trust the numbers, and where to act.

    The page needs no network. With --labels it says how well the model is calibrated; items without labels are
    reported all the same. Pictures and texts are shown for the items that stand out.

    Example: hocal report model.hocal softmax.parquet --labels test.parquet --label choice -o report.html
    """
    from hocal.report import Report, summarise

    if output is None and not (as_json or as_markdown):
        raise ValueError("`--output` must be given, or --json or --markdown to print.")
    columns: dict[str, Any] = {"annotator": annotator}
    columns |= {"label": split_list(label) or [], "count_columns": split_list(count_columns) or []}
    rules = {"missing": missing, "unknown": unknown, "duplicates": duplicates, "unpredicted": unpredicted}
    loaded = load_model(model).called(item=item, probability_columns=split_list(probability_columns), cell=cell)
    known = None if check is None else _read_check(check)
    with _open_output(output, force) as write:
        with open_engine("duckdb", memory_limit=memory_limit) as read, working("Reading"):
            predictions = loaded.open(read, probabilities, names=split_list(probability_names))
            media = {"images": images, "texts": text}
            shown = _read_all(read, probabilities, predictions, loaded, media, split_list(probability_names))
            held = None
            if labels is not None:
                table = open_labels(read, labels, item=loaded.item, names=split_list(names), **columns)
                asked = {"item": loaded.item, "classes": loaded.classes, "cell": loaded.cell, **columns}
                held = read_items(table, predictions, rules=rules | {"unlabelled": "drop"}, **asked)
        with working("Summarising"):
            summary = summarise(
                loaded.calibrator,
                shown.probabilities,
                None if held is None else _place(shown.items, held),
                cells=shown.cells,
                classes=loaded.classes,
                items=shown.items,
                images=None if shown.images is None else [_picture(entry, image_folder) for entry in shown.images],
                texts=shown.texts,
                check=known,
                title=title,
                confidence=confidence,
                k=k,
                planning=planning,
                random_state=random_state,
            )
        made = Report(summary)
        write(made)
    if as_json:
        typer.echo(made.json())
    elif as_markdown:
        typer.echo(made.markdown(), nl=False)
    else:
        typer.echo(f"{len(shown.items)} items in {output}")


@contextmanager
def _open_output(output: Path | None, force: bool) -> Iterator[Callable[[Report], object]]:
    """Give a function that writes the report; an ending or a place that will not do is refused at once."""
    from hocal.report._report import format_of

    if output is None:
        yield lambda _: None
        return
    form = format_of(output)
    with output_file(output, force=force) as temporary:
        yield lambda made: temporary.write_text(getattr(made, form)(), encoding="utf-8")


def _read_check(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"`--check` must be a file that `hocal check --json` printed, got {path}: {error}.") from error


def _read_all(
    read: Read,
    path: str,
    predictions: Probabilities,
    model: Model,
    media: dict[str, str | None],
    names: list[str] | None,
) -> Predicted:
    """Return every item of the table of predictions, with its picture and its text where they are asked for."""
    import narwhals as nw

    table = nw.from_native(predictions.table).lazy()
    wanted = {role: column for role, column in media.items() if column is not None}
    if wanted:
        raw = nw.from_native(read(path, names, ())).lazy()
        there = raw.collect_schema().names()
        for role, column in wanted.items():
            if column not in there:
                option = "--images" if role == "images" else "--text"
                raise ValueError(f"`{option}` must name a column of {path}, got {column!r}. It has {', '.join(there)}.")
        chosen = [nw.col(column).alias(f"hocal {role}") for role, column in wanted.items()]
        table = table.join(raw.select(model.item, *chosen), on=model.item, how="left")
    rows = table.sort(model.item).collect().to_arrow()
    items = rows[model.item].to_pylist()
    if len(set(items)) < len(items):
        repeated = next(after for before, after in pairwise(items) if before == after)
        raise ValueError(f"PROBABILITIES must have one row for each item, got several for {repeated!r}.")
    p = np.column_stack([rows[name].to_numpy() for name in predictions.columns])
    cells = None if model.cell is None else rows[model.cell].to_numpy()
    found = {role: rows[f"hocal {role}"].to_pylist() if role in wanted else None for role in media}
    return Predicted(items, p, cells, found["images"], found["texts"])


def _place(items: list[Any], held: Items) -> Any:
    """Return the counts of all items, nothing for those without labels; a name is compared as text."""
    from scipy import sparse  # slow to import, and `hocal --help` must be quick

    place = {str(name): row for row, name in enumerate(items)}
    rows = np.array([place[str(name)] for name in held.items], dtype=np.intp)
    if sparse.issparse(held.counts):
        spread = sparse.csr_array(
            (np.ones(len(rows), dtype=np.int64), (rows, np.arange(len(rows)))), (len(items), len(rows))
        )
        return spread @ held.counts
    counts = np.zeros((len(items), held.counts.shape[1]), dtype=np.int64)
    counts[rows] = held.counts
    return counts


def _picture(entry: Any, folder: Path) -> Any:
    """Return the bytes or the path of a picture; data sets on the Hugging Face hub keep both in a struct."""
    if isinstance(entry, dict):
        entry = entry.get("bytes") or entry.get("path")
    return folder / entry if isinstance(entry, str) else entry
