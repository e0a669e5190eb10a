"""Sets of label distributions, or of labels, that hold what is asked with a stated probability."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.errors import InputError
from hocal._base.typing import Array, Index, Mask
from hocal._base.validation import (
    check_choice,
    check_counts,
    check_fraction,
    check_number,
    check_same_length,
    check_simplex,
)
from hocal.uncertainty.label_sets import (
    LabelScores,
    LabelSets,
    check_calibration,
    choose_labels,
)
from hocal.uncertainty.mixtures import Mixtures, check_mixtures
from hocal.uncertainty.segments import segment_cumsum, segment_offsets

__all__ = ["PredictionSets", "distance_to_mean", "heaviest_atoms", "predict_set"]

_ROUNDING = 1e-12  # of a cumulated sum of weights and of a distance

Shape = Literal["atoms", "ball"]
SHAPES: tuple[Shape, ...] = ("atoms", "ball")
KINDS = ("distributions", "labels")


@dataclass(frozen=True, eq=False, repr=False)
class PredictionSets:
    """A set of label distributions for each item: points within `radius` of the chosen atoms.

    Attributes
    ----------
    centres : Mixtures
        The atoms that span each set, with their weights; for a ball, the mean of the mixture.
    radius : ndarray of shape (n_items,)
        Radius around the centres, in the distance of `metric`.
    mass : ndarray of shape (n_items,)
        Probability of the unexpanded set under the item's own mixture.
    delta : float
        How far the sets were expanded, included in `radius`.
    metric : {"l1", "l2"}
        Distance to the centres: the sum of absolute differences, at most 2, or the Euclidean one,
        at most the square root of 2.

    Examples
    --------
    >>> import hocal
    >>> sets = hocal.predict_set(hocal.Mixtures.from_vertices([[0.95, 0.05]]), coverage=0.9)
    >>> sets.contains([[0.9, 0.1]]).tolist(), sets.expand(0.2).contains([[0.9, 0.1]]).tolist()
    ([False], [True])
    """

    centres: Mixtures
    radius: Array
    mass: Array
    delta: float = 0.0
    metric: Literal["l1", "l2"] = "l1"

    def __len__(self) -> int:
        return len(self.radius)

    def __repr__(self) -> str:
        mass = f"mean mass {self.mass.mean():.3g}"
        radius = f"mean radius {self.radius.mean():.3g}"
        return f"PredictionSets({len(self)} items, {mass}, {radius})"

    def expand(self, delta: float) -> PredictionSets:
        """Return S_delta, the sets with all points within `delta` of them."""
        grown = check_number(delta, "delta", minimum=0)
        return replace(self, radius=self.radius + grown, delta=self.delta + grown)

    def contains(self, label_distributions: ArrayLike) -> Mask:
        """Say for each item whether a label distribution, (n_items, n_classes), lies in its set."""
        points = check_simplex(
            label_distributions, "label_distributions", ndim=2, n_classes=self.centres.n_classes
        )
        if len(points) != len(self):
            rule = f"must have one row for each of {len(self)} items"
            raise InputError("label_distributions", rule, value=len(points))
        return self._distance(points, self.centres) <= self.radius + _ROUNDING

    def mass_of(self, mixtures: Mixtures) -> Array:
        """Return the probability of each item's set under its mixture.

        P(S_2delta) of the paper's theorem is ``sets.expand(2 * delta).mass_of(mixtures)``, for
        `hocal.guarantees.prediction_set_coverage`.

        Parameters
        ----------
        mixtures : Mixtures
            One mixture for each of the items.

        Returns
        -------
        ndarray of shape (n_items,)
            Between 0 and 1; NaN for a mixture without atoms.

        Examples
        --------
        >>> import hocal
        >>> mixtures = hocal.Mixtures.from_ensemble([[[0.5, 0.5], [0.6, 0.4], [0.9, 0.1]]])
        >>> sets = hocal.predict_set(mixtures, coverage=0.3)
        >>> sets.expand(0.1).mass_of(mixtures).round(3), sets.expand(0.2).mass_of(mixtures).round(3)
        (array([0.333]), array([0.667]))
        """
        check_mixtures(mixtures)
        check_same_length(mixtures, self, ("mixtures", "sets"))
        result = np.full(len(self), np.nan)
        for block in mixtures.blocks(mixtures.index):
            row, atom, starts = mixtures.pairs(mixtures.index[block])
            items = np.arange(len(self))[block][row]
            distance = self._distance(mixtures.points_at(atom), self.centres[items])
            inside = distance <= self.radius[items] + _ROUNDING
            sums = np.bincount(row, mixtures.weights[atom] * inside, minlength=len(starts) - 1)
            result[block] = np.where(np.diff(starts) > 0, sums, np.nan)
        return result

    def _distance(self, points: Array, centres: Mixtures) -> Array:
        return _distance_to_atoms(points, centres, self.metric)


@overload
def predict_set(
    mixtures: Mixtures,
    *,
    coverage: float = ...,
    kind: Literal["distributions"] = ...,
    shape: Shape = ...,
    calibration: None = ...,
) -> PredictionSets: ...


@overload
def predict_set(
    mixtures: Mixtures,
    *,
    coverage: float = ...,
    kind: Literal["labels"],
    calibration: tuple[Mixtures, Any] | None = ...,
) -> LabelSets: ...


def predict_set(
    mixtures: Mixtures,
    *,
    coverage: float = 0.9,
    kind: Literal["distributions", "labels"] = "distributions",
    shape: Shape = "atoms",
    calibration: tuple[Mixtures, Any] | None = None,
) -> PredictionSets | LabelSets:
    """Return for each item a small set of label distributions, or of labels, with a given mass.

    Sets of distributions are the smallest with at least the mass asked for under each mixture.
    Expanded by delta, they hold the true label distribution with probability at least mass -
    epsilon / delta when the mixtures are epsilon-calibrated (the paper's theorem on
    prediction sets; see `hocal.guarantees.bounds`).

    Sets of labels are the most likely classes of each item. With `calibration` they hold the label
    of a new person about a new item with probability `coverage` at least, whatever the mixtures
    are: on average over items, and over the calibration items. That is split conformal prediction
    in which an item with several labels counts once.

    Parameters
    ----------
    mixtures : Mixtures
        Predicted mixtures.
    coverage : float, default=0.9
        Mass each set must have.
    kind : {"distributions", "labels"}
        What the sets are made of.
    shape : {"atoms", "ball"}
        Of sets of distributions: the heaviest atoms until their mass suffices, or the smallest l1
        ball around the mean.
    calibration : tuple of Mixtures and counts, optional
        For sets of labels: predictions for other items, made in the same way and without their
        labels, and how many people chose each class, one label per item at least.

    Returns
    -------
    PredictionSets or LabelSets
        One set per item; nothing is expanded yet.

    Examples
    --------
    >>> import hocal
    >>> hocal.predict_set(hocal.Mixtures.from_points([[0.5, 0.5]]), coverage=0.9)
    PredictionSets(1 items, mean mass 1, mean radius 0)

    A model that is too sure of itself: for 3 of 10 labels its second choice was right.

    >>> sure = hocal.Mixtures.from_points([[0.95, 0.04, 0.01]] * 20)
    >>> hocal.predict_set(sure[:1], kind="labels").sizes.tolist()
    [1]
    >>> labels = [[7, 3, 0]] * 20
    >>> hocal.predict_set(sure[:1], kind="labels", calibration=(sure, labels)).sizes.tolist()
    [2]
    """
    check_mixtures(mixtures)
    wanted = check_fraction(coverage, "coverage")
    check_choice(shape, "shape", SHAPES)
    if check_choice(kind, "kind", KINDS) == "labels":
        return choose_labels(mixtures.mean(), wanted, _scores_of(calibration, mixtures.n_classes))
    if calibration is not None:
        raise InputError("calibration", 'must be left out unless kind="labels"')
    if shape == "atoms":
        centres, mass = heaviest_atoms(mixtures, wanted)
        return PredictionSets(centres, np.zeros(len(mixtures)), mass)
    return _central_balls(mixtures, wanted)


def _scores_of(calibration: Any, n_classes: int) -> LabelScores | None:
    """Return the scores of the labels of calibration items, if there are any."""
    if calibration is None:
        return None
    mixtures, counts = check_calibration(calibration)
    means = check_mixtures(mixtures).mean()
    labels = check_counts(counts, n_classes=n_classes)
    check_same_length(means, labels, ("calibration", "counts"))
    return LabelScores.of(means, labels)


def heaviest_atoms(
    mixtures: Mixtures, wanted: float, *, ties: Array | None = None
) -> tuple[Mixtures, Array]:
    """Return the heaviest atoms of each item that reach a mass together, and the mass they have.

    Among atoms of the same weight those with the least of `ties` come first.
    """
    keys = (-mixtures.weights,) if ties is None else (ties, -mixtures.weights)
    order, reached = _cumulate(mixtures, *keys)
    # the atom that crosses the mark is kept
    keep = reached - mixtures.weights[order] < wanted - _ROUNDING
    kept = order[keep]
    owner = _owners(mixtures)[kept]
    sizes = np.bincount(owner, minlength=mixtures.n_mixtures)
    weights = mixtures.weights[kept]
    sums = np.bincount(owner, weights, minlength=mixtures.n_mixtures)
    mass = np.where(sizes > 0, sums, np.nan)
    offsets = segment_offsets(sizes)
    atoms = Mixtures.trusted(
        mixtures.points_at(kept), weights / mass[owner], offsets, mixtures.index
    )
    return atoms, mass[mixtures.index]


def distance_to_mean(mixtures: Mixtures, metric: Literal["l1", "l2"]) -> Array:
    """Return the distance of each atom to the mean of its mixture, (n_atoms,)."""
    stored = mixtures.stored()
    centre = stored.mean()
    distance = np.empty(len(mixtures.weights))
    for block in stored.blocks(stored.index):
        row, atom, _ = stored.pairs(stored.index[block])
        distance[atom] = _norm(stored.points_at(atom) - centre[block][row], metric)
    return distance


def _central_balls(mixtures: Mixtures, wanted: float) -> PredictionSets:
    centre = mixtures.stored().mean()
    distance = distance_to_mean(mixtures, "l1")
    order, reached = _cumulate(mixtures, distance)
    inside = reached - mixtures.weights[order] < wanted - _ROUNDING
    kept = order[inside]
    owner = _owners(mixtures)[kept]
    radius = np.full(mixtures.n_mixtures, np.nan)
    mass = np.full(mixtures.n_mixtures, np.nan)
    # Within a mixture distance and mass rise, so the last kept atom sets both.
    radius[owner] = distance[kept]
    mass[owner] = reached[inside]
    used, index = np.unique(mixtures.index, return_inverse=True)
    offsets = np.arange(len(used) + 1)
    centres = Mixtures.trusted(centre[used], np.ones(len(used)), offsets, index)
    return PredictionSets(centres, radius[mixtures.index], mass[mixtures.index])


def _owners(mixtures: Mixtures) -> Index:
    """Return the mixture each atom belongs to."""
    return np.repeat(np.arange(mixtures.n_mixtures), mixtures.sizes)


def _cumulate(mixtures: Mixtures, *keys: Array) -> tuple[Index, Array]:
    """Order the atoms of each mixture by keys, the last first, and cumulate their weights."""
    order = np.lexsort((*keys, _owners(mixtures)))
    return order, segment_cumsum(mixtures.weights[order], mixtures.offsets)


def _distance_to_atoms(points: Array, centres: Mixtures, metric: str) -> Array:
    """Return the distance of each item's point to the nearest atom of its mixture."""
    result = np.full(len(points), np.nan)
    for block in centres.blocks(centres.index):
        row, atom, starts = centres.pairs(centres.index[block])
        distance = _norm(points[block][row] - centres.points_at(atom), metric)
        occupied = np.diff(starts) > 0
        if occupied.any():
            result[block][occupied] = np.minimum.reduceat(distance, starts[:-1][occupied])
    return result


def _norm(differences: Array, metric: str) -> Array:
    return np.asarray(np.linalg.norm(differences, ord=int(metric[1]), axis=1))
