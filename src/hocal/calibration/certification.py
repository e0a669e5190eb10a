"""Certificates of a fitted calibrator: what its cells and level sets are compared with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hocal._base.typing import Index
from hocal.calibration.by_cell.fitting import fit_deconvolved
from hocal.calibration.levels import LevelSets
from hocal.cells.statistics import CellStatistics
from hocal.guarantees import certificates
from hocal.guarantees.certificates import Certificate
from hocal.uncertainty.mixtures import Mixtures

__all__ = ["certified_mixtures", "certify_levels"]

_CROSS_FITTED = (
    "Level sets were learned from the labels of other folds: an item's own labels had no part in "
    "where it is."
)


def certified_mixtures(
    mixtures: Mixtures, class_orders: Index, statistics: CellStatistics
) -> Mixtures:
    """Return the mixtures of the cells over classes in the order of the predictions alone.

    An order that labels chose would not do: an interval is about a quantity that was fixed
    before its labels were seen.
    """
    if (class_orders < 0).all():
        return mixtures
    return fit_deconvolved(statistics).mixtures()


def certify_levels(levels: LevelSets, by: str, options: dict[str, Any]) -> Certificate:
    """Say what labels prove about level sets, whose names say what was predicted in them."""
    fit = fit_deconvolved(levels.statistics)
    certificate = certificates.certify(
        levels.statistics, fit.mixtures(), aligned=True, source=fit.source, **options
    )
    assumptions = (*certificate.assumptions, _CROSS_FITTED)
    return replace(certificate, names=levels.names(by), assumptions=assumptions)
