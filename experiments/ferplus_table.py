"""Reproduce the paper's FER+ table: learning from snapshots beside post-hoc calibration, and hocal's own methods.

    python experiments/ferplus_table.py OUTPUT.json [--epochs 60] [--warm-epochs 15] [--train-only] [--tiny]
    python experiments/ferplus_table.py OUTPUT.json --evaluate    # again from OUTPUT.npz, without training

Reads FER+ from the folder named by HOCAL_DATA. The base network (k = 1) is that of `ferplus_model.py`. For k = 2, 3, 4
and for MixtureHead its weights are the start, with a new last layer and a shorter schedule; all see all ten votes of
the training items, a SnapshotHead as its exact k-snapshots. Post-hoc calibration uses half of the test split and k of
its votes; the other half tests, against the entropy of all its votes.
Votes drawn without replacement, the paper's way, are a sample of what the crowd thinks, and so are the ten: methods
that estimate the crowd's own label distribution then report what a panel of ten shows of it (`panel_size=10`).
Drawn with replacement, they are a sample of the ten votes, which are then the label distribution to estimate.
The seed is fixed, but GPU kernels are not bit-reproducible. Needs numpy, scipy, scikit-learn, torch, safetensors.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path

import ferplus_model
import numpy as np
import torch
from torch import Tensor, nn

import hocal
from hocal.datasets import load_ferplus
from hocal.decomposition import Decomposition
from hocal.entropy import Shannon
from hocal.snapshots import draw_snapshots
from hocal.torch import MixtureHead, SnapshotHead, predict_outputs, train

N_CLASSES, N_COMPONENTS, WARM_RATE, N_RESAMPLES = 10, 16, 7e-4, 10
SNAPSHOTS, POST_HOC, PANEL = (1, 2, 3, 4), (1, 2, 3, 4, 10), 10
PAPER = {
    "learning": {"1": 0.615, "2": 0.418, "3": 0.369, "4": 0.355},
    "post-hoc": {"1": 0.615, "2": 0.349, "3": 0.217, "4": 0.139, "10": 0.041},
    "accuracy": {"1": 0.802, "2": 0.818, "3": 0.823, "4": 0.819},
}


class Network(nn.Module):
    """Backbone and head; distorts images in training, averages an image and its mirror image otherwise."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.backbone, self.head = ferplus_model.network()[:-1], head

    def forward(self, images: Tensor) -> Tensor:
        """Return the outputs of the head."""
        if not self.training:
            return (self._outputs(images) + self._outputs(images.flip(-1))) / 2
        with torch.autocast(images.device.type, enabled=False):  # bfloat16 would blur where pixels go
            distorted = ferplus_model.augment(images)
        return self._outputs(distorted)

    def _outputs(self, images: Tensor) -> Tensor:
        return self.head(self.backbone(images))


class Batches:
    """Shuffled whole batches of items that stay on the device."""

    def __init__(self, images: Tensor, votes: Tensor, size: int, *, shuffle: bool) -> None:
        self.images, self.votes, self.size, self.shuffle = images, votes, size, shuffle

    def __len__(self) -> int:
        return len(self.images) // self.size if self.shuffle else -(-len(self.images) // self.size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        n_items, device = len(self.images), self.images.device
        order = torch.randperm(n_items, device=device) if self.shuffle else torch.arange(n_items, device=device)
        for rows in order[: len(self) * self.size].split(self.size):
            yield self.images[rows], self.votes[rows]


def load(split: str, device: torch.device, *, limit: int | None) -> tuple[Tensor, Tensor]:
    """Return images and whole votes on the device."""
    images, votes = ferplus_model.load(split)
    return images[:limit].to(device), votes[:limit].long().to(device)


def heads() -> dict[str, nn.Module]:
    """Return the heads to compare, by name."""
    width = 4 * ferplus_model.WIDTH
    snapshot = {f"snapshots {k}": SnapshotHead(k, N_CLASSES, width) for k in SNAPSHOTS}
    return {**snapshot, "mixture": MixtureHead(N_COMPONENTS, N_CLASSES, width)}


def fit(network: Network, loaders: tuple[Batches, Batches], epochs: int, rate: float, seed: int) -> None:
    """Train with a tenth of the run as warm-up and keep the weights with the best validation likelihood."""
    if torch.cuda.is_available():
        network.to(memory_format=torch.channels_last)  # faster there; on CPUs torch 2.13 crashed in the backward pass
    train(
        network,
        loaders[0],
        loss=network.head.loss,
        epochs=epochs,
        validation=loaders[1],
        learning_rate=rate,
        weight_decay=ferplus_model.WEIGHT_DECAY,
        warmup_epochs=max(1.0, epochs / 10),
        patience=None,
        random_state=seed,
        progress=True,
    )


def train_all(options: argparse.Namespace) -> dict[str, np.ndarray]:
    """Train every network and return the mean and the aleatoric uncertainty of each test item under it."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    limit, size = (64, 16) if options.tiny else (None, ferplus_model.BATCH)
    training, held_out = (load(split, device, limit=limit) for split in ("train", "valid"))
    loaders = (Batches(*training, size, shuffle=True), Batches(*held_out, 1024, shuffle=False))
    test_images = load("test", device, limit=200 if options.tiny else None)[0]
    results, base = {}, None
    torch.manual_seed(0)
    for name, head in heads().items():
        start, network = time.perf_counter(), Network(head)
        if base is None:
            fit(network, loaders, options.epochs, ferplus_model.PEAK_RATE, 0)
            base = network.backbone.state_dict()
        else:
            network.backbone.load_state_dict(base)
            fit(network, loaders, options.warm_epochs, WARM_RATE, 0)
        mixtures = head.to_mixtures(predict_outputs(network, test_images))
        results |= summary(name, mixtures, None)
        if isinstance(head, MixtureHead):
            results |= summary(f"{name}, panel of {PANEL}", mixtures, PANEL)
        np.savez_compressed(options.output.with_suffix(".npz"), **results)  # a run that is cut short keeps these
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
    return results


def summary(name: str, mixtures: hocal.Mixtures, panel_size: int | None) -> dict[str, np.ndarray]:
    """Return what the table needs of predicted mixtures: their means and aleatoric uncertainties."""
    aleatoric = hocal.decompose(mixtures, panel_size=panel_size).aleatoric
    return {f"mean {name}": mixtures.mean().astype(np.float32), f"aleatoric {name}": aleatoric.astype(np.float32)}


def halves(n_items: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.random.Generator]]:
    """Yield random calibration and test halves, with randomness for what else is drawn."""
    for seed in range(N_RESAMPLES):
        random = np.random.default_rng(seed)
        order = random.permutation(n_items)
        yield order[: n_items // 2], order[n_items // 2 :], random


def learned_row(mean: np.ndarray, aleatoric: np.ndarray, votes: np.ndarray, base: np.ndarray) -> dict[str, float]:
    """Return the aleatoric error of a network, in its own cells and in those of the base network, and its accuracy."""
    partition, row = hocal.TopLabelPartition(10).fit(mean), {}
    for name, prediction in (("own cells", mean), ("base cells", base)):
        cells, errors = partition.assign(prediction), []
        for _, test, _ in halves(len(votes)):
            parts = Decomposition(
                aleatoric[test], aleatoric[test], 0 * aleatoric[test], Shannon(), "mutual-information"
            )
            errors.append(hocal.aleatoric_error(parts, votes[test], cells=cells[test]))
        row[name] = round(float(np.mean(errors)), 4)
    return {**row, "accuracy": round(float((mean.argmax(1) == votes.argmax(1)).mean()), 4)}


def post_hoc_error(base: np.ndarray, votes: np.ndarray, k: int, method: str, replace: bool) -> float:
    """Return the aleatoric error after calibrating the base network with k votes an item."""
    errors, panel_size = [], PANEL if method == "deconvolved" and not replace else None
    for calibration, test, random in halves(len(votes)):
        counts = draw_snapshots(votes[calibration], k, replace=replace, random_state=random)
        calibrator = hocal.SnapshotCalibrator(hocal.TopLabelPartition(10), method=method, panel_size=panel_size)
        calibrator.fit(base[calibration], counts)
        cells = calibrator.partition_.assign(base[test])
        errors.append(hocal.aleatoric_error(calibrator.decompose(base[test]), votes[test], cells=cells))
    return round(float(np.mean(errors)), 4)


def evaluate(results: dict[str, np.ndarray]) -> dict:
    """Return the table from the stored means and aleatoric uncertainties."""
    votes = load_ferplus("test").counts
    base = results["mean snapshots 1"].astype(np.float64)
    votes, enough = votes[: len(base)], votes[: len(base)].sum(1) >= PANEL  # one row has nine votes
    names = [name.removeprefix("mean ") for name in results if name.startswith("mean ")]
    learned = {
        name: learned_row(results[f"mean {name}"].astype(np.float64), results[f"aleatoric {name}"], votes, base)
        for name in names
    }
    post_hoc = {
        f"{method}, {'with' if replace else 'without'} replacement": {
            str(k): post_hoc_error(base[enough], votes[enough], k, method, replace) for k in POST_HOC
        }
        for replace in (False, True)
        for method in ("empirical", "deconvolved")
    }
    return {"learning": learned, "post-hoc": post_hoc, "paper": PAPER}


def show(table: dict) -> None:
    """Print ours beside the paper's."""
    print("\nlearning from snapshots   error (own cells)   (base cells)   accuracy      paper")
    for name, row in table["learning"].items():
        k = name.removeprefix("snapshots ")
        paper = f"{PAPER['learning'][k]:.3f} / {PAPER['accuracy'][k]:.3f}" if k in PAPER["learning"] else "-"
        numbers = (row["own cells"], row["base cells"], row["accuracy"])
        print(f"{name:22}" + "".join(f"{number:15.3f}" for number in numbers) + f"{paper:>18}")
    print(f"\n{'post-hoc':34}" + "".join(f"{'k=' + str(k):>9}" for k in POST_HOC))
    for method, row in {**table["post-hoc"], "paper": PAPER["post-hoc"]}.items():
        print(f"{method:34}" + "".join(f"{row[str(k)]:9.3f}" for k in POST_HOC))


def main() -> None:
    """Train unless told not to, evaluate, store and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--epochs", type=int, default=ferplus_model.EPOCHS)
    parser.add_argument("--warm-epochs", type=int, default=15)
    parser.add_argument("--tiny", action="store_true", help="one epoch of a narrow network on 64 images")
    parser.add_argument("--train-only", action="store_true", help="stop when the .npz is written")
    parser.add_argument("--evaluate", action="store_true", help="use the .npz of an earlier run")
    options = parser.parse_args()
    if options.tiny:
        ferplus_model.WIDTH, options.epochs, options.warm_epochs = 8, 1, 1
    start = time.perf_counter()
    results = dict(np.load(options.output.with_suffix(".npz"))) if options.evaluate else train_all(options)
    if options.train_only:
        return
    table = {"what": __doc__.splitlines()[0], **evaluate(results)}
    table["seconds"] = round(time.perf_counter() - start, 1)
    options.output.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    show(table)


if __name__ == "__main__":
    main()
