"""`hocal compare`: predictions of two models and labels in, which model is better out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from hocal._base.errors import InputError
from hocal.cli import options
from hocal.cli.engines import ReadTable, open_engine
from hocal.cli.items import LabelOptions, MatchedItems, find_rows, label_options, read_items
from hocal.cli.messages import FileError, working
from hocal.cli.option_groups import LabelColumns, Rules, grouped, refuse_idle
from hocal.cli.options import split_list
from hocal.cli.outputs import print_json, print_rows, print_table
from hocal.cli.predictions import Probabilities, Wanted, open_probabilities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hocal import Interval
    from hocal.decisions import Comparison


@grouped
def compare(
    first: Annotated[
        str, typer.Argument(metavar="FIRST", help="Table of the first model's predictions.")
    ],
    second: Annotated[
        str, typer.Argument(metavar="SECOND", help="Table of the second model's predictions.")
    ],
    labels: options.LabelsFile,
    item: options.Item,
    columns: LabelColumns,
    rules: Rules,
    unlabelled: options.Unlabelled = "error",
    classes: options.Classes = None,
    probability_columns: options.ProbabilityColumns = None,
    loss: Annotated[
        str,
        typer.Option(
            help="log: log loss in nats. brier: Brier score. accuracy: error rate, how often a new "
            "person's label is not the model's most likely class."
        ),
    ] = "log",
    confidence: Annotated[float, typer.Option(help="Confidence of each interval.")] = 0.95,
    floor: Annotated[
        float | None,
        typer.Option(help="Smallest probability that either model gives to any class of any item."),
    ] = None,
    anytime: Annotated[
        bool,
        typer.Option(
            "--anytime",
            help="Make intervals that hold however often new items are added and looked at.",
            metavar="",
        ),
    ] = False,
    memory_limit: options.MemoryLimit = "2GB",
    as_json: options.AsJson = False,
) -> None:
    """Say which of two models has the lower loss against people's labels, and by how much.

    Neither model may have been trained on these items. Both tables of predictions must have the
    same classes. The items are held in memory. Also for two judges that name one class each, with
    probabilities 0 and 1 and --loss accuracy.

    Example: hocal compare old.parquet new.parquet labels.csv --item image --label choice
    """
    import hocal

    refuse_idle({"--floor": None if loss == "log" else "unless with --loss log"})
    choices = label_options(labels, columns, rules._asdict() | {"unlabelled": unlabelled})
    chosen = split_list(probability_columns, "--probability-columns")
    declared = split_list(classes, "--classes")
    with open_engine("duckdb", memory_limit=memory_limit) as read, working("Reading"):
        tables = _Tables(read, labels, choices, item, chosen, declared)
        order, one = tables.read("FIRST", first, None)
        _, other = tables.read("SECOND", second, order)
    one, other = _same_items(one, other, rules.unpredicted)
    with working("Comparing"), _placed(one):
        found = hocal.compare(
            one.probabilities,
            other.probabilities,
            one.counts,
            loss=loss,  # type: ignore[arg-type]
            confidence=confidence,
            floor=floor,
            anytime=anytime,
        )
    models = [Path(first).stem, Path(second).stem]
    if as_json:
        _show_json(found, order, models)
    else:
        _show(found, order, models)


class _Tables(NamedTuple):
    """Where labels come from, and what the columns of predictions are called."""

    open_file: ReadTable
    labels: str
    choices: LabelOptions
    item: str
    columns: list[str] | None
    declared: list[str] | None

    def read(
        self, role: str, path: str, wanted: list[str] | None
    ) -> tuple[list[str], MatchedItems]:
        """Return the classes, and the labelled items with the predictions of one model."""
        n_classes = None if wanted is None else len(wanted)
        predictions = open_probabilities(
            self.open_file, path, Wanted(self.item, self.columns, n_classes)
        )
        if wanted is not None and self.declared is None:
            predictions = _in_order(role, predictions, wanted)
        order = wanted or self.declared or predictions.classes
        labels, matched = self.choices.open(self.open_file, self.labels, predictions)
        with _called(role), predictions.explained():
            items = read_items(labels, matched, self.choices, classes=order)
        return order, items


@contextmanager
def _called(role: str) -> Iterator[None]:
    """Let an error about a table of predictions say which of the two it is."""
    try:
        yield
    except FileError as error:
        if error.argument != "PROBABILITIES":
            raise
        raise error.replace(argument=role) from error


@contextmanager
def _placed(items: MatchedItems) -> Iterator[None]:
    """Let an error about a row of the arrays name the item."""
    try:
        yield
    except InputError as error:
        if error.row is None:
            raise
        raise error.replace(where=items.place(error.row)) from error


def _in_order(role: str, predictions: Probabilities, wanted: list[str]) -> Probabilities:
    """Return predictions with their columns in the order of the first table's classes."""
    if sorted(predictions.classes) != sorted(wanted):
        raise FileError(
            role,
            "must have the classes of FIRST",
            value=", ".join(predictions.classes),
            remedy=f"They are {', '.join(wanted)}. Name the columns with --probability-columns.",
        )
    if len(predictions.file_columns) == 1:
        return predictions
    return predictions._replace(columns=wanted, file_columns=wanted)


def _same_items(
    one: MatchedItems, other: MatchedItems, unpredicted: str
) -> tuple[MatchedItems, MatchedItems]:
    """Return the items that both models have predicted, in the same order."""
    import numpy as np

    first, second = (find_rows(names) for names in _alike(one.items.tolist(), other.items.tolist()))
    both = [name for name in first if name in second]
    alone = sorted(map(str, first.keys() ^ second.keys()))
    if alone and (unpredicted == "error" or not both):
        raise InputError(
            "FIRST and SECOND",
            "must have the same items",
            value=f"{alone[0]!r} in one of them",
            remedy="Name items in the same way in both files.",
        )
    rows = ([places[name] for name in both] for places in (first, second))
    one_rows, other_rows = (np.array(each, dtype=np.intp) for each in rows)
    return one.take(one_rows), other.take(other_rows)


def _alike(first: list[Any], second: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return names of items as text where either has text: all of CSV is, Parquet has numbers."""
    kinds = {isinstance(name, str) for name in (*first, *second)}
    return (first, second) if len(kinds) < 2 else ([*map(str, first)], [*map(str, second)])


def _show_json(found: Comparison, classes: Sequence[str], models: Sequence[str]) -> None:
    intervals = ("first", "second", "difference", "share_closed")
    parts: dict[str, Any] = {name: getattr(found, name)._asdict() for name in intervals}
    per_class = {
        classes[number]: {"n_items": part.n_items, "difference": part.difference._asdict()}
        for number, part in found.per_class.items()
    }
    print_json(
        {
            "models": models,
            "loss": found.metric,
            "confidence": found.confidence,
            "n_items": found.n_items,
            **parts,
            "better": found.better,
            "per_class": per_class,
            "assumptions": found.assumptions,
        }
    )


def _show(found: Comparison, classes: Sequence[str], models: Sequence[str]) -> None:
    from hocal.decisions.losses import LOSS_NAMES

    name = LOSS_NAMES[found.metric]
    print_table(
        "Comparison",
        {
            "items": found.n_items,
            f"{name} of {models[0]}, the first": _limits(found.first),
            f"{name} of {models[1]}, the second": _limits(found.second),
            "second less first": _limits(found.difference),
            "share of the possible gain": _limits(found.share_closed),
        },
    )
    rows = [
        [classes[number], str(part.n_items), _limits(part.difference)]
        for number, part in found.per_class.items()
    ]
    print_rows("By the class that the first predicts", ["", "items", "second less first"], rows)
    typer.echo(str(found))
    typer.echo(f"Confidence {found.confidence:g}. {' '.join(found.assumptions)}")


def _limits(interval: Interval) -> str:
    from hocal.decisions.losses import decimal

    estimate, lower, upper = (decimal(end) for end in interval)
    return f"{estimate} [{lower}, {upper}]"
