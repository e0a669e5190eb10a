"""Limits from two labels per item fail no more often than they may."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from hocal.guarantees.entropy_ranges import shannon_range
from hocal.guarantees.fixed_number import binomial_limits
from hocal.uncertainty.entropy import Brier, Shannon

pytestmark = pytest.mark.slow

WORLDS = 400


def draw(name: str, n_items: int, n_classes: int, seed: int) -> NDArray[np.float64]:
    """Return label distributions: diffuse, all the same, or certain but for one in fifty."""
    generator = np.random.default_rng(seed)
    if name == "spread":
        return generator.dirichlet(np.full(n_classes, 0.2), n_items)
    even = np.full((n_items, n_classes), 1 / n_classes)
    if name == "point mass":
        return even
    rare = generator.random(n_items) < 0.02
    return np.where(rare[:, None], even, np.eye(n_classes)[0])


@pytest.mark.parametrize("delta", [0.05, 0.1])
@pytest.mark.parametrize("n_items", [20, 300, 5000])
@pytest.mark.parametrize("n_classes", [2, 10, 50])
@pytest.mark.parametrize("name", ["spread", "point mass", "rare"])
def test_limits_hold(name: str, n_classes: int, n_items: int, delta: float) -> None:
    """Items are drawn anew in each world; the truth is that of very many."""
    many = draw(name, 100_000, n_classes, seed=1)
    brier = float(Brier().value(many).mean())
    shannon = float(Shannon().value(many).mean())
    hits = np.random.default_rng(2).binomial(n_items, brier, WORLDS)
    missed = np.zeros(2)
    for value, times in zip(*np.unique(hits, return_counts=True), strict=True):
        low, high = binomial_limits(value, n_items, delta / 2)
        below, above = shannon_range(low, min(high, 1 - 1 / n_classes), n_classes)
        missed += times * np.array(
            [not low <= brier <= high, not below - 1e-9 <= shannon <= above + 1e-9]
        )

    allowed = stats.binom.isf(1e-4, WORLDS, delta)
    assert (missed <= allowed).all()
