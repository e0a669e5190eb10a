"""What to do next: what is left to gain, which model is better, how many labels to collect."""

from hocal.decisions.budget import BudgetPlan, plan_budget
from hocal.decisions.comparison import ClassDifference, Comparison, compare
from hocal.decisions.gains import Headroom, HeadroomPart, headroom
from hocal.decisions.planning import interval_width, items_needed

__all__ = [
    "BudgetPlan",
    "ClassDifference",
    "Comparison",
    "Headroom",
    "HeadroomPart",
    "compare",
    "headroom",
    "interval_width",
    "items_needed",
    "plan_budget",
]
