"""Measure predicted mixtures against labels that were not used to fit them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from hocal._base.errors import InputError
from hocal._base.notebook import table, wrap_text
from hocal._base.plurals import counted
from hocal._base.typing import Array, Counts, Index, IntArray
from hocal._base.validation import (
    check_cells,
    check_choice,
    check_dense_counts,
    check_fraction,
    check_integer,
    check_n_resamples,
    check_random_state,
    check_same_length,
)
from hocal.guarantees.bounds import higher_order_interval
from hocal.uncertainty.distance import wasserstein
from hocal.uncertainty.mixtures import Mixtures, check_mixtures
from hocal.uncertainty.snapshots import draw_snapshots, n_snapshots, thin_checked

__all__ = ["CalibrationError", "calibration_error"]

# Snapshots of a predicted mixture that are listed; beyond that, as many are drawn.
MAX_REFERENCE = 5_000
# Pairs of an atom and a snapshot whose probability is computed: a few seconds.
MAX_WORK = 500_000_000
# Numbers in the drawn snapshots of all cells together, 250 MB: where cells and classes are many,
# each cell is compared with fewer, but with enough to tell a likely snapshot from others.
MAX_DRAWN = 1 << 25
FEWEST_DRAWN = 10
FEW_CLASSES = 20  # up to which counts of a few labels are as small as those of a sparse matrix
PROJECTED_NUMBERS = 1 << 20  # in the atoms of cells that are projected at once, 8 MB
BLOCK_NUMBERS = 1 << 22  # in the labels of cells that are compared at once
TIED = 1e-9  # distances that differ by less are equal but for rounding
LATTICE_ROUNDING = 1e-6  # labels by which k times an atom may miss whole numbers

Predictor = Literal["mixture", "snapshot"]


@dataclass(frozen=True, eq=False, repr=False)
class CalibrationError:
    """How far predicted k-snapshots are from observed ones in each cell, and how far by chance.

    Attributes
    ----------
    per_cell : ndarray of shape (n_cells,)
        Wasserstein distance (l1 ground metric, at most 2) in each cell; NaN for a cell without
        items.
    null : ndarray of shape (n_resamples, n_cells)
        The same distances for labels drawn from the predictions themselves.
    n_items : ndarray of shape (n_cells,)
        Items in each cell.
    k : int
        Labels in a snapshot.
    n_classes : int
        Number of label classes.
    predictor : str
        Whether mixtures were projected to snapshots or stood for them.

    Examples
    --------
    >>> import hocal
    >>> mixtures = hocal.Mixtures.from_points([[0.5, 0.5]] * 100)
    >>> split = [[2, 0]] * 50 + [[0, 2]] * 50
    >>> error = hocal.calibration_error(mixtures, split, cells=[0] * 100, k=2, random_state=0)
    >>> round(error.mean, 3), error.p_value < 0.05
    (0.5, True)
    """

    per_cell: Array
    null: Array
    n_items: IntArray
    k: int
    n_classes: int
    predictor: Predictor = "mixture"

    def __repr__(self) -> str:
        n_cells = int((self.n_items > 0).sum())
        return wrap_text(
            f"CalibrationError(k={self.k}, {n_cells} cells, mean {self.mean:.3g} "
            f"(by chance {self.noise_floor:.3g}, p = {self.p_value:.3g}), max {self.max:.3g})"
        )

    def _repr_html_(self) -> str:
        rows = [
            (
                "mean over items",
                f"{self.mean:.3g}",
                f"{self.noise_floor:.3g}",
                f"{self.p_value:.3g}",
            ),
            ("worst cell", f"{self.max:.3g}", f"{self.noise_floor_max:.3g}", ""),
        ]
        n_filled = int((self.n_items > 0).sum())
        cells = counted(n_filled, "cell")
        caption = f"Calibration error with k={self.k} in {cells}; 0 is perfect, 2 the worst"
        return table(caption, ["distance", "by chance", "p-value"], rows)

    @property
    def max(self) -> float:
        """Largest distance over the cells, the paper's epsilon."""
        return float(np.nanmax(self.per_cell))

    @property
    def mean(self) -> float:
        """Mean distance with every item weighing the same."""
        return float(self._item_average(self.per_cell))

    def quantile(self, q: float) -> float:
        """Return a quantile of the distance over the cells with items."""
        return float(np.nanquantile(self.per_cell, check_fraction(q, "q")))

    @property
    def noise_floor(self) -> float:
        """What `mean` is on average when the predictions are perfectly calibrated."""
        return float(self._item_average(self.null).mean())

    @property
    def noise_floor_max(self) -> float:
        """What `max` is on average when the predictions are perfectly calibrated."""
        return float(np.nanmax(self.null, axis=1).mean())

    @property
    def noise_floor_per_cell(self) -> Array:
        """What `per_cell` is on average when the predictions are perfectly calibrated."""
        return np.asarray(self.null.mean(axis=0))

    @property
    def p_value(self) -> float:
        """Chance of a `mean` at least this large if the predictions were perfectly calibrated."""
        exceeded = (self._item_average(self.null) >= self.mean - TIED).sum()
        return float((1 + exceeded) / (1 + len(self.null)))

    @property
    def p_value_per_cell(self) -> Array:
        """The same chance for each cell on its own; NaN for a cell without items."""
        exceeded = (1 + (self.null >= self.per_cell - TIED).sum(axis=0)) / (1 + len(self.null))
        return np.where(self.n_items > 0, exceeded, np.nan)

    @property
    def debiased(self) -> float:
        """`mean` less its noise floor: near 0 for calibrated predictions, negative by luck."""
        return self.mean - self.noise_floor

    @property
    def debiased_per_cell(self) -> Array:
        """`per_cell` less its noise floor."""
        return self.per_cell - self.noise_floor_per_cell

    @property
    def higher_order_bound(self) -> float:
        """Bound on the distance to the true mixtures: `max` plus the slack of k labels.

        The slack counts twice where a mixture was projected to be compared.
        """
        return float(
            higher_order_interval(self.max, self.k, self.n_classes, predictor=self.predictor).upper
        )

    def _item_average(self, distances: Array) -> Array:
        has_items = self.n_items > 0
        weights = self.n_items[has_items] / self.n_items.sum()
        return np.asarray(distances[..., has_items] @ weights)


def calibration_error(
    mixtures: Mixtures,
    counts: Any,
    *,
    k: int | None = None,
    cells: ArrayLike | None = None,
    n_cells: int | None = None,
    predictor: Predictor = "mixture",
    n_resamples: int = 100,
    random_state: Any = None,
) -> CalibrationError:
    """Measure kth-order calibration: W1 between predicted and observed k-snapshots in each cell.

    An item with more than k labels counts with all its k-snapshots. A raw distance between samples
    is large even when nothing is wrong, so the same pipeline is run on labels drawn from the
    predictions; the resulting noise floor and p-values are exact for any sample size.

    Parameters
    ----------
    mixtures : Mixtures
        Predictions, one per item: calibrated ones, ensembles, Dirichlet, anything.
    counts : array or sparse matrix of shape (n_items, n_classes)
        Labels of the same items, not used to fit the mixtures; at least k per item.
    k : int, optional
        Labels in a snapshot; the smallest total by default.
    cells : array of shape (n_items,), optional
        Cell of each item; by default items that share a stored mixture form a cell.
    n_cells : int, optional
        Number of cells, when the last ones may be empty.
    predictor : {"mixture", "snapshot"}
        What the mixtures predict: label distributions, which are projected to k-snapshots first, or
        the k-snapshots themselves as points s / k, as the "empirical" calibrator does. For
        snapshots, an item with more than k labels counts with k of them, drawn at random.
    n_resamples : int, default=100
        Simulations of the noise floor; the smallest possible p-value is 1 / (n_resamples + 1).
    random_state : int, Generator or None
        Seed or source of randomness.

    Returns
    -------
    CalibrationError
        Distances, noise floors, p-values.

    Examples
    --------
    >>> import hocal
    >>> mixtures = hocal.Mixtures.from_vertices([[0.5, 0.5]] * 4)
    >>> hocal.calibration_error(mixtures, [[3, 0], [0, 3], [3, 0], [0, 3]], cells=[0, 0, 0, 0]).max
    0.0
    """
    checked = check_dense_counts(counts, n_classes=check_mixtures(mixtures).n_classes)
    check_same_length(mixtures, checked, ("mixtures", "counts"))
    totals = checked.sum(axis=1)
    k = int(totals.min()) if k is None else check_integer(k, "k", minimum=1)
    check_dense_counts(checked, minimum_total=k)
    where = check_cells(mixtures.index if cells is None else cells, len(checked), n_cells=n_cells)
    size = check_n_resamples(n_resamples)
    generator = check_random_state(random_state)
    n_items = np.bincount(where, minlength=n_cells or 0)
    if check_choice(predictor, "predictor", ("mixture", "snapshot")) == "snapshot":
        reference = _check_lattice(_cell_averages(mixtures, where, len(n_items)), k)
        observed = draw_snapshots(checked, k, random_state=generator)
        null = (
            np.rint(k * mixtures.sample(random_state=generator)).astype(np.int64)
            for _ in range(size)
        )
    else:
        reference = _predicted_snapshots(mixtures, where, len(n_items), k, generator)
        observed = checked
        null = (mixtures.draw(totals, random_state=generator) for _ in range(size))
    distances = [_distances(labels, where, k, reference) for labels in chain([observed], null)]
    return CalibrationError(
        distances[0], np.stack(distances[1:]), n_items, k, mixtures.n_classes, predictor
    )


def _predicted_snapshots(
    mixtures: Mixtures,
    cells: Index,
    n_cells: int,
    k: int,
    generator: np.random.Generator,
) -> Mixtures:
    """Return each cell's predicted k-snapshots: proj_k of the average of its items' mixtures.

    Where that is too much to list, a sample stands in; it is fixed before the noise is simulated,
    so p-values stay exact.
    """
    n_listed = n_snapshots(k, mixtures.n_classes)
    pairs = np.unique(cells * mixtures.n_mixtures + mixtures.index)
    n_atoms = int(mixtures.sizes[pairs % mixtures.n_mixtures].sum())
    if n_listed <= MAX_REFERENCE and n_listed * n_atoms <= MAX_WORK:
        return _project_cells(mixtures, cells, n_cells, k)
    n_items = np.bincount(cells)
    affordable = MAX_DRAWN // (mixtures.n_classes * int((n_items > 0).sum()))
    n_drawn = min(max(affordable, FEWEST_DRAWN), MAX_REFERENCE)
    repeats = np.repeat(np.arange(len(cells)), -(-n_drawn // n_items[cells]))
    drawn = _draw(mixtures[repeats], k, generator)
    sample = Mixtures.from_snapshots(drawn, cells[repeats], n_cells=n_cells)
    return sample.stored()


def _project_cells(mixtures: Mixtures, cells: Index, n_cells: int, k: int) -> Mixtures:
    """Return proj_k of each cell's average, some cells at a time: their atoms may be many."""
    order = np.argsort(cells, kind="stable")
    numbers = np.cumsum(mixtures.sizes[mixtures.index[order]]) * mixtures.n_classes
    ends = np.cumsum(np.bincount(cells, minlength=n_cells))
    block = np.append(0, numbers)[ends] // PROJECTED_NUMBERS
    starts = np.append(0, np.flatnonzero(np.diff(block)) + 1)
    parts = []
    for start, end in pairwise([*starts.tolist(), n_cells]):
        rows = order[ends[start - 1] if start else 0 : ends[end - 1]]
        averages = _cell_averages(mixtures[rows], cells[rows] - start, end - start)
        parts.append(averages.project(k))
    return Mixtures.trusted(
        np.concatenate([part.support for part in parts]),
        np.concatenate([part.weights for part in parts]),
        np.append(0, np.cumsum(np.concatenate([part.sizes for part in parts]))),
        np.arange(n_cells),
    )


def _draw(items: Mixtures, k: int, generator: np.random.Generator) -> Counts:
    """Draw k labels of each item; of many classes as a sparse matrix, most of which is empty."""
    if items.n_classes <= FEW_CLASSES:
        return items.draw(k, random_state=generator)
    drawn = items.draw_in_blocks(np.full(len(items), k), generator)
    blocks = [sparse.csr_array(block) for _, block in drawn]
    return sparse.csr_array(sparse.vstack(blocks, format="csr"))


def _cell_averages(mixtures: Mixtures, cells: Index, n_cells: int) -> Mixtures:
    """Return the average of the mixtures of each cell's items; empty for a cell without items."""
    pairs, occurrences = np.unique(cells * mixtures.n_mixtures + mixtures.index, return_counts=True)
    cell, mixture = np.divmod(pairs, mixtures.n_mixtures)
    row, atom, _ = mixtures.pairs(mixture)
    weights = mixtures.weights[atom] * occurrences[row] / np.bincount(cells)[cell[row]]
    offsets = np.searchsorted(cell[row], np.arange(n_cells + 1))
    support = mixtures.support if mixtures.shares_points else mixtures.points[atom]
    return Mixtures.trusted(support, weights, offsets, np.arange(n_cells))


def _check_lattice(mixtures: Mixtures, k: int) -> Mixtures:
    """Return mixtures of k-snapshots after checking that their atoms are such."""
    counts = mixtures.support * k
    strays = np.abs(counts - np.rint(counts)).max(axis=1)
    if strays.max() > LATTICE_ROUNDING:
        atom = mixtures.support[int(strays.argmax())]
        raise InputError(
            "k",
            "must be the size of the predicted snapshots",
            value=f"k={k} and an atom {atom.round(4).tolist()}",
            remedy="Pass their k, or predictor='mixture' for label distributions.",
        )
    return Mixtures.trusted(np.rint(counts) / k, mixtures.weights, mixtures.offsets, mixtures.index)


def _distances(counts: IntArray, cells: Index, k: int, reference: Mixtures) -> Array:
    """Return W1 between each cell's observed k-snapshots and the reference; NaN without items."""
    order = np.argsort(cells, kind="stable")
    ends = np.cumsum(np.bincount(cells, minlength=len(reference)))
    # Blocks of whole cells: snapshots of all would be listed class by class.
    block = ends * counts.shape[1] // BLOCK_NUMBERS
    starts = np.append(0, np.flatnonzero(np.diff(block)) + 1)
    parts = []
    for start, end in pairwise([*starts.tolist(), len(ends)]):
        rows = order[ends[start - 1] if start else 0 : ends[end - 1]]
        parts.append(_distances_of(counts[rows], cells[rows] - start, k, reference[start:end]))
    return np.concatenate(parts)


def _distances_of(counts: IntArray, cells: Index, k: int, reference: Mixtures) -> Array:
    if not len(counts):
        return np.full(len(reference), np.nan)
    thinned = thin_checked(counts, k)
    owner = cells[thinned.items]
    order = np.argsort(owner, kind="stable")
    weights = (
        thinned.probabilities[order] / np.bincount(cells, minlength=len(reference))[owner[order]]
    )
    offsets = np.searchsorted(owner[order], np.arange(len(reference) + 1))
    observed = Mixtures.trusted(
        thinned.snapshots[order] / k, weights, offsets, np.arange(len(reference))
    )
    return wasserstein(observed, reference)
