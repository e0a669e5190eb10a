"""Widths of limits of a mean: bets with a deadline, and three classical intervals.

    python experiments/limit_widths.py

Means at 95% of coins that show 1 with probability 0, .01, .1 and .5, over all numbers of ones that
50 to 5,000 draws may bring, and of a law of three values (how often two of an item's three labels
differ) over 100 samples. For coins the interval of Clopper and Pearson is exact; bets with a
deadline are not told that there are two values. Half a minute on one core.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from protocol import store
from scipy import stats

from hocal.guarantees.betting import Draws
from hocal.guarantees.fixed_number import lower_limits, upper_limits
from hocal.guarantees.means import empirical_bernstein_interval, hoeffding_interval

DELTA = 0.05
MEANS = (0.0, 0.01, 0.1, 0.5)
SIZES = (50, 200, 1000, 5000)
UNLIKELY = 1e-5  # numbers of ones in both tails that are left out
THREE_VALUES = np.array([0.0, 2 / 3, 1.0])
CHANCES = np.array([0.9, 0.08, 0.02])
N_SAMPLES = 100
Histograms = NDArray[np.int64]


def all_widths(values: NDArray[np.float64], histograms: Histograms) -> dict[str, Any]:
    """Return the width of each method's interval for each histogram of the values."""
    many = [Draws.of(values, each.astype(np.float64), 0, 1) for each in histograms]
    many = [each.columns()[0] for each in many]
    found = {"deadline": upper_limits(many, DELTA / 2) - lower_limits(many, DELTA / 2)}
    for name, method in (
        ("Hoeffding", hoeffding_interval),
        ("empirical Bernstein", empirical_bernstein_interval),
    ):
        ends = [method(values, multiplicities=each, delta=DELTA) for each in histograms]
        found[name] = np.array([end.upper - end.lower for end in ends])
    return found


def summary(found: dict[str, Any], weights: NDArray[np.float64]) -> dict[str, float]:
    """Return mean widths, and the largest share of Hoeffding's that the first one is."""
    means = {name: float(weights @ widths / weights.sum()) for name, widths in found.items()}
    largest = float((found["deadline"] / found["Hoeffding"]).max())
    return means | {"largest ratio to Hoeffding": largest}


def coin(mean: float, n_draws: int) -> dict[str, float]:
    """Return mean widths over the numbers of ones, each with its binomial chance."""
    ends = stats.binom.ppf([UNLIKELY, 1 - UNLIKELY], n_draws, mean) if mean > 0 else (0, 0)
    ones = np.arange(int(ends[0]), int(ends[1]) + 1)
    found = all_widths(np.array([0.0, 1.0]), np.stack([n_draws - ones, ones], axis=1))
    low = np.nan_to_num(stats.beta.ppf(DELTA / 2, ones, n_draws - ones + 1))
    high = np.nan_to_num(stats.beta.ppf(1 - DELTA / 2, ones + 1, n_draws - ones), nan=1.0)
    found["Clopper-Pearson"] = high - low
    return summary(found, stats.binom.pmf(ones, n_draws, mean))


def three_values(n_draws: int) -> dict[str, float]:
    """Return mean widths over samples of the law of three values."""
    histograms = np.random.default_rng(n_draws).multinomial(n_draws, CHANCES, N_SAMPLES)
    return summary(all_widths(THREE_VALUES, histograms), np.ones(N_SAMPLES))


def main() -> None:
    """Compute, store and print."""
    results: dict[str, Any] = {}
    for n_draws in SIZES:
        rows = {f"coin, {mean:g}": coin(mean, n_draws) for mean in MEANS}
        rows["three values"] = three_values(n_draws)
        results[str(n_draws)] = rows
        for name, widths in rows.items():
            print(n_draws, name, {key: round(value, 4) for key, value in widths.items()})
    store("limit_widths", {"confidence": 1 - DELTA, "by draws": results})


if __name__ == "__main__":
    main()
