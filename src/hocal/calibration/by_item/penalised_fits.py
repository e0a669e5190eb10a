"""Fit penalised likelihoods, weigh their penalties by Takeuchi's criterion, leave folds out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.special import softmax

from hocal._base.typing import Array, Index

__all__ = ["FoldedParameters", "Likelihood", "fit_penalised"]

STEPS = 200  # of L-BFGS; whitened problems need 15 to 40
TOLERANCE = 1e-8  # relative, of the log-likelihood: far below what tells two penalties apart


class Likelihood(Protocol):
    """The log-likelihood of items given parameters."""

    def total(self, parameters: Array) -> tuple[float, Array]:
        """Return the sum over items and its gradient."""

    def scores(self, parameters: Array) -> tuple[Array, Array]:
        """Return the value (n_items,) and the gradient (n_parameters, n_items) of every item."""


class FoldedParameters(NamedTuple):
    """Parameters from all items, and those from the items of the other folds."""

    final: Array  #: (n_parameters,)
    without: Array  #: (n_folds, n_parameters)

    def take(self, fold: int) -> Array:
        """Return the parameters without a fold, -1 for those of all items."""
        return self.final if fold < 0 else np.asarray(self.without[fold])


class _Trial(NamedTuple):
    """What a penalty leads to."""

    fit: FoldedParameters
    information: Array  #: (n_parameters, n_parameters) sum of the squared scores
    criterion: float


def fit_penalised(
    likelihood: Likelihood,
    start: Array,
    penalties: Iterable[Array],
    folds: Index,
    n_folds: int,
    least_gain: float = -np.inf,
) -> FoldedParameters:
    """Try penalties, strongest first, until the criterion falls, and average what they lead to.

    The criterion is the log-likelihood less tr((G + R)^-1 G), where G is the sum of the squared
    scores and R the penalty: to first order the log-likelihood of each item by the others. Fits
    count by it, as by a likelihood: where labels are few, several penalties are about as good, and
    an average hedges the choice. Where the strongest is not ahead of the start by `least_gain`
    nats, parameters stay there: weaker ones look better than they are.
    """
    trials: list[_Trial] = []
    values, scores = likelihood.scores(start)
    least = float(values.sum()) + least_gain
    nothing_learnt = FoldedParameters(start, np.tile(start, (n_folds, 1)))
    information = scores @ scores.T
    for penalty in penalties:
        trial = _try(likelihood, start, penalty, information, (folds, n_folds))
        if not trials and trial.criterion < least:
            return nothing_learnt
        trials.append(trial)
        if len(trials) > 1 and trial.criterion <= trials[-2].criterion:
            break
        start, information = trial.fit.final, trial.information
    return _average(trials)


def _average(trials: list[_Trial]) -> FoldedParameters:
    """Average parameters, weighted by what the items of other folds say for them."""
    shares = softmax([trial.criterion for trial in trials])
    final = np.stack([trial.fit.final for trial in trials])
    without = np.stack([trial.fit.without for trial in trials])
    return FoldedParameters(shares @ final, np.tensordot(shares, without, axes=1))


def _try(
    likelihood: Likelihood,
    start: Array,
    penalty: Array,
    information: Array,
    folds: tuple[Index, int],
) -> _Trial:
    root = np.asarray(np.linalg.cholesky(information + np.diag(penalty)), dtype=np.float64)
    found = _maximise(likelihood, start, penalty, root)
    values, scores = likelihood.scores(found)
    information = scores @ scores.T
    curvature = information + np.diag(penalty)
    freedom = float(np.trace(np.linalg.solve(curvature, information)))
    without = _leave_folds_out(found, scores, curvature, *folds)
    criterion = float(values.sum()) - freedom
    return _Trial(FoldedParameters(found, without), information, criterion)


def _maximise(likelihood: Likelihood, start: Array, penalty: Array, root: Array) -> Array:
    """Maximise by L-BFGS in parameters in which the curvature is about one."""

    def loss(whitened: Array) -> tuple[float, Array]:
        parameters = solve_triangular(root.T, whitened, lower=False)
        value, gradient = likelihood.total(parameters)
        held = penalty * parameters
        slope = solve_triangular(root, held - gradient, lower=True)
        return 0.5 * float(held @ parameters) - value, slope

    options = {"maxiter": STEPS, "ftol": TOLERANCE}
    found = minimize(loss, root.T @ start, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(solve_triangular(root.T, found.x, lower=False))


def _leave_folds_out(
    parameters: Array, scores: Array, curvature: Array, folds: Index, n_folds: int
) -> Array:
    """Return the parameters without each fold, by one Newton step."""
    without = []
    for fold in range(n_folds):
        own = scores[:, folds == fold]
        rest = curvature - own @ own.T
        without.append(parameters - np.linalg.solve(rest, own.sum(axis=1)))
    return np.stack(without)
