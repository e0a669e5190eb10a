"""Certificates that hold however often one looks."""

from __future__ import annotations

import numpy as np
import pytest

from hocal import Mixtures
from hocal._base.typing import IntArray
from hocal.cells.partitions import CellLayout
from hocal.cells.statistics import CellStatistics, Histogram
from hocal.guarantees.cell_uncertainty import TARGETS, Target
from hocal.guarantees.certificates import Certificate, certify
from hocal.guarantees.lasting_limits import lasting_limits


def histogram_of(counts: IntArray) -> Histogram:
    return Histogram.of(np.zeros(len(counts), dtype=np.intp), counts)


def draw(n_items: int, k: int, n_classes: int, seed: int) -> IntArray:
    generator = np.random.default_rng(seed)
    return generator.multinomial(k, generator.dirichlet(np.full(n_classes, 0.5), n_items))


def certificate_of(counts: IntArray, *, anytime: bool) -> Certificate:
    p = np.tile(np.arange(3, 0, -1) / 6, (len(counts), 1))
    cells = np.zeros(len(counts), dtype=np.intp)
    layout = CellLayout(np.arange(1), np.zeros(1, dtype=np.intp))
    statistics = CellStatistics.from_items(p, counts, cells, layout)
    mixtures = Mixtures.from_points([[0.5, 0.3, 0.2]])
    return certify(statistics, mixtures, anytime=anytime)


def test_a_lasting_certificate_says_so_and_leaves_epsilon_open() -> None:
    found = certificate_of(draw(200, 3, 3, 0), anytime=True)

    assert found.anytime
    assert np.isnan(found.epsilon).all()
    assert np.isnan(found.set_coverage).all()
    assert not any("fixed in advance" in sentence for sentence in found.assumptions)


@pytest.mark.parametrize("entropy", ["shannon", "brier"])
def test_lasting_limits_of_two_labels_are_wider_than_exact_ones(entropy: str) -> None:
    counts = draw(300, 2, 3, 1)

    low, high = certificate_of(counts, anytime=False).interval("aleatoric", entropy)
    lower, upper = certificate_of(counts, anytime=True).interval("aleatoric", entropy)

    assert lower[0] < low[0] < high[0] < upper[0]


def test_one_label_per_item_leaves_disagreement_open() -> None:
    found = lasting_limits(histogram_of(draw(300, 1, 3, 2)), 1, 0.05)

    assert found[Target("aleatoric", "shannon")][0, 0] == 0
    assert found[Target("predictive", "shannon")][0, 0] > 0


def test_a_cell_without_items_has_no_limits() -> None:
    found = lasting_limits(histogram_of(draw(50, 3, 3, 3)), 2, 0.05)

    assert all(np.isnan(limits[1]).all() for limits in found.values())
    assert set(found) == set(TARGETS)


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 5])
def test_lasting_limits_hold_at_every_look(k: int) -> None:
    """Dirichlet(1/2, 1/2) has E 2 p (1 - p) = 1/4; a look after every 25 items up to 300."""
    missed = 0
    for seed in range(40):
        counts = draw(300, k, 2, seed)
        ends = [
            lasting_limits(histogram_of(counts[:n]), 1, 0.1)[Target("aleatoric", "brier")][0]
            for n in range(25, 301, 25)
        ]
        missed += any(not low <= 0.25 <= high for low, high in ends)

    assert missed <= 4 + 3 * 1.9
