"""The kernel for GPUs, on a GPU where there is one, else in Triton's interpreter."""

import numpy as np
import pytest
import torch

from hocal.torch import decompose_members

pytest.importorskip("triton", reason="needs Triton, which has wheels for Linux only")
from hocal.torch.shannon_kernel import decompose_shannon

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def random_members(shape: tuple[int, int, int]) -> torch.Tensor:
    """Dirichlet members; the first is certain, so that it has zeros."""
    members = torch.from_numpy(
        np.random.default_rng(0).dirichlet(np.full(shape[2], 0.5), size=shape[:2])
    )
    members[0, 0] = torch.eye(shape[2])[0]
    return members


@pytest.mark.parametrize(
    "shape", [(50, 6, 4), (3, 5, 10), (1, 100, 7), (2, 3, 1000), (1, 9, 5000), (7, 1, 2)], ids=str
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16], ids=str)
def test_kernel_gives_the_plain_numbers(shape: tuple[int, int, int], dtype: torch.dtype) -> None:
    members = random_members(shape).to(dtype)
    expected = decompose_members(members.double() / members.double().sum(-1, keepdim=True))

    parts, valid = decompose_shannon(members.to(DEVICE), 1.0, 1e-2)

    tolerance = {torch.float64: 1e-12, torch.float32: 5e-6, torch.float16: 1e-2}[dtype]
    assert valid
    assert parts.dtype == dtype
    for part, other in zip(parts, expected[:3], strict=True):
        torch.testing.assert_close(part.cpu().double(), other, atol=tolerance, rtol=0)


def test_strides_do_not_matter() -> None:
    members = random_members((5, 4, 3)).to(DEVICE)

    strided, _ = decompose_shannon(members.transpose(0, 1).contiguous().transpose(0, 1), 1.0, 1e-5)

    assert torch.equal(strided, decompose_shannon(members, 1.0, 1e-5)[0])


def test_subnormal_probabilities_are_no_trouble() -> None:
    members = torch.tensor([[[1e-40, 1.0], [0.5, 0.5]]], device=DEVICE)

    parts, valid = decompose_shannon(members, 1.0, 1e-5)

    assert valid
    torch.testing.assert_close(float(parts[1]), 0.5 * np.log(2), rtol=1e-6, atol=0)


@pytest.mark.parametrize("entry", [-0.25, -1e-30, np.nan, 0.3, np.inf])
def test_what_is_no_distribution_is_noticed(entry: float) -> None:
    members = torch.full((3, 2, 4), 0.25, device=DEVICE)
    members[1, 1, 2] = entry
    if entry < 0:
        members[1, 1, 3] = 0.5 - entry  # the sum stays 1

    with np.errstate(invalid="ignore"):
        assert not decompose_shannon(members, 1.0, 1e-5)[1]
