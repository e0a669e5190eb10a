"""Ratings on a scale: classes that are alike, in a world of known truth and on real labels.

    HOCAL_DATA=... python experiments/scales.py [--resamplings 10] [--jobs 1]

In the world, an item has a place on a scale of five classes, people choose a class near it, and the
model sees the place with noise: what it predicts is exact. So are "known": means and uncertainties
of one who knows all this. Real are the ratings of SummEval, five classes, by three experts each.

Ordinal uncertainty is half the mean distance of two labels, in steps of the scale. On real labels
its average is known without bias from those of the test half. The log loss is that of a further
label, given k of the item's own: of its distribution in the world, of a held-out label of SummEval.
Half of the items calibrate, with k labels each. Two minutes on one core.
"""

from typing import Any

import numpy as np
from item_scores import calibrate, floored, split
from numpy.typing import NDArray
from protocol import in_parallel, options, store, summarise
from real_data import Known, load

import hocal

METHODS = ("cells", "items")
REAL = "SummEval 6 models"
WORLD = "known world"
LABELS = {REAL: (2,), WORLD: (2, 3, 5)}
N_ITEMS = 6_000
N_LISTED = 1_000  # test items whose ordinal uncertainty is computed: it needs atoms
N_CLASSES = 5
PLACES = np.linspace(-1.5, 5.5, 60)
SPREAD = 0.63  # of people's choices around an item's place, in steps
NOISE = 1.2  # with which the model sees it

Array = NDArray[np.float64]


def at_places() -> Array:
    """Return the label distribution of each place."""
    steps = PLACES[:, None] - np.arange(N_CLASSES)
    chances = np.exp(-0.5 * (steps / SPREAD) ** 2)
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def resample(name: str, k: int, seed: int) -> dict[str, Any]:
    """Return the figures of one pair of halves."""
    return in_world(k, seed) if name == WORLD else on_real_labels(name, k, seed)


def in_world(k: int, seed: int) -> dict[str, Any]:
    """Return bias of the ordinal uncertainty and log loss given own labels, in the world."""
    generator = np.random.default_rng(seed)
    place = generator.integers(len(PLACES), size=N_ITEMS)
    seen = PLACES[place] + NOISE * generator.normal(size=N_ITEMS)
    chances = np.exp(-0.5 * ((seen[:, None] - PLACES) / NOISE) ** 2)
    chances /= chances.sum(axis=1, keepdims=True)
    labels = at_places()
    counts = generator.multinomial(k, labels[place])
    fit, test = np.split(np.arange(N_ITEMS), 2)
    known = Known((chances @ labels)[:, None], None, counts)
    own, truth = counts[test], labels[place[test]]
    given = chances[test] * np.prod(labels ** own[:, None], axis=2)
    exact = given / given.sum(axis=1, keepdims=True) @ labels
    losses = {"known": loss(exact, truth), "frequencies": loss(own / k, truth)}
    ordinal = {"known": float(uncertainty_of(truth).mean())}
    for method in METHODS:
        calibrator = calibrate(known[fit], method)
        losses[method] = loss(calibrator.predict_proba(known.members[test], counts=own), truth)
        ordinal[method] = listed(calibrator, known.members[test])
    return {"ordinal uncertainty": ordinal, "log loss, own labels": losses}


def on_real_labels(name: str, k: int, seed: int) -> dict[str, Any]:
    """Return the same on real labels."""
    parts = split(load(name), k, seed)
    every = parts.own + parts.test.counts
    held_out = parts.test.counts / parts.test.counts.sum(axis=1, keepdims=True)
    losses = {"frequencies": loss(parts.own / k, held_out)}
    ordinal = {"known": float(observed(every).mean())}
    for method in METHODS:
        calibrator = calibrate(parts.fit, method)
        mean = calibrator.predict_proba(parts.test.members, counts=parts.own)
        losses[method] = loss(mean, held_out)
        ordinal[method] = listed(calibrator, parts.test.members)
    return {"ordinal uncertainty": ordinal, "log loss, own labels": losses}


def listed(calibrator: hocal.SnapshotCalibrator, members: Array) -> float:
    """Return the mean ordinal uncertainty of the first test items."""
    return float(calibrator.decompose(members[:N_LISTED], "ordinal").aleatoric.mean())


def uncertainty_of(p: Array) -> Array:
    """Return the ordinal uncertainty of label distributions."""
    return hocal.decompose(hocal.Mixtures.from_points(p), "ordinal").aleatoric


def observed(counts: NDArray[np.int64]) -> Array:
    """Return half the mean distance of two labels of each item, an unbiased estimate."""
    steps = np.abs(np.subtract.outer(np.arange(counts.shape[1]), np.arange(counts.shape[1])))
    totals = counts.sum(axis=1)
    return np.asarray(np.einsum("ij,jk,ik->i", counts, steps, counts) / (2 * totals * (totals - 1)))


def loss(mean: Array, truth: Array) -> float:
    """Return the log loss of labels that are distributed as `truth`."""
    return float(-(truth * np.log(floored(mean))).sum(axis=1).mean())


def main() -> None:
    """Compute, store and print."""
    chosen = options(__doc__, resamplings=10).parse_args()
    seeds = range(chosen.resamplings)
    cases = [(name, k) for name, labels in LABELS.items() for k in labels]
    tasks = [(*case, seed) for case in cases for seed in seeds]
    runs = iter(in_parallel(resample, tasks, chosen.jobs))
    result: dict[str, Any] = {name: {} for name in LABELS}
    for name, k in cases:
        result[name][str(k)] = summarise([next(runs) for _ in seeds])
    store("scales", {"resamplings": chosen.resamplings, "data": result})
    for name, k in cases:
        for what, cells in result[name][str(k)].items():
            means = ", ".join(f"{key} {cell['mean']:.3f}" for key, cell in cells.items())
            print(f"{name}, k = {k}: {what}: {means}")


if __name__ == "__main__":
    main()
