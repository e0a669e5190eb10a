"""Layers whose sizes are checked before memory is taken for them."""

from __future__ import annotations

from torch import nn

from hocal._base.validation import check_integer, refuse_large

__all__ = ["make_linear"]


def make_linear(in_features: int, n_outputs: int, name: str = "in_features") -> nn.Linear:
    """Return a linear layer; `name` is what the caller calls its inputs."""
    n_inputs = check_integer(in_features, name, minimum=1)
    what = f"a layer of {n_inputs:,} inputs and {n_outputs:,} outputs"
    refuse_large(name, float(n_inputs) * n_outputs, what, "Use fewer of either.")
    return nn.Linear(n_inputs, n_outputs)
