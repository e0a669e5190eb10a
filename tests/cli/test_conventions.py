"""Conventions: help, terminals, signals, imports, and what is said when something is missing."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from command_line import Run, Study
from hocal.cli import main

COMMANDS = [
    "fit",
    "predict",
    "evaluate",
    "compare",
    "check",
    "labels",
    "report",
    "plan",
    "next",
    "data list",
    "data fetch",
    "demo",
]
START = "from hocal.cli import main; main()"
# Shells start what runs in the background with Ctrl-C ignored, and children inherit that.
HEED_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
SLOW = """
import time
import hocal.cli.predict as command

command.ROWS, predict_batch = 10, command._predict_batch

def slowly(*arguments):
    time.sleep(0.2)
    return predict_batch(*arguments)

command._predict_batch = slowly
"""

COLOURED_AND_NOT = """
import contextlib, os
from hocal.cli import main

with contextlib.suppress(SystemExit):
    main()
print("from here without")
os.environ["NO_COLOR"] = "1"
main()
"""


def start(code: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code, *arguments], **options)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(run: Run, command: str) -> None:
    outcome = run(*command.split(), "--help")

    assert outcome.code == 0
    assert f"Example: hocal {command}" in " ".join(outcome.out.split())


def test_a_flag_takes_no_value_in_the_help(run: Run) -> None:
    line = next(line for line in run("fit", "--help").out.splitlines() if "--force" in line)

    assert "bool" not in line


def test_version_is_that_of_the_package(run: Run) -> None:
    import hocal

    assert run("--version").out == f"hocal {hocal.__version__}\n"


def test_completion_is_offered(run: Run) -> None:
    assert "--install-completion" in run("--help").out


def test_a_wrong_option_ends_with_code_2(run: Run) -> None:
    outcome = run("fit", "--nonsense")

    assert outcome.code == 2
    assert "--nonsense" in outcome.err


def test_help_imports_nothing_heavy() -> None:
    heavy = {
        "numpy",
        "scipy",
        "sklearn",
        "duckdb",
        "pyarrow",
        "narwhals",
        "pandas",
        "pyspark",
        "matplotlib",
    }
    code = f"""
import sys
from hocal.cli import main
try:
    main(["--help"])
except SystemExit:
    print("loaded:", *({heavy!r} & set(sys.modules)))
"""

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.endswith("loaded:\n")


def test_a_missing_extra_names_the_pip_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "duckdb" else object()
    )
    with pytest.raises(SystemExit, match="2"):
        main(["--help"])

    expected = 'hocal: The command line needs duckdb. Install it with: pip install "hocal[app]"\n'
    assert capsys.readouterr() == ("", expected)


def test_a_missing_spark_names_the_pip_command(
    run: Run, study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)

    outcome = run(*study.fit, "--engine", "spark", "-o", str(tmp_path / "m.hocal"))

    assert outcome.code == 2
    assert 'pip install "hocal[spark]"' in outcome.err


def plan_where_loading_ends_in(
    error: Exception, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("hocal.load", fail)
    main(["plan", "--k", "2", "--budget", "9", "--model", study / "model.hocal"])


def test_a_mistake_in_the_code_is_not_called_bad_input(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyError, match="a mistake"):
        plan_where_loading_ends_in(KeyError("a mistake"), study, monkeypatch)


def test_ctrl_c_inside_a_query_ends_with_code_130(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB reports an interrupt as a RuntimeError."""
    with pytest.raises(SystemExit, match="130"):
        plan_where_loading_ends_in(RuntimeError("Query interrupted"), study, monkeypatch)


def predict_to(target: Path, study: Study) -> list[str]:
    files = [study / "model.hocal", study / "predictions.parquet"]
    return ["predict", *files, "-o", str(target)]


def wait_for_partial(folder: Path) -> Path:
    """Return the temporary file once something was written to it."""
    for _ in range(600):
        found = [path for path in folder.glob(".out.parquet.*") if path.stat().st_size > 0]
        if found:
            return found[0]
        time.sleep(0.1)
    raise TimeoutError("nothing was written in a minute")


@pytest.mark.parametrize("signal_", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
def test_a_run_that_is_stopped_while_it_writes_leaves_the_old_output(
    run: Run, study: Study, tmp_path: Path, signal_: signal.Signals
) -> None:
    (tmp_path / "out.parquet").write_text("the old output")
    arguments = [*predict_to(tmp_path / "out.parquet", study), "--force"]

    slower = SLOW.replace("0.2", "2")  # it must not come to its end on a busy machine
    code = HEED_CTRL_C + slower + START
    with start(code, *arguments, stderr=subprocess.PIPE) as process:
        wait_for_partial(tmp_path)
        process.send_signal(signal_)
        error = process.communicate()[1]

    left = [path for path in tmp_path.iterdir() if path.name != "out.parquet"]
    assert (tmp_path / "out.parquet").read_text() == "the old output"
    assert process.returncode == (130 if signal_ == signal.SIGINT else -signal.SIGKILL)
    assert error == b""
    assert len(left) == (signal_ == signal.SIGKILL)
    assert run(*arguments).code == 0
    assert parquet.read_table(tmp_path / "out.parquet").num_rows == 120


def on_a_terminal(code: str, *arguments: str, **environment: str) -> str:
    """Return what a run shows on a terminal, escape sequences included."""
    ours, theirs = pty.openpty()
    variables = {**os.environ, "TERM": "xterm", "COLUMNS": "100", **environment}
    for name in set(variables) & ({"NO_COLOR", "FORCE_COLOR", "CI"} - set(environment)):
        del variables[name]
    with start(code, *arguments, stdout=theirs, stderr=theirs, env=variables) as process:
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 4096):
                shown += chunk
        except OSError:  # the other end was closed
            pass
        os.close(ours)
    assert process.returncode == 0, shown.decode()
    return shown.decode()


def test_a_terminal_shows_progress(study: Study, tmp_path: Path) -> None:
    at_once = "import hocal.cli.messages as messages\nmessages.DELAY = 0\n"
    arguments = predict_to(tmp_path / "out.csv", study)

    shown = on_a_terminal(at_once + SLOW + START, *arguments)

    assert "Certifying" in shown
    assert "Predicting" in shown
    assert "/120" in shown


def test_colours_are_for_terminals_without_no_color() -> None:
    """The same command twice in one process, as its imports take longest."""
    colour = re.compile(r"\x1b\[[0-9;]*3[0-9]")
    arguments = ["plan", "--k", "5", "--epsilon", "0.3", "--n-classes", "2"]

    plain, without = on_a_terminal(COLOURED_AND_NOT, *arguments).split("from here without")

    assert colour.search(plain)
    assert "items" in without
    assert not colour.search(without)


def test_a_pipe_gets_neither_colours_nor_progress_nor_noise(study: Study, tmp_path: Path) -> None:
    arguments = predict_to(tmp_path / "out.csv", study)

    done = subprocess.run(
        [sys.executable, "-c", START, *arguments], capture_output=True, text=True, check=True
    )

    assert done.stdout == f"120 items in {tmp_path / 'out.csv'}\n"
    assert done.stderr == ""


def test_a_mistake_of_the_program_keeps_its_traceback(
    run: Run, study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import that fails inside the library is no bad input; one that says what to install is."""
    monkeypatch.setitem(sys.modules, "hocal.calibration.persistence", None)

    with pytest.raises(ImportError, match="persistence"):
        run("predict", study / "model.hocal", study / "predictions.csv", "-o", "nowhere.csv")
