"""Regions that hold the mean label distributions of cells, and the least entropies in them.

A gambler predicts every item's labels by r. If the mean label distribution is m, sum_j share_j
r_j / m_j is worth 1 on average, and so is the product over the items, and the average of such
products over many r: over a Dirichlet law around a guess, and an even one. It exceeds 1/delta with
chance delta at most, whatever the order of the items. By Jensen's inequality its logarithm is at
least n KL(mean || m) less a regret that the sum of the shares determines, so that KL(mean || m) <=
radius for the true m, except with chance delta.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from hocal._base.typing import Array
from hocal.guarantees.samples import Sample

__all__ = ["LOSS_MULTIPLIERS", "MeanRegions", "least_rests", "mean_regions"]

_GUESS_ITEMS = 100.0  # sum of the Dirichlet parameters: how many items the guess counts for
# Of the bets; the others are even over classes (Jeffreys' prior), for a cell unlike its neighbours.
_GUESS_SHARE = 0.9
_EVEN = 0.5
_STEPS = 40  # bisections, down to 1e-12
# Multipliers of the dual problem: of the region, of the sum of the shares, and of a known loss. Any
# are valid; with more of them the bounds rise by some thousandths.
_REGION_MULTIPLIERS = np.geomspace(0.5, 40, 6)
_SUM_STEPS = 14
_STEEPEST = 10.0  # slope of the sums, in units of 1 + the region's multiplier
LOSS_MULTIPLIERS = np.array([0.7, 0.85, 1.0])
_N_SHARES = 500  # points of all classes' shares together
_N_POINTS = (12, 50)  # of one class's share, least and most
_FEW_CLASSES = 20  # of which it is not worth while to look for those that are alike
_AT_ONCE = 1 << 18  # numbers in the arrays of one calculation, 2 MB


class MeanRegions(NamedTuple):
    """For each cell, all label distributions m with KL(mean || m) <= radius.

    Attributes
    ----------
    mean : ndarray of shape (n_cells, n_classes)
        Means of the items.
    radius : ndarray of shape (n_cells,)
        Largest divergence.
    low, high : ndarray of shape (n_cells, n_classes)
        Least and largest share of each class in the region.
    """

    mean: Array
    radius: Array
    low: Array
    high: Array

    @classmethod
    def of(cls, mean: Array, radius: Array) -> MeanRegions:
        """Return the regions of some means."""
        return cls(mean, radius, *_share_limits(mean, radius[:, None]))


def mean_regions(samples: Sequence[Sample], guesses: Array, delta: float) -> MeanRegions:
    """Return regions that hold the mean label distributions, each except with chance delta.

    Parameters
    ----------
    samples : sequence of Sample
        Independent items of each cell.
    guesses : ndarray of shape (n_cells, n_classes)
        Positive label distributions, from other data.
    delta : float
        Allowed chance of failure of each.

    Returns
    -------
    MeanRegions
        Around the means of the items.
    """
    mean = np.stack([sample.mean for sample in samples])
    n_items = np.array([sample.repeats.sum() for sample in samples])
    total = n_items[:, None] * mean
    guessed = _log_capital(_GUESS_ITEMS * guesses, total) + np.log(_GUESS_SHARE)
    even = _log_capital(np.full_like(guesses, _EVEN), total) + np.log(1 - _GUESS_SHARE)
    regret = -np.logaddexp(guessed, even) - n_items * _entropy(mean)
    return MeanRegions.of(mean, (np.log(1 / delta) + np.maximum(regret, 0.0)) / n_items)


def _log_capital(prior: Array, total: Array) -> Array:
    """Return log E[prod_j r_j^total_j] over a Dirichlet law of r, for each row."""
    gained = special.gammaln(prior + total) - special.gammaln(prior)
    both = prior.sum(axis=1) + total.sum(axis=1)
    return np.asarray(
        gained.sum(axis=1) - special.gammaln(both) + special.gammaln(prior.sum(axis=1))
    )


def _entropy(p: Array) -> Array:
    return np.asarray(-special.xlogy(p, p).sum(axis=-1))


def least_rests(component: Callable[[Array], Array], regions: MeanRegions, losses: Array) -> Array:
    """Bound G(m) - c <losses, m> from below over each region, for each of LOSS_MULTIPLIERS c.

    By Lagrange: for any nu >= 0 and tau, it is at least tau - nu * (radius + H(mean)) + the sum
    over classes of the least g(x) - c losses_j x - nu mean_j log x - tau x. Between two points the
    concave part lies above its chord, and the convex one below it by at most nu mean_j h^2 / 8x^2.

    Parameters
    ----------
    component : callable
        The concave function g of a separable entropy.
    regions : MeanRegions
        Where the m of each cell lies.
    losses : ndarray of shape (n_cells, n_classes)
        Loss of each label.

    Returns
    -------
    ndarray of shape (n_cells, n_multipliers)
        The largest of these bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.uncertainty.entropy import Shannon
    >>> from hocal.guarantees.mean_region import MeanRegions, least_rests
    >>> regions = MeanRegions.of(np.array([[0.9, 0.1]]), np.array([0.01]))  # m_1 from .85 to .94
    >>> least_rests(Shannon().component, regions, np.zeros((1, 2))).round(2).tolist()
    [[0.23, 0.23, 0.23]]
    """
    kinds = _kinds(regions, losses)
    n_cells, n_kinds = kinds.times.shape
    n_points = int(np.clip(_N_SHARES / losses.shape[1], *_N_POINTS))
    each = len(LOSS_MULTIPLIERS) * len(_REGION_MULTIPLIERS) * n_kinds * n_points
    step = max(_AT_ONCE // each, 1)
    starts = range(0, n_cells, step)
    sums = [_sums(component, kinds.some(slice(at, at + step)), n_points) for at in starts]
    limit = regions.radius + _entropy(regions.mean)
    rests = np.concatenate(sums) - _REGION_MULTIPLIERS * limit[:, None, None]
    return np.asarray(rests.max(axis=2))


class _Kinds(NamedTuple):
    """Classes of cells, those that are alike once: arrays of shape (n_cells, n_kinds)."""

    times: Array  #: classes of each kind
    mean: Array
    low: Array
    high: Array
    losses: Array

    def some(self, rows: slice) -> _Kinds:
        """Return the classes of some cells."""
        return _Kinds(*(part[rows] for part in self))


def _kinds(regions: MeanRegions, losses: Array) -> _Kinds:
    """Return the kinds of classes: of a thousand, most were never seen and are alike."""
    columns = (regions.mean, regions.low, regions.high, losses)
    if losses.shape[1] <= _FEW_CLASSES:
        return _Kinds(np.ones_like(losses), *columns)
    found = []
    for mean, loss in zip(regions.mean, losses, strict=True):
        both = mean + 1j * loss  # sorted as pairs
        found.append(np.unique(both, return_index=True, return_counts=True)[1:])
    width = max(len(first) for first, _ in found)
    places = np.zeros((len(found), width), dtype=np.intp)
    times = np.zeros((len(found), width))
    for row, (first, counts) in enumerate(found):
        places[row, : len(first)] = first
        times[row, : len(first)] = counts
    return _Kinds(times, *(np.take_along_axis(each, places, axis=1) for each in columns))


def _sums(component: Callable[[Array], Array], kinds: _Kinds, n_points: int) -> Array:
    """Return the largest sums over classes for so many cells that all is listed at once.

    The axes are cells, multipliers of losses, those of regions, classes and points.
    """
    mean = kinds.mean[..., None]
    room = (kinds.high - kinds.low)[..., None]
    x = kinds.low[..., None] + room * np.linspace(0, 1, n_points) ** 2
    lost = kinds.losses[:, None, :, None] * LOSS_MULTIPLIERS[:, None, None] * x[:, None]
    concave = component(x)[:, None] - lost
    logs = -special.xlogy(mean, np.maximum(x, np.finfo(float).tiny))
    start = np.where(mean > 0, x[..., :-1], 1)
    with np.errstate(divide="ignore", over="ignore"):  # a first share may be next to 0
        sagitta = mean * (np.diff(x) / start) ** 2 / 8
    nu = _REGION_MULTIPLIERS[:, None, None]
    return _best_of_sums(
        concave[:, :, None],
        (nu * logs[:, None])[:, None],
        (nu * sagitta[:, None])[:, None],
        x[:, None, None],
        kinds.times[:, None, None],
    )  # (n_cells, n_multipliers of losses, of regions)


def _best_of_sums(concave: Array, convex: Array, sagitta: Array, x: Array, times: Array) -> Array:
    """Return the largest tau + sum over classes of min (concave + convex - tau x) over tau.

    Between two points the sum is at least the smaller of its ends less the sagitta, and also the
    smaller end of the concave part plus the right end of the convex part, which falls.
    """
    shape = np.broadcast_shapes(concave.shape, convex.shape)[:-2]
    low = np.broadcast_to(-_STEEPEST * (1 + _REGION_MULTIPLIERS), shape)
    high = -low
    best = np.full(shape, -np.inf)
    right = convex[..., 1:]
    for _ in range(_SUM_STEPS):
        tau = (low + high) / 2
        tilted = concave - tau[..., None, None] * x
        both = tilted + convex
        least = np.maximum(
            np.minimum(both[..., :-1], both[..., 1:]) - sagitta,
            np.minimum(tilted[..., :-1], tilted[..., 1:]) + right,
        )
        place = least.argmin(axis=-1)[..., None]
        found = (times * np.take_along_axis(least, place, axis=-1)[..., 0]).sum(axis=-1)
        best = np.maximum(best, tau + found)
        shares = np.take_along_axis(np.broadcast_to(x[..., :-1], least.shape), place, axis=-1)
        too_low = (times * shares[..., 0]).sum(axis=-1) < 1
        low = np.where(too_low, tau, low)
        high = np.where(too_low, high, tau)
    return best


def _share_limits(mean: Array, radius: Array) -> tuple[Array, Array]:
    """Return the limits of the shares in a region: two classes alone diverge less than all."""
    ends = []
    for far in (np.zeros_like(mean), np.ones_like(mean)):
        near = mean
        for _ in range(_STEPS):
            middle = (far + near) / 2
            divergence = special.rel_entr(mean, middle) + special.rel_entr(1 - mean, 1 - middle)
            outside = divergence > radius
            far = np.where(outside, middle, far)
            near = np.where(outside, near, middle)
        ends.append(far)
    return ends[0], ends[1]
