"""Components around a mean: closed forms against scipy and against draws."""

import itertools

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.special import digamma, logsumexp

from hocal.calibration.by_item.components import (
    AROUND_PREDICTION,
    BEYOND_TOP,
    LAPSES,
    PRECISIONS,
    Components,
    Labels,
    labels_of,
)
from hocal.uncertainty.entropy import Brier, Shannon
from hocal.uncertainty.snapshots import enumerate_snapshots, log_multiplicity

MEAN = np.array([[0.6, 0.25, 0.1, 0.05]])
COUNTS = np.array([[2, 0, 1, 0]])
N_DRAWS = 200_000


def dirichlet_entropy(alpha: np.ndarray) -> float:
    total = alpha.sum()
    return float(digamma(total + 1) - (alpha / total) @ digamma(alpha + 1))


def draw_star(lapse: float, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the points of a star and their weights given labels, one for each class J."""
    points = lapse * MEAN[0] + (1 - lapse) * np.eye(4)
    weights = MEAN[0] * np.prod(points**counts, axis=1)
    return points, weights


def test_labels_are_the_entries_that_are_not_zero() -> None:
    labels = labels_of(np.array([[0, 2], [0, 0], [1, 3]]))

    assert labels.item.tolist() == [0, 2, 2]
    assert labels.label.tolist() == [1, 0, 1]
    assert labels.totals().tolist() == [2, 0, 4]


@pytest.mark.parametrize("family", [AROUND_PREDICTION, BEYOND_TOP])
def test_sparse_labels_give_the_same_likelihoods_as_dense_ones(family: Components) -> None:
    dense = family.log_likelihood(MEAN, labels_of(COUNTS))

    assert np.array_equal(family.log_likelihood(MEAN, labels_of(sparse.csr_array(COUNTS))), dense)


def test_dirichlets_have_the_likelihood_of_the_dirichlet_multinomial() -> None:
    logs = AROUND_PREDICTION.log_likelihood(MEAN, labels_of(COUNTS))[0]
    truth = [stats.dirichlet_multinomial(s * MEAN[0], 3).logpmf(COUNTS[0]) for s in PRECISIONS]

    assert logs[: len(PRECISIONS)] + log_multiplicity(COUNTS[0]) == pytest.approx(truth, abs=1e-9)


def test_stars_have_the_likelihood_of_a_sum_over_certain_classes() -> None:
    logs = AROUND_PREDICTION.log_likelihood(MEAN, labels_of(COUNTS))[0]
    truth = [np.log(draw_star(lapse, COUNTS[0])[1].sum()) for lapse in LAPSES]

    assert logs[len(PRECISIONS) :] == pytest.approx(truth, abs=1e-12)


@pytest.mark.parametrize("seen", [None, COUNTS])
def test_dirichlets_have_the_entropy_of_digamma_formulas(seen: np.ndarray | None) -> None:
    labels = None if seen is None else labels_of(seen)
    counts = np.zeros(4) if seen is None else seen[0]
    truth = [dirichlet_entropy(s * MEAN[0] + counts) for s in PRECISIONS]

    values = AROUND_PREDICTION.shannon(MEAN, labels)[0]
    assert values[: len(PRECISIONS)] == pytest.approx(truth, abs=1e-6)


@pytest.mark.parametrize("seen", [None, COUNTS])
@pytest.mark.parametrize("entropy", [Shannon(), Brier()])
def test_stars_have_the_entropy_of_their_points(
    seen: np.ndarray | None, entropy: Shannon | Brier
) -> None:
    labels = None if seen is None else labels_of(seen)
    counts = np.zeros(4) if seen is None else seen[0]
    stars = [draw_star(lapse, counts) for lapse in LAPSES]
    truth = [np.average(entropy.value(points), weights=weights) for points, weights in stars]

    name = "shannon" if isinstance(entropy, Shannon) else "brier"
    values = getattr(AROUND_PREDICTION, name)(MEAN, labels)[0]
    assert values[len(PRECISIONS) :] == pytest.approx(truth, abs=1e-6)


@pytest.mark.parametrize("seen", [None, COUNTS])
def test_dirichlets_have_the_brier_uncertainty_of_draws(seen: np.ndarray | None) -> None:
    """A slow obvious reference."""
    labels = None if seen is None else labels_of(seen)
    counts = np.zeros(4) if seen is None else seen[0]
    draws = np.random.default_rng(0).dirichlet(5.0 * MEAN[0] + counts, N_DRAWS)

    value = AROUND_PREDICTION.brier(MEAN, labels)[0, PRECISIONS.tolist().index(5.0)]
    assert value == pytest.approx(Brier().value(draws).mean(), abs=2e-3)


def test_two_classes_make_beta_distributions() -> None:
    """E H(p) of p ~ Beta(1, 1) is 1/2 nat, and E 2 p (1 - p) = 1/3."""
    uniform = Components(np.array([2.0]), LAPSES)
    half = np.array([[0.5, 0.5]])

    assert uniform.shannon(half)[0, 0] == pytest.approx(0.5, abs=1e-6)
    assert uniform.brier(half)[0, 0] == pytest.approx(1 / 3)


@pytest.mark.parametrize("component", range(len(AROUND_PREDICTION)))
def test_the_mean_given_labels_is_the_probability_of_the_next_label(component: int) -> None:
    weights = np.eye(len(AROUND_PREDICTION))[[component]]
    mean = AROUND_PREDICTION.mean(MEAN, weights, labels_of(COUNTS))[0]
    before = AROUND_PREDICTION.log_likelihood(MEAN, labels_of(COUNTS))[0, component]
    more = np.repeat(COUNTS, 4, axis=0) + np.eye(4, dtype=int)
    after = AROUND_PREDICTION.log_likelihood(np.repeat(MEAN, 4, axis=0), labels_of(more))

    assert mean == pytest.approx(np.exp(after[:, component] - before), rel=1e-9)


def test_probabilities_of_all_snapshots_sum_to_one() -> None:
    snapshots = enumerate_snapshots(3, 3)
    mean = np.repeat([[0.7, 0.2, 0.1]], len(snapshots), axis=0)
    logs = AROUND_PREDICTION.log_likelihood(mean, labels_of(snapshots))
    sums = logsumexp(logs + log_multiplicity(snapshots)[:, None], axis=0)

    assert sums == pytest.approx(np.zeros(len(AROUND_PREDICTION)), abs=1e-9)


@pytest.mark.parametrize("n_classes", [2, 20, 1000])
def test_one_certain_class_leaves_no_uncertainty(n_classes: int) -> None:
    """The split beyond the top class of two classes is such a mean."""
    certain = np.eye(n_classes)[:1]
    counts = np.zeros((1, n_classes), dtype=int)
    counts[0, 0] = 3
    labels = labels_of(counts)

    for seen in (None, labels):
        assert BEYOND_TOP.shannon(certain, seen) == pytest.approx(0, abs=1e-9)
        assert BEYOND_TOP.brier(certain, seen) == pytest.approx(0, abs=1e-9)
    assert BEYOND_TOP.log_likelihood(certain, labels) == pytest.approx(0, abs=1e-9)


def test_no_labels_change_nothing() -> None:
    none = Labels(1, np.array([], np.intp), np.array([], np.intp), np.array([]))

    for name in ("brier", "shannon"):
        method = getattr(AROUND_PREDICTION, name)
        assert method(MEAN, none) == pytest.approx(method(MEAN), abs=1e-12)


def test_relabelling_classes_changes_no_uncertainty() -> None:
    for order in itertools.permutations(range(4)):
        chosen = list(order)
        labels = labels_of(COUNTS[:, chosen])
        values = AROUND_PREDICTION.shannon(MEAN[:, chosen], labels)
        assert values == pytest.approx(AROUND_PREDICTION.shannon(MEAN, labels_of(COUNTS)))


def test_the_entropy_of_a_thousand_classes_is_accurate() -> None:
    mean = np.random.default_rng(0).dirichlet(np.full(1000, 0.5))[None]
    truth = [dirichlet_entropy(s * mean[0]) for s in PRECISIONS]

    values = AROUND_PREDICTION.shannon(mean)[0, : len(PRECISIONS)]
    assert values == pytest.approx(truth, abs=3e-5)


def test_what_is_no_number_has_no_uncertainty_and_harms_nothing() -> None:
    """It was a place in a table, read out of bounds."""
    uncertainty = AROUND_PREDICTION.shannon(np.array([[np.nan, 0.5, 0.5], [0.0, 0.5, 0.5]]))

    assert np.isnan(uncertainty[0]).all()
    assert np.isfinite(uncertainty[1]).all()
