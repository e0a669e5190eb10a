"""Train the CIFAR-10 networks of the comparison and write what they predict for the test images.

    HOCAL_DATA=... python experiments/cifar_networks.py OUTPUT.npz [--epochs 24] [--seconds 540]
    [--tiny]

Eight residual networks that differ by their seed, and the same backbone with dropout, an epinet and
an evidential head, each trained on the class labels of the training images. OUTPUT holds, for each,
probabilities of the members (n_items, n_members, n_classes) as whole multiples of 1 / UNITS, or the
concentrations of the Dirichlet distributions (n_items, n_classes), in half precision. A run that is
cut short keeps the networks it finished; the next one goes on. The seeds are fixed, but GPU kernels
are not bit-reproducible.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from ferplus_model import Block
from ferplus_networks import Batches
from torch import Tensor, nn
from torch.nn import functional

from hocal.datasets import load_cifar10_images
from hocal.torch import Epinet, EvidentialHead, MCDropout, SoftmaxHead, predict_outputs, train

# ten draws tell dropout and epinet from the ensemble and stay small
N_MEMBERS = 8
N_SAMPLES = 10
N_CLASSES = 10
BATCH = 512
PEAK_RATE = 2e-3
WEIGHT_DECAY = 5e-2
WIDTH = 64
DROPOUT = 0.2
UNITS = 1 << 14  # coarse enough to compress, fine enough to leave an entropy right to .002
MEAN = (0.4914, 0.4822, 0.4465)
DEVIATION = (0.2470, 0.2435, 0.2616)


def load(split: str, limit: int | None) -> tuple[Tensor, Tensor]:
    """Return normalised images (n, 3, 32, 32) and one-hot labels (n, 10)."""
    images = load_cifar10_images(split)
    labels = torch.from_numpy(images.labels[:limit])
    pixels = (
        torch.from_numpy(np.stack([images[i] for i in range(len(labels))]))
        .permute(0, 3, 1, 2)
        .float()
        / 255
    )
    shape = (1, 3, 1, 1)
    normal = (pixels - torch.tensor(MEAN).view(shape)) / torch.tensor(DEVIATION).view(shape)
    return normal, torch.eye(N_CLASSES, dtype=torch.long)[labels]


def augment(images: Tensor) -> Tensor:
    """Shift by up to four pixels over a mirrored border and flip half of the images."""
    n = len(images)
    device = images.device
    padded = functional.pad(images, (4, 4, 4, 4), "reflect")
    steps = torch.arange(32, device=device)
    rows, columns = (steps + torch.randint(0, 9, (n, 1), device=device) for _ in range(2))
    columns = torch.where(torch.rand(n, 1, device=device) < 0.5, columns, columns.flip(1))
    items = torch.arange(n, device=device).view(n, 1, 1, 1)
    channels = torch.arange(3, device=device).view(1, 3, 1, 1)
    return padded[items, channels, rows.view(n, 1, 32, 1), columns.view(n, 1, 1, 32)]


class Network(nn.Module):
    """Seven residual blocks from 32x32 to 4x4, pooling and a head; distorts images in training."""

    def __init__(self, head: nn.Module, dropout: float = 0.0) -> None:
        super().__init__()
        widths = [WIDTH * factor for factor in (1, 1, 2, 2, 4, 4, 8, 8)]
        strides = [1, 2, 1, 2, 1, 2, 1]
        layers: list[nn.Module] = [
            nn.Conv2d(3, WIDTH, 3, 1, 1, bias=False),
            nn.BatchNorm2d(WIDTH),
            nn.ReLU(),
        ]
        for inputs, outputs, stride in zip(widths[:-1], widths[1:], strides, strict=True):
            layers += [Block(inputs, outputs, stride), nn.Dropout(dropout)]
        self.backbone = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = head

    def forward(self, images: Tensor) -> Tensor:
        """Return the outputs of the head."""
        return self.head(self.backbone(augment(images) if self.training else images))


Build = Callable[[], tuple[nn.Module, nn.Module]]


def plain() -> tuple[nn.Module, nn.Module]:
    """Return a classifier and its head."""
    head = SoftmaxHead(N_CLASSES, 8 * WIDTH)
    return Network(head), head


def dropout() -> tuple[nn.Module, nn.Module]:
    """Return a classifier whose dropout stays on."""
    model = MCDropout(Network(SoftmaxHead(N_CLASSES, 8 * WIDTH), DROPOUT), n_samples=N_SAMPLES)
    return model, model


def epinet() -> tuple[nn.Module, nn.Module]:
    """Return a backbone with an epinet."""
    head = Epinet(8 * WIDTH, N_CLASSES, n_samples=N_SAMPLES)
    return Network(head), head


def evidential() -> tuple[nn.Module, nn.Module]:
    """Return a backbone that predicts Dirichlet distributions."""
    head = EvidentialHead(N_CLASSES, 8 * WIDTH)
    return Network(head), head


def networks() -> dict[str, Build]:
    """Return what is to be trained, by name."""
    members: dict[str, Build] = {f"ensemble {seed}": plain for seed in range(N_MEMBERS)}
    return {**members, "dropout": dropout, "epinet": epinet, "evidential": evidential}


def predictions(model: nn.Module, head: nn.Module, images: Tensor) -> np.ndarray:
    """Return what is stored of a network."""
    outputs = predict_outputs(model, images)
    if isinstance(head, EvidentialHead):
        return head.concentrations(outputs).half().numpy()
    members = outputs.view(len(images), -1, N_CLASSES).double().softmax(-1).numpy()
    return np.rint(members * UNITS).astype(np.uint16)


def fit(model: nn.Module, head: nn.Module, batches: Batches, epochs: int, seed: int) -> None:
    """Train with two epochs of warm-up."""
    if torch.cuda.is_available():
        model.to(memory_format=torch.channels_last)
    train(
        model,
        batches,
        loss=head.loss,
        epochs=epochs,
        learning_rate=PEAK_RATE,
        weight_decay=WEIGHT_DECAY,
        warmup_epochs=min(2.0, epochs / 2),
        random_state=seed,
    )


def main() -> None:
    """Train what OUTPUT does not hold yet, as far as the time goes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", type=Path)
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="begin no network after this time"
    )
    parser.add_argument(
        "--tiny", action="store_true", help="one epoch of narrow networks on 64 images"
    )
    options = parser.parse_args()
    start = time.perf_counter()
    limit = None
    if options.tiny:
        global WIDTH, BATCH
        WIDTH = 4
        BATCH = 16
        limit = 64
        options.epochs = 1
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    images, labels = (part.to(device) for part in load("train", limit))
    test_images, test_labels = load("test", limit)
    results = dict(np.load(options.output)) if options.output.exists() else {}
    for seed, (name, build) in enumerate(networks().items()):
        if name in results or time.perf_counter() - start > options.seconds:
            continue
        torch.manual_seed(seed)
        model, head = build()
        fit(model, head, Batches(images, labels, BATCH, shuffle=True), options.epochs, seed)
        results[name] = predictions(model, head, test_images)
        mean = results[name].astype(np.float64).reshape(len(test_images), -1, N_CLASSES).mean(1)
        accuracy = (mean.argmax(1) == test_labels.argmax(1).numpy()).mean()
        np.savez_compressed(options.output, **results)
        print(f"{name}: accuracy {accuracy:.4f}, {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
