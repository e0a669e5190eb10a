"""`hocal check`: a table of judgements in, whether they are independent enough out."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from hocal.cli import options
from hocal.cli.messages import working
from hocal.cli.options import split_list
from hocal.cli.outputs import print_json
from hocal.cli.tables import open_engine, open_labels


def check(
    labels: options.LabelsFile,
    item: options.Item,
    label: Annotated[str, typer.Option(help="Column with the labels.")],
    annotator: Annotated[str, typer.Option(help="Column that tells who judged.")],
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

    Example: hocal check labels.csv --item image --label choice --annotator worker
    """
    from hocal.annotations.independence import check_annotations

    with open_engine("duckdb", memory_limit=memory_limit) as read, working("Checking"):
        table: Any = open_labels(
            read,
            labels,
            item=item,
            label=[label],
            annotator=annotator,
            time=time,
            names=split_list(names, "--names"),
        )
        result = check_annotations(
            table,
            item=item,
            label=label,
            annotator=annotator,
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
