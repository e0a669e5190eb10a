"""Scores of any kind as features: fit, predict and evaluate with `--score`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import hocal
from command_line import CLASSES, Run, Study
from hocal.uncertainty import draw_labels

N_ITEMS = 400


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Write ratings of a judge, from 0 to 100, and labels that depend on them."""
    generator = np.random.default_rng(0)
    rating = generator.uniform(0, 100, N_ITEMS)
    slope = np.stack([np.zeros(N_ITEMS), rating / 25 - 2, rating / 10 - 6], axis=1)
    p = np.exp(slope) / np.exp(slope).sum(axis=1, keepdims=True)
    counts = draw_labels(p, 3, random_state=1)
    study = Study(tmp_path_factory.mktemp("scored"), p, counts)
    items = np.arange(N_ITEMS)
    labels = pa.table({"item": items} | dict(zip(CLASSES, counts.T, strict=True)))
    parquet.write_table(labels, study / "labels.parquet")
    flat = {name: np.full(N_ITEMS, 1 / 3) for name in CLASSES}
    for name, more in (("ratings", {}), ("both", flat)):
        table = pa.table({"item": items, "rating": rating} | more)
        parquet.write_table(table, study / f"{name}.parquet")
        csv.write_csv(table, study / f"{name}.csv")
    return study


def fit(study: Study, predictions: str, output: Path, *more: str) -> list[str]:
    files = [study / "labels.parquet", study / predictions]
    columns = ["--item", "item", "--count-columns", ",".join(CLASSES), "--classes"]
    return ["fit", *files, *columns, ",".join(CLASSES), "-o", str(output), *more]


@pytest.mark.parametrize("file", ["ratings.csv", "ratings.parquet", "both.csv"])
def test_a_score_is_a_feature_beside_equal_probabilities(
    run: Run, scored: Study, tmp_path: Path, file: str
) -> None:
    model = tmp_path / "model.hocal"
    assert run(*fit(scored, file, model, "--score", "rating")).code == 0

    rating = parquet.read_table(scored / "ratings.parquet")["rating"].to_numpy()[:, None]
    flat = np.full((N_ITEMS, 3), 1 / 3)
    found = hocal.load(model).predict_proba(flat, features=rating)
    expected = hocal.SnapshotCalibrator().fit(flat, scored.counts, features=rating)
    np.testing.assert_allclose(found, expected.predict_proba(flat, features=rating), atol=1e-6)


def test_scores_alone_tell_what_people_say(run: Run, scored: Study, tmp_path: Path) -> None:
    """The calibrated mean is near the truth, and the class of an item follows its score."""
    model = tmp_path / "model.hocal"
    output = tmp_path / "parts.parquet"
    run(*fit(scored, "ratings.csv", model, "--score", "rating"))

    assert run("predict", str(model), scored / "ratings.csv", "-o", str(output)).code == 0

    top = np.array(CLASSES)[scored.probabilities.argmax(axis=1)]
    assert np.mean(parquet.read_table(output)["top_class"].to_numpy() == top) > 0.85
    rating = parquet.read_table(scored / "ratings.parquet")["rating"].to_numpy()[:, None]
    told = hocal.load(model).predict_proba(np.full((N_ITEMS, 3), 1 / 3), features=rating)
    assert np.abs(told - scored.probabilities).mean() < 0.05


def test_evaluate_takes_a_model_of_scores(run: Run, scored: Study, tmp_path: Path) -> None:
    model = tmp_path / "model.hocal"
    run(*fit(scored, "ratings.parquet", model, "--score", "rating"))

    files = [str(model), scored / "labels.parquet", scored / "ratings.parquet"]
    columns = ["--count-columns", ",".join(CLASSES), "--n-resamples", "5"]
    found = run("evaluate", *files, *columns, "--json").json["mean"]

    assert found["calibrated"]["log_loss"] < found["raw"]["log_loss"] - 0.1


def test_a_report_takes_a_model_of_scores(run: Run, scored: Study, tmp_path: Path) -> None:
    model = tmp_path / "model.hocal"
    run(*fit(scored, "ratings.csv", model, "--score", "rating"))

    found = run("report", str(model), scored / "ratings.csv", "--json", "--no-planning")

    assert found.code == 0
    assert found.json["data"]["n_items"] == N_ITEMS


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--score", "stars"), "must have a column 'stars'"),
        (("--score", "rating", "--method", "cells"), "must be items with --score or --features"),
    ],
)
def test_scores_that_do_not_fit_are_refused_in_one_line(
    run: Run, scored: Study, tmp_path: Path, more: tuple[str, ...], message: str
) -> None:
    found = run(*fit(scored, "ratings.csv", tmp_path / "model.hocal", *more))

    assert found.code == 2
    assert message in found.err


def test_scores_alone_need_the_classes(run: Run, scored: Study, tmp_path: Path) -> None:
    arguments = fit(scored, "ratings.csv", tmp_path / "model.hocal", "--score", "rating")
    at = arguments.index("--classes")

    found = run(*arguments[:at], *arguments[at + 2 :])

    assert found.code == 2
    assert "must be given where there are no columns of probabilities" in found.err


@pytest.mark.parametrize(
    ("value", "message"), [("", "got none for item '0'"), ("high", "must hold scores")]
)
def test_a_score_that_is_no_number_is_refused(
    run: Run, scored: Study, tmp_path: Path, value: str, message: str
) -> None:
    rows = Path(scored / "ratings.csv").read_text(encoding="utf-8").splitlines()
    rows[1] = f"{rows[1].split(',')[0]},{value}"
    file = tmp_path / "ratings.csv"
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    arguments = fit(scored, "ratings.csv", tmp_path / "model.hocal", "--score", "rating")
    arguments[2] = str(file)

    found = run(*arguments)

    assert found.code == 2
    assert message in found.err
