"""Potato: one folder for each annotator, or one table or file of all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from hocal.annotations.exports.files import ExportFile, Record
from hocal.annotations.exports.protocol import Labels, Response, as_name

__all__ = ["Potato"]

STATE = "instance_id_to_label_to_value"  # of a person's state, by item
# files of an annotator's folder, the best first; the others there repeat them or are settings
OWN = ("annotated_instances.jsonl", "user_state.json")
SEPARATORS = (":::", ".")  # between question and label in a table; versions differ
ABOUT = {"user", "user_id", "instance_id", "displayed_text"}
FREE = ("text_box", "free_response")  # what a box for free text is called; no class
NOT_CHOSEN = ("", "false", "none")  # in an option that was not ticked


class Potato:
    """Reads output of Potato."""

    name = "potato"
    title = "Potato"
    annotators = "Give the whole output folder, which has a folder for each annotator."

    def choose(self, names: Sequence[str]) -> list[str]:
        """Return the files of the annotators; those that repeat them for all are not read twice."""
        for own in OWN:
            found = [name for name in names if PurePosixPath(name).name == own and "/" in name]
            if found:
                return found
        return list(names)

    def recognises(self, file: ExportFile) -> bool:
        """Know instances with label annotations, a person's state, and tables of both."""
        if file.is_table:
            header = set(file.header)
            return "instance_id" in header and bool(header & {"user", "user_id"})
        first = file.first
        flat = {"instance_id", "user_id", "labels"} <= first.keys()
        return flat or "label_annotations" in first or STATE in first

    def responses(self, file: ExportFile) -> Iterator[Response]:
        """Give what each person said about each instance."""
        for record in file.records:
            if STATE in record:
                yield from _of_state(record)
            elif file.is_table:
                yield _response(record, _columns(record), as_name(_person(record)))
            else:
                given = record.get("label_annotations", record.get("labels"))
                person = as_name(_person(record)) or (file.folder or None)
                yield _response(record, given if isinstance(given, dict) else {}, person)


def _person(record: Record) -> Any:
    return record.get("user") or record.get("user_id")


def _response(record: Record, given: Mapping[str, Any], person: str | None) -> Response:
    item = as_name(record.get("id", record.get("instance_id")))
    answers = {str(question): _chosen(labels) for question, labels in given.items()}
    return Response(item, record | {"id": item, "instance_id": item}, person, answers)


def _chosen(labels: Any) -> Labels | None:
    """Return the labels that are marked, as in {"positive": "true"}; None for free text."""
    if not isinstance(labels, Mapping):
        return None if isinstance(labels, (list, dict)) else ((labels,) if labels else ())
    nested = labels.get("labels")
    marks = nested if isinstance(nested, Mapping) else labels
    if any(name in FREE for name in marks):
        return None
    return tuple(name for name, mark in marks.items() if str(mark).lower() not in NOT_CHOSEN)


def _columns(record: Record) -> dict[str, dict[str, Any]]:
    """Return the columns `question:::label` or `question.label` of a table, by question."""
    given: dict[str, dict[str, Any]] = {}
    for name, value in record.items():
        if name in ABOUT or name.endswith("._spans"):
            continue
        separator = next((mark for mark in SEPARATORS if mark in name), None)
        if separator is not None:
            question, _, label = name.partition(separator)
            given.setdefault(question, {})[label] = value
    return given


def _of_state(record: Record) -> Iterator[Response]:
    """Give what a person's state holds, by item: questions, or pairs of a label and its value."""
    for item, given in record[STATE].items():
        yield _response({"id": item}, _pairs(given), as_name(record.get("user_id")))


def _pairs(given: Any) -> dict[str, Any]:
    if isinstance(given, dict):
        return given
    answers: dict[str, dict[str, Any]] = {}
    for label, value in given:
        answers.setdefault(str(label["schema"]), {})[str(label["name"])] = value
    return answers
