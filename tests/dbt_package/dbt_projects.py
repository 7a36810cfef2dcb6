"""dbt as a project's user runs it, in this process: projects in a folder of the test's, and what came of each node."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import chdir, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb

from ldiv_db.database.templates import resource_folder

PACKAGE = resource_folder("sql") / "dbt"


@dataclass
class Done:
    """What a command of dbt's came to."""

    success: bool
    said: list[str]
    results: list[Any] = field(default_factory=list)

    @property
    def statuses(self) -> dict[str, str]:
        """The status of every node by its name."""
        return {result.node.name: str(result.status) for result in self.results}

    def message(self, name: str) -> str:
        """What is said of the node of that name."""
        (found,) = (result.message for result in self.results if result.node.name == name)
        return str(found)


@dataclass(frozen=True)
class Project:
    """A dbt project in a folder, with its database."""

    folder: Path
    #: The file of its database.
    file = "hospital.duckdb"

    def run(self, *words: str) -> Done:
        """dbt called with these words."""
        # Not there where these tests are skipped.
        from dbt.adapters.duckdb.connections import DuckDBConnectionManager  # noqa: PLC0415
        from dbt.cli.main import dbtRunner  # noqa: PLC0415

        said: list[str] = []
        # What is written for readers alone, and a look through the stack for each flag, take a quarter of the time.
        written = str(words[0] in ("docs", "parse")).lower()
        environment = patch.dict(os.environ, DBT_SEND_ANONYMOUS_USAGE_STATS="false", DBT_WRITE_JSON=written)
        unplaced = patch("dbt_common.behavior_flags.BehaviorFlagRendered._default_source", return_value="Unknown")
        with chdir(self.folder), environment, unplaced:
            done = dbtRunner(callbacks=[lambda event: said.append(event.info.msg)]).invoke([*words])
        DuckDBConnectionManager.close_all_connections()  # it keeps a file open until its process ends
        results = list(getattr(done.result, "results", []) or [])
        if done.exception is not None:
            said.append(str(done.exception))
        return Done(done.success, said, results)

    def write(self, name: str, text: str) -> None:
        """A file of the project."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def edit(self, name: str, old: str, new: str) -> None:
        """The file with another text in one place."""
        text = (self.folder / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, (old, text)
        self.write(name, text.replace(old, new))

    @contextmanager
    def database(self) -> Iterator[Any]:
        """A connection to the project's database."""
        with closing(duckdb.connect(str(self.folder / self.file))) as connection:
            yield connection

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with self.database() as connection:
            return list(connection.execute(sql).fetchall())

    def install(self) -> None:
        """Have the package installed, from where `ldiv dbt path` says that it is."""
        self.write("packages.yml", json.dumps({"packages": [{"local": str(PACKAGE)}]}))
        assert self.run("deps").success
