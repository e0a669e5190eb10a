"""How many labels an item buy how much accuracy: the paper's method against hocal's on real human labels.

    HOCAL_DATA=... python experiments/label_efficiency.py [--resamplings 20]

Half of the items calibrate, half test. Each calibration item gets k labels drawn with replacement from its
histogram. The error is the item-averaged distance between predicted and observed aleatoric uncertainty, in
nats. The floor is the paper's method with all labels of the calibration half.
"""

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
from real_data import RESULTS, Annotated, chaosnli, cifar10h, ferplus

import hocal
from hocal.calibration import borrow
from hocal.snapshots import draw_snapshots

DATA: dict[str, Callable[[], Annotated]] = {
    "CIFAR-10H, resnet18": cifar10h,
    "ChaosNLI-S, roberta-base_0": chaosnli,
    "FER+ test, residual network": ferplus,
}
LABELS = (2, 5, 10)


def aleatoric_error(data: Annotated, k: int | None, method: str, seed: int) -> float:
    """Calibrate on one half with k labels an item (all if None) and test on the other."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(data.counts))
    fit, test = order[: len(order) // 2], order[len(order) // 2 :]
    counts = data.counts[fit]
    if k is not None:
        counts = draw_snapshots(counts, k, replace=True, random_state=generator)
    calibrator = hocal.SnapshotCalibrator(method=method).fit(data.probabilities[fit], counts)  # type: ignore[arg-type]
    p = data.probabilities[test]
    return hocal.aleatoric_error(calibrator.decompose(p), data.counts[test], cells=calibrator.partition_.assign(p))


def floor(data: Annotated, seed: int) -> float:
    """Return the error of the plug-in with every label of the calibration half."""
    order = np.random.default_rng(seed).permutation(len(data.counts))
    fit, test = order[: len(order) // 2], order[len(order) // 2 :]
    partition = hocal.TopLabelPartition(n_slices=10).fit(data.probabilities[fit])
    cells, where = partition.assign(data.probabilities[fit]), partition.assign(data.probabilities[test])
    mixtures = hocal.Mixtures.from_snapshots(data.counts[fit], cells, n_cells=partition.n_cells_).stored()
    source = borrow(np.bincount(cells, minlength=partition.n_cells_) > 0, partition.layout_)
    return hocal.aleatoric_error(hocal.decompose(mixtures[source[where]]), data.counts[test], cells=where)


def summary(errors: list[float]) -> dict[str, float]:
    """Return the mean with its standard error."""
    return {"mean": round(float(np.mean(errors)), 4), "se": round(float(np.std(errors) / len(errors) ** 0.5), 4)}


def main(resamplings: int) -> None:
    """Print the table and store it."""
    results: dict[str, object] = {"resamplings": resamplings, "unit": "nats", "data": {}}
    print(f"{'data, model':28}{'method':14}" + "".join(f"k={k:<12}" for k in LABELS) + "floor")
    for name, load in DATA.items():
        data, started = load(), time.perf_counter()
        base = summary([floor(data, seed) for seed in range(resamplings)])
        rows: dict[str, object] = {"floor": base}
        for method in ("empirical", "deconvolved"):
            row = {
                f"k={k}": summary([aleatoric_error(data, k, method, seed) for seed in range(resamplings)])
                for k in LABELS
            }
            rows[method] = row
            cells = "".join(f"{cell['mean']:.4f} x{cell['mean'] / base['mean']:<6.2f}" for cell in row.values())
            print(f"{name:28}{method:14}{cells}{base['mean']:.4f}   {time.perf_counter() - started:.0f} s", flush=True)
        results["data"][name] = rows  # type: ignore[index]
    (RESULTS / "label_efficiency.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--resamplings", type=int, default=20)
    main(parser.parse_args().resamplings)
