"""`hocal check`: labels in; how much people agree, who stands out, and are they independent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hocal.cli import options
from hocal.cli.engines import open_engine
from hocal.cli.exports import Judged, open_judged
from hocal.cli.messages import working
from hocal.cli.option_groups import LabelColumns, grouped, refuse_idle
from hocal.cli.options import split_list
from hocal.cli.outputs import print_json, table_file

if TYPE_CHECKING:
    from hocal.annotations.independence.annotation_check import AnnotationCheck
    from hocal.annotations.independence.annotator_table import AnnotatorEffects

_COMPARE_PEOPLE = "Name the column of the annotators with --annotator to compare them."


@grouped
def check(
    labels: options.LabelsFile,
    columns: LabelColumns,
    item: options.ItemOfLabels = None,
    time: Annotated[
        str | None, typer.Option(help="Column that tells when, or in which order.")
    ] = None,
    in_order: Annotated[
        bool,
        typer.Option("--in-order", help="Rows are in the order of the judgements.", metavar=""),
    ] = False,
    gold: options.Gold = None,
    classes: options.Classes = None,
    ordinal: options.Ordinal = False,
    missing: options.Missing = "error",
    annotators: options.AnnotatorsFile = None,
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
    from hocal._base.validation import check_fraction

    refuse_idle({"--force": "without --annotators" if annotators is None else None})
    alpha = check_fraction(alpha, "alpha")
    declared = split_list(classes, "--classes")
    chosen: dict[str, Any] = {"ordinal": ordinal, "missing": missing, "classes": declared}
    tests = {"time": time, "in_order": in_order, "gold": gold, "alpha": alpha}
    tests |= {"n_resamples": n_resamples, "random_state": random_state}
    with (
        table_file(annotators, "--annotators", force=force) as write_annotators,
        open_engine("duckdb", memory_limit=memory_limit) as read,
        working("Checking"),
    ):
        where = {"item": item, "time": time, "gold": gold}
        judged = open_judged(read, labels, columns, **where, classes=declared)
        _refuse_idle(judged)
        if not judged.knows_annotators:
            _print_agreement(judged, chosen, alpha, as_json=as_json)
            return
        result = _check(judged, chosen | tests)
        if annotators is not None:
            write_annotators(annotators_table(result.annotators))
    if as_json:
        print_json(result.as_dict())
    else:
        typer.echo(result.table())


def _refuse_idle(judged: Judged) -> None:
    """Refuse options that would do nothing with such labels."""
    nobody = None if judged.knows_annotators else "without --annotator: it is about people"
    options_ = ("--annotators", "--time", "--in-order", "--gold", "--n-resamples", "--random-state")
    counted = "with --count-columns, which are the classes" if judged.counted else None
    refuse_idle(dict.fromkeys(options_, nobody) | {"--classes": counted})


def _check(judged: Judged, settings: dict[str, Any]) -> AnnotationCheck:
    """Check labels of which it is known who gave them."""
    from hocal.annotations import check_annotations

    return check_annotations(
        judged.table,
        item=judged.item,
        label=judged.label if len(judged.label) > 1 else judged.label[0],
        annotator=judged.annotator,
        **settings,
    )


def _print_agreement(
    judged: Judged, chosen: dict[str, Any], alpha: float, *, as_json: bool
) -> None:
    """Print what labels tell where nobody knows who gave them."""
    from hocal.annotations import agreement

    columns = {"label": judged.label[0]} if judged.label else {"count_columns": judged.counted}
    confidence = 1 - alpha
    result = agreement(judged.table, item=judged.item, confidence=confidence, **columns, **chosen)
    if as_json:
        print_json({"agreement": result.as_dict()})
    else:
        typer.echo(f"{result.table()}\n{_COMPARE_PEOPLE if judged.label else ''}".rstrip())


def annotators_table(effects: AnnotatorEffects) -> Any:
    """Return one row per annotator, the worst dissent first; what is not known stays empty."""
    import pyarrow as pa

    def column(values: Any) -> Any:
        listed = list(values)
        try:
            return pa.array(listed, from_pandas=True)
        except OverflowError:  # names may be numbers of any size
            return pa.array([*map(str, listed)])

    return pa.table({name: column(values) for name, values in effects._asdict().items()})
