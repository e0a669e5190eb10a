"""Open pictures of a few raster formats only: a file is data, and must not start a program."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["FORMATS", "MAX_PIXELS", "open_picture"]

# What people use.  Pillow knows forty more: EPS, for one, hands its content to another program.
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
MAX_PIXELS = 64_000_000  # a large photograph; in colour it takes 192 MB while it is scaled down


@contextmanager
def open_picture(
    source: str | os.PathLike[str] | IO[bytes], formats: tuple[str, ...] = FORMATS
) -> Iterator[Image]:
    """Open a picture without reading its pixels yet; Pillow must be installed.

    Parameters
    ----------
    source : path or file
        A path must be that of a plain file: reading from a pipe could wait for ever.
    formats : tuple of str
        Those that may be opened.

    Raises
    ------
    ValueError
        When it is none of these, or has more than 64 million pixels.
    """
    from PIL import Image as Pillow
    from PIL import UnidentifiedImageError

    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.exists() and not path.is_file():
            raise ValueError("it is not a file")
    try:
        opened = Pillow.open(source, formats=formats)
    except UnidentifiedImageError as error:
        raise ValueError(f"it is none of {', '.join(formats)}") from error
    except (Pillow.DecompressionBombError, Pillow.DecompressionBombWarning) as error:
        raise ValueError(f"it has more than {MAX_PIXELS:,} pixels") from error
    with opened:
        n_pixels = opened.width * opened.height
        if n_pixels > MAX_PIXELS:
            raise ValueError(f"it has {n_pixels:,} pixels, more than {MAX_PIXELS:,}")
        yield opened
