"""Time `hocal.wasserstein` against POT and SciPy, side by side in one process.

Run from the repository root, with HOCAL_DATA naming the directory that holds
cifar10h/cifar10h-counts.npy:

    HOCAL_DATA=... python benchmarks/wasserstein.py   # minutes, writes results/wasserstein.json
    python benchmarks/wasserstein.py --tiny           # seconds, synthetic labels, writes nothing

Peers get the raw samples as label distributions, and their costs where they need them; hocal gets
the label counts, and its time includes building the mixtures.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import ot
from measure import best_times, growth, peak_bytes, versions
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.stats import wasserstein_distance

from hocal.datasets import load_cifar10h
from hocal.uncertainty.distance import wasserstein
from hocal.uncertainty.mixtures import Mixtures

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

# times faster than POT on the raw samples; two classes: not slower than the faster of POT and SciPy
AIM = 20
TOLERANCE = 1e-9
RESULTS = Path(__file__).parent / "results" / "wasserstein.json"
DATA = (
    "CIFAR-10H, k labels per item drawn with replacement; "
    "two classes: the most frequent one against the rest"
)


def load_label_distributions(tiny: bool) -> Array:
    """Return the label distributions of CIFAR-10H, or synthetic ones for the tiny mode."""
    if tiny:
        return np.random.default_rng(0).dirichlet([5.0, *[0.05] * 9], size=600)
    counts = load_cifar10h().counts
    return counts / counts.sum(axis=1, keepdims=True)


def two_classes_of(p: Array) -> Array:
    """Return the probability of the most frequent class and of all others together."""
    one = p[:, p.sum(axis=0).argmax()]
    return np.stack([one, 1 - one], axis=1)


def pot(first: Array, second: Array) -> float:
    """Return W1 between two samples with any number of classes."""
    return float(ot.emd2([], [], cdist(first, second, "cityblock"), numItermax=10**8))


def pot_line(first: Array, second: Array) -> float:
    """Return W1 between two samples with two classes."""
    return 2 * float(ot.emd2_1d(first[:, 0], second[:, 0], metric="cityblock"))


def scipy_line(first: Array, second: Array) -> float:
    """Return W1 between two samples with two classes."""
    return 2 * float(wasserstein_distance(first[:, 0], second[:, 0]))


def peers(n_classes: int) -> dict[str, Callable[[Array, Array], float]]:
    """Return the peers that fit the number of classes."""
    return {"pot_line": pot_line, "scipy_line": scipy_line} if n_classes == 2 else {"pot": pot}


def hocal_distance(first: Counts, second: Counts) -> float:
    """Return W1 between two samples, mixtures included."""
    return float(
        wasserstein(Mixtures.from_snapshots(first)[0], Mixtures.from_snapshots(second)[0])[0]
    )


def compared(row: dict[str, Any], seconds: dict[str, float], difference: float) -> dict[str, Any]:
    """Return a row of results: the best peer's time over hocal's."""
    best = min(value for name, value in seconds.items() if not name.startswith("hocal"))
    return {
        **row,
        "times_faster": best / seconds["hocal"],
        "seconds": seconds,
        "difference": difference,
    }


def one_pair(p: Array, k: int, n_items: int, n_draws: int, repeats: int) -> dict[str, Any]:
    """Compare disjoint samples of k-snapshots, several draws."""
    draws = [one_draw(p, k, n_items, seed, repeats) for seed in range(n_draws)]
    mean = {
        name: float(np.mean([draw["seconds"][name] for draw in draws]))
        for name in draws[0]["seconds"]
    }
    row = {
        "n_classes": p.shape[1],
        "k": k,
        "n_items": n_items,
        "atoms": draws[0]["atoms"],
        "times_faster_in_the_worst_draw": min(draw["times_faster"] for draw in draws),
        "peak_bytes": draws[0]["peak_bytes"],
        "draws": n_draws,
    }
    return compared(row, mean, max(draw["difference"] for draw in draws))


def one_draw(p: Array, k: int, n_items: int, seed: int, repeats: int) -> dict[str, Any]:
    """Time one pair of samples, also with the mixtures given."""
    generator = np.random.default_rng([seed, k])
    first, second = np.split(
        generator.multinomial(k, p[generator.permutation(len(p))[: 2 * n_items]]), 2
    )
    a = Mixtures.from_snapshots(first)[0]
    b = Mixtures.from_snapshots(second)[0]
    calls = {
        **{name: partial(peer, first / k, second / k) for name, peer in peers(p.shape[1]).items()},
        "hocal": partial(hocal_distance, first, second),
        "hocal_from_mixtures": lambda: wasserstein(a, b)[0],
    }
    if p.shape[1] == 2:
        samples = [Mixtures.from_ensemble((side / k)[None]) for side in (first, second)]
        calls["hocal_unmerged_from_mixtures"] = lambda: wasserstein(*samples)[0]
    seconds, values = best_times(calls, repeats)
    peak = {name: peak_bytes(calls[name]) for name in calls} if seed == 0 else None
    row = {"atoms": [len(a.weights), len(b.weights)], "peak_bytes": peak}
    return compared(
        row, seconds, max(abs(float(value - values["hocal"])) for value in values.values())
    )


def cells(
    p: Array, k: int, sizes: str, n_cells: int, n_items: int, n_timed: int, repeats: int
) -> dict[str, Any]:
    """Compare the k-snapshots of two sets of items cell by cell, as a calibration error does.

    Peers run on `n_timed` of the cells, and their time is scaled up to all. With sizes "equal" each
    cell has n_items / n_cells items on both sides, with "drawn" about that many.
    """
    generator = np.random.default_rng(k)
    counts = generator.multinomial(k, p[generator.integers(len(p), size=2 * n_items)])
    cell = np.tile(np.arange(n_items) % n_cells, 2)
    if sizes == "drawn":
        cell = generator.integers(n_cells, size=2 * n_items)
    (first, second) = np.split(counts, 2)
    (where, other) = np.split(cell, 2)
    groups = [(first[where == c] / k, second[other == c] / k) for c in range(n_timed)]

    def hocal() -> Array:
        mixtures = (
            Mixtures.from_snapshots(*side, n_cells=n_cells)
            for side in ((first, where), (second, other))
        )
        return wasserstein(*(each.stored() for each in mixtures))

    calls = {
        name: lambda f=peer: np.array([f(*group) for group in groups])
        for name, peer in peers(p.shape[1]).items()
    }
    seconds, values = best_times({**calls, "hocal": hocal}, repeats)
    scaled = {
        name: value * (1 if name == "hocal" else n_cells / n_timed)
        for name, value in seconds.items()
    }
    row = {
        "n_classes": p.shape[1],
        "k": k,
        "n_cells": n_cells,
        "items_a_cell": n_items // n_cells,
        "cell_sizes": sizes,
        "peers_timed_on_cells": n_timed,
        "peak_bytes": peak_bytes(hocal),
    }
    difference = max(
        float(np.abs(values[name] - values["hocal"][:n_timed]).max()) for name in calls
    )
    return compared(row, scaled, difference)


def weighted_lines(n_mixtures: int, n_atoms: int, repeats: int) -> dict[str, Any]:
    """Compare weighted two-class mixtures that share no atoms; the peers run once for each pair."""
    generator = np.random.default_rng(0)
    x = generator.beta(2, 3, (n_mixtures, n_atoms))
    y = generator.beta(1, 2, (n_mixtures, n_atoms))
    u, v = (generator.dirichlet(np.ones(n_atoms), n_mixtures) for _ in range(2))
    offsets = np.arange(n_mixtures + 1) * n_atoms
    index = np.arange(n_mixtures)
    a, b = (
        Mixtures(np.stack([1 - z, z], axis=-1).reshape(-1, 2), w.ravel(), offsets, index)
        for z, w in ((x, u), (y, v))
    )
    rows = list(zip(x, y, u, v, strict=True))
    calls = {
        "pot_line": lambda: np.array([2 * ot.emd2_1d(*row, metric="cityblock") for row in rows]),
        "scipy_line": lambda: np.array([2 * wasserstein_distance(*row) for row in rows]),
        "hocal": lambda: wasserstein(a, b),
    }
    seconds, values = best_times(calls, repeats)
    difference = max(float(np.abs(value - values["hocal"]).max()) for value in values.values())
    row = {"n_mixtures": n_mixtures, "n_atoms": n_atoms, "peak_bytes": peak_bytes(calls["hocal"])}
    return compared(row, seconds, difference)


def dirichlet_world(n_classes: int, n_items: int) -> Array:
    """Return label distributions that mostly favour one class, which differs between items."""
    generator = np.random.default_rng(n_classes)
    alpha = np.full((n_items, n_classes), 2 / n_classes)
    alpha[np.arange(n_items), generator.integers(n_classes, size=n_items)] += 10
    draws = generator.standard_gamma(alpha)
    return draws / draws.sum(axis=1, keepdims=True)


def cost_growth(p: Array, k: int, hocal_sizes: list[int], pot_sizes: list[int]) -> dict[str, Any]:
    """Time samples of growing size, and fit the power of items with which time grows."""
    seconds: dict[str, dict[int, float]] = {"hocal": {}, "pot": {}}
    for n_items in sorted({*hocal_sizes, *pot_sizes}):
        generator = np.random.default_rng([n_items, k])
        counts = [
            generator.multinomial(k, p[generator.integers(len(p), size=n_items)]) for _ in range(2)
        ]
        raw = [side / k for side in counts]
        calls = {"hocal": partial(hocal_distance, *counts), "pot": partial(pot, *raw)}
        wanted = {"hocal": hocal_sizes, "pot": pot_sizes}
        times, _ = best_times(
            {name: call for name, call in calls.items() if n_items in wanted[name]}, 3
        )
        for name, value in times.items():
            seconds[name][n_items] = value
    return {
        "n_classes": p.shape[1],
        "k": k,
        **{
            name: {"seconds": each, "exponent": growth(each, each.values())}
            for name, each in seconds.items()
        },
        "peak_bytes_of_the_largest": peak_bytes(partial(hocal_distance, *counts)),
        "bytes_of_its_counts": sum(side.nbytes for side in counts),
    }


def run(tiny: bool) -> dict[str, Any]:
    """Return all measurements."""
    p = load_label_distributions(tiny)
    binary = two_classes_of(p)
    sizes = ["equal", "drawn"]
    all_k = [2, 10] if tiny else [2, 5, 10, 50]
    n_items, n_draws, repeats = (200, 1, 2) if tiny else (2000, 3, 5)
    small, large = ((5, 100, 5), (3, 600, 1)) if tiny else ((100, 5000, 100), (100, 200_000, 4))
    growing = (
        ([500, 2000], [100, 200])
        if tiny
        else ([10**3, 10**4, 10**5, 10**6], [500, 1000, 2000, 4000])
    )
    worlds = [(20, 100)] if tiny else [(100, 2000), (1000, 1000)]
    lines = (
        [(1, 100), (20, 30)]
        if tiny
        else [(1, 100), (1, 2000), (1, 100_000), (100, 300), (20_000, 30)]
    )
    return {
        "versions": versions("numpy", "scipy", "POT"),
        "data": "synthetic" if tiny else DATA,
        "aim": AIM,
        "one_pair": [one_pair(p, k, n_items, n_draws, repeats) for k in all_k],
        "one_pair_of_two_classes": [
            one_pair(binary, k, n_items, n_draws, 10 * repeats) for k in all_k
        ],
        "small_cells": [cells(p, k, each, *small, 2 * repeats) for each in sizes for k in all_k],
        "small_cells_of_two_classes": [
            cells(binary, k, "drawn", *small, 2 * repeats) for k in all_k
        ],
        "large_cells": [cells(p, k, "equal", *large, 2) for k in all_k],
        "large_cells_of_two_classes": [cells(binary, k, "equal", *large, 2) for k in all_k],
        "many_classes": [
            one_pair(dirichlet_world(n, 2 * m), k, m, 1, 2) for n, m in worlds for k in all_k[:3]
        ],
        "weighted_lines": [
            weighted_lines(*each, 40 * repeats if each[0] * each[1] < 10_000 else 3)
            for each in lines
        ],
        "growth": cost_growth(p, 10, *growing),
    }


def main() -> None:
    """Measure, check that every value agrees with its peer, and print or store the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--tiny", action="store_true", help="small synthetic data; checks values, writes nothing"
    )
    tiny = parser.parse_args().tiny
    result = run(tiny)
    text = json.dumps(result, indent=2)
    print(text)
    rows = [row for part in result.values() if isinstance(part, list) for row in part]
    wrong = [row for row in rows if row["difference"] > TOLERANCE]
    if wrong:
        raise SystemExit(f"values differ from the peer's by more than {TOLERANCE}: {wrong}")
    if not tiny:
        RESULTS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
