"""LeWiDi: the JSON of the shared tasks on learning with disagreements, one object of all items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hocal.annotations.exports.files import ExportFile, Record, refuse
from hocal.annotations.exports.protocol import Response, as_name

__all__ = ["Lewidi"]

QUESTION = "annotations"


class Lewidi:
    """Reads data of the LeWiDi shared tasks."""

    name = "lewidi"
    title = "LeWiDi"
    annotators = "Take the files that have `annotators` beside `annotations`."

    def choose(self, names: Sequence[str]) -> list[str]:
        """Return all files but those about the annotators themselves."""
        return [name for name in names if not name.endswith("_annotators_meta.json")]

    def recognises(self, file: ExportFile) -> bool:
        """Know an object of objects that have annotations."""
        content = file.content
        if not isinstance(content, dict) or not content:
            return False
        first = next(iter(content.values()))
        return isinstance(first, dict) and QUESTION in first and "soft_label" in first

    def responses(self, file: ExportFile) -> Iterator[Response]:
        """Give each annotation; items of several files are told apart by the file's name."""
        for name, record in file.content.items():
            if not isinstance(record, dict):
                raise refuse("must hold an object for each item", where=_place(file, name))
            item = name if file.alone else f"{file.stem}/{name}"
            text = record.get("text")
            fields = record | {"id": item} | (text if isinstance(text, dict) else {})
            for person, given in _pairs(record, _place(file, name)):
                labels = tuple(part.strip() for part in given.split(",") if part.strip())
                yield Response(item, fields, person, {QUESTION: labels})


def _place(file: ExportFile, name: str) -> str:
    return f"in {file.name}, item {name!r}"


def _pairs(record: Record, place: str) -> Iterator[tuple[str | None, str]]:
    """Give person and annotation: {"Ann1": "0"} of 2025, or two lists as text of 2023."""
    given = record.get(QUESTION)
    if isinstance(given, Mapping):
        yield from ((as_name(person), _text(label)) for person, label in given.items())
        return
    labels = _split(given)
    people = _split(record.get("annotators")) or [""] * len(labels)
    if len(people) != len(labels):
        rule = "must have as many annotators as annotations"
        raise refuse(rule, value=f"{len(people)} and {len(labels)}", where=place)
    yield from ((as_name(person), label) for person, label in zip(people, labels, strict=True))


def _split(text: Any) -> list[str]:
    return [part.strip() for part in str(text).split(",")] if text else []


def _text(label: Any) -> str:
    if isinstance(label, list):
        return ",".join(map(str, label))
    return "" if label is None else str(label)
