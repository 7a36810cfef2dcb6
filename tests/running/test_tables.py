"""Releases of several tables: links that are checked, keys that are numbers, joins, and what people publish."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import duckdb
import oracle
import pytest
from hypothesis import reject
from strategies import numbers, search, seeded, some

import ldiv_db
from ldiv_db import InfeasibleError, PolicyError
from ldiv_db.database.context import working_engine
from ldiv_db.recoding.recode import PUBLISHED
from ldiv_db.taxonomies.readers import read_taxonomy
from ldiv_db.taxonomies.taxonomy import store
from tests.running.schemas import CHOICES, busiest_first, drawn, fill, policy_of, posteriors, published, rows_of, target

pytestmark = pytest.mark.usefixtures("no_remedies")

NAMES = ("patients", "stays", "labs")


def clinic(people: int = 24, seed: int = 3, names: tuple[str, ...] = NAMES, most: int = 3) -> tuple[Any, Any]:
    con = duckdb.connect(config={"threads": 1})
    rows = drawn(random.Random(seed), names, people, most, values="abcdefghijkl")
    fill(con, names, rows)
    return con, rows


def refused(con: Any, **changes: Any) -> str:
    with pytest.raises(PolicyError) as error:
        ldiv_db.run(con, policy_of(NAMES, **changes))
    return str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE stays SET stay = NULL WHERE no = (SELECT min(no) FROM stays)", r"stays\.key: stay is NULL in 1 row"),
        ("UPDATE stays SET stay = 's'", r"stays\.key: \d+ rows share their stay with another"),
        ("UPDATE labs SET stay = NULL", r"labs\.parent: stay is NULL in \d+ rows, which belong to nobody"),
        ("INSERT INTO labs VALUES (1, 'x', 'a'), (2, 'x', 'a'), (3, 'y', 'a')", "3 rows have 2 values of stay"),
        ("UPDATE patients SET who = NULL WHERE who = 3", r"patients\.person: who is NULL in 1 row, which belong to"),
        ("DELETE FROM patients WHERE who < 5", r"people are not in patients, who have \d+ rows"),
        ("ALTER TABLE patients ALTER who TYPE VARCHAR", r"who is INTEGER, and who of patients is VARCHAR"),
        ("ALTER TABLE patients RENAME who TO whom", r"patients\.person: the source has no column who"),
        ("ALTER TABLE labs RENAME stay TO visit", r"labs\.parent: the source has no column stay"),
        ("ALTER TABLE stays RENAME day TO date", r"stays\.order: the source has no column day"),
        ("ALTER TABLE labs ADD COLUMN more INT", r"tables\.labs\.source: has a column more that the policy does not"),
    ],
)  # fmt: skip
def test_links_are_checked_before_any_work(change: str, message: str) -> None:
    con, _ = clinic()
    con.execute(change)
    found = refused(con)
    assert re.search(message, found), found
    assert all(line.endswith(")") for line in found.splitlines()), "a way out is missing"


def test_several_links_are_reported_at_once() -> None:
    con, _ = clinic()
    con.execute("INSERT INTO labs VALUES (1, 'x', 'a'); UPDATE patients SET who = NULL WHERE who = 3")
    assert len(refused(con).splitlines()) == 2


def test_people_without_an_order_have_one_row_each() -> None:
    con, _ = clinic()
    policy = policy_of(NAMES)
    del policy["tables"]["stays"]["order"]
    with pytest.raises(PolicyError, match=r"tables\.stays\.order: is required"):
        ldiv_db.run(con, policy)


@pytest.fixture(scope="module")
def chain() -> tuple[Any, dict[str, Any], Any]:
    """Rows of rows of rows, ordered by a text, a date and a number, beside a public table; two tables have an `id`."""
    con = duckdb.connect(config={"threads": 1})
    con.execute("""
        CREATE SCHEMA published;
        CREATE TABLE patients AS SELECT i AS no, i AS id, i % 8 AS age FROM range(8) t(i);
        CREATE TABLE stays AS
        SELECT i AS no, i // 2 AS who, 's' || i AS id, CAST(i * 7 % 100 AS VARCHAR) AS day, i % 8 AS age,
            chr((97 + i * 5 % 12)::INTEGER) AS value FROM range(16) t(i);
        CREATE TABLE labs AS
        SELECT i AS no, 's' || (i // 2) AS stay, i + 7 AS lab, DATE '2024-01-01' + (i * 50 % 99)::INTEGER AS hour,
            i % 4 AS ward, chr((97 + i * 5 % 12)::INTEGER) AS value FROM range(32) t(i);
        CREATE TABLE notes AS
        SELECT i AS no, 7 + i // 2 AS lab, i + 9 AS memo, CAST(i * 30 % 50 AS DOUBLE) AS minute, 'n' || i AS note
        FROM range(64) t(i);
        CREATE TABLE wards (ward INT, beds INT, kind ENUM ('acute', 'hospice', 'open'), note VARCHAR);
        INSERT INTO wards VALUES (1, 20, 'open', 'x'), (2, 7, 'acute', 'y')
    """)
    policy = policy_of(NAMES, individual="id")
    policy["tables"]["patients"]["person"] = "id"
    policy["tables"]["stays"]["key"] = "id"
    own = {"key": "lab", "order": "hour", "identifiers": ["hour"], "quasi_identifiers": {"ward": {"numeric": True}}}
    policy["tables"]["labs"] |= own
    policy["tables"]["notes"] = {
        "source": "notes", "parent": {"lab": "labs"}, "key": "memo", "order": "minute", "sensitive": ["note"],
        "keep": ["no"], "identifiers": ["minute"], "target": target("notes"),
    }  # fmt: skip
    kept = ["ward", "beds", "kind"]
    policy["tables"]["wards"] = {"source": "wards", "public": True, "keep": kept, "target": target("wards")}
    policy["tables"]["wards"]["identifiers"] = ["note"]
    return con, policy, ldiv_db.run(con, policy)


def columns_of(con: Any, name: str) -> set[str]:
    return {column for column, *_ in con.execute(f"DESCRIBE published.{name}").fetchall()}


def test_a_chain_of_tables_joins_from_end_to_end_and_no_name_has_numbers_of_two_things(chain: Any) -> None:
    con, policy, result = chain
    assert {audit.sensitive for audit in result.audits} >= {"stays.value", "labs.value", "notes.note"}
    assert "id" in columns_of(con, "patients") and "stays_id" in columns_of(con, "stays")
    assert "stay" in columns_of(con, "labs")
    assert any("stays.id is published as stays_id: it has numbers of its rows" in note for note in result.notes)
    join = (
        "FROM published.notes n JOIN published.labs l USING (lab) JOIN published.stays s ON l.stay = s.stays_id"
        " JOIN published.patients p ON p.id = s.who"
    )
    shown = con.execute(f"SELECT n.no, l.no {join}").fetchall()
    rows = {one.name: one.loss.rows_published for one in result.tables}
    assert len(shown) == rows["notes"] > 0
    assert all(note // 2 == lab for note, lab in shown)  # two notes of each test
    assert all(audit.holds for audit in ldiv_db.check(con, policy=policy))
    joined = [
        (one.parent, one.child, one.rows_published) for one in ldiv_db.measure(con, policy=policy, kl=False).joins
    ]
    assert ("patients", "stays", rows["stays"]) in joined and ("stays", "labs", rows["labs"]) in joined


def test_a_key_that_nobody_joins_by_is_left_out(chain: Any) -> None:
    assert "lab" in columns_of(chain[0], "labs") and "memo" not in columns_of(chain[0], "notes")


def test_a_public_table_is_published_as_it_is_but_for_values_that_no_row_has(chain: Any) -> None:
    con, policy, _ = chain
    rows = con.execute("SELECT *, typeof(kind) FROM published.wards ORDER BY ward").fetchall()
    assert rows == [(1, 20, "open", "VARCHAR"), (2, 7, "acute", "VARCHAR")]
    unclassified = policy["tables"] | {"wards": policy["tables"]["wards"] | {"identifiers": []}}
    with pytest.raises(PolicyError, match=r"tables\.wards\.source: has a column note"):
        ldiv_db.run(con, policy | {"tables": unclassified})


@pytest.mark.parametrize(
    ("name", "owner", "true"), [("stays", "who", "day"), ("labs", "stay", "hour"), ("notes", "lab", "minute")]
)
def test_tables_are_ordered_by_columns_of_any_types(chain: Any, name: str, owner: str, true: str) -> None:
    join = f"published.{name} p JOIN {name} s USING (no)"
    shown = chain[0].execute(f"SELECT p.{owner}, s.{true} FROM {join} ORDER BY p.{owner}, p.position").fetchall()
    assert shown == sorted(shown) and len(shown) > len({one for one, _ in shown})


def test_a_target_in_a_database_that_the_policy_does_not_name_is_refused() -> None:
    con, _ = clinic()
    con.execute("ATTACH ':memory:' AS other")
    policy = policy_of(NAMES)
    policy["tables"]["labs"]["target"] = "other.main.labs"
    with pytest.raises(PolicyError, match=r"one transaction writes one \(give `file:` as well, or name one of the"):
        ldiv_db.run(con, policy)


@pytest.mark.slow
@pytest.mark.again
def test_the_ledger_has_one_entry_and_knows_all_sources() -> None:
    con, _ = clinic()
    policy = policy_of(NAMES)
    del policy["over_time"], policy["seed"]
    first, shown = ldiv_db.run(con, policy), published(con, NAMES)
    sent: list[str] = []
    again = ldiv_db.run(con, policy, listener=ldiv_db.Listener(on_statement=lambda one: sent.append(one.template)))
    assert again.earlier.unchanged == first.run_id and published(con, NAMES) == shown
    assert PUBLISHED not in sent and again.loss == first.loss
    assert [audit.as_dict() for audit in again.audits] == [audit.as_dict() for audit in first.audits]
    (sources,) = {source for (source,) in con.execute("SELECT source FROM ldiv.run").fetchall()}
    assert sources == "patients & stays & labs"
    con.execute("UPDATE stays SET age = age + 1")
    changed = refused(con, over_time=None)
    assert "over_time: run" in changed and "published this source, and its rows have changed" in changed
    assert "(set over_time: independent" in changed and "key: " not in changed


@pytest.fixture(scope="module")
def first() -> tuple[Any, dict[str, Any], Any]:
    """A release of two tables of few people and of a public one."""
    con, _ = clinic(people=8, names=NAMES[:2], most=2)
    con.execute("CREATE TABLE wards AS SELECT i AS ward, i + 3 AS beds, 'x' AS note FROM range(3) t(i)")
    con.execute("ALTER TABLE stays ADD COLUMN note VARCHAR; ALTER TABLE patients ALTER age TYPE VARCHAR")
    policy = policy_of(NAMES[:2], over_time=None, output={}, require=[{"k": 2}])
    policy["tables"]["patients"]["quasi_identifiers"] = ["age"]
    policy["tables"]["stays"]["identifiers"] = ["day", "note"]
    own = {"public": True, "keep": ["ward", "beds"], "identifiers": ["note"], "target": target("wards")}
    policy["tables"]["wards"] = {"source": "wards", **own}
    return con, policy, ldiv_db.run(con, policy)


@pytest.fixture
def released(first: Any) -> Iterator[tuple[Any, dict[str, Any], Any]]:
    """That release, as it is whatever a test does."""
    first[0].begin()
    yield first
    first[0].rollback()


#: What changes the release, or only what nobody reads of the source, and whether the release is another.
CHANGES: dict[str, tuple[str, bool]] = {
    "a width of numbers": ("ALTER TABLE stays ALTER age TYPE BIGINT", False),
    "texts that are numbers now": ("ALTER TABLE patients ALTER age TYPE INTEGER", True),
    "a public table": ("UPDATE wards SET beds = beds + 1", True),
    "an order of another type": ("ALTER TABLE stays ALTER day TYPE VARCHAR", True),
    "rows in another order": ("CREATE OR REPLACE TABLE stays AS FROM stays ORDER BY hash(no)", False),
    "columns in another order": ("CREATE OR REPLACE TABLE stays AS SELECT value, * EXCLUDE (value) FROM stays", False),
    "a column that nobody reads": ("UPDATE stays SET note = 'corrected'", False),
    "a key that nobody joins by": ("UPDATE stays SET stay = stay || 'x'", False),
    "a column of a public table that is not kept": ("UPDATE wards SET note = 'corrected'", False),
}


@pytest.mark.parametrize("change", some(CHANGES, 2))
def test_a_release_is_unchanged_if_all_that_it_rests_on_is(released: Any, change: str) -> None:
    con, policy, first = released
    statement, is_another = CHANGES[change]
    con.execute(statement)
    planned = ldiv_db.plan(con, policy)
    assert planned.earlier.same_rows and planned.earlier.unchanged == (None if is_another else first.run_id)
    assert f"run {first.run_id}" in planned.as_dict()["notes"][0]


def test_a_taxonomy_that_comes_makes_another_release_with_other_numbers(released: Any, tmp_path: Any) -> None:
    con, policy, first = released
    numbers = "SELECT no, who FROM published.patients ORDER BY no"
    before = con.execute(numbers).fetchall()
    levels = "\n".join(f"{age};{'low' if age < 4 else 'high'};*" for age in range(8))
    (tmp_path / "age.csv").write_text(levels, encoding="utf-8")
    with working_engine(con) as engine:
        store(engine, "age", read_taxonomy(tmp_path / "age.csv"), True)
    again = ldiv_db.run(con, policy)
    assert first.earlier.unchanged is None and again.earlier.unchanged is None and again.earlier.same_rows
    assert con.execute(numbers).fetchall() != before


def test_a_table_that_was_published_alone_has_the_same_rows(released: Any) -> None:
    con, policy, several = released
    single = {
        "source": "stays", "target": {"table": "one", "if_exists": "replace"}, "quasi_identifiers": ["age"],
        "sensitive": ["value"], "identifiers": ["no", "who", "stay", "day", "note"], "require": [{"k": 4}],
    }  # fmt: skip
    alone = ldiv_db.run(con, single | {"keep": ["no"], "identifiers": single["identifiers"][1:]})
    assert alone.earlier.run_id == several.run_id and alone.earlier.same_rows
    con.execute("DELETE FROM ldiv.run_secret WHERE run_id <> ?", [alone.run_id])
    con.execute("DELETE FROM ldiv.run WHERE run_id <> ?", [alone.run_id])
    planned = ldiv_db.plan(con, policy)
    assert planned.earlier.run_id == alone.run_id and planned.earlier.same_rows
    con.execute("UPDATE stays SET age = age + 1 WHERE no = (SELECT min(no) FROM stays)")
    for changed in (policy, single):
        with pytest.raises(PolicyError, match="its rows have changed"):
            ldiv_db.run(con, changed)


def test_releases_of_changed_rows_are_said_not_to_be_held_together(released: Any) -> None:
    con, policy, _ = released
    con.execute("UPDATE stays SET age = age + 1")
    said = ldiv_db.run(con, policy | {"over_time": "independent"}).said
    assert any("was not measured: releases of several tables" in note for note in said)


def of_one_table(name: str, **individual: Any) -> dict[str, Any]:
    """The policy of a table of people by `individual`, in the place of that by `tables`."""
    said = policy_of((name,))
    table = {key: said["tables"][name][key] for key in ("source", "quasi_identifiers", "sensitive", "keep", "target")}
    shared = {key: said[key] for key in ("require", "algorithm", "over_time", "seed")}
    output = {"bounds": True, "person": "who"}
    return table | shared | {"individual": {"column": "who", **individual}, "output": output}


SCHEMAS = [(CHOICES[0], 0), (("stays",), 2), *((names, 0) for names in CHOICES[1:]), (("stays",), 3)]


@pytest.mark.parametrize(("names", "most"), some(SCHEMAS, 2))
def test_nobody_is_surer_than_is_promised_in_all_worlds_that_a_release_allows(names: Any, most: int) -> None:
    """Not even who knows all rows of everybody, and how many they are: no posterior is above 1/2."""
    tried, worst, rows = 0, Fraction(0), 0
    sequences = of_one_table("stays", rows="aligned", order="day", rows_at_most=most)
    for number in numbers(1):
        rng, con = random.Random(f"stays {number} {names}"), duckdb.connect(config={"threads": 1})
        people = drawn(rng, names, rng.randrange(4, 9))
        algorithm = rng.choice(("topdown", {"name": "cuts", "scheme": "none"}))
        fill(con, names, people)
        policy = sequences | {"identifiers": ["stay"]} if most else policy_of(names, algorithm=algorithm)
        if "stays" in policy.get("tables", ()):
            policy["tables"]["stays"]["rows"] = "aligned"
        try:
            ldiv_db.run(con, policy)
        except InfeasibleError:
            continue
        tried += 1
        shown = published(con, names)
        source = {no: (name, value) for tree in people.values() for name, (no, _, value, _) in rows_of(tree)}
        for tree in shown.values():
            assert all(value in ("", source[no][1]) for _, (no, _, value, _) in rows_of(tree))
            rows = max(rows, len([*rows_of(tree)]))
        found = posteriors(people, shown)
        worst = max([worst, *found.values()])
        assert all(share <= Fraction(1, 2) for share in found.values()), number
    assert tried and worst >= Fraction(1, 3) and rows > 1 and (not most or rows <= most)


@pytest.mark.parametrize("rows", some([None, "together"]))
def test_nor_where_rows_share_labels_and_stand_in_another_order(rows: str | None, monkeypatch: Any) -> None:
    """Rows to which most belong come first if fewer are left out so, and later ones have one label, in runs of two."""
    monkeypatch.setattr("ldiv_db.recoding.stacked.RUNS", 1)
    names, worst, busiest = CHOICES[0], Fraction(0), 0
    for number in numbers(1 if rows is None else 3):
        rng, con = random.Random(f"places {number}"), duckdb.connect(config={"threads": 1})
        people, policy = drawn(rng, names, 7), policy_of(names)
        policy["tables"]["stays"] |= {"rows": rows} if rows else {}
        fill(con, names, people)
        try:
            result = ldiv_db.run(con, policy)
        except InfeasibleError:
            continue
        is_busiest = any(note.startswith("stays: rows to which most") for note in result.notes)
        gave_up = any("one value is too frequent" in note for note in result.notes)
        busiest += is_busiest
        shown = published(con, names)
        for tree in shown.values():
            labels = [label for _, label, _, _ in tree.get("stays", ())]
            assert len({*labels[0 if rows else 1 :]}) <= 1
        if is_busiest:  # who gave up rows may have others first
            people = {person: busiest_first(tree) for person, tree in people.items()}
        found = posteriors(people, shown, {"stays"} if is_busiest and gave_up else ())
        worst = max([worst, *found.values()])
        assert all(share <= Fraction(1, 2) for share in found.values()), number
        assert ldiv_db.check(con, policy=policy).holds
    assert busiest and worst >= Fraction(1, 3)


@pytest.mark.parametrize("rows", some([None, "aligned"]))
def test_rows_below_are_published_though_nobody_has_them_in_the_same_places(rows: str | None) -> None:
    """Each has a lab at another of three stays: by their order alone no two people are alike but without labs."""
    con = duckdb.connect(config={"threads": 1})
    labs: Any = {person: [(100 + person, None, "abc"[person % 3], {})] for person in range(6)}
    days = {person: [{"labs": labs[person]} if day == person % 3 else {} for day in range(3)] for person in range(6)}
    stays = {p: [(10 * p + day, day, "abc"[(p + day) % 3], below) for day, below in enumerate(days[p])] for p in days}
    fill(con, NAMES, {p: {"patients": [(1000 + p, 3, "", {})], "stays": stays[p]} for p in days})
    policy = policy_of(NAMES, require=[{"k": 3}])
    policy["tables"]["stays"] |= {"rows": rows} if rows else {}
    result = ldiv_db.run(con, policy)
    assert [one.loss.rows_published for one in result.tables] == ([6, 0, 0] if rows else [6, 18, 6])
    first = con.execute("SELECT position FROM published.labs JOIN published.stays USING (stay)").fetchall()
    assert {*first} <= {(1,)} and ldiv_db.check(con, policy=policy).holds


def test_rows_together_do_not_withstand_who_knows_their_numbers() -> None:
    """One has x twice, another y once, with one label: unlike by `tables`, who knows how many rows is certain."""
    people: Any = {0: {"visits": [(0, 1, "x", {}), (1, 2, "x", {})]}, 1: {"visits": [(2, 3, "y", {})]}}
    con, found = duckdb.connect(config={"threads": 1}), []
    fill(con, ("visits",), people)
    for policy in (of_one_table("visits", rows="together"), policy_of(("visits",))):
        ldiv_db.run(con, policy)
        found.append(posteriors(people, published(con, ("visits",))))
    together, of_tables = found
    assert together == {(0, "visits", "x"): 1, (1, "visits", "y"): 1}
    assert set(of_tables.values()) == {Fraction(1, 2)}  # each publishes one row


@search(1, draw=seeded)
def test_classes_are_compared_with_all_people_who_have_rows_of_the_table(con: Any, draw: random.Random) -> None:
    names = ("patients", "stays")
    fill(con, names, drawn(draw, names, 14, most=2, values="abc"))
    name, argument = draw.choice(
        [("t_closeness", {"t": "0.4"}), ("beta_likeness", {"beta": 1}), ("delta_disclosure", {"delta": 2})]
    )
    try:
        ldiv_db.run(con, policy_of(names, require=[{name: argument}]))
    except InfeasibleError:
        reject()
    shown: dict[int, list[Any]] = {}
    people = con.execute("SELECT who, age_min, age_max FROM published.patients").fetchall()
    stays = con.execute("SELECT who, age_min, age_max, value FROM published.stays ORDER BY position").fetchall()
    for who, *labels in [*people, *(stay[:3] for stay in stays)]:
        shown.setdefault(who, []).append(tuple(labels))
    rows = [(tuple(shown[who]), value, who) for who, *_, value in stays]
    assert oracle.people_violations(rows, name, argument) == {}
    asked = draw.choice([{"t": "0.2"}, {"t": "0.1"}])
    found = ldiv_db.check(con, policy=policy_of(names), require=[{"t_closeness": asked}])
    (verdict,) = (one for audit in found if audit.sensitive for one in audit.verdicts if one.requirement.name != "k")
    assert verdict.violating_classes == len(oracle.people_violations(rows, "t_closeness", asked))


@pytest.mark.parametrize(
    ("of_people", "require", "least"), some([(True, "frequency", 2), (False, "k", 2), (True, "k", 2)], 2)
)
def test_auto_is_found_without_quasi_identifiers_or_values(of_people: bool, require: str, least: int) -> None:
    con, values = duckdb.connect(config={"threads": 1}), "'ab'[1 + i % 2]"
    con.execute(f"CREATE TABLE patients AS SELECT i AS who, {values} AS sex FROM range(20) t(i)")
    con.execute("CREATE TABLE stays AS SELECT i AS who, i % 5 AS age FROM range(20) t(i)")
    sensitive = "sensitive" if of_people else "identifiers"
    patients = {"source": "patients", "person": "who", "quasi_identifiers": {}, sensitive: ["sex"], "target": "p"}
    stays = {"source": "stays", "person": "who", "quasi_identifiers": {"age": {"numeric": True}}, "target": "s"}
    asked = {"individual": "who", "require": [{require: "auto"}], "tables": {"patients": patients, "stays": stays}}
    found = [one.least_rows for audit in ldiv_db.run(con, asked).audits for one in _required(audit)]
    assert set(found) == {least} and ldiv_db.check(con, policy=asked).holds


def _required(audit: Any) -> list[Any]:
    return [verdict.requirement for verdict in audit.verdicts]
