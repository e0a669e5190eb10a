"""What a recalibration sees of predictions and features: the columns of its regression.

Predictions enter by logarithms, at several floors, of their mean and of an ensemble's members.
Logarithms are centred over the classes, since a softmax does not see what all of them share.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

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
    "member_deviations",
    "shared_columns",
]

# Floors e of log(f + e): networks' small probabilities carry information; where a few judges
# vote, a missing vote is weak evidence, like half a vote among three to ten.
FLOORS = (1e-6, 3e-3, 0.1)
FLOOR_PRECISION = 1.0  # in labels, of the biases by which floors are compared
MATRIX_CLASSES = 200  # beyond, a matrix would have more weights than most data have labels
MAX_MEMBERS = 20  # with a weight of their own; more of them count through their means
LABELS_PER_WEIGHT = 10.0  # that members need for matrices of their own; fewer overfit
CONSTANT = 1e-9  # spread below which a column is constant and has nothing to tell


class Rows(NamedTuple):
    """Items in fold order."""

    members: Floats  #: (n_items, n_members, n_classes)
    counts: sparse.csr_array  #: (n_items, n_classes)
    features: Floats  #: (n_items, n_features)
    bounds: Index  #: (n_folds + 1,) where each fold begins


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
    floors = _order_floors(rows)
    has_matrix = rows.members.shape[2] <= MATRIX_CLASSES
    columns = shared_columns(rows.members, floors, plain=not has_matrix)
    shared_scale = np.array([_root_mean_square(column) for column in columns])
    inputs = _own_inputs(rows, floors[0], has_matrix, _has_room_for_members(rows))
    groups = tuple(group for group, part in inputs.items() for _ in range(part.shape[1]))
    centre = [part.mean(axis=0, dtype=float) for part in inputs.values()]
    scale = [_spread(part, together=group != "features") for group, part in inputs.items()]
    return Design(floors, shared_scale, groups, np.concatenate(centre), np.concatenate(scale))


def make_columns(rows: Rows, design: Design) -> Grouped:
    """Return the regression of the labels on the columns, and their groups."""
    dtype = rows.members.dtype
    n_items, _, n_classes = rows.members.shape
    shared = np.empty((len(design.shared_scale), n_items, n_classes), dtype)
    columns = shared_columns(rows.members, design.floors, plain=not design.has_matrix)
    for place, column in enumerate(columns):  # one at a time: together they are large
        shared[place] = column
    shared /= design.shared_scale.astype(dtype)[:, None, None]
    has_members = "members" in design.groups
    inputs = _own_inputs(rows, design.floors[0], design.has_matrix, has_members)
    ones = np.ones((len(rows.members), 1), dtype)
    own = np.concatenate([ones, *inputs.values()], axis=1)
    own[:, 1:] -= design.centre.astype(dtype)
    own[:, 1:] /= design.scale.astype(dtype)
    problem = make_regression(shared, own, rows.counts, rows.bounds)
    shared_groups = (FIRST, *["shared"] * (len(shared) - 1))
    return Grouped(problem, shared_groups, ("bias", *design.groups))


def shared_columns(members: Floats, floors: Array, *, plain: bool) -> Iterator[Floats]:
    """Yield columns (n_items, n_classes) with one weight for all classes, each as it is made.

    The first is the logarithm of the mean prediction at the first floor; `plain` leaves it at that.
    Then come the other floors, a temperature that changes with the entropy of the prediction, the
    mean of the members' logarithms and each of these.
    """
    mean = members.mean(axis=1)
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


def _own_inputs(rows: Rows, floor: float, matrix: bool, members: bool) -> dict[str, Floats]:
    """Return inputs (n_items, size) with a weight for every class, by group."""
    inputs = {}
    if matrix:
        inputs["matrix"] = centred_logarithm(rows.members.mean(axis=1), floor)
    if members:
        inputs["members"] = member_deviations(rows.members, floor)
    inputs["features"] = rows.features
    return inputs


def _has_room_for_members(rows: Rows) -> bool:
    """Say whether members get matrices of their own."""
    _, n_members, n_classes = rows.members.shape
    n_weights = n_members * n_classes**2
    enough = rows.counts.sum() >= LABELS_PER_WEIGHT * n_weights
    return bool(n_members > 1 and enough and n_weights + n_classes**2 <= NEWTON_WEIGHTS)


def _order_floors(rows: Rows) -> Array:
    """Return the floors, that of the best temperature with class biases first."""
    mean = rows.members.mean(axis=1)
    ones = np.ones((len(mean), 1), mean.dtype)
    size = 1 + mean.shape[1]
    start = CrossFit(np.zeros(size), np.zeros((len(rows.bounds) - 1, size)), np.inf)
    losses = []
    for floor in FLOORS:
        column = centred_logarithm(mean, floor)
        column /= column.dtype.type(_root_mean_square(column))
        problem = make_regression(column[None], ones, rows.counts, rows.bounds)
        losses.append(cross_fit(problem, start, np.full(size, FLOOR_PRECISION)).log_loss)
    first = int(np.argmin(losses))
    return np.array([FLOORS[first], *FLOORS[:first], *FLOORS[first + 1 :]])


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
