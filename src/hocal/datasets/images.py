"""Images of CIFAR-10, kept as JPEG and decoded one at a time."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hocal._base.pictures import open_picture
from hocal._base.typing import IntArray
from hocal._base.validation import check_choice
from hocal.datasets.fetching import Folder, obtain
from hocal.datasets.npz import read_arrays
from hocal.datasets.real import CIFAR10_CLASSES
from hocal.datasets.sources import SOURCES, Source

__all__ = ["JPEGImages", "load_cifar10_images"]


@dataclass(frozen=True, eq=False, repr=False)
class JPEGImages:
    """Images that are decoded when asked for: `images[7]` is an array (32, 32, 3) of uint8.

    Attributes
    ----------
    jpeg : ndarray, uint8
        The files of all images, one after the other.
    offsets : ndarray of shape (n_items + 1,), int64
        Image i is jpeg[offsets[i]:offsets[i + 1]].
    labels : ndarray of shape (n_items,), int64
        The data set's own labels, indices into `classes`.
    classes : tuple of str
        Names of the classes.
    source : Source
        Home page, licence and citation.
    """

    jpeg: NDArray[np.uint8]
    offsets: IntArray
    labels: IntArray
    classes: tuple[str, ...]
    source: Source

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"JPEGImages({len(self)} items, {len(self.classes)} classes)"

    def __getitem__(self, item: int) -> NDArray[np.uint8]:
        try:
            import PIL  # noqa: F401
        except ModuleNotFoundError as error:
            raise ImportError(
                "Decoding images needs Pillow. Install it with: pip install pillow"
            ) from error
        # a range counts negative indices from the end and refuses those out of it
        row = range(len(self))[item]
        content = self.jpeg[self.offsets[row] : self.offsets[row + 1]].tobytes()
        with open_picture(io.BytesIO(content), ("JPEG",)) as image:
            return np.asarray(image.convert("RGB"))


def load_cifar10_images(split: str = "test", *, data_home: Folder | None = None) -> JPEGImages:
    """Load the images of CIFAR-10, as lossy JPEG.

    Parameters
    ----------
    split : {"test", "train"}
        10,000 images in the order of the original test set, or 50,000 in a random order.
    data_home : path, optional
        The only folder to read from; see `fetch` for the default.

    Returns
    -------
    JPEGImages
        Test image i belongs to row i of `load_cifar10h`. The files cannot be downloaded; without
        them the error says how to make them. Decoding needs Pillow.

    Notes
    -----
    Networks trained on the lossless images lose about ten points of accuracy on these: train on
    these to test on these. The test labels agree with the majority of CIFAR-10H for 99.2% of the
    images.

    Examples
    --------
    >>> from hocal.datasets import load_cifar10_images
    >>> images = load_cifar10_images("test")  # doctest: +SKIP
    >>> images[0].shape, images.classes[images.labels[0]]  # doctest: +SKIP
    ((32, 32, 3), 'cat')
    """
    check_choice(split, "split", ("test", "train"))
    source = SOURCES["cifar10_images"]
    n_items = {"test": 10_000, "train": 50_000}[split]
    path = obtain(next(file for file in source.files if split in file.path), data_home=data_home)
    arrays = read_arrays(path, {"jpeg": (None,), "offsets": (n_items + 1,), "labels": (n_items,)})
    return JPEGImages(
        arrays["jpeg"],
        arrays["offsets"],
        arrays["labels"].astype(np.int64),
        CIFAR10_CLASSES,
        source,
    )
