"""Is epistemic uncertainty what a better model gains? 14 networks on CIFAR-10H.

    HOCAL_DATA=... python experiments/epistemic_gain.py [--resamplings 1] [--jobs 1]

A weak network (resnet_orig) is calibrated on one half of the images with five labels each. The
other half is put in order of the epistemic uncertainty that is predicted for each image, and cut
into tenths. In each tenth, what is the log loss against all labels when one of the other networks,
recalibrated on the same labels, takes its place? No model should gain more than the predicted
epistemic uncertainty, tenths where more is predicted should gain more, and no network should go
below the predicted aleatoric uncertainty. The strongest is the network with the lowest log loss
over all images of the test half; "all 14" is one calibrator that is given every network. 80 seconds
on one core.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from protocol import digits, draw, draw_at_most, halves, in_parallel, options, store, summarise
from real_data import CIFAR10_MODELS, Known, load
from scipy.stats import spearmanr

import hocal

WEAK = "resnet_orig"
ALL = "all 14"
PREDICTORS = (*CIFAR10_MODELS, ALL)
K = 5
N_GROUPS = 10


def known(name: str) -> Known:
    """Return what one network, or all of them, say about the images."""
    return load("CIFAR-10H 14 nets" if name == ALL else f"CIFAR-10H {name}")


@lru_cache(maxsize=1)  # the weak network is asked twice
def calibrated(name: str, seed: int) -> tuple[hocal.SnapshotCalibrator, Known]:
    """Calibrate a predictor on one half; return it and what is known of the other."""
    data = known(name)
    fit, test, generator = halves(len(data.counts), seed)
    labels = draw_at_most(data.counts[fit], K, generator)
    return hocal.SnapshotCalibrator().fit(data.members[fit], labels), data[test]


def log_losses(name: str, seed: int) -> NDArray[np.float64]:
    """Return the log loss of each test image against all of its labels."""
    calibrator, test = calibrated(name, seed)
    logs = np.log(calibrator.predict_proba(test.members))
    shares = test.counts / test.counts.sum(axis=1, keepdims=True)
    return np.asarray(-(shares * logs).sum(axis=1))


def resample(seed: int, losses: dict[str, NDArray[np.float64]]) -> dict[str, Any]:
    """Return what was predicted with the weak network, and what others gain, by tenths."""
    calibrator, test = calibrated(WEAK, seed)
    parts = calibrator.decompose(test.members)
    order = np.argsort(parts.epistemic, kind="stable")
    tenths = np.array_split(order, N_GROUPS)
    strongest = min((name for name in losses if name != ALL), key=lambda name: losses[name].mean())
    gain = losses[WEAK] - losses[strongest]

    def by_tenth(values: NDArray[np.float64]) -> dict[str, float]:
        means = {str(at): float(values[rows].mean()) for at, rows in enumerate(tenths, start=1)}
        return means | {"all": float(values.mean())}

    return {
        "predicted aleatoric": by_tenth(parts.aleatoric),
        "predicted epistemic": by_tenth(parts.epistemic),
        "gain of the strongest": by_tenth(gain),
        "log loss": {name: by_tenth(values) for name, values in losses.items()},
        "rank correlation with the gain": {
            "epistemic, items": float(spearmanr(parts.epistemic, gain).statistic),
            "epistemic, tenths": float(_rank_correlation(parts.epistemic, gain, tenths)),
        },
        "standard error of the gain": {
            str(at): float(gain[rows].std() / np.sqrt(len(rows)))
            for at, rows in enumerate(tenths, start=1)
        },
    }


def _rank_correlation(
    predicted: NDArray[np.float64], gain: NDArray[np.float64], tenths: Iterable[NDArray[np.intp]]
) -> float:
    means = [(predicted[rows].mean(), gain[rows].mean()) for rows in tenths]
    return float(spearmanr(*zip(*means, strict=True)).statistic)


def plot(result: dict[str, Any]) -> Figure:
    """Draw predicted parts as bars, the networks' losses above them."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes: Axes = figure.subplots()
    tenths = np.arange(1, N_GROUPS + 1)
    aleatoric, epistemic = (
        _means(result[f"predicted {part}"]) for part in ("aleatoric", "epistemic")
    )
    axes.bar(tenths, aleatoric, color="#d8a657", label="predicted aleatoric")
    axes.bar(tenths, epistemic, bottom=aleatoric, color="#a9c4e0", label="predicted epistemic")
    losses = result["log loss"]
    for name in CIFAR10_MODELS:
        label = "log loss of the others, recalibrated" if name == CIFAR10_MODELS[0] else None
        if name != WEAK:
            axes.plot(tenths, _means(losses[name]), ".", color="#555555", ms=5, label=label)
    axes.plot(tenths, _means(losses[WEAK]), "_", color="black", ms=22, label=f"log loss of {WEAK}")
    axes.plot(
        tenths, _means(losses[ALL]), "x", color="#b03030", ms=7, label="log loss of all 14 together"
    )
    axes.set(
        xlabel=f"tenths of the test images, by epistemic uncertainty predicted with {WEAK}",
        ylabel="nats",
        xticks=tenths,
    )
    axes.legend(frameon=False)
    return figure


def _means(cells: dict[str, Any]) -> list[float]:
    return [cells[str(at)]["mean"] for at in range(1, N_GROUPS + 1)]


def main(n_resamplings: int, jobs: int) -> None:
    """Compute, store, draw and print."""
    tasks = [(name, seed) for seed in range(n_resamplings) for name in PREDICTORS]
    found = in_parallel(log_losses, tasks, jobs)
    losses: dict[int, dict[str, Any]] = {seed: {} for seed in range(n_resamplings)}
    for (name, seed), values in zip(tasks, found, strict=True):
        losses[seed][name] = values
    runs = in_parallel(resample, list(losses.items()), jobs)
    strongest = [
        min(CIFAR10_MODELS, key=lambda name: each[name].mean()) for each in losses.values()
    ]
    result = {
        "resamplings": n_resamplings,
        "labels per item": K,
        "weak": WEAK,
        "strongest": strongest,
        **summarise(runs),
    }
    store("epistemic_gain", result)
    draw("epistemic_gain", plot(result))
    for part in ("predicted aleatoric", "predicted epistemic", "gain of the strongest"):
        print(f"{part:24}", *(f"{digits(value):.3f}" for value in _means(result[part])))
    print(result["rank correlation with the gain"], strongest)


if __name__ == "__main__":
    given = options(__doc__, resamplings=1).parse_args()
    main(given.resamplings, given.jobs)
