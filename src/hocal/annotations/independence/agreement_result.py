"""Agreement: how much people agree, as a number with limits, and who stands out."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from hocal._base.frames import to_frame
from hocal._base.interval import Interval
from hocal._base.plurals import counted
from hocal._base.shares import percent
from hocal._base.typing import Array
from hocal._base.validation import label_totals
from hocal.annotations.independence import coefficients
from hocal.annotations.independence.agreement_limits import (
    nominal_blocks,
    ordinal_blocks,
    ratio_limits,
)
from hocal.annotations.independence.annotator_table import AnnotatorEffects
from hocal.annotations.independence.left_out_annotators import Remainder
from hocal.annotations.independence.plain_values import plain
from hocal.guarantees.means import betting_interval
from hocal.uncertainty.moments import pair_disagreement

__all__ = ["Agreement", "measure_agreement"]


@dataclass(frozen=True, eq=False, repr=False)
class Agreement:
    """How much people agree about items, and who stands out.

    Attributes
    ----------
    pairs : Interval
        Share of pairs of labels of one item that are the same, on average over items.
    kappa : Interval
        Fleiss' kappa: 0 where labels agree no more than labels of different items, 1 where they
        always do. All items weigh alike. NaN where all labels are of one class.
    alpha : Interval
        Krippendorff's alpha, the same with all labels weighing alike, and a correction for small
        tables; of squared distances in rank if `ordinal`.
    ordinal : bool
        Whether classes are in order and alpha takes their distance into account.
    n_items, n_labels : int
        Items with two labels or more, which tell about agreement, and their labels.
    n_single : int
        Items with one label or none, which do not.
    confidence : float
        Of each interval on its own.
    annotators : AnnotatorEffects or None
        One value per annotator, the worst dissent first; None where they are not known.
    without_dissenters : Remainder or None
        What disagreement would be without those who dissent more than expected.

    Examples
    --------
    >>> import hocal
    >>> hocal.agreement([[3, 0], [2, 1], [0, 3], [0, 3]])
    Agreement(pairs 0.83, kappa 0.66, alpha 0.69: 4 items)
    """

    pairs: Interval
    kappa: Interval
    alpha: Interval
    ordinal: bool
    n_items: int
    n_labels: int
    n_single: int
    confidence: float
    annotators: AnnotatorEffects | None = None
    without_dissenters: Remainder | None = None

    def __repr__(self) -> str:
        return (
            f"Agreement(pairs {self.pairs.estimate:.2f}, kappa {self.kappa.estimate:.2f}, "
            f"alpha {self.alpha.estimate:.2f}: {counted(self.n_items, 'item')})"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return everything in the types of JSON; None stands for NaN."""
        return {field.name: plain(getattr(self, field.name)) for field in fields(self)}

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return a dataframe with one row per measure, of "pandas", "polars" or "pyarrow"."""
        rows = [self.pairs, self.kappa, self.alpha]
        columns = {name: [getattr(row, name) for row in rows] for name in Interval._fields}
        return to_frame({"measure": ["pairs", "kappa", "alpha"], **columns}, backend)

    def table(self) -> str:
        """Return a text for people: three measures with their limits."""
        items = counted(self.n_items, "item")
        heads = f"agreement of {items}, {counted(self.n_labels, 'label')}"
        limits = f"{percent(self.confidence)} limits"
        kind = "ordinal" if self.ordinal else "nominal"
        rows = (
            ("pairs of labels that agree", self.pairs),
            ("Fleiss' kappa", self.kappa),
            (f"Krippendorff's alpha, {kind}", self.alpha),
        )
        lines = [f"{heads:<40}{'estimate':>10}{limits:>20}"]
        for title, value in rows:
            ends = f"{value.lower:.3f} to {value.upper:.3f}"
            lines.append(f"{title:<40}{value.estimate:>10.3f}{ends:>20}")
        return "\n".join(lines)


def measure_agreement(counts: Any, *, ordinal: bool, confidence: float) -> Agreement:
    """Measure the agreement of checked counts; items with one label are left out of pairs."""
    totals = label_totals(counts)
    kept = np.flatnonzero(totals > 1)
    n_single = len(totals) - len(kept)
    usable = counts[kept]
    m = totals[kept].astype(np.float64)
    if not len(kept):
        return _nothing(n_single, ordinal, confidence)
    if ordinal and not isinstance(usable, np.ndarray):
        usable = usable.toarray()
    delta = 1 - confidence
    within = pair_disagreement(usable)
    pairs = betting_interval(1 - within, delta=delta)
    shares = _divide_rows(usable, m)
    of_kappa = ratio_limits(nominal_blocks(shares, np.ones(len(m)), within), delta)
    if ordinal:
        of_alpha = ratio_limits(ordinal_blocks(usable.astype(np.float64), m), delta)
    elif m.min() == m.max():
        of_alpha = of_kappa  # all items weigh alike in either
    else:
        of_alpha = ratio_limits(nominal_blocks(usable, m, within), delta)
    return Agreement(
        pairs=pairs,
        kappa=_coefficient(coefficients.kappa(usable, m), of_kappa),
        alpha=_coefficient(coefficients.alpha(usable, m, ordinal=ordinal), of_alpha),
        ordinal=ordinal,
        n_items=len(m),
        n_labels=int(m.sum()),
        n_single=n_single,
        confidence=confidence,
    )


def _divide_rows(counts: Any, totals: Array) -> Any:
    """Return counts as shares of each row, dense or sparse as they are."""
    if isinstance(counts, np.ndarray):
        return counts / totals[:, None]
    return counts.multiply(1 / totals[:, None])


def _coefficient(estimate: float, ratio: tuple[float, float]) -> Interval:
    """Return a coefficient with its limits, which hold the estimate as well."""
    lower = 1 - ratio[1]
    upper = 1 - ratio[0]
    return Interval(estimate, float(np.fmin(lower, estimate)), float(np.fmax(upper, estimate)))


def _nothing(n_single: int, ordinal: bool, confidence: float) -> Agreement:
    """Return that nothing is known: no item has two labels."""
    pairs = Interval(np.nan, 0.0, 1.0)
    coefficient = Interval(np.nan, -1.0, 1.0)
    return Agreement(pairs, coefficient, coefficient, ordinal, 0, 0, n_single, confidence)
