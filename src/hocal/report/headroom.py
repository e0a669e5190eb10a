"""What the model loses, what nobody can avoid and what is left to gain, as a report says it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hocal._base.interval import Interval
from hocal._base.typing import Index, Mask
from hocal._base.validation import label_totals
from hocal.decisions.gains import HeadroomPart, ModelLosses
from hocal.decisions.losses import LOSS_NAMES, Judged, assumptions_of
from hocal.report.schema import Gains, Headroom, Limited
from hocal.report.study import Study, number

__all__ = ["Gained", "describe_gains", "describe_headroom", "measure_gains"]

# Held-out items whose losses are measured, at random where there are more: their mean is known to a
# hundredth of a nat by then. Of many classes fewer, so that a table of them stays below 100 MB.
MAX_ITEMS = 20_000
MAX_NUMBERS = 5_000_000
FEWEST_OF_A_CLASS = 30  # measured items of a predicted class; limits from fewer say nothing
MAX_CLASSES = 60  # classes measured one by one, those with the most items; a second or two


@dataclass(frozen=True, eq=False)
class Gained:
    """The losses of the model against held-out labels."""

    loss: str  #: "log", or "brier" where a prediction is 0 and its log loss may be infinite
    n_items: int  #: items measured
    n_available: int  #: items with labels
    n_fitted: int  #: of those measured, items that the calibrator was fitted on
    confidence: float
    whole: HeadroomPart
    agreement: Interval  #: how often a new person agrees with the model's most likely class
    best_agreement: Interval  #: how often one would agree with the best possible model
    calibrated: Interval | None  #: loss of the calibrated predictions on the same items
    per_class: dict[int, HeadroomPart]  #: by predicted class, where enough items were measured
    assumptions: tuple[str, ...]


def measure_gains(study: Study, generator: np.random.Generator) -> Gained | None:
    """Measure the losses of the model and of what is left of them; None without labels."""
    rows, n_available = _choose(study, generator)
    if not len(rows):
        return None
    predictions = study.probabilities[rows]
    judged = Judged.of(study.labels(rows))
    loss = "brier" if (predictions == 0).any() else "log"
    confidence = study.certificate.confidence
    delta = 1 - confidence
    losses = ModelLosses.of(predictions, "probabilities", judged, loss, None)
    missed = losses.with_loss("accuracy").whole(delta)
    return Gained(
        loss=loss,
        n_items=len(rows),
        n_available=n_available,
        n_fitted=int(study.fitted[rows].sum()),
        confidence=confidence,
        whole=losses.whole(delta),
        agreement=missed.loss.complement(),
        best_agreement=missed.irreducible.complement(),
        calibrated=_calibrated(study, rows, judged, loss, delta),
        per_class=_per_class(losses, delta),
        assumptions=assumptions_of(loss, None, judged),
    )


def _choose(study: Study, generator: np.random.Generator) -> tuple[Index, int]:
    """Return the items to measure, and how many have labels."""
    if study.counts is None:
        return np.zeros(0, dtype=np.intp), 0
    totals = label_totals(study.counts)
    # as `headroom` does: the loss and its parts are about the same items
    labelled = np.flatnonzero(totals > 1) if totals.max() > 1 else np.flatnonzero(totals)
    most = min(MAX_ITEMS, max(MAX_NUMBERS // len(study.classes), 1))
    if len(labelled) <= most:
        return labelled, len(labelled)
    return np.sort(generator.choice(labelled, most, replace=False)), len(labelled)


def _calibrated(
    study: Study, rows: Index, judged: Judged, loss: str, delta: float
) -> Interval | None:
    """Return the loss of the calibrated predictions; None where it is not known.

    It may be infinite, or flattered by items that were fitted on.
    """
    if study.fitted[rows].any():
        return None
    calibrated = study.calibrator.predict_proba(**study.given.of(rows))
    if loss == "log" and (calibrated == 0).any():
        return None
    return ModelLosses.of(calibrated, "probabilities", judged, loss, None).interval(delta)


def _per_class(losses: ModelLosses, delta: float) -> dict[int, HeadroomPart]:
    """Return the parts of the loss of the classes that the model predicts most often."""
    top = losses.predictions.argmax(axis=1)
    n_items = np.bincount(top, minlength=losses.predictions.shape[1])
    largest = np.argsort(-n_items, kind="stable")[:MAX_CLASSES]
    wanted = largest[n_items[largest] >= FEWEST_OF_A_CLASS]
    if not len(wanted):
        return {}
    chosen = np.isin(top, wanted)
    return _only(losses, chosen).parts(top[chosen], delta)


def _only(losses: ModelLosses, rows: Mask) -> ModelLosses:
    """Return the losses of some items, without a look at the others."""
    judged = Judged.of(losses.judged.counts[rows])
    return ModelLosses.of(losses.predictions[rows], "probabilities", judged, losses.loss, None)


def describe_headroom(study: Study, gained: Gained | None) -> Headroom:
    """Return the three numbers: measured, or else what the fitted mixtures expect."""
    if gained is None:
        return _expected(study)
    return {
        "measured": True,
        "loss_name": LOSS_NAMES[gained.loss],
        "unit": "nats" if gained.loss == "log" else "",
        "confidence": gained.confidence,
        "n_items": gained.n_items,
        "n_available": gained.n_available,
        "n_fitted": gained.n_fitted,
        "gains": describe_gains(gained.whole),
        "calibrated": None if gained.calibrated is None else _limited(gained.calibrated),
        "agreement": _limited(gained.agreement),
        "best_agreement": _limited(gained.best_agreement),
        "assumptions": list(gained.assumptions),
    }


def _expected(study: Study) -> Headroom:
    """Return what the calibrated model is expected to lose, by its own mixtures."""
    parts = study.values.alone
    return {
        "measured": False,
        "loss_name": LOSS_NAMES["log"],
        "unit": "nats",
        "confidence": None,
        "n_items": len(study.cells),
        "n_available": 0,
        "n_fitted": 0,
        "gains": {
            "loss": _without_limits(parts.predictive.mean()),
            "irreducible": _without_limits(parts.aleatoric.mean()),
            "remaining": _without_limits(parts.epistemic.mean()),
        },
        "calibrated": None,
        "agreement": None,
        "best_agreement": None,
        "assumptions": [],
    }


def describe_gains(part: HeadroomPart) -> Gains:
    """Return a loss and its two parts as plain numbers."""
    return {
        "loss": _limited(part.loss),
        "irreducible": _limited(part.irreducible),
        "remaining": _limited(part.remaining),
    }


def _limited(interval: Interval) -> Limited:
    estimate, lower, upper = (None if math.isnan(end) else number(end) for end in interval)
    return {"estimate": estimate, "lower": lower, "upper": upper}


def _without_limits(value: float) -> Limited:
    return {"estimate": number(value), "lower": None, "upper": None}
