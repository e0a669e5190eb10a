"""Whether the numbers can be trusted: held-out labels, the certificate, borrowed cells."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hocal._base.typing import Array, Index, IntArray
from hocal._base.validation import check_integer, check_random_state, label_totals
from hocal.calibration.evaluation import aleatoric_error
from hocal.report.schema import Calibration, CertificatePart, Check, Trust
from hocal.report.study import Study, number
from hocal.uncertainty.decomposition import decompose

__all__ = ["Measurement", "measure", "trust"]

# held-out items: distances of that many, a hundred times over, take a few seconds
MAX_MEASURED = 20_000
# below that the entropy of an item's histogram is too far below that of its distribution
ENOUGH_LABELS = 10


class Measurement(NamedTuple):
    """Predictions against held-out labels, in all and for each cell."""

    overall: Calibration
    error: Array  #: (n_cells,) distance of predicted and observed snapshots, NaN without items
    noise_floor: Array  #: (n_cells,)
    p_value: Array  #: (n_cells,)
    #: (n_cells,) share of pairs of labels that differ, NaN without items with two labels
    disagreement: Array


def measure(study: Study, k: int | None, random_state: Any) -> Measurement | None:
    """Compare the predictions with the held-out labels; None where no item has enough of them."""
    if study.counts is None:
        return None
    totals = label_totals(study.counts)
    generator = check_random_state(random_state)
    size = _snapshot_size(study, k, int(totals.max()))
    available = np.flatnonzero(totals >= size)
    if not len(available):
        return None
    n_chosen = min(len(available), MAX_MEASURED)
    chosen = (
        available
        if n_chosen == len(available)
        else np.sort(generator.choice(available, n_chosen, replace=False))
    )
    counts = study.labels(chosen)
    cells = study.cells[chosen]
    given = None if study.given_cells is None else cells
    found = study.calibrator.calibration_error(
        study.probabilities[chosen], counts, k=size, cells=given, random_state=generator
    )
    observed, n_pairs = _disagreement(counts, cells, len(study.n_items))
    overall: Calibration = {
        "n_items": len(chosen),
        "n_available": len(available),
        "k": size,
        "mean": number(found.mean),
        "worst": number(found.max),
        "noise_floor": number(found.noise_floor),
        "excess": number(found.debiased),
        "p_value": number(found.p_value),
        "predicted_disagreement": _average(study.disagreement, n_pairs),
        "observed_disagreement": _average(observed, n_pairs),
        "aleatoric_error": _aleatoric_error(study, counts, cells),
        "median_labels": float(np.median(totals[chosen])),
    }
    return Measurement(
        overall, found.per_cell, found.noise_floor_per_cell, found.p_value_per_cell, observed
    )


def trust(study: Study, measurement: Measurement | None, check: Any) -> Trust:
    """Return what speaks for and against the numbers."""
    borrowed = study.calibrator.source_[study.used] != "cell"
    return {
        "calibration": None if measurement is None else measurement.overall,
        "certificate": _certificate(study),
        "borrowed_cells": int(borrowed.sum()),
        "borrowed_items": int(study.n_items[study.used][borrowed].sum()),
        "check": None if check is None else _check(check),
    }


def _check(check: Any) -> Check:
    """Return the findings of an AnnotationCheck, or of the dict it becomes; the annotators one by one stay out."""
    content = check.as_dict() if hasattr(check, "as_dict") else check
    try:
        return {
            "n_judgements": content["n_judgements"],
            "n_items": content["n_items"],
            "n_annotators": content["n_annotators"],
            "findings": [
                {name: str(finding[name]) for name in ("topic", "severity", "message", "action")}  # type: ignore[misc]
                for finding in content["findings"]
            ],
        }
    except (KeyError, TypeError) as error:
        lack = f" without {error}" if isinstance(error, KeyError) else ""
        raise ValueError(
            "`check` must be an AnnotationCheck or its as_dict(), which `hocal check --json` prints, "
            f"got {type(check).__name__}{lack}."
        ) from error


def _snapshot_size(study: Study, k: int | None, most: int) -> int:
    """Return the labels in a snapshot: pairs, if some item has two; that of the fit, if it predicts snapshots."""
    if study.calibrator.method == "empirical":
        fitted: int = study.calibrator.diagnostics_["k"]
        size = (
            fitted
            if k is None
            else check_integer(k, "k", minimum=fitted, maximum=fitted, why="It is that of fit.")
        )
    else:
        size = (2 if most >= 2 else 1) if k is None else check_integer(k, "k", minimum=1)
    if k is not None and k > most:
        raise ValueError(
            f"`k` must be at most {most}, the most held-out labels of an item, got {k}."
        )
    return size


def _disagreement(counts: IntArray, cells: Index, n_cells: int) -> tuple[Array, IntArray]:
    """Return how often two labels of an item differ, cell by cell, and the items with two labels."""
    totals = counts.sum(axis=1)
    twice = totals >= 2
    counts = counts[twice]
    totals = totals[twice]
    cells = cells[twice]
    differ = 1 - (counts * (counts - 1)).sum(axis=1) / (totals * (totals - 1))  # unbiased, spec 3.3
    n_items = np.bincount(cells, minlength=n_cells)
    with np.errstate(invalid="ignore"):  # a cell without items is 0 / 0
        return np.bincount(cells, differ, minlength=n_cells) / n_items, n_items


def _average(values: Array, n_items: IntArray) -> float | None:
    filled = n_items > 0
    return number(np.average(values[filled], weights=n_items[filled])) if filled.any() else None


def _aleatoric_error(study: Study, counts: IntArray, cells: Index) -> float | None:
    if np.median(counts.sum(axis=1)) < ENOUGH_LABELS:
        return None
    parts = decompose(
        study.calibrator.cell_mixtures_[cells], panel_size=study.calibrator.panel_size
    )
    return number(aleatoric_error(parts, counts, cells=cells))


def _certificate(study: Study) -> CertificatePart:
    certificate = study.certificate
    filled = certificate.n_items > 0
    vacuous = certificate.vacuous("aleatoric")
    lower, upper = certificate.interval("aleatoric")
    weights = np.where(filled, study.n_items, 0)
    width = (
        float(np.average((upper - lower)[filled], weights=weights[filled]))
        if weights.any()
        else None
    )
    return {
        "confidence": certificate.confidence,
        "simultaneous": certificate.simultaneous,
        "n_cells": int(filled.sum()),
        "n_vacuous": int((filled & vacuous).sum()),
        "n_outside": int((filled & ~certificate.inside("aleatoric")).sum()),
        "mean_width": None if width is None else number(width),
        "informed_share": number(study.n_items[~vacuous].sum() / study.n_items.sum()),
        "assumptions": list(certificate.assumptions),
    }
