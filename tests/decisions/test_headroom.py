"""Headroom: a model's loss, what no model can remove, and what is left to gain."""

from __future__ import annotations

import itertools
import math
import os
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

import hocal
from hocal.datasets import load_cifar10_softmax, load_cifar10h
from hocal.decisions.gains import Headroom, HeadroomPart, ModelLosses
from hocal.decisions.losses import Judged, decimal
from hocal.guarantees import Interval
from hocal.uncertainty.entropy import get_entropy

Array = NDArray[np.float64]


def beta_world(n_items: int, k: int, seed: int = 0) -> NDArray[np.int64]:
    """Return k labels of coins whose probability of heads is uniform on [0, 1]."""
    generator = np.random.default_rng(seed)
    heads = generator.binomial(k, generator.random(n_items))
    return np.column_stack([k - heads, heads])


def three_classes(n_items: int = 600, seed: int = 1) -> tuple[Array, NDArray[np.int64]]:
    """Return a model's predictions and one to four labels per item."""
    generator = np.random.default_rng(seed)
    truth = generator.dirichlet([0.5, 0.5, 0.5], n_items)
    counts = generator.multinomial(generator.integers(1, 5, n_items), truth)
    return 0.7 * truth + 0.1, counts


def contains(interval: Interval, value: float) -> bool:
    return interval.lower <= value <= interval.upper


@pytest.mark.parametrize(("loss", "floor"), [("log", math.log(2)), ("brier", 0.5)])
def test_nothing_is_left_to_gain_on_fair_coins_that_are_called_fair(
    loss: Any, floor: float
) -> None:
    counts = np.random.default_rng(0).multinomial(3, [0.5, 0.5], size=3000)

    found = hocal.headroom(np.full((3000, 2), 0.5), counts, loss=loss)

    assert found.loss.estimate == pytest.approx(floor)
    assert found.irreducible.estimate == pytest.approx(floor, abs=0.02)
    assert contains(found.irreducible, floor)
    assert found.remaining.lower == 0
    assert found.remaining.upper < 0.1


@pytest.mark.parametrize("loss", ["log", "brier"])
def test_all_of_the_loss_can_be_gained_where_people_agree(loss: Any) -> None:
    truth = np.random.default_rng(0).integers(0, 3, 3000)
    model = np.full((3000, 3), 1 / 3)

    found = hocal.headroom(model, 4 * np.eye(3, dtype=int)[truth], loss=loss)

    assert found.irreducible.lower == 0
    assert found.irreducible.upper < 0.05
    assert contains(found.remaining, found.loss.estimate)
    assert found.remaining.lower > 0.9 * found.loss.estimate


@pytest.mark.parametrize("k", [2, 3, 10])
def test_uniform_coins_have_half_a_nat_that_no_model_can_remove(k: int) -> None:
    """E H(p) for p uniform on [0, 1] is 1/2, and the model that says 50% loses log 2."""
    found = hocal.headroom(np.full((5000, 2), 0.5), beta_world(5000, k))

    assert contains(found.irreducible, 0.5)
    assert contains(found.remaining, math.log(2) - 0.5)
    assert found.irreducible.estimate == pytest.approx(0.5, abs=0.03)


def test_uniform_coins_have_a_third_of_brier_that_no_model_can_remove() -> None:
    """E 2 p (1 - p) = 1/3, and the model that says 50% loses 1/2."""
    found = hocal.headroom(np.full((5000, 2), 0.5), beta_world(5000, 2), loss="brier")

    assert contains(found.irreducible, 1 / 3)
    assert contains(found.remaining, 1 / 6)
    assert found.remaining.width < 0.06


@pytest.mark.parametrize("loss", ["log", "brier"])
def test_the_parts_add_up_to_the_loss(loss: Any) -> None:
    model, counts = three_classes()
    several = counts.sum(axis=1) > 1

    found = hocal.headroom(model[several][:, ::-1], counts[several], loss=loss)

    parts = found.irreducible.estimate + found.remaining.estimate
    assert parts == pytest.approx(found.loss.estimate)


@pytest.mark.parametrize("loss", ["log", "brier"])
def test_the_loss_is_that_of_a_loop_over_labels(loss: Any) -> None:
    model, counts = three_classes(50)

    per_item = []
    for prediction, row in zip(model, counts, strict=True):
        labels = np.repeat(np.arange(3), row)
        if len(labels) == 1:
            continue
        if loss == "log":
            losses = [-math.log(prediction[label]) for label in labels]
        else:
            losses = [((prediction - np.eye(3)[label]) ** 2).sum() for label in labels]
        per_item.append(np.mean(losses))

    assert hocal.headroom(model, counts, loss=loss).loss.estimate == pytest.approx(
        np.mean(per_item)
    )


def test_the_irreducible_brier_score_is_the_share_of_pairs_that_disagree() -> None:
    model, counts = three_classes(50)

    shares = []
    for row in counts[counts.sum(axis=1) > 1]:
        pairs = itertools.combinations(np.repeat(np.arange(3), row), 2)
        shares.append(np.mean([one != other for one, other in pairs]))

    found = hocal.headroom(model, counts, loss="brier")
    assert found.irreducible.estimate == pytest.approx(np.mean(shares))


@pytest.mark.parametrize("loss", ["log", "brier"])
def test_predicted_classes_make_up_the_whole(loss: Any) -> None:
    model, counts = three_classes()

    found = hocal.headroom(model, counts, loss=loss)

    n_items = np.array([part.n_items for part in found.per_class.values()])
    losses = [part.loss.estimate for part in found.per_class.values()]
    top = model[counts.sum(axis=1) > 1].argmax(axis=1)
    np.testing.assert_array_equal(n_items, np.bincount(top))
    assert n_items @ losses / n_items.sum() == pytest.approx(found.loss.estimate)


def test_a_class_that_is_never_predicted_has_no_part() -> None:
    found = hocal.headroom([[0.6, 0.3, 0.1]] * 20, [[2, 1, 0]] * 20)

    assert list(found.per_class) == [0]


def test_one_cell_of_all_items_is_the_whole() -> None:
    model, counts = three_classes()

    found = hocal.headroom(model, counts, cells=np.full(len(counts), 7))

    whole = HeadroomPart(found.n_items, found.loss, found.irreducible, found.remaining)
    assert found.per_cell == {7: whole}


def test_the_order_of_classes_does_not_matter() -> None:
    model, counts = three_classes()
    order = [2, 0, 1]

    found = hocal.headroom(model, counts, loss="brier")
    moved = hocal.headroom(model[:, order], counts[:, order], loss="brier")

    np.testing.assert_allclose(moved.remaining, found.remaining, atol=1e-9)
    np.testing.assert_allclose(moved.loss, found.loss, atol=1e-9)


def test_what_a_model_finds_likeliest_narrows_what_no_model_can_remove() -> None:
    """Three labels of ten classes: with a model that knows the class, and with one that errs."""
    generator = np.random.default_rng(0)
    tops = generator.integers(10, size=4000)
    heads = np.full((4000, 10), 0.1)
    heads[np.arange(4000), tops] = 3
    truth = np.array([generator.dirichlet(row) for row in heads])
    counts = generator.multinomial(3, truth)
    width = {}

    for model, shift in (("good", 0), ("bad", 3)):
        predictions = np.full((4000, 10), 0.02)
        predictions[np.arange(4000), (tops + shift) % 10] = 0.82
        found = hocal.headroom(predictions, counts).irreducible
        width[model] = found.upper - found.lower
        assert contains(found, float(get_entropy("shannon").value(truth).mean()))

    assert width["good"] < 0.93 * width["bad"]


def test_sparse_counts_give_the_same() -> None:
    model, counts = three_classes()

    dense = hocal.headroom(model, counts)

    assert hocal.headroom(model, sparse.csr_array(counts)).remaining == dense.remaining


def test_more_confidence_needs_wider_intervals() -> None:
    model, counts = three_classes()

    usual, sure = (hocal.headroom(model, counts, confidence=level) for level in (0.9, 0.99))

    for name in ("loss", "irreducible", "remaining", "accuracy"):
        assert getattr(usual, name).width < getattr(sure, name).width


def test_one_label_per_item_leaves_the_irreducible_part_open() -> None:
    generator = np.random.default_rng(0)
    counts = np.eye(2, dtype=int)[generator.integers(0, 2, 500)]

    found = hocal.headroom(np.full((500, 2), 0.5), counts, loss="brier")

    assert math.isnan(found.irreducible.estimate)
    assert math.isnan(found.remaining.estimate)
    assert found.irreducible.lower == found.remaining.lower == 0
    assert found.remaining.upper <= found.loss.upper
    assert found.best_accuracy.upper == 1
    assert "No item has two labels" in str(found)


def test_items_with_one_label_are_left_out_and_that_is_said() -> None:
    model, counts = three_classes()
    several = counts.sum(axis=1) > 1

    mixed = hocal.headroom(model, counts, floor=0.1, cells=np.arange(600) % 2)
    clean = hocal.headroom(
        model[several], counts[several], floor=0.1, cells=np.arange(600)[several] % 2
    )

    assert [mixed.table(), mixed.n_items, mixed.per_cell] == [
        clean.table(),
        several.sum(),
        clean.per_cell,
    ]
    assert any("one label" in text for text in mixed.assumptions)
    assert not any("one label" in text for text in clean.assumptions)


@pytest.mark.parametrize("loss", ["log", "brier", "accuracy"])
def test_what_no_model_can_remove_and_what_is_left_add_up_to_the_loss(loss: Any) -> None:
    """Items with one label are easy here, and those with three are coins."""
    easy, coin = [[0.95, 0.05]] * 600, [[0.5, 0.5]] * 600
    n_labels = np.repeat([1, 3], 600)
    counts = np.random.default_rng(0).multinomial(n_labels, easy + coin)

    found = hocal.headroom(0.9 * np.array(easy + coin) + 0.05, counts, loss=loss)

    for part in (found, *found.per_class.values()):
        parts = part.irreducible.estimate + part.remaining.estimate
        assert part.loss.estimate == pytest.approx(parts)


def test_a_known_floor_replaces_an_assumption() -> None:
    model, counts = three_classes()

    guessed, known = hocal.headroom(model, counts), hocal.headroom(model, counts, floor=0.01)

    assert any("floor" in text for text in guessed.assumptions)
    assert not any("floor" in text for text in known.assumptions)
    assert known.loss.upper >= guessed.loss.upper


def test_no_one_agrees_with_people_more_often_than_the_bound_says() -> None:
    """Whatever the label distribution, max p is at most the bound of how often two people agree."""
    for alpha in (0.1, 0.5, 2.0):
        for n_classes in (2, 3, 10):
            truth = np.random.default_rng(0).dirichlet(np.full(n_classes, alpha), 500)
            counts = np.random.default_rng(1).multinomial(5, truth)

            found = hocal.headroom(0.9 * truth + 0.1 / n_classes, counts, loss="brier")

            assert contains(found.best_accuracy, truth.max(axis=1).mean())
            assert found.accuracy.lower <= truth.max(axis=1).mean()


def test_no_one_can_guess_a_fair_coin() -> None:
    counts = np.random.default_rng(0).multinomial(20, [0.5, 0.5], size=5000)

    found = hocal.headroom(np.full((5000, 2), 0.5), counts)

    assert 0.5 <= found.best_accuracy.upper < 0.57


def test_few_items_say_little_but_hold() -> None:
    found = hocal.headroom([[0.9, 0.1]], [[1, 1]])

    assert found.irreducible == pytest.approx(Interval(found.irreducible.estimate, 0, math.log(2)))
    assert found.remaining.lower == 0


def test_the_sentence_says_it_all() -> None:
    part = Interval(0.452, 0.431, 0.468)
    found = Headroom(
        "log", 0.95, 10, part, Interval(0.15, 0.14, 0.21), Interval(0.3, 0.26, 0.31),
        Interval(0.9, 0.8, 1), Interval(0.94, 0.9, 0.952), {}, {}, (),
    )  # fmt: skip

    assert str(found) == (
        "Your model's log loss is .452 [.431, .468]. No model can go below .150 [.140, .210]. "
        "Between .260 and .310 is left to gain. A new person agrees with it about 90.0% of items, "
        "with no model about more than 95.2%."
    )


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0.4521, ".452"),
        (-0.031, "-.031"),
        (1.25, "1.250"),
        (0.0, "0"),
        (-1e-9, "0"),
        (10.5, "10.500"),
    ],
)
def test_numbers_are_written_without_a_leading_zero(number: float, shown: str) -> None:
    assert decimal(number) == shown


def test_the_table_has_a_line_per_class_under_its_name() -> None:
    model, counts = three_classes()

    lines = hocal.headroom(model, counts).table(["cat", "dog", "owl"]).splitlines()

    assert [line.split()[-1] for line in lines] == ["remaining", "all", "cat", "dog", "owl"]


def test_a_zero_is_no_prediction_for_the_log_loss() -> None:
    with pytest.raises(hocal.InputError, match=r"0 for class 1 in row 2\. Recalibrate or smooth"):
        hocal.headroom([[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]], [[1, 1]] * 3)


def test_a_zero_is_a_prediction_for_the_brier_score() -> None:
    assert hocal.headroom([[1, 0]] * 3, [[1, 1]] * 3, loss="brier").loss.estimate == 1


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([[0.5, 0.5]], [[1, 1, 0]]), {}, "must have 3 classes on its last axis, got 2"),
        (([[0.5, 0.5]] * 2, [[1, 1]]), {}, "must describe the same items, got 2 and 1 rows"),
        (([[0.5, 0.5]], [[0, 0]]), {}, "must have at least 1 label in each row, got 0 in row 0"),
        (([[0.5, 0.5]], [[1, 1]]), {"loss": "hinge"}, "'accuracy', got 'hinge'"),
        (([[0.5, 0.5]], [[1, 1]]), {"confidence": 1}, "must lie strictly between 0 and 1, got 1"),
        (([[0.5, 0.5]], [[1, 1]]), {"cells": [0, 1]}, "must hold one number for each of 1 items"),
        (([[0.9, 0.1]], [[1, 1]]), {"floor": 0.2}, "must not be below `floor`, 0.2, got 0.1 for"),
    ],
)
def test_bad_input_is_named(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(hocal.InputError, match=message):
        hocal.headroom(*arguments, **options)


@pytest.mark.parametrize("loss", ["log", "brier", "accuracy"])
def test_limits_do_not_depend_on_the_order_of_the_rows(loss: Any) -> None:
    model, counts = three_classes()
    shuffled = np.random.default_rng(1).permutation(len(model))

    found = hocal.headroom(model, counts, loss=loss)
    again = hocal.headroom(model[shuffled], counts[shuffled], loss=loss)

    for part in ("loss", "irreducible", "remaining"):
        assert getattr(again, part)[1:] == pytest.approx(getattr(found, part)[1:])


@pytest.mark.parametrize("n_predictions", [1, 2, 7])
def test_each_prediction_has_its_share_of_the_advisers(n_predictions: int) -> None:
    """Of a judge who names one class for each item, most predictions are equal."""
    model = np.random.default_rng(0).dirichlet(np.ones(3), n_predictions)
    given = np.random.default_rng(1).integers(n_predictions, size=1000)

    advises = Judged.of([[1, 0, 0]] * 1000).advised(model[given]).advises

    shares = np.bincount(given[advises], minlength=n_predictions)
    assert shares == pytest.approx(np.bincount(given) / 10, abs=1)


def test_a_table_with_too_few_names_is_refused() -> None:
    model, counts = three_classes()
    found = hocal.headroom(model, counts, loss="brier", cells=np.arange(len(model)) % 5)

    with pytest.raises(hocal.InputError, match="number from 0 to 4, got 3 names"):
        found.table(["ant", "bee", "cat"])


def test_advisers_are_not_counted_in_the_limits() -> None:
    """Other labels of an adviser move the estimate, and the limits of the loss only by a guess."""
    model, counts = three_classes()
    judged = Judged.of(counts).advised(model)
    losses = ModelLosses.of(model, "model", judged, "brier", None).losses

    interval = losses.interval(0.05, judged.everything, judged.advises)
    rest = losses.limits(0.05, ~judged.advises, judged.advises)

    assert judged.advises.sum() == 60
    assert interval[1:] == tuple(rest)


@pytest.mark.skipif("HOCAL_DATA" not in os.environ, reason="HOCAL_DATA names no data folder")
def test_five_labels_tell_what_resnet18_could_still_gain_on_cifar10h() -> None:
    """Labels are drawn from the histograms, so that all of them are the truth."""
    people = load_cifar10h().counts
    shares = people / people.sum(axis=1, keepdims=True)
    model = load_cifar10_softmax("resnet18").probabilities
    loss = -(shares * np.log(model)).sum(axis=1).mean()
    floor = get_entropy("shannon").value(shares).mean()

    found = hocal.headroom(model, np.random.default_rng(0).multinomial(5, shares))

    assert contains(found.loss, loss)
    assert contains(found.irreducible, floor)
    assert contains(found.remaining, loss - floor)
    assert found.loss.width < 0.1
    assert found.irreducible.width < 0.11
    assert found.remaining.width < 0.16
    assert found.irreducible.estimate == pytest.approx(floor, abs=0.01)


# Accuracy


def test_people_who_always_agree_leave_all_errors_to_gain() -> None:
    """Half of the predictions are wrong about items on which all people agree."""
    model = np.tile([[0.9, 0.1], [0.1, 0.9]], (500, 1))

    found = hocal.headroom(model, [[3, 0]] * 1000, loss="accuracy")

    assert found.loss.estimate == 0.5
    assert found.irreducible.upper < 0.02
    assert contains(found.remaining, 0.5)
    assert found.remaining.lower > 0.4
    assert found.best_accuracy.lower > 0.98


def test_the_best_accuracy_is_between_the_agreement_of_pairs_and_what_it_allows() -> None:
    """Two labels of a coin with 80% heads agree with 68%; the larger share of them is 84%."""
    counts = np.random.default_rng(0).multinomial(2, [0.8, 0.2], size=200_000)

    found = hocal.headroom(np.full((200_000, 2), [0.4, 0.6]), counts, loss="accuracy")

    assert found.best_accuracy.lower == pytest.approx(0.68, abs=0.01)
    assert found.best_accuracy.upper == pytest.approx(0.8, abs=0.01)  # all items are alike
    assert contains(found.best_accuracy, 0.8)


def test_accuracy_of_predicted_classes_is_told_apart() -> None:
    model, counts = three_classes()

    found = hocal.headroom(model, counts, loss="accuracy", cells=np.arange(len(model)) % 2)

    assert set(found.per_class) <= {0, 1, 2}
    assert set(found.per_cell) == {0, 1}
    assert found.loss.estimate == pytest.approx(1 - found.accuracy.estimate)
    assert "error rate" in str(found)


def test_the_sentences_end_with_how_often_people_agree() -> None:
    found = hocal.headroom([[0.9, 0.1]] * 500, [[3, 0]] * 400 + [[2, 1]] * 100)

    assert "A new person agrees with it about 93.3% of items, with no model about more" in str(
        found
    )


@pytest.mark.parametrize("k", [2, 3, 4])
def test_guesses_from_the_other_labels_are_a_loop_over_labels(k: int) -> None:
    """Each label of each item against the commonest of the others, ties to the likelier class."""
    generator = np.random.default_rng(k)
    model = generator.dirichlet(np.ones(3), 40)
    counts = generator.multinomial(k, [0.5, 0.3, 0.2], size=40)

    found = ModelLosses.of(model, "model", Judged.of(counts), "accuracy", None).entropy_bounds(40)

    for item in range(40):
        missed = []
        for label in np.repeat(np.arange(3), counts[item]):
            others = counts[item] - np.eye(3)[label]
            tied = np.flatnonzero(others == others.max())
            missed.append(tied[model[item, tied].argmax()] != label)
        assert found.above.values[item] == pytest.approx(np.mean(missed))


def test_statistics_of_accuracy_enclose_it_whatever_the_label_distribution() -> None:
    """Exact expectations over all snapshots of k labels, for many p."""
    generator = np.random.default_rng(0)
    for k in (2, 3, 5):
        snapshots = np.array([s for s in itertools.product(range(k + 1), repeat=3) if sum(s) == k])
        for p in generator.dirichlet([0.7] * 3, 50):
            orders = [math.prod(map(math.factorial, s)) for s in snapshots.tolist()]
            chances = math.factorial(k) / np.array(orders) * (p**snapshots).prod(axis=1)
            model = np.tile(generator.dirichlet(np.ones(3)), (len(snapshots), 1))
            losses = ModelLosses.of(model, "model", Judged.of(snapshots), "accuracy", None)
            below, above = (each.values @ chances for each in losses.entropy_bounds(len(snapshots)))
            assert below <= 1 - p.max() + 1e-12
            assert above >= 1 - p.max() - 1e-12


def test_a_trillion_labels_of_an_item_are_measured_like_a_million() -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(3), 12)
    many, few = (hocal.headroom(p, np.full((12, 3), n)).irreducible for n in (10**12, 10**6))

    assert many.lower == pytest.approx(few.lower, rel=1e-3)


def test_no_model_is_worse_than_the_best_possible_one() -> None:
    """Two labels agree with 68% only, but people agree with a model that says heads with 80%."""
    counts = np.random.default_rng(0).multinomial(2, [0.8, 0.2], size=50_000)

    found = hocal.headroom(np.full((50_000, 2), [0.6, 0.4]), counts, loss="accuracy")

    assert found.best_accuracy.lower > 0.79
    assert found.remaining.upper < 0.02


def test_no_floor_is_estimated_above_what_the_model_itself_loses() -> None:
    """Few labels of many classes leave the entropy open; that of the best model is no higher."""
    generator = np.random.default_rng(8)
    p = generator.dirichlet([0.1] * 60, 400) + 1e-6
    p /= p.sum(axis=1, keepdims=True)

    found = hocal.headroom(p, generator.multinomial(2, p))

    assert found.irreducible.estimate <= found.loss.estimate
    assert found.remaining.estimate >= 0
    for part in found.per_class.values():
        assert part.irreducible.estimate <= max(part.loss.estimate, part.irreducible.lower)
