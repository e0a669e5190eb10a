"""Confusions: which classes people give to the same items, without a table of all pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from hocal._base.typing import Counts, IntArray
from hocal._base.validation import label_totals
from hocal.report.schema import Confusion
from hocal.report.study import number

__all__ = ["list_confusions", "pair_rates"]


def pair_rates(counts: Counts, multiplicity: IntArray) -> sparse.csr_array:
    """Return how often two labels of an item are of two classes, (n_classes, n_classes).

    Items with several labels weigh the same, each row of counts as many as its multiplicity.
    """
    totals = label_totals(counts)
    paired = totals > 1
    labels = sparse.csr_array(counts, dtype=np.float64)[paired]
    m = totals[paired].astype(np.float64)
    items = multiplicity[paired]
    weighted = sparse.csr_array(labels * (items / (m * (m - 1) * items.sum()))[:, None])
    own = sparse.diags_array(np.asarray(weighted.sum(axis=0)).reshape(-1))
    return sparse.csr_array(labels.T @ weighted - own)  # no label pairs with itself


def list_confusions(
    rates: sparse.csr_array, classes: Sequence[str], n_wanted: int
) -> list[Confusion]:
    """Return the pairs of different classes with the highest rates, and their shares."""
    above = sparse.triu(rates, k=1, format="csr")
    above.sum_duplicates()  # sorts the pairs, so that of equal ones the first come first
    pairs = above.tocoo()
    both = 2 * pairs.data  # a pair has two orders
    total = both.sum()
    return [
        {
            "first": classes[pairs.row[i]],
            "second": classes[pairs.col[i]],
            "share": number(both[i] / total),
            "rate": number(both[i]),
        }
        for i in np.argsort(-both, kind="stable")[:n_wanted]
    ]
