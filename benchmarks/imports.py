"""Time how long hocal and its command take to start, against `import sklearn`.

python benchmarks/imports.py          # writes results/imports.json
python benchmarks/imports.py --tiny   # seconds, writes nothing
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from measure import best_times, versions

TARGET = 1.5  # `import hocal` at most this many times the time of `import sklearn`
RESULTS = Path(__file__).parent / "results" / "imports.json"

COMMAND = [sys.executable, str(Path(sys.executable).with_name("hocal"))]
PROGRAMS = {
    "python": [sys.executable, "-c", ""],
    "import numpy": [sys.executable, "-c", "import numpy"],
    "import sklearn": [sys.executable, "-c", "import sklearn"],
    "from sklearn.calibration import CalibratedClassifierCV": [
        sys.executable,
        "-c",
        "from sklearn.calibration import CalibratedClassifierCV",
    ],
    "import hocal": [sys.executable, "-c", "import hocal"],
    "from hocal import decompose": [sys.executable, "-c", "from hocal import decompose"],
    "from hocal import SnapshotCalibrator": [
        sys.executable,
        "-c",
        "from hocal import SnapshotCalibrator",
    ],
    "hocal --version": [*COMMAND, "--version"],
    "hocal --help": [*COMMAND, "--help"],
}


def start(program: list[str]) -> str:
    """Run a program to its end and return what it printed."""
    return subprocess.run(program, check=True, capture_output=True, text=True).stdout


def run(repeats: int) -> dict[str, Any]:
    """Return the best times, in turns; the first turn compiles bytecode and is not timed."""
    seconds, printed = best_times(
        {name: lambda p=p: start(p) for name, p in PROGRAMS.items()}, repeats
    )
    bare = seconds["python"]
    calibrators = (
        "from hocal import SnapshotCalibrator",
        "from sklearn.calibration import CalibratedClassifierCV",
    )
    return {
        "versions": versions("hocal", "numpy", "scikit-learn", "typer"),
        "best_of": repeats,
        "seconds": seconds,
        "ratio_to_sklearn": seconds["import hocal"] / seconds["import sklearn"],
        "target_at_most": TARGET,
        "ratio_to_sklearn_without_python": (seconds["import hocal"] - bare)
        / (seconds["import sklearn"] - bare),
        "calibrator_ratio_to_sklearn": seconds[calibrators[0]] / seconds[calibrators[1]],
        "correct": printed["hocal --version"].split() == ["hocal", versions("hocal")["hocal"]],
    }


def main() -> None:
    """Measure, check that the command ran, and print or store the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="one turn, writes nothing")
    tiny = parser.parse_args().tiny
    result = run(1 if tiny else 10)
    text = json.dumps(result, indent=2)
    print(text)
    if not result["correct"]:
        raise SystemExit("`hocal --version` did not print the installed version")
    if not tiny:
        RESULTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
