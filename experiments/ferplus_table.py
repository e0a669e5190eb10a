"""Reproduce the paper's FER+ table: learning from snapshots, post-hoc calibration, hocal.

    HOCAL_DATA=... python experiments/ferplus_table.py [--resamplings 10]

The networks of `ferplus_networks.py` were trained on a GPU; only their outputs are read. Post-hoc
calibration uses half of the test split and k of its votes; the other half tests, against the
entropy of all its votes. Votes drawn without replacement, the paper's way, are a sample of what the
crowd thinks, and so are the ten: methods that estimate the crowd's own label distribution then
report what a panel of ten shows of it (`panel_size=10`). Drawn with replacement, they are a sample
of the ten votes, which are then the label distribution to estimate. Half a minute on one core.
"""

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray
from protocol import METHODS, RESULTS, accuracy, halves, row, store, summarise

import hocal
from hocal.datasets import load_ferplus
from hocal.uncertainty.decomposition import Decomposition
from hocal.uncertainty.entropy import Shannon
from hocal.uncertainty.snapshots import draw_snapshots

LABELS = (1, 2, 3, 4, 10)
PANEL = 10
PAPER = {
    "learning": {"1": 0.615, "2": 0.418, "3": 0.369, "4": 0.355},
    "post-hoc": {"1": 0.615, "2": 0.349, "3": 0.217, "4": 0.139, "10": 0.041},
    "accuracy": {"1": 0.802, "2": 0.818, "3": 0.823, "4": 0.819},
}

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


def networks() -> tuple[dict[str, Array], dict[str, Array]]:
    """Return mean and aleatoric uncertainty of each network's mixtures for the test split."""
    with np.load(RESULTS / "ferplus-networks.npz") as file:
        stored = {name: file[name].astype(np.float64) for name in file}
    names = [name.removeprefix("mean ") for name in stored if name.startswith("mean ")]
    return {name: stored[f"mean {name}"] for name in names}, {
        name: stored[f"aleatoric {name}"] for name in names
    }


def learned(
    mean: Array, aleatoric: Array, votes: Counts, base: Array, seed: int
) -> dict[str, float]:
    """Return the aleatoric error of a network, in its own cells and in the base network's."""
    test = halves(len(votes), seed)[1]
    parts = Decomposition(
        aleatoric[test], aleatoric[test], 0 * aleatoric[test], Shannon(), "mutual-information"
    )
    partition = hocal.TopLabelPartition(10).fit(mean)
    cells = {"own cells": partition.assign(mean[test]), "base cells": partition.assign(base[test])}
    return {
        name: hocal.aleatoric_error(parts, votes[test], cells=where)
        for name, where in cells.items()
    }


def post_hoc(base: Array, votes: Counts, k: int, method: Any, replace: bool, seed: int) -> float:
    """Return the aleatoric error after calibrating the base network with k votes per item."""
    fit, test, generator = halves(len(votes), seed)
    counts = draw_snapshots(votes[fit], k, replace=replace, random_state=generator)
    panel_size = PANEL if method == "cells" and not replace else None
    calibrator = hocal.SnapshotCalibrator(method=method, panel_size=panel_size).fit(
        base[fit], counts
    )
    cells = calibrator.partition_.assign(base[test])
    return hocal.aleatoric_error(calibrator.decompose(base[test]), votes[test], cells=cells)


def resample(seed: int, labels: tuple[int, ...] = LABELS) -> dict[str, Any]:
    """Return the errors of every method on one pair of halves."""
    (means, aleatoric) = networks()
    votes = load_ferplus("test").counts
    # one item has nine votes
    base = means["snapshots 1"]
    enough = votes.sum(1) >= PANEL
    return {
        "learning": {
            name: learned(means[name], aleatoric[name], votes, base, seed) for name in means
        },
        "post-hoc": {
            f"{method}, {'with' if replace else 'without'} replacement": {
                str(k): post_hoc(base[enough], votes[enough], k, method, replace, seed)
                for k in labels
            }
            for replace in (False, True)
            for method in METHODS
        },
    }


def show(table: dict[str, Any]) -> None:
    """Print ours beside the paper's."""
    print("learning from snapshots   error (own cells)   (base cells)   accuracy      paper")
    for name, cells in table["learning"].items():
        k = name.removeprefix("snapshots ")
        paper = (
            f"{PAPER['learning'][k]:.3f} / {PAPER['accuracy'][k]:.3f}"
            if k in PAPER["learning"]
            else "-"
        )
        print(f"{name:22}{row(cells.values(), '15.3f')}{table['accuracy'][name]:15.3f}{paper:>18}")
    print(f"{'post-hoc':34}" + "".join(f"{'k=' + str(k):>9}" for k in LABELS))
    for method, cells in table["post-hoc"].items():
        print(f"{method:34}" + row(cells.values(), "9.3f"))
    print(f"{'paper':34}" + "".join(f"{PAPER['post-hoc'][str(k)]:9.3f}" for k in LABELS))


def main() -> None:
    """Compute, store and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--resamplings", type=int, default=10)
    n_resamplings = parser.parse_args().resamplings
    votes = load_ferplus("test").counts
    means = networks()[0]
    table = {"resamplings": n_resamplings, "unit": "nats"}
    table |= summarise([resample(seed) for seed in range(n_resamplings)])
    table |= {
        "accuracy": {name: accuracy(mean, votes) for name, mean in means.items()},
        "paper": PAPER,
    }
    store("ferplus_table", table)
    show(table)


if __name__ == "__main__":
    main()
