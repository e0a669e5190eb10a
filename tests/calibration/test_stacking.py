"""Mixtures moved towards the expected disagreement, and how far."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from hocal._base.typing import Array
from hocal.calibration.by_item.anchors import Anchored
from hocal.calibration.by_item.shapes import (
    ALL_POOL,
    SPLIT_POOL,
    all_shapes,
    component_shannon,
    split_shapes,
)
from hocal.calibration.by_item.stacking import Stacking, stack
from hocal.calibration.by_item.weights import STIFFNESS, Shapes, approach, solve_tilts

N_FOLDS = 5


def items(n_items: int) -> tuple[Array, Shapes]:
    """Return logits and components of items with five classes."""
    generator = np.random.default_rng(0)
    prediction = generator.dirichlet(np.ones(5), size=n_items)
    split = split_shapes(prediction, np.ones((1, n_items)))
    weights = np.full((len(SPLIT_POOL.base), n_items), 1 / len(SPLIT_POOL.base))
    shapes = all_shapes(prediction, split, weights)
    shapes = shapes._replace(shannon=component_shannon(prediction, weights))
    return ALL_POOL.base[:, None] + generator.normal(size=shapes.brier.shape), shapes


def mean_brier(weights: Array, shapes: Shapes) -> Array:
    return np.asarray((weights * shapes.brier).sum(axis=0))


def unmoved(logits: Array, shapes: Shapes) -> Array:
    return solve_tilts(logits, shapes.outside, shapes.share, np.zeros(logits.shape[1]))[1]


def test_the_mean_stays() -> None:
    logits, shapes = items(200)

    weights = approach(logits, shapes, np.full(200, 0.4), 0.5)

    assert (weights * shapes.outside).sum(axis=0) == pytest.approx(shapes.share, abs=1e-7)


def test_no_way_leaves_weights_as_they_are() -> None:
    logits, shapes = items(200)

    weights = approach(logits, shapes, np.full(200, 0.4), 0.0)

    assert weights == pytest.approx(unmoved(logits, shapes), abs=1e-6)


def test_uncertainty_ends_half_way_where_components_reach_so_far() -> None:
    logits, shapes = items(500)
    before = mean_brier(unmoved(logits, shapes), shapes)

    after = mean_brier(approach(logits, shapes, before + 0.04, 0.5), shapes)

    assert np.median(after - before) == pytest.approx(0.02, abs=0.001)


def test_two_steps_are_near_the_nearest_weights() -> None:
    """Of all weights those whose logarithms move least, found by a general minimiser."""
    logits, shapes = items(20)
    before = mean_brier(unmoved(logits, shapes), shapes)
    expected = before + 0.05
    found = mean_brier(approach(logits, shapes, expected, 0.5), shapes)

    for item in range(20):
        functions = np.stack([shapes.brier[:, item], shapes.outside[:, item]])
        wanted = np.array([(before[item] + expected[item]) / 2, shapes.share[item]])

        def loss(slopes: Array, at: int = item, f: Array = functions, w: Array = wanted) -> float:
            stiff = 0.5 * STIFFNESS * slopes[0] ** 2
            return float(logsumexp(logits[:, at] + slopes @ f) - slopes @ w + stiff)

        best = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-4}).x
        weights = np.exp(logits[:, item] + best @ functions)
        brier = weights @ functions[0] / weights.sum()
        assert found[item] == pytest.approx(brier, abs=3e-3)


def stacked(right: str) -> Stacking:
    """Bring mixtures and a regression together, one of which knows the truth."""
    logits, shapes = items(4000)
    generator = np.random.default_rng(1)
    mixture = mean_brier(unmoved(logits, shapes), shapes)
    regression = np.clip(mixture + 0.15 * generator.normal(size=4000), 0.01, 0.95)
    truth = {"mixture": mixture, "regression": regression, "mean": (mixture + regression) / 2}
    observed = (generator.random(4000) < truth[right]).astype(float)
    anchored = Anchored(logits, shapes, np.zeros(4000, dtype=np.intp), regression)
    shifts = np.zeros((1 + N_FOLDS, 1, 2))
    return stack(anchored, shifts, observed, np.ones(4000), np.arange(4000) % N_FOLDS)


@pytest.mark.parametrize(("right", "way"), [("mixture", 0.0), ("mean", 0.5), ("regression", 1.0)])
def test_the_way_leads_to_the_one_that_is_right(right: str, way: float) -> None:
    assert stacked(right).ways == pytest.approx(way, abs=0.15)


def test_cells_keep_their_level() -> None:
    assert stacked("mean").offsets == pytest.approx(0, abs=0.01)
