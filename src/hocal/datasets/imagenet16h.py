"""ImageNet-16H: the same images at four levels of noise, judged by people and by networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hocal._base.errors import InputError
from hocal._base.typing import IntArray
from hocal._base.validation import check_choice
from hocal.datasets.fetching import Folder, obtain
from hocal.datasets.judged import JudgedItems, tally
from hocal.datasets.npz import read_arrays
from hocal.datasets.sources import SOURCES

__all__ = ["IMAGENET16H_MODELS", "ImageNet16H", "load_imagenet16h"]

IMAGENET16H_MODELS = ("googlenet", "resnet152", "vgg19")
N_IMAGES = 4_800
N_CLASSES = 16


@dataclass(frozen=True, eq=False, repr=False)
class ImageNet16H(JudgedItems):
    """Noisy pictures of sixteen kinds of things, with six or seven labels each.

    Attributes
    ----------
    counts, classes, source, items, annotator, item, label, probabilities, models
        As in `JudgedItems`. The name of an item is that of its image, "@" and the noise.
    noise : ndarray of shape (n_items,), int64
        Strength of the phase noise: 80, 95, 110 or 125.
    """

    noise: IntArray


def load_imagenet16h(
    models: Sequence[str] = IMAGENET16H_MODELS, *, data_home: Folder | None = None
) -> ImageNet16H:
    """Load ImageNet-16H: 1,200 images at four levels of noise, six or seven labels each.

    Parameters
    ----------
    models : sequence of str
        Networks whose softmax is wanted, of "googlenet", "resnet152" and "vgg19".
    data_home : path, optional
        The only folder to read from; see `fetch` for the default.

    Returns
    -------
    ImageNet16H
        4,800 items, one image at one noise each. The file cannot be downloaded; without it the
        error says how to make it.

    Notes
    -----
    Two people disagree about .147, .194, .304 and .491 of the pairs of labels at noise 80, 95, 110
    and 125. Six judgements are by a person who had judged the same item before; they are kept.

    Examples
    --------
    >>> from hocal.datasets import load_imagenet16h
    >>> images = load_imagenet16h(["vgg19"])  # doctest: +SKIP
    >>> images  # doctest: +SKIP
    ImageNet16H(4800 items, 16 classes, 28997 labels, 145 people, 1 model)
    """
    for model in models:
        check_choice(model, "models", IMAGENET16H_MODELS)
    source = SOURCES["imagenet16h"]
    softmax = [f"softmax_{model}" for model in models]
    shapes: dict[str, tuple[int | None, ...]] = {
        "items": (N_IMAGES,),
        "classes": (N_CLASSES,),
        "noise": (N_IMAGES,),
        **{f"label_{column}": (None,) for column in ("item", "annotator", "class")},
        **dict.fromkeys(softmax, (N_IMAGES, N_CLASSES)),
    }
    path = obtain(source.files[0], data_home=data_home)
    arrays = read_arrays(path, shapes)
    item = _places(arrays, "label_item", N_IMAGES, path)
    label = _places(arrays, "label_class", N_CLASSES, path)
    predictions = [arrays[name].astype(np.float64) for name in softmax]
    return ImageNet16H(
        counts=tally(item, label, N_IMAGES, N_CLASSES),
        classes=tuple(map(str, arrays["classes"])),
        source=source,
        items=arrays["items"],
        annotator=arrays["label_annotator"].astype(np.str_),
        item=item,
        label=label,
        probabilities=np.stack(predictions, axis=1) if predictions else None,
        models=tuple(models),
        noise=arrays["noise"].astype(np.int64),
    )


def _places(arrays: dict[str, NDArray[Any]], name: str, n_places: int, path: Path) -> IntArray:
    """Return an array of indices after checking that they are."""
    places = arrays[name].astype(np.int64)
    outside = (places < 0) | (places >= n_places)
    if outside.any():
        row = int(outside.argmax())
        rule = f"must hold `{name}` with numbers from 0 to {n_places - 1}"
        raise InputError(str(path), rule, value=int(places[row]), row=row)
    return places
