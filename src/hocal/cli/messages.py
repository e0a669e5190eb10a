"""What people see besides results: errors in one line, and progress on a terminal."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Any, Self

__all__ = ["Progress", "interrupted", "is_bad_input", "note", "one_line", "working"]

DELAY = 1.0  # seconds before a progress bar or a spinner appears

_ENGINES = ("_duckdb", "duckdb", "py4j", "pyspark")
_OPTION = re.compile(
    r'\b(missing|unknown|duplicates|unlabelled|unpredicted)="(\w+)"'
)  # as Python writes it
_PHRASES = {  # of the library, as the command line has to put them
    "Exactly one of `label` and `count_columns`": "Exactly one of --label and --count-columns",
    "add them to `classes`": "add them to --classes",
}
_CSV_LINE = re.compile(r"CSV Error on Line: (\d+)\s*\nOriginal Line: (.*)")
_CSV_FILE = re.compile(r"^\s*file = (.*)$", re.MULTILINE)
_CSV_REASON = re.compile(
    r"^(?:Expected Number|Error when|Value with|Invalid unicode|Maximum line).*$", re.MULTILINE
)


def interrupted(error: BaseException) -> bool:
    """Tell whether DuckDB ended a query because of Ctrl-C; it says so with a RuntimeError."""
    return type(error) is RuntimeError and "interrupted" in str(error)


def is_bad_input(error: BaseException) -> bool:
    """Tell errors about what the user gave from mistakes in the code."""
    missing_extra = isinstance(error, ImportError) and "pip install" in str(error)
    return missing_extra or isinstance(error, (ValueError, OSError)) or _root(error) in _ENGINES


def one_line(error: BaseException) -> str:
    """Return the useful part of an error as one line."""
    text = str(error)
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.strerror}: {error.filename}"
    elif "duckdb" in _root(error):
        text = _duckdb_line(text)
    elif _root(error) in _ENGINES:
        text = text.split("JVM stacktrace")[0].split("\n\tat ")[0]
    elif text.startswith("No calibrator at "):
        text += " Make one with `hocal fit`."
    for python, options in _PHRASES.items():
        text = text.replace(python, options)
    return " ".join(_OPTION.sub(r"--\1 \2", text).split())


def note(text: str) -> None:
    """Say something that is no error beside a result, on stderr."""
    print(f"hocal: {text}", file=sys.stderr)


def _root(error: BaseException) -> str:
    return type(error).__module__.partition(".")[0]


def _duckdb_line(text: str) -> str:
    """Keep file, line and reason of a CSV error, else the first paragraph without the kind of error."""
    line, file, reason = (pattern.search(text) for pattern in (_CSV_LINE, _CSV_FILE, _CSV_REASON))
    if line and file:
        why = reason[0].rstrip(".") if reason else "cannot be read"
        return f"{file[1]}, line {line[1]}: {why}. The line is: {line[2]}"
    text = re.split(r"\n\s*\n|\nPossible |\nLINE ", text)[0]
    if text.startswith("Out of Memory Error"):
        return f"{text}. Raise --memory-limit."
    return re.sub(r"^[A-Z][A-Za-z ]+ Error: ", "", text)


@contextmanager
def working(text: str) -> Iterator[Callable[[str], object]]:
    """Show a spinner on a terminal while something takes long; give a function that changes its text."""
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


class Progress:
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
