"""Rows of counts, each distinct one once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from hocal._base.typing import Counts, Index, IntArray
from hocal._base.validation import check_counts

__all__ = ["CODE_LIMIT", "Compressed", "as_dense", "compress", "distinct_rows"]

CODE_LIMIT = 2**62  # of integers that stand for rows: their sums stay below 2**63


class Compressed(NamedTuple):
    """Distinct rows of a count matrix, in lexicographic order."""

    unique: Counts  #: (n_distinct, n_classes)
    multiplicity: IntArray  #: (n_distinct,) how often each occurs
    inverse: Index  #: (n_items,) the row of `unique` that equals each item


def compress(counts: Any) -> Compressed:
    """Return the distinct rows of a count matrix with their multiplicities.

    Rows are turned into integers whose order is the lexicographic order of the rows, which sorts
    many times faster than the rows themselves. Where the integers would overflow, they are replaced
    by their ranks and the encoding goes on, so the result is exact for any number of classes.

    Parameters
    ----------
    counts : array or sparse matrix of shape (n_items, n_classes)
        Label counts.

    Returns
    -------
    Compressed
        Distinct rows in the input's format, multiplicities, and each item's distinct row.

    Examples
    --------
    >>> from hocal.uncertainty.distinct_counts import compress
    >>> packed = compress([[0, 2], [1, 1], [0, 2]])
    >>> packed.unique.tolist(), packed.multiplicity.tolist()
    ([[0, 2], [1, 1]], [2, 1])
    """
    return distinct_rows(check_counts(counts, minimum_total=0))


def distinct_rows(counts: Counts) -> Compressed:
    """Return what `compress` does, for counts that were checked before."""
    codes = _encode(counts if isinstance(counts, np.ndarray) else _padded_entries(counts))
    first, inverse, multiplicity = _group(codes)
    return Compressed(counts[first], multiplicity, inverse)


def as_dense(counts: Counts) -> IntArray:
    """Return checked counts as an array, for work that needs every class of an item at once."""
    dense: IntArray = counts if isinstance(counts, np.ndarray) else counts.toarray()
    return dense


def _encode(matrix: IntArray) -> IntArray:
    """Return integers that order like the rows of a non-negative matrix."""
    codes = np.zeros(len(matrix), dtype=np.int64)
    span = 1
    for column, largest in zip(matrix.T, matrix.max(axis=0).tolist(), strict=True):
        if span * (largest + 1) >= CODE_LIMIT:
            distinct, codes = np.unique(codes, return_inverse=True)
            span = len(distinct)
        codes = codes * (largest + 1) + column
        span *= largest + 1
    return codes


def _group(codes: IntArray) -> tuple[Index, Index, IntArray]:
    """Return where each distinct code comes first, the rank of every code, and their counts."""
    if int(codes.max(initial=0)) > 4 * len(codes):
        _, first, inverse, counts = np.unique(
            codes, return_index=True, return_inverse=True, return_counts=True
        )
        return first, inverse, counts.astype(np.int64)
    tally = np.bincount(codes)  # few possible codes: counting takes a fifth of the time of sorting
    seen = tally > 0
    first = np.empty(len(tally), dtype=np.intp)
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # of equal codes the last one written stays
    return first[seen], (np.cumsum(seen) - 1)[codes], tally[seen]


def _padded_entries(matrix: sparse.csr_array) -> IntArray:
    """Return integers that order like the rows: their entries side by side, padded with zeros.

    Of two rows the one whose first label is of a later class comes first.
    """
    lengths = np.diff(matrix.indptr)
    place = np.arange(matrix.nnz) - np.repeat(matrix.indptr[:-1], lengths)
    row = np.repeat(np.arange(len(lengths)), lengths)
    longest = max(int(lengths.max()), 1)
    entries = np.zeros((len(lengths), longest, 2), dtype=np.int64)
    entries[row, place, 0] = matrix.shape[1] - matrix.indices
    entries[row, place, 1] = matrix.data
    return entries.reshape(len(lengths), -1)
