"""Bet on the residuals of new items: about all of them and about each cell, then pool."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hocal._base.typing import Array, Index
from hocal.calibration.reference import Expected, Residuals
from hocal.decisions.monitor_state import MonitorState
from hocal.decisions.watched import DIRECTIONS, KINDS, Watched
from hocal.guarantees.shift_evidence import Means

__all__ = ["Bets"]

BLOCK_NUMBERS = 1 << 17  # log-evidences of rows after items that are pooled at once, a MB
BLOCK = 128  # items at once, of which each may be about a cell of its own


class Bets(NamedTuple):
    """What is needed to bet on new items."""

    watched: Watched
    means: Means
    log_weights: Array  #: (n_rows,)

    def take(self, state: MonitorState, expected: Expected, found: Residuals) -> MonitorState:
        """Return the state after further items; its rows are changed in place."""
        whole = self._take_whole(state, found)
        cells = [
            self._take_cells(state, expected.cells, values, place)
            for place, values in enumerate((found.disagreement, found.top))
        ]
        columns = np.logaddexp(whole, np.stack(cells, axis=1)) - math.log(len(DIRECTIONS))
        pooled = np.logaddexp(*columns.T) - math.log(len(KINDS))
        return state.extended(np.column_stack([pooled, columns]))

    def _take_whole(self, state: MonitorState, found: Residuals) -> Array:
        """Bet on the means of all items; return the pooled log-evidence of each kind, (n, 2)."""
        rows = slice(0, self.watched.n_whole)
        kinds = [self.watched.of_kind(kind)[rows] for kind in KINDS]
        weights = self.log_weights[rows, None]
        n_items = len(found.top)
        pooled = np.empty((n_items, len(KINDS)))
        step = max(BLOCK_NUMBERS // self.watched.n_whole, 1)
        for start in range(0, n_items, step):
            part = slice(start, start + step)
            some = found.rows(part)
            values = np.column_stack([some.disagreement, some.top, some.classes])
            items = len(state.path) + np.arange(start, start + len(values))[:, None]
            logs = weights + self._bet(state, rows, values, np.broadcast_to(items, values.shape))
            pooled[part] = np.stack([_log_sum(logs[:, kind]) for kind in kinds], axis=1)
        return pooled

    def _take_cells(self, state: MonitorState, cells: Index, values: Array, place: int) -> Array:
        """Bet on a mean of each cell; return the pooled log-evidence of all cells, (n,)."""
        rows = slice(self.watched.n_whole + place, None, 2)
        weights = self.log_weights[rows, None]
        before = weights + state.log_evidence[rows]  # (n_cells, 2)
        items = np.flatnonzero(~np.isnan(values))
        logs = np.empty((len(items), 2))
        for own, together in _in_turns(cells[items]):
            chosen = items[together]
            row = self.watched.n_whole + place + 2 * own
            logs[together] = self._bet(state, row, values[chosen], len(state.path) + chosen)
        start = _log_sum(before[None])
        path = _pool_cells(before, cells[items], weights[cells[items]] + logs)
        latest = np.cumsum(~np.isnan(values))  # an item without a value leaves all as it was
        return np.asarray(np.concatenate([start, path])[latest])

    def _bet(self, state: MonitorState, rows: Index | slice, values: Array, items: Index) -> Array:
        """Bet on values of rows, (n_times, n_rows); return their log-evidence after each."""
        wealth, logs = state.wealth.take(rows).advance(self.means.take(rows), values, items + 1)
        state.keep(rows, wealth, logs[-1], np.nansum(values, axis=0))
        return logs


def _in_turns(cells: Index) -> Iterator[tuple[Index, Index]]:
    """Go through items so that each turn has as many of each of its cells, in their order.

    Yields the cells of a turn, (n_cells,), and places among the items, (n_times, n_cells).
    """
    order = np.argsort(cells, kind="stable")
    present, starts, sizes = np.unique(cells[order], return_index=True, return_counts=True)
    for low, high in pairwise([0, *np.unique(sizes).tolist()]):
        large = sizes >= high
        yield present[large], order[starts[large] + np.arange(low, high)[:, None]]


def _pool_cells(before: Array, cells: Index, logs: Array) -> Array:
    """Return the pooled log-evidence of all cells after each item, (n_items,).

    Parameters
    ----------
    before : ndarray of shape (n_cells, 2)
        Weighted log-evidence of each cell before the items.
    cells : ndarray of shape (n_items,)
    logs : ndarray of shape (n_items, 2)
        Weighted log-evidence of each item's cell after it.
    """
    latest = before.copy()
    pooled = np.empty(len(cells))
    for start in range(0, len(cells), BLOCK):
        part = slice(start, start + BLOCK)
        touched, own = np.unique(cells[part], return_inverse=True)
        still = np.delete(latest, touched, axis=0)
        moving = _held(own, logs[part], latest[touched])
        pooled[part] = np.logaddexp(_log_sum(moving), _log_sum(still[None]))
        latest[touched] = moving[-1]
    return pooled


def _held(own: Index, logs: Array, before: Array) -> Array:
    """Return log-evidence of each cell after each item, which stays between a cell's own items."""
    n_items = len(own)
    latest = np.full((n_items, len(before)), -1)
    latest[np.arange(n_items), own] = np.arange(n_items)
    latest = np.maximum.accumulate(latest, axis=0)
    return np.where(latest[..., None] >= 0, logs[latest], before)


def _log_sum(logs: Array) -> Array:
    """Return the logarithm of the sum over all but the first axis; -inf where nothing counts."""
    largest = logs.max(axis=(1, 2), initial=np.finfo(float).min)
    sums = np.exp(logs - largest[:, None, None]).sum(axis=(1, 2))
    with np.errstate(divide="ignore"):
        return np.asarray(largest + np.log(sums))
