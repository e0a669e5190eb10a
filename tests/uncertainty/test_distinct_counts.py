"""Distinct rows of counts come in one order, whatever holds them."""

import numpy as np
import pytest
from scipy import sparse

from hocal.calibration import label_posterior
from hocal.uncertainty.distinct_counts import compress

COUNTS = np.random.default_rng(5).multinomial(4, [0.4, 0.3, 0.2, 0.1], 200)


def test_distinct_rows_of_a_sparse_matrix_come_in_the_order_of_dense_ones() -> None:
    dense, packed = compress(COUNTS), compress(sparse.csr_array(COUNTS))

    assert np.array_equal(packed.unique.toarray(), dense.unique)  # type: ignore[union-attr]
    assert np.array_equal(packed.inverse, dense.inverse)


@pytest.mark.parametrize("limit", ["lower", "upper"])
def test_limits_from_sparse_labels_are_those_from_dense_ones(limit: str) -> None:
    dense, packed = (label_posterior(counts) for counts in (COUNTS, sparse.csr_array(COUNTS)))

    np.testing.assert_allclose(getattr(packed, limit), getattr(dense, limit))
