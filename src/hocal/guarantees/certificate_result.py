"""What is certified about each cell: estimates, limits, assumptions, and how they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hocal._base.frames import to_frame
from hocal._base.interval import Interval
from hocal._base.notebook import table, wrap_text
from hocal._base.plurals import counted
from hocal._base.typing import Array, IntArray, Mask
from hocal._base.validation import check_choice, check_names
from hocal.guarantees.effective_items import effective_items
from hocal.guarantees.samples import ENTROPIES, QUANTITIES, Target
from hocal.uncertainty.entropy import get_entropy

__all__ = ["Certificate", "CertificateRow"]

SHOWN_CELLS = 20  # in a notebook, the largest first
# Between an estimate and the end of its interval, and of a limit at the largest entropy.
ROUNDING = 1e-9
RELATIVE_ROUNDING = 1e-12


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
    Unless `anytime`, most limits are bets that look at items in a random order, whose seed is a
    fingerprint of the cell's own labels: docs/guarantees.md says what is proven about it and what
    was checked. Arrays are indexed by cell number, NaN without items.

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


def _target(quantity: str, entropy: str) -> Target:
    check_choice(quantity, "quantity", QUANTITIES)
    return Target(quantity, check_choice(entropy, "entropy", ENTROPIES))
