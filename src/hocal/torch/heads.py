"""Network heads that predict a mixture for each item, trained on its labels."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn

from hocal._base.errors import InputError
from hocal._base.validation import (
    check_choice,
    check_integer,
    check_n_classes,
    refuse_large,
)
from hocal.torch.counts import check_count_tensor, float_type, log_choose_table, log_multiplicity
from hocal.torch.layers import make_linear
from hocal.uncertainty.mixtures import Mixtures
from hocal.uncertainty.snapshots import (
    enumerate_snapshots,
    n_snapshots,
    rank_snapshots,
    shown_size,
    sub_snapshots,
)

__all__ = ["MixtureHead", "SnapshotHead"]

MAX_OUTPUTS = 20_000  # of a SnapshotHead: beyond that its last layer outgrows most backbones
Thinning = Literal["exact", "draw"]
_SPREAD = 2.0  # of the first logits: wide enough to reach from a clear label to a tie


class SnapshotHead(nn.Module):
    """Classify the k-snapshot of an item: one logit for each element of Y^(k).

    Cross-entropy over Y^(k) is a proper loss, so its minimiser predicts the true distribution of
    k-snapshots given the features. The predicted mixture has the atoms s / k; it is the k-th
    projection of the Bayes mixture at best, which understates aleatoric uncertainty when k is
    small.

    Parameters
    ----------
    k : int
        Labels in a snapshot.
    n_classes : int
        Number of label classes.
    in_features : int, optional
        Width of the features; a linear layer maps them to logits. Without it the head takes logits
        as they are, and the backbone must end in `n_outputs` of them.
    thinning : {"exact", "draw"}
        An item with more than k labels contributes all its k-snapshots, or one at random.

    Attributes
    ----------
    n_outputs : int
        |Y^(k)|, refused beyond 20,000.
    snapshots : Tensor of shape (n_outputs, n_classes)
        The snapshot each output stands for.

    Examples
    --------
    >>> import torch
    >>> from hocal.torch import SnapshotHead
    >>> head = SnapshotHead(2, 2)
    >>> head.snapshots.tolist()
    [[0, 2], [1, 1], [2, 0]]
    >>> round(float(head.loss(torch.zeros(1, 3), torch.tensor([[1, 1]]))), 4)  # log 3
    1.0986
    """

    snapshots: Tensor
    _selector: Tensor

    def __init__(
        self,
        k: int,
        n_classes: int,
        in_features: int | None = None,
        *,
        thinning: Thinning = "exact",
    ) -> None:
        super().__init__()
        self.k = check_integer(k, "k", minimum=1)
        self.n_classes = check_n_classes(n_classes)
        self.n_outputs = _check_size(self.k, self.n_classes)
        self.thinning = check_choice(thinning, "thinning", ("exact", "draw"))
        snapshots = torch.from_numpy(enumerate_snapshots(self.k, self.n_classes))
        self.register_buffer("snapshots", snapshots, persistent=False)
        # Row s marks the entries of a (classes x counts) table that a sum over classes must pick
        # for s.
        shape = (self.n_outputs, self.n_classes, self.k + 1)
        what = f"{self.n_outputs:,} snapshots of {self.n_classes:,} classes"
        refuse_large("k", float(math.prod(shape)), what, "Use MixtureHead, or a smaller k.")
        chosen = torch.zeros(shape).scatter_(2, snapshots[..., None], 1.0)
        self.register_buffer("_selector", chosen.flatten(1), persistent=False)
        self.linear = (
            nn.Identity() if in_features is None else make_linear(in_features, self.n_outputs)
        )

    def forward(self, features: Tensor) -> Tensor:
        """Return logits over Y^(k), (n_items, n_outputs)."""
        logits: Tensor = self.linear(features)
        return logits

    def targets(self, counts: Tensor, *, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return the distribution of k labels drawn from each item's own, (n_items, n_outputs).

        The weights prod_j C(s_j, s'_j) sum to C(n, k) over s', so a softmax of their logarithms is
        exact.
        """
        checked = check_count_tensor(counts, len(counts), self.n_classes, minimum_total=self.k)
        # Logarithms need their precision: float64 products are never rounded to TF32; Apple's GPUs
        # lack them.
        fine = torch.float32 if checked.device.type == "mps" else torch.float64
        table = log_choose_table(int(checked.max()), self.k, dtype=fine, device=checked.device)
        with torch.autocast(checked.device.type, enabled=False):
            selected = table[checked].flatten(1) @ self._selector.to(fine).T
            return selected.softmax(-1).to(dtype)

    def loss(self, logits: Tensor, counts: Tensor) -> Tensor:
        """Return the mean cross-entropy of the items' k-snapshots, in nats."""
        dtype = float_type(logits)
        log_predicted = _check_outputs(logits, self.n_outputs).to(dtype).log_softmax(-1)
        targets = self.targets(counts, dtype=dtype)
        if self.thinning == "draw":
            return nn.functional.nll_loss(log_predicted, torch.multinomial(targets, 1).squeeze(1))
        return -(targets * log_predicted).sum(-1).mean()

    def index(self, counts: Any) -> Tensor:
        """Return the output that stands for each k-snapshot, (n_items,)."""
        checked = check_count_tensor(
            torch.as_tensor(counts), len(counts), self.n_classes, minimum_total=self.k
        )
        if bool((checked.sum(1) > self.k).any()):
            rule = f"must have k = {self.k} labels in each row"
            raise InputError("counts", rule, value=int(checked.sum(1).max()))
        return torch.from_numpy(rank_snapshots(checked.cpu().numpy())).to(checked.device)

    def marginalise(self, logits: Tensor, j: int) -> Tensor:
        """Return the predicted distribution over Y^(j), j <= k, (n_items, n_snapshots(j))."""
        j = check_integer(
            j, "j", minimum=1, maximum=self.k, why="Labels can be removed, not added."
        )
        probabilities = logits.to(float_type(logits)).softmax(-1)
        thinned = sub_snapshots(self.snapshots.cpu().numpy(), j)
        rows = torch.from_numpy(rank_snapshots(thinned.snapshots))
        entries = torch.stack([rows, torch.from_numpy(thinned.items)])
        size = (n_snapshots(j, self.n_classes), self.n_outputs)
        values = torch.from_numpy(thinned.probabilities).to(probabilities.dtype)
        matrix = torch.sparse_coo_tensor(entries, values, size, check_invariants=True)
        marginal: Tensor = torch.sparse.mm(matrix.to(probabilities.device), probabilities.T)
        return marginal.T

    def mean(self, logits: Tensor) -> Tensor:
        """Return the first-order prediction, (n_items, n_classes)."""
        probabilities = logits.to(float_type(logits)).softmax(-1)
        return probabilities @ self.snapshots.to(probabilities.dtype) / self.k

    def to_mixtures(self, logits: Tensor) -> Mixtures:
        """Return one mixture per item, on the atoms s / k; nothing is dropped, however light."""
        weights = _check_outputs(logits, self.n_outputs).detach().cpu().double().softmax(-1)
        points = self.snapshots.cpu().double() / self.k
        return Mixtures.on_common_points(points.numpy(), weights.numpy())


class MixtureHead(nn.Module):
    """Predict the weights and the label distributions of a mixture.

    The loss is the exact likelihood of a count vector under the predicted mixture, log sum_c w_c
    prod_j p_cj^s_j, so items may have any numbers of labels and the cost is linear in components
    and classes where SnapshotHead needs |Y^(k)| outputs. Atoms are free, so unlike snapshots they
    do not understate aleatoric uncertainty; with k labels per item they are determined up to their
    first k moments.

    Parameters
    ----------
    n_components : int
        Atoms of each mixture.
    n_classes : int
        Number of label classes.
    in_features : int, optional
        Width of the features; a linear layer maps them to the outputs. Without it the head takes
        outputs as they are, and the backbone must end in `n_outputs` of them.

    Attributes
    ----------
    n_outputs : int
        n_components * (1 + n_classes): a logit for each weight, then the logits of each component.

    Examples
    --------
    >>> import torch
    >>> from hocal.torch import MixtureHead
    >>> head = MixtureHead(1, 2)
    >>> loss = head.loss(torch.zeros(1, 3), torch.tensor([[1, 1]]))  # a fair coin twice
    >>> round(float(loss), 4)  # log 2
    0.6931
    """

    def __init__(self, n_components: int, n_classes: int, in_features: int | None = None) -> None:
        super().__init__()
        self.n_components = check_integer(n_components, "n_components", minimum=1)
        self.n_classes = check_n_classes(n_classes)
        self.n_outputs = self.n_components * (1 + self.n_classes)
        self.linear: nn.Module = nn.Identity()
        if in_features is not None:
            self.linear = _spread_linear(in_features, self.n_components, self.n_outputs)

    def forward(self, features: Tensor) -> Tensor:
        """Return raw outputs, (n_items, n_outputs)."""
        outputs: Tensor = self.linear(features)
        return outputs

    def log_parameters(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return logarithms of weights (n_items, n_components) and of atoms (..., n_classes)."""
        _check_outputs(outputs, self.n_outputs)
        weights = outputs[..., : self.n_components]
        components = outputs[..., self.n_components :]
        atoms = components.reshape(-1, self.n_components, self.n_classes)
        return weights.log_softmax(-1), atoms.log_softmax(-1)

    def log_likelihood(
        self, outputs: Tensor, counts: Tensor, *, coefficient: bool = True
    ) -> Tensor:
        """Return the log-probability of each item's count vector, (n_items,).

        With `coefficient` the orders in which the labels can arrive are counted, as
        `Mixtures.log_likelihood` does; without, the labels are taken in one given order.
        """
        dtype = float_type(outputs)
        checked = check_count_tensor(counts, len(outputs), self.n_classes)
        log_weights, log_atoms = self.log_parameters(outputs.to(dtype))
        own = checked.to(dtype)[:, None]
        terms = log_weights + (log_atoms * own).sum(-1)  # (n_items, n_components)
        result = terms.logsumexp(-1)
        return result + log_multiplicity(checked, dtype) if coefficient else result

    def loss(self, outputs: Tensor, counts: Tensor) -> Tensor:
        """Return the mean negative log-likelihood of the items' count vectors, in nats."""
        return -self.log_likelihood(outputs, counts).mean()

    def mean(self, outputs: Tensor) -> Tensor:
        """Return the first-order prediction, (n_items, n_classes)."""
        log_weights, log_atoms = self.log_parameters(outputs.to(float_type(outputs)))
        return (log_weights[..., None] + log_atoms).logsumexp(-2).exp()

    def to_mixtures(self, outputs: Tensor) -> Mixtures:
        """Return one mixture of `n_components` atoms per item."""
        log_weights, log_atoms = self.log_parameters(outputs.detach().cpu().double())
        return Mixtures.of_members(log_atoms.exp().numpy(), log_weights.exp().numpy())


def _check_size(k: int, n_classes: int) -> int:
    """Return |Y^(k)|, refusing what no last layer should have."""
    size = n_snapshots(k, n_classes)
    if size > MAX_OUTPUTS:
        raise InputError(
            "k",
            f"must give at most {MAX_OUTPUTS} snapshots",
            value=f"{shown_size(size)} for k={k} and {n_classes} classes",
            remedy="Use MixtureHead, whose cost is linear in labels and classes, or a smaller k.",
        )
    return size


def _check_outputs(outputs: Tensor, n_outputs: int) -> Tensor:
    """Return the outputs of a backbone after checking that they are as many as the head reads."""
    if outputs.ndim != 2 or outputs.shape[1] != n_outputs:
        raise InputError(
            "outputs",
            f"must have shape (n_items, {n_outputs})",
            value=str(tuple(outputs.shape)),
            remedy="End the backbone in as many, or give the head `in_features`.",
        )
    return outputs


def _spread_linear(in_features: int, n_components: int, n_outputs: int) -> nn.Linear:
    """Return a layer whose components start apart: equal ones would get equal gradients."""
    linear = make_linear(in_features, n_outputs)
    with torch.no_grad():
        linear.bias[:n_components] = 0
        linear.bias[n_components:].normal_(std=_SPREAD)
    return linear
