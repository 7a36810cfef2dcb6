"""Where people have several rows and the policy names nobody, every way in says so, with counts of classes."""

from __future__ import annotations

from typing import Any

import pytest
from strategies import some
from what_profiles_write import make

import ldiv_db

POLICY: dict[str, Any] = {
    "source": "events", "target": "released", "quasi_identifiers": ["born", "region"], "sensitive": ["event"],
    "keep": [], "identifiers": ["user", "seen", "cost", "weight"], "require": [{"frequency": 2}],
    "algorithm": "mondrian", "seed": 7,
}  # fmt: skip


def kept(policy: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The policy with the person published, so that plain Python can count them."""
    identifiers = [name for name in policy["identifiers"] if name != "user"]
    return {**policy, "keep": ["user"], "identifiers": identifiers, **changes}


def told(counts: tuple[int, int, int]) -> str:
    classes, several, alone = counts
    return f"{several:,} of {classes:,} classes have two rows of one person, {alone:,} have one person alone"


@pytest.mark.slow
def test_whose_rows_are_not_published_are_counted_too_and_change_nothing(con: Any) -> None:
    """The release is row for row what it is where nobody can be told apart."""
    make(con, more="")
    shown = ldiv_db.run(con, kept(POLICY))
    hidden = ldiv_db.run(con, {**POLICY, "target": "hidden"})
    assert hidden.people == shown.people
    con.execute('ALTER TABLE events RENAME "user" TO x; UPDATE events SET x = NULL')
    policy = {**POLICY, "target": "plain", "identifiers": ["x", *POLICY["identifiers"][1:]]}
    assert ldiv_db.run(con, policy).people == ""
    both = [con.execute(f"SELECT * FROM {name}").fetchall() for name in ("hidden", "plain")]
    assert both[0] == both[1]


def test_a_plan_says_how_many_people_have_how_many_rows(con: Any) -> None:
    make(con, more="")
    (people,) = con.execute('SELECT count(DISTINCT "user") FROM events').fetchone()
    assert f"3,000 rows belong to {people} people if user identifies people" in ldiv_db.plan(con, POLICY).warnings[0]


@pytest.mark.parametrize(
    "change",
    some(
        [
            'ALTER TABLE events RENAME "user" TO town',
            "UPDATE events SET \"user\" = 'u' || rowid",
            "UPDATE events SET \"user\" = 'u' || rowid % 5",
            'ALTER TABLE events RENAME "user" TO last_name',
            'ALTER TABLE events RENAME "user" TO "PLZ"',
            'ALTER TABLE events RENAME "user" TO zip_code',
            'ALTER TABLE events RENAME "user" TO "Landkreis"',
        ],
        1,
    ),
)
def test_where_nobody_has_several_rows_nothing_is_said(con: Any, change: str) -> None:
    """A town is dropped without a word where it has many rows each, a name that people share says nobody's."""
    make(con, more="")
    con.execute("UPDATE events SET \"user\" = 't' || rowid % 20" if "town" in change else "SELECT 1")
    con.execute(change)
    name = con.execute("SELECT column_name FROM (DESCRIBE events) LIMIT 1").fetchone()[0]
    policy = {**POLICY, "identifiers": [name, *POLICY["identifiers"][1:]]}
    con.execute("DELETE FROM events WHERE rowid % 9 > 0")
    assert not ldiv_db.plan(con, policy).warnings and not ldiv_db.run(con, policy).people


def test_an_identifier_that_nobody_knows_by_name_may_be_a_persons(con: Any) -> None:
    make(con, "hidden", more="DELETE FROM events WHERE rowid % 9 > 0")
    policy = {**POLICY, "identifiers": ["hidden", *POLICY["identifiers"][1:]]}
    assert "if hidden identifies people" in ldiv_db.run(con, policy).people


def test_who_is_kept_apart_is_not_warned_of(con: Any) -> None:
    make(con, more="")
    con.execute('DELETE FROM events WHERE hash("user") % 8 > 0')
    policy = kept(POLICY, individual="user", keep=[], algorithm={"name": "bsgi", "select": "bisect"})
    (several,) = ldiv_db.plan(con, policy).warnings  # what others may know of rows that stand apart
    assert several.startswith("a person has about 1") and not ldiv_db.run(con, policy).people


def test_a_star_is_nobody(con: Any) -> None:
    """Of a release that publishes people themselves or as `*`, those who were left out share no label."""
    person = "CASE WHEN i < 90 THEN 'u' || i % 30 ELSE '*' END AS \"user\""
    con.execute(f"CREATE TABLE released AS SELECT {person}, i % 4 AS s FROM range(200) AS r(i)")
    con.execute("ALTER TABLE released ADD ward INTEGER; UPDATE released SET ward = rowid // 100")
    (audit,) = ldiv_db.check(con, "released", ["ward"], "s", "distinct:1")
    assert "200 rows belong to 31 people if user identifies people" in audit.warnings[0]


@pytest.mark.parametrize(
    ("phone", "qi"),
    some(
        [
            ("['iOS', 'Android'][1 + i % 2]", "ward"),  # kinds, however the column is called
            ("'plan ' || i % 12", "ward"),
            ("'030 ' || i % 70 || '*'", "ward"),  # labels of a release
            ("'[' || i % 70 || ' .. ' || i % 70 + 9 || ']'", "ward"),
            ("'n' || i % 70", "ward,phone"),  # what classes are told apart by
        ],
        2,
    ),
)
def test_kinds_labels_and_quasi_identifiers_are_nobody(con: Any, phone: str, qi: str) -> None:
    con.execute(f"CREATE TABLE t AS SELECT i // 100 AS ward, {phone} AS phone, i % 4 AS s FROM range(200) AS r(i)")
    (audit,) = ldiv_db.check(con, "t", qi.split(","), "s", "k:1")
    assert not any("people" in warning for warning in audit.warnings)
    attacks = ldiv_db.attack(con, "t", qi=qi.split(","), sensitive="s", require="k:1")
    assert not any("identifies people" in warning for warning in attacks.warnings)
    columns = qi.split(",")
    policy = {"source": "t", "target": "out", "sensitive": ["s"], "require": [{"k": 2}]}
    policy |= {"quasi_identifiers": {name: {"taxonomy": {"flat": True}} for name in columns}}
    policy |= {"identifiers": [name for name in ("phone",) if name not in columns]}
    assert not any("identifies people" in warning for warning in ldiv_db.plan(con, policy).warnings)
    con.execute("UPDATE t SET phone = 'n' || rowid % 70")
    said = ldiv_db.check(con, "t", qi.split(","), "s", "k:1")[0].warnings
    assert any("belong to 70 people if phone" in warning for warning in said) is ("phone" not in columns)


@pytest.mark.parametrize(("each", "rows", "told"), [(3, "apart", False), (4, "apart", True), (4, "together", False)])
@pytest.mark.parametrize("named", [True, False])
def test_people_with_many_rows_are_warned_of(con: Any, each: int, rows: str, told: bool, named: bool) -> None:
    con.execute(f"""
        CREATE TABLE visits AS
        SELECT i // {each} AS patient_id, i % 7 AS age, 'd' || (i * i % 13) AS disease FROM range({each * 50}) AS r(i)
    """)
    policy: dict[str, Any] = {
        "source": "visits", "target": "released", "quasi_identifiers": {"age": {"numeric": True}},
        "sensitive": "disease", "require": [{"k": 2}], "algorithm": "mondrian",
    }  # fmt: skip
    policy |= {"individual": {"column": "patient_id", "rows": rows}} if named else {"identifiers": ["patient_id"]}
    warnings = [line for line in ldiv_db.plan(con, policy).warnings if "93 % of 60 million" in line]
    assert len(warnings) == (told or (not named and each == 4))
    assert all("about 4 rows" in line and "column: patient_id, rows: aligned" in line for line in warnings)


def bags_in_common(rows: list[tuple[Any, ...]]) -> tuple[int, int]:
    """The most people of a class who have one value, and the people of that class, of rows (labels, person, value)."""
    classes: dict[Any, dict[Any, set[Any]]] = {}
    for label, person, value in rows:
        classes.setdefault(label, {}).setdefault(person, set()).add(value)
    found = []
    for bags in classes.values():
        values = set().union(*bags.values())
        found.append((max(sum(value in bag for bag in bags.values()) for value in values), len(bags)))
    return max(found, key=lambda one: (one[0] / one[1], one[1]))


SPREADING: list[dict[str, Any]] = [
    {"entropy": 2}, {"recursive": {"c": 2, "l": 2}}, {"k": 2}, {"risk": 0.5}, {"p_sensitive": {"p": 1, "k": 2}},
    {"alpha_k": {"alpha": 1, "k": 2}}, {"threshold": {"values": {"a": 0.5}}},
]  # fmt: skip
BOUNDING = [{"frequency": 1.25}, {"distinct": 2}]


@pytest.mark.parametrize("rows", some(["together", "tables", "aligned"], 1))
@pytest.mark.parametrize("asked", some(SPREADING + BOUNDING, 1), ids=str)
def test_who_may_have_a_value_in_everybodys_rows_is_said(con: Any, asked: dict[str, Any], rows: str) -> None:
    """Requirements on shares spread a person over their values: plan, run and check say how many have one of them."""
    bounded = asked in BOUNDING
    con.execute("CREATE TABLE visits (who INT, day INT, dx VARCHAR)")
    own = ["e", "e", "e", "e"] if not bounded else ["e", "f", "g", "h"]
    listed = [(who, day, dx) for who in range(4) for day, dx in ((1, own[who]), (2, "abcd"[who]))]
    con.executemany("INSERT INTO visits VALUES (?, ?, ?)", listed)
    table = {"source": "visits", "quasi_identifiers": {"day": {"numeric": True}}, "sensitive": ["dx"], "target": "out"}
    common: dict[str, Any] = {"require": [asked], "algorithm": "topdown", "seed": 1}
    if rows == "tables":
        each = table | {"person": "who", "rows": "together"}
        policy, name, person = common | {"individual": "who", "tables": {"visits": each}}, "visits.dx", "who"
    else:
        order = {"order": "day"} if rows == "aligned" else {}
        policy, name, person = common | table | {"individual": {"column": "who", "rows": rows, **order}}, "dx", "who_no"
        policy["output"] = {"person": person}
    planned = [str(line) for line in ldiv_db.plan(con, policy).text()]
    told = ldiv_db.run(con, policy).as_dict()["notes"]
    (audit,) = [one for one in ldiv_db.check(con, "out" if rows != "tables" else None, policy=policy) if one.sensitive]
    most, people = bags_in_common([(1, *row) for row in con.execute(f"SELECT {person}, dx FROM out").fetchall()])
    expected = f"all of a class may have one in common ({most} of {people} have, in one class); `frequency`"
    assert any("may have one in common; `frequency`" in note for note in planned) is not bounded
    for notes in (told, audit.warnings):
        assert any(expected in note and note.startswith(name) for note in notes) is not bounded
    assert any("learns no more" in note for note in told) is bounded and (bounded or most == people)


@pytest.mark.usefixtures("no_remedies")
@pytest.mark.parametrize(
    ("rows", "own", "nearest"),
    some(
        [
            ("together", "eeee", 1), ("aligned", "aabb", 2),
            ("together", "aabb", 2), ("aligned", "eeee", 1),
        ],
        2,
    ),
)  # fmt: skip
def test_the_nearest_numbers_of_values_are_those_that_people_meet(con: Any, own: str, nearest: int, rows: str) -> None:
    """Of each value l - 1 people have none: where all four have one it is 1, however many values there are."""
    con.execute("CREATE TABLE visits (who INT, day INT, dx VARCHAR)")
    listed = [(who, day, dx) for who in range(4) for day, dx in ((1, own[who]), (2, "abcd"[who]))]
    con.executemany("INSERT INTO visits VALUES (?, ?, ?)", listed)
    order = {"order": "day"} if rows == "aligned" else {}
    policy: dict[str, Any] = {
        "source": "visits", "target": "out", "quasi_identifiers": {"day": {"numeric": True}}, "sensitive": ["dx"],
        "individual": {"column": "who", "rows": rows, **order}, "algorithm": "topdown",
    }  # fmt: skip
    for asked, told in (({"distinct": 4}, f"l: {nearest}"), ({"p_sensitive": {"p": 4, "k": 2}}, f"p: {nearest}, k: 2")):
        with pytest.raises(ldiv_db.InfeasibleError, match=f"the nearest it meets is {told}"):
            ldiv_db.plan(con, policy | {"require": [asked]})
