"""Components in which the share of the top class differs from the prediction's.

In a component of an item's mixture the top class either has its share by the family around the
whole prediction, or the share outside it is Beta distributed around one of a few values, and what
lies outside is split by a second family around the prediction given "not the top class". Where some
classes are more alike than others, components in which people choose by likeness come last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln, logsumexp

from hocal._base.typing import Array, Index
from hocal.calibration.by_item.components import AROUND_PREDICTION, BEYOND_TOP, TINY, Labels
from hocal.calibration.by_item.likeness import Alike

__all__ = ["ItemBlock", "TopShares", "component_log_likelihood", "top_shares", "weigh"]

FIXED_SHARES = np.array([0.005, 0.02, 0.06, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99])
"""Outside the top class: from half a percent (a slip) to almost all (the top class is wrong)."""
NEAR_PARTS = (0.1, 0.4)
"""Further shares lie at these parts of the way from 0 and from 1 to the predicted share, so that
weights with the predicted mean always exist."""
SHARE_PRECISION = 1000.0
"""Of the Beta distributions: practically points, as good as wider ones and easy to list."""
N_SHARES = len(FIXED_SHARES) + 2 * len(NEAR_PARTS)
N_WHOLE = len(AROUND_PREDICTION)
N_COMPONENTS = N_WHOLE + N_SHARES
N_NODES = 4096  # of the table of the entropy of shares


class TopShares(NamedTuple):
    """The predictions of some items, taken apart at the top class."""

    prediction: Array  #: (n_items, n_classes)
    top: Index  #: (n_items,) the most likely class, the first of equals
    split: Array  #: (n_items, n_classes) prediction given "not the top class", 0 at the top
    outside: Array  #: (n_items,) predicted share outside the top class
    shares: Array  #: (n_items, N_SHARES) mean shares outside of the components that differ

    def outside_by_component(self) -> Array:
        """Return the mean share outside the top class, (n_items, N_COMPONENTS)."""
        whole = np.repeat(self.outside[:, None], N_WHOLE, axis=1)
        return np.concatenate([whole, self.shares], axis=1)

    def divide(self, labels: Labels) -> tuple[Array, Labels]:
        """Return the number of labels of the top class, and the other labels."""
        inside = labels.label == self.top[labels.item]
        return labels.keep(inside).totals(), labels.keep(~inside)

    def beta(self, n_inside: Array, n_outside: Array) -> tuple[Array, Array]:
        """Return the parameters of shares outside, given numbers of labels, (n_items, N_SHARES)."""
        first = self.shares * SHARE_PRECISION
        second = SHARE_PRECISION - first
        return first + n_outside[:, None], second + n_inside[:, None]


def top_shares(prediction: Array) -> TopShares:
    """Take positive predictions (n_items, n_classes) apart at their top classes."""
    rows = np.arange(len(prediction))
    top = prediction.argmax(axis=1)
    split = prediction.copy()
    split[rows, top] = 0.0
    outside = split @ np.ones(split.shape[1])
    split /= outside[:, None]
    low = outside[:, None] * NEAR_PARTS
    high = 1 - (1 - outside[:, None]) * NEAR_PARTS
    fixed = np.broadcast_to(FIXED_SHARES, (len(rows), len(FIXED_SHARES)))
    return TopShares(prediction, top, split, outside, np.concatenate([fixed, low, high], axis=1))


def component_log_likelihood(
    top: TopShares, split_weights: Array, labels: Labels, alike: Alike | None = None
) -> tuple[Array, Array]:
    """Return log-probabilities of labels in one given order.

    Parameters
    ----------
    top : TopShares
        Predictions.
    split_weights : array of shape (n_items, n_split_components)
        Weights of the split beyond the top class.
    labels : Labels
        Labels of the items.
    alike : Alike, optional
        How labels are chosen by likeness.

    Returns
    -------
    tuple of ndarray
        Of the components of the split, (n_items, n_split_components), for labels other than the
        top class; and of all components, (n_items, n_components).
    """
    n_inside, others = top.divide(labels)
    n_outside = others.totals()
    split = BEYOND_TOP.log_likelihood(top.split, others)
    beyond = logsumexp(split + safe_log(split_weights), axis=1)
    totals = (n_inside + n_outside)[:, None]
    first, second = top.beta(n_inside, n_outside)
    shares = gammaln(first) - gammaln(top.shares * SHARE_PRECISION)
    shares += gammaln(second) - gammaln(SHARE_PRECISION - top.shares * SHARE_PRECISION)
    shares += gammaln(SHARE_PRECISION) - gammaln(SHARE_PRECISION + totals)
    every = [AROUND_PREDICTION.log_likelihood(top.prediction, labels), shares + beyond[:, None]]
    if alike is not None:
        every.append(alike.log_likelihood(labels))
    return split, np.concatenate(every, axis=1)


class ItemBlock(NamedTuple):
    """Mixtures of some items, with weights given the labels seen so far."""

    top: TopShares
    split_weights: Array  #: (n_items, n_split_components)
    weights: Array  #: (n_items, n_components)
    labels: Labels | None  #: seen so far
    alike: Alike | None  #: how labels are chosen by likeness, if some classes are more alike

    def mean(self) -> Array:
        """Return the mean label distributions; before any label exactly the predictions."""
        top = self.top
        if self.labels is None:
            return top.prediction
        n_inside, others = top.divide(self.labels)
        first, second = top.beta(n_inside, others.totals())
        differing = self.weights[:, N_WHOLE:N_COMPONENTS]
        outside = np.einsum("ic,ic->i", differing, first / (first + second))
        whole = self.weights[:, :N_WHOLE]
        result = AROUND_PREDICTION.mean(top.prediction, whole, self.labels)
        result += outside[:, None] * BEYOND_TOP.mean(top.split, self.split_weights, others)
        result[np.arange(len(result)), top.top] += differing.sum(axis=1) - outside
        if self.alike is not None:
            result += self.alike.means(self.weights[:, N_COMPONENTS:], self.labels)
        return np.where((self.labels.totals() == 0)[:, None], top.prediction, result)

    def brier(self) -> Array:
        """Return the expected Brier uncertainty of each item."""
        return np.asarray(np.einsum("ic,ic->i", self.weights, self.component_brier()))

    def component_brier(self) -> Array:
        """Return the expected Brier uncertainty of each component, (n_items, n_components)."""
        others = self._others()
        first, second = self.share_parameters()
        total = first + second
        outside = first / total
        squared = outside * (first + 1) / (total + 1)
        split = BEYOND_TOP.brier(self.top.split, others)
        beyond = np.einsum("ic,ic->i", self.split_weights, split)[:, None]
        whole = AROUND_PREDICTION.brier(self.top.prediction, self.labels)
        every = [whole, 2 * (outside - squared) + squared * beyond]
        if self.alike is not None:
            every.append(self.alike.brier(self.labels))
        return np.concatenate(every, axis=1)

    def shannon(self) -> Array:
        """Return the expected Shannon uncertainty of each item, in nats."""
        others = self._others()
        first, second = self.share_parameters()
        split = BEYOND_TOP.shannon(self.top.split, others)
        beyond = np.einsum("ic,ic->i", self.split_weights, split)
        whole = AROUND_PREDICTION.shannon(self.top.prediction, self.labels)
        alone = self.labels is None
        of_shares = _entropy_of_shares(self.top) if alone else _beta_entropy(first, second)
        of_shares += first / (first + second) * beyond[:, None]
        every = [whole, of_shares]
        if self.alike is not None:
            every.append(self.alike.shannon(self.labels))
        return np.asarray(np.einsum("ic,ic->i", self.weights, np.concatenate(every, axis=1)))

    def share_parameters(self) -> tuple[Array, Array]:
        """Return the parameters of the Beta distributed shares outside the top class."""
        if self.labels is None:
            none = np.zeros(len(self.weights))
            return self.top.beta(none, none)
        n_inside, others = self.top.divide(self.labels)
        return self.top.beta(n_inside, others.totals())

    def _others(self) -> Labels | None:
        """Return the labels other than the top class."""
        return None if self.labels is None else self.top.divide(self.labels)[1]


def weigh(weights: Array, log_likelihood: Array) -> Array:
    """Return weights given labels: weights times likelihood, divided by the sum of each row."""
    logs = safe_log(weights) + log_likelihood
    logs -= logs.max(axis=1, keepdims=True)
    posterior = np.exp(logs, out=logs)
    posterior /= posterior.sum(axis=1, keepdims=True)
    return posterior


def safe_log(weights: Array) -> Array:
    """Return logarithms of weights, some of which may have vanished."""
    return np.asarray(np.log(np.maximum(weights, TINY)))


def _beta_entropy(first: Array, second: Array) -> Array:
    """Return the expected entropy of a share that is Beta(first, second), in nats."""
    total = first + second
    share = first / total
    inner = share * digamma(first + 1) + (1 - share) * digamma(second + 1)
    return np.asarray(digamma(total + 1) - inner)


_GRID = 0.5 * (np.arange(N_NODES + 1) / N_NODES) ** 2  # of the smaller of a share and its rest
_ENTROPIES = _beta_entropy(SHARE_PRECISION * _GRID, SHARE_PRECISION * (1 - _GRID))
_FIXED_ENTROPIES = _beta_entropy(
    SHARE_PRECISION * FIXED_SHARES, SHARE_PRECISION * (1 - FIXED_SHARES)
)


def _entropy_of_shares(top: TopShares) -> Array:
    """Return the same before any label, from a table for shares that differ between items."""
    n_fixed = len(FIXED_SHARES)
    near = top.shares[:, n_fixed:]
    place = np.sqrt(2 * np.minimum(near, 1 - near)) * N_NODES
    node = np.minimum(place, N_NODES - 1).astype(np.intp)
    low = _ENTROPIES[node]
    result = np.empty(top.shares.shape)
    result[:, :n_fixed] = _FIXED_ENTROPIES
    result[:, n_fixed:] = low + (place - node) * (_ENTROPIES[node + 1] - low)
    return result
