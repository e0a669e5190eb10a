"""Every public function and method, called with what nobody should pass."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hardening.public_calls import World, collect, judge

TESTS = Path(__file__).parents[1]


def run(n_calls: int, seed: int) -> str:
    """Fuzz in a process of its own, which limits on memory cannot harm others in."""
    ran = subprocess.run(
        [sys.executable, TESTS / "hardening" / "public_calls.py", str(n_calls), str(seed)],
        capture_output=True, text=True, check=False, cwd=TESTS,
    )  # fmt: skip
    assert ran.returncode in (0, 1), ran.stderr[-2_000:]
    return ran.stdout


def test_honest_arguments_are_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried with hostile values is otherwise right, so that their effect is seen."""
    monkeypatch.chdir(tmp_path)  # where those that save do so
    wrong = {t.name: judge(t, t.arguments) for t in collect(World()) if t.weight == 1.0}

    assert {name: message for name, message in wrong.items() if message} == {}


def test_hostile_arguments_are_refused_in_words() -> None:
    assert run(500, seed=1) == ""


@pytest.mark.slow
def test_thousands_of_hostile_calls_are_refused_in_words() -> None:
    assert run(5_000, seed=2) == ""
