"""The mixture that all items share, from labels alone."""

import os

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, sparse, special

import hocal
from hocal._base.errors import OneLabelWarning
from hocal.calibration import label_prior
from hocal.datasets import load_chaosnli, load_cifar10h, load_crowd
from hocal.uncertainty.snapshots import draw_snapshots

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

# Three clear classes with lapses, of which the last two are confused.
WORLD = hocal.Mixtures(
    [[0.96, 0.02, 0.02], [0.01, 0.9, 0.09], [0.01, 0.09, 0.9], [0.02, 0.5, 0.48]],
    [0.4, 0.2, 0.2, 0.2],
    offsets=[0, 4],
    index=[0],
)


def world_items(n_items: int, k: int, seed: int = 0) -> tuple[Array, Counts]:
    """Return label distributions of items of the world, and k labels of each."""
    generator = np.random.default_rng(seed)
    p = WORLD[np.zeros(n_items, dtype=int)].sample(random_state=generator)
    return p, generator.multinomial(k, p)


def squared_error(mean: Array, p: Array) -> float:
    return float(((mean - p) ** 2).sum(axis=1).mean())


def dirichlet_smoothing(counts: Counts) -> tuple[Array, Array]:
    """Return posterior means and expected disagreement under the most likely Dirichlet prior."""
    totals = counts.sum(axis=1, keepdims=True)
    mean = (counts.sum(axis=0) + 0.5) / (counts.sum() + 0.5 * counts.shape[1])

    def loss(log_precision: float) -> float:
        s = np.exp(log_precision)
        terms = special.gammaln(s * mean + counts) - special.gammaln(s * mean)
        ends = special.gammaln(s) - special.gammaln(s + totals[:, 0])
        return -float((terms.sum(axis=1) + ends).sum())

    precision = np.exp(optimize.minimize_scalar(loss, bounds=(-4, 6), method="bounded").x)
    smoothed = (counts + precision * mean) / (totals + precision)
    total = totals[:, 0] + precision
    return smoothed, (1 - (smoothed**2).sum(axis=1)) * total / (total + 1)


def unbiased_error(mean: Array, rest: Counts) -> float:
    """Return the mean squared error against the label distribution behind held-out labels."""
    totals = rest.sum(axis=1)
    shares = rest / totals[:, None]
    noise = (1 - (shares**2).sum(axis=1)) / (totals - 1)
    return float((((mean - shares) ** 2).sum(axis=1) - noise).mean())


@pytest.mark.parametrize("k", [2, 3, 5])
def test_posterior_means_are_nearly_as_good_as_those_of_the_true_prior(k: int) -> None:
    p, counts = world_items(4_000, k)
    truth = WORLD[np.zeros(len(p), dtype=int)].condition(counts).mean()
    found = label_prior(counts).condition(counts).mean()

    # Few labels do not identify the mixture, so something is lost.
    assert squared_error(found, p) < 1.12 * squared_error(truth, p)


def test_mean_aleatoric_uncertainty_is_that_of_the_world() -> None:
    _, counts = world_items(4_000, 3, seed=1)
    posterior = label_prior(counts).condition(counts)
    expected = hocal.decompose(WORLD, "brier").aleatoric[0]

    assert hocal.decompose(posterior, "brier").aleatoric.mean() == pytest.approx(expected, abs=0.01)


def test_an_item_leans_to_the_classes_that_others_confuse_with_its_own() -> None:
    _, counts = world_items(2_000, 3, seed=2)
    prior = label_prior(counts)
    mean = prior[[0]].condition([[0, 2, 0]]).mean()[0]

    assert mean[2] > 5 * mean[0]


def test_the_order_of_items_does_not_matter() -> None:
    _, counts = world_items(200, 3)
    first, second = label_prior(counts), label_prior(counts[::-1])

    np.testing.assert_array_equal(first.weights, second.weights)


def test_sparse_counts_give_the_same_as_dense_ones() -> None:
    _, counts = world_items(200, 3)
    found = label_prior(sparse.csr_array(counts)).mean()

    np.testing.assert_allclose(found, label_prior(counts).mean(), atol=1e-6)


def test_items_without_labels_have_the_prior_of_the_others() -> None:
    _, counts = world_items(200, 3)
    prior = label_prior(np.concatenate([counts, [[0, 0, 0]]]))

    assert len(prior) == 201
    np.testing.assert_array_equal(prior.mean()[200], label_prior(counts).mean()[0])


def test_an_items_own_labels_in_the_prior_change_next_to_nothing() -> None:
    """Twenty folds, each item's prior made of the others."""
    p, counts = world_items(300, 3, seed=3)
    fold = np.arange(len(p)) % 20
    apart = np.empty(p.shape)
    for number in range(20):
        own = fold == number
        prior = label_prior(counts[~own])[np.zeros(own.sum(), dtype=int)]
        apart[own] = prior.condition(counts[own]).mean()
    together = label_prior(counts).condition(counts).mean()

    assert squared_error(together, p) == pytest.approx(squared_error(apart, p), rel=0.04)


def test_one_label_per_item_warns() -> None:
    with pytest.warns(OneLabelWarning, match="No item has two labels"):
        label_prior([[1, 0], [0, 1]])


def test_no_label_at_all_is_refused() -> None:
    with pytest.raises(hocal.InputError, match="`counts` must hold at least one label, got none"):
        label_prior([[0, 0], [0, 0]])


def test_too_many_classes_are_refused() -> None:
    with pytest.raises(hocal.InputError, match="must have at most 1000 classes, got 1001"):
        label_prior(sparse.csr_array(([2], ([0], [0])), shape=(1, 1001)))


def crowd_counts(name: str) -> Counts:
    labels = load_crowd(name)
    items, rows = np.unique(labels.item, return_inverse=True)
    counts = np.zeros((len(items), len(labels.classes)), dtype=np.int64)
    np.add.at(counts, (rows, labels.label), 1)
    return counts


REAL = {
    "CIFAR-10H": lambda: load_cifar10h().counts,
    "ChaosNLI": lambda: load_chaosnli("roberta-base_0").counts,
    "CF": lambda: crowd_counts("CF_amt"),
    "SP": lambda: crowd_counts("SP_amt"),
}


@pytest.mark.skipif(
    "HOCAL_DATA" not in os.environ, reason="HOCAL_DATA does not name the data directory"
)
@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("name", REAL)
def test_real_items_are_known_better_than_by_frequencies_or_one_dirichlet(
    name: str, k: int
) -> None:
    every = REAL[name]()
    errors, resolutions = np.zeros(3), np.zeros(2)
    for seed in range(4):  # one draw of the 300 items of CF moves a figure by .05
        own = draw_snapshots(every, k, replace=False, random_state=seed)
        rest = every - own
        posterior = label_prior(own).condition(own)
        disagreement = hocal.decompose(posterior, "brier").aleatoric
        smoothed, smooth_disagreement = dirichlet_smoothing(own)
        means = (posterior.mean(), own / k, smoothed)
        errors += [unbiased_error(mean, rest) for mean in means]
        found = (disagreement, smooth_disagreement)
        resolutions += [hocal.resolution(each, rest).estimate for each in found]

    assert errors[0] < errors[1]
    assert errors[0] < 1.02 * errors[2]  # SP with two labels is even
    assert resolutions[0] > resolutions[1] - 4 * 0.03  # so is CF with two
