"""Pictures and texts of items, made small enough to travel inside the page."""

from __future__ import annotations

import base64
import io
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hocal._base.errors import InputError
from hocal._base.pictures import FORMATS, open_picture
from hocal._base.validation import known_length
from hocal.report.schema import Image, Text

__all__ = ["Images", "Texts", "check_rows"]

MAX_SIDE = 128  # pixels: 48 pictures of noise in colour, the worst case, then take 3 MB in the page
SMALL_SIDE = 64  # smaller pictures are enlarged with sharp pixels
MAX_CHARACTERS = 600  # about ten lines of a card


class Images:
    """Pictures of the items, one per item, encoded only when asked for.

    Parameters
    ----------
    images : array of uint8 or sequence, optional
        (n_items, height, width) or (n_items, height, width, 3 or 4), or a sequence of paths, bytes
        of image files, uint8 arrays, or None where an item has no picture. Files are PNG, JPEG,
        WebP, GIF, BMP or TIFF of at most 64 million pixels.
    n_items : int
        How many there must be.
    """

    def __init__(self, images: Any, n_items: int) -> None:
        self._images = check_rows(images, "images", n_items)
        if isinstance(self._images, np.ndarray) and self._images.dtype != object:
            _check_pixels(self._images[0] if len(self._images) else self._images, "images")

    def __call__(self, row: int) -> Image | None:
        """Return the picture of an item as a PNG inside a data: address."""
        image = None if self._images is None else self._images[row]
        if image is None:
            return None
        picture = _open(image, f"images[{row}]")
        width, height = picture.size
        picture.thumbnail((MAX_SIDE, MAX_SIDE))
        file = io.BytesIO()
        picture.save(file, "PNG", optimize=True)
        source = "data:image/png;base64," + base64.b64encode(file.getvalue()).decode("ascii")
        small = max(width, height) < SMALL_SIDE
        return {
            "source": source,
            "width": picture.width,
            "height": picture.height,
            "pixelated": small,
        }


class Texts:
    """Texts of the items, one per item, cut where they are long.

    Parameters
    ----------
    texts : sequence of str, optional
        None where an item has no text.
    n_items : int
        How many there must be.
    """

    def __init__(self, texts: Any, n_items: int) -> None:
        self._texts = check_rows(texts, "texts", n_items)

    def __call__(self, row: int) -> Text | None:
        """Return the beginning of an item's text."""
        text = None if self._texts is None else self._texts[row]
        if text is None:
            return None
        if not isinstance(text, str):
            raise InputError("texts", "must hold strings", value=repr(text), where=f"in row {row}")
        return {"text": text[:MAX_CHARACTERS], "n_cut": max(len(text) - MAX_CHARACTERS, 0)}


def check_rows(values: Any, name: str, n_items: int) -> Any:
    """Return something that rows can be taken from by number."""
    if values is None:
        return None
    # a pandas Series counts by its labels
    rows = values.to_numpy() if hasattr(values, "to_numpy") else values
    by_number = hasattr(rows, "__getitem__") and not isinstance(rows, str | bytes)
    n_rows = known_length(rows)
    if not by_number or n_rows != n_items:
        size = "no length" if n_rows is None else str(n_rows)
        rule = f"must be a sequence with an entry for each of {n_items} items"
        raise InputError(name, rule, value=size)
    return rows


def _check_pixels(pixels: NDArray[Any], name: str) -> NDArray[np.uint8]:
    shape_fits = pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in (3, 4))
    if pixels.dtype != np.uint8 or not shape_fits or not pixels.size:
        raise InputError(
            name,
            "must be uint8 arrays of shape (height, width) or (height, width, 3 or 4)",
            value=f"{pixels.dtype} of shape {pixels.shape}",
            remedy="Scale the values to 0 to 255 first.",
        )
    return pixels


def _open(image: Any, name: str) -> Any:
    """Return a picture from an array, a file or its bytes; transparency is kept."""
    try:
        from PIL import Image as Pillow
        from PIL import ImageOps
    except ImportError as error:
        raise ImportError('Pictures in a report need Pillow: pip install "hocal[app]"') from error

    if isinstance(image, np.ndarray):
        return Pillow.fromarray(np.ascontiguousarray(_check_pixels(image, name)))
    if not isinstance(image, str | bytes | os.PathLike):
        raise InputError(name, "must be a path, bytes or an array", value=type(image).__name__)
    try:
        with open_picture(io.BytesIO(image) if isinstance(image, bytes) else image) as opened:
            transparent = "transparency" in opened.info or "A" in opened.getbands()
            return ImageOps.exif_transpose(opened).convert("RGBA" if transparent else "RGB")
    except Exception as error:  # decoders raise whatever a broken file makes them meet
        what = f"{len(image)} bytes" if isinstance(image, bytes) else repr(os.fspath(image))
        rule = f"must be a readable picture ({', '.join(FORMATS)})"
        raise InputError(name, rule, value=f"{what}: {error}") from error
