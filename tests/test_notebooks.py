"""The tutorials run, and say what they show."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "docs" / "_notebooks" / "execute.py"
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))

Notebook = dict[str, Any]


def load(path: Path) -> Notebook:
    notebook: Notebook = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def texts(notebook: Notebook) -> Iterator[str]:
    """Yield what the cells print and return, without pictures."""
    for output in outputs(notebook):
        yield "".join(output["text"] if "text" in output else output["data"]["text/plain"])


def outputs(notebook: Notebook) -> Iterator[dict[str, Any]]:
    for cell in notebook["cells"]:
        yield from cell.get("outputs", [])


def run_again(path: Path, folder: Path) -> Notebook:
    """Run a notebook in a kernel, from a process of its own, which takes its sockets with it."""
    pytest.importorskip("nbclient", reason="the tutorials are run with nbclient")
    pytest.importorskip("ipykernel", reason="the tutorials are run with ipykernel")
    command = [sys.executable, str(SCRIPT), path.stem, "--into", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return load(folder / path.name)


def test_there_are_three_tutorials() -> None:
    assert [path.stem for path in TUTORIALS] == ["classifier", "ensemble", "labels-only"]


@pytest.mark.slow
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs_and_says_what_it_shows(path: Path, tmp_path: Path) -> None:
    """`make notebooks` writes new outputs where they changed for a reason."""
    again = run_again(path, tmp_path)

    assert list(texts(again)) == list(texts(load(path)))


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_shows_no_warning_or_error(path: Path) -> None:
    kinds = {output.get("name", output["output_type"]) for output in outputs(load(path))}

    assert kinds <= {"stdout", "display_data", "execute_result"}


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_every_cell_of_a_tutorial_was_run_in_order(path: Path) -> None:
    cells = [cell for cell in load(path)["cells"] if cell["cell_type"] == "code"]

    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_every_picture_of_a_tutorial_is_told_in_words(path: Path) -> None:
    for cell in load(path)["cells"]:
        drawn = any("image/png" in output.get("data", {}) for output in cell.get("outputs", []))
        assert drawn == ("alt" in cell["metadata"])


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_says_what_to_do_with_each_answer(path: Path) -> None:
    """Each section ends with it."""
    written = "\n".join(
        "".join(cell["source"]) for cell in load(path)["cells"] if cell["cell_type"] == "markdown"
    )
    sections = written.split("\n## ")[1:]

    assert sections
    assert all("**What to do with it.**" in section for section in sections)
