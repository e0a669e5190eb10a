"""Other ways to predict a mixture, so that all of them can be measured on the same scale."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import torch
from torch import Tensor, nn

from hocal._base.errors import InputError
from hocal._base.validation import (
    check_choice,
    check_integer,
    check_kind,
    check_n_classes,
    check_number,
    refuse_large,
)
from hocal.torch.counts import check_count_tensor, float_type, log_multiplicity, shares
from hocal.torch.layers import make_linear
from hocal.uncertainty.mixtures import Mixtures

__all__ = ["DeepEnsemble", "Epinet", "EvidentialHead", "MCDropout", "SoftmaxHead"]

_LEAST_CONCENTRATION = 1e-3  # keeps the logarithm of the gamma function finite


class SoftmaxHead(nn.Module):
    """A plain classifier read in a naive way: all doubt is aleatoric, or all is epistemic.

    Parameters
    ----------
    n_classes : int
        Number of label classes.
    in_features : int, optional
        Width of the features; without it the head takes logits as they are.
    mixture : {"points", "vertices"}
        Point mass at the prediction (the naive decomposition, epistemic uncertainty 0), or the
        predicted mass on certain labels (the 1-snapshot predictor, aleatoric uncertainty 0). The
        paper conflates the two (docs/errata.md, E11).

    Examples
    --------
    >>> import torch
    >>> import hocal
    >>> from hocal.torch import SoftmaxHead
    >>> mixtures = SoftmaxHead(2, mixture="vertices").to_mixtures(torch.zeros(1, 2))
    >>> hocal.decompose(mixtures).aleatoric.tolist()
    [0.0]
    """

    def __init__(
        self,
        n_classes: int,
        in_features: int | None = None,
        *,
        mixture: Literal["points", "vertices"] = "points",
    ) -> None:
        super().__init__()
        self.n_classes = check_n_classes(n_classes)
        self.mixture = check_choice(mixture, "mixture", ("points", "vertices"))
        self.linear = (
            nn.Identity() if in_features is None else make_linear(in_features, self.n_classes)
        )

    def forward(self, features: Tensor) -> Tensor:
        """Return logits, (n_items, n_classes)."""
        logits: Tensor = self.linear(features)
        return logits

    def loss(self, logits: Tensor, counts: Tensor) -> Tensor:
        """Return the mean cross-entropy of a label, with every item weighing the same."""
        return _label_cross_entropy(logits[:, None], counts)

    def to_mixtures(self, logits: Tensor) -> Mixtures:
        """Return one mixture per item."""
        p = logits.detach().cpu().double().softmax(-1).numpy()
        return Mixtures.from_points(p) if self.mixture == "points" else Mixtures.from_vertices(p)


class _Members(nn.Module):
    """Base of the models whose outputs are logits of members, (n_items, n_members, n_classes)."""

    def loss(self, logits: Tensor, counts: Tensor) -> Tensor:
        """Return the cross-entropy of a label, averaged over items and members."""
        return _label_cross_entropy(logits, counts)

    def to_mixtures(self, logits: Tensor) -> Mixtures:
        """Return the equally weighted mixture of the members of each item."""
        return Mixtures.from_ensemble(logits.detach().cpu().double().softmax(-1).numpy())


class DeepEnsemble(_Members):
    """Networks that differ by their random start, equally likely to be right.

    Parameters
    ----------
    members : iterable of nn.Module
        Classifiers with logits of the same classes. Trained together they see the same batches; no
        gradient passes between them, so each learns as it would alone.

    Examples
    --------
    >>> import torch
    >>> from hocal.torch import DeepEnsemble, predict_mixture
    >>> ensemble = DeepEnsemble(torch.nn.Linear(4, 3) for _ in range(8))
    >>> predict_mixture(ensemble, torch.zeros(2, 4))
    Mixtures(2 items, 2 mixtures, 16 atoms, 3 classes)
    """

    def __init__(self, members: Iterable[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        check_integer(len(self.members), "members", minimum=1, why="It counts the networks given.")

    def forward(self, inputs: Tensor) -> Tensor:
        """Return logits, (n_items, n_members, n_classes)."""
        return torch.stack([member(inputs) for member in self.members], dim=1)

    def loss(self, logits: Tensor, counts: Tensor) -> Tensor:
        """Return the sum of the members' cross-entropies: each learns as it would alone."""
        return logits.shape[1] * super().loss(logits, counts)


class MCDropout(_Members):
    """A network whose dropout stays on when it predicts; every pass is a member.

    This is the method of Gal and Ghahramani (2016).

    Parameters
    ----------
    model : nn.Module
        Classifier with at least one dropout layer.
    n_samples : int, default=50
        Passes at evaluation; one in training.

    Examples
    --------
    >>> import torch
    >>> from hocal.torch import MCDropout, predict_mixture
    >>> model = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(4, 3))
    >>> predict_mixture(MCDropout(model, n_samples=10), torch.ones(2, 4))
    Mixtures(2 items, 2 mixtures, 20 atoms, 3 classes)
    """

    def __init__(self, model: nn.Module, *, n_samples: int = 50) -> None:
        super().__init__()
        self.model = check_kind(model, "model", nn.Module)
        self.n_samples = check_integer(n_samples, "n_samples", minimum=1)
        # All dropout layers, also those for images, share one base class of torch.
        self._dropouts = [
            module
            for module in model.modules()
            if isinstance(module, nn.modules.dropout._DropoutNd)
        ]
        if not self._dropouts:
            found = f"{type(model).__name__} without one"
            raise InputError("model", "must have a dropout layer", value=found)

    def train(self, mode: bool = True) -> MCDropout:
        """Switch training on or off; dropout stays on, normalisation layers follow `mode`."""
        super().train(mode)
        for module in self._dropouts:
            module.train()
        return self

    def forward(self, inputs: Tensor) -> Tensor:
        """Return logits, (n_items, 1 or n_samples, n_classes)."""
        n_passes = 1 if self.training else self.n_samples
        return torch.stack([self.model(inputs) for _ in range(n_passes)], dim=1)


class Epinet(_Members):
    """A head that is told a random index z and whose answers differ with z where data is scarce.

    logits = mu(phi) + sigma(phi, z) + prior_scale * sigma_prior(phi, z), where sigma is a small
    network on (z, phi) dotted with z, sigma_prior is a frozen copy of its kind and both see phi
    without passing a gradient back (Osband et al., 2023).

    Parameters
    ----------
    in_features : int
        Width of the features phi.
    n_classes : int
        Number of label classes.
    n_indices : int, default=20
        Dimension of z.
    hidden : int, default=50
        Hidden width of sigma.
    prior_scale : float, default=4.0
        Weight of the frozen part; 4 is DeepMind's choice for CIFAR-10.
    n_train : int, default=5
        Draws of z in training, fresh for each batch.
    n_samples : int, default=50
        Draws of z at evaluation, made once so that predictions repeat.

    Examples
    --------
    >>> import torch
    >>> from hocal.torch import Epinet, predict_mixture
    >>> predict_mixture(Epinet(4, 3), torch.zeros(2, 4))
    Mixtures(2 items, 2 mixtures, 100 atoms, 3 classes)
    """

    indices: Tensor

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        *,
        n_indices: int = 20,
        hidden: int = 50,
        prior_scale: float = 4.0,
        n_train: int = 5,
        n_samples: int = 50,
    ) -> None:
        super().__init__()
        self.n_classes = check_n_classes(n_classes)
        self.n_indices = check_integer(n_indices, "n_indices", minimum=1)
        self.prior_scale = check_number(prior_scale, "prior_scale", minimum=0)
        self.n_train = check_integer(n_train, "n_train", minimum=1)
        self.base = make_linear(in_features, self.n_classes)
        self.learned = self._index_network(in_features, hidden)
        self.prior = self._index_network(in_features, hidden)
        self.prior.requires_grad_(False)
        n_draws = check_integer(n_samples, "n_samples", minimum=1)
        what = f"{n_draws:,} indices of {n_indices:,} numbers"
        refuse_large("n_samples", float(n_draws) * n_indices, what, "Use fewer of either.")
        self.register_buffer("indices", torch.randn(n_draws, n_indices))

    def _index_network(self, in_features: int, hidden: int) -> nn.Module:
        last = make_linear(hidden, self.n_classes * self.n_indices, "hidden")
        first = make_linear(in_features + self.n_indices, hidden, "in_features and hidden")
        return nn.Sequential(first, nn.ReLU(), last)

    def forward(self, features: Tensor) -> Tensor:
        """Return logits, (n_items, n_train or n_samples, n_classes)."""
        z = self.indices
        if self.training:
            z = torch.randn_like(self.indices[:1].expand(self.n_train, -1))
        spread = (len(features), len(z), -1)
        seen = features.detach()[:, None]
        told = torch.cat([z.expand(*spread), seen.expand(*spread)], dim=-1)
        answers = self.learned(told) + self.prior_scale * self.prior(told)
        by_class = answers.unflatten(-1, (self.n_classes, self.n_indices))
        dotted = (by_class * z[:, None]).sum(-1)
        logits: Tensor = self.base(features)[:, None] + dotted
        return logits


class EvidentialHead(nn.Module):
    """Predict a Dirichlet distribution over label distributions.

    Parameters
    ----------
    n_classes : int
        Number of label classes.
    in_features : int, optional
        Width of the features; without it the head takes outputs as they are.
    objective : {"bayes-risk", "likelihood"}
        "bayes-risk" is the usual evidential loss: expected cross-entropy of a label, plus `penalty`
        times the Kullback-Leibler divergence of the evidence for other labels from none (Sensoy et
        al., 2018). Its epistemic uncertainty depends on `penalty`, not on the data. "likelihood" is
        the Dirichlet-multinomial likelihood of the count vector, a proper loss from two labels per
        item on.
    penalty : float, default=0.1
        Weight of the divergence; for "bayes-risk" only.
    n_atoms : int, default=256
        Atoms that stand for a Dirichlet distribution.

    Examples
    --------
    >>> import torch
    >>> from hocal.torch import EvidentialHead
    >>> head = EvidentialHead(2, objective="likelihood", n_atoms=64)
    >>> head.to_mixtures(torch.zeros(1, 2))
    Mixtures(1 items, 1 mixtures, 64 atoms, 2 classes)
    """

    def __init__(
        self,
        n_classes: int,
        in_features: int | None = None,
        *,
        objective: Literal["bayes-risk", "likelihood"] = "bayes-risk",
        penalty: float = 0.1,
        n_atoms: int = 256,
    ) -> None:
        super().__init__()
        self.n_classes = check_n_classes(n_classes)
        self.objective = check_choice(objective, "objective", ("bayes-risk", "likelihood"))
        self.penalty = check_number(penalty, "penalty", minimum=0)
        self.n_atoms = check_integer(n_atoms, "n_atoms", minimum=1)
        self.linear = (
            nn.Identity() if in_features is None else make_linear(in_features, self.n_classes)
        )

    def forward(self, features: Tensor) -> Tensor:
        """Return raw outputs, (n_items, n_classes)."""
        outputs: Tensor = self.linear(features)
        return outputs

    def concentrations(self, outputs: Tensor) -> Tensor:
        """Return alpha > 0, (n_items, n_classes); at least 1, evidence apart, for "bayes-risk"."""
        evidence = nn.functional.softplus(outputs.to(float_type(outputs)))
        return evidence + (1 if self.objective == "bayes-risk" else _LEAST_CONCENTRATION)

    def loss(self, outputs: Tensor, counts: Tensor) -> Tensor:
        """Return the mean loss of the items' labels, in nats."""
        alpha = self.concentrations(outputs)
        checked = check_count_tensor(counts, len(outputs), self.n_classes)
        if self.objective == "likelihood":
            return -_dirichlet_multinomial(alpha, checked).mean()
        y = shares(checked, alpha.dtype)
        risk = (y * (alpha.sum(-1, keepdim=True).digamma() - alpha.digamma())).sum(-1)
        return (risk + self.penalty * _divergence_from_uniform(y + (1 - y) * alpha)).mean()

    def to_mixtures(self, outputs: Tensor) -> Mixtures:
        """Return evenly spread atoms of each item's Dirichlet distribution."""
        alpha = self.concentrations(outputs.detach().cpu().double())
        return Mixtures.from_dirichlet(alpha.numpy(), n_atoms=self.n_atoms)


def _label_cross_entropy(logits: Tensor, counts: Tensor) -> Tensor:
    """Return the mean cross-entropy of labels under logits (n_items, n_members, n_classes)."""
    dtype = float_type(logits)
    checked = check_count_tensor(counts, len(logits), logits.shape[-1])
    wanted = shares(checked, dtype)[:, None]
    logs = logits.to(dtype).log_softmax(-1)
    return -(wanted * logs).sum(-1).mean()


def _dirichlet_multinomial(alpha: Tensor, counts: Tensor) -> Tensor:
    """Return log P(s | alpha) of count vectors, their orders counted."""
    total = alpha.sum(-1)
    labels = counts.sum(-1).to(alpha.dtype)
    rising = torch.lgamma(alpha + counts) - torch.lgamma(alpha)
    result = torch.lgamma(total) - torch.lgamma(total + labels) + rising.sum(-1)
    return result + log_multiplicity(counts, alpha.dtype)


def _divergence_from_uniform(alpha: Tensor) -> Tensor:
    """Return the Kullback-Leibler divergence of Dirichlet(alpha) from Dirichlet(1, ..., 1)."""
    total = alpha.sum(-1, keepdim=True)
    size = torch.tensor(float(alpha.shape[-1]), dtype=alpha.dtype, device=alpha.device)
    of_classes = torch.lgamma(alpha).sum(-1)
    normaliser = torch.lgamma(total.squeeze(-1)) - torch.lgamma(size) - of_classes
    return normaliser + ((alpha - 1) * (alpha.digamma() - total.digamma())).sum(-1)
