"""How likely label counts are under stored mixtures, and what they say about the atoms.

The probability of counts s under atoms p_a with weights w_a is k!/prod s_j! sum_a w_a prod_j
p_aj^s_j. Given the counts, atom a has a weight in proportion to its own term of the sum. All of it
is computed in logarithms, once for each distinct pair of a mixture and counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse

from hocal._base.typing import Array, Counts, Index, IntArray
from hocal._base.validation import CACHE_BYTES, label_totals
from hocal.uncertainty.distinct_counts import as_dense, distinct_rows
from hocal.uncertainty.logarithms import finite_log
from hocal.uncertainty.mixture_storage import AtomPairs, MixtureStorage
from hocal.uncertainty.segments import segment_logsumexp

__all__ = [
    "CountPairs",
    "Posterior",
    "expect_monomials",
    "log_likelihoods",
    "pair_with_counts",
    "posterior_weights",
]


class CountPairs(NamedTuple):
    """The distinct pairs of a stored mixture and label counts."""

    mixture: Index  #: (n_pairs,) the mixture of each
    counts: Counts  #: (n_pairs, n_classes) its counts
    inverse: Index  #: (n_items,) the pair of each item


class Posterior(NamedTuple):
    """Weights of the atoms given the counts of each pair."""

    weights: Array  #: the atoms of each pair, one pair after the other
    log_likelihood: Array  #: (n_pairs,) -inf where no atom allows the counts; NaN if there is none


class _Terms(NamedTuple):
    """The terms of the sums over atoms, for a block of pairs."""

    block: slice  #: which pairs
    atoms: AtomPairs  #: their atoms
    weights: Array  #: w_a
    logs: Array  #: log w_a prod_j p_aj^s_j


def pair_with_counts(index: Index, counts: Counts) -> CountPairs:
    """Return the distinct pairs of each item's mixture and its counts, dense or CSR as given."""
    if isinstance(counts, np.ndarray):
        packed = distinct_rows(np.column_stack([index, counts]))
        table = as_dense(packed.unique)
        return CountPairs(table[:, 0], table[:, 1:], packed.inverse)
    column = sparse.csr_array(index.reshape(-1, 1).astype(np.int64))
    packed = distinct_rows(sparse.hstack([column, counts], format="csr"))
    table = sparse.csr_array(packed.unique)
    return CountPairs(table[:, [0]].toarray().ravel(), table[:, 1:], packed.inverse)


def log_likelihoods(storage: MixtureStorage, pairs: CountPairs) -> Array:
    """Return log sum_a w_a prod_j p_aj^s_j of each pair: its labels in one given order."""
    result = np.full(len(pairs.mixture), np.nan)
    for terms in _log_terms(storage, pairs):
        result[terms.block] = segment_logsumexp(terms.logs, terms.atoms.starts)
    return result


def posterior_weights(storage: MixtureStorage, pairs: CountPairs) -> Posterior:
    """Return the weights of the atoms of each pair given its counts.

    Without labels the weights are those of the mixture, to the last digit. Where no atom allows the
    counts, all weights are 0.
    """
    weights = np.empty(int(storage.sizes[pairs.mixture].sum()))
    log_likelihood = np.full(len(pairs.mixture), np.nan)
    unlabelled = label_totals(pairs.counts) == 0
    start = 0
    for block, atoms, prior, logs in _log_terms(storage, pairs):
        sums = segment_logsumexp(logs, atoms.starts)
        log_likelihood[block] = sums
        scale = np.where(np.isfinite(sums), sums, 0.0)
        posterior = np.exp(logs - scale[atoms.row])
        if unlabelled[block].any():
            posterior = np.where(unlabelled[block][atoms.row], prior, posterior)
        weights[start : start + len(logs)] = posterior
        start += len(logs)
    return Posterior(weights, log_likelihood)


def expect_monomials(storage: MixtureStorage, exponents: IntArray, log_factor: Array) -> Array:
    """Return E[factor prod_j p_j^a_j] for each stored mixture and each row a of exponents."""
    result = np.full((storage.n_mixtures, len(exponents)), np.nan)
    logs = finite_log(storage.support)
    columns = max(CACHE_BYTES * 2 // max(len(logs), 1), 1)
    for start in range(0, len(exponents), columns):
        block = slice(start, start + columns)
        powers = exponents[block].T.astype(np.float64)
        values = np.exp(logs @ powers + log_factor[block])
        result[:, block] = storage.average_over_support(values)
    return result


def _log_terms(storage: MixtureStorage, pairs: CountPairs) -> Iterator[_Terms]:
    """Go through the pairs in blocks."""
    log_points = finite_log(storage.support)
    shared = storage.shares_points
    per_atom = 1 if shared else storage.n_classes
    for block in storage.blocks(pairs.mixture, numbers_per_atom=per_atom):
        atoms = storage.pairs(pairs.mixture[block])
        counts = pairs.counts[block]
        if shared:
            products = _on_shared_points(counts, log_points, atoms)
        else:
            rows = as_dense(counts)[atoms.row]
            products = np.einsum("ij,ij->i", rows, log_points[atoms.atom])
        weights = storage.weights[atoms.atom]
        yield _Terms(block, atoms, weights, products + finite_log(weights))


def _on_shared_points(counts: Counts, log_points: Array, atoms: AtomPairs) -> Array:
    """Return log prod_j p_aj^s_j from one product of the counts with all points."""
    products = np.asarray(counts @ log_points.T)  # (n_pairs, n_points)
    sizes = np.diff(atoms.starts)
    if (sizes == len(log_points)).all():  # each goes through the points once, in order
        return products.reshape(-1)
    return np.asarray(products[atoms.row, atoms.atom % len(log_points)])
