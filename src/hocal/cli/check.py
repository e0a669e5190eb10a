"""`hocal check`: a table of judgements in, whether they are independent enough out."""

from __future__ import annotations

from typing import Annotated

import typer

from hocal.cli import options
from hocal.cli.exports import export_options, open_judged
from hocal.cli.messages import working
from hocal.cli.options import split_list
from hocal.cli.outputs import print_json
from hocal.cli.tables import open_engine


def check(
    labels: options.LabelsFile,
    item: options.ItemOfLabels = None,
    label: Annotated[str | None, typer.Option(help="Column with the labels.")] = None,
    annotator: Annotated[str | None, typer.Option(help="Column that tells who judged.")] = None,
    tool: options.Tool = None,
    question: options.Question = None,
    several: options.Several = "error",
    time: Annotated[
        str | None, typer.Option(help="Column that tells when, or in which order.")
    ] = None,
    classes: options.Classes = None,
    names: options.Names = None,
    missing: options.Missing = "error",
    alpha: Annotated[float, typer.Option(help="Error rate of each warning.")] = 0.05,
    n_resamples: Annotated[int, typer.Option(help="Random permutations of the tests.")] = 199,
    random_state: options.RandomState = 0,
    memory_limit: options.MemoryLimit = "2GB",
    as_json: options.AsJson = False,
) -> None:
    """Check whether labels are independent, as the guarantees need: repeats, annotators, order.

    The export of an annotation tool needs no names of columns.

    Example: hocal check labels.csv --item image --label choice --annotator worker
    """
    from hocal.annotations.independence import check_annotations

    export = export_options(
        labels, tool=tool, question=question, several=several, named=label is not None
    )
    with open_engine("duckdb", memory_limit=memory_limit) as read, working("Checking"):
        judged = open_judged(
            read,
            labels,
            export,
            item=item,
            label=label,
            annotator=annotator,
            time=time,
            names=split_list(names, "--names"),
        )
        result = check_annotations(
            judged.table,
            item=judged.item,
            label=judged.label,
            annotator=judged.annotator,
            time=time,
            classes=split_list(classes, "--classes"),
            missing=missing,
            alpha=alpha,
            n_resamples=n_resamples,
            random_state=random_state,
        )
    if as_json:
        print_json(result.as_dict())
    else:
        typer.echo(result.table())
