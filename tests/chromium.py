"""A headless Chromium, told what to do through a pipe in the protocol of its developer tools.

It runs in real time, as pages need that work in threads of their own; nothing beyond the standard
library is used.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from weft import doctor

CHROMIUM = next(filter(None, map(shutil.which, doctor.BROWSERS)), None)
browser = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed: `make system-packages` installs it"
)
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Whatever a page asks a network for, it does not get.
    "--host-resolver-rules=MAP * ~NOTFOUND",
]
_PIPES = (3, 4)
"""Where Chromium reads commands, and where it answers."""


class Browser:
    """One process with one page; closed at the end of a `with`."""

    def __init__(self, profile: Path) -> None:
        """Start it, with a profile of its own."""
        reads, self._writes = os.pipe()
        self._reads, writes = os.pipe()
        # Out of the way of the numbers that they get in the child.
        theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (reads, writes)]
        os.close(reads)
        os.close(writes)

        def place() -> None:
            for mine, wanted in zip(theirs, _PIPES, strict=True):
                os.dup2(mine, wanted)

        self._process = subprocess.Popen(
            [str(CHROMIUM), *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={profile}"],
            preexec_fn=place,
            pass_fds=_PIPES,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for fd in theirs:
            os.close(fd)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.said: list[str] = []
        """What the page wrote to its console, errors, and what it asked a network for."""
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        attached = self.command("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.command(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._reads)
        os.close(self._writes)

    def command(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command; what it answers."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._writes, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + 120
        while True:
            answer = self._next(end)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])
            self._hear(answer)

    def size(self, width: int, height: int, *, dark: bool = False) -> None:
        """Give the page a size in pixels, and a colour scheme."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", **metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, address: str) -> None:
        """Go to a page."""
        self.command("Page.navigate", url="about:blank")
        # The page before would answer for the next one.
        self.wait_for("location.href === 'about:blank'")
        self.command("Page.navigate", url=address)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page; of a promise, what it comes to."""
        found = self.command(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait_for(self, expression: str, seconds: float = 60) -> Any:
        """The value of an expression once it is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.evaluate(expression)
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"not within {seconds} s: {expression}; the page said {self.said}")

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Write what the page looks like as PNG; `whole`: with what is below the window."""
        found = self.command("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def _next(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._reads], [], [], max(0.0, end - time.monotonic()))
            assert ready, "chromium does not answer"
            part = os.read(self._reads, 1 << 20)
            assert part, "chromium has ended"
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(message))

    def _hear(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Runtime.consoleAPICalled":
                self.said.append(" ".join(str(one.get("value")) for one in params["args"]))
            case "Runtime.exceptionThrown":
                self.said.append(json.dumps(params["exceptionDetails"])[:500])
            case "Log.entryAdded":
                self.said.append(params["entry"]["text"])
            case "Network.requestWillBeSent":
                address = params["request"]["url"]
                if not address.startswith(("file:", "data:", "blob:", "about:")):
                    self.said.append(f"asked for {address}")
