"""What a tool must say about its exports, and what one person's response to one task is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from hocal.annotations.exports.files import ExportFile

__all__ = ["AnnotationTool", "Labels", "Response", "as_labels", "as_name"]

Labels: TypeAlias = tuple[Any, ...]


class Response(NamedTuple):
    """What one person answered about one item."""

    #: what the tool calls the item; None where only `fields` can tell
    item: str | None
    fields: Mapping[str, Any]  #: other names that the item could go by, such as its file or text
    annotator: str | None  #: who answered; None where the export does not say
    #: the labels that were chosen, for each question: several where several could be ticked, and
    #: None for an answer that is no choice about the whole item, such as spans or boxes
    answers: Mapping[str, Labels | None]
    #: why the response does not count, such as "cancelled"; empty where it does
    left_out: str = ""
    #: the known answers of a control task, for each question
    gold: Mapping[str, Labels] = {}


class AnnotationTool(Protocol):
    """An annotation tool whose exports can be read; `register_tool` makes one known.

    Attributes
    ----------
    name : str
        What people type, such as "label-studio".
    title : str
        What it is called, such as "Label Studio".
    annotators : str
        A sentence on what to do about an export that does not say who judged.
    """

    name: str
    title: str
    annotators: str

    def choose(self, names: Sequence[str]) -> list[str]:
        """Return the files of a folder or zip that hold judgements."""

    def recognises(self, file: ExportFile) -> bool:
        """Tell whether a file is an export of this tool, from its header or its first record."""

    def responses(self, file: ExportFile) -> Iterator[Response]:
        """Give every response in a file, those that do not count as well."""


def as_labels(value: Any) -> Labels | None:
    """Return the labels of an answer; None for one that is no choice, such as spans or boxes."""
    if value is None or value == "":
        return ()
    entries = value if isinstance(value, list) else [value]
    plain = [_plain(entry) for entry in entries]
    return None if None in plain else tuple(plain)


def as_name(value: Any) -> str | None:
    """Return the name of an item or a person as text; None where there is none."""
    return None if value is None or value == "" else str(value)


def _plain(entry: Any) -> Any:
    """Return text and whole numbers as they are, other numbers as text, and None for the rest."""
    if isinstance(entry, bool):
        return str(entry).lower()
    if isinstance(entry, float):
        return int(entry) if entry.is_integer() else str(entry)
    return entry if isinstance(entry, (str, int)) else None
