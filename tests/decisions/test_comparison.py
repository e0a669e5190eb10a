"""Comparisons: which of two models has the lower loss, by how much, and of how much."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hocal
from hocal.decisions.comparison import Comparison, share_closed
from hocal.guarantees import Interval
from hocal.guarantees.cell_uncertainty import Limits

Array = NDArray[np.float64]


def two_models(n_items: int = 800) -> tuple[Array, Array, NDArray[np.int64], Array]:
    """Return a vague and a sharp model, three labels per item, and the label distributions."""
    generator = np.random.default_rng(0)
    truth = generator.dirichlet([0.4, 0.4, 0.4], n_items)
    counts = generator.multinomial(3, truth)
    return 0.4 * truth + 0.2, 0.8 * truth + 0.2 / 3, counts, truth


@pytest.mark.parametrize("loss", ["log", "brier"])
def test_the_difference_is_that_of_the_losses(loss: Any) -> None:
    vague, sharp, counts, _ = two_models()

    found = hocal.compare(vague, sharp, counts, loss=loss)

    losses = [hocal.headroom(model, counts, loss=loss).loss for model in (vague, sharp)]
    assert [found.first, found.second] == losses
    assert found.difference.estimate == pytest.approx(losses[1].estimate - losses[0].estimate)


@pytest.mark.parametrize("loss", ["log", "brier"])
def test_exchanged_models_differ_by_the_opposite(loss: Any) -> None:
    vague, sharp, counts, _ = two_models()

    there = hocal.compare(vague, sharp, counts, loss=loss).difference
    back = hocal.compare(sharp, vague, counts, loss=loss).difference

    expected = Interval(-there.estimate, -there.upper, -there.lower)
    np.testing.assert_allclose(back, expected, atol=1e-6)


def test_limits_of_a_difference_do_not_depend_on_the_order_of_the_rows() -> None:
    vague, sharp, counts, _ = two_models()
    shuffled = np.random.default_rng(1).permutation(len(counts))

    found = hocal.compare(vague, sharp, counts).difference
    again = hocal.compare(vague[shuffled], sharp[shuffled], counts[shuffled]).difference

    assert again[1:] == pytest.approx(found[1:])


@pytest.mark.parametrize("loss", ["log", "brier"])
def test_the_difference_covers_the_expected_one(loss: Any) -> None:
    vague, sharp, counts, truth = two_models()
    costs = [-np.log(model) for model in (vague, sharp)]
    if loss == "brier":
        costs = [1 - 2 * model + (model**2).sum(axis=1)[:, None] for model in (vague, sharp)]
    expected = (truth * (costs[1] - costs[0])).sum(axis=1).mean()

    found = hocal.compare(vague, sharp, counts, loss=loss)

    assert found.difference.lower < expected < found.difference.upper < 0
    assert found.better == "second"


def test_a_model_does_not_beat_itself() -> None:
    vague, _, counts, _ = two_models()

    found = hocal.compare(vague, vague, counts)

    assert found.difference.estimate == 0
    assert found.difference.lower < 0 < found.difference.upper
    assert found.better is None
    assert "do not tell which is better" in str(found)


def test_noise_that_both_models_share_does_not_widen_the_difference() -> None:
    """The two losses may differ by anything inside both intervals, the difference by much less."""
    _, sharp, counts, _ = two_models(5000)
    similar = 0.95 * sharp + 0.05 / 3

    found = hocal.compare(sharp, similar, counts)

    assert found.difference.width < (found.first.width + found.second.width) / 4


def test_the_best_model_closes_all_of_the_gap() -> None:
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 2, 3000)
    counts = 3 * np.eye(2, dtype=int)[truth]
    guess = np.full((3000, 2), 0.5)
    sure = 0.999 * np.eye(2)[truth] + 0.0005

    found = hocal.compare(guess, sure, counts, loss="brier")

    assert found.share_closed.upper == 1
    assert found.share_closed.lower > 0.9


def test_classes_are_those_that_the_first_predicts() -> None:
    vague, sharp, counts, _ = two_models()

    found = hocal.compare(vague, sharp, counts)

    sizes = {number: part.n_items for number, part in found.per_class.items()}
    assert sizes == dict(enumerate(np.bincount(vague.argmax(axis=1)).tolist()))
    total = sum(part.n_items * part.difference.estimate for part in found.per_class.values())
    assert total / found.n_items == pytest.approx(found.difference.estimate)


def test_one_label_per_item_compares_but_tells_no_share() -> None:
    vague, sharp, _, truth = two_models()
    counts = np.random.default_rng(1).multinomial(1, truth)

    found = hocal.compare(vague, sharp, counts)

    assert found.better == "second"
    assert math.isnan(found.share_closed.estimate)
    assert found.share_closed.upper == 1


@pytest.mark.parametrize(
    ("difference", "remaining", "expected"),
    [
        (Interval(-0.2, -0.3, -0.1), Limits(0.4, 0.5), (0.2, 0.75)),
        (Interval(-0.2, -0.3, -0.1), Limits(0.0, 0.5), (0.2, 1.0)),
        (Interval(0.0, -0.1, 0.1), Limits(0.2, 0.5), (-0.5, 0.5)),
        (Interval(0.2, 0.1, 0.3), Limits(0.2, 0.5), (-1.5, -0.2)),
        (Interval(0.2, 0.1, 0.3), Limits(0.0, 0.5), (-math.inf, -0.2)),
        (Interval(-0.9, -1.0, -0.8), Limits(0.1, 0.4), (1.0, 1.0)),
    ],
)
def test_a_share_takes_the_worst_of_both_limits(
    difference: Interval, remaining: Limits, expected: tuple[float, float]
) -> None:
    assert share_closed(difference, remaining, 0.4)[1:] == pytest.approx(expected)


def test_the_sentence_says_it_all() -> None:
    found = Comparison(
        "log", 0.95, 10, Interval(0.6, 0.5, 0.7), Interval(0.52, 0.4, 0.6),
        Interval(-0.08, -0.11, -0.05), Interval(0.18, 0.1, 0.32), {}, (),
    )  # fmt: skip

    assert str(found) == (
        "The log loss of the two models is .600 and .520, a difference of -.080 [-.110, -.050]. "
        "The second is better. It gains between 10% and 32% of what any model could."
    )


@pytest.mark.parametrize(
    ("first", "second", "options", "message"),
    [
        ([[0.5, 0.5]], [[0.2, 0.3, 0.5]], {}, "`second` must have 2 classes on its last axis"),
        ([[0.5, 0.5]], [[0.5, 0.5]] * 2, {}, "`second` and `counts` must describe the same items"),
        ([[0.5, 0.5]], [[1.0, 0.0]], {}, "`second` must be above 0, .* got 0 for class 1 in row 0"),
        ([[1.0, 0.0]], [[0.5, 0.5]], {}, "`first` must be above 0"),
        ([[0.5, 0.5]], [[0.5, 0.5]], {"loss": "0-1"}, "`loss` must be one of 'log', 'brier'"),
        ([[0.5, 0.5]], [[0.5, 0.5]], {"confidence": 0}, "`confidence` must lie strictly between"),
    ],
)
def test_bad_input_is_named(first: Any, second: Any, options: Any, message: str) -> None:
    with pytest.raises(hocal.InputError, match=message):
        hocal.compare(first, second, [[1, 1]], **options)


def test_a_stream_may_be_looked_at_after_every_item() -> None:
    """Two equal models, 20 streams, 8 looks each: at most a tenth of the streams ever decides."""
    generator = np.random.default_rng(3)
    decided = 0
    for _ in range(20):
        truth = generator.dirichlet([1, 1], 300)
        counts = generator.multinomial(2, truth)
        first, second = (generator.dirichlet([2, 2], 300) for _ in range(2))
        decided += any(
            hocal.compare(
                first[:n], second[:n], counts[:n], loss="brier", confidence=0.9, anytime=True
            ).better
            is not None
            for n in (10, 20, 40, 80, 120, 180, 240, 300)
        )

    assert decided <= 2 + 3 * math.sqrt(20 * 0.1 * 0.9)


def test_a_stream_decides_with_a_little_more_than_a_fixed_number_of_items() -> None:
    generator = np.random.default_rng(4)
    truth = generator.dirichlet([0.5, 0.5], 1000)
    counts = generator.multinomial(2, truth)
    bad = generator.dirichlet([2, 2], 1000)

    fixed, stream = (
        hocal.compare(bad, truth, counts, loss="brier", anytime=anytime).difference
        for anytime in (False, True)
    )

    assert stream.upper < 0
    assert fixed.width < stream.width < 1.6 * fixed.width
    assert stream.estimate == fixed.estimate


def test_the_log_loss_of_a_stream_needs_a_floor() -> None:
    with pytest.raises(hocal.InputError, match="`floor` must be given for the log loss of a str"):
        hocal.compare([[0.5, 0.5]], [[0.4, 0.6]], [[1, 1]], anytime=True)


def test_a_stream_says_that_it_may_be_looked_at() -> None:
    found = hocal.compare([[0.5, 0.5]], [[0.4, 0.6]], [[1, 1]], anytime=True, floor=0.1)

    assert any("however often they are looked at" in text for text in found.assumptions)
    assert not any("fixed in advance" in text for text in found.assumptions)


def test_a_stream_says_that_numbers_of_labels_must_be_known() -> None:
    found = hocal.compare([[0.5, 0.5]], [[0.4, 0.6]], [[1, 1]], anytime=True, floor=0.1)

    assert any("Which numbers of labels items can have was known" in t for t in found.assumptions)


def test_a_table_with_too_few_names_is_refused() -> None:
    vague, sharp, counts, _ = two_models()

    with pytest.raises(hocal.InputError, match="`names` must have a name for each number from 0 t"):
        hocal.compare(vague, sharp, counts).table(["ant"])


def test_judges_who_name_one_class_are_compared_by_how_often_people_agree() -> None:
    """One judge is right about all items, the other about half of them."""
    counts = [[2, 0]] * 400
    right, half = np.tile([[1.0, 0.0]], (400, 1)), np.tile([[1.0, 0.0], [0.0, 1.0]], (200, 1))

    found = hocal.compare(half, right, counts, loss="accuracy")

    assert found.difference.estimate == -0.5
    assert found.better == "second"
    assert "error rate" in str(found)


def test_the_table_has_a_line_for_each_class_that_the_first_predicts() -> None:
    found = hocal.compare([[0.8, 0.2], [0.1, 0.9]], [[0.6, 0.4]] * 2, [[1, 1]] * 2)

    lines = found.table(["cat", "dog"]).splitlines()

    assert [line.split()[-1] for line in lines[1:]] == ["all", "cat", "dog"]
