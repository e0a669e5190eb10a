"""The cells of a report, and the classes that people confuse in them."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from hocal._base.typing import Array, Index, IntArray, Mask
from hocal._base.validation import label_totals
from hocal.report.schema import CellRow, Confusion, Leaders
from hocal.report.study import Study, number
from hocal.report.trust import Measurement

__all__ = ["describe_cells", "describe_confusions", "describe_leaders"]

MAX_CELLS = 300
MAX_CONFUSIONS = 12
N_LEADERS = 6
LEAST_SHARE = 0.001  # of the items: a cell with fewer is not worth acting on


def describe_cells(study: Study, measurement: Measurement | None) -> list[CellRow]:
    """Return the cells that hold most of the uncertainty: items times predictive uncertainty."""
    weight = study.n_items * study.predictive
    return [_row(study, measurement, cell) for cell in _largest(study.used, weight)[:MAX_CELLS]]


def describe_leaders(study: Study, measurement: Measurement | None) -> Leaders:
    """Return the cells that stand out most in each kind of uncertainty and are worth acting on."""
    fit = (study.calibrator.source_ == "cell") & (
        study.n_items >= max(LEAST_SHARE * len(study.cells), 1)
    )
    proved = ~study.certificate.vacuous("aleatoric")
    epistemic = _proved_first(
        _largest(np.flatnonzero(fit & study.stands_out), study.epistemic), proved
    )
    aleatoric = _proved_first(
        _largest(np.flatnonzero(fit & ~study.stands_out), study.aleatoric), proved
    )
    return {
        "epistemic": [_row(study, measurement, cell) for cell in epistemic[:N_LEADERS]],
        "aleatoric": [_row(study, measurement, cell) for cell in aleatoric[:N_LEADERS]],
    }


def describe_confusions(study: Study) -> list[Confusion]:
    """Return the pairs of classes that calibration labels confuse most, over all cells."""
    return _confusions(study, slice(None), MAX_CONFUSIONS)


def _largest(cells: Index, values: Array) -> list[int]:
    order = np.argsort(-values[cells], kind="stable")
    return [int(cell) for cell in cells[order]]


def _proved_first(cells: list[int], proved: Mask) -> list[int]:
    """Put cells about which nothing is proved last: the estimate of a cell with an item or two is no ground to act."""
    return sorted(cells, key=lambda cell: not proved[cell])


def _row(study: Study, measurement: Measurement | None, cell: int) -> CellRow:
    certificate = study.certificate
    labels = study.calibrator.statistics_.n_labels
    confused = _confusions(study, _rows_of(study, cell), 1)
    return {
        "cell": cell,
        "name": study.name(cell),
        "n_items": int(study.n_items[cell]),
        "calibration_items": int(certificate.n_items[cell]),
        "calibration_labels": int(labels[cell]),
        "source": str(study.calibrator.source_[cell]),
        "predictive": number(study.predictive[cell]),
        "aleatoric": number(study.aleatoric[cell]),
        "epistemic": number(study.epistemic[cell]),
        "aleatoric_interval": _interval(study, "aleatoric", cell),
        "aleatoric_vacuous": bool(certificate.vacuous("aleatoric")[cell]),
        "aleatoric_inside": bool(certificate.inside("aleatoric")[cell]),
        "epistemic_interval": _interval(study, "epistemic", cell),
        "epistemic_vacuous": bool(certificate.vacuous("epistemic")[cell]),
        "aleatoric_share": _share(study.aleatoric, study.n_items, cell),
        "epistemic_share": _share(study.epistemic, study.n_items, cell),
        "standing": study.standing(cell),
        "error": _of_cell(measurement and measurement.error, cell),
        "noise_floor": _of_cell(measurement and measurement.noise_floor, cell),
        "p_value": _of_cell(measurement and measurement.p_value, cell),
        "predicted_disagreement": number(study.disagreement[cell]),
        "observed_disagreement": _of_cell(measurement and measurement.disagreement, cell),
        "confusion": confused[0] if confused else None,
    }


def _share(values: Array, n_items: IntArray, cell: int) -> float:
    """Return what a cell holds of the sum over all items."""
    total = float(values @ n_items)
    return number(values[cell] * n_items[cell] / total) if total > 0 else 0.0


def _interval(study: Study, quantity: str, cell: int) -> list[float] | None:
    if not study.certificate.n_items[cell]:
        return None
    return [number(end[cell]) for end in study.certificate.interval(quantity)]


def _of_cell(values: Array | None, cell: int) -> float | None:
    return None if values is None or np.isnan(values[cell]) else number(values[cell])


def _rows_of(study: Study, cell: int) -> slice:
    """Return the rows of the histogram of observed labels that belong to a cell; they are sorted by cell."""
    start, stop = np.searchsorted(study.calibrator.statistics_.observed.cells, [cell, cell + 1])
    return slice(int(start), int(stop))


def _confusions(study: Study, rows: slice, top: int) -> list[Confusion]:
    """Return the pairs of classes that two labels of one item name most often; every item weighs the same."""
    histogram = study.calibrator.statistics_.observed
    counts = sparse.csr_array(histogram.counts[rows], dtype=np.float64)
    multiplicity = histogram.multiplicity[rows]
    totals = label_totals(counts)
    paired = totals >= 2
    if not paired.any():
        return []
    counts = counts[paired]
    weights = (
        multiplicity[paired]
        / (totals[paired] * (totals[paired] - 1.0))
        / multiplicity[paired].sum()
    )
    pairs = sparse.triu(counts.T @ (counts * weights[:, None]), k=1).tocoo()
    if not pairs.nnz:
        return []
    rates = 2 * pairs.data  # a pair has two orders
    return [
        {
            "first": study.classes[pairs.row[i]],
            "second": study.classes[pairs.col[i]],
            "share": number(rates[i] / rates.sum()),
            "rate": number(rates[i]),
        }
        for i in np.argsort(-rates, kind="stable")[:top]
    ]
