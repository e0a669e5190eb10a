"""Atoms that stand for the mixture of an item: stratified by a label it might get next.

A mixture is the sum over classes j of P(next label = j) times the mixture given that label. Each
class, or each of the likely ones and all others together, has atoms of its own, so that labels
which surprise still find atoms near what they say. Within a class the components are chosen at
evenly spaced positions of their weights, and Dirichlet components are drawn with random numbers
that all items share: the atoms of an item do not depend on its neighbours. Classes are taken in
the order of their means, so that relabelling them relabels the atoms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from hocal._base.typing import Array, Index, Mask
from hocal.calibration.atom_weights import tilt_to_targets
from hocal.calibration.components import AROUND_PREDICTION, BEYOND_TOP, TINY, Components
from hocal.calibration.top_shares import N_WHOLE, ItemBlock

__all__ = ["list_atoms"]

MAX_STRATA = 20  # classes with atoms of their own; beyond, one stratum for all other classes
LEAST_ATOMS = 4  # of a stratum: fewer do not tell certain people from divided ones
STEEPNESS = 1.0  # a stratum's atoms fall with this power of its rank: likely labels matter more
FLOOR = 1e-6  # share of the mean in each atom: no label is ever impossible
GOLDEN = (np.sqrt(5) - 1) / 2  # its multiples are spread evenly, however many are taken
SMALLEST_SHAPE = 1e-12  # of a gamma variable, in place of 0


class _Plan(NamedTuple):
    """Which stratum and position each atom has; the same for all items."""

    stratum: Index  #: (n_atoms,) rank of the hypothetical label; the last may stand for the rest
    position: Array  #: (n_atoms,) in (0, 1), among the components
    size: Array  #: (n_atoms,) number of atoms of the stratum
    normal: Array  #: (n_atoms, n_classes) of the gamma variables
    log_uniform: Array  #: (n_atoms, n_classes)


class _Ranked(NamedTuple):
    """A block of items with classes in the order of their means."""

    mean: Array  #: (n_items, n_classes)
    prediction: Array
    split: Array
    counts: Array
    counts_outside: Array  #: 0 at the top class
    top: Index  #: (n_items,) rank of the top class


class _Choice(NamedTuple):
    """What was chosen for each atom, and where in its cell the position lies."""

    index: Index
    position: Array


class _Draws(NamedTuple):
    """Atoms to draw from components around a mean."""

    item: Index  #: (n_draws,)
    atom: Index  #: (n_draws,) row of the random numbers
    component: Index  #: (n_draws,)
    label: Index  #: (n_draws,) hypothetical label
    counted: Mask  #: (n_draws,) whether that label belongs to this family
    position: Array  #: (n_draws,) that chooses the class of a star


def list_atoms(block: ItemBlock, n_atoms: int) -> tuple[Array, Array]:
    """List atoms for each item whose mean and uncertainties are those of the closed form.

    Parameters
    ----------
    block : ItemBlock
        Items.
    n_atoms : int
        Atoms of each.

    Returns
    -------
    tuple of ndarray
        Points, (n_items, n_atoms, n_classes), and weights, (n_items, n_atoms).
    """
    mean = block.mean()
    order = np.argsort(-mean, axis=1, kind="stable")
    ranked = _rank(block, mean, order)
    plan = _make_plan(n_atoms, mean.shape[1])
    label = _hypothetical_labels(ranked.mean, plan)
    points = _points(block, ranked, plan, label)
    points *= 1 - FLOOR
    points += FLOOR * ranked.mean[:, None]
    weights = _stratum_weights(ranked.mean, plan) / plan.size
    targets = ranked.mean, 1 - block.brier(), block.shannon()
    points, weights = tilt_to_targets(points, weights, *targets, n_means=MAX_STRATA)
    result = np.empty_like(points)
    np.put_along_axis(result, np.broadcast_to(order[:, None], points.shape), points, axis=2)
    return result, weights


def _rank(block: ItemBlock, mean: Array, order: Index) -> _Ranked:
    counts = np.zeros_like(mean)
    if block.labels is not None:
        block.labels.add_to(counts, block.labels.n_labels)
    arrays = [mean, block.top.prediction, block.top.split, counts]
    ranked = [np.take_along_axis(array, order, axis=1) for array in arrays]
    top = np.argmax(order == block.top.top[:, None], axis=1)
    outside = ranked[3].copy()
    outside[np.arange(len(top)), top] = 0
    return _Ranked(*ranked, outside, top)


def _make_plan(n_atoms: int, n_classes: int) -> _Plan:
    """Give the first strata more atoms, and spread the random numbers evenly."""
    n_strata = min(n_classes, MAX_STRATA)
    shares = (1 + np.arange(n_strata)) ** -STEEPNESS
    spare = max(n_atoms - n_strata * LEAST_ATOMS, 0)
    least = min(LEAST_ATOMS, n_atoms // n_strata)
    ends = np.rint(np.cumsum(shares) / shares.sum() * spare) + least * np.arange(1, n_strata + 1)
    sizes = np.diff(np.append(0, ends)).astype(np.intp)
    sizes[0] += n_atoms - sizes.sum()
    stratum = np.repeat(np.arange(n_strata), sizes)
    place = np.arange(n_atoms) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    position = (place + 0.5) / sizes[stratum]
    normal, uniform = _random_numbers(n_atoms, n_classes)
    return _Plan(stratum, position, sizes[stratum].astype(float), normal, np.log(uniform))


def _random_numbers(n_atoms: int, n_classes: int) -> tuple[Array, Array]:
    """Return normal and uniform numbers; those of each class are spread evenly (a Latin square)."""
    order = np.random.default_rng(0).random((2, n_atoms, n_classes)).argsort(axis=1)
    normal, uniform = (order + 0.5) / n_atoms
    return ndtri(normal), uniform


def _hypothetical_labels(mean: Array, plan: _Plan) -> Index:
    """Return the label of each atom, (n_items, n_atoms); atoms of the rest choose by the mean."""
    n_items, n_classes = mean.shape
    label = np.repeat(plan.stratum[None], n_items, axis=0)
    if n_classes > MAX_STRATA:
        last = plan.stratum == MAX_STRATA - 1
        rest = mean[:, None, MAX_STRATA - 1 :]
        position = np.broadcast_to(plan.position[last], (n_items, int(last.sum())))
        label[:, last] = MAX_STRATA - 1 + _choose(rest, position).index
    return label


def _stratum_weights(mean: Array, plan: _Plan) -> Array:
    n_strata = min(mean.shape[1], MAX_STRATA)
    strata = mean[:, :n_strata].copy()
    strata[:, -1] = mean[:, n_strata - 1 :].sum(axis=1)
    return np.asarray(strata[:, plan.stratum])


def _choose(weights: Array, position: Array) -> _Choice:
    """Find positions in (0, 1) among weights on the last axis, which need not sum to 1."""
    sums = np.cumsum(weights, axis=-1)
    target = position * sums[..., -1]
    index = np.minimum((sums <= target[..., None]).sum(axis=-1), weights.shape[-1] - 1)
    end = np.take_along_axis(sums, index[..., None], axis=-1)[..., 0]
    before = np.take_along_axis(sums, np.maximum(index - 1, 0)[..., None], axis=-1)[..., 0]
    start = np.where(index > 0, before, 0.0)
    return _Choice(index, np.clip((target - start) / np.maximum(end - start, TINY), 0, 1))


def _points(block: ItemBlock, ranked: _Ranked, plan: _Plan, label: Index) -> Array:
    """Return a label distribution for each atom, (n_items, n_atoms, n_classes)."""
    at_top = label == ranked.top[:, None]
    split = _at_labels(BEYOND_TOP, ranked.split, ranked.counts_outside, label)
    split = np.where(at_top[..., None], 1.0, split) * block.split_weights[:, None]
    outside, outside_given_label = _outside(block, at_top)
    factor = np.where(at_top[..., None], 1 - outside, outside * split.sum(axis=2, keepdims=True))
    whole = _at_labels(AROUND_PREDICTION, ranked.prediction, ranked.counts, label)
    weights = np.concatenate([whole, factor], axis=2) * block.weights[:, None]
    chosen = _choose(weights, np.broadcast_to(plan.position, label.shape))
    parts = _choose(split, chosen.position)
    points = np.empty((*label.shape, ranked.mean.shape[1]))
    around = chosen.index < N_WHOLE
    draws = _draws(around, chosen, label, np.ones_like(around))
    points[around] = _draw(AROUND_PREDICTION, ranked.prediction, ranked.counts, plan, draws)
    draws = _draws(~around, parts, label, ~at_top)
    inner = _draw(BEYOND_TOP, ranked.split, ranked.counts_outside, plan, draws)
    share = outside_given_label[draws.item, draws.atom, chosen.index[~around] - N_WHOLE]
    inner *= share[:, None]
    inner[np.arange(len(inner)), ranked.top[draws.item]] = 1 - share
    points[~around] = inner
    return points


def _outside(block: ItemBlock, at_top: Mask) -> tuple[Array, Array]:
    """Return mean shares outside the top class, before and after the hypothetical label."""
    first, second = block.share_parameters()
    total = first + second
    after = (first[:, None] + ~at_top[..., None]) / (total[:, None] + 1)
    return (first / total)[:, None], after


def _draws(chosen: Mask, choice: _Choice, label: Index, counted: Mask) -> _Draws:
    item, atom = np.nonzero(chosen)
    fields = [choice.index, label, counted, choice.position]
    component, labels, belongs, position = (field[chosen] for field in fields)
    return _Draws(item, atom, component, labels, belongs, position)


def _certain_classes(family: Components, q: Array, counts: Array) -> Array:
    """Return the posterior of the class J of each star, (n_items, n_stars, n_classes)."""
    e = family.lapses[:, None]
    mean = np.maximum(q, TINY)[:, None]
    logs = np.log(mean) + counts[:, None] * (np.log(1 - e + e * mean) - np.log(e * mean))
    posterior = np.exp(logs - logs.max(axis=2, keepdims=True))
    return np.asarray(posterior / posterior.sum(axis=2, keepdims=True))


def _at_labels(family: Components, q: Array, counts: Array, label: Index) -> Array:
    """Return each component's probability of the label, (n_items, n_atoms, n_components)."""
    s = family.precisions[:, None]
    e = family.lapses[:, None]
    totals = counts.sum(axis=1)[:, None, None]
    dirichlets = (s * q[:, None] + counts[:, None]) / (s + totals)
    stars = (1 - e) * _certain_classes(family, q, counts) + e * q[:, None]
    every = np.concatenate([dirichlets, stars], axis=1)
    return np.take_along_axis(every.transpose(0, 2, 1), label[..., None], axis=1)


def _draw(family: Components, q: Array, counts: Array, plan: _Plan, draws: _Draws) -> Array:
    """Draw atoms of Dirichlets, and list those of stars."""
    dirichlet = draws.component < family.n_dirichlets
    points = np.empty((len(dirichlet), q.shape[1]))
    points[dirichlet] = _draw_dirichlets(family, q, counts, plan, _some(draws, dirichlet))
    points[~dirichlet] = _list_stars(family, q, counts, _some(draws, ~dirichlet))
    return points


def _some(draws: _Draws, rows: Mask) -> _Draws:
    return _Draws(*(field[rows] for field in draws))


def _draw_dirichlets(
    family: Components, q: Array, counts: Array, plan: _Plan, draws: _Draws
) -> Array:
    """Divide gamma variables by their sum; Gamma(a) is Gamma(a + 1) times U^(1/a)."""
    shape = family.precisions[draws.component][:, None] * q[draws.item] + counts[draws.item]
    shape[np.arange(len(shape)), draws.label] += draws.counted
    np.maximum(shape, SMALLEST_SHAPE, out=shape)
    more = shape + 1
    root = 1 - 1 / (9 * more) + plan.normal[draws.atom] / (3 * np.sqrt(more))  # Wilson, Hilferty
    logs = 3 * np.log(np.maximum(root, 0.01)) + np.log(more)
    logs += plan.log_uniform[draws.atom] / shape
    logs -= logs.max(axis=1, keepdims=True)
    points = np.exp(logs, out=logs)
    points /= points.sum(axis=1, keepdims=True)
    return points


def _list_stars(family: Components, q: Array, counts: Array, draws: _Draws) -> Array:
    """Choose the certain class of stars by position, given the hypothetical label."""
    star = draws.component - family.n_dirichlets
    rows = np.arange(len(star))
    e = family.lapses[star]
    mean = q[draws.item]
    posterior = _certain_classes(family, q, counts)[draws.item, star]
    at_label = mean[rows, draws.label]
    gain = (1 - e + e * at_label) / (e * np.maximum(at_label, TINY))
    posterior[rows, draws.label] *= np.where(draws.counted, gain, 1.0)
    certain = _choose(posterior, draws.position).index
    points = e[:, None] * mean
    points[rows, certain] += 1 - e
    return np.asarray(points)
