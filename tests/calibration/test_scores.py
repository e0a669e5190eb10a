"""Scores of single items from held-out labels, against known truth, closed forms and simulation."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse

import hocal
from hocal.calibration.scores import _unbiased_squares, mean_scores

GENERATOR = np.random.default_rng(0)


def draw(p: np.ndarray, k: int, seed: int = 0) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).multinomial(k, p))


def test_disagreement_and_its_square_are_unbiased_by_enumeration() -> None:
    """All 3**4 sequences of four labels of three classes, weighted by their probabilities."""
    p = np.array([0.5, 0.3, 0.2])
    sequences = np.array(list(product(range(3), repeat=4)))
    counts = np.stack([(sequences == j).sum(axis=1) for j in range(3)], axis=1)
    chances = p[sequences].prod(axis=1)

    observed, squared = _unbiased_squares(counts)

    truth = 1 - (p**2).sum()
    assert chances @ observed == pytest.approx(truth)
    assert chances @ squared == pytest.approx(truth**2)


def test_a_perfect_prediction_explains_everything() -> None:
    p = GENERATOR.dirichlet(np.ones(3), 20_000)

    found = hocal.resolution(1 - (p**2).sum(axis=1), draw(p, 6))

    assert found.lower < 1 <= found.upper
    assert found.width < 0.15


def test_the_mean_of_all_items_explains_nothing() -> None:
    p = GENERATOR.dirichlet(np.ones(3), 20_000)
    truth = 1 - (p**2).sum(axis=1)

    found = hocal.resolution(np.full(len(p), truth.mean()), draw(p, 6))

    assert found.lower < 0 < found.upper


def test_it_is_r2_of_the_unseen_truth() -> None:
    p = GENERATOR.dirichlet(np.ones(3), 50_000)
    truth = 1 - (p**2).sum(axis=1)
    predicted = truth + GENERATOR.normal(0, 0.1, len(truth))
    known = 1 - ((predicted - truth) ** 2).mean() / truth.var()

    found = hocal.resolution(predicted, draw(p, 5))

    assert found.estimate == pytest.approx(known, abs=0.02)


def test_standard_errors_are_those_of_repeated_samples() -> None:
    p = np.random.default_rng(7).dirichlet(np.full(3, 0.5), 2000)
    truth = 1 - (p**2).sum(axis=1)
    found = [hocal.resolution(truth + 0.05, draw(p, 6, seed)) for seed in range(200)]

    spread = np.std([interval.estimate for interval in found])
    claimed = np.mean([interval.width for interval in found]) / (2 * 1.96)

    # The items are the same in all samples, so that the labels alone vary.
    assert 0.8 * spread < claimed < 1.6 * spread


def test_parts_of_the_brier_entropy_are_taken_as_they_are() -> None:
    p = GENERATOR.dirichlet(np.ones(3), 500)
    counts = draw(p, 5)
    parts = hocal.decompose(hocal.Mixtures.from_points(p), "brier")

    assert hocal.resolution(parts, counts) == hocal.resolution(parts.aleatoric, counts)


def test_parts_of_another_entropy_are_refused() -> None:
    parts = hocal.decompose(hocal.Mixtures.from_points([[0.5, 0.5]] * 2))

    with pytest.raises(hocal.InputError, match=r"`parts` must be of the Brier entropy.*Shannon"):
        hocal.resolution(parts, [[2, 2], [4, 0]])


def test_three_labels_are_too_few() -> None:
    with pytest.raises(
        hocal.InputError, match=r"4 labels in each row, got 3 in row 1. Drop such items.$"
    ):
        hocal.resolution([0.5, 0.5], [[2, 2], [3, 0]])


def test_items_that_do_not_differ_have_no_resolution() -> None:
    assert np.isnan(hocal.resolution([0.0, 0.1], [[4, 0], [0, 4]])).all()


def test_differences_that_hang_on_one_item_leave_the_resolution_unknown() -> None:
    found = hocal.resolution([0.0, 0.5], [[4, 0], [2, 2]])

    assert found == (pytest.approx(0.4375), -np.inf, 1.0)


def test_limits_of_the_resolution_are_at_most_that_of_a_perfect_prediction() -> None:
    counts = [[4, 0]] * 10 + [[2, 2]] * 10 + [[3, 1]] * 5
    found = hocal.resolution([0.0] * 10 + [0.6] * 10 + [0.4] * 5, counts)

    assert found.upper == max(found.estimate, 1.0)


def test_no_limit_of_the_score_is_above_that_of_certainty() -> None:
    """The logarithm of a probability is at most 0."""
    sure = hocal.Mixtures.from_points([[0.99, 0.01]] * 2)

    found = hocal.snapshot_score(sure, [[1, 0], [0, 1]])

    assert found.upper == 0


def test_sparse_labels_give_the_numbers_of_dense_ones() -> None:
    p = GENERATOR.dirichlet(np.ones(4), 300)
    counts = draw(p, 6)
    mixtures = hocal.Mixtures.from_points(p)
    packed = sparse.csr_array(counts)

    assert hocal.resolution(p[:, 0], packed) == hocal.resolution(p[:, 0], counts)
    assert hocal.snapshot_score(mixtures, packed) == hocal.snapshot_score(mixtures, counts)


def test_one_label_is_scored_by_its_log_probability() -> None:
    p = GENERATOR.dirichlet(np.ones(3), 100)
    labels = draw(p, 1)

    found = hocal.snapshot_score(hocal.Mixtures.from_points(p), labels)

    assert found.estimate == pytest.approx(np.log((p * labels).sum(axis=1)).mean())


def test_the_true_mixture_scores_best_although_all_have_its_mean() -> None:
    """Beta(1, 1) generates the labels; a coin and certain labels have the same mean."""
    shares = GENERATOR.random(4000)
    counts = draw(np.column_stack([shares, 1 - shares]), 2)
    flat = [[1.0, 1.0]] * 4000
    coin = [[0.5, 0.5]] * 4000

    truth = hocal.snapshot_score(hocal.Mixtures.from_dirichlet(flat, n_atoms=32), counts)
    others = [hocal.Mixtures.from_points(coin), hocal.Mixtures.from_vertices(coin)]

    assert all(truth.lower > hocal.snapshot_score(mixture, counts).upper for mixture in others)


def test_the_beta_binomial_is_scored_by_its_closed_form() -> None:
    """Under Beta(1, 1) every number of heads in two tosses has probability 1/3."""
    p = (np.arange(4000) + 0.5) / 4000
    mixtures = hocal.Mixtures.from_ensemble(np.stack([p, 1 - p], axis=-1)[None])

    found = hocal.snapshot_score(mixtures, [[1, 1]])

    assert found.estimate == pytest.approx(np.log(1 / 3) / 2, abs=1e-6)


def test_what_was_ruled_out_scores_minus_infinity() -> None:
    certain = hocal.Mixtures.from_points([[1.0, 0.0]])

    assert hocal.snapshot_score(certain, [[1, 1]]).estimate == -np.inf


def test_ragged_labels_weigh_by_their_number() -> None:
    coin = hocal.Mixtures.from_points([[0.5, 0.5]] * 2)

    found = hocal.snapshot_score(coin, [[1, 0], [3, 0]])

    assert found.estimate == pytest.approx(np.log(0.5))


def test_the_mean_is_scored_by_closed_forms() -> None:
    """One item, three labels of the first class and one of the second, predicted (0.6, 0.4)."""
    found = mean_scores([[0.6, 0.4]], [[3, 1]])

    assert found.log_loss == pytest.approx(-(3 * np.log(0.6) + np.log(0.4)) / 4)
    assert found.brier == pytest.approx((3 * (0.4**2 + 0.4**2) + (0.6**2 + 0.6**2)) / 4)
    assert found.calibration_error == pytest.approx(0.75 - 0.6)


def test_errors_of_a_bin_cancel_and_those_of_two_bins_do_not() -> None:
    """Top labels are right too often by 0.1 in one item, and too rarely by as much in another."""
    same_bin = mean_scores([[0.7, 0.3], [0.7, 0.3]], [[8, 2], [6, 4]])
    two_bins = mean_scores([[0.7, 0.3], [0.9, 0.1]], [[8, 2], [8, 2]])

    assert same_bin.calibration_error == pytest.approx(0)
    assert two_bins.calibration_error == pytest.approx(0.1)


def test_an_impossible_label_costs_as_much_as_one_in_a_million() -> None:
    assert mean_scores([[1.0, 0.0]], [[0, 1]]).log_loss == pytest.approx(np.log(1e6))


def test_true_predictions_score_no_worse_than_others() -> None:
    p = GENERATOR.dirichlet(np.ones(3), 20_000)
    counts = draw(p, 3)
    truth = mean_scores(p, counts)
    flat = mean_scores((p + 1 / 3) / 2, counts)

    assert truth.log_loss < flat.log_loss
    assert truth.brier < flat.brier
    assert truth.calibration_error < 0.02 < flat.calibration_error


def test_the_mean_is_scored_alike_by_sparse_labels() -> None:
    p = GENERATOR.dirichlet(np.ones(4), 300)
    counts = draw(p, 2)

    assert mean_scores(p, sparse.csr_array(counts)) == pytest.approx(mean_scores(p, counts))


def test_predictions_and_labels_of_other_items_are_refused() -> None:
    with pytest.raises(hocal.InputError, match="must describe the same items, got 1 and 2 rows"):
        mean_scores([[0.5, 0.5]], [[1, 0], [0, 1]])
