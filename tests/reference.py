"""Slow, obvious versions of what hocal computes: Python loops over the definitions."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from hocal import Mixtures

Vector = Sequence[float] | NDArray[np.float64]
Snapshot = tuple[int, ...]
AtomList = list[tuple[float, list[float]]]  # (weight, label distribution)
Divergence = Callable[[Vector, Vector], float]


def shannon(p: Vector, base: float = math.e) -> float:
    """Return -sum p log p."""
    return sum(-x * math.log(x, base) for x in p if x > 0)


def brier(p: Vector) -> float:
    """Return the probability that two labels differ."""
    return sum(x * y for i, x in enumerate(p) for j, y in enumerate(p) if i != j)


def tsallis(p: Vector, order: float) -> float:
    """Return (1 - sum p^order) / (order - 1)."""
    return (1 - sum(x**order for x in p if x > 0)) / (order - 1)


def zero_one(p: Vector) -> float:
    """Return the error rate of the best single guess."""
    return min(sum(x for j, x in enumerate(p) if j != guess) for guess in range(len(p)))


def ordinal(p: Vector) -> float:
    """Half the mean distance of two labels, in steps between classes."""
    steps = range(len(p))
    return sum(p[j] * p[k] * abs(j - k) for j in steps for k in steps) / 2


def spherical(p: Vector) -> float:
    """Return 1 - ||p||."""
    return 1 - math.sqrt(sum(x * x for x in p))


def kullback_leibler(q: Vector, p: Vector) -> float:
    """Return sum q log(q / p), infinite where p excludes what q allows."""
    total = 0.0
    for x, y in zip(q, p, strict=True):
        if x > 0:
            total += math.inf if y == 0 else x * math.log(x / y)
    return total


def squared_distance(q: Vector, p: Vector) -> float:
    """Return sum (q - p)^2."""
    return sum((x - y) ** 2 for x, y in zip(q, p, strict=True))


def atoms_of(mixtures: Mixtures, item: int) -> AtomList:
    """Return the atoms with mass of one item's mixture."""
    m = int(mixtures.index[item])
    places = range(int(mixtures.offsets[m]), int(mixtures.offsets[m + 1]))
    return [
        (float(mixtures.weights[a]), mixtures.points[a].tolist())
        for a in places
        if mixtures.weights[a] > 0
    ]


def mean(atoms: AtomList) -> list[float]:
    """Return the mean label distribution."""
    return [sum(w * p[j] for w, p in atoms) for j in range(len(atoms[0][1]))]


def snapshot_of(labels: Sequence[int], n_classes: int) -> Snapshot:
    """Count the labels of each class."""
    return tuple(sum(label == j for label in labels) for j in range(n_classes))


def snapshots(k: int, n_classes: int) -> list[Snapshot]:
    """Return Y^(k) in lexicographic order."""
    return sorted(s for s in itertools.product(range(k + 1), repeat=n_classes) if sum(s) == k)


def multiplicity(snapshot: Sequence[int]) -> int:
    """Return the number of orders of a snapshot's labels."""
    ways = math.factorial(sum(snapshot))
    for count in snapshot:
        ways //= math.factorial(count)
    return ways


def multinomial(snapshot: Sequence[int], p: Vector) -> float:
    """Return the probability of a snapshot when labels follow p."""
    return multiplicity(snapshot) * math.prod(x**s for x, s in zip(p, snapshot, strict=True))


def tuple_probabilities(atoms: AtomList, k: int) -> NDArray[np.float64]:
    """Return the probability of every ordered tuple of k labels, an array with k axes."""
    n_classes = len(atoms[0][1])
    tensor = np.zeros((n_classes,) * k)
    for labels in itertools.product(range(n_classes), repeat=k):
        tensor[labels] = sum(w * math.prod(p[label] for label in labels) for w, p in atoms)
    return tensor


def project(atoms: AtomList, k: int) -> dict[Snapshot, float]:
    """Return proj_k by adding up ordered tuples."""
    n_classes = len(atoms[0][1])
    result = dict.fromkeys(snapshots(k, n_classes), 0.0)
    tensor = tuple_probabilities(atoms, k)
    for labels in itertools.product(range(n_classes), repeat=k):
        result[snapshot_of(labels, n_classes)] += float(tensor[labels])
    return result


def thin(counts: Sequence[int], k: int) -> dict[Snapshot, float]:
    """Return the distribution of k labels chosen among an item's, over all subsets."""
    labels = [j for j, count in enumerate(counts) for _ in range(count)]
    subsets = Counter(
        snapshot_of(chosen, len(counts)) for chosen in itertools.combinations(labels, k)
    )
    return {snapshot: times / math.comb(len(labels), k) for snapshot, times in subsets.items()}


def compress(counts: NDArray[np.int64]) -> dict[Snapshot, int]:
    """Return how often each distinct row occurs."""
    return dict(Counter(tuple(row) for row in counts.tolist()))


def moment(atoms: AtomList, exponents: Sequence[int]) -> float:
    """Return E[prod p_j^a_j]."""
    return sum(w * math.prod(x**a for x, a in zip(p, exponents, strict=True)) for w, p in atoms)


def log_likelihood(atoms: AtomList, snapshot: Sequence[int]) -> float:
    """Return the log-probability of a snapshot."""
    likelihood = sum(w * multinomial(snapshot, p) for w, p in atoms)
    return math.log(likelihood) if likelihood > 0 else -math.inf


def mutual_information(atoms: AtomList, divergence: Divergence) -> float:
    """Return E D(p||mean)."""
    return sum(w * divergence(p, mean(atoms)) for w, p in atoms)


def reverse_mutual_information(atoms: AtomList, divergence: Divergence) -> float:
    """Return E D(mean||p)."""
    return sum(w * divergence(mean(atoms), p) for w, p in atoms)


def total_mutual_information(atoms: AtomList, divergence: Divergence) -> float:
    """Return E D(p||p') over two independent draws."""
    return sum(w * v * divergence(p, q) for w, p in atoms for v, q in atoms)


def posterior(atoms: AtomList, snapshot: Sequence[int]) -> list[float]:
    """Return the weights of the atoms given labels, by Bayes' rule."""
    joint = [w * multinomial(snapshot, p) for w, p in atoms]
    return [x / sum(joint) for x in joint]


def box_limits(g: Callable[[float], float], lower: Vector, upper: Vector) -> tuple[float, float]:
    """Return the least sum of chords and the largest sum of g(p_j) between two vectors.

    Shares rise to a common level, or the classes with the flattest chords are filled first.
    """
    if sum(lower) > 1 or sum(upper) < 1:
        lower, upper = [0.0] * len(lower), [1.0] * len(upper)
    pairs = list(zip(lower, upper, strict=True))
    low, high = 0.0, 1.0
    for _ in range(60):
        level = (low + high) / 2
        total = sum(min(max(level, a), b) for a, b in pairs)
        low, high = (level, high) if total < 1 else (low, level)
    largest = sum(g(min(max(high, a), b)) for a, b in pairs)
    chords = sorted(((g(b) - g(a)) / (b - a) if b > a else 0.0, b - a) for a, b in pairs)
    left = 1 - sum(lower)
    least = sum(g(a) for a in lower)
    for slope, room in chords:
        least += slope * min(left, room)
        left -= min(left, room)
    return max(least, 0.0), largest
