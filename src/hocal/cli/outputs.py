"""Results out: files that are complete or not there, tables for people, JSON for machines."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hocal._base.errors import InputError
from hocal._base.files import whole_file
from hocal.cli.files import SEPARATORS, table_kind
from hocal.cli.messages import FileError, called

if TYPE_CHECKING:
    from hocal.report import Report

__all__ = [
    "check_folder",
    "check_report_output",
    "open_writer",
    "output_file",
    "print_json",
    "print_rows",
    "print_table",
    "refuse_item_name",
    "report_file",
    "say_report",
    "table_file",
]


@contextmanager
def output_file(path: Path, *, force: bool, option: str = "--output") -> Iterator[Path]:
    """Give a temporary file that becomes the output when all went well; an existing one is kept."""
    check_folder(path, option)
    _refuse_existing(path, force)
    with whole_file(path) as temporary:
        yield temporary
        _refuse_existing(path, force)  # somebody else may have written it meanwhile


@contextmanager
def report_file(path: Path | None, *, force: bool) -> Iterator[Callable[[Report], object]]:
    """Give a function that writes a report, if any; what cannot be written is refused at once."""
    from hocal.report.report import format_of

    if path is None:
        yield lambda _: None
        return
    with called("--output"):
        form = format_of(path)
    with output_file(path, force=force) as temporary:
        yield lambda report: temporary.write_text(getattr(report, form)(), encoding="utf-8")


@contextmanager
def table_file(path: Path | None, option: str, *, force: bool) -> Iterator[Callable[[Any], None]]:
    """Give a function that writes an Arrow table, if any; other endings are refused at once."""
    if path is None:
        yield lambda _: None
        return
    name = path.name
    table_kind(name)
    with output_file(path, force=force, option=option) as temporary:
        yield lambda table: _write_table(table, temporary, name)


def _write_table(table: Any, path: Path, name: str) -> None:
    with open_writer(path, name, table.schema) as writer:
        writer.write_table(table)


def check_report_output(output: Path | None, *, as_json: bool, as_markdown: bool) -> None:
    """Refuse a report that would go nowhere, or be printed twice."""
    if (output is None and not as_json and not as_markdown) or (as_json and as_markdown):
        raise InputError("--output", "must be given, or one of --json and --markdown to print")


def say_report(made: Report, otherwise: str, as_json: bool, as_markdown: bool) -> None:
    """Print a report in the form that was asked for, or what is said otherwise."""
    if as_json:
        typer.echo(made.json())
    elif as_markdown:
        typer.echo(made.markdown(), nl=False)
    else:
        typer.echo(otherwise)


def refuse_item_name(item: str, columns: Iterable[str]) -> None:
    """Refuse a column of items with the name of another column of the table that is written."""
    if item in columns:
        rule = "must be another name than those of the columns that are written"
        remedy = "Rename the column in the files, and give --item its new name."
        raise InputError("--item", rule, value=repr(item), remedy=remedy)


@contextmanager
def open_writer(path: Path, name: str, schema: Any) -> Iterator[Any]:
    """Open a file for Arrow tables, of the kind that `name` ends with, to write rows to."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    kind = table_kind(name)
    if kind == ".parquet":
        with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
            yield writer
        return
    options = csv.WriteOptions(delimiter=SEPARATORS[kind])
    compressed = name.endswith(".gz")
    target = str(path)
    sink = pa.CompressedOutputStream(target, "gzip") if compressed else pa.OSFile(target, "wb")
    with sink, csv.CSVWriter(sink, schema, write_options=options) as writer:
        yield writer


def print_json(content: Mapping[str, Any]) -> None:
    """Print JSON that every reader accepts: a number that is not finite becomes null."""
    typer.echo(json.dumps(_plain(content), ensure_ascii=False, allow_nan=False, indent=2))


def print_table(title: str, rows: Mapping[str, Any]) -> None:
    """Print names and values, with colours on a terminal only."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        shown = f"{value:.4g}" if isinstance(value, float) else str(value)
        table.add_row(Text(name), Text(shown))
    Console().print(table)


def print_rows(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table with heads, its first column names and the others numbers."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for place, head in enumerate(heads):
        table.add_column(head, justify="right" if place else "left", style="" if place else "cyan")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


def check_folder(path: Path, option: str) -> None:
    """Refuse a file to write in a folder that is not there."""
    if not path.parent.is_dir():
        rule = "must be in a folder that is there"
        remedy = "Make the folder first, or choose another."
        raise InputError(option, rule, value=str(path), remedy=remedy)


def _refuse_existing(path: Path, force: bool) -> None:
    if path.is_dir():
        raise FileError(str(path), "must be a file", value="a folder")
    if path.exists() and not force:
        remedy = "Choose another output, or replace it with --force."
        raise FileError(str(path), "already exists", remedy=remedy)


def _plain(value: Any) -> Any:
    """Return a value made of dicts, lists, str, int, float, bool and None."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if hasattr(value, "tolist"):  # numpy arrays and scalars
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value
