"""`hocal check`: labels in; how much people agree, who stands out, and are they independent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hocal._base.errors import InputError
from hocal.cli import options
from hocal.cli.engines import open_engine
from hocal.cli.exports import Judged, export_options, open_judged
from hocal.cli.messages import working
from hocal.cli.options import split_list
from hocal.cli.outputs import open_writer, output_file, print_json

if TYPE_CHECKING:
    from hocal.annotations.independence.annotator_table import AnnotatorEffects

_COMPARE_PEOPLE = "Name the column of the annotators with --annotator to compare them."


def check(
    labels: options.LabelsFile,
    item: options.ItemOfLabels = None,
    label: options.Label = None,
    annotator: Annotated[
        str | None, typer.Option(help="Column that tells who judged, to compare annotators.")
    ] = None,
    count_columns: options.CountColumns = None,
    tool: options.Tool = None,
    question: options.Question = None,
    several: options.Several = "error",
    time: Annotated[
        str | None, typer.Option(help="Column that tells when, or in which order.")
    ] = None,
    in_order: Annotated[
        bool,
        typer.Option("--in-order", help="Rows are in the order of the judgements.", metavar=""),
    ] = False,
    gold: Annotated[
        str | None, typer.Option(help="Column with the right label of gold questions.")
    ] = None,
    classes: options.Classes = None,
    ordinal: Annotated[
        bool, typer.Option("--ordinal", help="The order of --classes is a scale.", metavar="")
    ] = False,
    names: options.Names = None,
    missing: options.Missing = "error",
    annotators: Annotated[
        Path | None, typer.Option(help="File to write, one row per annotator.")
    ] = None,
    force: options.Force = False,
    alpha: Annotated[float, typer.Option(help="Error rate of each warning.")] = 0.05,
    n_resamples: Annotated[int, typer.Option(help="Random permutations of the tests.")] = 199,
    random_state: options.RandomState = 0,
    memory_limit: options.MemoryLimit = "2GB",
    as_json: options.AsJson = False,
) -> None:
    """Check labels: how much people agree, who stands out, and whether labels are independent.

    The export of an annotation tool needs no names of columns.

    Example: hocal check labels.csv --item image --label choice --annotator worker
    """
    from hocal.annotations import check_annotations

    columns = split_list(label, "--label") or []
    counted = split_list(count_columns, "--count-columns") or []
    named = bool(columns or counted)
    export = export_options(labels, tool=tool, question=question, several=several, named=named)
    with open_engine("duckdb", memory_limit=memory_limit) as read, working("Checking"):
        judged = open_judged(
            read,
            labels,
            export,
            item=item,
            label=columns,
            annotator=annotator,
            count_columns=counted,
            time=time,
            gold=gold,
            names=split_list(names, "--names"),
        )
        _check_options(judged, annotators)
        shared: dict[str, Any] = {"ordinal": ordinal, "missing": missing}
        declared = split_list(classes, "--classes")
        if not judged.knows_annotators:
            _print_agreement(judged, shared, declared, alpha, as_json=as_json)
            return
        result = check_annotations(
            judged.table,
            item=judged.item,
            label=judged.label if len(judged.label) > 1 else judged.label[0],
            annotator=judged.annotator,
            time=time,
            in_order=in_order,
            gold=gold,
            classes=declared,
            alpha=alpha,
            n_resamples=n_resamples,
            random_state=random_state,
            **shared,
        )
    if annotators is not None:
        write_annotators(result.annotators, annotators, force=force)
    if as_json:
        print_json(result.as_dict())
    else:
        typer.echo(result.table())


def _check_options(judged: Judged, annotators: Path | None) -> None:
    """Refuse options that contradict each other."""
    if judged.counted and (judged.label or judged.annotator):
        rule = "must be left out with --count-columns, which know nobody"
        raise InputError("--label and --annotator", rule)
    if annotators is not None and not judged.knows_annotators:
        raise InputError("--annotators", "must be left out without --annotator")


def _print_agreement(
    judged: Judged,
    shared: dict[str, Any],
    classes: list[str] | None,
    alpha: float,
    *,
    as_json: bool,
) -> None:
    """Print what labels tell where nobody knows who gave them."""
    from hocal.annotations import agreement

    columns: dict[str, Any] = {"count_columns": judged.counted}
    if judged.label:
        columns = {"label": judged.label[0], "classes": classes}
    confidence = 1 - alpha
    result = agreement(judged.table, item=judged.item, confidence=confidence, **columns, **shared)
    if as_json:
        print_json({"agreement": result.as_dict()})
    else:
        typer.echo(f"{result.table()}\n{_COMPARE_PEOPLE if judged.label else ''}".rstrip())


def write_annotators(effects: AnnotatorEffects, path: Path, *, force: bool) -> None:
    """Write one row per annotator, the worst dissent first; what is not known stays empty."""
    import pyarrow as pa

    columns = {
        name: pa.array(list(values), from_pandas=True) for name, values in effects._asdict().items()
    }
    table = pa.table(columns)
    with (
        output_file(path, force=force) as temporary,
        open_writer(temporary, str(path), table.schema) as writer,
    ):
        writer.write_table(table)
