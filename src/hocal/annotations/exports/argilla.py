"""Argilla: records with responses, nested, flattened or as a table of lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hocal.annotations.exports.files import ExportFile, Record
from hocal.annotations.exports.protocol import Labels, Response, as_labels, as_name

__all__ = ["Argilla"]

FLAT = ".responses"  # after the question, in flattened records
COUNTS = (None, "submitted")  # statuses of a response that counts; nested records have none


class Argilla:
    """Reads records of Argilla."""

    name = "argilla"
    title = "Argilla"
    annotators = "Export the records with their responses, which have `user_id`."

    def choose(self, names: Sequence[str]) -> list[str]:
        """Return all files but the settings of the dataset."""
        settings = ("settings.json", "dataset.json", "version.json", "config.json")
        return [name for name in names if not name.endswith(settings)]

    def recognises(self, file: ExportFile) -> bool:
        """Know records that have responses."""
        return not file.is_table and bool(_records(file)) and _has_responses(_records(file)[0])

    def responses(self, file: ExportFile) -> Iterator[Response]:
        """Give what each person answered about each record."""
        for record in _records(file):
            nested = record.get("fields")
            metadata = record.get("metadata")
            fields = dict(record)
            for part in (nested, metadata):
                fields |= part if isinstance(part, dict) else {}
            people: dict[str | None, list[tuple[str, Any, Any]]] = {}
            for question, person, status, value in _values(record):
                people.setdefault(person, []).append((question, status, value))
            for person, given in people.items():
                yield _response(as_name(record.get("id")), fields, person, given)


def _response(
    item: str | None,
    fields: Mapping[str, Any],
    person: str | None,
    given: Sequence[tuple[str, Any, Any]],
) -> Response:
    answers = {question: _labels(value) for question, _, value in given if question}
    refused = [str(status) for _, status, _ in given if status not in COUNTS]
    return Response(item, fields, person, answers, refused[0] if refused else "")


def _labels(value: Any) -> Labels | None:
    return as_labels(value.get("value")) if isinstance(value, dict) else as_labels(value)


def _records(file: ExportFile) -> list[Record]:
    """Return the records, also of one table of lists: {"id": [...], "label.responses": [...]}."""
    if len(file.records) != 1 or not all(isinstance(v, list) for v in file.first.values()):
        return file.records
    columns = file.first
    if "id" not in columns or len({len(values) for values in columns.values()}) != 1:
        return file.records
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _has_responses(record: Record) -> bool:
    if isinstance(record.get("responses"), (list, dict)):
        return "fields" in record or "status" in record
    return any(name.endswith(FLAT) for name in record) or any(map(_is_given, record.values()))


def _is_given(value: Any) -> bool:
    """Tell a column of a dataset with responses: a list of who answered what."""
    entries = value if isinstance(value, list) else []
    wanted = {"user_id", "value"}
    return bool(entries) and all(isinstance(e, dict) and wanted <= e.keys() for e in entries)


def _values(record: Record) -> Iterator[tuple[str, str | None, Any, Any]]:
    """Give question, person, status and value of each response, in all the forms of Argilla."""
    responses = record.get("responses")
    if isinstance(responses, dict):
        for question, given in responses.items():
            yield from _listed(question, given)
    elif isinstance(responses, list):
        for response in responses:
            for question, value in (response.get("values") or {"": None}).items():
                person = as_name(response.get("user_id"))
                yield question, person, response.get("status"), value
    else:
        yield from _flat(record)


def _flat(record: Record) -> Iterator[tuple[str, str | None, Any, Any]]:
    for name, value in record.items():
        if name.endswith(FLAT) and isinstance(value, list):
            n = len(value)
            people = record.get(f"{name}.users") or [None] * n
            statuses = record.get(f"{name}.status") or [None] * n
            question = name.removesuffix(FLAT)
            for person, status, given in zip(people, statuses, value, strict=True):
                yield question, as_name(person), status, given
        elif _is_given(value):
            yield from _listed(name, value)


def _listed(question: str, given: Any) -> Iterator[tuple[str, str | None, Any, Any]]:
    for entry in given if isinstance(given, list) else []:
        yield question, as_name(entry.get("user_id")), entry.get("status"), entry.get("value")
