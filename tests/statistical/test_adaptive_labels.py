"""Labels bought where people disagree: what a certificate may count."""

import numpy as np
import pytest
from numpy.typing import NDArray

import hocal
from hocal.cells import CellStatistics, PrecomputedPartition
from hocal.guarantees.certificates import certify

N_WORLDS = 60
N_ITEMS = 3_000
CONFIDENCE = 0.9


def adaptive_labels(
    generator: np.random.Generator,
) -> tuple[float, NDArray[np.int64], NDArray[np.int64]]:
    """Return the true mean Brier uncertainty, two labels of each item, and six more of some.

    More are bought for the items whose first two labels differ.
    """
    p = generator.beta(1.0, 1.0, size=N_ITEMS)
    p = np.stack([p, 1 - p], axis=1)
    first = generator.multinomial(2, p)
    torn = first[:, 0] == 1
    return 1 / 3, first, first + generator.multinomial(np.where(torn, 6, 0), p)


def covers(truth: float, counts: NDArray[np.int64]) -> bool:
    """Tell whether the certified interval of a single cell holds the truth."""
    even = np.full(counts.shape, 0.5)
    partition = PrecomputedPartition(1).fit(even)
    cells = np.zeros(len(counts), dtype=np.intp)
    statistics = CellStatistics.from_items(even, counts, cells, partition.layout_)
    mixtures = hocal.Mixtures.from_points([[0.5, 0.5]])
    certificate = certify(statistics, mixtures, confidence=CONFIDENCE, aligned=True)
    lower, upper = certificate.interval("aleatoric", "brier")
    return bool(lower[0] <= truth <= upper[0])


@pytest.mark.slow
def test_certificates_hold_for_the_first_labels_and_not_for_all_that_were_bought() -> None:
    generator = np.random.default_rng(0)
    held = np.zeros(2)
    for _ in range(N_WORLDS):
        truth, first, every = adaptive_labels(generator)
        held += [covers(truth, first), covers(truth, every)]

    assert held[0] >= N_WORLDS * CONFIDENCE - 3 * np.sqrt(N_WORLDS * CONFIDENCE * (1 - CONFIDENCE))
    assert held[1] < N_WORLDS / 2
