"""Write files whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["whole_file", "write_atomically"]


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary file beside the target, which takes the target's place when all went well.

    It is made at once, so that a folder that cannot be written is known before the work begins.
    After a kill a temporary may stay behind; it is never read, and its name is never used again.
    """
    if not path.name or path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "A file is wanted, this is a folder", str(path))
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        _make(temporary, path)
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        if os.path.lexists(temporary):  # a name that no file can have is not there either
            temporary.unlink(missing_ok=True)


def _make(temporary: Path, path: Path) -> None:
    """Make an empty file; errors name the target, since the user knows nothing of the temporary."""
    try:
        temporary.touch(exist_ok=False)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    except ValueError as error:  # characters that no file name has
        raise OSError(errno.EINVAL, str(error), repr(str(path))) from error


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that readers see all of it or nothing."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content)
