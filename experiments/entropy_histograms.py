"""Reproduce the paper's figure 2, bottom: entropies in the CIFAR-10H cells of highest entropy.

    HOCAL_DATA=... python experiments/entropy_histograms.py

Upper row, as in the paper: entropies of the 50-snapshots of the calibration half against those of
the label histograms of the test half. Lower row: the same for the mixture deconvolved from five
labels per item. resnet18, one pair of halves, cells of at least 30 test items. Five seconds on one
core.
"""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from protocol import calibrate, digits, draw, store
from real_data import Annotated, cifar10h

from hocal.datasets import load_cifar10h
from hocal.plot import EntropyDistributionDisplay

SEED = 0
SNAPSHOT = 50
FEW = 5


def displays(data: Annotated) -> dict[str, EntropyDistributionDisplay]:
    """Return the paper's comparison and ours, for the same cells."""
    p, counts, rows, shown = *data, {}, 3
    for method, k in (("empirical", SNAPSHOT), ("cells", FEW)):
        calibrator, test = calibrate(p, counts, k, method, SEED)
        shares = counts[test] / counts[test].sum(axis=1, keepdims=True)
        display = EntropyDistributionDisplay.from_estimator(
            calibrator, p[test], label_distributions=shares, shown=shown, random_state=SEED
        )
        rows[f"{method}, k = {k}"] = display
        shown = display.cells
    return rows


def figures(display: EntropyDistributionDisplay) -> dict[str, Any]:
    """Return the numbers behind a row of histograms."""
    moved = (
        np.abs(np.cumsum(display.predicted - display.observed, axis=1)).sum(axis=1)
        * np.diff(display.edges)[0]
    )
    outside = (display.observed < display.band[0]) | (display.observed > display.band[1])
    classes = load_cifar10h().classes
    return {
        "cells": [
            f"{classes[cell // 10]}, top probability over {cell % 10 / 10}"
            for cell in display.cells
        ],
        "items": display.n_items.tolist(),
        "predicted mean": [digits(value) for value in display.predicted_mean],
        "observed mean": [digits(value) for value in display.observed_mean],
        "distance of the histograms (W1)": [digits(value) for value in moved],
        "bars of 20 outside their 95% band": outside.sum(axis=1).tolist(),
    }


def main() -> None:
    """Store, draw and print."""
    rows = displays(cifar10h())
    result = {name: figures(display) for name, display in rows.items()}
    store("entropy_histograms", {"unit": "nats", **result})
    figure = Figure(figsize=(11, 7), layout="constrained")
    for axes, (name, display) in zip(figure.subplots(2, 3), rows.items(), strict=True):
        display.plot(ax=axes)
        axes[0].set_ylabel(f"{name}\n{axes[0].get_ylabel()}")
    draw("entropy_histograms", figure)
    for name, numbers in result.items():
        print(name, *(f"\n  {key:36}{value}" for key, value in numbers.items()))


if __name__ == "__main__":
    main()
