"""How often prediction sets hold what people said, on real human labels.

    HOCAL_DATA=... python experiments/set_coverage.py [--resamplings 10]

Sets are the smallest l1 balls around the predicted mean that have the asked mass; an item is
covered if the histogram of all its labels, from which the calibration labels of the other half were
drawn, lies in its set. Coverage should not be below the asked mass; it may be above, because a ball
holds whole atoms. The radius, at most 2, is the price. The guarantee of the paper is about sets
that are grown a little: "grown" is the coverage with .1 added to the radius. Calibration with five
labels per item, ten slices for each top label. A minute on one core.
"""

import argparse
from typing import Any

from label_efficiency import DATA
from protocol import METHODS, calibrate, row, store, summarise
from real_data import Annotated

import hocal

K = 5
LEVELS = (0.5, 0.8, 0.9, 0.95)
GROWTH = 0.1


def resample(data: Annotated, seed: int) -> dict[str, Any]:
    """Return coverage, that of grown sets and mean radius of each method, by mass."""
    calibrators = {method: calibrate(*data, K, method, seed) for method in METHODS}
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
            found = {
                "coverage": hocal.coverage(sets, counts),
                "grown": hocal.coverage(sets.expand(GROWTH), counts),
            }
            result[name][str(level)] = found | {"radius": sets.radius.mean()}
    return result


def main() -> None:
    """Compute, store and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--resamplings", type=int, default=10)
    n_resamplings = parser.parse_args().resamplings
    results = {}
    for name, load in DATA.items():
        data = load()
        results[name] = summarise([resample(data, seed) for seed in range(n_resamplings)])
        print(f"{name}: coverage, the same grown, radius at {LEVELS}")
        for method, cells in results[name].items():
            print(
                f"  {method:20}" + "".join(row(cell.values(), "8.3f") for cell in cells.values()),
                flush=True,
            )
    store(
        "set_coverage",
        {"resamplings": n_resamplings, "labels": K, "growth": GROWTH, "data": results},
    )


if __name__ == "__main__":
    main()
