"""Prodigy: JSON lines of `db-out`, one for each answer of each person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hocal.annotations.exports.files import ExportFile, Record, refuse
from hocal.annotations.exports.protocol import Labels, Response, as_labels, as_name

__all__ = ["Prodigy"]

CHOICE = "choice"  # the question of the choice interface, which has no name of its own
ANSWERS = ("accept", "reject", "ignore")  # what the three buttons write
WORDS = {"reject": "rejected", "ignore": "ignored"}
# what tells an item apart, from the first that there is
ITEMS = ("_input_hash", "id", "text", "image")


class Prodigy:
    """Reads exports of Prodigy."""

    name = "prodigy"
    title = "Prodigy"
    annotators = (
        "Let people work in named sessions (?session=name), or give a folder with one file for "
        "each person."
    )

    def choose(self, names: Sequence[str]) -> list[str]:
        """Return all files."""
        return list(names)

    def recognises(self, file: ExportFile) -> bool:
        """Know records with one of the three answers."""
        return not file.is_table and file.first.get("answer") in ANSWERS

    def responses(self, file: ExportFile) -> Iterator[Response]:
        """Give each answer; one that was reviewed gives those that it was made of, as gold."""
        owner = None if file.alone else file.stem
        for row, record in enumerate(file.records):
            if record.get("answer") not in ANSWERS:
                rule = f"must have an answer of {', '.join(ANSWERS)} in each record"
                raise refuse(rule, value=repr(record.get("answer")), where=file.place(row))
            if isinstance(record.get("versions"), list):
                yield from _reviewed(record)
            else:
                yield _response(record, record, _person(record) or owner)


def _person(record: Record) -> str | None:
    return as_name(record.get("_annotator_id") or record.get("_session_id"))


def _response(
    record: Record, answered: Record, person: str | None, gold: dict[str, Labels] | None = None
) -> Response:
    item = next((as_name(record[name]) for name in ITEMS if as_name(record.get(name))), None)
    meta = record.get("meta")
    fields = record | (meta if isinstance(meta, dict) else {})
    answers, left_out = _answers(answered)
    return Response(item, fields, person, answers, left_out, gold or {})


def _answers(record: Record) -> tuple[dict[str, Labels | None], str]:
    """Return the answers, and why they do not count.

    Where people choose among options, rejecting a task says nothing about its class. Where one
    label is shown, accept and reject are the two answers to it.
    """
    answer = str(record["answer"])
    if "options" in record or "accept" in record:
        return {CHOICE: as_labels(record.get("accept", []))}, WORDS.get(answer, "")
    if isinstance(record.get("label"), str):
        left_out = WORDS["ignore"] if answer == "ignore" else ""
        return {record["label"]: (answer,)}, left_out
    return {CHOICE: None}, WORDS.get(answer, "")


def _reviewed(record: Record) -> Iterator[Response]:
    """Give the answers that a reviewer saw, whose own answer is the known one."""
    final, refused = _answers(record)
    gold = {} if refused else {name: labels for name, labels in final.items() if labels}
    for version in record["versions"]:
        answered = {"answer": "accept"} | version
        for person in version.get("sessions") or [None]:
            yield _response(record, answered, as_name(person), gold)
