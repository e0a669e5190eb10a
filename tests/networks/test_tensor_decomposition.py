"""Decompositions of tensors equal those of arrays."""

from typing import Any

import numpy as np
import pytest
import torch

import hocal
from hocal.torch import decompose_members, decomposition
from hocal.uncertainty.decomposition import KINDS, Kind
from hocal.uncertainty.entropy import (
    Brier,
    Custom,
    Entropy,
    Ordinal,
    Shannon,
    Spherical,
    Tsallis,
    ZeroOne,
)

ENTROPIES = [
    Shannon(),
    Shannon(base=2),
    Brier(),
    Brier(scale=2),
    Tsallis(1.5),
    Tsallis(0.5),
    ZeroOne(),
    Spherical(),
    Ordinal(),
]
PARTS = ("predictive", "aleatoric", "epistemic")


def random_members() -> np.ndarray:
    """Dirichlet members, some on the boundary: an agreed item, an item with zeros, a tie."""
    members = np.random.default_rng(0).dirichlet(np.full(4, 0.5), size=(50, 6))
    members[0] = [1, 0, 0, 0]
    members[1, 0] = [0, 0.5, 0.5, 0]
    members[2] = [0.25] * 4
    return members


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("entropy", ENTROPIES, ids=str)
def test_tensors_give_the_numbers_of_arrays(
    entropy: Entropy, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decomposition, "_CPU_BLOCK", 200)  # several blocks, the last one short
    members = random_members()
    expected = hocal.decompose(hocal.Mixtures.from_ensemble(members), entropy, kind=kind)

    parts = decompose_members(torch.from_numpy(members), entropy, kind=kind)

    for name in PARTS:
        np.testing.assert_allclose(
            getattr(parts, name).numpy(), getattr(expected, name), atol=1e-10, err_msg=name
        )


@pytest.mark.parametrize("entropy", ENTROPIES, ids=str)
def test_an_entropy_takes_tensors_as_it_takes_arrays(entropy: Entropy) -> None:
    """One formula for both; ties and zeros are among the members."""
    truth, prediction = random_members()[:, 0], random_members()[:, 1]
    tensors: Any = (torch.from_numpy(truth), torch.from_numpy(prediction))

    for function in (entropy.value, entropy.gradient):
        found: Any = function(tensors[0], check_input=False)
        assert isinstance(found, torch.Tensor)
        np.testing.assert_allclose(found.numpy(), function(truth), rtol=1e-12, atol=1e-14)
    losses: Any = entropy.loss(*tensors, check_input=False)
    np.testing.assert_allclose(losses.numpy(), entropy.loss(truth, prediction), rtol=1e-10)


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float32, 1e-5), (torch.float16, 5e-3), (torch.bfloat16, 5e-2)],
    ids=str,
)
def test_dtype_is_kept(dtype: torch.dtype, tolerance: float) -> None:
    members = torch.from_numpy(random_members())
    exact = decompose_members(members)

    parts = decompose_members(members.to(dtype))

    for name in PARTS:
        result = getattr(parts, name)
        assert result.dtype == dtype
        torch.testing.assert_close(result.double(), getattr(exact, name), atol=tolerance, rtol=0)


def test_autocast_does_not_coarsen_the_numbers() -> None:
    members = torch.from_numpy(random_members()).float()
    expected = decompose_members(members).aleatoric

    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(decompose_members(members).aleatoric, expected)


def test_gradients_pass_through() -> None:
    logits = torch.randn(3, 4, 5, dtype=torch.float64, requires_grad=True)

    assert torch.autograd.gradcheck(lambda z: decompose_members(z.softmax(-1)).epistemic, logits)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
@pytest.mark.parametrize("kind", KINDS)
def test_gpu_gives_the_numbers_of_the_cpu_and_keeps_them(kind: Kind) -> None:
    members = torch.from_numpy(random_members()).float()
    here, there = (decompose_members(members.to(device), kind=kind) for device in ("cpu", "cuda"))

    for name in PARTS:
        assert getattr(there, name).device.type == "cuda"
        torch.testing.assert_close(
            getattr(there, name).cpu(), getattr(here, name), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            torch.ones(2, 3),
            r"must be a floating-point tensor .* got torch.float32 of shape \(2, 3\)",
        ),
        (torch.ones(2, 3, 4, dtype=torch.long), "got torch.int64"),
        (
            torch.ones(2, 0, 4),
            r"must have items, members and at least two classes, got shape \(2, 0, 4\)",
        ),
        (torch.ones(1, 1, 2), "strays from 1 by 1. Apply a softmax first"),
        (torch.tensor([[[1.5, -0.5]]]), "smallest entry of -0.5"),
        (torch.full((1, 1, 2), torch.nan), "smallest entry of nan"),
    ],
)
def test_bad_members_are_refused(members: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decompose_members(members)


def test_a_custom_entropy_is_refused_with_a_way_out() -> None:
    with pytest.raises(ValueError, match=r"Use Mixtures\.from_ensemble"):
        decompose_members(torch.full((1, 1, 2), 0.5), Custom(lambda p: 1 - p.max(axis=-1)))


def test_decompose_takes_a_tensor_of_members() -> None:
    members = torch.from_numpy(np.random.default_rng(0).dirichlet(np.ones(3), size=(5, 4)))

    parts = hocal.decompose(members, base=2)

    assert isinstance(parts.aleatoric, torch.Tensor)
    expected = hocal.decompose(hocal.Mixtures.from_ensemble(members.numpy()), base=2).aleatoric
    np.testing.assert_allclose(parts.aleatoric.numpy(), expected, atol=1e-12)


def test_a_panel_needs_mixtures_not_a_tensor() -> None:
    with pytest.raises(ValueError, match="`panel_size` must be left out for a tensor"):
        hocal.decompose(torch.full((1, 2, 2), 0.5), panel_size=3)  # type: ignore[call-overload]
