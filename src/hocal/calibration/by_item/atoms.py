"""Atoms that stand for the mixture of an item: stratified by two labels it might get next.

A mixture is the sum over pairs of labels of their probability times the mixture given the pair. The
atoms are divided among pairs: twice the leading class, twice another, the leading class and
another, two others. So labels that surprise still find atoms near what they say. Given a pair, the
components are chosen at evenly spaced positions of their weights, and Dirichlet components are
drawn with even numbers that all items share: the atoms of an item do not depend on its
neighbours. Classes are taken in the order of their means, so that relabelling them relabels the
atoms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from hocal._base.typing import Array, Index, Mask
from hocal.calibration.by_item.atom_weights import tilt_to_targets
from hocal.calibration.by_item.component_draws import (
    Choice,
    Draws,
    Pairs,
    choose,
    draw_points,
    pair_probabilities,
)
from hocal.calibration.by_item.components import AROUND_PREDICTION, BEYOND_TOP, TINY
from hocal.calibration.by_item.likeness import Alike
from hocal.calibration.by_item.top_shares import N_COMPONENTS, N_WHOLE, ItemBlock

__all__ = ["MAX_STRATA", "Plan", "are_flat", "least_atoms", "list_atoms", "make_plan"]

MAX_STRATA = 20  # classes with atoms of their own; beyond, one stratum for all other classes
TWICE, WITH_LEADER, WITH_OTHER = 0, 1, 2  # the second label, given the first
SHARES = {TWICE: 1.5, WITH_LEADER: 1.5, WITH_OTHER: 0.7}  # of atoms, by second label
LEADER_SHARE = 6.0  # of atoms given twice the leading class, on the same scale
# Share of atoms, on the same scale, whose first label is of a class beyond the strata; and where
# more than half of the labels are, so that few atoms would have to stand for most of the mixture.
REST_SHARE, FLAT_REST_SHARE = 1.0, 30.0
FLAT = 0.5
FLOOR = 1e-6  # share of the mean in each atom: no label is ever impossible
GOLDEN = (np.sqrt(5) - 1) / 2  # its multiples are spread evenly, however many are taken


class Plan(NamedTuple):
    """Which pair of labels and which position each atom has; the same for all items."""

    first: Index  #: (n_atoms,) rank of the first label; the last may stand for all the rest
    second: Index  #: (n_atoms,) TWICE, WITH_LEADER or WITH_OTHER
    size: Array  #: (n_atoms,) number of atoms with the same first and second
    position: Array  #: (n_atoms,) in (0, 1), among the components
    spread: Array  #: (n_atoms,) in (0, 1), among classes where a label is to be chosen
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
    alike: Alike | None
    certain: Array | None  #: (n_items, N_ALIKE, n_classes) probabilities of the class J


class _Hypothetical(NamedTuple):
    """Two labels for each atom, and how they were chosen."""

    label: Index  #: (n_items, n_atoms, 2)
    chance: Array  #: (n_items, n_atoms) of having chosen these, given the stratum


def least_atoms(n_classes: int) -> int:
    """Return the number of strata, each of which needs an atom."""
    return 1 + 3 * (min(n_classes, MAX_STRATA) - 1)


def list_atoms(block: ItemBlock, plan: Plan) -> tuple[Array, Array]:
    """List atoms for each item whose mean and uncertainties are those of the closed form.

    Parameters
    ----------
    block : ItemBlock
        Items.
    plan : Plan
        Of the atoms of each, which takes as long to make as the atoms of a few items.

    Returns
    -------
    tuple of ndarray
        Points, (n_items, n_atoms, n_classes), and weights, (n_items, n_atoms).
    """
    mean = block.mean()
    order = np.argsort(-mean, axis=1, kind="stable")
    ranked = _rank(block, mean, order)
    points, weights = _atoms(block, ranked, plan)
    points *= 1 - FLOOR
    points += FLOOR * ranked.mean[:, None]
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
    means, prediction, split, seen = (np.take_along_axis(array, order, axis=1) for array in arrays)
    top = np.argmax(order == block.top.top[:, None], axis=1)
    outside = seen.copy()
    outside[np.arange(len(top)), top] = 0
    alike = certain = None
    if block.alike is not None:
        alike = block.alike.reorder(order)
        given = block.alike.posterior(block.labels)
        certain = np.take_along_axis(given, order[:, None], axis=2)
    return _Ranked(means, prediction, split, seen, outside, top, alike, certain)


def are_flat(mean: Array) -> Mask:
    """Say which items have more than half of their labels beyond the classes with strata."""
    n_classes = mean.shape[1]
    if n_classes <= MAX_STRATA:
        return np.zeros(len(mean), dtype=bool)
    beyond = np.partition(mean, n_classes - MAX_STRATA, axis=1)[:, : n_classes - MAX_STRATA + 1]
    return np.asarray(beyond.sum(axis=1) > FLAT)


def make_plan(n_atoms: int, n_classes: int, *, flat: bool = False) -> Plan:
    """Give each stratum an atom, and divide the others with more for the likely labels.

    Parameters
    ----------
    n_atoms : int
        Atoms of each item, at least `least_atoms`.
    n_classes : int
        Number of label classes.
    flat : bool, default=False
        Whether most labels are of classes beyond those with strata of their own.
    """
    first, second, shares = _strata(n_classes, FLAT_REST_SHARE if flat else REST_SHARE)
    spare = np.cumsum(shares) / shares.sum() * (n_atoms - len(first))
    sizes = 1 + np.diff(np.rint(spare), prepend=0).astype(np.intp)
    stratum = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(n_atoms) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    size = sizes[stratum].astype(np.float64)
    position = (place + 0.5) / size
    spread = ((place + 0.5) * GOLDEN) % 1
    normal, uniform = _even_numbers(n_atoms, n_classes)
    numbers = size, position, spread, normal, np.log(uniform)
    return Plan(first[stratum], second[stratum], *numbers)


def _strata(n_classes: int, rest_share: float) -> tuple[Index, Index, Array]:
    """Return first and second labels of the strata, and their shares of the atoms."""
    strata = [(0, TWICE, LEADER_SHARE)]
    n_first = min(n_classes, MAX_STRATA)
    for rank in range(1, n_first):
        together = n_classes > n_first and rank == n_first - 1  # stands for many classes
        weight = rest_share if together else 1 / rank
        kinds = [kind for kind in SHARES if n_classes > 2 or kind != WITH_OTHER]
        strata += [(rank, kind, SHARES[kind] * weight) for kind in kinds]
    first, second, shares = zip(*strata, strict=True)
    return np.array(first), np.array(second), np.array(shares)


def _even_numbers(n_atoms: int, n_classes: int) -> tuple[Array, Array]:
    """Return normal and uniform numbers, of which every run is spread evenly.

    They are multiples of roots of primes, modulo 1 (a Kronecker sequence).
    """
    roots = np.sqrt(_primes(2 * n_classes))
    numbers = (0.5 + np.arange(1, n_atoms + 1)[:, None] * roots) % 1
    normal = np.asarray(ndtri(numbers[:, ::2]))
    uniform = np.asarray(numbers[:, 1::2], np.float64)
    return normal, uniform


def _primes(n: int) -> Index:
    """Return the first n primes."""
    log = np.log(n + 2)
    limit = int(n * (log + np.log(log))) + 10  # above the n-th prime
    is_prime = np.arange(limit) > 1
    for factor in range(2, int(np.sqrt(limit)) + 1):
        is_prime[2 * factor :: factor] = False
    return np.flatnonzero(is_prime)[:n]


def _hypothetical(mean: Array, plan: Plan) -> _Hypothetical:
    """Choose the labels that the plan leaves open, in proportion to the means."""
    n_items, n_classes = mean.shape
    first = np.repeat(plan.first[None], n_items, axis=0)
    chance = np.ones(first.shape)
    if n_classes > MAX_STRATA:
        last = plan.first == MAX_STRATA - 1
        rest = np.repeat(mean[:, None, MAX_STRATA - 1 :], int(last.sum()), axis=1)
        index, chance[:, last] = _choose_label(rest, plan.position[last])
        first[:, last] += index
    second = np.where(plan.second == WITH_LEADER, 0, first)
    other = plan.second == WITH_OTHER
    eligible = np.repeat(mean[:, None], int(other.sum()), axis=1)
    eligible[..., 0] = 0
    np.put_along_axis(eligible, first[:, other][..., None], 0.0, axis=2)
    second[:, other], of_second = _choose_label(eligible, plan.spread[other])
    chance[:, other] *= of_second
    return _Hypothetical(np.stack([first, second], axis=2), chance)


def _choose_label(weights: Array, position: Array) -> tuple[Index, Array]:
    """Return chosen classes, and the chance of each choice."""
    index = choose(weights, np.broadcast_to(position, weights.shape[:2])).place
    chosen = np.take_along_axis(weights, index[..., None], axis=2)[..., 0]
    return index, chosen / np.maximum(weights.sum(axis=2), TINY)


def _atoms(block: ItemBlock, ranked: _Ranked, plan: Plan) -> tuple[Array, Array]:
    """Return points and weights of the atoms, before any correction."""
    chosen = _hypothetical(ranked.mean, plan)
    label = chosen.label
    outside = label != ranked.top[:, None, None]
    every = Pairs(label, np.ones_like(outside))
    split = pair_probabilities(
        BEYOND_TOP, ranked.split, ranked.counts_outside, Pairs(label, outside)
    )
    split *= block.split_weights[:, None]
    shares, share_given_labels = _shares(block, outside.sum(axis=2))
    shares = shares * split.sum(axis=2, keepdims=True)
    whole = pair_probabilities(AROUND_PREDICTION, ranked.prediction, ranked.counts, every)
    parts = [whole, shares]
    if ranked.alike is not None and ranked.certain is not None:
        parts.append(ranked.alike.pair_probabilities(ranked.certain, every))
    weights = np.concatenate(parts, axis=2) * block.weights[:, None]
    component = choose(weights, np.broadcast_to(plan.position, label.shape[:2]))
    part = choose(split, component.position)
    points = _points(ranked, plan, (component, part), (every, Pairs(label, outside)))
    differs = (component.place >= N_WHOLE) & (component.place < N_COMPONENTS)
    _set_shares(points, ranked.top, differs, component.place - N_WHOLE, share_given_labels)
    orders = np.where(plan.second == WITH_LEADER, 2.0, 1.0)  # the leader first or second
    mass = weights.sum(axis=2) * orders / np.maximum(chosen.chance, TINY)
    return points, mass / plan.size


def _shares(block: ItemBlock, n_outside: Index) -> tuple[Array, Array]:
    """Return probabilities of labels outside the top class, and mean shares outside given them."""
    first, second = (values[:, None] for values in block.share_parameters())
    total = first + second
    number = n_outside[..., None]
    both = np.where(number == 0, second * (second + 1), first * (first + 1))
    pair = np.where(number == 1, first * second, both) / (total * (total + 1))
    return pair, (first + number) / (total + 2)


def _points(
    ranked: _Ranked, plan: Plan, choices: tuple[Choice, Choice], pairs: tuple[Pairs, Pairs]
) -> Array:
    """Draw from the family around the prediction, from that of the split, or by likeness."""
    around = choices[0].place < N_WHOLE
    by_likeness = choices[0].place >= N_COMPONENTS
    differs = ~(around | by_likeness)
    points = np.empty((*around.shape, ranked.mean.shape[1]))
    draws = _draws(around, choices[0], pairs[0], plan)
    points[around] = draw_points(AROUND_PREDICTION, ranked.prediction, ranked.counts, draws)
    draws = _draws(differs, choices[1], pairs[1], plan)
    points[differs] = draw_points(BEYOND_TOP, ranked.split, ranked.counts_outside, draws)
    if ranked.alike is not None and ranked.certain is not None:
        draws = _draws(by_likeness, choices[0], pairs[0], plan)
        chosen = draws.item, draws.component - N_COMPONENTS, draws.pairs, draws.position
        points[by_likeness] = ranked.alike.choose_points(ranked.certain, *chosen)
    return points


def _draws(rows: Mask, choice: Choice, pairs: Pairs, plan: Plan) -> Draws:
    item, atom = np.nonzero(rows)
    chosen = Pairs(pairs.label[rows], pairs.counted[rows])
    numbers = plan.normal[atom], plan.log_uniform[atom]
    return Draws(item, choice.place[rows], chosen, choice.position[rows], *numbers)


def _set_shares(points: Array, top: Index, rows: Mask, component: Index, shares: Array) -> None:
    """Turn splits beyond the top class into label distributions, in place."""
    item, atom = np.nonzero(rows)
    share = shares[item, atom, component[rows]]
    points[rows] *= share[:, None]
    points[item, atom, top[item]] = 1 - share
