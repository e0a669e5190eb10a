"""`hocal demo`: why two labels per item change everything, on digits that are hard to read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hocal.cli import options
from hocal.cli.messages import working
from hocal.cli.outputs import print_json, report_file

if TYPE_CHECKING:
    from hocal._base.typing import Array
    from hocal.cli.demonstration import Demonstration, ShownDigit

__all__ = ["demo"]

INTRODUCTION = (
    "A weak model reads digits, some of them noisy, blurred or blended from two. "
    "How much of its doubt is in the digits, so that people disagree as well, "
    "and how much is the model's own? In nats, mean over test items:"
)
EXPLANATION = (
    "The error is that of the aleatoric uncertainty of a cell, a group of like predictions. "
    "The true epistemic part is that of the cells; hocal also looks at the model's second "
    "guesses, which leaves less unknown than a cell does."
)
CERTIFICATE = (
    "labels per item prove about the aleatoric uncertainty of the largest cells, "
    "whatever the data look like:"
)
# from paper to ink; the second where a terminal has few characters
SHADES = (" ░▒▓█", " .:*#")


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "hocal-demo.html"
    ),
    items: Annotated[int, typer.Option(help="Digits; half calibrate, half test.", min=100)] = 6000,
    random_state: options.RandomState = 0,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Judge a weak reader of ambiguous digits: how right the estimates are, and a report.

    Digits from scikit-learn are made ambiguous by noise, blur and blends. A strong teacher knows
    how people would read them; labels are drawn from it, and its answers are the truth that
    estimates are held against.

    Example: hocal demo --output digits.html
    """
    from hocal.cli.demonstration import demonstrate

    with report_file(output, force=force) as write, working("starting") as progress:
        shown = demonstrate(n_items=items, random_state=random_state, progress=progress)
        write(shown.report)
    if as_json:
        print_json(_as_dict(shown) | {"report": output})
    else:
        _print(shown, output)


def _as_dict(shown: Demonstration) -> dict[str, Any]:
    means = {name: float(values.mean()) for name, values in shown.truth.as_dict().items()}
    return {
        "truth": means,
        "estimates": [estimate._asdict() for estimate in shown.estimates],
        "cells": [cell._asdict() for cell in shown.cells],
        "digits": [_without_pixels(digit) for digit in shown.digits],
    }


def _without_pixels(digit: ShownDigit) -> dict[str, Any]:
    fields = digit._asdict()
    del fields["darkness"]
    return fields


def _print(shown: Demonstration, output: Path) -> None:
    from rich.console import Console

    console = Console()
    console.print(f"{INTRODUCTION}\n")
    console.print(_estimates_table(shown))
    console.print(f"\n{EXPLANATION}\n\nWhat {shown.estimates[-1].k} {CERTIFICATE}\n")
    console.print(_cells_table(shown))
    for digit in shown.digits:
        console.print(f"\n[bold]{digit.title}:[/] item {digit.item} of the report", highlight=False)
        console.print(_picture(digit, console.encoding))
    console.print(
        f"\nThe report with the digits themselves: {output}", highlight=False, soft_wrap=True
    )


def _estimates_table(shown: Demonstration) -> Any:
    from rich.table import Table

    table = Table("labels per item", "method", box=None, pad_edge=False)
    for name in ("aleatoric", "epistemic", "error"):
        table.add_column(name, justify="right")
    for line in shown.estimates:
        ours = line.method == shown.estimates[-1].method
        numbers = (f"{value:.3f}" for value in (line.aleatoric, line.epistemic, line.error))
        table.add_row(str(line.k), line.method, *numbers, style="bold" if ours else None)
    means = shown.truth.aleatoric.mean(), shown.truth.epistemic.mean()
    table.add_row("", "the truth", *(f"{value:.3f}" for value in means), "", end_section=True)
    return table


def _cells_table(shown: Demonstration) -> Any:
    from rich.table import Table

    table = Table("the model says", box=None, pad_edge=False)
    for name in ("items", "95% interval", "estimate", "truth"):
        table.add_column(name, justify="right")
    for cell in shown.cells:
        lower, upper = cell.interval
        numbers = (
            str(cell.n_items),
            f"{lower:.2f} to {upper:.2f}",
            f"{cell.estimate:.3f}",
            f"{cell.truth:.3f}",
        )
        table.add_row(cell.name, *numbers)
    return table


def _picture(digit: ShownDigit, encoding: str) -> Any:
    """Return a digit in shades, with what is said about it at its side."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    shades = SHADES[0] if encoding.lower().startswith("utf") else SHADES[1]
    grid.add_row(_shade(digit.darkness, shades), f"{digit.text} {digit.advice}")
    return grid


def _shade(darkness: Array, shades: str) -> str:
    """Return a picture in characters; a pixel is two wide, about as much as it is high."""
    steps = (darkness * (len(shades) - 1)).round().astype(int)
    return "\n".join("".join(2 * shades[step] for step in row) for row in steps)
