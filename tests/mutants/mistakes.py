"""The mistakes of `mistakes.toml`: one line of one file each, and the promise that it breaks."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("mistakes.toml")


@dataclass(frozen=True)
class Mistake:
    """A line that someone wrote wrong.

    `tests` are the files and folders of tests that most likely catch it, in that order; `why` says why the default
    pass does not.
    """

    name: str
    file: str
    before: str
    after: str
    promise: str
    tests: tuple[str, ...]
    why: str = ""

    def applied(self, text: str) -> str:
        """The text of the file with the mistake. Raises ValueError unless the line is there exactly once."""
        lines = text.splitlines()
        found = [number for number, line in enumerate(lines) if line.strip() == self.before]
        if len(found) != 1:
            raise ValueError(f"{self.name}: {self.file} has {len(found)} lines that read {self.before}")
        (number,) = found
        indent = lines[number][: len(lines[number]) - len(lines[number].lstrip())]
        lines[number] = indent + self.after if self.after else ""
        return "\n".join(lines) + "\n"


def read_mistakes() -> list[Mistake]:
    """All mistakes, as they are listed."""
    listed = tomllib.loads(LIST.read_text(encoding="utf-8"))
    return [Mistake(name=name, **{**told, "tests": tuple(told["tests"])}) for name, told in listed.items()]
