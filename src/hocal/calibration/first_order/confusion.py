"""Which classes people name where a model predicts which: one table for hundreds of classes.

A matrix of weights between all classes would have more weights than there are labels. The table
takes its place: labels observed for every pair of a predicted and a named class, over labels
expected without it. It is counted, not fitted, and enters a regression as two shared columns.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from hocal.calibration.first_order.multinomial import Floats

__all__ = ["LabelTables", "count_labels", "table_columns", "table_levels"]

TINY = 1e-8  # keeps logarithms of empty entries finite: far below one label in all


class LabelTables(NamedTuple):
    """Labels for each (predicted, named) pair of classes, fold by fold."""

    observed: Floats  #: (n_folds, n_classes, n_classes)
    expected: Floats  #: (n_folds, n_classes, n_classes)
    average: Floats  #: (n_classes,) mean prediction

    def without(self, fold: int, pseudo_labels: float) -> Floats:
        """Return the tables of all folds but one; of all folds for -1.

        The first holds observed over expected labels, held towards one by pseudo-labels; the second
        the distribution of labels for each predicted class, (2, n_classes, n_classes).
        """
        observed = self.observed.sum(axis=0)
        expected = self.expected.sum(axis=0)
        if fold >= 0:
            observed = observed - self.observed[fold]
            expected = expected - self.expected[fold]
        ratio = (observed + pseudo_labels) / (expected + pseudo_labels)
        named = ratio * expected + TINY
        return np.stack([ratio, named / named.sum(axis=1, keepdims=True)])


def count_labels(predictions: Floats, counts: sparse.csr_array, expected: Floats) -> Floats:
    """Count observed and expected labels, each shared out by the prediction of its item.

    Parameters
    ----------
    predictions : array of shape (n_items, n_classes)
    counts : array of shape (n_items, n_classes)
    expected : array of shape (n_items, n_classes)
        Labels that are expected for each item.

    Returns
    -------
    array of shape (2, n_classes, n_classes)
    """
    return np.stack([(counts.T @ predictions).T, predictions.T @ expected])


def table_columns(predictions: Floats, tables: Floats) -> list[Floats]:
    """Return the logarithm of the prediction's mean over the rows of each table, centred."""
    return [_centred_logarithm(predictions @ table) for table in tables]


def table_levels(average: Floats, tables: Floats) -> Floats:
    """Return what the columns are at the average prediction, (2, n_classes): to be taken out.

    How often a class is named at all is the business of the biases. In a table that lacks the
    labels of an item's fold, classes that are frequent there are rare: biases that know all labels
    would tell from that which these are.
    """
    return np.concatenate(table_columns(average[None], tables))


def _centred_logarithm(values: Floats) -> Floats:
    logs = np.log(np.maximum(values, values.dtype.type(TINY)))
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))
