"""Count how often certificates miss under hard use.

    python experiments/hard_use.py [--worlds 3000] [--jobs 1]

Skewed worlds, a class that is never seen, totals from 1 to 100 labels, cells of two items; and two
worlds of large cells, where limits are narrow. Each cell is a world of its own, so that one
certificate tries thousands. Intervals at 90% may miss one truth in ten; simultaneous ones may miss
any of ten cells in one study of ten; p-values of right predictions may be below .1 one time in ten.
Level sets are learned from labels: each study fits 200 skewed items and certifies its level sets.
Three quarters of an hour on one core.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from protocol import digits, in_parallel, options, store
from scipy.stats import kstest

import hocal
from hocal.cells.partitions import CellLayout
from hocal.cells.statistics import CellStatistics
from hocal.guarantees.certificates import Certificate, certify

DELTA = 0.1
CELLS = 10  # of a study whose limits hold together
LEVEL_ITEMS = 200  # of a study of level sets
FRESH = 4000  # items that tell the truth of its levels
QUANTITIES = ("aleatoric", "predictive", "epistemic")
ENTROPIES = ("shannon", "brier")
Array = NDArray[np.float64]
Counts = NDArray[np.int64]

#: Label distributions, their shares among the items of a world, and its number of items.
WORLDS: dict[str, tuple[list[list[float]], list[float], int]] = {
    "99% certain items": ([[1, 0, 0, 0], [0.25, 0.25, 0.25, 0.25]], [0.99, 0.01], 30),
    "a class never seen": ([[0.5, 0.5, 0, 0], [0.9, 0.0999, 0, 0.0001]], [0.3, 0.7], 30),
    "1 to 100 labels": (
        [[0.7, 0.1, 0.1, 0.1], [0, 1, 0, 0], [0, 0, 0.5, 0.5]],
        [0.5, 0.3, 0.2],
        15,
    ),
    "cells of two items": ([[0.6, 0.2, 0.2, 0], [0, 0, 0, 1]], [0.5, 0.5], 2),
    "200 items of all kinds": (
        [[1, 0, 0, 0], [0.9, 0.1, 0, 0], [0.4, 0.3, 0.2, 0.1]],
        [0.4, 0.4, 0.2],
        200,
    ),
    "300 items, coin tosses": ([[1, 0, 0, 0], [0.5, 0.5, 0, 0]], [0.5, 0.5], 300),
}


def draw(name: str, n_worlds: int, seed: int) -> tuple[Counts, NDArray[np.intp]]:
    """Return the labels of all items of some worlds, and the world of each."""
    generator = np.random.default_rng(seed)
    points, shares, n_items = WORLDS[name]
    kinds = generator.choice(len(shares), size=n_worlds * n_items, p=shares)
    ragged = name == "1 to 100 labels"
    totals = generator.integers(1, 101, len(kinds)) if ragged else np.full(len(kinds), 3)
    counts = generator.multinomial(totals, np.array(points)[kinds])
    return counts, np.repeat(np.arange(n_worlds), n_items)


def truth(name: str) -> hocal.Mixtures:
    """Return the mixture of a world."""
    points, shares, _ = WORLDS[name]
    return hocal.Mixtures.of_members(np.array([points], dtype=float), np.array([shares]))


def certificate(name: str, n_worlds: int, seed: int, *, simultaneous: bool = False) -> Certificate:
    """Certify worlds, one cell each."""
    counts, cells = draw(name, n_worlds, seed)
    predictions = np.tile([0.4, 0.3, 0.2, 0.1], (len(counts), 1))
    layout = CellLayout(np.arange(n_worlds), np.zeros(n_worlds, dtype=np.intp))
    statistics = CellStatistics.from_items(predictions, counts, cells, layout)
    mixtures = hocal.Mixtures.from_snapshots(counts, cells, n_cells=n_worlds).stored()
    return certify(statistics, mixtures, confidence=1 - DELTA, simultaneous=simultaneous)


def missed(found: Certificate, name: str, quantity: Any, entropy: str) -> NDArray[np.bool_]:
    """Return which cells' limits do not hold the truth."""
    value = getattr(hocal.decompose(truth(name), entropy), quantity)[0]
    lower, upper = found.interval(quantity, entropy)
    return np.asarray((lower > value + 1e-9) | (upper < value - 1e-9))


def single(name: str, n_worlds: int) -> dict[str, float]:
    """Return how often the limits of single cells miss."""
    found = certificate(name, n_worlds, 0)
    return {
        f"{entropy} {quantity}": digits(missed(found, name, quantity, entropy).mean())
        for entropy in ENTROPIES
        for quantity in QUANTITIES
    }


def any_missed(name: str, seed: int) -> bool:
    """Return whether any of a study's simultaneous limits misses."""
    found = certificate(name, CELLS, seed, simultaneous=True)
    return bool(missed(found, name, "aleatoric", "shannon").any())


def p_value(name: str, seed: int) -> float:
    """Return the p-value of a study of right predictions in several cells."""
    counts, cells = draw(name, CELLS, 5000 + seed)
    mixtures = truth(name)[np.zeros(len(counts), dtype=np.intp)]
    error = hocal.calibration_error(mixtures, counts, cells=cells, random_state=seed)
    return float(error.p_value)


def level_misses(seed: int) -> tuple[int, int]:
    """Return how many level sets of a skewed study miss, and how many there are."""
    generator = np.random.default_rng(seed)
    certain = generator.random(LEVEL_ITEMS + FRESH) < 0.9
    p = np.where(certain[:, None], [0.97, 0.01, 0.01, 0.01], generator.dirichlet(np.ones(4)))
    noisy = p * np.exp(generator.normal(0, 1, p.shape)) + 0.01
    predictions = noisy / noisy.sum(axis=1, keepdims=True)
    counts = generator.multinomial(3, p[:LEVEL_ITEMS])
    calibrator = hocal.SnapshotCalibrator().fit(predictions[:LEVEL_ITEMS], counts)
    found = calibrator.certify(1 - DELTA, by="aleatoric")
    levels = calibrator.level(predictions[LEVEL_ITEMS:], "aleatoric")
    entropy = -(p * np.log(p)).sum(axis=1)[LEVEL_ITEMS:]
    sizes = np.bincount(levels, minlength=len(found))
    means = np.bincount(levels, entropy, minlength=len(found)) / np.maximum(sizes, 1)
    lower, upper = found.interval("aleatoric")
    wrong = (sizes > 0) & ((means < lower) | (means > upper))
    return int(wrong.sum()), int((sizes > 0).sum())


def study(name: str, n_studies: int, jobs: int) -> dict[str, float]:
    """Return how often a study of ten worlds fails, and whether its p-values are uniform."""
    tasks = [(name, seed) for seed in range(n_studies)]
    failures = in_parallel(any_missed, tasks, jobs)
    values = np.array(in_parallel(p_value, tasks, jobs))
    return {
        "together": digits(np.mean(failures)),
        "p below .1": digits((values <= DELTA).mean()),
        "uniform, KS p": digits(kstest(values, "uniform").pvalue),
    }


def level_sets(n_studies: int, jobs: int) -> dict[str, float]:
    """Return how often level sets miss."""
    found = np.array(in_parallel(level_misses, [(seed,) for seed in range(n_studies)], jobs))
    n_missed, n_levels = found.sum(axis=0)
    return {"missed": digits(n_missed / n_levels), "of": int(n_levels)}


def main() -> None:
    """Compute, store and print."""
    parser = options(__doc__, resamplings=1)
    parser.add_argument("--worlds", type=int, default=3000)
    arguments = parser.parse_args()
    n_worlds, jobs = arguments.worlds, arguments.jobs
    n_studies = max(n_worlds // CELLS, 5)
    singles = in_parallel(single, [(name, n_worlds) for name in WORLDS], jobs)
    result: dict[str, Any] = {}
    for name, rates in zip(WORLDS, singles, strict=True):
        result[name] = {"missed": rates, **study(name, n_studies, jobs)}
        print(f"{name:22}", result[name], flush=True)
    levels = level_sets(n_studies, jobs)
    print("level sets", levels)
    allowed = {"allowed": DELTA, "worlds": n_worlds, "studies": n_studies, "level sets": levels}
    store("hard_use", {**allowed, "rates": result})


if __name__ == "__main__":
    main()
