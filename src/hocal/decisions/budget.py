"""Budgets: what each split of a number of labels into items and labels per item should give."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from hocal._base.errors import InputError
from hocal._base.frames import to_frame
from hocal._base.typing import Array
from hocal._base.validation import check_choice, check_fraction, check_integer, check_random_state
from hocal.calibration.calibrator import SnapshotCalibrator
from hocal.cells.partitions import Partition, PrecomputedPartition
from hocal.cells.statistics import CellStatistics, rank_classes
from hocal.guarantees.certificates import ENTROPIES, certify
from hocal.uncertainty.decomposition import decompose
from hocal.uncertainty.mixtures import Mixtures

__all__ = ["BudgetPlan", "Split", "plan_budget"]


class Split(NamedTuple):
    """One way to spend a budget of labels, and what it is expected to give."""

    k: int  #: labels per item
    n_items: int  #: items
    error: float  #: item-averaged error of aleatoric uncertainty, mean over simulations
    standard_error: float  #: of that mean
    width: float  #: item-averaged width of the certified aleatoric interval; NaN if not asked for


@dataclass(frozen=True, eq=False, repr=False)
class BudgetPlan:
    """Expected error of each split of a budget into items and labels per item.

    Attributes
    ----------
    rows : tuple of Split
        The splits, in the order they were asked for. A width shows as "-" where no confidence was
        asked for.
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
        """The split with the smallest error."""
        return min(self.rows, key=lambda row: row.error)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        lines = [f"BudgetPlan({self.budget} labels, {self.method})"]
        lines.append(f"{'k':>4}{'items':>10}{'error':>10}{'std.error':>11}{'width':>10}")
        for row in self.rows:
            width = "-" if math.isnan(row.width) else f"{row.width:.4f}"
            error = f"{row.error:>10.4f}{row.standard_error:>11.4f}"
            line = f"{row.k:>4}{row.n_items:>10}{error}{width:>10}"
            lines.append(line + " *" * (row is self.best))
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
    repeats = check_integer(n_simulations, "n_simulations", minimum=2)
    level = None if confidence is None else check_fraction(confidence, "confidence")
    why = "It may not exceed the budget."
    sizes = [
        check_integer(size, "k", minimum=1, maximum=budget, why=why) for size in np.atleast_1d(k)
    ]
    if not sizes:
        raise InputError("k", "must hold at least one number of labels per item", value="none")
    streams = check_random_state(random_state).spawn(len(sizes))
    rows = (
        study.try_split(budget // n, n, method, repeats, level, stream)
        for n, stream in zip(sizes, streams, strict=True)
    )
    return BudgetPlan(tuple(rows), budget, method)


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

    def try_split(
        self,
        n_items: int,
        k: int,
        method: Any,
        repeats: int,
        level: float | None,
        generator: np.random.Generator,
    ) -> Split:
        """Return what calibrating on items with k labels gives, on average over several times."""
        errors = np.empty(repeats)
        width = math.nan
        used = self.frequency > 0
        truth = decompose(self.mixtures, self.entropy).aleatoric
        for i in range(repeats):
            statistics = self.label(n_items, k, generator)
            fitted = self._fit(statistics, method)
            gaps = np.abs(decompose(fitted, self.entropy).aleatoric - truth)
            errors[i] = self.frequency[used] @ gaps[used]
            if i == 0 and level is not None:
                width = self._certified_width(statistics, fitted, level)
        spread = float(errors.std(ddof=1))
        return Split(k, n_items, float(errors.mean()), spread / math.sqrt(repeats), width)

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

    def label(self, n_items: int, k: int, generator: np.random.Generator) -> CellStatistics:
        """Return the statistics of simulated items with k labels each."""
        cells = generator.choice(len(self.frequency), n_items, p=self.frequency)
        counts = self.mixtures[cells].draw(k, random_state=generator)
        return CellStatistics.from_items(
            self.prediction[cells], counts, cells, self.partition.layout_
        )


def _rank(mixtures: Mixtures) -> Mixtures:
    """Put the classes of each mixture in order of falling mean, as a model that knows it would."""
    order = rank_classes(mixtures.stored().mean())
    owner = np.repeat(np.arange(mixtures.n_mixtures), np.diff(mixtures.offsets))
    points = np.take_along_axis(mixtures.points, order[owner], axis=1)
    return Mixtures(points, mixtures.weights, mixtures.offsets, mixtures.index)
