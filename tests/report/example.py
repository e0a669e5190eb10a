"""A small world to report on, with names that would break a careless page."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import hocal
from hocal.datasets import make_mixture_world

IMAGE_ATTACK = "<img src=x onerror=alert(1)>"
SCRIPT_ATTACK = "</script><script>alert(1)</script>"
CLASSES = ["cat", IMAGE_ATTACK, SCRIPT_ATTACK, "{{ 7 * 7 }} & <!-- fox"]


class Example(NamedTuple):
    """A calibrator, and items to report on."""

    calibrator: hocal.SnapshotCalibrator
    probabilities: NDArray[np.float64]
    counts: NDArray[np.int64]
    images: NDArray[np.uint8]


def make_example() -> Example:
    """Calibrate on 400 items with four labels each and keep 400 others."""
    world = make_mixture_world(800, 4, random_state=0)
    counts, half = world.draw(4, random_state=1), slice(400, None)
    calibrator = hocal.SnapshotCalibrator(hocal.TopLabelPartition(5)).fit(
        world.predictions[:400], counts[:400]
    )
    images = np.random.default_rng(2).integers(0, 256, (400, 8, 8), dtype=np.uint8)
    return Example(calibrator, world.predictions[half], counts[half], images)
