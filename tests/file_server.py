"""An HTTP server on this machine that serves bytes well or, as told, badly."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class FileServer(ThreadingHTTPServer):
    """Serves `files`; each request takes the next behaviour off `behaviours`, if any is left."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.behaviours: list[str] = []
        self.ranges: list[str | None] = []  # what each request asked for

    @property
    def url(self) -> str:
        """Address without a slash at the end."""
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing when the client hangs up."""


class Handler(BaseHTTPRequestHandler):
    """Answers one request with the behaviour that the server has in store for it."""

    server: FileServer

    def do_GET(self) -> None:
        """Answer."""
        self.server.ranges.append(self.headers.get("Range"))
        behaviour = self.server.behaviours.pop(0) if self.server.behaviours else "well"
        content = self.server.files.get(self.path.lstrip("/"))
        if content is None:
            self.send_error(404)
        elif behaviour.isdigit():
            self.send_error(int(behaviour))
        else:
            BEHAVIOURS[behaviour](self, content)

    def start(self) -> int:
        """Return the first byte that was asked for."""
        return int(
            (self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").removesuffix("-")
        )

    def answer(
        self, body: bytes, *, status: int = 200, length: int | None = None, **headers: str
    ) -> None:
        """Send a body, announcing `length` bytes; -1 for no announcement."""
        self.send_response(status)
        if length != -1:
            self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""


def _well(handler: Handler, content: bytes, *, shift: int = 0) -> None:
    first = handler.start() + shift
    if first == 0:
        return handler.answer(content)
    if first >= len(content):
        return handler.send_error(416)
    where = f"bytes {first}-{len(content) - 1}/{len(content)}"
    return handler.answer(content[first:], status=206, Content_Range=where)


def _break_off(handler: Handler, content: bytes) -> None:
    """Announce everything and hang up half-way through what was asked for."""
    first = handler.start()
    half = content[first : first + (len(content) - first) // 2]
    where = f"bytes {first}-{len(content) - 1}/{len(content)}"
    status = {"status": 206, "Content_Range": where} if first else {}
    handler.answer(half, length=len(content) - first, **status)  # type: ignore[arg-type]


def _hang(handler: Handler, content: bytes) -> None:
    """Send half and then nothing for longer than the client is willing to wait."""
    handler.answer(content[: len(content) // 2], length=len(content))
    handler.wfile.flush()
    time.sleep(0.5)


def _slowly(handler: Handler, content: bytes) -> None:
    """Send what was asked for in pieces of 16 kB, a few milliseconds apart."""
    first = handler.start()
    where = f"bytes {first}-{len(content) - 1}/{len(content)}"
    status = {"status": 206, "Content_Range": where} if first else {}
    handler.answer(b"", length=len(content) - first, **status)  # type: ignore[arg-type]
    for place in range(first, len(content), 1 << 14):
        handler.wfile.write(content[place : place + (1 << 14)])
        time.sleep(0.004)


def _redirect(handler: Handler, _: bytes) -> None:
    handler.answer(b"", status=302, Location=handler.server.url + handler.path)


BEHAVIOURS: dict[str, Callable[[Handler, bytes], None]] = {
    "well": _well,
    "ignore the range": lambda handler, content: handler.answer(content),
    "break off": _break_off,
    "hang": _hang,
    "mute": lambda *_: time.sleep(0.3),
    "slowly": _slowly,
    "redirect": _redirect,
    "corrupt": lambda handler, content: _well(handler, bytes(255 - byte for byte in content)),
    "another size": lambda handler, _: handler.answer(b"<html>Please log in.</html>"),
    "more than announced": lambda handler, content: handler.answer(content + b"more", length=-1),
    "shifted": lambda handler, content: _well(handler, content, shift=1),
    "unnumbered": lambda handler, content: handler.answer(content[handler.start() :], status=206),
}


@contextmanager
def serving() -> Iterator[FileServer]:
    """Run a server for the length of a with block."""
    server = FileServer()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
