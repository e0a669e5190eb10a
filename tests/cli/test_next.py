"""`hocal next`: what to buy next, with and without a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import hocal
from command_line import CLASSES, Run, Study
from hocal.calibration import label_prior

COLUMNS = ["--item", "item", "--label", "label"]


def next_(run: Run, study: Study, output: Path, *extra: str):  # type: ignore[no-untyped-def]
    """Run `hocal next` on the labels of the study."""
    return run("next", study / "labels.parquet", "-o", str(output), *COLUMNS, *extra)


def test_labels_alone_are_enough(run: Run, study: Study, tmp_path: Path) -> None:
    outcome = next_(run, study, tmp_path / "buy.csv", "--budget", "30", "--json")
    expected = hocal.next_labels(label_prior(study.counts), study.counts, budget=30)

    assert outcome.code == 0, outcome.err
    rows = csv.read_csv(tmp_path / "buy.csv").to_pydict()
    assert list(rows) == ["item", "labels", "expected_gain", "uncertainty", "n_labels"]
    assert rows["item"] == expected.order.tolist()
    assert rows["labels"] == expected.labels[expected.order].tolist()
    assert sum(rows["labels"]) == outcome.json["n_labels"] == 30
    now = expected.uncertainty.mean()
    assert outcome.json["expected"] == pytest.approx(now - expected.expected_gain)
    assert outcome.json["evenly"] == pytest.approx(now - expected.uniform_gain)


def test_a_model_says_what_its_items_are_like(run: Run, study: Study, tmp_path: Path) -> None:
    options = ["--model", study / "model.hocal", "--probabilities", study / "predictions.parquet"]
    outcome = next_(run, study, tmp_path / "buy.parquet", "--budget", "30", *options)
    calibrator = hocal.load(study / "model.hocal")
    mixtures = calibrator.predict_mixture(study.probabilities, counts=study.counts)
    expected = hocal.next_labels(mixtures, None, budget=30)

    assert outcome.code == 0, outcome.err
    rows = parquet.read_table(tmp_path / "buy.parquet").to_pydict()
    assert rows["item"] == expected.order.tolist()
    assert rows["labels"] == expected.labels[expected.order].tolist()


@pytest.mark.parametrize("objective", ["aleatoric", "majority"])
def test_objectives_reach_the_library(
    run: Run, study: Study, tmp_path: Path, objective: str
) -> None:
    extra = ["--budget", "30", "--objective", objective, "--json"]
    outcome = next_(run, study, tmp_path / "buy.csv", *extra)
    expected = hocal.next_labels(
        label_prior(study.counts), study.counts, budget=30, objective=objective
    )

    assert outcome.json["now"] == pytest.approx(expected.uncertainty.mean())


def test_items_without_labels_are_considered_with_a_model(
    run: Run, study: Study, tmp_path: Path
) -> None:
    few = parquet.read_table(study / "labels.parquet")
    few = few.filter(pa.compute.less(few["item"], 60))
    parquet.write_table(few, tmp_path / "few.parquet")
    outcome = run(
        "next", str(tmp_path / "few.parquet"), "-o", str(tmp_path / "buy.csv"), *COLUMNS,
        "--model", study / "model.hocal", "--probabilities", study / "predictions.parquet",
        "--budget", "60", "--json",
    )  # fmt: skip

    assert outcome.json["n_considered"] == 120
    rows = csv.read_csv(tmp_path / "buy.csv").to_pydict()
    assert any(item >= 60 for item in rows["item"])
    assert 0 in rows["n_labels"]


def later_labels(study: Study, path: Path) -> None:
    """Write the labels of the study as a first round, and one more for ten items."""
    first = parquet.read_table(study / "labels.parquet").append_column(
        "round", pa.array(np.ones(len(study.counts) * 3, dtype=np.int64))
    )
    later = pa.table(
        {
            "item": np.arange(10),
            "label": [CLASSES[0]] * 10,
            "annotator": np.full(10, 7),
            "round": np.full(10, 2),
        }
    )
    parquet.write_table(pa.concat_tables([first, later]), path)


def test_labels_after_the_fit_are_added_to_what_the_model_knows(
    run: Run, study: Study, tmp_path: Path
) -> None:
    later_labels(study, tmp_path / "labels.parquet")
    outcome = run(
        "next", str(tmp_path / "labels.parquet"), "-o", str(tmp_path / "buy.csv"), *COLUMNS,
        "--model", study / "model.hocal", "--probabilities", study / "predictions.parquet",
        "--first", "3", "--time", "round", "--budget", "30", "--json",
    )  # fmt: skip
    later = np.zeros_like(study.counts)
    later[:10, 0] = 1
    calibrator = hocal.load(study / "model.hocal")
    mixtures = calibrator.predict_mixture(study.probabilities, counts=study.counts)
    expected = hocal.next_labels(mixtures, later, budget=30)

    assert outcome.json["now"] == pytest.approx(expected.uncertainty.mean())


def test_fit_counts_the_first_labels_only(run: Run, study: Study, tmp_path: Path) -> None:
    later_labels(study, tmp_path / "labels.parquet")
    common = [study / "predictions.parquet", *COLUMNS, "--n-slices", "2", "--json"]
    output = ["-o", str(tmp_path / "model.hocal")]
    outcome = run(
        "fit", str(tmp_path / "labels.parquet"), *common, *output, "--first", "3", "--time", "round"
    )

    assert outcome.json["n_labels"] == 360


def test_people_read_what_the_labels_should_bring(run: Run, study: Study, tmp_path: Path) -> None:
    outcome = next_(run, study, tmp_path / "buy.csv", "--budget", "30")

    assert "30 of 30" in outcome.out
    assert "squared error of the label distribution, now" in outcome.out
    assert "spread evenly" in outcome.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--budget", "0"], "`--budget` must be an integer from 1 to 120000, got 0."),
        (
            ["--budget", "5000", "--limit", "10"],
            "`--budget` must be an integer from 1 to 1200, got 5000.",
        ),
        (["--budget", "9", "--objective", "x"], "`--objective` must be one of 'distribution'"),
        (["--budget", "9", "--limit", "0"], "`--limit` must be an integer from 1 to 1000, got 0"),
        (
            ["--budget", "9", "--model", "m.hocal"],
            "`--model` and `--probabilities` must be given together.",
        ),
        (["--budget", "9", "--first", "2"], "`--first` and `--time` must be given together."),
        (
            ["--budget", "9", "--first", "2", "--time", "annotator"],
            "`--first` must be left out without --model: all labels count",
        ),
    ],
)
def test_bad_input_gets_one_line(
    run: Run, study: Study, tmp_path: Path, arguments: list[str], message: str
) -> None:
    outcome = next_(run, study, tmp_path / "buy.csv", *arguments)

    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert not (tmp_path / "buy.csv").exists()


def test_other_endings_are_refused_at_once(run: Run, study: Study, tmp_path: Path) -> None:
    outcome = next_(run, study, tmp_path / "buy.xlsx", "--budget", "9")

    assert outcome.code == 2
    assert "buy.xlsx" in outcome.err


def test_an_item_column_is_needed_without_a_model(run: Run, study: Study, tmp_path: Path) -> None:
    output = ["-o", str(tmp_path / "buy.csv")]
    outcome = run("next", study / "labels.parquet", *output, "--label", "label", "--budget", "9")

    assert "`--item` must be given, or --model, which knows it." in outcome.err


def test_one_label_per_item_is_said_to_be_too_few(run: Run, tmp_path: Path) -> None:
    rows = [f"{i},{'yes' if i % 3 else 'no'}" for i in range(30)]
    (tmp_path / "labels.csv").write_text("\n".join(["item,label", *rows]), "utf-8")
    files = [str(tmp_path / "labels.csv"), "-o", str(tmp_path / "buy.csv")]
    outcome = run("next", *files, *COLUMNS, "--budget", "9")

    assert outcome.code == 0
    assert outcome.err.startswith("hocal: No item has two labels")
