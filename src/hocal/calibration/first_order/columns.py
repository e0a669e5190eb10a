"""What a recalibration sees of predictions and features: the columns of its regression.

Predictions enter by logarithms, at several floors, of their mean and of an ensemble's members.
Logarithms are centred over the classes, since a softmax does not see what all of them share.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from hocal._base.typing import Array, Index
from hocal.calibration.first_order.multinomial import (
    NEWTON_WEIGHTS,
    CrossFit,
    Floats,
    cross_fit,
    make_regression,
)
from hocal.calibration.first_order.strengths import FIRST, Grouped

__all__ = [
    "Design",
    "Rows",
    "centred_logarithm",
    "make_columns",
    "make_design",
    "mean_of_members",
    "member_deviations",
    "shared_columns",
]

# Floors e of log(f + e): networks' small probabilities carry information; where a few judges
# vote, a missing vote is weak evidence, like half a vote among three to ten.
FLOORS = (1e-6, 3e-3, 0.1)
FLOOR_PRECISION = 1.0  # in labels, of the biases by which floors are compared
FLOOR_MATRIX_PRECISION = 16.0  # of the matrix by which they are: in the middle of what is tried
MATRIX_CLASSES = 200  # beyond, a matrix would have more weights than most data have labels
MAX_MEMBERS = 20  # with a weight of their own; more of them count through their means
LABELS_PER_WEIGHT = 10.0  # that members need for matrices of their own; fewer overfit
BLOCK_ENTRIES = 1 << 20  # predicted probabilities whose columns are made at once, 4 MB each
CONSTANT = 1e-9  # spread below which a column is constant and has nothing to tell


class Rows(NamedTuple):
    """Items in fold order; predictions are taken from the source when they are needed."""

    source: Array  #: (n, n_members, n_classes) predictions of these items and others
    picked: Index  #: (n_items,) rows of the source
    dtype: type[np.floating[Any]]  #: that is computed with
    counts: sparse.csr_array  #: (n_items, n_classes)
    features: Floats  #: (n_items, n_features)
    bounds: Index  #: (n_folds + 1,) where each fold begins

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of items, of members and of classes."""
        _, n_members, n_classes = self.source.shape
        return len(self.picked), n_members, n_classes

    @property
    def folds(self) -> list[slice]:
        """The rows of each fold."""
        return [slice(int(a), int(b)) for a, b in pairwise(self.bounds)]

    def members(self, rows: slice) -> Floats:
        """Return the predictions of some items, (n_rows, n_members, n_classes)."""
        return self.source[self.picked[rows]].astype(self.dtype, copy=False)

    def mean(self, rows: slice) -> Floats:
        """Return the mean prediction of some items, (n_rows, n_classes)."""
        return mean_of_members(self.members(rows))

    def blocks(self, part: slice) -> list[slice]:
        """Return rows of a part that are worked on together."""
        _, n_members, n_classes = self.shape
        height = max(1, BLOCK_ENTRIES // (n_members * n_classes))
        starts = range(part.start, part.stop, height)
        return [slice(start, min(start + height, part.stop)) for start in starts]


class Design(NamedTuple):
    """How columns are made of predictions and features."""

    floors: Array  #: (n_floors,) the best first
    shared_scale: Array  #: (n_shared,) root mean square of each shared column
    groups: tuple[str, ...]  #: of the own inputs: "matrix", "members" or "features"
    centre: Array  #: (n_own,)
    scale: Array  #: (n_own,)

    @property
    def has_matrix(self) -> bool:
        """Whether every class has a weight for the logarithm of every class."""
        return "matrix" in self.groups


def make_design(rows: Rows) -> Design:
    """Decide which columns to make, and measure them."""
    members = rows.members(slice(None))
    has_matrix = rows.shape[2] <= MATRIX_CLASSES
    floors = _order_floors(mean_of_members(members), rows, has_matrix)
    columns = shared_columns(members, floors, plain=not has_matrix)
    shared_scale = np.array([_root_mean_square(column) for column in columns])
    has_members = _has_room_for_members(rows)
    inputs = _own_inputs(members, rows.features, floors[0], has_matrix, has_members)
    groups = tuple(group for group, part in inputs.items() for _ in range(part.shape[1]))
    centre = [part.mean(axis=0, dtype=float) for part in inputs.values()]
    scale = [_spread(part, together=group != "features") for group, part in inputs.items()]
    return Design(floors, shared_scale, groups, np.concatenate(centre), np.concatenate(scale))


def make_columns(rows: Rows, design: Design) -> Grouped:
    """Return the regression of the labels on the columns, and their groups."""
    n_items, _, n_classes = rows.shape
    shared = [np.empty((n_items, n_classes), rows.dtype) for _ in design.shared_scale]
    own = np.ones((n_items, 1 + len(design.groups)), rows.dtype)
    for part in rows.blocks(slice(0, n_items)):  # else as much again would be made beside them
        members = rows.members(part)
        columns = shared_columns(members, design.floors, plain=not design.has_matrix)
        for column, scale, into in zip(columns, design.shared_scale, shared, strict=True):
            np.divide(column, rows.dtype(scale), out=into[part])
        own[part, 1:] = _standard_inputs(members, rows.features[part], design)
    problem = make_regression(shared, own, rows.counts, rows.bounds)
    shared_groups = (FIRST, *["shared"] * (len(shared) - 1))
    return Grouped(problem, shared_groups, ("bias", *design.groups))


def mean_of_members(members: Floats) -> Floats:
    """Return the mean prediction, (n_items, n_classes); that of one model is no copy."""
    return members[:, 0] if members.shape[1] == 1 else members.mean(axis=1)


def shared_columns(members: Floats, floors: Array, *, plain: bool) -> Iterator[Floats]:
    """Yield columns (n_items, n_classes) with one weight for all classes, each as it is made.

    The first is the logarithm of the mean prediction at the first floor; `plain` leaves it at that.
    Then come the other floors, a temperature that changes with the entropy of the prediction, the
    mean of the members' logarithms and each of these.
    """
    mean = mean_of_members(members)
    main = centred_logarithm(mean, floors[0])
    yield main
    if plain:
        return
    for floor in floors[1:]:
        yield centred_logarithm(mean, floor)
    yield main * (_relative_entropy(mean)[:, None] - main.dtype.type(0.5))
    if members.shape[1] > 1:
        logs = centred_logarithm(members, floors[0])
        yield logs.mean(axis=1)
        if members.shape[1] <= MAX_MEMBERS:
            yield from logs.swapaxes(0, 1)


def centred_logarithm(probabilities: Floats, floor: float) -> Floats:
    """Return log(f + floor) less its mean over the classes."""
    logs = np.log(probabilities + probabilities.dtype.type(floor))
    return np.asarray(logs - logs.mean(axis=-1, keepdims=True))


def member_deviations(members: Floats, floor: float) -> Floats:
    """Return the members' logarithms less their mean, (n_items, n_members * n_classes)."""
    logs = centred_logarithm(members, floor)
    deviations: Floats = logs - logs.mean(axis=1, keepdims=True)
    return deviations.reshape(len(members), -1)


def _own_inputs(
    members: Floats, features: Floats, floor: float, has_matrix: bool, has_members: bool
) -> dict[str, Floats]:
    """Return inputs (n_items, size) with a weight for every class, by group."""
    inputs = {}
    if has_matrix:
        inputs["matrix"] = centred_logarithm(mean_of_members(members), floor)
    if has_members:
        inputs["members"] = member_deviations(members, floor)
    inputs["features"] = features
    return inputs


def _standard_inputs(members: Floats, features: Floats, design: Design) -> Floats:
    """Return all inputs of some items, centred and scaled."""
    has_members = "members" in design.groups
    inputs = _own_inputs(members, features, design.floors[0], design.has_matrix, has_members)
    own = np.concatenate(list(inputs.values()), axis=1)
    own -= design.centre.astype(own.dtype)
    own /= design.scale.astype(own.dtype)
    return own


def _has_room_for_members(rows: Rows) -> bool:
    """Say whether members get matrices of their own."""
    _, n_members, n_classes = rows.shape
    n_weights = n_members * n_classes**2
    enough = rows.counts.sum() >= LABELS_PER_WEIGHT * n_weights
    return bool(n_members > 1 and enough and n_weights + n_classes**2 <= NEWTON_WEIGHTS)


def _order_floors(mean: Floats, rows: Rows, has_matrix: bool) -> Array:
    """Return the floors, that of the regression with the least loss first.

    Where a model takes classes for one another, a temperature has nothing to tell and the floor
    matters to the matrix: so both are asked.
    """
    losses = [_loss_at(floor, mean, rows, has_matrix) for floor in FLOORS]
    first = int(np.argmin(losses))
    return np.array([FLOORS[first], *FLOORS[:first], *FLOORS[first + 1 :]])


def _loss_at(floor: float, mean: Floats, rows: Rows, has_matrix: bool) -> float:
    """Return the loss on folds left out of a temperature with class biases, or with a matrix."""
    logs = centred_logarithm(mean, floor)
    column = logs / logs.dtype.type(_root_mean_square(logs))
    ones = np.ones((len(mean), 1), mean.dtype)
    size = 1 + mean.shape[1]
    start = CrossFit(np.zeros(size), np.zeros((len(rows.bounds) - 1, size)), np.inf)
    problem = make_regression([column], ones, rows.counts, rows.bounds)
    plain = cross_fit(problem, start, np.full(size, FLOOR_PRECISION))
    if not has_matrix:
        return plain.log_loss
    own = np.concatenate([ones, (logs - logs.mean(axis=0)) / _spread(logs, together=True)], axis=1)
    wider = make_regression([column], own.astype(mean.dtype), rows.counts, rows.bounds)
    n_more = wider.n_weights - size
    precision = np.repeat([FLOOR_PRECISION, FLOOR_MATRIX_PRECISION], [size, n_more])
    more = np.zeros((len(plain.without), n_more))
    start = CrossFit(np.append(plain.weights, more[0]), np.hstack([plain.without, more]), np.inf)
    return min(plain.log_loss, cross_fit(wider, start, precision).log_loss)


def _spread(inputs: Floats, *, together: bool) -> Array:
    """Return the standard deviation of each input; logarithms are alike and have one `together`."""
    spread = np.asarray(inputs.std(axis=0, dtype=float))
    if together:
        spread[:] = _root_mean_square(spread)
    return np.where(spread > CONSTANT, spread, 1.0)


def _root_mean_square(values: Floats) -> float:
    """Return the root mean square, 1 where there is nothing to scale."""
    size = float(np.sqrt(np.mean(values**2, dtype=float)))
    return size if size > CONSTANT else 1.0


def _relative_entropy(probabilities: Floats) -> Floats:
    """Return the entropy over its maximum, from 0 to 1."""
    positive = np.maximum(probabilities, np.finfo(probabilities.dtype).tiny)
    entropy = -(probabilities * np.log(positive)).sum(axis=-1)
    return np.asarray(entropy / np.log(probabilities.shape[-1]))
