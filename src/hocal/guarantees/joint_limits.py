"""Limits of the means of many cells at once, each the one that its cell has alone.

A limit is found by bisection, which takes the same steps for every cell: together they cost little
more than one. Cells whose draws are equal share a column, and so do classes of a cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from hocal._base.typing import Array, Index, IntArray, Mask
from hocal.guarantees.betting import Draws, lower_limit, upper_limit
from hocal.guarantees.entropy_boxes import box_limits_of_rows

__all__ = ["ClassShares", "JointDraws", "JointShares", "class_shares"]

_BLOCK = 1 << 16  # draws in a call, half a MB for each of the stakes
_WIDEST = 64  # values of draws that are compared with others: beyond, hardly two are equal
_PADDING = 0.5  # value of a draw that never occurred
_CONSTANT = 1e-9  # range below which a statistic is one
_DIGITS = 12  # to which shares are rounded before equal ones are merged


class _Batch(NamedTuple):
    """Draws with about equally many values, mapped to [0, 1], one column for each."""

    rows: Index  #: (n_rows,) whose
    column: Index  #: (n_rows,) the column of each
    draws: Draws
    guess: Array | None  #: (n_columns,) of standard deviations


class JointDraws:
    """Draws of one statistic in several cells, a column each, with guesses of their deviations."""

    def __init__(self, draws: Sequence[Draws], guesses: Sequence[Array | None]) -> None:
        self._low = np.array([each.low for each in draws], dtype=np.float64)
        self._high = np.array([each.high for each in draws], dtype=np.float64)
        self._rounding = np.array([each.rounding for each in draws], dtype=np.float64)
        self._batches = list(_batches(draws, guesses))

    def __len__(self) -> int:
        return len(self._low)

    def upper(self, delta: float) -> Array:
        """Return what `upper_limit` says about each cell."""
        limits = self._map_back(self._limits(upper_limit, delta)) + self._rounding
        return np.where(self._constant, self._high, np.minimum(limits, self._high))

    def lower(self, delta: float) -> Array:
        """Return what `lower_limit` says about each cell."""
        limits = self._map_back(self._limits(lower_limit, delta)) - self._rounding
        return np.where(self._constant, self._low, np.maximum(limits, self._low))

    @property
    def _constant(self) -> Mask:
        return self._high - self._low <= _CONSTANT

    def _map_back(self, limits: Array) -> Array:
        return self._low + limits * (self._high - self._low)

    def _limits(self, limit: Callable[..., Array], delta: float) -> Array:
        found = np.empty(len(self))
        for batch in self._batches:
            found[batch.rows] = limit(batch.draws, delta, batch.guess)[batch.column]
        return found


def _batches(draws: Sequence[Draws], guesses: Sequence[Array | None]) -> list[_Batch]:
    """Cut draws into batches of about equally many values, with a guess or without."""
    sizes = np.array([len(each.values) for each in draws], dtype=np.intp)
    magnitude = np.ceil(np.log2(np.maximum(sizes, 1))).astype(np.intp)
    guessed = np.array([guess is not None for guess in guesses], dtype=bool)
    found = []
    for has_guess in (False, True):
        for size in np.unique(magnitude[guessed == has_guess]):
            rows = np.flatnonzero((guessed == has_guess) & (magnitude == size))
            step = max(_BLOCK >> int(size), 1)
            if size <= np.log2(_WIDEST):  # equal ones first, however many
                step = len(rows)
            found += [
                _batch(rows[start : start + step], draws, guesses)
                for start in range(0, len(rows), step)
            ]
    return [part for batch in found for part in _divide(batch)]


def _batch(rows: Index, draws: Sequence[Draws], guesses: Sequence[Array | None]) -> _Batch:
    """Put draws side by side, those that are equal once."""
    width = max(len(draws[row].values) for row in rows)
    table = np.zeros((len(rows), 2 * width + 1))  # values, repeats, guess
    table[:, :width] = _PADDING
    for place, row in enumerate(rows):
        each, guess = draws[row], guesses[row]
        span = each.high - each.low
        if span <= _CONSTANT:  # whose limits are known without looking
            table[place, -1] = 1.0
            continue
        size = len(each.values)
        table[place, :size] = (each.values[:, 0] - each.low) / span
        table[place, width : width + size] = each.repeats[:, 0]
        table[place, -1] = 1.0 if guess is None else guess[0] / span
    if width > _WIDEST:
        column = np.arange(len(rows))
    else:
        table, column = _distinct(table)
    unit = Draws(table[:, :width].T, table[:, width:-1].T, 0.0, 1.0)
    return _Batch(rows, column, unit, None if guesses[rows[0]] is None else table[:, -1])


def _distinct(table: Array) -> tuple[Array, Index]:
    """Return the distinct rows of a table, and which of them each row is."""
    codes = np.ascontiguousarray(table).view(np.dtype((np.void, table.itemsize * table.shape[1])))
    _, first, inverse = np.unique(codes.reshape(-1), return_index=True, return_inverse=True)
    return table[first], inverse.reshape(-1)


def _divide(batch: _Batch) -> list[_Batch]:
    """Cut a batch into parts whose draws are listed at once."""
    width, n_columns = batch.draws.values.shape
    step = max(_BLOCK // max(width, 1), 1)
    if n_columns <= step:
        return [batch]
    parts = []
    for start in range(0, n_columns, step):
        own = slice(start, start + step)
        inside = (batch.column >= start) & (batch.column < start + step)
        values, repeats = batch.draws.values[:, own], batch.draws.repeats[:, own]
        guess = None if batch.guess is None else batch.guess[own]
        draws = Draws(values, repeats, 0.0, 1.0)
        parts.append(_Batch(batch.rows[inside], batch.column[inside] - start, draws, guess))
    return parts


class ClassShares(NamedTuple):
    """Shares of labels in a cell: classes whose shares are alike make one column."""

    draws: Draws  #: one column for each kind of class
    n_classes: IntArray  #: (n_columns,) classes of each kind


def class_shares(counts: IntArray, totals: IntArray, repeats: Array) -> ClassShares:
    """Return the shares of all classes in a cell's items.

    Parameters
    ----------
    counts : ndarray of shape (n_rows, n_classes)
        Distinct count vectors.
    totals : ndarray of shape (n_rows,)
        Labels of each.
    repeats : ndarray of shape (n_rows,)
        How often each occurred.

    Returns
    -------
    ClassShares
        Draws between 0 and 1.
    """
    row, label = np.nonzero(counts)
    shares = np.round(counts[row, label] / totals[row], _DIGITS)
    values, place = np.unique(shares, return_inverse=True)
    n_classes = counts.shape[1]
    flat = np.bincount(
        place.reshape(-1) * n_classes + label, repeats[row], minlength=len(values) * n_classes
    )
    seen = flat.reshape(-1, n_classes)
    unseen = np.maximum(repeats.sum() - seen.sum(axis=0), 0.0)  # sums of fractions are rounded
    table = np.vstack([unseen, seen])
    kinds, column = _distinct(table.T)
    each = np.bincount(column, minlength=len(kinds))
    return ClassShares(Draws(np.append(0.0, values)[:, None], kinds.T, 0.0, 1.0), each)


class JointShares:
    """Shares of labels in several cells, and limits of an entropy of their means."""

    def __init__(self, shares: Sequence[ClassShares], n_classes: int) -> None:
        columns = [
            Draws(each.draws.values, each.draws.repeats[:, [column]], 0.0, 1.0)
            for each in shares
            for column in range(len(each.n_classes))
        ]
        sizes = np.array([len(each.n_classes) for each in shares], dtype=np.intp)
        self._joint = JointDraws(columns, [None] * len(columns))
        self._starts = np.cumsum(sizes) - sizes
        self._sizes = sizes
        self._n_each = np.concatenate([each.n_classes for each in shares])
        self._n_classes = n_classes
        self._known: dict[float, tuple[Array, Array]] = {}

    def __len__(self) -> int:
        return len(self._sizes)

    def box(self, component: Callable[[Array], Array], delta: float) -> tuple[Array, Array]:
        """Return limits of a separable entropy of the means, from limits of all classes at once."""
        share = delta / (2 * self._n_classes)
        if share not in self._known:
            # No guesses here: those of other cells made the limits of small cells vacuous and
            # narrowed none.
            self._known[share] = (self._joint.lower(share), self._joint.upper(share))
        lower, upper = self._known[share]
        found = np.empty((2, len(self._sizes)))
        for cells in _similar(self._sizes):
            width = int(self._sizes[cells].max())
            inside = np.arange(width) < self._sizes[cells, None]
            places = np.where(inside, self._starts[cells, None] + np.arange(width), 0)
            times = np.where(inside, self._n_each[places], 0)
            found[:, cells] = box_limits_of_rows(component, lower[places], upper[places], times)
        return found[0], found[1]


def _similar(sizes: IntArray) -> list[Index]:
    """Return cells with about equally many columns, as many as are treated at once."""
    order = np.argsort(sizes, kind="stable")
    parts = []
    start = 0
    while start < len(order):
        step = max(_BLOCK // int(sizes[order[start]]), 1)
        part = order[start : start + step]
        part = part[sizes[part] <= 2 * sizes[part[0]]]
        parts.append(part)
        start += len(part)
    return parts
