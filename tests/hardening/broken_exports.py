"""Break exports of annotation tools: values of other kinds, absent keys, damaged bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hardening.broken_tables import WILD, damage

Generator = np.random.Generator
Place = tuple[Any, ...]
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 2**70, 1.5, float("nan"), "", "x" * 1_000, [], {}, [[]], {"a": {}}, [None],
    "\ud800", "\0", ["a", ["b"]], [1, 2], {"choices": 3},
)  # fmt: skip


def break_export(folder: Path, generator: Generator) -> None:
    """Change one file of an export: a value in it, or its bytes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    file = files[generator.integers(len(files))]
    change = CHANGES.get(file.suffix)
    if change is None or generator.random() < 0.3:
        file.write_bytes(damage(file.read_bytes(), generator))
    else:
        file.write_text(change(file.read_text(encoding="utf-8"), generator), encoding="utf-8")


def change_value(content: Any, generator: Generator) -> Any:
    """Delete, add or replace something anywhere in what JSON holds."""
    places = list(_places(content))
    place = places[generator.integers(len(places))]
    value = VALUES[generator.integers(len(VALUES))]
    if not place:
        return value
    owner = content
    for key in place[:-1]:
        owner = owner[key]
    kind = generator.integers(3)
    if kind == 0:
        del owner[place[-1]]
    elif kind == 1 and isinstance(owner, dict):
        owner[str(generator.choice(["x", "id", "label", "annotations"]))] = value
    else:
        owner[place[-1]] = value
    return content


def _places(content: Any, place: Place = ()) -> Iterator[Place]:
    """List where something is, of a long list only the first five."""
    yield place
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _places(value, (*place, key))
    elif isinstance(content, list):
        for number, value in enumerate(content[:5]):
            yield from _places(value, (*place, number))


def _change_json(text: str, generator: Generator) -> str:
    return json.dumps(change_value(json.loads(text), generator))


def _change_lines(text: str, generator: Generator) -> str:
    records = text.splitlines()
    for place in generator.integers(0, len(records), generator.integers(1, 4)):
        records[place] = json.dumps(change_value(json.loads(records[place]), generator))
    return "\n".join(records)


def _change_table(text: str, generator: Generator) -> str:
    """Put something wild in the place of a field, or of the separator before it."""
    separator = "\t" if "\t" in text else ","
    fields = text.split(separator)
    fields[generator.integers(len(fields))] = str(WILD[generator.integers(len(WILD))])
    return separator.join(fields)


CHANGES = {
    ".json": _change_json,
    ".jsonl": _change_lines,
    ".csv": _change_table,
    ".tsv": _change_table,
}
