"""Synthetic worlds whose label distributions are known, to compare estimates with the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hocal._base.errors import InputError
from hocal._base.typing import Array, Index, IntArray
from hocal._base.validation import (
    check_cells,
    check_choice,
    check_integer,
    check_n_classes,
    check_number,
    check_random_state,
    check_whole,
    refuse_large,
)
from hocal.uncertainty.mixtures import Mixtures
from hocal.uncertainty.segments import segment_offsets

__all__ = ["World", "make_binary_regression", "make_mixture_world", "make_xray"]

# of the Dirichlet law of weights: no atom is too rare to matter
ATOM_CONCENTRATION = 4.0
FEWER_ITEMS = "Ask for fewer, and make several worlds with different seeds."


@dataclass(frozen=True, eq=False, repr=False)
class World:
    """Items with their true label distributions, and what a model predicts for them.

    Attributes
    ----------
    features : ndarray of shape (n_items, n_features)
        What a model may look at.
    label_distributions : ndarray of shape (n_items, n_classes)
        The true distribution of each item's labels, which no one sees in practice.
    predictions : ndarray of shape (n_items, n_classes)
        A first-order prediction for each item.
    cells : ndarray of shape (n_items,)
        Items that the predictions cannot or should not tell apart share a cell.
    mixtures : Mixtures
        The Bayes mixture of each item: the distribution of the label distributions in its cell.

    Examples
    --------
    >>> from hocal.datasets import make_xray
    >>> make_xray(4, scenario="clear", random_state=0)
    World(4 items, 2 classes, 1 cells)
    """

    features: Array
    label_distributions: Array
    predictions: Array
    cells: Index
    mixtures: Mixtures

    def __len__(self) -> int:
        return len(self.label_distributions)

    def __repr__(self) -> str:
        n_classes = self.label_distributions.shape[1]
        n_cells = len(np.unique(self.cells))
        return f"World({len(self)} items, {n_classes} classes, {n_cells} cells)"

    def draw(self, k: int | ArrayLike, *, random_state: Any = None) -> IntArray:
        """Draw k labels for each item, or k[i] for item i, as counts (n_items, n_classes)."""
        totals = check_whole(k, "k")
        if totals.shape not in ((), (len(self),)):
            rule = f"must be one number, or one for each of {len(self)} items"
            raise InputError("k", rule, value=f"shape {totals.shape}")
        check_integer(int(totals.min()), "k", minimum=1)
        p = self.label_distributions / self.label_distributions.sum(axis=1, keepdims=True)
        return check_random_state(random_state).multinomial(totals, p)


def make_xray(
    n_items: int = 1000, *, scenario: str = "ambiguous", random_state: Any = None
) -> World:
    """Make one of the paper's two worlds of scans, which one label per scan cannot tell apart.

    Parameters
    ----------
    n_items : int, default=1000
        Scans.
    scenario : {"ambiguous", "clear"}
        Doctors split evenly over every scan, or half of the scans are clearly positive and half
        clearly not.
    random_state : int, Generator or None
        Which scans are positive, and the features, which say nothing.

    Returns
    -------
    World
        Predictions are 50% for every scan in both scenarios.

    Examples
    --------
    >>> from hocal.datasets import make_xray
    >>> world = make_xray(2, scenario="ambiguous")
    >>> world.predictions.tolist(), world.label_distributions.tolist()
    ([[0.5, 0.5], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]])
    """
    n_items = check_integer(n_items, "n_items", minimum=1)
    refuse_large("n_items", 8 * n_items, f"{n_items:,} items", FEWER_ITEMS)
    check_choice(scenario, "scenario", ("ambiguous", "clear"))
    generator = check_random_state(random_state)
    even = np.full((n_items, 2), 0.5)
    cells = np.zeros(n_items, dtype=np.intp)
    positive = generator.permutation(n_items) % 2
    single = Mixtures.from_vertices if scenario == "clear" else Mixtures.from_points
    truth = np.eye(2)[positive] if scenario == "clear" else even
    features = generator.normal(size=(n_items, 1))
    return World(features, truth, even, cells, single([[0.5, 0.5]])[cells])


def make_binary_regression(
    n_items: int = 5000, *, n_bins: int = 100, random_state: Any = None
) -> World:
    """Make the one-dimensional world of the paper's binary regression, as reconstructed here.

    x = |N(0, 1)|, w = sigmoid(8 (1 - x)), p = .5 + .48 cos(pi x) w + .45 sin(24 pi x) (1 - w). The
    exact function of Johnson et al. (2024) is not public; this one has the slow part on the left
    and the fast part on the right that their figure shows.

    Parameters
    ----------
    n_items : int, default=5000
        Points.
    n_bins : int, default=100
        Cells are equal bins of the predicted probability.
    random_state : int, Generator or None
        Seed or source of randomness.

    Returns
    -------
    World
        Predictions are the slow part, all that a smooth model can learn; column 1 is the
        probability of heads.

    Examples
    --------
    >>> from hocal.datasets import make_binary_regression
    >>> world = make_binary_regression(1000, random_state=0)
    >>> world.draw(10, random_state=0).sum(axis=1).min()
    np.int64(10)
    """
    n_items = check_integer(n_items, "n_items", minimum=1)
    n_bins = check_integer(n_bins, "n_bins", minimum=1)
    refuse_large("n_items", 16 * (n_items + n_bins), f"{n_items:,} items", FEWER_ITEMS)
    x = np.abs(check_random_state(random_state).normal(size=n_items))
    slow = 1 / (1 + np.exp(-8 * (1 - x)))  # the share of the slow part
    smooth = 0.5 + 0.48 * np.cos(np.pi * x) * slow
    waves = 0.45 * np.sin(24 * np.pi * x)
    heads = np.clip(smooth + waves * (1 - slow), 0, 1)
    truth, predictions = (np.column_stack([1 - p, p]) for p in (heads, smooth))
    cells = np.minimum((smooth * n_bins).astype(np.intp), n_bins - 1)
    return World(x[:, None], truth, predictions, cells, cell_mixtures(truth, cells, n_bins))


def make_mixture_world(
    n_items: int = 1000,
    n_classes: int = 3,
    *,
    n_cells: int = 10,
    n_atoms: int = 4,
    ambiguity: float = 0.5,
    n_features: int = 8,
    noise: float = 0.0,
    random_state: Any = None,
) -> World:
    """Make a world of cells, each with its own finite mixture of label distributions.

    An atom is a certain label moved by `ambiguity` towards a random label distribution, so 0 makes
    a world where all doubt is epistemic and 1 one where most is aleatoric.

    Parameters
    ----------
    n_items : int, default=1000
        Items; each belongs to a random cell and has a random atom of its mixture.
    n_classes : int, default=3
        Number of label classes.
    n_cells : int, default=10
        Number of cells.
    n_atoms : int, default=4
        Atoms of each cell's mixture.
    ambiguity : float, default=0.5
        From 0 to 1.
    n_features : int, default=8
        Width of the features: the centre of the cell, a standard normal vector.
    noise : float, default=0.0
        Deviation of the features around it. With 0 the mixture given the features is exactly the
        cell's.
    random_state : int, Generator or None
        Seed or source of randomness. With an integer the cells are the same whatever `n_items` is.

    Returns
    -------
    World
        Predictions are the mean of each cell's mixture: calibrated to first order.

    Examples
    --------
    >>> from hocal.datasets import make_mixture_world
    >>> world = make_mixture_world(500, 4, n_cells=3, random_state=0)
    >>> world
    World(500 items, 4 classes, 3 cells)
    >>> bool((world.predictions == world.mixtures.mean()).all())
    True
    """
    generator = check_random_state(random_state)
    moved = check_number(ambiguity, "ambiguity", minimum=0, maximum=1)
    spread = check_number(noise, "noise", minimum=0)
    n_cells = check_integer(n_cells, "n_cells", minimum=1)
    n_atoms = check_integer(n_atoms, "n_atoms", minimum=1)
    n_classes = check_n_classes(n_classes)
    n_features = check_integer(n_features, "n_features", minimum=1)
    n_items = check_integer(n_items, "n_items", minimum=1)
    per_item = n_items * (2 * n_classes + n_features + 2 * n_atoms)
    numbers = per_item + 3 * n_cells * n_atoms * n_classes + n_classes**2
    what = f"{n_items:,} items of {n_classes:,} classes in {n_cells:,} cells of {n_atoms:,} atoms"
    refuse_large("n_items and n_classes", numbers, what, FEWER_ITEMS)
    points, weights = _cell_atoms(n_cells, n_atoms, n_classes, moved, generator)
    centres = generator.normal(size=(n_cells, n_features))
    cells = generator.integers(n_cells, size=n_items)
    atoms = _draw_atoms(weights, cells, generator)
    offsets = np.arange(n_cells + 1) * n_atoms
    mixtures = Mixtures(points.reshape(-1, n_classes), weights.reshape(-1), offsets, cells)
    features = centres[cells] + spread * generator.normal(size=(n_items, n_features))
    return World(features, points[cells, atoms], mixtures.mean(), cells, mixtures)


def _cell_atoms(
    n_cells: int, n_atoms: int, n_classes: int, ambiguity: float, generator: np.random.Generator
) -> tuple[Array, Array]:
    """Return label distributions (n_cells, n_atoms, n_classes) and weights (n_cells, n_atoms)."""
    clear = np.eye(n_classes)[generator.integers(n_classes, size=(n_cells, n_atoms))]
    vague = generator.dirichlet(np.ones(n_classes), size=(n_cells, n_atoms))
    weights = generator.dirichlet(np.full(n_atoms, ATOM_CONCENTRATION), size=n_cells)
    return (1 - ambiguity) * clear + ambiguity * vague, weights


def _draw_atoms(weights: Array, cells: Index, generator: np.random.Generator) -> Index:
    """Draw an atom of its cell's mixture for each item."""
    cumulative = weights.cumsum(axis=1)[cells]  # (n_items, n_atoms)
    atoms = (cumulative < generator.random((len(cells), 1))).sum(axis=1)
    # the last sum may fall short of 1 by rounding
    return np.asarray(atoms.clip(max=weights.shape[1] - 1))


def cell_mixtures(truth: Array, cells: Index, n_cells: int) -> Mixtures:
    """Return the mixture of the label distributions of each cell's own items."""
    where = check_cells(cells, len(truth), n_cells=n_cells)
    order = np.argsort(where, kind="stable")
    sizes = np.bincount(where, minlength=n_cells)
    offsets = segment_offsets(sizes)
    return Mixtures(truth[order], 1 / sizes[where[order]], offsets, where)
