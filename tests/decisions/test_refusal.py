"""Answer, ask or refuse: closed forms, a slow version, and a world of known truth."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import hocal
from hocal.decisions import refusal_rule

Array = NDArray[np.float64]
COSTS = {"person": 0.1, "refusal": 0.3}


def world(n_items: int, seed: int) -> tuple[hocal.Mixtures, Array]:
    """Mixtures of four atoms each, and the label distributions: one atom of each, by its weight."""
    generator = np.random.default_rng(seed)
    sharp = generator.choice([0.05, 0.1, 5.0], n_items)
    atoms = generator.dirichlet([1, 1, 1], (n_items, 4))
    known = generator.random(n_items) < 0.4
    atoms[known] = atoms[known, :1]
    atoms = atoms ** (1 / sharp)[:, None, None]
    atoms /= atoms.sum(axis=2, keepdims=True)
    truth = atoms[np.arange(n_items), generator.integers(0, 4, n_items)]
    return hocal.Mixtures.from_ensemble(atoms), truth


def test_answering_costs_the_doubt_of_the_mean_and_asking_the_brier_aleatoric_part() -> None:
    mixtures = world(50, 0)[0]
    parts = hocal.decompose(mixtures, "brier")

    found = refusal_rule(mixtures, error=2.0, **COSTS)

    np.testing.assert_allclose(
        found.expected[:, 0], 2 * (1 - mixtures.mean().max(axis=1)), atol=1e-12
    )
    np.testing.assert_allclose(found.expected[:, 1], 0.1 + 2 * parts.aleatoric)
    np.testing.assert_array_equal(found.expected[:, 2], 0.3)


def test_costs_of_a_matrix_are_those_of_the_slow_version() -> None:
    generator = np.random.default_rng(1)
    atoms = generator.dirichlet([1, 1, 1], (1, 5))
    error = generator.random((3, 3))

    found = refusal_rule(hocal.Mixtures.from_ensemble(atoms), error=error, **COSTS)

    by_answer = [np.mean([error[a] @ p for p in atoms[0]]) for a in range(3)]
    asked = 0.1 + np.mean(
        [sum(p[a] * p[j] * error[a, j] for a, j in product(range(3), repeat=2)) for p in atoms[0]]
    )
    np.testing.assert_allclose(found.expected[0], [min(by_answer), asked, 0.3])
    assert found.answers[0] == np.argmin(by_answer)


def test_what_nobody_knows_is_asked_and_what_people_dispute_is_refused() -> None:
    vertices = refusal_rule(hocal.Mixtures.from_vertices([[0.5, 0.5]]), **COSTS)
    points = refusal_rule(hocal.Mixtures.from_points([[0.5, 0.5]]), **COSTS)
    sure = refusal_rule(hocal.Mixtures.from_points([[0.95, 0.05]]), **COSTS)

    assert [*vertices.actions, *points.actions, *sure.actions] == ["ask", "refuse", "answer"]


def test_a_single_number_is_the_cost_of_every_error() -> None:
    mixtures = world(20, 2)[0]
    matrix = 1.5 * (1 - np.eye(3))

    np.testing.assert_allclose(
        refusal_rule(mixtures, error=1.5, **COSTS).expected,
        refusal_rule(mixtures, error=matrix, **COSTS).expected,
    )


def test_paid_costs_are_those_of_every_pair_of_people() -> None:
    """Three labels: each person asked in turn, each other one served."""
    error = np.random.default_rng(3).random((3, 3))
    labels = [0, 0, 2]
    mixtures = hocal.Mixtures.from_vertices([[0.4, 0.3, 0.3]])

    found = refusal_rule(mixtures, error=error, person=0.0, refusal=9.0)
    cost = found.cost([[2, 0, 1]])

    pairs = [error[labels[i], labels[j]] for i, j in product(range(3), repeat=2) if i != j]
    assert cost.others["ask"].estimate == pytest.approx(np.mean(pairs))
    answered = np.mean([error[found.answers[0], label] for label in labels])
    assert cost.others["answer"].estimate == pytest.approx(answered)
    assert cost.others["refuse"].estimate == pytest.approx(9)


def test_no_rule_is_cheaper_in_a_world_of_known_truth() -> None:
    mixtures, truth = world(20_000, 4)
    found = refusal_rule(mixtures, **COSTS)

    cost = found.cost(np.random.default_rng(5).multinomial(5, truth))

    assert set(cost.others) == {"confidence", "answer", "ask", "refuse"}
    assert all(saved.lower > 0 for saved in cost.saved.values())
    assert cost.rule.lower < cost.expected < cost.rule.upper
    assert min(cost.shares.values()) > 0.1


def test_what_is_saved_is_the_difference_of_the_costs() -> None:
    mixtures, truth = world(300, 6)
    labels = np.random.default_rng(7).multinomial(3, truth)

    cost = refusal_rule(mixtures, **COSTS).cost(labels)

    for name, other in cost.others.items():
        expected = other.estimate - cost.rule.estimate
        assert cost.saved[name].estimate == pytest.approx(expected)


def test_a_cost_says_in_words_what_was_done() -> None:
    mixtures, truth = world(300, 8)
    labels = np.random.default_rng(9).multinomial(3, truth)

    text = str(refusal_rule(mixtures, **COSTS).cost(labels))

    assert text.startswith("cost per item 0.")
    assert "Other rules: confidence 0." in text


def test_if_everything_costs_the_same_the_cost_is_certain() -> None:
    rule = refusal_rule(world(5, 10)[0], person=0, refusal=2, error=np.full((3, 3), 2.0))

    assert rule.cost(np.full((5, 3), 1)).rule == (2, 2, 2)


def test_prices_that_cannot_be_are_refused() -> None:
    mixtures = world(5, 11)[0]

    with pytest.raises(hocal.InputError, match="`mixtures` must be Mixtures, got list"):
        refusal_rule([[0.5, 0.5]], **COSTS)  # type: ignore[arg-type]
    with pytest.raises(hocal.InputError, match="`person` must be a number at least 0, got -1"):
        refusal_rule(mixtures, person=-1, refusal=1)
    with pytest.raises(hocal.InputError, match="`error` must be a number, or have 3 rows and 3"):
        refusal_rule(mixtures, error=np.eye(2), **COSTS)
    with pytest.raises(hocal.InputError, match="`error` must be non-negative and not all zero"):
        refusal_rule(mixtures, error=np.zeros((3, 3)), **COSTS)


def test_prices_that_refuse_to_become_numbers_are_named() -> None:
    class Table:
        def __array__(self, *_: object, **__: object) -> None:
            raise RuntimeError("no array")

    with pytest.raises(hocal.InputError, match="`error` must be"):
        refusal_rule(world(5, 11)[0], error=Table(), **COSTS)  # type: ignore[arg-type]


def test_one_label_does_not_say_what_asking_costs() -> None:
    rule = refusal_rule(world(2, 12)[0], **COSTS)

    with pytest.raises(hocal.InputError, match="at least 2 labels in each row, got 1 in row 1"):
        rule.cost([[1, 1, 0], [1, 0, 0]])
    with pytest.raises(hocal.InputError, match="must describe the same items"):
        rule.cost([[1, 1, 0]])


@pytest.mark.slow
def test_intervals_of_the_cost_hold_the_expected_cost() -> None:
    """Items are drawn anew from a large population, whose expected costs are known."""
    mixtures, truth = world(4_000, 13)
    rule = refusal_rule(mixtures, **COSTS)
    paid = np.column_stack(
        [
            1 - truth[np.arange(4_000), rule.answers],
            0.1 + 1 - (truth**2).sum(axis=1),
            np.full(4_000, 0.3),
        ]
    )
    best = rule.expected.argmin(axis=1)
    known = paid[np.arange(4_000), best].mean()
    saved = paid[:, 0].mean() - known
    generator = np.random.default_rng(14)
    missed = np.zeros(2)
    for _ in range(60):
        rows = generator.integers(0, 4_000, 150)
        drawn = refusal_rule(mixtures[rows], **COSTS)
        cost = drawn.cost(generator.multinomial(2, truth[rows]))
        for place, (found, true) in enumerate([(cost.rule, known), (cost.saved["answer"], saved)]):
            missed[place] += not found.lower <= true <= found.upper

    assert (missed <= stats.binom.ppf(0.99, 60, 0.05)).all()
