"""The release of each cell, made once in a process, and what the promises ask of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import servers
from hypothesis import settings

import ldiv_db
from tests.promises.cells import Cell, Row, covering, diagonal, members, rows_of, tables_of
from tests.promises.homes import Home

#: Columns of what is published that are no labels.
NO_LABELS = {"class_id", "dx", "note", "nr", "who", "stay", "position", "group_id", "age_mean"}


class Release:
    """What runs of a cell gave: a result and what was published by night, the last of which is there still."""

    def __init__(self, cell: Cell, folder: Path):
        self.cell, self.home = cell, Home(cell, folder)
        self.results, self.nights = [], []
        for night in range(2 if cell.time == "series" else 1):
            self.home.place(rows_of(cell)[: 12 * (night + 1)])
            seen: list[Any] = []
            listener = ldiv_db.Listener(on_statement=seen.append)
            self.results.append(ldiv_db.run(self.home.connection, self.home.asked(), folder, listener))
            self.statements, self.writes = len(seen), _first_write(seen)
            self.nights.append(self.home.published())

    @property
    def result(self) -> Any:
        return self.results[-1]

    @property
    def decomposes(self) -> bool:
        return self.cell.form == "decomposition"

    @cached_property
    def source(self) -> list[Row]:
        """The rows of the source, each as often as it counts."""
        tables, _ = tables_of(self.cell, rows_of(self.cell))
        (rows, *_) = tables.values()
        return [row for row in rows for _ in range(row.get("n", 1))]

    @cached_property
    def rows(self) -> list[Row]:
        """The published rows with their value; of a decomposition those of the last night, whose groups have values."""
        shown = self.nights[-1]
        return shown[f"pub_{len(self.nights)}_qid"] if self.decomposes else shown["stays"]

    @cached_property
    def origin(self) -> dict[str, Row]:
        """The row of the source of each note, which tells whose a published row is."""
        return {row["note"]: row for row in self.source}

    @cached_property
    def attacks(self) -> Any:
        asked = {"policy": self.home.judged(), "folder": self.home.folder}
        if self.cell.tables == "several":
            return ldiv_db.attack(self.home.connection, **asked).attacks
        with self.home.reading(f"pub_{len(self.nights)}_qid" if self.decomposes else "stays") as (con, table):
            return ldiv_db.attack(con, table, **asked).attacks

    def unit(self, row: Row, place: int) -> Any:
        """Whose a published row is: a person's, or its own."""
        return place if self.cell.unit == "row" else self.origin[row["note"]]["who"]

    @cached_property
    def classes(self) -> dict[Any, list[tuple[Any, Any]]]:
        """The pairs (unit, value) of each class, as who reads the release tells classes apart."""
        if self.decomposes:
            values = defaultdict(list)
            for row in self.nights[-1][f"pub_{len(self.nights)}_sa"]:
                values[row["group_id"]].append(row["dx"])
            return {group: list(enumerate(some)) for group, some in values.items()}
        sex = {row.get("who"): row["sex"] for row in self.nights[-1].get("patients", ())}
        shown = defaultdict(list)
        for row in sorted(self.rows, key=lambda row: row.get("position", 0)):
            shown[self.pseudonym(row)].append(labels_of(row))
        found = defaultdict(list)
        for place, row in enumerate(self.rows):
            whole = tuple(shown[self.pseudonym(row)]) if self.cell.unit == "aligned" else labels_of(row)
            key = (whole, row.get("class_id"), sex.get(row.get("who")))
            found[key] += [(self.unit(row, place), value) for value in members(self.cell, row["dx"])]
        return found

    def pseudonym(self, row: Row) -> Any:
        return row.get("nr", row.get("who", row["note"]))


def _first_write(seen: list[Any]) -> int:
    """The number of the statement that first writes what is published, or what it is moved from."""
    names = [statement.template for statement in seen]
    return next((place for place, name in enumerate(names) if name.startswith("recoding/publish")), len(names) // 2)


def labels_of(row: Row) -> tuple[Any, ...]:
    return tuple(repr(value) for name, value in row.items() if name not in NO_LABELS)


def pytest_generate_tests(metafunc: Any) -> None:
    """The promises of a cell are asked together, as its release is made once."""
    if "release" not in metafunc.fixturenames:
        return
    which = getattr(metafunc.function, "cells", bool)
    first, step = getattr(metafunc.function, "turn", (0, 1))
    is_whole = settings.get_current_profile_name() != "default"
    cells = [cell for cell in (covering() if is_whole else diagonal()[first::step]) if which(cell)]
    marks = {"postgres": [pytest.mark.engines, pytest.mark.xdist_group("postgres")]}
    listed = [pytest.param(cell, id=cell.id, marks=marks.get(cell.place, [])) for cell in cells]
    metafunc.parametrize("release", listed, indirect=True, scope="session")


@pytest.fixture(scope="session")
def release(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    cell = request.param
    if cell.place == "postgres" and (lacks := servers.missing("postgres")) and not servers.required("postgres"):
        pytest.skip(lacks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ldiv_db.running.run.published_again", lambda *given: None)
        made = Release(cell, tmp_path_factory.mktemp("cell"))
    yield made
    made.home.close()
