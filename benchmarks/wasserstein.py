"""Time `hocal.wasserstein` against POT and SciPy, side by side in one process.

Run from the repository root, with HOCAL_DATA naming the directory that holds cifar10h/cifar10h-counts.npy:

    HOCAL_DATA=... python benchmarks/wasserstein.py            # writes benchmarks/results/wasserstein.json
    python benchmarks/wasserstein.py --tiny                    # seconds, synthetic labels, writes nothing
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import ot
from measure import best_times, versions
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.stats import wasserstein_distance

from hocal.datasets import load_cifar10h
from hocal.mixtures import Mixtures
from hocal.transport import wasserstein

Array = NDArray[np.float64]

TARGETS = {2: 40, 10: 20, 50: 15}  # at least this many times faster than POT on the raw samples
TOLERANCE = 1e-9
RESULTS = Path(__file__).parent / "results" / "wasserstein.json"


def load_label_distributions(tiny: bool) -> Array:
    """Return the label distributions of CIFAR-10H, or synthetic ones of similar shape for the tiny mode."""
    if tiny:
        return np.random.default_rng(0).dirichlet([5.0, *[0.05] * 9], size=600)
    counts = load_cifar10h().counts
    return counts / counts.sum(axis=1, keepdims=True)


def snapshots_against_raw_samples(p: Array, k: int, n_items: int, n_draws: int, repeats: int) -> dict[str, Any]:
    """Compare disjoint samples of k-snapshots, several draws; building the mixtures counts as hocal's time."""
    draws = [one_draw(p, k, n_items, seed, repeats) for seed in range(n_draws)]
    mean = {name: float(np.mean([draw["seconds"][name] for draw in draws])) for name in draws[0]["seconds"]}
    return {
        "k": k,
        "n_items": n_items,
        "target": TARGETS[k],
        "times_faster": mean["pot"] / mean["hocal"],
        "times_faster_in_the_worst_draw": min(draw["seconds"]["pot"] / draw["seconds"]["hocal"] for draw in draws),
        "times_faster_with_ot_dist": mean["pot_with_ot_dist"] / mean["hocal"],
        "times_faster_from_mixtures": mean["pot"] / mean["hocal_from_mixtures"],
        "mean_seconds": mean,
        "difference": max(draw["difference"] for draw in draws),
        "draws": draws,
    }


def one_draw(p: Array, k: int, n_items: int, seed: int, repeats: int) -> dict[str, Any]:
    """Time one pair of samples."""
    generator = np.random.default_rng([seed, k])
    chosen = p[generator.permutation(len(p))[: 2 * n_items]]
    first, second = np.split(generator.multinomial(k, chosen), 2)
    a, b = Mixtures.from_snapshots(first)[0], Mixtures.from_snapshots(second)[0]
    calls = {
        "pot": lambda: ot.emd2([], [], cdist(first / k, second / k, "cityblock"), numItermax=10**8),
        "pot_with_ot_dist": lambda: ot.emd2([], [], ot.dist(first / k, second / k, "cityblock"), numItermax=10**8),
        "hocal": lambda: wasserstein(Mixtures.from_snapshots(first)[0], Mixtures.from_snapshots(second)[0])[0],
        "hocal_from_mixtures": lambda: wasserstein(a, b)[0],
    }
    seconds, values = best_times(calls, repeats)
    return {
        "seed": seed,
        "atoms": [int(m.offsets[1]) for m in (a, b)],
        "seconds": seconds,
        "value": float(values["hocal"]),
        "difference": abs(float(values["hocal"] - values["pot"])),
    }


def two_classes(n_mixtures: int, n_atoms: int, repeats: int) -> dict[str, Any]:
    """Compare batches of weighted two-class mixtures; the peers run once for each pair."""
    generator = np.random.default_rng(0)
    x, y = generator.beta(2, 3, (n_mixtures, n_atoms)), generator.beta(1, 2, (n_mixtures, n_atoms))
    u, v = (generator.dirichlet(np.ones(n_atoms), n_mixtures) for _ in range(2))
    offsets, index = np.arange(n_mixtures + 1) * n_atoms, np.arange(n_mixtures)
    a, b = (
        Mixtures(np.stack([1 - z, z], axis=-1).reshape(-1, 2), w.ravel(), offsets, index) for z, w in ((x, u), (y, v))
    )
    rows = list(zip(x, y, u, v, strict=True))
    calls = {
        "pot": lambda: np.array([2 * ot.emd2_1d(*row, metric="cityblock") for row in rows]),
        "scipy": lambda: np.array([2 * wasserstein_distance(*row) for row in rows]),
        "hocal": lambda: wasserstein(a, b),
    }
    seconds, values = best_times(calls, repeats)
    return {
        "n_mixtures": n_mixtures,
        "n_atoms": n_atoms,
        "seconds": seconds,
        "times_faster_than_pot": seconds["pot"] / seconds["hocal"],
        "times_faster_than_scipy": seconds["scipy"] / seconds["hocal"],
        "difference": float(np.abs(values["hocal"] - values["scipy"]).max()),
    }


def cells(p: Array, n_cells: int, k: int, repeats: int) -> dict[str, Any]:
    """Compare the k-snapshots of two halves of the items cell by cell, as a calibration error does."""
    generator = np.random.default_rng(0)
    drawn = generator.multinomial(k, p[generator.permutation(len(p))])
    half = len(p) // 2
    first, second, cell = drawn[:half], drawn[half : 2 * half], np.arange(half) % n_cells
    groups = [(first[cell == c] / k, second[cell == c] / k) for c in range(n_cells)]
    calls = {
        "pot": lambda: np.array([ot.emd2([], [], cdist(x, y, "cityblock")) for x, y in groups]),
        "hocal": lambda: wasserstein(Mixtures.from_snapshots(first, cell), Mixtures.from_snapshots(second, cell)),
    }
    seconds, values = best_times(calls, repeats)
    return {
        "n_cells": n_cells,
        "k": k,
        "n_items": half,
        "seconds": seconds,
        "times_faster": seconds["pot"] / seconds["hocal"],
        "difference": float(np.abs(values["hocal"] - values["pot"][cell]).max()),
    }


def run(tiny: bool) -> dict[str, Any]:
    """Return all measurements."""
    p = load_label_distributions(tiny)
    n_items, n_draws, repeats = (200, 1, 2) if tiny else (2000, 5, 10)
    sizes = [(1, 100), (20, 30)] if tiny else [(1, 100), (1, 2000), (1, 100_000), (100, 300), (20_000, 30)]
    return {
        "versions": versions("numpy", "scipy", "POT"),
        "best_of": repeats,
        "data": "synthetic" if tiny else "CIFAR-10H, k labels an item drawn with replacement",
        "snapshots": [snapshots_against_raw_samples(p, k, n_items, n_draws, repeats) for k in TARGETS],
        "two_classes": [two_classes(*size, repeats if size[0] < 1000 else 2) for size in sizes],
        "cells": [cells(p, 10 if tiny else 100, k, min(repeats, 5)) for k in TARGETS],
    }


def main() -> None:
    """Measure, check that every value agrees with its peer, and print or store the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true", help="small synthetic data; checks values, writes nothing")
    tiny = parser.parse_args().tiny
    result = run(tiny)
    text = json.dumps(result, indent=2)
    print(text)
    wrong = [
        row for part in ("snapshots", "two_classes", "cells") for row in result[part] if row["difference"] > TOLERANCE
    ]
    if wrong:
        raise SystemExit(f"values differ from the peer's by more than {TOLERANCE}: {wrong}")
    if not tiny:
        RESULTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
