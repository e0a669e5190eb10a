"""Draw label distributions from components around a mean, given two hypothetical labels.

All items share the numbers that stand for chance, so that the draws of an item do not depend on its
neighbours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hocal._base.typing import Array, Index, Mask
from hocal.calibration.by_item.components import TINY, Components

__all__ = ["Choice", "Draws", "Pairs", "choose", "draw_points", "pair_probabilities"]

SMALLEST_SHAPE = 1e-12  # of a gamma variable, in place of 0
SMALLEST_ROOT = 0.01  # of a gamma variable, where the approximation would become negative


class Pairs(NamedTuple):
    """Two hypothetical labels of each atom."""

    label: Index  #: (..., 2)
    counted: Mask  #: (..., 2) whether each is a label of this family; otherwise it says nothing

    @property
    def same(self) -> Mask:
        """Whether both count, and are equal."""
        equal = self.label[..., 0] == self.label[..., 1]
        return np.asarray(self.counted.all(axis=-1) & equal)


class Choice(NamedTuple):
    """What was chosen, and where in its cell the position lies."""

    place: Index
    position: Array  #: in [0, 1], for a further choice


class Draws(NamedTuple):
    """Which component of which item to draw from."""

    item: Index  #: (n_draws,)
    component: Index  #: (n_draws,)
    pairs: Pairs  #: (n_draws, 2)
    position: Array  #: (n_draws,) that chooses the certain class of a star
    normal: Array  #: (n_draws, n_classes) of gamma variables
    log_uniform: Array  #: (n_draws, n_classes)

    def some(self, rows: Mask) -> Draws:
        """Return some of the draws."""
        pairs = Pairs(self.pairs.label[rows], self.pairs.counted[rows])
        numbers = self.position[rows], self.normal[rows], self.log_uniform[rows]
        return Draws(self.item[rows], self.component[rows], pairs, *numbers)


def choose(weights: Array, position: Array) -> Choice:
    """Find positions in (0, 1) among weights on the last axis, which need not sum to 1."""
    sums = np.cumsum(weights, axis=-1)
    target = position * sums[..., -1]
    n_passed = (sums <= target[..., None]).sum(axis=-1)
    index = np.minimum(n_passed, weights.shape[-1] - 1)
    previous = np.maximum(index - 1, 0)
    end = np.take_along_axis(sums, index[..., None], axis=-1)[..., 0]
    before = np.take_along_axis(sums, previous[..., None], axis=-1)[..., 0]
    start = np.where(index > 0, before, 0.0)
    width = np.maximum(end - start, TINY)
    return Choice(index, np.clip((target - start) / width, 0, 1))


def pair_probabilities(family: Components, q: Array, counts: Array, pairs: Pairs) -> Array:
    """Return each component's probability of two labels in their order.

    Parameters
    ----------
    family : Components
        Components around `q`.
    q, counts : array of shape (n_items, n_classes)
        Means before labels, and labels seen.
    pairs : Pairs
        Labels of shape (n_items, n_atoms, 2).

    Returns
    -------
    ndarray of shape (n_items, n_atoms, n_components)
        Probabilities given the labels seen.
    """
    dirichlets = _dirichlet_pairs(family.precisions, q, counts, pairs)
    return np.concatenate([dirichlets, _star_pairs(family, q, counts, pairs)], axis=2)


def draw_points(family: Components, q: Array, counts: Array, draws: Draws) -> Array:
    """Draw from Dirichlets, and choose among the points of stars, (n_draws, n_classes)."""
    dirichlet = draws.component < family.n_dirichlets
    points = np.empty((len(dirichlet), q.shape[1]))
    points[dirichlet] = _draw_dirichlets(family, q, counts, draws.some(dirichlet))
    points[~dirichlet] = _choose_stars(family, q, counts, draws.some(~dirichlet))
    return points


def _dirichlet_pairs(s: Array, q: Array, counts: Array, pairs: Pairs) -> Array:
    total = (s + counts.sum(axis=1)[:, None])[:, None]  # (n_items, 1, n_dirichlets)
    first = (s * _pick(q, pairs, 0) + _pick(counts, pairs, 0)) / total
    second = s * _pick(q, pairs, 1) + _pick(counts, pairs, 1) + pairs.same[..., None]
    second = second / (total + pairs.counted[..., :1])
    first = np.where(pairs.counted[..., :1], first, 1.0)
    return np.asarray(first * np.where(pairs.counted[..., 1:], second, 1.0))


def _star_pairs(family: Components, q: Array, counts: Array, pairs: Pairs) -> Array:
    """Sum over J of the product of two probabilities, each of a lapse or of the class J."""
    e = family.lapses
    certain = certain_classes(family, q, counts).transpose(0, 2, 1)
    lapses = []
    hits = []
    at = []
    for place in (0, 1):
        counted = pairs.counted[..., [place]]
        lapses.append(np.where(counted, e * _pick(q, pairs, place), 1.0))
        hits.append(counted * (1 - e))
        at.append(np.take_along_axis(certain, pairs.label[..., [place]], axis=1))
    neither = lapses[0] * lapses[1]
    second = lapses[0] * hits[1] * at[1]
    first = lapses[1] * hits[0] * at[0]
    both = hits[0] * hits[1] * at[0] * pairs.same[..., None]
    return np.asarray(neither + (second + first) + both)


def certain_classes(family: Components, q: Array, counts: Array) -> Array:
    """Return the posterior of the class J of each star, (n_items, n_stars, n_classes)."""
    e = family.lapses[:, None]
    mean = np.maximum(q, TINY)[:, None]
    gain = np.log(1 - e + e * mean) - np.log(e * mean)
    logs = np.log(mean) + counts[:, None] * gain
    posterior = np.exp(logs - logs.max(axis=2, keepdims=True))
    return np.asarray(posterior / posterior.sum(axis=2, keepdims=True))


def _pick(values: Array, pairs: Pairs, place: int) -> Array:
    """Return the values (n_items, n_classes) at the first or second labels, (..., 1)."""
    return np.take_along_axis(values[:, None], pairs.label[..., [place]], axis=2)


def _draw_dirichlets(family: Components, q: Array, counts: Array, draws: Draws) -> Array:
    """Divide gamma variables by their sum; Gamma(a) is Gamma(a + 1) times U^(1/a)."""
    rows = np.arange(len(draws.item))
    shape = family.precisions[draws.component][:, None] * q[draws.item] + counts[draws.item]
    for place in (0, 1):
        shape[rows, draws.pairs.label[:, place]] += draws.pairs.counted[:, place]
    np.maximum(shape, SMALLEST_SHAPE, out=shape)
    more = shape + 1
    root = 1 - 1 / (9 * more) + draws.normal / (3 * np.sqrt(more))  # Wilson and Hilferty
    logs = 3 * np.log(np.maximum(root, SMALLEST_ROOT)) + np.log(more)
    logs += draws.log_uniform / shape
    logs -= logs.max(axis=1, keepdims=True)
    points = np.exp(logs)
    return np.asarray(points / points.sum(axis=1, keepdims=True))


def _choose_stars(family: Components, q: Array, counts: Array, draws: Draws) -> Array:
    """Choose the certain class of stars by position, given both labels."""
    star = draws.component - family.n_dirichlets
    rows = np.arange(len(star))
    e = family.lapses[star]
    mean = q[draws.item]
    posterior = certain_classes(family, q, counts)[draws.item, star]
    for place in (0, 1):
        label = draws.pairs.label[:, place]
        lapse = e * np.maximum(mean[rows, label], TINY)
        gain = np.where(draws.pairs.counted[:, place], (1 - e + lapse) / lapse, 1.0)
        posterior[rows, label] *= gain
    points = e[:, None] * mean
    points[rows, choose(posterior, draws.position).place] += 1 - e
    return np.asarray(points)
