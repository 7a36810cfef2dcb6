"""One table that every night adds its classes to: whatever forms them, nobody's class changes, and each is good."""

from __future__ import annotations

import random
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import duckdb
import oracle
import pytest
from refusals import refuses
from strategies import some
from tables import fill

import ldiv_db
from ldiv_db import PolicyError

COLUMNS = {"id": "INTEGER", "age": "INTEGER", "zip": "VARCHAR", "s": "VARCHAR"}
AGES = {"taxonomy": {"ranges": [5, 20]}}
#: What each algorithm is asked, by which the oracle judges.
ASKED = {
    "mondrian": ("entropy", 2), "topdown": ("k", 4), "auto": ("frequency", 3), "peel": ("distinct", 3),
    "stratified": ("frequency", 2), "tp": ("frequency", 2), "bsgi": ("unique_distinct", 3),
}  # fmt: skip
CHEAP = {"bsgi": {"name": "bsgi", "select": "bisect"}}


def policy_of(algorithm: str, **changes: Any) -> dict[str, Any]:
    name, parameter = ASKED[algorithm]
    return {
        "source": "people", "target": {"table": "out"}, "key": "id",
        "quasi_identifiers": {"age": AGES, "zip": {"taxonomy": {"prefix": [2, 1]}}}, "sensitive": ["s"],
        "require": [{name: parameter}], "algorithm": CHEAP.get(algorithm, algorithm),
    } | changes  # fmt: skip


@pytest.fixture
def forty(con: Any) -> Any:
    """A connection with forty people."""
    fill(con, "people", COLUMNS, people(random.Random(1), 0, 40))
    return con


def people(draw: random.Random, start: int, count: int) -> list[tuple[int, int, str, str]]:
    """People of whom a third have one value."""
    return [
        (start + i, draw.randrange(60), f"{draw.randrange(20):02d}", draw.choice("aaabbcdef")) for i in range(count)
    ]


def classes_of_keys(con: Any) -> dict[str, int]:
    """The class of everybody who was published, by the ledger; nobody is in two."""
    rows = con.execute("SELECT key_hash, group_id FROM ldiv.release_member WHERE group_id IS NOT NULL").fetchall()
    assert len(dict(rows)) == len(rows)
    return dict(rows)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ASKED)
def test_classes_stay_whatever_formed_them_and_all_are_good(con: Any, algorithm: str) -> None:
    draw, policy = random.Random(algorithm), policy_of(algorithm)
    rows, before, seen = people(draw, 0, 60), [], {}
    for night, arriving in enumerate((0, 30, 1, 25)):
        rows = [
            (key, age, place, "a" if draw.random() < 0.05 else s) for key, age, place, s in rows if draw.random() > 0.05
        ]
        rows += people(draw, 1000 * (night + 1), arriving)
        fill(con, "people", COLUMNS, rows)
        figures = ldiv_db.run(con, policy).figures
        table = con.execute("FROM out").fetchall()
        assert table[: len(before)] == before, "what was published stays, label for label and value for value"
        now = classes_of_keys(con)
        assert seen.items() <= now.items()
        assert len(table) == figures["rows_of_table"] == figures["rows_published"] + figures["counterfeits"]
        assert len(table) == len(now)
        assert figures["rows_in"] == figures["rows_published"] + figures["rows_waiting"]
        class_id, s = (
            ([c[0] for c in con.execute("DESCRIBE out").fetchall()]).index(name) for name in ("class_id", "s")
        )
        assert not oracle.violations([(row[class_id], row[s]) for row in table], *ASKED[algorithm])
        before, seen = table, now
    assert figures["release"] == 4 and figures["groups_new"]


@pytest.mark.parametrize("algorithm", some(["bsgi", "topdown", "decomposition_plus"]))
def test_a_run_with_a_key_is_the_next_release_and_its_plan_says_what_that_has(con: Any, algorithm: str) -> None:
    draw, policy = random.Random(2), policy_of("bsgi" if algorithm == "decomposition_plus" else algorithm, seed=1)
    if algorithm == "decomposition_plus":
        policy |= {"algorithm": algorithm, "quasi_identifiers": ["age", "zip"], "target": {"prefix": "out"}}
        policy |= {"sensitive": {"s": {"l": 3}}, "require": []}
    rows = people(draw, 0, 24)
    for night in range(2):
        fill(con, "people", COLUMNS, rows)
        planned = ldiv_db.plan(con, policy) if night else None
        assert len(con.execute("SELECT release FROM ldiv.release").fetchall() if night else []) == night
        done = ldiv_db.run(con, policy)
        assert done.figures["release"] == night + 1 and done.audits
        rows = [row for row in rows if draw.random() > 0.1] + people(draw, 1000 * (night + 1), 15)
    assert "nothing was written" in planned.notes[0] and not planned.audits and str(planned)
    same = planned.figures.keys() - {"seconds"}
    assert {name: planned.figures[name] for name in same} == {name: done.figures[name] for name in same}


@pytest.mark.slow
@pytest.mark.parametrize("forgets", [False, True])
def test_no_key_of_the_ledger_may_be_forgotten(con: Any, forgets: bool) -> None:
    """Somebody who left and comes back would be in two classes, and has what both of them have."""
    policy = policy_of("topdown", require=[{"frequency": 2}], quasi_identifiers={"age": {"numeric": True}, "zip": {}})
    for night, rows in enumerate([[(1, "a"), (2, "b")], [(2, "b")], [(1, "a"), (2, "b"), (9, "c")]]):
        fill(con, "people", COLUMNS, [(key, 20, "00", s) for key, s in rows])
        if night == 2 and forgets:
            con.execute(
                "DELETE FROM ldiv.release_member WHERE key_hash IN"
                " (SELECT sha256(concat(s.secret, ':', 1)) FROM ldiv.series_secret AS s)"
            )
        ldiv_db.run(con, policy)
    shown = con.execute("SELECT list(s ORDER BY s) FROM out GROUP BY class_id ORDER BY class_id").fetchall()
    of_the_first = set.intersection(*(set(values) for (values,) in shown))  # both classes have the only new key, 1
    assert (shown, of_the_first) == (
        ([(["a", "b"],), (["a", "c"],)], {"a"}) if forgets else ([(["a", "b"],)], {"a", "b"})
    )


def test_a_plan_leaves_it_to_a_run_to_settle_what_was_cut_off(forty: Any) -> None:
    with refuses("kl"):  # a divergence is of one release
        ldiv_db.run(forty, policy_of("mondrian"), kl=True)
    ldiv_db.run(forty, policy_of("mondrian"))
    forty.execute("UPDATE ldiv.release SET status = 'started'")
    with pytest.raises(PolicyError, match="release 1 of out is under way, or was cut off"):
        ldiv_db.plan(forty, policy_of("mondrian"))


@pytest.mark.slow
def test_a_class_has_the_values_of_the_people_who_are_in_it(con: Any) -> None:
    """By everybody's class and the values they had when they were published; the counterfeits are those who left."""
    draw, had = random.Random(3), {}
    rows = people(draw, 0, 40)
    for _ in range(2):
        fill(con, "people", COLUMNS, rows)
        ldiv_db.run(con, policy_of("mondrian"))
        found = con.execute(
            "SELECT p.id, m.group_id FROM ldiv.release_member AS m JOIN ldiv.series_secret AS s USING (series)"
            " JOIN people AS p ON m.key_hash = sha256(concat(s.secret, ':', p.id)) WHERE m.group_id IS NOT NULL"
        ).fetchall()
        values = {row[0]: row[3] for row in rows}
        had |= {key: (group, values[key]) for key, group in found if key not in had}
        expected = defaultdict(list)
        for group, value in had.values():
            expected[group].append(value)
        shown = con.execute("SELECT class_id, list(s ORDER BY s) FROM out GROUP BY 1").fetchall()
        assert dict(shown) == {group: sorted(listed) for group, listed in expected.items()}
        rows = [row for row in rows if draw.random() > 0.1] + people(draw, 1000, 15)


@pytest.mark.slow
def test_runs_with_and_without_a_key_are_held_against_each_other(forty: Any) -> None:
    alone = {name: said for name, said in policy_of("topdown").items() if name != "key"} | {"identifiers": ["id"]}
    run_id = ldiv_db.run(forty, alone).run_id
    with pytest.raises(PolicyError, match=f"run {run_id} published this source without a key"):
        ldiv_db.run(forty, policy_of("topdown", target="over_time"))
    independent = policy_of("topdown", target="over_time", over_time="independent")
    first = ldiv_db.run(forty, independent)
    assert first.figures["release"] == 1 and f"run {run_id} published this source as well" in first.notes[0]
    forty.execute("UPDATE ldiv.run SET status = 'withdrawn'")
    (told, *_) = ldiv_db.run(forty, policy_of("topdown", target="another")).notes
    assert told.startswith("release 1 of over_time published this source as well") and "only one of the two" in told
    with pytest.raises(PolicyError, match=r"release 1 of .* published this source"):
        ldiv_db.run(forty, alone | {"target": "alone"})
    assert ldiv_db.run(forty, alone | {"target": "alone", "over_time": "independent"}).run_id


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"algorithm": "tds"}, "algorithm.name"),
        ({"require": [{"t_closeness": 0.2}]}, "require.0"),
        ({"individual": "zip", "quasi_identifiers": {"age": AGES}}, "individual"),
        ({"target": {"table": "out", "if_exists": "append"}}, "target.if_exists"),
        ({"target": {"table": "out", "prefix": "p"}}, "target.table"),
    ],
)
def test_what_does_not_go_with_releases_over_time(forty: Any, changes: dict[str, Any], code: str) -> None:
    with refuses(code):
        ldiv_db.run(forty, policy_of("topdown") | changes)


def test_another_algorithm_goes_on_and_a_table_that_was_there_is_replaced_on_demand(tmp_path: Path) -> None:
    """The first release says that the table is still in the file; from now on the release grows, and hides none."""
    with duckdb.connect(tmp_path / "clinic.duckdb") as con:
        fill(con, "people", COLUMNS, people(random.Random(1), 0, 24))
        con.execute("CREATE TABLE out AS SELECT 1 AS x")
        with pytest.raises(PolicyError, match="out exists"):
            ldiv_db.run(con, policy_of("topdown"))
        replacing = {"target": {"table": "out", "if_exists": "replace"}}
        first = ldiv_db.run(con, policy_of("topdown", **replacing))
        before = con.execute("FROM out").fetchall()
        con.execute("INSERT INTO people SELECT id + 500, age, zip, s FROM people")
        second = ldiv_db.run(con, policy_of("mondrian", **replacing))
        assert second.figures["release"] == 2
        assert con.execute("FROM out").fetchall()[: len(before)] == before
    kept = "the bytes of clinic.duckdb may still hold the release that was replaced"
    assert [any(kept in note for note in result.notes) for result in (first, second)] == [True, False]


def test_a_run_of_changed_rows_stops_before_it_says_what_cannot_be_met(forty: Any) -> None:
    alone = {name: said for name, said in policy_of("topdown").items() if name != "key"} | {"identifiers": ["id"]}
    ldiv_db.run(forty, alone)
    forty.execute("DELETE FROM people WHERE id > 2")
    with pytest.raises(PolicyError, match="have changed since"):
        ldiv_db.run(forty, alone | {"target": "again"})


@pytest.mark.slow
def test_a_file_whose_next_release_was_never_moved_into_place_goes_on_from_the_last(tmp_path: Path) -> None:
    """The table is in the file of the release before as well: its last class tells which of the two it is."""
    policy = policy_of("topdown", target={"file": "out.duckdb", "table": "out"})
    with duckdb.connect(tmp_path / "source.duckdb") as con:
        fill(con, "people", COLUMNS, people(random.Random(1), 0, 40))
        ldiv_db.run(con, policy, folder=tmp_path)
        shutil.copy(tmp_path / "out.duckdb", tmp_path / "first.duckdb")
        con.execute("INSERT INTO people SELECT id + 500, age, zip, s FROM people")
        last = ldiv_db.run(con, policy, folder=tmp_path)
        con.execute("UPDATE ldiv.release SET status = 'written' WHERE release = 2")  # by a process that died then
        shutil.copy(tmp_path / "first.duckdb", tmp_path / "out.duckdb")
        again = ldiv_db.run(con, policy, folder=tmp_path)
        assert again.figures["release"] == 2 and again.figures["rows_first_published"] == 40
        con.execute("UPDATE ldiv.release SET status = 'written' WHERE release = 2")
        assert ldiv_db.run(con, policy, folder=tmp_path).figures["release"] == 3
    assert last.figures["rows_published"] == 80


def test_the_first_release_settles_auto_and_which_values_are_one(forty: Any) -> None:
    asked = policy_of("topdown", require=[{"frequency": "auto"}], sensitive={"s": {"same": ["trim"]}})
    first = ldiv_db.run(forty, asked).figures["l"]
    forty.execute("INSERT INTO people SELECT id + 1000, age, zip, s || ' ' FROM people WHERE id % 3 = 0")
    forty.execute("INSERT INTO people SELECT id + 2000, age, zip, chr(96 + id) FROM people WHERE id < 20")
    assert ldiv_db.run(forty, asked).figures["l"] == first
    with refuses("sensitive"):
        ldiv_db.run(forty, asked | {"sensitive": ["s"]})
