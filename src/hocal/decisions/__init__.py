"""What to do next: what is left to gain, which model is better, which labels to collect, shift."""

from hocal.decisions.budget import BudgetPlan, plan_budget
from hocal.decisions.class_shares import class_bias
from hocal.decisions.comparison import ClassDifference, Comparison, compare
from hocal.decisions.familiarity import Familiarity, familiarity
from hocal.decisions.gains import Headroom, HeadroomPart, headroom
from hocal.decisions.monitoring import EvidencePath, Finding, Monitor
from hocal.decisions.planning import interval_width, items_needed
from hocal.decisions.purchases import NextLabels, next_labels
from hocal.decisions.refusal import Refusal, RefusalCost, refusal_rule
from hocal.decisions.selective import RiskCoverage, risk_coverage
from hocal.decisions.standing_in import PersonAdvantage, StandIn, stand_in

__all__ = [
    "BudgetPlan",
    "ClassDifference",
    "Comparison",
    "EvidencePath",
    "Familiarity",
    "Finding",
    "Headroom",
    "HeadroomPart",
    "Monitor",
    "NextLabels",
    "PersonAdvantage",
    "Refusal",
    "RefusalCost",
    "RiskCoverage",
    "StandIn",
    "class_bias",
    "compare",
    "familiarity",
    "headroom",
    "interval_width",
    "items_needed",
    "next_labels",
    "plan_budget",
    "refusal_rule",
    "risk_coverage",
    "stand_in",
]
