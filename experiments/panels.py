"""Compare the predicted Shannon uncertainty with that of real panels of people.

    HOCAL_DATA=... python experiments/panels.py [--resamplings 5] [--jobs 1] [--sets NAME]

Nobody knows the label distribution of a real item, but a panel of n people shows a histogram whose
entropy can be predicted: `hocal.decompose(mixtures, panel_size=n)`. Half of the items calibrate
with k labels each, drawn without replacement; for the other half the mean entropy of n labels per
item is predicted from the predictions, and compared with that observed. Unlike in
`label_efficiency.py`, where labels are drawn again from the histograms and these are the truth, no
label is used twice. Beside it stands what anybody would do first, the entropy of the k labels, and
how far the Brier uncertainty is off, which labels tell without bias: so large is chance.
Twenty minutes on one core.
"""

from typing import Any

import numpy as np
from item_scores import BATCH, calibrate, disagreement, split
from numpy.typing import NDArray
from protocol import draw_at_most, in_parallel, options, store, summarise
from real_data import load

import hocal
from hocal.uncertainty.entropy import get_entropy

SETS = ("CIFAR-10H resnet18", "ChaosNLI-S roberta_0", "FER+ own network", "ImageNet-16H vgg19")
LABELS = (2, 3, 5)
METHODS = ("items", "cells")
SHARE = 0.98  # of the items that have as many labels as the panel has people

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


def panel_size(counts: Counts) -> int:
    """Return how many labels nearly all items have."""
    return int(np.quantile(counts.sum(axis=1), 1 - SHARE, method="lower"))


def resample(name: str, k: int, seed: int) -> dict[str, float]:
    """Return by which part predicted uncertainty differs from that of panels, on one half."""
    parts = split(load(name), k, seed)
    everyone = parts.test.counts + parts.own
    size = panel_size(everyone)
    panels = draw_at_most(everyone, size, np.random.default_rng(seed))
    rows = np.flatnonzero(panels.sum(axis=1) == size)
    panels = panels[rows]
    observed = _entropy(panels)
    found = {"plug-in of k labels": _entropy(parts.fit.counts) / observed - 1}
    for method in METHODS:
        calibrator = calibrate(parts.fit, method)
        shannon, brier = _predict(calibrator, parts.test.members[rows], size)
        found[method] = shannon / observed - 1
        found[f"{method}, Brier"] = brier / disagreement(panels).mean() - 1
    return found


def _predict(
    calibrator: hocal.SnapshotCalibrator, members: Array, size: int
) -> tuple[float, float]:
    """Return the mean Shannon uncertainty of panels, and the mean Brier uncertainty."""
    shannon, brier = [], []
    for start in range(0, len(members), BATCH):
        mixtures = calibrator.predict_mixture(members[start : start + BATCH])
        shannon.append(hocal.decompose(mixtures, panel_size=size).aleatoric)
        brier.append(hocal.decompose(mixtures, "brier").aleatoric)
    return float(np.concatenate(shannon).mean()), float(np.concatenate(brier).mean())


def _entropy(counts: Counts) -> float:
    shares = counts / counts.sum(axis=1, keepdims=True)
    return float(get_entropy("shannon").value(shares).mean())


def main() -> None:
    """Compute, store and print."""
    parser = options(__doc__, resamplings=5)
    parser.add_argument("--sets", default="", help="only sets whose name contains this, unstored")
    chosen = parser.parse_args()
    sizes = {name: panel_size(load(name).counts) for name in SETS if chosen.sets in name}
    if not sizes:
        names = "; ".join(SETS)
        parser.error(f"--sets must be part of a name, got {chosen.sets!r}. The names: {names}")
    rows = [(name, k) for name, size in sizes.items() for k in LABELS if k < size]
    seeds = range(chosen.resamplings)
    runs = iter(
        in_parallel(resample, [(*row, seed) for row in rows for seed in seeds], chosen.jobs)
    )
    result: dict[str, Any] = {}
    for name, k in rows:
        found = {"people": sizes[name], "relative error": summarise([next(runs) for _ in seeds])}
        result[f"{name}, k = {k}"] = found
        means = (f"{key} {cell['mean']:+.1%}" for key, cell in found["relative error"].items())
        print(f"{name}, k = {k}, panels of {sizes[name]}: {', '.join(means)}")
    if len(sizes) == len(SETS):
        store("panels", {"resamplings": chosen.resamplings, "sets": result})


if __name__ == "__main__":
    main()
