"""A Triton kernel that reads an ensemble once: entropy of the mean, mean entropy, all checks."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra import libdevice

__all__ = ["MAX_CLASSES", "decompose_shannon"]

MAX_CLASSES = 1 << 14  # a member's classes are held in registers at once
_TILE = 1024  # about so many numbers a program works on at once


def decompose_shannon(members: Tensor, scale: float, tolerance: float) -> tuple[Tensor, bool]:
    """Return the three parts of Shannon's entropy, and whether to believe them.

    Parameters
    ----------
    members : Tensor of shape (n_items, n_members, n_classes)
        Probabilities; half precision is computed in float32.
    scale : float
        Of the entropy, in units of nats.
    tolerance : float
        How far the sum of a member may stray from 1.

    Returns
    -------
    parts : Tensor of shape (3, n_items)
        The three parts, with the dtype of `members`.
    valid : bool
        False when a number is negative or NaN, a sum strays, or the arithmetic could not cope.
    """
    n_items, n_members, n_classes = members.shape
    parts = members.new_empty((3, n_items))
    wrong = torch.zeros(1, dtype=torch.int32, device=members.device)
    classes = triton.next_power_of_2(n_classes)
    # Found by trial: few members go at once, many in parts; one warp needs no exchange with others.
    few = n_members <= 8
    rows = triton.next_power_of_2(n_members) if few else 4 if n_members <= 64 else 32
    rows = min(rows, max(_TILE // classes, 1))
    items = max((2 * _TILE if few else _TILE // 2) // (classes * rows), 1)
    warps = 4 if classes > 4 * _TILE else 2 if few else 1
    _shannon[(triton.cdiv(n_items, items),)](
        members.contiguous(),
        parts,
        wrong,
        n_items,
        N_MEMBERS=n_members,  # known to the compiler, as the classes are: half the time
        N_CLASSES=n_classes,
        ITEMS=items,
        ROWS=rows,
        CLASSES=classes,
        TOLERANCE=tolerance,
        SCALE=scale * math.log(2),
        FAST=members.is_cuda and torch.version.hip is None,
        num_warps=warps,
    )
    return parts, not wrong.item()


@triton.jit
def _shannon(
    members,
    parts,
    wrong,
    n_items,
    N_MEMBERS: tl.constexpr,
    N_CLASSES: tl.constexpr,
    ITEMS: tl.constexpr,
    ROWS: tl.constexpr,
    CLASSES: tl.constexpr,
    TOLERANCE: tl.constexpr,
    SCALE: tl.constexpr,
    FAST: tl.constexpr,
):
    item = tl.program_id(0).to(tl.int64) * ITEMS + tl.arange(0, ITEMS)
    row = tl.arange(0, ROWS)
    label = tl.arange(0, CLASSES)
    real = tl.float64 if members.dtype.element_ty == tl.float64 else tl.float32
    exists = item < n_items
    inside = exists[:, None, None] & (label < N_CLASSES)[None, None, :]
    place = members + item[:, None, None] * (N_MEMBERS * N_CLASSES) + label[None, None, :]
    mean = tl.zeros((ITEMS, CLASSES), dtype=real)
    inner = tl.zeros((ITEMS, CLASSES), dtype=real)
    stray = tl.zeros((ITEMS, ROWS), dtype=real)
    for first in range(0, N_MEMBERS, ROWS):
        present = first + row < N_MEMBERS
        where = place + (first + row)[None, :, None] * N_CLASSES
        p = tl.load(where, mask=inside & present[None, :, None], other=0.0).to(real)
        mean += tl.sum(p, axis=1)
        inner += tl.sum(_x_log2_x(p, FAST), axis=1)
        stray = tl.maximum(stray, tl.where(present[None, :], tl.abs(tl.sum(p, axis=2) - 1), 0.0))
    predictive = tl.sum(_x_log2_x(mean / N_MEMBERS, FAST), axis=1) * -SCALE
    aleatoric = tl.sum(inner, axis=1) * -SCALE / N_MEMBERS
    tl.store(parts + item, predictive, mask=exists)
    tl.store(parts + n_items + item, aleatoric, mask=exists)
    tl.store(parts + 2 * n_items + item, tl.maximum(predictive - aleatoric, 0.0), mask=exists)
    # The logarithm of a negative number is NaN, which compares as false.
    fine = (tl.max(stray, axis=1) <= TOLERANCE) & (tl.abs(aleatoric) < float("inf"))
    tl.store(wrong + item * 0, 1, mask=exists & (fine == 0))


@triton.jit
def _x_log2_x(x, FAST: tl.constexpr):
    # The smallest normal number changes nothing but 0 and subnormals, whose terms are then 0
    # without a test. The fast logarithm is a single instruction with an error like float32's
    # rounding.
    shifted = x + 1.1754943508222875e-38
    return x * (
        libdevice.fast_log2f(shifted) if FAST and x.dtype == tl.float32 else tl.log2(shifted)
    )
