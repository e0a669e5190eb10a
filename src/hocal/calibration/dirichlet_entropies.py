"""Expected entropies of Dirichlet posteriors, many of them on the same few parameters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import special

from hocal._base.typing import Array, IntArray

__all__ = ["add_over_classes", "expected_ordinal", "expected_shannon", "rising"]

MOST_STEPS = 100  # labels of one class, beyond which a matrix product for each takes longer


def add_over_classes(
    parameters: Array,
    counts: IntArray,
    step: Callable[[Array, int], Array],
    at_once: Callable[[Array, IntArray], Array],
) -> Array:
    """Return the sum over classes j of g(a_cj, s_j), for each row of counts and each component.

    Parameters
    ----------
    parameters : array of shape (n_components, n_classes)
        a.
    counts : array of shape (n_rows, n_classes)
        s.
    step : callable
        g(a, m + 1) - g(a, m), where g(a, 0) = 0: one matrix product for each m.
    at_once : callable
        g itself: one call for each class, where some count is large.
    """
    most = int(counts.max(initial=0))
    total = np.zeros((len(counts), len(parameters)))
    if most <= MOST_STEPS:
        for m in range(most):
            total += (counts > m) @ step(parameters, m).T
        return total
    for parameter, count in zip(parameters.T, counts.T, strict=True):
        values, place = np.unique(count, return_inverse=True)
        total += at_once(parameter[None], values[:, None])[place]
    return total


def rising(x: Array, n: IntArray) -> Array:
    """Return log (x)_n."""
    return np.asarray(special.gammaln(x + n) - special.gammaln(x))


def expected_shannon(parameters: Array, own: IntArray, total: Array) -> Array:
    """Return E[H(p)] under Dirichlet(a + s): psi(t + 1) - sum_j b_j psi(b_j + 1) / t, b = a + s."""

    def part(x: Array) -> Array:
        return np.asarray(x * special.digamma(x + 1))

    def step(x: Array, m: int) -> Array:
        return part(x + m + 1) - part(x + m)

    def at_once(x: Array, n: IntArray) -> Array:
        return part(x + n) - part(x)

    sums = part(parameters).sum(axis=1) + add_over_classes(parameters, own, step, at_once)
    return np.asarray(special.digamma(total + 1) - sums / total)


def expected_ordinal(parameters: Array, own: IntArray, total: Array) -> Array:
    """Return E[sum_j F_j (1 - F_j)] with F_j of a beta distribution with sums b_j and t - b_j."""
    a = parameters.cumsum(axis=1)[:, :-1]
    s = own.cumsum(axis=1)[:, :-1]
    sums = a.sum(axis=1) + s.sum(axis=1)[:, None]
    of_labels = (s**2).sum(axis=1)[:, None]
    squares = (a**2).sum(axis=1) + 2 * s @ a.T + of_labels
    pairs = total * (total + 1)
    return np.asarray((total * sums - squares) / pairs)
