"""Penalised multinomial regression, on all items and without each fold of them at once.

The logit of item i and class j is sum_k t_k U[k, i, j] + sum_d X[i, d] W[d, j]. U holds *shared*
columns, with one weight for all classes, as a temperature has; X holds an item's *own* inputs, with
one weight per class, as biases have. Every weight is held towards zero by a precision of its own,
in labels. Rows lie fold after fold, so that every sum over the data comes as one sum per fold, and
leaving a fold out is a subtraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import fmin_l_bfgs_b

from hocal._base.typing import Array, Index

__all__ = [
    "CrossFit",
    "Floats",
    "Regression",
    "cross_fit",
    "held_out_probabilities",
    "log_softmax",
    "make_regression",
]

#: Single precision halves memory and time of large data; sums over rows end in double.
Floats: TypeAlias = NDArray[np.floating[Any]]

NEWTON_WEIGHTS = 720  # up to which Hessians are used (26 classes with a matrix); beyond, L-BFGS
HESSIAN_WORK = 6e8  # multiply-adds for a Hessian, a fraction of a second; beyond, rows are sampled
BLOCK = 1 << 18  # entries (rows x classes) handled at once, so that they stay in the cache
NEWTON_STEPS = 25  # of one fit; from a good start two or three are enough
TOLERANCE = 1e-6  # nats per label that a further step must gain: a million labels could not tell
HALVINGS = 8  # of a step; 1/256 of a Newton step goes downhill but for rounding
FOLD_STEPS = 2  # after the first without a fold; each shrinks the error about tenfold
QUASI_STEPS = 12  # of L-BFGS from a neighbouring solution: within a thousandth of its loss
QUASI_GAIN = 1e-6  # relative gain of a step of L-BFGS below which it ends; single precision's limit


class Labels(NamedTuple):
    """Labels as (row, class, number), sorted by row."""

    starts: NDArray[Any]  #: (n_items + 1,) where each row's labels begin
    rows: NDArray[Any]
    classes: NDArray[Any]
    numbers: Floats


class Regression(NamedTuple):
    """Columns and labels of the items, fold after fold."""

    shared: tuple[Floats, ...]  #: of each shared column, (n_items, n_classes)
    own: Floats  #: (n_items, n_own)
    labels: Labels
    totals: Floats  #: (n_items,) labels per item
    bounds: Index  #: (n_folds + 1,) where each fold begins

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.shared[0].shape[1])

    @property
    def n_weights(self) -> int:
        """Number of weights, shared ones first, then those of each own input class by class."""
        return len(self.shared) + int(self.own.shape[1]) * self.n_classes


class CrossFit(NamedTuple):
    """Weights from all items and from all but one fold, and how the latter do on that fold."""

    weights: Array  #: (n_weights,)
    without: Array  #: (n_folds, n_weights)
    log_loss: float  #: nats per label, every fold under the weights that have not seen it


class _Sums(NamedTuple):
    """Loss and derivatives, fold by fold."""

    loss: Array  #: (n_folds,)
    gradient: Array  #: (n_folds, n_weights)
    hessian: Array  #: (n_folds, n_weights, n_weights), or empty

    def penalised(self, weights: Array, precision: Array) -> float:
        """Return the loss of all folds and the penalty."""
        return float(self.loss.sum() + 0.5 * (precision * weights**2).sum())


def make_regression(
    shared: Sequence[Floats], own: Floats, counts: sparse.csr_array, bounds: Index
) -> Regression:
    """Put columns and labels (no entry twice) of rows in fold order together."""
    per_row = np.diff(counts.indptr)
    rows = np.repeat(np.arange(len(per_row)), per_row)
    labels = Labels(counts.indptr, rows, counts.indices, counts.data.astype(own.dtype))
    totals = np.asarray(counts.sum(axis=1)).ravel().astype(own.dtype)
    return Regression(tuple(shared), own, labels, totals, bounds)


def cross_fit(problem: Regression, start: CrossFit, precision: Array) -> CrossFit:
    """Minimise log loss in nats + sum of precision * weight^2 / 2, with all folds and without each.

    Parameters
    ----------
    problem : Regression
    start : CrossFit
        Where to begin; only the speed depends on it.
    precision : array of shape (n_weights,)
        Positive; one is about as strong as one label.
    """
    if problem.n_weights > NEWTON_WEIGHTS:
        return _cross_fit_many(problem, start, precision)
    weights, sums = _newton(problem, start.weights, precision)
    folds = range(len(sums.loss))
    ridge = np.diag(precision)
    factors = [cho_factor(_others(sums.hessian, fold) + ridge, lower=True) for fold in folds]
    slopes = [_others(sums.gradient, fold) + precision * weights for fold in folds]
    without = np.stack([weights - cho_solve(factors[v], slopes[v]) for v in folds])
    for _ in range(FOLD_STEPS):
        for fold in folds:
            gradient = _sum_folds(problem, without[fold], left_out=fold).gradient.sum(axis=0)
            without[fold] -= cho_solve(factors[fold], gradient + precision * without[fold])
    return CrossFit(weights, without, _held_out_loss(problem, without))


def held_out_probabilities(problem: Regression, fold: int, weights: Array) -> Floats:
    """Return the probabilities (n_rows, n_classes) of a fold under weights without it."""
    blocks = _fold_blocks(problem, fold)
    parts = [np.exp(log_softmax(_logits(problem, weights, rows))) for rows in blocks]
    empty = np.empty((0, problem.n_classes), problem.own.dtype)
    return np.concatenate([empty, *parts])


def log_softmax(logits: Floats) -> Floats:
    """Return log-probabilities, written over the logits."""
    logits -= logits.max(axis=1, keepdims=True)
    logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return logits


def _others(sums: Array, fold: int) -> Array:
    return np.asarray(sums.sum(axis=0) - sums[fold])


def _newton(problem: Regression, weights: Array, precision: Array) -> tuple[Array, _Sums]:
    """Take Newton steps on all folds until they gain nothing."""
    enough = TOLERANCE * float(problem.totals.sum(dtype=float))
    sums = _sum_folds(problem, weights, curved=True)
    for _ in range(NEWTON_STEPS):
        slope = sums.gradient.sum(axis=0) + precision * weights
        factor = cho_factor(sums.hessian.sum(axis=0) + np.diag(precision), lower=True)
        step = cho_solve(factor, slope)
        if slope @ step < enough:
            break
        before = sums.penalised(weights, precision)
        moved, new = _descend(problem, weights, step, precision, before)
        if not new.penalised(moved, precision) <= before:
            break
        weights = moved
        sums = new
    return weights, sums


def _descend(
    problem: Regression, weights: Array, step: Array, precision: Array, before: float
) -> tuple[Array, _Sums]:
    """Halve a step until it leads below a value."""
    for _ in range(HALVINGS):
        sums = _sum_folds(problem, weights - step, curved=True)
        if sums.penalised(weights - step, precision) <= before:
            break
        step = step / 2
    return weights - step, sums


def _cross_fit_many(problem: Regression, start: CrossFit, precision: Array) -> CrossFit:
    """Do the same with too many weights for a Hessian."""
    unit = np.sqrt(_curvature(problem, start.without.mean(axis=0), precision))
    folds = range(len(start.without))
    fits = [_quasi_newton(problem, start.without[v], precision, unit, v) for v in folds]
    without = np.stack(fits)
    weights = _quasi_newton(problem, without.mean(axis=0), precision, unit)
    return CrossFit(weights, without, _held_out_loss(problem, without))


def _quasi_newton(
    problem: Regression, start: Array, precision: Array, unit: Array, left_out: int = -1
) -> Array:
    """Minimise by L-BFGS, in units in which the curvature is about one."""

    def objective(scaled: Array) -> tuple[float, Array]:
        weights = scaled / unit
        sums = _sum_folds(problem, weights, left_out=left_out)
        slope = sums.gradient.sum(axis=0) + precision * weights
        return sums.penalised(weights, precision), slope / unit

    gain = QUASI_GAIN / np.finfo(float).eps
    found = fmin_l_bfgs_b(objective, start * unit, maxiter=QUASI_STEPS, factr=gain, pgtol=0.0)
    return np.asarray(found[0] / unit)


def _logits(problem: Regression, weights: Array, rows: slice) -> Floats:
    n_shared = len(problem.shared)
    own = weights[n_shared:].reshape(-1, problem.n_classes).astype(problem.own.dtype)
    logits: Floats = problem.own[rows] @ own
    for weight, column in zip(weights[:n_shared], problem.shared, strict=True):
        logits += logits.dtype.type(weight) * column[rows]
    return logits


def _blocks(problem: Regression, start: int, stop: int) -> list[slice]:
    height = max(1, BLOCK // problem.n_classes)
    return [slice(a, min(a + height, stop)) for a in range(start, stop, height)]


def _fold_blocks(problem: Regression, fold: int) -> list[slice]:
    return _blocks(problem, int(problem.bounds[fold]), int(problem.bounds[fold + 1]))


def _loss(problem: Regression, logp: Floats, rows: slice) -> float:
    labels = _labels(problem, rows)
    return -float((labels.numbers * logp[labels.rows, labels.classes]).sum(dtype=float))


def _labels(problem: Regression, rows: slice) -> Labels:
    """Return the labels of a block, its rows counted from zero."""
    starts = problem.labels.starts[rows.start : rows.stop + 1]
    part = slice(int(starts[0]), int(starts[-1]))
    own_rows = problem.labels.rows[part] - rows.start
    return Labels(starts, own_rows, problem.labels.classes[part], problem.labels.numbers[part])


def _gradient(problem: Regression, probabilities: Floats, rows: slice) -> Array:
    """Return the sum over a block of input times (expected - observed labels)."""
    labels = _labels(problem, rows)
    residual = probabilities * problem.totals[rows, None]
    residual[labels.rows, labels.classes] -= labels.numbers
    shared = [np.vdot(column[rows], residual) for column in problem.shared]
    own = problem.own[rows].T @ residual
    return np.concatenate([np.array(shared, dtype=float), own.ravel()])


def _hessian(problem: Regression, probabilities: Floats, rows: slice) -> Array:
    """Return the sum over a block of inputs times the covariance of its labels."""
    n_shared = len(problem.shared)
    own = problem.own[rows]
    expected = probabilities * problem.totals[rows, None]
    out = np.empty((problem.n_weights, problem.n_weights))
    out[n_shared:, n_shared:] = _own_hessian(own, probabilities, expected)
    columns = np.stack([column[rows] for column in problem.shared])
    means = np.einsum("kij,ij->ki", columns, probabilities)
    scaled = (columns - means[:, :, None]) * expected  # (n_shared, rows, n_classes)
    out[:n_shared, :n_shared] = np.tensordot(scaled, columns, axes=([1, 2], [1, 2]))
    mixed = np.stack([(own.T @ column).ravel() for column in scaled])
    out[:n_shared, n_shared:] = mixed
    out[n_shared:, :n_shared] = mixed.T
    return out


def _own_hessian(own: Floats, probabilities: Floats, expected: Floats) -> Floats:
    """Return sum_i N_i x_id x_ie (p_ij [j = m] - p_ij p_im), rows (d, j) and columns (e, m)."""
    n_classes = probabilities.shape[1]
    products = own[:, :, None] * np.sqrt(probabilities * expected)[:, None, :]
    flat = products.reshape(len(own), -1)
    out: Floats = -(flat.T @ flat)
    for j in range(n_classes):
        out[j::n_classes, j::n_classes] += own.T @ (expected[:, j, None] * own)
    return out


def _sum_folds(
    problem: Regression, weights: Array, *, curved: bool = False, left_out: int = -1
) -> _Sums:
    """Return loss, gradient and, where asked, Hessian of every fold but one left out.

    A Hessian of many rows is that of a sample of them, the first of each block; gradients are
    always exact, so that only the number of steps depends on it.
    """
    n_folds = len(problem.bounds) - 1
    size = len(weights)
    sums = _Sums(np.zeros(n_folds), np.zeros((n_folds, size)), _no_hessian(n_folds, size, curved))
    share = min(1.0, HESSIAN_WORK / (len(problem.own) * float(size) ** 2))
    for fold in [fold for fold in range(n_folds) if fold != left_out]:
        n_used = 0
        for rows in _fold_blocks(problem, fold):
            logp = log_softmax(_logits(problem, weights, rows))
            sums.loss[fold] += _loss(problem, logp, rows)
            probabilities = np.exp(logp)
            sums.gradient[fold] += _gradient(problem, probabilities, rows)
            if curved:
                n_taken = int(np.ceil(share * len(logp)))
                part = slice(rows.start, rows.start + n_taken)
                sums.hessian[fold] += _hessian(problem, probabilities[:n_taken], part)
                n_used += n_taken
        if n_used:
            sums.hessian[fold] *= np.diff(problem.bounds)[fold] / n_used
    return sums


def _no_hessian(n_folds: int, size: int, curved: bool) -> Array:
    return np.zeros((n_folds, size, size) if curved else (n_folds, 0, 0))


def _curvature(problem: Regression, weights: Array, precision: Array) -> Array:
    """Return the diagonal of the penalised Hessian of all rows."""
    n_shared = len(problem.shared)
    out = precision.astype(float)
    for rows in _blocks(problem, 0, len(problem.own)):
        p = np.exp(log_softmax(_logits(problem, weights, rows)))
        spread = problem.totals[rows, None] * p * (1 - p)
        squares = [np.vdot(column[rows] ** 2, spread) for column in problem.shared]
        out[:n_shared] += np.array(squares, dtype=float)
        out[n_shared:] += ((problem.own[rows] ** 2).T @ spread).ravel()
    return out


def _held_out_loss(problem: Regression, without: Array) -> float:
    """Return nats per label of every fold under the weights without it."""
    loss = 0.0
    for fold, weights in enumerate(without):
        for rows in _fold_blocks(problem, fold):
            loss += _loss(problem, log_softmax(_logits(problem, weights, rows)), rows)
    return loss / float(problem.totals.sum(dtype=float))
