"""Certificates of level sets keep their promise, although their cells were learned from labels."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import hocal
from hocal.calibration.by_cell.fitting import fit_deconvolved
from hocal.calibration.levels import level_sets
from hocal.guarantees.certificates import certify
from hocal.uncertainty.moments import pair_disagreement

pytestmark = pytest.mark.slow

Array = NDArray[np.float64]
DELTA = 0.1
N_WORLDS = 12


def draw_world(n_items: int, n_classes: int, seed: int) -> tuple[Array, Array]:
    """Return label distributions and a noisy prediction of them."""
    generator = np.random.default_rng(seed)
    truth = generator.dirichlet(np.full(n_classes, 0.4), n_items)
    noisy = truth * np.exp(generator.normal(0, 1, truth.shape)) + 0.01
    return truth, noisy / noisy.sum(axis=1, keepdims=True)


def entropy(p: Array) -> Array:
    return np.asarray(-(p * np.log(np.maximum(p, 1e-300))).sum(axis=1))


def means_by_level(levels: NDArray[np.intp], values: Array, n_levels: int) -> Array:
    """Return the mean of each level; NaN, which lies outside of no interval, for an empty one."""
    sums = np.bincount(levels, values, minlength=n_levels)
    n_items = np.bincount(levels, minlength=n_levels)
    return np.asarray(np.where(n_items > 0, sums / np.maximum(n_items, 1), np.nan))


@pytest.mark.parametrize(
    ("n_classes", "k", "by"),
    [(2, 2, "aleatoric"), (3, 3, "aleatoric"), (10, 2, "aleatoric"), (3, 2, "epistemic")],
)
def test_level_sets_miss_no_more_often_than_promised(n_classes: int, k: int, by: str) -> None:
    """The truth of a level is the mean entropy of many fresh items that are assigned to it."""
    misses = total = 0
    for seed in range(N_WORLDS):
        truth, predictions = draw_world(4400, n_classes, seed)
        counts = np.random.default_rng(1000 + seed).multinomial(k, truth[:400])
        calibrator = hocal.SnapshotCalibrator().fit(predictions[:400], counts)
        certificate = calibrator.certify(1 - DELTA, by=by)  # type: ignore[arg-type]
        levels = calibrator.level(predictions[400:], by)  # type: ignore[arg-type]

        lower, upper = certificate.interval("aleatoric")
        means = means_by_level(levels, entropy(truth[400:]), len(certificate))
        misses += int(((means < lower) | (means > upper)).sum())
        total += int(np.isfinite(means).sum())

    assert misses <= stats.binom.ppf(0.999, total, DELTA)


def test_levels_made_from_an_items_own_labels_would_be_wrong() -> None:
    """The trap: sort items by what their own labels say, and certify with the same labels."""
    truth, predictions = draw_world(400, 3, 0)
    counts = np.random.default_rng(1).multinomial(2, truth)
    own = pair_disagreement(counts) + 1e-6 * predictions[:, 0]

    levels = level_sets(own, predictions, counts)
    fit = fit_deconvolved(levels.statistics)
    certificate = certify(levels.statistics, fit.mixtures(), confidence=0.9, aligned=True)

    lower, upper = certificate.interval("aleatoric")
    means = means_by_level(levels.assign(own), entropy(truth), len(certificate))
    assert ((means < lower) | (means > upper)).mean() > 0.5
