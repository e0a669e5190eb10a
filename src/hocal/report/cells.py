"""The cells of a report, and the classes that people confuse in them."""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from hocal._base.typing import Array, Index
from hocal.report.cell_facts import Limits
from hocal.report.confusions import list_confusions, pair_rates
from hocal.report.schema import CellRow, Confusion, Leaders, Standing
from hocal.report.study import Study, number
from hocal.report.trust import Measurement

__all__ = ["describe_cells", "describe_confusions"]

MAX_CELLS = 300  # rows that a page still shows and sorts without delay
MAX_CONFUSIONS = 12  # the list fits beside those of the leaders
N_LEADERS = 6  # as many as a person looks into
LEAST_SHARE = 0.001  # of the items: a cell with fewer is not worth acting on


def describe_cells(study: Study, measurement: Measurement | None) -> tuple[list[CellRow], Leaders]:
    """Return the cells that hold most of the uncertainty, and those that are worth acting on.

    A cell holds its items times its predictive uncertainty. Each cell is described once.
    """
    weight = study.facts.n_items * study.facts.parts.predictive
    largest = _largest(study.used, weight)[:MAX_CELLS]
    epistemic = _leaders(study, "epistemic")
    aleatoric = _leaders(study, "aleatoric")
    wanted = dict.fromkeys([*largest, *epistemic, *aleatoric])
    rows = {cell: _row(study, measurement, cell) for cell in wanted}
    leaders: Leaders = {
        "epistemic": [rows[cell].copy() for cell in epistemic],
        "aleatoric": [rows[cell].copy() for cell in aleatoric],
    }
    return [rows[cell] for cell in largest], leaders


def describe_confusions(study: Study) -> list[Confusion]:
    """Return the pairs of classes that calibration labels confuse most, over all cells."""
    return _confusions(study, slice(None), MAX_CONFUSIONS)


def _leaders(study: Study, kind: Standing) -> list[int]:
    """Return the cells that are proved to have more than the average, by items times excess."""
    facts = study.facts
    fewest = max(LEAST_SHARE * len(study.cells), 1)
    eligible = facts.above[kind] & (facts.n_items >= fewest)
    weight = facts.n_items * facts.excess[kind]
    return _largest(np.flatnonzero(eligible), weight)[:N_LEADERS]


def _largest(cells: Index, values: Array) -> list[int]:
    order = np.argsort(-values[cells], kind="stable")
    return [int(cell) for cell in cells[order]]


def _row(study: Study, measurement: Measurement | None, cell: int) -> CellRow:
    facts = study.facts
    aleatoric = facts.aleatoric_limits
    epistemic = facts.epistemic_limits
    confused = _confusions(study, _rows_of(study, cell), 1)
    return {
        "cell": cell,
        "name": facts.names[cell],
        "n_items": int(facts.n_items[cell]),
        "calibration_items": int(facts.calibration_items[cell]),
        "calibration_labels": int(facts.calibration_labels[cell]),
        "source": str(facts.source[cell]),
        "predictive": number(facts.parts.predictive[cell]),
        "aleatoric": number(facts.parts.aleatoric[cell]),
        "epistemic": number(facts.parts.epistemic[cell]),
        "aleatoric_interval": _interval(aleatoric, cell),
        "aleatoric_vacuous": bool(aleatoric.vacuous[cell]),
        "aleatoric_inside": bool(aleatoric.inside[cell]),
        "epistemic_interval": _interval(epistemic, cell),
        "epistemic_vacuous": bool(epistemic.vacuous[cell]),
        "aleatoric_share": number(facts.aleatoric_share[cell]),
        "epistemic_share": number(facts.epistemic_share[cell]),
        "aleatoric_excess": number(facts.excess["aleatoric"][cell]),
        "epistemic_excess": number(facts.excess["epistemic"][cell]),
        "stands_out": facts.stands_out(cell),
        **_observed(measurement, cell, facts.disagreement),
        "confusion": confused[0] if confused else None,
    }


class _Observed(TypedDict):
    """What labels of a cell that were not used to fit say, beside what was predicted."""

    error: float | None
    noise_floor: float | None
    p_value: float | None
    predicted_disagreement: float
    observed_disagreement: float | None


def _observed(measurement: Measurement | None, cell: int, disagreement: Array) -> _Observed:
    """Return what was measured; the disagreement of all items where those measured have none."""
    predicted = _measured(measurement and measurement.predicted_disagreement, cell)
    return {
        "error": _measured(measurement and measurement.error, cell),
        "noise_floor": _measured(measurement and measurement.noise_floor, cell),
        "p_value": _measured(measurement and measurement.p_value, cell),
        "predicted_disagreement": number(disagreement[cell] if predicted is None else predicted),
        "observed_disagreement": _measured(measurement and measurement.disagreement, cell),
    }


def _interval(limits: Limits, cell: int) -> list[float] | None:
    """Return a proved interval; None where the cell has no calibration items."""
    if np.isnan(limits.lower[cell]):
        return None
    return [number(limits.lower[cell]), number(limits.upper[cell])]


def _measured(values: Array | None, cell: int) -> float | None:
    return None if values is None or np.isnan(values[cell]) else number(values[cell])


def _rows_of(study: Study, cell: int) -> slice:
    """Return the rows of a cell in the histogram of observed labels, which is sorted by cell."""
    start, stop = np.searchsorted(study.calibrator.statistics_.observed.cells, [cell, cell + 1])
    return slice(int(start), int(stop))


def _confusions(study: Study, rows: slice, n_wanted: int) -> list[Confusion]:
    """Return the pairs of classes that labels of some rows of the histogram confuse most."""
    histogram = study.calibrator.statistics_.observed
    rates = pair_rates(histogram.counts[rows], histogram.multiplicity[rows])
    return list_confusions(rates, study.classes, n_wanted)
