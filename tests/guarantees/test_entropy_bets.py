"""Limits of the entropy of a mean label distribution, against slow versions and simulations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import special, stats

from hocal._base.typing import Array
from hocal.guarantees import entropy_bets, learnt_guesses
from hocal.guarantees.bernstein import BernsteinEstimator, Side, bernstein_estimator
from hocal.guarantees.dealt_cells import DealtCells, Offset, can_be_dealt, dealt_cells
from hocal.guarantees.entropy_bets import lower_entropies
from hocal.guarantees.learnt_guesses import upper_entropies
from hocal.guarantees.samples import Sample

GUESS = np.array([0.7, 0.2, 0.1])
# What is taken away from the loss has a mean on the other side of the aleatoric uncertainty.
BETS: tuple[tuple[Callable[..., Array], Side], ...] = (
    (lower_entropies, "upper"),
    (upper_entropies, "lower"),
)


def entropy(p: Array) -> Array:
    return np.asarray(-special.xlogy(p, p).sum(axis=-1))


def draw(points: Array, shares: Array, k: int, n_items: int, seed: int) -> Sample:
    """Return items of a cell whose mixture has these points."""
    generator = np.random.default_rng(seed)
    kinds = generator.choice(len(shares), n_items, p=shares)
    counts, repeats = np.unique(generator.multinomial(k, points[kinds]), axis=0, return_counts=True)
    return Sample(counts, repeats.astype(float))


def limits(samples: list[Sample], guess: Array, delta: float) -> Array:
    guesses = np.tile(guess, (len(samples), 1))
    return lower_entropies(samples, guesses, [Offset.none(each) for each in samples], delta)


def above(samples: list[Sample], guess: Array, delta: float) -> Array:
    guesses = np.tile(guess, (len(samples), 1))
    return upper_entropies(samples, guesses, [Offset.none(each) for each in samples], delta)


def dealt(samples: list[Sample], offsets: list[Offset]) -> DealtCells:
    """Return cells side by side, which sorts their rows."""
    ((_, cells),) = dealt_cells(samples, np.tile(GUESS, (len(samples), 1)), offsets)
    return cells


def offset_of(statistic: BernsteinEstimator, sample: Sample) -> Offset:
    ends = (statistic.minimum, statistic.maximum)
    return Offset(statistic(sample.counts), *ends, np.inf, (statistic,))


def least_capital(table: DealtCells, h: float, stake: Array) -> float:
    """Return the bound of one cell in one order."""
    candidates = np.full((1, 1, 1), h)
    return float(entropy_bets._least_capital(table, candidates, stake)[0, 0, 0])


def test_no_mean_has_less_capital_than_the_tangents_say() -> None:
    """All means with three classes, on a grid, and item by item."""
    sample = draw(np.array([[0.9, 0.1, 0], [0.2, 0.3, 0.5]]), np.array([0.7, 0.3]), 3, 100, 0)
    offset = Offset(np.linspace(0, 0.4, len(sample.repeats)), 0.0, 0.4, np.inf)
    table = dealt([sample], [offset])
    h = 0.3
    generator = np.random.default_rng(1)
    stake = generator.random((len(table.rows), 1, 1, 1)) / (1 + h + offset.high)
    grid = np.stack(np.meshgrid(*2 * [np.linspace(0.005, 0.99, 150)]), axis=-1).reshape(-1, 2)
    means = np.column_stack([grid, 1 - grid.sum(axis=1)])
    means = means[means[:, 2] > 0.002]

    found = least_capital(table, h, stake)

    capital = np.zeros(len(means))
    for block, often in enumerate(table.often[:, 0, 0]):
        for row, repeats in zip(table.rows[block, 0, 0], often, strict=True):
            loss = -np.log(means) @ table.shares[0, row] - table.offsets[0, row] - h
            capital += repeats * np.log1p(stake[block, 0, 0, 0] * loss)
    assert (capital >= found - 1e-9).all()
    assert capital.min() == pytest.approx(found, abs=0.02)


def test_the_logarithm_of_the_capital_is_convex_in_the_mean() -> None:
    generator = np.random.default_rng(2)
    ends = generator.dirichlet(np.full(5, 0.4), (2, 3000))
    shares = generator.multinomial(4, generator.dirichlet(np.ones(5), 3000)) / 4
    lost = generator.random(3000) * 2  # h + Z
    stake = 1 / (1 + lost)

    def gain(mean: Array) -> Array:
        return np.asarray(np.log1p(stake * (-special.xlogy(shares, mean).sum(axis=1) - lost)))

    middle = gain((ends[0] + ends[1]) / 2)

    assert (middle <= (gain(ends[0]) + gain(ends[1])) / 2 + 1e-9).all()


@pytest.mark.parametrize("n_items", [80, 400])
def test_limits_of_coins_are_little_wider_than_those_of_a_normal_law(n_items: int) -> None:
    """The entropy of a share of .8 has the deviation .4 * log(.8 / .2) at each item."""
    points = np.eye(2)
    samples = [draw(points, np.array([0.8, 0.2]), 1, n_items, seed) for seed in range(20)]
    normal = stats.norm.ppf(0.975) * 0.4 * np.log(4) / np.sqrt(n_items)

    found = limits(samples, np.array([0.75, 0.25]), 0.025)

    mean = np.mean([entropy(sample.mean) for sample in samples]) - found.mean()
    assert 0.9 * normal < mean < (2.5 if n_items == 80 else 1.4) * normal


def test_limits_fail_no_oftener_than_promised() -> None:
    points = np.array([[1.0, 0, 0], [0.5, 0.4, 0.1], [0, 0, 1]])
    weights = np.array([0.7, 0.2, 0.1])
    samples = [draw(points, weights, 3, 120, seed) for seed in range(300)]

    lower = limits(samples, GUESS, 0.1)
    upper = above(samples, GUESS, 0.1)

    truth = entropy(weights @ points)
    most = stats.binom.ppf(0.999, 300, 0.1)
    assert (lower > truth).sum() <= most
    assert (upper < truth).sum() <= most
    assert (lower > 0.2).mean() > 0.9
    assert (upper < truth + 0.3).mean() > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("n_items", [20, 80, 600])
@pytest.mark.parametrize("n_classes", [2, 10, 50])
def test_epistemic_limits_fail_no_oftener_than_promised(
    n_classes: int, n_items: int, k: int
) -> None:
    """Certain, torn and rare items; a guess that is right, and one that is not."""
    points = np.zeros((4, n_classes))
    points[[0, 1], [0, 1]] = 1
    points[2, :2] = 0.5
    points[3] = 1 / n_classes
    weights = np.array([0.75, 0.1, 0.1, 0.05])
    mean = weights @ points
    samples = [draw(points, weights, k, n_items, seed) for seed in range(150)]
    offsets = {}
    for bets, side in BETS:
        statistic = bernstein_estimator("shannon", k, n_classes, side=side, n_items=n_items)
        offsets[bets] = [offset_of(statistic, each) for each in samples]
    truth = {"predictive": entropy(mean), "epistemic": entropy(mean) - weights @ entropy(points)}

    for guess in (0.98 * mean + 0.02 / n_classes, np.full(n_classes, 1 / n_classes)):
        guesses = np.tile(guess, (len(samples), 1))
        lower = {
            "predictive": limits(samples, guess, 0.05),
            "epistemic": lower_entropies(samples, guesses, offsets[lower_entropies], 0.05),
        }
        upper = {
            "predictive": above(samples, guess, 0.05),
            "epistemic": upper_entropies(samples, guesses, offsets[upper_entropies], 0.05),
        }
        most = stats.binom.ppf(0.9999, len(samples), 0.05)
        for quantity, value in truth.items():
            assert (lower[quantity] > value + 1e-12).sum() <= most, quantity
            assert (upper[quantity] < value - 1e-12).sum() <= most, quantity


def test_many_cells_have_the_limits_that_each_has_alone() -> None:
    points = np.array([[1.0, 0, 0], [0.3, 0.4, 0.3]])
    samples = [draw(points, np.array([0.8, 0.2]), 3, 130 + seed, seed) for seed in range(5)]

    for ends in (limits, above):
        together = ends(samples, GUESS, 0.05)

        assert together == pytest.approx([ends([each], GUESS, 0.05)[0] for each in samples])


def test_the_order_of_rows_and_unseen_classes_do_not_matter() -> None:
    sample = draw(np.array([[0.8, 0.1, 0.1], [0, 1, 0]]), np.array([0.7, 0.3]), 2, 200, 3)
    turned = Sample(sample.counts[::-1], sample.repeats[::-1])
    wider = Sample(np.pad(sample.counts, ((0, 0), (0, 4))), sample.repeats)

    more = np.append(0.99 * GUESS, 4 * [0.0025])

    for ends in (limits, above):
        expected = ends([sample], GUESS, 0.05)
        assert ends([turned], GUESS, 0.05) == pytest.approx(expected)
        assert ends([wider], more, 0.05) == pytest.approx(expected, abs=0.05)


def test_a_guess_learns_from_the_blocks_before_and_from_no_other() -> None:
    points = np.array([[0.9, 0.1, 0], [0.2, 0.3, 0.5]])
    sample = draw(points, np.array([0.7, 0.3]), 3, 100, 0)
    cells = dealt([sample], [Offset.none(sample)])
    shares = sample.shares[np.lexsort(sample.counts.T)]

    found = learnt_guesses._losses(cells, 3)

    n_before = 0.0
    before = np.zeros(3)
    for block, often in enumerate(cells.often[:, 0, 0]):
        learnt = 0.98 * before + 0.02 * n_before / 3
        guess = (100 * GUESS + learnt) / (100 + n_before)
        rows = cells.rows[block, 0, 0]
        assert guess.sum() == pytest.approx(1)
        assert found[block, 0, 0] == pytest.approx(shares[rows] @ -np.log(guess))
        before = before + often @ shares[rows]
        n_before = n_before + often.sum()
    assert n_before == 100


@pytest.mark.parametrize("n_items", [20, 130])
def test_no_loss_of_a_learnt_guess_lies_outside_the_ends_of_its_bets(n_items: int) -> None:
    """Whatever was learnt: the commonest and the rarest labels all along, and the others next."""
    statistic = bernstein_estimator("shannon", 3, 3, side="lower")
    every = np.array([[a, b, 3 - a - b] for a in range(4) for b in range(4 - a)])
    offset = offset_of(statistic, Sample(every, np.ones(len(every))))
    low, high = learnt_guesses._possible(GUESS, offset, n_items)

    for label in range(3):
        for n_before in range(n_items):
            learnt = 0.98 * n_before * np.eye(3)[label] + 0.02 * n_before / 3
            guess = (100 * GUESS + learnt) / (100 + n_before)
            rest = every / 3 @ -np.log(guess) - statistic(every)
            assert low <= rest.min()
            assert rest.max() <= high


def test_a_guess_that_is_wrong_costs_little_when_it_learns() -> None:
    """Half of KL(m || guess) or less, of 500 items; the entropy of a mean is .33."""
    points = np.eye(3)
    weights = np.array([0.9, 0.08, 0.02])
    samples = [draw(points, weights, 1, 500, seed) for seed in range(20)]
    wrong = np.array([0.6, 0.2, 0.2])
    lost = float((weights * np.log(weights / wrong)).sum())

    found = above(samples, wrong, 0.05) - above(samples, weights, 0.05)

    assert lost > 0.2
    assert 0 < found.mean() < lost / 2


def test_a_guess_of_the_deviation_narrows_limits_and_breaks_none() -> None:
    """Of what is left of the loss, which varies by .35 and has a range of 3."""
    points = np.array([[1.0, 0, 0], [0.5, 0.4, 0.1], [0, 0, 1]])
    weights = np.array([0.7, 0.2, 0.1])
    samples = [draw(points, weights, 5, 120, seed) for seed in range(300)]
    guesses = np.tile(GUESS, (300, 1))
    truth = float(entropy(weights @ points) - weights @ entropy(points))
    most = stats.binom.ppf(0.999, 300, 0.1)
    width = {}

    for deviation in (np.inf, 0.35, 0.05):
        ends = []
        for bets, side in BETS:
            statistic = bernstein_estimator("shannon", 5, 3, side=side, n_items=120)
            offsets = [offset_of(statistic, each)._replace(deviation=deviation) for each in samples]
            ends.append(bets(samples, guesses, offsets, 0.1))
        width[deviation] = (ends[1] - ends[0]).mean()
        assert (ends[0] > truth).sum() <= most
        assert (ends[1] < truth).sum() <= most

    assert width[0.35] < 0.95 * width[np.inf]


def test_a_small_entropy_has_a_limit_too() -> None:
    """Where the error is larger than the entropy, candidates begin at 0, which is no candidate."""
    sample = Sample(np.array([[2, 0, 0], [0, 2, 0]]), np.array([93.0, 7.0]))

    found = limits([sample], np.array([0.85, 0.1, 0.05]), 0.05)[0]

    assert 0.05 < found < entropy(np.array([0.93, 0.07]))


def test_items_that_all_agree_prove_nothing() -> None:
    sample = Sample(np.array([[3, 0, 0]]), np.array([500.0]))

    assert limits([sample], GUESS, 0.05).tolist() == [0.0]


def test_few_items_and_parts_of_items_are_not_bet_on() -> None:
    counts = np.array([[3, 0, 0]])

    assert can_be_dealt(Sample(counts, np.array([20.0])))
    assert not can_be_dealt(Sample(counts, np.array([19.0])))
    assert not can_be_dealt(Sample(counts, np.array([99.5])))
