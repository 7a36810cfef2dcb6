"""A server of MariaDB, which speaks MySQL's protocol: one a process, on a socket in a folder of its own."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

_PROGRAMS = ("mariadbd", "mariadb-install-db", "mariadb", "mariadb-admin")


def missing() -> str | None:
    """What is not installed, None if the server can be started."""
    lacks = [name for name in _PROGRAMS if _program(name) is None]
    return f"MySQL is not tested: {', '.join(lacks)} is not installed" if lacks else None


def _program(name: str) -> str | None:
    """A program of the server's, which may be out of the path of a user."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


@functools.cache
def started() -> Path:
    """The socket of the server, which is stopped when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="my", dir="/tmp"))  # a socket's path may have 107 bytes
    # A server that starts removes the temporary tables it finds where its own would be, also another server's.
    own = [f"--datadir={folder}/data", f"--tmpdir={folder}/temporary"]
    (folder / "temporary").mkdir()
    if os.geteuid() == 0:
        own.append("--user=nobody")
        for place in (folder, folder / "temporary"):
            shutil.chown(place, "nobody")
    made = [str(_program("mariadb-install-db")), "--no-defaults", *own, "--auth-root-authentication-method=normal"]
    subprocess.run([*made, "--skip-test-db"], check=True, stdout=subprocess.DEVNULL)
    socket = folder / "socket"
    words = ["--no-defaults", *own, f"--socket={socket}", f"--pid-file={folder}/pid", "--skip-networking"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen([str(_program("mariadbd")), *words], stdout=log, stderr=log)
    atexit.register(_stop, server, folder)
    for _ in range(300):
        if not subprocess.run([*_client("mariadb-admin", socket), "ping"], capture_output=True, check=False).returncode:
            return socket
        if server.poll() is not None:
            break
        time.sleep(0.2)
    raise RuntimeError((folder / "log").read_text()[-2000:])


def ask(text: str, database: str = "") -> list[tuple[str, ...]]:
    """The rows of statements as the server itself runs them, all values as text."""
    words = [*_client("mariadb", started()), "--default-character-set=utf8mb4", "-N", "-B", database]
    found = subprocess.run([word for word in words if word], input=text, capture_output=True, text=True, check=True)
    return [tuple(line.split("\t")) for line in found.stdout.splitlines()]


def _client(program: str, socket: Path) -> list[str]:
    return [str(_program(program)), "--no-defaults", f"--socket={socket}", "--user=root"]


def _stop(server: subprocess.Popen[bytes], folder: Path) -> None:
    server.terminate()
    server.wait(60)
    shutil.rmtree(folder, ignore_errors=True)
