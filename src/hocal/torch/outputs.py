"""Mixtures from what models of other libraries put out: members in any layout, or evidence."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from hocal._base.errors import InputError
from hocal._base.validation import SUM_TOLERANCE, check_choice, check_flag, check_integer
from hocal.uncertainty.mixtures import Mixtures

__all__ = ["as_mixtures"]

OutputKind = Literal["members", "stacked", "flattened", "dirichlet", "evidence"]
LAYOUTS: dict[str, str] = {
    "members": "(n_items, n_members, n_classes)",
    "stacked": "(n_members, n_items, n_classes)",
    "flattened": "(n_members * n_items, n_classes)",
    "dirichlet": "(n_items, n_classes)",
    "evidence": "(n_items, n_classes)",
}
_OF_DIRICHLET = ("dirichlet", "evidence")


def as_mixtures(
    outputs: Tensor,
    *,
    kind: OutputKind,
    n_members: int | None = None,
    logits: bool = False,
    n_atoms: int = 256,
) -> Mixtures:
    """Turn the outputs of an ensemble or an evidential network into Mixtures.

    | outputs | kind | logits |
    |---|---|---|
    | probly: `predict_representation` of Ensemble, Dropout, Bayesian and others | members | no |
    | probly: `predict_representation` of Evidential | evidence | |
    | TorchUncertainty: `forward` of deep ensembles, MC dropout and others | flattened | yes |
    | TorchUncertainty: ReLU of what DECLoss trains | evidence | |

    Parameters
    ----------
    outputs : Tensor
        On any device, with or without a gradient; a detached copy on the CPU is used. Half
        precision is computed in float32.
    kind : {"members", "stacked", "flattened", "dirichlet", "evidence"}
        The layout: members (n_items, n_members, n_classes); stacked (n_members, n_items,
        n_classes); flattened (n_members * n_items, n_classes), all items of the first member
        first; parameters of a dirichlet distribution, (n_items, n_classes); or evidence, to which
        1 is added to give these parameters.
    n_members : int, optional
        Number of members; needed for flattened outputs, and checked where it can be seen: shapes
        alone do not tell members from items.
    logits : bool, default=False
        Whether the members' outputs need a softmax. With a single column, the logit of the second
        of two classes, it is a sigmoid.
    n_atoms : int, default=256
        Atoms that stand for a Dirichlet distribution.

    Returns
    -------
    Mixtures
        One mixture per item.

    Examples
    --------
    Two members, three items, as TorchUncertainty puts them out:

    >>> import torch
    >>> from hocal.torch import as_mixtures
    >>> as_mixtures(torch.randn(6, 4), kind="flattened", n_members=2, logits=True)
    Mixtures(3 items, 3 mixtures, 6 atoms, 4 classes)
    """
    check_choice(kind, "kind", tuple(LAYOUTS))
    check_flag(logits, "logits")
    numbers = _check_outputs(outputs, kind)
    if kind in _OF_DIRICHLET:
        _refuse_members(n_members, logits, kind)
        parameters = _check_evidence(numbers) + 1 if kind == "evidence" else numbers
        return Mixtures.from_dirichlet(parameters.numpy(), n_atoms=n_atoms)
    members = _items_first(numbers, kind, n_members)
    probabilities = _probabilities(members) if logits else _check_distributions(members)
    return Mixtures.from_ensemble(probabilities.numpy())


def _check_outputs(outputs: Any, kind: str) -> Tensor:
    """Return floating-point outputs of the right number of axes, off the graph and the device."""
    rule = f'must be a floating-point tensor {LAYOUTS[kind]} for kind="{kind}"'
    if not isinstance(outputs, Tensor):
        raise InputError("outputs", rule, value=type(outputs).__name__)
    if outputs.ndim != LAYOUTS[kind].count(",") + 1 or not outputs.dtype.is_floating_point:
        found = f"{outputs.dtype} of shape {tuple(outputs.shape)}"
        raise InputError("outputs", rule, value=found)
    if outputs.numel() == 0:
        raise InputError("outputs", "must not be empty", value=f"shape {tuple(outputs.shape)}")
    wide = torch.promote_types(outputs.dtype, torch.float32)
    return outputs.detach().to("cpu", wide)


def _refuse_members(n_members: int | None, logits: bool, kind: str) -> None:
    """Refuse options of ensembles for outputs of one network."""
    rule = f'must be left out for kind="{kind}"'
    if n_members is not None:
        raise InputError("n_members", rule, value=n_members)
    if logits:
        raise InputError("logits", rule, value=logits)


def _check_evidence(evidence: Tensor) -> Tensor:
    if not bool((evidence >= 0).all()):  # a NaN is not
        row = int((~(evidence >= 0)).any(1).nonzero()[0])
        raise InputError(
            "outputs",
            "must be evidence of at least 0",
            value=evidence[row].tolist(),
            where=f"in row {row}",
            remedy="Apply the activation of the network's loss first, a ReLU or a softplus.",
        )
    return evidence


def _items_first(outputs: Tensor, kind: str, n_members: int | None) -> Tensor:
    """Return members as (n_items, n_members, n_classes)."""
    if kind == "flattened":
        return _unflatten(outputs, n_members)
    members = outputs if kind == "members" else outputs.transpose(0, 1)
    found = members.shape[1]
    if n_members is not None and found != check_integer(n_members, "n_members", minimum=1):
        axis = "second" if kind == "members" else "first"
        other = "stacked" if kind == "members" else "members"
        raise InputError(
            "outputs",
            f'must have {n_members} members on the {axis} axis for kind="{kind}"',
            value=f"shape {tuple(outputs.shape)}",
            remedy=f'Pass kind="{other}" for a tensor {LAYOUTS[other]}.',
        )
    return members


def _unflatten(outputs: Tensor, n_members: int | None) -> Tensor:
    if n_members is None:
        rule = 'must be given for kind="flattened", whose shape does not tell it'
        raise InputError("n_members", rule)
    size = check_integer(n_members, "n_members", minimum=1)
    if len(outputs) % size:
        rule = f"must have a number of rows that {size} members divide"
        raise InputError("outputs", rule, value=f"{len(outputs)} rows")
    return outputs.reshape(size, -1, outputs.shape[1]).transpose(0, 1)


def _probabilities(members: Tensor) -> Tensor:
    """Return the softmax of logits, or what a single logit of the second class says of both."""
    if not bool(members.isfinite().all()):
        raise InputError("outputs", "must be finite where they are logits")
    if members.shape[2] == 1:
        members = torch.cat([torch.zeros_like(members), members], dim=2)
    return torch.softmax(members, dim=2)


def _check_distributions(members: Tensor) -> Tensor:
    """Refuse what is not a label distribution, most often because it is a logit."""
    sums = members.sum(2, dtype=torch.float64)
    wrong = ~((members >= 0).all(2) & ((sums - 1).abs() <= SUM_TOLERANCE))
    if bool(wrong.any()):
        item, member = wrong.nonzero()[0].tolist()
        raise InputError(
            "outputs",
            "must hold label distributions on the last axis",
            value=[round(number, 4) for number in members[item, member].tolist()],
            where=f"for item {item} and member {member}",
            remedy="Pass logits=True if a softmax is still to be applied.",
        )
    return members
