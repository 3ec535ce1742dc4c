"""A real browser without a window, driven by Chromium's DevTools protocol over a pipe."""

import base64
import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_MOST_PIXELS = 3000
_QUIET = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def browser() -> str | None:
    """The program, None when the machine has none."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


class Page:
    """One page of a browser. `bytes` and `requests` are what it has loaded so far."""

    def __init__(self, commands: IO[bytes], events: IO[bytes]) -> None:
        self._commands, self._events = commands, events
        self._numbers = itertools.count(1)
        self._session: str | None = None
        self.requests: list[str] = []
        self.bytes = 0
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self._call("Page.enable")
        self._call("Network.enable")

    def show(self, *, width: int = 1280, dark: bool = False) -> None:
        """Set the width of the window and the colours of the system."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=900,
                   deviceScaleFactor=1, mobile=False)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, url: str) -> None:
        """Open a page and wait until it has loaded."""
        self._call("Page.navigate", url=url)
        self._until("Page.loadEventFired")

    def run(self, script: str) -> Any:
        """The JSON value of an expression in the page; a promise is awaited."""
        done = self._call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def press_tab(self) -> None:
        """Press the Tab key."""
        for kind in ("rawKeyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab",
                       windowsVirtualKeyCode=9)  # fmt: skip

    def picture(self, kind: str = "webp") -> bytes:
        """The page as an image, `webp` or `png`; of a very long one the beginning."""
        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], _MOST_PIXELS),
                "scale": 1}  # fmt: skip
        quality = {"quality": 60} if kind == "webp" else {}
        shot = self._call("Page.captureScreenshot", format=kind, captureBeyondViewport=True,
                          clip=clip, **quality)  # fmt: skip
        return base64.b64decode(shot["data"])

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._commands.write(json.dumps(message).encode() + b"\0")
        self._commands.flush()
        while (answer := self._read()).get("id") != number:
            pass
        assert "error" not in answer, (method, answer)
        return dict(answer["result"])

    def _until(self, event: str) -> None:
        while self._read().get("method") != event:
            pass

    def _read(self) -> dict[str, Any]:
        text = bytearray()
        while (byte := self._events.read(1)) != b"\0":
            assert byte, "the browser has ended"
            text += byte
        message: dict[str, Any] = json.loads(text)
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        elif message.get("method") == "Network.loadingFinished":
            self.bytes += int(message["params"]["encodedDataLength"])
        return message


@contextmanager
def open_page(folder: Path) -> Iterator[Page]:
    """A page of a browser of its own, with its profile in this folder."""
    program = browser()
    assert program is not None
    (theirs_in, commands), (events, theirs_out) = os.pipe(), os.pipe()
    command = [program, *_QUIET, f"--user-data-dir={folder / 'profile'}", "about:blank"]
    shell = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
    process = subprocess.Popen(
        ["bash", "-c", shell, "bash", *command],
        pass_fds=(theirs_in, theirs_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        with os.fdopen(commands, "wb") as written, os.fdopen(events, "rb") as read:
            yield Page(written, read)
    finally:
        process.terminate()
        process.wait(120)
