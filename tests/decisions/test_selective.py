"""Risk against coverage: closed forms, a slow version, and what cannot be."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray

import hocal
from hocal.decisions import risk_coverage

Array = NDArray[np.float64]


def slow_area(losses: Array, rest: Array | None = None) -> float:
    """Answer items one after the other, in the order given."""
    risks = []
    for k in range(1, len(losses) + 1):
        if rest is None:
            risks.append(losses[:k].mean())
        else:
            risks.append((losses[:k].sum() + rest[k:].sum()) / len(losses))
    return float(np.mean(risks))


def test_the_area_is_the_mean_risk_of_all_coverages() -> None:
    scores, losses = np.random.default_rng(0).random((2, 40))

    curve = risk_coverage(scores, losses)

    assert curve.area.estimate == pytest.approx(slow_area(losses[scores.argsort()]))
    assert curve.risk[-1] == pytest.approx(losses.mean())
    assert curve.coverage[0] == 1 / 40


def test_items_handed_on_count_with_their_own_loss() -> None:
    scores, losses, rest = np.random.default_rng(1).random((3, 40))
    order = scores.argsort()

    curve = risk_coverage(scores, losses, otherwise=rest)

    assert curve.area.estimate == pytest.approx(slow_area(losses[order], rest[order]))
    assert curve.risk[-1] == pytest.approx(losses.mean())


@pytest.mark.parametrize("handed_on", [False, True])
def test_equal_scores_give_the_mean_over_all_orders(handed_on: bool) -> None:
    losses = np.array([0.0, 1.0, 0.5, 0.2, 0.9])
    rest = np.array([0.3, 0.1, 0.6, 0.0, 0.2]) if handed_on else None
    scores = [0.0, 1.0, 1.0, 1.0, 2.0]
    slow = []
    for middle in permutations([1, 2, 3]):
        order = [0, *middle, 4]
        slow.append(slow_area(losses[order], None if rest is None else rest[order]))

    found = risk_coverage(scores, losses, otherwise=rest)

    assert found.area.estimate == pytest.approx(np.mean(slow))


def test_a_score_that_says_nothing_has_the_mean_loss_as_area() -> None:
    losses = np.random.default_rng(2).random(50)
    curve = risk_coverage(np.zeros(50), losses)

    assert curve.area.estimate == pytest.approx(losses.mean())
    assert curve.area.width == pytest.approx(2 * 1.959964 * losses.std(ddof=1) / np.sqrt(50))


def test_a_perfect_order_of_errors_has_the_known_area() -> None:
    """With a share e of errors, last in order: e + (1 - e) ln(1 - e)."""
    errors = np.arange(100_000) >= 80_000

    found = risk_coverage(np.arange(100_000), errors).area.estimate

    assert found == pytest.approx(0.2 + 0.8 * np.log(0.8), abs=1e-4)


def test_no_loss_has_no_area() -> None:
    assert risk_coverage([1.0, 2.0, 3.0], [0, 0, 0]).area == (0, 0, 0)


def test_the_risk_at_a_coverage_is_that_of_the_curve() -> None:
    curve = risk_coverage([1, 2, 3, 4, 5], [0, 0, 1, 1, 1])

    assert curve.at(0.6) == pytest.approx(1 / 3)
    assert curve.at(0.61) == pytest.approx(1 / 2)


def test_the_risk_of_answering_everything_is_the_mean_loss() -> None:
    assert risk_coverage([1, 2, 3, 4], [0, 0, 1, 1]).at(1) == pytest.approx(1 / 2)


@pytest.mark.parametrize("coverage", [0, 1.1, np.nan])
def test_a_coverage_beyond_the_curve_is_refused(coverage: float) -> None:
    with pytest.raises(hocal.InputError, match="`coverage` must be a number greater than 0 and at"):
        risk_coverage([1, 2], [0, 1]).at(coverage)


def test_the_curve_says_its_area_in_words() -> None:
    assert str(risk_coverage([1, 2], [0, 0])) == "area 0.0000 (0.0000 to 0.0000)"


def test_what_is_no_score_or_loss_is_refused() -> None:
    with pytest.raises(hocal.InputError, match="`scores` must be finite, got nan in row 1"):
        risk_coverage([0.0, np.nan], [0, 1])
    with pytest.raises(hocal.InputError, match="must describe the same items, got 2 and 3 rows"):
        risk_coverage([0.0, 1.0], [0, 1, 1])
    with pytest.raises(hocal.InputError, match="`scores` must have at least 2 items, got 1"):
        risk_coverage([0.0], [0])
    with pytest.raises(hocal.InputError, match="`otherwise` must have 1 dimension"):
        risk_coverage([0.0, 1.0], [0, 1], otherwise=[[0, 1]])


@pytest.mark.slow
@pytest.mark.parametrize("handed_on", [False, True])
def test_intervals_of_the_area_hold_the_truth_about_as_often_as_they_say(handed_on: bool) -> None:
    """Errors have chance u^2 / 2 at score u, and others cost 0.3 if they are handed on.

    E[-u^2/2 ln u] = 1/18, and 0.3 + E[(u^2/2 - 0.3)(1 - u)] = 0.15 + 1/24.
    """
    generator = np.random.default_rng(3)
    truth = 0.15 + 1 / 24 if handed_on else 1 / 18
    held = []
    for _ in range(2000):
        u = generator.random(300)
        losses = generator.random(300) < u**2 / 2
        rest = generator.random(300) < 0.3 if handed_on else None
        area = risk_coverage(u, losses, otherwise=rest).area
        held.append(area.lower <= truth <= area.upper)

    assert 0.92 <= np.mean(held) <= 0.97
