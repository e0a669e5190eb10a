"""Files of an export: a file, a folder or a zip, read as text once and taken apart."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from hocal._base.errors import InputError

__all__ = ["AGAIN", "ENDINGS", "ExportFile", "open_export", "refuse", "simple_ending"]

# of the files that tools write; other files of a folder or zip are none of ours
ENDINGS = (".json", ".jsonl", ".csv", ".tsv")
# of everything that is unpacked: far beyond any export, and what a machine with little memory holds
MAX_BYTES = 1 << 30
MAX_ENTRIES = 200_000  # of a folder with all folders in it: the root of a disk is no export
# files in a folder or zip: one per person, or one per task in cloud storage
MAX_FILES = 100_000
AGAIN = "It may be damaged or cut off: export it again."

Record = dict[str, Any]


@dataclass(frozen=True)
class ExportFile:
    """One text file of an export; what it holds is taken apart when asked for, and only once.

    Attributes
    ----------
    name : str
        Its path inside the folder or zip, or the name of the file.
    text : str
        Its content.
    alone : bool
        Whether it is the export, and no part of a folder or zip.
    """

    name: str
    text: str
    alone: bool = True

    @property
    def stem(self) -> str:
        """The name without folders and endings: the person, where there is one file for each."""
        name = PurePosixPath(self.name).name.removesuffix(".gz")
        return name.removesuffix(simple_ending(name))

    @property
    def folder(self) -> str:
        """The name of the folder that it lies in; empty if it lies at the top."""
        return PurePosixPath(self.name).parent.name

    @cached_property
    def content(self) -> Any:
        """What JSON holds; a list of the objects of JSON lines; None for CSV and TSV."""
        if self.is_table:
            return None
        return _parse_lines(self) if _has_lines(self.text) else _parse_json(self, self.text, 1)

    @cached_property
    def records(self) -> list[Record]:
        """The rows of a table, or the objects of a list of JSON; empty where it is no such list."""
        if self.is_table:
            return _parse_table(self)
        content = self.content if isinstance(self.content, list) else [self.content]
        return content if all(isinstance(record, dict) for record in content) else []

    @property
    def first(self) -> Record:
        """The first record, by which a tool knows its own."""
        return self.records[0] if self.records else {}

    @cached_property
    def header(self) -> list[str]:
        """The names of the columns of CSV and TSV; empty for JSON."""
        return next(_read_rows(self), []) if self.is_table else []

    @property
    def is_table(self) -> bool:
        """Whether it is CSV or TSV."""
        return simple_ending(self.name) in (".csv", ".tsv")

    def place(self, row: int) -> str:
        """Say in words where a record is, counted from 1."""
        return f"in {self.name}, record {row + 1}"


def simple_ending(name: str) -> str:
    """Return the ending of a file in lower case, without .gz."""
    return PurePosixPath(name.lower().removesuffix(".gz")).suffix


def refuse(rule: str, **fields: Any) -> InputError:
    """Return an error about the export as a whole."""
    return InputError("path", rule, **fields)


def open_export(path: str | Path) -> list[ExportFile]:
    """Read the text files of an export, in the order of their names; nothing is written."""
    where = Path(path)
    if not where.exists():
        raise refuse("must name a file or a folder", value=f"{str(path)!r}, which is not there")
    if where.is_dir():
        found = _folder(where)
    elif zipfile.is_zipfile(where):
        found = _zip(where)
    else:
        return [ExportFile(where.name, _decode(_limited(where), where.name))]
    files = [ExportFile(name, _decode(data, name), alone=False) for name, data in found]
    if not files:
        raise refuse(f"must hold files that end in {', '.join(ENDINGS)}", value=f"none in {path}")
    return files


def _folder(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Give the files in a folder and the folders in it; links that lead out of it are refused."""
    root = folder.resolve()
    left = MAX_BYTES
    listed = list(islice(folder.rglob("*"), MAX_ENTRIES))
    if len(listed) == MAX_ENTRIES:
        rule = f"must be a folder with fewer than {MAX_ENTRIES:,} entries"
        raise refuse(rule, value=str(folder))
    paths = sorted(path for path in listed if _is_ours(path.name) and path.is_file())
    _check_number(len(paths))
    for path in paths:
        name = path.relative_to(folder).as_posix()
        if not path.resolve().is_relative_to(root):
            raise refuse("must hold its files itself", value=f"a link to elsewhere: {name}")
        data = _limited(path, left)
        left -= len(data)
        yield name, data


def _zip(path: Path) -> Iterator[tuple[str, bytes]]:
    """Give the files of a zip from memory: nothing is unpacked onto the disk."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if _is_ours(member.filename)]
            _check_number(len(members))
            left = MAX_BYTES
            for member in sorted(members, key=lambda member: member.filename):
                _check_name(member.filename)
                with archive.open(member) as stream:
                    data = _unpack(stream, member.filename, left)
                left -= len(data)
                yield member.filename, data
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise refuse(
            "must be a whole zip", value=f"something else: {error}", remedy=AGAIN
        ) from error
    except RuntimeError as error:  # an encrypted member
        raise refuse("must be a zip without a password", value=str(error)) from error


def _is_ours(name: str) -> bool:
    """Tell data from pictures, settings and what systems add, such as __MACOSX/._anna.jsonl."""
    parts = PurePosixPath(name).parts
    hidden = any(part.startswith((".", "__MACOSX")) and part != ".." for part in parts)
    return simple_ending(name) in ENDINGS and not hidden


def _check_name(name: str) -> None:
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if ".." in parts or name.startswith(("/", "\\")) or ":" in name:
        raise refuse("must hold names inside itself", value=repr(name), remedy="Export it again.")


def _check_number(n_files: int) -> None:
    if n_files > MAX_FILES:
        raise refuse(f"must hold at most {MAX_FILES:,} files", value=f"{n_files:,}")


def _limited(path: Path, left: int = MAX_BYTES) -> bytes:
    """Return the bytes of a file, unpacked where it ends in .gz."""
    try:
        open_ = gzip.open if path.name.lower().endswith(".gz") else open
        with open_(path, "rb") as stream:
            return _unpack(stream, path.name, left)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        found = f"something else: {error}"
        raise refuse("must be a whole gzip file", value=found, remedy=AGAIN) from error


def _unpack(stream: Any, name: str, left: int) -> bytes:
    """Read at most so many bytes, whatever the file says about its size."""
    data: bytes = stream.read(left + 1)
    if len(data) > left:
        rule = f"must hold at most {MAX_BYTES >> 20:,} MB of text in all"
        remedy = "Export the project in parts, or its answers without the data."
        raise refuse(rule, value=f"more in {name}", remedy=remedy)
    return data


def _decode(data: bytes, name: str) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise refuse("must be UTF-8", value=f"UTF-16 in {name}", remedy="Save it as UTF-8.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = f"the byte {data[error.start]:#04x}"
        line = data.count(b"\n", 0, error.start) + 1
        where = f"in {name}, line {line}"
        remedy = "Save it as UTF-8."
        raise refuse("must be UTF-8", value=found, where=where, remedy=remedy) from error


def _has_lines(text: str) -> bool:
    """Tell JSON lines, one whole object in each, from one value of JSON over many lines."""
    first, _, rest = text.strip().partition("\n")
    return first.startswith("{") and first.rstrip().endswith("}") and bool(rest.strip())


def _parse_lines(file: ExportFile) -> list[Any]:
    lines = enumerate(file.text.split("\n"), start=1)
    return [_parse_json(file, line, number) for number, line in lines if line.strip()]


def _parse_json(file: ExportFile, text: str, line: int) -> Any:
    _check_filled(file)
    try:
        return json.loads(text)
    except RecursionError as error:
        rule = "must be JSON that is nested less deeply"
        raise refuse(rule, where=f"in {file.name}, line {line}", remedy=AGAIN) from error
    except json.JSONDecodeError as error:
        place = f"in {file.name}, line {line + error.lineno - 1}, column {error.colno}"
        raise refuse("must be whole JSON", value=error.msg, where=place, remedy=AGAIN) from error
    except ValueError as error:  # a number of thousands of digits
        place = f"in {file.name}, line {line}"
        raise refuse("must be JSON", value=str(error), where=place, remedy=AGAIN) from error


def _parse_table(file: ExportFile) -> list[Record]:
    rows = _read_rows(file)
    names = next(rows, [])
    if len(set(names)) < len(names):
        raise refuse("must have distinct names of columns", value=", ".join(map(repr, names)))
    return [_name_entries(file, names, entries, i) for i, entries in enumerate(rows)]


def _name_entries(file: ExportFile, names: Sequence[str], entries: list[str], row: int) -> Record:
    if len(entries) != len(names):
        rule = f"must have {len(names)} entries in each row, as its first line has"
        raise refuse(rule, value=len(entries), where=file.place(row), remedy=AGAIN)
    return dict(zip(names, entries, strict=True))


def _read_rows(file: ExportFile) -> Iterator[list[str]]:
    """Give the rows of a table but empty ones, which Toloka puts between pages of tasks."""
    _check_filled(file)
    separator = "\t" if simple_ending(file.name) == ".tsv" else ","
    lines = csv.reader(io.StringIO(file.text, newline=""), delimiter=separator, strict=True)
    try:
        yield from (entries for entries in lines if any(entries))
    except csv.Error as error:
        where = f"in {file.name}, line {lines.line_num}"
        raise refuse("must be a table", value=str(error), where=where, remedy=AGAIN) from error


def _check_filled(file: ExportFile) -> None:
    if not file.text.strip():
        raise refuse(
            "must not be empty", value=f"nothing in {file.name}", remedy="Export it again."
        )
