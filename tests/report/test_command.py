"""`hocal report` on files, inside this process."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import typer
from PIL import Image
from pyarrow import csv, parquet
from typer.testing import CliRunner

import hocal
from hocal.cli.report import report
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
    media = {
        "file": ["black.png"] * 400,
        "words": [f"text of {name}" for name in items],
        "hub": [picture] * 400,
    }
    parquet.write_table(pa.table(columns | media), folder / "predictions.parquet")
    csv.write_csv(pa.table(columns), folder / "predictions.csv")
    labels = pa.table({"item": items[:300]} | {f"n{j}": example.counts[:300, j] for j in range(4)})
    parquet.write_table(labels, folder / "counts.parquet")
    parquet.write_table(
        pa.concat_tables([pa.table(columns), pa.table(columns).slice(0, 1)]),
        folder / "twice.parquet",
    )


@pytest.fixture
def run(folder: Path) -> Run:
    """Run the command on the model and a table of predictions."""
    app = typer.Typer()
    app.command()(report)

    def call(*arguments: str, table: str = "predictions.parquet") -> Any:
        columns = ["--probability-columns", "0,1,2,3", "--no-planning"]
        return CliRunner().invoke(
            app, [str(folder / "model.hocal"), str(folder / table), *columns, *arguments]
        )

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
    first, second = (
        json.loads(run("--json", table=f"predictions.{kind}").output) for kind in ("parquet", "csv")
    )

    assert first["parts"] == second["parts"]
    assert first["cells"] == second["cells"]


def test_items_without_labels_are_reported_and_not_measured(run: Run, folder: Path) -> None:
    labels = ["--labels", str(folder / "counts.parquet"), "--count-columns", "n0,n1,n2,n3"]
    summary = json.loads(run("--json", *labels).output)

    assert summary["data"]["n_items"] == 400
    assert summary["trust"]["calibration"]["n_items"] == 300
    assert {item["n_labels"] for item in summary["items"]} == {0, 4}


def test_labels_find_their_items_when_one_table_writes_them_as_text(
    run: Run, folder: Path, tmp_path: Path
) -> None:
    """Half a second is .5 in the text of DuckDB and .500000 in that of Python."""
    times = [datetime(2024, 5, 1) + timedelta(seconds=row / 2) for row in range(400)]
    predictions = parquet.read_table(folder / "predictions.parquet").set_column(
        0, "item", pa.array(times)
    )
    parquet.write_table(predictions.take(np.arange(400)[::-1]), folder / "times.parquet")
    names = [str(time).replace(".500000", ".5") for time in times[:300]]
    counts = parquet.read_table(folder / "counts.parquet").set_column(0, "item", pa.array(names))
    csv.write_csv(counts, tmp_path / "counts.csv")
    columns = ["--json", "--count-columns", "n0,n1,n2,n3", "--labels"]

    expected = json.loads(run(*columns, str(folder / "counts.parquet")).output)["trust"][
        "calibration"
    ]
    found = json.loads(run(*columns, str(tmp_path / "counts.csv"), table="times.parquet").output)[
        "trust"
    ]["calibration"]

    assert (found["n_items"], found["mean"]) == (300, expected["mean"])


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
        ([], "`--output` must be given, or one of --json and --markdown to print"),
        (["--json", "--markdown"], "or one of --json and --markdown to print"),
        (
            ["--json", "--label", "choice"],
            "`--label` must be left out without --labels",
        ),
        (["-o", "report.pdf"], "`--output` must end with .html, .md or .json, got 'report.pdf'"),
        (
            ["--json", "--images", "pixels"],
            "`--images` must name a column of PROBABILITIES, got 'pixels'. It has item, ",
        ),
        (
            ["--json", "--text", "prose"],
            "`--text` must name a column of PROBABILITIES, got 'prose'",
        ),
    ],
    ids=["no-output", "two-prints", "no-labels", "ending", "images", "text"],
)
def test_bad_input_is_refused(run: Run, arguments: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        raise run(*arguments).exception


def test_a_repeated_item_is_refused(run: Run) -> None:
    with pytest.raises(
        ValueError, match="PROBABILITIES must have one row for each item, got several for 'img-0'"
    ):
        raise run("--json", table="twice.parquet").exception


@pytest.mark.parametrize("content", [b"no json", b"\xff\xfe"], ids=["text", "bytes"])
def test_a_check_that_is_no_json_is_refused(run: Run, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "check.json").write_bytes(content)

    with pytest.raises(
        ValueError, match="`--check` must be a file that `hocal check --json` printed"
    ):
        raise run("--json", "--check", str(tmp_path / "check.json")).exception


def test_an_existing_file_is_replaced_only_with_force(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    path.write_text("mine")

    with pytest.raises(ValueError, match="already exists"):
        raise run("-o", str(path)).exception
    assert path.read_text() == "mine"
    assert run("-o", str(path), "--force").exit_code == 0
    assert path.read_text(encoding="utf-8").startswith("# Uncertainty report")
