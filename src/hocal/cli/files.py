"""Files of tables: their kinds by their endings, patterns of names, and the first line of CSV."""

from __future__ import annotations

import csv
import glob
import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path

from hocal.cli.messages import FileError

__all__ = ["ENDINGS", "SEPARATORS", "expand", "read_header", "table_kind"]

SEPARATORS = {".csv": ",", ".tsv": "\t"}
# of tables
ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")


def table_kind(path: str) -> str:
    """Return ".csv", ".tsv" or ".parquet" by the ending of a path; the first two may add .gz."""
    name = path.rstrip("/").removesuffix(".gz").lower()
    for kind in (*SEPARATORS, ".parquet"):
        if name.endswith(kind) and not (kind == ".parquet" and path.endswith(".gz")):
            return kind
    raise FileError(path, "must end in .csv, .tsv, .csv.gz, .tsv.gz or .parquet")


def expand(path: str) -> list[str]:
    """Return the files that a path, a folder of Parquet files or a pattern stands for."""
    if "://" in path:
        return [path]  # of a store on the network, which the engine knows
    if Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir()):
        raise FileError(path, "must be a file", value="a pipe or a device, which may never end")
    pattern = str(Path(glob.escape(path)) / "*.parquet") if Path(path).is_dir() else path
    files = [path] if Path(path).is_file() else sorted(glob.glob(pattern))
    if not files:
        raise FileError(pattern, "must name a file or several", value="none")
    return files


def read_header(files: Sequence[str], separator: str) -> list[str]:
    """Return the names in the first line of CSV files, the same in all of them."""
    columns: list[str] = []
    for file in files:
        found = _first_line(file, separator)
        listed = ", ".join(map(repr, found))
        if not found:
            raise FileError(file, "must begin with the names of its columns", value="an empty file")
        if len(set(found)) < len(found):
            raise FileError(file, "must have distinct names of columns", value=listed)
        if columns and found != columns:
            raise FileError(file, f"must have the columns of {files[0]}", value=listed)
        columns = found
    return columns


def _first_line(file: str, separator: str) -> list[str]:
    """Return the entries of the first line; DuckDB finds bytes that are no text, and their line."""
    if "://" in file:
        rule = "must be a file on this machine, or Parquet: CSV is not read over the network"
        raise FileError(file, rule)
    open_ = gzip.open if file.endswith(".gz") else open
    try:
        with open_(file, "rt", encoding="utf-8-sig", errors="replace", newline="") as lines:
            return next(csv.reader(lines, delimiter=separator), [])
    except (gzip.BadGzipFile, zlib.error, EOFError, csv.Error) as error:
        found = f"something else: {error}"
        raise FileError(file, "must be a table of text", value=found) from error
