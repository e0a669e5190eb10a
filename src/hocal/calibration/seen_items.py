"""Know the items of a fit again, so that their labels are not counted twice."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hocal._base.fingerprints import Fingerprints, find, fingerprint
from hocal._base.typing import Counts, Index
from hocal.calibration.inputs import GivenItems

__all__ = ["SeenItems", "item_fingerprints"]


class SeenItems(NamedTuple):
    """What tells the items of a fit from new ones."""

    fingerprints: Fingerprints  #: (n_items,) sorted
    folds: Index  #: (n_items,) of the same items

    @classmethod
    def none(cls) -> SeenItems:
        """Know no item."""
        return cls(np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.intp))

    def folds_of(self, fingerprints: Fingerprints) -> Index:
        """Return the fold of each item, -1 for one that was not in the fit."""
        if not len(self.fingerprints):
            return np.full(len(fingerprints), -1, dtype=np.intp)
        place = find(fingerprints, self.fingerprints)
        return np.where(place >= 0, self.folds[place], -1)


def item_fingerprints(given: GivenItems, labels: Counts) -> Fingerprints:
    """Return what an item is known by: all of its prediction, its features and its labels."""
    known = [given.members] if given.features is None else [given.members, given.features]
    return fingerprint(*known, labels)
