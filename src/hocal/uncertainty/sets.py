"""Sets of label distributions that hold an item's true one with a stated probability."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.errors import InputError
from hocal._base.typing import Array, Index, Mask
from hocal._base.validation import check_choice, check_fraction, check_number, check_simplex
from hocal.uncertainty.mixtures import Mixtures, check_mixtures

__all__ = ["PredictionSets", "predict_set"]

_ROUNDING = 1e-12  # of a cumulated sum of weights and of a distance

Shape = Literal["atoms", "ball"]
SHAPES: tuple[Shape, ...] = ("atoms", "ball")


@dataclass(frozen=True, eq=False, repr=False)
class PredictionSets:
    """A set of label distributions for each item: points within `radius` (l1) of the chosen atoms.

    Attributes
    ----------
    centres : Mixtures
        The atoms that span each set, with their weights; for a ball, the mean of the mixture.
    radius : ndarray of shape (n_items,)
        Radius around the centres, in l1 distance (at most 2).
    mass : ndarray of shape (n_items,)
        Probability of the unexpanded set under the item's own mixture.
    delta : float
        How far the sets were expanded, included in `radius`.

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

    def __len__(self) -> int:
        return len(self.radius)

    def __repr__(self) -> str:
        mass = f"mean mass {self.mass.mean():.3g}"
        radius = f"mean radius {self.radius.mean():.3g}"
        return f"PredictionSets({len(self)} items, {mass}, {radius})"

    def expand(self, delta: float) -> PredictionSets:
        """Return S_delta, the sets with all points within `delta` of them in l1 distance."""
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
        return _distance_to_atoms(points, self.centres) <= self.radius + _ROUNDING


def predict_set(
    mixtures: Mixtures, *, coverage: float = 0.9, shape: Shape = "atoms"
) -> PredictionSets:
    """Return the smallest sets with at least the given mass under each mixture.

    Expanded by delta, they hold the true label distribution with probability at least mass -
    epsilon / delta when the mixtures are epsilon-calibrated (the paper's theorem on
    prediction sets; see `hocal.guarantees.bounds`).

    Parameters
    ----------
    mixtures : Mixtures
        Predicted mixtures.
    coverage : float, default=0.9
        Mass each set must have.
    shape : {"atoms", "ball"}
        The heaviest atoms until their mass suffices, or the smallest l1 ball around the mean.

    Returns
    -------
    PredictionSets
        One set per item; nothing is expanded yet.

    Examples
    --------
    >>> import hocal
    >>> hocal.predict_set(hocal.Mixtures.from_points([[0.5, 0.5]]), coverage=0.9)
    PredictionSets(1 items, mean mass 1, mean radius 0)
    """
    check_mixtures(mixtures)
    wanted = check_fraction(coverage, "coverage")
    check_choice(shape, "shape", SHAPES)
    if shape == "atoms":
        return _heaviest_atoms(mixtures, wanted)
    return _central_balls(mixtures, wanted)


def _heaviest_atoms(mixtures: Mixtures, wanted: float) -> PredictionSets:
    order, reached = _cumulate(mixtures, -mixtures.weights)
    # the atom that crosses the mark is kept
    keep = reached - mixtures.weights[order] < wanted - _ROUNDING
    kept = order[keep]
    owner = _owners(mixtures)[kept]
    sizes = np.bincount(owner, minlength=mixtures.n_mixtures)
    weights = mixtures.weights[kept]
    sums = np.bincount(owner, weights, minlength=mixtures.n_mixtures)
    mass = np.where(sizes > 0, sums, np.nan)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    centres = Mixtures.trusted(
        mixtures.points_at(kept), weights / mass[owner], offsets, mixtures.index
    )
    return PredictionSets(centres, np.zeros(len(mixtures)), mass[mixtures.index])


def _central_balls(mixtures: Mixtures, wanted: float) -> PredictionSets:
    stored = mixtures.stored()
    centre = stored.mean()
    distance = np.empty(len(mixtures.weights))
    for block in stored.blocks(stored.index):
        row, atom, _ = stored.pairs(stored.index[block])
        distance[atom] = np.abs(stored.points_at(atom) - centre[block][row]).sum(axis=1)
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
    centres = Mixtures.trusted(centre[used], np.ones(len(used)), np.arange(len(used) + 1), index)
    return PredictionSets(centres, radius[mixtures.index], mass[mixtures.index])


def _owners(mixtures: Mixtures) -> Index:
    """Return the mixture each atom belongs to."""
    return np.repeat(np.arange(mixtures.n_mixtures), mixtures.sizes)


def _cumulate(mixtures: Mixtures, key: Array) -> tuple[Index, Array]:
    """Order the atoms of each mixture by a key and cumulate their weights in that order."""
    order = np.lexsort((key, _owners(mixtures)))
    total = np.concatenate([[0.0], np.cumsum(mixtures.weights[order])])
    before = total[mixtures.offsets[:-1]]  # mass of all earlier mixtures
    return order, total[1:] - np.repeat(before, mixtures.sizes)


def _distance_to_atoms(points: Array, centres: Mixtures) -> Array:
    """Return the l1 distance of each item's point to the nearest atom of its mixture."""
    result = np.full(len(points), np.nan)
    for block in centres.blocks(centres.index):
        row, atom, starts = centres.pairs(centres.index[block])
        distance = np.abs(points[block][row] - centres.points_at(atom)).sum(axis=1)
        occupied = np.diff(starts) > 0
        if occupied.any():
            result[block][occupied] = np.minimum.reduceat(distance, starts[:-1][occupied])
    return result
