"""FER+: ten votes on the emotion of each face of FER2013."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hocal._base.errors import InputError
from hocal._base.typing import IntArray
from hocal._base.validation import check_choice
from hocal.datasets.fetching import Folder, obtain
from hocal.datasets.npz import read_arrays
from hocal.datasets.real import LabelledItems
from hocal.datasets.sources import SOURCES

__all__ = ["FERPlus", "load_ferplus"]

# Split -> its name in the column "Usage" of the votes, and the parts of the files with the images.
SPLITS = {
    "train": ("Training", ("train-a", "train-b")),
    "valid": ("PublicTest", ("valid",)),
    "test": ("PrivateTest", ("test",)),
}


@dataclass(frozen=True, eq=False, repr=False)
class FERPlus(LabelledItems):
    """Faces with the votes of ten people each.

    Attributes
    ----------
    counts, classes, source
        As in `LabelledItems`.
    names : ndarray of shape (n_items,), str
        Names of the images.
    rows : ndarray of shape (n_items,), int64
        Rows of fer2013.csv and fer2013new.csv, counted from 0 without the header.
    images : ndarray of shape (n_items, 48, 48), uint8, or None
        Shades of grey, if asked for.
    """

    names: NDArray[np.str_]
    rows: IntArray
    images: NDArray[np.uint8] | None


def load_ferplus(
    split: str = "test", *, images: bool = False, data_home: Folder | None = None
) -> FERPlus:
    """Load a split of FER+: ten votes on the emotion of each face.

    Parameters
    ----------
    split : {"test", "valid", "train"}
        3,574, 3,579 or 28,561 faces: the usages PrivateTest, PublicTest and Training of FER2013.
    images : bool, default=False
        Load the images too. Their files cannot be downloaded; without them the error says how to
        make them.
    data_home : path, optional
        The only folder to read from and to download to; see `fetch` for the default.

    Returns
    -------
    FERPlus
        Classes neutral, happiness, surprise, sadness, anger, disgust, fear, contempt, unknown and
        NF, not a face. The votes are downloaded at first use (1.6 MB).

    Notes
    -----
    Mean entropy of the votes: .633 nats in the test split, .628 in all three.

    Blemishes of the source: 173 rows name no image and have ten votes for NF; they are in no split
    here, nor in the authors' own lists (with them the mean entropy of all rows is .625). One row of
    the training split, 10435, has nine votes. Four image names occur twice, three in training and
    one in test; all their rows are kept.

    Examples
    --------
    >>> from hocal.datasets import load_ferplus
    >>> faces = load_ferplus("test")  # doctest: +SKIP
    >>> faces.counts.sum(axis=1).max()  # doctest: +SKIP
    np.int64(10)
    """
    check_choice(split, "split", tuple(SPLITS))
    source = SOURCES["ferplus"]
    usage, parts = SPLITS[split]
    classes, names, rows, counts = _read_votes(obtain(source.files[0], data_home=data_home), usage)
    pixels = _read_images(parts, rows, data_home) if images else None
    return FERPlus(counts, classes, source, names, rows, pixels)


def _read_votes(
    path: Path, usage: str
) -> tuple[tuple[str, ...], NDArray[np.str_], IntArray, IntArray]:
    """Return the classes, and names, rows and votes of the items of a usage that have an image."""
    with open(path, encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file)
    rows = [row for row, line in enumerate(lines) if line[0] == usage and line[1]]
    votes = np.array([lines[row][2:] for row in rows], dtype=np.int64)
    names = np.array([lines[row][1] for row in rows])
    return tuple(header[2:]), names, np.array(rows), votes


def _read_images(
    parts: tuple[str, ...], rows: IntArray, data_home: Folder | None
) -> NDArray[np.uint8]:
    """Return the images of the given rows from their files."""
    source = SOURCES["ferplus_images"]
    files = [file for part in parts for file in source.files if file.path.endswith(f"-{part}.npz")]
    paths = [obtain(file, data_home=data_home) for file in files]
    loaded = [read_arrays(path, {"images": (None, 48, 48), "row": (None,)}) for path in paths]
    packed_rows = np.concatenate([arrays["row"] for arrays in loaded])
    if not np.array_equal(packed_rows, rows):
        wanted = f"{len(rows)} rows, {rows[0]} to {rows[-1]}"
        rule = (
            f"of {' and '.join(map(str, paths))} must be the rows of fer2013new.csv that have "
            f"this usage and an image name, in order: {wanted}"
        )
        raise InputError("row", rule, remedy="Pack the images again.")
    return np.concatenate([arrays["images"] for arrays in loaded])
