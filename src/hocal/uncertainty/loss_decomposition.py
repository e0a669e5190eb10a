"""Split the loss of a prediction into what no model can remove and what this one could."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from hocal._base.errors import InputError
from hocal._base.typing import Array
from hocal._base.validation import check_choice, check_same_length
from hocal.uncertainty.decomposition import decompose
from hocal.uncertainty.entropy import Entropy, get_entropy
from hocal.uncertainty.mixtures import Mixtures, check_mixtures

if TYPE_CHECKING:
    pass

__all__ = ["LossDecomposition", "decompose_loss"]


@dataclass(frozen=True, eq=False)
class LossDecomposition:
    """Expected proper loss of each item, ``total = aleatoric + grouping + calibration``.

    Attributes
    ----------
    total : ndarray of shape (n_items,)
        Expected loss of the predicted mean, or of a random draw, on the item's labels.
    aleatoric : ndarray of shape (n_items,)
        E G(p*), the loss of an oracle that knows every label distribution.
    grouping : ndarray of shape (n_items,)
        E D(p*||mean*), what is lost because different items get one prediction.
    calibration : ndarray of shape (n_items,)
        D(mean*||mean), what is lost because that prediction is not their mean; of a random draw p
        it is E D(mean*||p).

    Examples
    --------
    >>> import hocal
    >>> mixtures = hocal.Mixtures.from_points([[0.75, 0.25]])
    >>> hocal.decompose_loss(mixtures, mixtures, "brier").total.tolist()
    [0.375]
    """

    total: Array
    aleatoric: Array
    grouping: Array
    calibration: Array

    def as_dict(self) -> dict[str, Array]:
        """Return the parts by name."""
        return asdict(self)


def decompose_loss(
    predicted: Mixtures,
    truth: Mixtures,
    entropy: str | Entropy = "shannon",
    *,
    base: float | None = None,
    of: Literal["mean", "draw"] = "mean",
) -> LossDecomposition:
    """Split the expected loss of predicted means by cause, given the true mixtures.

    E L(p*||mean) = E G(p*) + E D(p*||mean*) + D(mean*||mean): noise, grouping and first-order
    calibration (docs/mathematics.md). The last two are the bias that a better model could remove.

    Whoever acts on a random draw p of the predicted mixture, as Thompson sampling does, loses E
    L(p*||p) = E G(p*) + E D(p*||mean*) + E D(mean*||p). For a higher-order calibrated prediction
    the last two are the epistemic uncertainty of ``kind="total"``.

    Parameters
    ----------
    predicted : Mixtures
        Predictions; only their means matter unless ``of="draw"``.
    truth : Mixtures
        The mixture of true label distributions behind each item's prediction, such as
        ``Mixtures.from_snapshots(counts, cells)`` with many labels per item.
    entropy : str or Entropy, default="shannon"
        The entropy that induces the loss.
    base : float, optional
        Base of Shannon's logarithm.
    of : {"mean", "draw"}
        What is used as the prediction: the mean of the predicted mixture, or a random draw from it.
        Shannon's loss of a draw is infinite if an atom excludes a label that occurs.

    Returns
    -------
    LossDecomposition
        Arrays of n_items.

    Examples
    --------
    >>> import hocal
    >>> truth = hocal.Mixtures.from_vertices([[0.5, 0.5]])
    >>> parts = hocal.decompose_loss(hocal.Mixtures.from_points([[0.5, 0.5]]), truth, "brier")
    >>> {name: float(part[0]) for name, part in parts.as_dict().items()}
    {'total': 0.5, 'aleatoric': 0.0, 'grouping': 0.5, 'calibration': 0.0}
    >>> hocal.decompose_loss(truth, truth, "brier", of="draw").total.tolist()
    [1.0]
    """
    check_mixtures(predicted, "predicted")
    check_mixtures(truth, "truth")
    check_same_length(predicted, truth, ("predicted", "truth"))
    if predicted.n_classes != truth.n_classes:
        rule = f"must have {predicted.n_classes} classes"
        raise InputError("truth", rule, value=truth.n_classes)
    measure = get_entropy(entropy, base=base)
    parts = decompose(truth, measure)
    if check_choice(of, "of", ("mean", "draw")) == "draw":
        calibration = _divergence_of_draws(truth.mean(), predicted, measure)
    else:
        calibration = measure.divergence(truth.mean(), predicted.mean(), check_input=False)
    total = parts.aleatoric + parts.epistemic + calibration
    return LossDecomposition(total, parts.aleatoric, parts.epistemic, calibration)


def _divergence_of_draws(means: Array, predicted: Mixtures, measure: Entropy) -> Array:
    """Return E D(mean||p) of each item, p drawn from its predicted mixture."""
    result = np.full(len(predicted), np.nan)
    for block in predicted.blocks(predicted.index):
        row, atom, starts = predicted.pairs(predicted.index[block])
        points = predicted.points_at(atom)
        divergence = measure.divergence(means[block][row], points, check_input=False)
        weights = predicted.weights[atom]
        terms = np.where(weights > 0, weights * divergence, 0.0)
        sums = np.bincount(row, terms, minlength=len(starts) - 1)
        result[block] = np.where(np.diff(starts) > 0, sums, np.nan)
    return result
