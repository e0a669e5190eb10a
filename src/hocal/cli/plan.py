"""`hocal plan`: how many items, and how many labels each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hocal._base.errors import InputError
from hocal._base.plurals import counted
from hocal.cli import options
from hocal.cli.engines import open_engine
from hocal.cli.items import count_items, label_options
from hocal.cli.messages import working
from hocal.cli.models import Model, load_model
from hocal.cli.option_groups import LabelColumns, PredictionColumns, grouped, refuse_idle
from hocal.cli.options import split_list
from hocal.cli.outputs import print_json, print_table

if TYPE_CHECKING:
    from hocal._base.typing import IntArray

WORDS = {  # what people read instead of the keys for machines
    "cell_name": "cell",
    "n_items": "items in a cell",
    "n_items_now": "items in this cell so far",
    "n_items_more": "more items for it",
    "n_labels": "labels in a cell",
    "k": "labels per item",
    "width": "width of the aleatoric interval",
}
HIDDEN = ("cell",)  # of a cell people read the name
SIZES = (2, 3, 5, 10)  # labels per item that are tried where none are named
SIZES_MORE = (1, 2, 3, 5)  # the same where labels are added to a study


@grouped
def plan(
    k: Annotated[
        str | None,
        typer.Option(
            "--k", help="Labels per item; with --budget also several, as in 2,3,5, or none."
        ),
    ] = None,
    width: Annotated[
        float | None, typer.Option(help="Wanted width of a cell's aleatoric interval.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Wanted calibration error of a cell.")
    ] = None,
    n_items: Annotated[
        int | None, typer.Option(help="Items in a cell: how wide will its interval be?")
    ] = None,
    budget: Annotated[
        int | None, typer.Option(help="Labels to spend: which k is best? Needs --model.")
    ] = None,
    n_classes: Annotated[
        int | None, typer.Option(help="Number of classes, unless a model tells.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="Model file of a pilot study, to plan for data like its.")
    ] = None,
    cell: Annotated[
        int | None,
        typer.Option(help="Cell of the model to plan for, unless for --budget; else the fullest."),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="LABELS",
            help="Table of the labels at hand: the budget is for more of them, not a new study.",
        ),
    ] = None,
    item: options.ItemOfModel = None,
    label: options.Label = None,
    count_columns: options.CountColumns = None,
    tool: options.Tool = None,
    names: options.Names = None,
    confidence: options.Confidence = 0.95,
    entropy: options.Entropy = "shannon",
    n_simulations: Annotated[int, typer.Option(help="Simulated studies, for --budget.")] = 20,
    random_state: options.RandomState = 0,
    as_json: options.AsJson = False,
) -> None:
    """Plan a study: items for a --width or --epsilon, width of --n-items, or k for a --budget.

    With --labels, a --budget is for more labels of the study at hand: of new items, or of the same
    ones. Which of them to ask about says `hocal next`.

    Example: hocal plan --k 5 --width 0.3 --n-classes 2
    """
    goals = {"--width": width, "--epsilon": epsilon, "--n-items": n_items, "--budget": budget}
    asked = [goal for goal, value in goals.items() if value is not None]
    if len(asked) != 1:
        rule = "must be given, or else exactly one of --epsilon, --n-items and --budget"
        raise InputError("--width", rule)
    _refuse_idle(asked[0], has_model=model is not None, has_labels=labels is not None)
    known = None if model is None else load_model(model, PredictionColumns(item=item))
    size = n_classes if known is None else len(known.classes)
    columns = LabelColumns(label, count_columns=count_columns, tool=tool, names=names)
    start = _totals(labels, known, columns)
    with working("Planning"):
        if budget is not None:
            result = _split_budget(
                known,
                budget,
                _sizes(k, budget, SIZES if start is None else SIZES_MORE),
                start,
                {"n_simulations": n_simulations, "entropy": entropy, "random_state": random_state},
            )
        else:
            common = {"k": _one_size(k), "confidence": confidence, "entropy": entropy}
            wanted = {"width": width, "epsilon": epsilon}
            result = _plan_cell(known, cell, n_items, wanted, common, size)
    if as_json:
        print_json(result)
        return
    _show(result)
    if n_items is not None:
        _note_vacuous(result, size)


def _refuse_idle(goal: str, *, has_model: bool, has_labels: bool) -> None:
    """Refuse options that would do nothing for this goal."""
    for_budget = goal == "--budget"
    if has_labels and not (for_budget and has_model):
        raise InputError("--labels", "must come with --budget and --model")
    if for_budget and not has_model:
        raise InputError("--budget", "must come with --model, a pilot study to simulate")
    simulated = None if for_budget else "unless with --budget"
    not_simulated = "with --budget" if for_budget else None
    no_model = None if has_model else "without --model, which has cells"
    without_labels = None if has_labels else "without --labels, which it is about"
    of_labels = ("--item", "--label", "--count-columns", "--tool", "--names")
    refuse_idle(
        {
            "--n-simulations": simulated,
            "--random-state": simulated,
            "--confidence": not_simulated and f"{not_simulated}: errors are simulated, not proved",
            "--cell": no_model or (not_simulated and f"{not_simulated}, which is for all cells"),
            "--entropy": "with --epsilon, which is about snapshots" * (goal == "--epsilon") or None,
            "--n-classes": "with --model, which knows it" if has_model else None,
        }
        | dict.fromkeys(of_labels, without_labels)
    )


def _totals(path: str | None, model: Model | None, columns: LabelColumns) -> IntArray | None:
    """Return the number of labels of each item at hand, if any; only their numbers matter."""
    from hocal._base.validation import label_totals

    if path is None or model is None:
        return None
    rules = dict.fromkeys(("missing", "unknown", "unlabelled", "unpredicted"), "drop")
    choices = label_options(path, columns, rules | {"duplicates": "keep"})
    with open_engine("duckdb") as read, working("Reading"):
        table = choices.open_alone(read, path, item=model.item)
        counted = count_items(table, choices, item=model.item, classes=model.classes)
    return label_totals(counted.counts)


def _split_budget(
    model: Model | None,
    budget: int,
    k: list[int],
    start: IntArray | None,
    choices: dict[str, Any],
) -> dict[str, Any]:
    """Return what each split of a budget is expected to give, and the best."""
    import hocal

    assert model is not None
    found = hocal.plan_budget(model.calibrator, budget, k=k, start=start, **choices)
    return {
        "budget": budget,
        "n_items_now": 0 if start is None else int((start > 0).sum()),
        "best": found.best._asdict(),
        "contenders": [row._asdict() for row in found.contenders],
        "splits": [row._asdict() for row in found.rows],
    }


def _plan_cell(
    model: Model | None,
    cell: int | None,
    n_items: int | None,
    wanted: dict[str, Any],
    common: dict[str, Any],
    n_classes: int | None,
) -> dict[str, Any]:
    """Return how many items a cell needs, or how wide its interval will be with so many."""
    import hocal

    if n_classes is None:
        raise InputError("--n-classes", "must be given, or --model, to know what is planned for")
    place = None if model is None else _cell(model, cell)
    mixture = None if model is None else model.calibrator.cell_mixtures_[[place]]
    study: dict[str, Any] = {"n_classes": n_classes, "mixture": mixture}
    if n_items is not None:
        width = hocal.interval_width(n_items, **common, **study)
        result = {"width": width, "n_items": n_items, **common}
    else:
        needed = hocal.items_needed(**wanted, **common, **study)
        asked = {name: value for name, value in wanted.items() if value is not None}
        result = {"n_items": needed, "n_labels": needed * common["k"], **asked, **common}
    return result if model is None else result | _about_cell(model, place or 0, result)


def _show(result: Mapping[str, Any]) -> None:
    if "splits" not in result:
        shown = {name: value for name, value in result.items() if name not in HIDDEN}
        print_table("Plan", {WORDS.get(name, name): value for name, value in shown.items()})
        return
    decided = len(result["contenders"]) == 1
    added = " more" if result["n_items_now"] else ""
    rows = {
        _split_name(row, added) + " *" * (decided and row == result["best"]): (
            f"{_split_items(row)}, "
            f"aleatoric error {row['error']:.4f} +- {row['standard_error']:.4f}"
        )
        for row in result["splits"]
    }
    title = counted(result["budget"], "more label" if added else "label")
    print_table(f"{title}{' (* best)' * decided}", rows)
    if not decided:
        even = ", ".join(_split_name(row, added) for row in result["contenders"])
        typer.echo(
            f"No winner: the simulations do not tell these apart: {even}. "
            "Take the most convenient, or raise --n-simulations."
        )


def _split_name(row: Mapping[str, Any], added: str) -> str:
    return f"k = {row['k']}" + (f", {row['items']} items" if added else "")


def _split_items(row: Mapping[str, Any]) -> str:
    which = "of the same " * (row["items"] == "same")
    return counted(row["n_items"], f"{which}item")


def _note_vacuous(result: Mapping[str, Any], n_classes: Any) -> None:
    """Say so where an interval will be the whole range of values."""
    from hocal.uncertainty.entropy import get_entropy

    if result["width"] >= get_entropy(result["entropy"]).maximum(n_classes) * (1 - 1e-9):
        typer.echo(
            "That is the range of all values, so the interval says nothing. "
            "Plan for more items or labels."
        )


def _sizes(k: str | None, budget: int | None, usual: Sequence[int]) -> list[int]:
    if k is None:
        return [size for size in usual if budget is None or size <= budget] or [1]
    try:
        return [int(size) for size in split_list(k, "--k") or []]
    except ValueError as error:
        raise InputError(
            "--k", "must be whole numbers such as 5 or 2,3,5", value=repr(k)
        ) from error


def _one_size(k: str | None) -> int:
    if k is None:
        raise InputError("--k", "must be given, unless for --budget")
    sizes = _sizes(k, None, ())
    if len(sizes) != 1:
        raise InputError("--k", "must be one number unless for --budget", value=repr(k))
    return sizes[0]


def _cell(model: Model, cell: int | None) -> int:
    """Return the cell to plan for: the one named, else that with most items."""
    n_items = model.calibrator.statistics_.n_items
    if cell is None:
        return int(n_items.argmax())
    if not 0 <= cell < len(n_items):
        rule = f"must choose a cell of the model, from 0 to {len(n_items) - 1}"
        raise InputError("--cell", rule, value=str(cell))
    return cell


def _about_cell(model: Model, cell: int, result: Mapping[str, Any]) -> dict[str, Any]:
    """Say which cell a plan is for, what it has, and how many more items it needs."""
    now = int(model.calibrator.statistics_.n_items[cell])
    about = {"cell": cell, "cell_name": model.cell_names()[cell], "n_items_now": now}
    if "n_labels" in result:
        about["n_items_more"] = max(int(result["n_items"]) - now, 0)
    return about
