"""Credal sets: hulls and intervals of the likely atoms, and how often they hold the truth."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import betainc

import hocal
from hocal import Mixtures
from hocal.uncertainty import Exponential, credal_set

SEED = 20240613
TRIANGLE = [[[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.3, 0.2, 0.5]]]


def random_members(n_items: int, n_members: int, n_classes: int) -> np.ndarray:
    generator = np.random.default_rng(SEED)
    return generator.dirichlet(np.ones(n_classes), size=(n_items, n_members))


def points_near(members: np.ndarray) -> np.ndarray:
    """Half of them averages of the members, half pulled away to anywhere."""
    generator = np.random.default_rng(SEED + 1)
    n_items, n_members, n_classes = members.shape
    shares = generator.dirichlet(np.ones(n_members), size=n_items)
    inside = (shares[..., None] * members).sum(axis=1)
    away = 0.6 * inside + 0.4 * generator.dirichlet(np.full(n_classes, 0.3), size=n_items)
    return np.where((np.arange(n_items) % 2 == 0)[:, None], inside, away)


def is_average(point: np.ndarray, members: np.ndarray) -> bool:
    """One linear programme per item: weights that give the point exist."""
    equations = np.vstack([members.T, np.ones(len(members))])
    return bool(linprog(np.zeros(len(members)), A_eq=equations, b_eq=np.append(point, 1)).success)


def test_lower_and_upper_probabilities_are_the_least_and_largest_of_the_members() -> None:
    sets = credal_set(Mixtures.from_ensemble(TRIANGLE), coverage=1)

    np.testing.assert_allclose(sets.lower, [[0.2, 0.2, 0.1]])
    np.testing.assert_allclose(sets.upper, [[0.6, 0.7, 0.5]])


def test_a_triangle_holds_the_points_with_barycentric_coordinates_from_0_to_1() -> None:
    points = np.random.default_rng(SEED).dirichlet(np.ones(3), size=500)
    coordinates = np.linalg.solve(np.transpose(TRIANGLE[0]), points.T).T

    sets = credal_set(Mixtures.from_ensemble(TRIANGLE * 500), coverage=1)

    expected = (coordinates >= 0).all(axis=1)
    assert 0.05 < expected.mean() < 0.95
    assert (sets.contains(points) == expected).all()


def test_hulls_hold_what_a_linear_programme_for_each_item_finds_to_be_an_average() -> None:
    members = random_members(150, 6, 5)
    points = points_near(members)

    inside = credal_set(Mixtures.from_ensemble(members), coverage=1).contains(points)

    expected = [is_average(point, own) for point, own in zip(points, members, strict=True)]
    assert 70 < sum(expected) < 150
    assert inside.tolist() == expected


def test_intervals_hold_all_that_hulls_hold_and_more() -> None:
    members = random_members(150, 6, 5)
    points = points_near(members)
    mixtures = Mixtures.from_ensemble(members)

    hulls = credal_set(mixtures, shape="hull", coverage=1).contains(points)
    intervals = credal_set(mixtures, shape="intervals", coverage=1).contains(points)

    assert (intervals >= hulls).all()
    assert intervals.sum() > hulls.sum()


def test_of_two_classes_a_hull_is_its_interval() -> None:
    members = random_members(150, 3, 2)
    points = points_near(members)
    mixtures = Mixtures.from_ensemble(members)

    hulls = credal_set(mixtures, shape="hull").contains(points)

    assert (hulls == credal_set(mixtures, shape="intervals").contains(points)).all()


def test_of_equally_heavy_members_those_far_from_the_mean_are_left_out() -> None:
    members = [[[0.9, 0.1], [0.5, 0.5], [0.6, 0.4], [0.55, 0.45]]]

    sets = credal_set(Mixtures.from_ensemble(members), coverage=0.7)

    assert sets.upper[0].tolist() == [0.6, 0.5]
    assert sets.mass.tolist() == [0.75]


def test_heavy_atoms_come_before_those_near_the_mean() -> None:
    mixtures = Mixtures([[0.1, 0.9], [0.5, 0.5], [0.9, 0.1]], [0.45, 0.1, 0.45], [0, 3], [0])

    assert credal_set(mixtures, coverage=0.9).lower.tolist() == [[0.1, 0.1]]


@pytest.mark.parametrize("shape", ["hull", "intervals"])
def test_a_set_covers_the_true_distribution_as_often_as_its_beta_distribution_says(
    shape: str,
) -> None:
    """The label distribution of an item is drawn from Beta(3, 2), which its mixture spreads out."""
    mixtures = Mixtures.from_dirichlet([[3, 2]], n_atoms=400)
    share = np.random.default_rng(SEED).beta(3, 2, size=20_000)
    truth = np.column_stack([share, 1 - share])

    alike = mixtures[np.zeros(20_000, int)]
    sets = credal_set(alike, shape=shape, coverage=0.8)  # type: ignore[arg-type]
    known = betainc(3, 2, sets.upper[0, 0]) - betainc(3, 2, sets.lower[0, 0])

    assert hocal.coverage(sets, label_distributions=truth) == pytest.approx(known, abs=0.01)
    assert known == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize("shape", ["hull", "intervals"])
def test_sets_of_the_true_mixtures_cover_at_least_what_was_asked(shape: str) -> None:
    """Label distributions are drawn from the mixtures themselves: four classes, 20 atoms."""
    mixtures = Mixtures.from_ensemble(random_members(1_000, 20, 4))
    truth = mixtures.sample(random_state=SEED)

    sets = credal_set(mixtures, shape=shape, coverage=0.7)  # type: ignore[arg-type]

    standard_error = np.sqrt(0.7 * 0.3 / 1_000)
    assert hocal.coverage(sets, label_distributions=truth) >= 0.7 - 3 * standard_error


def test_sets_of_members_that_are_too_much_alike_cover_less_than_asked() -> None:
    members = random_members(500, 20, 4)
    narrow = 0.3 * members + 0.7 * members.mean(axis=1, keepdims=True)
    truth = Mixtures.from_ensemble(members).sample(random_state=SEED)

    sets = credal_set(Mixtures.from_ensemble(narrow), shape="intervals", coverage=0.9)

    assert hocal.coverage(sets, label_distributions=truth) < 0.5


@pytest.mark.parametrize("entropy", ["shannon", "brier", "zero-one", "spherical", "tsallis"])
def test_upper_entropy_is_the_largest_on_a_grid_between_the_intervals(entropy: str) -> None:
    sets = credal_set(Mixtures.from_ensemble(random_members(5, 4, 3)), shape="intervals")
    grid = np.array([[i, j, 400 - i - j] for i, j in product(range(401), repeat=2) if i + j <= 400])
    values = hocal.uncertainty.get_entropy(entropy).value(grid / 400)

    for lower, upper, most in zip(sets.lower, sets.upper, sets.upper_entropy(entropy), strict=True):
        between = ((grid / 400 >= lower) & (grid / 400 <= upper)).all(axis=1)
        assert most >= values[between].max() - 1e-12
        assert most == pytest.approx(values[between].max(), abs=0.01)


def test_upper_entropy_of_intervals_with_the_even_distribution_is_that_of_a_fair_die() -> None:
    members = [[[0.1, 0.1, 0.8], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1]]]
    sets = credal_set(Mixtures.from_ensemble(members), shape="intervals", coverage=1)

    assert sets.upper_entropy(base=2)[0] == pytest.approx(np.log2(3))


def test_lower_entropy_of_a_hull_is_below_that_of_every_average() -> None:
    members = random_members(200, 5, 4)
    shares = np.random.default_rng(SEED).dirichlet(np.full(5, 0.3), size=200)
    inside = (shares[..., None] * members).sum(axis=1)
    entropies = hocal.uncertainty.Shannon()

    least = credal_set(Mixtures.from_ensemble(members), coverage=1).lower_entropy()

    assert (least <= entropies.value(inside)).all()
    np.testing.assert_allclose(least, entropies.value(members).min(axis=1))


def test_a_mixture_without_atoms_holds_nothing() -> None:
    mixtures = Mixtures([[0.5, 0.3, 0.2]], [1.0], [0, 1, 1], [0, 1])

    hulls = credal_set(mixtures)
    intervals = credal_set(mixtures, shape="intervals")

    assert hulls.contains([[0.5, 0.3, 0.2]] * 2).tolist() == [True, False]
    assert np.isnan(hulls.lower_entropy()).tolist() == [False, True]
    assert np.isnan(intervals.upper_entropy()).tolist() == [False, True]


def test_sets_say_what_they_are() -> None:
    sets = credal_set(Mixtures.from_ensemble(TRIANGLE), coverage=1)

    assert repr(sets) == "CredalSets(1 items, hull, mean mass 1, mean width 0.433)"


@pytest.mark.parametrize("coverage", [0, 1.1, "much"])
def test_a_mass_that_no_set_has_is_refused(coverage: float) -> None:
    with pytest.raises(hocal.InputError, match="`coverage` must be a number greater than 0 and at"):
        credal_set(Mixtures.from_ensemble(TRIANGLE), coverage=coverage)


def test_an_unknown_shape_is_refused() -> None:
    with pytest.raises(hocal.InputError, match="`shape` must be one of 'hull', 'intervals'"):
        credal_set(Mixtures.from_ensemble(TRIANGLE), shape="ball")  # type: ignore[arg-type]


def test_points_of_other_items_are_refused() -> None:
    sets = credal_set(Mixtures.from_ensemble(TRIANGLE))

    with pytest.raises(hocal.InputError, match="must have one row for each of 1 items, got 2"):
        sets.contains([[0.5, 0.3, 0.2]] * 2)


def test_entropy_limits_without_a_closed_form_are_refused() -> None:
    mixtures = Mixtures.from_ensemble(TRIANGLE)

    with pytest.raises(hocal.InputError, match=r'got hull\. Use shape="intervals"'):
        credal_set(mixtures).upper_entropy()
    with pytest.raises(hocal.InputError, match=r'got intervals\. Use shape="hull"'):
        credal_set(mixtures, shape="intervals").lower_entropy()


@pytest.mark.parametrize("entropy", ["ordinal", Exponential((0.0, 1.0, 2.0))], ids=str)
def test_upper_entropy_of_classes_that_differ_is_refused(entropy: Any) -> None:
    with pytest.raises(hocal.InputError, match="`entropy` must treat all classes alike"):
        credal_set(Mixtures.from_ensemble(TRIANGLE), shape="intervals").upper_entropy(entropy)
