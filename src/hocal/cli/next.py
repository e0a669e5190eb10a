"""`hocal next`: labels in, how many labels to buy next for which items out."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from hocal._base.errors import InputError, OneLabelWarning
from hocal.cli import options
from hocal.cli.engines import ReadTable, open_engine
from hocal.cli.exports import ITEM
from hocal.cli.files import table_kind
from hocal.cli.items import LabelOptions, count_items, find_items, find_rows, label_options
from hocal.cli.messages import ProgressBar, note, working
from hocal.cli.models import Model, load_model
from hocal.cli.option_groups import LabelColumns, PredictionColumns, Rules, grouped, refuse_idle
from hocal.cli.options import split_list
from hocal.cli.outputs import (
    open_writer,
    output_file,
    print_json,
    print_table,
    refuse_item_name,
)
from hocal.cli.predictions import GivenRows, Probabilities

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hocal.decisions import NextLabels

# predicted probabilities of the items whose mixtures are made at once, of some hundred atoms each:
# a thousand items of ten classes take tens of MB
NUMBERS = 10_000
COLUMNS = ("labels", "expected_gain", "uncertainty", "n_labels")  # written beside the item
WORDS = {
    "distribution": "squared error of the label distribution",
    "aleatoric": "squared error of the aleatoric uncertainty",
    "majority": "probability that a majority is wrong",
}


class _Labelled(NamedTuple):
    """Items with the labels that they have."""

    items: NDArray[Any]  #: (n_items,)
    counts: Any  #: (n_items, n_classes), dense or sparse


@grouped
def next_labels(
    labels: options.LabelsFile,
    output: options.Output,
    budget: Annotated[int, typer.Option(help="Labels to buy.")],
    columns: LabelColumns,
    predicted: PredictionColumns,
    rules: Rules,
    classes: options.Classes = None,
    model: Annotated[
        Path | None, typer.Option(help="Model file written by `hocal fit`, with --probabilities.")
    ] = None,
    probabilities: Annotated[
        str | None, typer.Option(help="Table of predictions for the model, one row per item.")
    ] = None,
    objective: Annotated[
        str,
        typer.Option(
            help="What should be known better: distribution (of the labels), aleatoric "
            "(uncertainty) or majority."
        ),
    ] = "distribution",
    limit: Annotated[
        int | None,
        typer.Option(help="Most labels for one item now; ten, or twice an even share."),
    ] = None,
    first: Annotated[
        int | None,
        typer.Option(help="What --first was in the fit of the model, which knows these labels."),
    ] = None,
    time: options.Time = None,
    memory_limit: options.MemoryLimit = "2GB",
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Choose which items the next labels should go to, with or without a model.

    Writes one row for each item to buy labels for, the most worthwhile first: the item, labels (how
    many to buy), expected_gain (of these labels), uncertainty (expected error now) and n_labels
    (that it has). Buy in several rounds, each from all labels so far. Without a model, what labels
    of all items have in common is the prior of each; with one, items of PROBABILITIES without
    labels are considered too. Labels bought in this way are no sample for certificates: see --first
    of `hocal fit`.

    Example: hocal next labels.csv --item image --label choice --budget 1000 -o buy.csv
    """
    table_kind(output.name)  # refuse other endings before the work begins
    if (model is None) != (probabilities is None):
        raise InputError("--model and --probabilities", "must be given together")
    _refuse_idle(has_model=model is not None, counted=columns.count_columns is not None)
    every = rules._asdict() | {"unlabelled": "drop"}
    choices = label_options(labels, columns, every, first=first, time=time)
    wanted: dict[str, Any] = {"budget": budget, "objective": objective, "limit": limit}
    with (
        output_file(output, force=force) as temporary,
        open_engine("duckdb", memory_limit=memory_limit) as read,
    ):
        if model is None or probabilities is None:
            column = _check_alone(predicted.item, choices)
            refuse_item_name(column, COLUMNS)
            declared = split_list(classes, "--classes")
            found = _count_alone(read, labels, choices, predicted.item, declared)
            with working("Choosing"):
                bought = _choose_alone(found, **wanted)
        else:
            loaded = load_model(model, predicted)
            column = loaded.item
            refuse_item_name(column, COLUMNS)
            opened = loaded.open(read, probabilities)
            study = _read_study(read, labels, choices, loaded, opened)
            found = study.labelled
            with opened.explained(study.place):
                bought = _choose_with(study, loaded, **wanted)
        _write(temporary, output.name, column, found, bought)
    summary = _summarise(bought, output)
    (print_json if as_json else _show)(summary)


def _refuse_idle(*, has_model: bool, counted: bool) -> None:
    """Refuse options that would do nothing."""
    if has_model:
        refuse_idle({"--classes": "with --model, which knows them"})
        return
    of_model = [f"--{name.replace('_', '-')}" for name in PredictionColumns._fields[1:]]
    refuse_idle(dict.fromkeys([*of_model, "--unpredicted"], "without --model, which predicts"))
    refuse_idle({"--classes": "with --count-columns, which are the classes" if counted else None})


def _check_alone(item: str | None, choices: LabelOptions) -> str:
    """Return the column of the items where no model names it."""
    if choices.first is not None:
        rule = "must be left out without --model: all labels count"
        raise InputError("--first", rule, value=choices.first)
    if item is None and choices.export is None:
        raise InputError("--item", "must be given, or --model, which knows it")
    return item or ITEM


def _count_alone(
    read: ReadTable, path: str, choices: LabelOptions, item: str | None, classes: list[str] | None
) -> _Labelled:
    """Count the labels of each item."""
    with working("Reading"):
        table = choices.open_alone(read, path, item=item)
        declared = classes or choices.count_columns or None
        counted = count_items(table, choices, item=item or ITEM, classes=declared)
    return _Labelled(counted.items, counted.counts)


def _choose_alone(found: _Labelled, budget: int, objective: str, limit: int | None) -> NextLabels:
    """Choose with what the labels of all items have in common as the prior."""
    import hocal
    from hocal.calibration import label_prior

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", OneLabelWarning)
        prior = label_prior(found.counts)
    for warning in said:
        note(str(warning.message))
    return hocal.next_labels(prior, found.counts, budget=budget, objective=objective, limit=limit)


class _PredictedItems(NamedTuple):
    """All predicted items, with the labels that they have."""

    labelled: _Labelled
    given: GivenRows  #: what a calibrator takes about them
    known: Any  #: the labels that the model has seen, sparse as all labels

    def place(self, row: int) -> str:
        """Say in words where a row of the arrays is."""
        return f"for item {self.labelled.items.item(row)!r}"


def _read_study(
    read: ReadTable, path: str, choices: LabelOptions, model: Model, opened: Probabilities
) -> _PredictedItems:
    """Read all predictions, and count the labels of each."""
    import narwhals as nw
    import numpy as np

    with working("Reading"), opened.explained():
        every = choices._replace(first=None)
        table, predictions = every.open(read, path, opened)
        rows = nw.from_native(predictions.table).lazy().collect().to_arrow()
        row_of = find_rows(rows[model.item].to_pylist())
        counts = _counts_by_row(table, every, model, row_of)
        known = counts
        if choices.first is not None:
            fewer, _ = choices.open(read, path, opened)
            known = _counts_by_row(fewer, choices, model, row_of)
        given = predictions.arrays(rows)
    items = np.array(rows[model.item].to_pylist(), dtype=object)
    return _PredictedItems(_Labelled(items, counts), given, known)


def _counts_by_row(table: Any, choices: LabelOptions, model: Model, row_of: dict[Any, int]) -> Any:
    """Return the labels of each predicted item, a row of zeros where there are none."""
    import numpy as np
    from scipy import sparse

    counted = count_items(table, choices, item=model.item, classes=model.classes)
    places = find_items(counted.items.tolist(), row_of, choices.rules["unpredicted"])
    kept = np.array([place is not None for place in places])
    rows = np.array([place for place in places if place is not None], dtype=np.intp)
    entries = sparse.coo_array(counted.counts[kept])
    shape = (len(row_of), len(model.classes))
    return sparse.csr_array((entries.data, (rows[entries.row], entries.col)), shape=shape)


def _choose_with(
    study: _PredictedItems, model: Model, budget: int, objective: str, limit: int | None
) -> NextLabels:
    """Choose with what the model says about each item; mixtures are made block by block."""
    import numpy as np

    from hocal.decisions.label_gains import LabelGains, exact_labels, expected_gains
    from hocal.decisions.purchases import buy_labels, check_purchase
    from hocal.uncertainty.likelihood import pair_with_counts

    n_items = len(study.labelled.items)
    most = check_purchase(n_items, budget, objective, limit)
    n_labels = int(most.max())
    blocks, places = [], []
    n_before = 0
    n_rows = max(NUMBERS // model.calibrator.statistics_.n_classes, 1)
    with ProgressBar() as progress:
        for start in range(0, n_items, n_rows):
            rows = slice(start, start + n_rows)
            known = study.known[rows].toarray()
            given = study.given.rows(rows)
            mixtures = model.calibrator.predict_mixture(
                given.probabilities, counts=known, **given.beside
            )
            later = study.labelled.counts[rows].toarray() - known
            states = pair_with_counts(mixtures.index, later)
            n_exact = exact_labels(mixtures, n_items, objective, n_labels)
            blocks.append(expected_gains(mixtures, states, objective, n_labels, n_exact))
            places.append(states.inverse + n_before)
            n_before += len(states.mixture)
            progress.update("Choosing", min(rows.stop, n_items), n_items)
    found = LabelGains(*map(np.concatenate, zip(*blocks, strict=True)))
    where = np.concatenate(places)
    return buy_labels(found, where, budget=budget, objective=objective, limit=most)


def _write(path: Path, name: str, item: str, found: _Labelled, bought: NextLabels) -> None:
    """Write a row for each item to buy labels for."""
    import pyarrow as pa

    from hocal._base.validation import label_totals

    chosen = bought.order
    numbers = (bought.labels, bought.gain, bought.uncertainty, label_totals(found.counts))
    table = pa.table(
        [pa.array(found.items[chosen].tolist()), *(pa.array(each[chosen]) for each in numbers)],
        names=[item, *COLUMNS],
    )
    with open_writer(path, name, table.schema) as writer:
        writer.write_table(table)


def _summarise(bought: NextLabels, output: Path) -> dict[str, Any]:
    """Return what is bought, and what it is expected to bring."""
    now = float(bought.uncertainty.mean())
    return {
        "output": output,
        "objective": bought.objective,
        "budget": bought.budget,
        "n_labels": int(bought.labels.sum()),
        "n_items": len(bought.order),
        "n_considered": len(bought.labels),
        "now": now,
        "expected": now - bought.expected_gain,
        "evenly": now - bought.uniform_gain,
    }


def _show(summary: dict[str, Any]) -> None:
    what = WORDS[summary["objective"]]
    print_table(
        f"What to buy next, in {summary['output']}",
        {
            "labels": f"{summary['n_labels']} of {summary['budget']}",
            "items": f"{summary['n_items']} of {summary['n_considered']}",
            f"{what}, now": summary["now"],
            "expected with these labels": summary["expected"],
            "expected with as many spread evenly": summary["evenly"],
        },
    )
    if summary["n_labels"] < summary["budget"]:
        typer.echo("What is left of the budget is not expected to bring anything.")
