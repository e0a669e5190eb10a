"""Random judgements, ragged and with odd names, come back from the files of every tool."""

from __future__ import annotations

from pathlib import Path

import pytest

import hocal
from hocal.annotations.exports import known_tools
from tool_exports import CLASSES, WRITERS, judgements


def test_every_known_tool_is_tested() -> None:
    assert known_tools() == sorted(WRITERS)


@pytest.mark.parametrize("tool", WRITERS)
def test_judgements_come_back_from_the_files_of_a_tool(tool: str, tmp_path: Path) -> None:
    rows = judgements()
    found = hocal.read_annotations(WRITERS[tool](tmp_path, rows))
    names = {str(number): name for number, name in enumerate(CLASSES)} if tool == "lewidi" else {}
    labels = [names.get(label, label) for label in found.table["label"]]
    read = zip(found.table["item"], labels, found.table["annotator"], strict=True)

    assert found.tool == tool
    assert sorted(read) == sorted(rows)
    assert found.left_out == {}
