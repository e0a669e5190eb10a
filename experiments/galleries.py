"""Reproduce the paper's figure 3: the most epistemic and the most aleatoric images of CIFAR-10H.

    HOCAL_DATA=... python experiments/galleries.py [--resamplings 10]

resnet18, deconvolved from all labels of one half of the images; shown are images of the other half.
Images of a cell share their uncertainty, so the eight cells of highest epistemic-to-aleatoric
ratio, and the eight of highest aleatoric uncertainty, show the first of their images each. The
claim can be checked: people should agree more about images of the first kind than about those of
the second. It is checked for the paper's cells, slices of the top probability, and for cells of the
first and second choice, which are drawn. The pictures may not be passed on: the figure stays out of
the repository, the numbers of the images are stored. Ten seconds on one core.
"""

import argparse
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from protocol import accuracy, digits, draw, halves, row, store, summarise
from real_data import Annotated, cifar10h

import hocal
from hocal.cells.statistics import rank_classes
from hocal.datasets import load_cifar10_images, load_cifar10h

# cells of a kind; test items of such a cell
KINDS = ("most epistemic", "most aleatoric")
N_SHOWN = 8
FEWEST = 10
EPISTEMIC, ALEATORIC, WIDTH = "#c23b22", "#3a7d44", 1.5  # colours, and nats as wide as an image


class Cells(NamedTuple):
    """A partition, and the cell of each image where the partition does not find it itself."""

    partition: Any
    numbers: NDArray[np.intp] | None


def partitions(probabilities: NDArray[np.float64]) -> dict[str, Cells]:
    """Return both ways to sort the images into a hundred cells."""
    first, second = rank_classes(probabilities)[:, :2].T
    return {
        "slices of the top probability": Cells(hocal.TopLabelPartition(n_slices=10), None),
        "first and second choice": Cells(
            hocal.PrecomputedPartition(n_cells=100), 10 * first + second
        ),
    }


def gallery(data: Annotated, cells: Cells, seed: int) -> dict[str, dict[str, NDArray[Any]]]:
    """Return for both kinds the images of the chosen cells, the first of each, and its parts."""
    fit, test = (np.sort(half) for half in halves(len(data.counts), seed)[:2])
    numbers = [None if cells.numbers is None else cells.numbers[half] for half in (fit, test)]
    calibrator = hocal.SnapshotCalibrator(cells.partition)
    calibrator.fit(data.probabilities[fit], data.counts[fit], cells=numbers[0])
    where = calibrator.partition_.assign(data.probabilities[test], numbers[1])
    parts = hocal.decompose(calibrator.cell_mixtures_)
    large = np.bincount(where, minlength=100) >= FEWEST
    keys = (parts.epistemic / parts.aleatoric, parts.aleatoric)
    chosen = [np.argsort(np.where(large, -key, 0), kind="stable")[:N_SHOWN] for key in keys]
    return {
        kind: {
            "items": test[np.isin(where, own)],
            "first": np.array([test[np.argmax(where == cell)] for cell in own]),
            "aleatoric": parts.aleatoric[own],
            "epistemic": parts.epistemic[own],
        }
        for kind, own in zip(KINDS, chosen, strict=True)
    }


def resample(data: Annotated, seed: int) -> dict[str, Any]:
    """Return what people and the network make of images of both kinds."""
    return {
        name: {
            kind: agreement(data, found["items"])
            for kind, found in gallery(data, cells, seed).items()
        }
        for name, cells in partitions(data.probabilities).items()
    }


def agreement(data: Annotated, items: NDArray[np.intp]) -> dict[str, float]:
    """Return how many images there are, how much people disagree, how often a network is right."""
    observed = hocal.decompose(hocal.Mixtures.from_snapshots(data.counts[items])).aleatoric
    right = accuracy(data.probabilities[items], data.counts[items])
    return {"items": len(items), "entropy of the labels": observed.mean(), "accuracy": right}


def describe(found: dict[str, NDArray[Any]], data: Annotated) -> list[dict[str, Any]]:
    """Return what is stored of the images of a row."""
    classes = load_cifar10h().classes
    rows = []
    for item, aleatoric, epistemic in zip(
        found["first"], found["aleatoric"], found["epistemic"], strict=True
    ):
        votes = {classes[j]: int(data.counts[item, j]) for j in np.flatnonzero(data.counts[item])}
        about = {"item": int(item), "aleatoric": digits(aleatoric), "epistemic": digits(epistemic)}
        rows.append(
            about | {"predicted": classes[data.probabilities[item].argmax()], "labels": votes}
        )
    return rows


def picture(ax: Axes, image: NDArray[np.uint8], about: dict[str, Any]) -> None:
    """Draw an image over the bar of its uncertainty."""
    aleatoric = about["aleatoric"] / WIDTH
    epistemic = about["epistemic"] / WIDTH
    ax.imshow(image, extent=(0, 1, 0, 1))
    ax.barh(-0.1, aleatoric, 0.1, color=ALEATORIC)
    ax.barh(-0.1, epistemic, 0.1, left=aleatoric, color=EPISTEMIC)
    ax.set(xlim=(0, 1), ylim=(-0.18, 1), title=f"{about['item']}: {about['predicted']}?")
    ax.set_axis_off()


def main() -> None:
    """Store, draw and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--resamplings", type=int, default=10)
    n_resamplings = parser.parse_args().resamplings
    data = cifar10h()
    images = load_cifar10_images("test")
    summary = summarise([resample(data, seed) for seed in range(n_resamplings)])
    found = gallery(data, partitions(data.probabilities)["first and second choice"], 0)
    rows = {kind: describe(found[kind], data) for kind in KINDS}
    store(
        "galleries",
        {"resamplings": n_resamplings, "unit": "nats", "kinds": summary, "images": rows},
    )
    figure = Figure(figsize=(14, 5), layout="constrained")
    figure.suptitle(
        "most epistemic (above) and most aleatoric; "
        f"{WIDTH} nats across: aleatoric green, epistemic red"
    )
    for axes, kind in zip(figure.subplots(2, N_SHOWN), KINDS, strict=True):
        for ax, about in zip(axes, rows[kind], strict=True):
            picture(ax, images[about["item"]], about)
    draw("galleries", figure)
    for name, kinds in summary.items():
        for kind, cells in kinds.items():
            print(f"{name:32}{kind:16}" + row(cells.values(), "12.3f"))


if __name__ == "__main__":
    main()
