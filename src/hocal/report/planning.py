"""What more labels would bring: narrower certificates, and how to spend a new budget."""

from __future__ import annotations

from typing import Any

import numpy as np

from hocal._base.typing import Index
from hocal.decisions.budget import plan_budget
from hocal.decisions.planning import interval_width
from hocal.report.schema import BudgetRow, Planning, WidthRow
from hocal.report.study import Study, number

__all__ = ["describe_planning"]

N_CELLS = 5  # a forecast takes a good part of a second for each
MAX_BUDGET = 10_000  # labels of the simulated study: seconds
# Labels times cells of the simulated study: with thousands of cells each fit takes seconds.
MAX_WORK = 30_000_000
SIZES = (2, 3, 5, 10)  # labels per item that are tried
N_SIMULATIONS = 3  # the fewest that show a spread in seconds


def describe_planning(study: Study, random_state: Any) -> Planning:
    """Forecast what more labels would bring to the largest cells, and how to spend a budget."""
    n_labels = int(study.facts.calibration_labels.sum())
    affordable = MAX_WORK // study.calibrator.statistics_.n_cells
    budget = max(min(n_labels, MAX_BUDGET, affordable), 1)
    sizes = [size for size in SIZES if size <= budget]
    plan = plan_budget(
        study.calibrator,
        budget,
        k=sizes or (1,),
        n_simulations=N_SIMULATIONS,
        random_state=random_state,
    )
    splits: list[BudgetRow] = [
        {
            "k": row.k,
            "n_items": row.n_items,
            "error": number(row.error),
            "standard_error": number(row.standard_error),
        }
        for row in plan.rows
    ]
    return {
        "widths": [_widths(study, int(cell)) for cell in _largest_certified(study)],
        "budget": budget,
        "splits": splits,
        "best_k": plan.best.k,
        "near_k": [row.k for row in plan.contenders if row is not plan.best],
    }


def _largest_certified(study: Study) -> Index:
    """Return the cells with most items of the report among those with calibration items."""
    facts = study.facts
    certified = np.where(facts.calibration_items > 0, facts.n_items, 0)
    largest = np.argsort(-certified, kind="stable")[:N_CELLS]
    return largest[certified[largest] > 0]


def _widths(study: Study, cell: int) -> WidthRow:
    facts = study.facts
    n_items = int(facts.calibration_items[cell])
    k = round(facts.calibration_labels[cell] / n_items)
    now = float(facts.aleatoric_limits.upper[cell] - facts.aleatoric_limits.lower[cell])
    mixture = study.calibrator.cell_mixtures_[[cell]]

    def forecast(n_items: int, k: int) -> float:
        # More labels never widen a certificate; the forecast is of a typical sample, and this one
        # may be lucky.
        worth = max(int(n_items / study.certificate.design_effect), 1)
        width = interval_width(worth, k=k, mixture=mixture, confidence=study.certificate.confidence)
        return number(min(width, now))

    return {
        "name": facts.names[cell],
        "n_items": n_items,
        "k": k,
        "now": number(now),
        "twice_items": forecast(2 * n_items, k),
        "four_times_items": forecast(4 * n_items, k),
        "twice_labels": forecast(n_items, 2 * k),
    }
