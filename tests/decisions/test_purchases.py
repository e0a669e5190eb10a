"""Where the next labels should go."""

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

import hocal
from hocal.calibration import label_prior
from hocal.decisions import label_gains, next_labels
from hocal.decisions.label_gains import expected_gains
from hocal.uncertainty.likelihood import pair_with_counts

Array = NDArray[np.float64]

POINTS = np.array([[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.3, 0.4, 0.3], [0.05, 0.05, 0.9]])
WEIGHTS = np.array([0.4, 0.2, 0.3, 0.1])
OBJECTIVES = label_gains.OBJECTIVES


def prior(n_items: int) -> hocal.Mixtures:
    """Return items that share four label distributions."""
    return hocal.Mixtures(POINTS, WEIGHTS, offsets=[0, 4], index=np.zeros(n_items, dtype=int))


def entropy(p: Array) -> float:
    return float(-(p * np.log(p)).sum())


def worth(weights: Array, objective: str) -> float:
    """Return minus the expected error of the best report under weights of the four points."""
    if objective == "majority":
        leading = np.zeros(3)
        np.add.at(leading, POINTS.argmax(axis=1), weights)
        return float(leading.max()) - 1
    f = POINTS if objective == "distribution" else np.array([[entropy(p)] for p in POINTS])
    mean = weights @ f
    return -sum(w * float(((value - mean) ** 2).sum()) for w, value in zip(weights, f, strict=True))


def slow_gain(counts: list[int], t: int, objective: str) -> float:
    """Return the gain of t labels by going through every sequence of labels."""
    now = WEIGHTS * (POINTS ** np.array(counts)).prod(axis=1)
    now = now / now.sum()
    later = 0.0
    for labels in product(range(3), repeat=t):
        joint = now * POINTS[:, list(labels)].prod(axis=1)
        later += joint.sum() * worth(joint / joint.sum(), objective)
    return later - worth(now, objective)


def curve(counts: list[int], objective: str, n_labels: int, n_exact: int) -> Array:
    """Return the gains of up to n_labels labels for one item of the shared prior."""
    states = pair_with_counts(np.zeros(1, dtype=np.intp), np.array([counts]))
    return expected_gains(prior(1), states, objective, n_labels, n_exact).gains[0]


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("counts", [[0, 0, 0], [1, 1, 0], [3, 0, 1]])
def test_gains_are_those_of_every_sequence_of_labels(counts: list[int], objective: str) -> None:
    slow = [0.0] + [slow_gain(counts, t, objective) for t in (1, 2, 3)]

    np.testing.assert_allclose(curve(counts, objective, 3, 3), slow, atol=1e-12)


def test_one_label_lowers_the_variance_by_the_formula() -> None:
    """sum_y m_y ||E[p | y] - m||^2."""
    mean = WEIGHTS @ POINTS
    given = (WEIGHTS * POINTS.T) @ POINTS / mean[:, None]
    expected = mean @ ((given - mean) ** 2).sum(axis=1)

    assert curve([0, 0, 0], "distribution", 1, 1)[1] == pytest.approx(expected)


def test_gains_continue_a_dirichlet_exactly() -> None:
    """The posterior variance of Beta(2, 1) after t labels is V 3 / (3 + t)."""
    p = (np.arange(20_000) + 0.5) / 20_000
    mixtures = hocal.Mixtures.of_members(np.stack([p, 1 - p], axis=-1)[None], (p / p.sum())[None])
    states = pair_with_counts(mixtures.index, np.zeros((1, 2), dtype=np.int64))
    found = expected_gains(mixtures, states, "distribution", 8, 2)
    t = np.arange(9)

    np.testing.assert_allclose(found.gains[0], found.uncertainty[0] * t / (3 + t), rtol=1e-4)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_gains_beyond_the_exact_ones_are_close(objective: str) -> None:
    uncertainty = -worth(WEIGHTS, objective)
    found = curve([0, 0, 0], objective, 8, 4)
    exact = curve([0, 0, 0], objective, 8, 8)

    np.testing.assert_allclose(found, exact, atol=0.08 * uncertainty)


@pytest.mark.parametrize("budget", [1, 2, 4, 5])
@pytest.mark.parametrize("objective", ["distribution", "aleatoric"])
def test_no_other_purchase_is_expected_to_bring_more(objective: str, budget: int) -> None:
    counts = [[2, 0, 0], [1, 1, 0], [0, 1, 1], [4, 2, 0]]
    bought = next_labels(prior(4), counts, budget=budget, objective=objective, limit=budget)
    gains = np.stack([curve(own, objective, budget, budget) for own in counts])
    every = [split for split in product(range(budget + 1), repeat=4) if sum(split) == budget]
    best = max(gains[range(4), split].sum() for split in every)

    assert bought.labels.sum() == budget
    assert bought.gain.sum() == pytest.approx(best)


@pytest.mark.parametrize("budget", [3, 6, 12])
def test_labels_that_count_only_together_are_bought_together(budget: int) -> None:
    """One label cannot overturn two, nor can two; three can."""
    mixtures = hocal.Mixtures([[0.7, 0.3], [0.3, 0.7]], [0.5, 0.5], [0, 2], np.zeros(6, int))
    counts = [[2, 0]] * 6
    one = next_labels(mixtures, counts, budget=1, objective="majority", limit=1)
    bought = next_labels(mixtures, counts, budget=budget, objective="majority", limit=3)

    assert one.labels.sum() == 0
    assert bought.labels.sum() == budget
    assert (bought.gain[bought.labels > 0] > 0).all()


@pytest.mark.parametrize("budget", range(1, 8))
def test_a_majority_purchase_is_within_one_bundle_of_the_best(budget: int) -> None:
    counts = [[2, 0, 0], [1, 1, 0], [0, 2, 1], [4, 2, 0]]
    bought = next_labels(prior(4), counts, budget=budget, objective="majority", limit=4)
    gains = np.stack([curve(own, "majority", 4, 4) for own in counts])
    every = [split for split in product(range(5), repeat=4) if sum(split) <= budget]
    best = max(gains[range(4), split].sum() for split in every)

    assert bought.gain.sum() >= best - (gains[:, 1:] / np.arange(1, 5)).max() * 3


def test_the_whole_budget_is_spent() -> None:
    counts = np.random.default_rng(0).multinomial(2, [0.6, 0.3, 0.1], size=500)
    for budget in (1, 7, 333, 4_999):
        bought = next_labels(prior(500), counts, budget=budget, objective="majority")
        assert bought.labels.sum() == budget


def test_nothing_is_bought_where_nothing_can_be_learned() -> None:
    certain = hocal.Mixtures.from_points([[0.5, 0.5], [1.0, 0.0]])
    bought = next_labels(certain, [[1, 1], [3, 0]], budget=5)

    assert bought.labels.tolist() == [0, 0]
    assert len(bought.order) == 0
    assert bought.expected_gain == bought.uniform_gain == 0


def test_expected_gains_come_true() -> None:
    """In a simulated world the squared error falls by what was expected, evenly spread or not."""
    generator = np.random.default_rng(1)
    mixtures = prior(40_000)
    p = mixtures.sample(random_state=generator)
    counts = generator.multinomial(2, p)
    bought = next_labels(mixtures, counts, budget=40_000)

    def error(labels: NDArray[np.int64]) -> float:
        mean = mixtures.condition(counts + generator.multinomial(labels, p)).mean()
        return float(((mean - p) ** 2).sum(axis=1).mean())

    before = error(np.zeros(len(p), dtype=np.int64))
    assert before == pytest.approx(bought.uncertainty.mean(), abs=0.004)
    assert before - error(bought.labels) == pytest.approx(bought.expected_gain, abs=0.004)
    assert before - error(np.ones(len(p), dtype=np.int64)) == pytest.approx(
        bought.uniform_gain, abs=0.004
    )
    assert bought.expected_gain > 1.2 * bought.uniform_gain


@pytest.mark.parametrize("labels", [[30, 0], [5, 0]])
def test_rounding_is_no_gain(labels: list[int]) -> None:
    """Two labels cannot overturn these majorities; sums of probabilities differ by 4e-16."""
    mixtures = hocal.Mixtures.from_dirichlet([[9.0, 1.0]])
    bought = next_labels(mixtures, [labels], budget=2, objective="majority", limit=2)

    assert bought.labels.tolist() == [0]


def test_uniform_gain_is_the_mean_over_items_that_a_remainder_may_fall_on() -> None:
    counts = [[2, 0, 0], [1, 1, 0], [0, 1, 1]]
    gains = np.stack([curve(own, "distribution", 3, 3) for own in counts])
    bought = next_labels(prior(3), counts, budget=4, limit=3)
    expected = gains[:, 1].mean() + (gains[:, 2] - gains[:, 1]).mean() / 3

    assert bought.uniform_gain == pytest.approx(expected)


def test_limits_hold_for_each_item() -> None:
    counts = [[1, 1, 0]] * 4
    bought = next_labels(prior(4), counts, budget=6, limit=[0, 1, 2, 3])

    assert bought.labels.tolist() == [0, 1, 2, 3]
    assert bought.expected_gain == pytest.approx(bought.uniform_gain)


def test_mixtures_that_know_the_labels_need_no_counts() -> None:
    counts = [[2, 0, 0], [1, 1, 0], [0, 1, 1]]
    known = next_labels(prior(3).condition(counts), None, budget=2)

    np.testing.assert_array_equal(known.labels, next_labels(prior(3), counts, budget=2).labels)


def test_mixtures_of_different_sizes_are_compared() -> None:
    points = np.concatenate([POINTS, [[0.5, 0.3, 0.2]], POINTS[:2]])
    weights = [*WEIGHTS, 1.0, 0.5, 0.5]
    mixtures = hocal.Mixtures(points, weights, offsets=[0, 4, 5, 7], index=[0, 1, 2])
    bought = next_labels(mixtures, [[1, 1, 0]] * 3, budget=1)

    assert bought.uncertainty[0] == pytest.approx(
        next_labels(prior(1), [[1, 1, 0]], budget=1).uncertainty[0]
    )
    assert bought.uncertainty[1] == 0


def test_the_order_of_items_does_not_matter() -> None:
    counts = np.random.default_rng(0).multinomial(3, [0.5, 0.3, 0.2], size=60)
    forth = next_labels(prior(60), counts, budget=50)
    back = next_labels(prior(60), counts[::-1], budget=50)

    assert forth.expected_gain == pytest.approx(back.expected_gain)
    assert sorted(forth.labels) == sorted(back.labels)


def test_sparse_counts_give_the_same_as_dense_ones() -> None:
    counts = np.random.default_rng(0).multinomial(3, [0.5, 0.3, 0.2], size=60)
    dense = next_labels(prior(60), counts, budget=50)
    packed = next_labels(prior(60), sparse.csr_array(counts), budget=50)

    np.testing.assert_array_equal(np.sort(dense.labels), np.sort(packed.labels))


def test_items_are_listed_by_gain_per_label() -> None:
    counts = np.random.default_rng(0).multinomial(3, [0.5, 0.3, 0.2], size=60)
    bought = next_labels(prior(60), counts, budget=50)
    rows = bought.to_frame("pandas")

    assert rows["labels"].sum() == 50
    assert (np.diff(rows["gain"] / rows["labels"]) <= 1e-12).all()
    assert "50 labels for" in str(bought)


@pytest.mark.parametrize("budget", [1, 2, 3, 4])
def test_items_are_listed_if_labels_are_bought_for_them(budget: int) -> None:
    """Neither the first nor the last majority can be overturned by what the budget buys."""
    mixtures = hocal.Mixtures([[0.7, 0.3], [0.3, 0.7]], [0.5, 0.5], [0, 2], np.zeros(3, int))
    bought = next_labels(
        mixtures, [[9, 0], [2, 0], [9, 0]], budget=budget, objective="majority", limit=4
    )

    assert sorted(bought.order) == np.flatnonzero(bought.labels).tolist()


def test_a_label_that_cannot_overturn_a_majority_alone_is_not_bought() -> None:
    mixtures = hocal.Mixtures([[0.7, 0.3], [0.3, 0.7]], [0.5, 0.5], [0, 2], [0])
    bought = next_labels(mixtures, [[2, 0]], budget=1, objective="majority", limit=3)

    assert bought.labels.tolist() == [0]


def test_two_hundred_thousand_items_share_their_computation() -> None:
    generator = np.random.default_rng(0)
    p = generator.dirichlet(np.full(10, 0.2), size=200_000)
    counts = generator.multinomial(2, p)
    bought = next_labels(label_prior(counts), counts, budget=100_000)

    assert bought.labels.sum() == 100_000
    assert bought.expected_gain > bought.uniform_gain


def test_few_items_may_share_a_large_budget() -> None:
    bought = next_labels(prior(2), [[1, 0, 0], [0, 1, 0]], budget=60)

    assert bought.labels.sum() == 60


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": 0}, "`budget` must be an integer from 1 to 2000, got 0"),
        ({"budget": 2001}, "`budget` must be an integer from 1 to 2000, got 2001"),
        (
            {"budget": 21, "limit": 10},
            "from 1 to 20, got 21. With more, buy in rounds, or allow more labels",
        ),
        ({"budget": 2.5}, "`budget` must be an integer from 1 to 2000, got 2.5"),
        ({"objective": "kappa"}, "`objective` must be one of 'distribution', 'aleatoric', 'majo"),
        ({"limit": 0}, "`limit` must be an integer from 1 to 1000, got 0"),
        ({"limit": [1]}, r"`limit` must be one number, or one for each of 2 items, got shape"),
        ({"limit": [0, 0]}, "`limit` must be at most 1000, and above 0 for some item, got 0"),
        ({"counts": [[1, 0, 0]]}, "`counts` must describe the 2 items of the mixtures, got 1 rows"),
        ({"counts": [[1, 0], [0, 1]]}, "`counts` must have 3 classes"),
        ({"mixtures": [[0.5, 0.5]]}, "`mixtures` must be Mixtures, got list"),
    ],
)
def test_bad_input_is_named(changes: dict[str, object], message: str) -> None:
    given = {"mixtures": prior(2), "counts": [[1, 0, 0], [0, 1, 0]], "budget": 1} | changes
    mixtures, counts = given.pop("mixtures"), given.pop("counts")

    with pytest.raises(hocal.InputError, match=message):
        next_labels(mixtures, counts, **given)  # type: ignore[arg-type]


def test_labels_that_no_atom_allows_are_refused() -> None:
    with pytest.raises(hocal.InputError, match="`counts` must be possible under the mixtures"):
        next_labels(hocal.Mixtures.from_points([[1.0, 0.0]]), [[0, 1]], budget=1)


def test_gains_of_few_atoms_and_many_classes_are_those_of_every_snapshot() -> None:
    """By products of atoms, or class by class: ||E[p; y]||^2 / m_y summed over labels y."""
    generator = np.random.default_rng(3)
    p = generator.dirichlet(np.full(40, 0.2), size=(5, 2))
    found = hocal.next_labels(hocal.Mixtures.from_ensemble(p), None, budget=5, limit=1)

    mean = p.mean(axis=1)
    joint = np.einsum("iay,iav->iyv", p, p) / 2
    reached = (np.square(joint).sum(axis=2) / mean).sum(axis=1)
    assert found.gain == pytest.approx(reached - np.square(mean).sum(axis=1), abs=1e-12)
