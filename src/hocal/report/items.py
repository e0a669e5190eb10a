"""The items of a report: those that stand out, and what the model and people said of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hocal._base.typing import Array, Index, IntArray
from hocal.report.contrast import pick_contrast
from hocal.report.schema import Card, Contrast, Gallery, Image, ItemParts, ItemRow, Standing, Text
from hocal.report.study import Study, number
from hocal.uncertainty.decomposition import Decomposition

__all__ = ["describe_contrast", "describe_galleries", "describe_items"]

SHOWN_CLASSES = 3  # of an item's labels; more do not fit in a row

STANDINGS: tuple[Standing, ...] = ("epistemic", "aleatoric")


def describe_items(study: Study, names: Any, n_listed: int) -> list[ItemRow]:
    """Return the items that stand out, at most `n_listed` in each kind of uncertainty."""
    rows = np.concatenate([_pick(study, standing, n_listed) for standing in STANDINGS])
    return _rows(study, rows, names)


def describe_galleries(
    study: Study,
    names: Any,
    n_gallery: int,
    image: Callable[[int], Image | None],
    text: Callable[[int], Text | None],
) -> list[Gallery]:
    """Return one gallery of the most epistemic items and one of the most aleatoric ones."""
    galleries: list[Gallery] = []
    for standing in STANDINGS:
        rows = _rows(study, _pick(study, standing, n_gallery), names)
        cards: list[Card] = [
            {"item": row, "image": image(row["row"]), "text": text(row["row"])} for row in rows
        ]
        n_items = int(study.values.listed(standing).sum())
        galleries.append({"standing": standing, "n_items": n_items, "cards": cards})
    return galleries


def describe_contrast(
    study: Study,
    names: Any,
    image: Callable[[int], Image | None],
    text: Callable[[int], Text | None],
) -> list[Contrast]:
    """Return an item on which people agree and the model does not, and one the other way round."""
    picked = pick_contrast(study)
    rows = _rows(study, np.array(list(picked.values()), dtype=np.intp), names)
    cards: list[Card] = [
        {"item": row, "image": image(row["row"]), "text": text(row["row"])} for row in rows
    ]
    return [{"agree": who, "card": card} for who, card in zip(picked, cards, strict=True)]


def _pick(study: Study, standing: Standing, n_wanted: int) -> Index:
    """Return the items that stand out most; of equals the least certain predictions come first."""
    rows = np.flatnonzero(study.values.listed(standing))
    scores = study.values.score(standing)[rows]
    n_kept = min(n_wanted, len(rows))
    if not n_kept:
        return np.empty(0, dtype=np.intp)
    least = np.partition(scores, len(rows) - n_kept)[len(rows) - n_kept]
    rows = rows[scores >= least]  # with all equals of the last
    scores = study.values.score(standing)[rows]
    entropy = special.entr(study.probabilities[rows]).sum(axis=1)
    order = np.lexsort([-entropy, -scores])
    return np.asarray(rows[order[:n_kept]])


def _rows(study: Study, rows: Index, names: Any) -> list[ItemRow]:
    if not len(rows):
        return []
    calibrated = study.calibrator.predict_proba(**study.given.of(rows))
    labels = study.labels(rows)
    return [
        _row(study, int(row), names, mean, counts)
        for row, mean, counts in zip(rows, calibrated, labels, strict=True)
    ]


def _row(study: Study, row: int, names: Any, calibrated: Array, counts: IntArray) -> ItemRow:
    p = study.probabilities[row]
    cell = int(study.cells[row])
    top = int(p.argmax())
    n_labels = int(counts.sum())
    labels = [(name, int(n)) for name, n in _largest(study, counts)]
    values = study.values
    return {
        "item": str(row if names is None else names[row]),
        "row": row,
        "cell": cell,
        "cell_name": study.facts.names[cell],
        "prediction": study.classes[top],
        "probability": number(p[top]),
        "calibrated": [(name, number(share)) for name, share in _largest(study, calibrated)],
        "labels": labels if n_labels else None,
        "n_labels": n_labels,
        "agreed": bool(values.agreed[row]),
        **_parts(values.with_labels, row),
        "alone": _parts(values.alone, row),
        "standing": values.standing(row),
    }


def _parts(parts: Decomposition, row: int) -> ItemParts:
    return {
        "predictive": number(parts.predictive[row]),
        "aleatoric": number(parts.aleatoric[row]),
        "epistemic": number(parts.epistemic[row]),
    }


def _largest(study: Study, values: NDArray[Any]) -> list[tuple[str, float]]:
    """Return up to three classes with their positive values, the largest first."""
    order = np.argsort(-values, kind="stable")[:SHOWN_CLASSES]
    return [(study.classes[j], float(values[j])) for j in order if values[j] > 0]
