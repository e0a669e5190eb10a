"""Tell images of other kinds from those of the calibration: the paper's open question c.

    HOCAL_DATA=... python experiments/unfamiliar.py [--train] [--epochs 12] [--seconds 240] [--tiny]
    [--resamplings 10] [--jobs 1]

With `--train`, five residual networks that differ by their seed and one with an evidential head
learn CIFAR-10, and results/unfamiliar-networks.npz keeps what they say about CIFAR-10 test images,
about such images with Gaussian noise on them, about handwritten digits, about faces and about noise
alone: probabilities, concentrations, and 64 principal components of the first network's last layer.
The rest is done with that file: 2,000 test images with the labels of CIFAR-10H calibrate, 1,000
others are the familiar ones, and each score is asked to tell them from the images of each other
kind. The area under the ROC curve is 1 if it always does and .5 if it guesses.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from protocol import RESULTS, in_parallel, options, store, summarise
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

import hocal
from hocal.datasets import load_cifar10h
from hocal.decisions import familiarity

NETWORKS = RESULTS / "unfamiliar-networks.npz"
N_MEMBERS = 5
N_COMPONENTS = 64
N_LEARNING = 40_000  # training images that the networks learn from
N_TRAINING = 5_000  # training images whose principal components these are
N_KNOWN = 3_000  # test images without change: two thirds calibrate, the others are familiar
N_OTHER = 800  # images of each other kind: the file stays below two megabytes
NOISE = (0.1, 0.2, 0.4)  # standard deviations, where white is 1 and black is 0
NEIGHBOURS = 10  # of the calibration, whose mean distance is the usual choice
FAMILIAR = "CIFAR-10"

Array = NDArray[np.float64]


def pictures(tiny: bool) -> tuple[dict[str, Array], NDArray[np.intp]]:
    """Return images (n, 3, 32, 32) between 0 and 1 of each kind, and which test images are known.

    Test images with noise are others than those without.
    """
    from hocal.datasets import load_cifar10_images

    n_known, n_other = (60, 20) if tiny else (N_KNOWN, N_OTHER)
    generator = np.random.default_rng(0)
    test = load_cifar10_images("test")
    rows = generator.permutation(len(test))[: n_known + n_other * len(NOISE)]
    clean = np.stack([test[i] for i in rows]).transpose(0, 3, 1, 2) / 255.0
    kinds = {FAMILIAR: clean[:n_known]}
    for place, deviation in enumerate(NOISE):
        start = n_known + place * n_other
        own = clean[start : start + n_other]
        noisy = own + deviation * generator.normal(size=own.shape)
        kinds[f"CIFAR-10, noise {deviation}"] = np.clip(noisy, 0, 1)
    kinds["digits"] = _digits(n_other, generator)
    kinds["faces"] = _faces(n_other, generator)
    kinds["noise alone"] = generator.uniform(size=(n_other, 3, 32, 32))
    return kinds, rows[:n_known]


def _digits(n_images: int, generator: np.random.Generator) -> Array:
    """Return handwritten digits of 8 by 8 pixels, each pixel as a square of four."""
    from sklearn.datasets import load_digits

    digits = load_digits().images / 16.0
    chosen = digits[generator.permutation(len(digits))[:n_images]]
    large = chosen.repeat(4, axis=1).repeat(4, axis=2)
    return np.repeat(large[:, None], 3, axis=1)


def _faces(n_images: int, generator: np.random.Generator) -> Array:
    """Return faces of 48 by 48 pixels, made 32 by 32 by averaging."""
    faces = hocal.datasets.load_ferplus("test", images=True).images
    assert faces is not None
    chosen = faces[generator.permutation(len(faces))[:n_images]] / 255.0
    # a new pixel covers three halves of an old one each way: repeat twice, then average threes
    fine = chosen.repeat(2, axis=1).repeat(2, axis=2)
    small = fine.reshape(len(fine), 32, 3, 32, 3).mean(axis=(2, 4))
    return np.repeat(small[:, None], 3, axis=1)


def train_all(chosen: argparse.Namespace, output: Path) -> None:
    """Train the networks and store what they say about every image."""
    import cifar_networks as networks
    import torch

    start = time.perf_counter()
    torch.backends.cudnn.benchmark = True
    epochs, limit = chosen.epochs, N_LEARNING
    if chosen.tiny:
        networks.WIDTH, networks.BATCH, limit, epochs = 4, 16, 200, 1
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    images, labels = (part.to(device) for part in networks.load("train", limit))
    batches = networks.Batches(images, labels, networks.BATCH, shuffle=True)
    kinds, rows = pictures(chosen.tiny)
    shown = _normal(np.concatenate(list(kinds.values())))
    kind = np.repeat(np.arange(len(kinds)), [len(each) for each in kinds.values()])
    kept: dict[str, Any] = {"kind": kind, "kinds": np.array(list(kinds)), "rows": rows}
    majority = load_cifar10h().counts[rows].argmax(axis=1)
    members: list[NDArray[Any]] = []
    # the evidential network first: the ensemble can do with fewer members if time is short
    for seed in range(N_MEMBERS + 1):
        if time.perf_counter() - start > chosen.seconds:
            break
        torch.manual_seed(seed)
        model, head = networks.plain() if seed else networks.evidential()
        networks.fit(model, head, batches, epochs, seed)
        said = networks.predictions(model, head, shown)
        if seed:
            members.append(said[:, 0])
        else:
            kept["evidential"] = said
        if seed == 1:
            kept["features"] = _components(model.backbone, images, shown)
        top = said.reshape(len(said), -1)[: len(rows)].argmax(axis=1)
        right = f"{(top == majority).mean():.4f}"
        print(f"network {seed}: accuracy {right}, {time.perf_counter() - start:.0f} s", flush=True)
    np.savez_compressed(output, members=np.stack(members, axis=1), **kept)


def _normal(images: Array) -> Any:
    """Return images as the networks take them."""
    import torch
    from cifar_networks import DEVIATION, MEAN

    mean, deviation = (torch.tensor(each).view(1, 3, 1, 1) for each in (MEAN, DEVIATION))
    return (torch.from_numpy(images).float() - mean) / deviation


def _components(backbone: Any, images: Any, shown: Any) -> NDArray[np.float16]:
    """Return principal components of the last layer, those of training images."""
    from hocal.torch import predict_outputs

    layer = predict_outputs(backbone, images[:N_TRAINING]).float().numpy()
    components = PCA(min(N_COMPONENTS, layer.shape[1]), svd_solver="full").fit(layer)
    seen = components.transform(predict_outputs(backbone, shown).float().numpy())
    return np.asarray(seen, dtype=np.float16)


class Study:
    """What is stored of the networks, with the labels of the known images."""

    def __init__(self, path: Path = NETWORKS) -> None:
        with np.load(path) as file:
            stored = {name: file[name] for name in file}
        members = stored["members"].astype(np.float64)
        self.members = members / members.sum(axis=2, keepdims=True)
        self.features = stored["features"].astype(np.float64)
        self.concentrations = stored["evidential"].astype(np.float64)
        self.kind = stored["kinds"][stored["kind"]]
        self.counts = load_cifar10h().counts[stored["rows"]]

    def scores(self, fit: NDArray[np.intp]) -> dict[str, Array]:
        """Return scores of all images, high for the unfamiliar; some images calibrate."""
        features = self.features
        spread = hocal.decompose(hocal.Mixtures.from_ensemble(self.members))
        with_features = hocal.SnapshotCalibrator().fit(
            self.members[fit], self.counts[fit], features=features[fit]
        )
        without = hocal.SnapshotCalibrator().fit(self.members[fit], self.counts[fit])
        parts = with_features.decompose(self.members, features=features)
        known = familiarity(with_features, self.members, features=features)
        nearest = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(features[fit])
        n_classes = self.concentrations.shape[1]
        return {
            "calibrated epistemic, features": parts.epistemic,
            "calibrated predictive, features": parts.predictive,
            "calibrated epistemic": without.decompose(self.members).epistemic,
            "familiarity": -known.p_values,
            "confidence": -self.members.mean(axis=1).max(axis=1),
            "entropy": spread.predictive,
            "mutual information": spread.epistemic,
            "evidential": n_classes / self.concentrations.sum(axis=1),
            "distance": nearest.kneighbors(features)[0].mean(axis=1),
        }


def resample(path: Path, seed: int) -> dict[str, Any]:
    """Calibrate once; return how well each score tells each kind, and the mean parts of each."""
    study = Study(path)
    n_known = len(study.counts)
    order = np.random.default_rng(seed).permutation(n_known)
    fit, familiar = order[: 2 * n_known // 3], order[2 * n_known // 3 :]
    scores = study.scores(fit)
    others = [str(kind) for kind in dict.fromkeys(study.kind) if kind != FAMILIAR]
    places = {kind: np.flatnonzero(study.kind == kind) for kind in others}
    areas = {
        name: {kind: _area(score[familiar], score[rows]) for kind, rows in places.items()}
        for name, score in scores.items()
    }
    chosen = {FAMILIAR: familiar, **places}
    epistemic = scores["calibrated epistemic, features"]
    aleatoric = scores["calibrated predictive, features"] - epistemic
    parts = {
        kind: {
            "aleatoric": float(aleatoric[rows].mean()),
            "epistemic": float(epistemic[rows].mean()),
            "mutual information": float(scores["mutual information"][rows].mean()),
            "mean confidence": float(-scores["confidence"][rows].mean()),
            "called unlike": float((-scores["familiarity"][rows] <= 0.05).mean()),
        }
        for kind, rows in chosen.items()
    }
    return {"areas": areas, "parts": parts}


def _area(familiar: Array, other: Array) -> float:
    """Return the chance that an image of the other kind has the higher score."""
    truth = np.repeat([0, 1], [len(familiar), len(other)])
    return float(roc_auc_score(truth, np.concatenate([familiar, other])))


def main() -> None:
    """Train if asked to, then compute, store and print."""
    parser = options(__doc__, resamplings=10)
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=240, help="begin no network after this")
    parser.add_argument("--tiny", action="store_true", help="one epoch, no result")
    chosen = parser.parse_args()
    path = Path("unfamiliar-tiny.npz") if chosen.tiny else NETWORKS
    if chosen.train:
        train_all(chosen, path)
    tasks = [(path, seed) for seed in range(chosen.resamplings)]
    summary = summarise(in_parallel(resample, tasks, chosen.jobs))
    if not chosen.tiny:
        store("unfamiliar", {"resamplings": chosen.resamplings, **summary})
    for part in summary.values():
        for name, found in part.items():
            print(name, {what: value["mean"] for what, value in found.items()})


if __name__ == "__main__":
    main()
