"""Decompose the uncertainty of ensembles that are torch tensors, on their own device."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hocal._base.errors import InputError
from hocal._base.validation import SUM_TOLERANCE, check_choice
from hocal.torch.tensor_operations import sum_over_classes
from hocal.uncertainty.decomposition import KINDS, Kind
from hocal.uncertainty.entropy import Custom, Entropy, Shannon, get_entropy

__all__ = ["TensorDecomposition", "decompose_members"]

_CPU_BLOCK = 1 << 18  # numbers worked on at once: a megabyte in float32, inside a core's cache
_DEVICE_BLOCK = 1 << 26  # enough to fill a GPU, little enough to leave its memory free
# of sums to 1, six to ten times the spacing of numbers near 1; else as for arrays
_HALF_TOLERANCES = {torch.float16: 1e-2, torch.bfloat16: 5e-2}


class TensorDecomposition(NamedTuple):
    """Uncertainty of each item in two parts, ``predictive = aleatoric + epistemic``, as tensors."""

    predictive: Tensor  #: (n_items,) all of the uncertainty
    aleatoric: Tensor  #: (n_items,) disagreement that stays however good the model becomes
    epistemic: Tensor  #: (n_items,) what the model does not know
    entropy: Entropy  #: the measure of uncertainty
    kind: Kind  #: how the epistemic part is defined


def decompose_members(
    members: Tensor,
    entropy: str | Entropy = "shannon",
    *,
    base: float | None = None,
    kind: Kind = "mutual-information",
) -> TensorDecomposition:
    """Split the uncertainty of equally likely members as `hocal.decompose` does.

    Everything stays on the tensor's device.

    Parameters
    ----------
    members : Tensor of shape (n_items, n_members, n_classes)
        Probabilities, on any device. Half precision is computed in float32.
    entropy : str or Entropy, default="shannon"
        Measure of uncertainty; any of `hocal.uncertainty.entropy` but Custom, which works on
        arrays.
    base : float, optional
        Base of Shannon's logarithm, 2 for bits.
    kind : {"mutual-information", "reverse", "total"}
        Definition of the epistemic part.

    Returns
    -------
    TensorDecomposition
        Tensors of n_items with the dtype and device of `members`.

    Examples
    --------
    >>> import torch
    >>> from hocal.torch import decompose_members
    >>> parts = decompose_members(torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]), base=2)
    >>> float(parts.aleatoric), float(parts.epistemic)
    (0.0, 1.0)
    """
    check_choice(kind, "kind", KINDS)
    measure = _check_entropy(get_entropy(entropy, base=base))
    _check_shape(members)
    if kind == "mutual-information" and isinstance(measure, Shannon):
        parts = _decompose_in_one_pass(members, measure)
        if parts is not None:
            return TensorDecomposition(*parts, measure, kind)
    numbers = _CPU_BLOCK if members.device.type == "cpu" else _DEVICE_BLOCK
    rows = max(numbers // members[0].numel(), 1)
    with torch.autocast(members.device.type, enabled=False):  # sums need their precision
        blocks = [_decompose_block(block, measure, kind) for block in torch.split(members, rows)]
    predictive, aleatoric, epistemic = (torch.cat(part) for part in zip(*blocks, strict=True))
    return TensorDecomposition(predictive, aleatoric, epistemic, measure, kind)


def _decompose_in_one_pass(
    members: Tensor, measure: Shannon
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Return the parts from a kernel on a GPU; None without one, or if it found something odd."""
    if not members.is_cuda or (torch.is_grad_enabled() and members.requires_grad):
        return None
    try:
        from hocal.torch.shannon_kernel import MAX_CLASSES, decompose_shannon
    except ImportError:  # PyTorch brings Triton to most systems with a GPU, not to all
        return None
    if members.shape[2] > MAX_CLASSES:
        return None
    with torch.cuda.device(members.device):
        parts, valid = decompose_shannon(members, measure.units_per_nat, _tolerance(members))
    return (parts[0], parts[1], parts[2]) if valid else None


def _decompose_block(block: Tensor, measure: Entropy, kind: Kind) -> tuple[Tensor, Tensor, Tensor]:
    """Return predictive, aleatoric and epistemic uncertainty of some items."""
    members = block.to(torch.promote_types(block.dtype, torch.float32))
    _check_members(members, _tolerance(block))
    value: Any = partial(measure.value, check_input=False)  # of a tensor, a tensor
    mean = members.mean(1)
    predictive = value(mean)
    aleatoric = value(members).mean(1)
    epistemic = (predictive - aleatoric).clamp(min=0)  # Jensen: negative only by rounding
    if kind != "mutual-information":
        loss: Any = partial(measure.loss, check_input=False)
        losses = loss(mean[:, None], members).mean(1)
        reverse = (losses - predictive).clamp(min=0)
        epistemic = reverse if kind == "reverse" else epistemic + reverse
        predictive = aleatoric + epistemic
    return predictive.to(block.dtype), aleatoric.to(block.dtype), epistemic.to(block.dtype)


def _tolerance(members: Tensor) -> float:
    """Return how far the sum of a member may stray from 1."""
    return _HALF_TOLERANCES.get(members.dtype, SUM_TOLERANCE)


def _check_entropy(measure: Entropy) -> Entropy:
    if isinstance(measure, Custom):
        raise InputError(
            "entropy",
            "must be one of hocal's own for a tensor",
            value=measure,
            remedy="Use Mixtures.from_ensemble(members.cpu().numpy()) for a Custom entropy.",
        )
    return measure


def _check_shape(members: Any) -> None:
    rule = "must be a floating-point tensor (n_items, n_members, n_classes)"
    if not isinstance(members, Tensor):
        raise InputError("members", rule, value=type(members))
    shape = f"shape {tuple(members.shape)}"
    if members.ndim != 3 or not members.dtype.is_floating_point:
        raise InputError("members", rule, value=f"{members.dtype} of {shape}")
    if min(members.shape) < 1 or members.shape[2] < 2:
        rule = "must have items, members and at least two classes"
        raise InputError("members", rule, value=shape)


def _check_members(members: Tensor, tolerance: float) -> None:
    """Refuse what is not a label distribution; one number per block leaves the device."""
    stray = (sum_over_classes(members) - 1).abs().amax()
    if not bool((stray <= tolerance) & (members.amin() >= 0)):  # a NaN fails both
        least = f"a smallest entry of {members.amin().item():.6g}"
        raise InputError(
            "members",
            "must hold label distributions on the last axis",
            value=f"{least} and a sum that strays from 1 by {stray.item():.6g}",
            remedy="Apply a softmax first.",
        )
