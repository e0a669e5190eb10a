"""A monitor whose calibrator was fitted on few items raises no more false alarms than promised."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import hocal

pytestmark = pytest.mark.slow

Array = NDArray[np.float64]
DELTA = 0.2
N_STREAMS = 2_000
N_NEW = 60  # items in a stream: where the change is early, evidence grows fastest


def draw_world(n_items: int, concentration: float, seed: int) -> tuple[Array, Array]:
    """Return label distributions of two classes, and noisy predictions of them."""
    generator = np.random.default_rng(seed)
    truth = generator.dirichlet([concentration, concentration], n_items)
    noisy = truth * np.exp(generator.normal(0, 1, truth.shape)) + 0.01
    return truth, noisy / noisy.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("method", "n_items", "n_fits", "concentration"),
    [("cells", 30, 80, 0.3), ("cells", 200, 20, 1.0), ("items", 60, 12, 0.5)],
)
def test_false_alarms_are_no_more_frequent_than_promised(
    method: str, n_items: int, n_fits: int, concentration: float
) -> None:
    """Together 2,000 streams, of 112 calibrators; alarms ask for evidence of 5 only."""
    alarms = n_streams = 0
    per_fit = N_STREAMS // (3 * n_fits) + 1
    for seed in range(n_fits):
        truth, p = draw_world(n_items + per_fit * N_NEW, concentration, seed)
        counts = np.random.default_rng(1000 + seed).multinomial(3, truth)
        calibrator = hocal.SnapshotCalibrator(
            hocal.TopLabelPartition(2),
            method=method,  # type: ignore[arg-type]
        ).fit(p[:n_items], counts[:n_items])
        for start in range(n_items, len(p), N_NEW):
            rows = slice(start, start + N_NEW)
            alarms += hocal.Monitor(calibrator, 1 - DELTA).update(p[rows], counts[rows]).alarm
            n_streams += 1

    assert n_streams >= N_STREAMS / 3
    assert alarms <= DELTA * n_streams
