"""How many labels per item buy how much accuracy: the paper's method against hocal's.

    HOCAL_DATA=... python experiments/label_efficiency.py [--resamplings 20] [--jobs 1]

Half of the items calibrate, half test. Each calibration item gets k labels drawn with replacement
from its histogram. The error is the item-averaged distance between predicted and observed aleatoric
uncertainty of the same cells, in nats. The floor is the paper's method with all labels of the
calibration half.
Labels needed are those with which the paper's method is as good as hocal's with few, on the line
between the k that were tried (both axes logarithmic). A quarter of an hour on one core.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from protocol import calibrate, draw, halves, in_parallel, options, row, store, summarise
from real_data import Annotated, chaosnli, cifar10h, ferplus

import hocal
from hocal.calibration.by_cell.empirical import borrow
from hocal.plot import LabelCurveDisplay

DATA: dict[str, Callable[[], Annotated]] = {
    "CIFAR-10H, resnet18": cifar10h,
    "ChaosNLI-S, roberta-base_0": chaosnli,
    "FER+ test, residual network": ferplus,
}
FEW = (2, 3, 5, 10)
LABELS = {"empirical": (*FEW, 20, 50, 100, 200), "cells": FEW, "items": FEW}
METHODS = tuple(LABELS)
OURS = ("cells", "items")
NEEDED = "labels the empirical method needs instead"


def aleatoric_error(data: Annotated, k: int, method: str, seed: int) -> float:
    """Calibrate on one half with k labels per item and test on the other."""
    calibrator, test = calibrate(*data, k, method, seed)
    p = data.probabilities[test]
    return hocal.aleatoric_error(
        calibrator.decompose(p), data.counts[test], cells=calibrator.partition_.assign(p)
    )


def floor(data: Annotated, seed: int) -> float:
    """Return the error of the plug-in with every label of the calibration half."""
    fit, test, _ = halves(len(data.counts), seed)
    partition = hocal.TopLabelPartition(n_slices=10).fit(data.probabilities[fit])
    cells = partition.assign(data.probabilities[fit])
    where = partition.assign(data.probabilities[test])
    mixtures = hocal.Mixtures.from_snapshots(
        data.counts[fit], cells, n_cells=partition.n_cells_
    ).stored()
    source = borrow(np.bincount(cells, minlength=partition.n_cells_) > 0, partition.layout_)
    return hocal.aleatoric_error(
        hocal.decompose(mixtures[source[where]]), data.counts[test], cells=where
    )


def resample(data: Annotated, seed: int) -> dict[str, Any]:
    """Return the errors of all methods on one pair of halves, by labels, and their floor."""
    errors = {
        method: {str(k): aleatoric_error(data, k, method, seed) for k in LABELS[method]}
        for method in METHODS
    }
    return {"floor": floor(data, seed), **errors}


def resample_named(name: str, seed: int) -> dict[str, Any]:
    """Return the same for a data set by its name."""
    return resample(DATA[name](), seed)


def labels_needed(summary: dict[str, Any], method: str) -> dict[str, str]:
    """Return how many labels the paper's method needs to be as good as ours with few."""
    means = [summary["empirical"][str(k)]["mean"] for k in LABELS["empirical"]]
    rising = np.log(means[::-1])
    tried = np.log(LABELS["empirical"][::-1])
    needed = {}
    for k, cell in summary[method].items():
        same = np.exp(np.interp(np.log(cell["mean"]), rising, tried))
        reached = cell["mean"] >= min(means)
        needed[k] = f"{same:.0f}" if reached else f"over {LABELS['empirical'][-1]}"
    return needed


def panel(ax: Axes, name: str, runs: list[dict[str, Any]], summary: dict[str, Any]) -> None:
    """Draw the errors of a data set."""
    errors = {
        method: {k: [run[method][str(k)] for run in runs] for k in LABELS[method]}
        for method in METHODS
    }
    curve = LabelCurveDisplay.from_errors(errors, floor=summary["floor"]["mean"])
    curve.plot(ax=ax, title=name)


def main() -> None:
    """Store, draw and print."""
    chosen = options(__doc__, resamplings=20).parse_args()
    seeds = range(chosen.resamplings)
    tasks = [(name, seed) for name in DATA for seed in seeds]
    every = iter(in_parallel(resample_named, tasks, chosen.jobs))
    figure = Figure(figsize=(15, 4.5), layout="constrained")
    results = {}
    for ax, name in zip(figure.subplots(1, len(DATA)), DATA, strict=True):
        runs = [next(every) for _ in seeds]
        summary = summarise(runs)
        summary[NEEDED] = {method: labels_needed(summary, method) for method in OURS}
        results[name] = summary
        panel(ax, name, runs, summary)
        print(f"{name}, floor {row([summary['floor']], '.4f')}")
        for method in METHODS:
            print(f"  {method:12} k = {LABELS[method]}: {row(summary[method].values())}")
        print("  labels needed instead:", summary[NEEDED])
    store("label_efficiency", {"resamplings": len(seeds), "unit": "nats", "data": results})
    draw("label_efficiency", figure)


if __name__ == "__main__":
    main()
