"""Sets of classes that hold the label of a new person with a stated probability.

The classes of an item are taken by falling predicted probability. The score of a label is the mass
of the classes before it, so a set with more scores allowed is never smaller. How many must be
allowed is read from items with labels (split conformal prediction), each item counting once however
many labels it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.errors import InputError
from hocal._base.typing import Array, Counts, Index, Mask
from hocal._base.validation import check_cells, check_same_length, label_totals
from hocal.uncertainty.distinct_counts import as_dense

__all__ = ["LabelScores", "LabelSets", "choose_labels"]

# Scores are rounded up to this many steps. A rounded score is a score like any other, so nothing is
# lost of the guarantee, and what must be remembered of the items does not grow with their number.
N_STEPS = 4096
_ROUNDING = 1e-9  # of sums of predictions, in steps, and of sums of shares, in items


@dataclass(frozen=True, eq=False, repr=False)
class LabelSets:
    """A set of classes for each item.

    Attributes
    ----------
    members : ndarray of shape (n_items, n_classes)
        Whether a class is in the item's set. The most likely class always is.
    mass : ndarray of shape (n_items,)
        Predicted probability of the set.
    coverage : float
        Asked probability that a set holds the label of a new person.
    threshold : float
        Classes are in a set while those before them have at most this much predicted mass.
    n_calibration : int
        Items whose labels chose the threshold. With 0 the threshold is `coverage` itself, and the
        sets hold what they should only if the predicted probabilities are right.

    Examples
    --------
    >>> import hocal
    >>> mixtures = hocal.Mixtures.from_points([[0.7, 0.2, 0.1], [0.4, 0.3, 0.3]])
    >>> sets = hocal.predict_set(mixtures, kind="labels", coverage=0.8)
    >>> sets.sizes.tolist(), sets.contains([1, 2]).tolist()
    ([2, 3], [True, True])
    """

    members: Mask
    mass: Array
    coverage: float
    threshold: float
    n_calibration: int

    def __len__(self) -> int:
        return len(self.members)

    def __repr__(self) -> str:
        size = f"mean size {self.sizes.mean():.3g} of {self.members.shape[1]} classes"
        return f"LabelSets({len(self)} items, coverage {self.coverage:g}, {size})"

    @property
    def sizes(self) -> Index:
        """Number of classes in each set."""
        return np.asarray(self.members.sum(axis=1))

    def contains(self, labels: ArrayLike) -> Mask:
        """Say for each item whether a label, the number of a class, is in its set."""
        check_same_length(labels, self.members, ("labels", "sets"))
        numbers = check_cells(labels, len(self), n_cells=self.members.shape[1], name="labels")
        return np.asarray(self.members[np.arange(len(self)), numbers])


class LabelScores(NamedTuple):
    """Scores of the labels of calibration items, each item counting once."""

    weights: Array  #: (N_STEPS + 1,) how many items' worth of labels have each score
    n_items: int  #: items

    @classmethod
    def of(cls, means: Array, counts: Counts) -> LabelScores:
        """Score the labels of items by predictions that have not seen them.

        Parameters
        ----------
        means : ndarray of shape (n_items, n_classes)
            Predicted probabilities.
        counts : array or sparse matrix of shape (n_items, n_classes)
            Labels, one or more of each item.
        """
        shares = as_dense(counts) / label_totals(counts)[:, None]
        steps = _steps(means).ravel()
        weights: Array = np.bincount(steps, shares.ravel(), minlength=N_STEPS + 1).astype(float)
        return cls(weights, len(means))

    def threshold(self, coverage: float) -> float:
        """Return the smallest score up to which sets hold a new label with this probability.

        Scores S_ij of labels j of exchangeable items i = 1..n; F_i(t) is the share of item i's
        labels with a score of at most t. The threshold q is the smallest t with F_1(t) + ... +
        F_n(t) >= coverage (n + 1). Let q' be the same with a new item's F_{n+1} added to the sum:
        it is symmetric in all n + 1 items, so E F_{n+1}(q') = E sum_i F_i(q') / (n + 1) >=
        coverage, and q >= q'. A new person's label of the new item is one of its exchangeable
        labels, so the chance that its score is at most q is E F_{n+1}(q) >= coverage: no factor is
        lost by averaging over an item's labels.
        """
        reached = np.cumsum(self.weights)
        enough = np.flatnonzero(reached >= coverage * (self.n_items + 1) - _ROUNDING)
        # Few items cannot vouch for a high coverage: then every class is needed.
        return float(enough[0]) / N_STEPS if len(enough) else 1.0


def choose_labels(means: Array, coverage: float, scores: LabelScores | None) -> LabelSets:
    """Return the classes of each item that are needed for a coverage.

    Parameters
    ----------
    means : ndarray of shape (n_items, n_classes)
        Predicted probabilities.
    coverage : float
        Asked probability.
    scores : LabelScores, optional
        Those of calibration items; without them the predicted probabilities are believed.
    """
    if scores is None:
        members = ~(mass_before(means) >= coverage - _ROUNDING)
        threshold = coverage
    else:
        threshold = scores.threshold(coverage)
        members = _steps(means) <= round(threshold * N_STEPS)
    mass = np.where(members, means, 0).sum(axis=1)
    n_calibration = 0 if scores is None else scores.n_items
    return LabelSets(members, mass, coverage, threshold, n_calibration)


def mass_before(means: Array) -> Array:
    """Return the predicted mass of the classes before each class, NaN for an item without any."""
    order = np.argsort(-means, axis=1, kind="stable")
    falling = np.take_along_axis(means, order, axis=1)
    result = np.empty_like(means)
    np.put_along_axis(result, order, np.cumsum(falling, axis=1) - falling, axis=1)
    return result


def _steps(means: Array) -> Index:
    """Return scores, rounded up to whole steps."""
    # Of an item without a prediction nothing is known: its labels score worst.
    before = np.nan_to_num(mass_before(means), nan=1.0)
    steps = np.ceil(before * N_STEPS - _ROUNDING).astype(np.intp)
    return np.clip(steps, 0, N_STEPS)


def check_calibration(calibration: Any) -> tuple[Any, Any]:
    """Return predictions and labels that were given as a pair."""
    if not isinstance(calibration, tuple) or len(calibration) != 2:
        rule = "must be a pair: mixtures of items that they were not made from, and their counts"
        raise InputError("calibration", rule, value=type(calibration).__name__)
    return calibration
