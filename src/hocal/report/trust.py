"""Whether the numbers can be trusted: held-out labels, the certificate, borrowed cells."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hocal._base.errors import InputError
from hocal._base.typing import Array, Index, IntArray
from hocal._base.validation import check_integer, label_totals
from hocal.calibration.against_truth import aleatoric_error
from hocal.calibration.evaluation import CalibrationError
from hocal.calibration.seen_items import FEWEST_FRESH
from hocal.report.schema import Calibration, CertificatePart, Check, Trust
from hocal.report.study import Study, number
from hocal.uncertainty.moments import pair_shares

__all__ = ["Measurement", "measure", "trust"]

# held-out items: their mixtures, and distances of that many a hundred times over, take seconds
MAX_MEASURED = 10_000
# predicted probabilities of those items: with more than 25 classes fewer items are measured, whose
# atoms take no more than a hundred MB
MAX_MEASURED_NUMBERS = 250_000
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
    predicted_disagreement: Array  #: (n_cells,) the same as predicted for these items


class _HeldOut(NamedTuple):
    """The items that are measured."""

    rows: Index
    cells: Index
    counts: IntArray
    n_available: int  #: with enough labels and not fitted, unless `training`; measured or not
    n_fitted: int  #: items with enough labels that the model was fitted on
    training: bool  #: whether such are among those measured
    k: int  #: labels in a snapshot


def measure(study: Study, k: int | None, generator: np.random.Generator) -> Measurement | None:
    """Compare the predictions with the held-out labels; None where no item has enough of them."""
    held_out = _choose(study, k, generator)
    if held_out is None:
        return None
    found = study.calibrator.calibration_error(
        **study.given.of(held_out.rows),
        counts=held_out.counts,
        k=held_out.k,
        random_state=generator,
    )
    observed, n_pairs = _disagreement(held_out, len(study.facts.n_items))
    predicted = _predicted_disagreement(study, held_out)
    pairs = (_average(predicted, n_pairs), _average(observed, n_pairs))
    return Measurement(
        _overall(study, held_out, found, pairs),
        found.per_cell,
        found.noise_floor_per_cell,
        found.p_value_per_cell,
        observed,
        predicted,
    )


def _overall(
    study: Study,
    held_out: _HeldOut,
    found: CalibrationError,
    pairs: tuple[float | None, float | None],
) -> Calibration:
    """Return the numbers of all cells together; `pairs` differ as predicted and as observed."""
    predicted, observed = pairs
    return {
        "n_items": len(held_out.rows),
        "n_available": held_out.n_available,
        "n_fitted": held_out.n_fitted,
        "training": held_out.training,
        "k": held_out.k,
        "mean": number(found.mean),
        "worst": number(found.max),
        "noise_floor": number(found.noise_floor),
        "excess": number(found.debiased),
        "p_value": number(found.p_value),
        "predicted_disagreement": predicted,
        "observed_disagreement": observed,
        "aleatoric_error": _aleatoric_error(study, held_out),
        "median_labels": float(np.median(held_out.counts.sum(axis=1))),
    }


def _choose(study: Study, k: int | None, generator: np.random.Generator) -> _HeldOut | None:
    """Return the items to measure, at random where there are many; None where there are none."""
    if study.counts is None:
        return None
    totals = label_totals(study.counts)
    size = _snapshot_size(study, k, int(totals.max()))
    available = np.flatnonzero(totals >= size)
    if not len(available):
        return None
    fresh = available[~study.fitted[available]]
    n_fitted = len(available) - len(fresh)
    training = n_fitted > 0 and len(fresh) < FEWEST_FRESH
    rows = measured = available if training else fresh
    most = min(MAX_MEASURED, max(MAX_MEASURED_NUMBERS // len(study.classes), 1))
    if len(measured) > most:
        rows = np.sort(generator.choice(measured, most, replace=False))
    labels = study.labels(rows)
    return _HeldOut(rows, study.cells[rows], labels, len(measured), n_fitted, training, size)


def trust(study: Study, measurement: Measurement | None, check: Check | None) -> Trust:
    """Return what speaks for and against the numbers."""
    used = study.used
    borrowed = used[study.facts.source[used] != "cell"]
    return {
        "calibration": None if measurement is None else measurement.overall,
        "certificate": _certificate(study),
        "borrowed_cells": len(borrowed),
        "borrowed_items": int(study.facts.n_items[borrowed].sum()),
        "check": check,
    }


def _snapshot_size(study: Study, k: int | None, most: int) -> int:
    """Return the labels in a snapshot: pairs if some item has two, or what the fit predicts."""
    if study.calibrator.method == "empirical":
        fitted: int = study.calibrator.diagnostics_["k"]
        if k is None:
            return fitted
        size = check_integer(k, "k", minimum=fitted, maximum=fitted, why="It is that of fit.")
    elif k is None:
        return 2 if most >= 2 else 1
    else:
        size = check_integer(k, "k", minimum=1)
    if size > most:
        rule = f"must be at most {most}, the most held-out labels of an item"
        raise InputError("k", rule, value=k)
    return size


def _disagreement(held_out: _HeldOut, n_cells: int) -> tuple[Array, IntArray]:
    """Return how often two labels of an item differ in each cell, and its items with two labels."""
    twice = held_out.counts.sum(axis=1) >= 2
    cells = held_out.cells[twice]
    differ = pair_shares(held_out.counts[twice])
    n_items = np.bincount(cells, minlength=n_cells)
    with np.errstate(invalid="ignore"):  # a cell without items is 0 / 0
        return np.bincount(cells, differ, minlength=n_cells) / n_items, n_items


def _predicted_disagreement(study: Study, held_out: _HeldOut) -> Array:
    """Return what is predicted for the items of each cell that have two labels, NaN without any."""
    twice = held_out.counts.sum(axis=1) >= 2
    rows = held_out.rows[twice]
    n_cells = len(study.facts.n_items)
    if not len(rows):
        return np.full(n_cells, np.nan)
    plain = copy(study.calibrator).set_params(panel_size=None)  # two people are no panel
    values = plain.decompose(**study.given.of(rows), entropy="brier").aleatoric
    n_items = np.bincount(study.cells[rows], minlength=n_cells)
    with np.errstate(invalid="ignore"):  # a cell without items is 0 / 0
        return np.bincount(study.cells[rows], values, minlength=n_cells) / n_items


def _average(values: Array, n_items: IntArray) -> float | None:
    with_items = n_items > 0
    if not with_items.any():
        return None
    return number(np.average(values[with_items], weights=n_items[with_items]))


def _aleatoric_error(study: Study, held_out: _HeldOut) -> float | None:
    """Return the error of aleatoric uncertainty; None where histograms hold too few labels."""
    if np.median(held_out.counts.sum(axis=1)) < ENOUGH_LABELS:
        return None
    parts = study.values.alone
    of_items = replace(
        parts,
        predictive=parts.predictive[held_out.rows],
        aleatoric=parts.aleatoric[held_out.rows],
        epistemic=parts.epistemic[held_out.rows],
    )
    return number(aleatoric_error(of_items, held_out.counts, cells=held_out.cells))


def _certificate(study: Study) -> CertificatePart:
    facts = study.facts
    certificate = study.certificate
    limits = facts.aleatoric_limits
    certified = facts.calibration_items > 0
    n_informed = int(facts.n_items[~limits.vacuous].sum())
    return {
        "confidence": certificate.confidence,
        "simultaneous": certificate.simultaneous,
        "n_cells": int(certified.sum()),
        "n_vacuous": int((certified & limits.vacuous).sum()),
        "n_outside": int((certified & ~limits.inside).sum()),
        "mean_width": _average(limits.upper - limits.lower, np.where(certified, facts.n_items, 0)),
        "informed_share": n_informed / int(facts.n_items.sum()),
        "informed_items": n_informed,
        "design_effect": number(certificate.design_effect),
        "calibration_items": int(certificate.n_items.sum()),
        "effective_items": int(certificate.effective_items.sum()),
        "assumptions": list(certificate.assumptions),
    }
