"""Budgets: what each split of a number of labels into items and labels per item should give."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError

from hocal._base.errors import InputError
from hocal._base.frames import to_frame
from hocal._base.plurals import counted
from hocal._base.typing import Array, IntArray
from hocal._base.validation import (
    check_choice,
    check_fraction,
    check_integer,
    check_integers,
    check_random_state,
    check_repeats,
    check_whole,
    refuse_large,
)
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.cells.given_cells import PrecomputedPartition
from hocal.cells.partitions import Partition
from hocal.cells.statistics import CellStatistics, rank_classes
from hocal.guarantees.certificates import ENTROPIES, certify
from hocal.uncertainty.entropy import get_entropy
from hocal.uncertainty.mixtures import Mixtures

__all__ = ["BudgetPlan", "Split", "plan_budget"]

# Standard errors of a difference below which two splits are not told apart: of ten comparisons
# that are even, fewer than one in twenty shows more.
NOISE = 2.0


class Split(NamedTuple):
    """One way to spend a budget of labels, and what it is expected to give."""

    k: int  #: labels per item
    n_items: int  #: items
    error: float  #: item-averaged error of aleatoric uncertainty, mean over simulations
    standard_error: float  #: of that mean
    width: float  #: item-averaged width of the certified aleatoric interval; NaN if not asked for
    items: str = "new"  #: "new" items, or the "same" that have labels already


@dataclass(frozen=True, eq=False, repr=False)
class BudgetPlan:
    """Expected error of each split of a budget into items and labels per item.

    Attributes
    ----------
    rows : tuple of Split
        The splits, in the order they were asked for. A width shows as "-" where no confidence was
        asked for. A star marks the best, unless others are as good within the noise of the
        simulations.
    budget : int
        Labels to spend.
    method : str
        How the simulated calibrators were fitted.

    Examples
    --------
    >>> from hocal.decisions.budget import BudgetPlan, Split
    >>> splits = (Split(2, 50, 0.2, 0.01, float("nan")), Split(5, 20, 0.1, 0.02, 0.6))
    >>> BudgetPlan(splits, 100, "empirical")
    BudgetPlan(100 labels, empirical)
       k     items     error  std.error     width
       2        50    0.2000     0.0100         -
       5        20    0.1000     0.0200    0.6000 *
    """

    rows: tuple[Split, ...]
    budget: int
    method: str

    @property
    def best(self) -> Split:
        """The split with the smallest error; `contenders` may be as good."""
        return min(self.rows, key=lambda row: row.error)

    @property
    def contenders(self) -> tuple[Split, ...]:
        """The splits that the simulations do not tell from the best, which is among them.

        More simulations tell more of them apart.
        """
        best = self.best
        return tuple(
            row
            for row in self.rows
            if row.error - best.error <= NOISE * math.hypot(row.standard_error, best.standard_error)
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        lines = [f"BudgetPlan({counted(self.budget, 'label')}, {self.method})"]
        winner = self.best if len(self.contenders) == 1 else None
        lines.append(f"{'k':>4}{'items':>10}{'error':>10}{'std.error':>11}{'width':>10}")
        for row in self.rows:
            width = "-" if math.isnan(row.width) else f"{row.width:.4f}"
            error = f"{row.error:>10.4f}{row.standard_error:>11.4f}"
            line = f"{row.k:>4}{row.n_items:>10}{error}{width:>10}"
            lines.append(
                line + " more for the same" * (row.items == "same") + " *" * (row is winner)
            )
        return "\n".join(lines)

    def as_dict(self) -> dict[str, NDArray[Any]]:
        """Return the columns by name, one value per split."""
        columns = map(np.array, zip(*self.rows, strict=True))
        return dict(zip(Split._fields, columns, strict=True))

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return a dataframe, one row per split; `backend` is "pandas", "polars" or "pyarrow"."""
        return to_frame(self.as_dict(), backend)


def plan_budget(
    world: SnapshotCalibrator | Mixtures,
    budget: int,
    *,
    k: int | Sequence[int] = (2, 3, 5, 10),
    method: Literal["cells", "empirical"] = "cells",
    n_simulations: int = 20,
    confidence: float | None = None,
    entropy: str = "shannon",
    start: ArrayLike | None = None,
    random_state: Any = None,
) -> BudgetPlan:
    """Simulate calibrations for each split of a budget of labels into items and labels per item.

    Items are drawn from the world, label distributions from the mixtures of their cells, k labels
    from those, and a calibrator is fitted. Its error is sum_c frequency(c) |AU(c) - AU*(c)|, with
    AU* known. The answer is as good as the world: plan with a small pilot study, then again with
    the labels it brought.

    Parameters
    ----------
    world : SnapshotCalibrator or Mixtures
        What to draw from: the cells of a fitted calibrator; or mixtures, each a cell that is as
        frequent as among their items and for which the model predicts the mean.
    budget : int
        Labels to spend.
    k : int or sequence of int
        Labels per item to try, with ``budget // k`` items each. One label per item tells nothing of
        disagreement.
    method : {"cells", "empirical"}
        How the calibrators are fitted, whatever the world was.
    n_simulations : int, default=20
        Simulations of each split, at least two.
    confidence : float, optional
        Certify the first simulation of each split as well, and report the width; takes seconds
        per split.
    entropy : {"shannon", "brier"}
        Measure of uncertainty.
    start : array of shape (n_items,), optional
        Numbers of labels that the items of the study at hand have. The budget then adds to them:
        new items with k labels each, or k more labels for some of the same items. None plans a
        study from nothing.
    random_state : int, Generator or None
        Seed or source of randomness.

    Returns
    -------
    BudgetPlan
        A row for each k, and the best of them.

    Examples
    --------
    >>> import hocal
    >>> from hocal.decisions.budget import plan_budget
    >>> assumed = hocal.Mixtures.from_dirichlet([[2, 1], [1, 4]])
    >>> options = {"method": "empirical", "n_simulations": 5, "random_state": 0}
    >>> plan_budget(assumed, 2000, k=(2, 10), **options).best.k
    10
    """
    study = _SimulatedStudy.of(world, entropy)
    check_choice(method, "method", ("cells", "empirical"))
    budget = check_integer(budget, "budget", minimum=1)
    repeats = check_repeats(n_simulations, "n_simulations", minimum=2)
    level = None if confidence is None else check_fraction(confidence, "confidence")
    why = "It may not exceed the budget."
    sizes = check_integers(k, "k", minimum=1, maximum=budget, why=why)
    if not sizes:
        raise InputError("k", "must hold at least one number of labels per item", value="none")
    present = _check_start(start)
    study.check_memory(budget // min(sizes) + len(present))
    splits = [Split(n, budget // n, math.nan, math.nan, math.nan) for n in sizes]
    same = [split._replace(items="same") for split in splits if split.n_items <= len(present)]
    streams = check_random_state(random_state).spawn(len(splits) + len(same))
    rows = (
        study.try_split(split, present, method, repeats, level, stream)
        for split, stream in zip([*splits, *same], streams, strict=True)
    )
    return BudgetPlan(tuple(rows), budget, method)


def _check_start(start: ArrayLike | None) -> IntArray:
    """Return the numbers of labels of the items at hand that have any."""
    if start is None:
        return np.empty(0, dtype=np.int64)
    totals = check_whole(start, "start")
    if totals.ndim != 1 or not totals.any():
        rule = "must hold the number of labels of each item, some above 0"
        raise InputError("start", rule, value=f"shape {totals.shape}")
    return totals[totals > 0]


class _SimulatedStudy(NamedTuple):
    """A world to draw items from; every cell has its classes in order of falling prediction."""

    mixtures: Mixtures  #: one per cell
    frequency: Array  #: (n_cells,) share of the items
    prediction: Array  #: (n_cells, n_classes), falling; NaN for a cell without items
    partition: Partition
    entropy: str

    @classmethod
    def of(cls, world: Any, entropy: str) -> _SimulatedStudy:
        check_choice(entropy, "entropy", ENTROPIES)
        if isinstance(world, SnapshotCalibrator):
            if not hasattr(world, "cell_mixtures_"):
                raise NotFittedError(
                    "`world` must be fitted. Call fit(probabilities, counts) on it first."
                )
            known = world.statistics_
            mixtures = world.cell_mixtures_
            mixtures = mixtures if world.method != "empirical" else _rank(mixtures)
            return cls(
                mixtures,
                known.n_items / known.n_items.sum(),
                known.mean_prediction,
                world.partition_,
                entropy,
            )
        if not isinstance(world, Mixtures) or np.isnan(world.mean()).any() or not len(world):
            rule = "must be a SnapshotCalibrator or Mixtures without empty ones"
            raise InputError("world", rule, value=repr(world))
        mixtures = _rank(world.stored())
        n_items = np.bincount(world.index, minlength=world.n_mixtures)
        partition = PrecomputedPartition(len(mixtures)).fit(mixtures.mean()[n_items > 0])
        return cls(mixtures, n_items / len(world), mixtures.mean(), partition, entropy)

    def check_memory(self, n_items: int) -> None:
        """Refuse more items than can be simulated at once."""
        n_classes = self.mixtures.n_classes
        what = f"{n_items:,} simulated items of {n_classes:,} classes"
        n_numbers = 4 * (n_classes + 1) * n_items  # measured: shares, labels and their order
        refuse_large("budget", n_numbers, what, "Plan a smaller study, or more labels per item.")

    def try_split(
        self,
        split: Split,
        present: IntArray,
        method: Any,
        repeats: int,
        level: float | None,
        generator: np.random.Generator,
    ) -> Split:
        """Return what calibrating on these items gives, on average over several times."""
        truth = _aleatoric(self.mixtures, self.entropy)
        found = []
        for i in range(repeats):
            statistics = self.label(_totals(split, present, generator), generator)
            found.append(self._judge(statistics, truth, method, level if i == 0 else None))
        errors = np.array([error for error, _ in found])
        width = found[0][1]
        standard_error = float(errors.std(ddof=1)) / math.sqrt(repeats)
        return split._replace(
            error=float(errors.mean()), standard_error=standard_error, width=width
        )

    def _judge(
        self, statistics: CellStatistics, truth: Array, method: Any, level: float | None
    ) -> tuple[float, float]:
        """Return the error of a calibration, and the width of its certificate if that is wanted."""
        fitted = self._fit(statistics, method)
        used = self.frequency > 0
        gaps = np.abs(_aleatoric(fitted, self.entropy) - truth)
        width = math.nan
        if level is not None:
            width = self._certified_width(statistics, fitted, level)
        return float(self.frequency[used] @ gaps[used]), width

    def _fit(self, statistics: CellStatistics, method: Any) -> Mixtures:
        calibrator = SnapshotCalibrator(self.partition, method=method)
        with warnings.catch_warnings():
            # One label per item may be among the splits compared.
            warnings.simplefilter("ignore", UserWarning)
            return calibrator.fit_statistics(statistics).cell_mixtures_

    def _certified_width(self, statistics: CellStatistics, fitted: Mixtures, level: float) -> float:
        """Return the item-averaged width of the certified aleatoric interval."""
        certificate = certify(statistics, fitted, confidence=level, aligned=True)
        lower, upper = certificate.interval("aleatoric", self.entropy)
        n_items = statistics.n_items
        return float(np.nansum((upper - lower) * n_items)) / int(n_items.sum())

    def label(self, totals: IntArray, generator: np.random.Generator) -> CellStatistics:
        """Return the statistics of simulated items with so many labels."""
        cells = generator.choice(len(self.frequency), len(totals), p=self.frequency)
        counts = self.mixtures[cells].draw(totals, random_state=generator)
        return CellStatistics.from_items(
            self.prediction[cells], counts, cells, self.partition.layout_
        )


def _totals(split: Split, present: IntArray, generator: np.random.Generator) -> IntArray:
    """Return the numbers of labels of all items once a budget is spent."""
    if split.items == "new":
        return np.concatenate([present, np.full(split.n_items, split.k)])
    totals = present.copy()
    totals[generator.permutation(len(present))[: split.n_items]] += split.k
    return totals


def _aleatoric(mixtures: Mixtures, entropy: str) -> Array:
    """Return the aleatoric part alone: of thousands of cells the means take longer."""
    return mixtures.expect(partial(get_entropy(entropy).value, check_input=False))


def _rank(mixtures: Mixtures) -> Mixtures:
    """Put the classes of each mixture in order of falling mean, as a model that knows it would."""
    order = rank_classes(mixtures.stored().mean())
    owner = np.repeat(np.arange(mixtures.n_mixtures), np.diff(mixtures.offsets))
    points = np.take_along_axis(mixtures.points, order[owner], axis=1)
    return Mixtures(points, mixtures.weights, mixtures.offsets, mixtures.index)
