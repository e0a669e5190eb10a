"""Pair prediction: variance and confidence from two labels."""

import numpy as np
import pytest
import torch

from hocal import Mixtures
from hocal.torch import SnapshotHead, predict_pairs

MIXTURE = Mixtures(
    [[0.2, 0.3, 0.5], [0.7, 0.1, 0.2], [0.0, 0.9, 0.1]], [0.5, 0.3, 0.2], [0, 3], [0]
)


def pairs_of_the_mixture() -> torch.Tensor:
    return torch.from_numpy(MIXTURE.snapshot_distribution(2))


def test_variance_is_that_of_the_label_distributions() -> None:
    expected = MIXTURE.weights @ MIXTURE.points**2 - MIXTURE.mean()[0] ** 2

    np.testing.assert_allclose(
        predict_pairs(pairs_of_the_mixture(), 3).variance[0].numpy(), expected, atol=1e-12
    )


def test_variance_is_johnsons_formula() -> None:
    pairs = predict_pairs(pairs_of_the_mixture(), 3)

    torch.testing.assert_close(pairs.variance, pairs.marginal * (pairs.repeated - pairs.marginal))


def test_marginal_is_the_mean_of_the_mixture() -> None:
    np.testing.assert_allclose(
        predict_pairs(pairs_of_the_mixture(), 3).marginal.numpy(), MIXTURE.mean(), atol=1e-12
    )


def test_a_label_is_impossible_at_most_as_often_as_confidence_allows() -> None:
    """The third atom, of weight 0.2, excludes the first label."""
    assert 1 - float(predict_pairs(pairs_of_the_mixture(), 3).confidence[0, 0]) >= 0.2


def test_confidence_is_one_when_the_model_knows_the_label_distribution() -> None:
    known = torch.from_numpy(Mixtures.from_points([[0.3, 0.7]]).snapshot_distribution(2))

    np.testing.assert_allclose(predict_pairs(known, 2).confidence.numpy(), 1, atol=1e-12)


def test_less_agreement_than_chance_is_reported_as_negative_variance() -> None:
    pairs = predict_pairs(torch.tensor([[0.0, 1.0, 0.0]]), 2)

    assert pairs.variance.tolist() == [[-0.25, -0.25]]


def test_larger_snapshots_are_marginalised_to_pairs() -> None:
    logits = torch.from_numpy(MIXTURE.snapshot_distribution(4)).log()

    pairs = predict_pairs(SnapshotHead(4, 3).marginalise(logits, 2), 3)

    torch.testing.assert_close(pairs.variance, predict_pairs(pairs_of_the_mixture(), 3).variance)


def test_a_wrong_number_of_outputs_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"must have shape \(n_items, 6\) for pairs of 3 classes, got \(1, 3\)"
    ):
        predict_pairs(torch.ones(1, 3) / 3, 3)
