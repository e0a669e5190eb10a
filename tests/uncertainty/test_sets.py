"""Prediction sets: mass, membership, expansion."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hocal.guarantees
from hocal import Mixtures, predict_set

SEED = 20240612


def random_mixtures(n_items: int = 20, n_atoms: int = 9, n_classes: int = 4) -> Mixtures:
    generator = np.random.default_rng(SEED)
    points = generator.dirichlet(np.full(n_classes, 0.7), size=n_items * n_atoms)
    weights = generator.dirichlet(np.ones(n_atoms), size=n_items).ravel()
    return Mixtures(points, weights, np.arange(n_items + 1) * n_atoms, np.arange(n_items))


@pytest.mark.parametrize("shape", ["atoms", "ball"])
@given(coverage=st.floats(0.01, 0.99))
def test_sets_have_at_least_the_mass_asked_for(shape: str, coverage: float) -> None:
    sets = predict_set(random_mixtures(), coverage=coverage, shape=shape)  # type: ignore[arg-type]

    assert (sets.mass >= coverage - 1e-9).all()


def test_heaviest_atoms_are_the_fewest_that_reach_the_mass() -> None:
    mixtures = Mixtures([[0.1, 0.9], [0.5, 0.5], [0.9, 0.1]], [0.2, 0.5, 0.3], [0, 3], [0])

    sets = predict_set(mixtures, coverage=0.75)

    assert sets.centres.points.tolist() == [[0.5, 0.5], [0.9, 0.1]]


def test_mass_of_atom_sets_is_the_probability_that_a_draw_falls_inside() -> None:
    mixtures = random_mixtures()
    sets = predict_set(mixtures, coverage=0.6)

    inside = [
        sets.contains(np.tile(mixtures.points[9 * i + a], (20, 1)))[i]
        for i in range(20)
        for a in range(9)
    ]

    np.testing.assert_allclose(
        (np.reshape(inside, (20, 9)) * mixtures.weights.reshape(20, 9)).sum(1), sets.mass
    )


def test_ball_of_a_point_mass_has_radius_zero() -> None:
    assert predict_set(Mixtures.from_points([[0.3, 0.7]]), shape="ball").radius.tolist() == [0.0]


def test_ball_radius_is_the_quantile_of_the_distance_to_the_mean() -> None:
    """Vertices with weights .95 and .05 have mean (.95, .05), .1 away from the nearer one."""
    sets = predict_set(Mixtures.from_vertices([[0.95, 0.05]]), coverage=0.9, shape="ball")

    assert sets.radius[0] == pytest.approx(0.1)


def test_ball_contains_its_boundary() -> None:
    sets = predict_set(Mixtures.from_vertices([[0.95, 0.05]]), coverage=0.9, shape="ball")

    assert sets.contains([[1.0, 0.0]]).tolist() == [True]


def test_expansion_reaches_points_within_delta_in_l1() -> None:
    sets = predict_set(Mixtures.from_points([[0.5, 0.5]])).expand(0.2)

    assert [sets.contains([[p, 1 - p]])[0] for p in (0.4, 0.39)] == [True, False]


def test_expanding_twice_adds_the_distances() -> None:
    sets = predict_set(random_mixtures()).expand(0.1).expand(0.2)

    assert sets.delta == pytest.approx(0.3)


def test_items_of_one_cell_share_their_set() -> None:
    mixtures = Mixtures([[1, 0], [0, 1]], [0.5, 0.5], [0, 2], [0, 0, 0])

    assert len(predict_set(mixtures)) == 3


def test_an_empty_mixture_contains_nothing_and_has_no_mass() -> None:
    mixtures = Mixtures([[1.0, 0.0]], [1.0], [0, 1, 1], [0, 1])

    sets = predict_set(mixtures)

    assert sets.contains([[1, 0], [1, 0]]).tolist() == [True, False]
    assert np.isnan(sets.mass[1])


@pytest.mark.parametrize("shape", ["atoms", "ball"])
def test_the_set_of_an_item_does_not_depend_on_the_items_before_it(shape: str) -> None:
    members = np.random.default_rng(SEED).dirichlet(np.ones(3), size=10)
    mixtures = Mixtures.from_ensemble(np.tile(members, (20_000, 1, 1)))

    sets = predict_set(mixtures, coverage=0.9, shape=shape)  # type: ignore[arg-type]

    assert len(np.unique(sets.centres.sizes)) == 1
    assert len(np.unique(sets.radius)) == 1


def test_sets_of_mixtures_of_different_sizes_are_those_of_each_alone() -> None:
    few, many = random_mixtures(n_atoms=3), random_mixtures(n_atoms=7)
    weights = np.concatenate([few.weights, many.weights])
    points = np.concatenate([few.points, many.points])
    offsets = np.concatenate([few.offsets, 60 + many.offsets[1:]])
    together = predict_set(Mixtures(points, weights, offsets, np.arange(40)), shape="ball")

    alone = [predict_set(each, shape="ball").radius for each in (few, many)]

    np.testing.assert_allclose(together.radius, np.concatenate(alone))


def test_coverage_must_be_a_fraction() -> None:
    with pytest.raises(ValueError, match="`coverage` must lie strictly between 0 and 1, got 1"):
        predict_set(random_mixtures(), coverage=1)


def test_shape_must_be_known() -> None:
    with pytest.raises(ValueError, match="`shape` must be one of 'atoms', 'ball', got 'box'"):
        predict_set(random_mixtures(), shape="box")  # type: ignore[arg-type]


def test_membership_needs_a_row_for_each_item() -> None:
    with pytest.raises(
        ValueError, match="`label_distributions` must have one row for each of 20 items, got 1"
    ):
        predict_set(random_mixtures()).contains([[0.25] * 4])


def test_expansion_must_not_shrink() -> None:
    with pytest.raises(ValueError, match="`delta` must be a number at least 0, got -1"):
        predict_set(random_mixtures()).expand(-1)


def test_repr_fits_a_line() -> None:
    assert len(repr(hocal.predict_set(random_mixtures()))) < 80


def test_an_array_is_not_taken_for_mixtures() -> None:
    with pytest.raises(ValueError, match="`mixtures` must be Mixtures, got ndarray"):
        predict_set(np.full((1, 2), 0.5))  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", ["atoms", "ball"])
def test_mass_of_sets_is_the_weight_of_the_atoms_they_contain(shape: str) -> None:
    mixtures = random_mixtures()
    sets = predict_set(mixtures, coverage=0.4, shape=shape).expand(0.3)  # type: ignore[arg-type]

    inside = np.stack(
        [sets.contains(mixtures.points.reshape(20, 9, 4)[:, atom]) for atom in range(9)], axis=1
    )

    slow = (inside * mixtures.weights.reshape(20, 9)).sum(axis=1)
    np.testing.assert_allclose(sets.mass_of(mixtures), slow)
    assert (slow < 1).any()


def test_a_ball_may_be_measured_in_euclidean_distance() -> None:
    centres = Mixtures.from_points([[0.5, 0.5]])
    radius = np.array([0.2])

    plain, euclidean = (
        hocal.uncertainty.PredictionSets(centres, radius, np.ones(1), metric=metric)
        for metric in ("l1", "l2")
    )

    assert not plain.contains([[0.62, 0.38]]).any()
    assert euclidean.contains([[0.62, 0.38]]).all()


def test_the_theorem_on_sets_brackets_the_coverage_with_the_mass_of_the_twice_expanded_set() -> (
    None
):
    """P(S) - e/d <= P*(S_d) <= P(S_2d) + e/d with e = W1(predicted, true)."""
    generator = np.random.default_rng(SEED)
    for _ in range(20):
        predicted, true = (
            Mixtures.from_ensemble(generator.dirichlet([0.5, 0.5], size=(1, 6))) for _ in range(2)
        )
        epsilon = float(hocal.wasserstein(predicted, true)[0])
        sets = predict_set(predicted, coverage=0.5)
        delta = 0.4

        limits = hocal.guarantees.prediction_set_coverage(
            float(sets.mass[0]),
            epsilon,
            delta=delta,
            mass_twice=float(sets.expand(2 * delta).mass_of(predicted)[0]),
        )

        assert limits.lower <= sets.expand(delta).mass_of(true)[0] + 1e-12 <= limits.upper + 1e-9
