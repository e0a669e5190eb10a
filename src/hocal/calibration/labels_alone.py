"""What labels alone say about the items of a study: one mixture for all of them, by class.

Without a model nothing tells the items apart but their own labels, so they share one prior, whose
posterior given an item's labels (`Mixtures.condition`) says what these few labels leave open. The
prior is the nonparametric maximum-likelihood mixture of the label counts, as the pool of
`hocal.calibration.by_cell` is, on a dictionary that keeps the identity of classes: who says "cat"
disagrees with "dog" rather than with "truck". The dictionary has, around each class,

- stars: (1 - e) e_j + e c_j, one class j with a share e of other labels, where c_j is what people
  say instead of j;
- draws of Dirichlet distributions around stars: items that are confused in ways of their own;

and edges between the pairs of classes that are confused most often.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from hocal._base.errors import InputError, OneLabelWarning
from hocal._base.typing import Array, Counts, Index, IntArray
from hocal._base.validation import check_counts, label_totals
from hocal.calibration.by_cell.pool import fit_pool, sample_snapshots
from hocal.uncertainty.distinct_counts import distinct_rows
from hocal.uncertainty.mixtures import Mixtures

__all__ = [
    "Confusion",
    "check_labels_alone",
    "count_confusion",
    "label_prior",
    "place_edges",
    "place_stars",
]

# The uniform prior on the dictionary weighs as much as this many labels: it decides what few labels
# leave open, and hundreds of items outweigh it.
PRIOR_LABELS = 50.0
# What people say instead of a class is shrunk to the frequency of classes by this many pairs of
# labels that differ.
PRIOR_PAIRS = 10.0
PSEUDO_LABELS = 0.5  # of each class in the mean, so that none is impossible
LEAST_SHARE = 1e-4  # of the labels of an atom, times 1 / n_classes: no label is impossible
# Shares of other labels of stars, from certain classes to those with a bare majority.
STAR_SHARES = np.array([0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.45])
# Means of the Dirichlet distributions, as shares of stars, and their total concentrations.
DRAW_SHARES = np.array([0.1, 0.3, 0.5])
CONCENTRATIONS = np.array([1.0, 3.0, 10.0])
N_DRAWN = 10  # atoms of each of these Dirichlet distributions
MAX_DRAWN = 3_000  # atoms drawn in all; the most frequent classes come first
TINY = 1e-12  # added to draws, whose sums may underflow
N_EDGES = 30  # pairs of classes, and the shares of the second on the edge between them
EDGE_SHARES = np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98])
MANY_CLASSES = 100  # from here on every other share of stars is left out, to stay in memory
MAX_CLASSES = 1_000  # their dictionary has 4,000 stars, and its likelihood takes 200 MB

_ONE_LABEL = (
    "No item has two labels: nothing tells how often people disagree about an item, and the prior "
    "is a guess. Get a second label for some of the items."
)


class Confusion(NamedTuple):
    """How classes are confused."""

    mean: Array  #: (n_classes,) share of the labels
    instead: Array  #: (n_classes, n_classes), what people say instead of each class; 0 for itself
    pairs: Array  #: (n_classes, n_classes), how often two labels of an item are these two


def label_prior(counts: Any) -> Mixtures:
    """Estimate the mixture of label distributions that all items share, from their labels alone.

    ``label_prior(counts).condition(counts)`` is the posterior of each item given its own labels:
    its mean is a smoothed label distribution, and `decompose` gives the item's uncertainty. The
    labels of an item are among those that the prior is made of; with a hundred items or more this
    changes next to nothing.

    Parameters
    ----------
    counts : array or sparse matrix of shape (n_items, n_classes)
        Label counts; totals may differ, and items without labels are allowed. Some items need two
        labels or more: from one label per item, disagreement is a guess.

    Returns
    -------
    Mixtures
        The same mixture for each item, over the classes in their own order. It does not depend on
        the order of the items.

    Examples
    --------
    Three items in four are clear, the rest are torn between the last two classes.

    >>> import numpy as np
    >>> from hocal.calibration import label_prior
    >>> clear = np.repeat([[3, 0, 0], [0, 3, 0], [0, 0, 3]], 100, axis=0)
    >>> torn = np.repeat([[0, 2, 1], [0, 1, 2]], 50, axis=0)
    >>> counts = np.concatenate([clear, torn])
    >>> posterior = label_prior(counts).condition(counts)
    >>> posterior.mean()[[0, 100, 300]].round(1).tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.9, 0.1], [0.0, 0.6, 0.4]]
    """
    checked = check_counts(counts, minimum_total=0)
    totals = check_labels_alone(checked, stacklevel=3)
    labelled = distinct_rows(checked[totals > 0])
    frequency = labelled.multiplicity.astype(np.float64)
    atoms = _make_atoms(labelled.unique, frequency)
    weights = _fit(labelled.unique, frequency, atoms)
    same: Index = np.zeros(len(totals), dtype=np.intp)
    return Mixtures.trusted(atoms, weights, np.array([0, len(atoms)]), same)


def check_labels_alone(counts: Counts, *, stacklevel: int) -> IntArray:
    """Return the labels of each item; refuse too many classes and no label, warn of one label."""
    n_classes = counts.shape[1]
    if n_classes > MAX_CLASSES:
        raise InputError(
            "counts",
            f"must have at most {MAX_CLASSES} classes",
            value=n_classes,
            remedy="Leave out classes without labels, or put rare ones together.",
        )
    totals = label_totals(counts)
    if not totals.any():
        raise InputError("counts", "must hold at least one label", value="none")
    if totals.max() == 1:
        warnings.warn(_ONE_LABEL, OneLabelWarning, stacklevel=stacklevel)
    return totals


def _fit(snapshots: Counts, frequency: Array, atoms: Array) -> Array:
    """Return the weights of the atoms with the largest penalised likelihood."""
    prior_items = PRIOR_LABELS * frequency.sum() / (frequency @ label_totals(snapshots))
    rows, times = sample_snapshots(np.arange(len(frequency)), frequency)
    logs = np.asarray(snapshots[rows] @ np.log(atoms).T).T  # (n_atoms, n_snapshots)
    likelihood = np.exp(logs - logs.max(axis=0)).T
    return fit_pool(likelihood, times, prior=prior_items).weights


def _make_atoms(snapshots: Counts, frequency: Array) -> Array:
    """Return the dictionary, (n_atoms, n_classes)."""
    confusion = count_confusion(snapshots, frequency)
    n_classes = len(confusion.mean)
    step = 1 if n_classes <= MANY_CLASSES else 2
    stars = place_stars(STAR_SHARES[::step], confusion.instead)
    atoms = np.concatenate([stars, _draws(confusion), place_edges(EDGE_SHARES, confusion.pairs)])
    atoms = np.maximum(atoms, LEAST_SHARE / n_classes)
    return np.asarray(atoms / atoms.sum(axis=1, keepdims=True))


def count_confusion(snapshots: Counts, frequency: Array) -> Confusion:
    """Count pairs of labels; an item of m labels counts as m pairs, so that all labels count."""
    n_classes = snapshots.shape[1]
    labels = np.asarray(frequency @ snapshots)
    mean = (labels + PSEUDO_LABELS) / (labels.sum() + PSEUDO_LABELS * n_classes)
    per_pair = frequency / np.maximum(label_totals(snapshots) - 1, 1)
    weighted = snapshots.T * per_pair  # (n_classes, n_snapshots)
    products = weighted @ snapshots
    pairs = np.asarray(products if isinstance(products, np.ndarray) else products.toarray())
    pairs = pairs * (1 - np.eye(n_classes))
    others = mean * (1 - np.eye(n_classes))
    others = others / others.sum(axis=1, keepdims=True)
    seen = pairs.sum(axis=1, keepdims=True)
    instead = (pairs + PRIOR_PAIRS * others) / (seen + PRIOR_PAIRS)
    return Confusion(mean, instead, pairs)


def place_stars(shares: Array, instead: Array) -> Array:
    """Return (1 - e) e_j + e c_j for every share e and class j."""
    share = shares[:, None, None]
    stars = (1 - share) * np.eye(len(instead)) + share * instead
    return np.asarray(stars.reshape(-1, len(instead)))


def _draws(confusion: Confusion) -> Array:
    """Return draws of Dirichlet distributions around stars of the most frequent classes."""
    n_classes = len(confusion.mean)
    kinds = len(DRAW_SHARES) * len(CONCENTRATIONS)
    n_drawn = max(min(N_DRAWN, MAX_DRAWN // (kinds * n_classes)), 1)
    common = np.argsort(-confusion.mean, kind="stable")[: MAX_DRAWN // (kinds * n_drawn)]
    generator = np.random.default_rng(0)
    stars = place_stars(DRAW_SHARES, confusion.instead).reshape(-1, n_classes, n_classes)
    means = stars[:, common].reshape(-1, n_classes)
    parameters = np.concatenate([total * means for total in CONCENTRATIONS])
    draws = generator.standard_gamma(np.tile(parameters, (n_drawn, 1))) + TINY
    return np.asarray(draws / draws.sum(axis=1, keepdims=True))


def place_edges(shares: Array, pairs: Array) -> Array:
    """Return points between the classes that are confused most often, for every share."""
    first, second = np.triu_indices(len(pairs), 1)
    most = np.argsort(-pairs[first, second], kind="stable")[:N_EDGES]
    corners = np.eye(len(pairs))
    share = shares[:, None, None]
    edges = (1 - share) * corners[first[most]] + share * corners[second[most]]
    return np.asarray(edges.reshape(-1, len(pairs)))
