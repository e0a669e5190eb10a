"""Results out: files that are complete or not there, tables for people, JSON for machines."""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from hocal.cli._files import SEPARATORS, table_kind

__all__ = ["open_writer", "output_file", "print_json", "print_table", "refuse_existing"]


@contextmanager
def output_file(path: Path, *, force: bool) -> Iterator[Path]:
    """Give a temporary file beside the target, which takes the target's place when all went well.

    It is made at once, so that a folder that cannot be written is known before the work begins. After a
    kill a temporary may stay behind; it is never read, and its name is never used again.
    """
    refuse_existing(path, force)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        temporary.touch(exist_ok=False)
    except OSError as error:
        raise ValueError(f"{path} cannot be written: {error.strerror}.") from error
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        refuse_existing(path, force)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def open_writer(path: Path, name: str, schema: Any) -> Iterator[Any]:
    """Open a file for Arrow tables, of the kind that the ending of `name` says; ``write_table`` adds rows."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    kind = table_kind(name)
    if kind == ".parquet":
        with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
            yield writer
        return
    options = csv.WriteOptions(delimiter=SEPARATORS[kind])
    sink = pa.CompressedOutputStream(str(path), "gzip") if name.endswith(".gz") else pa.OSFile(str(path), "wb")
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
        table.add_row(Text(name), Text(f"{value:.4g}" if isinstance(value, float) else str(value)))
    Console().print(table)


def refuse_existing(path: Path, force: bool) -> None:
    if path.is_dir():
        raise ValueError(f"{path} must be a file, got a folder.")
    if path.exists() and not force:
        raise ValueError(f"{path} is there already. Choose another output, or replace it with --force.")


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
