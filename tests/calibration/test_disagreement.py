"""The regression of how often labels differ: ridges, averaged by their errors on other folds."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from hocal._base.typing import Array, Index
from hocal.calibration.by_item.columns import Scale
from hocal.calibration.by_item.disagreement import (
    HEIGHT,
    LEAST,
    MOST,
    RIDGES,
    fit_disagreement,
    observed_disagreement,
)

N_FOLDS = 5


def draw(n_items: int, seed: int) -> tuple[Array, Array, Array]:
    """Draw columns, the disagreement that they tell, and whether two labels of an item differ."""
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(n_items, 6))
    truth = expit(columns @ np.array([0.8, -0.5, 0.2, 0, 0, 0]) - 1)
    return columns, truth, (rng.random(n_items) < truth).astype(float)


def basis_of(columns: Array, landmarks: Array) -> Array:
    """Return standardised columns, and a bump around each landmark."""
    standard = Scale.of(columns).apply(columns)
    distances = ((standard[:, None] - landmarks) ** 2).mean(axis=2)
    return np.concatenate([standard, HEIGHT * np.exp(-0.5 * distances)], axis=1)


def ridges_one_by_one(
    columns: Array, observed: Array, landmarks: Array, folds: Index
) -> tuple[Array, Array]:
    """Return errors on folds left out (n_ridges,), and predictions (n_ridges, n_items)."""
    basis = basis_of(columns, landmarks)
    basis -= basis.mean(axis=0)
    level = observed.mean()
    errors, predictions = [], []
    for ridge in RIDGES:
        error, fits = 0.0, []
        for fold in range(N_FOLDS):
            others = folds != fold
            gram = basis[others].T @ basis[others] + ridge * np.eye(basis.shape[1])
            fits.append(np.linalg.solve(gram, basis[others].T @ (observed[others] - level)))
            left_out = level + basis[~others] @ fits[-1]
            error += float(((observed[~others] - left_out) ** 2).sum())
        errors.append(error)
        predictions.append(level + basis @ np.mean(fits, axis=0))
    return np.array(errors), np.stack(predictions)


@pytest.mark.parametrize("n_items", [40, 300])
def test_ridges_count_by_their_errors_on_folds_left_out(n_items: int) -> None:
    columns, _, observed = draw(n_items, 0)
    folds = np.arange(n_items) % N_FOLDS

    fitted = fit_disagreement(columns, observed, np.ones(n_items), folds)
    errors, predictions = ridges_one_by_one(columns, observed, fitted.landmarks, folds)
    shares = softmax(-errors / (2 * errors.min() / n_items))

    assert shares.max() < 0.9  # one alone would not show how they are averaged
    expected = np.clip(shares @ predictions, LEAST, MOST)
    np.testing.assert_allclose(fitted.apply(columns), expected, rtol=1e-6)


def test_an_average_of_ridges_errs_less_than_the_best_where_items_are_few() -> None:
    gains = []
    for seed in range(300):
        columns, truth, observed = draw(60, seed)
        folds = np.arange(60) % N_FOLDS
        fitted = fit_disagreement(columns, observed, np.ones(60), folds)
        errors, predictions = ridges_one_by_one(columns, observed, fitted.landmarks, folds)
        best = np.clip(predictions[errors.argmin()], LEAST, MOST)
        averaged = fitted.apply(columns)
        gains.append(((best - truth) ** 2).mean() - ((averaged - truth) ** 2).mean())

    assert np.mean(gains) > 2 * np.std(gains) / np.sqrt(len(gains))


def test_no_pair_of_labels_leaves_one_number_for_all() -> None:
    columns, _, _ = draw(50, 0)
    observed, weights = observed_disagreement(np.ones(50), np.zeros(50))

    fitted = fit_disagreement(columns, observed, weights, np.arange(50) % N_FOLDS)

    np.testing.assert_array_equal(fitted.apply(columns), LEAST)
