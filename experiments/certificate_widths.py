"""Widths of per-cell certificates on CIFAR-10H next to the paper's bound, several resamplings.

    HOCAL_DATA=... python experiments/certificate_widths.py [--resamplings 10] [--jobs 1]

resnet18, ten slices for each top label, half of the items for calibration, k labels drawn with
replacement; cells with at least 200 calibration items. A miss is an interval without the value of
all items of the cell, calibration and test, with all their labels as the truth. A minute on one
core.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from protocol import calibrate, in_parallel, options, row, store, summarise
from real_data import Annotated, cifar10h

import hocal
from hocal.cells.statistics import align_counts
from hocal.guarantees.bounds import aleatoric_bound, epsilon_bound
from hocal.guarantees.certificates import ENTROPIES, QUANTITIES
from hocal.uncertainty.entropy import get_entropy

CONFIDENCE = 0.95
FEWEST = 200
LABELS = (2, 3, 5, 10)


def truth(
    data: Annotated, calibrator: hocal.SnapshotCalibrator, entropy: str
) -> dict[str, NDArray[np.float64]]:
    """Return the uncertainty of each cell from all labels, classes by falling prediction."""
    cells = calibrator.partition_.assign(data.probabilities)
    n_cells = calibrator.partition_.n_cells_
    aligned = align_counts(data.probabilities, data.counts)
    return hocal.decompose(
        hocal.Mixtures.from_snapshots(aligned, cells, n_cells=n_cells).stored(), entropy
    ).as_dict()


def paper_width(n_items: int, k: int, n_classes: int, entropy: str) -> float:
    """Return the width of plug-in -+ omega(epsilon + slack), cut to the possible range."""
    error = min(epsilon_bound(n_items, 1 - CONFIDENCE, k, n_classes, method="paper").value, 2.0)
    largest = get_entropy(entropy).maximum(n_classes)
    return min(
        2 * aleatoric_bound(error, k, n_classes, entropy=entropy, method="paper").value, largest
    )


def resample(data: Annotated, k: int, seed: int) -> dict[str, Any]:
    """Certify one calibration half; return mean widths and the number of misses."""
    calibrator, _ = calibrate(*data, k, "cells", seed)
    certificate = calibrator.certify(CONFIDENCE)
    n_items = calibrator.statistics_.n_items
    large = n_items >= FEWEST
    result: dict[str, Any] = {"intervals": int(large.sum()), "width": {}, "missed": {}}
    result["paper"] = {
        e: np.mean([paper_width(int(n), k, 10, e) for n in n_items[large]]) for e in ENTROPIES
    }
    for entropy in ENTROPIES:
        known = truth(data, calibrator, entropy)
        for quantity in QUANTITIES:
            lower, upper = (end[large] for end in certificate.interval(quantity, entropy))
            value = known[quantity][large]
            result["width"][f"{entropy} {quantity}"] = (upper - lower).mean()
            result["missed"][f"{entropy} {quantity}"] = ((value < lower) | (value > upper)).sum()
    return result


def main() -> None:
    """Compute, store and print."""
    chosen = options(__doc__, resamplings=10).parse_args()
    data = cifar10h()
    seeds = range(chosen.resamplings)
    tasks = [(data, k, seed) for k in LABELS for seed in seeds]
    found_all = in_parallel(resample, tasks, chosen.jobs)
    results = {}
    for place, k in enumerate(LABELS):
        runs = found_all[place * len(seeds) : (place + 1) * len(seeds)]
        totals = {name: int(sum(run["missed"][name] for run in runs)) for name in runs[0]["missed"]}
        found = results[str(k)] = summarise(runs) | {"missed in all": totals}
        print(
            f"k = {k}: widths{row(found['width'].values(), '7.3f')}, "
            f"the paper's{row(found['paper'].values(), '7.3f')}"
        )
        print(
            f"  {sum(run['intervals'] for run in runs)} intervals a kind, misses {totals}",
            flush=True,
        )
    setting = {
        "data": "CIFAR-10H",
        "model": "resnet18",
        "confidence": CONFIDENCE,
        "fewest items": FEWEST,
    }
    store("certificate_widths", setting | {"resamplings": chosen.resamplings, "by labels": results})


if __name__ == "__main__":
    main()
