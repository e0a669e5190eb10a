"""The items of a report: those that stand out, a few of each cell, with what people and the model said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hocal._base.typing import Array, Index
from hocal.report.schema import Card, Gallery, Image, ItemRow, Standing, Text
from hocal.report.study import Study, number

__all__ = ["describe_galleries", "describe_items"]

N_ROUNDS = 6  # a list takes a sixth of its items from one cell before it turns to the next
SHOWN_CLASSES = 3

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
        mine = study.stands_out == (standing == "epistemic")
        galleries.append(
            {"standing": standing, "n_items": int(study.n_items[mine].sum()), "cards": cards}
        )
    return galleries


def _pick(study: Study, standing: Standing, n_wanted: int) -> Index:
    """Return items of the cells that stand out most, in turns, the least sure predictions of a cell first.

    Items of a cell share their uncertainty, so a list by uncertainty alone would show one cell
    only.
    """
    used = study.used[study.stands_out[study.used] == (standing == "epistemic")]
    score = study.epistemic if standing == "epistemic" else study.aleatoric
    cells = used[np.argsort(-score[used], kind="stable")]
    by_cell = np.argsort(study.cells, kind="stable")
    ends = np.cumsum(study.n_items)
    nothing = [np.empty(0, dtype=np.intp)]
    members = [
        _least_sure_first(study, by_cell[ends[cell] - study.n_items[cell] : ends[cell]])
        for cell in cells
    ]
    turns = [np.arange(len(rows)) // max(n_wanted // N_ROUNDS, 1) for rows in members]
    in_turns = np.argsort(
        np.concatenate(nothing + turns), kind="stable"
    )  # within a turn, cell by cell
    return np.concatenate(nothing + members)[in_turns[:n_wanted]]


def _least_sure_first(study: Study, rows: Index) -> Index:
    entropy = special.entr(study.probabilities[rows]).sum(axis=1)
    return rows[np.argsort(-entropy, kind="stable")]


def _rows(study: Study, rows: Index, names: Any) -> list[ItemRow]:
    if not len(rows):
        return []
    cells = None if study.given_cells is None else study.given_cells[rows]
    calibrated = study.calibrator.predict_proba(study.probabilities[rows], cells=cells)
    return [_row(study, int(row), names, mean) for row, mean in zip(rows, calibrated, strict=True)]


def _row(study: Study, row: int, names: Any, calibrated: Array) -> ItemRow:
    p = study.probabilities[row]
    cell = int(study.cells[row])
    top = int(p.argmax())
    counts = study.labels(np.array([row]))[0]
    n_labels = int(counts.sum())
    return {
        "item": str(row if names is None else names[row]),
        "row": row,
        "cell": cell,
        "cell_name": study.name(cell),
        "prediction": study.classes[top],
        "probability": number(p[top]),
        "calibrated": [(name, number(share)) for name, share in _largest(study, calibrated)],
        "labels": [(name, int(n)) for name, n in _largest(study, counts)] if n_labels else None,
        "n_labels": n_labels,
        "predictive": number(study.predictive[cell]),
        "aleatoric": number(study.aleatoric[cell]),
        "epistemic": number(study.epistemic[cell]),
        "standing": study.standing(cell),
    }


def _largest(study: Study, values: NDArray[Any]) -> list[tuple[str, float]]:
    """Return up to three classes with their positive values, the largest first."""
    order = np.argsort(-values, kind="stable")[:SHOWN_CLASSES]
    return [(study.classes[j], float(values[j])) for j in order if values[j] > 0]
