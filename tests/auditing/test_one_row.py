"""The audit of tables against who knows one row: tables that are written by hand, each good or bad for a reason."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from strategies import some

import ldiv_db
from ldiv_db.database.errors import AuditError
from tests import one_row
from tests.running.schemas import drawn, fill

POLICY: dict[str, Any] = {
    "individual": "who",
    "known": 1,
    "tables": {
        "people": {
            "source": "people", "target": "published.people", "person": "who",
            "quasi_identifiers": {"age": {"numeric": True}},
        },
        "visits": {
            "source": "visits", "target": "published.visits", "person": "who", "key": "visit",
            "quasi_identifiers": {"day": {"numeric": True}}, "sensitive": ["illness"],
        },
        "labs": {
            "source": "labs", "target": "published.labs", "parent": {"visit": "visits"},
            "quasi_identifiers": {"test": {"taxonomy": {"flat": True}}}, "sensitive": ["result"],
        },
    },
    "require": [{"frequency": 2}, {"k": 2}],
}  # fmt: skip
#: Four people of one class, who have one to three visits on two days, and tests at some of these.
VISITS = [
    (1, 11, "[1 .. 3]", "a"), (1, 12, "[4 .. 6]", "b"), (1, 13, "[4 .. 6]", "c"),
    (2, 21, "[1 .. 3]", "d"), (2, 22, "[4 .. 6]", "e"), (3, 31, "[1 .. 3]", "f"), (4, 41, "[4 .. 6]", "f"),
]  # fmt: skip
LABS = [(11, "x", "hi"), (11, "x", "no"), (21, "x", "mid"), (12, "y", "lo"), (41, "y", "top")]


ALL = {"visits.illness", "labs.result", ""}


def released(
    visits: list[Any] = VISITS, labs: list[Any] = LABS, people: list[Any] | None = None
) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect(config={"threads": 1})
    con.execute("""
        CREATE SCHEMA published;
        CREATE TABLE published.people (who BIGINT, age VARCHAR);
        CREATE TABLE published.visits (who BIGINT, visit BIGINT, day VARCHAR, illness VARCHAR);
        CREATE TABLE published.labs (visit BIGINT, test VARCHAR, result VARCHAR)
    """)
    shown = people or [(who, "[20 .. 29]") for who in (1, 2, 3, 4)]
    for name, rows in (("people", shown), ("visits", visits), ("labs", labs)):
        if rows:
            con.executemany(f"INSERT INTO published.{name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    return con


def checked(con: Any, **changes: Any) -> Any:
    return ldiv_db.check(con, policy=POLICY | changes, twice=True)


def violated(audits: Any) -> set[str]:
    """The columns, or people alone, on which something does not hold, by two readings that agree."""
    assert all(verdict.agrees and verdict.second is not None for audit in audits for verdict in audit.verdicts)
    return {audit.sensitive for audit in audits if not audit.holds}


def test_classes_are_people_and_those_with_a_row_that_shows_the_same() -> None:
    audits = checked(released())
    assert not violated(audits)
    assert {audit.sensitive: audit.classes for audit in audits} == {"visits.illness": 5, "labs.result": 5, "": 5}
    assert all(audit.least_people == 2 for audit in audits)
    assert not any("no table of people" in one for audit in audits for one in audit.warnings)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        # One of three who have a visit on the first day has what another of them has.
        ("UPDATE published.visits SET illness = 'd' WHERE visit = 11", {"visits.illness"}),
        # All visits of who is known by one count, and so do tests of other visits.
        ("UPDATE published.visits SET illness = 'f' WHERE visit = 13", {"visits.illness"}),
        ("UPDATE published.labs SET result = 'mid' WHERE test = 'y'", {"labs.result"}),
        # A label that one person alone has.
        ("UPDATE published.visits SET day = '[7 .. 9]' WHERE visit = 13", ALL),
        ("UPDATE published.labs SET test = 'z' WHERE result = 'no'", ALL),
        ("UPDATE published.people SET age = '[30 .. 39]' WHERE who = 4", ALL),
        ("DELETE FROM published.labs WHERE result = 'top'", ALL),
        # A row of somebody else.
        ("UPDATE published.visits SET who = 4 WHERE visit = 21", {"visits.illness"}),
        ("UPDATE published.labs SET visit = 31 WHERE result = 'mid'", set()),
    ],
)
def test_what_is_not_good_by_one_row_is_found(change: str, found: set[str]) -> None:
    con = released()
    con.execute(change)
    assert violated(checked(con)) == found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("UPDATE published.visits SET visit = 11 WHERE visit = 21", "rows of labs belong to nobody, or to several"),
        ("UPDATE published.labs SET visit = 99 WHERE visit = 41", "1 rows of labs belong to nobody"),
        ("UPDATE published.visits SET who = NULL WHERE visit = 41", "1 rows of visits belong to nobody"),
    ],
)
def test_rows_of_nobody_are_refused(change: str, message: str) -> None:
    con = released()
    con.execute(change)
    with pytest.raises(AuditError, match=message):
        checked(con)


@pytest.mark.parametrize("people", [(1, 2, 3), (1, 2, 3, 4, 4)])
def test_a_table_that_is_nearly_of_people_is_warned_of(people: tuple[int, ...]) -> None:
    (first, *_) = ldiv_db.check(released(people=[(who, "[20 .. 29]") for who in people]), policy=POLICY)
    (warning,) = (one for one in first.warnings if "no table of people" in one)
    assert warning.startswith("people is no table of people: 1 of 4 people have no row there, or several")


def test_labels_of_people_who_differ_may_overlap() -> None:
    """Nobody takes a person for one of another class; tests of visits that are known apart are apart themselves."""
    people = [(who, "[20 .. 29]" if who < 5 else "[25 .. 34]") for who in range(1, 7)]
    visits = [*VISITS, (5, 51, "[2 .. 4]", "h"), (6, 61, "[2 .. 4]", "i")]
    labs = [*LABS, (51, "*", "j"), (61, "*", "k")]
    con = released(visits, labs, people)
    assert not violated(checked(con))
    con.execute("INSERT INTO published.labs VALUES (13, 'x', 'm'), (41, 'x', 'n')")
    assert not violated(checked(con))


CHOICES = (
    ("patients", "stays", "scans"),
    ("patients", "stays", "labs"),
    ("patients", "visits"),
    ("patients", "orders"),
)


@pytest.mark.parametrize("seed", some(range(300), 8))
def test_what_the_audit_says_of_any_tables_is_what_all_their_worlds_say(seed: int) -> None:
    rng = random.Random(seed)
    names = rng.choice(CHOICES)
    people = drawn(
        rng, names, rng.randrange(3, 7), most=rng.randrange(1, 3), values="abcdefghijkl"[: rng.randrange(6, 13)]
    )
    shown = one_row.labelled(rng, people)
    con = duckdb.connect(config={"threads": 1})
    one_row.publish(con, names, shown)
    each = rng.random() < 0.4
    required = {"frequency": 2} | ({"each": "row"} if each else {})
    policy = one_row.policy_of(names, require=[required, {"k": 1}])
    found = one_row.surest(people, shown, ["patients"])
    sure = [share for column, share in found.items() if (column[0] == "each") is each]
    try:
        audits = ldiv_db.check(con, policy=policy, twice=True)
    except AuditError as error:
        assert "in common" in str(error)
        return
    violated(audits)
    holds = all(audit.holds for audit in audits if audit.sensitive)
    labels = {tree["patients"][0][1] for tree in shown.values()}
    if holds or len({age for low, high in labels for age in (low, high)}) == sum(1 + (a < b) for a, b in labels):
        assert holds is (max(sure, default=0) <= Fraction(1, 2))  # who may be of two classes is surer of nothing


def test_a_table_that_was_of_people_when_it_was_published_is_refused_as_another() -> None:
    """By the rows alone it would be a table of which one row is known, and others be judged in classes of everybody."""
    con, names = duckdb.connect(config={"threads": 1}), ("patients", "stays")
    fill(con, names, drawn(random.Random(5), names, 6, values="abcdefghij"))
    policy = one_row.policy_of(names, require=[{"k": 2}])
    ldiv_db.run(con, policy)
    con.execute("DELETE FROM published.stays WHERE no = (SELECT min(no) FROM published.stays)")
    assert len(ldiv_db.check(con, policy=policy))  # what is left is judged
    con.execute("CREATE TABLE whole AS FROM published.patients")
    for change in (
        "DELETE FROM published.patients WHERE no = (SELECT min(no) FROM whole)",
        "INSERT INTO published.patients FROM whole",
    ):
        con.execute(change)
        with pytest.raises(AuditError, match="patients is not what was published: everybody had one row there"):
            ldiv_db.check(con, policy=policy)


def test_each_row_of_a_table_of_people_is_judged_among_people_alike() -> None:
    """Half of who are alike have a, and all who have a visit on the first day: their bags are bad, their rows good."""
    con = duckdb.connect(config={"threads": 1})
    con.execute("""
        CREATE SCHEMA published;
        CREATE TABLE published.people AS FROM (VALUES (1, 'x', 'a'), (2, 'x', 'a'), (3, 'x', 'b'), (4, 'x', 'b'))
            t(who, age, illness);
        CREATE TABLE published.visits AS FROM (VALUES (1, '1'), (2, '1'), (3, '2'), (4, '2')) t(who, day)
    """)
    con.execute("INSERT INTO published.visits VALUES (1, '2')")  # who has two: visits are no table of people

    def found(**each: str) -> bool:
        policy: Any = POLICY | {"require": [{"frequency": {"l": 2, **each}}, {"k": 2}]}
        own = {"quasi_identifiers": {"age": {}}, "sensitive": ["illness"]}
        day = {"quasi_identifiers": {"day": {"taxonomy": {"flat": True}}}, "sensitive": []}
        tables = {"people": POLICY["tables"]["people"] | own, "visits": POLICY["tables"]["visits"] | day}
        audits = ldiv_db.check(con, policy=policy | {"tables": tables}, twice=True)
        return "people.illness" not in violated(audits)

    assert found(each="row") and not found()
    con.execute("UPDATE published.people SET illness = 'a' WHERE who = 3")
    assert not found(each="row")
