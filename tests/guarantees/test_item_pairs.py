"""Statistics of pairs of items."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from hocal.guarantees.item_pairs import epistemic_pairs, pair_draws, predictive_pairs
from hocal.guarantees.samples import Sample


def test_pairs_average_the_statistic_over_different_items() -> None:
    """Three items, two alike: of the three pairs one is of equal and two are of different items."""
    draws = pair_draws(np.eye(2), np.array([2.0, 1.0]), np.full(2, 0.5), 0, 1)

    assert draws.values[:, 0].tolist() == [0, 1]
    assert draws.repeats[:, 0] == pytest.approx([1 / 3, 2 / 3])


def test_pairs_never_win_more_than_the_average_over_all_pairings() -> None:
    """Jensen's inequality, which makes the use of all pairs valid."""
    shares = np.array([[1, 0], [0.5, 0.5], [0.25, 0.75], [0, 1]])
    draws = pair_draws(shares, np.ones(4), np.full(4, 0.5), 0, 1)
    statistic = 1 - shares @ shares.T
    stake, m = 0.9, 0.7

    used = np.exp((draws.repeats * np.log1p(stake * (m - draws.values))).sum())
    pairings = [
        (1 + stake * (m - statistic[a, b])) * (1 + stake * (m - statistic[c, d]))
        for a, b, c, d in itertools.permutations(range(4))
    ]

    assert used <= np.mean(pairings) * (1 + 1e-3)  # values are rounded to bins


def test_pairs_of_items_disagree_as_the_mean_label_distribution_does() -> None:
    """Two kinds of items in equal parts, of very many: 1 - ||(.5, .5)||^2 and its parts."""
    counts = np.array([[3, 0], [0, 3], [2, 1], [1, 2]])
    # Of items with p = (.9, .1) or (.1, .9), the expected counts.
    chances = np.array([0.365, 0.365, 0.135, 0.135])
    sample = Sample(counts, np.rint(4000 * chances))

    assert predictive_pairs(sample).mean()[0] == pytest.approx(0.5, abs=1e-3)
    assert epistemic_pairs(sample).mean()[0] == pytest.approx(0.5 - 0.18, abs=1e-3)
