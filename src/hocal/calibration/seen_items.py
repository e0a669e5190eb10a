"""Know the items of a fit again, so that their labels are neither counted twice nor held out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hocal._base.fingerprints import Fingerprints, find, fingerprint
from hocal._base.typing import Counts, Index, Mask
from hocal.calibration.inputs import GivenItems

__all__ = ["SeenItems", "item_fingerprints"]


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
    def of(cls, given: GivenItems, labels: Counts, folds: Index) -> SeenItems:
        """Know items that were fitted in folds."""
        prints = item_fingerprints(given, labels)
        order = np.argsort(prints, kind="stable")
        return cls(prints[order], folds[order], np.sort(_input_fingerprints(given)))

    @classmethod
    def without_labels(cls, given: GivenItems) -> SeenItems:
        """Know items by their predictions alone."""
        return cls.none()._replace(inputs=np.sort(_input_fingerprints(given)))

    def folds_of(self, fingerprints: Fingerprints) -> Index:
        """Return the fold of each item, -1 for one that was not in the fit."""
        if not len(self.fingerprints):
            return np.full(len(fingerprints), -1, dtype=np.intp)
        place = find(fingerprints, self.fingerprints)
        return np.where(place >= 0, self.folds[place], -1)

    def recognise(self, given: GivenItems, labels: Counts | None = None) -> Mask:
        """Tell which items were in the fit, with these labels or with others.

        An item is known by its prediction, or by its prediction and labels, where no other item of
        the fit and none of the given ones has the same. Where many items share a prediction, as
        with a few answers of a judge, they are known only if all of them are those of the fit.
        """
        prints = _input_fingerprints(given)
        known = _known_alone(prints, self.inputs)
        if labels is None or not len(self.fingerprints):
            return known | _all_known(prints, self.inputs)
        with_labels = item_fingerprints(given, labels)
        known |= _known_alone(with_labels, self.fingerprints)
        return known | _all_known(with_labels, self.fingerprints)


def item_fingerprints(given: GivenItems, labels: Counts) -> Fingerprints:
    """Return what an item is known by: all of its prediction, its features and its labels."""
    return fingerprint(*_inputs(given), labels)


def _input_fingerprints(given: GivenItems) -> Fingerprints:
    return fingerprint(*_inputs(given))


def _inputs(given: GivenItems) -> list[np.ndarray]:
    return [given.members] if given.features is None else [given.members, given.features]


def _known_alone(prints: Fingerprints, known: Fingerprints) -> Mask:
    """Tell which fingerprints are among the known ones, once here and once there."""
    if not len(known) or not len(prints):
        return np.zeros(len(prints), dtype=bool)
    once_there, times_there = np.unique(known, return_counts=True)
    _, place, times_here = np.unique(prints, return_inverse=True, return_counts=True)
    once_here = times_here[place] == 1
    return np.asarray(once_here & (find(prints, once_there[times_there == 1]) >= 0))


def _all_known(prints: Fingerprints, known: Fingerprints) -> bool:
    """Tell whether the fingerprints are the known ones, each as often."""
    return len(prints) == len(known) > 0 and np.array_equal(np.sort(prints), known)
