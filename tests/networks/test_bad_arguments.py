"""Arguments of `hocal.torch` that nobody should pass: refused in words, before memory is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
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
    TrainingHistory,
    predict_outputs,
    predict_pairs,
    train,
)
from refusals import Calls, assert_refused

LAYER = nn.Linear(1, 2)
BATCHES = [(torch.ones(2, 1), torch.tensor([[1, 0], [0, 1]]))]


def fit(loader: Any = BATCHES, **options: Any) -> TrainingHistory:
    """Train a layer for an epoch, but for what the options say."""
    usual = {"loss": lambda outputs, _: outputs.sum(), "epochs": 1, "device": "cpu"}
    return train(LAYER, loader, **usual | options)


class Sulking:
    """A thing without a length, which says so in its own way."""

    def __len__(self) -> int:
        raise RuntimeError("no length")


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
        lambda: fit([[[1.0]]]),
        "`loader` must yield batches of tensors, of which the last holds counts, got list",
    ),
    "empty batches": (lambda: fit([[]]), "`loader` must yield batches of tensors"),
    "no counts": (lambda: fit([[torch.ones(1)]]), "the last holds counts, got 1 of them"),
    "no length": (lambda: fit(Sulking()), "`loader` must know its number of batches, got Sulking"),
    "no validation": (
        lambda: fit(validation=[]),
        "`validation` must be an integer of at least 1, got 0. It counts the batches.",
    ),
    "no validation batches": (
        lambda: fit(validation=[[]]),
        "`validation` must yield batches of tensors, of which the last holds counts, got 0",
    ),
    "no loss": (
        lambda: fit(loss=lambda *_: None),
        "`loss` must return a tensor of shape (), got NoneType",
    ),
    "a loss of each item": (
        lambda: fit(loss=lambda outputs, _: outputs[:, 0]),
        "`loss` must return a tensor of shape (), got (2,)",
    ),
    "a device beyond any number": (
        lambda: fit(device=10**400),
        "`device` must name a device that torch can use here, got int: ",
    ),
    "devices": (lambda: fit(device=np.zeros((2, 2))), "`device` must name a device"),
    "a device that is not there": (
        lambda: fit(device="cuda:99"),
        "`device` must name a device that torch can use here, got cuda:99: ",
    ),
    "a device without memory": (lambda: fit(device="meta"), "`device` must name a device"),
    "a rate beyond single precision": (
        lambda: fit(learning_rate=1e300),
        "`learning_rate` must be a number greater than 0 and at most 1e+30, got 1e+300",
    ),
    "precisions": (
        lambda: fit(mixed_precision=[True, False]),
        "`mixed_precision` must be True or False, got [True, False]",
    ),
    "more outputs than digits": (
        lambda: SnapshotHead(10**9, 1_000),
        "snapshots, got about 10**6426 for k=1000000000 and 1000 classes",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_wrong_kinds_and_absurd_sizes_are_refused(case: str) -> None:
    assert_refused(*CASES[case])
