"""What labels alone say about each item, held against worlds with known truth and real labels."""

import os

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse, special, stats

import hocal
from calibration.label_worlds import judge_claims
from calibration.test_labels_alone import REAL
from hocal.calibration import item_posteriors, label_posterior
from hocal.calibration.dirichlet_entropies import log_likelihoods
from hocal.calibration.label_components import fit_label_mixture
from hocal.uncertainty import pair_disagreement
from hocal.uncertainty.snapshots import draw_snapshots

Array = NDArray[np.float64]

WORLDS = {
    "clear and torn": ([0.1, 0.1, 0.1], [3.0, 3.0, 0.3]),
    "anything": ([1.0, 1.0, 1.0],),
    "few of ten classes": ([0.1] * 10,),
    "two classes": ([0.3, 0.3], [4.0, 4.0]),
    "nearly clear": ([0.2, 0.02, 0.02, 0.02], [0.02, 0.3, 0.02, 0.02]),
}


def draw_world(name: str, n_items: int, seed: int) -> Array:
    """Return label distributions, items taking turns among the components of a world."""
    generator = np.random.default_rng(seed)
    parts = [generator.dirichlet(a, n_items // len(WORLDS[name])) for a in WORLDS[name]]
    return np.concatenate(parts)


def draw_labels(p: Array, k: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).multinomial(k, p / p.sum(axis=1, keepdims=True))


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3, 5, 10])
@pytest.mark.parametrize("name", WORLDS)
def test_limits_cover_the_true_uncertainty_at_their_level(name: str, k: int) -> None:
    covered, said, right = [], [], []
    for seed in range(3):
        p = draw_world(name, 600, seed)
        found = label_posterior(draw_labels(p, k, seed + 100))
        truth = special.entr(p).sum(axis=1)
        covered.append(((found.lower <= truth) & (truth <= found.upper)).mean())
        said.append(found.majority_probability.mean())
        right.append((p.argmax(axis=1) == found.majority).mean())

    # Two or three labels do not identify the prior, which decides between worlds that fit.
    assert np.mean(covered) > 0.925
    assert np.mean(said) == pytest.approx(np.mean(right), abs=0.06)


@pytest.mark.slow
def test_half_of_the_items_lie_in_their_limits_at_one_half() -> None:
    p = draw_world("clear and torn", 4_000, 0)
    found = label_posterior(draw_labels(p, 5, 1), confidence=0.5)
    truth = special.entr(p).sum(axis=1)

    assert ((found.lower <= truth) & (truth <= found.upper)).mean() == pytest.approx(0.5, abs=0.07)


@pytest.mark.slow
def test_of_majorities_with_a_probability_so_many_are_right() -> None:
    p = draw_world("clear and torn", 6_000, 2)
    found = label_posterior(draw_labels(p, 5, 3))
    right = p.argmax(axis=1) == found.majority

    for low, high in ((0.3, 0.6), (0.6, 0.8), (0.8, 0.95), (0.95, 1.01)):
        here = (found.majority_probability >= low) & (found.majority_probability < high)
        assert right[here].mean() == pytest.approx(
            found.majority_probability[here].mean(), abs=0.06
        )


@pytest.mark.parametrize(("n_classes", "k"), [(10, 3), (100, 5)])
def test_majorities_are_not_claimed_where_everybody_is_diffuse(n_classes: int, k: int) -> None:
    """The likeliest mixture of extremes claimed .78 and .73, and was right in .44 and .29."""
    found = judge_claims("diffuse", n_classes, k)

    assert found.claimed == pytest.approx(found.right, abs=0.07)
    assert found.covered >= 0.93


def test_majorities_are_claimed_where_people_lapse_rarely() -> None:
    found = judge_claims("sharp", 10, 5)

    assert found.claimed == pytest.approx(found.right, abs=0.02)
    assert found.claimed > 0.97


def test_pairs_of_classes_that_are_seen_once_do_not_look_usual() -> None:
    """Two labels of a hundred classes: what is said instead of a class is what is said at all."""
    p = np.random.default_rng(0).dirichlet(np.full(100, 3.0), 500)
    posterior = label_posterior(draw_labels(p, 2, 1))

    assert posterior.mean.max(axis=1).mean() < 0.2


def test_expected_entropies_are_those_of_draws() -> None:
    """The closed forms against a hundred thousand draws of one Dirichlet distribution."""
    parameters = np.array([[0.7, 1.1, 0.3]])
    own = np.array([[2, 0, 3]])
    total = parameters.sum(axis=1) + own.sum(axis=1, keepdims=True)
    draws = np.random.default_rng(0).dirichlet(parameters[0] + own[0], 100_000)

    for name, expected in item_posteriors._EXPECTED.items():
        value = hocal.uncertainty.get_entropy(name).value(draws).mean()
        assert expected(parameters)(own, total)[0, 0] == pytest.approx(value, abs=2e-3)


def test_an_items_own_labels_do_not_count_twice() -> None:
    """Each item's prior made of all others, by as many fits, gives much the same."""
    p = draw_world("clear and torn", 60, 4)
    counts = draw_labels(p, 3, 5)
    found = label_posterior(counts)
    apart = []
    for row in range(0, 60, 4):
        others = np.delete(counts, row, axis=0)
        prior = fit_label_mixture(others, np.ones(59))
        logs = log_likelihoods(prior.parameters)(counts[[row]])
        weights = item_posteriors._normalise(np.exp(logs) * prior.weights)
        total = prior.total + counts[row].sum()
        apart.append(((weights / total) @ (prior.parameters + counts[row]))[0])

    np.testing.assert_allclose(found.mean[::4], apart, atol=0.03)


def test_a_clear_item_may_have_no_uncertainty_and_a_torn_one_must_have_some() -> None:
    counts = np.repeat([[8, 0], [0, 8], [4, 4]], [60, 60, 30], axis=0)
    found = label_posterior(counts)

    assert found.lower[0] == 0
    assert found.upper[0] < found.lower[-1]
    assert found.majority_probability[0] > 0.99


def test_label_distributions_sum_to_one_and_limits_hold_the_estimate() -> None:
    found = label_posterior(draw_labels(draw_world("few of ten classes", 200, 0), 4, 1))

    np.testing.assert_allclose(found.mean.sum(axis=1), 1)
    assert (found.lower <= found.aleatoric).all()
    assert (found.aleatoric <= found.upper).all()


def test_ordinal_uncertainty_knows_that_neighbours_are_near() -> None:
    rows = [[5, 0, 0], [0, 5, 0], [0, 0, 5], [3, 2, 0], [3, 0, 2]]
    found = label_posterior(np.repeat(rows, 30, axis=0), entropy="ordinal")

    assert found.aleatoric[-1] > found.aleatoric[100] > found.aleatoric[0]
    assert (found.upper <= 0.5).all()  # a quarter for each step of the scale


def test_sparse_and_ragged_counts_and_items_without_labels_are_described() -> None:
    counts = np.array([[3, 0], [1, 0], [0, 0], [1, 4], [2, 2]] * 20)
    dense = label_posterior(counts)
    found = label_posterior(sparse.csr_array(counts))

    np.testing.assert_allclose(found.mean, dense.mean, atol=1e-9)
    assert found.n_labels[:5].tolist() == [3, 1, 0, 5, 4]


def test_progress_ends_with_all_rows() -> None:
    seen: list[tuple[int, int]] = []
    label_posterior([[2, 0], [0, 2], [1, 1]], progress=lambda done, all_: seen.append((done, all_)))

    assert seen == [(3, 3)]


def test_rows_become_a_dataframe() -> None:
    frame = label_posterior([[2, 0], [0, 2], [1, 1]]).to_frame()

    assert list(frame.columns)[:3] == ["aleatoric", "aleatoric_lower", "aleatoric_upper"]


def test_an_unknown_entropy_is_refused() -> None:
    with pytest.raises(hocal.InputError, match="`entropy` must be one of"):
        label_posterior([[1, 1]], entropy="brier")


@pytest.mark.skipif(
    "HOCAL_DATA" not in os.environ, reason="HOCAL_DATA does not name the data directory"
)
@pytest.mark.parametrize("name", REAL)
def test_sorting_by_uncertainty_puts_items_first_about_which_other_people_disagree(
    name: str,
) -> None:
    """Against the entropy of the same labels, whose many equals come in any order in a list."""
    every = REAL[name]()
    ours, plain = [], []
    for seed in range(3):
        own = draw_snapshots(every, 3, replace=False, random_state=seed)
        disagreement = pair_disagreement(every - own)
        entropy = special.entr(own / 3).sum(axis=1)
        order = np.random.default_rng(seed).random(len(own)) * 1e-9
        ours.append(stats.spearmanr(label_posterior(own).aleatoric, disagreement).statistic)
        plain.append(stats.spearmanr(entropy + order, disagreement).statistic)

    assert np.mean(ours) > np.mean(plain) - 0.01


def test_many_labels_of_a_class_are_as_good_as_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """One matrix product for each label and one call for each class are the same sum."""
    counts = np.array([[5, 0, 1], [3, 3, 0], [0, 1, 6]] * 20)
    few = label_posterior(counts)
    monkeypatch.setattr("hocal.calibration.dirichlet_entropies.MOST_STEPS", 0)
    many = label_posterior(counts)

    np.testing.assert_allclose(many.aleatoric, few.aleatoric, atol=1e-9)
    np.testing.assert_allclose(many.mean, few.mean, atol=1e-9)


def test_what_is_not_kept_is_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = draw_labels(draw_world("few of ten classes", 100, 0), 4, 1)
    kept = label_posterior(counts)
    monkeypatch.setattr("hocal.calibration.dirichlet_entropies.KEPT_NUMBERS", 0)
    again = label_posterior(counts)

    np.testing.assert_array_equal(again.aleatoric, kept.aleatoric)
    np.testing.assert_array_equal(again.upper, kept.upper)


def test_a_million_labels_of_an_item_are_its_distribution() -> None:
    posterior = label_posterior([[700_000, 300_000], [1_000_000, 0], [3, 2]])

    np.testing.assert_allclose(posterior.mean[0], [0.7, 0.3], atol=1e-3)
