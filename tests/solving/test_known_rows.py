"""What is published where one row is known: labels that never overlap, and classes good by people counted in Python."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import duckdb
import pytest

import ldiv_db
from ldiv_db.database.errors import InfeasibleError, PolicyError
from tests.strategies import search, seeded, some

pytestmark = pytest.mark.usefixtures("no_remedies")

TREE = {"prefix": [2, 1]}


class Table(NamedTuple):
    """A table of a schema: the column of its owner, that of its key, labels with their kinds, values."""

    owner: str
    key: str
    labels: dict[str, str]
    sensitive: tuple[str, ...]


TABLES = {
    "people": Table("who", "", {"age": "number", "town": "set"}, ()),
    "visits": Table("who", "visit", {"day": "number", "ward": "tree"}, ("illness",)),
    "labs": Table("visit", "", {"test": "set"}, ("result",)),
}
REQUIRED: list[list[dict[str, Any]]] = [
    [
        *({"k": 2}, {"distinct": 2, "sensitive": "visits.illness"}, {"frequency": 2, "sensitive": "visits.illness"}),
        {"frequency": {"l": 2, "each": "row", "sensitive": "labs.result"}},
    ],
    [{"k": 2}],
    [{"frequency": 2}],
    [{"distinct": 2}, {"k": 3}],
    [
        {"frequency": {"l": 2, "each": "row", "sensitive": "labs.result"}},
        {"frequency": 2, "sensitive": "visits.illness"},
    ],
    [{"frequency": {"l": 2, "each": "row"}}],
]


def drawn(draw: random.Random) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of each table, each with a number of its own at the end."""
    people = draw.randint(4, 12)
    numbers = draw.choice([3, 30])

    def number() -> int | None:
        return None if draw.random() < 0.05 else draw.randrange(numbers)

    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}
    for who in range(people):
        rows["people"].append((who, number(), draw.choice("pqr"), who))
        for _ in range(draw.choice([0, 1, 1, 2, 4])):
            visit = 100 + len(rows["visits"])
            ward, illness = draw.choice(["aa", "ab", "ba", None]), draw.choice("xyz")
            rows["visits"].append((who, visit, number(), ward, illness, visit))
            for _ in range(draw.choice([0, 0, 1, 3])):
                lab = len(rows["labs"])
                rows["labs"].append((visit, draw.choice("stu"), draw.choice("jklmn"), lab))
    return rows


def policy_of(require: list[dict[str, Any]]) -> dict[str, Any]:
    def said(kind: str) -> dict[str, Any]:
        return {"number": {"numeric": True}, "set": {}, "tree": {"taxonomy": TREE}}[kind]

    tables = {}
    for name, one in TABLES.items():
        owner = {"parent": {"visit": "visits"}} if name == "labs" else {"person": one.owner}
        key = {"key": one.key} if one.key else {}
        labels = {column: said(kind) for column, kind in one.labels.items()}
        tables[name] = {
            "source": name, "target": f"published.{name}", **owner, **key, "quasi_identifiers": labels,
            "sensitive": list(one.sensitive), "keep": ["nr"],
        }  # fmt: skip
    return {"individual": "who", "known": 1, "tables": tables, "require": require, "seed": 3}


def loaded(rows: dict[str, list[tuple[Any, ...]]], threads: int) -> duckdb.DuckDBPyConnection:
    con = duckdb.connect(config={"threads": threads})
    con.execute("CREATE SCHEMA published")
    for name, one in TABLES.items():
        columns = [one.owner, *([one.key] if one.key else []), *one.labels, *one.sensitive, "nr"]
        types = [f"{c} {'VARCHAR' if c in {*one.sensitive, 'town', 'ward', 'test'} else 'INTEGER'}" for c in columns]
        con.execute(f"CREATE TABLE {name} ({', '.join(types)})")
        if rows[name]:
            con.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", rows[name])
    return con


def read(con: duckdb.DuckDBPyConnection, schema: str) -> dict[str, dict[int, dict[str, Any]]]:
    """The rows of each table by their numbers, which are published as they are."""
    found = {}
    for name in TABLES:
        cursor = con.execute(f"SELECT * FROM {schema}.{name}")
        names = [column[0] for column in cursor.description]
        every = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        found[name] = {row["nr"]: row for row in every}
        assert len(found[name]) == len(every)
    return found


def covers(label: str | None, value: Any) -> bool:
    """Whether a published label stands for a value."""
    if label == "*" or label is None or value is None:
        return label == "*" or label == value
    if label.startswith("{"):
        return str(value) in [member.strip() for member in label[1:-1].split(",")]
    if label.startswith("["):
        low, high = label[1:-1].split(" .. ")
        return int(low) <= value <= int(high)
    return str(value).startswith(label.rstrip("*")) if label.endswith("*") else label == str(value)


class Release:
    """A release beside its source: the path of labels of each row, and whose it is."""

    def __init__(self, source: Any, shown: Any) -> None:
        self.source, self.shown = source, shown
        self.visits = {row["visit"]: row for row in shown["visits"].values()}
        self.known = {
            (name, column): {row[column] for row in source[name].values()}
            for name, one in TABLES.items()
            for column in one.labels
        }
        self.people = {row["who"]: tuple(row[c] for c in TABLES["people"].labels) for row in shown["people"].values()}

    def person(self, name: str, row: dict[str, Any]) -> int:
        return self.visits[row["visit"]]["who"] if name == "labs" else row["who"]

    def path(self, name: str, row: dict[str, Any]) -> tuple[tuple[str, str, str | None], ...]:
        above = self.path("visits", self.visits[row["visit"]]) if name == "labs" else ()
        return (*above, *((name, column, row[column]) for column in TABLES[name].labels))

    def covered(self, label: tuple[str, str, str | None]) -> frozenset[Any]:
        name, column, shown = label
        return frozenset(value for value in self.known[name, column] if covers(shown, value))

    def classes(self) -> Iterator[tuple[str, set[int], list[tuple[int, dict[str, Any]]]]]:
        """The table, the people, and the rows with whose they are, of each label of people, and of rows there."""
        for own in set(self.people.values()):
            group = {who for who, labels in self.people.items() if labels == own}
            yield "", group, []
            for name in ("visits", "labs"):
                by_path = defaultdict[Any, list[tuple[int, dict[str, Any]]]](list)
                for row in self.shown[name].values():
                    if (who := self.person(name, row)) in group:
                        by_path[self.path(name, row)].append((who, row))
                for one, other in combinations(by_path, 2):
                    assert any(self.covered(a).isdisjoint(self.covered(b)) for a, b in zip(one, other, strict=True))
                for rows in by_path.values():
                    yield name, {who for who, _ in rows}, rows

    def bags(self, column: str) -> dict[int, set[str]]:
        name, bags = "visits" if column == "illness" else "labs", defaultdict[int, set[str]](set)
        for row in self.shown[name].values():
            bags[self.person(name, row)].add(row[column])
        return bags


def judge(release: Release, require: list[dict[str, Any]]) -> None:
    """Every class counted in Python."""
    bags = {column: release.bags(column) for column in ("illness", "result")}
    for name, people, rows in release.classes():
        for asked in require:
            kind, argument = next((k, a) for k, a in asked.items() if k != "sensitive")
            of = asked.get("sensitive") or (argument.get("sensitive", "") if isinstance(argument, dict) else "")
            if kind == "k":
                assert len(people) >= argument
                continue
            for column, table in (("illness", "visits"), ("result", "labs")):
                if of and of != f"{table}.{column}":
                    continue
                by_row = isinstance(argument, dict) and "each" in argument
                if by_row and table == name:
                    shares = Counter[str]()
                    for who in people:
                        own = [row[column] for whose, row in rows if whose == who]
                        for value in own:
                            shares[value] += Fraction(1, len(own))  # type: ignore[assignment]
                    assert all(2 * share <= len(people) for share in shares.values())
                elif not by_row:
                    having = Counter(value for who in people for value in bags[column][who])
                    if kind == "frequency":
                        assert all(argument * count <= len(people) for count in having.values())
                    elif having:
                        assert len(having) >= argument
                        assert all(len(people) - count >= argument - 1 for count in having.values())


@search(1, draw=seeded)
def test_labels_never_overlap_and_people_make_every_class_good(draw: random.Random) -> None:
    rows, require = drawn(draw), draw.choice(REQUIRED)
    con = loaded(rows, 1)
    try:
        result = ldiv_db.run(con, policy_of(require))
    except (InfeasibleError, PolicyError) as error:
        assert any(what in str(error) for what in ("violate", "never varies within a row of visits", "is empty"))
        return
    source, shown = read(con, "main"), read(con, "published")
    for name, one in TABLES.items():
        told = next(table.loss for table in result.tables if table.name == name)
        assert len(shown[name]) == len(source[name]) - told.rows_suppressed
        for number, row in shown[name].items():
            assert all(row[c] == source[name][number][c] for c in one.sensitive)
            assert all(covers(row[c], source[name][number][c]) for c in one.labels)
    release = Release(source, shown)
    whose = {(release.person(n, r), release_owner(source, n, number)) for n in shown for number, r in shown[n].items()}
    assert len(whose) == len({a for a, _ in whose}) == len({b for _, b in whose})
    judge(release, require)
    again = loaded({name: draw.sample(own, len(own)) for name, own in rows.items()}, 4)
    ldiv_db.run(again, policy_of(require))
    assert read(again, "published") == shown


def release_owner(source: Any, name: str, number: int) -> int:
    """Whose a row of the source is."""
    row = source[name][number]
    return source["visits"][row["visit"]]["who"] if name == "labs" else row["who"]


@pytest.mark.parametrize("require", some([[{"k": 13}], [{"distinct": 6}]]))
def test_what_all_people_cannot_meet_is_refused(require: list[dict[str, Any]]) -> None:
    with pytest.raises(InfeasibleError, match="violate"):
        ldiv_db.run(loaded(drawn(random.Random(1)), 1), policy_of(require))


def people_with(illnesses: list[str]) -> dict[str, list[tuple[Any, ...]]]:
    """A person for each text, with a visit for each letter of it, and one lab at the first of all visits."""
    visits = [(who, letter) for who, every in enumerate(illnesses) for letter in every]
    return {
        "people": [(who, 30, "p", who) for who in range(len(illnesses))],
        "visits": [(who, 100 + n, n, "aa", letter, n) for n, (who, letter) in enumerate(visits)],
        "labs": [(100, "s", "j", 0)],
    }


def test_the_fewest_give_up_rows_of_a_value_that_is_too_frequent() -> None:
    """Four of six have x, of whom one who has other rows gives up that one; a lab of one person is of too few."""
    con = loaded(people_with(["x", "x", "xy", "xz", "z", "y"]), 1)
    policy = policy_of([{"frequency": 2}, {"k": 2}])
    plan, result = ldiv_db.plan(con, policy), ldiv_db.run(con, policy)
    left = {table.name: table.loss.rows_suppressed for table in result.tables}
    assert left == {"people": 0, "visits": 1, "labs": 1}
    assert [table["rows_published"] for table in plan.as_dict()["tables"]] == [6, 7, 0]
    told = next(note for note in plan.notes if "left out" in note)
    assert told.startswith("1 row of visits, 1 row of labs are left out: 1 as a value of visits.illness is")
    assert "by counts at least 2 must be" in told
    shown = read(con, "published")["visits"].values()
    assert Counter(row["illness"] for row in shown) == {"x": 3, "y": 2, "z": 2}
    assert len({row["who"] for row in shown}) == 6


@search(1, draw=seeded)
def test_no_fewer_rows_can_be_left_out_than_is_said(draw: random.Random) -> None:
    """The fewest of all choices of visits by which all people, and those with visits, have no value too often."""
    illnesses = ["".join(draw.choices("xyz", [3, 1, 1], k=draw.choice([0, 1, 1, 2]))) for _ in range(6)]
    visits = [(who, letter) for who, every in enumerate(illnesses) for letter in every]

    def is_good(kept: tuple[tuple[int, str], ...]) -> bool:
        having, among = Counter(letter for _, letter in {*kept}), len({who for who, _ in kept})
        return not kept or (among >= 2 and all(2 * count <= among for count in having.values()))

    sizes = (n for n in range(len(visits), -1, -1) if any(map(is_good, combinations(visits, n))))
    fewest = len(visits) - next(sizes) + 1  # the lab of one person goes, too
    try:
        notes = ldiv_db.plan(loaded(people_with(illnesses), 1), policy_of([{"frequency": 2}, {"k": 2}])).notes
    except InfeasibleError:
        return
    (told,) = (
        re.search(r"([\d,]+) row.* left out: .* at least ([\d,]+) must", note) for note in notes if "by counts" in note
    )
    assert told and int(told[2]) <= fewest


@search(1, draw=seeded)
def test_one_table_is_a_schema_of_one_whose_columns_of_people_are_found(draw: random.Random) -> None:
    """Who has rows of a label has them with one label of people, and no two labels overlap."""
    people = [(who, draw.choice("fm"), draw.randrange(40)) for who in range(draw.randint(8, 30))]
    rows = [(*one, draw.randrange(9), draw.choice("abcdefg")) for one in people for _ in range(draw.choice([1, 2, 5]))]
    con = duckdb.connect(config={"threads": 1})
    con.execute("CREATE TABLE stays (who INT, sex VARCHAR, birth INT, day INT, illness VARCHAR, nr INT)")
    con.executemany("INSERT INTO stays VALUES (?, ?, ?, ?, ?, ?)", [(*row, nr) for nr, row in enumerate(rows)])
    labels = {"sex": {}, "birth": {"numeric": True}, "day": {"numeric": True}}
    policy = {
        "source": "main.stays", "target": "pub", "individual": "who", "known": 1, "quasi_identifiers": labels,
        "sensitive": "illness", "keep": ["nr"], "require": [{"frequency": 2, "sensitive": "illness"}, {"k": 3}],
        "identifiers": ["who"],
    }  # fmt: skip
    result = ldiv_db.run(con, policy)
    assert any("stays.birth" in note and "never varies" in note for note in result.notes)
    shown = con.execute("SELECT who, sex, birth, day, illness, nr FROM pub ORDER BY nr").fetchall()
    assert len(shown) == len(rows) - result.loss.rows_suppressed
    assert len({(row[0], rows[row[5]][0]) for row in shown}) == len({row[0] for row in shown})
    bags, having = defaultdict[int, set[str]](set), defaultdict[Any, set[int]](set)
    of_person = defaultdict[int, set[Any]](set)
    for who, sex, birth, day, illness, nr in shown:
        assert covers(sex, rows[nr][1]) and covers(birth, rows[nr][2]) and covers(day, rows[nr][3])
        bags[who].add(illness)
        having[sex, birth, day].add(who)
        of_person[who].add((sex, birth))
    assert all(len(found) == 1 for found in of_person.values())
    values = [sorted({row[column] for row in rows}) for column in (1, 2, 3)]
    for one, other in combinations(having, 2):
        assert any(
            not any(covers(a, value) and covers(b, value) for value in known)
            for a, b, known in zip(one, other, values, strict=True)
        )
    for group in having.values():
        counts = Counter(value for who in group for value in bags[who])
        assert len(group) >= 3
        assert max(counts.values()) * 2 <= len(group)
    assert all(audit.holds for audit in ldiv_db.check(con, policy=policy))


def test_each_row_of_a_table_of_people_is_bounded_among_people_alike() -> None:
    """Of four people of one ward three have g, so that no label may be of that ward alone."""
    con = duckdb.connect(config={"threads": 1})
    con.execute("CREATE SCHEMA published; CREATE TABLE people (who INT, ward VARCHAR, illness VARCHAR)")
    rows = [*zip("fghhhghfg", "bagggfedd", strict=True)]
    con.executemany("INSERT INTO people VALUES (?, ?, ?)", [(who, *row) for who, row in enumerate(rows)])
    own = {"source": "people", "person": "who", "target": "published.people"}
    columns = {"quasi_identifiers": {"ward": {"recode": "set"}}, "sensitive": ["illness"]}
    required: list[Any] = [{"frequency": {"l": 2, "each": "row"}}, {"k": 2}]
    policy = {"individual": "who", "known": 1, "tables": {"people": {**own, **columns}}, "require": required}
    ldiv_db.run(con, policy)
    by_label = defaultdict[str, list[str]](list)
    for label, illness in con.execute("SELECT ward, illness FROM published.people").fetchall():
        by_label[label].append(illness)
    assert len(by_label) > 1
    assert all(2 * max(Counter(found).values()) <= len(found) for found in by_label.values())
