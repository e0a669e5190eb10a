"""`hocal labels`: labels in; agreement, people, ambiguous items and what to buy out, no model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hocal._base.errors import InputError
from hocal._base.plurals import counted
from hocal.cli import options
from hocal.cli.check import write_annotators
from hocal.cli.engines import open_engine
from hocal.cli.exports import Judged, export_options, open_judged
from hocal.cli.files import table_kind
from hocal.cli.messages import ProgressBar, working
from hocal.cli.options import split_list
from hocal.cli.outputs import open_writer, output_file, report_file

if TYPE_CHECKING:
    from hocal.report.label_study import LabelStudy


def labels(
    labels: options.LabelsFile,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; it ends with .html, .md or .json."),
    ] = None,
    item: options.ItemOfLabels = None,
    label: options.Label = None,
    annotator: Annotated[
        str | None, typer.Option(help="Column that tells who judged, to compare annotators.")
    ] = None,
    count_columns: options.CountColumns = None,
    tool: options.Tool = None,
    question: options.Question = None,
    several: options.Several = "error",
    gold: Annotated[
        str | None, typer.Option(help="Column with the right label of gold questions.")
    ] = None,
    classes: options.Classes = None,
    ordinal: Annotated[
        bool, typer.Option("--ordinal", help="The order of --classes is a scale.", metavar="")
    ] = False,
    names: options.Names = None,
    missing: options.Missing = "error",
    duplicates: options.Duplicates = "error",
    items: Annotated[
        Path | None, typer.Option(help="File to write, one row per item, disputed ones first.")
    ] = None,
    annotators: Annotated[
        Path | None, typer.Option(help="File to write, one row per annotator.")
    ] = None,
    n_listed: Annotated[int, typer.Option(help="Items in the report; --items has all.")] = 1_000,
    forecast: Annotated[
        bool,
        typer.Option(
            help="Forecast what more labels would bring, which takes seconds.", metavar=""
        ),
    ] = True,
    title: Annotated[str, typer.Option(help="Title of the page.")] = "Labels",
    confidence: Annotated[
        float, typer.Option(help="Confidence of each interval on its own.")
    ] = 0.95,
    memory_limit: options.MemoryLimit = "2GB",
    force: options.Force = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as JSON.", metavar="")
    ] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print a short report as Markdown.", metavar="")
    ] = False,
) -> None:
    """Say how much people agree, about what, who stands out and which items are ambiguous.

    No model is needed. Each item gets its expected label distribution, its aleatoric uncertainty
    with limits, and its majority with a probability; --items writes all of them, --annotators the
    people. The export of an annotation tool needs no names of columns.

    Example: hocal labels labels.csv --item image --label choice --annotator worker -o labels.html
    """
    from hocal.report import Report
    from hocal.report.label_study import LabelStudy
    from hocal.report.label_summary import summarise_study

    _check_options(output, as_json=as_json, as_markdown=as_markdown)
    columns = split_list(label, "--label") or []
    of_counts = split_list(count_columns, "--count-columns") or []
    named = bool(columns or of_counts)
    export = export_options(labels, tool=tool, question=question, several=several, named=named)
    with (
        report_file(output, force=force) as write,
        _table_file(items, force=force) as items_file,
        open_engine("duckdb", memory_limit=memory_limit) as read,
    ):
        with working("Reading"):
            judged = open_judged(
                read,
                labels,
                export,
                item=item,
                label=columns,
                annotator=annotator,
                count_columns=of_counts,
                gold=gold,
                names=split_list(names, "--names"),
            )
        _check_judged(judged, annotators)
        with ProgressBar() as progress:
            study = LabelStudy.of(
                judged.table,
                **_columns(judged),
                gold=gold,
                classes=None if judged.counted else split_list(classes, "--classes"),
                items=None,
                ordinal=ordinal,
                missing=missing,
                duplicates=duplicates,
                confidence=confidence,
                progress=progress.update,
            )
        with working("Looking ahead"):
            made = Report(summarise_study(study, title=title, n_listed=n_listed, forecast=forecast))
        if items is not None and items_file is not None:
            _write_items(study, items_file, items.name, judged.item)
        write(made)
    if annotators is not None and study.agreement.annotators is not None:
        write_annotators(study.agreement.annotators, annotators, force=force)
    if as_json:
        typer.echo(made.json())
    elif as_markdown:
        typer.echo(made.markdown(), nl=False)
    else:
        typer.echo(study.agreement.table())
        typer.echo(f"{counted(len(study.items), 'item')} in {output}")


def _check_options(output: Path | None, *, as_json: bool, as_markdown: bool) -> None:
    """Refuse options that would do nothing, or would hide each other."""
    if (output is None and not as_json and not as_markdown) or (as_json and as_markdown):
        raise InputError("--output", "must be given, or one of --json and --markdown to print")


def _check_judged(judged: Judged, annotators: Path | None) -> None:
    """Refuse options that contradict each other."""
    if judged.counted and (judged.label or judged.annotator):
        rule = "must be left out with --count-columns, which know nobody"
        raise InputError("--label and --annotator", rule)
    if annotators is not None and not judged.knows_annotators:
        raise InputError("--annotators", "must be left out without --annotator")


def _columns(judged: Judged) -> dict[str, Any]:
    """Return the columns by the names of the library's arguments."""
    label = judged.label if len(judged.label) > 1 else next(iter(judged.label), None)
    return {
        "item": judged.item,
        "label": label,
        "annotator": judged.annotator,
        "count_columns": judged.counted or None,
    }


@contextmanager
def _table_file(path: Path | None, *, force: bool) -> Iterator[Path | None]:
    """Give a temporary file for a table, if one is asked for; other endings are refused at once."""
    if path is None:
        yield None
        return
    table_kind(path.name)
    with output_file(path, force=force) as temporary:
        yield temporary


def _write_items(study: LabelStudy, path: Path, name: str, item: str) -> None:
    """Write one row per item, disputed ones first; the items have the name of their column."""
    import pyarrow as pa

    columns = study.table()
    table = pa.table(
        {item if key == "item" else key: pa.array(list(column)) for key, column in columns.items()}
    )
    with open_writer(path, name, table.schema) as writer:
        writer.write_table(table)
