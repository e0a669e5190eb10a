"""Signal 9 at random moments: an old or a new file, nothing left over, the same end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[1]
NAMES = ["save", "two writers", "fit", "predict", "report", "fetch"]
NAMES += ["train"] if find_spec("torch") else []
N_KILLS = 10
LEAST_KILLED = 3  # a process may end before its signal comes
Found = dict[str, dict[str, Any]]


def attack(n_kills: int, seed: int) -> Found:
    """Kill in a program of one thread, which may fork."""
    paths = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    settings = {"OMP_NUM_THREADS": "1", "PYTHONPATH": paths, "no_proxy": "*"}
    ran = subprocess.run(
        [sys.executable, TESTS / "hardening" / "kills.py", str(n_kills), str(seed), *NAMES],
        capture_output=True, text=True, check=False, env={**os.environ, **settings},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-2_000:]
    found: Found = json.loads(ran.stdout)
    return found


@pytest.fixture(scope="module")
def killed() -> Found:
    """Kill each several times."""
    return attack(N_KILLS, seed=2)


@pytest.mark.parametrize("name", NAMES)
def test_a_kill_leaves_old_or_new_files_and_what_resumes_ends_the_same(
    killed: Found, name: str
) -> None:
    assert killed[name]["n_killed"] >= LEAST_KILLED
    assert killed[name]["problems"] == []
