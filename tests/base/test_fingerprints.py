"""Fingerprints know a row again, and nothing else."""

import numpy as np
from scipy import sparse

from hocal._base.fingerprints import balanced_folds, find, fingerprint

GENERATOR = np.random.default_rng(0)
PREDICTIONS = GENERATOR.dirichlet(np.ones(5), 400)
COUNTS = GENERATOR.integers(0, 3, (400, 5))


def test_different_rows_have_different_fingerprints() -> None:
    assert len(np.unique(fingerprint(PREDICTIONS, COUNTS))) == 400


def test_a_row_keeps_its_fingerprint_in_any_order() -> None:
    order = GENERATOR.permutation(400)

    assert (fingerprint(PREDICTIONS[order]) == fingerprint(PREDICTIONS)[order]).all()


def test_sparse_counts_have_the_fingerprints_of_dense_ones() -> None:
    packed = sparse.csr_array(COUNTS)

    assert (fingerprint(PREDICTIONS, packed) == fingerprint(PREDICTIONS, COUNTS)).all()


def test_columns_are_told_apart() -> None:
    assert fingerprint(np.array([[1, 0]])) != fingerprint(np.array([[0, 1]]))


def test_arrays_are_told_apart() -> None:
    first, second = np.array([[1.0]]), np.array([[2.0]])

    assert fingerprint(first, second) != fingerprint(second, first)


def test_minus_zero_is_zero() -> None:
    assert fingerprint(np.array([[-0.0, 1.0]])) == fingerprint(np.array([[0.0, 1.0]]))


def test_known_rows_are_found_and_others_are_not() -> None:
    known = np.sort(fingerprint(PREDICTIONS[:200]))

    found = find(fingerprint(PREDICTIONS), known) >= 0

    assert found[:200].all()
    assert not found[200:].any()


def test_folds_are_equally_large_and_do_not_depend_on_the_order() -> None:
    prints = fingerprint(PREDICTIONS)
    order = GENERATOR.permutation(400)

    folds = balanced_folds(prints, 5)

    assert np.bincount(folds).tolist() == [80] * 5
    assert (balanced_folds(prints[order], 5) == folds[order]).all()


def test_equal_rows_are_spread_over_the_folds() -> None:
    prints = fingerprint(np.repeat([[0.5, 0.5]], 100, axis=0))

    assert np.bincount(balanced_folds(prints, 5)).tolist() == [20] * 5
