"""Reproduce the paper's figure 3: the most epistemic and the most aleatoric images of CIFAR-10H.

    HOCAL_DATA=... python experiments/galleries.py [--resamplings 10] [--jobs 1]

resnet18, calibrated item by item with all labels of one half of the images; shown are images of the
other half: those with the highest ratio of epistemic to aleatoric uncertainty, as in the paper, and
those with the highest aleatoric uncertainty. The claim can be checked: people should agree more
about images of the first kind than about those of the second. It is checked for a hundred images of
each kind; for mixtures of cells, whose images share their uncertainty; and for items of which three
labels are known, where the other labels say how much people disagree. The pictures may not be
passed on: the figure stays out of the repository, the numbers of the images are stored. Two minutes
on one core.
"""

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from protocol import (
    accuracy,
    digits,
    draw,
    draw_at_most,
    halves,
    in_parallel,
    options,
    row,
    store,
    summarise,
)
from real_data import Annotated, cifar10h

import hocal
from hocal.datasets import load_cifar10_images, load_cifar10h

KINDS = ("most epistemic", "most aleatoric")
N_COMPARED = 100  # images of a kind
N_SHOWN = 8
N_OWN = 3  # labels of an image, where some are known
EPISTEMIC, ALEATORIC, WIDTH = "#c23b22", "#3a7d44", 1.5  # colours, and nats as wide as an image


class Way(NamedTuple):
    """A method, and whether some of an image's own labels are known to it."""

    method: str
    own_labels: bool


class Gallery(NamedTuple):
    """Images of a kind, the most extreme first, and their uncertainty in nats."""

    items: NDArray[np.intp]
    aleatoric: NDArray[np.float64]
    epistemic: NDArray[np.float64]


WAYS = {
    "cells": Way("cells", own_labels=False),
    "items": Way("items", own_labels=False),
    f"items, {N_OWN} own labels": Way("items", own_labels=True),
}


def galleries(data: Annotated, way: Way, seed: int) -> tuple[dict[str, Gallery], Annotated]:
    """Return the images of both kinds in the test half, and the labels that nobody has seen."""
    fit, test, generator = halves(len(data.counts), seed)
    calibrator = hocal.SnapshotCalibrator(method=way.method)  # type: ignore[arg-type]
    calibrator.fit(data.probabilities[fit], data.counts[fit])
    test = np.sort(test)
    own = draw_at_most(data.counts[test], N_OWN if way.own_labels else 0, generator)
    known = {"counts": own} if way.own_labels else {}
    parts = calibrator.decompose(data.probabilities[test], **known)
    keys = (parts.epistemic / parts.aleatoric, parts.aleatoric)
    chosen = [np.argsort(-key, kind="stable")[:N_COMPARED] for key in keys]
    found = {
        kind: Gallery(test[rows], parts.aleatoric[rows], parts.epistemic[rows])
        for kind, rows in zip(KINDS, chosen, strict=True)
    }
    unseen = data.counts.copy()
    unseen[test] -= own
    return found, Annotated(data.probabilities, unseen)


def resample(data: Annotated, seed: int) -> dict[str, Any]:
    """Return what people and the network make of images of both kinds."""
    result: dict[str, Any] = {}
    for name, way in WAYS.items():
        kinds, unseen = galleries(data, way, seed)
        found: dict[str, Any] = {kind: agreement(unseen, kinds[kind].items) for kind in KINDS}
        epistemic, aleatoric = (found[kind]["entropy of the labels"] for kind in KINDS)
        result[name] = found | {"difference": aleatoric - epistemic}
    return result


def resample_stored(seed: int) -> dict[str, Any]:
    """Return the same for the data that are read here."""
    return resample(cifar10h(), seed)


def agreement(data: Annotated, items: NDArray[np.intp]) -> dict[str, float]:
    """Return how much people disagree about images, and how often the network is right."""
    observed = hocal.decompose(hocal.Mixtures.from_snapshots(data.counts[items])).aleatoric
    right = accuracy(data.probabilities[items], data.counts[items])
    return {"entropy of the labels": float(observed.mean()), "accuracy": right}


def describe(found: Gallery, data: Annotated) -> list[dict[str, Any]]:
    """Return what is stored of the images that are shown."""
    classes = load_cifar10h().classes
    rows = []
    for item, aleatoric, epistemic in list(zip(*found, strict=True))[:N_SHOWN]:
        counts = data.counts[item]
        labels = {classes[j]: int(counts[j]) for j in np.flatnonzero(counts)}
        observed = hocal.decompose(hocal.Mixtures.from_snapshots(counts[None])).aleatoric[0]
        about = {
            "item": int(item),
            "aleatoric": digits(aleatoric),
            "epistemic": digits(epistemic),
            "predicted": classes[data.probabilities[item].argmax()],
            "labels": labels,
            "entropy of the labels": digits(observed),
        }
        rows.append(about)
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


def show(rows: dict[str, list[dict[str, Any]]]) -> None:
    """Draw both galleries from one's own copy of the images."""
    images = load_cifar10_images("test")
    figure = Figure(figsize=(14, 5), layout="constrained")
    figure.suptitle(
        "most epistemic (above) and most aleatoric; "
        f"{WIDTH} nats across: aleatoric green, epistemic red"
    )
    for axes, kind in zip(figure.subplots(len(KINDS), N_SHOWN), KINDS, strict=True):
        for ax, about in zip(axes, rows[kind], strict=True):
            picture(ax, images[about["item"]], about)
    draw("galleries", figure)


def main() -> None:
    """Store, draw and print."""
    chosen = options(__doc__, resamplings=10).parse_args()
    seeds = range(chosen.resamplings)
    summary = summarise(in_parallel(resample_stored, [(seed,) for seed in seeds], chosen.jobs))
    for found in summary.values():
        found["differ"] = found["difference"]["lower"] > 0
    data = cifar10h()
    shown, _ = galleries(data, WAYS["items"], 0)
    rows = {kind: describe(found, data) for kind, found in shown.items()}
    result = {"resamplings": len(seeds), "unit": "nats", "images compared": N_COMPARED}
    store("galleries", result | {"ways": summary, "images": rows})
    show(rows)
    for name, found in summary.items():
        for kind in KINDS:
            print(f"{name:24}{kind:16}" + row(found[kind].values(), "12.3f"))
        print(f"{name:24}{'difference':16}" + row([found["difference"]], "12.3f"))


if __name__ == "__main__":
    main()
