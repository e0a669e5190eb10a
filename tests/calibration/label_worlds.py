"""Worlds of label distributions in which people are diffuse, sharp, torn or fond of a class."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hocal.calibration import label_posterior

Array = NDArray[np.float64]

FAVOURITES = 0.6  # factor from one class to the next where classes are not equally frequent


class Claims(NamedTuple):
    """What was said of the items of a world, and what is true."""

    claimed: float  #: mean probability that the majority is right
    right: float  #: share of items whose majority is
    covered: float  #: share of items with their uncertainty inside its limits


def draw_distributions(world: str, n_items: int, n_classes: int, seed: int) -> Array:
    """Return label distributions, (n_items, n_classes)."""
    generator = np.random.default_rng(seed)
    frequency = generator.dirichlet(np.full(n_classes, 2.0))
    if world == "diffuse":
        return generator.dirichlet(10 * frequency, n_items)
    if world == "skewed":
        skewed = FAVOURITES ** np.arange(n_classes) + 0.002
        return generator.dirichlet(5 * skewed / skewed.sum(), n_items)
    lapse = 0.1 if world == "sharp" else 0.02
    sharp = (1 - lapse) * np.eye(n_classes)[generator.choice(n_classes, n_items, p=frequency)]
    sharp = sharp + lapse * frequency
    if world == "sharp":
        return sharp
    torn = _torn(generator, n_items, frequency)
    return np.where(generator.random(n_items)[:, None] < 0.5, sharp, torn)


def _torn(generator: np.random.Generator, n_items: int, frequency: Array) -> Array:
    """Return distributions over two classes each."""
    torn = np.zeros((n_items, len(frequency)))
    for row in torn:
        classes = generator.choice(len(frequency), 2, replace=False, p=frequency)
        share = generator.uniform(0.3, 0.7)
        row[classes] = share, 1 - share
    return torn


def judge_claims(
    world: str, n_classes: int, k: int, *, n_items: int = 1000, n_seeds: int = 1
) -> Claims:
    """Describe items by k labels each and hold that against the truth."""
    found = []
    for seed in range(n_seeds):
        p = draw_distributions(world, n_items, n_classes, seed)
        p = p / p.sum(axis=1, keepdims=True)
        said = label_posterior(np.random.default_rng(seed + 100).multinomial(k, p))
        truth = special.entr(p).sum(axis=1)
        inside = (said.lower <= truth + 1e-9) & (truth <= said.upper + 1e-9)
        right = p[np.arange(n_items), said.majority] == p.max(axis=1)
        found.append([said.majority_probability.mean(), right.mean(), inside.mean()])
    return Claims(*np.mean(found, axis=0))
