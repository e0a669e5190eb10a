"""`hocal predict`: the numbers of the Python interface, in every format and batch size."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import hocal
from command_line import CLASSES, Run, Study
from hocal.cli import predict

QUANTITIES = ("aleatoric", "epistemic", "predictive")


def read(path: Path | str) -> Any:
    """Return a table of predictions by column, with NaN for what is missing."""
    import duckdb

    with duckdb.connect() as connection:
        kind = "parquet" if str(path).endswith("parquet") else "csv"
        table = connection.sql(f"SELECT * FROM read_{kind}('{path}')").to_arrow_table()
    return {name: table[name].to_numpy() for name in table.column_names}


@pytest.mark.parametrize("output", ["out.parquet", "out.csv", "out.tsv", "out.csv.gz"])
@pytest.mark.parametrize("source", ["predictions.parquet", "predictions.csv", "lists.parquet"])
def test_numbers_are_those_of_python(
    run: Run, study: Study, tmp_path: Path, source: str, output: str
) -> None:
    columns = ["--probability-columns", "p"] if source == "lists.parquet" else []
    outcome = run(
        "predict", study / "model.hocal", study / source, *columns, "-o", str(tmp_path / output)
    )

    assert outcome.code == 0, outcome.err
    table, calibrator = read(tmp_path / output), hocal.load(study / "model.hocal")
    parts, cells = (
        calibrator.decompose(study.probabilities),
        calibrator.partition_.assign(study.probabilities),
    )
    assert [str(item) for item in table["item"]] == [str(item) for item in range(120)]
    assert (table["cell"] == cells).all()
    assert table["cell_name"][cells == 1].tolist() == ["ant, 50 to 100%"] * (cells == 1).sum()
    assert (
        table["top_class"].tolist()
        == np.array(CLASSES)[study.probabilities.argmax(axis=1)].tolist()
    )
    for name in QUANTITIES:
        assert (table[name] == getattr(parts, name)).all()


@pytest.mark.parametrize("entropy", ["shannon", "brier"])
def test_intervals_are_those_of_the_cell(
    run: Run, study: Study, tmp_path: Path, entropy: str
) -> None:
    options = f"--confidence 0.8 --simultaneous --entropy {entropy} -o {tmp_path}/out.parquet"
    run("predict", study / "model.hocal", study / "predictions.parquet", *options.split())

    table, calibrator = read(tmp_path / "out.parquet"), hocal.load(study / "model.hocal")
    certificate = calibrator.certify(0.8, simultaneous=True)
    for name in QUANTITIES:
        lower, upper = certificate.interval(name, entropy)
        assert (table[f"cell_{name}_lower"] == lower[table["cell"]]).all()
        assert (table[f"cell_{name}_upper"] == upper[table["cell"]]).all()


def test_a_cell_without_calibration_items_has_no_interval(run: Run, tmp_path: Path) -> None:
    calibrator = hocal.SnapshotCalibrator(hocal.TopLabelPartition(2)).fit(
        [[0.9, 0.1]] * 3, [[2, 0]] * 3
    )
    hocal.save(calibrator, tmp_path / "m.hocal")
    (tmp_path / "p.csv").write_text("item,a,b\nx,0.9,0.1\ny,0.1,0.9\n", "utf-8")

    run(
        "predict",
        str(tmp_path / "m.hocal"),
        str(tmp_path / "p.csv"),
        "-o",
        str(tmp_path / "out.parquet"),
    )

    table = parquet.read_table(tmp_path / "out.parquet")
    assert [value is None for value in table["cell_aleatoric_lower"].to_pylist()] == [False, True]
    assert table["aleatoric"].null_count == 0


def test_a_limit_of_zero_has_no_sign(run: Run, tmp_path: Path) -> None:
    calibrator = hocal.SnapshotCalibrator(hocal.TopLabelPartition(2)).fit(
        [[0.9, 0.1]] * 3, [[2, 0]] * 3
    )
    hocal.save(calibrator, tmp_path / "m.hocal")
    (tmp_path / "p.csv").write_text("item,a,b\nx,0.9,0.1\n", "utf-8")
    files = [str(tmp_path / "m.hocal"), str(tmp_path / "p.csv")]

    run("predict", *files, "--entropy", "brier", "-o", str(tmp_path / "out.csv"))

    assert "-0" not in (tmp_path / "out.csv").read_text("utf-8")


def test_a_model_saved_from_python_has_numbered_classes(run: Run, tmp_path: Path) -> None:
    hocal.save(hocal.SnapshotCalibrator().fit([[0.9, 0.1]] * 3, [[2, 0]] * 3), tmp_path / "m.hocal")
    (tmp_path / "p.csv").write_text("image,a,b\nx,0.1,0.9\n", "utf-8")
    files = str(tmp_path / "m.hocal"), str(tmp_path / "p.csv")

    run("predict", *files, "--item", "image", "-o", str(tmp_path / "out.parquet"))

    assert parquet.read_table(tmp_path / "out.parquet")["top_class"].to_pylist() == ["1"]


def test_batches_do_not_change_the_result(
    run: Run, study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["predict", study / "model.hocal", study / "predictions.parquet", "-o"]
    run(*arguments, str(tmp_path / "whole.parquet"))
    monkeypatch.setattr(predict, "ROWS", 7)
    run(*arguments, str(tmp_path / "parts.parquet"))

    whole, parts = (parquet.read_table(tmp_path / f"{name}.parquet") for name in ("whole", "parts"))
    others = [name for name in whole.column_names if name not in QUANTITIES]
    assert whole.select(others).equals(parts.select(others))
    for name in QUANTITIES:
        # products of matrices of other heights round differently, in single precision
        assert parts[name].to_numpy() == pytest.approx(whole[name].to_numpy(), abs=1e-6)


def test_items_of_a_cell_have_numbers_of_their_own(run: Run, study: Study, tmp_path: Path) -> None:
    files = [study / "model.hocal", study / "predictions.parquet"]
    run("predict", *files, "-o", str(tmp_path / "out.parquet"))

    table = read(tmp_path / "out.parquet")
    fullest = table["cell"] == np.bincount(table["cell"]).argmax()
    assert len(np.unique(table["aleatoric"][fullest])) > 1
    assert len(np.unique(table["cell_aleatoric_lower"][fullest])) == 1


def test_cells_that_come_with_the_data_are_used(run: Run, study: Study, tmp_path: Path) -> None:
    options = f"--item item --label label --cell cell --n-cells 3 -o {tmp_path}/m.hocal"
    run("fit", study / "labels.parquet", study / "cells.parquet", *options.split())

    run(
        "predict",
        str(tmp_path / "m.hocal"),
        study / "cells.parquet",
        "-o",
        str(tmp_path / "out.parquet"),
    )

    assert (read(tmp_path / "out.parquet")["cell"] == study.probabilities.argmax(axis=1)).all()


def test_a_table_without_rows_gives_one_without_rows(
    run: Run, study: Study, tmp_path: Path
) -> None:
    (tmp_path / "none.csv").write_text("item,ant,bee,cat\n", "utf-8")

    outcome = run(
        "predict",
        study / "model.hocal",
        str(tmp_path / "none.csv"),
        "--json",
        "-o",
        str(tmp_path / "out.parquet"),
    )

    assert outcome.json["n_items"] == 0
    assert parquet.read_table(tmp_path / "out.parquet").num_rows == 0


def test_items_keep_their_type_in_parquet(run: Run, study: Study, tmp_path: Path) -> None:
    run(
        "predict",
        study / "model.hocal",
        study / "predictions.parquet",
        "-o",
        str(tmp_path / "out.parquet"),
    )

    assert parquet.read_schema(tmp_path / "out.parquet").field("item").type == pa.int64()


def test_items_of_a_csv_file_keep_their_zeros(run: Run, study: Study, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text('item,ant,bee,cat\n007,0.2,0.3,0.5\n"a, b",1,0,0\n', "utf-8")

    run(
        "predict",
        study / "model.hocal",
        str(tmp_path / "p.csv"),
        "-o",
        str(tmp_path / "out.parquet"),
    )

    assert parquet.read_table(tmp_path / "out.parquet")["item"].to_pylist() == ["007", "a, b"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("0.2,0.3,0.4", "must sum to 1 over the classes, got 0.9 for item 'b' in row 2"),
        ("-0.1,0.6,0.5", "must be non-negative numbers, got -0.1 for item 'b' in row 2"),
        (",0.5,0.5", "must be non-negative numbers, got nan for item 'b' in row 2"),
        ("x,0.5,0.5", "p.csv, line 3: "),
    ],
    ids=["sum", "negative", "gap", "text"],
)
def test_a_wrong_prediction_is_named_and_leaves_no_output(
    run: Run, study: Study, tmp_path: Path, row: str, message: str
) -> None:
    (tmp_path / "p.csv").write_text(f"item,ant,bee,cat\na,1,0,0\nb,{row}\nc,1,0,0\n", "utf-8")

    outcome = run(
        "predict", study / "model.hocal", str(tmp_path / "p.csv"), "-o", str(tmp_path / "out.csv")
    )

    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]


def test_a_list_of_another_length_is_named(run: Run, study: Study, tmp_path: Path) -> None:
    lists = pa.table({"item": ["a", "b"], "p": [[0.5, 0.3, 0.2], [0.5, 0.5]]})
    parquet.write_table(lists, tmp_path / "p.parquet")
    files = study / "model.hocal", str(tmp_path / "p.parquet")

    outcome = run("predict", *files, "--probability-columns", "p", "-o", str(tmp_path / "out.csv"))

    assert outcome.code == 2
    assert "got nan for item 'b' in row 2" in outcome.err


@pytest.mark.slow
def test_memory_does_not_grow_with_the_table(study: Study, tmp_path: Path) -> None:
    """Two million rows need little more memory than two hundred thousand."""
    import duckdb

    peaks = []
    for n_rows in (200_000, 2_000_000):
        with duckdb.connect() as connection:
            connection.execute(
                "COPY (SELECT i AS item, 0.2 + 0.5 * ((i * 7919) % 1000) / 1000 AS ant, "
                "0.1 AS bee, 0.9 - ant AS cat "
                f"FROM range({n_rows}) t(i)) TO '{tmp_path}/p.parquet'"
            )
        code = (
            "import re, sys\nfrom hocal.cli import main\n"
            "try:\n    main(sys.argv[1:])\nfinally:\n"
            "    status = open('/proc/self/status').read()\n"  # of this process, not of its parent
            "    print(re.search(r'VmHWM:\\s+(\\d+)', status)[1], file=sys.stderr)"
        )
        arguments = [
            "predict",
            study / "model.hocal",
            f"{tmp_path}/p.parquet",
            "-o",
            f"{tmp_path}/o.parquet",
            "--force",
        ]
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
        )
        peaks.append(int(done.stderr.splitlines()[-1]) / 1024)  # MB on Linux

    assert peaks[1] - peaks[0] < 200
    assert peaks[1] < 1200
