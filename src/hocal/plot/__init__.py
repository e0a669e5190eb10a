"""Pictures of uncertainty and of what can be said about it, in scikit-learn's style.

A display is made by `from_estimator` or `from_predictions`, holds the numbers, and draws them when
``plot(ax=...)`` is called. Nothing global in matplotlib changes: without an `ax`, a display makes a
figure that pyplot does not know.

- `UncertaintyMapDisplay`: aleatoric against epistemic uncertainty, one point per item
- `ReliabilityDisplay`: predicted against observed uncertainty, one point per cell
- `EntropyDistributionDisplay`: predicted against observed entropies inside a few cells
- `LabelCurveDisplay`: error of aleatoric uncertainty against the number of labels
- `MixtureDisplay`: one mixture on the simplex
- `CertificateDisplay`: certified intervals of the cells, and their widths
- `PredictionSetDisplay`: the label distributions that a prediction set holds
- `CoverageDisplay`: how often prediction sets hold what people said
- `EvidenceDisplay`: evidence of a monitor for a change, item by item
- `RiskCoverageDisplay`: mean loss for each share of the items that is answered
"""

from __future__ import annotations

from hocal.plot.certificate import CertificateDisplay
from hocal.plot.coverage import CoverageDisplay
from hocal.plot.entropy_distribution import EntropyDistributionDisplay
from hocal.plot.evidence import EvidenceDisplay
from hocal.plot.label_curve import LabelCurve, LabelCurveDisplay
from hocal.plot.mixture import MixtureDisplay
from hocal.plot.prediction_set import PredictionSetDisplay
from hocal.plot.reliability import ReliabilityDisplay
from hocal.plot.risk_coverage import RiskCoverageDisplay
from hocal.plot.uncertainty_map import UncertaintyMapDisplay

__all__ = [
    "CertificateDisplay",
    "CoverageDisplay",
    "EntropyDistributionDisplay",
    "EvidenceDisplay",
    "LabelCurve",
    "LabelCurveDisplay",
    "MixtureDisplay",
    "PredictionSetDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "UncertaintyMapDisplay",
]
