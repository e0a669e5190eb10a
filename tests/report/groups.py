"""Worlds of groups: all alike, or one in which people disagree or the model knows less."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import hocal
from hocal.report import Summary, summarise

N_ITEMS = 1_500
N_CLASSES = 3


class Groups(NamedTuple):
    """Items of nine groups: three classes, three levels of confidence."""

    predictions: NDArray[np.float64]
    truth: NDArray[np.float64]  #: what people say
    counts: NDArray[np.int64]


def make_groups(seed: int, *, k: int = 5, torn: bool = False, unknown: bool = False) -> Groups:
    """Return a world in which nine in ten people agree with every prediction.

    Where the model predicts the first class, people may be torn between the first two, or half of
    the items may be of the second class.
    """
    rng = np.random.default_rng(seed)
    predictions = rng.dirichlet(np.ones(N_CLASSES), N_ITEMS)
    order = np.argsort(-predictions, axis=1)
    truth = np.empty_like(predictions)
    np.put_along_axis(truth, order, np.array([[0.9, 0.06, 0.04]]), axis=1)
    first = order[:, 0] == 0
    if torn:
        truth[first] = [0.48, 0.48, 0.04]
    if unknown:
        other = first & (rng.random(N_ITEMS) < 0.5)
        truth[other] = [0.06, 0.9, 0.04]
    return Groups(predictions, truth, rng.multinomial(k, truth))


def summarise_groups(groups: Groups, n_slices: int = 3) -> Summary:
    """Fit mixtures of cells, which is quick, and summarise the same items."""
    calibrator = hocal.SnapshotCalibrator(hocal.TopLabelPartition(n_slices), method="cells")
    calibrator.fit(groups.predictions, groups.counts)
    return summarise(calibrator, groups.predictions, planning=False, n_listed=5, n_gallery=2)
