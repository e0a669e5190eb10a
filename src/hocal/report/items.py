"""The items of a report: those that stand out, a few of each cell, and what was said of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hocal._base.typing import Array, Index, IntArray, Mask
from hocal.report.schema import Card, Gallery, Image, ItemRow, Standing, Text
from hocal.report.study import Study, number

__all__ = ["describe_galleries", "describe_items"]

N_ROUNDS = 6  # a list takes a sixth of its items from one cell before it turns to the next
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
        n_items = int(study.facts.n_items[_stands_out(study, standing)].sum())
        galleries.append({"standing": standing, "n_items": n_items, "cards": cards})
    return galleries


def _stands_out(study: Study, standing: Standing) -> Mask:
    """Tell which cells stand out in one kind of uncertainty."""
    epistemic = study.facts.stands_out
    return epistemic if standing == "epistemic" else ~epistemic


def _pick(study: Study, standing: Standing, n_wanted: int) -> Index:
    """Return items of the cells that stand out most, in turns, the least certain of a cell first.

    Items of a cell share their uncertainty, so a list by uncertainty alone would show one cell
    only.
    """
    members = [_least_sure_first(study, rows) for rows in _rows_by_cell(study, standing)]
    if not members:
        return np.empty(0, dtype=np.intp)
    per_turn = max(n_wanted // N_ROUNDS, 1)
    turns = [np.arange(len(rows)) // per_turn for rows in members]
    in_turns = np.argsort(np.concatenate(turns), kind="stable")  # within a turn, cell by cell
    return np.concatenate(members)[in_turns[:n_wanted]]


def _rows_by_cell(study: Study, standing: Standing) -> list[Index]:
    """Return the items of each cell that stands out, the most uncertain cell first."""
    facts = study.facts
    used = study.used[_stands_out(study, standing)[study.used]]
    score = facts.parts.epistemic if standing == "epistemic" else facts.parts.aleatoric
    cells = used[np.argsort(-score[used], kind="stable")]
    by_cell = np.argsort(study.cells, kind="stable")
    ends = np.cumsum(facts.n_items)
    starts = ends - facts.n_items
    return [by_cell[starts[cell] : ends[cell]] for cell in cells]


def _least_sure_first(study: Study, rows: Index) -> Index:
    entropy = special.entr(study.probabilities[rows]).sum(axis=1)
    return rows[np.argsort(-entropy, kind="stable")]


def _rows(study: Study, rows: Index, names: Any) -> list[ItemRow]:
    if not len(rows):
        return []
    calibrated = study.calibrator.predict_proba(
        study.probabilities[rows], cells=study.own_cells(rows)
    )
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
    facts = study.facts
    labels = [(name, int(n)) for name, n in _largest(study, counts)]
    return {
        "item": str(row if names is None else names[row]),
        "row": row,
        "cell": cell,
        "cell_name": facts.names[cell],
        "prediction": study.classes[top],
        "probability": number(p[top]),
        "calibrated": [(name, number(share)) for name, share in _largest(study, calibrated)],
        "labels": labels if n_labels else None,
        "n_labels": n_labels,
        "predictive": number(facts.parts.predictive[cell]),
        "aleatoric": number(facts.parts.aleatoric[cell]),
        "epistemic": number(facts.parts.epistemic[cell]),
        "standing": facts.standing(cell),
    }


def _largest(study: Study, values: NDArray[Any]) -> list[tuple[str, float]]:
    """Return up to three classes with their positive values, the largest first."""
    order = np.argsort(-values, kind="stable")[:SHOWN_CLASSES]
    return [(study.classes[j], float(values[j])) for j in order if values[j] > 0]
