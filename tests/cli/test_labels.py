"""`hocal labels`: tables and exports of labels in, a report and tables out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from command_line import Run, Study
from hocal.cli import main


def judgements(study: Study, tmp_path: Path) -> str:
    """Return a file of judgements: the labels of each item by different people."""
    rows = [
        {"image": f"i{item}", "choice": f"c{j}", "worker": f"w{(item + place) % 9}"}
        for item, counts in enumerate(study.counts)
        for place, j in enumerate(j for j, n in enumerate(counts) for _ in range(n))
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "labels.csv", index=False)
    return str(tmp_path / "labels.csv")


COLUMNS = ["--item", "image", "--label", "choice", "--annotator", "worker", "--no-forecast"]


def test_a_page_and_two_tables_are_written(run: Run, study: Study, tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("labels.html", "items.csv", "people.csv")]
    options = ["-o", files[0], "--items", files[1], "--annotators", files[2]]
    outcome = run("labels", judgements(study, tmp_path), *COLUMNS, *options)

    assert outcome.code == 0
    assert outcome.out.startswith("agreement of 120 items")
    items = pd.read_csv(files[1])
    assert len(items) == 120
    assert (items.aleatoric_lower <= items.aleatoric).all()
    assert len(pd.read_csv(files[2])) == 9
    assert Path(files[0]).read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_counts_and_one_column_for_each_annotator_are_read(
    run: Run, study: Study, tmp_path: Path
) -> None:
    wide = pd.DataFrame({"image": range(40), "ann": ["a", "b"] * 20, "bob": ["a", "a"] * 20})
    wide.to_csv(tmp_path / "wide.csv", index=False)
    pd.DataFrame(study.counts, columns=list("xyz")[: study.counts.shape[1]]).assign(
        image=range(120)
    ).to_csv(tmp_path / "counts.csv", index=False)
    names = ",".join(list("xyz")[: study.counts.shape[1]])
    options = ["--item", "image", "--json", "--no-forecast"]

    people = json.loads(
        run("labels", str(tmp_path / "wide.csv"), "--label", "ann,bob", *options).out
    )
    counts = json.loads(
        run("labels", str(tmp_path / "counts.csv"), "--count-columns", names, *options).out
    )

    assert people["people"]["panel"] is True
    assert people["data"]["n_labels"] == 80
    assert counts["people"] is None
    assert counts["data"]["n_items"] == 120


def test_markdown_of_an_export_is_printed(run: Run, tmp_path: Path) -> None:
    answers = [
        {
            "text": f"text {i}",
            "accept": [label],
            "answer": "accept",
            "_session_id": who,
            "_task_hash": i,
            "_input_hash": i,
            "options": [{"id": "a", "text": "a"}, {"id": "b", "text": "b"}],
        }
        for i in range(20)
        for who, label in (("ann", "ab"[i % 2]), ("bob", "a"))
    ]
    path = tmp_path / "prodigy.jsonl"
    path.write_text("\n".join(map(json.dumps, answers)))

    outcome = run("labels", str(path), "--markdown", "--no-forecast", "--title", "Texts")

    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith("# Texts\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "`--output` must be given, or one of --json and --markdown to print"),
        (["--json", "--items", "items.pdf"], "items.pdf"),
        (["-o", "report.pdf"], "`--output` must end with .html, .md or .json"),
        (["--json", "--ordinal"], "`--classes` must be given in their order"),
        (["--json", "--gold", "truth"], "truth"),
    ],
    ids=["no-output", "items", "ending", "order", "gold"],
)
def test_bad_options_get_one_line(
    run: Run, study: Study, tmp_path: Path, options: list[str], message: str
) -> None:
    outcome = run("labels", judgements(study, tmp_path), *COLUMNS, *options)

    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize("command", ["labels", "check"])
@pytest.mark.parametrize("name", ["people.pdf", "there.csv"])
def test_a_file_of_people_that_cannot_be_written_is_refused_before_the_labels_are_read(
    run: Run, tmp_path: Path, command: str, name: str
) -> None:
    (tmp_path / "there.csv").write_text("kept")
    columns = ["--item", "image", "--label", "choice", "--annotator", "worker"]
    options = ["--json", "--annotators", str(tmp_path / name)]

    outcome = run(command, str(tmp_path / "no labels.csv"), *columns, *options)

    assert outcome.code == 2
    assert name in outcome.err


def test_no_page_is_written_beside_a_file_of_people_that_is_there(
    run: Run, study: Study, tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_text("kept")
    options = ["-o", str(tmp_path / "page.html"), "--annotators", str(tmp_path / "people.csv")]

    assert run("labels", judgements(study, tmp_path), *COLUMNS, *options).code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["labels.csv", "people.csv"]


def test_people_are_not_written_where_nobody_knows_them(study: Study, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(
            [
                "labels",
                judgements(study, tmp_path),
                "--item",
                "image",
                "--label",
                "choice",
                "--json",
                "--annotators",
                str(tmp_path / "people.csv"),
            ]
        )


def test_people_are_written_though_their_names_are_very_large_numbers(
    run: Run, tmp_path: Path
) -> None:
    workers = np.tile(np.arange(2**64 - 4, 2**64 - 1, dtype=np.uint64), 30)
    choices = np.random.default_rng(0).integers(2, size=90)
    columns = {"image": np.repeat(np.arange(30), 3), "worker": workers, "choice": choices}
    parquet.write_table(pa.table(columns), tmp_path / "labels.parquet")
    options = ["--item", "image", "--label", "choice", "--annotator", "worker"]

    written = ["--annotators", str(tmp_path / "people.csv")]
    outcome = run("check", str(tmp_path / "labels.parquet"), *options, *written)

    assert outcome.code == 0
    assert str(2**64 - 2) in (tmp_path / "people.csv").read_text()
