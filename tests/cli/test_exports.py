"""Exports of annotation tools where a table of labels is expected."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet

import hocal
from command_line import Run, Study
from hocal.cli import main

MODEL = "model.hocal"


@pytest.fixture(scope="module")
def export(study: Study, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write the labels of the study as Label Studio exports them, with one cancelled answer."""
    rows = parquet.read_table(study / "labels.parquet").to_pylist()
    tasks = []
    for number in range(len(study.counts)):
        annotations = [annotation(row) for row in rows if row["item"] == number]
        data = {"item": number, "text": f"item {number}"}
        tasks.append({"id": 1000 + number, "data": data, "annotations": annotations})
    tasks[0]["annotations"].append({"completed_by": 9, "was_cancelled": True, "result": []})
    path = tmp_path_factory.mktemp("export") / "project.json"
    path.write_text(json.dumps(tasks), encoding="utf-8")
    return str(path)


def annotation(row: dict[str, Any]) -> dict[str, Any]:
    result = {"from_name": "insect", "type": "choices", "value": {"choices": [row["label"]]}}
    return {"completed_by": row["annotator"], "was_cancelled": False, "result": [result]}


def assert_one_line(code: int, err: str) -> None:
    assert code == 2
    assert err.startswith("hocal: ")
    assert err.count("\n") == 1


@pytest.fixture(scope="module")
def fitted(
    study: Study, export: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, list[str]]:
    """Fit a model to the export; return its file and the lines on stderr."""
    path = str(tmp_path_factory.mktemp("fitted") / "model.hocal")
    arguments = ["fit", export, study / "predictions.parquet", "--item", "item", "-o", path]
    said = io.StringIO()
    with redirect_stderr(said), pytest.raises(SystemExit, match="0"):
        main([*arguments, "--n-slices", "2", "--json"])
    return path, said.getvalue().splitlines()


def test_a_fit_of_an_export_is_that_of_the_table(study: Study, fitted: tuple[str, Any]) -> None:
    of_export, of_table = (hocal.load(path).statistics_ for path in (fitted[0], study / MODEL))

    assert of_export.n_labels.tolist() == of_table.n_labels.tolist()
    assert of_export.n_items.tolist() == of_table.n_items.tolist()


def test_what_was_read_and_left_out_is_said(fitted: tuple[Any, list[str]]) -> None:
    assert fitted[1] == [
        "hocal: 360 judgements of 120 items by 3 people (Label Studio, question 'insect'). "
        "Left out: 1 cancelled."
    ]


def test_an_evaluation_reads_an_export(run: Run, study: Study, export: str) -> None:
    common = [study / "predictions.parquet", "--n-resamples", "2", "--json"]
    found = run("evaluate", study / MODEL, export, *common)

    assert found.json["n_items"] == 120


def test_a_report_reads_an_export(run: Run, study: Study, export: str) -> None:
    arguments = [study / MODEL, study / "predictions.parquet", "--no-planning", "--json"]
    outcome = run("report", *arguments, "--labels", export, "--tool", "label-studio")

    assert outcome.code == 0
    assert "360 judgements" in outcome.err


def test_a_comparison_reads_an_export_once(run: Run, study: Study, export: str) -> None:
    models = [study / "predictions.parquet", study / "predictions.csv"]
    outcome = run("compare", *models, export, "--item", "item", "--json")

    assert outcome.code == 0, outcome.err
    assert outcome.err.count("360 judgements") == 1


def test_what_to_buy_next_is_read_from_an_export(run: Run, export: str, tmp_path: Path) -> None:
    outcome = run("next", export, "--budget", "5", "-o", str(tmp_path / "buy.csv"), "--json")

    assert outcome.code == 0, outcome.err
    assert "360 judgements" in outcome.err


def test_a_check_of_an_export_needs_no_columns(run: Run, export: str) -> None:
    outcome = run("check", export, "--n-resamples", "9", "--json")

    assert outcome.code == 0
    assert outcome.json["n_items"] == 120


def test_what_to_buy_next_is_told_from_an_export(run: Run, export: str, tmp_path: Path) -> None:
    outcome = run("next", export, "--budget", "9", "-o", str(tmp_path / "buy.csv"), "--json")

    assert outcome.code == 0, outcome.err
    assert outcome.json["n_labels"] == 9


def test_a_table_of_mechanical_turk_is_known_by_its_columns(run: Run, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = [
        f"H{item},W{worker},Approved,{random.choice(['ant', 'bee'])}"
        for item in range(9)
        for worker in range(3)
    ]
    text = "\n".join(["HITId,WorkerId,AssignmentStatus,Answer.insect.label", *rows])
    (tmp_path / "batch.csv").write_text(text, encoding="utf-8")
    outcome = run("check", str(tmp_path / "batch.csv"), "--n-resamples", "9", "--json")

    assert "27 judgements of 9 items by 3 people (Mechanical Turk" in outcome.err
    assert outcome.code == 0


BAD = {
    "the wrong tool": (
        "--tool toloka",
        "project.json must be an export of Toloka, got something else in project.json. "
        "It looks like Label Studio: use --tool label-studio.",
    ),
    "an unknown tool": ("--tool crayon", "`--tool` must be one of argilla, doccano, label-st"),
    "another question": (
        "--question mood",
        "`--question` must be a question that asks for a choice, got 'mood'. It has 'insect'.",
    ),
    "a tool and columns": (
        "--tool label-studio --label label",
        "`--tool` must be left out with --label and --count-columns, which name columns of a table",
    ),
    "unknown classes": ("--classes ant,bee,cow", "`--label` must be one of the classes 'ant',"),
    "an unknown rule": (
        "--several maybe",
        "`--several` must be one of 'error', 'drop', got 'maybe'.",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_export_is_said_in_one_line(
    run: Run, study: Study, export: str, tmp_path: Path, case: str
) -> None:
    options, message = BAD[case]
    common = ["--item", "item", "--n-slices", "2", "-o", str(tmp_path / "m.hocal")]
    outcome = run("fit", export, study / "predictions.parquet", *common, *options.split())

    assert outcome.code == 2
    assert outcome.err.splitlines()[-1].startswith("hocal: ")
    assert message in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_items_of_an_export_need_a_field_of_their_name(run: Run, export: str) -> None:
    outcome = run("check", export, "--item", "photo")

    assert_one_line(outcome.code, outcome.err)
    assert "`--item` must name a field that every item has, got 'photo'" in outcome.err
    assert "There are 'id', 'item', 'text'." in outcome.err


def test_a_cut_off_export_names_file_and_line(run: Run, export: str, tmp_path: Path) -> None:
    cut = Path(export).read_text(encoding="utf-8")[:400]
    (tmp_path / "cut.json").write_text(cut, encoding="utf-8")
    outcome = run("check", str(tmp_path / "cut.json"))

    assert_one_line(outcome.code, outcome.err)
    assert f"{tmp_path / 'cut.json'} must be whole JSON, got " in outcome.err
    assert "It may be damaged or cut off: export it again." in outcome.err


def test_a_question_of_a_table_is_refused(run: Run, study: Study) -> None:
    outcome = run("check", study / "labels.csv", "--label", "label", "--question", "insect")

    assert_one_line(outcome.code, outcome.err)
    assert "`--question` must be left out for a table" in outcome.err


def test_a_table_without_columns_is_told_from_an_export(run: Run, study: Study) -> None:
    outcome = run("check", study / "labels.csv")

    assert_one_line(outcome.code, outcome.err)
    assert "`--item` must be given, unless LABELS is the export of an annotation" in outcome.err


def test_the_time_of_an_export_is_refused(run: Run, export: str) -> None:
    outcome = run("check", export, "--time", "created_at")

    assert_one_line(outcome.code, outcome.err)
    assert "`--time` must be left out for an export" in outcome.err
