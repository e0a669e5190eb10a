"""Real predictions and human label counts of the same items, for the experiments."""

import csv
import gzip
import os
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hocal.datasets import load_chaosnli, load_cifar10_softmax, load_cifar10h, load_ferplus

RESULTS = Path(__file__).parent / "results"

CIFAR10_NETWORKS = (
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
IMAGENET_NETWORKS = ("googlenet", "resnet152", "vgg19")


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


def cifar10h_networks(models: Iterable[str] = CIFAR10_NETWORKS) -> Known:
    """CIFAR-10 test images as several networks see them."""
    softmax = [load_cifar10_softmax(model).probabilities for model in models]
    return Known(_members(softmax), None, load_cifar10h().counts)


def cifar10h_features() -> Known:
    """CIFAR-10 test images: softmax and 64 principal components of one network's last layer."""
    with np.load(_folder() / "cifar10h" / "cifar10-test-features.npz") as file:
        features = file["features"].astype(np.float64)
        return Known(_members([file["softmax"]]), features, load_cifar10h().counts)


def chaosnli_models(models: Iterable[str] = CHAOSNLI_MODELS) -> Known:
    """Sentence pairs of ChaosNLI-S as several language models see them."""
    pairs = [load_chaosnli(model) for model in models]
    return Known(_members([each.probabilities for each in pairs]), None, pairs[0].counts)


def ferplus_faces() -> Known:
    """Faces of the FER+ test split, with one network."""
    data = ferplus()
    return Known(_members([data.probabilities]), None, data.counts)


def imagenet16h(models: Iterable[str] = IMAGENET_NETWORKS) -> Known:
    """Noisy ImageNet pictures in 16 classes: networks and six or seven labels each."""
    with np.load(_folder() / "imagenet16h" / "imagenet16h.npz") as file:
        softmax = [file[f"softmax_{model}"] for model in models]
        counts = np.zeros((len(file["items"]), len(file["classes"])), dtype=np.int64)
        np.add.at(counts, (file["label_item"], file["label_class"]), 1)
    return Known(_members(softmax), None, counts)


def judges(dataset: str) -> Known:
    """Items judged by people and by four to six language models, whose votes are the members.

    The mean of the members is the share of the models' votes.
    """
    rows = [row for row in _read("judges/alttest.csv.gz") if row["dataset"] == dataset]
    items = sorted({row["item"] for row in rows})
    classes = sorted({row["label"] for row in rows})
    models = sorted({row["annotator"] for row in rows if row["kind"] == "llm"})
    people = _count((row for row in rows if row["kind"] == "human"), items, classes)
    votes = []
    for model in models:
        said = (row for row in rows if (row["kind"], row["annotator"]) == ("llm", model))
        votes.append(_count(said, items, classes))
    return Known(_members(votes), None, people)


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
    predictions = _read(f"lewidi/lewidi2025-{dataset}-test-roberta.csv.gz")
    classes = [name for name in predictions[0] if name != "item"]
    items = [row["item"] for row in predictions]
    soft = np.array([[float(row[name]) for name in classes] for row in predictions])
    labels = _read("lewidi/lewidi2025-labels.csv.gz")
    own = (row for row in labels if (row["dataset"], row["split"]) == (dataset, "test"))
    return Known(_members([soft]), None, _count(own, items, classes))


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
    **{f"CIFAR-10H {name}": partial(cifar10h_networks, (name,)) for name in CIFAR10_NETWORKS},
    **{f"ChaosNLI-S {name}": partial(chaosnli_models, (name,)) for name in CHAOSNLI_MODELS},
    **{f"ImageNet-16H {name}": partial(imagenet16h, (name,)) for name in IMAGENET_NETWORKS},
}


@cache
def load(name: str) -> Known:
    """Return a data set by its name here, read once."""
    return LOADERS[name]()


def _members(predictions: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
    """Return predictions of the same items side by side, each a distribution to the last digit."""
    members = np.stack(predictions, axis=1).astype(np.float64)
    return np.asarray(members / members.sum(axis=2, keepdims=True))


def _count(
    rows: Iterable[dict[str, str]], items: Sequence[str], classes: Sequence[str]
) -> NDArray[np.int64]:
    """Return how often each item got each label, (n_items, n_classes)."""
    row_of = {item: row for row, item in enumerate(items)}
    column_of = {name: column for column, name in enumerate(classes)}
    counts = np.zeros((len(items), len(classes)), dtype=np.int64)
    for row in rows:
        counts[row_of[row["item"]], column_of[row["label"]]] += 1
    return counts


@cache
def _read(path: str) -> list[dict[str, str]]:
    """Return the rows of a packed table."""
    with gzip.open(_folder() / path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _folder() -> Path:
    """Return the folder of the data sets that have no loader in `hocal.datasets`."""
    return Path(os.environ["HOCAL_DATA"])
