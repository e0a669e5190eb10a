"""Tables that are written keep the names of items, whatever the column of the items is called."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from command_line import Run, Study

LABELS = ["--label", "label", "--item"]
REFUSED = "`--item` must be another name than those of the columns that are written, got "


def arguments(command: str, study: Study, output: Path) -> list[str]:
    """Return a call that writes a table of items, but for the name of their column at its end."""
    labels, predictions = study / "labels.parquet", study / "predictions.parquet"
    predict = ["predict", study / "model.hocal", predictions, "-o", str(output)]
    next_ = ["next", labels, "--budget", "9", "-o", str(output)]
    model = ["--model", study / "model.hocal", "--probabilities", predictions]
    return {
        "predict": [*predict, "--item"],
        "predict --labels": [*predict, "--labels", labels, *LABELS],
        "next": [*next_, *LABELS],
        "next --model": [*next_, *model, *LABELS],
        "labels": ["labels", labels, "--json", "--no-forecast", "--items", str(output), *LABELS],
    }[command]


@pytest.mark.parametrize(
    "command", ["predict", "predict --labels", "next", "next --model", "labels"]
)
def test_an_item_column_called_like_another_that_is_written_is_refused(
    run: Run, study: Study, tmp_path: Path, command: str
) -> None:
    call = arguments(command, study, tmp_path / "written.csv")
    assert run(*call, "item").code == 0
    columns = pd.read_csv(tmp_path / "written.csv").columns
    others = [name for name in columns[1:] if not name.startswith("share_")]  # see below

    outcomes = {name: run(*call, name, "--force") for name in others}

    assert len(outcomes) >= 4
    for name, outcome in outcomes.items():
        assert outcome.code == 2
        assert f"{REFUSED}{name!r}" in outcome.err
        assert outcome.err.count("\n") == 1


def test_an_item_column_called_like_the_share_of_a_class_is_refused(
    run: Run, study: Study, tmp_path: Path
) -> None:
    table = pd.read_parquet(study / "labels.parquet").rename(columns={"item": "share_ant"})
    table.to_parquet(tmp_path / "labels.parquet")
    files = [str(tmp_path / "labels.parquet"), "--items", str(tmp_path / "items.csv")]
    outcome = run("labels", *files, "--json", "--no-forecast", *LABELS, "share_ant")

    assert outcome.code == 2
    assert f"{REFUSED}'share_ant'" in outcome.err
    assert not (tmp_path / "items.csv").exists()


def test_an_item_column_called_like_a_column_of_own_labels_will_do_without_labels(
    run: Run, study: Study, tmp_path: Path
) -> None:
    table = pd.read_parquet(study / "predictions.parquet").rename(columns={"item": "votes"})
    table.to_parquet(tmp_path / "predictions.parquet")
    files = [study / "model.hocal", str(tmp_path / "predictions.parquet")]
    outcome = run("predict", *files, "--item", "votes", "-o", str(tmp_path / "out.csv"))

    assert outcome.code == 0, outcome.err
    assert pd.read_csv(tmp_path / "out.csv")["votes"].tolist() == list(range(120))
