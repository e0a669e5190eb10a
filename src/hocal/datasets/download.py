"""Download one file: resumed, retried, checked, and put in place only when every byte is right."""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import secrets
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import BufferedRandom
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError, URLError
from urllib.request import Request

from hocal._base.files import claim, hold
from hocal.datasets.time_limit import Clock

__all__ = ["DownloadError", "checksum", "download"]

# bytes asked for at a time: progress moves smoothly, and calls cost nothing
CHUNK = 1 << 16
# seconds without a byte after which a connection counts as broken
TIMEOUT = 30.0
# Seconds in all: some to begin with, and then as a line of 50 kB/s takes. Whoever has a slower one
# calls again, which goes on where this call stopped.
GRACE = 120.0
SLOWEST = 50_000.0
# seconds before each further try
WAITS = (0.5, 1.0, 2.0, 4.0)
# answers of a server that may do better in a moment
PASSING = {408, 425, 429, 500, 502, 503, 504}
# Errors of a connection. Others, such as a full disk, are not: they leave `download` as they are.
BROKEN = (URLError, ConnectionError, TimeoutError, ssl.SSLError, http.client.HTTPException)


class DownloadError(OSError):
    """A file could not be downloaded; the message says from where, why, and what to do instead.

    Examples
    --------
    >>> from hocal.datasets import DownloadError
    >>> issubclass(DownloadError, OSError)
    True
    """


class _Job(NamedTuple):
    """What to download, where to, and whom to tell."""

    url: str
    part: Path
    size: int
    report: Callable[[int, int], object]
    timeout: float
    clock: Clock


def download(
    url: str,
    target: Path,
    *,
    size: int,
    sha256: str,
    progress: Callable[[int, int], object] | None = None,
    timeout: float = TIMEOUT,
    longest: float | None = None,
    waits: Sequence[float] = WAITS,
) -> None:
    """Download `url` to `target`, going on where an interrupted download of the same file stopped.

    A running download writes to a part file of its own, named by chance and locked, so that two
    processes never write to the same one. An interruption leaves it as `<target>.part`, a kill
    under its own name; the next download claims the longest that no running process holds, and
    removes the others. Whoever is complete renames its part to the target, all with the same bytes.

    Parameters
    ----------
    url : str
        Address, over http or https.
    target : Path
        Where the file goes; folders are made.
    size, sha256 : int, str
        What the file must be.
    progress : callable, optional
        Gets the bytes so far and the bytes in all: at the start, after each chunk and at the end.
    timeout : float, default=30
        Seconds to wait for an answer or for the next bytes.
    longest : float, optional
        Seconds that all of it may take, also where a byte comes now and then; by default two
        minutes and as long as a line of 50 kB/s takes. What came until then is kept.
    waits : sequence of float
        Seconds to wait before each further try after a broken connection.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part, held = _claim(target)
    clock = Clock(GRACE + size / SLOWEST if longest is None else longest)
    job = _Job(url, part, size, progress or (lambda *_: None), timeout, clock)
    try:
        with clock:
            _complete_whole(job, waits, sha256)
        found = checksum(part)
        if found != sha256:
            part.unlink()
            raise DownloadError(
                f"{url} has another content: expected sha256 {sha256}, got {found}."
            )
        os.replace(part, target)
    finally:
        with held, suppress(FileNotFoundError):
            if part.stat().st_size:
                os.replace(part, _resting(target))
            else:
                part.unlink()


def _complete_whole(job: _Job, waits: Sequence[float], sha256: str) -> None:
    """Complete the part file; from its first byte on where the pieces do not make the file."""
    resumed = _complete(job, waits)
    if resumed and checksum(job.part) != sha256:
        # The pieces may stem from different files; a file that came in one piece is what the
        # server has.
        os.truncate(job.part, 0)
        _complete(job, waits)


def checksum(path: Path) -> str:
    """Return the sha256 of a file as hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _resting(target: Path) -> Path:
    """Return where an interrupted download waits for the next."""
    return target.with_name(f"{target.name}.part")


def _claim(target: Path) -> tuple[Path, BufferedRandom]:
    """Return a part file of this call's own, with the bytes of an interrupted download if any."""
    own = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part")
    strays = _strays(target)
    with suppress(FileNotFoundError):
        os.replace(_resting(target), own)
    held = hold(own, new=False)
    for stray in strays:
        if (file := claim(stray)) is None:
            continue
        if stray.stat().st_size > own.stat().st_size:
            os.replace(stray, own)
            held.close()
            held = file
        else:
            with file:
                stray.unlink(missing_ok=True)
    return own, held


def _strays(target: Path) -> list[Path]:
    """Return the part files that are named by chance: of running downloads and of killed ones."""
    name = re.compile(rf"{re.escape(target.name)}\.[0-9a-f]{{8}}\.part")
    return [target.with_name(found) for found in os.listdir(target.parent) if name.fullmatch(found)]


def _complete(job: _Job, waits: Sequence[float]) -> bool:
    """Complete the part file, in several tries if need be; tell whether it came in pieces."""
    failure: Exception | None = None
    for wait in (0.0, *waits):
        time.sleep(wait)
        try:
            return _transfer(job)
        except BROKEN as error:
            failure = error
            if not _may_pass(error) or job.clock.expired:
                break
    if job.clock.expired:
        raise _too_slow(job) from failure
    raise DownloadError(f"{job.url} could not be downloaded: {_describe(failure)}.") from failure


def _too_slow(job: _Job) -> DownloadError:
    """Say how far a download came in the time that it may take."""
    so_far = f"{job.part.stat().st_size} of {job.size} bytes"
    return DownloadError(
        f"{job.url} could not be downloaded: {so_far} came in {job.clock.seconds:g} seconds, which "
        "is all that it may take. The next call goes on where this one stopped."
    )


def _transfer(job: _Job) -> bool:
    """Ask once for the bytes that are missing and add them; tell whether earlier ones were kept."""
    kept = job.part.stat().st_size
    if kept == job.size:
        return True
    with _ask(job, kept if kept < job.size else 0) as response:
        first = _first_byte(response, job.size)
        if first not in (0, kept):
            os.truncate(job.part, 0)  # the next try asks for the whole file
            raise ConnectionError(f"the server sent bytes from {first} on instead of {kept}")
        so_far = _write(job, response, first)
    if so_far < job.size:
        raise ConnectionError(f"the connection closed after {so_far} of {job.size} bytes")
    return first > 0


def _ask(job: _Job, start: int) -> http.client.HTTPResponse:
    """Open the address from byte `start` on, or from the first if the server has no such byte."""
    headers = {"User-Agent": "hocal"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        response: http.client.HTTPResponse
        request = Request(job.url, headers=headers)
        response = job.clock.opener().open(request, timeout=job.timeout)
        return response
    except HTTPError as error:
        error.close()
        if error.code == 416 and start:
            return _ask(job, 0)
        raise


def _first_byte(response: http.client.HTTPResponse, size: int) -> int:
    """Return at which byte the answer begins, -1 if it does not say; another size is refused."""
    first = 0
    whole = response.headers.get("Content-Length", "*")
    if response.status == 206:  # a part, whose header says where it lies in the whole
        header = response.headers.get("Content-Range", "")
        # at most 18 digits: a file is no longer than that, and int refuses thousands
        found = re.fullmatch(r"bytes (\d{1,18})-\d{1,18}/(\d{1,18}|\*)", header)
        first = int(found[1]) if found else -1
        whole = found[2] if found else "*"
    if whole not in ("*", str(size)):
        offered = f"expected {size} bytes, the server offers {_plain(whole)}"
        raise DownloadError(f"{response.url} is another file: {offered}.")
    return first


def _write(job: _Job, response: http.client.HTTPResponse, first: int) -> int:
    """Write what the server sends from byte `first` on, and return the size reached."""
    so_far = first
    job.report(so_far, job.size)
    with open(job.part, "ab" if first else "wb") as file:
        while so_far <= job.size and (chunk := response.read1(CHUNK)) and not job.clock.expired:
            so_far += file.write(chunk)
            job.report(min(so_far, job.size), job.size)
        file.flush()
        os.fsync(file.fileno())
    if so_far > job.size:
        os.truncate(job.part, 0)  # nothing of another file is kept for the next download
        raise DownloadError(f"{response.url} is another file: expected {job.size} bytes, got more.")
    return so_far


def _may_pass(error: Exception) -> bool:
    """Tell whether the same request may succeed in a moment."""
    if isinstance(error, HTTPError):
        return error.code in PASSING
    if isinstance(error, URLError):
        # a name that is not known and a certificate that is not trusted stay so
        return not isinstance(error.reason, socket.gaierror | ssl.SSLCertVerificationError)
    return not isinstance(error, http.client.InvalidURL)


def _describe(error: Exception | None) -> str:
    """Say in a few words what went wrong."""
    if isinstance(error, HTTPError):
        return _plain(f"HTTP {error.code} {error.reason}")
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, TimeoutError):
        return "the server did not answer in time"
    return _plain(str(reason)) or type(reason).__name__


def _plain(text: str) -> str:
    """Return words of a server in one line that is not long, and safe for a terminal."""
    line = " ".join(text.split())[:200]
    return "".join(letter if letter.isprintable() else "?" for letter in line)
