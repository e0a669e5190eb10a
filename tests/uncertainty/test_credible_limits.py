"""Limits of the entropy of single items, by the atoms of their mixtures."""

import numpy as np
import pytest

from hocal import Mixtures
from hocal.uncertainty.credible_limits import credible_limits


def test_a_known_distribution_has_its_entropy_between_limits_a_hundredth_apart() -> None:
    lower, upper = credible_limits(Mixtures.from_points([[0.9, 0.1]]))

    assert (lower[0], upper[0]) == (pytest.approx(0.32), pytest.approx(0.33))


def test_limits_are_quantiles_of_a_dirichlet_distribution() -> None:
    """H(p) for p ~ Beta(2, 2), against 200,000 draws."""
    draws = np.random.default_rng(0).beta(2, 2, 200_000)
    entropy = -(draws * np.log(draws) + (1 - draws) * np.log1p(-draws))

    lower, upper = credible_limits(Mixtures.from_dirichlet([[2.0, 2.0]], n_atoms=2_000), 0.9)

    assert [lower[0], upper[0]] == pytest.approx(np.quantile(entropy, [0.05, 0.95]), abs=0.011)


def test_limits_always_hold_the_expectation() -> None:
    """One atom in a hundred is torn: all quantiles are 0, the expectation is not."""
    atoms = np.array([[[1.0, 0.0]] * 99 + [[0.5, 0.5]]])

    lower, upper = credible_limits(Mixtures.from_ensemble(atoms))

    assert lower[0] == 0
    assert upper[0] >= np.log(2) / 100


def test_items_that_share_a_mixture_share_its_limits() -> None:
    mixtures = Mixtures.from_dirichlet([[1.0, 1.0], [9.0, 1.0]])

    lower, upper = credible_limits(mixtures[[1, 0, 1]])

    alone = credible_limits(mixtures[[1]])
    assert lower[0] == lower[2] == alone[0][0]
    assert upper[0] == upper[2] == alone[1][0]
    assert upper[1] > upper[0]


def test_an_empty_mixture_has_no_limits_and_changes_no_others() -> None:
    points = np.random.default_rng(0).dirichlet([1.0, 1.0], 40)
    weights = np.full(40, 1 / 20)
    offsets = [0, 0, 20, 20, 40, 40]
    mixtures = Mixtures(points, weights, offsets, np.arange(5))

    lower, upper = credible_limits(mixtures, 0.8)

    full = Mixtures(points, weights, [0, 20, 40], [0, 1])
    expected = credible_limits(full, 0.8)
    assert np.isnan([lower[[0, 2, 4]], upper[[0, 2, 4]]]).all()
    np.testing.assert_array_equal([lower[[1, 3]], upper[[1, 3]]], expected)


def test_a_confidence_must_be_a_fraction() -> None:
    with pytest.raises(
        ValueError, match=r"`confidence` must lie strictly between 0 and 1, got 1\.5"
    ):
        credible_limits(Mixtures.from_points([[0.5, 0.5]]), 1.5)
