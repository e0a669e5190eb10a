"""A scikit-learn style classifier for tables that learns mixtures from label counts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from hocal._base.errors import InputError
from hocal._base.typing import Array, Index, IntArray
from hocal._base.validation import (
    check_dense_counts,
    check_integer,
    check_number,
    check_random_state,
    check_same_length,
)
from hocal.calibration.first_order.feature_scale import FeatureScale, check_features
from hocal.torch.heads import MixtureHead, SnapshotHead
from hocal.torch.prediction import predict_mixture
from hocal.torch.training import TrainingHistory, seeded, train
from hocal.uncertainty.decomposition import Decomposition, decompose
from hocal.uncertainty.entropy import Entropy
from hocal.uncertainty.mixtures import Mixtures

__all__ = ["SnapshotClassifier"]

_DEFAULT_COMPONENTS = 8  # more than the three that five labels of two classes can tell apart


class SnapshotClassifier(ClassifierMixin, BaseEstimator):  # scikit-learn's bases carry no types
    """Learn from features and label counts which doubt is disagreement and which is ignorance.

    Parameters
    ----------
    k : int, optional
        Predict k-snapshots (SnapshotHead); every item then needs at least k labels.
    n_components : int, optional
        Predict mixtures of this many label distributions (MixtureHead), from any numbers of labels.
        The default, with 8 components, when neither is given; both together are refused.
    hidden : sequence of int, default=(64, 64)
        Widths of the hidden layers.
    epochs, batch_size, learning_rate, weight_decay, patience, device, progress
        As in `hocal.torch.train`.
    validation_fraction : float, default=0.1
        Share of the items held out to stop training in time; 0 trains to the end.
    random_state : int, Generator or None
        Seed or source of randomness, for weights, batches and the held-out items.

    Attributes
    ----------
    model_ : nn.Module
        The trained network; it takes features that `scale_` has standardised.
    scale_ : FeatureScale
        Mean and spread of each feature. Values beyond 30 spreads from the mean count as 30, and a
        feature that was constant in the fit tells nothing.
    history_ : TrainingHistory
        Losses of each epoch.
    classes_ : ndarray of shape (n_classes,)
        Column numbers of the counts.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from hocal.torch import SnapshotClassifier
    >>> X = np.repeat([[0.0], [1.0]], 200, axis=0)
    >>> split, agreed = np.tile([[1, 1]], (200, 1)), np.tile([[2, 0], [0, 2]], (100, 1))
    >>> counts = np.concatenate([split, agreed])
    >>> classifier = SnapshotClassifier(k=2, epochs=40, random_state=0).fit(X, counts)
    >>> (classifier.decompose([[0.0], [1.0]], base=2).aleatoric > 0.5).tolist()
    [True, False]
    """

    model_: nn.Module
    scale_: FeatureScale
    history_: TrainingHistory
    classes_: IntArray
    n_features_in_: int

    def __init__(
        self,
        k: int | None = None,
        *,
        n_components: int | None = None,
        hidden: Sequence[int] = (64, 64),
        epochs: int = 100,
        batch_size: int = 64,
        learning_rate: float = 3e-3,
        weight_decay: float = 1e-2,
        validation_fraction: float = 0.1,
        patience: int | None = 20,
        device: str | None = None,
        random_state: Any = None,
        progress: Any = False,
    ) -> None:
        self.k = k
        self.n_components = n_components
        self.hidden = hidden
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.device = device
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: ArrayLike, counts: Any) -> Self:
        """Train on features (n_items, n_features) and label counts (n_items, n_classes)."""
        features = check_features(X, "X")
        labels = check_dense_counts(counts, minimum_total=1 if self.k is None else self.k)
        check_same_length(features, labels, ("X", "counts"))
        generator = check_random_state(self.random_state)
        self.n_features_in_ = features.shape[1]
        self.classes_ = np.arange(labels.shape[1])
        self.scale_ = FeatureScale.of(features)
        standard = self.scale_.apply(features)
        with seeded(int(generator.integers(2**31))):
            self.model_ = self._network()
            self.history_ = self._train(standard, labels, generator)
        return self

    def predict_mixture(self, X: ArrayLike) -> Mixtures:
        """Return the mixture predicted for each item."""
        if not hasattr(self, "model_"):
            raise NotFittedError(
                "This SnapshotClassifier is not fitted yet. Call fit(X, counts) first."
            )
        features = check_features(X, "X")
        if features.shape[1] != self.n_features_in_:
            rule = f"must have {self.n_features_in_} features"
            raise InputError("X", rule, value=features.shape[1])
        standard = self.scale_.apply(features)
        return predict_mixture(self.model_, torch.from_numpy(standard).float())

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the mean of each item's mixture, (n_items, n_classes)."""
        return self.predict_mixture(X).mean()

    def predict(self, X: ArrayLike) -> IntArray:
        """Return the most likely class of each item."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def decompose(
        self,
        X: ArrayLike,
        entropy: str | Entropy = "shannon",
        *,
        base: float | None = None,
        kind: Any = "mutual-information",
    ) -> Decomposition:
        """Split the uncertainty of each item; options as in `hocal.decompose`."""
        return decompose(self.predict_mixture(X), entropy, base=base, kind=kind)

    def _network(self) -> nn.Module:
        """Return hidden layers and the head."""
        sizes = [
            self.n_features_in_,
            *(check_integer(width, "hidden", minimum=1) for width in self.hidden),
        ]
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise(sizes):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        return nn.Sequential(*layers, self._head(sizes[-1]))

    def _head(self, in_features: int) -> SnapshotHead | MixtureHead:
        if self.k is not None and self.n_components is not None:
            raise InputError(
                "k",
                "must be left out when `n_components` is given",
                value=f"k={self.k} and n_components={self.n_components}",
                remedy="Choose one of the two heads.",
            )
        if self.k is not None:
            return SnapshotHead(self.k, len(self.classes_), in_features)
        n_components = _DEFAULT_COMPONENTS if self.n_components is None else self.n_components
        return MixtureHead(n_components, len(self.classes_), in_features)

    def _train(
        self, features: Array, labels: IntArray, generator: np.random.Generator
    ) -> TrainingHistory:
        share = check_number(
            self.validation_fraction, "validation_fraction", minimum=0, maximum=0.9
        )
        order = generator.permutation(len(labels))
        held_out, kept = np.split(order, [int(share * len(labels))])
        head = self.model_[-1]  # type: ignore[index]  # an nn.Sequential
        return train(
            self.model_,
            self._loader(features, labels, kept, shuffle=True),
            loss=head.loss,
            epochs=self.epochs,
            validation=self._loader(features, labels, held_out, shuffle=False)
            if len(held_out)
            else None,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            patience=self.patience if len(held_out) else None,
            device=self.device,
            progress=self.progress,
        )

    def _loader(
        self, features: Array, labels: IntArray, rows: Index, *, shuffle: bool
    ) -> DataLoader[tuple[Tensor, ...]]:
        data = TensorDataset(
            torch.from_numpy(features[rows]).float(), torch.from_numpy(labels[rows])
        )
        return DataLoader(
            data, check_integer(self.batch_size, "batch_size", minimum=1), shuffle=shuffle
        )
