"""Likelihoods and expected entropies of Dirichlet posteriors, many of them on few parameters.

Functions of the parameters return functions of labels, for rows that come some at a time: what is
the same for all rows is computed once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special

from hocal._base.typing import Array, IntArray

__all__ = ["Expected", "expected_ordinal", "expected_shannon", "log_likelihoods"]

MOST_STEPS = 100  # labels of one class, beyond which a matrix product for each takes longer
KEPT_NUMBERS = 1 << 25  # in what is computed once, 256 MB; beyond, it is computed again

Expected = Callable[[IntArray, Array], Array]  #: from own labels and totals of the parameters


class _ClassSums:
    """The sum over classes j of g(a_cj, s_j), for each row of counts and each component.

    Parameters
    ----------
    parameters : array of shape (n_components, n_classes)
        a.
    step : callable
        g(a, m + 1) - g(a, m), where g(a, 0) = 0: one matrix product for each m.
    at_once : callable
        g itself: one call for each class, where some count is large.
    """

    def __init__(
        self,
        parameters: Array,
        step: Callable[[Array, int], Array],
        at_once: Callable[[Array, IntArray], Array],
    ) -> None:
        self.parameters = parameters
        self._step = step
        self._at_once = at_once
        self._kept: dict[int, Array] = {}

    def __call__(self, counts: IntArray) -> Array:
        """Return the sums, (n_rows, n_components)."""
        most = int(counts.max(initial=0))
        total = np.zeros((len(counts), len(self.parameters)))
        if most <= MOST_STEPS:
            for m in range(most):
                total += (counts > m) @ self._steps(m).T
            return total
        for parameter, count in zip(self.parameters.T, counts.T, strict=True):
            values, place = np.unique(count, return_inverse=True)
            total += self._at_once(parameter[None], values[:, None])[place]
        return total

    def _steps(self, m: int) -> Array:
        found = self._kept.get(m)
        if found is None:
            found = self._step(self.parameters, m)
            if (len(self._kept) + 1) * found.size <= KEPT_NUMBERS:
                self._kept[m] = found
        return found


def log_likelihoods(parameters: Array) -> Callable[[IntArray], Array]:
    """Return the logarithm of rows' likelihoods under each component, up to a constant."""
    total = parameters.sum(axis=1)
    sums = _ClassSums(parameters, lambda x, m: np.log(x + m), _rising)

    def logs(counts: IntArray) -> Array:
        n_labels = counts.sum(axis=1)
        return -_rising(total[None], n_labels[:, None]) + sums(counts)

    return logs


def _rising(x: Array, n: IntArray) -> Array:
    """Return log (x)_n."""
    return np.asarray(special.gammaln(x + n) - special.gammaln(x))


def expected_shannon(parameters: Array) -> Expected:
    """Return E[H(p)] under Dirichlet(a + s): psi(t + 1) - sum_j b_j psi(b_j + 1) / t, b = a + s."""

    def part(x: Array) -> Array:
        return np.asarray(x * special.digamma(x + 1))

    def step(x: Array, m: int) -> Array:
        return part(x + m + 1) - part(x + m)

    def at_once(x: Array, n: IntArray) -> Array:
        return part(x + n) - part(x)

    unlabelled = part(parameters).sum(axis=1)
    sums = _ClassSums(parameters, step, at_once)

    def expected(own: IntArray, total: Array) -> Array:
        return np.asarray(special.digamma(total + 1) - (unlabelled + sums(own)) / total)

    return expected


def expected_ordinal(parameters: Array) -> Expected:
    """Return E[sum_j F_j (1 - F_j)] with F_j of a beta distribution with sums b_j and t - b_j."""
    a = parameters.cumsum(axis=1)[:, :-1]

    def expected(own: IntArray, total: Array) -> Array:
        s = own.cumsum(axis=1)[:, :-1]
        sums = a.sum(axis=1) + s.sum(axis=1)[:, None]
        of_labels = (s**2).sum(axis=1)[:, None]
        squares = (a**2).sum(axis=1) + 2 * s @ a.T + of_labels
        pairs = total * (total + 1)
        return np.asarray((total * sums - squares) / pairs)

    return expected
