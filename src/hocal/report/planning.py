"""What more labels would bring: narrower certificates of the largest cells, and how to spend a new budget."""

from __future__ import annotations

from typing import Any

import numpy as np

from hocal.decisions.budget import plan_budget
from hocal.decisions.planning import interval_width
from hocal.report.schema import Planning, WidthRow
from hocal.report.study import Study, number

__all__ = ["describe_planning"]

N_CELLS = 5
MAX_BUDGET = 10_000  # labels of the simulated study: seconds
SIZES = (2, 3, 5, 10)  # labels an item that are tried
N_SIMULATIONS = 3


def describe_planning(study: Study, random_state: Any) -> Planning:
    """Foretell what more labels would bring to the cells with most items, and how best to spend a budget."""
    certified = np.where(study.certificate.n_items > 0, study.n_items, 0)
    largest = np.argsort(-certified, kind="stable")[:N_CELLS]
    budget = min(int(study.calibrator.statistics_.n_labels.sum()), MAX_BUDGET)
    sizes = [size for size in SIZES if size <= budget]
    plan = plan_budget(
        study.calibrator,
        budget,
        k=sizes or (1,),
        n_simulations=N_SIMULATIONS,
        random_state=random_state,
    )
    return {
        "widths": [_widths(study, int(cell)) for cell in largest if certified[cell]],
        "budget": budget,
        "splits": [
            {
                "k": row.k,
                "n_items": row.n_items,
                "error": number(row.error),
                "standard_error": number(row.standard_error),
            }
            for row in plan.rows
        ],
        "best_k": plan.best.k,
    }


def _widths(study: Study, cell: int) -> WidthRow:
    n_items = int(study.certificate.n_items[cell])
    k = round(study.calibrator.statistics_.n_labels[cell] / n_items)
    lower, upper = study.certificate.interval("aleatoric")
    now = float(upper[cell] - lower[cell])
    mixture = study.calibrator.cell_mixtures_[[cell]]

    def foretold(n_items: int, k: int) -> float:
        # More labels never widen a certificate; the forecast is of a typical sample, and this one
        # may be lucky.
        width = interval_width(
            n_items, k=k, mixture=mixture, confidence=study.certificate.confidence
        )
        return number(min(width, now))

    return {
        "name": study.name(cell),
        "n_items": n_items,
        "k": k,
        "now": number(now),
        "twice_items": foretold(2 * n_items, k),
        "four_times_items": foretold(4 * n_items, k),
        "twice_labels": foretold(n_items, 2 * k),
    }
