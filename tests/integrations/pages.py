"""`docs/how-to/orchestrators.md`: the files and commands of each tool's section, as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "orchestrators.md"
#: A fenced block, its language, and the paragraph before it.
BLOCK = re.compile(r"(?P<before>(?:^[^\n]+\n)+)\n^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`([\w./]+\.\w+)`")
COUNTRIES, DISEASES = ("Norway", "Italy", "Japan", "Korea"), ("Flu", "Cancer", "Hepatitis", "Asthma")


@dataclass(frozen=True)
class Page:
    """A section's files by their paths, with those that stand before all sections, and its commands in their order."""

    files: dict[str, str]
    commands: list[str]

    @staticmethod
    def read(tool: str) -> Page:
        files, commands = {}, []
        shared, *sections = PAGE.read_text(encoding="utf-8").split("\n## ")
        (section,) = (text for text in sections if text.startswith(f"{tool}\n"))
        for block in BLOCK.finditer(f"{shared}\n{section}"):
            path = FILE.match(block["before"])
            if block["language"] == "sh":
                commands.append(block["text"])
            else:
                assert path, f"a block on {tool} belongs to no file:\n{block['text']}"
                files[path[1]] = block["text"]
        return Page(files, commands)


@dataclass(frozen=True)
class Project:
    """A folder with a section's files and a warehouse, and this environment's programs to call there."""

    folder: Path
    page: Page
    settings: dict[str, str]

    @staticmethod
    def of(folder: Path, tool: str, **settings: str) -> Project:
        """The project of a tool's section; `settings` are environment variables."""
        project = Project(folder, Page.read(tool), settings)
        for path, text in project.page.files.items():
            project.write(path, text)
        project.fill(DISEASES)
        return project

    def write(self, path: str, text: str) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text, encoding="utf-8")

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.folder / "warehouse.duckdb")) as con:
            return con.execute(text).fetchall()

    def fill(self, diseases: tuple[str, ...]) -> None:
        """24 patients in `raw.patients`, with these diseases in turn; releases of others are withdrawn."""
        rows = [
            (f"P{i}", 20 + i * 7 % 40, COUNTRIES[i % 4], diseases[i // 2 % len(diseases)], f"W{i % 2}")
            for i in range(24)
        ]
        with duckdb.connect(str(self.folder / "warehouse.duckdb")) as con:
            con.execute("CREATE SCHEMA IF NOT EXISTS raw")
            con.execute(
                "CREATE OR REPLACE TABLE raw.patients"
                " (name VARCHAR, age INTEGER, country VARCHAR, disease VARCHAR, ward VARCHAR)"
            )
            con.executemany("INSERT INTO raw.patients VALUES (?, ?, ?, ?, ?)", rows)
            if con.execute("SELECT 1 FROM duckdb_tables() WHERE schema_name = 'ldiv'").fetchone():
                con.execute("UPDATE ldiv.run SET status = 'withdrawn'")

    def release(self) -> list[tuple[Any, ...]]:
        return self.sql("SELECT * FROM published.patients ORDER BY ALL")

    def runs(self) -> int:
        """How many runs the ledger has."""
        return int(self.sql("SELECT count(*) FROM ldiv.run")[0][0])

    def call(self, command: str) -> subprocess.CompletedProcess[str]:
        """What a shell makes of a command of the page, with the programs beside this Python."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        where = {**os.environ, **self.settings, "PATH": path}
        words = ["bash", "-euo", "pipefail", "-c", command]
        return subprocess.run(words, cwd=self.folder, env=where, capture_output=True, text=True, check=False)

    def does(self, command: str) -> str:
        """As `call`, of a command that must succeed: all that it printed."""
        done = self.call(command)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr
