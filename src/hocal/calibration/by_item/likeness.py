"""Components in which people take classes for others like them: next on a scale, or look-alikes.

Labels of an item that differ are seldom any two classes.  The likeness L of two classes is how much
more often labels of the same item name both than predictions make us expect, raised to a power. An
item is of some class J, drawn from the mean q, and in a share e of cases people choose by likeness:

    p_J = (1 - e) e_J + e g_J,    q_j g_j(m) = d_j L_jm d_m,

with factors d for each item so that every g_j sums to 1.  The right-hand side is symmetric in j and
m: so the mean of p_J is q, whatever the likeness. Where classes are all alike, g_j is q.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from hocal._base.typing import Array, Index
from hocal.calibration.by_item.component_draws import Pairs, choose
from hocal.calibration.by_item.components import TINY, Labels

__all__ = [
    "LEAST_LIKENESS",
    "MOST_CLASSES",
    "MOST_LIKENESS",
    "N_ALIKE",
    "POWERS",
    "Alike",
    "Likeness",
    "count_together",
    "likeness_of",
    "make_alike",
]

SHARES = np.array([0.3, 0.6, 1.0])
"""Of labels that are chosen by likeness."""
N_ALIKE = len(SHARES)
MOST_CLASSES = 20  # every item has a number for each pair of classes
POWERS = (2.0, 4.0, 8.0, 16.0)
"""Of how much more often labels name both classes. Two labels are two steps from J, and one step is
shorter: so the power is above 1. The higher it is, the fewer classes are alike."""
BY_CHANCE = 5.0  # pairs of labels that are taken to be as frequent as expected
LEAST_LIKENESS, MOST_LIKENESS = 1e-9, 1e9  # beyond, classes are alike or not in any case
STEPS = 20  # towards factors d; what they leave stays with J, so that the mean is exact


class Likeness(NamedTuple):
    """How alike classes are, for some items."""

    matrices: Array  #: (n_fits, n_classes, n_classes) symmetric and positive
    which: Index  #: (n_items,) matrix of each item

    def take(self, rows: Index | slice) -> Likeness:
        """Return that of some of the items."""
        return Likeness(self.matrices, self.which[rows])


class Alike(NamedTuple):
    """The label distributions g_J of some items."""

    mean: Array  #: (n_items, n_classes) probabilities of J
    kernel: Array  #: (n_items, n_classes, n_classes) g_J, J on the second axis

    def log_likelihood(self, labels: Labels) -> Array:
        """Return log-probabilities of labels in one given order, (n_items, N_ALIKE)."""
        return np.asarray(logsumexp(self._log_joint(labels), axis=2))

    def posterior(self, labels: Labels | None) -> Array:
        """Return probabilities of J given labels, (n_items, N_ALIKE, n_classes)."""
        if labels is None:
            return np.repeat(self.mean[:, None], N_ALIKE, axis=1)
        logs = self._log_joint(labels)
        return np.asarray(np.exp(logs - logsumexp(logs, axis=2, keepdims=True)))

    def brier(self, labels: Labels | None = None) -> Array:
        """Return the expected Brier uncertainty of each component, (n_items, N_ALIKE)."""
        square = np.einsum("ijm,ijm->ij", self.kernel, self.kernel)[:, None]
        e = SHARES[:, None]
        squares = e**2 * square + 2 * e * (1 - e) * self._stay()[:, None] + (1 - e) ** 2
        return np.asarray(1 - np.einsum("icj,icj->ic", self.posterior(labels), squares))

    def shannon(self, labels: Labels | None = None) -> Array:
        """Return the expected Shannon uncertainty in nats, (n_items, N_ALIKE)."""
        stay = self._stay()
        logs = np.log(np.maximum(self.kernel, TINY))
        leave = np.einsum("ijm,ijm->ij", self.kernel, logs)
        leave -= stay * np.einsum("ijj->ij", logs)
        e = SHARES[:, None]
        kept = 1 - e + e * stay[:, None]
        away = e * ((1 - stay)[:, None] * np.log(e) + leave[:, None])
        entropy = -kept * np.log(np.maximum(kept, TINY)) - away
        return np.asarray(np.einsum("icj,icj->ic", self.posterior(labels), entropy))

    def means(self, weights: Array, labels: Labels | None = None) -> Array:
        """Return the mean under weights (n_items, N_ALIKE) that need not sum to 1."""
        of_class = weights[:, :, None] * self.posterior(labels)
        result = np.einsum("c,icj->ij", 1 - SHARES, of_class)
        chosen = np.einsum("c,icj->ij", SHARES, of_class)
        return np.asarray(result + np.einsum("ij,ijm->im", chosen, self.kernel))

    def reorder(self, order: Index) -> Alike:
        """Return the same with classes in another order for each item, (n_items, n_classes)."""
        kernel = np.take_along_axis(self.kernel, order[:, :, None], axis=1)
        kernel = np.take_along_axis(kernel, order[:, None], axis=2)
        return Alike(np.take_along_axis(self.mean, order, axis=1), kernel)

    def pair_probabilities(self, posterior: Array, pairs: Pairs) -> Array:
        """Return each component's probability of two labels, (n_items, n_atoms, N_ALIKE).

        Parameters
        ----------
        posterior : array of shape (n_items, N_ALIKE, n_classes)
            Probabilities of J given labels seen.
        pairs : Pairs
            Labels of shape (n_items, n_atoms, 2), all of which count.
        """
        items = np.arange(len(self.mean))[:, None]
        columns = []
        for component in range(N_ALIKE):
            both = self._of_pair(items, component, pairs)
            columns.append(np.einsum("iaj,ij->ia", both, posterior[:, component]))
        return np.stack(columns, axis=2)

    def choose_points(
        self, posterior: Array, items: Index, components: Index, pairs: Pairs, positions: Array
    ) -> Array:
        """Choose the class J of each draw by its position, given both labels; return the p_J."""
        both = np.empty((len(items), self.mean.shape[1]))
        for component in range(N_ALIKE):
            rows = components == component
            some = Pairs(pairs.label[rows], pairs.counted[rows])
            both[rows] = self._of_pair(items[rows], component, some)
        chosen = choose(both * posterior[items, components], positions).place
        share = SHARES[components]
        points = share[:, None] * self.kernel[items, chosen]
        points[np.arange(len(items)), chosen] += 1 - share
        return np.asarray(points)

    def _stay(self) -> Array:
        """Return g_J(J), (n_items, n_classes)."""
        return np.asarray(np.einsum("ijj->ij", self.kernel))

    def _log_joint(self, labels: Labels) -> Array:
        """Return log-probabilities of J and the labels, (n_items, N_ALIKE, n_classes)."""
        alike = self.kernel[labels.item, :, labels.label]
        entries = np.arange(len(alike))
        shape = (labels.n_items, len(alike))
        add = sparse.csr_array((labels.n_labels, (labels.item, entries)), shape=shape)
        prior = np.log(self.mean)
        columns = []
        for share in SHARES:
            chance = share * alike
            chance[entries, labels.label] += 1 - share
            columns.append(prior + add @ np.log(np.maximum(chance, TINY)))
        return np.stack(columns, axis=1)

    def _of_pair(self, items: Index, component: int, pairs: Pairs) -> Array:
        """Return the probability of two labels for each J, (..., n_classes)."""
        share = SHARES[component]
        result = np.ones((1, 1))
        for place in (0, 1):
            label = pairs.label[..., place]
            chance = share * self.kernel[items, :, label]
            at = np.take_along_axis(chance, label[..., None], axis=-1) + (1 - share)
            np.put_along_axis(chance, label[..., None], at, axis=-1)
            result = result * chance
        return np.asarray(result)


def make_alike(likeness: Likeness, mean: Array) -> Alike:
    """Return how labels are chosen by likeness around means (n_items, n_classes)."""
    found = np.unique(likeness.which)
    if len(found) == 1:
        return Alike(mean, _kernel(likeness.matrices[found[0]], mean))
    kernel = np.empty((*mean.shape, mean.shape[1]))
    for place in found:
        rows = np.flatnonzero(likeness.which == place)
        kernel[rows] = _kernel(likeness.matrices[place], mean[rows])
    return Alike(mean, kernel)


def _kernel(likeness: Array, mean: Array) -> Array:
    """Return g_J for each item, (n_items, n_classes, n_classes).

    Where the factors d are not quite found, flows that would be too large are cut at both ends, and
    what is missing stays where it is: the mean is exact in any case.
    """
    factors = mean / np.sqrt(mean @ likeness)  # exact where all are alike, and where none are
    for _ in range(STEPS):
        factors = np.sqrt(factors * (mean / (factors @ likeness)))
    flows = factors[:, :, None] * likeness
    flows *= factors[:, None]
    over = np.maximum(np.einsum("ijm->ij", flows) / mean, 1)
    flows /= np.maximum(over[:, :, None], over[:, None])
    missing = mean - np.einsum("ijm->ij", flows)
    np.einsum("ijj->ij", flows)[...] += missing
    flows /= mean[:, :, None]
    return flows


def count_together(mean: Array, expected: Array, counts: Array, folds: Index) -> Array:
    """Return how much more often than expected labels name both of two classes.

    Parameters
    ----------
    mean : array of shape (n_items, n_classes)
        Positive predictions.
    expected : array of shape (n_items,)
        Expected disagreement of two labels.
    counts : array of shape (n_items, n_classes)
        Labels.
    folds : array of shape (n_items,)
        Folds, sorted.

    Returns
    -------
    ndarray of shape (1 + n_folds, n_classes, n_classes)
        Of all items, then without each fold: symmetric and positive, a class with itself as often
        as with any other.
    """
    totals = counts.sum(axis=1)
    several = totals > 1
    weighted = counts / np.maximum(totals - 1, 1)[:, None]
    rate = several * totals * expected / (1 - np.einsum("ij,ij->i", mean, mean))
    n_folds = int(folds.max()) + 1
    together = np.empty((n_folds, *2 * counts.shape[1:]))
    by_chance = np.empty_like(together)
    for fold in range(n_folds):
        rows = folds == fold
        some = counts[rows]
        together[fold] = weighted[rows].T @ some
        by_chance[fold] = (mean[rows].T * rate[rows]) @ mean[rows]
    together = np.concatenate([together.sum(axis=0)[None], together.sum(axis=0) - together])
    by_chance = np.concatenate([by_chance.sum(axis=0)[None], by_chance.sum(axis=0) - by_chance])
    ratio = (together + BY_CHANCE) / (by_chance + BY_CHANCE)
    ratio = np.sqrt(ratio * ratio.transpose(0, 2, 1))  # the same but for rounding
    same = np.arange(counts.shape[1])
    ratio[:, same, same] = 0
    ratio[:, same, same] = np.maximum(ratio.max(axis=2), 1)
    return np.asarray(ratio)


def likeness_of(together: Array, power: float) -> Array:
    """Return the likeness of classes that labels name together so much more often."""
    return np.clip(together**power, LEAST_LIKENESS, MOST_LIKENESS)
