"""What to do next: how many labels to collect, and for how many items."""

from hocal.decisions.budget import BudgetPlan, plan_budget
from hocal.decisions.planning import interval_width, items_needed

__all__ = ["BudgetPlan", "interval_width", "items_needed", "plan_budget"]
