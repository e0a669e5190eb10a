"""Label Studio: JSON with all annotations of each task, JSON-MIN and CSV with one row for each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hocal.annotations.exports.files import ExportFile, Record, refuse
from hocal.annotations.exports.protocol import Labels, Response, as_labels, as_name

__all__ = ["LabelStudio"]

# where a result keeps what was chosen; any other key says which region of the task it is about
CHOICES = ("choices", "rating", "selected", "taxonomy")
# of JSON-MIN and CSV, about the annotation
ABOUT = {"id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time", "agreement"}


class LabelStudio:
    """Reads exports of Label Studio."""

    name = "label-studio"
    title = "Label Studio"
    annotators = "Export JSON, which has `completed_by` in each annotation."

    def choose(self, names: Sequence[str]) -> list[str]:
        """Return all files: cloud storage has one for each annotation."""
        return list(names)

    def recognises(self, file: ExportFile) -> bool:
        """Know tasks with annotations, and rows that name an annotation and its duration."""
        first = dict.fromkeys(file.header) if file.is_table else file.first
        return {"annotation_id", "lead_time"} <= first.keys() or _is_task(first)

    def responses(self, file: ExportFile) -> Iterator[Response]:
        """Give each annotation."""
        if file.is_table or not _is_task(file.first):
            yield from _minimal(file)
            return
        for row, record in enumerate(file.records):
            if not _is_task(record):
                raise refuse("must have annotations in each task", where=file.place(row))
            yield from _of_task(record)


def _is_task(record: Record) -> bool:
    """Tell a task with its annotations, or an annotation with its task as cloud storage has it."""
    annotations = record.get("annotations", record.get("completions"))
    if isinstance(annotations, list) and "data" in record:
        return all(isinstance(annotation, dict) for annotation in annotations)
    return isinstance(record.get("result"), list) and isinstance(record.get("task"), dict)


def _of_task(record: Record) -> Iterator[Response]:
    task = record["task"] if "result" in record else record
    listed = record.get("annotations", record.get("completions"))
    annotations = [record] if listed is None else listed
    data = task.get("data")
    fields = {"id": task.get("id"), **(data if isinstance(data, dict) else {})}
    truths = [_answers(a) for a in annotations if a.get("ground_truth")]
    gold = {name: labels for truth in truths for name, labels in truth.items() if labels}
    for annotation in annotations:
        cancelled = annotation.get("was_cancelled") or annotation.get("skipped")
        truth = "ground truth" if annotation.get("ground_truth") else ""
        yield Response(
            as_name(task.get("id")),
            fields,
            _person(annotation.get("completed_by")),
            _answers(annotation),
            "cancelled" if cancelled else truth,
            gold,
        )


def _person(who: Any) -> str | None:
    if isinstance(who, dict):
        return as_name(who.get("email") or who.get("id"))
    return as_name(who)


def _answers(annotation: Record) -> dict[str, Labels | None]:
    """Return what was chosen for the whole task, by the name of the control."""
    answers: dict[str, Labels | None] = {}
    results = annotation.get("result")
    for result in results if isinstance(results, list) else []:
        name = str(result.get("from_name"))
        labels = _chosen(result.get("value"))
        before = answers.get(name, ())
        answers[name] = None if labels is None or before is None else (*before, *labels)
    return answers


def _chosen(value: Any) -> Labels | None:
    """Return the labels of a result; None where it is about a region, or is no choice."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    kind, chosen = next(iter(value.items()))
    if kind not in CHOICES:
        return None
    return _paths(chosen) if kind == "taxonomy" else as_labels(chosen)


def _paths(chosen: Any) -> Labels:
    """Return branches of a taxonomy as text, such as "animal / cat"."""
    return tuple(" / ".join(map(str, path)) for path in chosen)


def _minimal(file: ExportFile) -> Iterator[Response]:
    """Give rows of JSON-MIN or CSV, in which data and answers lie side by side."""
    names = list(dict.fromkeys(name for record in file.records for name in record))
    questions = _between(names) or [name for name in names if name not in ABOUT]
    for record in file.records:
        answers = {name: _minimal_labels(record[name]) for name in questions if name in record}
        person = as_name(record.get("annotator"))
        yield Response(as_name(record.get("id")), record, person, answers)


def _between(names: Sequence[str]) -> list[str]:
    """Return the names after the task's number and before the person: answers are written there."""
    if "id" not in names or "annotator" not in names:
        return []
    return [name for name in names[names.index("id") : names.index("annotator")] if name != "id"]


def _minimal_labels(value: Any) -> Labels | None:
    """Return the labels of an answer: text, or {"choices": [...]}, which CSV holds as text."""
    if isinstance(value, str) and value.startswith(("{", "[")):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):  # a text that happens to begin so
            return (value,)
    if isinstance(value, Mapping):
        return _chosen({key: part for key, part in value.items() if key != "type"})
    return as_labels(value)
