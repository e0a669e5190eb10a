"""A small world with known truth, calibrated once for all displays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import matplotlib
import numpy as np
import pytest
from numpy.typing import NDArray

import hocal
from hocal.datasets import World, make_mixture_world


class Scene(NamedTuple):
    """A fitted calibrator and test items it has not seen."""

    calibrator: hocal.SnapshotCalibrator
    test: World
    counts: NDArray[np.int64]  # five labels per item

    @property
    def cells(self) -> NDArray[np.intp]:
        """Cells of the test items."""
        return self.calibrator.partition_.assign(self.test.predictions)


def make_scene(method: str) -> Scene:
    """Calibrate on 600 items of 12 cells with five labels per item; draw as many for 500 more."""
    world, test = (
        make_mixture_world(n, 3, n_cells=12, ambiguity=0.4, random_state=3) for n in (600, 500)
    )
    partition = hocal.TopLabelPartition(n_slices=5)
    calibrator = hocal.SnapshotCalibrator(partition, method=method)  # type: ignore[arg-type]
    calibrator.fit(world.predictions, world.draw(5, random_state=1))
    return Scene(calibrator, test, test.draw(5, random_state=2))


@pytest.fixture(scope="session")
def scene() -> Scene:
    return make_scene("cells")


@pytest.fixture(scope="session")
def item_scene() -> Scene:
    return make_scene("items")


@pytest.fixture(scope="session")
def empirical_scene() -> Scene:
    return make_scene("empirical")


@pytest.fixture(autouse=True)
def _global_state_stays() -> Iterator[None]:
    """Whatever a test draws, matplotlib's settings, backend and figures stay as they were."""
    import matplotlib.pyplot as plt

    before = dict(matplotlib.rcParams), matplotlib.get_backend(), plt.get_fignums()
    yield
    assert (dict(matplotlib.rcParams), matplotlib.get_backend(), plt.get_fignums()) == before
