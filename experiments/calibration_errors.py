"""Measure every method's calibration error on CIFAR-10H, with its noise floor and p-value.

    HOCAL_DATA=... python experiments/calibration_errors.py [--simulations 100] [--jobs 1]

The distance is W1 between predicted and observed k-snapshots in each cell, class by class (l1
ground metric, at most 2), the mean over items and the largest over cells, which is the paper's
epsilon. A test image shows k of its labels, as in the paper; the floor is the same distance for
labels drawn from the prediction. Post-hoc methods are fitted with k labels per image of the other
half. The p-value is that of the mean; 100 simulations make it .0099 at best. One pair of halves.
Five minutes on one core.
"""

import argparse

import numpy as np
from cifar10h_table import BASE, baselines
from numpy.typing import NDArray
from protocol import calibrate, digits, halves, in_parallel, store
from real_data import Annotated, cifar10h

import hocal
from hocal.calibration.evaluation import CalibrationError
from hocal.uncertainty.snapshots import draw_snapshots

SEED = 0
METHODS = ("empirical", "cells", "items")
LABELS = (2, 5)
N_SIMULATIONS = 100
POST_HOC = "post-hoc, "


def post_hoc(
    data: Annotated, method: str, k: int, n_simulations: int = N_SIMULATIONS
) -> CalibrationError:
    """Measure a calibrator."""
    calibrator, test = calibrate(data.probabilities, data.counts, k, method, SEED)
    labels = draw_snapshots(data.counts[test], k, random_state=SEED)
    p = data.probabilities[test]
    return calibrator.calibration_error(
        p, labels, k=k, n_resamples=n_simulations, random_state=SEED
    )


def unlabelled(
    mixtures: hocal.Mixtures, counts: NDArray[np.int64], k: int, n_simulations: int = N_SIMULATIONS
) -> CalibrationError:
    """Measure mixtures that were predicted without labels, in the cells of their mean."""
    mean = mixtures.mean()
    test = halves(len(counts), SEED)[1]
    cells = hocal.TopLabelPartition(n_slices=10).fit(mean).assign(mean)[test]
    labels = draw_snapshots(counts[test], k, random_state=SEED)
    return hocal.calibration_error(
        mixtures[test], labels, k=k, cells=cells, n_resamples=n_simulations, random_state=SEED
    )


def figures(error: CalibrationError) -> dict[str, float]:
    """Return what is stored of an error."""
    found = {"mean": error.mean, "floor": error.noise_floor, "p": error.p_value}
    found |= {"max": error.max, "floor of max": error.noise_floor_max}
    return {name: digits(value) for name, value in found.items()}


def measure(name: str, k: int, n_simulations: int) -> dict[str, float]:
    """Measure a method by its name."""
    data = cifar10h(BASE)
    if name.startswith(POST_HOC):
        error = post_hoc(data, name.removeprefix(POST_HOC), k, n_simulations)
    else:
        error = unlabelled(baselines()[name](), data.counts, k, n_simulations)
    return figures(error)


def main() -> None:
    """Compute, store and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--simulations", type=int, default=N_SIMULATIONS)
    parser.add_argument("--jobs", type=int, default=1, help="processes, one core each")
    chosen = parser.parse_args()
    names = [POST_HOC + method for method in METHODS] + list(baselines())
    tasks = [(name, k, chosen.simulations) for k in LABELS for name in names]
    runs = iter(in_parallel(measure, tasks, chosen.jobs))
    result = {str(k): {name: next(runs) for name in names} for k in LABELS}
    for k, found in result.items():
        print(f"k = {k}{'mean':>33}{'floor':>9}{'p':>9}{'max':>9}{'floor':>9}")
        for name, values in found.items():
            print(f"{name:28}" + "".join(f"{value:9.3f}" for value in values.values()))
    kept = {"seed": SEED, "simulations": chosen.simulations, "by labels": result}
    store("calibration_errors", kept)


if __name__ == "__main__":
    main()
