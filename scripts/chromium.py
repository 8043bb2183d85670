"""A headless Chromium over its debugging pipe, for looking at pages; needs the `chromium` program and nothing else."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_COMMANDS, _ANSWERS = 3, 4  # the file descriptors that --remote-debugging-pipe speaks on
_NAMES = ("chromium", "chromium-browser", "google-chrome")


class Browser:
    """One tab."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._numbers = itertools.count(1)
        self._rest = b""
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and return its answer; events in between are dropped."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            read = os.read(self._answers, 1 << 20)
            if not read:
                raise RuntimeError("chromium went away")
            self._rest += read
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def open(self, url: str, *, width: int, height: int, dark: bool, scale: float = 1, wait_s: float = 0.3) -> None:
        """Show a page in a window of so many CSS pixels, and wait until it is there."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=url)
        while self.run("document.readyState + location.href") != "complete" + url:
            time.sleep(0.05)
        time.sleep(wait_s)

    def run(self, script: str) -> Any:
        """Return the value of an expression on the page."""
        return self.call("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def screenshot(self, *, top: float = 0, height: float | None = None) -> bytes:
        """Return the page as PNG: all of it, or a part from `top` on."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": top, "width": size["width"], "height": height or size["height"] - top, "scale": 1}
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(answer["data"])


@contextmanager
def browser() -> Iterator[Browser]:
    """Start Chromium and end it again."""
    program = next((found for name in _NAMES if (found := shutil.which(name))), None)
    if program is None:
        raise SystemExit("chromium is missing; on Debian: apt-get install chromium")
    from_us, to_us = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [
                "sh",
                "-c",
                f'exec {_COMMANDS}<&{from_us[0]} {_ANSWERS}>&{to_us[1]} "$@"',
                "sh",
                program,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--remote-debugging-pipe",
                f"--user-data-dir={profile}",
            ],
            pass_fds=(from_us[0], to_us[1]),
            stderr=subprocess.DEVNULL,
        )
        os.close(from_us[0])
        os.close(to_us[1])
        try:
            yield Browser(from_us[1], to_us[0])
        finally:
            process.terminate()
            process.wait()
            os.close(from_us[1])
            os.close(to_us[0])
