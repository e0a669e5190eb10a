"""Read the export of an annotation tool: recognise it, choose a question, sort its answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hocal._base.errors import InputError, Setting
from hocal._base.validation import check_choice
from hocal.annotations.exports.files import AGAIN, ExportFile, open_export, refuse
from hocal.annotations.exports.protocol import AnnotationTool, Labels, Response
from hocal.annotations.exports.registry import find_tool, known_tools
from hocal.annotations.exports.result import Annotations, say_left_out
from hocal.annotations.tables import enumerate_few, quote

__all__ = ["read_annotations", "recognise"]

NO_CHOICE = "It reads choices about whole items, not spans, boxes, rankings or free text."


def read_annotations(
    path: str | Path,
    *,
    tool: str | None = None,
    question: str | None = None,
    item: str | None = None,
    several: str = "error",
) -> Annotations:
    """Read the judgements of people from the export of an annotation tool.

    Label Studio, Argilla, doccano, Prodigy, Mechanical Turk, Toloka, Potato and LeWiDi files are
    recognised by what they hold. Answers that were cancelled, skipped, rejected, discarded or left
    empty are left out and counted; judgements of gold items are kept apart. The files are only
    read, and a file that cannot be read whole is not read at all.

    Parameters
    ----------
    path : str or Path
        A file, a zip, or a folder of files, such as one for each person.
    tool : str, optional
        Name of the tool, such as "label-studio"; by default it is recognised.
    question : str, optional
        Which question to read, where the project asks several.
    item : str, optional
        The field of the data that names the items, such as "image"; by default the number that the
        tool gave them. Predictions must use the same names.
    several : {"error", "drop"}, default="error"
        What to do with people who ticked several labels for one item.

    Returns
    -------
    Annotations
        Its `table` goes into `count_labels` as it is.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> import hocal
    >>> answers = [("cat", "Ann"), ("dog", "Bob"), ("cat", "Cem")]
    >>> responses = {"animal": [{"value": label, "user_id": who} for label, who in answers]}
    >>> records = [{"id": "7.jpg", "fields": {}, "responses": responses}]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "records.json"
    ...     _ = path.write_text(json.dumps(records))
    ...     found = hocal.read_annotations(path)
    >>> print(found)
    3 judgements of 1 item by 3 people (Argilla, question 'animal').
    >>> hocal.count_labels(found.table, item="item", label="label").counts.tolist()
    [[2, 1]]
    """
    check_choice(several, "several", ["error", "drop"])
    files = open_export(path)
    chosen, reader = _choose(files, tool)
    responses = [response for file in chosen for response in _responses(reader, file)]
    questions = _questions(responses)
    asked = _ask(questions, responses, question)
    return _collect(responses, reader, asked, tuple(questions), item, several)


def recognise(path: str | Path) -> bool:
    """Tell whether a file, a zip or a folder is an export of a known tool."""
    files = open_export(path)
    return any(_fits(find_tool(name), files) for name in known_tools())


def _choose(
    files: Sequence[ExportFile], name: str | None
) -> tuple[list[ExportFile], AnnotationTool]:
    """Return the tool and the files that it reads."""
    if name is not None:
        reader = find_tool(name)
        if not _fits(reader, files):
            _refuse_tool(reader, files)
        return _own(reader, files), reader
    fitting = [find_tool(name) for name in known_tools() if _fits(find_tool(name), files)]
    if len(fitting) != 1:
        _refuse_unknown(fitting, files)
    return _own(fitting[0], files), fitting[0]


def _own(reader: AnnotationTool, files: Sequence[ExportFile]) -> list[ExportFile]:
    if len(files) == 1:
        return list(files)
    names = set(reader.choose([file.name for file in files]))
    return [file for file in files if file.name in names]


def _fits(reader: AnnotationTool, files: Sequence[ExportFile]) -> bool:
    own = _own(reader, files)
    return bool(own) and all(map(reader.recognises, own))


def _responses(reader: AnnotationTool, file: ExportFile) -> list[Response]:
    """Return all responses in a file; what has another shape further down is refused whole."""
    try:
        return list(reader.responses(file))
    except InputError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        rule = f"must have the form of an export of {reader.title} throughout"
        raise refuse(rule, value=f"something else in {file.name}", remedy=AGAIN) from error


def _refuse_tool(reader: AnnotationTool, files: Sequence[ExportFile]) -> None:
    """Say that an export is not of the tool that was named, and of which it is."""
    others = [name for name in known_tools() if _fits(find_tool(name), files)]
    other = [file.name for file in _own(reader, files) if not reader.recognises(file)]
    found = f"something else in {enumerate_few(other, len(other))}" if other else "no such file"
    remedy = f"It looks like {find_tool(others[0]).title}: use {{0}}." if others else NO_CHOICE
    raise refuse(
        f"must be an export of {reader.title}",
        value=found,
        remedy=remedy,
        settings=[Setting("tool", others[0])] if others else (),
    )


def _refuse_unknown(fitting: Sequence[AnnotationTool], files: Sequence[ExportFile]) -> None:
    names = [file.name for file in files]
    found = f"{enumerate_few(names, len(names))}, which fits "
    raise refuse(
        "must be an export of a known tool",
        value=found + (", ".join(reader.name for reader in fitting) or "none"),
        remedy=f"Name the tool with {{0}}: {', '.join(known_tools())}.",
        settings=[Setting("tool")],
    )


def _questions(responses: Sequence[Response]) -> list[str]:
    """Return the questions that ask for a choice, in the order in which they occur."""
    found = dict.fromkeys(
        name
        for response in responses
        for name, labels in response.answers.items()
        if labels is not None
    )
    return list(found)


def _ask(questions: Sequence[str], responses: Sequence[Response], question: str | None) -> str:
    """Return the question to read: the only one, or the one that was named."""
    if not responses:
        raise refuse("must have at least one answer", value="none")
    if question is None and len(questions) == 1:
        return questions[0]
    listed = ", ".join(map(repr, questions))
    if not questions:
        raise refuse("must have an answer that is a choice", value="none", remedy=NO_CHOICE)
    if question is None:
        rule = "must be given for a project that asks several"
        raise InputError("question", rule, value="none", remedy=f"It has {listed}.")
    if question not in questions:
        rule = "must be a question that asks for a choice"
        raise InputError("question", rule, value=repr(question), remedy=f"It has {listed}.")
    return question


def _collect(
    responses: Sequence[Response],
    reader: AnnotationTool,
    question: str,
    questions: tuple[str, ...],
    item: str | None,
    several: str,
) -> Annotations:
    """Sort responses into judgements, judgements of gold items, and what does not count."""
    reasons = [_reason(response, question, several) for response in responses]
    counted = [response for response, reason in zip(responses, reasons, strict=True) if not reason]
    left_out = dict(Counter(reason for reason in reasons if reason).most_common())
    _check_people(counted, reader)
    names = _items(counted, item)
    labels = _one_type([response.answers[question] for response in counted])
    golds = [response.gold.get(question, ()) for response in counted]
    apart = [bool(gold) for gold in golds]
    people = [response.annotator for response in counted]
    columns: dict[str, list[Any]] = {"item": names, "label": labels, "annotator": people}
    table = {name: _where(values, apart, False) for name, values in columns.items()}
    gold = {name: _where(values, apart, True) for name, values in columns.items()}
    gold["gold"] = [_known(answer, labels) for answer in golds if answer]
    if not table["item"]:
        _refuse_nothing(len(gold["item"]), left_out)
    return Annotations(reader.name, question, questions, table, gold, left_out)


def _reason(response: Response, question: str, several: str) -> str:
    """Return why a response does not count; empty where it does."""
    if response.left_out:
        return response.left_out
    labels = response.answers.get(question, ())
    if labels is None:
        raise refuse(
            "must have one choice for each item and person",
            value=f"something else for question {question!r}",
            where=f"(item {response.item!r})",
            remedy=NO_CHOICE,
        )
    if len(labels) > 1 and several == "error":
        raise refuse(
            "must have one answer for each item and person",
            value=f"{quote(labels)} by {response.annotator!r}",
            where=f"(item {response.item!r})",
            remedy="Read a question with one choice, or leave such answers out with {0}.",
            settings=[Setting("several", "drop")],
        )
    return "" if len(labels) == 1 else ("several labels" if labels else "unanswered")


def _check_people(responses: Sequence[Response], reader: AnnotationTool) -> None:
    nameless = [response.item for response in responses if response.annotator is None]
    if nameless:
        raise refuse(
            "must say who judged",
            value=f"no annotator for {len(nameless):,} of {len(responses):,} answers",
            where=f"(item {quote(list(dict.fromkeys(nameless)))})",
            remedy=reader.annotators,
        )


def _items(responses: Sequence[Response], field: str | None) -> list[str]:
    """Return the names of the items: what the tool calls them, or a field of their data."""
    if field is None:
        names = [response.item for response in responses]
    else:
        values = [response.fields.get(field) for response in responses]
        names = [str(v) if isinstance(v, (str, int)) and v != "" else None for v in values]
    known = [name for name in names if name is not None]
    if len(known) < len(names):
        fields = dict.fromkeys(name for response in responses for name in response.fields)
        raise InputError(
            "item",
            "must name a field that every item has",
            value=f"{field!r}, which {len(names) - len(known):,} of {len(names):,} answers lack",
            remedy=f"There are {', '.join(map(repr, fields))}.",
        )
    return known


def _one_type(answers: Sequence[Labels | None]) -> list[Any]:
    """Return the label of each answer: whole numbers where all are, else text."""
    labels = [answer[0] for answer in answers if answer]
    return labels if all(isinstance(label, int) for label in labels) else list(map(str, labels))


def _known(answer: Labels, labels: Sequence[Any]) -> Any:
    """Return a known answer in the type of the labels; several that are right become one text."""
    numbers = bool(labels) and isinstance(labels[0], int)
    return answer[0] if len(answer) == 1 and numbers else " | ".join(map(str, answer))


def _where(values: Sequence[Any], marks: Sequence[bool], wanted: bool) -> list[Any]:
    return [value for value, mark in zip(values, marks, strict=True) if mark is wanted]


def _refuse_nothing(n_gold: int, left_out: dict[str, int]) -> None:
    """Say that no answer counts, and why none does."""
    reasons = left_out | ({"of gold items": n_gold} if n_gold else {})
    found = f"none; left out: {say_left_out(reasons)}"
    raise refuse("must have at least one answer that counts", value=found)
