"""How often prediction sets hold what people said, on real human labels.

    HOCAL_DATA=... python experiments/set_coverage.py [--resamplings 3] [--jobs 1]

Sets of label distributions are the smallest l1 balls around the predicted mean that have the asked
mass; an item is covered if the histogram of all its labels, from which the calibration labels of
the other half were drawn, lies in its set. Coverage should not be below the asked mass; it may be
above, because a ball holds whole atoms. The radius, at most 2, is the price. The guarantee of the
paper is about sets that are grown a little: "grown" is the coverage with .1 added to the radius.
"certified" are l2 balls, radius at most 1.41, whose coverage five labels per item prove at 95%.

Sets of labels are the likeliest classes of an item. They believe a prediction, as many classes as
its probabilities need to reach the asked mass, or are as large as calibration labels say they must
be. Predictions are the model's own, after temperature scaling, and the calibrator's mean. Coverage
is the share of all labels of an item that its set holds, averaged over items.

Calibration with five labels per item, ten slices for each top label. 90 seconds on one core.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from label_efficiency import DATA
from protocol import METHODS, calibrate, halves, in_parallel, options, row, store, summarise
from real_data import Annotated, load

import hocal
from hocal.calibration.first_order.temperature import apply_temperature
from hocal.uncertainty.snapshots import draw_snapshots

K = 5
LEVELS = (0.5, 0.8, 0.9, 0.95)
GROWTH = 0.1


def annotated(name: str) -> Annotated:
    """Return a data set by its name in `real_data`."""
    known = load(name)
    return Annotated(known.mean, known.counts)


LABELLED: dict[str, Callable[[], Annotated]] = {
    "CIFAR-10H, resnet18": DATA["CIFAR-10H, resnet18"],
    "CIFAR-10H, resnet_orig": partial(annotated, "CIFAR-10H resnet_orig"),
    "ChaosNLI-S, roberta-base_0": DATA["ChaosNLI-S, roberta-base_0"],
    "ImageNet-16H, vgg19": partial(annotated, "ImageNet-16H vgg19"),
}


def resample(data: Annotated, seed: int) -> dict[str, Any]:
    """Return coverage, that of grown sets and mean radius of each method, by mass."""
    calibrators = {method: calibrate(*data, K, method, seed) for method in (*METHODS, "items")}
    test = calibrators["empirical"][1]
    p = data.probabilities[test]
    counts = data.counts[test]
    mixtures = {
        f"{method}, k = {K}": each.predict_mixture(p) for method, (each, _) in calibrators.items()
    }
    mixtures |= {
        "point mass": hocal.Mixtures.from_points(p),
        "vertices": hocal.Mixtures.from_vertices(p),
    }
    result: dict[str, Any] = {name: {} for name in mixtures}
    for name, predicted in mixtures.items():
        for level in LEVELS:
            sets = hocal.predict_set(predicted, coverage=level, shape="ball")
            result[name][str(level)] = _measure(sets, counts)
    certified = calibrators["items"][0]
    result[f"certified, k = {K}"] = {
        str(level): _measure(certified.predict_set(p, coverage=level, shape="certified"), counts)
        for level in LEVELS
    }
    return result


def _measure(sets: hocal.uncertainty.PredictionSets, counts: Any) -> dict[str, float]:
    return {
        "coverage": hocal.coverage(sets, counts),
        "grown": hocal.coverage(sets.expand(GROWTH), counts),
        "radius": float(sets.radius.mean()),
    }


def resample_labels(data: Annotated, seed: int) -> dict[str, Any]:
    """Return coverage and mean size of sets of labels, by prediction, method and mass."""
    fit, test, generator = halves(len(data.counts), seed)
    labels = draw_snapshots(data.counts[fit], K, replace=True, random_state=generator)
    p, new = data.probabilities[fit], data.probabilities[test]
    calibrator = hocal.SnapshotCalibrator().fit(p, labels)
    temper = partial(apply_temperature, temperature=calibrator.temperature_)
    own = {"the model's": (p, new), "temperature": (temper(p), temper(new))}
    result: dict[str, Any] = {}
    for name, (old, fresh) in own.items():
        calibration = (hocal.Mixtures.from_points(old), labels)
        points = hocal.Mixtures.from_points(fresh)
        for way, given in (("believed", None), ("conformal", calibration)):
            choose = partial(hocal.predict_set, points, kind="labels", calibration=given)
            result[f"{name}, {way}"] = _by_level(choose, data.counts[test])
    believed = hocal.Mixtures.from_points(calibrator.predict_proba(new))
    choose = partial(hocal.predict_set, believed, kind="labels")
    result["calibrated, believed"] = _by_level(choose, data.counts[test])
    choose = partial(calibrator.predict_set, new, kind="labels")
    result["calibrated, conformal"] = _by_level(choose, data.counts[test])
    return result


def _by_level(choose: Callable[..., hocal.uncertainty.LabelSets], counts: Any) -> dict[str, Any]:
    found = {str(level): choose(coverage=level) for level in LEVELS}
    return {
        level: {"coverage": hocal.coverage(sets, counts), "size": float(np.mean(sets.sizes))}
        for level, sets in found.items()
    }


def one(kind: str, name: str, seed: int) -> dict[str, Any]:
    """Resample one data set."""
    if kind == "data":
        return resample(DATA[name](), seed)
    return resample_labels(LABELLED[name](), seed)


def main(n_resamplings: int, jobs: int) -> None:
    """Compute, store and print."""
    results: dict[str, Any] = {"resamplings": n_resamplings, "labels per item": K, "growth": GROWTH}
    for kind, names in (("data", DATA), ("labels", LABELLED)):
        tasks = [(kind, name, seed) for name in names for seed in range(n_resamplings)]
        runs = in_parallel(one, tasks, jobs)
        results[kind] = {
            name: summarise([run for task, run in zip(tasks, runs, strict=True) if task[1] == name])
            for name in names
        }
        for name, methods in results[kind].items():
            print(f"{name}, {kind} at {LEVELS}")
            for method, cells in methods.items():
                figures = "".join(row(cell.values(), "8.3f") for cell in cells.values())
                print(f"  {method:22}{figures}", flush=True)
    store("set_coverage", results)


if __name__ == "__main__":
    given = options(__doc__, resamplings=3).parse_args()
    main(given.resamplings, given.jobs)
