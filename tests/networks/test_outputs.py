"""Outputs of other libraries' models become the mixtures they stand for."""

from typing import Any

import numpy as np
import pytest
import torch

import hocal
from hocal.torch import as_mixtures

N_ITEMS, N_MEMBERS, N_CLASSES = 6, 3, 4


def made_up_logits() -> torch.Tensor:
    """(n_members, n_items, n_classes), one tensor for each member's own forward pass."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(N_MEMBERS, N_ITEMS, N_CLASSES, generator=generator)


def points(mixtures: hocal.Mixtures) -> np.ndarray:
    """Return (n_items, n_members, n_classes)."""
    return mixtures.points.reshape(N_ITEMS, N_MEMBERS, -1)


def test_members_are_stacked_behind_the_items() -> None:
    """As probly's ensembles do: torch.stack over members with dim=1."""
    each = [torch.softmax(logits, dim=1) for logits in made_up_logits()]
    outputs = torch.stack(each, dim=1)

    mixtures = as_mixtures(outputs, kind="members", n_members=N_MEMBERS)

    np.testing.assert_array_equal(points(mixtures), outputs.numpy())


def test_flattened_logits_hold_all_items_of_the_first_member_first() -> None:
    """As TorchUncertainty's ensembles do: torch.cat over members with dim=0, before a softmax."""
    flattened = torch.cat(list(made_up_logits()), dim=0)

    mixtures = as_mixtures(flattened, kind="flattened", n_members=N_MEMBERS, logits=True)

    expected = torch.softmax(made_up_logits(), dim=-1).transpose(0, 1)
    np.testing.assert_allclose(points(mixtures), expected.numpy())


def test_stacked_outputs_have_members_first() -> None:
    stacked = torch.softmax(made_up_logits(), dim=-1)

    mixtures = as_mixtures(stacked, kind="stacked")

    np.testing.assert_allclose(points(mixtures), stacked.transpose(0, 1).numpy())


def test_a_single_logit_is_that_of_the_second_of_two_classes() -> None:
    logits = made_up_logits()[..., :1].reshape(-1, 1)

    mixtures = as_mixtures(logits, kind="flattened", n_members=N_MEMBERS, logits=True)

    expected = torch.sigmoid(logits.reshape(N_MEMBERS, N_ITEMS)).T
    np.testing.assert_allclose(points(mixtures)[..., 1], expected.numpy(), atol=1e-6)


def test_evidence_and_one_are_the_parameters_of_a_dirichlet_distribution() -> None:
    evidence = torch.nn.functional.softplus(made_up_logits()[0])

    mixtures = as_mixtures(evidence, kind="evidence")

    alpha = evidence.numpy() + 1
    expected = alpha / alpha.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(mixtures.mean(), expected, atol=0.01)


def test_parameters_of_a_dirichlet_distribution_are_taken_as_they_are() -> None:
    alpha = made_up_logits()[0].exp()

    mixtures = as_mixtures(alpha, kind="dirichlet", n_atoms=16)

    expected = hocal.Mixtures.from_dirichlet(alpha.numpy(), n_atoms=16)
    np.testing.assert_array_equal(mixtures.points, expected.points)


def test_gradients_are_left_behind() -> None:
    logits = made_up_logits().requires_grad_()

    as_mixtures(torch.softmax(logits, dim=-1), kind="stacked")

    assert logits.requires_grad


def test_logits_in_half_precision_are_computed_in_float32() -> None:
    halves = made_up_logits().to(torch.bfloat16)

    mixtures = as_mixtures(halves, kind="stacked", logits=True)

    expected = torch.softmax(halves.float(), dim=-1).transpose(0, 1)
    np.testing.assert_array_equal(points(mixtures), expected.numpy())


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "two axes for members": (
        torch.ones(6, 4),
        {"kind": "members"},
        r"`outputs` must be a floating-point tensor \(n_items, n_members, n_classes\) for "
        r'kind="members", got torch.float32 of shape \(6, 4\)',
    ),
    "an array": (np.ones((6, 4)), {"kind": "dirichlet"}, "floating-point tensor .* got ndarray"),
    "whole numbers": (torch.ones(6, 4).int(), {"kind": "dirichlet"}, "got torch.int32"),
    "no items": (torch.ones(0, 4), {"kind": "dirichlet"}, "`outputs` must not be empty"),
    "logits": (
        made_up_logits(),
        {"kind": "stacked"},
        r"must hold label distributions .* for item 0 and member 0. Pass logits=True",
    ),
    "infinite logits": (
        torch.full((1, 2, 3), torch.inf),
        {"kind": "members", "logits": True},
        "`outputs` must be finite where they are logits",
    ),
    "items for members": (
        torch.softmax(made_up_logits(), dim=-1),
        {"kind": "members", "n_members": N_MEMBERS},
        r'must have 3 members on the second axis .* Pass kind="stacked"',
    ),
    "members for items": (
        torch.softmax(made_up_logits(), dim=-1).transpose(0, 1),
        {"kind": "stacked", "n_members": N_MEMBERS},
        r'must have 3 members on the first axis .* Pass kind="members"',
    ),
    "unknown members": (
        torch.ones(6, 4),
        {"kind": "flattened", "logits": True},
        '`n_members` must be given for kind="flattened"',
    ),
    "rows left over": (
        torch.ones(7, 4),
        {"kind": "flattened", "n_members": 3, "logits": True},
        "`outputs` must have a number of rows that 3 members divide, got 7 rows",
    ),
    "negative evidence": (
        made_up_logits()[0],
        {"kind": "evidence"},
        "`outputs` must be evidence of at least 0, got .* in row 0. Apply the activation",
    ),
    "members of one network": (
        torch.ones(6, 4),
        {"kind": "evidence", "n_members": 3},
        '`n_members` must be left out for kind="evidence", got 3',
    ),
    "logits of a distribution": (
        torch.ones(6, 4),
        {"kind": "dirichlet", "logits": True},
        '`logits` must be left out for kind="dirichlet"',
    ),
    "an unknown kind": (torch.ones(6, 4), {"kind": "probly"}, "`kind` must be one of 'members'"),
}


@pytest.mark.parametrize(("outputs", "options", "message"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_layout_is_refused(outputs: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(hocal.InputError, match=message):
        as_mixtures(outputs, **options)
