"""Measure every method's calibration error on CIFAR-10H, with its noise floor and p-value.

    HOCAL_DATA=... python experiments/calibration_errors.py

The distance is W1 between predicted and observed k-snapshots in each cell (l1 ground metric, at
most 2), the mean over items and the largest over cells, which is the paper's epsilon. A test image
shows k of its labels, as in the paper; the floor is the same distance for labels drawn from the
prediction. Post-hoc methods are fitted with k labels per image of the other half. The p-value is
that of the mean; 100 simulations make it .0099 at best. One pair of halves. Three minutes on one
core.
"""

from functools import partial

import numpy as np
from cifar10h_table import BASE, baselines
from numpy.typing import NDArray
from protocol import METHODS, calibrate, digits, halves, store
from real_data import Annotated, cifar10h

import hocal
from hocal.calibration.evaluation import CalibrationError
from hocal.uncertainty.snapshots import draw_snapshots

SEED = 0
LABELS = (2, 5)
N_SIMULATIONS = 100


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


def main() -> None:
    """Compute, store and print."""
    data = cifar10h(BASE)
    result = {}
    mixtures = {name: make() for name, make in baselines().items()}
    for k in LABELS:
        print(f"k = {k}{'mean':>33}{'floor':>9}{'p':>9}{'max':>9}{'floor':>9}")
        methods = {f"post-hoc, {method}": partial(post_hoc, data, method) for method in METHODS}
        methods |= {name: partial(unlabelled, each, data.counts) for name, each in mixtures.items()}
        result[str(k)] = {}
        for name, measure in methods.items():
            result[str(k)][name] = figures(measure(k))
            print(
                f"{name:28}" + "".join(f"{value:9.3f}" for value in result[str(k)][name].values()),
                flush=True,
            )
    store("calibration_errors", {"seed": SEED, "simulations": N_SIMULATIONS, "by labels": result})


if __name__ == "__main__":
    main()
