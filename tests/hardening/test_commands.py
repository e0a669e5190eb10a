"""The command line on broken tables and absurd options: a result, or one line and exit code 2."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from pyarrow import parquet

import hocal
from command_line import CLASSES, study_tables
from hardening.broken_exports import break_export
from hardening.broken_tables import break_table, write
from hardening.public_calls import limited
from hocal.cli import main
from tool_exports import WRITERS, judgements

GENERATOR = np.random.default_rng(4)
P = GENERATOR.dirichlet(np.ones(3), size=40)
COUNTS = GENERATOR.multinomial(3, P)
TABLES = study_tables(P, COUNTS)
LABELLED = ["--item", "item", "--label", "label"]


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    err: str


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> Ended:
    """Run a command in this process, within limits of time and memory."""
    with warnings.catch_warnings(), limited():
        warnings.simplefilter("ignore")
        with pytest.raises(SystemExit) as exit_:
            main([str(argument) for argument in arguments])
    return Ended(int(exit_.value.code or 0), capsys.readouterr().err)


def check_ended(ended: Ended, folder: Path, context: object) -> None:
    """Hold a failure to one line that begins with the program's name, and nothing left behind."""
    alarm = ended.code == 1 and "monitor" in str(context)
    assert alarm or ended.code in (0, 2), (context, ended)
    if ended.code == 2:
        lines = [line for line in ended.err.splitlines() if line.startswith("hocal: ")]
        assert "Traceback" not in ended.err, (context, ended.err)
        assert len(lines) >= 1, (context, ended.err)
        assert not list(folder.glob("output*")), context
    assert not list(folder.glob(".*partial")), context


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fit forty items."""
    folder = tmp_path_factory.mktemp("model")
    for name in ("labels", "predictions"):
        parquet.write_table(TABLES[name], folder / f"{name}.parquet")
    command = ["fit", folder / "labels.parquet", folder / "predictions.parquet", *LABELLED]
    options = ["--n-slices", "2", "--method", "cells", "-o", folder / "model.hocal"]
    with pytest.raises(SystemExit, match="0"):
        main([str(part) for part in (*command, *options)])
    others = hocal.SnapshotCalibrator(method="empirical").fit(P[::2, ::-1], COUNTS[::2, ::-1])
    # of other items, so that these can be watched
    hocal.save(others, folder / "watched.hocal", notes={"classes": json.dumps(CLASSES)})
    return folder / "model.hocal"


def commands(model: Path, labels: Path, predictions: Path, folder: Path) -> list[list[object]]:
    """Return every command that reads tables, those that take long last."""
    both = [labels, predictions]
    lenient = ["--missing", "drop", "--unknown", "drop", "--duplicates", "drop"]
    lenient += ["--annotator", "annotator"]
    one_sided = ["--unlabelled", "drop", "--unpredicted", "drop"]
    studied = ["--model", model, "--probabilities", predictions]
    watched = model.with_name("watched.hocal")
    return [
        ["predict", model, predictions, "-o", folder / "output.parquet"],
        ["evaluate", model, *both, "--label", "label", "--n-resamples", 5],
        ["check", labels, *LABELLED, "--annotator", "annotator", "--n-resamples", 5],
        ["fit", *both, *LABELLED, "--n-slices", 2, "--method", "cells",
         "-o", folder / "output.hocal"],
        ["fit", *both, *LABELLED, "--n-slices", 2, "--method", "empirical", *lenient, *one_sided,
         "-o", folder / "output.hocal"],
        ["compare", predictions, predictions, labels, *LABELLED],
        ["compare", predictions, predictions, labels, *LABELLED, "--loss", "brier", *lenient,
         *one_sided],
        ["monitor", watched, *both, *LABELLED, "--state", folder / "output.state"],
        ["monitor", watched, *both, *LABELLED, *lenient, *one_sided],
        ["next", labels, *LABELLED, "--budget", 5, "-o", folder / "output.csv"],
        ["next", labels, *LABELLED, *studied, "--budget", 5, "-o", folder / "output.csv"],
        ["labels", labels, *LABELLED, "--annotator", "annotator", "--no-forecast",
         "--items", folder / "output.csv", "-o", folder / "output.html"],
        ["labels", labels, *LABELLED, *lenient[:2], *lenient[4:], "--no-forecast", "--json"],
        ["report", model, predictions, "--no-planning", "-o", folder / "output.json"],
    ]  # fmt: skip


def attack(
    capsys: pytest.CaptureFixture[str], model: Path, folder: Path, n_calls: int, seed: int
) -> list[int]:
    """Break tables and run each command in turn; return the exit codes."""
    generator = np.random.default_rng(seed)
    codes = []
    for number in range(n_calls):
        broken = {name: TABLES[name] for name in ("labels", "predictions")}
        chosen = str(generator.choice(sorted(broken)))
        broken[chosen] = break_table(broken[chosen], generator)
        paths = [
            write(table, folder / f"{name}{number}", generator) for name, table in broken.items()
        ]
        offered = commands(model, *paths, folder)
        command = offered[number % len(offered)]
        ended = call(capsys, *command)
        check_ended(ended, folder, (seed, number, command, broken[chosen].schema))
        codes.append(ended.code)
        for path in (*paths, *folder.glob("output*")):
            path.unlink()
    return codes


def test_broken_tables_end_in_a_result_or_one_line(
    capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path
) -> None:
    assert set(attack(capsys, model, tmp_path, 28, seed=1)) == {0, 2}


@pytest.mark.slow
def test_hundreds_of_broken_tables_end_in_a_result_or_one_line(
    capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path
) -> None:
    assert set(attack(capsys, model, tmp_path, 140, seed=2)) == {0, 2}


def attack_exports(
    capsys: pytest.CaptureFixture[str], folder: Path, n_calls: int, seed: int
) -> list[int]:
    """Break exports of each tool in turn and run commands; return the exit codes."""
    generator = np.random.default_rng(seed)
    rows = judgements()[:40]
    codes = []
    for number in range(n_calls):
        tool = sorted(WRITERS)[number % len(WRITERS)]
        here = folder / str(number)
        here.mkdir()
        export = WRITERS[tool](here, rows)
        break_export(here, generator)
        output = ["-o", folder / "output.csv"]
        offered = [
            ["labels", export, "--no-forecast", "--items", *output[1:]],
            ["check", export, "--n-resamples", 3],
            ["next", export, "--budget", 3, *output],
            ["next", export, "--tool", tool, "--budget", 3, *output],
        ]
        command = offered[generator.integers(len(offered))]
        ended = call(capsys, *command)
        check_ended(ended, folder, (seed, number, tool, command))
        codes.append(ended.code)
        (folder / "output.csv").unlink(missing_ok=True)
    return codes


def test_broken_exports_end_in_a_result_or_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert set(attack_exports(capsys, tmp_path, 32, seed=1)) == {0, 2}


@pytest.mark.slow
def test_hundreds_of_broken_exports_end_in_a_result_or_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert set(attack_exports(capsys, tmp_path, 100, seed=2)) == {0, 2}


def test_whole_tables_are_taken_by_every_command(
    capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path
) -> None:
    """So that it is the damage that is refused."""
    tables = [model.with_name(f"{name}.parquet") for name in ("labels", "predictions")]
    for command in commands(model, *tables, tmp_path):
        ended = call(capsys, *command)
        assert ended.code in (0, command[0] == "monitor"), (command, ended)
        for path in tmp_path.glob("output*"):
            path.unlink()


@pytest.mark.parametrize(
    "options",
    [
        ["--n-slices", "100000"],
        ["--n-slices", str(10**30)],
        ["--panel-size", "1000000000"],
        ["--k", str(10**30), "--method", "empirical"],
    ],
    ids=["slices", "slices beyond integers", "panel", "k"],
)
def test_absurd_sizes_of_a_fit_are_refused(
    capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path, options: list[str]
) -> None:
    tables = [model.with_name(f"{name}.parquet") for name in ("labels", "predictions")]
    ended = call(capsys, "fit", *tables, *LABELLED, *options, "-o", tmp_path / "output.hocal")

    check_ended(ended, tmp_path, options)
    assert ended.code == 2


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(
            ["--k", "1000", "--n-classes", "1000", "--width", "0.3"], marks=pytest.mark.slow
        ),
        ["--k", "5", "--n-classes", "1000000000", "--epsilon", "0.1"],
        ["--k", "5", "--n-classes", "2", "--n-items", str(10**30)],
        ["--k", str(10**30), "--n-classes", "2", "--n-items", "100"],
        ["--k", "100000", "--n-classes", "100000", "--epsilon", "0.1"],
    ],
)
def test_absurd_plans_end_in_a_number_or_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, options: list[str]
) -> None:
    check_ended(call(capsys, "plan", *options), tmp_path, options)


def test_a_pipe_as_a_table_is_refused(
    capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path
) -> None:
    """Nobody writes into it, so that reading would wait for ever."""
    os.mkfifo(tmp_path / "pipe.csv")

    ended = call(capsys, "predict", model, tmp_path / "pipe.csv", "-o", tmp_path / "output.csv")

    assert ended.code == 2
    assert "must be a file" in ended.err


def test_a_pipe_as_a_model_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.hocal")

    assert call(capsys, "predict", tmp_path / "model.hocal", "x.csv", "-o", "y.csv").code == 2


@pytest.mark.parametrize(
    "content",
    ["[" * 100_000, "[]", "3", '{"findings": 3}', "\0", '{"n_judgements": [1]}', ""],
    ids=["deep", "list", "number", "findings", "zero byte", "judgements", "empty"],
)
def test_what_is_no_check_is_refused(
    capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path, content: str
) -> None:
    (tmp_path / "check.json").write_text(content)
    options = ["--check", tmp_path / "check.json", "-o", tmp_path / "output.json"]

    ended = call(capsys, "report", model, model.with_name("predictions.parquet"), *options)

    check_ended(ended, tmp_path, content[:20])
    assert ended.code == 2


def test_notes_that_name_other_classes_are_refused(
    capsys: pytest.CaptureFixture[str], model: Path, tmp_path: Path
) -> None:
    for classes in ("[1, 2, 3]", '["a"]', "{}", '"abc"', "no json", '["a", "a", "a"]'):
        hocal.save(hocal.load(model), tmp_path / "forged.hocal", notes={"classes": classes})
        predictions = model.with_name("predictions.parquet")
        ended = call(
            capsys, "predict", tmp_path / "forged.hocal", predictions, "-o", tmp_path / "o.csv"
        )

        assert ended.code == 2, classes


def test_an_interrupt_leaves_nothing_behind(model: Path, tmp_path: Path) -> None:
    """Ctrl-C, and the signal with which schedulers end what takes too long."""
    tables = [model.with_name(f"{name}.parquet") for name in ("labels", "predictions")]
    for name in (signal.SIGINT, signal.SIGTERM):
        command = ["fit", *map(str, tables), *LABELLED, "-o", str(tmp_path / "output.hocal")]
        code = f"from hocal.cli import main; main({json.dumps(command)})"
        started = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob(".*partial")) and started.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        started.send_signal(name)
        started.wait(60)

        assert not list(tmp_path.glob(".*partial"))
        (tmp_path / "output.hocal").unlink(missing_ok=True)  # it may have been quicker


def test_a_file_that_was_handed_out_and_never_closed_is_taken_away_at_the_exit(
    tmp_path: Path,
) -> None:
    """As when an interrupt comes between the making of a file and the block that writes it."""
    code = (
        "import os, pathlib; from hocal._base.files import whole_file\n"
        f"whole = whole_file(pathlib.Path({str(tmp_path / 'output')!r}))\n"
        "os.kept = whole, whole.__enter__()  # beyond the end of this module\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

    assert not list(tmp_path.iterdir())
