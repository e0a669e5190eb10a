"""The uncertainty of each predicted class: its items, what they hold, what they lose."""

from __future__ import annotations

import numpy as np

from hocal._base.typing import Array, Index, IntArray
from hocal.report.headroom import Gained, describe_gains
from hocal.report.schema import PredictedClass
from hocal.report.study import Study, number

__all__ = ["describe_classes"]

MAX_ROWS = 300  # classes that a page still shows and sorts without delay


def describe_classes(study: Study, gained: Gained | None) -> list[PredictedClass]:
    """Return a row for each class that the model predicts, the most uncertain in total first."""
    top = study.probabilities.argmax(axis=1)
    n_items = np.bincount(top, minlength=len(study.classes))
    parts = study.values.alone.as_dict()
    sums = {name: _sum(values, top, len(n_items)) for name, values in parts.items()}
    predicted = np.flatnonzero(n_items)
    most_first = predicted[np.argsort(-sums["predictive"][predicted], kind="stable")]
    return [_row(study, gained, int(i), n_items, sums) for i in most_first[:MAX_ROWS]]


def _row(
    study: Study, gained: Gained | None, place: int, n_items: IntArray, sums: dict[str, Array]
) -> PredictedClass:
    part = None if gained is None else gained.per_class.get(place)
    own = int(n_items[place])
    return {
        "name": study.classes[place],
        "n_items": own,
        "share": number(own / n_items.sum()),
        "predictive": number(sums["predictive"][place] / own),
        "aleatoric": number(sums["aleatoric"][place] / own),
        "epistemic": number(sums["epistemic"][place] / own),
        "aleatoric_share": _share(sums["aleatoric"], place),
        "epistemic_share": _share(sums["epistemic"], place),
        "n_measured": 0 if part is None else part.n_items,
        "gains": None if part is None else describe_gains(part),
    }


def _sum(values: Array, groups: Index, n_groups: int) -> Array:
    return np.bincount(groups, values, n_groups).astype(np.float64)


def _share(sums: Array, place: int) -> float:
    """Return what a class holds of the sum over all items; 0 where there is nothing to share."""
    total = sums.sum()
    return number(sums[place] / total) if total > 0 else 0.0
