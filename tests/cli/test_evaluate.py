"""`hocal evaluate`: the measurements of the Python interface, for people and for machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from pyarrow import parquet

import hocal
from command_line import CLASSES, Run, Study, study_tables
from hocal.calibration.first_order.temperature import apply_temperature
from hocal.calibration.scores import mean_scores
from hocal.cli import evaluate

OPTIONS = ["--k", "2", "--n-resamples", "5"]


def measure(study: Study, name: str, *more: str) -> list[str]:
    files = [study / "model.hocal", study / f"labels.{name}", study / f"predictions.{name}"]
    return ["evaluate", *files, "--label", "label", *OPTIONS, *more]


def test_numbers_are_those_of_python(run: Run, study: Study) -> None:
    found = run(*measure(study, "parquet", "--confidence", "0.9", "--json")).json

    calibrator = hocal.load(study / "model.hocal")
    p, counts = study.probabilities, study.counts
    error = calibrator.calibration_error(p, counts, k=2, n_resamples=5, random_state=0)
    gap = hocal.aleatoric_error(
        calibrator.decompose(p), counts, cells=calibrator.partition_.assign(p)
    )
    lower, _ = calibrator.certify(0.9).interval("epistemic")
    measured = found["calibration_error"]
    assert (measured["mean"], measured["max"], measured["k"]) == (error.mean, error.max, 2)
    assert (measured["noise_floor"], measured["p_value"]) == (error.noise_floor, error.p_value)
    assert found["aleatoric_error"]["items"] == gap
    assert [x for x in found["certificate"]["cells"]["epistemic_lower"] if x is not None] == lower[
        lower >= 0
    ].tolist()
    assert (found["n_items"], found["certificate"]["confidence"]) == (120, 0.9)


def test_the_mean_is_scored_beside_the_model_and_temperature_scaling(
    run: Run, study: Study
) -> None:
    found = run(*measure(study, "parquet", "--json")).json["mean"]

    calibrator = hocal.load(study / "model.hocal")
    p, counts = study.probabilities, study.counts
    expected = {
        "calibrated": calibrator.predict_proba(p),
        "raw": p,
        "temperature": apply_temperature(p, calibrator.temperature_),
    }
    assert list(found) == list(expected)
    for name, mean in expected.items():
        assert found[name] == pytest.approx(mean_scores(mean, counts)._asdict())


def test_temperature_scaling_is_left_out_where_the_fit_saw_no_items(
    run: Run, study: Study, tmp_path: Path
) -> None:
    run(*study.fit, "--method", "cells", "-o", str(tmp_path / "m.hocal"))
    files = [str(tmp_path / "m.hocal"), study / "labels.csv", study / "predictions.csv"]

    outcome = run("evaluate", *files, "--label", "label", *OPTIONS)

    assert "the model as it is" in outcome.out
    assert "temperature scaling" not in outcome.out


class Fitted(NamedTuple):
    """A model of the first items of a table, each with a prediction of its own."""

    command: list[str]  #: evaluates all items with it
    calibrator: hocal.SnapshotCalibrator
    p: NDArray[np.float64]
    counts: NDArray[np.int64]


def fit_first(n_items: int, folder: Path, groups: list[str] | None = None) -> Fitted:
    generator = np.random.default_rng(3)
    p = generator.dirichlet(np.ones(3), size=120)
    counts = generator.multinomial(3, p)
    tables = study_tables(p, counts)
    beside = {} if groups is None else {"by": groups[:n_items]}
    notes = {"item": "item", "classes": json.dumps(CLASSES)}
    if groups is not None:
        notes["by"] = "group"
        tables["predictions"] = tables["predictions"].append_column("group", pa.array(groups))
    calibrator = hocal.SnapshotCalibrator(hocal.TopLabelPartition(2))
    calibrator.fit(p[:n_items], counts[:n_items], **beside)
    hocal.save(calibrator, folder / "model.hocal", notes=notes)
    for name in ("labels", "predictions"):
        parquet.write_table(tables[name], folder / f"{name}.parquet")
    files = [folder / name for name in ("model.hocal", "labels.parquet", "predictions.parquet")]
    command = ["evaluate", *map(str, files), "--label", "label", *OPTIONS]
    return Fitted(command, calibrator, p, counts)


def test_items_of_the_fit_are_left_out_where_enough_others_are_there(
    run: Run, tmp_path: Path
) -> None:
    fitted = fit_first(60, tmp_path)
    outcome = run(*fitted.command, "--json")

    found = outcome.json
    p, counts = fitted.p[60:], fitted.counts[60:]
    error = fitted.calibrator.calibration_error(p, counts, k=2, n_resamples=5, random_state=0)
    score = hocal.snapshot_score(fitted.calibrator.predict_mixture(p), counts)
    assert (found["n_items"], found["n_fitted"], found["training"]) == (60, 60, False)
    assert found["calibration_error"]["mean"] == error.mean
    assert found["snapshot_score"]["estimate"] == pytest.approx(score.estimate)
    said = " ".join(outcome.err.split())
    assert "The model was fitted on 60 items of 120: they are left out." in said


def test_with_few_items_beside_those_of_the_fit_figures_are_called_training(
    run: Run, tmp_path: Path
) -> None:
    command = fit_first(80, tmp_path).command
    found = run(*command, "--json").json
    outcome = run(*command)

    assert (found["n_items"], found["n_fitted"], found["training"]) == (120, 80, True)
    assert "Training figures, no test" in outcome.out
    said = " ".join(outcome.err.split())
    assert "The model was fitted on 80 items of 120: these are training figures" in said


def test_items_of_a_fit_with_groups_are_known_again(run: Run, tmp_path: Path) -> None:
    fitted = fit_first(60, tmp_path, groups=["fluency", "relevance"] * 60)
    found = run(*fitted.command, "--json").json

    assert (found["n_items"], found["n_fitted"], found["training"]) == (60, 60, False)


def test_snapshots_are_scored_and_three_labels_have_no_resolution(run: Run, study: Study) -> None:
    outcome = run(*measure(study, "csv"))
    found = run(*measure(study, "csv", "--json")).json

    calibrator = hocal.load(study / "model.hocal")
    score = hocal.snapshot_score(calibrator.predict_mixture(study.probabilities), study.counts)
    assert found["snapshot_score"] == pytest.approx({**score._asdict(), "n_items": 120})
    assert found["resolution"] is None
    assert "no item has four labels" in outcome.out


def test_resolution_is_that_of_items_with_four_labels(
    run: Run, study: Study, tmp_path: Path
) -> None:
    counts = study.counts.copy()
    counts[:40, 0] += 2
    columns = {name: counts[:, j] for j, name in enumerate(CLASSES)}
    parquet.write_table(pa.table({"item": np.arange(120), **columns}), tmp_path / "c.parquet")
    files = [study / "model.hocal", str(tmp_path / "c.parquet"), study / "predictions.parquet"]

    found = run("evaluate", *files, "--count-columns", "ant,bee,cat", *OPTIONS, "--json").json

    parts = hocal.load(study / "model.hocal").decompose(study.probabilities[:40], "brier")
    expected = hocal.resolution(parts, counts[:40])
    assert found["resolution"] == pytest.approx({**expected._asdict(), "n_items": 40})


def test_of_many_items_a_sample_has_its_snapshots_scored(
    run: Run, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluate, "MAX_SCORED", 30)

    outcome = run(*measure(study, "csv"))

    assert "on 30 items" in outcome.out


@pytest.mark.parametrize("labels", ["counts.parquet", "wide.csv"])
def test_wide_tables_of_labels_give_the_same(run: Run, study: Study, labels: str) -> None:
    columns = {
        "counts.parquet": ["--count-columns", "ant,bee,cat"],
        "wide.csv": ["--label", "person 0,person 1,person 2"],
    }[labels]
    files = [study / "model.hocal", study / labels, study / "predictions.parquet"]

    wide = run("evaluate", *files, *columns, *OPTIONS, "--json").json
    long = run(*measure(study, "parquet", "--json")).json

    assert wide["aleatoric_error"]["items"] == pytest.approx(
        long["aleatoric_error"]["items"], abs=1e-12
    )
    assert wide["calibration_error"]["per_cell"] == pytest.approx(
        long["calibration_error"]["per_cell"], nan_ok=True
    )


def test_people_get_three_tables(run: Run, study: Study) -> None:
    outcome = run(*measure(study, "csv"))

    assert "calibration error" in outcome.out
    assert "by chance" in outcome.out
    assert "Mean prediction (less is better)" in outcome.out
    assert "Confidence 0.95 for each cell on its own." in outcome.out


def test_cells_have_the_names_of_the_report(run: Run, study: Study) -> None:
    assert "  ant, 50 to 100%\n" in run(*measure(study, "csv")).out
    assert (
        run(*measure(study, "csv", "--json")).json["certificate"]["cells"]["name"][1]
        == "ant, 50 to 100%"
    )


@pytest.mark.parametrize(("k", "said"), [("1", True), ("2", False)])
def test_one_label_in_a_snapshot_tests_ordinary_calibration_only(
    run: Run, study: Study, k: str, said: bool
) -> None:
    outcome = run(*measure(study, "csv", "--k", k))

    assert ("only ordinary calibration is tested" in outcome.out) == said


def test_predictions_of_a_column_of_lists_are_read(run: Run, study: Study) -> None:
    files = [study / "model.hocal", study / "labels.csv", study / "lists.parquet"]

    outcome = run(
        "evaluate", *files, "--label", "label", *OPTIONS, "--probability-columns", "p", "--json"
    )

    assert outcome.json["n_items"] == 120


def test_given_cells_are_measured(run: Run, study: Study, tmp_path: Path) -> None:
    files = [study / "labels.parquet", study / "cells.parquet"]
    run(
        "fit",
        *files,
        *f"--item item --label label --cell cell --n-cells 3 -o {tmp_path}/m.hocal".split(),
    )

    found = run(
        "evaluate", str(tmp_path / "m.hocal"), *files, "--label", "label", *OPTIONS, "--json"
    ).json

    assert sum(found["calibration_error"]["n_items_per_cell"]) == 120
    assert len(found["calibration_error"]["per_cell"]) == 3


@pytest.mark.parametrize(
    ("table", "rule"), [("labels", "unlabelled"), ("predictions", "unpredicted")]
)
def test_items_of_one_table_only_are_dropped_on_request(
    run: Run, study: Study, tmp_path: Path, table: str, rule: str
) -> None:
    lines = Path(study / f"{table}.csv").read_text("utf-8").splitlines(keepends=True)
    kept = 1 + 100 * (3 if table == "labels" else 1)
    (tmp_path / f"{table}.csv").write_text("".join(lines[:kept]), "utf-8")
    files = [
        str(tmp_path / f"{name}.csv") if name == table else study / f"{name}.csv"
        for name in ("labels", "predictions")
    ]
    arguments = ["evaluate", study / "model.hocal", *files, "--label", "label", *OPTIONS, "--json"]

    refused, found = run(*arguments), run(*arguments, f"--{rule}", "drop")

    assert refused.code == 2
    assert "got none for 20 of 120" in refused.err
    assert f"--{rule} drop" in refused.err
    assert found.json["n_items"] == 100


def test_two_predictions_for_an_item_are_refused(run: Run, study: Study, tmp_path: Path) -> None:
    text = Path(study / "predictions.csv").read_text("utf-8")
    (tmp_path / "twice.csv").write_text(text + text.splitlines()[-1] + "\n", "utf-8")
    files = [study / "model.hocal", study / "labels.csv", str(tmp_path / "twice.csv")]

    outcome = run("evaluate", *files, "--label", "label")

    assert outcome.code == 2
    assert "must have one row for each item, got several for '119'" in outcome.err


def test_columns_of_counts_must_match_the_classes(run: Run, study: Study) -> None:
    files = [study / "model.hocal", study / "counts.csv", study / "predictions.csv"]

    outcome = run("evaluate", *files, "--count-columns", "ant,bee")

    assert outcome.code == 2
    assert "must name one column for each of 3 classes, got 2" in outcome.err


def test_few_labels_per_item_come_with_a_warning_about_the_aleatoric_error(
    run: Run, study: Study
) -> None:
    outcome = run(*measure(study, "csv"))

    assert "So few labels per item (3) make the observed entropies far too low" in outcome.out


def test_what_is_left_to_gain_is_that_of_python(run: Run, study: Study) -> None:
    found = run(*measure(study, "parquet", "--json")).json["headroom"]

    mean = hocal.load(study / "model.hocal").predict_proba(study.probabilities)
    expected = hocal.headroom(mean, study.counts)
    assert found["metric"] == "log"
    assert found["remaining"] == pytest.approx(expected.remaining._asdict())
    assert found["best_accuracy"] == pytest.approx(expected.best_accuracy._asdict())


def test_people_read_what_is_left_to_gain(run: Run, study: Study) -> None:
    text = " ".join(run(*measure(study, "parquet")).out.split())

    assert "Headroom of the calibrated mean: Your model's log loss is" in text
