"""Reproduce the paper's figure 1: two worlds that two labels per scan tell apart, and one does not.

    python experiments/xray.py

A model says 50% for all of 1,000 scans. In one world doctors split evenly over every scan, in the
other half of the scans clearly show the illness and half clearly do not. Drawn are the Bayes
mixture, the empirical mixtures of 1- and 2-snapshots (the paper's) and the deconvolved mixture of
two labels. A second on one core.
"""

from typing import Any

from matplotlib.figure import Figure
from protocol import digits, draw, store

import hocal
from hocal.datasets import World, make_xray
from hocal.plot import MixtureDisplay

SCENARIOS = ("ambiguous", "clear")
LABELS = (1, 2)
ONE_CELL = hocal.UniformPartition(n_bins=1)
PREDICTORS = {"empirical, k = 1": ("empirical", 1), "empirical, k = 2": ("empirical", 2)} | {
    "cells, k = 2": ("cells", 2)
}


def calibrated(world: World, method: Any, k: int) -> hocal.SnapshotCalibrator:
    """Return a calibrator that saw k labels of each scan."""
    return hocal.SnapshotCalibrator(ONE_CELL, method=method).fit(
        world.predictions, world.draw(k, random_state=k)
    )


def uncertainty(mixtures: hocal.Mixtures) -> dict[str, float]:
    """Return the parts of the doubt about a scan, in bits."""
    return {
        name: digits(values[0])
        for name, values in hocal.decompose(mixtures, base=2).as_dict().items()
    }


def resample() -> tuple[dict[str, Any], dict[str, dict[str, hocal.Mixtures]]]:
    """Return the uncertainty in both worlds, true and predicted, and the mixtures themselves."""
    result: dict[str, Any] = {}
    mixtures: dict[str, dict[str, hocal.Mixtures]] = {}
    for scenario in SCENARIOS:
        world = make_xray(1000, scenario=scenario, random_state=0)
        fitted = {name: calibrated(world, *setting) for name, setting in PREDICTORS.items()}
        predicted = {
            name: each.predict_mixture(world.predictions[:1]) for name, each in fitted.items()
        }
        mixtures[scenario] = {"Bayes mixture": world.mixtures[:1]} | predicted
        result[scenario] = {name: uncertainty(each) for name, each in mixtures[scenario].items()}
        lower, upper = fitted["cells, k = 2"].certify(0.95).interval("aleatoric", "brier")
        result[scenario]["95% interval of the aleatoric Brier entropy, k = 2"] = [
            digits(lower[0]),
            digits(upper[0]),
        ]
    return result, mixtures


def main() -> None:
    """Store, draw and print."""
    result, mixtures = resample()
    store("xray", {"unit": "bits", **result})
    figure = Figure(figsize=(14, 6), layout="constrained")
    for axes, (scenario, named) in zip(
        figure.subplots(2, 4, sharey=True), mixtures.items(), strict=True
    ):
        for ax, (name, each) in zip(axes, named.items(), strict=True):
            MixtureDisplay.from_predictions(each, classes=["healthy", "ill"]).plot(
                ax=ax, title=f"{scenario}: {name}"
            )
    draw("xray", figure)
    for scenario, rows in result.items():
        print(scenario, *(f"\n  {name:54}{parts}" for name, parts in rows.items()))


if __name__ == "__main__":
    main()
