"""People whose rows stand apart: every class is good by its people and by its rows, so that no row tells too much."""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict
from fractions import Fraction
from typing import Any

import duckdb
import oracle
import pytest
from hypothesis import reject
from strategies import search, seeds, some

import ldiv_db
from ldiv_db import InfeasibleError, PolicyError
from ldiv_db.auditing.audit import Judging, audit_table
from ldiv_db.auditing.subject import Subject
from ldiv_db.database.engine import Engine
from ldiv_db.database.names import Relation
from ldiv_db.requirements import parse_requirement

POLICY: dict[str, Any] = {
    "source": "visits", "target": {"table": "release", "if_exists": "replace"},
    "quasi_identifiers": {"age": {"numeric": True}}, "sensitive": ["value"], "individual": "person",
    "require": [{"frequency": 2}], "algorithm": "topdown", "over_time": "independent", "seed": 1,
}  # fmt: skip
#: A class of two people, of whom one has two of the three rows.
PAIRS = [(30, "x", "A"), (30, "x", "A"), (30, "y", "B")]


def place(con: Any, rows: list[tuple[Any, ...]], table: str = "visits") -> None:
    con.execute(f"CREATE OR REPLACE TABLE {table} (age INTEGER, value VARCHAR, person VARCHAR)")
    con.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", rows)


def repeated(draw: random.Random, people: int) -> list[tuple[Any, ...]]:
    """Rows of people most of whose rows are alike, so that some have one value often."""
    rows = []
    for person in range(people):
        age, value = draw.randrange(20, 60), draw.choice("aabbcd")
        for _ in range(draw.choice([1, 1, 2, 4])):
            own = value if draw.random() < 0.7 else draw.choice("abcd")
            rows.append((age, own, None if draw.random() < 0.05 else str(person)))
    return rows


def classes_of(con: Any, columns: str = "class_id, age") -> dict[Any, list[str]]:
    found: dict[Any, list[str]] = defaultdict(list)
    for *key, value in con.execute(f"SELECT {columns}, value FROM release").fetchall():
        found[tuple(key)].append(value)
    return found


@pytest.mark.usefixtures("no_remedies")
def test_two_rows_of_one_of_two_people_are_too_many(con: Any) -> None:
    place(con, PAIRS)
    with pytest.raises(InfeasibleError, match=r"as one class, by its rows; the nearest it meets is l: 1\.5"):
        ldiv_db.plan(con, POLICY)
    ldiv_db.plan(con, {**POLICY, "individual": {"column": "person", "rows": "together"}})
    weaker = ldiv_db.run(con, {**POLICY, "require": [{"frequency": 1.5}]})
    assert weaker.audits[0].holds and "1.5 (rows / top value's rows, by rows)" in str(weaker)


@pytest.mark.usefixtures("no_remedies")
@pytest.mark.parametrize("algorithm", some(["topdown", "cuts", "mondrian", "peel", "stratified", "auto", "tds"], 1))
@search(1, seed=seeds)
def test_every_class_is_good_by_its_rows(con: Any, algorithm: str, seed: int) -> None:
    requirements = [
        {"frequency": 2},
        {"entropy": 1.8},
        {"recursive": {"c": 2, "l": 2}},
        {"alpha_k": {"alpha": 0.5, "k": 3}},
    ]
    draw = random.Random(seed)
    people = repeated(draw, draw.randint(8, 16))
    require = draw.choice(requirements)
    one_class = [("*", value, whose) for _, value, person in people for whose in (person, None)]
    if any(oracle.people_violations(one_class[i::2], *next(iter(require.items()))) for i in (0, 1)):
        reject()  # as a run would
    place(con, people)
    keys = {"age": {"taxonomy": {"ranges": [5, 20]}}}
    try:
        found = ldiv_db.run(con, {**POLICY, "require": [require], "algorithm": algorithm, "quasi_identifiers": keys})
    except InfeasibleError:
        reject()
    rows = con.execute("SELECT class_id, age, value, NULL FROM release").fetchall()
    assert not oracle.people_violations(rows, *next(iter(require.items())))
    (verdict,) = found.audits[0].verdicts
    assert verdict.second == verdict.violating_by_rows == 0  # the second reading counts rows


def test_the_audit_reads_people_and_rows(con: Any, engine: Engine) -> None:
    """The worse of both is a class's figure, and one that fails by either violates."""
    draw, seen = random.Random(4), Counter[Any]()
    for text in ("frequency:2", "frequency:1.5", "entropy:1.8", "k:3", "distinct:2", "alpha_k:alpha=0.5,k=2"):
        requirement = parse_requirement(text).resolve(None)
        argument = {"frequency:2": 2, "frequency:1.5": 1.5, "entropy:1.8": 1.8, "k:3": 3, "distinct:2": 2}.get(
            text, {"alpha": 0.5, "k": 2}
        )
        for _ in range(2):
            place(con, [(draw.randrange(4), *row[1:]) for row in repeated(draw, 12)])
            subject = Subject(Relation(("visits",)), ["age"], person="person", by_rows=True)
            (verdict,) = audit_table(engine, subject, "value", [requirement], judging=Judging(twice=True)).verdicts
            rows = con.execute("SELECT * FROM visits").fetchall()
            by_people = oracle.people_violations(rows, requirement.name, argument)
            by_rows = oracle.people_violations([(*row[:2], None) for row in rows], requirement.name, argument)
            assert verdict.violating_classes == len(by_people.keys() | by_rows.keys())
            assert verdict.violating_by_rows == verdict.second == len(by_rows)
            people = {labels: len(oracle.bags(pairs)) for labels, pairs in oracle.people_of(rows).items()}
            assert verdict.violating_rows == sum(people[labels] for labels in by_people.keys() | by_rows.keys())
            assert verdict.worst_rows in people.values() and (verdict.margin < 0) is not verdict.holds
            seen[verdict.holds, verdict.by_rows] += 1
    assert seen[False, True] and seen[False, False] and seen[True, False]


def test_check_finds_by_rows_what_no_column_of_people_is_needed_for(con: Any) -> None:
    """What violates by rows is violated; what holds by rows is open, as people may violate it."""
    place(con, PAIRS, "release")
    con.execute("ALTER TABLE release ADD class_id INTEGER DEFAULT 1")
    place(con, PAIRS)
    (audit,) = ldiv_db.check(con, "release", policy=POLICY)
    assert audit.holds is False and "rows are judged alone" in audit.warnings[0]
    (audit,) = ldiv_db.check(con, "release", policy={**POLICY, "require": [{"frequency": 1.5}, {"k": 2}]})
    assert audit.holds is None
    (audit,) = ldiv_db.check(con, "release", policy=POLICY, individual="person")
    (verdict,) = audit.verdicts
    assert audit.holds is False and (verdict.worst, verdict.by_rows, verdict.worst_rows) == (1.5, True, 2)
    assert ldiv_db.check(con, "release", qi="age", sensitive="value", require="frequency:2", individual="person").holds
    text = ldiv_db.check_sql("release", policy=POLICY, individual="person")
    assert con.execute(text).fetchall() == [("frequency l=2", "value", 2, 1.5, -1.0)]
    with pytest.raises(PolicyError, match="counts people"):
        ldiv_db.check_sql("release", policy=POLICY)


@search(1, seed=seeds)
def test_all_worlds_of_a_release_keep_the_bounds(con: Any, seed: int) -> None:
    """A world gives the rows of each class its values in some order; all are as likely to who takes rows as alike.

    A row then has a value in at most 1/l of them, and one of m rows of a person in at most m/l.
    """
    draw = random.Random(seed)
    l = draw.choice([2, 3])
    # No value is that of more than one in l: of 8 rows, or of the 4 people who have two each.
    values = draw.sample("aabbccdd", 8)
    rows = [(draw.randrange(20, 40), value, str(i // (4 - l))) for i, value in enumerate(values)]
    place(con, rows)
    ldiv_db.run(con, {**POLICY, "require": [{"frequency": l}]})
    owned = Counter(person for _, _, person in rows)
    for pool in classes_of(con).values():
        for m in range(1, min(max(owned.values()), len(pool)) + 1):
            ways = list(itertools.permutations(pool, m))
            for value in set(pool):
                assert Fraction(sum(value in way for way in ways), len(ways)) <= min(Fraction(1), Fraction(m, l))


@pytest.mark.slow
def test_attacks_hold_rows_against_the_promise(con: Any) -> None:
    """Each class has different values: m rows are just m times as sure as one, and a class of equal ones breaks it."""
    rows = [(20 + 10 * (i // 4), "abcd"[i % 4], f"p{i // 4}{i % 4 // 2}") for i in range(16)]
    place(con, rows)
    policy = {**POLICY, "require": [{"frequency": 4}], "output": {"class_id": True}}
    with pytest.raises(InfeasibleError):
        ldiv_db.run(con, {**policy, "require": [{"frequency": 5}]})
    place(con, [(age, value, f"{value}{i}") for i, (age, value, _) in enumerate(rows)])
    ldiv_db.run(con, policy)
    place(con, rows)  # the same rows, known to be those of fewer people
    found = ldiv_db.attack(con, "release", policy=policy, known="visits")
    gains = {(attack.name, gain.measure): gain for attack in found.attacks for gain in attack.gains}
    linking = next(gain for (name, _), gain in gains.items() if name == "linking")
    several = gains["several rows", "posterior, two rows of a person known"]
    assert (linking.gain, linking.bound, linking.holds) == (0.25, 0.25, True)
    assert (several.gain, several.bound, several.holds) == (0.5, 0.5, True)
    con.execute("UPDATE release SET value = 'a'")
    broken = ldiv_db.attack(con, "release", policy=policy, known="visits")
    assert broken.holds is False
    assert [a.holds for a in broken.attacks if a.name in ("linking", "several rows")] == [False, False]


@pytest.mark.slow
def test_a_report_holds_attacks_on_rows_against_the_promise() -> None:
    with duckdb.connect(config={"threads": 1}) as con:
        place(con, [(20 + i % 5, "abcd"[i % 4], str(i // 2)) for i in range(60)])
        ldiv_db.run(con, POLICY)
        document = ldiv_db.report(con, "release", POLICY, queries=0, tries=2).document
        said = next(one for one in document["verdicts"] if one["attack"] == "linking")
        assert document["data"]["people"].startswith("Requirements count people, and rows as well")
        assert said["threshold"] == 0.5 and "Attacks count rows" not in " ".join(document["not_tried"])
        con.execute("UPDATE release SET value = 'a'")
        assert ldiv_db.report(con, "release", POLICY, public=True).document["statement"]["holds"] is False
