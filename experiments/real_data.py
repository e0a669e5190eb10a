"""Real predictions and human label counts of the same items, for the experiments."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hocal.datasets import (
    JudgedItems,
    load_chaosnli,
    load_cifar10_features,
    load_cifar10_softmax,
    load_cifar10h,
    load_ferplus,
    load_imagenet16h,
    load_judges,
    load_lewidi,
)
from hocal.datasets.imagenet16h import IMAGENET16H_MODELS
from hocal.datasets.real import CHAOSNLI_MODELS, CIFAR10_MODELS

RESULTS = Path(__file__).parent / "results"


class Annotated(NamedTuple):
    """A model's predictions and people's labels for the same items."""

    probabilities: NDArray[np.float64]  # (n_items, n_classes)
    counts: NDArray[np.int64]  # (n_items, n_classes)


class Known(NamedTuple):
    """All that is known about items: predictions of one or more models, features, people's labels.

    Where the same few people judged everything (`judges`), labels are not quite independent of each
    other given the item.
    """

    members: NDArray[np.float64]  # (n_items, n_members, n_classes)
    features: NDArray[np.float64] | None  # (n_items, n_features)
    counts: NDArray[np.int64]  # (n_items, n_classes)

    @property
    def mean(self) -> NDArray[np.float64]:
        """The prediction of each item."""
        return np.asarray(self.members.mean(axis=1))

    def __getitem__(self, items: Any) -> "Known":  # type: ignore[override]
        features = None if self.features is None else self.features[items]
        return Known(self.members[items], features, self.counts[items])


@cache
def cifar10h(model: str = "resnet18") -> Annotated:
    """CIFAR-10 test images: a network's softmax and about 50 labels each."""
    return Annotated(load_cifar10_softmax(model).probabilities, load_cifar10h().counts)


@cache
def chaosnli(model: str = "roberta-base_0") -> Annotated:
    """Sentence pairs of ChaosNLI-S: a language model's softmax and 100 labels each."""
    pairs = load_chaosnli(model)
    return Annotated(pairs.probabilities, pairs.counts)


@cache
def ferplus() -> Annotated:
    """Faces of the FER+ test split: the softmax of `ferplus_model.py` and ten votes each."""
    with np.load(RESULTS / "ferplus-softmax.npz") as file:
        probabilities = file["probabilities"].astype(np.float64)
    return Annotated(probabilities, load_ferplus("test").counts)


def cifar10h_networks(models: Iterable[str] = CIFAR10_MODELS) -> Known:
    """CIFAR-10 test images as several networks see them."""
    softmax = [load_cifar10_softmax(model).probabilities for model in models]
    return Known(_members(softmax), None, load_cifar10h().counts)


def cifar10h_features() -> Known:
    """CIFAR-10 test images: softmax and 64 principal components of one network's last layer."""
    known = load_cifar10_features()
    return Known(_members([known.probabilities]), known.features, load_cifar10h().counts)


def chaosnli_models(models: Iterable[str] = CHAOSNLI_MODELS) -> Known:
    """Sentence pairs of ChaosNLI-S as several language models see them."""
    pairs = [load_chaosnli(model) for model in models]
    return Known(_members([each.probabilities for each in pairs]), None, pairs[0].counts)


def ferplus_faces() -> Known:
    """Faces of the FER+ test split, with one network."""
    data = ferplus()
    return Known(_members([data.probabilities]), None, data.counts)


def imagenet16h(models: Sequence[str] = IMAGENET16H_MODELS) -> Known:
    """Noisy ImageNet pictures in 16 classes: networks and six or seven labels each."""
    return _known(load_imagenet16h(models))


def judges(dataset: str) -> Known:
    """Items judged by people and by four to six language models, whose votes are the members.

    The mean of the members is the share of the models' votes.
    """
    return _known(load_judges(dataset))


@cache
def cifar10_trained() -> dict[str, NDArray[np.float64]]:
    """Return what `cifar_networks.py` stored of each of its methods for the CIFAR-10 test images.

    Probabilities of members (n_items, n_members, n_classes), or concentrations of Dirichlet
    distributions (n_items, n_classes).
    """
    with np.load(RESULTS / "cifar-networks.npz") as file:
        stored = {name: file[name].astype(np.float64) for name in file}
    seeds = [stored.pop(name) for name in sorted(stored) if name.startswith("ensemble")]
    methods = {"eight seeds": np.concatenate(seeds, axis=1), **stored}
    return {
        name: each if each.ndim == 2 else each / each.sum(axis=2, keepdims=True)
        for name, each in methods.items()
    }


def lewidi(dataset: str) -> Known:
    """Test items of LeWiDi 2025: a language model's soft predictions and two to 19 labels."""
    return _known(load_lewidi(dataset))


def shares(known: Known) -> Known:
    """Forget which member said what."""
    return Known(known.mean[:, None], known.features, known.counts)


LOADERS: dict[str, Callable[[], Known]] = {
    "CIFAR-10H resnet18": partial(cifar10h_networks, ("resnet18",)),
    "CIFAR-10H features": cifar10h_features,
    "CIFAR-10H 14 nets": cifar10h_networks,
    "ChaosNLI-S roberta_0": partial(chaosnli_models, ("roberta-base_0",)),
    "ChaosNLI-S 5 models": chaosnli_models,
    "ImageNet-16H vgg19": partial(imagenet16h, ("vgg19",)),
    "ImageNet-16H 3 nets": imagenet16h,
    "FER+ own network": ferplus_faces,
    "SummEval 6 models": partial(judges, "summeval"),
    "framing 6 models": partial(judges, "framing"),
    "CEBaB 6 models": partial(judges, "cebab_aspects"),
    "lesion 4 models": partial(judges, "lesion"),
    "MT-bench 6 models": partial(judges, "mtbench"),
    "LeWiDi MP": partial(lewidi, "MP"),
    "LeWiDi CSC": partial(lewidi, "CSC"),
    **{f"CIFAR-10H {name}": partial(cifar10h_networks, (name,)) for name in CIFAR10_MODELS},
    **{f"ChaosNLI-S {name}": partial(chaosnli_models, (name,)) for name in CHAOSNLI_MODELS},
    **{f"ImageNet-16H {name}": partial(imagenet16h, (name,)) for name in IMAGENET16H_MODELS},
}


@cache
def load(name: str) -> Known:
    """Return a data set by its name here, read once."""
    return LOADERS[name]()


def _members(predictions: Sequence[NDArray[Any]] | NDArray[Any]) -> NDArray[np.float64]:
    """Return predictions of the same items side by side, each a distribution to the last digit."""
    members = np.stack(predictions, axis=1).astype(np.float64)
    return np.asarray(members / members.sum(axis=2, keepdims=True))


def _known(data: JudgedItems) -> Known:
    """Return what is known about items that people judged and models predicted."""
    assert data.probabilities is not None
    return Known(_members(data.probabilities.transpose(1, 0, 2)), None, data.counts)
