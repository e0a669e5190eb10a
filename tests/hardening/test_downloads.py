"""Downloads that are not what they should be: refused with a remedy, nothing under the name."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from file_server import BEHAVIOURS, FileServer, Handler, serving
from hardening.model_mutations import mutate_bytes
from hocal.datasets import DownloadError, download
from hocal.datasets.fetching import obtain
from hocal.datasets.sources import DataFile

CONTENT = np.random.default_rng(5).bytes(50_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """Run a server; nobody waits for it to do better."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv("HOCAL_MIRROR", raising=False)
    monkeypatch.delenv("HOCAL_DATA", raising=False)
    monkeypatch.setattr(download.download, "__kwdefaults__", {
        **(download.download.__kwdefaults__ or {}), "waits": (0.0,), "timeout": 2.0,
    })  # fmt: skip
    with serving() as running:
        yield running


def refused(server: FileServer, folder: Path) -> str:
    """Return why a file was not taken, once it is certain that nothing of it is left to be read."""
    file = DataFile("file.bin", len(CONTENT), SHA256, f"{server.url}/file.bin")
    with pytest.raises(DownloadError) as caught:
        obtain(file, data_home=folder)
    assert set(os.listdir(folder)) <= {"file.bin.part"}
    assert f"put it at {folder / 'file.bin'}" in str(caught.value)
    return str(caught.value)


def test_changed_bytes_never_get_the_name_of_the_file(server: FileServer, tmp_path: Path) -> None:
    """Flipped, cut, swapped, repeated: the size or the checksum tells."""
    generator = np.random.default_rng(0)
    for number in range(60):
        folder = tmp_path / str(number)
        server.files["file.bin"] = mutate_bytes(CONTENT, generator)

        message = refused(server, folder)

        assert "another file" in message or "another content" in message
    server.files["file.bin"] = CONTENT
    refused_last = DataFile("file.bin", len(CONTENT), SHA256, f"{server.url}/file.bin")
    assert obtain(refused_last, data_home=folder).read_bytes() == CONTENT
    assert os.listdir(folder) == ["file.bin"]


HOSTILE: dict[str, list[tuple[str, str]]] = {
    "no length": [("Content-Length", "abc")],
    "negative length": [("Content-Length", "-1")],
    "endless length": [("Content-Length", "9" * 6_000)],
    "endless range": [("Content-Range", f"bytes {'9' * 6_000}-9/9")],
    "foreign range": [("Content-Range", "bytes 7-9/*")],
    "wild range": [("Content-Range", "\x1b[2Jbytes \xb2-1/1")],
    "long header": [("X", "x" * 70_000)],
    "many headers": [(f"X{number}", "x") for number in range(200)],
    "torn chunks": [("Transfer-Encoding", "chunked")],
    "to a file": [("Location", "file:///etc/passwd")],
    "to nowhere": [("Location", "http://")],
    "to itself": [("Location", "/file.bin")],
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_headers_end_in_one_error(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    headers = HOSTILE[case]
    status = {"Content-Range": 206, "Location": 302}.get(headers[0][0], 200)

    def answer(handler: Handler, content: bytes) -> None:
        handler.send_response(status)
        for name, value in headers:
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(content)

    monkeypatch.setitem(BEHAVIOURS, "hostile", answer)
    server.files["file.bin"] = CONTENT[::-1]
    server.behaviours = ["hostile"] * 50

    message = refused(server, tmp_path / "new")

    assert "\n" not in message
    assert len(message) < 2_000


def _drip(handler: Handler, content: bytes, first: int) -> None:
    """Send a byte every twentieth of a second, from the headers on or from the content on."""
    head = b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content)
    whole = head + content
    handler.wfile.write(whole[:first])
    for place in range(first, len(whole)):
        handler.wfile.write(whole[place : place + 1])
        handler.wfile.flush()
        time.sleep(0.05)


@pytest.mark.parametrize(("first", "came"), [(0, "0 of"), (1_000, r"9\d\d of")])
def test_a_server_that_sends_a_byte_now_and_then_is_left(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int, came: str
) -> None:
    """No single wait is long: headers, and then the content, would take an hour."""
    monkeypatch.setitem(BEHAVIOURS, "drip", lambda *request: _drip(*request, first))
    server.behaviours = ["drip"] * 5
    server.files["file.bin"] = CONTENT
    target = tmp_path / "file.bin"
    about = {"size": len(CONTENT), "sha256": SHA256, "longest": 0.5}
    began = time.monotonic()

    with pytest.raises(
        DownloadError, match=f"{came} 50000 bytes came in 0.5 seconds, which is all"
    ):
        download.download(f"{server.url}/file.bin", target, **about)

    assert time.monotonic() - began < 5
    assert not target.exists()
    server.behaviours = []
    download.download(f"{server.url}/file.bin", target, **about | {"longest": None})
    assert target.read_bytes() == CONTENT


def test_a_command_left_by_a_slow_server_says_what_to_do(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BEHAVIOURS, "drip", lambda *request: _drip(*request, 0))
    monkeypatch.setattr(download, "GRACE", 0.3)
    monkeypatch.setattr(download, "SLOWEST", 1e9)
    server.behaviours = ["drip"] * 5
    server.files["file.bin"] = CONTENT

    assert "The next call goes on where this one stopped" in refused(server, tmp_path / "new")
