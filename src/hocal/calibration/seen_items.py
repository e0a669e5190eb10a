"""Know the items of a fit again, so that their labels are neither counted twice nor held out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hocal._base.fingerprints import Fingerprints, find
from hocal._base.typing import Counts, Index, Mask
from hocal.calibration.inputs import GivenItems

__all__ = ["SeenItems", "look_of"]

SURELY_SOME = 10.0  # expected, of which none is seen once in twenty thousand times
DEVIATIONS = 3.0  # above what chance brings: once in a thousand times
# Items that were not fitted: as many tell a miscalibration of a tenth; with fewer, all are measured
# and the figures are called training.
FEWEST_FRESH = 50


class SeenItems(NamedTuple):
    """What tells the items of a fit from new ones; nothing after a fit on statistics."""

    fingerprints: Fingerprints  #: (n_items,) sorted, of all that is known; for mixtures of items
    folds: Index  #: (n_items,) of the same items
    inputs: Fingerprints  #: (n_items,) sorted, of predictions and features without labels

    @classmethod
    def none(cls) -> SeenItems:
        """Know no item."""
        nothing = np.empty(0, dtype=np.uint64)
        return cls(nothing, np.empty(0, dtype=np.intp), nothing)

    @classmethod
    def of(
        cls, given: GivenItems, labels: Counts, folds: Index, cells: Index | None = None
    ) -> SeenItems:
        """Know items that were fitted in folds; `cells` where these came with the items."""
        prints = look_of(given, labels, cells)
        order = np.argsort(prints, kind="stable")
        return cls(prints[order], folds[order], np.sort(given.fingerprints()))

    @classmethod
    def without_labels(cls, given: GivenItems) -> SeenItems:
        """Know items by their predictions alone."""
        return cls.none()._replace(inputs=np.sort(given.fingerprints()))

    def folds_of(self, fingerprints: Fingerprints) -> Index:
        """Return the fold of each item, -1 for one that was not in the fit."""
        if not len(self.fingerprints):
            return np.full(len(fingerprints), -1, dtype=np.intp)
        place = find(fingerprints, self.fingerprints)
        return np.where(place >= 0, self.folds[place], -1)

    def recognise(
        self, given: GivenItems, labels: Counts | None = None, cells: Index | None = None
    ) -> Mask:
        """Tell which items were in the fit, with these labels or with others.

        An item is known by its prediction, or by its prediction and labels, where no other item of
        the fit and none of the given ones has the same, and such matches are more than chance.
        Where many items share a prediction, as with a few answers of a judge, they are known only
        if all of them are those of the fit.
        """
        known = _recognise(given.fingerprints(), self.inputs)
        if labels is None or not len(self.fingerprints):
            return known
        return known | _recognise(look_of(given, labels, cells), self.fingerprints)


def look_of(given: GivenItems, labels: Counts, cells: Index | None) -> Fingerprints:
    """Return what items are known by with their labels, and with cells that came with them.

    Cells that predictions have tell no more than these.
    """
    return given.fingerprints(labels, *(() if cells is None else (cells[:, None],)))


def _recognise(prints: Fingerprints, fitted: Fingerprints) -> Mask:
    """Tell which fingerprints are those of fitted items, and not of new ones that look alike.

    By Good and Turing, a new item looks like none of the fit with a chance of N1 / n, and like one
    that is alone there with a chance of 2 N2 / n, where N1 and N2 looks occur once and twice in the
    fit of n items.
    """
    if not len(fitted) or not len(prints):
        return np.zeros(len(prints), dtype=bool)
    looks, times = np.unique(fitted, return_counts=True)
    place = find(prints, looks)
    times_there = np.where(place >= 0, times[place], 0)
    n_unlike = len(prints) * (times == 1).sum() / len(fitted)
    same = len(prints) == len(fitted) and np.array_equal(np.sort(prints), fitted)
    if same or (n_unlike >= SURELY_SOME and times_there.all()):
        return np.ones(len(prints), dtype=bool)
    _, own, times_here = np.unique(prints, return_inverse=True, return_counts=True)
    alone = (times_there == 1) & (times_here[own] == 1)
    by_chance = len(prints) * 2 * (times == 2).sum() / len(fitted)
    beyond_chance = alone.sum() > by_chance + DEVIATIONS * np.sqrt(by_chance)
    return np.asarray(alone & beyond_chance)
