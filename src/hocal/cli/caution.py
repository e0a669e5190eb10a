"""What a reader must know before trusting numbers: fitted items, estimates outside their limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hocal._base.plurals import counted
from hocal.cli.messages import note

if TYPE_CHECKING:
    from hocal import Certificate, SnapshotCalibrator
    from hocal.cli.items import MatchedItems


class TestItems(NamedTuple):
    """The items to measure a model on."""

    items: MatchedItems
    n_fitted: int  #: of the given ones, those that the model was fitted on
    training: bool  #: whether such are among those measured


def take_fresh(calibrator: SnapshotCalibrator, items: MatchedItems) -> TestItems:
    """Return the items that a model was not fitted on, or all of them where these are too few."""
    import numpy as np

    from hocal.calibration.calibrator_state import recognise_fitted
    from hocal.calibration.seen_items import FEWEST_FRESH

    p, cells, features = items.given
    where = calibrator.locate(p, cells).cells
    fresh = np.flatnonzero(~recognise_fitted(calibrator, p, features, where, items.counts))
    n_fitted = len(items.items) - len(fresh)
    training = n_fitted > 0 and len(fresh) < FEWEST_FRESH
    fitted = f"{counted(n_fitted, 'item')} of {len(items.items)}"
    if training:
        note(
            f"The model was fitted on {fitted}: these are training figures, on which any model "
            "looks good. Evaluate on items that were not used to fit."
        )
    elif n_fitted:
        note(f"The model was fitted on {fitted}: they are left out.")
    return TestItems(items.take(fresh) if n_fitted and not training else items, n_fitted, training)


def cells_outside(certificate: Certificate) -> list[int]:
    """Return the cells whose aleatoric estimate lies outside limits that say something."""
    proved = (certificate.n_items > 0) & ~certificate.vacuous("aleatoric")
    cells: list[int] = (proved & ~certificate.inside("aleatoric")).nonzero()[0].tolist()
    return cells


def warn_outside(cells: list[int]) -> None:
    """Say what to do about estimates outside their limits."""
    from hocal.guarantees.promises import OUTSIDE

    if cells:
        numbers = ", ".join(map(str, cells[:5])) + (", ..." if len(cells) > 5 else "")
        where = f"{counted(len(cells), 'cell')} ({numbers})"
        note(f"The aleatoric estimate lies outside its limits in {where}. {OUTSIDE}")
