"""Cross-tables of a release: a cell's counts by sensitive values, added up here from its rows, are the source's."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from typing import Any

import oracle
import pytest
from hypothesis import example
from strategies import search, seeded, some
from tables import fill

import ldiv_db
from ldiv_db import AuditError, PolicyError
from ldiv_db.publishing.draft import write_rows

COLUMNS = {"sex": "VARCHAR", "zip": "VARCHAR", "age": "INTEGER", "dx": "VARCHAR"}
REQUIREMENTS: list[dict[str, Any]] = [{"k": 3}, {"frequency": 2}, {"distinct": 2}, {"entropy": 2}]


def people(draw: random.Random, count: int) -> list[tuple[Any, ...]]:
    """People whose diagnoses depend on where they live, so that some cells are bad."""
    zips = [None, "1a", "1b", "2a", "2b", "3a"]
    rows = [(draw.choice("mf"), draw.choice(zips), draw.randint(20, 60)) for _ in range(count)]
    return [(*row, draw.choice(draw.choice(["uv", "uvwx", row[1] or "u"]))) for row in rows]


def policy(require: Any, **more: Any) -> dict[str, Any]:
    return {
        "source": "people", "target": {"table": "published", "if_exists": "replace"},
        "quasi_identifiers": {"sex": {}, "zip": {"taxonomy": {"prefix": [2, 1]}}, "age": {"numeric": True}},
        "sensitive": ["dx"], "require": require, "tables_of": [["sex"], ["zip", "sex"]], "seed": 3, **more,
    }  # fmt: skip


def published(con: Any) -> list[tuple[Any, ...]]:
    return sorted(con.execute("SELECT sex, zip, age, dx FROM published").fetchall(), key=str)


def by_cell(rows: Any) -> dict[Any, Counter[Any]]:
    """The counts of the values of the last column by the first two."""
    found = defaultdict(Counter)
    for sex, zip_, *_, dx in rows:
        found[sex, zip_][dx] += 1
    return found


@pytest.mark.parametrize("seed", some([5, 7, *range(20, 50)], 2))
def test_counts_of_cells_are_exact_or_of_cells_that_were_merged(con: Any, seed: int) -> None:
    draw = random.Random(seed)
    rows, asked = people(draw, draw.randint(20, 70)), draw.sample(REQUIREMENTS, draw.randint(1, 2))
    fill(con, "people", COLUMNS, rows)
    more = {
        "algorithm": draw.choice(["topdown", "auto", "mondrian", "peel", "bsgi"]),
        "recode": draw.choice(["tree", "set"]),
    }
    found = ldiv_db.run(con, policy(asked, **more))
    release, counts, labels = published(con), by_cell(rows), by_cell(published(con))
    exact = {cell for cell in counts if cell in labels}
    assert {cell: labels[cell] for cell in exact} == {cell: counts[cell] for cell in exact}
    assert Counter(row[-1] for row in release) == Counter(row[-1] for row in rows)
    told = found.search["tables_of"]
    assert told["tables"][1] == {"columns": ["zip", "sex"], "cells": len(counts), "exact": len(exact)}
    assert told["merged"] == len(counts) - len(exact) and told["cells"] == len(exact) + told["merged_into"]

    assert all(good(asked, values) for values in labels.values())
    assert not told["merged"] or not all(good(asked, values) for values in counts.values())
    mixed = {sex for sex, _ in labels if sex not in "mf"}
    assert told["tables"][0]["exact"] == (0 if mixed else len({sex for sex, _ in counts}))
    assert_answers(con, policy(asked, **more), counts, exact)


def assert_answers(con: Any, asked: dict[str, Any], counts: dict[Any, Counter[Any]], exact: set[Any]) -> None:
    """What is asked of the release is exact of cells under their values, and of all others between bounds."""
    found = ldiv_db.ask(con, "published", "SELECT sex, zip, count(*) FROM t WHERE dx <> 'u' GROUP BY ALL", asked)
    assert found.left_out == 0 and "tables_of" in found.notes[-1]
    others = {cell: values.total() - values["u"] for cell, values in counts.items()}
    told = {cell: bounds for cell, (bounds,) in found.groups}
    assert all(bounds.low <= others.get(cell, 0) <= bounds.high for cell, bounds in told.items())
    assert {cell for cell in exact if others[cell]} <= {cell for cell in told if found.is_exact(told[cell])}
    wide = ldiv_db.ask(con, "published", "SELECT count(*) FROM t WHERE zip LIKE '1%' AND sex = 'm'", asked)
    truth = sum(values.total() for cell, values in counts.items() if cell[0] == "m" and (cell[1] or "")[:1] == "1")
    assert wide.groups[0][1][0].low <= truth <= wide.groups[0][1][0].high


@example(draw=random.Random(18))
@search(1, draw=seeded)
def test_no_cell_is_merged_that_others_need_not(con: Any, draw: random.Random) -> None:
    rows, asked = people(draw, draw.randint(20, 50)), [draw.choice(REQUIREMENTS)]
    fill(con, "people", COLUMNS, rows)
    counts, recode = by_cell(rows), draw.choice(["tree", "set"])
    plan = ldiv_db.plan(con, policy(asked, algorithm="topdown", recode=recode), show_values=True)
    for label, cells in groups(plan.notes):
        assert good(asked, total(counts, cells)) and all(below(cell, label) for cell in cells)
        spare = [cell for cell in cells if good(asked, counts[cell])]
        assert not any(good(asked, total(counts, cells - {cell})) for cell in spare)


def good(asked: Any, values: Counter[Any]) -> bool:
    every = list(values.elements())
    return all(oracle.class_is_good(every, *item) for one in asked for item in one.items())


def groups(notes: Any) -> Any:
    """The label and the cells of those that were merged, as a run tells them."""
    for note in notes:
        if found := re.match(r"tables_of: one is sex: (.*), zip: (.*), of \d+ rows? of (.*)", note):
            *label, cells = found.groups()
            yield tuple(map(read, label)), {tuple(map(read, cell.split(" x "))) for cell in cells.split(", ")}


def read(text: str) -> str | None:
    return None if text == "NULL" else text


def total(counts: Any, cells: Any) -> Counter[Any]:
    return sum((counts[cell] for cell in cells), Counter())


def below(cell: tuple[Any, ...], label: tuple[Any, ...]) -> bool:
    """Whether a label covers the values of a cell."""
    return all(
        shown in (value, "*", f"{(value or '')[:1]}*")
        or (str(shown).startswith("{") and (value or "NULL") in shown[1:-1].split(", "))
        for value, shown in zip(cell, label, strict=True)
    )


@pytest.mark.parametrize("algorithm", some(["bsgi", "peel"]))
def test_cells_are_parts_of_other_algorithms(con: Any, algorithm: str) -> None:
    """Of one cell `bsgi` cannot make classes of five different values, and `peel` makes one class."""
    rows = [("m", "1a", 20 + n, dx) for n, dx in enumerate("abcde" * 4)]
    rows += [("f", "1a", 20 + n, dx) for n, dx in enumerate("uuvvww")]
    fill(con, "people", COLUMNS, rows)
    found = ldiv_db.run(con, policy([{"k": 5}, {"frequency": 3}], algorithm=algorithm))
    assert by_cell(published(con)) == by_cell(rows)
    assert any(note.startswith("topdown makes the classes of 1 of 2 cells") for note in found.notes) == (
        algorithm == "bsgi"
    )


def narrow(task: Any, plan: Any) -> Any:
    """In place of `of_cells`: each class is published under labels of its own."""
    return plan


def swapped(engine: Any, where: Any, *given: Any) -> str:
    """In place of `write_rows`: what is kept of rows of two cells has changed places."""
    told = write_rows(engine, where, *given)
    engine.execute(f"UPDATE {where.sql()} SET note = 12 - note WHERE note IN (4, 8)")
    return told


@pytest.mark.parametrize(
    ("place", "fault", "said"),
    [
        ("ldiv_db.solving.solve.of_cells", narrow, "rows of 1 cell of tables_of stand under several labels"),
        ("ldiv_db.publishing.draft.write_rows", swapped, "not what cells were counted in: 4 of the counts"),
    ],
)
def test_a_release_whose_counts_of_cells_are_not_the_sources_is_not_published(
    con: Any, monkeypatch: Any, place: str, fault: Any, said: str
) -> None:
    """Of `1a` and `1b`, merged, the young are all of `1a`; what is kept is counted as well."""
    rows = [(sex, zip_, age, dx) for sex, zip_ in (("m", "1a"), ("f", "2a")) for age in (20, 40) for dx in "uvw"]
    rows += [("m", "1b", 40, "u")]
    fill(con, "people", COLUMNS | {"note": "INTEGER"}, [(*row, note) for note, row in enumerate(rows)])
    monkeypatch.setattr(place, fault)
    with pytest.raises(AuditError, match=said):
        ldiv_db.run(con, policy([{"frequency": 2}], algorithm="topdown", keep=["note"]))
    assert not con.execute("FROM duckdb_tables() WHERE table_name = 'published'").fetchall()


def test_a_check_holds_cells_to_the_source_and_says_if_it_cannot(con: Any) -> None:
    rows = [(sex, zip_, age, dx) for sex in "mf" for zip_ in ("1a", "2a") for age in (20, 40) for dx in "uvw"]
    fill(con, "people", COLUMNS, [*rows, ("f", "1b", 40, "u")])
    asked = policy([{"frequency": 2}], algorithm="topdown")
    ldiv_db.run(con, asked)
    con.execute("CREATE TABLE whole AS FROM published")
    assert ldiv_db.check(con, "published", policy=asked)[0].warnings == ()
    one = "sex = 'm' AND zip = '1a' AND age = (SELECT min(age) FROM published) AND dx = 'v'"
    for change in (f"dx = 'u' WHERE {one}", "zip = '1a' WHERE zip = '1*'"):
        con.execute(f"CREATE OR REPLACE TABLE published AS FROM whole; UPDATE published SET {change}")
        with pytest.raises(AuditError, match=r"other counts of . cells? of tables_of than the source"):
            ldiv_db.check(con, "published", policy=asked)
    con.execute("DROP TABLE people")
    assert "were not checked" in ldiv_db.check(con, "published", policy=asked)[0].warnings[0]


def test_a_release_is_the_same_for_any_order_of_rows_and_threads(con: Any) -> None:
    rows, releases = people(random.Random(5), 25), []
    for threads, order in ((1, rows), (2, rows[::-1])):
        con.execute(f"SET threads = {threads}")
        fill(con, "people", COLUMNS, order)
        ldiv_db.run(con, policy([{"frequency": 2}], algorithm="topdown"))
        releases.append(published(con))
    assert releases[0] == releases[1]


@pytest.mark.parametrize(
    ("tables", "what"),
    [
        ([["dx"]], "'dx' is no quasi-identifier"),
        ([["sex", "zip"], ["age"]], "names every quasi-identifier"),
    ],
)
def test_tables_of_other_columns_are_refused(con: Any, tables: Any, what: str) -> None:
    fill(con, "people", COLUMNS, people(random.Random(1), 30))
    with pytest.raises(PolicyError, match=what):
        ldiv_db.plan(con, policy([{"k": 3}], tables_of=tables))


def test_plans_runs_and_reports_tell_cells_by_counts_and_values_if_they_may(con: Any) -> None:
    rows = [(sex, "1a", age, dx) for sex in "mf" for age in range(20, 30) for dx in "uvw"] + [("m", "1b", 20, "u")]
    fill(con, "people", COLUMNS, rows)
    told = [
        "tables_of: 2 of 2 cells of sex are exact",
        "tables_of: 1 of 3 cells of zip x sex are exact",
        "tables_of: 2 cells that cannot meet the policy, or joined one that cannot, are 1",
    ]
    asked = policy([{"frequency": 2}], algorithm="topdown")
    shown = "tables_of: one is sex: m, zip: 1*, of 31 rows of m x 1a, m x 1b"
    for call, more in ((ldiv_db.plan, []), (ldiv_db.run, [shown])):
        notes = call(con, asked, show_values=bool(more)).notes
        assert [note for note in notes if note.startswith("tables_of")] == told + more
    data = ldiv_db.report(con, "published", policy=asked, queries=1, tries=1).document["data"]
    assert data["tables_of"] == {"columns": ["sex", "zip"], "exact": 1, "rows": 30, "as_in_source": 1}
