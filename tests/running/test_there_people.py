"""People and nights in warehouses: releases, verdicts and ledgers are those of runs on the rows here."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest
import tables
from strategies import some
from there_beds import answers, embedded, failing, lite, place, place_here, policy, released, rows_of, tables_of

import ldiv_db
from ldiv_db.database.names import Relation
from ldiv_db.database.warehouses import Warehouse

SHOWN, TEXT = "age, town, dose, secret", "VARCHAR"


def rows_of_people(draw, people):
    """Rows in which some people have several, and nobody is known of a few."""
    several = [person for person in range(people) for _ in range(draw.choice([1, 1, 2, 3]))]
    rows = rows_of(draw, len(several))
    return [(None if draw.random() < 0.1 else several[number], *row) for number, *row in rows]


def of_people(**more):
    return policy(**{"identifiers": [], "individual": "rid"} | more)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", some(["cuts", "tds", "incognito", "bsgi", "hilbert"], 1))
def test_people_under_global_recodings_and_classes_of_different_values(con, tmp_path, algorithm):
    """Nobody's quasi-identifiers or values vary, which these algorithms do not take."""
    draw = random.Random(algorithm)
    once = rows_of(draw, 40)
    rows = [(who, *once[who][1:]) for who in range(40) for _ in range(1 if algorithm in ("bsgi", "hilbert") else 2)]
    there = lite(tmp_path, rows)
    place_here(con, rows)
    trees = {name: {"taxonomy": {"flat": True}} for name in ("age", "town", "dose")}
    asked = of_people(algorithm=algorithm, quasi_identifiers=trees)
    _, theirs = embedded(con, asked)
    ldiv_db.run(there, asked)
    assert sorted(map(repr, there.execute(f"SELECT {SHOWN} FROM released"))) == theirs


KINDS = {"class_id": "BIGINT", "who": "BIGINT", "age_min": "INTEGER", "age_max": "INTEGER"}
KINDS |= {"dose_min": "DOUBLE", "dose_max": "DOUBLE"}


@pytest.mark.slow
@pytest.mark.parametrize("unit", some(["row", "apart", "together"], 1))
def test_what_is_asked_of_tables_there_is_answered_as_of_tables_here(there, con, unit):
    place(there, con, rows_of_people(random.Random(unit), 40))
    keys = {"age": {"numeric": True}, "town": {"taxonomy": {"flat": True}}, "dose": {"numeric": True}}
    asked = policy(output={"bounds": True}, algorithm="bsgi", quasi_identifiers=keys)
    asked_of, of_source = "released", {"sensitive": "secret", "require": ["distinct:2", "entropy:1.2"]}
    if unit != "row":
        output = {"person": "who"} if unit == "together" else {}
        asked = of_people(individual={"column": "rid", "rows": unit}, output=output, quasi_identifiers=keys)
        asked_of, of_source = "people", {"sensitive": "secret", "require": "k:2", "individual": "rid"}
    ldiv_db.run(there.connection, asked)
    names = [name for (name,) in Warehouse(there.connection).described(Relation(("released",)), (0,))]
    tables.fill(con, "released", {name: KINDS.get(name, TEXT) for name in names}, there.query("SELECT * FROM released"))
    found, expected = (
        [
            *answers(on, asked)[0],
            ldiv_db.check(on, asked_of, qi="town", **of_source)[0].as_dict(),
            ldiv_db.profile(on, "people", ["age", "town", "dose"], "secret").as_dict()["uniqueness"],
            ldiv_db.plan(on, asked).task.encoded.row_count,
        ]
        for on in (there.connection, con)
    )
    assert found == expected


@pytest.mark.slow
@pytest.mark.parametrize("unit", some(["apart", "aligned"], 1))
def test_an_audit_finds_values_that_stand_at_somebody_else(con, tmp_path, monkeypatch, unit):
    """Two people change values between plan and audit: the table has as many of each as before, in other classes."""
    there = lite(tmp_path, rows_of_people(random.Random(3), 40))
    known = {"column": "rid", "rows": unit} | ({"order": "age"} if unit == "aligned" else {})
    asked = of_people(output={"class_id": True}, individual=known)
    create = Warehouse.create

    def swapped(self, table, *args, **params):
        create(self, table, *args, **params)
        name = self.name(table)
        ((one, value),) = self.rows(f"SELECT rowid, secret FROM {name} ORDER BY rowid LIMIT 1")
        of_other = f"SELECT rowid, secret FROM {name} WHERE secret <> '{value}' ORDER BY class_id DESC LIMIT 1"
        ((other, others),) = self.rows(of_other)
        for row, secret in ((one, others), (other, value)):
            self.execute(f"UPDATE {name} SET secret = '{secret}' WHERE rowid = {row}")

    monkeypatch.setattr(Warehouse, "create", swapped)
    with pytest.raises(ldiv_db.AuditError, match="not what people were counted in"):
        ldiv_db.run(there, asked)
    assert [name for (name,) in there.execute("SELECT name FROM sqlite_master")] == ["people"]


# -- every night ---------------------------------------------------------------------------------------

NIGHTLY = {"target": {"table": "released"}, "key": "rid", "identifiers": [], "over_time": None}


def nightly(**more):
    return {name: value for name, value in policy(**NIGHTLY | more).items() if value is not None}


def nights_of(draw, nights):
    """The source of each night: some rows go, one has another value, others are new."""
    rows = rows_of(draw, draw.randint(20, 40))
    for night in range(nights):
        yield rows
        rows = [row for row in rows if draw.random() < 0.9]
        changed = draw.randrange(len(rows))
        rows[changed] = (*rows[changed][:4], "HIV")
        rows += [(100 * (night + 1) + i, *row[1:]) for i, row in enumerate(rows_of(draw, draw.randrange(12)))]


@pytest.mark.parametrize("asked", [policy(), nightly()], ids=["run", "night"])
def test_a_release_is_asked_about_as_the_ledger_there_tells_auto(tmp_path, asked):
    there, asked = lite(tmp_path, rows_of(random.Random(1), 30)), asked | {"require": [{"frequency": "auto"}]}
    ldiv_db.run(there, asked)
    assert ldiv_db.check(there, "released", policy=asked).holds
    assert ldiv_db.attack(there, "released", policy=asked).holds and ldiv_db.report(there, "released", policy=asked)
    assert ldiv_db.measure(there, "released", policy=asked).rows_in == 30


def takes_nights(there):
    if not Warehouse(there.connection).takes_back:
        with pytest.raises(ldiv_db.PolicyError, match="two nights at once in"):
            ldiv_db.run(there.connection, nightly())
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("step", some(["send", "put"], 1))
def test_a_night_that_fails_is_made_anew(there, con, monkeypatch, step):
    first, second = nights_of(random.Random(9), 2)
    place(there, con, first)
    if not takes_nights(there):
        return
    ldiv_db.run(there.connection, nightly())
    before = (released(there), tables_of(there))
    place(there, con, second)
    with failing(monkeypatch, step), pytest.raises(ldiv_db.DatabaseError, match="pulled out"):
        ldiv_db.run(there.connection, nightly())
    assert (released(there), tables_of(there)) == before
    assert ldiv_db.run(there.connection, nightly()).figures["release"] == 2 and released(there) != before[0]


@pytest.mark.slow
def test_a_night_brings_members_of_its_own_series_alone(con, tmp_path, monkeypatch):
    there = lite(tmp_path, rows_of(random.Random(4), 30))
    there.execute("CREATE TABLE others AS SELECT * FROM people")
    there.commit()
    brought, fetch = defaultdict(set), Warehouse.fetch

    def watched(self, engine, name, sql, renamed):
        found = fetch(self, engine, name, sql, renamed)
        if "series" in renamed:
            brought[sql.rpartition("ldiv_")[2].split('"')[0]].update(engine.column(found, "series"))
        return found

    ldiv_db.run(there, nightly(source="others", target={"table": "theirs"}))
    ldiv_db.run(there, nightly())
    monkeypatch.setattr(Warehouse, "fetch", watched)
    ldiv_db.run(there, nightly())
    assert brought.pop("release") == {"released", "theirs"}
    assert set(brought) == {"series", "series_secret", "release_secret", "release_member", "release_group"}
    assert set(map(tuple, brought.values())) == {("released",)}


@pytest.mark.parametrize(
    ("more", "says"),
    some(
        [
            (
                {"key": "age", "quasi_identifiers": ["town"], "identifiers": ["rid", "dose"]},
                "everybody would count as new",
            ),
            ({"key": "secret2"}, "is not a column of the source"),
            ({"quasi_identifiers": ["age"], "identifiers": ["town", "dose"]}, "and the release"),
            ({"target": {"table": "others"}, "key": None, "identifiers": ["rid"]}, "published this source|series"),
        ],
        1,
    ),
)
def test_a_night_that_does_not_go_with_the_last_is_refused(con, tmp_path, more, says):
    there = lite(tmp_path, rows_of(random.Random(7), 30))
    ldiv_db.run(there, nightly())
    before = there.execute("SELECT * FROM released").fetchall()
    with pytest.raises(ldiv_db.LdivError, match=says):
        ldiv_db.run(there, nightly(**more))
    assert there.execute("SELECT * FROM released").fetchall() == before


def test_a_table_that_no_night_made_is_left_alone(con, tmp_path):
    there = lite(tmp_path, rows_of(random.Random(7), 30))
    there.execute("CREATE TABLE released (x INTEGER)")
    there.commit()
    with pytest.raises(ldiv_db.PolicyError, match="released exists"):
        ldiv_db.run(there, nightly())
    ldiv_db.run(there, nightly(target={"table": "released", "if_exists": "replace"}))
    there.execute("DROP TABLE released")
    there.commit()
    with pytest.raises(ldiv_db.PolicyError, match="of the last release is gone"):
        ldiv_db.run(there, nightly())
