"""Label counts as tensors: check them, thin them exactly, score them."""

from __future__ import annotations

import torch
from torch import Tensor

from hocal.uncertainty.logarithms import LOG_ZERO


def check_count_tensor(
    counts: Tensor, n_items: int, n_classes: int, *, minimum_total: int = 1
) -> Tensor:
    """Return label counts as an integer tensor of shape (n_items, n_classes), after checking every rule."""
    if tuple(counts.shape) != (n_items, n_classes):
        raise ValueError(
            f"`counts` must have shape ({n_items}, {n_classes}), got {tuple(counts.shape)}."
        )
    whole = counts.long()
    # One comparison on the device for all three rules: the reasons are sought only when it fails.
    if bool(
        ((whole == counts).all(1) & (whole >= 0).all(1) & (whole.sum(1) >= minimum_total)).all()
    ):
        return whole
    return _refuse_counts(counts, whole, minimum_total)


def _refuse_counts(counts: Tensor, whole: Tensor, minimum_total: int) -> Tensor:
    """Raise the ValueError for the first offending row."""
    for wrong, rule in (
        ((whole != counts).any(1), "whole numbers"),
        ((whole < 0).any(1), "non-negative"),
    ):
        if bool(wrong.any()):
            row = int(wrong.nonzero()[0])
            raise ValueError(f"`counts` must be {rule}, got {counts[row].tolist()} in row {row}.")
    row = int((whole.sum(1) < minimum_total).nonzero()[0])
    raise ValueError(
        f"`counts` must have at least {minimum_total} label{'s' * (minimum_total > 1)} in each row, "
        f"got {int(whole[row].sum())} in row {row}. Drop such items, or use a smaller k."
    )


def log_multiplicity(counts: Tensor, dtype: torch.dtype) -> Tensor:
    """Return log k! / prod_j s_j! of each count vector, (n_items,)."""
    numbers = counts.to(dtype)
    return torch.lgamma(numbers.sum(-1) + 1) - torch.lgamma(numbers + 1).sum(-1)


def log_choose_table(largest: int, k: int, *, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return log C(n, r) for n up to `largest` and r up to k, (largest + 1, k + 1)."""
    n = torch.arange(largest + 1, dtype=dtype, device=device)[:, None]
    r = torch.arange(k + 1, dtype=dtype, device=device)
    logs = torch.lgamma(n + 1) - torch.lgamma(r + 1) - torch.lgamma((n - r).clamp(min=0) + 1)
    return torch.where(r <= n, logs, LOG_ZERO)


def shares(counts: Tensor, dtype: torch.dtype) -> Tensor:
    """Return each item's labels as shares that sum to 1, (n_items, n_classes)."""
    numbers = counts.to(dtype)
    return numbers / numbers.sum(-1, keepdim=True)


def float_type(tensor: Tensor) -> torch.dtype:
    """Return the precision to compute a loss in: never less than float32."""
    return torch.promote_types(tensor.dtype, torch.float32)
