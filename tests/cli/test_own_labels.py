"""`hocal predict --labels`: what items' own labels add to their predictions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import hocal
from command_line import Run, Study
from hocal.datasets import make_mixture_world
from hocal.uncertainty.entropy import get_entropy


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write labels of the first items of the study: 4 of a class, one of each, none beyond."""
    file = tmp_path_factory.mktemp("own") / "own.csv"
    rows = [(0, "cat")] * 4 + [(1, "ant"), (1, "bee"), (1, "bee")]
    csv.write_csv(pa.table({"item": [r[0] for r in rows], "label": [r[1] for r in rows]}), file)
    return file


def predict(run: Run, study: Study, output: Path, *more: str) -> pa.Table:
    outcome = run(
        "predict", study / "model.hocal", study / "predictions.parquet", "-o", str(output), *more
    )
    assert outcome.code == 0, outcome.err
    return parquet.read_table(output)


def test_own_labels_add_columns_beside_the_estimate_from_the_prediction_alone(
    run: Run, study: Study, labelled: Path, tmp_path: Path
) -> None:
    plain = predict(run, study, tmp_path / "plain.parquet")
    found = predict(
        run, study, tmp_path / "own.parquet", "--labels", str(labelled), "--label", "label"
    )

    assert found.select(plain.column_names).equals(plain)
    assert found["n_labels"].to_pylist()[:3] == [4, 3, 0]
    assert found["votes"].to_pylist()[:3] == ["4 x cat", "2 x bee, 1 x ant", ""]
    own = np.zeros_like(study.counts)
    own[0, 2], own[1] = 4, [1, 2, 0]
    parts = hocal.load(study / "model.hocal").decompose(study.probabilities, counts=own)
    for name, values in parts.as_dict().items():
        np.testing.assert_allclose(found[f"{name}_with_labels"].to_numpy(), values, atol=1e-12)


def test_an_item_without_labels_has_the_estimate_of_its_prediction(
    run: Run, study: Study, labelled: Path, tmp_path: Path
) -> None:
    found = predict(
        run, study, tmp_path / "own.parquet", "--labels", str(labelled), "--label", "label"
    )

    alone, with_labels = (
        found[name].to_numpy()[2:] for name in ("aleatoric", "aleatoric_with_labels")
    )
    np.testing.assert_allclose(with_labels, alone, atol=1e-6)


@pytest.mark.parametrize("objective", ["distribution", "aleatoric", "majority"])
def test_the_gain_of_a_label_is_that_of_hocal_next(
    run: Run, study: Study, labelled: Path, tmp_path: Path, objective: str
) -> None:
    """Buying one label for each item, `hocal.next_labels` expects the same of each."""
    more = ("--labels", str(labelled), "--label", "label", "--objective", objective)
    found = predict(run, study, tmp_path / "own.parquet", *more)

    own = np.zeros_like(study.counts)
    own[0, 2], own[1] = 4, [1, 2, 0]
    mixtures = hocal.load(study / "model.hocal").predict_mixture(study.probabilities, counts=own)
    nothing = np.zeros_like(own)
    bought = hocal.next_labels(mixtures, nothing, budget=len(own), objective=objective, limit=1)
    gain = found["gain_of_a_label"].to_numpy()
    rows = bought.labels > 0
    np.testing.assert_allclose(gain[rows], bought.gain[rows], atol=1e-9)
    assert (gain >= -1e-12).all()


def test_limits_hold_the_truth_as_often_as_they_say(run: Run, tmp_path: Path) -> None:
    """A world with known label distributions: 90% limits hold the entropy of most items."""
    world = make_mixture_world(900, 3, random_state=5)
    names = ["a", "b", "c"]
    counts = world.draw(4, random_state=6)
    items = np.arange(900)
    fit, own = slice(0, 600), slice(600, None)
    files = {}
    for name, rows, values in (
        ("fit", fit, counts),
        ("own", own, counts),
        ("p_fit", fit, world.predictions),
        ("p_own", own, world.predictions),
    ):
        files[name] = str(tmp_path / f"{name}.parquet")
        columns = dict(zip(names, values[rows].T, strict=True))
        parquet.write_table(pa.table({"item": items[rows], **columns}), files[name])
    columns = ("--count-columns", "a,b,c")
    model, output = str(tmp_path / "model.hocal"), tmp_path / "out.parquet"
    assert (
        run("fit", files["fit"], files["p_fit"], "--item", "item", "-o", model, *columns).code == 0
    )
    more = ("--labels", files["own"], "--confidence", "0.9", *columns)
    assert run("predict", model, files["p_own"], "-o", str(output), *more).code == 0

    found = parquet.read_table(output)
    truth = get_entropy("shannon").value(world.label_distributions[own])
    lower, upper = (found[f"aleatoric_{end}"].to_numpy() for end in ("lower", "upper"))
    assert np.mean((lower <= truth) & (truth <= upper)) > 0.85
    assert np.mean(upper - lower) < 0.7


def test_labels_of_items_without_a_prediction_are_refused_or_left_out(
    run: Run, study: Study, labelled: Path, tmp_path: Path
) -> None:
    file = tmp_path / "more.csv"
    file.write_text(labelled.read_text(encoding="utf-8") + '"999","cat"\n', encoding="utf-8")
    more = ("--labels", str(file), "--label", "label")
    arguments = ("predict", study / "model.hocal", study / "predictions.parquet", "-o")

    refused = run(*arguments, str(tmp_path / "a.csv"), *more)

    assert refused.code == 2
    assert "none for 1 of 3, such as '999'" in refused.err
    assert run(*arguments, str(tmp_path / "b.csv"), *more, "--unpredicted", "drop").code == 0


def test_numbers_written_with_a_point_are_the_same_labels(run: Run, tmp_path: Path) -> None:
    """Labels 0.0 and 1.0, as pandas writes them with a gap, are the columns 0 and 1."""
    items = np.arange(60)
    p = np.random.default_rng(0).uniform(0.1, 0.9, 60)
    predictions, labels = str(tmp_path / "p.csv"), str(tmp_path / "labels.csv")
    csv.write_csv(pa.table({"item": items, "0": p, "1": 1 - p}), predictions)
    said = (np.random.default_rng(1).uniform(size=(60, 2)) < p[:, None]).astype(int)
    rows = [
        f"{item},{1 - vote}.0" for item, votes in zip(items, said, strict=True) for vote in votes
    ]
    Path(labels).write_text("item,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    model, label = str(tmp_path / "model.hocal"), ("--label", "label")
    known = (*label, "--classes", "0,1")

    for arguments in (
        ("fit", labels, predictions, "--item", "item", "-o", model, "--method", "cells", *label),
        ("evaluate", model, labels, predictions, "--n-resamples", "2", *label),
        ("predict", model, predictions, "-o", str(tmp_path / "o.csv"), "--labels", labels, *label),
        ("report", model, predictions, "--labels", labels, "--json", "--no-planning", *label),
        ("compare", predictions, predictions, labels, "--item", "item", *label),
        ("next", labels, "--item", "item", "--budget", "5", "-o", str(tmp_path / "b.csv"), *known),
        ("check", labels, "--item", "item", *known),
        ("labels", labels, "--item", "item", "--json", *known),
    ):
        outcome = run(*arguments)
        assert outcome.code == 0, outcome.err
