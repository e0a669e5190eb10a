"""Real predictions and human label counts for the experiments, read from the folder named by HOCAL_DATA."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

RESULTS = Path(__file__).parent / "results"


class Annotated(NamedTuple):
    """A model's predictions and people's labels for the same items."""

    probabilities: NDArray[np.float64]  # (n_items, n_classes)
    counts: NDArray[np.int64]  # (n_items, n_classes)


def folder() -> Path:
    """Return the data folder or say how to name it."""
    if "HOCAL_DATA" not in os.environ:
        raise SystemExit("Set HOCAL_DATA to the folder with cifar10h/, ferplus/ and chaosnli/.")
    return Path(os.environ["HOCAL_DATA"])


def cifar10h(model: str = "resnet18") -> Annotated:
    """CIFAR-10 test images: a network's softmax and about 50 labels each."""
    with np.load(folder() / "cifar10h" / "cifar10-test-softmax.npz") as file:
        probabilities = file[model].astype(np.float64)
    return Annotated(probabilities, np.load(folder() / "cifar10h" / "cifar10h-counts.npy"))


def chaosnli(model: str = "roberta-base_0") -> Annotated:
    """Sentence pairs of ChaosNLI-S: a language model's softmax and 100 labels each."""
    with np.load(folder() / "chaosnli" / "chaosnli-snli.npz") as file:
        logits, counts = file[f"logits_{model}"].astype(np.float64), file["counts"].astype(np.int64)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return Annotated(odds / odds.sum(axis=1, keepdims=True), counts)


def ferplus() -> Annotated:
    """Faces of the FER+ test split: the softmax of `ferplus_model.py` and ten votes each."""
    with np.load(RESULTS / "ferplus-softmax.npz") as file:
        probabilities = file["probabilities"].astype(np.float64)
    with np.load(folder() / "ferplus" / "ferplus-test.npz") as file:
        return Annotated(probabilities, file["votes"].astype(np.int64))
