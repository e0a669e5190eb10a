"""`hocal report` on files, inside this process."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import typer
from PIL import Image
from pyarrow import csv, parquet
from scipy import sparse
from typer.testing import CliRunner

import hocal
from hocal.cli._items import Items
from hocal.cli._report import _place, report
from report.example import Example, make_example

CLASSES = ["ant", "bee", "cat", "dog"]
Run = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a model, predictions with pictures and texts, and labels."""
    folder, example = tmp_path_factory.mktemp("files"), make_example()
    _write_tables(folder, example)
    hocal.save(example.calibrator, folder / "model.hocal")
    Image.fromarray(np.zeros((8, 8), dtype=np.uint8)).save(folder / "black.png")
    return folder


def _write_tables(folder: Path, example: Example) -> None:
    p, items = example.probabilities, [f"img-{row}" for row in range(len(example.probabilities))]
    picture = {"bytes": None, "path": str(folder / "black.png")}
    columns = {"item": items} | {str(j): p[:, j] for j in range(4)}
    media = {"file": ["black.png"] * 400, "words": [f"text of {name}" for name in items], "hub": [picture] * 400}
    parquet.write_table(pa.table(columns | media), folder / "predictions.parquet")
    csv.write_csv(pa.table(columns), folder / "predictions.csv")
    labels = pa.table({"item": items[:300]} | {f"n{j}": example.counts[:300, j] for j in range(4)})
    parquet.write_table(labels, folder / "counts.parquet")
    parquet.write_table(pa.concat_tables([pa.table(columns), pa.table(columns).slice(0, 1)]), folder / "twice.parquet")


@pytest.fixture
def run(folder: Path) -> Run:
    """Run the command on the model and a table of predictions."""
    app = typer.Typer()
    app.command()(report)

    def call(*arguments: str, table: str = "predictions.parquet") -> Any:
        columns = ["--probability-columns", "0,1,2,3", "--no-planning"]
        return CliRunner().invoke(app, [str(folder / "model.hocal"), str(folder / table), *columns, *arguments])

    return call


def test_a_page_is_written(run: Run, tmp_path: Path) -> None:
    result = run("-o", str(tmp_path / "report.html"), "--title", "My model")

    assert result.output == f"400 items in {tmp_path / 'report.html'}\n"
    assert "<title>My model</title>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_json_and_markdown_are_printed(run: Run) -> None:
    assert json.loads(run("--json").output)["data"]["n_items"] == 400
    assert run("--markdown").output.startswith("# Uncertainty report\n")


def test_the_same_table_as_csv_gives_the_same_summary(run: Run) -> None:
    first, second = (json.loads(run("--json", table=f"predictions.{kind}").output) for kind in ("parquet", "csv"))

    assert first["parts"] == second["parts"]
    assert first["cells"] == second["cells"]


def test_items_without_labels_are_reported_and_not_measured(run: Run, folder: Path) -> None:
    labels = ["--labels", str(folder / "counts.parquet"), "--count-columns", "n0,n1,n2,n3"]
    summary = json.loads(run("--json", *labels).output)

    assert summary["data"]["n_items"] == 400
    assert summary["trust"]["calibration"]["n_items"] == 300
    assert {item["n_labels"] for item in summary["items"]} == {0, 4}


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_counts_take_the_places_of_their_items(kind: Callable[[Any], Any]) -> None:
    held = Items(np.array([7, 3]), np.empty((2, 2)), kind([[1, 2], [3, 0]]), None)

    assert sparse.csr_array(_place(["3", "5", "7"], held)).toarray().tolist() == [[3, 0], [0, 0], [1, 2]]


@pytest.mark.parametrize("column", ["file", "hub"])
def test_pictures_come_from_a_column(run: Run, folder: Path, column: str) -> None:
    summary = json.loads(run("--json", "--images", column, "--image-folder", str(folder)).output)

    assert summary["galleries"][0]["cards"][0]["image"]["width"] == 8


def test_texts_come_from_a_column_and_belong_to_their_items(run: Run) -> None:
    cards = json.loads(run("--json", "--text", "words").output)["galleries"][0]["cards"]

    assert all(card["text"]["text"] == f"text of {card['item']['item']}" for card in cards)


def test_a_check_is_read_from_its_file(run: Run, tmp_path: Path, check: dict[str, Any]) -> None:
    (tmp_path / "check.json").write_text(json.dumps(check))
    summary = json.loads(run("--json", "--check", str(tmp_path / "check.json")).output)

    assert summary["trust"]["check"]["n_annotators"] == 30


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "`--output` must be given, or --json or --markdown to print"),
        (["-o", "report.pdf"], "`path` must end with .html, .md or .json, got 'report.pdf'"),
        (["--json", "--images", "pixels"], r"`--images` must name a column of .*, got 'pixels'. It has item, "),
        (["--json", "--text", "prose"], r"`--text` must name a column of .*, got 'prose'"),
    ],
    ids=["no-output", "ending", "images", "text"],
)
def test_bad_input_is_refused(run: Run, arguments: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        raise run(*arguments).exception


def test_a_repeated_item_is_refused(run: Run) -> None:
    with pytest.raises(ValueError, match="PROBABILITIES must have one row for each item, got several for 'img-0'"):
        raise run("--json", table="twice.parquet").exception


def test_a_check_that_is_no_json_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "check.json").write_text("no json")

    with pytest.raises(ValueError, match="`--check` must be a file that `hocal check --json` printed"):
        raise run("--json", "--check", str(tmp_path / "check.json")).exception


def test_an_existing_file_is_replaced_only_with_force(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    path.write_text("mine")

    with pytest.raises(ValueError, match="is there already"):
        raise run("-o", str(path)).exception
    assert path.read_text() == "mine"
    assert run("-o", str(path), "--force").exit_code == 0
    assert path.read_text(encoding="utf-8").startswith("# Uncertainty report")
