"""The typer application: one command per file, and what happens when a command fails."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from hocal._base.errors import InputError
from hocal.cli.check import check
from hocal.cli.compare import compare
from hocal.cli.data import data
from hocal.cli.demo import demo
from hocal.cli.evaluate import evaluate
from hocal.cli.fit import fit
from hocal.cli.labels import labels
from hocal.cli.messages import interrupted, is_bad_input, is_help, one_line
from hocal.cli.monitor import monitor
from hocal.cli.next import next_labels
from hocal.cli.plan import plan
from hocal.cli.predict import predict
from hocal.cli.report import report

app = typer.Typer(
    name="hocal",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    # bad input gets one line, a mistake of ours its plain traceback
    pretty_exceptions_enable=False,
    help=(
        "Split a classifier's uncertainty into disagreement in the data and ignorance of the model."
    ),
)
app.command("labels")(labels)
app.command("fit")(fit)
app.command("predict")(predict)
app.command("evaluate")(evaluate)
app.command("compare")(compare)
app.command("monitor")(monitor)
app.command("check")(check)
app.command("report")(report)
app.command("plan")(plan)
app.command("next")(next_labels)
app.add_typer(data, name="data")
app.command("demo")(demo)


def _show_version(wanted: bool) -> None:
    if wanted:
        from hocal import __version__

        typer.echo(f"hocal {__version__}")
        raise typer.Exit


def _import_modules(names: list[str]) -> list[str]:
    """Import the user's modules, such as those of partitions, also from the working directory."""
    if names:
        sys.path.append(os.getcwd())  # last, so that nothing in it takes the place of a library
    for name in names:
        try:
            import_module(name)
        except ImportError as error:
            raise InputError(
                "--import",
                "must name a module that can be imported",
                value=repr(name),
                remedy=f"{error}.",
            ) from error
    return names


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the version and exit.",
            metavar="",
            is_eager=True,
            callback=_show_version,
        ),
    ] = False,
    modules: Annotated[
        list[str],
        typer.Option(
            "--import",
            help="Import a module first, such as one with your own partition; can be repeated.",
            metavar="MODULE",
            callback=_import_modules,
        ),
    ] = [],  # noqa: B006 - typer never changes it
) -> None:
    pass


def _leave(number: int, _: object) -> None:
    sys.exit(128 + number)


def run(arguments: Sequence[str] | None) -> None:
    """Run a command; bad input becomes one line and exit code 2, unless HOCAL_TRACEBACK is set."""
    # As Ctrl-C does: what is half written is taken away on the way out.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _leave)
    try:
        # typer would say what is wrong with options in a box of five lines
        sys.exit(app(arguments, prog_name="hocal", standalone_mode=False) or 0)
    except Exception as error:
        if interrupted(error):
            sys.exit(130)
        if is_help(error):
            sys.exit(2)
        if os.environ.get("HOCAL_TRACEBACK") or not is_bad_input(error):
            raise
        print(f"hocal: {one_line(error)}", file=sys.stderr)
        sys.exit(2)
