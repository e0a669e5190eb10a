"""`hocal compare`: the comparison of the Python interface, for people and for machines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import hocal
from command_line import CLASSES, N_ITEMS, Outcome, Run, Study

LABELS = ["--item", "item", "--label", "label"]


@pytest.fixture
def timid(study: Study, tmp_path: Path) -> str:
    """Another model's predictions, its columns and rows in another order."""
    p = 0.5 * study.probabilities + 0.5 / 3
    columns = dict(zip(CLASSES, p.T, strict=True))
    table = pa.table({"item": np.arange(N_ITEMS)} | {name: columns[name] for name in CLASSES[::-1]})
    parquet.write_table(table.take(np.arange(N_ITEMS)[::-1]), tmp_path / "timid.parquet")
    return str(tmp_path / "timid.parquet")


def test_numbers_are_those_of_python_whatever_the_order_of_columns_and_rows(
    run: Run, study: Study, timid: str
) -> None:
    files = [timid, study / "predictions.parquet", study / "labels.parquet"]
    found = run("compare", *files, *LABELS, "--loss", "brier", "--confidence", "0.9", "--json").json

    p = study.probabilities
    expected = hocal.compare(0.5 * p + 0.5 / 3, p, study.counts, loss="brier", confidence=0.9)
    assert found["models"] == ["timid", "predictions"]
    for name in ("first", "second", "difference", "share_closed"):
        values = {key: value for key, value in found[name].items() if value is not None}
        finite = {k: v for k, v in getattr(expected, name)._asdict().items() if np.isfinite(v)}
        assert values == pytest.approx(finite)
    assert sorted(found["per_class"]) == sorted(CLASSES[j] for j in expected.per_class)
    assert found["better"] == expected.better


def test_people_get_a_table_by_class_and_a_sentence(run: Run, study: Study, timid: str) -> None:
    files = [timid, study / "predictions.csv", study / "counts.csv"]
    counts = ["--item", "item", "--count-columns", ",".join(CLASSES), "--loss", "accuracy"]

    outcome = run("compare", *files, *counts)

    assert outcome.code == 0
    text = " ".join(outcome.out.split())
    assert "error rate of timid, the first" in text
    assert "The error rate of the two models is" in text
    assert all(name in text for name in CLASSES)


def test_lists_of_probabilities_are_compared(run: Run, study: Study) -> None:
    files = [study / "lists.parquet", study / "lists.parquet", study / "labels.parquet"]

    found = run(
        "compare", *files, *LABELS, "--classes", ",".join(CLASSES), "--loss", "brier", "--json"
    ).json

    assert found["difference"]["estimate"] == 0


def compare_with(second: Path, run: Run, study: Study) -> Outcome:
    """Compare the predictions of the study with others, in files of the same kind."""
    predictions, labels = (study / f"{name}{second.suffix}" for name in ("predictions", "labels"))
    return run("compare", predictions, str(second), labels, *LABELS)


def test_other_classes_are_refused(run: Run, study: Study, tmp_path: Path) -> None:
    p = study.probabilities
    table = pa.table({"item": np.arange(N_ITEMS), "ant": p[:, 0], "bee": p[:, 1], "dog": p[:, 2]})
    csv.write_csv(table, tmp_path / "other.csv")

    outcome = compare_with(tmp_path / "other.csv", run, study)

    assert outcome.code == 2
    assert outcome.err.startswith("hocal: SECOND must have the classes of FIRST, got ant, bee, dog")


def test_items_that_only_one_model_predicted_are_left_out_on_request(
    run: Run, study: Study, timid: str, tmp_path: Path
) -> None:
    some = parquet.read_table(study / "predictions.parquet").slice(0, 100)
    parquet.write_table(some, tmp_path / "some.parquet")
    command = ["compare", timid, str(tmp_path / "some.parquet"), study / "labels.parquet", *LABELS]

    refused = run(*command, "--loss", "brier")
    dropped = run(*command, "--loss", "brier", "--unpredicted", "drop", "--json")

    assert refused.code == 2
    assert refused.err.startswith("hocal: SECOND must have a row for each labelled item")
    assert dropped.json["n_items"] == 100


@pytest.mark.parametrize("kinds", [("csv", "parquet"), ("parquet", "csv")])
def test_items_are_matched_whether_they_are_numbers_or_text(
    run: Run, study: Study, timid: str, tmp_path: Path, kinds: tuple[str, str]
) -> None:
    """All of CSV is text, whose order of items is another one."""
    csv.write_csv(parquet.read_table(timid), tmp_path / "timid.csv")
    labels = [study / "labels.parquet", *LABELS, "--json"]
    alike = run("compare", timid, study / "predictions.parquet", *labels).json

    mixed = run(
        "compare",
        str(tmp_path / f"timid.{kinds[0]}"),
        study / f"predictions.{kinds[1]}",
        *labels,
    ).json

    assert mixed["difference"]["estimate"] == pytest.approx(alike["difference"]["estimate"])


def test_models_without_a_common_item_are_told_what_to_do(
    run: Run, study: Study, tmp_path: Path
) -> None:
    predictions = parquet.read_table(study / "predictions.parquet")
    for name, start in (("one", 0), ("two", 50)):
        parquet.write_table(predictions.slice(start, 50), tmp_path / f"{name}.parquet")
    files = [str(tmp_path / f"{name}.parquet") for name in ("one", "two")]

    found = run("compare", *files, study / "labels.parquet", *LABELS, "--unpredicted", "drop")

    assert found.code == 2
    assert "must have the same items, got '0' in one of them. Name items in the same" in found.err


def test_a_stream_of_log_losses_asks_for_a_floor(run: Run, study: Study, timid: str) -> None:
    outcome = run(
        "compare", timid, study / "predictions.csv", study / "labels.csv", *LABELS, "--anytime"
    )

    assert outcome.code == 2
    assert outcome.err.startswith("hocal: `--floor` must be given for the log loss of a stream")


def test_a_zero_is_refused_by_the_name_of_its_item(run: Run, study: Study, tmp_path: Path) -> None:
    p = study.probabilities.copy()
    p[17] = [1, 0, 0]
    table = pa.table({"item": np.arange(N_ITEMS)} | dict(zip(CLASSES, p.T, strict=True)))
    parquet.write_table(table, tmp_path / "sure.parquet")

    outcome = compare_with(tmp_path / "sure.parquet", run, study)

    assert outcome.code == 2
    assert outcome.err.startswith("hocal: SECOND must be above 0")
    assert "for item 17" in outcome.err
    assert "--loss brier" in outcome.err
