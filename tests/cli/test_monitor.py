"""`hocal monitor`: the evidence of the Python interface, kept from call to call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import hocal
from command_line import CLASSES, Run, Study
from hocal.datasets import make_mixture_world


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Write a model of 300 items, and 200 more: as before, and torn by every question."""
    world = make_mixture_world(500, 3, random_state=5)
    p, counts = world.predictions, world.draw(4, random_state=6)
    study = Study(tmp_path_factory.mktemp("watched"), p, counts)
    calibrator = hocal.SnapshotCalibrator(hocal.TopLabelPartition(2), method="cells")
    hocal.save(calibrator.fit(p[:300], counts[:300]), study / "model.hocal")
    items = [f"i{number:03}" for number in range(500)][::-1]
    torn = np.tile([2, 1, 1], (500, 1))
    for name, array in (("p", p), ("calm", counts), ("torn", torn)):
        columns = dict(zip(CLASSES, array[300:].T, strict=True))
        parquet.write_table(pa.table({"item": items[300:]} | columns), study / f"{name}.parquet")
    return study


def arguments(study: Study, name: str, *more: str) -> list[str]:
    labels, predictions = study / f"{name}.parquet", study / "p.parquet"
    model = study / "model.hocal"
    return ["monitor", model, labels, predictions, "--count-columns", ",".join(CLASSES), *more]


def test_no_alarm_is_code_0_and_an_alarm_code_1(run: Run, watched: Study) -> None:
    calm, torn = (run(*arguments(watched, name)) for name in ("calm", "torn"))

    assert (calm.code, torn.code) == (0, 1)
    assert "alarm" in torn.out
    assert torn.err == ""


def test_numbers_are_those_of_python_in_the_order_of_the_predictions(
    run: Run, watched: Study
) -> None:
    """Names of items sort in the opposite order."""
    said = run(*arguments(watched, "torn", "--json")).json
    monitor = hocal.Monitor(hocal.load(watched / "model.hocal"))
    monitor.update(watched.probabilities[300:], np.tile([2, 1, 1], (200, 1)))

    assert said["alarmed_at"] == monitor.alarmed_at
    assert said["evidence"] == pytest.approx(monitor.evidence)
    assert (said["n_items"], said["n_new"], said["since"]) == (200, 200, monitor.since)
    found = monitor.findings(classes=[str(number) for number in range(3)])
    assert [each["where"] for each in said["findings"]] == [each.where for each in found]


def test_a_state_goes_on(run: Run, watched: Study, tmp_path: Path) -> None:
    state = str(tmp_path / "state.hocal")
    first = run(*arguments(watched, "calm", "--state", state, "--json")).json
    second = run(*arguments(watched, "torn", "--state", state, "--json")).json

    assert (first["alarm"], first["n_items"]) == (False, 200)
    assert (second["alarm"], second["n_items"], second["n_new"]) == (True, 400, 200)
    assert second["alarmed_at"] > 200


def test_a_picture_is_written_and_not_replaced(run: Run, watched: Study, tmp_path: Path) -> None:
    picture = tmp_path / "evidence.png"
    run(*arguments(watched, "calm", "-o", str(picture)))
    again = run(*arguments(watched, "calm", "-o", str(picture)))

    assert picture.read_bytes().startswith(b"\x89PNG")
    assert again.code == 2
    assert "already exists" in again.err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["-o", "evidence.txt"], "must end with .png, .svg, .pdf"),
        (["--confidence", "2"], "`--confidence` must"),
    ],
)
def test_bad_options_are_one_line(run: Run, watched: Study, more: list[str], message: str) -> None:
    outcome = run(*arguments(watched, "calm", *more))

    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.err.count("\n") == 1


def test_another_confidence_than_that_of_the_state_is_refused(
    run: Run, watched: Study, tmp_path: Path
) -> None:
    state = str(tmp_path / "state.hocal")
    run(*arguments(watched, "calm", "--state", state, "--confidence", "0.9"))

    outcome = run(*arguments(watched, "calm", "--state", state, "--confidence", "0.99"))

    assert outcome.code == 2
    assert "`--confidence` must be that of the state, 0.9, or left out" in outcome.err


def test_a_state_that_is_none_is_refused_and_kept(run: Run, watched: Study, tmp_path: Path) -> None:
    state = tmp_path / "state.hocal"
    state.write_text("mine", "utf-8")

    outcome = run(*arguments(watched, "calm", "--state", str(state)))

    assert outcome.code == 2
    assert outcome.err.startswith("hocal: `--state` must name a whole file")
    assert state.read_text("utf-8") == "mine"


def test_a_folder_of_a_state_that_is_not_there_is_said_before_the_work(
    run: Run, tmp_path: Path
) -> None:
    outcome = run("monitor", "m.hocal", "l.csv", "p.csv", "--state", str(tmp_path / "no" / "s"))

    assert outcome.code == 2
    assert "`--state` must be in a folder that is there" in outcome.err


def test_a_model_without_items_cannot_be_watched(run: Run, watched: Study, tmp_path: Path) -> None:
    calibrator = hocal.SnapshotCalibrator(method="cells")
    calibrator.partial_fit(watched.probabilities, watched.counts)
    hocal.save(calibrator, tmp_path / "model.hocal")

    outcome = run("monitor", str(tmp_path / "model.hocal"), *arguments(watched, "calm")[2:])

    assert outcome.code == 2
    assert "must have been fitted with `fit`, on items" in outcome.err


def test_predict_warns_of_predictions_unlike_those_of_the_calibration(
    run: Run, watched: Study, tmp_path: Path
) -> None:
    vague = pa.table({"item": np.arange(300)} | dict.fromkeys(CLASSES, np.full(300, 1 / 3)))
    parquet.write_table(vague, tmp_path / "vague.parquet")
    model, output = watched / "model.hocal", str(tmp_path / "out.csv")

    outcome = run("predict", model, str(tmp_path / "vague.parquet"), "-o", output, "--json")

    assert outcome.code == 0
    assert "look unlike the calibration items" in outcome.err
    assert outcome.json["familiarity"]["warning"] is True


def test_predict_says_nothing_about_predictions_like_those_of_the_calibration(
    run: Run, watched: Study, tmp_path: Path
) -> None:
    model, output = watched / "model.hocal", str(tmp_path / "out.csv")

    outcome = run("predict", model, watched / "p.parquet", "-o", output)

    assert (outcome.code, outcome.err) == (0, "")
