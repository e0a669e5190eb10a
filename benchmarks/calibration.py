"""Time fits and predictions of the calibrator, netcal's and scikit-learn's, as data grow.

    python benchmarks/calibration.py          # minutes, writes results/calibration.json
    python benchmarks/calibration.py --tiny   # seconds, writes nothing

The peers calibrate the mean from one label per item; hocal takes all labels and keeps the whole
mixture. With two classes, one label and equal bins both are the same histogram binning, and their
predictions must be equal.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measure import growth, measure_once, too_large, versions
from netcal.binning import HistogramBinning
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

import hocal

N_BINS = 10
TOLERANCE = 1e-12
RESULTS = Path(__file__).parent / "results" / "calibration.json"


class World(NamedTuple):
    """Predictions, labels that follow them, and one label of each item for the peers."""

    predictions: np.ndarray
    counts: Any
    labels: np.ndarray


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose predictions are its input, so that only calibration is timed."""

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes
        self.classes_ = np.arange(n_classes)

    def fit(self, X: np.ndarray, y: np.ndarray) -> Given:  # noqa: ARG002 - scikit-learn's names
        """Learn nothing."""
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Hand the predictions through."""
        return X

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the most likely class; scikit-learn wants it to be there."""
        return X.argmax(axis=1)


def make_world(n_items: int, n_classes: int, most_labels: int = 5, fewest_labels: int = 5) -> World:
    """Draw predictions and labels, fewest_labels to most_labels; sparse beyond 100 classes."""
    generator = np.random.default_rng(0)
    p = generator.standard_gamma(0.3, size=(n_items, n_classes))
    p /= p.sum(axis=1, keepdims=True)
    labels = (p.cumsum(axis=1) < generator.random((n_items, 1))).sum(axis=1).clip(max=n_classes - 1)
    labels[:n_classes] = np.arange(n_classes)  # scikit-learn wants to see every class
    counts = np.zeros(p.shape, dtype=np.int64)
    counts[np.arange(n_items), labels] = 1
    if most_labels > 1:
        counts += generator.multinomial(
            generator.integers(fewest_labels - 1, most_labels, size=n_items), p
        )
    return World(p, sparse.csr_array(counts) if n_classes > 100 else counts, labels)


def methods(world: World) -> dict[str, tuple[Callable[[], Any], dict[str, Callable[[Any], Any]]]]:
    """Return for each method how to fit it and what to predict with the fitted model."""
    p, counts, labels = world
    frozen = FrozenEstimator(Given(p.shape[1]))
    hocal_predictions = {
        "predict_proba": lambda model: model.predict_proba(p),
        "decompose": lambda model: model.decompose(p),
    }
    only_means = {"predict_proba": lambda model: model.predict_proba(p)}
    return {
        "hocal_empirical": (
            lambda: hocal.SnapshotCalibrator(method="empirical").fit(p, counts),
            hocal_predictions,
        ),
        "hocal_cells": (
            lambda: hocal.SnapshotCalibrator(method="cells").fit(p, counts),
            hocal_predictions,
        ),
        "netcal": (
            lambda: HistogramBinning(N_BINS).fit(p, labels),
            {"predict_proba": lambda model: model.transform(p)},
        ),
        "sklearn_isotonic": (
            lambda: CalibratedClassifierCV(frozen, method="isotonic").fit(p, labels),
            only_means,
        ),
        "sklearn_sigmoid": (
            lambda: CalibratedClassifierCV(frozen, method="sigmoid").fit(p, labels),
            only_means,
        ),
    }


def measure_jobs(
    fit: Callable[[], Any], predictions: Mapping[str, Callable[[Any], Any]]
) -> dict[str, tuple[float, int | None, Any]]:
    """Fit, and predict with the fitted model."""
    fitted = measure_once(fit)
    return {
        "fit": fitted,
        **{job: measure_once(partial(call, fitted[2])) for job, call in predictions.items()},
    }


def measure(world: World, repeats: int, left_out: Mapping[str, str]) -> dict[str, Any]:
    """Return the best times of fits and predictions, taken in turns, and the last peaks."""
    seconds: dict[str, dict[str, float]] = {}
    peaks: dict[str, dict[str, int | None]] = {}
    for _ in range(repeats):
        for name, (fit, predictions) in methods(world).items():
            if name in left_out:
                continue
            taken = measure_jobs(fit, predictions)
            best = seconds.setdefault(name, {})
            for job, (duration, _, _) in taken.items():
                best[job] = min(best.get(job, np.inf), duration)
            peaks[name] = {job: peak for job, (_, peak, _) in taken.items()}
    ratios = {
        name: {job: best[job] / seconds["netcal"][job] for job in ("fit", "predict_proba")}
        for name, best in seconds.items()
        if "netcal" in seconds
    }
    n_items, n_classes = world.predictions.shape
    return {
        "n_items": n_items,
        "n_classes": n_classes,
        "input_bytes": world.predictions.nbytes + getattr(world.counts, "nbytes", 0),
        "best_of": repeats,
        "seconds": seconds,
        "ratio_to_netcal": ratios,
        "peak_bytes": peaks,
        "left_out": dict(left_out),
    }


def grow(sizes: list[int]) -> list[dict[str, Any]]:
    """Measure worlds of ten classes, each several times the one before."""
    rows: list[dict[str, Any]] = []
    for n_items in sizes:
        left_out = stops(rows[-1], n_items / rows[-1]["n_items"]) if rows else {}
        repeats = 1 if n_items > 100_000 or len(sizes) < 3 else 3
        rows.append(measure(make_world(n_items, 10), repeats, left_out))
    return rows


def stops(row: Mapping[str, Any], times_larger: float) -> dict[str, str]:
    """Tell which methods stop before a larger world, and why."""
    seconds, peaks = (
        {name: max(value or 0 for value in jobs.values()) for name, jobs in row[key].items()}
        for key in ("seconds", "peak_bytes")
    )
    return row["left_out"] | too_large(seconds, peaks, times_larger)


def exponents(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the power of the number of items with which the time of each job grows."""
    result: dict[str, dict[str, float]] = {}
    for name, jobs in rows[0]["seconds"].items():
        timed = [row for row in rows if name in row["seconds"]]
        sizes = [row["n_items"] for row in timed]
        result[name] = {
            job: growth(sizes, [row["seconds"][name][job] for row in timed]) for job in jobs
        }
    return result


def same_binning(n_items: int, repeats: int) -> dict[str, Any]:
    """Compare histogram binning of two classes with one label, which netcal computes as well."""
    p, counts, labels = make_world(n_items, 2, most_labels=1)
    binned = hocal.SnapshotCalibrator(hocal.UniformPartition(N_BINS), method="empirical")
    peer = HistogramBinning(N_BINS)
    second = np.ascontiguousarray(p[:, 1])
    seconds = {
        "hocal": {"fit": np.inf, "predict_proba": np.inf},
        "netcal": {"fit": np.inf, "predict_proba": np.inf},
    }
    jobs = [
        ("hocal", "fit", lambda: binned.fit(p, counts)),
        ("netcal", "fit", lambda: peer.fit(second, labels)),
        ("hocal", "predict_proba", lambda: binned.predict_proba(p)),
        ("netcal", "predict_proba", lambda: peer.transform(second)),
    ]
    values = {}
    for _ in range(repeats):
        for name, job, call in jobs:
            duration, _, values[name] = measure_once(call)
            seconds[name][job] = min(seconds[name][job], duration)
    difference = float(np.abs(values["hocal"][:, 1] - values["netcal"].reshape(-1)).max())
    return {"n_items": n_items, "n_classes": 2, "seconds": seconds, "difference": difference}


def run(tiny: bool) -> dict[str, Any]:
    """Return all measurements."""
    sizes = [500, 1_000] if tiny else [10_000, 100_000, 1_000_000, 10_000_000]
    many = [(200, 20)] if tiny else [(100_000, 100), (10_000, 1_000)]
    rows = grow(sizes)
    return {
        "versions": versions("numpy", "scipy", "scikit-learn", "netcal"),
        "bins": N_BINS,
        "rows": rows,
        "growth": exponents(rows),
        "many_classes": [measure(make_world(*size), 1, {}) for size in many],
        "ragged": measure(make_world(1_000 if tiny else 1_000_000, 10, 10, 1), 1, {}),
        "same_binning": same_binning(1_000 if tiny else 1_000_000, 1 if tiny else 5),
    }


def main() -> None:
    """Measure, check that equal methods predict the same, and print or store the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--tiny", action="store_true", help="small worlds; checks values, writes nothing"
    )
    tiny = parser.parse_args().tiny
    result = run(tiny)
    text = json.dumps(result, indent=1)
    print(text)
    if not result["same_binning"]["difference"] <= TOLERANCE:
        raise SystemExit(
            f"predictions differ from netcal's by {result['same_binning']['difference']}"
        )
    if not tiny:
        RESULTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
