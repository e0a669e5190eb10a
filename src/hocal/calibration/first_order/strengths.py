"""Choose how strongly each group of weights is held back, by the loss on folds left out.

Groups enter one after the other on top of the best so far, each at strengths from strong to weak as
long as that helps. All candidates have weights for the same columns, so that an average of them is
one more, which hedges the choice where labels are few.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hocal._base.typing import Array, Mask
from hocal.calibration.first_order.multinomial import CrossFit, Regression, cross_fit

__all__ = ["FIRST", "Candidate", "Grouped", "average", "best", "choose", "refit"]

FIRST = "temperature"  # the group of the first shared column, which is always in use
FIRST_PRECISION = (
    0.1  # of its weight, in labels: held back by nothing that a handful would not beat
)
GRID = (2000.0, 400.0, 80.0, 16.0, 3.0, 0.6)  # by fives: standard deviations .02 to 1.3 in logits


class Grouped(NamedTuple):
    """A regression with the name of the group of every column."""

    problem: Regression
    shared_groups: tuple[str, ...]  #: of each shared column
    own_groups: tuple[str, ...]  #: of each own input

    @property
    def groups(self) -> list[str]:
        """The groups whose strength is to be chosen, in order."""
        names = dict.fromkeys(self.own_groups[:1] + self.shared_groups + self.own_groups)
        return [name for name in names if name != FIRST]


class Candidate(NamedTuple):
    """Weights of all columns, zero where a group is not in use, and the strengths in use."""

    fit: CrossFit
    strengths: dict[str, float]


def choose(grouped: Grouped) -> list[Candidate]:
    """Return all candidates that were tried."""
    n_folds = len(grouped.problem.bounds) - 1
    size = grouped.problem.n_weights
    nothing = CrossFit(np.zeros(size), np.zeros((n_folds, size)), np.inf)
    tried = [refit(grouped, Candidate(nothing, {}))]
    for group in grouped.groups:
        tried += _try_strengths(grouped, best(tried), group)
    return tried


def best(candidates: list[Candidate]) -> Candidate:
    """Return the candidate with the least loss on folds left out."""
    return min(candidates, key=lambda candidate: candidate.fit.log_loss)


def average(candidates: list[Candidate], n_items: int) -> CrossFit:
    """Return the average of candidates, weighted by the likelihood of the folds left out.

    An item counts as one label, however many it has: labels of the same item tell much the same
    about a candidate.
    """
    losses = np.array([candidate.fit.log_loss for candidate in candidates])
    shares = np.exp(-n_items * (losses - losses.min()))
    shares /= shares.sum()
    weights = np.stack([candidate.fit.weights for candidate in candidates])
    without = np.stack([candidate.fit.without for candidate in candidates])
    return CrossFit(shares @ weights, np.tensordot(shares, without, axes=1), float(losses.min()))


def refit(grouped: Grouped, start: Candidate) -> Candidate:
    """Fit a candidate's groups at its strengths, from its weights."""
    shared = np.isin(grouped.shared_groups, [FIRST, *start.strengths])
    own = np.isin(grouped.own_groups, list(start.strengths))
    n_classes = grouped.problem.n_classes
    used = np.concatenate([shared, np.repeat(own, n_classes)])
    inside = CrossFit(start.fit.weights[used], start.fit.without[:, used], np.inf)
    precision = _precision(grouped, start.strengths)[used]
    fit = cross_fit(_restrict(grouped.problem, shared, own), inside, precision)
    weights = np.zeros(len(used))
    weights[used] = fit.weights
    without = np.zeros((len(fit.without), len(used)))
    without[:, used] = fit.without
    return Candidate(CrossFit(weights, without, fit.log_loss), start.strengths)


def _try_strengths(grouped: Grouped, start: Candidate, group: str) -> list[Candidate]:
    tried: list[Candidate] = []
    last = start
    for strength in GRID:
        strengths = {**start.strengths, group: strength}
        trial = refit(grouped, Candidate(last.fit, strengths))
        tried.append(trial)
        if trial.fit.log_loss > last.fit.log_loss:
            break
        last = trial
    return tried


def _restrict(problem: Regression, shared: Mask, own: Mask) -> Regression:
    if shared.all() and own.all():
        return problem
    columns = [column for column, used in zip(problem.shared, shared, strict=True) if used]
    inputs = problem.own if own.all() else np.ascontiguousarray(problem.own[:, own])
    return problem._replace(shared=tuple(columns), own=inputs)


def _precision(grouped: Grouped, strengths: dict[str, float]) -> Array:
    """Return the precision of every weight; that of groups not in use is of no account."""
    values = {FIRST: FIRST_PRECISION, **strengths}
    shared = [values.get(group, 1.0) for group in grouped.shared_groups]
    own = [values.get(group, 1.0) for group in grouped.own_groups]
    return np.concatenate([shared, np.repeat(own, grouped.problem.n_classes)])
