"""Random permutations and halves of judgements within groups, and p-values from them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hocal._base.typing import Array, IntArray

__all__ = ["halves", "p_values", "permutations"]


def permutations(
    groups: IntArray, n_permutations: int, generator: np.random.Generator
) -> Iterator[IntArray]:
    """Yield random permutations of 0, 1, ... that move nothing out of its group."""
    order = np.argsort(groups, kind="stable")
    sizes = np.bincount(groups)
    starts = np.cumsum(sizes) - sizes
    blocks = []
    for n in np.unique(sizes[sizes > 1]):
        first = starts[sizes == n, None]
        blocks.append(order[first + np.arange(n)])
    result = np.arange(len(groups))
    for _ in range(n_permutations):
        for block in blocks:  # (n_groups of one size, size)
            result[block] = generator.permuted(block, axis=1)
        yield result


def p_values(observed: Array, null: Array) -> Array:
    """Return the share of null values, the observed one included, as large as the observed one."""
    exceed = null >= observed - 1e-9 * np.abs(observed)  # equal sums may differ in their last digit
    shares = (1 + exceed.sum(axis=0)) / (1 + len(null))
    return np.where(np.isnan(observed), np.nan, shares)


def halves(groups: IntArray) -> Array:
    """Return -1 in the first half of each run of equal numbers, 1 in the second, 0 between."""
    starts = np.flatnonzero(np.diff(groups, prepend=-1))
    sizes = np.diff(starts, append=len(groups))
    place = np.arange(len(groups)) - np.repeat(starts, sizes)
    return np.asarray(np.sign(2.0 * place - np.repeat(sizes, sizes) + 1))
