"""Time mixtures of single items beside scikit-learn's calibration and gradient boosting.

    python benchmarks/items.py          # a quarter of an hour, writes results/items.json
    python benchmarks/items.py --tiny   # seconds, writes nothing

The peers do less: isotonic calibration takes one label per item and gives the mean; gradient
boosting of how often two labels of an item differ, on the same inputs, gives the disagreement. On
a world of known truth each is scored by what it gives.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measure import growth, measure_once, versions
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator

import hocal

N_LABELS = 5
DENSE_CLASSES = 100  # beyond, counts are sparse, as people with many classes store them
SHARPNESS = 3.0  # of the items around their predictions: epistemic uncertainty that a fit can find
RESULTS = Path(__file__).parent / "results" / "items.json"


class World(NamedTuple):
    """Predictions, label counts, one label per item, and the truth."""

    predictions: np.ndarray
    counts: Any
    labels: np.ndarray
    brier: np.ndarray  # how often two labels of an item really differ


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


def make_world(n_items: int, n_classes: int, seed: int = 0) -> World:
    """Draw predictions, the items' own probabilities around them, and labels."""
    generator = np.random.default_rng(seed)
    f = generator.standard_gamma(0.3, size=(n_items, n_classes))
    f /= f.sum(axis=1, keepdims=True)
    p = generator.standard_gamma(SHARPNESS * f + 1e-6)
    p /= p.sum(axis=1, keepdims=True)
    counts = generator.multinomial(N_LABELS, p)
    labels = (p.cumsum(axis=1) < generator.random((n_items, 1))).sum(axis=1).clip(max=n_classes - 1)
    labels[:n_classes] = np.arange(n_classes)  # scikit-learn wants to see every class
    kept = sparse.csr_array(counts) if n_classes > DENSE_CLASSES else counts
    return World(f, kept, labels, 1 - np.einsum("ij,ij->i", p, p))


def boost(world: World) -> HistGradientBoostingRegressor:
    """Regress the disagreement of an item's labels on its prediction."""
    counts = world.counts
    squares = np.asarray((counts * counts).sum(axis=1)).ravel()
    differ = 1 - (squares - N_LABELS) / (N_LABELS * (N_LABELS - 1))
    return HistGradientBoostingRegressor(random_state=0).fit(world.predictions, differ)


def methods(world: World) -> dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """Return for each method how to fit it and how to predict all items."""
    f, counts, labels, _ = world
    frozen = FrozenEstimator(Given(f.shape[1]))
    isotonic = CalibratedClassifierCV(frozen, method="isotonic")
    return {
        "hocal": (
            lambda: hocal.SnapshotCalibrator().fit(f, counts),
            lambda model: model.decompose(f),
        ),
        "isotonic": (lambda: isotonic.fit(f, labels), lambda model: model.predict_proba(f)),
        "boosting": (partial(boost, world), lambda model: model.predict(f)),
    }


def explained(predicted: np.ndarray, truth: np.ndarray) -> float:
    """Return the share of the variance of the truth that is explained."""
    return float(1 - ((predicted - truth) ** 2).mean() / truth.var())


def resolutions(world: World, fresh: World) -> dict[str, float]:
    """Return the explained share of the true disagreement of fresh items."""
    calibrator = hocal.SnapshotCalibrator().fit(world.predictions, world.counts)
    found = {
        "hocal": calibrator.decompose(fresh.predictions, "brier").aleatoric,
        "boosting": boost(world).predict(fresh.predictions),
    }
    return {name: explained(value, fresh.brier) for name, value in found.items()}


def measure(n_items: int, n_classes: int, repeats: int) -> dict[str, Any]:
    """Return the best times of fits and predictions, taken in turns, and the last peaks."""
    world = make_world(n_items, n_classes)
    seconds: dict[str, dict[str, float]] = {}
    peaks: dict[str, dict[str, int | None]] = {}
    for _ in range(repeats):
        for name, (fit, predict) in methods(world).items():
            fitted = measure_once(fit)
            predicted = measure_once(partial(predict, fitted[2]))
            best = seconds.setdefault(name, {})
            for job, (taken, _, _) in {"fit": fitted, "predict": predicted}.items():
                best[job] = min(best.get(job, np.inf), taken)
            peaks[name] = {"fit": fitted[1], "predict": predicted[1]}
    return {
        "n_items": n_items,
        "n_classes": n_classes,
        "input_bytes": world.predictions.nbytes + getattr(world.counts, "nbytes", 0),
        "best_of": repeats,
        "seconds": seconds,
        "peak_bytes": peaks,
    }


def run(tiny: bool) -> dict[str, Any]:
    """Return all measurements."""
    sizes = [(300, 3), (600, 3)] if tiny else [(5_000, 10), (100_000, 10), (1_000_000, 10)]
    many = [(300, 20)] if tiny else [(100_000, 100), (50_000, 1_000)]
    rows = [measure(*size, 1 if tiny or size[0] > 10_000 else 3) for size in sizes]
    n_items = [row["n_items"] for row in rows]
    fits = [row["seconds"]["hocal"]["fit"] for row in rows]
    return {
        "versions": versions("numpy", "scipy", "scikit-learn"),
        "labels": N_LABELS,
        "rows": rows,
        "growth": growth(n_items, fits),
        "many_classes": [measure(*size, 1) for size in many],
        "explained": resolutions(make_world(*sizes[0]), make_world(*sizes[0], seed=1)),
    }


def main() -> None:
    """Measure, and print or store the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="small worlds; writes nothing")
    tiny = parser.parse_args().tiny
    text = json.dumps(run(tiny), indent=1)
    print(text)
    if not tiny:
        RESULTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
