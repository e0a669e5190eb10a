"""Expect the disagreement of an item's labels from all that is known: a cross-fitted ridge."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from hocal._base.typing import Array, Index
from hocal.calibration.by_item.columns import Floats, Scale

__all__ = ["DisagreementRegression", "fit_disagreement", "observed_disagreement"]

LANDMARKS = 100  # centres of bumps; four times as many brought nothing
HEIGHT = 3.0  # of a bump: as large as a column that stands out
RIDGES = 10.0 ** np.arange(0, 6, 0.5)  # precisions that are tried, in units of items
# Pairs whose noise is as large as the variance between items: labels beyond tell little more.
PAIRS = 4.0
LEAST, MOST = 0.003, 0.98  # expected disagreement: its log-odds must stay finite
TINY = 1e-12  # of a weight or a variance: as good as none


class DisagreementRegression(NamedTuple):
    """A fitted regression: plain arrays."""

    scale: Scale
    landmarks: Array  #: (n_landmarks, n_columns) standardised
    middle: Array  #: (n_basis,) mean of the basis
    level: Array  #: () mean disagreement
    coefficients: Array  #: (1 + n_folds, n_basis) all items, then without each fold

    def apply(self, columns: Floats, fold: int = -1) -> Floats:
        """Return the expected disagreement (n_items,), by the fit without a fold (-1 for all)."""
        basis = _basis(self.scale.apply(columns), self.landmarks)
        weights = self.coefficients[fold + 1].astype(basis.dtype)
        offset = basis.dtype.type(self.level - self.middle @ self.coefficients[fold + 1])
        return np.asarray(np.clip(basis @ weights + offset, LEAST, MOST))


def observed_disagreement(totals: Array, agreeing: Array) -> tuple[Array, Array]:
    """Return how often two labels of an item differ, and the weight of this number.

    Parameters
    ----------
    totals : array of shape (n_items,)
        Labels per item.
    agreeing : array of shape (n_items,)
        Ordered pairs of an item's labels that agree.
    """
    pairs = totals * (totals - 1)
    differ = np.where(pairs > 0, 1 - agreeing / np.maximum(pairs, 1), 0.0)
    return differ, pairs / (pairs + PAIRS)


def fit_disagreement(
    columns: Array, observed: Array, weights: Array, folds: Index
) -> DisagreementRegression:
    """Fit ridges of the disagreement on columns and bumps, averaged by error on folds left out."""
    scale = Scale.of(columns)
    standard = scale.apply(columns)
    landmarks = standard[_spread_rows(standard)]
    basis = _basis(standard, landmarks)
    total = max(float(weights.sum()), TINY)
    level = np.asarray(weights @ observed / total)
    middle = weights @ basis / total
    coefficients = _ridge(basis - middle, observed - level, weights, folds)
    return DisagreementRegression(scale, landmarks, middle, level, coefficients)


def _spread_rows(standard: Array) -> Index:
    """Return rows at even steps along a fixed direction, whatever order they come in."""
    direction = np.cos(np.arange(1, standard.shape[1] + 1) ** 2.0)  # any will do
    order = np.argsort(standard @ direction, kind="stable")
    steps = np.linspace(0, len(order) - 1, min(LANDMARKS, len(order)))
    return np.asarray(order[steps.astype(np.intp)])


def _basis(standard: Floats, landmarks: Array) -> Floats:
    """Return the columns, and Gaussians of the mean square distance to each landmark."""
    centres = landmarks.astype(standard.dtype)
    square = -2 * standard @ centres.T
    square += np.einsum("ij,ij->i", standard, standard)[:, None]
    square += (centres**2).sum(axis=1)
    square *= standard.dtype.type(-0.5 / standard.shape[1])
    bumps = np.exp(square, out=square)
    bumps *= standard.dtype.type(HEIGHT)
    return np.concatenate([standard, bumps], axis=1)


def _ridge(basis: Array, target: Array, weights: Array, folds: Index) -> Array:
    """Return coefficients averaged over ridges: their mean over folds, and without each fold."""
    n_folds = int(folds.max()) + 1
    parts = [np.flatnonzero(folds == fold) for fold in range(n_folds)]
    grams = [(basis[rows].T * weights[rows]) @ basis[rows] for rows in parts]
    rights = [basis[rows].T @ (weights[rows] * target[rows]) for rows in parts]
    gram, right = sum(grams), sum(rights)
    errors = np.zeros(len(RIDGES))
    fits = []
    for rows, part, side in zip(parts, grams, rights, strict=True):
        fits.append(_ridge_path(gram - part, right - side))
        gaps = target[rows, None] - basis[rows] @ fits[-1]
        errors += weights[rows] @ gaps**2
    averaged = np.stack(fits) @ _shares_of(errors, float(weights.sum()))
    return np.concatenate([averaged.mean(axis=0, keepdims=True), averaged])


def _shares_of(errors: Array, total: float) -> Array:
    """Return the share of each ridge: the likelihood of folds left out, were errors normal.

    Where labels are few, several ridges are about as good, and an average hedges the choice.
    """
    variance = max(float(errors.min()) / max(total, TINY), TINY)
    return np.asarray(softmax(-0.5 * errors / variance))


def _ridge_path(gram: Array, right: Array) -> Array:
    """Return the coefficients (n_basis, n_ridges) of every ridge."""
    values, vectors = np.linalg.eigh(gram)
    rotated = vectors.T @ right
    return np.asarray(vectors @ (rotated[:, None] / (np.maximum(values, 0)[:, None] + RIDGES)))
