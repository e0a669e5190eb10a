"""Uncertainty of items settled at targets, anchored to cells, and brought together."""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import norm

import hocal
from hocal._base.typing import Array
from hocal.calibration.by_item.anchors import (
    FACTOR,
    FARTHEST,
    HALF_WAY,
    HALF_WAYS,
    OFF,
    OFF_BY,
    OWN_DOUBT,
    anchor_brier,
    anchor_shannon,
    choose_half_way,
    left_open,
    weigh_up,
)
from hocal.calibration.by_item.settling import (
    CLOSE,
    SPLIT_LEVELS,
    SPLIT_RATE,
    STIFFNESS,
    Settled,
    Unsettled,
    settle,
    shannon_slopes,
    unsettled,
)
from hocal.calibration.by_item.shapes import (
    SPLIT_POOL,
    Beyond,
    all_pool,
    all_shapes,
    split_shapes,
    with_split,
)
from hocal.calibration.by_item.stacking import choose_ways
from hocal.calibration.by_item.weights import Shapes, softmax

N_FOLDS = 5
N_CLASSES = 5


@cache
def predictions(n_items: int) -> Array:
    return np.random.default_rng(0).dirichlet(np.ones(N_CLASSES), size=n_items)


def shapes_of(prediction: Array, split_logits: Array) -> tuple[Shapes, Unsettled]:
    """Return components of items given a split, and the items with weights at random."""
    n_items = len(prediction)
    split = split_shapes(prediction, np.ones((1, n_items)))
    shapes, beyond = all_shapes(prediction, prediction, split, softmax(split_logits.copy()))
    noise = np.random.default_rng(1).normal(size=shapes.brier.shape)
    base = all_pool(prediction.shape[1], False).base[:, None]
    return shapes, unsettled(split_logits, beyond, base + noise, shapes)


def items(n_items: int) -> Unsettled:
    return items_around(predictions(n_items))


def items_around(prediction: Array) -> Unsettled:
    return shapes_of(prediction, np.zeros((len(SPLIT_POOL.base), len(prediction))))[1]


def mean_brier(found: Settled) -> Array:
    return np.asarray((found.weights * found.shapes.brier).sum(axis=0))


def mean_shannon(found: Settled) -> Array:
    return np.asarray((found.weights * found.shapes.shannon).sum(axis=0))


def test_the_mean_stays() -> None:
    some = items(200)

    found = settle(some, np.full(200, 0.4), np.full(200, -3.0))

    outside = (found.weights * some.shapes.outside).sum(axis=0)
    assert outside == pytest.approx(some.shapes.share, abs=1e-7)


def test_the_own_uncertainty_as_target_leaves_weights_as_they_are() -> None:
    some = items(200)

    found = settle(some, some.brier, np.zeros(200))

    assert found.weights == pytest.approx(some.weights, abs=1e-6)


@pytest.mark.parametrize("shift", [-5.0, 0.0, 5.0])
def test_targets_are_reached_where_components_reach_so_far(shift: float) -> None:
    some = items(500)

    after = mean_brier(settle(some, some.brier + 0.02, np.full(500, shift)))

    assert np.median(np.abs(after - some.brier - 0.02)) < 0.001


@pytest.mark.parametrize("shift", [-10.0, 10.0])
@pytest.mark.parametrize("n_classes", [3, 20, 100])
def test_targets_are_reached_whatever_the_shift(n_classes: int, shift: float) -> None:
    """With many classes Shannon uncertainty differs much, and plain steps of Newton oscillate."""
    some = items_around(np.random.default_rng(0).dirichlet(np.ones(n_classes), size=300))
    target = 0.9 * some.brier

    after = mean_brier(settle(some, target, np.full(300, shift)))

    stiff = STIFFNESS * 40  # a slope that is needed by few
    assert np.quantile(np.abs(after - target), 0.9) < CLOSE + stiff


def test_the_nearest_weights_are_found() -> None:
    """Of all weights those whose logarithms move least, found by a general minimiser."""
    some = items(20)
    shift = -2.0
    found = settle(some, some.brier + 0.02, np.full(20, shift))
    brier, shannon = found.shapes.brier, found.shapes.shannon
    logits = some.logits + shift * (shannon - some.ratio * brier)

    for item in range(20):
        functions = np.stack([brier[:, item], some.shapes.outside[:, item]])
        wanted = np.array([some.brier[item] + 0.02, some.shapes.share[item]])

        def loss(slopes: Array, at: int = item, f: Array = functions, w: Array = wanted) -> float:
            stiff = 0.5 * STIFFNESS * slopes[0] ** 2
            return float(logsumexp(logits[:, at] + slopes @ f) - slopes @ w + stiff)

        best = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-4}).x
        weights = np.exp(logits[:, item] + best @ functions)
        expected = weights @ functions[0] / weights.sum()
        assert mean_brier(found)[item] == pytest.approx(expected, abs=CLOSE)


def test_a_shift_moves_shannon_and_leaves_brier() -> None:
    some = items(500)
    lower, higher = (settle(some, some.brier, np.full(500, shift)) for shift in (-3.0, 3.0))

    assert (mean_shannon(lower) < mean_shannon(higher)).mean() > 0.99
    assert np.median(np.abs(mean_brier(lower) - mean_brier(higher))) < 1e-3


def test_a_shift_is_harmless_where_one_component_has_all_weight() -> None:
    """In single precision nothing is left of what varies between components."""
    some = items(500)
    logits = some.logits.astype(np.float32)
    logits[5] += 16
    shapes = Shapes(*(np.asarray(part, np.float32) for part in some.shapes))
    beyond = Beyond(*(np.asarray(part, np.float32) for part in some.beyond))
    certain = unsettled(some.split_logits.astype(np.float32), beyond, logits, shapes)

    found = settle(certain, certain.brier, np.full(500, -3.0, np.float32))

    assert ((certain.ratio > 1) & (certain.ratio < 3)).all()
    assert mean_brier(found) == pytest.approx(certain.brier, abs=1e-3)


def test_slopes_are_near_finite_differences() -> None:
    some = items(300)
    low, middle, high = (
        settle(some, some.brier, np.full(300, shift)) for shift in (-0.1, 0.0, 0.1)
    )

    slopes = shannon_slopes(some, middle)

    differences = (mean_shannon(high) - mean_shannon(low)) / 0.2
    assert slopes.mean() == pytest.approx(differences.mean(), rel=0.1)


def test_another_split_changes_components_as_if_it_had_been_learnt() -> None:
    some = items(100)
    moved = some.split_logits + SPLIT_RATE * 4.0 * SPLIT_LEVELS[:, None]
    expected, _ = shapes_of(predictions(100), moved)

    found = with_split(some.shapes, some.beyond, softmax(moved.copy()))

    assert found.brier == pytest.approx(expected.brier, abs=1e-12)
    assert found.shannon == pytest.approx(expected.shannon, abs=1e-12)


def test_items_of_a_cell_are_moved_alike_and_half_way_with_enough_of_them() -> None:
    cells = np.repeat([0, 1], [50, 5000])
    expected = np.linspace(0.1, 0.3, 5050)
    means = np.array([expected[:50].mean(), expected[50:].mean()])
    levels = np.column_stack([means + 0.1, [0.5, 0.5]])

    offsets, _ = anchor_brier(expected, cells, levels, 50.0)

    assert offsets == pytest.approx([0.05, 0.1 * 5000 / 5050])


def test_cells_without_a_level_stay() -> None:
    levels = np.array([[np.nan, np.nan], [0.2, 0.4]])

    offsets, shannon = anchor_brier(np.full(20, 0.2), np.repeat([0, 1], 10), levels, 50.0)

    assert offsets == pytest.approx([0, 0])
    assert np.isnan(shannon[0])
    assert shannon[1] == pytest.approx(0.4)


def test_shannon_goes_along_where_items_stay_away_from_their_level() -> None:
    """Ten items stay five sixths of the way from the level of Brier, and so of Shannon."""
    offsets, shannon = anchor_brier(
        np.full(10, 0.3), np.zeros(10, int), np.array([[0.2, 0.4]]), 50.0
    )

    assert offsets == pytest.approx([-0.1 / 6])
    assert shannon == pytest.approx([0.4 + 2 * 0.1 * 5 / 6])


def world_of_cells(effect: float, n_cells: int = 100, size: int = 200) -> tuple[Array, ...]:
    """Return expected and observed disagreement, weights and cells; cells have an effect."""
    generator = np.random.default_rng(0)
    cells = np.repeat(np.arange(n_cells), size)
    expected = generator.uniform(0.2, 0.6, size=len(cells))
    truth = expected + effect * generator.normal(size=n_cells)[cells]
    observed = (generator.random(len(cells)) < truth).astype(float)
    return expected, observed, np.full(len(cells), 1 / 3), cells


def test_half_way_is_the_noise_of_an_item_over_the_effect_of_cells() -> None:
    """Disagreement has a variance of .227, cells one of .0025."""
    expected, observed, weights, cells = world_of_cells(effect=0.05, n_cells=1000)

    found = choose_half_way(expected, observed, weights, cells)

    assert found == pytest.approx(0.227 / 0.0025, rel=0.2)


def test_half_way_is_far_where_cells_are_off_by_chance_alone() -> None:
    few = choose_half_way(*world_of_cells(effect=0.0, n_cells=10))
    many = choose_half_way(*world_of_cells(effect=0.0, n_cells=400))

    assert HALF_WAY < few < many
    assert many > 10 * HALF_WAY


def test_half_way_stays_where_nothing_is_known() -> None:
    expected, observed, weights, cells = world_of_cells(effect=0.0, n_cells=1, size=5)

    assert choose_half_way(expected, observed, weights, cells) == pytest.approx(HALF_WAY, rel=0.2)
    assert choose_half_way(expected, observed, 0 * weights, cells) == HALF_WAY


def test_half_way_is_the_mean_logarithm_under_bayes_rule() -> None:
    """By densities of the cells' means, one after the other; items count by their weights."""
    expected, observed, _, cells = world_of_cells(effect=0.1, n_cells=7, size=30)
    weights = np.random.default_rng(1).choice([0.0, 1 / 3, 0.6], size=len(cells))
    gaps = observed - expected
    chance = np.average(gaps**2, weights=weights)
    posterior = norm.pdf(np.log(HALF_WAYS / HALF_WAY), 0, FACTOR)
    for cell in range(7):
        own = cells == cell
        shares = weights[own] / weights[own].sum()
        variances = chance * (shares @ shares) + chance / HALF_WAYS
        posterior *= norm.pdf(shares @ gaps[own], 0, np.sqrt(variances))

    found = choose_half_way(expected, observed, weights, cells)

    mean = np.average(np.log(HALF_WAYS), weights=posterior)
    assert found == pytest.approx(np.exp(mean), rel=1e-9)


def anchored(doubt: float) -> tuple[float, float, float]:
    """Return the own level, the wanted one and what comes out."""
    some = items(2000)
    cells = np.arange(2000) % 4
    own = mean_shannon(settle(some, some.brier, np.zeros(2000))).mean()
    wanted = own - 0.05
    shifts, _ = anchor_shannon(some, some.brier, cells, np.full(4, wanted), doubt)
    found = mean_shannon(settle(some, some.brier, shifts[cells])).mean()
    return float(own), float(wanted), float(found)


def test_cells_come_near_their_shannon_uncertainty() -> None:
    own, wanted, found = anchored(doubt=0.0)

    assert abs(found - wanted) < 0.25 * (own - wanted)


def test_levels_that_labels_leave_open_move_items_less() -> None:
    own, wanted, found = anchored(doubt=0.5)

    assert abs(found - own) < 0.25 * (own - wanted)


def test_cells_without_any_level_are_not_shifted() -> None:
    some = items(50)

    found, given = anchor_shannon(
        some, some.brier, np.zeros(50, int), np.array([np.nan, np.nan]), 0.1
    )

    assert found == pytest.approx([0, 0])
    assert given == 0


@pytest.mark.slow
def test_brier_gives_way_where_no_shift_leads_to_the_level() -> None:
    """Half tosses of a coin, half certain: no weights with Brier's 1/4 have Shannon's ln(2) / 2."""
    generator = np.random.default_rng(0)
    share = np.where(generator.random(20_000) < 0.5, 0.5, generator.integers(2, size=20_000))
    counts = generator.binomial(5, share)
    predictions = np.tile([0.5, 0.5], (20_000, 1)) + generator.normal(0, 0.01, (20_000, 1)) * [
        1,
        -1,
    ]

    calibrator = hocal.SnapshotCalibrator().fit(predictions, np.column_stack([counts, 5 - counts]))

    found = calibrator.decompose(predictions).aleatoric.mean()
    assert found == pytest.approx(0.5 * np.log(2), abs=0.006)


def test_fewer_labels_and_more_classes_leave_more_open() -> None:
    assert left_open(2, 10) == pytest.approx(4 * left_open(4, 10))
    assert left_open(2, 100) == pytest.approx(8 * left_open(2, 10))


@pytest.mark.parametrize("level", [0.9, 1.02, 1.2, 1.6])
@pytest.mark.parametrize("doubt", [0.01, 0.1])
def test_what_weights_and_levels_say_is_weighed_up_by_bayes(level: float, doubt: float) -> None:
    """What both differ by is measured in units of their geometric mean."""
    gap = (level - 1) / np.sqrt(level)
    truth = np.linspace(-2, 4, 60_001)
    usual = norm.pdf(gap, truth, doubt)
    off = norm.pdf(gap, truth, np.hypot(doubt, OFF_BY))
    posterior = norm.pdf(0, truth, OWN_DOUBT) * ((1 - OFF) * usual + OFF * off)

    found = weigh_up(1.0, level, doubt**2)

    way = (posterior @ truth) / posterior.sum() / gap
    assert found == pytest.approx(1 + way * (level - 1), abs=1e-6)


def test_levels_that_say_something_else_altogether_are_hardly_believed() -> None:
    slightly, wholly = weigh_up(1.0, 0.95, 0.0), weigh_up(1.0, 0.4, 0.0)

    assert slightly == pytest.approx(0.95, abs=0.003)
    assert wholly > 0.95
    assert weigh_up(1.0, 0.0, 0.1) == pytest.approx(1.0, abs=0.1)
    assert weigh_up(0.0, 0.0, 0.1) == 0


def test_more_classes_start_from_a_narrower_spread_above_the_middle() -> None:
    few, more, many = (all_pool(n_classes, False) for n_classes in (2, 10, 100))
    level = many.kinds[:, 1]
    dirichlet = many.kinds[:, [0, 2]].sum(axis=1) == 0

    assert few.base.tolist() == more.base.tolist()
    assert (many.kinds == few.kinds).all()
    high, low = dirichlet & (level > 1), dirichlet & (level < -1)
    assert (many.base[high] < few.base[high] - 1).all()
    assert (many.base[low] > few.base[low]).all()


def test_shifts_end_before_they_lead_astray() -> None:
    """Where nearly all weight is on one component, no shift makes items much less uncertain."""
    some = items(200)
    logits = np.full_like(some.logits, -5.0)
    logits[3] = 0
    single = unsettled(some.split_logits, some.beyond, logits, some.shapes)
    level = 0.8 * float((single.weights * single.shapes.shannon).sum(axis=0).mean())

    shifts, _ = anchor_shannon(single, single.brier, np.zeros(200, int), np.array([level]), 0.0)

    assert shifts == pytest.approx([FARTHEST[0]])


LAPSES = 0.01 + 0.89 * np.eye(11)


@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("k", "most"), [(2, 0.12), (3, 0.05)])
def test_lapses_are_not_taken_for_certainty(k: int, most: float, known: bool) -> None:
    """Nine labels in ten name one class, which the model knows or not: .555 nats."""
    generator = np.random.default_rng(3)
    truth = LAPSES[generator.integers(11, size=5_000)]
    noise = np.exp(0.1 * generator.normal(size=truth.shape))
    predictions = (truth if known else np.ones_like(truth)) * noise
    predictions /= predictions.sum(axis=1, keepdims=True)

    calibrator = hocal.SnapshotCalibrator().fit(predictions, generator.multinomial(k, truth))

    found = calibrator.decompose(predictions).aleatoric.mean()
    assert found == pytest.approx(-(LAPSES[0] * np.log(LAPSES[0])).sum(), abs=most)


@pytest.mark.parametrize(("right", "way"), [("mixture", 0.0), ("mean", 0.5), ("regression", 1.0)])
def test_the_way_leads_to_the_one_that_is_right(right: str, way: float) -> None:
    generator = np.random.default_rng(1)
    mixture = items(4000).brier
    regression = np.clip(mixture + 0.15 * generator.normal(size=4000), 0.01, 0.95)
    truth = {"mixture": mixture, "regression": regression, "mean": (mixture + regression) / 2}
    observed = (generator.random(4000) < truth[right]).astype(float)
    folds = np.arange(4000) % N_FOLDS

    ways = choose_ways(mixture, regression, observed, np.ones(4000), folds)

    assert ways == pytest.approx(way, abs=0.15)


def test_without_labels_that_differ_the_way_is_even() -> None:
    nothing = np.zeros(10)

    ways = choose_ways(np.full(10, 0.2), np.full(10, 0.4), nothing, nothing, np.arange(10) % 5)

    assert ways == pytest.approx(np.full(6, 0.5))
