"""Label counts as tensors: check them, thin them exactly, score them."""

from __future__ import annotations

from typing import NoReturn

import torch
from torch import Tensor

from hocal._base.errors import InputError
from hocal.uncertainty.logarithms import LOG_ZERO


def check_count_tensor(
    counts: Tensor, n_items: int, n_classes: int, *, minimum_total: int = 1
) -> Tensor:
    """Return label counts as integers of shape (n_items, n_classes), after checking every rule."""
    if tuple(counts.shape) != (n_items, n_classes):
        rule = f"must have shape ({n_items}, {n_classes})"
        raise InputError("counts", rule, value=str(tuple(counts.shape)))
    whole = counts.long()
    # One comparison on the device for all three rules: the reasons are sought only when it fails.
    are_counts = (whole == counts).all(1) & (whole >= 0).all(1)
    enough = whole.sum(1) >= minimum_total
    if not bool((are_counts & enough).all()):
        _refuse_counts(counts, whole, minimum_total)
    return whole


def _refuse_counts(counts: Tensor, whole: Tensor, minimum_total: int) -> NoReturn:
    """Raise the error for the first offending row."""
    _refuse_rows(counts, (whole != counts).any(1), "must be whole numbers")
    _refuse_rows(counts, (whole < 0).any(1), "must be non-negative")
    totals = whole.sum(1)
    row = int((totals < minimum_total).nonzero()[0])
    labels = "label" if minimum_total == 1 else "labels"
    raise InputError(
        "counts",
        f"must have at least {minimum_total} {labels} in each row",
        value=int(totals[row]),
        where=f"in row {row}",
        remedy="Drop such items, or use a smaller k.",
    )


def _refuse_rows(counts: Tensor, wrong: Tensor, rule: str) -> None:
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise InputError("counts", rule, value=counts[row].tolist(), where=f"in row {row}")


def log_multiplicity(counts: Tensor, dtype: torch.dtype) -> Tensor:
    """Return log k! / prod_j s_j! of each count vector, (n_items,)."""
    numbers = counts.to(dtype)
    totals = numbers.sum(-1)
    return torch.lgamma(totals + 1) - torch.lgamma(numbers + 1).sum(-1)


def log_choose_table(largest: int, k: int, *, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return log C(n, r) for n up to `largest` and r up to k, (largest + 1, k + 1)."""
    n = torch.arange(largest + 1, dtype=dtype, device=device)[:, None]
    r = torch.arange(k + 1, dtype=dtype, device=device)
    left = (n - r).clamp(min=0)
    logs = torch.lgamma(n + 1) - torch.lgamma(r + 1) - torch.lgamma(left + 1)
    return torch.where(r <= n, logs, LOG_ZERO)


def shares(counts: Tensor, dtype: torch.dtype) -> Tensor:
    """Return each item's labels as shares that sum to 1, (n_items, n_classes)."""
    numbers = counts.to(dtype)
    return numbers / numbers.sum(-1, keepdim=True)


def float_type(tensor: Tensor) -> torch.dtype:
    """Return the precision to compute a loss in: never less than float32."""
    return torch.promote_types(tensor.dtype, torch.float32)
