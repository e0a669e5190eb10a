"""Run a trained network over many items and turn what it says into Mixtures."""

from __future__ import annotations

from typing import Protocol, cast

import torch
from torch import Tensor, nn

from hocal._base.errors import InputError
from hocal._base.validation import check_integer, check_kind
from hocal.uncertainty.mixtures import Mixtures

__all__ = ["predict_mixture", "predict_outputs"]


class _Head(Protocol):
    """Whatever turns outputs into Mixtures."""

    def to_mixtures(self, outputs: Tensor) -> Mixtures: ...


@torch.no_grad()
def predict_outputs(model: nn.Module, inputs: Tensor, *, batch_size: int = 1024) -> Tensor:
    """Return a model's outputs for all items in evaluation mode, on the CPU.

    Parameters
    ----------
    model : nn.Module
        Left in the mode, training or evaluation, it was in.
    inputs : Tensor of shape (n_items, ...)
        Moved to the model's device in batches.
    batch_size : int, default=1024
        Items in a batch.

    Returns
    -------
    Tensor of shape (n_items, ...)
        Outputs.

    Examples
    --------
    >>> import torch
    >>> from hocal.torch import predict_outputs
    >>> predict_outputs(torch.nn.Dropout(0.5), torch.ones(3, 2)).shape
    torch.Size([3, 2])
    """
    size = check_integer(batch_size, "batch_size", minimum=1)
    check_kind(model, "model", nn.Module)
    check_kind(inputs, "inputs", Tensor)
    device = next(iter(model.parameters()), inputs).device
    was_training = model.training
    model.eval()
    try:
        return torch.cat([model(batch.to(device)).cpu() for batch in torch.split(inputs, size)])
    finally:
        model.train(was_training)


def predict_mixture(
    model: nn.Module, inputs: Tensor, *, head: nn.Module | None = None, batch_size: int = 1024
) -> Mixtures:
    """Return the mixture a model predicts for each item.

    Parameters
    ----------
    model : nn.Module
        Network whose outputs `head` understands.
    inputs : Tensor of shape (n_items, ...)
        Items.
    head : nn.Module, optional
        What turns outputs into mixtures; the model itself, or the last module of an
        `nn.Sequential`, by default.
    batch_size : int, default=1024
        Items in a batch.

    Returns
    -------
    Mixtures
        One mixture per item.

    Examples
    --------
    >>> import torch
    >>> from hocal.torch import MixtureHead, predict_mixture
    >>> head = MixtureHead(4, 3, in_features=8)
    >>> model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.ReLU(), head)
    >>> predict_mixture(model, torch.zeros(2, 5))
    Mixtures(2 items, 2 mixtures, 8 atoms, 3 classes)
    """
    chosen = _last_module(model) if head is None else head
    if not callable(getattr(chosen, "to_mixtures", None)):
        raise InputError(
            "head",
            "must have a method to_mixtures",
            value=type(chosen).__name__,
            remedy="Pass the head of the network.",
        )
    return cast(_Head, chosen).to_mixtures(predict_outputs(model, inputs, batch_size=batch_size))


def _last_module(model: nn.Module) -> nn.Module:
    """Return the last module of an `nn.Sequential`, and any other model itself."""
    return model[-1] if isinstance(model, nn.Sequential) and len(model) else model
