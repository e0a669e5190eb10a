"""Components of a mixture around a mean q: Dirichlet distributions, and stars of people who lapse.

A Dirichlet component is Dirichlet(s q) with precision s. A star with share e of lapses is
(1 - e) e_J + e q with J ~ q: people agree on one class J, and in a share e of cases they answer at
random. The mean of each is q. Likelihood of labels, posterior mean, Brier and Shannon uncertainty
have closed forms; sums over classes of x psi(s x + 1) come from tables.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import digamma, gammaln

from hocal._base.typing import Array, Counts, Index, Mask

__all__ = ["AROUND_PREDICTION", "BEYOND_TOP", "Components", "Labels", "labels_of"]

PRECISIONS = np.array([0.1, 0.3, 0.8, 2.0, 5.0, 13.0, 35.0, 100.0, 400.0, 3000.0])
"""Of Dirichlets around the prediction: from certain labels to the prediction itself."""
SPLIT_PRECISIONS = np.array([0.1, 0.3, 0.8, 2.0, 5.0, 13.0, 35.0, 200.0])
"""Of Dirichlets around the split beyond the top class, of which labels say less."""
LAPSES = np.array([0.0006, 0.002, 0.006, 0.02, 0.06, 0.15, 0.3])
"""Shares of lapses of stars: from next to none, since whoever knows nothing about items that people
agree on must be able to say so. Where two labels agree less often than with the last a Dirichlet is
the natural reading; the labels themselves cannot tell."""
N_NODES = 8192  # of the tables, evenly spaced in the root of x; error below 1e-7 for each class
TINY = 1e-300  # stands for 0 where a logarithm follows
TABLE_NUMBERS = 1 << 20  # probabilities that are looked up at once, some 30 MB with their weights


class Labels(NamedTuple):
    """The labels of some items, one entry for each item and class with labels."""

    n_items: int
    item: Index  #: (n_entries,) row of the item
    label: Index  #: (n_entries,) class
    n_labels: Array  #: (n_entries,) how many

    def total(self, values: Array) -> Array:
        """Return the sum of values of entries for each item."""
        return np.asarray(np.bincount(self.item, values, self.n_items), np.float64)

    def totals(self) -> Array:
        """Return the number of labels of each item."""
        return self.total(self.n_labels)

    def keep(self, chosen: Mask) -> Labels:
        """Return some of the entries."""
        return Labels(self.n_items, self.item[chosen], self.label[chosen], self.n_labels[chosen])

    def pick(self, values: Array) -> Array:
        """Return the entries' values of an array (n_items, n_classes)."""
        return np.asarray(values[self.item, self.label])

    def add_to(self, values: Array, amounts: Array) -> None:
        """Add amounts of entries to an array (n_items, n_classes), in place."""
        values[self.item, self.label] += amounts  # an item and class have one entry


def labels_of(counts: Counts) -> Labels:
    """Return the entries of label counts, dense or CSR, that are not 0."""
    if sparse.issparse(counts):
        entries = sparse.coo_array(counts)
        item, label, count = entries.row, entries.col, entries.data
    else:
        item, label = np.nonzero(counts)
        count = np.asarray(counts)[item, label]
    return Labels(counts.shape[0], np.asarray(item, np.intp), label, count.astype(np.float64))


class _StarPosterior(NamedTuple):
    """What labels say about the class J of a star: classes without labels share one factor."""

    factor: Array  #: (n_entries,) of classes with labels
    other: Array  #: (n_items,) of classes without
    norm: Array  #: (n_items,) sum over classes of probability times factor
    shift: Array  #: (n_items,) logarithm of what was divided out

    def expect(self, labels: Labels, seen: Array, everywhere: Array) -> Array:
        """Return the mean of a function of J, from its products with q: of entries, and summed."""
        rest = (everywhere - labels.total(seen)) * self.other
        return np.asarray((rest + labels.total(seen * self.factor)) / self.norm)


class Components:
    """Dirichlet(s q) for several precisions s, then stars for several shares e of lapses.

    Parameters
    ----------
    precisions : array of shape (n_dirichlets,)
        Precisions s.
    lapses : array of shape (n_stars,)
        Shares e of lapses, strictly between 0 and 1.
    """

    def __init__(self, precisions: Array, lapses: Array) -> None:
        self.precisions = precisions
        self.lapses = lapses
        x = (np.arange(N_NODES + 1)[:, None] / N_NODES) ** 2
        columns = [x * digamma(precisions * x + 1), self._lapsed(x), self._gain_of_certain(x)]
        self._table = np.concatenate(columns, axis=1)

    def __len__(self) -> int:
        return len(self.precisions) + len(self.lapses)

    @property
    def n_dirichlets(self) -> int:
        """Number of Dirichlet components, which come first."""
        return len(self.precisions)

    def log_likelihood(self, q: Array, labels: Labels) -> Array:
        """Return log-probabilities of labels in one given order, (n_items, n_components).

        Parameters
        ----------
        q : array of shape (n_items, n_classes)
            Means, positive where there are labels.
        labels : Labels
            Labels of the items.
        """
        mean = labels.pick(q)
        totals = labels.totals()
        columns = [_dirichlet_likelihood(s, mean, labels, totals) for s in self.precisions]
        for e in self.lapses:
            posterior = _star_posterior(e, mean, labels)
            lapsed = labels.total(labels.n_labels * np.log(e * mean))
            columns.append(lapsed + posterior.shift + np.log(posterior.norm))
        return np.stack(columns, axis=1)

    def brier(self, q: Array, labels: Labels | None = None) -> Array:
        """Return the expected Brier uncertainty of each component, (n_items, n_components)."""
        square = np.einsum("ij,ij->i", q, q)[:, None]
        e = self.lapses
        s = self.precisions
        if labels is None:
            stars = 1 - (1 - e) ** 2 - (2 * e - e**2) * square
            return np.concatenate([s / (s + 1) * (1 - square), stars], axis=1)
        mean = labels.pick(q)
        total = s + labels.totals()[:, None]
        cross = labels.total(mean * labels.n_labels)[:, None]
        own = labels.total(labels.n_labels**2)[:, None]
        squared_mean = (s**2 * square + 2 * s * cross + own) / total**2
        dirichlets = (1 - squared_mean) * total / (total + 1)
        columns = [_star_brier(share, mean, square[:, 0], labels) for share in e]
        return np.concatenate([dirichlets, np.stack(columns, axis=1)], axis=1)

    def shannon(self, q: Array, labels: Labels | None = None) -> Array:
        """Return the expected Shannon uncertainty in nats, (n_items, n_components)."""
        n_dirichlets = self.n_dirichlets
        sums = self._sum_tables(q)
        psi = sums[:, :n_dirichlets]
        lapsed, certain = np.split(sums[:, n_dirichlets:], 2, axis=1)
        if labels is None:
            return np.concatenate([digamma(self.precisions + 1) - psi, certain - lapsed], axis=1)
        mean = labels.pick(q)
        totals = labels.totals()
        columns = [
            _dirichlet_shannon(s, mean, labels, totals, psi[:, c])
            for c, s in enumerate(self.precisions)
        ]
        gains = self._gain_of_certain(mean[:, None])
        for c, e in enumerate(self.lapses):
            posterior = _star_posterior(e, mean, labels)
            gain = posterior.expect(labels, gains[:, c], certain[:, c])
            columns.append(gain - lapsed[:, c])
        return np.stack(columns, axis=1)

    def mean(self, q: Array, weights: Array, labels: Labels | None = None) -> Array:
        """Return the mean under weights of the components that need not sum to 1.

        Parameters
        ----------
        q : array of shape (n_items, n_classes)
            Means before labels.
        weights : array of shape (n_items, n_components)
            Weights given the labels.
        labels : Labels, optional
            Labels of the items.

        Returns
        -------
        ndarray of shape (n_items, n_classes)
            Sum of the weighted means.
        """
        if labels is None:
            return np.asarray(weights.sum(axis=1, keepdims=True) * q)
        n_dirichlets = self.n_dirichlets
        dirichlets = weights[:, :n_dirichlets]
        per_label = dirichlets / (self.precisions + labels.totals()[:, None])
        everywhere = per_label @ self.precisions
        at_labels = per_label.sum(axis=1)[labels.item] * labels.n_labels
        mean = labels.pick(q)
        for c, e in enumerate(self.lapses):
            weight = weights[:, n_dirichlets + c]
            posterior = _star_posterior(e, mean, labels)
            certain = weight * (1 - e) / posterior.norm
            everywhere += weight * e + certain * posterior.other
            change = posterior.factor - posterior.other[labels.item]
            at_labels += certain[labels.item] * mean * change
        result = everywhere[:, None] * q
        labels.add_to(result, at_labels)
        return result

    def _lapsed(self, x: Array) -> Array:
        """Return e x log(e x), of classes that are not J, for each share e."""
        product = self.lapses * x
        return np.asarray(product * np.log(np.maximum(product, TINY)))

    def _gain_of_certain(self, x: Array) -> Array:
        """Return x times what entropy gains when the class of probability x is J."""
        certain = 1 - self.lapses + self.lapses * x
        return np.asarray(x * (self._lapsed(x) - certain * np.log(certain)))

    def _sum_tables(self, q: Array) -> Array:
        """Return sums over classes of the tabulated functions, interpolated linearly.

        A row of a sparse matrix holds the weights of the nodes next to an item's probabilities: it
        is several times as large as these, and made for some items at a time.
        """
        step = max(TABLE_NUMBERS // q.shape[1], 1)
        blocks = [q[start : start + step] for start in range(0, len(q), step)]
        sums = [self._sum_some(block) for block in blocks]
        return np.concatenate([np.empty((0, self._table.shape[1])), *sums])

    def _sum_some(self, q: Array) -> Array:
        n_items, n_classes = q.shape
        place = np.sqrt(q) * N_NODES
        node = np.fmin(place, N_NODES - 1).astype(np.int32)  # of a NaN, too, a node that exists
        place -= node
        indices = np.stack([node, node + 1], axis=-1).reshape(-1)
        shares = np.stack([1 - place, place], axis=-1).reshape(-1)
        ends = np.arange(0, len(indices) + 1, 2 * n_classes, dtype=np.int32)
        shape = (n_items, N_NODES + 1)
        return np.asarray(sparse.csr_array((shares, indices, ends), shape=shape) @ self._table)


def _dirichlet_likelihood(s: float, mean: Array, labels: Labels, totals: Array) -> Array:
    terms = gammaln(s * mean + labels.n_labels) - gammaln(s * mean)
    return np.asarray(gammaln(s) - gammaln(s + totals) + labels.total(terms))


def _dirichlet_shannon(s: float, mean: Array, labels: Labels, totals: Array, psi: Array) -> Array:
    """Return E H of Dirichlet(s q + counts): sums of a psi(a + 1) change at the labels only."""
    before = s * mean
    after = before + labels.n_labels
    change = after * digamma(after + 1) - before * digamma(before + 1)
    total = s + totals
    return np.asarray(digamma(total + 1) - (s * psi + labels.total(change)) / total)


def _star_brier(e: float, mean: Array, square: Array, labels: Labels) -> Array:
    """Return 1 - E ||(1 - e) e_J + e q||^2 given labels."""
    at_certain = _star_posterior(e, mean, labels).expect(labels, mean**2, square)
    both = 2 * e * (1 - e) * at_certain
    return np.asarray(1 - (1 - e) ** 2 - both - e**2 * square)


def _star_posterior(e: float, mean: Array, labels: Labels) -> _StarPosterior:
    """Return what labels say about J; `mean` are the probabilities of the entries."""
    gain = labels.n_labels * (np.log(1 - e + e * mean) - np.log(e * mean))
    shift = np.zeros(labels.n_items)
    np.maximum.at(shift, labels.item, gain)
    factor = np.exp(gain - shift[labels.item])
    other = np.exp(-shift)
    unseen = np.maximum(1 - labels.total(mean), 0)
    norm = np.maximum(unseen * other + labels.total(mean * factor), TINY)
    return _StarPosterior(factor, other, norm, shift)


AROUND_PREDICTION = Components(PRECISIONS, LAPSES)
BEYOND_TOP = Components(SPLIT_PRECISIONS, LAPSES)
