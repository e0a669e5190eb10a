"""Write judgements as the annotation tools export them."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Row = tuple[str, str, str]

CLASSES = ["gut", "nicht gut", 'so "so", naja', "悪い"]
PEOPLE = ["ann@example.org", "Bö", "c-d_e", "42"]


def judgements() -> list[Row]:
    """Return one to four judgements of 30 items, in random order."""
    random = np.random.default_rng(0)
    rows = [
        (f"item {number:03}", str(random.choice(CLASSES)), str(person))
        for number in range(30)
        for person in random.permutation(PEOPLE)[: random.integers(1, 5)]
    ]
    return [rows[i] for i in random.permutation(len(rows))]


def by(rows: list[Row], place: int) -> dict[str, list[Row]]:
    groups = defaultdict(list)
    for row in rows:
        groups[row[place]].append(row)
    return groups


def save_json(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def save_lines(path: Path, records: list[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    return path


def save_table(path: Path, header: list[str], rows: list[Any]) -> Path:
    text = io.StringIO()
    csv.writer(text, delimiter="\t" if path.suffix == ".tsv" else ",").writerows([header, *rows])
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
    return path


def label_studio(folder: Path, rows: list[Row]) -> Path:
    tasks = []
    for item, given in by(rows, 0).items():
        annotations = [
            {
                "completed_by": {"email": person},
                "result": [{"from_name": "mood", "value": {"choices": [label]}}],
            }
            for _, label, person in given
        ]
        tasks.append({"id": item, "data": {}, "annotations": annotations})
    return save_json(folder / "a.json", tasks)


def argilla(folder: Path, rows: list[Row]) -> Path:
    records = []
    for item, given in by(rows, 0).items():
        responses = [{"value": label, "user_id": person} for _, label, person in given]
        records.append({"id": item, "fields": {}, "responses": {"mood": responses}})
    return save_lines(folder / "a.jsonl", records)


def doccano(folder: Path, rows: list[Row]) -> Path:
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        for person, given in by(rows, 2).items():
            records = [{"id": item, "text": "", "label": [label]} for item, label, _ in given]
            archive.writestr(f"{person}.jsonl", "\n".join(map(json.dumps, records)))
    return folder / "a.zip"


def prodigy(folder: Path, rows: list[Row]) -> Path:
    fixed = {"options": [], "answer": "accept"}
    records = [
        fixed | {"_input_hash": item, "accept": [label], "_annotator_id": person}
        for item, label, person in rows
    ]
    return save_lines(folder / "a.jsonl", records)


def mturk(folder: Path, rows: list[Row]) -> Path:
    return save_table(folder / "a.csv", ["HITId", "Answer.mood.label", "WorkerId"], rows)


def toloka(folder: Path, rows: list[Row]) -> Path:
    header = ["INPUT:text", "OUTPUT:mood", "ASSIGNMENT:worker_id"]
    return save_table(folder / "a.tsv", header, rows)


def potato(folder: Path, rows: list[Row]) -> Path:
    for person, given in by(rows, 2).items():
        records = [
            {"id": item, "label_annotations": {"mood": {label: "true"}}} for item, label, _ in given
        ]
        save_lines(folder / "a" / person / "annotated_instances.jsonl", records)
    return folder / "a"


def lewidi(folder: Path, rows: list[Row]) -> Path:
    numbers = {label: str(number) for number, label in enumerate(CLASSES)}
    content = {
        item: {"annotations": {person: numbers[label] for _, label, person in given}}
        | {"soft_label": {}}
        for item, given in by(rows, 0).items()
    }
    return save_json(folder / "a.json", content)


WRITERS: dict[str, Callable[[Path, list[Row]], Path]] = {
    "argilla": argilla,
    "doccano": doccano,
    "label-studio": label_studio,
    "lewidi": lewidi,
    "mturk": mturk,
    "potato": potato,
    "prodigy": prodigy,
    "toloka": toloka,
}
