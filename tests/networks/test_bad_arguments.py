"""Arguments of `hocal.torch` that nobody should pass: refused in words, before memory is taken."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hocal.torch import (
    Epinet,
    EvidentialHead,
    MCDropout,
    MixtureHead,
    SnapshotHead,
    SoftmaxHead,
    predict_outputs,
    predict_pairs,
    train,
)
from refusals import Calls, assert_refused

LAYER = nn.Linear(1, 2)
CASES: Calls = {
    "no inputs": (lambda: SoftmaxHead(2, -1), "`in_features` must be an integer of at least 1"),
    "huge inputs": (lambda: EvidentialHead(2, 10**10), "`in_features` must need at most 4 GB"),
    "huge mixture": (lambda: MixtureHead(10**9, 2, 8), "`in_features` must need at most 4 GB"),
    "huge hidden": (lambda: Epinet(3, 2, hidden=10**9), "`hidden` must need at most 4 GB"),
    "huge draws": (lambda: Epinet(3, 2, n_samples=10**9), "`n_samples` must need at most 4 GB"),
    "huge snapshots": (lambda: SnapshotHead(19_000, 2), "`k` must need at most 4 GB"),
    "no module": (
        lambda: MCDropout([]),  # type: ignore[arg-type]
        "`model` must be Module, got list",
    ),
    "no network": (
        lambda: predict_outputs(3, torch.ones(1)),  # type: ignore[arg-type]
        "`model` must be Module, got int",
    ),
    "no tensor": (
        lambda: predict_outputs(LAYER, [1.0]),  # type: ignore[arg-type]
        "`inputs` must be Tensor, got list",
    ),
    "no pairs": (
        lambda: predict_pairs([[1.0]], 2),  # type: ignore[arg-type]
        "`probabilities` must be Tensor, got list",
    ),
    "no batches": (
        lambda: train(LAYER, [[[1.0]]], loss=nn.MSELoss(), epochs=1, device="cpu"),
        "`loader` must yield batches of tensors, of which the last holds counts, got list",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_wrong_kinds_and_absurd_sizes_are_refused(case: str) -> None:
    assert_refused(*CASES[case])
