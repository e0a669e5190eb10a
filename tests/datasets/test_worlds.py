"""Synthetic worlds have the truth they promise."""

import numpy as np
import pytest

import hocal
from hocal.datasets import (
    World,
    make_ambiguous_digits,
    make_binary_regression,
    make_mixture_world,
    make_xray,
)

WORLDS = {
    "xray ambiguous": lambda seed: make_xray(200, scenario="ambiguous", random_state=seed),
    "xray clear": lambda seed: make_xray(200, scenario="clear", random_state=seed),
    "binary regression": lambda seed: make_binary_regression(200, random_state=seed),
    "mixture": lambda seed: make_mixture_world(200, 4, random_state=seed),
    "digits": lambda seed: make_ambiguous_digits(200, random_state=seed),
}


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest) -> World:
    return WORLDS[request.param](0)


@pytest.mark.parametrize("name", WORLDS)
def test_a_seed_repeats_the_world(name: str) -> None:
    first, second = WORLDS[name](7), WORLDS[name](7)

    for field in ("features", "label_distributions", "predictions", "cells"):
        np.testing.assert_array_equal(getattr(first, field), getattr(second, field))


def test_parts_of_a_world_describe_the_same_items(world: World) -> None:
    parts = (
        world.features,
        world.label_distributions,
        world.predictions,
        world.cells,
        world.mixtures,
    )

    assert {len(part) for part in parts} == {200}


def test_label_distributions_lie_on_the_simplex(world: World) -> None:
    assert world.label_distributions.min() >= 0
    np.testing.assert_allclose(world.label_distributions.sum(axis=1), 1)


def test_items_of_a_cell_share_a_mixture(world: World) -> None:
    pairs = np.unique(np.column_stack([world.cells, world.mixtures.index]), axis=0)

    assert len(pairs) == len(np.unique(world.cells))


def test_drawn_labels_have_the_asked_totals(world: World) -> None:
    totals = np.arange(200) % 5 + 1

    np.testing.assert_array_equal(world.draw(totals, random_state=0).sum(axis=1), totals)


def test_drawing_no_labels_is_refused(world: World) -> None:
    with pytest.raises(ValueError, match="`k` must be an integer of at least 1, got 0"):
        world.draw(0)


def test_xray_worlds_have_one_prediction_and_opposite_uncertainty() -> None:
    ambiguous, clear = (
        hocal.decompose(make_xray(100, scenario=name, random_state=0).mixtures, base=2)
        for name in ("ambiguous", "clear")
    )

    assert (ambiguous.aleatoric[0], ambiguous.epistemic[0]) == (1, 0)
    assert (clear.aleatoric[0], clear.epistemic[0]) == (0, 1)


def test_half_of_the_clear_scans_are_positive() -> None:
    assert make_xray(100, scenario="clear", random_state=0).label_distributions.mean(
        axis=0
    ).tolist() == [0.5, 0.5]


def test_binary_regression_follows_the_formula() -> None:
    """At x = 0 the slow part is alone: p = .5 + .48 sigmoid(8)."""
    world = make_binary_regression(20_000, random_state=0)
    smallest = world.features[:, 0].argmin()

    assert world.label_distributions[smallest, 1] == pytest.approx(
        0.5 + 0.48 / (1 + np.exp(-8)), abs=1e-3
    )


def test_binary_regression_has_ignorance_only_where_the_function_is_fast() -> None:
    world = make_binary_regression(20_000, random_state=0)
    variance = np.square(world.label_distributions - world.predictions)[:, 1]
    fast = world.features[:, 0] > 1.8

    assert variance[fast].mean() > 0.08
    assert variance[world.features[:, 0] < 0.2].max() < 1e-4


def test_binary_regression_mixtures_are_the_truth_of_each_cell() -> None:
    world = make_binary_regression(500, n_bins=10, random_state=0)
    expected = [world.label_distributions[world.cells == cell].mean(axis=0) for cell in world.cells]

    np.testing.assert_allclose(world.mixtures.mean(), expected)


def test_mixture_world_items_follow_the_mixtures_of_their_cells() -> None:
    world = make_mixture_world(50_000, 3, n_cells=2, random_state=0)
    seen = np.array(
        [world.label_distributions[world.cells == cell].mean(axis=0) for cell in (0, 1)]
    )

    np.testing.assert_allclose(seen[world.cells], world.predictions, atol=0.01)


@pytest.mark.parametrize(("ambiguity", "share"), [(0.0, 0.0), (1.0, 0.6)])
def test_ambiguity_moves_uncertainty_from_epistemic_to_aleatoric(
    ambiguity: float, share: float
) -> None:
    parts = hocal.decompose(
        make_mixture_world(100, 3, ambiguity=ambiguity, random_state=0).mixtures
    )

    assert parts.aleatoric.mean() / parts.predictive.mean() >= share
    assert ambiguity > 0 or parts.aleatoric.max() == 0


def test_cells_do_not_depend_on_the_number_of_items() -> None:
    small, large = (make_mixture_world(n, 3, random_state=0).mixtures for n in (10, 1000))

    np.testing.assert_array_equal(small.points, large.points)


def test_features_tell_the_cells_apart_exactly_without_noise() -> None:
    world = make_mixture_world(500, 3, random_state=0)

    assert len(np.unique(world.features, axis=0)) == len(np.unique(world.cells))


def test_noise_spreads_the_features() -> None:
    assert (
        len(np.unique(make_mixture_world(500, 3, noise=0.1, random_state=0).features, axis=0))
        == 500
    )


def test_an_unknown_scenario_is_refused() -> None:
    with pytest.raises(
        ValueError, match="`scenario` must be one of 'ambiguous', 'clear', got 'both'"
    ):
        make_xray(10, scenario="both")


def test_blended_and_blurred_digits_are_ambiguous_and_clean_ones_are_not() -> None:
    world = make_ambiguous_digits(2000, random_state=0)
    entropy = hocal.decompose(hocal.Mixtures.from_points(world.label_distributions)).aleatoric

    assert (entropy < 0.05).mean() > 0.25
    assert (entropy > 0.5).mean() > 0.25


def test_the_student_of_digits_is_useful_but_weak() -> None:
    world = make_ambiguous_digits(2000, random_state=0)
    agreement = (
        world.predictions.argmax(axis=1) == world.label_distributions.argmax(axis=1)
    ).mean()

    assert 0.7 < agreement < 0.9


def test_many_digits_are_taught_like_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The distances of all to all would take gigabytes: they are computed block by block."""
    at_once = make_ambiguous_digits(50, random_state=0)
    monkeypatch.setattr("hocal.datasets.digits.TAUGHT_AT_ONCE", 7)

    in_blocks = make_ambiguous_digits(50, random_state=0)

    np.testing.assert_allclose(
        in_blocks.label_distributions, at_once.label_distributions, rtol=1e-12
    )


def test_a_million_digits_are_refused() -> None:
    with pytest.raises(hocal.InputError, match="`n_items` must be at most 200,000, got 1,000,000"):
        make_ambiguous_digits(10**6)


def test_pixels_of_digits_lie_between_zero_and_one() -> None:
    pixels = make_ambiguous_digits(500, random_state=1).features

    assert pixels.min() >= 0
    assert pixels.max() <= 1


def test_numbers_of_labels_are_one_or_one_an_item() -> None:
    with pytest.raises(
        ValueError, match=r"`k` must be one number, or one for each of 5 items, got shape \(2,\)"
    ):
        make_xray(5).draw([1, 2])
