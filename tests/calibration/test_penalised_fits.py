"""Penalised fits: penalties are weighed by what the items of other folds say for them."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import softmax

from hocal._base.typing import Array
from hocal.calibration.by_item.penalised_fits import fit_penalised

STRENGTHS = (300.0, 30.0, 3.0, 0.3)


class Normal(NamedTuple):
    """The log-likelihood of numbers with variance one around a linear function of inputs."""

    inputs: Array  # (n_items, n_parameters)
    numbers: Array  # (n_items,)

    def total(self, parameters: Array) -> tuple[float, Array]:
        """Return the sum over items and its gradient."""
        values, gradients = self.scores(parameters)
        return float(values.sum()), gradients.sum(axis=1)

    def scores(self, parameters: Array) -> tuple[Array, Array]:
        """Return the value and the gradient of every item."""
        gaps = self.numbers - self.inputs @ parameters
        return -0.5 * gaps**2, self.inputs.T * gaps

    def take(self, rows: Array) -> "Normal":
        """Return some of the items."""
        return Normal(self.inputs[rows], self.numbers[rows])


def draw(n_items: int, n_parameters: int, seed: int, size: float = 0.3) -> tuple[Normal, Array]:
    """Draw items, and the parameters behind them."""
    rng = np.random.default_rng(seed)
    truth = size * rng.normal(size=n_parameters)
    inputs = rng.normal(size=(n_items, n_parameters))
    return Normal(inputs, inputs @ truth + rng.normal(size=n_items)), truth


def ridge(problem: Normal, strength: float) -> Array:
    """Return the maximum in closed form."""
    gram = problem.inputs.T @ problem.inputs
    penalised = gram + strength * np.eye(len(gram))
    return np.asarray(np.linalg.solve(penalised, problem.inputs.T @ problem.numbers))


def criterion(problem: Normal, strength: float) -> float:
    """Return the log-likelihood less the number of parameters that are in effect free."""
    values, scores = problem.scores(ridge(problem, strength))
    information = scores @ scores.T
    penalised = information + strength * np.eye(len(information))
    return float(values.sum() - np.trace(np.linalg.inv(penalised) @ information))


def tried(problem: Normal) -> tuple[float, ...]:
    """Return the strengths up to the first that makes the criterion fall."""
    values = [criterion(problem, strength) for strength in STRENGTHS]
    falls = [place for place in range(1, len(values)) if values[place] <= values[place - 1]]
    return STRENGTHS[: falls[0] + 1] if falls else STRENGTHS


def fit(problem: Normal, n_folds: int = 5) -> tuple[Array, Array]:
    """Return the parameters from all items, and without each fold."""
    n_items, n_parameters = problem.inputs.shape
    penalties = [np.full(n_parameters, strength) for strength in STRENGTHS]
    folds = np.arange(n_items) % n_folds
    found = fit_penalised(problem, np.zeros(n_parameters), penalties, folds, n_folds)
    return found.final, found.without


@pytest.mark.parametrize("seed", range(5))
def test_parameters_are_averaged_by_the_likelihood_of_other_items(seed: int) -> None:
    problem, _ = draw(60, 8, seed)

    shares = softmax([criterion(problem, strength) for strength in tried(problem)])
    expected = sum(
        share * ridge(problem, strength)
        for share, strength in zip(shares, tried(problem), strict=True)
    )

    np.testing.assert_allclose(fit(problem)[0], expected, atol=1e-4)


def test_parameters_without_a_fold_are_near_those_of_a_fit_to_the_others() -> None:
    """One step of Newton takes out most of what the fold has told."""
    problem, _ = draw(2000, 4, 0, size=1.0)
    final, without = fit(problem)

    refitted = [
        ridge(problem.take(np.arange(2000) % 5 != fold), tried(problem)[-1]) for fold in range(5)
    ]

    assert np.linalg.norm(without - refitted) < 0.3 * np.linalg.norm(final - refitted)


def test_an_average_is_nearer_the_truth_than_the_best_penalty_where_items_are_few() -> None:
    gains = []
    for seed in range(200):
        problem, truth = draw(30, 10, seed)
        best = max(tried(problem), key=lambda strength: criterion(problem, strength))
        chosen = ((ridge(problem, best) - truth) ** 2).sum()
        gains.append(chosen - ((fit(problem)[0] - truth) ** 2).sum())

    assert np.mean(gains) > 3 * np.std(gains) / np.sqrt(len(gains))
