"""A headless Chromium by its DevTools protocol over two pipes: no library, no port, no network."""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
#: Seconds without a word after which a browser is given up.
_PATIENCE = 30
#: The browser reads commands from the descriptor 3 and answers on 4, each message ending with a zero.
_LAUNCH = 'exec "$0" "$@" 3<&{reads} 4>&{writes}'
_OPTIONS = ("--headless", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--remote-debugging-pipe",
            "--disable-background-networking", "--disable-component-update", "--disable-extensions")  # fmt: skip


def installed() -> str | None:
    """The path of the browser, None if there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@dataclass
class Tab:
    """A page under way; `requests`, `messages` are what it asked for and what its console got."""

    browser: Browser
    session: str
    requests: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, self._heard, **params)

    def _heard(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event["method"]:
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Log.entryAdded":
                self.messages.append(params["entry"]["text"])
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown":
                self.messages.append(json.dumps(params)[:500])

    def open(self, path: Path, width: int, dark: bool = False) -> None:
        """Have the page shown on a screen so wide, when it is loaded."""
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=path.as_uri())
        while self.value("document.readyState") != "complete" or self.value("location.href") == "about:blank":
            time.sleep(0.05)

    def value(self, script: str) -> Any:
        """What the expression gives in the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def comes(self, script: str, wanted: Any) -> bool:
        """Whether the expression comes to give this, once the page has heard of what was done to it."""
        until = time.monotonic() + _PATIENCE
        while (found := self.value(script)) != wanted and time.monotonic() < until:
            time.sleep(0.02)
        return bool(found == wanted)

    def pdf(self) -> bytes:
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])

    def screenshot(self, path: Path) -> None:
        data = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))


class Browser:
    """Commands and answers of one process."""

    def __init__(self, commands: int, answers: int):
        self._commands, self._answers, self._part = commands, answers, b""
        self._numbers = itertools.count(1)

    def tab(self) -> Tab:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        return Tab(self, self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])

    def call(self, method: str, session: str = "", heard: Any = None, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        for answer in self._read():
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
            if heard and answer.get("sessionId") == session and "method" in answer:
                heard(answer)
        raise AssertionError("the browser ended")

    def _read(self) -> Iterator[dict[str, Any]]:
        """The messages as they come; fails if none comes for a long time."""
        while True:
            while b"\0" not in self._part:
                ready, _, _ = select.select([self._answers], [], [], _PATIENCE)
                assert ready, "the browser says nothing"
                more = os.read(self._answers, 1 << 16)
                if not more:
                    return
                self._part += more
            message, _, self._part = self._part.partition(b"\0")
            yield json.loads(message)


@contextmanager
def launched(program: str) -> Iterator[Browser]:
    """The browser with a profile of its own, ended at the end."""
    reads, commands = os.pipe()
    answers, writes = os.pipe()
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        call = ["bash", "-c", _LAUNCH.format(reads=reads, writes=writes), program, *_OPTIONS, *root]
        process = subprocess.Popen(
            [*call, f"--user-data-dir={profile}"], pass_fds=(reads, writes), stderr=subprocess.DEVNULL
        )
        os.close(reads)
        os.close(writes)
        try:
            browser = Browser(commands, answers)
            yield browser
            browser.call("Browser.close")
        finally:
            os.close(commands)
            os.close(answers)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
