"""Temperature scaling: one number for all items, the plainest recalibration there is."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import minimize_scalar

from hocal._base.typing import Array, Counts

__all__ = ["apply_temperature", "fit_temperature"]

FLOOR = 1e-6  # probability below which logarithms stop: one in a million, a float32's last digits
RANGE = (0.05, 1e3)  # of temperatures: from nearly one-hot to even odds within a thousandth
BLOCK_NUMBERS = 1 << 17  # logits at once, a MB: all of them would be as large as the data
PRECISION = 1e-5  # of the logarithm of the temperature; its standard error is never that small


def apply_temperature(probabilities: Array, temperature: float) -> Array:
    """Return softmax(log(f) / T), with f no less than one in a million.

    Parameters
    ----------
    probabilities : array of shape (n_items, n_classes)
        Label distributions f; zeros are welcome.
    temperature : float
        T: above 1 it flattens predictions, below 1 it sharpens them.

    Returns
    -------
    array of shape (n_items, n_classes)

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.calibration.first_order.temperature import apply_temperature
    >>> apply_temperature(np.array([[0.9, 0.1]]), 2.0).round(2).tolist()
    [[0.75, 0.25]]
    """
    return np.asarray(np.exp(_log_softmax(_logarithms(probabilities) / temperature)))


def fit_temperature(probabilities: Array, counts: Counts) -> float:
    """Return the temperature under which the labels are likeliest.

    The log loss is convex in 1 / T, so a search along a line finds its only minimum.

    Parameters
    ----------
    probabilities : array of shape (n_items, n_classes)
        Label distributions; zeros count as one in a million.
    counts : array of shape (n_items, n_classes)
        Labels of each item by class, dense or CSR.

    Returns
    -------
    float
        Between 0.05 and 1,000.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.calibration.first_order.temperature import fit_temperature
    >>> round(fit_temperature(np.array([[0.9, 0.1]]), np.array([[3, 1]])), 3)
    2.0
    """
    logs = _logarithms(probabilities)
    labels = sparse.coo_array(counts)
    named = logs[labels.row, labels.col]

    def loss(log_temperature: float) -> float:
        factor = np.exp(-log_temperature)
        largest, rest = _normalisers(logs, factor)
        logp = named * factor - largest[labels.row] - rest[labels.row]
        return -float(labels.data @ logp)

    bounds = np.log(RANGE)
    found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": PRECISION})
    return float(np.exp(found.x))


def _normalisers(logs: Array, factor: float) -> tuple[Array, Array]:
    """Return the largest logit of each row, and the logarithm of the sum above it, by blocks."""
    largest = np.empty(len(logs))
    rest = np.empty(len(logs))
    step = max(BLOCK_NUMBERS // logs.shape[1], 1)
    for start in range(0, len(logs), step):
        rows = slice(start, start + step)
        logits = logs[rows] * factor
        largest[rows] = logits.max(axis=1)
        logits -= largest[rows, None]
        rest[rows] = np.log(np.exp(logits, out=logits).sum(axis=1))
    return largest, rest


def _logarithms(probabilities: Array) -> Array:
    kept = np.maximum(probabilities, FLOOR)
    return np.log(kept, out=kept)


def _log_softmax(logits: Array) -> Array:
    logits = logits - logits.max(axis=1, keepdims=True)
    return np.asarray(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))
