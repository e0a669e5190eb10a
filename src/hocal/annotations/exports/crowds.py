"""Crowdsourcing platforms: batch results of Mechanical Turk and pool results of Toloka."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hocal.annotations.exports.files import ExportFile, Record, refuse
from hocal.annotations.exports.protocol import Labels, Response, as_labels, as_name

__all__ = ["MechanicalTurk", "Toloka"]

INPUT, OUTPUT, GOLDEN = "INPUT:", "OUTPUT:", "GOLDEN:"  # of the columns of Toloka
COUNTS = ("", "SUBMITTED", "APPROVED", "ACCEPTED")  # statuses of an assignment that counts
SEVERAL = "|"  # what Mechanical Turk puts between the boxes that were ticked


class MechanicalTurk:
    """Reads batch results of Amazon Mechanical Turk."""

    name = "mturk"
    title = "Mechanical Turk"
    annotators = "Download the batch results with the column `WorkerId`."

    def choose(self, names: Sequence[str]) -> list[str]:
        """Return all files, one for each batch."""
        return list(names)

    def recognises(self, file: ExportFile) -> bool:
        """Know rows with an assignment and answers."""
        return "HITId" in file.header and any(name.startswith("Answer.") for name in file.header)

    def responses(self, file: ExportFile) -> Iterator[Response]:
        """Give each assignment; those that were rejected, or are marked for it, do not count."""
        for row, record in enumerate(file.records):
            inputs = {
                name.removeprefix("Input."): value
                for name, value in record.items()
                if name.startswith("Input.")
            }
            status = record.get("AssignmentStatus", "")
            marked = record.get("Reject") or status == "Rejected"
            yield Response(
                as_name(record.get("HITId")),
                record | inputs,
                as_name(record.get("WorkerId")),
                _turk_answers(record, file.place(row)),
                "rejected" if marked else "",
            )


class Toloka:
    """Reads results of a pool of Toloka."""

    name = "toloka"
    title = "Toloka"
    annotators = "Download the results with the column `ASSIGNMENT:worker_id`."

    def choose(self, names: Sequence[str]) -> list[str]:
        """Return all files, one for each pool."""
        return list(names)

    def recognises(self, file: ExportFile) -> bool:
        """Know columns of output."""
        return any(name.startswith(OUTPUT) for name in file.header)

    def responses(self, file: ExportFile) -> Iterator[Response]:
        """Give each answer; that of a control task comes with the known one."""
        for record in file.records:
            inputs = _after(record, INPUT)
            alone = next(iter(inputs.values())) if len(inputs) == 1 else None
            golden = {name: _texts(value) for name, value in _after(record, GOLDEN).items()}
            status = str(record.get("ASSIGNMENT:status", ""))
            yield Response(
                as_name(record.get("ASSIGNMENT:task_id") or alone),
                record | inputs,
                as_name(record.get("ASSIGNMENT:worker_id")),
                {name: _texts(value) for name, value in _after(record, OUTPUT).items()},
                "" if status in COUNTS else status.lower(),
                {name: labels for name, labels in golden.items() if labels},
            )


def _after(record: Record, prefix: str) -> Record:
    found = {name: value for name, value in record.items() if name.startswith(prefix)}
    return {name.removeprefix(prefix): value for name, value in found.items()}


def _texts(value: str) -> Labels | None:
    """Return the labels of an entry of Toloka, which writes lists as JSON."""
    if not value.startswith(("[", "{")):
        return as_labels(value)
    try:
        return as_labels(json.loads(value))
    except (ValueError, RecursionError):  # a text that happens to begin so
        return (value,)


def _turk_answers(record: Record, place: str) -> dict[str, Labels | None]:
    """Return the answers of an assignment, of a column for each or of one column of JSON."""
    given = _after(record, "Answer.")
    whole = given.pop("taskAnswers", "")
    forms = _parse_answers(whole, place)
    for name, value in given.items():
        question, _, option = name.partition(".")
        if option:
            parts = forms.setdefault(question, {})
            if isinstance(parts, dict):
                parts[option] = value
        else:
            forms.setdefault(question, value.split(SEVERAL) if SEVERAL in value else value)
    return {name: _form_labels(value) for name, value in forms.items()}


def _parse_answers(text: str, place: str) -> Record:
    try:
        pages = json.loads(text or "[]")
    except (ValueError, RecursionError) as error:
        rule = "must hold JSON"
        column = "Answer.taskAnswers"
        raise refuse(rule, column=column, value=str(error), where=place) from error
    forms = pages if isinstance(pages, list) else [pages]
    return {name: value for form in forms if isinstance(form, dict) for name, value in form.items()}


def _form_labels(value: Any) -> Labels | None:
    """Return what was chosen: {"label": "cat"}, {"cat": true, "dog": false}, a text or a list."""
    if not isinstance(value, Mapping):
        return as_labels(value)
    if value.keys() <= {"label", "labels"}:
        chosen = value.get("label") or value.get("labels")
        return _texts(chosen) if isinstance(chosen, str) else as_labels(chosen)
    marks = {option: str(mark).lower() for option, mark in value.items()}
    if not set(marks.values()) <= {"true", "false", "", "none"}:
        return None
    return tuple(option for option, mark in marks.items() if mark == "true")
