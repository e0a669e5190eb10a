"""Label counts of people and predictions of networks for images and sentence pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hocal._base.typing import Array, IntArray
from hocal._base.validation import check_choice
from hocal.datasets.fetching import Folder, obtain
from hocal.datasets.npz import read_arrays
from hocal.datasets.sources import SOURCES, Source

__all__ = [
    "CIFAR10_CLASSES",
    "ChaosNLI",
    "Features",
    "LabelledItems",
    "Predictions",
    "load_chaosnli",
    "load_cifar10_features",
    "load_cifar10_softmax",
    "load_cifar10h",
]

CIFAR10_CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
CIFAR10_MODELS = (
    "densenet121",
    "densenet161",
    "densenet169",
    "googlenet",
    "inception_v3",
    "mobilenet_v2",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet_orig",
    "vgg11_bn",
    "vgg13_bn",
    "vgg16_bn",
    "vgg19_bn",
)
CHAOSNLI_MODELS = (
    "roberta-base_0",
    "roberta-base_1",
    "roberta-base_2",
    "bert-base-uncased_0",
    "bert-base-uncased_1",
)


@dataclass(frozen=True, eq=False, repr=False)
class LabelledItems:
    """Items with the labels that people gave them.

    Attributes
    ----------
    counts : ndarray of shape (n_items, n_classes), int64
        How many people chose each class.
    classes : tuple of str
        Names of the classes, in the order of the columns.
    source : Source
        Home page, licence and citation.

    Examples
    --------
    >>> from hocal.datasets import load_cifar10h
    >>> load_cifar10h()  # doctest: +SKIP
    LabelledItems(10000 items, 10 classes, 511000 labels)
    """

    counts: IntArray
    classes: tuple[str, ...]
    source: Source

    def __len__(self) -> int:
        return len(self.counts)

    def __repr__(self) -> str:
        size = f"{len(self)} items, {len(self.classes)} classes, {self.counts.sum()} labels"
        return f"{type(self).__name__}({size})"


@dataclass(frozen=True, eq=False, repr=False)
class ChaosNLI(LabelledItems):
    """Sentence pairs with 100 labels each, and a network's predictions for them.

    Attributes
    ----------
    counts, classes, source
        As in `LabelledItems`.
    items : ndarray of shape (n_items,), str
        Names of the sentence pairs in SNLI.
    probabilities : ndarray of shape (n_items, n_classes), float64
        Softmax of the network's logits.
    model : str
        The network.
    """

    items: NDArray[np.str_]
    probabilities: Array
    model: str


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """A network's predictions.

    Attributes
    ----------
    probabilities : ndarray of shape (n_items, n_classes), float64
        Softmax; rows sum to 1 within the rounding of float32, in which it was stored.
    classes : tuple of str
        Names of the classes, in the order of the columns.
    model : str
        The network.
    source : Source
        Home page, licence and citation.
    """

    probabilities: Array
    classes: tuple[str, ...]
    model: str
    source: Source

    def __len__(self) -> int:
        return len(self.probabilities)

    def __repr__(self) -> str:
        size = f"{len(self)} items, {len(self.classes)} classes"
        return f"{type(self).__name__}({self.model}, {size})"


@dataclass(frozen=True, eq=False, repr=False)
class Features(Predictions):
    """A network's predictions, and what its last layer but one says about the items.

    Attributes
    ----------
    probabilities, classes, model, source
        As in `Predictions`.
    features : ndarray of shape (n_items, n_features), float64
        As `SnapshotCalibrator.fit` takes them; stored in float16.
    """

    features: Array


def load_cifar10h(*, data_home: Folder | None = None) -> LabelledItems:
    """Load CIFAR-10H: 47 to 63 labels for each image of the CIFAR-10 test set, in its order.

    Parameters
    ----------
    data_home : path, optional
        The only folder to read from and to download to; see `fetch` for the default.

    Returns
    -------
    LabelledItems
        10,000 images, 10 classes. The file is downloaded at first use (0.8 MB).

    Notes
    -----
    Mean entropy of the label distributions: .154 nats.

    Examples
    --------
    >>> from hocal.datasets import load_cifar10h
    >>> images = load_cifar10h()  # doctest: +SKIP
    >>> images.source.licence  # doctest: +SKIP
    'CC BY-NC-SA 4.0'
    """
    source = SOURCES["cifar10h"]
    counts = np.load(obtain(source.files[0], data_home=data_home))
    return LabelledItems(counts, CIFAR10_CLASSES, source)


def load_cifar10_softmax(
    model: str = "resnet18", *, data_home: Folder | None = None
) -> Predictions:
    """Load a network's softmax for the images of the CIFAR-10 test set, in its original order.

    Parameters
    ----------
    model : str, default="resnet18"
        "densenet121", "densenet161", "densenet169", "googlenet", "inception_v3", "mobilenet_v2",
        "resnet18", "resnet34", "resnet50", "resnet_orig", "vgg11_bn", "vgg13_bn", "vgg16_bn" or
        "vgg19_bn".
    data_home : path, optional
        The only folder to read from; see `fetch` for the default.

    Returns
    -------
    Predictions
        Row i belongs to row i of `load_cifar10h`. The file cannot be downloaded; without it the
        error says how to make it.

    Notes
    -----
    Accuracy against the majority of the people: .885 to .935, resnet18 .917.

    Examples
    --------
    >>> from hocal.datasets import load_cifar10_softmax
    >>> load_cifar10_softmax("vgg19_bn")  # doctest: +SKIP
    Predictions(vgg19_bn, 10000 items, 10 classes)
    """
    check_choice(model, "model", CIFAR10_MODELS)
    source = SOURCES["cifar10_softmax"]
    path = obtain(source.files[0], data_home=data_home)
    softmax = read_arrays(path, {model: (10_000, 10)})[model].astype(np.float64)
    return Predictions(softmax, CIFAR10_CLASSES, model, source)


def load_cifar10_features(*, data_home: Folder | None = None) -> Features:
    """Load a network's softmax and 64 features for the images of the CIFAR-10 test set.

    Parameters
    ----------
    data_home : path, optional
        The only folder to read from; see `fetch` for the default.

    Returns
    -------
    Features
        Row i belongs to row i of `load_cifar10h`. The features are the first principal components
        of the layer before the last of a residual network. The file cannot be downloaded; without
        it the error says how to make it.

    Examples
    --------
    >>> from hocal.datasets import load_cifar10_features
    >>> load_cifar10_features()  # doctest: +SKIP
    Features(residual network, 10000 items, 10 classes)
    """
    source = SOURCES["cifar10_features"]
    path = obtain(source.files[0], data_home=data_home)
    arrays = read_arrays(path, {"features": (10_000, 64), "softmax": (10_000, 10)})
    features, softmax = (arrays[name].astype(np.float64) for name in ("features", "softmax"))
    return Features(softmax, CIFAR10_CLASSES, "residual network", source, features)


def load_chaosnli(model: str = "roberta-base_0", *, data_home: Folder | None = None) -> ChaosNLI:
    """Load ChaosNLI-S: 100 labels for each of 1,514 sentence pairs, and a network's predictions.

    Parameters
    ----------
    model : str, default="roberta-base_0"
        "roberta-base_0", "roberta-base_1", "roberta-base_2", "bert-base-uncased_0" or
        "bert-base-uncased_1".
    data_home : path, optional
        The only folder to read from; see `fetch` for the default.

    Returns
    -------
    ChaosNLI
        Classes entailment, neutral, contradiction. The file cannot be downloaded; without it the
        error says how to make it.

    Notes
    -----
    The pairs were chosen for the disagreement of earlier labels, so their mean entropy, .553 nats,
    is not that of SNLI. Accuracy of the networks against the majority: .72 to .75.

    Examples
    --------
    >>> from hocal.datasets import load_chaosnli
    >>> load_chaosnli()  # doctest: +SKIP
    ChaosNLI(1514 items, 3 classes, 151400 labels)
    """
    check_choice(model, "model", CHAOSNLI_MODELS)
    source = SOURCES["chaosnli"]
    key = f"logits_{model}"
    path = obtain(source.files[0], data_home=data_home)
    arrays = read_arrays(path, {"uid": (1514,), "counts": (1514, 3), key: (1514, 3)})
    counts = arrays["counts"].astype(np.int64)
    classes = ("entailment", "neutral", "contradiction")
    probabilities = _softmax(arrays[key].astype(np.float64))
    return ChaosNLI(counts, classes, source, arrays["uid"], probabilities, model)


def _softmax(logits: Array) -> Array:
    """Return the label distributions of logits (n_items, n_classes)."""
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))
