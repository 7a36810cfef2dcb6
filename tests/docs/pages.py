"""The pages of `docs/` and the READMEs of the program: their code blocks, and how they are run.

What stands before a block, in a comment that readers do not see, says how it is tested:

| comment | the block |
|---|---|
| `<!-- needs: Snowflake -->` | is not run: commands are parsed, policies and JSON are read |
| `<!-- exits: 1 -->` | is a command that ends with this code |
| `<!-- clinic -->`, once a page | the page starts with the tutorial's tables and the policy of `how-to/warehouse.md` |

A block with `title="policy.yml"` is written to that file. A `text` block is what the command before it prints: lines in
this order, `…` for what is left out.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from ldiv_db.commands.cli import app

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
#: The site's first page is README's.
PAGES = [ROOT / "README.md", ROOT / "ldiv_db" / "README.md", *sorted({*DOCS.rglob("*.md")} - {DOCS / "index.md"})]
CLINIC = "<!-- clinic -->"
_BLOCK = re.compile(
    r"(?:^<!-- (?P<rule>needs|exits): (?P<value>[^>\n]+) -->\n\n?)?"
    r'^```(?P<language>\w*)(?: title="(?P<title>[^"\n]+)")?\n(?P<text>.*?)^```$',
    re.MULTILINE | re.DOTALL,
)
#: What a shell does with words before a program sees them; `ldiv` alone is called in this process.
_SHELL = re.compile(r"[|<>&;$`*]")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `line` is where it begins, from 1."""

    language: str
    text: str
    line: int
    title: str | None = None
    needs: str | None = None
    exits: int = 0

    @property
    def commands(self) -> list[str]:
        """The commands of a shell block: lines that end in a backslash are one with the next."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    for found in _BLOCK.finditer(text):
        rule = {found["rule"]: found["value"]} if found["rule"] else {}
        line = text.count("\n", 0, found.start("text"))
        code = int(rule.get("exits", 0))
        yield Block(found["language"], found["text"], line, found["title"], rule.get("needs"), code)


def read(page: Path) -> list[Block]:
    return list(blocks(page.read_text(encoding="utf-8")))


def words_of(command: str) -> list[str]:
    """A command's words, without the comment at its end."""
    return shlex.split(command, comments=True)


def is_plain(command: str) -> bool:
    """Whether a command is a call of `ldiv` that leaves nothing to a shell."""
    unquoted = re.sub(r"'[^']*'|#.*$", "", command)
    return command.startswith("ldiv ") and not _SHELL.search(unquoted)


@dataclass
class Reader:
    """Somebody who follows a page in a folder of their own, from the first block to the last."""

    folder: Path
    names: dict[str, Any] = field(default_factory=dict)
    printed: str = ""

    def start_clinic(self) -> None:
        """The tutorial's tables, and the policy of a table of patients."""
        for page in ("tutorial.md", "how-to/warehouse.md"):
            for block in read(DOCS / page):
                if block.title in ("make_clinic.py", "policy.yml"):
                    self.write(block)
        self.shell("python3 make_clinic.py", 0)

    def write(self, block: Block) -> None:
        assert block.title
        path = self.folder / block.title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")

    def shell(self, command: str, code: int) -> None:
        """A command as a shell runs it, with the programs beside this Python; it must end with `code`."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        words = ["bash", "-euo", "pipefail", "-c", command]
        done = subprocess.run(
            words, cwd=self.folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
        )
        self.printed += done.stdout + done.stderr
        assert done.returncode == code, f"{command}\n{done.stdout}{done.stderr}"

    def call(self, command: str, code: int) -> None:
        """A command of ours, in this process, in the current folder."""
        result = CliRunner().invoke(app, words_of(command)[1:], prog_name="ldiv")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        self.printed += result.output
        assert result.exit_code == code, f"{command}\n{result.output}"

    def run(self, block: Block) -> None:
        """A block of Python, or of the shell: calls of `ldiv` alone one by one in this process, others by a shell."""
        self.printed = ""
        if block.language == "python":
            caught = StringIO()
            with redirect_stdout(caught):
                exec(compile("\n" * (block.line - 1) + block.text, "page", "exec"), self.names)
            self.printed = caught.getvalue()
            return
        if not all(map(is_plain, block.commands)):
            self.shell(block.text, block.exits)
            return
        for number, command in enumerate(block.commands, 1):
            self.call(command, block.exits if number == len(block.commands) else 0)


def differs(shown: str, printed: str) -> str | None:
    """The first line of `shown` that `printed` does not have in its place; None if all are there.

    Blanks count as one: how wide columns are depends on what else is in a table.
    """
    rest = [" ".join(line.split()) for line in printed.splitlines()]
    for line in (" ".join(line.split()) for line in shown.splitlines()):
        if not line.strip(" …"):
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in line.split("…")))
        places = [number for number, other in enumerate(rest) if pattern.fullmatch(other)]
        if not places:
            return line
        rest = rest[places[0] + 1 :]
    return None
