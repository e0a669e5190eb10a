"""Time fits of the calibrator against scikit-learn's isotonic calibration, and how cost grows with items.

python benchmarks/calibration.py           # writes benchmarks/results/calibration.json
python benchmarks/calibration.py --tiny    # seconds, writes nothing
"""

from __future__ import annotations

import argparse
import json
import resource
from pathlib import Path
from typing import Any

import numpy as np
from measure import best_times, versions
from sklearn.isotonic import IsotonicRegression

import hocal

N_CLASSES = 10
RESULTS = Path(__file__).parent / "results" / "calibration.json"


def world(n_items: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions and k labels an item that follow them."""
    generator = np.random.default_rng(0)
    p = generator.dirichlet(np.full(N_CLASSES, 0.3), size=n_items)
    return p, generator.multinomial(k, p)


def isotonic(p: np.ndarray, counts: np.ndarray) -> list[IsotonicRegression]:
    """Calibrate each class against the rest, the core of CalibratedClassifierCV(method="isotonic")."""
    shares = counts / counts.sum(axis=1, keepdims=True)
    return [IsotonicRegression(out_of_bounds="clip").fit(p[:, j], shares[:, j]) for j in range(p.shape[1])]


def measure(n_items: int, k: int, repeats: int) -> dict[str, Any]:
    """Time both methods and the peer on one data set."""
    p, counts = world(n_items, k)
    calls = {
        "isotonic": lambda: isotonic(p, counts),
        "empirical": lambda: hocal.SnapshotCalibrator(method="empirical").fit(p, counts),
        "deconvolved": lambda: hocal.SnapshotCalibrator().fit(p, counts),
    }
    seconds, _ = best_times(calls, repeats)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # GiB on Linux
    row = {"n_items": n_items, "k": k, "seconds": {name: round(value, 4) for name, value in seconds.items()}}
    return {**row, "empirical_over_isotonic": round(seconds["empirical"] / seconds["isotonic"], 3), "peak_gib": peak}


def growth(rows: list[dict[str, Any]], method: str) -> float:
    """Return the exponent of the time as a power of the number of items, by least squares on logarithms."""
    sizes, times = ([row["n_items"] for row in rows], [row["seconds"][method] for row in rows])
    return round(float(np.polyfit(np.log(sizes), np.log(times), 1)[0]), 3)


def main(tiny: bool) -> None:
    """Print the rows and store them."""
    sizes = [500, 1000] if tiny else [5_000, 50_000, 200_000, 1_000_000]
    rows = [measure(n, k, 1 if n > 100_000 else 2) for n, k in [(n, 5) for n in sizes] + [(sizes[0], 10)]]
    for row in rows:
        print(json.dumps(row))
    exponents = {method: growth(rows[:-1], method) for method in ("isotonic", "empirical", "deconvolved")}
    print("growth exponents", exponents)
    if not tiny:
        result = {"rows": rows, "growth": exponents, "versions": versions("numpy", "scipy", "scikit-learn")}
        RESULTS.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true")
    main(parser.parse_args().tiny)
