"""Fingerprints: recognise rows that were seen before, whatever their order, from 64 bits each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hocal._base.typing import Index

__all__ = ["Fingerprints", "balanced_folds", "find", "fingerprint"]

Fingerprints = NDArray[np.uint64]

# Steps of splitmix64, a mixer of 64 bits whose outputs pass tests of randomness.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_BLOCK = 1 << 20  # numbers that are mixed at once, 8 MB


def fingerprint(*arrays: Any) -> Fingerprints:
    """Return 64 bits for each row of arrays with as many rows each, dense or sparse.

    Equal rows have equal fingerprints, on every machine; different rows differ but for a chance of
    2**-64 per pair. A sparse matrix has those of its dense form.
    """
    result = np.zeros(arrays[0].shape[0], dtype=np.uint64)
    for place, array in enumerate(arrays):
        result = _mix(result + np.uint64(place)) + _sum_of_entries(array)
    return _mix(result)


def balanced_folds(fingerprints: Fingerprints, n_folds: int) -> Index:
    """Deal rows to folds of equal size by their fingerprints, whatever order they came in.

    Equal rows are spread over the folds.
    """
    order = np.argsort(fingerprints, kind="stable")
    folds = np.empty(len(order), dtype=np.intp)
    folds[order] = np.arange(len(order)) % n_folds
    return folds


def find(fingerprints: Fingerprints, known: Fingerprints) -> Index:
    """Return where each fingerprint stands in the sorted `known` ones, -1 for one that does not."""
    if not len(known):
        return np.full(len(fingerprints), -1, dtype=np.intp)
    place = np.searchsorted(known, fingerprints)
    place[place == len(known)] = 0
    return np.where(known[place] == fingerprints, place, -1)


def _sum_of_entries(array: Any) -> Fingerprints:
    """Return the sum over each row of the mixed bits of its entries; a zero adds nothing."""
    if sparse.issparse(array):
        mixed = _mix_entries(array.data, array.indices)
        rows = sparse.csr_array((mixed, array.indices, array.indptr), shape=array.shape)
        return np.asarray(rows @ np.ones(array.shape[1], dtype=np.uint64))
    flat = array.reshape(len(array), -1)
    columns = np.arange(flat.shape[1])
    height = max(_BLOCK // max(flat.shape[1], 1), 1)
    blocks = [flat[start : start + height] for start in range(0, len(flat), height)]
    return np.concatenate([_mix_entries(block, columns).sum(axis=1) for block in blocks])


def _mix_entries(values: NDArray[Any], columns: NDArray[Any]) -> Fingerprints:
    numbers = values.astype(np.float64) + 0.0  # minus zero is zero
    mixed = _mix(numbers.view(np.uint64) + columns.astype(np.uint64) * _GOLDEN)
    return np.where(numbers == 0, np.uint64(0), mixed)


def _mix(bits: Fingerprints) -> Fingerprints:
    """Return splitmix64 of each number; products wrap around."""
    bits = bits + _GOLDEN
    bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    return np.asarray(bits ^ (bits >> np.uint64(31)))
