"""Two items that tell the two kinds of doubt apart: people agree and the model does not, and back.

- People agree: all labels of the item are the same, and the model's calibrated answer is another.
  Of these the item with the most epistemic uncertainty beyond what people may still disagree about.
- The model is sure: its calibrated answer has a probability of .8 or more, and labels differ. Of
  these the item whose labels show the most disagreement beyond all that the prediction left open.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hocal._base.typing import Array, Index, Mask
from hocal._base.validation import label_totals
from hocal.report.item_values import ENOUGH_TO_AGREE
from hocal.report.schema import Agreeing
from hocal.report.study import Study

__all__ = ["pick_contrast"]

SURE = 0.8  # of the calibrated answer: wrong for one person in five at most, as the model has it
# items whose answers are calibrated, those with the largest scores: one in ten or more of them fits
CANDIDATES = 2000

Fits = Callable[[Index, Array], Mask]  # of rows and their calibrated probabilities


def pick_contrast(study: Study) -> dict[Agreeing, int]:
    """Return the row of an item for each kind of contrast; without an item that fits, none."""
    values = study.values
    if study.counts is None:
        return {}
    judged = label_totals(study.counts) >= ENOUGH_TO_AGREE
    unknown = values.alone.epistemic - values.with_labels.aleatoric
    surprise = values.with_labels.aleatoric - values.alone.predictive
    found: dict[Agreeing, int | None] = {
        "people": _first(study, values.agreed, unknown, _another_answer(study)),
        "model": _first(study, judged & ~values.agreed & (surprise > 0), surprise, _sure),
    }
    return {who: row for who, row in found.items() if row is not None}


def _another_answer(study: Study) -> Fits:
    def fits(rows: Index, calibrated: Array) -> Mask:
        return np.asarray(calibrated.argmax(axis=1) != study.labels(rows).argmax(axis=1))

    return fits


def _sure(_: Index, calibrated: Array) -> Mask:
    return np.asarray(calibrated.max(axis=1) >= SURE)


def _first(study: Study, among: Mask, scores: Array, fits: Fits) -> int | None:
    """Return the row with the largest score that fits, of equals the first."""
    rows = np.flatnonzero(among)
    rows = rows[np.argsort(-scores[rows], kind="stable")[:CANDIDATES]]
    if not len(rows):
        return None
    fitting = fits(rows, study.calibrator.predict_proba(**study.given.of(rows)))
    return int(rows[fitting][0]) if fitting.any() else None
