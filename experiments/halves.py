"""Ask what one pair of halves says: the figures asked of items, on halves like those asked about.

    HOCAL_DATA=... python experiments/halves.py [--resamplings 40] [--jobs 1]

The resolutions that were asked for (`items.py`) were measured on one pair of halves each, and cells
had a figure on the same pair. A pair on which cells explain much is one with much to explain. Over
many pairs the figure of items follows that of cells on a line: at the figure that cells had when
items were asked for, the line says what items reach on such halves, and the spread around it how
sure that is. Only rows that `items.py` misses on average. Ten minutes on one core.
"""

from typing import Any

import numpy as np
from item_scores import calibrate, resolution, split
from items import ROWS, Row
from numpy.typing import NDArray
from protocol import digits, in_parallel, options, store
from real_data import load

MISSED = ("ImageNet-16H vgg19, k = 2", "ImageNet-16H 3 nets, k = 2", "ChaosNLI-S 5 models, k = 5")
KINDS = ("alone", "own")

Array = NDArray[np.float64]


def resample(name: str, k: int, seed: int) -> dict[str, float]:
    """Return the resolution of cells, and of items alone and with own labels, on one pair."""
    parts = split(load(name), k, seed)
    cells, items = (calibrate(parts.fit, method) for method in ("cells", "items"))
    return {
        "cells": resolution(cells, parts)["resolution"],
        "alone": resolution(items, parts)["resolution"],
        "own": resolution(items, parts, parts.own)["resolution"],
    }


def line(cells: Array, items: Array, at: float) -> dict[str, float]:
    """Return what items reach where cells have a given figure, and the spread of single pairs."""
    slope, start = np.polyfit(cells, items, 1)
    spread = np.sqrt(((items - start - slope * cells) ** 2).sum() / (len(items) - 2))
    return {
        "there": digits(start + slope * at),
        "spread": digits(spread),
        "correlation": digits(np.corrcoef(cells, items)[0, 1]),
    }


def judge(row: Row, runs: list[dict[str, float]]) -> dict[str, Any]:
    """Return what was asked beside what items reach on average, and on halves like those."""
    figures = {name: np.array([run[name] for run in runs]) for name in runs[0]}
    cells = figures["cells"]
    found: dict[str, Any] = {
        "cells before": row.before,
        "cells": digits(cells.mean()),
        "pairs as good for cells": digits((cells >= row.before).mean()),
        "first": {name: digits(values[0]) for name, values in figures.items()},
    }
    for kind, asked in zip(KINDS, (row.alone, row.own), strict=True):
        own = figures[kind]
        found[kind] = {"asked": asked, "mean": digits(own.mean())} | line(cells, own, row.before)
    return found


def main() -> None:
    """Compute, store and print."""
    chosen = options(__doc__, resamplings=40).parse_args()
    seeds = range(chosen.resamplings)
    rows = [row for row in ROWS if row.title in MISSED]
    tasks = [(row.name, row.k, seed) for row in rows for seed in seeds]
    runs = iter(in_parallel(resample, tasks, chosen.jobs))
    result = {row.title: judge(row, [next(runs) for _ in seeds]) for row in rows}
    store("halves", {"resamplings": len(seeds), "rows": result})
    for title, found in result.items():
        print(title, found)


if __name__ == "__main__":
    main()
