"""How to spend a fixed number of labels: few for many items, or many for few.

    HOCAL_DATA=... python experiments/budget_split.py [--resamplings 20]

The budget is two labels for each item of the calibration half; it buys fewer items with more labels
each. Measured is the item-averaged aleatoric error on the other half, as in `label_efficiency.py`;
planned is what `hocal.plan_budget` forecasts from a pilot study, a fifth of the calibration items
with five labels each. The plan knows the true uncertainty of its cells, the measurement only the
labels of the test half, whose noise it includes. Half a minute on one core.
"""

import argparse
from typing import Any

from label_efficiency import DATA
from protocol import METHODS, digits, halves, row, store, summarise
from real_data import Annotated

import hocal
from hocal.uncertainty.snapshots import draw_snapshots

LABELS = (2, 3, 5, 10)
PILOT_LABELS = 5
N_SIMULATIONS = 10


def measured(data: Annotated, k: int, method: Any, seed: int) -> float:
    """Return the error after spending the budget on items with k labels each."""
    fit, test, generator = halves(len(data.counts), seed)
    bought = fit[: 2 * len(fit) // k]
    counts = draw_snapshots(data.counts[bought], k, replace=True, random_state=generator)
    calibrator = hocal.SnapshotCalibrator(method=method).fit(data.probabilities[bought], counts)
    p = data.probabilities[test]
    return hocal.aleatoric_error(
        calibrator.decompose(p), data.counts[test], cells=calibrator.partition_.assign(p)
    )


def planned(data: Annotated, method: Any) -> dict[str, Any]:
    """Return what a pilot study forecasts of the splits."""
    fit, _, generator = halves(len(data.counts), 0)
    pilot = fit[: len(fit) // 5]
    counts = draw_snapshots(data.counts[pilot], PILOT_LABELS, replace=True, random_state=generator)
    world = hocal.SnapshotCalibrator(method="cells").fit(data.probabilities[pilot], counts)
    budget = 2 * len(fit)
    options = {"n_simulations": N_SIMULATIONS, "random_state": 0}
    plan = hocal.plan_budget(world, budget, k=LABELS, method=method, **options)
    return {str(split.k): digits(split.error) for split in plan.rows} | {"best": plan.best.k}


def resample(data: Annotated, seed: int) -> dict[str, Any]:
    """Return the measured errors of both methods by labels per item."""
    return {method: {str(k): measured(data, k, method, seed) for k in LABELS} for method in METHODS}


def main() -> None:
    """Store and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--resamplings", type=int, default=20)
    n_resamplings = parser.parse_args().resamplings
    results = {}
    for name, load in DATA.items():
        data = load()
        found = summarise([resample(data, seed) for seed in range(n_resamplings)])
        plans = {method: planned(data, method) for method in METHODS}
        results[name] = {"budget": 2 * (len(data.counts) // 2), "measured": found, "planned": plans}
        print(f"{name}, {results[name]['budget']} labels, k = {LABELS}")
        for method in METHODS:
            best = min(LABELS, key=lambda k: found[method][str(k)]["mean"])
            print(
                f"  {method:12} measured {row(found[method].values())}, best {best}; planned",
                plans[method],
                flush=True,
            )
    store("budget_split", {"resamplings": n_resamplings, "unit": "nats", "data": results})


if __name__ == "__main__":
    main()
