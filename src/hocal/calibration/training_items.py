"""What models that had not seen an item said about it, for the items of a fit."""

from __future__ import annotations

import warnings
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from hocal._base.fingerprints import Fingerprints, find, fingerprint
from hocal._base.typing import Array, Counts, Index
from hocal.calibration.cross_fitting import Fold, assign_folds, majority

__all__ = ["TrainingItems", "deal_rows", "warn_of_copies"]

# Fewer different rows of X are rather the categories of features than items that occur again.
FEWEST_DISTINCT = 20


class TrainingItems(NamedTuple):
    """Out-of-fold predictions of the items of a fit, which are known again by their rows of X."""

    fingerprints: Fingerprints  #: (n_items,) sorted
    probabilities: Array  #: (n_items, n_classes) of the same items

    @classmethod
    def none(cls) -> TrainingItems:
        """Know no item."""
        return cls(np.empty(0, dtype=np.uint64), np.empty((0, 0)))

    @classmethod
    def of(cls, X: Any, probabilities: Array) -> TrainingItems:
        """Remember what was predicted for the rows of X."""
        prints = _row_fingerprints(X)
        if prints is None:
            return cls.none()
        order = np.argsort(prints, kind="stable")
        return cls(prints[order], probabilities[order])

    def correct(self, X: Any, probabilities: Array) -> Array:
        """Return predictions with those of known items as they were made out of fold."""
        prints = _row_fingerprints(X) if len(self.fingerprints) else None
        if prints is None:
            return probabilities
        place = find(prints, self.fingerprints)
        known = place >= 0
        corrected = probabilities.copy()
        corrected[known] = self.probabilities[place[known]]
        return corrected


def deal_rows(X: Any, counts: Counts, n_folds: int, random_state: Any) -> Index:
    """Return a fold for each item; equal rows of X come into one, since they may be one item."""
    prints = _row_fingerprints(X)
    distinct = np.arange(counts.shape[0]) if prints is None else _number_distinct(prints)
    n_distinct = int(distinct.max()) + 1
    if n_distinct == len(distinct) or n_distinct < max(FEWEST_DISTINCT, n_folds):
        return assign_folds(majority(counts), n_folds, random_state)
    copies = sparse.csr_array((np.ones_like(distinct), (distinct, np.arange(len(distinct)))))
    return assign_folds(majority(copies @ counts), n_folds, random_state)[distinct]


def warn_of_copies(X: Any, folds: list[Fold]) -> None:
    """Say so where models answer for rows of which they have seen copies."""
    prints = _row_fingerprints(X)
    if prints is None:
        return
    if len(np.unique(prints)) < FEWEST_DISTINCT:
        return
    n_leaked = sum(np.isin(prints[test], prints[train]).sum() for train, test in folds)
    if n_leaked:
        warnings.warn(
            f"{n_leaked} rows of X that `cv` holds out have copies among those that train the "
            "model: it has seen their labels if copies are one item. Then add up the labels of "
            "each item to one row of counts, or pass `groups` with a group splitter as `cv`.",
            UserWarning,
            stacklevel=4,
        )


def _number_distinct(prints: Fingerprints) -> Index:
    """Return the number of each row among the different ones, in the order they come in."""
    _, first, number = np.unique(prints, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[number], dtype=np.intp)


def _row_fingerprints(X: Any) -> Fingerprints | None:
    """Return fingerprints of the rows of an array, sparse matrix, dataframe or list; else None."""
    if sparse.issparse(X):
        return fingerprint(sparse.csr_array(X))
    columns = [np.asarray(X[name]) for name in X.columns] if hasattr(X, "columns") else [_array(X)]
    if any(column is None or column.ndim == 0 for column in columns):
        return None
    return fingerprint(*(_numbers(column) for column in columns if column is not None))


def _array(X: Any) -> NDArray[Any] | None:
    try:
        return np.asarray(X)
    except ValueError:  # rows of different lengths
        return None


def _numbers(column: NDArray[Any]) -> Array:
    """Return numbers as they are, and anything else as a number that stands for its text."""
    if column.dtype.kind in "buif":
        return column.reshape(len(column), -1).astype(np.float64)
    texts, inverse = np.unique(column.astype(str), return_inverse=True)
    codes = np.array([_text_code(text) for text in texts.tolist()], dtype=np.float64)
    return codes[inverse].reshape(len(column), -1)


def _text_code(text: str) -> float:
    """Return a number that stands for a text, below 2**53 so that a float holds it exactly."""
    digest = blake2b(text.encode(), digest_size=8).digest()
    return float(int.from_bytes(digest, "big") >> 11)
