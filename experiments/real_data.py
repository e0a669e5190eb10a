"""Real predictions and human label counts of the same items, for the experiments."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hocal.datasets import load_chaosnli, load_cifar10_softmax, load_cifar10h, load_ferplus

RESULTS = Path(__file__).parent / "results"


class Annotated(NamedTuple):
    """A model's predictions and people's labels for the same items."""

    probabilities: NDArray[np.float64]  # (n_items, n_classes)
    counts: NDArray[np.int64]  # (n_items, n_classes)


def cifar10h(model: str = "resnet18") -> Annotated:
    """CIFAR-10 test images: a network's softmax and about 50 labels each."""
    return Annotated(load_cifar10_softmax(model).probabilities, load_cifar10h().counts)


def chaosnli(model: str = "roberta-base_0") -> Annotated:
    """Sentence pairs of ChaosNLI-S: a language model's softmax and 100 labels each."""
    pairs = load_chaosnli(model)
    return Annotated(pairs.probabilities, pairs.counts)


def ferplus() -> Annotated:
    """Faces of the FER+ test split: the softmax of `ferplus_model.py` and ten votes each."""
    with np.load(RESULTS / "ferplus-softmax.npz") as file:
        probabilities = file["probabilities"].astype(np.float64)
    return Annotated(probabilities, load_ferplus("test").counts)
