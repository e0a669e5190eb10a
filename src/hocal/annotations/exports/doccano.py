"""doccano: JSON lines with the labels of a text or picture, one file for each person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hocal.annotations.exports.files import ExportFile, Record, refuse
from hocal.annotations.exports.protocol import Labels, Response, as_labels, as_name

__all__ = ["Doccano"]

QUESTION = "label"  # a project asks for one kind of label
SHARED = ("all", "unknown", "")  # files that are of nobody in particular


class Doccano:
    """Reads exports of doccano."""

    name = "doccano"
    title = "doccano"
    annotators = (
        "Let people annotate apart (the project must not share annotations across users) and give "
        "the zip, or a folder with one file for each person."
    )

    def choose(self, names: Sequence[str]) -> list[str]:
        """Return all files."""
        return list(names)

    def recognises(self, file: ExportFile) -> bool:
        """Know records with a text or file and a list of labels."""
        first = file.first
        known = {"text", "data", "filename"} & first.keys() and not file.is_table
        others = {"answer", "_input_hash", "annotation_id"} & first.keys()
        ours = known and not others and not isinstance(first.get("data"), dict)
        return bool(ours) and _is_labelled(first)

    def responses(self, file: ExportFile) -> Iterator[Response]:
        """Give the labels of each record, by the person whose file it is in."""
        owner = None if file.alone or file.stem in SHARED else file.stem
        for row, record in enumerate(file.records):
            if not _is_labelled(record):
                raise refuse("must have a list of labels in each record", where=file.place(row))
            item = as_name(record.get("id", record.get("doc_id")))
            meta = record.get("meta")
            fields = record | (meta if isinstance(meta, dict) else {})
            if _has_users(record):
                for person, labels in _by_user(record["annotations"]).items():
                    yield Response(item, fields, person, {QUESTION: labels})
            else:
                labels = _labels(_label_list(record))
                person = as_name(record.get("username")) or owner
                yield Response(item, fields, person, {QUESTION: labels})


def _is_labelled(record: Record) -> bool:
    return _label_list(record) is not None or _has_users(record)


def _label_list(record: Record) -> list[Any] | None:
    chosen = record.get("label", record.get("labels"))
    return chosen if isinstance(chosen, list) else None


def _labels(chosen: list[Any] | None) -> Labels | None:
    """Return labels of the whole text; None for spans such as [0, 5, "name"]."""
    return as_labels(chosen or [])


def _has_users(record: Record) -> bool:
    """Tell the form of early versions, in which each label has the number of its user."""
    given = record.get("annotations")
    wanted = {"label", "user"}
    return isinstance(given, list) and all(
        isinstance(entry, dict) and wanted <= entry.keys() for entry in given
    )


def _by_user(given: Sequence[Record]) -> dict[str | None, Labels | None]:
    people: dict[str | None, Labels | None] = {}
    for entry in given:
        person = as_name(entry["user"])
        before = people.get(person, ())
        label = None if "start_offset" in entry else as_labels(entry["label"])
        people[person] = None if before is None or label is None else (*before, *label)
    return people
