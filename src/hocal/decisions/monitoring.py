"""Watch whether labels of new items still look as a calibrator says they should."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.errors import InputError
from hocal._base.frames import to_frame
from hocal._base.notebook import table
from hocal._base.plurals import counted
from hocal._base.typing import Array
from hocal._base.validation import check_fraction, check_kind, check_names, check_number
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.calibration.inputs import check_items, check_labels
from hocal.calibration.reference import residuals
from hocal.decisions.monitor_bets import Bets
from hocal.decisions.monitor_state import MonitorState, read_state, write_state
from hocal.decisions.watched import ALL_ITEMS, DIRECTIONS, KINDS, Watched

__all__ = ["EvidencePath", "Finding", "Monitor"]

LARGEST = 700.0  # logarithm of the largest evidence that a float holds
SHOWN = 10  # findings in a notebook


class Finding(NamedTuple):
    """Evidence about one mean in one direction."""

    kind: str  #: "disagreement" between people, or the "mean" label distribution
    where: str  #: "all items", or what the cell is called
    cell: int | None  #: number of the cell; None for all items
    label: str | None  #: class that the mean is about; None for disagreement
    direction: str  #: "higher" or "lower" than among calibration items
    evidence: float  #: e-value of this row alone
    shift: float  #: how much higher the mean is than among calibration items
    n_items: int  #: items seen that it is about
    since: int  #: item with which the change most likely began


class EvidencePath(NamedTuple):
    """Evidence after each item, in the order in which they came."""

    pooled: Array  #: (n_items,)
    disagreement: Array  #: (n_items,)
    mean: Array  #: (n_items,)


class Monitor:
    """Watch new labelled items for disagreement and label distributions that have changed.

    For each new item the calibrator says how often two people should disagree about it and how its
    labels should be distributed. What labels differ from that is compared with what the labels of
    the calibration items differed from it, each predicted without its own: over all items, and in
    each cell. Evidence is an e-value: how many times a gambler has multiplied a stake by betting
    that the mean has changed. If nothing has changed, the chance that the pooled evidence ever
    reaches 1 / (1 - confidence) is at most 1 - confidence, however often one looks and whenever one
    stops.

    Parameters
    ----------
    calibrator : SnapshotCalibrator
        Fitted with `fit`; it must not be changed while it is watched.
    confidence : float, default=0.95
        Chance of no alarm, for ever, if nothing changes.

    Attributes
    ----------
    n_items : int
        Items seen.
    alarm : bool
        Whether the pooled evidence has ever reached 1 / (1 - confidence).
    alarmed_at : int or None
        Number of the item with which it did.
    evidence : float
        The pooled e-value now: the average of those of the two kinds.
    since : int or None
        Number of the item with which the change most likely began, by the row that counts most;
        None without an alarm. An estimate, without a guarantee.

    Notes
    -----
    What is assumed under "nothing has changed": items of each cell, and of all together, are drawn
    as the calibration items were, labels of an item independently given the item. Numbers of labels
    may differ; items with one label count for the mean only. A different mixture of items makes
    evidence about all items only where the calibrator is wrong about the items that became more
    frequent. The promise is exact for a fixed rule of prediction; that of the calibrator was
    learned from the same calibration items, which residuals of cross-fitted predictions take into
    account, and simulations bear out (`tests/statistical/test_monitor_false_alarms.py`).

    Examples
    --------
    >>> import hocal
    >>> from hocal.datasets import make_mixture_world
    >>> world = make_mixture_world(900, 3, random_state=0)
    >>> p, counts = world.predictions, world.draw(4, random_state=1)
    >>> calibrator = hocal.SnapshotCalibrator(method="cells").fit(p[:600], counts[:600])
    >>> monitor = hocal.Monitor(calibrator).update(p[600:], counts[600:])
    >>> monitor.alarm
    False

    People no longer agree about anything.

    >>> monitor.update(p[600:], [[2, 1, 1]] * 300).alarm
    True
    >>> monitor.findings()[0].kind, monitor.findings()[0].direction
    ('disagreement', 'higher')
    """

    def __init__(self, calibrator: SnapshotCalibrator, confidence: float = 0.95) -> None:
        if not isinstance(calibrator, SnapshotCalibrator):
            rule = "must be a fitted SnapshotCalibrator"
            raise InputError("calibrator", rule, value=type(calibrator).__name__)
        self.calibrator = calibrator
        self.confidence = check_fraction(confidence, "confidence")
        self._means = calibrator.known_reference().means
        statistics = calibrator.statistics_
        self._watched = Watched(statistics.n_classes, statistics.n_cells)
        self._log_weights = self._watched.log_weights(self._means.n_values)
        self._state = MonitorState.start(self._watched.n_rows)

    def update(
        self,
        probabilities: ArrayLike,
        counts: Any,
        *,
        features: ArrayLike | None = None,
        cells: ArrayLike | None = None,
        by: ArrayLike | None = None,
    ) -> Self:
        """Take further labelled items, in the order of the rows; in how many calls is the same.

        Parameters
        ----------
        probabilities : array of shape (n_items, n_classes) or (n_items, n_members, n_classes)
            Predictions, of the same form as in the fit.
        counts : array or sparse matrix of shape (n_items, n_classes)
            How often people gave each label, one label or more for each item.
        features, cells, by
            As in the fit, if there were any.

        Returns
        -------
        self : Monitor
            With the evidence of all items so far.
        """
        labels = check_labels(counts, check_items(probabilities))
        expected = self.calibrator.expect(probabilities, features=features, cells=cells, by=by)
        bets = Bets(self._watched, self._means, self._log_weights)
        self._state = bets.take(self._state, expected, residuals(expected, labels))
        return self

    @property
    def n_items(self) -> int:
        """Items seen."""
        return len(self._state.path)

    @property
    def alarm(self) -> bool:
        """Whether the pooled evidence has ever reached 1 / (1 - confidence)."""
        return self.alarmed_at is not None

    @property
    def alarmed_at(self) -> int | None:
        """Number of the item with which the alarm was raised."""
        reached = np.flatnonzero(self._state.path[:, 0] >= -math.log1p(-self.confidence))
        return int(reached[0]) + 1 if len(reached) else None

    @property
    def evidence(self) -> float:
        """The pooled e-value now."""
        return _exp(self._state.path[-1, 0]) if self.n_items else 1.0

    @property
    def evidence_by_kind(self) -> dict[str, float]:
        """The e-values of disagreement and of the mean now, each valid on its own."""
        last = self._state.path[-1, 1:] if self.n_items else np.zeros(2)
        return {kind: _exp(log) for kind, log in zip(KINDS, last, strict=True)}

    @property
    def since(self) -> int | None:
        """Number of the item with which the change most likely began; None without an alarm."""
        if not self.alarm:
            return None
        weighted = self._log_weights[:, None] + self._state.log_evidence
        row, direction = np.unravel_index(weighted.argmax(), weighted.shape)
        return self._since(int(row), int(direction))

    @property
    def history(self) -> EvidencePath:
        """The evidence after each item."""
        return EvidencePath(*np.exp(np.minimum(self._state.path, LARGEST)).T)

    def findings(
        self, *, least: float = 1.0, classes: Sequence[str] | None = None
    ) -> list[Finding]:
        """Return what gives evidence, the strongest first: which kind, where, in which direction.

        Parameters
        ----------
        least : float, default=1
            Smallest e-value to list. Each e-value is valid on its own; the strongest of many is
            not, which the weights of the pooled evidence account for.
        classes : sequence of str, optional
            Names of the classes; their numbers by default.

        Returns
        -------
        list of Finding
            In order of their part in the pooled evidence.
        """
        check_number(least, "least", minimum=0)
        logs = self._state.log_evidence
        floor = math.log(least) if least > 0 else -math.inf
        rows, directions = np.nonzero((logs >= floor) & (self._state.wealth.n_values[:, None] > 0))
        parts = self._log_weights[rows] + logs[rows, directions]
        order = np.argsort(-parts, kind="stable")
        names = _class_names(classes, self._watched.n_classes)
        places = zip(rows[order].tolist(), directions[order].tolist(), strict=True)
        return [self._finding(row, direction, names) for row, direction in places]

    def to_frame(
        self,
        *,
        least: float = 1.0,
        classes: Sequence[str] | None = None,
        backend: Any = "pandas",
    ) -> Any:
        """Return `findings` as a dataframe of "pandas", "polars" or "pyarrow"."""
        found = self.findings(least=least, classes=classes)
        names = Finding._fields
        return to_frame({name: [getattr(row, name) for row in found] for name in names}, backend)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write what was seen so far to a file, whole or not at all; the model is not in it."""
        write_state(path, self._state, self._means, self.confidence)

    @classmethod
    def load(cls, path: str | os.PathLike[str], calibrator: SnapshotCalibrator) -> Self:
        """Go on where a saved monitor of the same calibrator stopped.

        Parameters
        ----------
        path : str or path
            A file written by `save`; one that is damaged, or of another calibrator, is refused.
        calibrator : SnapshotCalibrator
            The one that was watched.
        """
        check_kind(calibrator, "calibrator", SnapshotCalibrator)
        reference = calibrator.known_reference()
        state, confidence = read_state(path, reference.means)
        monitor = cls(calibrator, confidence)
        monitor._state = state
        return monitor

    def __repr__(self) -> str:
        said = f"alarm at item {self.alarmed_at}" if self.alarm else "no alarm"
        return f"Monitor({counted(self.n_items, 'item')}, evidence {self.evidence:.3g}, {said})"

    def _repr_html_(self) -> str:
        rows = [
            (place, each.kind, each.where, each.label or "", each.direction, f"{each.evidence:.3g}")
            for place, each in enumerate(self.findings()[:SHOWN], start=1)
        ]
        heads = ["kind", "where", "class", "direction", "evidence"]
        return table(repr(self), heads, rows)

    def _since(self, row: int, direction: int) -> int:
        """Return the first item after the likely time of a change."""
        return self._state.wealth.dated(row, direction) + 1

    def _finding(self, row: int, direction: int, names: Sequence[str]) -> Finding:
        what = self._watched.row(row)
        where = ALL_ITEMS
        if what.cell is not None:
            where = self.calibrator.partition_.describe(what.cell, names)
        label = names[what.label] if isinstance(what.label, int) else what.label
        n_items = int(self._state.wealth.n_values[row])
        mean = self._state.sums[row] / n_items
        return Finding(
            kind=what.kind,
            where=where,
            cell=what.cell,
            label=label,
            direction=DIRECTIONS[direction],
            evidence=_exp(self._state.log_evidence[row, direction]),
            shift=float(mean - self._means.centre[row]),
            n_items=n_items,
            since=self._since(row, direction),
        )


def _class_names(classes: Sequence[str] | None, n_classes: int) -> Sequence[str]:
    """Return one name per class: those given, or their numbers."""
    if classes is None:
        return [str(number) for number in range(n_classes)]
    return check_names(classes, "classes", n_classes)


def _exp(log: float) -> float:
    return math.exp(min(float(log), LARGEST))
