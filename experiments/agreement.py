"""How often intervals of Fleiss' kappa hold the truth: bets on blocks of items, and the bootstrap.

    python experiments/agreement.py [--resamplings 200] [--jobs 1]

A share of the items is ambiguous, a fair coin of two classes; all others are clear, half of them of
each class. So kappa is one less that share, whatever the number of labels; there are three. Limits
of `hocal.agreement` and the middle 95% of 500 resamplings of the items (percentile bootstrap).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from protocol import digits, in_parallel, options, store

import hocal

N_ITEMS = (20, 50, 200, 1000)
AMBIGUOUS = (0.05, 0.3)
N_LABELS = 3
N_BOOTSTRAPS = 500


def draw(n_items: int, share: float, generator: np.random.Generator) -> NDArray[np.int64]:
    """Draw counts of two classes."""
    clear = generator.integers(0, 2, n_items)
    ambiguous = generator.random(n_items) < share
    first = generator.binomial(N_LABELS, np.where(ambiguous, 0.5, clear))
    return np.column_stack([first, N_LABELS - first])


def bootstrap(counts: NDArray[np.int64], generator: np.random.Generator) -> tuple[float, float]:
    """Return the middle 95% of kappa over resampled items; 1 where all labels are of one class."""
    n_items = len(counts)
    shares = counts[:, 0] / N_LABELS
    differ = counts[:, 0] * counts[:, 1] / 3  # pairs of three labels that differ
    chosen = generator.integers(0, n_items, (N_BOOTSTRAPS, n_items))
    mean = shares[chosen].mean(axis=1)
    between = 2 * mean * (1 - mean)
    ratio = np.divide(
        differ[chosen].mean(axis=1), between, out=np.zeros(N_BOOTSTRAPS), where=between > 0
    )
    lower, upper = np.quantile(1 - ratio, [0.025, 0.975])
    return float(lower), float(upper)


def resample(n_items: int, share: float, seed: int) -> dict[str, list[float]]:
    """Return limits of one world, by method."""
    generator = np.random.default_rng([seed, n_items])
    counts = draw(n_items, share, generator)
    result = hocal.agreement(counts).kappa
    return {
        "hocal": [digits(result.lower), digits(result.upper)],
        "bootstrap": list(map(digits, bootstrap(counts, generator))),
    }


def summarise(runs: list[dict[str, list[float]]], truth: float) -> dict[str, Any]:
    """Return how often each method holds the truth, and its mean width."""
    ends = {name: np.array([run[name] for run in runs]) for name in runs[0]}
    return {
        name: {
            "holds": digits(((limits[:, 0] <= truth) & (truth <= limits[:, 1])).mean()),
            "width": digits((limits[:, 1] - limits[:, 0]).mean()),
            "first": limits[0].tolist(),
        }
        for name, limits in ends.items()
    }


def main() -> None:
    """Simulate all worlds, and store coverage and width."""
    chosen = options(__doc__, resamplings=200).parse_args()
    cases = [(n_items, share) for share in AMBIGUOUS for n_items in N_ITEMS]
    tasks = [(*case, seed) for case in cases for seed in range(chosen.resamplings)]
    runs = in_parallel(resample, tasks, chosen.jobs)
    result: dict[str, Any] = {"resamplings": chosen.resamplings}
    for place, (n_items, share) in enumerate(cases):
        mine = runs[place * chosen.resamplings : (place + 1) * chosen.resamplings]
        found = summarise(mine, 1 - share)
        result.setdefault(f"{share:g}", {})[str(n_items)] = found
        print(share, n_items, found)
    store("agreement", result)


if __name__ == "__main__":
    main()
