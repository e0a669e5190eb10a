"""Limits of many cells at once are those of each cell alone."""

import numpy as np
import pytest

import reference
from hocal._base.typing import Array, IntArray
from hocal.guarantees.betting import Draws, lower_limit, upper_limit
from hocal.guarantees.cell_uncertainty import (
    TARGETS,
    Sample,
    advise,
    all_intervals,
    cell_intervals,
    estimator_sizes,
)
from hocal.guarantees.entropy_boxes import box_limits_of_rows
from hocal.guarantees.joint_limits import JointDraws, JointShares, class_shares
from hocal.uncertainty.entropy import Brier, Shannon


def some_draws(generator: np.random.Generator) -> Draws:
    """Return draws of a statistic with ends of its own."""
    n_values = int(generator.choice([1, 3, 4, 90]))
    low, high = np.sort(generator.normal(size=2)).tolist()
    values = low + (high - low) * generator.random(n_values)
    repeats = generator.integers(1, 9, n_values).astype(np.float64)
    rounding = float(generator.choice([0.0, 1e-3]))
    return Draws(values[:, None], repeats[:, None], low, high, rounding)


def some_counts(generator: np.random.Generator, n_rows: int, n_classes: int = 6) -> IntArray:
    """Return labels that leave most classes without any."""
    p = generator.dirichlet(np.full(n_classes, 0.3), n_rows)
    return generator.multinomial(generator.integers(1, 5, n_rows), p)


def test_joint_limits_are_those_of_each_cell_alone() -> None:
    generator = np.random.default_rng(0)
    draws = [some_draws(generator) for _ in range(60)]
    draws += draws[:20]
    guesses: list[Array | None] = [None if row % 3 else np.array([0.1]) for row in range(80)]
    joint = JointDraws(draws, guesses)

    pairs = list(zip(draws, guesses, strict=True))
    assert joint.upper(0.03) == pytest.approx(
        np.concatenate([upper_limit(each, 0.03, guess) for each, guess in pairs]), abs=1e-12
    )
    assert joint.lower(0.03) == pytest.approx(
        np.concatenate([lower_limit(each, 0.03, guess) for each, guess in pairs]), abs=1e-12
    )


def test_a_statistic_that_cannot_vary_is_known() -> None:
    constant = Draws(np.array([[2.0]]), np.array([[5.0]]), 2.0, 2.0)
    joint = JointDraws([constant], [np.zeros(1)])

    assert (joint.lower(0.1).tolist(), joint.upper(0.1).tolist()) == ([2.0], [2.0])


def test_classes_that_are_alike_are_counted_once_with_their_number() -> None:
    counts = np.array([[3, 0, 0, 0], [2, 1, 0, 0]])

    found = class_shares(counts, np.array([3, 3]), np.array([4.0, 2.0]))

    order = np.argsort(found.draws.repeats[0])
    assert found.draws.values[:, 0] == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert found.draws.repeats.T[order].tolist() == [[0, 0, 2, 4], [4, 2, 0, 0], [6, 0, 0, 0]]
    assert found.n_classes[order].tolist() == [1, 1, 2]


@pytest.mark.parametrize("entropy", [Shannon(), Brier()])
def test_boxes_of_cells_are_those_of_all_their_classes(entropy: Shannon | Brier) -> None:
    """The slow version lists every class of every cell."""
    generator = np.random.default_rng(1)
    counts = [some_counts(generator, size) for size in (1, 2, 3, 40, 200)]
    repeats = [generator.integers(1, 4, len(each)).astype(np.float64) for each in counts]
    pairs = list(zip(counts, repeats, strict=True))
    shares = [class_shares(each, each.sum(axis=1), times) for each, times in pairs]

    found = JointShares(shares, 6).box(entropy.component, 0.1)

    for cell, (each, times) in enumerate(pairs):
        columns = Draws.of_columns(each / each.sum(axis=1, keepdims=True), times, 0, 1)
        ends = lower_limit(columns, 0.1 / 12), upper_limit(columns, 0.1 / 12)
        alone = reference.box_limits(lambda x: float(entropy.component(np.array(x))), *ends)
        assert (found[0][cell], found[1][cell]) == pytest.approx(alone, abs=1e-12)


@pytest.mark.parametrize("entropy", [Shannon(), Brier()])
def test_entropies_between_limits_are_bracketed(entropy: Shannon | Brier) -> None:
    generator = np.random.default_rng(0)
    lower, upper = np.array([0.3, 0.05, 0.0, 0.1]), np.array([0.8, 0.3, 0.1, 0.4])
    p = generator.dirichlet(np.ones(4), 50_000)
    between = p[((p >= lower) & (p <= upper)).all(axis=1)]
    once = np.ones((1, 4), dtype=np.int64)

    low, high = box_limits_of_rows(entropy.component, lower[None], upper[None], once)

    values = entropy.value(between)
    assert low[0] <= values.min()
    assert values.max() <= high[0] <= values.max() + 0.02


def test_boxes_of_limits_that_failed_say_nothing() -> None:
    lower = np.array([[0.7, 0.0]])
    times = np.array([[2, 1]])

    low, high = box_limits_of_rows(Shannon().component, lower, np.ones((1, 2)), times)

    assert low[0] == 0
    assert high[0] == pytest.approx(np.log(3))


@pytest.mark.parametrize("advised", [False, True])
def test_intervals_of_cells_do_not_depend_on_their_company(advised: bool) -> None:
    """Cells of one item, of single labels, of pairs and of many items have other statistics."""
    generator = np.random.default_rng(2)
    counts = [some_counts(generator, size) for size in (1, 2, 30, 60)]
    counts += [np.eye(6, dtype=np.int64), np.array([[2, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0]])]
    samples = [Sample(each, np.ones(len(each))) for each in counts]
    sizes = estimator_sizes(np.concatenate([sample.totals for sample in samples]))
    options = {"n_classes": 6, "n_items": 30.0, "same_order": True}
    alone = advise(None, sizes, **options)
    advice = advise(samples[-3], sizes, **options) if advised else alone

    together = all_intervals(samples, [advice] * 6, 0.05)

    for cell, sample in enumerate(samples):
        single = cell_intervals(sample, advice, 0.05)
        for target in TARGETS:
            assert together[target][cell] == pytest.approx(single[target], abs=1e-12)
