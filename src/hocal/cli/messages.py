"""What people see besides results: errors in one line, and progress on a terminal."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Any, Self

import typer

from hocal._base.errors import InputError, Setting

__all__ = [
    "FileError",
    "ProgressBar",
    "called",
    "interrupted",
    "is_bad_input",
    "is_help",
    "note",
    "one_line",
    "working",
]

DELAY = 1.0  # seconds before a progress bar or a spinner appears

# packages whose errors are about tables, memory or queries
_ENGINES = ("_duckdb", "duckdb", "py4j", "pyspark")
# of options and arguments as they were typed; typer has no public name for all of them
_UsageError: Any = typer.BadParameter.__mro__[1]
# what the command line calls the tables of the Python interface
_TABLES = {
    "probabilities": "PROBABILITIES",
    "first": "FIRST",
    "second": "SECOND",
    "FIRST": "FIRST",
    "SECOND": "SECOND",
    "counts": "LABELS",
    "labels": "LABELS",
    "table": "LABELS",
    "MODEL": "MODEL",
}
# the options that the command line has for arguments of the Python interface
_OPTIONS = {
    "alpha": "--alpha",
    "annotator": "--annotator",
    "budget": "--budget",
    "by": "--by",
    "cell": "--cell",
    "cells": "--cell",
    "classes": "--classes",
    "confidence": "--confidence",
    "count_columns": "--count-columns",
    "data_home": "--data-home",
    "duplicates": "--duplicates",
    "engine": "--engine",
    "entropy": "--entropy",
    "epsilon": "--epsilon",
    "features": "--features",
    "floor": "--floor",
    "gold": "--gold",
    "in_order": "--in-order",
    "item": "--item",
    "k": "--k",
    "label": "--label",
    "limit": "--limit",
    "loss": "--loss",
    "method": "--method",
    "missing": "--missing",
    "n_bins": "--n-bins",
    "n_cells": "--n-cells",
    "n_classes": "--n-classes",
    "n_items": "--n-items",
    "n_resamples": "--n-resamples",
    "n_simulations": "--n-simulations",
    "n_slices": "--n-slices",
    "objective": "--objective",
    "panel_size": "--panel-size",
    "probability_columns": "--probability-columns",
    "question": "--question",
    "random_state": "--random-state",
    "several": "--several",
    "time": "--time",
    "title": "--title",
    "tool": "--tool",
    "unknown": "--unknown",
    "unlabelled": "--unlabelled",
    "unpredicted": "--unpredicted",
    "width": "--width",
}


class FileError(InputError):
    """A file that will not do; the argument is its path, shown without quotes."""

    @property
    def subject(self) -> str:
        """The path as it was typed."""
        return self.argument


def interrupted(error: BaseException) -> bool:
    """Tell whether DuckDB ended a query because of Ctrl-C; it says so with a RuntimeError."""
    return type(error) is RuntimeError and "interrupted" in str(error)


def is_bad_input(error: BaseException) -> bool:
    """Tell errors about what the user gave from mistakes in the code.

    An ImportError of the import system names a module; one that says what to install does not.
    """
    missing_extra = isinstance(error, ImportError) and error.name is None
    ours = isinstance(error, (ValueError, OSError, _UsageError))
    return missing_extra or ours or _package(error) in _ENGINES


def is_help(error: BaseException) -> bool:
    """Tell whether help was printed because nothing was typed, which typer says with an error."""
    return type(error).__name__ == "NoArgsIsHelpError"


@contextmanager
def called(name: str) -> Iterator[None]:
    """Call a file what the command line calls it, in errors of the library about its `path`."""
    try:
        yield
    except InputError as error:
        if error.argument != "path":
            raise
        raise error.replace(argument=name) from error


def one_line(error: BaseException) -> str:
    """Return the useful part of an error as one line."""
    text = str(error)
    if isinstance(error, InputError):
        text = error.render(argument=_subject(error), write=_as_option)
    elif isinstance(error, _UsageError):
        text = f"{error.format_message().rstrip('.')}. See `{error.ctx.command_path} --help`."
    elif isinstance(error, OSError) and error.filename is not None:
        text = f"{error.strerror}: {error.filename}"
    elif _package(error) in _ENGINES:
        text = _engine_message(error)
    line = " ".join(text.split())
    # Names come from files and servers, and a terminal obeys characters that are not printed.
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in line)


def note(text: str) -> None:
    """Say something that is no error beside a result, on stderr."""
    print(f"hocal: {text}", file=sys.stderr)


def _subject(error: InputError) -> str:
    """Return what the command line calls the arguments that an error is about."""
    if isinstance(error, FileError):
        return error.subject
    known = {name: f"`{option}`" for name, option in _OPTIONS.items()} | _TABLES
    # errors of the command line itself name options
    return " and ".join(known.get(name, f"`{name}`") for name in error.arguments)


def _as_option(setting: Setting) -> str:
    """Write a setting as it is typed in a shell."""
    option = _OPTIONS.get(setting.argument, setting.argument)
    return option if setting.value is None else f"{option} {setting.value}"


def _package(error: BaseException) -> str:
    return type(error).__module__.partition(".")[0]


def _engine_message(error: BaseException) -> str:
    """Keep what helps of the message of DuckDB or Spark, which have no fields for it.

    Of an error in CSV that is file, line and reason; else the first paragraph without the kind of
    error.
    """
    text = str(error)
    if "duckdb" not in _package(error):
        return text.split("JVM stacktrace")[0].split("\n\tat ")[0]
    # DuckDB begins a line with the end of the one before where lines end with \r\n
    line = re.search(r"CSV Error on Line: (\d+)\s*\nOriginal Line: \n?(.*)", text)
    file = re.search(r"^\s*file = (.*)$", text, re.MULTILINE)
    reasons = r"^(?:Expected Number|Error when|Value with|Invalid unicode|Maximum line).*$"
    reason = re.search(reasons, text, re.MULTILINE)
    if line and file:
        why = reason[0].rstrip(".") if reason else "cannot be read"
        return f"{file[1]}, line {line[1]}: {why}. The line is: {line[2]}"
    paragraph = re.split(r"\n\s*\n|\nPossible |\nLINE ", text)[0]
    if type(error).__name__ == "OutOfMemoryException":
        return f"{paragraph}. Raise --memory-limit."
    return re.sub(r"^[A-Z][A-Za-z ]+ Error: ", "", paragraph)


@contextmanager
def working(text: str) -> Iterator[Callable[[str], object]]:
    """Show a spinner on a terminal while something takes long; give what changes its text."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    status = Console(stderr=True).status(text)
    timer = Timer(DELAY, status.start)
    timer.start()
    try:
        yield status.update
    finally:
        timer.cancel()
        timer.join()
        status.stop()


class ProgressBar:
    """A progress bar on a terminal, from the second on that the work takes; ``with`` ends it."""

    def __init__(self, *, in_bytes: bool = False) -> None:
        from rich import progress
        from rich.console import Console

        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.DownloadColumn() if in_bytes else progress.MofNCompleteColumn(),
            progress.TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._tasks: dict[str, Any] = {}
        self._start = time.monotonic()

    def update(self, text: str, done: int, total: int | None) -> None:
        """Say how much of a task is done; a task appears when it is first named."""
        if text not in self._tasks:
            self._tasks[text] = self._bar.add_task(text, total=total)
        if time.monotonic() - self._start >= DELAY:
            self._bar.start()
        self._bar.update(self._tasks[text], completed=done, total=total)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
