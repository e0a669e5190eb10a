"""A headless Chromium, driven over a pipe by the DevTools protocol, for tests of the page."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
PATIENCE = 60.0  # seconds for one answer, on a machine that runs other tests at the same time

_FLAGS = (
    "--headless",
    "--no-sandbox",  # as root, and for a page that the test itself wrote
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


class Browser:
    """A browser with one page, which notes every message, dialog and request."""

    def __init__(self, profile: Path) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        # the protocol speaks on 3 and 4
        command = f'exec "$0" "$@" 3</dev/fd/{to_browser} 4>/dev/fd/{from_browser}'
        self._process = subprocess.Popen(
            [
                "sh",
                "-c",
                command,
                str(CHROMIUM),
                *_FLAGS,
                f"--user-data-dir={profile}",
                "about:blank",
            ],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._number, self._session = b"", 0, None
        self.messages: list[str] = []  # errors and warnings of the page
        self.requests: list[str] = []  # addresses asked for
        self.blocked: list[str] = []  # why requests were stopped inside the browser
        self.dialogs: list[str] = []

    def attach(self) -> None:
        """Open the page that all further commands speak to."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> Any:
        """Send a command and return its answer, noting the events that come before it."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        number = self._number
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def open(self, path: Path) -> None:
        """Open a file and wait until it is loaded."""
        self.messages.clear()
        self.requests.clear()
        self.dialogs.clear()
        self.send("Page.navigate", url=path.as_uri())
        deadline = time.monotonic() + PATIENCE
        while (
            self.run("document.readyState") != "complete"
            or self.run("location.href") != path.as_uri()
        ):
            assert time.monotonic() < deadline, f"{path} did not load"
            time.sleep(0.02)

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page; a promise is awaited."""
        answer = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def press(self, key: str, *, code: int, text: str = "") -> None:
        """Press and release a key, such as Tab; Enter and letters have a text as well."""
        common = {
            "key": key,
            "code": key,
            "windowsVirtualKeyCode": code,
            "nativeVirtualKeyCode": code,
        }
        self.send(
            "Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **common
        )
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text: str) -> None:
        """Type into whatever has the focus."""
        self.send("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Press the mouse button in the middle of an element."""
        x, y = self.hover(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def hover(self, selector: str) -> tuple[float, float]:
        """Move the mouse to the middle of an element, and return where that is."""
        place = f"document.querySelector({json.dumps(selector)})"
        x, y = self.run(
            f"(() => {{ const e = {place};"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const b = e.getBoundingClientRect();"
            "return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        return x, y

    def screen(self, width: int, height: int = 900, *, dark: bool = False, media: str = "") -> None:
        """Choose the size of the window, the colours that the reader likes, and screen or print."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """Save what the page looks like, to its end."""
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        if whole:
            size = self.send("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
            answer = self.send(
                "Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip
            )
        path.write_bytes(base64.b64decode(answer["data"]))

    def print(self) -> bytes:
        """Return the page as a printed PDF."""
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"])

    def close(self) -> None:
        """End the browser and everything it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._read)
        os.close(self._write)

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(deadline - time.monotonic(), 0))
            chunk = os.read(self._read, 1 << 20) if ready else b""
            if not chunk:
                raise TimeoutError("The browser does not answer.")
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        parameters = event.get("params", {})
        match event.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])
            case "Network.loadingFailed" if parameters.get("blockedReason"):
                self.blocked.append(parameters["blockedReason"])
            case "Log.entryAdded":
                self.messages.append(
                    f"{parameters['entry']['level']}: {parameters['entry']['text']}"
                )
            case "Runtime.exceptionThrown":
                self.messages.append(json.dumps(parameters["exceptionDetails"]))
            case "Runtime.consoleAPICalled":
                self.messages.append(f"{parameters['type']}: {parameters['args']}")
            case "Page.javascriptDialogOpening":
                self.dialogs.append(parameters["message"])
                self._number += 1  # answered without waiting, or everything would stand still
                answer = {
                    "id": self._number,
                    "method": "Page.handleJavaScriptDialog",
                    "params": {"accept": True},
                }
                os.write(
                    self._write, json.dumps(answer | {"sessionId": self._session}).encode() + b"\0"
                )


@contextlib.contextmanager
def browse(profile: Path) -> Iterator[Browser]:
    """Start a browser with an empty profile and end it."""
    browser = Browser(profile)
    try:
        browser.attach()
        yield browser
    finally:
        browser.close()
