"""Files of tables: their kinds by their endings, patterns of names, and the names in the first line of CSV."""

from __future__ import annotations

import csv
import glob
import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path

__all__ = ["SEPARATORS", "expand", "read_header", "table_kind"]

SEPARATORS = {".csv": ",", ".tsv": "\t"}


def table_kind(path: str) -> str:
    """Return ".csv", ".tsv" or ".parquet" by the ending of a path, which may add .gz to the first two."""
    name = path.rstrip("/").removesuffix(".gz").lower()
    for kind in (*SEPARATORS, ".parquet"):
        if name.endswith(kind) and not (kind == ".parquet" and path.endswith(".gz")):
            return kind
    raise ValueError(f"{path} must end in .csv, .tsv, .csv.gz, .tsv.gz or .parquet.")


def expand(path: str) -> list[str]:
    """Return the files that a path, a folder of Parquet files or a pattern stands for."""
    if "://" in path:
        return [path]  # of a store on the network, which the engine knows
    pattern = str(Path(glob.escape(path)) / "*.parquet") if Path(path).is_dir() else path
    files = [path] if Path(path).is_file() else sorted(glob.glob(pattern))
    if not files:
        raise ValueError(f"No file at {pattern}.")
    return files


def read_header(files: Sequence[str], separator: str) -> list[str]:
    """Return the names in the first line of CSV files, the same in all of them."""
    columns: list[str] = []
    for file in files:
        found = _first_line(file, separator)
        if not found:
            raise ValueError(f"{file} must begin with the names of its columns, got an empty file.")
        if len(set(found)) < len(found):
            raise ValueError(
                f"{file} must have distinct names of columns, got {', '.join(map(repr, found))}."
            )
        if columns and found != columns:
            raise ValueError(
                f"{file} must have the columns of {files[0]}, got {', '.join(map(repr, found))}."
            )
        columns = found
    return columns


def _first_line(file: str, separator: str) -> list[str]:
    """Return the entries of the first line; bytes that are no text are left to DuckDB, which knows their line."""
    if "://" in file:
        raise ValueError(
            f"{file} must be a file on this machine, or Parquet: CSV is not read over the network."
        )
    open_ = gzip.open if file.endswith(".gz") else open
    try:
        with open_(file, "rt", encoding="utf-8-sig", errors="replace", newline="") as lines:
            return next(csv.reader(lines, delimiter=separator), [])
    except (gzip.BadGzipFile, zlib.error, EOFError, csv.Error) as error:
        raise ValueError(f"{file} must be a table of text, got something else: {error}.") from error
