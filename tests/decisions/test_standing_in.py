"""A judge in the place of a person: advantages, their limits, and what is refused."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hocal
from hocal.decisions import StandIn, class_bias, stand_in
from hocal.decisions.standing_in import similarity

COLUMNS = {"item": "item", "label": "label", "annotator": "who"}


def judgements(labels: NDArray[np.int64], seen: NDArray[np.bool_] | None = None) -> dict[str, Any]:
    """Return one row per judgement from labels of shape (n_items, n_people)."""
    there = np.ones_like(labels, dtype=bool) if seen is None else seen
    item, who = np.nonzero(there)
    return {"item": item, "who": who, "label": labels[item, who]}


def crowd(
    n_items: int, n_people: int, seed: int, n_classes: int = 3
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return label distributions and labels drawn from them."""
    generator = np.random.default_rng(seed)
    p = generator.dirichlet(np.ones(n_classes), n_items)
    draws = generator.random((n_items, n_people, 1)) > p.cumsum(axis=1)[:, None]
    return p, draws.sum(axis=2).clip(max=n_classes - 1)


def slow_advantage(
    judge: NDArray[np.float64], table: dict[str, Any], person: int, alike: NDArray[np.float64]
) -> float:
    """Leave a person out, item by item and label by label."""
    rows = list(zip(table["item"], table["who"], table["label"], strict=True))
    differences = []
    for item, who, label in rows:
        others = [other for i, w, other in rows if i == item and w != person]
        if who == person and others:
            drawn = [sum(judge[item, j] * alike[j, o] for j in range(len(alike))) for o in others]
            differences.append(np.mean(drawn) - np.mean([alike[label, o] for o in others]))
    return float(np.mean(differences))


@pytest.mark.parametrize("ordinal", [False, True])
def test_advantages_are_those_of_leaving_each_person_out(ordinal: bool) -> None:
    p, labels = crowd(60, 4, seed=0)
    seen = np.random.default_rng(1).random(labels.shape) < 0.7
    seen[:, 0] = True
    table = judgements(labels, seen)

    found = stand_in(p, table, **COLUMNS, ordinal=ordinal)

    for person, duel in found.per_person.items():
        slow = slow_advantage(p, table, person, similarity(3, ordinal=ordinal))
        assert duel.advantage.estimate == pytest.approx(slow)


def test_overall_advantage_is_agreement_with_the_judge_less_that_of_pairs() -> None:
    p, labels = crowd(200, 3, seed=2)
    table = judgements(labels)
    counts = hocal.count_labels(table, item="item", label="label").counts

    found = stand_in(p, table, **COLUMNS)

    assert found.judge.estimate == pytest.approx((p * counts / 3).sum(axis=1).mean())
    pairs = (counts * (counts - 1)).sum(axis=1) / 6
    assert found.people.estimate == pytest.approx(pairs.mean())
    assert found.advantage.estimate == pytest.approx(found.judge.estimate - found.people.estimate)


def test_a_judge_who_says_what_the_majority_says_may_replace_everybody() -> None:
    p, labels = crowd(800, 3, seed=3)
    majority = np.eye(3)[p.argmax(axis=1)]

    found = stand_in(majority, judgements(labels), **COLUMNS)

    assert found.acceptable is True
    assert found.replaceable == (0, 1, 2)
    assert "stands in for an average person" in str(found)


def test_a_judge_who_guesses_may_replace_nobody() -> None:
    labels = np.repeat(np.arange(300)[:, None] % 3, 3, axis=1)

    found = stand_in(np.full((300, 3), 1 / 3), judgements(labels), **COLUMNS)

    assert found.acceptable is False
    assert found.irreplaceable == (0, 1, 2)


def test_tolerance_turns_a_slightly_worse_judge_into_a_stand_in() -> None:
    labels = np.zeros((500, 3), dtype=np.int64)
    labels[0] = 1  # so that there are two classes
    judge = np.tile([0.95, 0.05], (500, 1))

    strict = stand_in(judge, judgements(labels), **COLUMNS)
    lenient = stand_in(judge, judgements(labels), **COLUMNS, tolerance=0.1)

    assert strict.acceptable is False
    assert lenient.acceptable is True


def test_neighbouring_classes_agree_in_part_if_they_are_in_order() -> None:
    labels = np.array([[0, 0], [4, 4], [1, 1], [2, 2], [3, 3]])
    judge = np.eye(5)[[1, 3, 2, 3, 4]]

    found = stand_in(judge, judgements(labels), **COLUMNS, ordinal=True)

    assert found.judge.estimate == pytest.approx(0.75)


def test_a_person_who_shares_no_item_is_listed_without_a_verdict() -> None:
    table = {"item": [0, 0, 1, 1, 2], "who": list("abbac"), "label": [0, 1, 0, 1, 1]}

    found = stand_in(np.full((3, 2), 0.5), table, **COLUMNS)

    assert found.per_person["c"].n_items == 0
    assert found.per_person["c"].advantage[1:] == (-1, 1)
    assert "c" in found.table()


@pytest.mark.parametrize(
    ("table", "rows", "message"),
    [
        ({"item": [0, 1], "who": [0, 0], "label": [0, 1]}, 2, "two people or more judged"),
        ({"item": [0, 0, 0], "who": [0, 0, 1], "label": [0, 1, 1]}, 1, "one judgement of each"),
        ({"item": [0, 0], "who": [0, 1], "label": [0, 1]}, 3, "a row for each of the 1 items"),
    ],
)
def test_tables_that_do_not_fit_are_refused(
    table: dict[str, Sequence[int]], rows: int, message: str
) -> None:
    with pytest.raises(hocal.InputError, match=message):
        stand_in(np.full((rows, 2), 0.5), table, **COLUMNS)


def test_a_negative_tolerance_is_refused() -> None:
    _, labels = crowd(10, 2, seed=0)

    with pytest.raises(hocal.InputError, match=r"`tolerance` must be"):
        stand_in(np.full((10, 3), 1 / 3), judgements(labels), **COLUMNS, tolerance=-0.1)


def test_bias_is_the_share_of_the_model_less_that_of_people() -> None:
    p, labels = crowd(400, 2, seed=5)
    counts = np.stack([(labels == j).sum(axis=1) for j in range(3)], axis=1)
    judge = np.eye(3)[p.argmax(axis=1)]

    found = class_bias(judge, counts)

    expected = judge.mean(axis=0) - counts.mean(axis=0) / 2
    np.testing.assert_allclose([each.estimate for each in found], expected)
    assert all(each.lower < each.estimate < each.upper for each in found)


def simulate(advantage_of: float, n_items: int, n_worlds: int) -> list[StandIn]:
    """Judge worlds where two people agree with chance 0.68 and the judge knows as much as told."""
    found = []
    for seed in range(n_worlds):
        generator = np.random.default_rng(seed)
        share = np.where(generator.random(n_items) < 0.5, 0.8, 0.2)  # p (1 - p) = 0.16
        labels = (generator.random((n_items, 3)) < share[:, None]).astype(np.int64)
        right = generator.random(n_items) < 0.8 + advantage_of / 0.6
        named = np.where(right, share > 0.5, share < 0.5).astype(np.int64)
        found.append(stand_in(np.eye(2)[named], judgements(labels), **COLUMNS))
    return found


@pytest.mark.slow
def test_a_judge_like_a_person_is_rarely_said_to_be_better_or_worse_than_any() -> None:
    """Right in 80% of items is what a person is: every advantage is 0, all limits must hold it."""
    found = simulate(0.0, 300, 400)

    overall = [world.advantage.lower > 0 or world.advantage.upper < 0 for world in found]
    anyone = [bool(world.replaceable or world.irreplaceable) for world in found]
    assert np.mean(overall) <= 0.05
    assert np.mean(anyone) <= 0.05


@pytest.mark.slow
def test_a_better_judge_is_found_and_its_advantage_held() -> None:
    """Always right: advantage 0.8 - 0.68 = 0.12."""
    found = simulate(0.12, 600, 200)

    assert np.mean([world.acceptable is True for world in found]) > 0.9
    held = [world.advantage.lower <= 0.12 <= world.advantage.upper for world in found]
    assert np.mean(held) >= 0.95


@pytest.mark.slow
def test_limits_of_bias_hold_for_all_classes_together() -> None:
    missed = 0
    for seed in range(300):
        _, labels = crowd(300, 2, seed)
        counts = np.stack([(labels == j).sum(axis=1) for j in range(3)], axis=1)
        judge = np.eye(3)[np.random.default_rng(seed + 10_000).integers(0, 3, 300)]
        missed += any(not low <= 0 <= high for _, low, high in class_bias(judge, counts))
    assert missed <= 15
