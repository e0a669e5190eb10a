"""Consecutive slices of an array, one slice per mixture, and sums over them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hocal._base.typing import Array, Index
from hocal.uncertainty.logarithms import LOG_ZERO

__all__ = ["segment_cumsum", "segment_logsumexp", "segment_offsets", "segment_sum"]


def segment_offsets(sizes: ArrayLike) -> Index:
    """Return where slices of these sizes begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes)])


def segment_sum(values: Array, offsets: NDArray[Any]) -> Array:
    """Sum the slices offsets[m]:offsets[m + 1]; NaN for an empty slice."""
    occupied = np.diff(offsets) > 0
    sums = np.full((len(offsets) - 1, *values.shape[1:]), np.nan)
    if occupied.any():
        sums[occupied] = np.add.reduceat(values, offsets[:-1][occupied], axis=0)
    return sums


def segment_cumsum(values: Array, offsets: NDArray[Any]) -> Array:
    """Cumulate each slice from its own start, so that rounding does not grow from one to the next.

    Slices of one size are cumulated together.
    """
    sizes = np.diff(offsets)
    result = np.empty_like(values)
    for size in np.unique(sizes):
        starts = offsets[:-1][sizes == size]
        places = starts[:, None] + np.arange(size)
        result[places] = np.cumsum(values[places], axis=1)
    return result


def segment_logsumexp(terms: Array, offsets: NDArray[Any]) -> Array:
    """Return log sum exp over the slices; -inf where all terms stand for log 0, NaN if empty."""
    sizes = np.diff(offsets)
    occupied = sizes > 0
    result = np.full(len(sizes), np.nan)
    if not occupied.any():
        return result
    starts = offsets[:-1][occupied]
    largest = np.maximum.reduceat(terms, starts)
    shifted = np.exp(terms - np.repeat(largest, sizes[occupied]))
    sums = np.log(np.add.reduceat(shifted, starts)) + largest
    result[occupied] = np.where(largest < LOG_ZERO / 2, -np.inf, sums)
    return result
