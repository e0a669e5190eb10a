"""What the uncertainty is made of: its parts, their spread over the items, and the map of cells."""

from __future__ import annotations

import math

import numpy as np

from hocal._base.typing import Array, Index, IntArray
from hocal.report.schema import Distribution, MapPoint, Parts
from hocal.report.study import Study, number

__all__ = ["describe_parts"]

MAX_POINTS = 250  # cells drawn one by one; more are gathered in squares
N_SQUARES = 40  # along each axis of the map
N_BINS = 24  # of the histograms


def describe_parts(study: Study) -> Parts:
    """Return the parts of the uncertainty, as means, spreads, histograms and a map."""
    used = study.used
    n_items = study.n_items[used]
    aleatoric = study.aleatoric[used]
    epistemic = study.epistemic[used]
    predictive = _spread(study.predictive[used], n_items)
    top = max(float(aleatoric.max()), float(epistemic.max()), 1e-6)
    edges = np.linspace(0, top, N_BINS + 1)
    histograms = [
        np.histogram(values, edges, weights=n_items)[0].astype(int)
        for values in (aleatoric, epistemic)
    ]
    spread = _spread(epistemic, n_items)
    return {
        "predictive": predictive,
        "aleatoric": _spread(aleatoric, n_items),
        "epistemic": spread,
        "epistemic_share": number(spread["mean"] / predictive["mean"])
        if predictive["mean"] > 0
        else None,
        "maximum": number(math.log(len(study.classes))),
        "edges": [number(edge) for edge in edges],
        "aleatoric_histogram": histograms[0].tolist(),
        "epistemic_histogram": histograms[1].tolist(),
        "map": _map(study, used) if len(used) <= MAX_POINTS else _squares(study, used, top),
    }


def _spread(values: Array, n_items: IntArray) -> Distribution:
    low, median, high = np.quantile(values, [0.1, 0.5, 0.9], weights=n_items, method="inverted_cdf")
    return {
        "mean": number(np.average(values, weights=n_items)),
        "low": number(low),
        "median": number(median),
        "high": number(high),
        "maximum": number(values.max()),
    }


def _map(study: Study, used: Index) -> list[MapPoint]:
    """Return a point for each cell, the largest first so that small ones are drawn on top."""
    largest_first = used[np.argsort(-study.n_items[used], kind="stable")]
    return [
        {
            "name": study.name(cell),
            "n_cells": 1,
            "n_items": int(study.n_items[cell]),
            "aleatoric": number(study.aleatoric[cell]),
            "epistemic": number(study.epistemic[cell]),
            "standing": study.standing(cell),
        }
        for cell in largest_first
    ]


def _squares(study: Study, used: Index, top: float) -> list[MapPoint]:
    """Return a point for each square of the map that holds cells: the mean of their items."""
    across, up = (
        np.minimum((values[used] / top * N_SQUARES).astype(int), N_SQUARES - 1)
        for values in (study.aleatoric, study.epistemic)
    )
    _, square = np.unique(across * N_SQUARES + up, return_inverse=True)
    points = [_gather(study, used[square == i]) for i in range(int(square.max()) + 1)]
    return sorted(points, key=lambda point: -point["n_items"])


def _gather(study: Study, cells: Index) -> MapPoint:
    n_items = study.n_items[cells]
    return {
        "name": study.name(cells[0]) if len(cells) == 1 else f"{len(cells)} cells",
        "n_cells": len(cells),
        "n_items": int(n_items.sum()),
        "aleatoric": number(np.average(study.aleatoric[cells], weights=n_items)),
        "epistemic": number(np.average(study.epistemic[cells], weights=n_items)),
        "standing": study.standing(cells[n_items.argmax()]),
    }
