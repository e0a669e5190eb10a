"""A limit on the time of a download, which a server that sends a byte now and then cannot evade.

A timeout of a socket begins anew with every byte, in headers as in the content. So when the time is
over the connection itself is shut, whatever is waiting for it.
"""

from __future__ import annotations

import http.client
import socket
import threading
import time
from contextlib import suppress
from typing import Any, Self
from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, build_opener

__all__ = ["Clock"]


class Clock:
    """Shuts connections when the time is over.

    Parameters
    ----------
    seconds : float
        From the beginning of the `with` block on.

    Examples
    --------
    >>> from hocal.datasets.time_limit import Clock
    >>> with Clock(60.0) as clock:
    ...     clock.expired
    False
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = float("inf")
        self._sockets: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._shut)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._end = time.monotonic() + self.seconds
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    @property
    def expired(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() >= self._end

    def watch(self, connected: socket.socket) -> None:
        """Shut this connection when the time is over, or now if it is."""
        self._sockets.append(connected)
        if self.expired:
            self._shut()

    def opener(self) -> OpenerDirector:
        """Return what opens addresses as `urlopen` does, over connections that are watched."""
        return build_opener(_WatchedHTTP(self), _WatchedHTTPS(self))

    def _shut(self) -> None:
        for connected in self._sockets:
            with suppress(OSError):  # closed before
                # That of an encrypted connection would first take leave of the server.
                socket.socket.shutdown(connected, socket.SHUT_RDWR)


def _watched(kind: type[http.client.HTTPConnection], clock: Clock) -> Any:
    """Return what makes connections of a kind that are watched."""

    class Watched(kind):  # type: ignore[valid-type, misc]
        def connect(self) -> None:
            super().connect()
            clock.watch(self.sock)

    return Watched


class _WatchedHTTP(HTTPHandler):
    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._connection = _watched(http.client.HTTPConnection, clock)

    def http_open(self, request: Any) -> Any:
        return self.do_open(self._connection, request)


class _WatchedHTTPS(HTTPSHandler):
    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._connection = _watched(http.client.HTTPSConnection, clock)

    def https_open(self, request: Any) -> Any:
        return self.do_open(self._connection, request)
