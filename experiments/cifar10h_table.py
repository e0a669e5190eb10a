"""Reproduce the paper's CIFAR-10H table: error of aleatoric uncertainty by method and labels.

    HOCAL_DATA=... python experiments/cifar10h_table.py [--resamplings 50] [--jobs 1]

Ten slices for each top label, half of the items calibrate, half test, k labels per item drawn with
replacement. The error is the distance between predicted and observed mean entropy of a cell,
averaged by items or by cells; intervals hold the middle 95% of the resamplings. Post-hoc rows
calibrate the softmax of resnet18 and of 13 other networks. Baselines that need no labels are judged
on the same test halves: their cells are those of their own mean. The networks of
`cifar_networks.py` were trained on a GPU; only their outputs are read. Twenty-five minutes on one
core.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from protocol import (
    METHODS,
    RESULTS,
    accuracy,
    calibrate,
    digits,
    draw,
    halves,
    in_parallel,
    options,
    row,
    store,
    summarise,
)
from real_data import cifar10h

import hocal
from hocal.datasets import load_cifar10_softmax, load_cifar10h
from hocal.plot import LabelCurveDisplay

LABELS = (1, 2, 5, 10, 50)
BASE = "resnet18"
NETWORKS = (
    *(
        BASE,
        "densenet121",
        "densenet161",
        "densenet169",
        "googlenet",
        "inception_v3",
        "mobilenet_v2",
        "resnet34",
    ),
    *("resnet50", "resnet_orig", "vgg11_bn", "vgg13_bn", "vgg16_bn", "vgg19_bn"),
)
DIVERSE = (
    "densenet121",
    "googlenet",
    "inception_v3",
    "mobilenet_v2",
    "resnet18",
    "resnet50",
    "vgg11_bn",
    "vgg19_bn",
)
PAPER = {
    "post-hoc": {"1": 0.501, "2": 0.307, "5": 0.158, "10": 0.088, "50": 0.026},
    "without labels": {"eight seeds": 0.308, "epinet": 0.307},
}

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


def errors(parts: hocal.Decomposition, counts: Counts, cells: NDArray[np.intp]) -> dict[str, float]:
    """Return both averages of the aleatoric error."""
    averages = ("items", "cells")
    return {
        average: hocal.aleatoric_error(parts, counts, cells=cells, average=average)
        for average in averages
    }


def post_hoc(
    probabilities: Array, counts: Counts, k: int, method: str, seed: int
) -> dict[str, float]:
    """Return the errors after calibration with k labels per item."""
    calibrator, test = calibrate(probabilities, counts, k, method, seed)
    p = probabilities[test]
    return errors(calibrator.decompose(p), counts[test], calibrator.partition_.assign(p))


def resample(probabilities: Array, counts: Counts, seed: int) -> dict[str, Any]:
    """Return the errors of both methods on one pair of halves, by the number of labels."""
    return {
        method: {str(k): post_hoc(probabilities, counts, k, method, seed) for k in LABELS}
        for method in METHODS
    }


def resample_network(name: str, seed: int) -> dict[str, Any]:
    """Return the same for a network by its name."""
    return resample(*cifar10h(name), seed)


def resample_baseline(mixtures: hocal.Mixtures, counts: Counts, seed: int) -> dict[str, float]:
    """Return the errors of mixtures made without calibration labels, in cells of their mean."""
    mean = mixtures.mean()
    test = halves(len(counts), seed)[1]
    cells = hocal.TopLabelPartition(n_slices=10).fit(mean).assign(mean)
    return errors(hocal.decompose(mixtures[test]), counts[test], cells[test])


def baselines() -> dict[str, Callable[[], hocal.Mixtures]]:
    """Return functions that make the predictions of methods without calibration labels."""
    softmax = {name: load_cifar10_softmax(name).probabilities for name in DIVERSE}
    with np.load(RESULTS / "cifar-networks.npz") as file:
        stored = {name: file[name].astype(np.float64) for name in file}
    trained = {
        name: shares / shares.sum(-1, keepdims=True)
        for name, shares in stored.items()
        if shares.ndim == 3
    }
    seeds = np.concatenate(
        [shares for name, shares in trained.items() if name.startswith("ensemble")], axis=1
    )
    return {
        "point mass, resnet18": partial(hocal.Mixtures.from_points, softmax[BASE]),
        "vertices, resnet18": partial(hocal.Mixtures.from_vertices, softmax[BASE]),
        "eight architectures": partial(
            hocal.Mixtures.from_ensemble, np.stack(list(softmax.values()), axis=1)
        ),
        "eight seeds": partial(hocal.Mixtures.from_ensemble, seeds),
        "point mass, one of the eight": partial(hocal.Mixtures.from_points, seeds[:, 0]),
        "MC dropout": partial(hocal.Mixtures.from_ensemble, trained["dropout"]),
        "epinet": partial(hocal.Mixtures.from_ensemble, trained["epinet"]),
        "evidential": partial(hocal.Mixtures.from_dirichlet, stored["evidential"], n_atoms=64),
    }


def figure(runs: list[dict[str, Any]]) -> None:
    """Draw the error against the number of labels (the paper's figure 2, top)."""
    curves = {
        method: {k: [run[method][str(k)]["items"] for run in runs] for k in LABELS}
        for method in METHODS
    }
    display = LabelCurveDisplay.from_errors(curves, n_items=5000).plot(title="CIFAR-10H, resnet18")
    draw("cifar10h_label_curve", display.figure_)


def ratios(result: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Return the fall of the errors from one label on, which alone can be compared."""
    rows = {
        method: {k: cell["items"]["mean"] for k, cell in result[method].items()}
        for method in METHODS
    }
    rows["paper"] = PAPER["post-hoc"]
    return {
        name: {k: digits(value / each["1"]) for k, value in each.items()}
        for name, each in rows.items()
    }


def show(result: dict[str, Any]) -> None:
    """Print errors in nats and bits, and the fall from one label on, beside the paper's."""
    print(f"{'post-hoc, item-averaged':36}" + "".join(f"{'k=' + str(k):>9}" for k in LABELS))
    for method in METHODS:
        means = np.array(
            [cell["items"]["mean"] for cell in result["post-hoc"][BASE][method].values()]
        )
        print(f"{method + ', nats':36}" + "".join(f"{value:9.4f}" for value in means))
        print(f"{method + ', bits':36}" + "".join(f"{value:9.4f}" for value in means / np.log(2)))
    for name, values in result["ratio to one label"].items():
        print(f"{'ratio, ' + name:36}" + "".join(f"{value:9.3f}" for value in values.values()))
    for name, cells in result["without labels"].items():
        print(f"{name:36}{row([cells['items']])}   accuracy {result['accuracy'][name]:.3f}")


def main() -> None:
    """Compute, store, draw and print the table."""
    chosen = options(__doc__, resamplings=50).parse_args()
    seeds = range(chosen.resamplings)
    counts = load_cifar10h().counts
    unlabelled = {name: make() for name, make in baselines().items()}
    softmax = {name: load_cifar10_softmax(name).probabilities for name in NETWORKS}
    tasks = [(name, seed) for name in NETWORKS for seed in seeds]
    every = iter(in_parallel(resample_network, tasks, chosen.jobs))
    runs = {name: [next(every) for _ in seeds] for name in NETWORKS}
    result = {
        "resamplings": len(seeds),
        "unit": "nats",
        "mean entropy": digits(
            hocal.decompose(hocal.Mixtures.from_snapshots(counts)).aleatoric.mean()
        ),
        "post-hoc": {name: summarise(each) for name, each in runs.items()},
        "without labels": {
            name: summarise([resample_baseline(mixtures, counts, seed) for seed in seeds])
            for name, mixtures in unlabelled.items()
        },
        "accuracy": {name: accuracy(p, counts) for name, p in softmax.items()}
        | {name: accuracy(mixtures.mean(), counts) for name, mixtures in unlabelled.items()},
        "paper": PAPER,
    }
    result["ratio to one label"] = ratios(result["post-hoc"][BASE])
    store("cifar10h_table", result)
    figure(runs[BASE])
    show(result)


if __name__ == "__main__":
    main()
