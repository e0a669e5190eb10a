"""Train the FER+ base model and write its softmax on the test split.

    HOCAL_DATA=... python experiments/ferplus_model.py OUTPUT.npz

A plain residual network is trained on the vote distribution (cross-entropy against all ten vote
columns) with flips, small rotations and shifts. The seed is fixed, but GPU kernels are not
bit-reproducible: expect the accuracy to move by a few tenths.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from hocal.datasets import load_ferplus

EPOCHS = 60
BATCH = 256
PEAK_RATE = 2e-3
WEIGHT_DECAY = 5e-2
WIDTH = 64


def load(split: str) -> tuple[Tensor, Tensor]:
    """Images in [-1, 1] as (n, 1, 48, 48) and vote counts as (n, 10)."""
    faces = load_ferplus(split, images=True)
    return torch.from_numpy(faces.images)[:, None].float() / 127.5 - 1, torch.from_numpy(
        faces.counts
    ).float()


class Block(nn.Module):
    """Two convolutions with a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Apply the block."""
        return functional.relu(self.body(x) + self.shortcut(x))


def network() -> nn.Module:
    """Eight blocks from 48x48 to 6x6, global pooling, dropout, ten logits."""
    widths = [WIDTH, WIDTH, WIDTH, 2 * WIDTH, 2 * WIDTH, 4 * WIDTH, 4 * WIDTH, 4 * WIDTH, 4 * WIDTH]
    strides = [1, 1, 2, 1, 2, 1, 2, 1]
    blocks = [Block(a, b, s) for a, b, s in zip(widths[:-1], widths[1:], strides, strict=True)]
    stem = [nn.Conv2d(1, WIDTH, 3, 1, 1, bias=False), nn.BatchNorm2d(WIDTH), nn.ReLU()]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.3), nn.Linear(4 * WIDTH, 10)]
    return nn.Sequential(*stem, *blocks, *head)


def augment(images: Tensor) -> Tensor:
    """Flip, rotate by up to 12 degrees, shift by up to a tenth and scale by up to a tenth."""
    n = len(images)
    uniform = torch.rand(4, n, device=images.device) * 2 - 1
    angle = uniform[0] * 0.21
    scale = 1 + uniform[1] * 0.1
    flip = torch.where(torch.rand(n, device=images.device) < 0.5, -1.0, 1.0)
    cos = torch.cos(angle) * scale
    sin = torch.sin(angle) * scale
    rows = [
        torch.stack([cos * flip, -sin, uniform[2] * 0.2], -1),
        torch.stack([sin * flip, cos, uniform[3] * 0.2], -1),
    ]
    grid = functional.affine_grid(torch.stack(rows, 1), list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False)


def main(output: Path) -> None:
    """Train, report the accuracy, write the softmax of the test split."""
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    images, votes = (part.to(device) for part in load("train"))
    targets = votes / votes.sum(1, keepdim=True)
    model = network().to(device)
    steps = EPOCHS * (len(images) // BATCH)
    optimiser = torch.optim.AdamW(model.parameters(), weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, PEAK_RATE, total_steps=steps, pct_start=0.1
    )
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(images), device=device)[
            : len(images) // BATCH * BATCH
        ].split(BATCH):
            with torch.autocast(device.type, dtype=torch.bfloat16):
                logits = model(augment(images[rows]))
            loss = functional.cross_entropy(logits.float(), targets[rows])
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            schedule.step()
    softmax = {split: predict(model, split, device) for split in ("valid", "test")}
    for split, probabilities in softmax.items():
        _, counts = load(split)
        print(
            split, "accuracy", float((probabilities.argmax(1) == counts.argmax(1).numpy()).mean())
        )
    np.savez_compressed(output, probabilities=softmax["test"])


@torch.inference_mode()
def predict(model: nn.Module, split: str, device: torch.device) -> np.ndarray:
    """Softmax of a split, averaged over the image and its mirror image."""
    model.eval()
    images = load(split)[0].to(device)
    logits = [model(batch) + model(batch.flip(-1)) for batch in images.split(1024)]
    return (torch.cat(logits).double() / 2).softmax(1).float().cpu().numpy()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
