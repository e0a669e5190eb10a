"""Intervals for the uncertainty of cells that hold whatever their mixtures are.

Every limit is a confidence limit for the mean of one bounded statistic of the cell's items, whose
mean is the uncertainty or lies on one side of it. A small part of the chance of failure is spent on
limits that no other cell advised: they save a cell that is unlike its neighbours.
docs/guarantees.md and docs/mathematics.md say why they hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from hocal._base.typing import Array, Mask
from hocal.guarantees.bounds import projection_slack
from hocal.guarantees.cell_advice import SIZES, advise, estimator_sizes
from hocal.guarantees.cell_means import KINDS, CellMeans, Ends, Limit
from hocal.guarantees.entropy_ranges import shannon_range
from hocal.guarantees.item_statistics import Advice, Statistic, statistic_values
from hocal.guarantees.mean_region import LOSS_MULTIPLIERS
from hocal.guarantees.samples import ENTROPIES, QUANTITIES, TARGETS, Limits, Sample, Target

__all__ = [
    "ENTROPIES",
    "PLAIN",
    "QUANTITIES",
    "SIZES",
    "TARGETS",
    "Advice",
    "Limits",
    "Sample",
    "Target",
    "advise",
    "all_intervals",
    "cell_intervals",
    "estimator_sizes",
    "statistic_values",
    "worst_slack",
]

# Of an end's chance of failure, for each thing that needs no advice: a region of the mean label
# distribution, which also bounds how far a guess is from it; limits of each class; and statistics
# that no other cell advised. They widen well advised intervals by a hundredth each.
PLAIN = 0.05
ADVISED = 1 - PLAIN
TWICE_ADVISED = 1 - 2 * PLAIN
LOSSES = {"shannon": Statistic.LOSS, "brier": Statistic.BRIER_LOSS}
# Of the chance that the lower end of epistemic uncertainty fails, for bets on Shannon entropies;
# the rest is for the Brier part, which is better in small cells.
BETS = 0.9
# Limits of a cell with a guess; here `delta` is the share of an end's chance of failure.
EXPECTED = (
    Limit(Statistic.BRIER_LOSS, ADVISED, 1),
    Limit(Statistic.BRIER_LOSS, TWICE_ADVISED, -1),
    Limit(Statistic.LOWER_ALEATORIC, ADVISED, -1),
    Limit(Statistic.UPPER_ALEATORIC, ADVISED, 1),
    Limit(Statistic.PLAIN_LOWER, PLAIN, -1),
    Limit(Statistic.PLAIN_UPPER, PLAIN, 1),
    Limit(Statistic.DISAGREEMENT, PLAIN, -1),
    Limit(Statistic.DISAGREEMENT, 1.0, -1),
    Limit(Statistic.DISAGREEMENT, 1.0, 1),
    Limit(Statistic.EPISTEMIC_PAIRS, 1.0, -1),
    Limit(Statistic.EPISTEMIC_PAIRS, 1.0, 1),
    Limit(Statistic.EPISTEMIC_PAIRS, ADVISED * (1 - BETS), -1),
)
# What cells need besides whose items are too few or too many for bets on the entropy of the mean.
WITHOUT_BETS = (
    Limit(Statistic.LOSS, ADVISED, 1),
    Limit(Statistic.LOSS, TWICE_ADVISED, -1),
    Limit(Statistic.UPPER_REST, TWICE_ADVISED, 1),
    Limit(Statistic.LOWER_REST, ADVISED * BETS, -1),
)
# What cells without a guess need besides: parts of the chance for differences of two intervals.
WITHOUT_GUESS = (
    Limit(Statistic.EPISTEMIC_PAIRS, ADVISED / 2, -1),
    Limit(Statistic.PREDICTIVE_PAIRS, 1.0, -1),
    Limit(Statistic.PREDICTIVE_PAIRS, 1.0, 1),
    Limit(Statistic.DISAGREEMENT, PLAIN, 1),
    *(
        Limit(statistic, part * share, side)
        for part in (1 / 2, 1 / 4)
        for statistic, share, side in (
            (Statistic.DISAGREEMENT, 1.0, -1),
            (Statistic.DISAGREEMENT, 1.0, 1),
            (Statistic.DISAGREEMENT, PLAIN, -1),
            (Statistic.DISAGREEMENT, PLAIN, 1),
            (Statistic.LOWER_ALEATORIC, ADVISED, -1),
            (Statistic.UPPER_ALEATORIC, ADVISED, 1),
            (Statistic.PLAIN_LOWER, PLAIN, -1),
            (Statistic.PLAIN_UPPER, PLAIN, 1),
        )
    ),
)


def cell_intervals(sample: Sample, advice: Advice, delta: float) -> dict[Target, Limits]:
    """Return the limits of each quantity, each with probability at least 1 - delta on its own.

    Parameters
    ----------
    sample : Sample
        Independent items of the cell.
    advice : Advice
        From other cells.
    delta : float
        Allowed chance of failure of an interval; half of it for each end.

    Returns
    -------
    dict
        Limits by target, (quantity, entropy), inside the possible range.
    """
    found = all_intervals([sample], [advice], delta)
    return {target: Limits(*map(float, ends[0])) for target, ends in found.items()}


def all_intervals(
    samples: Sequence[Sample], advice: Sequence[Advice], delta: float
) -> dict[Target, Array]:
    """Return what `cell_intervals` does for each of several cells, (n_cells, 2) by target."""
    half = delta / 2
    cells = CellMeans(samples, advice)
    wanted = list(EXPECTED)
    if not (cells.betting & cells.betting_inside)[cells.guessed].all():
        wanted += WITHOUT_BETS
    if not cells.guessed.all():
        wanted += WITHOUT_GUESS
    cells.look_up([limit._replace(delta=limit.delta * half) for limit in wanted])
    found = {}
    for name, kind in KINDS.items():
        parts = {
            "predictive": _predictive(cells, name, half),
            "aleatoric": _aleatoric(cells, name, half),
            "epistemic": _epistemic(cells, name, half),
        }
        single = ~cells.several
        if single.any():
            # One label per item says nothing about disagreement, but AU and EU are <= PU.
            either = Ends(np.zeros(len(cells)), _highest(cells, name, delta))
            for quantity in ("aleatoric", "epistemic"):
                parts[quantity] = either.where(single, parts[quantity])
        largest = float(kind.maximum(samples[0].n_classes))
        for quantity, ends in parts.items():
            found[Target(quantity, name)] = np.stack(ends.inside(largest), axis=1)
    return found


def _highest(cells: CellMeans, entropy: str, delta: float) -> Array:
    """Return what predictive uncertainty exceeds with chance delta: at most the loss of a guess."""
    highest = _most_predictive(cells, entropy, ADVISED * delta)
    highest = np.minimum(highest, cells.box(entropy, PLAIN * delta).upper)
    if cells.guessed.all():
        return highest
    return np.where(cells.guessed, highest, cells.box(entropy, delta).upper)


def _predictive(cells: CellMeans, entropy: str, half: float) -> Ends:
    """Return limits of G(m): at most the loss of any guess, and not much less in a region."""
    lower = _least_predictive(cells, entropy, half)
    upper = _most_predictive(cells, entropy, ADVISED * half)
    ends = Ends(lower, upper).intersect(cells.box(entropy, PLAIN * half))
    if cells.guessed.all():
        return ends
    return ends.where(cells.guessed, _unguessed(cells, entropy, half))


def _most_predictive(cells: CellMeans, entropy: str, delta: float) -> Array:
    """Return upper limits of G(m): of the loss of a guess, which learns where bets are possible."""
    if entropy == "shannon" and cells.betting.any():
        bets = cells.entropies(delta, 1)
        if cells.betting[cells.guessed].all():
            return bets
        return np.where(cells.betting, bets, cells.high(Statistic.LOSS, delta))
    return cells.high(LOSSES[entropy], delta)


def _least_predictive(cells: CellMeans, entropy: str, half: float) -> Array:
    """Return lower limits of G(m): by bets on it, or from the loss of a guess and a region."""
    if entropy == "shannon":
        bets = cells.entropies(ADVISED * half, -1)
        if cells.betting[cells.guessed].all():
            return bets
    least = cells.low(LOSSES[entropy], TWICE_ADVISED * half)
    rests = cells.rests(entropy, PLAIN * half)
    lower = (LOSS_MULTIPLIERS * least[:, None] + rests).max(axis=1)
    return np.where(cells.betting, bets, lower) if entropy == "shannon" else lower


def _unguessed(cells: CellMeans, entropy: str, half: float) -> Ends:
    """Return limits of G(m) without a guess."""
    box = cells.box(entropy, 2 * half)
    paired = cells.having(Statistic.PREDICTIVE_PAIRS)
    if entropy == "shannon" or not paired.any():
        return box
    statistic = Statistic.PREDICTIVE_PAIRS
    return Ends(cells.low(statistic, half), cells.high(statistic, half)).where(paired, box)


def _aleatoric(cells: CellMeans, entropy: str, half: float) -> Ends:
    """Return limits of E G(p), each of which fails with chance `half`."""
    statistic = Statistic.DISAGREEMENT
    disagreement = Ends(cells.low(statistic, half), cells.high(statistic, half))
    if entropy == "brier":
        return disagreement
    ends = Ends(
        cells.low(Statistic.LOWER_ALEATORIC, ADVISED * half),
        cells.high(Statistic.UPPER_ALEATORIC, ADVISED * half),
    )
    plain = Ends(
        cells.low(Statistic.PLAIN_LOWER, PLAIN * half),
        cells.high(Statistic.PLAIN_UPPER, PLAIN * half),
    )
    unadvised = ~cells.having(Statistic.PLAIN_UPPER) & ~cells.pairs
    if unadvised.any():  # what disagreement says needs no advice either
        known = Ends(cells.low(statistic, PLAIN * half), cells.high(statistic, PLAIN * half))
        plain = _ranges(cells, known, unadvised).where(unadvised, plain)
    # All that is known about pairs is how often two labels agree.
    return _ranges(cells, disagreement, cells.pairs).where(cells.pairs, ends.intersect(plain))


def _ranges(cells: CellMeans, disagreement: Ends, rows: Mask) -> Ends:
    """Return what limits of disagreement say about Shannon uncertainty, in some cells."""
    lower = np.full(len(cells), -np.inf)
    upper = np.full(len(cells), np.inf)
    n_classes = cells.samples[0].n_classes
    for row in np.flatnonzero(rows & cells.several).tolist():
        least = max(disagreement.lower[row], 0.0)
        lower[row], upper[row] = shannon_range(least, disagreement.upper[row], n_classes)
    return Ends(lower, upper)


def _epistemic(cells: CellMeans, entropy: str, half: float) -> Ends:
    """Return limits of G(m) - E G(p)."""
    if entropy == "shannon":
        return _shannon_epistemic(cells, half)
    statistic = Statistic.EPISTEMIC_PAIRS
    pairs = Ends(cells.low(statistic, half), cells.high(statistic, half))
    paired = cells.having(statistic)
    if paired.all():
        return pairs
    lower = cells.low(Statistic.BRIER_REST, ADVISED * half)
    rests = cells.rests(entropy, PLAIN * half)[:, -1]
    upper = cells.high(Statistic.BRIER_REST, TWICE_ADVISED * half)
    rest = Ends(lower + rests, np.minimum(upper, _plain_epistemic(cells, entropy, half)))
    if not cells.guessed.all():
        rest = rest.where(cells.guessed, _difference(cells, entropy, half))
    return pairs.where(paired, rest)


def _shannon_epistemic(cells: CellMeans, half: float) -> Ends:
    """Return such limits of Shannon uncertainty.

    KL(p || m) >= ||p - m||^2, so that the Brier part is a lower bound too, and the better one for
    few items: the lower end is the better of two.
    """
    lower = cells.rest_entropies(ADVISED * BETS * half, -1)
    upper = cells.rest_entropies(TWICE_ADVISED * half, 1)
    if not cells.betting_inside[cells.guessed].all():
        rests = cells.rests("shannon", PLAIN * half)[:, 0]  # with the factor of the loss in it
        least = cells.low(Statistic.LOWER_REST, ADVISED * BETS * half) + rests
        lower = np.where(cells.betting_inside, lower, least)
        most = cells.high(Statistic.UPPER_REST, TWICE_ADVISED * half)
        upper = np.where(cells.betting_inside, upper, most)
    upper = np.minimum(upper, _plain_epistemic(cells, "shannon", half))
    pairs = Statistic.EPISTEMIC_PAIRS
    lower = np.maximum(lower, cells.low(pairs, ADVISED * (1 - BETS) * half))
    if not cells.guessed.all():
        least = _difference(cells, "shannon", half / 2).lower
        least = np.maximum(least, cells.low(pairs, ADVISED / 2 * half))
        lower = np.where(cells.guessed, lower, least)
        upper = np.where(cells.guessed, upper, _difference(cells, "shannon", half).upper)
    return Ends(lower, upper)


def _plain_epistemic(cells: CellMeans, entropy: str, half: float) -> Array:
    """Return an upper limit of epistemic uncertainty that no other cell advised."""
    disagreement = cells.low(Statistic.DISAGREEMENT, PLAIN * half)
    least = disagreement
    if entropy == "shannon":
        ranges = _ranges(cells, Ends(disagreement, disagreement), cells.pairs)
        plain = cells.low(Statistic.PLAIN_LOWER, PLAIN * half)
        least = np.where(cells.pairs, ranges.lower, plain)
    return cells.box(entropy, PLAIN * half).upper - least


def _difference(cells: CellMeans, entropy: str, half: float) -> Ends:
    """Return limits of predictive less aleatoric uncertainty: half of the chance for each."""
    box = cells.box(entropy, half / 2)
    inside = _aleatoric(cells, entropy, half / 2)
    return Ends(box.lower - inside.upper, box.upper - inside.lower)


@lru_cache(maxsize=256)
def worst_slack(k: int, n_classes: int) -> float:
    """Return the largest distance between a mixture and its k-snapshots."""
    return projection_slack(k, n_classes).value
