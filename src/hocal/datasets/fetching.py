"""Find the files of real data sets in the folders where they may be, or download them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from hocal._base.errors import InputError
from hocal._base.validation import check_choice
from hocal.datasets.download import DownloadError, checksum, download
from hocal.datasets.sources import SOURCES, DataFile

__all__ = [
    "FileStatus",
    "Folder",
    "ReportProgress",
    "cache_folder",
    "fetch",
    "list_files",
    "obtain",
]

Folder: TypeAlias = "str | os.PathLike[str]"
ReportProgress: TypeAlias = Callable[[str, int, int], object]

_VARIABLE = "It is an environment variable: set it otherwise, or unset it."


class FileStatus(NamedTuple):
    """A file of a data set, and where it is.

    Examples
    --------
    >>> from hocal.datasets import list_files
    >>> first = list_files()[0]
    >>> first.name, first.path, first.size, first.downloadable
    ('cifar10h', 'cifar10h/cifar10h-counts.npy', 800128, True)
    """

    name: str
    """The data set, as `fetch` takes it."""
    path: str
    """Place inside a data folder."""
    size: int
    """Bytes."""
    licence: str
    """Terms of use of the data set."""
    downloadable: bool
    """False for a file that must be made by hand; `fetch` then says how."""
    location: Path | None
    """Where it is; None where it is absent."""


def list_files(*, data_home: Folder | None = None) -> list[FileStatus]:
    """List the files of every data set and where they are, without reading or downloading any.

    Parameters
    ----------
    data_home : path, optional
        The only folder to look at. By default the folder named by the environment variable
        HOCAL_DATA, then the cache.

    Returns
    -------
    list of FileStatus
        One per file.

    Examples
    --------
    >>> from hocal.datasets import list_files
    >>> sorted({file.name for file in list_files() if file.downloadable})
    ['cifar10h', 'crowd', 'ferplus']
    """
    folders = _folders(data_home)
    return [
        FileStatus(
            name, file.path, file.size, source.licence, file.url is not None, _find(file, folders)
        )
        for name, source in SOURCES.items()
        for file in source.files
    ]


def fetch(
    name: str, *, progress: ReportProgress | None = None, data_home: Folder | None = None
) -> list[Path]:
    """Make sure that every file of a data set is on this machine; what is public is downloaded.

    Files are looked for in the folder named by HOCAL_DATA, then in the cache: XDG_CACHE_HOME/hocal
    if that variable is set, else ~/.cache/hocal (~/Library/Caches/hocal on macOS,
    %LOCALAPPDATA%/hocal on Windows). Downloads go to the cache, are checked by size and sha256, and
    resume after an interruption. HOCAL_MIRROR may hold the base URL of a server with the same
    folders, for networks that do not reach the public addresses.

    Parameters
    ----------
    name : str
        A data set, see `list_files`.
    progress : callable, optional
        Called with the path of the file inside the data folder, the bytes so far and the bytes in
        all: when the download of a file starts, after each chunk and at its end. The bytes so far
        fall back when the download has to start over. Files that are already there are not
        reported.
    data_home : path, optional
        The only folder to look at and to download to, instead of HOCAL_DATA and the cache.

    Returns
    -------
    list of Path
        Where the files are.

    Raises
    ------
    FileNotFoundError
        If a file is absent and cannot be downloaded; the message says how to make it and where to
        put it.
    DownloadError
        If a download fails; the message says how to do without.
    ValueError
        If a file is there but has another content than the public one.

    Examples
    --------
    >>> from hocal.datasets import fetch
    >>> [path.name for path in fetch("crowd")]  # doctest: +SKIP
    ['CF_amt.csv', 'SP_amt.csv']
    """
    check_choice(name, "name", tuple(SOURCES))
    return [obtain(file, progress=progress, data_home=data_home) for file in SOURCES[name].files]


def obtain(
    file: DataFile, *, progress: ReportProgress | None = None, data_home: Folder | None = None
) -> Path:
    """Return where a file is, after checking that it is the public one or downloading it."""
    folders = _folders(data_home)
    found = _find(file, folders)
    if found is not None:
        _check_content(file, found)
        return found
    target = folders[-1] / file.path
    place = (
        f"at {target}, or set the environment variable HOCAL_DATA to a folder "
        f"that holds {file.path}."
    )
    if file.url is None or file.sha256 is None:
        searched = " or ".join(map(str, folders))
        raise FileNotFoundError(
            f"`{file.path}` is not in {searched} and cannot be downloaded. "
            f"{file.recipe} Put it {place}"
        )
    report = None if progress is None else partial(progress, file.path)
    address = _address(file.path, file.url)
    try:
        download(address, target, size=file.size, sha256=file.sha256, progress=report)
    except DownloadError as error:
        content = f"{file.size} bytes, sha256 {file.sha256}"
        raise DownloadError(
            f"{error} To do without this connection, get {file.url} ({content}) elsewhere "
            f"and put it {place}"
        ) from error.__cause__
    return target


def cache_folder() -> Path:
    """Return where downloads go: the place for such files on this system."""
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "hocal"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "hocal"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "hocal"


def _folders(data_home: Folder | None) -> list[Path]:
    """Return the folders to look at, in order; downloads go to the last."""
    if data_home is not None:
        return [Path(data_home).expanduser()]
    if not (named := os.environ.get("HOCAL_DATA")):
        return [cache_folder()]
    if not Path(named).expanduser().is_dir():
        raise InputError(
            "HOCAL_DATA", "must name a folder that exists", value=repr(named), remedy=_VARIABLE
        )
    return [Path(named).expanduser(), cache_folder()]


def _find(file: DataFile, folders: list[Path]) -> Path | None:
    """Return the first place that has the file."""
    return next((folder / file.path for folder in folders if (folder / file.path).is_file()), None)


def _check_content(file: DataFile, found: Path) -> None:
    """Refuse a copy that is not the public file."""
    if file.sha256 is not None and (got := checksum(found)) != file.sha256:
        public = f"{file.url} with {file.size} bytes and sha256 {file.sha256}"
        raise InputError(
            str(found),
            f"must be the public file {public}",
            value=f"{found.stat().st_size} bytes and {got}",
            remedy="Remove it to download it again.",
        )


def _address(path: str, url: str) -> str:
    """Return where to download from: the public address, or the mirror's."""
    if not (mirror := os.environ.get("HOCAL_MIRROR")):
        return url
    if not mirror.startswith(("http://", "https://")):
        rule = "must start with http:// or https://"
        raise InputError("HOCAL_MIRROR", rule, value=repr(mirror), remedy=_VARIABLE)
    return f"{mirror.rstrip('/')}/{path}"
