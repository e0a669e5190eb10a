"""A temperature for every item: where people are known to divide, the prediction is flatter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hocal._base.typing import Array, Index
from hocal.calibration.by_item.columns import Floats
from hocal.calibration.by_item.penalised_fits import FoldedParameters, fit_penalised

__all__ = ["fit_temperatures", "temper"]

PENALTIES = (1000.0, 200.0, 40.0, 8.0)  # of the dependence on the item, in units of labels
FREE = 0.05  # of the average temperature: practically none
# Nats that temperatures must gain, beyond what their freedom costs: the predictions are right on
# average already, and with a hundred items less than that is chance, which makes them too sure.
LEAST_GAIN = 5.0
MOST = 3.0  # logarithm of a power: beyond a factor of 20 nothing is left to learn


def temper(probabilities: Floats, inputs: Floats, parameters: Array) -> Floats:
    """Return f ** exp(t . z), normalised.

    Parameters
    ----------
    probabilities : array of shape (n_items, n_classes)
        f, all positive.
    inputs : array of shape (n_inputs, n_items)
        z, the first is one.
    parameters : array of shape (n_inputs,)
        t.
    """
    power = np.exp(np.clip(parameters.astype(inputs.dtype) @ inputs, -MOST, MOST))
    logits = np.log(probabilities)
    logits *= power[:, None]
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return logits


def fit_temperatures(
    probabilities: Array, inputs: Array, counts: Array, folds: Index
) -> FoldedParameters:
    """Fit t to label counts (n_items, n_classes), as far as they ask for it; else t is 0."""
    problem = _Temperatures(np.log(probabilities), inputs, counts, counts.sum(axis=1))
    weights = np.ones(len(inputs))
    weights[0] = 0
    penalties = [np.where(weights > 0, penalty, FREE) for penalty in PENALTIES]
    n_folds = int(folds.max()) + 1
    start = np.zeros(len(inputs))
    return fit_penalised(problem, start, penalties, folds, n_folds, LEAST_GAIN)


class _Temperatures(NamedTuple):
    """The likelihood of label counts."""

    logs: Array  #: (n_items, n_classes)
    inputs: Array  #: (n_inputs, n_items)
    counts: Array  #: (n_items, n_classes)
    totals: Array  #: (n_items,)

    def total(self, parameters: Array) -> tuple[float, Array]:
        values, slopes = self._slopes(parameters)
        return float(values.sum()), self.inputs @ slopes

    def scores(self, parameters: Array) -> tuple[Array, Array]:
        values, slopes = self._slopes(parameters)
        return values, self.inputs * slopes

    def _slopes(self, parameters: Array) -> tuple[Array, Array]:
        """Return each item's log-likelihood, and its derivative by the logarithm of the power."""
        power = np.exp(np.clip(parameters @ self.inputs, -MOST, MOST))
        logits = power[:, None] * self.logs
        logits -= logits.max(axis=1, keepdims=True)
        raised = np.exp(logits)
        norm = raised.sum(axis=1)
        raised *= (self.totals / norm)[:, None]
        values = np.einsum("ij,ij->i", self.counts, logits) - self.totals * np.log(norm)
        gaps = np.einsum("ij,ij->i", self.counts - raised, self.logs)
        return values, gaps * power
