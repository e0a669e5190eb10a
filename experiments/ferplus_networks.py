"""Train the FER+ networks that learn from snapshots and write what they predict for the test split.

    HOCAL_DATA=... python experiments/ferplus_networks.py OUTPUT.npz [--epochs 60] [--warm-epochs
    15] [--tiny]

The base network (k = 1) is that of `ferplus_model.py`. For k = 2, 3, 4 and for MixtureHead its
weights are the start, with a new last layer and a shorter schedule; all see all ten votes of the
training items, a SnapshotHead as its exact k-snapshots. OUTPUT holds the mean and the aleatoric
uncertainty of each predicted mixture, in single precision. The seed is fixed, but GPU kernels are
not bit-reproducible.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import ferplus_model
import numpy as np
import torch
from torch import Tensor, nn

import hocal
from hocal.torch import MixtureHead, SnapshotHead, predict_outputs, train

N_CLASSES = 10
N_COMPONENTS = 16
WARM_RATE = 7e-4
SNAPSHOTS = (1, 2, 3, 4)
PANEL = 10


class Network(nn.Module):
    """Backbone and head; distorts images in training, else averages an image and its mirror."""

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.backbone = ferplus_model.network()[:-1]
        self.head = head

    def forward(self, images: Tensor) -> Tensor:
        """Return the outputs of the head."""
        if not self.training:
            return (self._outputs(images) + self._outputs(images.flip(-1))) / 2
        with torch.autocast(
            images.device.type, enabled=False
        ):  # bfloat16 would blur where pixels go
            distorted = ferplus_model.augment(images)
        return self._outputs(distorted)

    def _outputs(self, images: Tensor) -> Tensor:
        return self.head(self.backbone(images))


class Batches:
    """Shuffled whole batches of items that stay on the device."""

    def __init__(self, images: Tensor, votes: Tensor, size: int, *, shuffle: bool) -> None:
        self.images = images
        self.votes = votes
        self.size = size
        self.shuffle = shuffle

    def __len__(self) -> int:
        return len(self.images) // self.size if self.shuffle else -(-len(self.images) // self.size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        n_items = len(self.images)
        device = self.images.device
        order = (
            torch.randperm(n_items, device=device)
            if self.shuffle
            else torch.arange(n_items, device=device)
        )
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


def fit(
    network: Network, loaders: tuple[Batches, Batches], epochs: int, rate: float, seed: int
) -> None:
    """Train with a tenth of the run as warm-up; keep the weights of best validation likelihood."""
    if torch.cuda.is_available():
        network.to(
            memory_format=torch.channels_last
        )  # faster there; on CPUs torch 2.13 crashed in the backward pass
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


def train_all(options: argparse.Namespace) -> None:
    """Train every network; write its mean and aleatoric uncertainty of each test item."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    limit, size = (64, 16) if options.tiny else (None, ferplus_model.BATCH)
    training, held_out = (load(split, device, limit=limit) for split in ("train", "valid"))
    loaders = (Batches(*training, size, shuffle=True), Batches(*held_out, 1024, shuffle=False))
    test_images = load("test", device, limit=200 if options.tiny else None)[0]
    results = {}
    base = None
    torch.manual_seed(0)
    for name, head in heads().items():
        start = time.perf_counter()
        network = Network(head)
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
        np.savez_compressed(options.output, **results)  # a run that is cut short keeps these
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)


def summary(name: str, mixtures: hocal.Mixtures, panel_size: int | None) -> dict[str, np.ndarray]:
    """Return what the table needs of mixtures: their means and aleatoric uncertainties."""
    aleatoric = hocal.decompose(mixtures, panel_size=panel_size).aleatoric
    return {
        f"mean {name}": mixtures.mean().astype(np.float32),
        f"aleatoric {name}": aleatoric.astype(np.float32),
    }


def main() -> None:
    """Read the options and train."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", type=Path)
    parser.add_argument("--epochs", type=int, default=ferplus_model.EPOCHS)
    parser.add_argument("--warm-epochs", type=int, default=15)
    parser.add_argument(
        "--tiny", action="store_true", help="one epoch of a narrow network on 64 images"
    )
    options = parser.parse_args()
    if options.tiny:
        ferplus_model.WIDTH = 8
        options.epochs = 1
        options.warm_epochs = 1
    train_all(options)


if __name__ == "__main__":
    main()
