"""Write files whole or not at all, and take away what killed processes left."""

from __future__ import annotations

import atexit
import errno
import os
import re
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedRandom
from pathlib import Path

if sys.platform != "win32":
    import fcntl

__all__ = ["claim", "hold", "whole_file", "write_atomically"]

# Seconds after which a file that nobody touched belongs to no running process; asked only on
# Windows, where an open file cannot be renamed, so that writers hold no lock.
ABANDONED = 24 * 3600.0

# Temporary files that are being written, and by which process: a fork has the list of its parent.
# An interrupt that comes just as a file is handed out unwinds no `with`; the exit takes it away.
_unfinished: dict[Path, int] = {}


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary file beside the target, which takes the target's place when all went well.

    It is made at once, so that a folder that cannot be written is known before the work begins.
    A kill leaves it behind; it is never read, and the next write to the same target removes it.
    """
    if not path.name or path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "A file is wanted, this is a folder", str(path))
    _remove_abandoned(path)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    held: BufferedRandom | None = None
    _unfinished[temporary] = os.getpid()
    try:
        held = _make(temporary, path)
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        if os.path.lexists(temporary):  # a name that no file can have is not there either
            temporary.unlink(missing_ok=True)
        if held is not None:
            held.close()
        _unfinished.pop(temporary, None)


@atexit.register
def _remove_unfinished() -> None:
    """Remove what this process has begun and will not end."""
    for temporary, process in list(_unfinished.items()):
        if process == os.getpid():
            with suppress(OSError, ValueError):
                temporary.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that readers see all of it or nothing."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content)


def hold(path: Path, *, new: bool = True) -> BufferedRandom:
    """Make a file, or open one if not `new`; it is ours until what is returned is closed."""
    while True:
        file = open(path, "xb+" if new else "ab+")  # noqa: SIM115 - who called closes it
        if sys.platform == "win32":
            file.close()
            return file
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        if _is_at(file, path):  # else somebody took it for abandoned before it was locked
            return file
        file.close()


def claim(path: Path) -> BufferedRandom | None:
    """Take a file over that a killed process left; None while its writer lives, or if it is gone.

    It is this process's own until what is returned is closed.
    """
    try:
        file = open(path, "rb+")  # noqa: SIM115 - as above
    except OSError:
        return None
    if _take(file) and _is_at(file, path):
        return file
    file.close()
    return None


def _take(file: BufferedRandom) -> bool:
    """Tell whether no running process held a file, which is now ours."""
    if sys.platform == "win32":
        age = time.time() - os.fstat(file.fileno()).st_mtime
        file.close()
        return age > ABANDONED
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held, or a file system without locks
        return False
    return True


def _is_at(file: BufferedRandom, path: Path) -> bool:
    """Tell whether an open file still has this name, which its writer may have changed."""
    if file.closed:
        return path.exists()
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except OSError:
        return False


def _remove_abandoned(path: Path) -> None:
    """Remove the temporary files of writers to the same target that were killed."""
    name = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.partial")
    with suppress(OSError, ValueError):  # where the folder cannot be read, making a file says why
        for found in filter(name.fullmatch, os.listdir(path.parent)):
            stray = path.with_name(found)
            if (file := claim(stray)) is not None:
                with file:
                    stray.unlink(missing_ok=True)


def _make(temporary: Path, path: Path) -> BufferedRandom:
    """Make an empty file; errors name the target, since the user knows nothing of the temporary."""
    try:
        return hold(temporary)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    except ValueError as error:  # characters that no file name has
        raise OSError(errno.EINVAL, str(error), repr(str(path))) from error
