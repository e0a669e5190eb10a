"""Certificates: what is guaranteed about the uncertainty of each cell, how surely, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hocal._base.errors import InputError
from hocal._base.frames import to_frame
from hocal._base.interval import Interval
from hocal._base.notebook import table, wrap_text
from hocal._base.plurals import counted
from hocal._base.typing import Array, Index, IntArray, Mask
from hocal._base.validation import (
    check_choice,
    check_flag,
    check_fraction,
    check_kind,
    check_names,
    check_number,
)
from hocal.cells.statistics import CellStatistics, Histogram
from hocal.guarantees.cell_error import cell_epsilon, set_coverage, smallest_totals
from hocal.guarantees.cell_uncertainty import (
    ENTROPIES,
    QUANTITIES,
    TARGETS,
    Advice,
    Sample,
    Target,
    advise,
    all_intervals,
    estimator_sizes,
    rows_by_cell,
)
from hocal.guarantees.effective_items import effective_items, fewer_items
from hocal.guarantees.lasting_limits import lasting_limits
from hocal.guarantees.promises import certificate_assumptions
from hocal.uncertainty.decomposition import decompose
from hocal.uncertainty.entropy import get_entropy
from hocal.uncertainty.mixtures import Mixtures

__all__ = ["ENTROPIES", "QUANTITIES", "Certificate", "CertificateRow", "Target", "certify"]

BLOCK_ITEMS = 400  # fewest items whose cells advise each other: enough to choose a statistic
# Blocks of cells and folds of a block: each fold of each block costs two linear programs.
MAX_BLOCKS = 12
N_FOLDS = 4
MAX_NUMBERS = 1 << 23  # in the count vectors of cells that are certified at once: 64 MB
SHOWN_CELLS = 20  # in a notebook, the largest first
# Between an estimate and the end of its interval, and of a limit at the largest entropy.
ROUNDING = 1e-9
RELATIVE_ROUNDING = 1e-12

BOUNDS = {
    "aleatoric shannon": "separable linear program with coefficients from other cells, betting",
    "aleatoric brier": "unbiased statistic, betting",
    "predictive shannon": "loss of a guess from other cells (upper) and classwise limits, betting",
    "predictive brier": "pairs of items, betting",
    "epistemic shannon": (
        "loss less the lower aleatoric statistic (upper); Brier part or difference (lower), betting"
    ),
    "epistemic brier": "pairs of items, betting",
}
LASTING_BOUNDS = {
    "aleatoric shannon": "linear programs, fixed stakes",
    "aleatoric brier": "disagreement of an item's labels, fixed stakes",
    "predictive shannon": "limits of each class, fixed stakes",
    "predictive brier": "limits of each class, fixed stakes",
    "epistemic shannon": "predictive less aleatoric limits",
    "epistemic brier": "predictive less aleatoric limits",
}


class CertificateRow(NamedTuple):
    """What a certificate says about one cell."""

    cell: int  #: number of the cell
    n_items: int  #: calibration items
    k: int  #: fewest labels of an item
    source: str  #: whose items the mixture was estimated from
    predictive: Interval  #: the mixture's uncertainty, and what the labels prove about the cell's
    aleatoric: Interval
    epistemic: Interval
    epsilon: float  #: upper bound on the kth-order calibration error
    epsilon_k: int  #: the k of `epsilon`
    set_coverage: float  #: guaranteed coverage of expanded prediction sets


@dataclass(frozen=True, eq=False, repr=False)
class Certificate:
    """What the labels of the calibration items prove about each cell.

    Each interval holds with probability `confidence` over the calibration sample, whatever the
    mixture of its cell is. If `simultaneous`, the intervals of one quantity and entropy hold for
    all cells at once; two quantities are two statements, each with its own chance of failure.
    Arrays are indexed by cell number, NaN without items.

    Attributes
    ----------
    confidence : float
        Probability with which a statement holds.
    simultaneous : bool
        Whether it holds for all cells at once (Bonferroni) or for each on its own; for one quantity
        at a time in both cases.
    n_items : ndarray of shape (n_cells,)
        Calibration items.
    k : ndarray of shape (n_cells,)
        Fewest labels of an item; 0 for a cell without items.
    epsilon : ndarray of shape (n_cells,)
        Upper bound on the kth-order calibration error, W1 in l1 units at most 2, with `epsilon_k`
        labels.
    epsilon_k : ndarray of shape (n_cells,)
        The k of `epsilon`, at most `k` and small enough to list all snapshots.
    epsilon_bound : tuple of str
        The inequality behind each epsilon.
    set_coverage : ndarray of shape (n_cells,)
        Guaranteed coverage 1 - 2 sqrt(e) of prediction sets of mass 1 - sqrt(e) expanded by
        sqrt(e), where e is the higher-order error that epsilon implies; 0 says nothing.
    source : ndarray of str of shape (n_cells,)
        Whose items the mixture was estimated from: "cell", "neighbours" or "pool"; "none" where
        nobody said.
    assumptions : tuple of str
        What must be true of the data.
    bounds : mapping
        The construction behind each interval.
    n_classes : int
        Number of label classes.
    limits : mapping
        Lower and upper limits of each target, (quantity, entropy), arrays of shape (n_cells, 2).
    estimates : mapping
        Point estimates of each target from the mixtures, arrays of shape (n_cells,).
    names : tuple of str
        What each cell holds, where that was said; else empty.
    design_effect : float
        How many items were taken to be worth one independent item.
    anytime : bool
        Whether it holds at all numbers of items at once, however often one looks.

    Examples
    --------
    >>> import numpy as np
    >>> import hocal
    >>> from hocal.guarantees.certificates import certify
    >>> from hocal.cells.statistics import CellStatistics
    >>> p = np.tile([[0.6, 0.4]], (500, 1))
    >>> partition = hocal.UniformPartition(n_bins=1).fit(p)
    >>> counts = [[2, 0]] * 150 + [[1, 1]] * 250 + [[0, 2]] * 100  # half of the pairs disagree
    >>> statistics = CellStatistics.from_items(p, counts, partition.assign(p), partition.layout_)
    >>> certificate = certify(statistics, hocal.Mixtures.from_points([[0.6, 0.4]]))
    >>> lower, upper = certificate.interval("aleatoric", "brier")
    >>> bool(0.4 < lower[0] < 0.48 < upper[0])
    True
    """

    confidence: float
    simultaneous: bool
    n_items: IntArray
    k: IntArray
    epsilon: Array
    epsilon_k: IntArray
    epsilon_bound: tuple[str, ...]
    set_coverage: Array
    source: NDArray[np.str_]
    assumptions: tuple[str, ...]
    bounds: Mapping[str, str]
    n_classes: int
    limits: Mapping[Target, Array]
    estimates: Mapping[Target, Array]
    names: tuple[str, ...] = ()
    design_effect: float = 1.0
    anytime: bool = False

    def __len__(self) -> int:
        return len(self.n_items)

    def __repr__(self) -> str:
        lower, upper = self.interval("aleatoric")
        has_items = self.n_items > 0
        width = f"{np.mean((upper - lower)[has_items]):.3g} nats" if has_items.any() else "none"
        return wrap_text(
            f"Certificate({self.confidence:g} for {self._scope}, "
            f"{int(has_items.sum())} of {counted(len(self), 'cell')}, "
            f"{counted(self.n_items.sum(), 'item')}, mean width of aleatoric {width})"
        )

    def _repr_html_(self) -> str:
        ranked = np.argsort(-self.n_items, kind="stable")[:SHOWN_CELLS]
        shown = ranked[self.n_items[ranked] > 0]
        entries = self._entries("shannon")
        rows = [
            (cell, self.n_items[cell], self.k[cell], *(entries[name][cell] for name in QUANTITIES))
            for cell in shown
        ]
        caption = (
            f"Certificate with confidence {self.confidence:g} for {self._scope}: "
            f"{len(rows)} of {counted((self.n_items > 0).sum(), 'cell')}, in nats"
        )
        return table(caption, ["items", "k", *QUANTITIES], rows, note=" ".join(self.assumptions))

    @property
    def effective_items(self) -> IntArray:
        """How many independent items those of each cell were taken to be worth."""
        return effective_items(self.n_items, self.design_effect)

    @property
    def _scope(self) -> str:
        return "all cells at once" if self.simultaneous else "each cell"

    @property
    def _promise(self) -> str:
        """What the confidence is about, and of how many items."""
        scope = "for all cells at once" if self.simultaneous else "for each cell on its own"
        promise = f"Confidence {self.confidence:g} {scope}, one quantity at a time."
        if self.design_effect == 1:
            return promise
        worth = int(self.effective_items.sum())
        return f"{promise} {self.n_items.sum()} items count as {worth} independent ones."

    def interval(self, quantity: str, entropy: str = "shannon") -> tuple[Array, Array]:
        """Return the lower and upper limits of each cell; NaN for a cell without items."""
        both = self.limits[_target(quantity, entropy)]
        return both[:, 0], both[:, 1]

    def estimate(self, quantity: str, entropy: str = "shannon") -> Array:
        """Return the point estimate of each cell, from its mixture."""
        return self.estimates[_target(quantity, entropy)]

    def inside(self, quantity: str, entropy: str = "shannon") -> Mask:
        """Tell where the point estimate lies inside its own interval; False without items.

        An estimate outside is improbable given the cell's own labels: it leans too much on other
        cells.
        """
        lower, upper = self.interval(quantity, entropy)
        estimate = self.estimate(quantity, entropy)
        return (lower - ROUNDING <= estimate) & (estimate <= upper + ROUNDING)

    def vacuous(self, quantity: str, entropy: str = "shannon") -> Mask:
        """Tell where the interval is the whole possible range, or where there is none."""
        lower, upper = self.interval(quantity, entropy)
        largest = get_entropy(entropy).maximum(self.n_classes)
        return ~((lower > 0) | (upper < largest * (1 - RELATIVE_ROUNDING)))

    def as_dict(self, entropy: str = "shannon") -> dict[str, Any]:
        """Return all columns by name, one value per cell."""
        columns: dict[str, Any] = {
            "cell": np.arange(len(self)),
            "n_items": self.n_items,
            "k": self.k,
            "source": self.source,
            "epsilon": self.epsilon,
            "epsilon_k": self.epsilon_k,
        }
        for quantity in QUANTITIES:
            lower, upper = self.interval(quantity, entropy)
            columns[quantity] = self.estimate(quantity, entropy)
            columns[f"{quantity}_lower"] = lower
            columns[f"{quantity}_upper"] = upper
            columns[f"{quantity}_inside"] = self.inside(quantity, entropy)
            columns[f"{quantity}_vacuous"] = self.vacuous(quantity, entropy)
        columns["set_coverage"] = self.set_coverage
        return columns

    def rows(self, entropy: str = "shannon") -> list[CertificateRow]:
        """Return one row per cell with items, in the order of their numbers."""
        columns = {name: column.tolist() for name, column in self.as_dict(entropy).items()}
        plain = [name for name in CertificateRow._fields if name not in QUANTITIES]
        rows = []
        for cell in np.flatnonzero(self.n_items):
            values = {name: columns[name][cell] for name in plain}
            for quantity in QUANTITIES:
                names = (quantity, f"{quantity}_lower", f"{quantity}_upper")
                values[quantity] = Interval(*(columns[name][cell] for name in names))
            rows.append(CertificateRow(**values))
        return rows

    def to_frame(self, entropy: str = "shannon", *, backend: Any = "pandas") -> Any:
        """Return a dataframe, one row per cell; `backend` is "pandas", "polars" or "pyarrow"."""
        return to_frame(self.as_dict(entropy), backend)

    def table(self, entropy: str = "shannon", *, names: Sequence[str] | None = None) -> str:
        """Return a text table of estimates and intervals, one line per cell with items.

        "!" marks an estimate outside its interval, "-" an interval that says nothing. With a name
        for each cell, `names` or the certificate's own, each line ends with that of its cell.
        """
        if names is None:
            names = self.names or None
        else:
            names = check_names(names, "names", len(self.n_items))
        entries = self._entries(entropy)
        heads = "".join(f"{quantity:>22}" for quantity in QUANTITIES)
        heads = f"{'cell':>5}{'items':>7}{'k':>4}{heads}{'epsilon':>13}"
        lines = [heads if names is None else f"{heads}  name"]
        for cell in np.flatnonzero(self.n_items).tolist():
            parts = "".join(f"{entries[quantity][cell]:>22}" for quantity in QUANTITIES)
            error = f"{self.epsilon[cell]:.2f} (k={self.epsilon_k[cell]})"
            line = f"{cell:>5}{self.n_items[cell]:>7}{self.k[cell]:>4}{parts}{error:>13}"
            lines.append(line if names is None else f"{line}  {names[cell]}")
        lines.append(f"{self._promise} {' '.join(self.assumptions)}")
        return "\n".join(lines)

    def _entries(self, entropy: str) -> dict[str, list[str]]:
        """Return each quantity of each cell as the table shows it."""
        return {
            quantity: [
                _entry(*numbers)
                for numbers in zip(
                    self.estimate(quantity, entropy),
                    *self.interval(quantity, entropy),
                    self.inside(quantity, entropy),
                    self.vacuous(quantity, entropy),
                    strict=True,
                )
            ]
            for quantity in QUANTITIES
        }


def _entry(estimate: float, lower: float, upper: float, inside: bool, vacuous: bool) -> str:
    if vacuous:
        return f"{estimate:.3f} [     -     ]"
    mark = "" if inside else "!"
    return f"{mark}{estimate:.3f} [{lower + 0.0:.3f}, {upper + 0.0:.3f}]"  # no negative zero


def certify(
    statistics: CellStatistics,
    mixtures: Mixtures,
    *,
    confidence: float = 0.95,
    simultaneous: bool = False,
    aligned: bool = False,
    k: int | None = None,
    snapshot_size: int | None = None,
    source: ArrayLike | None = None,
    design_effect: float = 1.0,
    anytime: bool = False,
) -> Certificate:
    """Certify the uncertainty of each cell from its calibration labels.

    The intervals use the labels only and hold for the true mixture of the cell; `mixtures` gives
    the point estimates and is compared with the labels for epsilon, by the triangle inequality
    W1(prediction, truth) <= W1(prediction, labels) + W1(labels, truth) between k-snapshots.

    Parameters
    ----------
    statistics : CellStatistics
        The calibration items.
    mixtures : Mixtures
        One mixture per cell.
    confidence : float, default=0.95
        Probability with which each statement is to hold.
    simultaneous : bool, default=False
        Whether it is to hold for all cells at once. The intervals of one quantity and entropy then
        hold together; those of another are another statement.
    aligned : bool, default=False
        Whether the mixtures have the classes in order of falling prediction. Predictive and
        epistemic uncertainty then are those of the cell's aligned label distributions.
    k : int, optional
        Labels in the snapshots of epsilon; as many as all items of a cell have and can be listed by
        default.
    snapshot_size : int, optional
        The mixtures predict snapshots of this many labels, as the "empirical" calibrator's do, and
        epsilon compares them as they are; by default they predict label distributions.
    source : array of str of shape (n_cells,), optional
        Whose items each mixture was estimated from.
    design_effect : float, default=1.0
        How many items are worth one independent item where items share annotators, as
        ``hocal.check_annotations(...).sharing.design_effect`` estimates it. Intervals and epsilon
        then are those of so many fewer items: an allowance, not a proof.
    anytime : bool, default=False
        Whether the intervals are to hold at all numbers of items at once, so that one may look
        after every new item and stop when one likes. They are wider. Epsilon is not known to hold
        like that and becomes NaN, as does the set coverage.

    Returns
    -------
    Certificate
        Intervals, epsilon, assumptions.

    Examples
    --------
    >>> import hocal
    >>> from hocal.guarantees.certificates import certify
    >>> from hocal.cells.statistics import CellStatistics
    >>> p, counts = [[0.9, 0.1]] * 100, [[3, 0]] * 80 + [[2, 1]] * 20
    >>> partition = hocal.UniformPartition(n_bins=2).fit(p)
    >>> statistics = CellStatistics.from_items(p, counts, partition.assign(p), partition.layout_)
    >>> mixtures = hocal.Mixtures.from_snapshots(counts, partition.assign(p), n_cells=2).stored()
    >>> certify(statistics, mixtures)
    Certificate(0.95 for each cell, 1 of 2 cells, 100 items, mean width of aleatoric 0.312 nats)
    """
    delta = 1 - check_fraction(confidence, "confidence")
    check_flag(simultaneous, "simultaneous")
    check_flag(aligned, "aligned")
    check_flag(anytime, "anytime")
    _check_mixtures(mixtures, statistics)
    factor = check_number(design_effect, "design_effect", minimum=1)
    has_items = statistics.n_items > 0
    if simultaneous:  # Bonferroni
        delta /= max(int(has_items.sum()), 1)
    worth = _as_many_as_count(statistics, factor)
    every = statistics.aligned if aligned else statistics.observed
    histogram = worth.aligned if aligned else worth.observed
    if source is None:
        source = np.where(has_items, "cell", "none")
    error = cell_epsilon(histogram, mixtures, delta=delta, k=k, snapshot_size=snapshot_size)
    coverage = set_coverage(mixtures, error, projected=snapshot_size is None)
    if anytime:
        limits = lasting_limits(histogram, statistics.n_cells, delta)
        error = error._replace(values=np.full_like(error.values, np.nan))
        coverage = np.full_like(coverage, np.nan)
    else:
        limits = _all_limits(worth, histogram, aligned, delta)
    singles = bool((every.totals == 1).any() and (every.totals > 1).any())
    return Certificate(
        confidence=float(confidence),
        simultaneous=bool(simultaneous),
        n_items=statistics.n_items,
        k=smallest_totals(every, statistics.n_cells),
        epsilon=error.values,
        epsilon_k=error.k,
        epsilon_bound=error.bounds,
        set_coverage=coverage,
        source=np.asarray(source),
        assumptions=certificate_assumptions(singles=singles, anytime=anytime, design_effect=factor),
        bounds=dict(LASTING_BOUNDS if anytime else BOUNDS),
        n_classes=statistics.n_classes,
        limits=limits,
        estimates=_all_estimates(mixtures),
        design_effect=factor,
        anytime=bool(anytime),
    )


def _check_mixtures(mixtures: Mixtures, statistics: CellStatistics) -> None:
    check_kind(statistics, "statistics", CellStatistics)
    check_kind(mixtures, "mixtures", Mixtures)
    if len(mixtures) != statistics.n_cells or mixtures.n_classes != statistics.n_classes:
        wanted = f"one mixture of {statistics.n_classes} classes for each"
        raise InputError(
            "mixtures",
            f"must hold {wanted} of {statistics.n_cells} cells",
            value=f"{len(mixtures)} of {mixtures.n_classes} classes",
        )


def _as_many_as_count(statistics: CellStatistics, design_effect: float) -> CellStatistics:
    """Return as many items as these are worth."""
    return replace(
        statistics,
        observed=fewer_items(statistics.observed, design_effect),
        aligned=fewer_items(statistics.aligned, design_effect),
    )


def _target(quantity: str, entropy: str) -> Target:
    check_choice(quantity, "quantity", QUANTITIES)
    return Target(quantity, check_choice(entropy, "entropy", ENTROPIES))


def _all_estimates(mixtures: Mixtures) -> dict[Target, Array]:
    parts = {entropy: decompose(mixtures, entropy).as_dict() for entropy in ENTROPIES}
    return {
        Target(quantity, entropy): parts[entropy][quantity]
        for entropy in ENTROPIES
        for quantity in QUANTITIES
    }


def _all_limits(
    statistics: CellStatistics, histogram: Histogram, aligned: bool, delta: float
) -> dict[Target, Array]:
    """Return the limits of every cell, each advised by the other folds of its block."""
    fold = assign_folds(statistics)
    advice = advise_folds(statistics, histogram, fold, aligned)
    fallback = advise_folds(statistics, histogram, fold, aligned, alone=True)
    result = {target: np.full((statistics.n_cells, 2), np.nan) for target in TARGETS}
    rows = rows_by_cell(histogram, statistics.n_cells)
    for cells in _blocks(rows, statistics.n_classes):
        found = all_intervals(
            [Sample.of_rows(histogram, rows[cell]) for cell in cells],
            [advice[own] for own in fold[cells]],
            delta,
            fallback=[fallback[own] for own in fold[cells]],
        )
        for target, limits in found.items():
            result[target][cells] = limits
    return result


def _blocks(rows: list[Index], n_classes: int) -> list[Index]:
    """Cut the cells that have rows into blocks whose count vectors fit into memory together."""
    sizes = np.array([len(each) for each in rows])
    filled = np.flatnonzero(sizes)
    block = np.cumsum(sizes[filled]) * n_classes // MAX_NUMBERS
    return np.split(filled, np.flatnonzero(np.diff(block)) + 1) if len(filled) else []


def assign_folds(statistics: CellStatistics) -> IntArray:
    """Cut the cells into blocks of similar confidence, and each block into folds.

    The other folds of a block advise a fold. A level with enough items is a block, and so are
    smaller levels in a row together. No label is looked at. Block b has the folds N_FOLDS * b,
    N_FOLDS * b + 1, ...; -1 stands for a cell without items.
    """
    n_items = statistics.n_items
    fold = np.full(statistics.n_cells, -1)
    cells = np.flatnonzero(n_items)
    level = _levels(statistics)[cells]
    wanted = max(BLOCK_ITEMS, n_items.sum() / MAX_BLOCKS)
    ranked = cells[np.lexsort((-n_items[cells], level))]
    edges = [int(edge) for edge in np.flatnonzero(np.diff(np.sort(level), append=np.inf)) + 1]
    start = 0
    block = 0
    for end, following in zip(edges, [*edges[1:], None], strict=True):
        inside = n_items[ranked[start:end]]
        ahead = n_items[ranked[end:following]]
        if following is None or _enough(inside, wanted) or _enough(ahead, wanted):
            # The larger cells of a level first, in turn, so that all folds know about equally much.
            fold[ranked[start:end]] = N_FOLDS * block + np.arange(end - start) % N_FOLDS
            start = end
            block = block + 1
    return fold


def _enough(n_items: IntArray, wanted: float) -> bool:
    return len(n_items) > 1 and float(n_items.sum()) >= wanted


def _levels(statistics: CellStatistics) -> IntArray:
    """Return the level of each cell; without levels, its rank by mean top probability."""
    level = statistics.layout.level
    if len(np.unique(level)) > 1:
        return np.asarray(level, dtype=np.int64)
    order = np.argsort(statistics.mean_prediction[:, 0], kind="stable")
    return np.argsort(order, kind="stable")


def advise_folds(
    statistics: CellStatistics,
    histogram: Histogram,
    fold: IntArray,
    aligned: bool,
    *,
    alone: bool = False,
) -> dict[int, Advice]:
    """Return the advice for each fold from the others of its block, or from none."""
    sizes = estimator_sizes(histogram.totals)
    n_items = statistics.n_items
    place = fold[histogram.cells]
    advice = {}
    for own in np.unique(fold[fold >= 0]):
        others = (place // N_FOLDS == own // N_FOLDS) & (place != own)
        if not others.any():  # alone in its block: all other cells
            others = place != own
        members = n_items[fold == own]
        advised = others.any() and not alone
        advice[int(own)] = advise(
            Sample.of(histogram, others) if advised else None,
            sizes,
            n_classes=statistics.n_classes,
            n_items=float(members @ members / members.sum()),
            same_order=aligned,
        )
    return advice
