"""What the uncertainty is made of: its parts, their spread over items, and the map of cells."""

from __future__ import annotations

import math

import numpy as np

from hocal._base.typing import Array, Index, IntArray
from hocal.report.schema import Distribution, MapPoint, Parts, Step
from hocal.report.study import Study, number

__all__ = ["describe_parts", "spread", "steps"]

MAX_POINTS = 250  # cells drawn one by one; more are gathered in squares
N_SQUARES = 40  # along each axis of the map
MAX_STEPS = 1000  # of a staircase: each is a third of a pixel where the drawing is 320 high
SMALLEST_TOP = 1e-6  # nats: the end of an axis along which everything is 0


def describe_parts(study: Study) -> Parts:
    """Return the parts of the uncertainty, as means, spreads, staircases and a map.

    All but the map are about single items, whose own labels are left out: this is what the model
    says.
    """
    used = study.used
    parts = study.values.alone
    predictive_spread = spread(parts.predictive)
    epistemic_spread = spread(parts.epistemic)
    return {
        "predictive": predictive_spread,
        "aleatoric": spread(parts.aleatoric),
        "epistemic": epistemic_spread,
        "epistemic_share": _ratio(epistemic_spread["mean"], predictive_spread["mean"]),
        "maximum": number(math.log(len(study.classes))),
        "aleatoric_steps": steps(parts.aleatoric),
        "epistemic_steps": steps(parts.epistemic),
        "map": _map(study, used) if len(used) <= MAX_POINTS else _squares(study, used),
    }


def _ratio(part: float, whole: float) -> float | None:
    return number(part / whole) if whole > 0 else None


def spread(values: Array) -> Distribution:
    """Return how a number is spread over items."""
    low, median, high = np.quantile(values, [0.1, 0.5, 0.9], method="inverted_cdf")
    return {
        "mean": number(values.mean()),
        "low": number(low),
        "median": number(median),
        "high": number(high),
        "maximum": number(values.max()),
    }


def steps(values: Array) -> list[Step]:
    """Return each value that occurs with the share of items that have at least as much, rising.

    Values keep all their digits: rounded up, the largest would be one that no item has. Of more
    values than a drawing can show, those stay at which the share of items falls below a further
    thousandth, so that a staircase through them is nowhere further than that from the truth.
    """
    distinct, n_there = np.unique(values, return_counts=True)
    n_above = np.cumsum(n_there[::-1])[::-1]
    shares = n_above / n_above[0]
    thousandth = np.ceil(MAX_STEPS * shares)
    last = np.append(thousandth[1:] != thousandth[:-1], True)
    last[0] = True  # where the line starts to fall
    kept = np.flatnonzero(last)
    return [(float(distinct[i]), number(shares[i])) for i in kept]


def _map(study: Study, used: Index) -> list[MapPoint]:
    """Return a point for each cell, the largest first so that small ones are drawn on top."""
    facts = study.facts
    largest_first = used[np.argsort(-facts.n_items[used], kind="stable")]
    return [
        {
            "name": facts.names[cell],
            "n_cells": 1,
            "n_items": int(facts.n_items[cell]),
            "aleatoric": number(facts.parts.aleatoric[cell]),
            "epistemic": number(facts.parts.epistemic[cell]),
            "standing": facts.standing(cell),
        }
        for cell in largest_first
    ]


def _squares(study: Study, used: Index) -> list[MapPoint]:
    """Return a point for each square of the map that holds cells: the mean of their items."""
    aleatoric = study.facts.parts.aleatoric[used]
    epistemic = study.facts.parts.epistemic[used]
    top = max(float(aleatoric.max()), float(epistemic.max()), SMALLEST_TOP)
    _, square = np.unique(
        _slot(aleatoric, top) * N_SQUARES + _slot(epistemic, top), return_inverse=True
    )
    points = [_gather(study, used[square == i]) for i in range(int(square.max()) + 1)]
    return sorted(points, key=lambda point: -point["n_items"])


def _slot(values: Array, top: float) -> IntArray:
    """Return the number of the square along an axis from 0 to `top`."""
    slots = (values / top * N_SQUARES).astype(np.int64)
    return np.asarray(np.minimum(slots, N_SQUARES - 1))


def _gather(study: Study, cells: Index) -> MapPoint:
    facts = study.facts
    n_items = facts.n_items[cells]
    return {
        "name": facts.names[cells[0]] if len(cells) == 1 else f"{len(cells)} cells",
        "n_cells": len(cells),
        "n_items": int(n_items.sum()),
        "aleatoric": number(np.average(facts.parts.aleatoric[cells], weights=n_items)),
        "epistemic": number(np.average(facts.parts.epistemic[cells], weights=n_items)),
        "standing": facts.standing(int(cells[n_items.argmax()])),
    }
