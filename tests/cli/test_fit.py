"""`hocal fit`: the same model as in Python, from every form of table."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hocal
from command_line import CLASSES, N_ITEMS, N_LABELS, Run, Study
from engines import spark, why_no_spark  # noqa: F401
from hocal.calibration.persistence import read_notes
from hocal.cli import fit
from hocal.cli.left_out import say_left_out

LONG = "--item item --label label --n-slices 2"
NAMES = "item,label,annotator"


FITTED: dict[str, hocal.SnapshotCalibrator] = {}  # of the study, by options


def in_python(study: Study, **options: Any) -> hocal.SnapshotCalibrator:
    """Fit the study once for all tests that ask for the same."""
    if repr(options) not in FITTED:
        calibrator = hocal.SnapshotCalibrator(hocal.TopLabelPartition(2), **options)
        FITTED[repr(options)] = calibrator.fit(study.probabilities, study.counts)
    return FITTED[repr(options)]


def assert_same_model(path: Path | str, expected: hocal.SnapshotCalibrator) -> None:
    found = hocal.load(path)
    assert (found.statistics_.predicted == expected.statistics_.predicted).all()
    assert (found.cell_mixtures_.points == expected.cell_mixtures_.points).all()
    assert (found.cell_mixtures_.weights == expected.cell_mixtures_.weights).all()


@pytest.mark.parametrize(
    ("labels", "predictions", "options"),
    [
        ("labels.parquet", "predictions.parquet", LONG),
        ("labels.csv", "predictions.csv", LONG),
        ("labels.csv", "predictions.parquet", LONG),
        ("labels.parquet", "predictions.csv", f"{LONG} --annotator annotator"),
        ("label?.parquet", "predictions.parquet", LONG),
        (
            "labels.parquet",
            "lists.parquet",
            f"{LONG} --probability-columns p --classes ant,bee,cat",
        ),
        (
            "wide.csv",
            "predictions.csv",
            '--item item --n-slices 2 --label ["person\\u00200","person\\u00201","person\\u00202"]',
        ),
        (
            "counts.parquet",
            "predictions.parquet",
            "--item item --n-slices 2 --count-columns ant,bee,cat",
        ),
        (
            "counts.csv",
            "predictions.parquet",
            "--item item --n-slices 2 --count-columns ant,bee,cat",
        ),
    ],
    ids=[
        "parquet",
        "csv",
        "csv and parquet",
        "parquet and csv",
        "pattern",
        "lists",
        "wide",
        "counts",
        "csv counts",
    ],
)
def test_model_is_the_one_that_python_fits(
    run: Run, study: Study, tmp_path: Path, labels: str, predictions: str, options: str
) -> None:
    outcome = run(
        "fit",
        study / labels,
        study / predictions,
        *options.split(),
        "-o",
        str(tmp_path / "m.hocal"),
    )

    assert outcome.code == 0, outcome.err
    assert_same_model(tmp_path / "m.hocal", in_python(study))


def test_options_are_those_of_the_calibrator(run: Run, study: Study, tmp_path: Path) -> None:
    run(
        *study.fit,
        "--method",
        "empirical",
        "--k",
        "2",
        "--panel-size",
        "5",
        "-o",
        str(tmp_path / "m.hocal"),
    )

    assert_same_model(tmp_path / "m.hocal", in_python(study, method="empirical", k=2))
    assert hocal.load(tmp_path / "m.hocal").panel_size == 5


def test_mixtures_of_items_are_those_of_python(run: Run, study: Study, tmp_path: Path) -> None:
    run(*study.fit, "-o", str(tmp_path / "m.hocal"))

    found = hocal.load(tmp_path / "m.hocal").decompose(study.probabilities)
    expected = in_python(study).decompose(study.probabilities)
    assert found.aleatoric == pytest.approx(expected.aleatoric)


def test_cells_are_counted_without_items(run: Run, study: Study, tmp_path: Path) -> None:
    outcome = run(*study.fit, "--method", "cells", "--json", "-o", str(tmp_path / "m.hocal"))

    model = hocal.load(tmp_path / "m.hocal")
    parts = model.decompose(study.probabilities)
    assert (outcome.err, outcome.json["method"], model.item_model_) == ("", "cells", None)
    assert outcome.json["aleatoric"] == pytest.approx(parts.aleatoric.mean())


def test_items_that_do_not_fit_share_the_mixture_of_their_cell(
    run: Run, study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit, "MAX_NUMBERS", 3 * 120 - 1)

    outcome = run(*study.fit, "--json", "-o", str(tmp_path / "m.hocal"))

    assert outcome.err == (
        "hocal: 120 items do not fit: one mixture per cell instead; "
        "--method cells says so beforehand.\n"
    )
    assert outcome.json["method"] == "cells"
    assert_same_model(tmp_path / "m.hocal", in_python(study, method="cells"))


def test_blocks_do_not_change_the_summary(
    run: Run, study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(*study.fit, "--json", "-o", str(tmp_path / "m.hocal")).json
    monkeypatch.setattr(fit, "ROWS", 50)
    parts = run(*study.fit, "--json", "-o", str(tmp_path / "n.hocal")).json

    assert parts["epistemic"] == pytest.approx(whole["epistemic"], abs=1e-6)


def test_uniform_partition_is_for_two_classes(run: Run, study: Study, tmp_path: Path) -> None:
    arguments = [part for part in study.fit if part not in ("--n-slices", "2")]
    outcome = run(*arguments, "--partition", "uniform", "-o", str(tmp_path / "m.hocal"))

    assert outcome.code == 2
    assert "must have two classes for a UniformPartition, got 3" in outcome.err


def test_cells_may_come_with_the_predictions(run: Run, study: Study, tmp_path: Path) -> None:
    arguments = f"--item item --label label --cell cell --n-cells 3 -o {tmp_path}/m.hocal"
    outcome = run("fit", study / "labels.parquet", study / "cells.parquet", *arguments.split())

    assert outcome.code == 0, outcome.err
    expected = hocal.SnapshotCalibrator(hocal.PrecomputedPartition(3))
    expected.fit(study.probabilities, study.counts, cells=study.probabilities.argmax(axis=1))
    assert_same_model(tmp_path / "m.hocal", expected)


def test_a_compressed_file_without_a_header_takes_names(
    run: Run, study: Study, tmp_path: Path
) -> None:
    lines = Path(study / "labels.csv").read_text("utf-8").splitlines(keepends=True)[1:]
    (tmp_path / "raw.tsv.gz").write_bytes(gzip.compress("".join(lines).replace(",", "\t").encode()))

    outcome = run(
        "fit", str(tmp_path / "raw.tsv.gz"), study / "predictions.csv", *LONG.split(),
        "--names", NAMES,
        "-o", str(tmp_path / "m.hocal"),
    )  # fmt: skip

    assert outcome.code == 0, outcome.err
    assert_same_model(tmp_path / "m.hocal", in_python(study))


def test_model_file_remembers_the_names_of_classes_and_columns(study: Study) -> None:
    notes = read_notes(study / "model.hocal")

    assert notes["item"] == "item"
    assert json.loads(notes["classes"]) == json.loads(notes["probability_columns"]) == CLASSES


def test_summary_for_machines_is_json(run: Run, study: Study, tmp_path: Path) -> None:
    summary = run(*study.fit, "--json", "-o", str(tmp_path / "m.hocal")).json

    parts = in_python(study).decompose(study.probabilities)
    assert (summary["n_items"], summary["n_labels"], summary["classes"]) == (120, 360, CLASSES)
    assert summary["aleatoric"] == pytest.approx(parts.aleatoric.mean())


def test_summary_for_people_is_a_table(run: Run, study: Study, tmp_path: Path) -> None:
    outcome = run(*study.fit, "-o", str(tmp_path / "m.hocal"))

    assert "aleatoric" in outcome.out
    assert "ant, bee, cat" in outcome.out
    assert outcome.err == ""


def test_people_read_words_and_units_where_machines_read_keys(
    run: Run, study: Study, tmp_path: Path
) -> None:
    outcome = run(*study.fit, "-o", str(tmp_path / "m.hocal"))

    assert "fewest labels of an item" in outcome.out
    assert "aleatoric, nats" in outcome.out
    assert not any(
        "_" in line.split("│")[1] for line in outcome.out.splitlines() if line.startswith("│")
    )


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["people", "machines"])
def test_one_label_per_item_comes_with_a_note_for_people(
    run: Run, study: Study, tmp_path: Path, more: list[str]
) -> None:
    lines = Path(study / "labels.csv").read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "one.csv").write_text("".join(lines[:1] + lines[1::3]), "utf-8")
    files = [str(tmp_path / "one.csv"), study / "predictions.csv"]

    outcome = run("fit", *files, *LONG.split(), "-o", str(tmp_path / "m.hocal"), *more)

    assert outcome.code == 0
    assert outcome.err.startswith("hocal: No item has two labels." if not more else "")
    assert outcome.err.count("\n") == (not more)


MESSY = (
    "item,label,annotator\n"
    "1,ant,a\n1,bee,b\n2,cat,a\n2,cat,a\n2,bee,b\n3,dog,a\n3,ant,b\n3,,c\n4,ant,a\n"
)
WIDE = "item,x,y\n1,ant,bee\n2,,bee\n3,dog,ant\n4,ant,ant\n"
LEFT_OUT = {"missing": 1, "unknown": 1, "duplicates": 2, "unpredicted": 1, "unlabelled": 1}


@pytest.mark.parametrize(
    ("labels", "options", "left_out"),
    [
        (MESSY, "--label label --annotator annotator --missing drop --duplicates drop", LEFT_OUT),
        (WIDE, "--label x,y", {"unknown": 1, "unpredicted": 2, "unlabelled": 1}),
        (
            f"{WIDE}1,cat,cat\n",
            "--label x,y --duplicates drop",
            {"unknown": 1, "duplicates": 4, "unpredicted": 2, "unlabelled": 2},
        ),
        ("item,x,y,z\n1,1,1,0\n2,0,2,0\n", "--count-columns x,y,z", {"unlabelled": 2}),
    ],
    ids=["long", "wide", "wide and repeated", "counts"],
)
def test_what_is_left_out_is_counted(
    run: Run, tmp_path: Path, labels: str, options: str, left_out: dict[str, int]
) -> None:
    rows = "item,ant,bee,cat\n" + "".join(f"{item},0.2,0.3,0.5\n" for item in (1, 2, 3, 5))
    (tmp_path / "labels.csv").write_text(labels, "utf-8")
    (tmp_path / "p.csv").write_text(rows, "utf-8")
    rules = "--unlabelled drop --unpredicted drop --item item --method empirical --json"
    unknown = [] if "count-columns" in options else ["--unknown", "drop"]

    outcome = run(
        "fit", str(tmp_path / "labels.csv"), str(tmp_path / "p.csv"), *rules.split(),
        *options.split(), *unknown,
        "-o", str(tmp_path / "m.hocal"),
    )  # fmt: skip

    assert outcome.code == 0, outcome.err
    assert outcome.json["left_out"] == left_out


def test_what_is_left_out_is_said_in_one_line() -> None:
    assert say_left_out(LEFT_OUT | {"unlabelled": 0}) == (
        "1 label with a missing value, 1 label outside the classes, "
        "2 labels by people who judged the item twice, "
        "1 label of items without a prediction"
    )
    assert say_left_out({"unlabelled": 2}) == "2 items without a label"
    assert say_left_out({"missing": 0}) == "nothing"


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets of Spark's gateway
def test_spark_gives_the_same_model(
    run: Run,
    study: Study,
    tmp_path: Path,
    spark: Any,  # noqa: ARG001, F811
) -> None:
    outcome = run(*study.fit, "--engine", "spark", "-o", str(tmp_path / "m.hocal"))

    assert outcome.code == 0, outcome.err
    assert_same_model(tmp_path / "m.hocal", in_python(study))


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_spark_reads_csv_without_a_header(
    run: Run,
    study: Study,
    tmp_path: Path,
    spark: Any,  # noqa: ARG001, F811
) -> None:
    lines = Path(study / "labels.csv").read_text("utf-8").splitlines(keepends=True)[1:]
    (tmp_path / "raw.csv").write_text("".join(lines), "utf-8")

    outcome = run(
        "fit", str(tmp_path / "raw.csv"), study / "predictions.csv", *LONG.split(),
        "--names", NAMES,
        "--engine", "spark", "-o", str(tmp_path / "m.hocal"),
    )  # fmt: skip

    assert outcome.code == 0, outcome.err
    assert_same_model(tmp_path / "m.hocal", in_python(study))


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_spark_counts_the_export_of_a_tool(
    run: Run,
    study: Study,
    tmp_path: Path,
    spark: Any,  # noqa: ARG001, F811
) -> None:
    rows = Path(study / "labels.csv").read_text("utf-8").splitlines()[1:]
    text = ["Input.item,Answer.insect.label,WorkerId,HITId", *(f"{row},H" for row in rows)]
    (tmp_path / "batch.csv").write_text("\n".join(text), "utf-8")

    outcome = run(
        "fit", str(tmp_path / "batch.csv"), study / "predictions.csv", "--item", "item",
        "--method", "cells", "--engine", "spark", "-o", str(tmp_path / "m.hocal"), "--json",
    )  # fmt: skip

    assert outcome.code == 0, outcome.err
    assert outcome.json["n_labels"] == N_ITEMS * N_LABELS


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_missing_file_on_spark_is_one_line(
    run: Run,
    study: Study,
    tmp_path: Path,
    spark: Any,  # noqa: ARG001, F811
) -> None:
    outcome = run(
        "fit", str(tmp_path / "no.parquet"), study / "predictions.parquet", *LONG.split(),
        "--engine", "spark",
        "-o", str(tmp_path / "m.hocal"),
    )  # fmt: skip

    assert outcome.code == 2
    assert "no.parquet" in outcome.err
    assert outcome.err.count("\n") == 1


def test_classes_follow_the_order_of_the_columns(run: Run, study: Study, tmp_path: Path) -> None:
    order = ["cat", "ant", "bee"]
    run(*study.fit, "--probability-columns", ",".join(order), "-o", str(tmp_path / "m.hocal"))

    numbers = [CLASSES.index(name) for name in order]
    expected = hocal.SnapshotCalibrator(hocal.TopLabelPartition(2))
    expected.fit(study.probabilities[:, numbers], study.counts[:, numbers])
    assert_same_model(tmp_path / "m.hocal", expected)


def test_unlabelled_items_may_be_dropped(run: Run, study: Study, tmp_path: Path) -> None:
    lines = Path(study / "labels.csv").read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "some.csv").write_text("".join(lines[: 1 + 3 * 60]), "utf-8")
    arguments = ["fit", str(tmp_path / "some.csv"), study / "predictions.csv", *LONG.split()]

    refused = run(*arguments, "-o", str(tmp_path / "m.hocal"))
    outcome = run(*arguments, "--unlabelled", "drop", "--json", "-o", str(tmp_path / "m.hocal"))

    assert refused.code == 2
    assert "--unlabelled drop" in refused.err
    assert outcome.json["n_items"] == 60


def test_an_existing_model_is_kept_unless_forced(run: Run, study: Study, tmp_path: Path) -> None:
    (tmp_path / "m.hocal").write_text("precious")

    refused = run(*study.fit, "-o", str(tmp_path / "m.hocal"))
    kept = (tmp_path / "m.hocal").read_text()
    forced = run(*study.fit, "-o", str(tmp_path / "m.hocal"), "--force")

    assert (refused.code, kept, forced.code) == (2, "precious", 0)
    assert "already exists" in refused.err
    assert_same_model(tmp_path / "m.hocal", in_python(study))
    assert [path.name for path in tmp_path.iterdir()] == ["m.hocal"]


def test_an_array_of_fixed_size_is_a_list(run: Run, study: Study, tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    flat = pa.array(study.probabilities.ravel())
    lists = pa.FixedSizeListArray.from_arrays(flat, 3)
    parquet.write_table(pa.table({"item": np.arange(120), "p": lists}), tmp_path / "fixed.parquet")
    arguments = f"{LONG} --probability-columns p --classes ant,bee,cat -o {tmp_path}/m.hocal"

    outcome = run(
        "fit", study / "labels.parquet", str(tmp_path / "fixed.parquet"), *arguments.split()
    )

    assert outcome.code == 0, outcome.err
    assert_same_model(tmp_path / "m.hocal", in_python(study))


@pytest.mark.slow
@pytest.mark.skipif(bool(why_no_spark()), reason=why_no_spark() or "present")
def test_a_local_spark_is_started_and_stopped(study: Study, tmp_path: Path) -> None:
    """In a process of its own, where no Spark is running yet."""
    arguments = [*study.fit, "--engine", "spark", "--spark-master", "local[1]", "--json"]
    code = "from hocal.cli import main; main()"

    done = subprocess.run(
        [sys.executable, "-c", code, *arguments, "-o", str(tmp_path / "m.hocal")],
        capture_output=True,
        check=True,
    )

    assert json.loads(done.stdout)["n_items"] == 120
    assert_same_model(tmp_path / "m.hocal", in_python(study))


def test_a_name_with_brackets_is_no_pattern(run: Run, study: Study, tmp_path: Path) -> None:
    shutil.copy(study / "labels.csv", tmp_path / "labels [1].csv")
    (tmp_path / "labels 1.csv").write_text("not this one", "utf-8")

    outcome = run(
        "fit",
        str(tmp_path / "labels [1].csv"),
        study / "predictions.csv",
        *LONG.split(),
        "-o",
        str(tmp_path / "m.hocal"),
    )

    assert outcome.code == 0, outcome.err


def test_a_folder_of_parquet_files_is_a_table(run: Run, study: Study, tmp_path: Path) -> None:
    (tmp_path / "labels.parquet").mkdir()
    shutil.copy(study / "labels.parquet", tmp_path / "labels.parquet" / "part-0.parquet")
    files = [str(tmp_path / "labels.parquet"), study / "predictions.parquet"]

    outcome = run("fit", *files, *LONG.split(), "-o", str(tmp_path / "m.hocal"))

    assert outcome.code == 0, outcome.err
    assert_same_model(tmp_path / "m.hocal", in_python(study))
