"""Compare how often two labels of an item are what mixtures say they are.

    HOCAL_DATA=... python experiments/label_pairs.py [--resamplings 5] [--jobs 1]

Two labels per item leave much of its label distribution open, but not how often two labels both
name the class that is called likeliest, one of them does, both name the same other class, or two
others. Whatever mixtures are taken for right, they must say that as it is. Half of the items
calibrate with k labels each, drawn without replacement; pairs are those of all labels of the other
half. The last column is half the sum of the distances of the four, the share of pairs that is
misplaced. Four minutes on one core.
"""

import numpy as np
from item_scores import BATCH, calibrate, split
from numpy.typing import NDArray
from protocol import in_parallel, options, store, summarise
from real_data import load

import hocal

SETS = ("CIFAR-10H resnet18", "ChaosNLI-S roberta_0", "FER+ own network", "ImageNet-16H vgg19")
LABELS = (2, 3)
METHODS = ("cells", "items")
KINDS = ("both the likeliest", "one of them", "the same other", "two others")

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


def resample(name: str, k: int, seed: int) -> dict[str, dict[str, float]]:
    """Return the shares of pairs on one half, observed and predicted, and what is misplaced."""
    parts = split(load(name), k, seed)
    labels = parts.test.counts + parts.own
    found = {}
    for method in METHODS:
        calibrator = calibrate(parts.fit, method)
        predicted, top = predict(calibrator, parts.test.members)
        seen = observe(labels, top).mean(axis=0)
        said = predicted.mean(axis=0)
        found[f"observed, {method}"] = dict(zip(KINDS, seen.tolist(), strict=True))
        misplaced = {"misplaced": float(np.abs(said - seen).sum() / 2)}
        found[method] = dict(zip(KINDS, said.tolist(), strict=True)) | misplaced
    return found


def predict(calibrator: hocal.SnapshotCalibrator, members: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return the probability of each kind of pair, (n_items, 4), and the likeliest classes."""
    shares, tops = [], []
    for start in range(0, len(members), BATCH):
        mixtures = calibrator.predict_mixture(members[start : start + BATCH])
        top = mixtures.mean().argmax(axis=1)
        shares.append(kinds_of(mixtures, top))
        tops.append(top)
    return np.concatenate(shares), np.concatenate(tops)


def kinds_of(mixtures: hocal.Mixtures, top: NDArray[np.intp]) -> Array:
    """Return the probability of each kind of pair under mixtures."""
    first = np.eye(mixtures.points.shape[1], dtype=np.int64)[top]
    likeliest = mixtures.mean()[np.arange(len(top)), top]
    both = np.exp(mixtures.log_likelihood(2 * first))
    same = 1 - hocal.decompose(mixtures, "brier").aleatoric
    one = 2 * (likeliest - both)
    return np.stack([both, one, same - both, 1 - one - same], axis=1)


def observe(counts: Counts, top: NDArray[np.intp]) -> Array:
    """Return the share of each kind among the pairs of an item's labels."""
    totals = counts.sum(axis=1)
    pairs = totals * (totals - 1)
    likeliest = counts[np.arange(len(top)), top]
    both = likeliest * (likeliest - 1)
    one = 2 * likeliest * (totals - likeliest)
    same = (counts * (counts - 1)).sum(axis=1)
    return np.stack([both, one, same - both, pairs - one - same], axis=1) / pairs[:, None]


def main() -> None:
    """Compute, store and print."""
    chosen = options(__doc__, resamplings=5).parse_args()
    rows = [(name, k) for name in SETS for k in LABELS]
    seeds = range(chosen.resamplings)
    tasks = [(*row, seed) for row in rows for seed in seeds]
    runs = iter(in_parallel(resample, tasks, chosen.jobs))
    result = {f"{name}, k = {k}": summarise([next(runs) for _ in seeds]) for name, k in rows}
    store("label_pairs", {"resamplings": chosen.resamplings, "sets": result})
    for title, found in result.items():
        for method, figures in found.items():
            means = {kind: cell["mean"] for kind, cell in figures.items()}
            print(f"{title:28} {method:16} {means}")


if __name__ == "__main__":
    main()
