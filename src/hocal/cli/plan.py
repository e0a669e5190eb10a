"""`hocal plan`: how many items, and how many labels each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hocal._base.errors import InputError
from hocal.cli import options
from hocal.cli.messages import working
from hocal.cli.models import load_calibrator
from hocal.cli.options import split_list
from hocal.cli.outputs import print_json, print_table

if TYPE_CHECKING:
    from hocal import Mixtures, SnapshotCalibrator

WORDS = {  # what people read instead of the keys for machines
    "n_items": "items in a cell",
    "n_labels": "labels in a cell",
    "k": "labels per item",
    "width": "width of the aleatoric interval",
}


def plan(
    k: Annotated[
        str, typer.Option("--k", help="Labels per item; with --budget also several, as in 2,3,5.")
    ],
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
        int | None, typer.Option(help="Cell of the model to plan for, unless for --budget.")
    ] = None,
    confidence: options.Confidence = 0.95,
    entropy: options.Entropy = "shannon",
    n_simulations: Annotated[int, typer.Option(help="Simulated studies, for --budget.")] = 20,
    random_state: options.RandomState = 0,
    as_json: options.AsJson = False,
) -> None:
    """Plan a study: items for a --width or --epsilon, width of --n-items, or k for a --budget.

    Example: hocal plan --k 5 --width 0.3 --n-classes 2
    """
    if sum(goal is not None for goal in (width, epsilon, n_items, budget)) != 1:
        rule = "must be given, or else exactly one of --epsilon, --n-items and --budget"
        raise InputError("--width", rule)
    calibrator = None if model is None else load_calibrator(model)
    with working("Planning"):
        if budget is not None:
            choices = {
                "n_simulations": n_simulations,
                "entropy": entropy,
                "random_state": random_state,
            }
            result = _split_budget(calibrator, budget, _sizes(k), choices)
        else:
            if n_classes is None and calibrator is None:
                rule = "must be given, or --model, to know what is planned for"
                raise InputError("--n-classes", rule)
            study = {"n_classes": n_classes, "mixture": _mixture(calibrator, cell)}
            common = {"k": _one_size(k), "confidence": confidence, "entropy": entropy}
            result = _plan_cell(n_items, {"width": width, "epsilon": epsilon}, common, study)
    if as_json:
        print_json(result)
        return
    _show(result)
    if n_items is not None:
        _note_vacuous(result, n_classes if calibrator is None else calibrator.statistics_.n_classes)


def _split_budget(
    calibrator: SnapshotCalibrator | None, budget: int, k: list[int], choices: dict[str, Any]
) -> dict[str, Any]:
    """Return what each split of a budget is expected to give, and the best."""
    import hocal

    if calibrator is None:
        raise InputError("--budget", "must come with --model, a pilot study to simulate")
    found = hocal.plan_budget(calibrator, budget, k=k, **choices)
    return {
        "budget": budget,
        "best": found.best._asdict(),
        "splits": [row._asdict() for row in found.rows],
    }


def _plan_cell(
    n_items: int | None, wanted: dict[str, Any], common: dict[str, Any], study: dict[str, Any]
) -> dict[str, Any]:
    """Return how many items a cell needs, or how wide its interval will be with so many."""
    import hocal

    if n_items is not None:
        return {
            "width": hocal.interval_width(n_items, **common, **study),
            "n_items": n_items,
            **common,
        }
    needed = hocal.items_needed(**wanted, **common, **study)
    asked = {name: value for name, value in wanted.items() if value is not None}
    return {"n_items": needed, "n_labels": needed * common["k"], **asked, **common}


def _show(result: Mapping[str, Any]) -> None:
    if "splits" not in result:
        print_table("Plan", {WORDS.get(name, name): value for name, value in result.items()})
        return
    best = result["best"]
    rows = {
        f"k = {row['k']}{' *' * (row == best)}": (
            f"{row['n_items']} items, "
            f"aleatoric error {row['error']:.4f} +- {row['standard_error']:.4f}"
        )
        for row in result["splits"]
    }
    print_table(f"{result['budget']} labels (* best)", rows)


def _note_vacuous(result: Mapping[str, Any], n_classes: Any) -> None:
    """Say so where an interval will be the whole range of values."""
    from hocal.uncertainty.entropy import get_entropy

    if result["width"] >= get_entropy(result["entropy"]).maximum(n_classes) * (1 - 1e-9):
        typer.echo(
            "That is the range of all values, so the interval says nothing. "
            "Plan for more items or labels."
        )


def _sizes(k: str) -> list[int]:
    try:
        return [int(size) for size in split_list(k, "--k") or []]
    except ValueError as error:
        raise InputError(
            "--k", "must be whole numbers such as 5 or 2,3,5", value=repr(k)
        ) from error


def _one_size(k: str) -> int:
    sizes = _sizes(k)
    if len(sizes) != 1:
        raise InputError("--k", "must be one number unless for --budget", value=repr(k))
    return sizes[0]


def _mixture(calibrator: SnapshotCalibrator | None, cell: int | None) -> Mixtures | None:
    if calibrator is None:
        if cell is not None:
            rule = "must be given with --cell, which is one of its cells"
            raise InputError("--model", rule, value=cell)
        return None
    n_cells = calibrator.statistics_.n_cells
    if cell is None or not 0 <= cell < n_cells:
        rule = f"must choose a cell of the model, from 0 to {n_cells - 1}"
        raise InputError("--cell", rule, value=str(cell))
    return calibrator.cell_mixtures_[[cell]]
