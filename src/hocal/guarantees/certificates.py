"""Certificates: what is guaranteed about the uncertainty of each cell, how surely, and why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hocal._base.errors import InputError
from hocal._base.typing import Array
from hocal._base.validation import check_flag, check_fraction, check_kind, check_number
from hocal.cells.statistics import CellStatistics, Histogram
from hocal.guarantees.cell_error import (
    CellEpsilon,
    cell_epsilon,
    set_coverage,
    smallest_totals,
)
from hocal.guarantees.cell_folds import all_limits
from hocal.guarantees.certificate_result import Certificate, CertificateRow
from hocal.guarantees.effective_items import fewer_items
from hocal.guarantees.lasting_limits import lasting_limits
from hocal.guarantees.promises import certificate_assumptions
from hocal.guarantees.samples import ENTROPIES, QUANTITIES, Target
from hocal.uncertainty.decomposition import decompose
from hocal.uncertainty.mixtures import Mixtures

__all__ = ["ENTROPIES", "QUANTITIES", "Certificate", "CertificateRow", "Target", "certify"]

_ONE_LABEL = "one label per item: at most the predictive limit; "
_ALEATORIC = {
    "aleatoric shannon": (
        f"{_ONE_LABEL}two: how often they agree, binomial; more: linear programs, with references "
        "where other cells advise, bets with a deadline"
    ),
    "aleatoric brier": (
        f"{_ONE_LABEL}else disagreement of an item's labels; two per item: binomial, "
        "more: bets with a deadline"
    ),
}
BOUNDS = _ALEATORIC | {
    "predictive shannon": "limits of each class",
    "predictive brier": "pairs of items, fixed stakes; too many items: limits of each class",
    "epistemic shannon": "predictive less aleatoric limits, or the Brier part (lower)",
    "epistemic brier": "pairs of items, fixed stakes; too many items: predictive less aleatoric",
}
# Where classes mean the same in all cells: others, if they have items enough, advise a guess of the
# mean label distribution.
ALIGNED_BOUNDS = _ALEATORIC | {
    "predictive shannon": (
        "bets on the least favourable mean (lower) and on the loss of a guess that learns (upper); "
        "too few or too many items: loss of a guess, and a region of the mean (lower); "
        "no advisers: limits of each class"
    ),
    "predictive brier": (
        "loss of a guess from other cells, and a region of the mean (lower); "
        "no advisers: pairs of items, fixed stakes"
    ),
    "epistemic shannon": (
        "the predictive bets or loss less an aleatoric statistic of the same items, or the Brier "
        "part (lower); no advisers: predictive less aleatoric limits"
    ),
    "epistemic brier": (
        "pairs of items, fixed stakes; too many items: loss less the disagreement of the same items"
    ),
}
LASTING_BOUNDS = {
    "aleatoric shannon": (
        f"{_ONE_LABEL}two: how often they agree; more: linear programs; fixed stakes"
    ),
    "aleatoric brier": f"{_ONE_LABEL}else disagreement of an item's labels, fixed stakes",
    "predictive shannon": "limits of each class, fixed stakes",
    "predictive brier": "limits of each class, fixed stakes",
    "epistemic shannon": "predictive less aleatoric limits",
    "epistemic brier": "predictive less aleatoric limits",
}


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
    >>> from hocal.cells.statistics import CellStatistics, Histogram
    >>> p, counts = [[0.9, 0.1]] * 100, [[3, 0]] * 80 + [[2, 1]] * 20
    >>> partition = hocal.UniformPartition(n_bins=2).fit(p)
    >>> statistics = CellStatistics.from_items(p, counts, partition.assign(p), partition.layout_)
    >>> mixtures = hocal.Mixtures.from_snapshots(counts, partition.assign(p), n_cells=2).stored()
    >>> certify(statistics, mixtures)
    Certificate(0.95 for each cell, 1 of 2 cells, 100 items, mean width of aleatoric 0.264 nats)
    """
    _check_flags(simultaneous=simultaneous, aligned=aligned, anytime=anytime)
    _check_mixtures(mixtures, statistics)
    delta = _chance_of_failure(confidence, statistics, simultaneous=simultaneous)
    factor = check_number(design_effect, "design_effect", minimum=1)
    worth = _as_many_as_count(statistics, factor)
    every = statistics.aligned if aligned else statistics.observed
    histogram = worth.aligned if aligned else worth.observed
    error = cell_epsilon(histogram, mixtures, delta=delta, k=k, snapshot_size=snapshot_size)
    coverage = set_coverage(mixtures, error, projected=snapshot_size is None)
    limits = _limits(worth, histogram, delta, aligned=aligned, anytime=anytime)
    if anytime:
        error, coverage = _unknown(error, coverage)
    return Certificate(
        confidence=float(confidence),
        simultaneous=bool(simultaneous),
        n_items=statistics.n_items,
        k=smallest_totals(every, statistics.n_cells),
        epsilon=error.values,
        epsilon_k=error.k,
        epsilon_bound=error.bounds,
        set_coverage=coverage,
        source=_sources(statistics) if source is None else np.asarray(source),
        assumptions=_assumptions(every, anytime=anytime, design_effect=factor),
        bounds=_bounds(aligned=aligned, anytime=anytime),
        n_classes=statistics.n_classes,
        limits=limits,
        estimates=_all_estimates(mixtures),
        design_effect=factor,
        anytime=bool(anytime),
    )


def _check_flags(**flags: bool) -> None:
    for name, flag in flags.items():
        check_flag(flag, name)


def _chance_of_failure(
    confidence: float, statistics: CellStatistics, *, simultaneous: bool
) -> float:
    """Return delta of each cell; by Bonferroni's inequality where all are to hold together."""
    delta = 1 - check_fraction(confidence, "confidence")
    return delta / max(int((statistics.n_items > 0).sum()), 1) if simultaneous else delta


def _limits(
    worth: CellStatistics, histogram: Histogram, delta: float, *, aligned: bool, anytime: bool
) -> dict[Target, Array]:
    if anytime:
        return lasting_limits(histogram, worth.n_cells, delta)
    return all_limits(worth, histogram, delta, aligned=aligned)


def _bounds(*, aligned: bool, anytime: bool) -> dict[str, str]:
    """Return the construction behind each interval."""
    if anytime:
        return dict(LASTING_BOUNDS)
    return dict(ALIGNED_BOUNDS if aligned else BOUNDS)


def _sources(statistics: CellStatistics) -> NDArray[np.str_]:
    return np.where(statistics.n_items > 0, "cell", "none")


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


def _unknown(error: CellEpsilon, coverage: Array) -> tuple[CellEpsilon, Array]:
    """Return errors and coverage of which nothing is known to hold at any time."""
    values = np.full_like(error.values, np.nan)
    return error._replace(values=values), np.full_like(coverage, np.nan)


def _assumptions(histogram: Histogram, *, anytime: bool, design_effect: float) -> tuple[str, ...]:
    """Return what must be true, of items with one label too if there are both kinds."""
    singles = bool((histogram.totals == 1).any() and (histogram.totals > 1).any())
    return certificate_assumptions(singles=singles, anytime=anytime, design_effect=design_effect)


def _as_many_as_count(statistics: CellStatistics, design_effect: float) -> CellStatistics:
    """Return as many items as these are worth."""
    return replace(
        statistics,
        observed=fewer_items(statistics.observed, design_effect),
        aligned=fewer_items(statistics.aligned, design_effect),
    )


def _all_estimates(mixtures: Mixtures) -> dict[Target, Array]:
    parts = {entropy: decompose(mixtures, entropy).as_dict() for entropy in ENTROPIES}
    return {
        Target(quantity, entropy): parts[entropy][quantity]
        for entropy in ENTROPIES
        for quantity in QUANTITIES
    }
