"""`hocal labels`: labels in; agreement, people, ambiguous items and what to buy out, no model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hocal._base.plurals import counted
from hocal.cli import options
from hocal.cli.check import annotators_table
from hocal.cli.engines import ReadTable, open_engine
from hocal.cli.exports import ITEM, Judged, open_judged
from hocal.cli.messages import ProgressBar, working
from hocal.cli.option_groups import LabelColumns, grouped, refuse_idle
from hocal.cli.options import split_list
from hocal.cli.outputs import (
    check_report_output,
    refuse_item_name,
    report_file,
    say_report,
    table_file,
)

if TYPE_CHECKING:
    from hocal.report.label_study import LabelStudy

# columns of --items that are known before the classes are
OF_ITEMS = (
    "aleatoric",
    "aleatoric_lower",
    "aleatoric_upper",
    "majority",
    "majority_probability",
    "n_labels",
    "verdict",
)


@grouped
def labels(
    labels: options.LabelsFile,
    columns: LabelColumns,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; it ends with .html, .md or .json."),
    ] = None,
    item: options.ItemOfLabels = None,
    gold: options.Gold = None,
    classes: options.Classes = None,
    ordinal: options.Ordinal = False,
    missing: options.Missing = "error",
    duplicates: options.Duplicates = "error",
    items: Annotated[
        Path | None, typer.Option(help="File to write, one row per item, disputed ones first.")
    ] = None,
    annotators: options.AnnotatorsFile = None,
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
    as_json: options.SummaryAsJson = False,
    as_markdown: options.SummaryAsMarkdown = False,
) -> None:
    """Say how much people agree, about what, who stands out and which items are ambiguous.

    No model is needed. Each item gets its expected label distribution, its aleatoric uncertainty
    with limits, and its majority with a probability; --items writes all of them, --annotators the
    people. The export of an annotation tool needs no names of columns.

    Example: hocal labels labels.csv --item image --label choice --annotator worker -o labels.html
    """
    from hocal.report import Report
    from hocal.report.label_summary import summarise_study

    check_report_output(output, as_json=as_json, as_markdown=as_markdown)
    no_file = output is None and items is None and annotators is None
    refuse_idle({"--force": "without a file to write" if no_file else None})
    settings: dict[str, Any] = {"gold": gold, "ordinal": ordinal, "missing": missing}
    settings |= {"duplicates": duplicates, "confidence": confidence}
    settings |= {"classes": split_list(classes, "--classes")}
    with (
        report_file(output, force=force) as write,
        table_file(items, "--items", force=force) as write_items,
        table_file(annotators, "--annotators", force=force) as write_annotators,
        open_engine("duckdb", memory_limit=memory_limit) as read,
    ):
        if items is not None:
            refuse_item_name(item or ITEM, OF_ITEMS)
        column, study = _study(read, labels, columns, item, settings)
        with working("Looking ahead"):
            made = Report(summarise_study(study, title=title, n_listed=n_listed, forecast=forecast))
        if items is not None:
            write_items(_items_table(study, column))
        if annotators is not None and study.agreement.annotators is not None:
            write_annotators(annotators_table(study.agreement.annotators))
        write(made)
    found = f"{study.agreement.table()}\n{counted(len(study.items), 'item')} in {output}"
    say_report(made, found, as_json, as_markdown)


def _study(
    read: ReadTable, path: str, columns: LabelColumns, item: str | None, settings: dict[str, Any]
) -> tuple[str, LabelStudy]:
    """Return the column of the items, and what is known about all of them."""
    from hocal.report.label_study import LabelStudy

    where = {"item": item, "gold": settings["gold"]}
    with working("Reading"):
        judged = open_judged(read, path, columns, **where, classes=settings["classes"])
    _refuse_idle(judged)
    with ProgressBar() as progress:
        named = _columns(judged)
        study = LabelStudy.of(
            judged.table, **named, items=None, **settings, progress=progress.update
        )
    return judged.item, study


def _refuse_idle(judged: Judged) -> None:
    """Refuse options that would do nothing with such labels."""
    nobody = None if judged.knows_annotators else "without --annotator: it is about people"
    are_classes = "with --count-columns, which are the classes" if judged.counted else None
    refuse_idle({"--annotators": nobody, "--gold": nobody, "--classes": are_classes})


def _columns(judged: Judged) -> dict[str, Any]:
    """Return the columns by the names of the library's arguments."""
    label = judged.label if len(judged.label) > 1 else next(iter(judged.label), None)
    return {
        "item": judged.item,
        "label": label,
        "annotator": judged.annotator,
        "count_columns": judged.counted or None,
    }


def _items_table(study: LabelStudy, item: str) -> Any:
    """Return one row per item, disputed ones first; the items have the name of their column."""
    import pyarrow as pa

    columns = study.table()
    names = columns.pop("item")
    refuse_item_name(item, columns)  # now with the shares of the classes
    return pa.table(
        {key: pa.array(list(column)) for key, column in ({item: names} | columns).items()}
    )
