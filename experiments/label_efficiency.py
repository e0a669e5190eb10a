"""How many labels per item buy how much accuracy: the paper's method against hocal's.

    HOCAL_DATA=... python experiments/label_efficiency.py [--resamplings 50]

Half of the items calibrate, half test. Each calibration item gets k labels drawn with replacement
from its histogram. The error is the item-averaged distance between predicted and observed aleatoric
uncertainty, in nats. The floor is the paper's method with all labels of the calibration half.
Labels needed are those with which the paper's method is as good as hocal's with few, on the line
between the k that were tried (both axes logarithmic). Half a minute on one core.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from protocol import METHODS, calibrate, draw, halves, row, store, summarise
from real_data import Annotated, chaosnli, cifar10h, ferplus

import hocal
from hocal.calibration.empirical import borrow
from hocal.plot import LabelCurveDisplay

DATA: dict[str, Callable[[], Annotated]] = {
    "CIFAR-10H, resnet18": cifar10h,
    "ChaosNLI-S, roberta-base_0": chaosnli,
    "FER+ test, residual network": ferplus,
}
LABELS = {"empirical": (2, 3, 5, 10, 20, 50, 100, 200), "deconvolved": (2, 3, 5, 10)}


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
    """Return the errors of both methods on one pair of halves, by labels, and their floor."""
    errors = {
        method: {str(k): aleatoric_error(data, k, method, seed) for k in LABELS[method]}
        for method in METHODS
    }
    return {"floor": floor(data, seed), **errors}


def labels_needed(summary: dict[str, Any]) -> dict[str, str]:
    """Return how many labels the paper's method needs to be as good as hocal's with few."""
    means = [summary["empirical"][str(k)]["mean"] for k in LABELS["empirical"]]
    needed = {}
    for k, cell in summary["deconvolved"].items():
        rising = np.log(means[::-1])
        same = np.exp(np.interp(np.log(cell["mean"]), rising, np.log(LABELS["empirical"][::-1])))
        needed[k] = (
            f"{same:.0f}" if cell["mean"] >= min(means) else f"over {LABELS['empirical'][-1]}"
        )
    return needed


def main() -> None:
    """Store, draw and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--resamplings", type=int, default=50)
    n_resamplings = parser.parse_args().resamplings
    figure = Figure(figsize=(15, 4.5), layout="constrained")
    results = {}
    for ax, (name, load) in zip(figure.subplots(1, 3), DATA.items(), strict=True):
        data = load()
        runs = [resample(data, seed) for seed in range(n_resamplings)]
        results[name] = summarise(runs)
        results[name]["labels the empirical method needs instead"] = labels_needed(results[name])
        errors = {
            method: {k: [run[method][str(k)] for run in runs] for k in LABELS[method]}
            for method in METHODS
        }
        LabelCurveDisplay.from_errors(errors, floor=results[name]["floor"]["mean"]).plot(
            ax=ax, title=name
        )
        print(f"{name}, floor {row([results[name]['floor']], '.4f')}")
        for method in METHODS:
            print(
                f"  {method:12} k = {LABELS[method]}: {row(results[name][method].values())}",
                flush=True,
            )
        print("  labels needed instead:", labels_needed(results[name]))
    store("label_efficiency", {"resamplings": n_resamplings, "unit": "nats", "data": results})
    draw("label_efficiency", figure)


if __name__ == "__main__":
    main()
