"""How many labels decide which of two networks has the lower log loss: 14 networks, CIFAR-10H.

    HOCAL_DATA=... python experiments/ranking.py [--resamplings 10]

Images are drawn with replacement, and so are the labels of each, k of them: all images with all
their labels are the truth. For each of the 91 pairs of networks, is the difference of log losses
decided at 95% by `hocal.compare` (paired, holds for every sample size), by the two networks' own
intervals (unpaired, half of the allowed chance each), or by a percentile bootstrap of the paired
difference (holds for large samples only)? A decision against the truth is wrong. Three minutes on
one core.
"""

import argparse
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from protocol import digits, store

from hocal.datasets import load_cifar10_softmax, load_cifar10h
from hocal.datasets.real import CIFAR10_MODELS
from hocal.decisions.gains import ModelLosses
from hocal.decisions.losses import Judged
from hocal.uncertainty.snapshots import draw_snapshots

DELTA = 0.05
N_ITEMS = (500, 1000, 2000, 5000, 10_000, 20_000)
LABELS = (1, 5)
N_BOOTSTRAPS = 500
METHODS = ("compare", "unpaired", "bootstrap")
PAIRS = list(combinations(range(len(CIFAR10_MODELS)), 2))


def decisions(lower: Any, upper: Any) -> NDArray[np.int64]:
    """Return the sign of each difference, 0 where its limits do not tell."""
    return np.where(np.asarray(lower) > 0, 1, np.where(np.asarray(upper) < 0, -1, 0))


def paired(models: list[ModelLosses]) -> NDArray[np.int64]:
    """Decide each pair as `hocal.compare` does."""
    judged = models[0].judged
    chosen = (judged.everything, judged.advises)
    limits = [(models[b].losses - models[a].losses).limits(DELTA, *chosen) for a, b in PAIRS]
    return decisions(*zip(*limits, strict=True))


def unpaired(models: list[ModelLosses]) -> NDArray[np.int64]:
    """Decide a pair if the intervals of the two losses do not meet."""
    judged = models[0].judged
    chosen = (judged.everything, judged.advises)
    ends = [model.losses.limits(DELTA / 2, *chosen) for model in models]
    lower = [ends[b].lower - ends[a].upper for a, b in PAIRS]
    return decisions(lower, [ends[b].upper - ends[a].lower for a, b in PAIRS])


def bootstrap(models: list[ModelLosses], generator: np.random.Generator) -> NDArray[np.int64]:
    """Decide a pair by the middle 95% of the differences of resampled means."""
    losses = np.column_stack([model.losses.values for model in models])
    n_items = len(losses)
    even = np.full(n_items, 1 / n_items)
    means = [generator.multinomial(n_items, even) @ losses for _ in range(N_BOOTSTRAPS)]
    first, second = np.array(PAIRS).T
    differences = np.array(means)[:, second] - np.array(means)[:, first]
    return decisions(*np.quantile(differences, [DELTA / 2, 1 - DELTA / 2], axis=0))


def resample(n_items: int, k: int, seed: int) -> dict[str, NDArray[np.int64]]:
    """Draw images and labels, and decide all pairs in three ways."""
    generator = np.random.default_rng([n_items, k, seed])
    people = load_cifar10h().counts
    rows = generator.integers(0, len(people), n_items)
    judged = Judged.of(draw_snapshots(people[rows], k, replace=True, random_state=generator))
    models = [
        ModelLosses.of(load_cifar10_softmax(name).probabilities[rows], name, judged, "log", None)
        for name in CIFAR10_MODELS
    ]
    found = (paired(models), unpaired(models), bootstrap(models, generator))
    return dict(zip(METHODS, found, strict=True))


def true_losses() -> NDArray[np.float64]:
    """Return the log loss of each network against all labels."""
    judged = Judged.of(load_cifar10h().counts)
    predictions = (load_cifar10_softmax(name).probabilities for name in CIFAR10_MODELS)
    models = (ModelLosses.of(each, "model", judged, "log", None) for each in predictions)
    return np.array([model.losses.values.mean() for model in models])


def summarise(found: list[dict[str, NDArray[np.int64]]], truth: NDArray[np.float64]) -> Any:
    """Return the share of pairs that each method decides, and how many it decides wrongly."""
    first, second = np.array(PAIRS).T
    signs = np.sign(truth[second] - truth[first])
    result = {}
    for method in METHODS:
        made = np.array([each[method] for each in found])
        result[method] = {
            "decided": digits((made != 0).mean()),
            "wrong": int((made * signs < 0).sum()),
            "first": int((made[0] != 0).sum()),
        }
    return result


def main(n_resamplings: int) -> None:
    """Try every number of images and labels, and store what was decided."""
    truth = true_losses()
    results: dict[str, Any] = {}
    for k in LABELS:
        results[str(k)] = {}
        for n_items in N_ITEMS:
            found = [resample(n_items, k, seed) for seed in range(n_resamplings)]
            results[str(k)][str(n_items)] = summarise(found, truth)
            print(k, n_items, results[str(k)][str(n_items)], flush=True)
    losses = {name: digits(loss) for name, loss in zip(CIFAR10_MODELS, truth, strict=True)}
    setting = {"resamplings": n_resamplings, "pairs": len(PAIRS), "log loss": losses}
    store("ranking", setting | {"by labels per item": results})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resamplings", type=int, default=10)
    main(parser.parse_args().resamplings)
