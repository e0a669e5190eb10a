"""Groups, features and ensembles on the command line: fit, and every command that takes a model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import hocal
from command_line import CLASSES, N_ITEMS, Outcome, Run, Study
from hocal.calibration.persistence import read_notes

GROUPS = np.where(np.arange(N_ITEMS) % 3 == 0, "style", "truth")


@pytest.fixture(scope="module")
def beside(study: Study, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Write predictions with groups and numbers beside them, files of features, and a member."""
    folder = Study(tmp_path_factory.mktemp("beside"), study.probabilities, study.counts)
    items = np.arange(N_ITEMS)
    own = dict(zip(CLASSES, study.probabilities.T, strict=True))
    numbers = np.random.default_rng(3).normal(size=(N_ITEMS, 2))
    np.save(folder / "features.npy", numbers)
    np.save(folder / "short.npy", numbers[:-1])
    order = np.random.default_rng(4).permutation(N_ITEMS)
    shuffled = {"item": order, "x": numbers[order, 0], "y": numbers[order, 1]}
    parquet.write_table(pa.table(shuffled), folder / "features.parquet")
    parquet.write_table(pa.table(shuffled).slice(5), folder / "few.parquet")
    csv.write_csv(pa.table(shuffled), folder / "features.csv")
    table = pa.table({"item": items, "aspect": GROUPS, **own})
    parquet.write_table(table, folder / "groups.parquet")
    csv.write_csv(table, folder / "groups.csv")
    more = {"x": numbers[:, 0], "y": numbers[:, 1]}
    parquet.write_table(pa.table({"item": items, **own, **more}), folder / "columns.parquet")
    flat = {name: np.full(N_ITEMS, 1 / 3) for name in CLASSES}
    member = pa.table({"item": items, **flat}).take(order)
    csv.write_csv(member, folder / "second.csv")
    csv.write_csv(member.slice(2), folder / "gaps.csv")
    return folder


def fit(run: Run, study: Study, table: str, output: Path, *more: str) -> Outcome:
    columns = ["--item", "item", "--label", "label", "--n-slices", "2", "-o", str(output)]
    return run("fit", study / "labels.parquet", table, *columns, *more)


def members(study: Study) -> np.ndarray:
    return np.stack([study.probabilities, np.full_like(study.probabilities, 1 / 3)], axis=1)


@pytest.fixture(scope="module")
def fitted(study: Study, beside: Study) -> dict[str, hocal.SnapshotCalibrator]:
    """Fit in Python: one model with groups, one with features, one with an ensemble."""
    p, numbers = study.probabilities, np.load(beside / "features.npy")
    known = {
        "by": (p, {"by": GROUPS}),
        "features": (p, {"features": numbers}),
        "ensemble": (members(study), {}),
    }
    return {
        name: hocal.SnapshotCalibrator(hocal.TopLabelPartition(2)).fit(
            inputs, study.counts, **given
        )
        for name, (inputs, given) in known.items()
    }


@pytest.fixture(scope="module")
def models(beside: Study, fitted: dict[str, hocal.SnapshotCalibrator]) -> dict[str, str]:
    """Save them as `hocal fit` does, without names of features and members, which are files."""
    notes = {"item": "item", "by": "aspect", "classes": json.dumps(CLASSES)}
    notes["probability_columns"] = json.dumps(CLASSES)
    found = {name: str(beside.folder / f"{name}.hocal") for name in fitted}
    for name, calibrator in fitted.items():
        hocal.save(calibrator, found[name], notes=notes)
    return found


def test_by_crosses_cells_with_a_column(
    run: Run,
    study: Study,
    beside: Study,
    fitted: dict[str, hocal.SnapshotCalibrator],
    tmp_path: Path,
) -> None:
    model = tmp_path / "model.hocal"
    assert fit(run, study, beside / "groups.parquet", model, "--by", "aspect").code == 0

    loaded, p = hocal.load(model), study.probabilities
    found, expected = (each.decompose(p, by=GROUPS) for each in (loaded, fitted["by"]))
    np.testing.assert_allclose(found.aleatoric, expected.aleatoric)
    assert loaded.partition_.cell_names(CLASSES)[0] == "aspect style, ant, 0 to 50%"
    assert read_notes(model)["by"] == "aspect"


@pytest.mark.parametrize("method", ["cells", "empirical"])
def test_an_engine_counts_groups_as_python_does(
    run: Run, study: Study, beside: Study, tmp_path: Path, method: str
) -> None:
    model = tmp_path / "model.hocal"
    more = ("--by", "aspect", "--method", method)
    assert fit(run, study, beside / "groups.csv", model, *more).code == 0

    found = hocal.load(model).statistics_
    expected = hocal.SnapshotCalibrator(hocal.TopLabelPartition(2), method="cells").fit(
        study.probabilities, study.counts, by=GROUPS
    )
    assert np.array_equal(found.observed.counts, expected.statistics_.observed.counts)
    assert np.array_equal(found.predicted, expected.statistics_.predicted)


def test_every_command_takes_a_model_of_groups(
    run: Run, study: Study, beside: Study, models: dict[str, str], tmp_path: Path
) -> None:
    model = models["by"]
    table, labels = beside / "groups.parquet", study / "labels.parquet"
    parts = tmp_path / "parts.csv"
    label = ("--label", "label")

    assert run("predict", model, table, "-o", str(parts)).code == 0
    names = csv.read_csv(parts)["cell_name"].to_pylist()
    assert all(
        name.startswith(f"group {group}, ") for name, group in zip(names, GROUPS, strict=True)
    )
    evaluated = run("evaluate", model, labels, table, *label, "--n-resamples", "2", "--json")
    assert evaluated.code == 0
    reported = run("report", model, table, "--json", "--no-planning")
    assert reported.json["cells"][0]["name"].startswith("group ")
    assert run("monitor", model, labels, table, *label, "--json").code in (0, 1)
    bought = ("--model", model, "--probabilities", table, "--budget", "5", *label)
    assert run("next", labels, *bought, "-o", str(tmp_path / "buy.csv")).code == 0


@pytest.mark.parametrize("typed", ["x,y", "features.npy", "features.csv"])
def test_features_are_columns_or_a_file(
    run: Run,
    study: Study,
    beside: Study,
    fitted: dict[str, hocal.SnapshotCalibrator],
    tmp_path: Path,
    typed: str,
) -> None:
    """A numpy file is in the order of the predictions; a table has the items in any order."""
    model, parts = tmp_path / "model.hocal", tmp_path / "parts.parquet"
    is_file = "." in typed
    table = study / "predictions.parquet" if is_file else beside / "columns.parquet"
    option = ("--features", beside / typed if is_file else typed)
    assert fit(run, study, table, model, *option).code == 0
    assert run("predict", str(model), table, "-o", str(parts), *option).code == 0

    numbers = np.load(beside / "features.npy")
    expected = fitted["features"].decompose(study.probabilities, features=numbers)
    found = parquet.read_table(parts)["aleatoric"].to_numpy()
    np.testing.assert_allclose(found, expected.aleatoric, atol=1e-12)


@pytest.mark.parametrize("method", ["items", "cells"])
def test_an_ensemble_is_several_tables(
    run: Run,
    study: Study,
    beside: Study,
    fitted: dict[str, hocal.SnapshotCalibrator],
    tmp_path: Path,
    method: str,
) -> None:
    """The second member is in another order: members are matched by item."""
    model, parts = tmp_path / "model.hocal", tmp_path / "parts.parquet"
    table, option = study / "predictions.parquet", ("--ensemble", beside / "second.csv")
    assert fit(run, study, table, model, *option, "--method", method).code == 0
    assert run("predict", str(model), table, "-o", str(parts), *option).code == 0

    calibrator = fitted["ensemble"]
    if method == "cells":
        calibrator = hocal.SnapshotCalibrator(hocal.TopLabelPartition(2), method="cells")
        calibrator.fit(members(study), study.counts)
    expected = calibrator.decompose(members(study))
    found = parquet.read_table(parts)["aleatoric"].to_numpy()
    np.testing.assert_allclose(found, expected.aleatoric, atol=1e-12)


def test_a_report_and_an_evaluation_take_an_ensemble(
    run: Run, study: Study, beside: Study, models: dict[str, str]
) -> None:
    model = models["ensemble"]
    table, option = study / "predictions.parquet", ("--ensemble", beside / "second.csv")
    more = ("--label", "label", "--n-resamples", "2", "--json", *option)

    assert run("evaluate", model, study / "labels.parquet", table, *more).code == 0
    assert run("report", model, table, "--json", "--no-planning", *option).code == 0


@pytest.mark.parametrize(
    ("model", "table", "more", "message"),
    [
        ("by", "columns.parquet", (), "must have a column 'aspect'"),
        ("by", "columns.parquet", ("--by", "x"), "`--by` must be one of the groups of the fit"),
        ("features", "groups.csv", (), "`--features` must name a file with 2 features"),
        ("features", "columns.parquet", ("--features", "x"), "must name 2 columns, as in the fit"),
        ("features", "short", ("--features", "{short.npy}"), "a row for each of the 120 rows of"),
        ("features", "short", ("--features", "{few.parquet}"), "none for 5 of 120, such as"),
        ("features", "short", ("--features", "{second.csv}"), "must have 2 columns of features"),
        ("ensemble", "short", (), "`--ensemble` must name 1 table of another member"),
        ("ensemble", "short", ("--ensemble", "{gaps.csv}"), "none for 2 of 120, such as"),
        ("ensemble", "short", ("--ensemble", "{few.parquet}"), "must have a column 'ant'"),
        ("ensemble", "short", ("--ensemble", "{second.csv},{second.csv}"), "got 2"),
    ],
)
def test_a_model_refuses_tables_without_what_it_was_fitted_with(
    run: Run,
    study: Study,
    beside: Study,
    models: dict[str, str],
    tmp_path: Path,
    model: str,
    table: str,
    more: tuple[str, ...],
    message: str,
) -> None:
    file = study / "predictions.parquet" if table == "short" else beside / table
    typed = [text.replace("{", f"{beside.folder}/").replace("}", "") for text in more]
    named = ("--probability-columns", ",".join(CLASSES))

    found = run("predict", models[model], file, "-o", str(tmp_path / "x.csv"), *named, *typed)

    assert found.code == 2
    assert message in found.err


def test_an_item_without_a_group_is_named(
    run: Run, study: Study, beside: Study, tmp_path: Path
) -> None:
    rows = Path(beside / "groups.csv").read_text(encoding="utf-8").splitlines()
    rows[8] = rows[8].replace('"truth"', "")
    table = tmp_path / "gap.csv"
    table.write_text("\n".join(rows) + "\n", encoding="utf-8")

    found = fit(run, study, str(table), tmp_path / "model.hocal", "--by", "aspect")

    assert found.code == 2
    assert "`--by` must name the group of each item" in found.err
