"""Pair prediction (Johnson et al., 2024): what two labels per item say about ignorance."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from hocal._base.errors import InputError
from hocal._base.validation import (
    check_kind,
    check_n_classes,
)
from hocal.torch.counts import float_type
from hocal.uncertainty.snapshots import n_snapshots, rank_snapshots

__all__ = ["PairPrediction", "predict_pairs"]


class PairPrediction(NamedTuple):
    """A label, a second one given it, and what their dependence reveals, by item and class."""

    marginal: Tensor  #: (n_items, n_classes) p(y|x)
    #: (n_items, n_classes) p(y|y, x), the chance that a second label repeats the first
    repeated: Tensor
    #: (n_items, n_classes) V(y|x) = p(y|x) (p(y|y, x) - p(y|x)); negative where infeasible
    variance: Tensor
    #: (n_items, n_classes) p(y|x) / p(y|y, x); above 1 exactly where variance is negative
    confidence: Tensor


def predict_pairs(probabilities: Tensor, n_classes: int) -> PairPrediction:
    """Read the variance of the true p(y|x) off a distribution over unordered pairs of labels.

    A second-order calibrated predictor has V(y|x) = Var p*(y), taken over the items it treats
    alike. Its confidence is E[p*]^2 / E[p*^2], and by Cauchy-Schwarz the label y is impossible,
    p*(y) = 0, for at most a share 1 - confidence of those items. Values are not clipped: a network
    may predict less agreement than any mixture allows.

    Parameters
    ----------
    probabilities : Tensor of shape (n_items, n_snapshots(2, n_classes))
        Softmax of a SnapshotHead with k=2, or its `marginalise(logits, 2)` for larger k.
    n_classes : int
        Number of label classes.

    Returns
    -------
    PairPrediction
        Tensors on the device of the input.

    Examples
    --------
    Half of the items are surely one class and half surely the other, so the second label repeats
    the first.

    >>> import torch
    >>> from hocal.torch import predict_pairs
    >>> pairs = predict_pairs(torch.tensor([[0.5, 0.0, 0.5]]), n_classes=2)
    >>> pairs.variance.tolist(), pairs.confidence.tolist()
    ([[0.25, 0.25]], [[0.5, 0.5]])
    """
    size = n_snapshots(2, check_n_classes(n_classes))
    check_kind(probabilities, "probabilities", Tensor)
    if probabilities.ndim != 2 or probabilities.shape[1] != size:
        rule = f"must have shape (n_items, {size}) for pairs of {n_classes} classes"
        raise InputError("probabilities", rule, value=str(tuple(probabilities.shape)))
    joint = _joint(probabilities.to(float_type(probabilities)), n_classes)
    marginal = joint.sum(-1)
    both = joint.diagonal(dim1=-2, dim2=-1)
    repeated = both / marginal
    return PairPrediction(marginal, repeated, both - marginal.square(), marginal / repeated)


def _joint(probabilities: Tensor, n_classes: int) -> Tensor:
    """Return the symmetric joint distribution of two labels, (n_items, n_classes, n_classes)."""
    eye = torch.eye(n_classes, dtype=torch.long)
    pairs = (eye[:, None] + eye[None]).flatten(0, 1)  # the snapshot of each ordered pair
    rank = torch.from_numpy(rank_snapshots(pairs.numpy())).to(probabilities.device)
    joint = probabilities[:, rank].reshape(-1, n_classes, n_classes)
    return joint * (1 + eye.to(joint)).div(2)  # two different labels come in two orders
